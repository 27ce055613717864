// Command survivors compares a report of gremlins on one package with the list of mutants that no test can kill.
// usage: survivors PACKAGE REPORT LIST
//
// It prints a row for docs/testing.md, each mutant that lives or that no test reaches and that is not in the list, and each line of the
// list that no mutant of the report fits. It exits with 1 when there is one of these.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
)

// report is what gremlins 0.6 writes with --output (internal/report/internal/structure.go of its source).
type report struct {
	Files []struct {
		Name      string     `json:"file_name"`
		Mutations []mutation `json:"mutations"`
	} `json:"files"`
}

type mutation struct {
	Type, Status string
	Line, Column int
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: survivors PACKAGE REPORT LIST")
		os.Exit(2)
	}
	ok, err := run(os.Stdout, os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

func run(out io.Writer, pkg, reportFile, listFile string) (bool, error) {
	raw, err := os.ReadFile(reportFile)
	if err != nil {
		return false, err
	}
	var r report
	if err := json.Unmarshal(raw, &r); err != nil {
		return false, fmt.Errorf("reading %s: %w", reportFile, err)
	}
	list, err := os.ReadFile(listFile)
	if err != nil {
		return false, err
	}
	equivalent, err := parseList(string(list), pkg)
	if err != nil {
		return false, fmt.Errorf("reading %s: %w", listFile, err)
	}
	count := map[string]int{}
	var unlisted []string
	fits := map[string]bool{}
	for _, f := range r.Files {
		source, err := os.ReadFile(path.Join(pkg, path.Base(f.Name)))
		if err != nil {
			return false, err
		}
		lines := strings.Split(string(source), "\n")
		for _, m := range f.Mutations {
			if m.Status != "LIVED" && m.Status != "NOT COVERED" {
				count[m.Status]++
				continue
			}
			name := nameOf(path.Join(pkg, path.Base(f.Name)), m, lines)
			if equivalent[name] {
				fits[name] = true
				count["listed"]++
				continue
			}
			count[m.Status]++
			unlisted = append(unlisted, fmt.Sprintf("%-11s line %-4d %s", m.Status, m.Line, name))
		}
	}
	fmt.Fprintf(out, "| %s | %d | %d | %d | %d |\n",
		pkg, count["KILLED"]+count["TIMED OUT"], count["LIVED"], count["NOT COVERED"], count["listed"])
	slices.Sort(unlisted)
	for _, line := range unlisted {
		fmt.Fprintln(out, line)
	}
	ok := len(unlisted) == 0
	for _, name := range slices.Sorted(maps.Keys(equivalent)) {
		if !fits[name] {
			fmt.Fprintf(out, "%s lists a mutant that does not live: remove the line %q\n", listFile, name)
			ok = false
		}
	}
	return ok, nil
}

// nameOf names a mutant by its file, its kind and the text of its line with "«" in front of what is changed, so that lines may move.
func nameOf(file string, m mutation, lines []string) string {
	line := lines[m.Line-1]
	column := min(m.Column-1, len(line))
	return file + "\t" + m.Type + "\t" + strings.TrimSpace(line[:column]+"«"+line[column:])
}

// parseList reads lines of FILE, KIND, LINE and REASON with tabs between them, and returns the first three of those of a package. Lines
// that are empty or begin with "#" are comments.
func parseList(list, pkg string) (map[string]bool, error) {
	out := map[string]bool{}
	for n, line := range strings.Split(list, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 4 || fields[3] == "" {
			return nil, fmt.Errorf("line %d has %d fields: write FILE, KIND, LINE and REASON with tabs between them", n+1, len(fields))
		}
		if path.Dir(fields[0]) == pkg {
			out[strings.Join(fields[:3], "\t")] = true
		}
	}
	return out, nil
}
