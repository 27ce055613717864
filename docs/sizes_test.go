package docs_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// The sizes that a package may have without a ceiling of its own, in files and in lines.
const mostFiles, mostLines = 15, 2500

// TestPackagesDoNotGrow holds each package to one size. size-ceilings.txt lists those that are larger, and the flag -lower lowers their ceilings.
func TestPackagesDoNotGrow(t *testing.T) {
	const file = "size-ceilings.txt"
	g := NewWithT(t)
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	ceilings := map[string][2]int{}
	for line := range strings.Lines(string(text)) {
		var name string
		var most [2]int
		if _, err := fmt.Sscan(line, &name, &most[0], &most[1]); err == nil {
			ceilings[name] = most
		}
	}
	lowered := "# package, files, lines (sizes_test.go); all other packages have at most 15 files and 2500 lines\n"
	packages := packagesOfTheProduct(t)
	g.Expect(len(packages)).To(BeNumerically(">", 80))
	for _, name := range slices.Sorted(slices.Values(packages)) {
		files, lines := sizeOf(g, filepath.Join("..", name))
		most, listed := ceilings[name]
		if !listed {
			most = [2]int{mostFiles, mostLines}
		}
		g.Expect(files).To(BeNumerically("<=", most[0]), "%s has too many files: give a subject a package of its own", name)
		g.Expect(lines).To(BeNumerically("<=", most[1]), "%s has too many lines: give a subject a package of its own", name)
		if files > mostFiles || lines > mostLines {
			lowered += fmt.Sprintln(name, files, lines)
		}
		delete(ceilings, name)
	}
	g.Expect(slices.Collect(maps.Keys(ceilings))).To(BeEmpty(), "these packages do not exist; remove their ceilings")
	if *lower {
		g.Expect(os.WriteFile(file, []byte(lowered), 0o600)).To(Succeed())
	}
}

// sizeOf returns the number of a package's files and of their lines, without tests and generated files.
func sizeOf(g *WithT, folder string) (files, lines int) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	g.Expect(err).NotTo(HaveOccurred())
	for _, path := range paths {
		if name := filepath.Base(path); strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated") {
			continue
		}
		text, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		files, lines = files+1, lines+strings.Count(string(text), "\n")
	}
	return files, lines
}
