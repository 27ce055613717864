// Package docs_test holds that the documents name what there is.
package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestEveryTrapOfBeeGFSIsHeldByATestThatThereIs(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("beegfs.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, table, found := strings.Cut(string(text), "## The fifteen traps")
	g.Expect(found).To(BeTrue())
	tests := testsOfTheProject(t)
	g.Expect(tests).NotTo(BeEmpty())
	for trap := 1; trap <= 15; trap++ {
		row := regexp.MustCompile(fmt.Sprintf(`(?m)^\| %d \| .*$`, trap)).FindString(table)
		g.Expect(row).NotTo(BeEmpty(), "trap %d has no row", trap)
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row, -1)
		g.Expect(names).NotTo(BeEmpty(), "trap %d names no test", trap)
		for _, name := range names {
			g.Expect(tests).To(HaveKey(name[1]), "trap %d", trap)
		}
	}
}

func TestThePictureOfBackendsNamesEachMethodAndCapability(t *testing.T) {
	g := NewWithT(t)
	picture := read(t, "architecture.md")
	_, backends, found := strings.Cut(picture, "## Backends")
	g.Expect(found).To(BeTrue())
	_, core, found := strings.Cut(read(t, "../internal/backend/backend.go"), "type Backend interface {")
	g.Expect(found).To(BeTrue())
	core, _, _ = strings.Cut(core, "\n}")
	methods := regexp.MustCompile(`(?m)^\t([A-Z]\w+)\(`).FindAllStringSubmatch(core, -1)
	g.Expect(picture).To(ContainSubstring("backend: %d methods, and capabilities", len(methods)))
	// What a capability gives is none itself.
	given := []string{"Questions", "TolerantQuestions", "BackupMethod", "RecoveryMethod"}
	capabilities := regexp.MustCompile(`(?m)^type (\w+) interface`).FindAllStringSubmatch(read(t, "../internal/backend/capabilities.go"), -1)
	for _, name := range slices.Concat(methods, capabilities) {
		if !slices.Contains(given, name[1]) {
			g.Expect(backends).To(MatchRegexp(`\b%s\b`, name[1]), "the picture lacks it")
		}
	}
}

func TestWhatHappensToAFilesystemIsHeldByTestsThatThereAre(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("life.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, table, found := strings.Cut(string(text), "|---|---|---|---|\n")
	g.Expect(found).To(BeTrue())
	tests, rows := testsOfTheProject(t), strings.Split(strings.TrimSpace(table), "\n")
	g.Expect(len(rows)).To(BeNumerically(">", 10))
	for _, row := range rows {
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row, -1)
		g.Expect(names).NotTo(BeEmpty(), row)
		for _, name := range names {
			g.Expect(tests).To(HaveKey(name[1]), row)
		}
	}
}

func TestEachFileOfABackendIsExplained(t *testing.T) {
	g := NewWithT(t)
	_, text, _ := strings.Cut(read(t, "architecture.md"), "## Backends")
	for _, backend := range []string{"moosefs", "beegfs"} {
		files, err := filepath.Glob("../internal/backend/" + backend + "/*.go")
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(files).NotTo(BeEmpty())
		for _, file := range files {
			if name := filepath.Base(file); !strings.HasSuffix(name, "_test.go") {
				g.Expect(text).To(ContainSubstring("`"+name+"`"), "%s of %s: a file of both has a row, one of its own a place in the sentence behind", name, backend)
			}
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// testsOfTheProject are the names of all test functions.
func testsOfTheProject(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != ".." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "bin" || entry.Name() == "dist"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path) // #nosec G304 G122 -- a file of the project
		if err != nil {
			return err
		}
		for _, match := range function.FindAllStringSubmatch(string(text), -1) {
			out[match[1]] = true
		}
		return nil
	})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return out
}

func TestEveryLinkOfADocumentLeadsToAFile(t *testing.T) {
	g := NewWithT(t)
	var files []string
	for _, pattern := range []string{"*.md", "*/*.md", "../*.md", "../charts/*/*.md"} {
		found, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- a file of the project
		g.Expect(err).NotTo(HaveOccurred())
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			target, heading, _ := strings.Cut(match[1], "#")
			if strings.Contains(match[1], "://") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			content, err := os.ReadFile(path) // #nosec G304 -- a file of the project
			if info, statErr := os.Stat(path); statErr == nil && info.IsDir() {
				continue
			}
			g.Expect(err).NotTo(HaveOccurred(), "%s: %s", file, match[1])
			if heading != "" && strings.HasSuffix(path, ".md") {
				g.Expect(headings(string(content))).To(HaveKey(heading), "%s: %s", file, match[1])
			}
		}
	}
}

// headings are the anchors of a document, as its readers make them of its headings.
func headings(text string) map[string]bool {
	out := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		out[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return out
}
