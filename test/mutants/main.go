// Command mutants changes each decision of packages, one at a time, and runs the packages' own tests on each change.
// usage: mutants [-tags TAGS] [-skip REGEXP] [-list FILE] [-parallel N] PACKAGE...      such as internal/plan
//
// It prints a row for docs/testing.md, each mutant that lives or that no test reaches and that the list does not have, and each line of the
// list that no mutant fits. It exits with 1 when there is one of these. All mutants of a package are compiled once (docs/adr/0145).
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

func main() {
	tags := flag.String("tags", "", "build tags of the tests")
	skip := flag.String("skip", "", "a regular expression of the names of tests that do not run, such as simulations")
	listFile := flag.String("list", "test/mutants/equivalents.txt", "the mutants that no test can kill")
	parallel := flag.Int("parallel", 2, "mutants that are tested at the same time")
	flag.Parse()
	list, err := os.ReadFile(*listFile)
	ok := err == nil && flag.NArg() > 0
	if err == nil && flag.NArg() == 0 {
		err = fmt.Errorf("usage: mutants [-tags TAGS] PACKAGE..., such as internal/plan")
	}
	for _, pkg := range flag.Args() {
		if err != nil {
			break
		}
		var good bool
		good, err = run(os.Stdout, path.Clean(pkg), *tags, *skip, string(list), *parallel)
		ok = ok && good
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// run tests the mutants of one package.
func run(out io.Writer, pkg, tags, skip, list string, parallel int) (bool, error) {
	start := time.Now()
	equivalent, err := parseList(list, pkg)
	if err != nil {
		return false, err
	}
	work, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer clean(work)
	b, err := build(pkg, work, tags)
	if err != nil {
		return false, err
	}
	tests, err := b.tests(skip)
	if err != nil {
		return false, err
	}
	b.tryAll(tests, parallel)
	return report(out, pkg, b.mutations, equivalent, time.Since(start)), nil
}

// report writes what a run has found. It is true when each mutant that lives is in the list, and nothing else is.
func report(out io.Writer, pkg string, mutations []*mutation, equivalent []string, took time.Duration) bool {
	count := map[string]int{}
	var unlisted []string
	for _, m := range mutations {
		status := m.Status
		if status == "LIVED" || status == "NOT COVERED" {
			name := strings.Join([]string{path.Join(pkg, m.File), m.Kind, m.Text}, "\t")
			if i := slices.Index(equivalent, name); i >= 0 {
				equivalent = slices.Delete(slices.Clone(equivalent), i, i+1)
				status = "listed"
			} else {
				unlisted = append(unlisted, fmt.Sprintf("%-11s line %-4d %s", status, m.Line, name))
			}
		}
		count[status]++
	}
	fmt.Fprintf(out, "| %s | %d | %d | %d | %d | %d | %d s |\n", pkg, len(mutations), count["KILLED"]+count["TIMED OUT"], count["LIVED"],
		count["NOT COVERED"], count["listed"], int(took.Seconds()))
	if n := count["TIMED OUT"]; n > 0 {
		fmt.Fprintf(out, "%d of the killed ones took too long, which a busy machine may cause as well\n", n)
	}
	slices.Sort(unlisted)
	for _, line := range unlisted {
		fmt.Fprintln(out, line)
	}
	for _, name := range equivalent {
		fmt.Fprintf(out, "the list has a mutant that does not live: remove the line %q\n", name)
	}
	return len(unlisted)+len(equivalent) == 0
}

// parseList reads lines of FILE, KIND, LINE and REASON with tabs between them, and returns the first three of those of a package. LINE has
// "«" in front of what is changed, and no number, so that lines may move. Lines that are empty or begin with "#" are comments.
func parseList(list, pkg string) ([]string, error) {
	var out []string
	for n, line := range strings.Split(list, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[3] == "" {
			return nil, fmt.Errorf("line %d of the list has %d fields: write FILE, KIND, LINE and REASON with tabs between them", n+1, len(fields))
		}
		if path.Dir(fields[0]) == pkg {
			out = append(out, strings.Join(fields[:3], "\t"))
		}
	}
	return out, nil
}
