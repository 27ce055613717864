// Package docs_test checks that everything that the documents name exists.
package docs_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
	picture := read(t, "packages.md")
	_, backends, found := strings.Cut(picture, "## Backends")
	g.Expect(found).To(BeTrue())
	_, core, found := strings.Cut(read(t, "../internal/backend/backend.go"), "type Backend interface {")
	g.Expect(found).To(BeTrue())
	core, _, _ = strings.Cut(core, "\n}")
	methods := regexp.MustCompile(`(?m)^\t([A-Z]\w+)\(`).FindAllStringSubmatch(core, -1)
	g.Expect(picture).To(ContainSubstring("backend: %d methods, and capabilities", len(methods)))
	// The result types of capabilities are no capabilities.
	given := []string{"Questions", "TolerantQuestions", "LaterQuestions", "StoreCopier", "BackupMethod", "RecoveryMethod"}
	capabilities := regexp.MustCompile(`(?m)^type (\w+) interface`).FindAllStringSubmatch(read(t, "../internal/backend/capabilities.go"), -1)
	for _, name := range slices.Concat(methods, capabilities) {
		if !slices.Contains(given, name[1]) {
			g.Expect(backends).To(MatchRegexp(`\b%s\b`, name[1]), "the picture lacks it")
		}
	}
}

