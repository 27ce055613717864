package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestEachMutantThatLivesIsKilledByATestOrListed(t *testing.T) {
	mutations := []*mutation{
		{File: "a.go", Kind: "CONDITIONALS_BOUNDARY", Text: "return x «> 1 && y > 2", Status: "LIVED"},
		{File: "a.go", Kind: "CONDITIONALS_BOUNDARY", Text: "return x > 1 && y «> 2", Status: "NOT COVERED"},
		{File: "a.go", Kind: "INVERT_LOGICAL", Text: "return x > 1 «&& y > 2", Status: "KILLED"},
		{File: "a.go", Kind: "INVERT_LOOPCTRL", Text: "«break", Status: "LIVED"},
		{File: "a.go", Kind: "INVERT_LOOPCTRL", Text: "«break", Status: "LIVED"},
	}
	const (
		first  = "a/a.go\tCONDITIONALS_BOUNDARY\treturn x «> 1 && y > 2\tx is never 1\n"
		second = "a/a.go\tCONDITIONALS_BOUNDARY\treturn x > 1 && y «> 2\ty is never 2\n"
		third  = "a/a.go\tINVERT_LOOPCTRL\t«break\tnothing follows\n"
	)
	for name, c := range map[string]struct {
		list string
		want bool
		says string
	}{
		"all are listed":                       {first + second + third + third, true, "| a | 5 | 1 | 0 | 0 | 4 | 3 s |"},
		"one that lives is not listed":         {second + third + third, false, "| a | 5 | 1 | 1 | 0 | 3 | 3 s |\nLIVED       line 0    a/a.go\tCONDITIONALS_BOUNDARY\treturn x «> 1"},
		"one that no test reaches is not":      {first + third + third, false, "NOT COVERED line 0    a/a.go\tCONDITIONALS_BOUNDARY\treturn x > 1 && y «> 2"},
		"two have one text, and one is listed": {first + second + third, false, "LIVED       line 0    a/a.go\tINVERT_LOOPCTRL\t«break"},
		"one is listed that does not live":     {first + second + third + third + strings.Replace(first, "«> 1", "> 1 «", 1), false, "remove the line"},
		"another package has lines as well":    {first + second + third + third + strings.ReplaceAll(first, "a/a.go", "b/b.go"), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			equivalent, err := parseList(c.list, "a")
			g.Expect(err).NotTo(HaveOccurred())
			var out bytes.Buffer
			g.Expect(report(&out, "a", mutations, equivalent, 3*time.Second)).To(Equal(c.want))
			g.Expect(out.String()).To(ContainSubstring(c.says))
		})
	}
	_, err := parseList("# why\n\n"+strings.ReplaceAll(first, "\tx is never 1", ""), "a")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("line 3 of the list has 3 fields")))
}

// source has a mutant of each kind.
const source = `package a

type ticks int64

func decides(xs []int, y ticks, ok bool) (n int, z ticks) {
	for i := 0; i < len(xs); i++ {
		if xs[i] == 7 {
			continue
		}
		if xs[i] > 100 && ok {
			break
		}
		n += xs[i]
	}
	z = y + 1
	z++
	return n, -z
}

func unreached(a, b bool) bool { return a || b }
`

const tests = `package a

import "testing"

func TestDecides(t *testing.T) {
	if n, z := decides([]int{1, 7, 2, 101, 4}, 1, true); n != 3 || z != -3 {
		t.Fatal(n, z)
	}
}

func TestItIsNotOk(t *testing.T) {
	if n, _ := decides([]int{200}, 1, false); n != 200 {
		t.Fatal(n)
	}
}
`

func TestTheMutantsOfAPackageRunOneAtATime(t *testing.T) {
	g := NewWithT(t)
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{"go.mod": "module a\n\ngo 1.26\n", "a.go": source, "a_test.go": tests} {
		g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
	}
	var out bytes.Buffer
	ok, err := run(&out, ".", "", "", "", 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(ok).To(BeFalse())
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	g.Expect(lines).To(HaveExactElements(
		HavePrefix("| . | 14 | 12 | 1 | 1 | 0 |"),
		"LIVED       line 10   a.go\tCONDITIONALS_BOUNDARY\tif xs[i] «> 100 && ok {",
		"NOT COVERED line 20   a.go\tINVERT_LOGICAL\tfunc unreached(a, b bool) bool { return a «|| b }",
	))
	out.Reset()
	_, err = run(&out, ".", "", "ItIs", "", 2)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.String()).To(HavePrefix("| . | 14 | 11 | 2 | 1 | 0 |"), "one more lives without the second test")
	left, err := os.ReadDir(".")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(left).To(HaveLen(3), "the package stays as it was")
}
