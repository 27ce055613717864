package benchmarks_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

func TestValuesOfAPoint(t *testing.T) {
	for name, test := range map[string]struct {
		read func(v *benchmarks.Values)
		says string
	}{
		"a number between its bounds":                     {func(v *benchmarks.Values) { v.Number("n", 4, 4) }, ""},
		"a number that is too small":                      {func(v *benchmarks.Values) { v.Number("n", 5, 9) }, "n: 4 is less than 5, the least that can be run"},
		"a number that is too large":                      {func(v *benchmarks.Values) { v.Number("n", 0, 3) }, "n: 4 is more than 3, the most that can be run"},
		"a size in place of a number":                     {func(v *benchmarks.Values) { v.Number("b", 0, 9) }, `b: "4k" is no whole number`},
		"a size":                                          {func(v *benchmarks.Values) { v.Bytes("b", 4096, 4096) }, ""},
		"a size that is too large":                        {func(v *benchmarks.Values) { v.Bytes("b", 1, 4095) }, "b: 4k is more than 4095"},
		"a word that is none of the words":                {func(v *benchmarks.Values) { v.Word("w", "read", "write") }, `w: "random" is none of read, write`},
		"any word":                                        {func(v *benchmarks.Values) { v.Word("w") }, ""},
		"a parameter that is not there":                   {func(v *benchmarks.Values) { v.Number("x", 0, 9) }, `x: "" is no whole number`},
		"two that can't be used, of which the first says": {func(v *benchmarks.Values) { v.Number("n", 5, 9); v.Word("x") }, "n: 4 is less than 5"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			v := benchmarks.ValuesOf(benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{"n": "4", "b": "4k", "w": "random"}})
			test.read(v)
			if test.says == "" {
				g.Expect(v.Err()).To(Succeed())
				return
			}
			g.Expect(v.Err()).To(MatchError(ContainSubstring(test.says)))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(v.Err(), &invalid)).To(BeTrue())
		})
	}
}

func TestAValueThatIsOpenIsNotThere(t *testing.T) {
	g := NewWithT(t)
	v := benchmarks.ValuesOf(benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{"processes": "4"}})
	g.Expect(v.Has("processes")).To(BeTrue())
	g.Expect(v.Has("clients")).To(BeFalse())
}
