package benchmarks_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

func TestArgsThatRepeatAnOptionAreRefusedByName(t *testing.T) {
	owned := map[string]string{"-i": "mdtest.iterations", "-F": "mdtest.filesOnly", "--posix.odirect": "ior.directIO"}
	for name, test := range map[string]struct {
		args []v1alpha1.BenchmarkArgument
		says string
	}{
		"none":                                 {nil, ""},
		"options of others":                    {[]v1alpha1.BenchmarkArgument{"-k", "-W", "300", "--warningAsErrors", "-x=/tmp/F"}, ""},
		"a value with the letter of an option": {[]v1alpha1.BenchmarkArgument{"-a", "i", "F"}, ""},
		"a negative number":                    {[]v1alpha1.BenchmarkArgument{"-G", "-1"}, ""},
		"the option":                           {[]v1alpha1.BenchmarkArgument{"-k", "-i", "3"}, `spec.x.args[1]: "-i" sets -i, which is set by mdtest.iterations; remove it`},
		"the option with its value":            {[]v1alpha1.BenchmarkArgument{"-i3"}, `spec.x.args[0]: "-i3" sets -i, which is set by mdtest.iterations; remove it`},
		"the option with = and its value":      {[]v1alpha1.BenchmarkArgument{"-i=3"}, `"-i=3" sets -i`},
		"the option among others":              {[]v1alpha1.BenchmarkArgument{"-kFR"}, `"-kFR" sets -F, which is set by mdtest.filesOnly`},
		"a long option":                        {[]v1alpha1.BenchmarkArgument{"--posix.odirect"}, `"--posix.odirect" sets --posix.odirect`},
		"a long option with =":                 {[]v1alpha1.BenchmarkArgument{"--posix.odirect=1"}, `"--posix.odirect=1" sets --posix.odirect`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := benchmarks.CheckArgs("spec.x.args", test.args, owned)
			if test.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue())
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
		})
	}
}