func TestThePageOfALifeNamesExistingTests(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("life.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, table, found := strings.Cut(string(text), "|---|---|---|---|\n")
	g.Expect(found).To(BeTrue())
	table, _, _ = strings.Cut(table, "\n\n") // below are figures of a run
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

func TestEverySafetyClaimNamesAnExistingTestOrIsOpen(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("protection.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, table, found := strings.Cut(string(text), "|---|---|---|---|---|\n")
	g.Expect(found).To(BeTrue())
	tests, rows := testsOfTheProject(t), strings.Split(strings.TrimSpace(table), "\n")
	g.Expect(len(rows)).To(BeNumerically(">", 10))
	for _, row := range rows {
		names := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(row, -1)
		g.Expect(len(names) > 0 || strings.Contains(row, "**open**")).To(BeTrue(), row)
		for _, name := range names {
			g.Expect(tests).To(HaveKey(name[1]), row)
		}
	}
}

func TestTheArchitectureIsShortAndNamesExistingFiles(t *testing.T) {
	g := NewWithT(t)
	text := read(t, "architecture.md")
	g.Expect(strings.Count(text, "\n")).To(BeNumerically("<=", 300))
	_, table, found := strings.Cut(text, "|---|---|\n")
	g.Expect(found).To(BeTrue())
	table, behaviors, _ := strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	g.Expect(len(rows)).To(And(BeNumerically(">", 10), BeNumerically("<=", 25)))
	for _, row := range rows {
		g.Expect(len(strings.Fields(strings.Split(row, "|")[2]))).To(BeNumerically("<=", 20), row)
	}
	g.Expect(strings.Count(behaviors, "\n### ")).To(Equal(10))
	paths := regexp.MustCompile("`((?:cmd|controllers|internal|benchmarks)/[\\w./-]+?)/?…?`").FindAllStringSubmatch(text, -1)
	g.Expect(len(paths)).To(BeNumerically(">", 50))
	for _, path := range paths {
		g.Expect(filepath.Join("..", path[1])).To(BeAnExistingFile())
	}
	steps := regexp.MustCompile("(?m)^\\d\\. `([\\w./-]+\\.go)`.*\\(`(\\w+)`\\)").FindAllStringSubmatch(text, -1)
	g.Expect(len(steps)).To(BeNumerically(">", 5))
	for _, step := range steps {
		g.Expect(read(t, filepath.Join("..", step[1]))).To(MatchRegexp(`(?m)^func (\(.*\) )?%s\(`, step[2]), step[0])
	}
}

// The folders of backends, by their names in the list of features of a single backend.
var backendFolders = map[string]string{"MooseFS": "moosefs", "BeeGFS": "beegfs", "Lustre": "lustre"}

func TestBackendsHaveFilesOfTheSameNamesForTheSameThings(t *testing.T) {
	g := NewWithT(t)
	_, text, _ := strings.Cut(read(t, "packages.md"), "## Backends")
	table, list, found := strings.Cut(text, "Files that only one of them has")
	g.Expect(found).To(BeTrue())
	folders, rows := map[string]map[string]bool{}, map[string]bool{}
	for _, folder := range backendFolders {
		folders[folder] = filesOf(t, "../internal/backend/"+folder)
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `.*$").FindAllString(table, -1) {
		names := fileNames(strings.SplitN(row, "|", 3)[1])
		for _, name := range names {
			rows[name] = true
		}
		for _, folder := range []string{"moosefs", "beegfs"} {
			has := func(name string) bool { return folders[folder][name] }
			if strings.Contains(row, " or ") {
				g.Expect(slices.ContainsFunc(names, has)).To(BeTrue(), "%s has nothing of %s", folder, row)
			} else {
				g.Expect(slices.IndexFunc(names, func(name string) bool { return !has(name) })).To(Equal(-1), "%s lacks a file of %s", folder, row)
			}
		}
	}
	g.Expect(len(rows)).To(BeNumerically(">", 10))
	for word, folder := range backendFolders {
		_, item, found := strings.Cut(list, "\n- "+word+": ")
		g.Expect(found).To(BeTrue(), word)
		item, _, _ = strings.Cut(item, "\n- ")
		own := fileNames(item)
		g.Expect(own).NotTo(BeEmpty())
		for _, name := range own {
			g.Expect(folders[folder]).To(HaveKey(name), "%s has none; the list of what only one has names it", folder)
			g.Expect(rows).NotTo(HaveKey(name), "the table names it for all")
			g.Expect(folders["moosefs"][name] && folders["beegfs"][name]).To(BeFalse(), "%s is in both: it has a row in the table", name)
		}
		for name := range folders[folder] {
			g.Expect(rows[name] || slices.Contains(own, name)).To(BeTrue(), "%s of %s: a file of all has a row, one of its own a place in the list behind", name, folder)
		}
	}
}

// fileNames are the files and folders that a text names.
func fileNames(text string) (names []string) {
	for _, match := range regexp.MustCompile("`(\\w+(?:\\.go|/))`").FindAllStringSubmatch(text, -1) {
		names = append(names, match[1])
	}
	return names
}

// filesOf are the files of a package, and the packages in its folder, which end in a slash.
func filesOf(t *testing.T, folder string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(folder)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	out := map[string]bool{}
	for _, e := range entries {
		switch {
		case e.IsDir() && e.Name() != "testdata":
			out[e.Name()+"/"] = true
		case filepath.Ext(e.Name()) == ".go" && !strings.HasSuffix(e.Name(), "_test.go"):
			out[e.Name()] = true
		}
	}
	return out
}

func TestEveryPackageIsInThePictureOfPackages(t *testing.T) {
	g := NewWithT(t)
	_, text, found := strings.Cut(read(t, "packages.md"), "\n### Imports\n")
	g.Expect(found).To(BeTrue())
	text, _, _ = strings.Cut(text, "## Backends")
	pictures := strings.Split(text, "```")
	g.Expect(pictures).To(HaveLen(5), "two pictures, and what is said around them")
	named := packagesIn(pictures[1], "")
	named = append(named, packagesIn(pictures[3], "controllers/benchmarkrun/")...)
	_, leftOut, found := strings.Cut(pictures[2], "Left out are")
	g.Expect(found).To(BeTrue())
	leftOut, _, _ = strings.Cut(leftOut, "\n\n")
	for _, match := range regexp.MustCompile("`([\\w/]+)`").FindAllStringSubmatch(leftOut, -1) {
		named = append(named, match[1])
	}
	packages := packagesOfTheProduct(t)
	g.Expect(len(packages)).To(BeNumerically(">", 80))
	missing := slices.DeleteFunc(packages, func(p string) bool { return slices.Contains(named, p) })
	g.Expect(missing).To(BeEmpty(), "put them into the picture, or show why they are left out")
}

// packagesIn returns the possible paths for the labels of a picture: each word, below the folder of its subgraph.
func packagesIn(picture, under string) (paths []string) {
	within, label := under, regexp.MustCompile(`\[(.*)\]`)
	for line := range strings.Lines(picture) {
		line = strings.TrimSpace(line)
		match := label.FindStringSubmatch(line)
		switch {
		case line == "end":
			within = under
		case strings.HasPrefix(line, "subgraph") && match != nil:
			within = match[1] + "/"
		case match != nil:
			for _, word := range regexp.MustCompile(`[a-z][\w/-]*`).FindAllString(match[1], -1) {
				paths = append(paths, within+word)
			}
		}
		if within != "" { // a folder may be a package itself
			paths = append(paths, strings.TrimSuffix(within, "/"))
		}
	}
	return paths
}

// packagesOfTheProduct returns the folders of the module with Go files of the product. The names of packages for tests end in "test".
func packagesOfTheProduct(t *testing.T) (packages []string) {
	t.Helper()
	g := NewWithT(t)
	for _, top := range []string{"api", "benchmarks", "cmd", "controllers", "internal"} {
		g.Expect(filepath.WalkDir(filepath.Join("..", top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return err
			}
			if entry.Name() == "testdata" || strings.HasSuffix(entry.Name(), "test") {
				return filepath.SkipDir
			}
			for name := range filesOf(t, path) {
				if !strings.HasSuffix(name, "/") {
					packages = append(packages, strings.TrimPrefix(filepath.ToSlash(path), "../"))
					break
				}
			}
			return nil
		})).To(Succeed())
	}
	return packages
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// testsOfTheProject returns the names of all test functions.
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

func TestTroubleshootingHasARowForEveryReasonOfTheCode(t *testing.T) {
	g := NewWithT(t)
	page, reasons := read(t, "troubleshooting.md"), reasonsOfTheCode(t)
	g.Expect(len(reasons)).To(BeNumerically(">", 100))
	var missing []string
	for value, name := range reasons {
		if !regexp.MustCompile("(?m)^\\| `" + value + "` \\| [^|]+ \\| [^|]+ \\|$").MatchString(page) {
			missing = append(missing, value+" ("+name+")")
		}
	}
	g.Expect(missing).To(BeEmpty(), "give each a row: | `Reason` | what it means | what to do |")
}

// reasonsOfTheCode lists the constants of the product whose names begin with Reason and that have a string as their value: the value, and
// where the constant is.
func reasonsOfTheCode(t *testing.T) map[string]string {
	t.Helper()
	g, out := NewWithT(t), map[string]string{}
	for _, folder := range packagesOfTheProduct(t) {
		for name := range filesOf(t, filepath.Join("..", folder)) {
			if strings.HasSuffix(name, "/") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", folder, name), nil, parser.SkipObjectResolution)
			g.Expect(err).NotTo(HaveOccurred())
			for _, declaration := range file.Decls {
				constants, ok := declaration.(*ast.GenDecl)
				if !ok || constants.Tok != token.CONST {
					continue
				}
				for _, spec := range constants.Specs {
					for value, name := range reasonsOf(spec.(*ast.ValueSpec)) {
						out[value] = folder + "." + name
					}
				}
			}
		}
	}
	return out
}

// reasonsOf returns the reasons that one line of constants has: the value, and the name of the constant.
func reasonsOf(line *ast.ValueSpec) map[string]string {
	out := map[string]string{}
	for i, name := range line.Names {
		if i >= len(line.Values) || !strings.HasPrefix(name.Name, "Reason") {
			continue
		}
		if literal, ok := line.Values[i].(*ast.BasicLit); ok && literal.Kind == token.STRING {
			if value, err := strconv.Unquote(literal.Value); err == nil {
				out[value] = name.Name
			}
		}
	}
	return out
}

func TestEveryDecisionOpensWithOneSentenceAndLaterOnesAreNamed(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("adr/[0-9]*.md")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">", 100))
	for _, file := range files {
		paragraphs := strings.Split(read(t, file), "\n\n")
		g.Expect(len(paragraphs)).To(BeNumerically(">", 2), file)
		number := filepath.Base(file)[:4]
		g.Expect(paragraphs[0]).To(HavePrefix("# "+number+" "), file)
		first := strings.Join(strings.Fields(strings.TrimPrefix(paragraphs[1], "**Decision.** ")), " ")
		first, _, _ = strings.Cut(first, ". ")
		g.Expect(len(strings.Fields(first))).To(And(BeNumerically(">", 5), BeNumerically("<=", 45)), "%s: %s", file, first)
		g.Expect(first).NotTo(MatchRegexp(`^(This|That|It|Some|There was|How|When did) `), "%s: the first sentence says the decision", file)
		if strings.Contains(paragraphs[2], "overtaken:*") {
			later := regexp.MustCompile(`\[(\d{4})\]`).FindAllStringSubmatch(paragraphs[2], -1)
			g.Expect(later).NotTo(BeEmpty(), "%s names no later decision", file)
			for _, name := range later {
				g.Expect(name[1] > number).To(BeTrue(), "%s is overtaken by %s", file, name[1])
			}
		}
	}
}

// headings returns the anchors that a document's headings get.
func headings(text string) map[string]bool {
	out := map[string]bool{}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchor := regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		out[strings.ReplaceAll(anchor, " ", "-")] = true
	}
	return out
}
