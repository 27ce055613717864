package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// source is a package of one file. Its line 4 has two mutants that live.
const (
	source = "package a\n\nfunc f(x, y int) bool {\n\treturn x > 1 && y > 2\n}\n"
	found  = `{"files": [{"file_name": "a/a.go", "mutations": [
		{"type": "CONDITIONALS_BOUNDARY", "status": "LIVED", "line": 4, "column": 11},
		{"type": "CONDITIONALS_BOUNDARY", "status": "NOT COVERED", "line": 4, "column": 20},
		{"type": "INVERT_LOGICAL", "status": "KILLED", "line": 4, "column": 15}]}]}`
	first  = "a/a.go\tCONDITIONALS_BOUNDARY\treturn x «> 1 && y > 2\tx is never 1\n"
	second = "a/a.go\tCONDITIONALS_BOUNDARY\treturn x > 1 && y «> 2\ty is never 2\n"
)

func TestEachMutantThatLivesIsKilledByATestOrListed(t *testing.T) {
	for name, c := range map[string]struct {
		list string
		want bool
		err  string
	}{
		"all are listed":                    {first + second, true, ""},
		"one that lives is not listed":      {second, false, ""},
		"one that no test reaches is not":   {first, false, ""},
		"one is listed that does not live":  {first + second + strings.Replace(first, "«> 1", "> 1 «", 1), false, ""},
		"another package has lines as well": {first + second + strings.ReplaceAll(first, "a/a.go", "b/b.go"), true, ""},
		"a line has no reason":              {"# why\n\n" + strings.ReplaceAll(first, "\tx is never 1", ""), false, "line 3 has 3 fields"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			t.Chdir(t.TempDir())
			g.Expect(os.Mkdir("a", 0o750)).To(Succeed())
			for file, text := range map[string]string{filepath.Join("a", "a.go"): source, "report": found, "list": c.list} {
				g.Expect(os.WriteFile(file, []byte(text), 0o600)).To(Succeed())
			}
			ok, err := run(io.Discard, "a", "report", "list")
			if c.err != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.err)))
			} else {
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(ok).To(Equal(c.want))
		})
	}
}
