package docs_test

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
)

// lower makes the test of comments lower the ceilings in prose-ceilings.txt to the present numbers. It never raises one.
var lower = flag.Bool("lower", false, "lower the ceilings of prose-ceilings.txt to the present numbers")

// refusedInComments lists patterns that comments of Go files may not contain, in addition to refusedWords. The descriptions in the
// CustomResourceDefinitions are comments of the API.
var refusedInComments = compiled([]refused{
	{`\b(is|are|was|were|be|been|being|not|never) told\b|\btold (of|by|to|about|that|what|how|where|who|it|them)\b`, "is configured with"},
	{`\b(tells|knows) `, "the verb for what the program does: reports, returns, reads, has"},
	{`\b([Nn]obody|[Ss]omebody) (else|has|is|can|wants|waits|uses|sees|looks|said|says|asked|asks|may|would|mounts|runs|writes)\b`,
		"a noun as the subject: no program, a person"},
	{`\b[Ww]h?oever\b`, "a noun as the subject: a program that, a person who"},
	{`^[A-Za-z_]\w* (is|are) (whose|who) |^[A-Za-z_]\w* are what `, "a noun: is the owner of, holds the values that"},
	{`\bsays? (otherwise|of (itself|themselves|it|them))\b|\bsaid of\b`, "reports, contains, shows"},
	{`^[A-Za-z_]\w* is of `, "the verb: belongs to, comes from"},
	{`\b(of|for|from) what [a-z]+ (is|are|was|has|have|had)\b`, "a noun: of the data that"},
	{`\bmends?\b`, "repair, solve"},
	{`\b(comes?|came) (elsewhere|to its end)\b|\bgives? up the lease\b`, "move, end, release"},
})

// refusedByGlossary returns the words in italics in the last column of the glossary, with the word to write instead.
func refusedByGlossary() (out []refused) {
	text, err := os.ReadFile("glossary.md")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 {
			continue
		}
		for _, word := range italics.FindAllStringSubmatch(cells[3], -1) {
			out = append(out, refused{`(?i)\b` + word[1] + `\b`, strings.TrimSpace(cells[1])})
		}
	}
	return out
}

var italics = regexp.MustCompile(`\*([a-z ]+)\*`)

// patterns are those of documents and of comments, and anyPattern matches what one of them matches: one search is faster than one for each.
var (
	patterns   = slices.Concat(compiled(refusedWords), compiled(refusedByGlossary()), refusedInComments)
	anyPattern = func() *regexp.Regexp {
		var all []string
		for _, p := range patterns {
			all = append(all, "(?:"+p.String()+")")
		}
		return regexp.MustCompile(strings.Join(all, "|"))
	}()
)

// The limits of a sentence in words, and of a message in characters.
const longestSentence, longestMessage = 30, 300

// kinds names what a package has a ceiling for.
var kinds = [...]string{"refused words in comments", "sentences of comments over 30 words", "messages over 300 characters"}

// findings lists, for each kind, what has to be changed in a package.
type findings [len(kinds)][]string

func TestTheTestOfCommentsFindsThem(t *testing.T) {
	g := NewWithT(t)
	comments, messages := proseOfGo([]byte("// One line\n// goes on. Another (a.b. c).\n//\n//\tan example\n// - an item\n// +kubebuilder:default=1\n" +
		"var x = \"a\" + // beside\n\t\"b\"\n"))
	g.Expect(comments).To(Equal([]passage{{1, "One line goes on. Another (a.b. c)."}, {5, "- an item"}, {7, "beside"}}))
	g.Expect(sentences(comments[0].text)).To(Equal([]string{"One line goes on. ", "Another (a.b. c)."}))
	g.Expect(messages).To(Equal([]passage{{7, "ab"}}))
	g.Expect(refusedByGlossary()).NotTo(BeEmpty())
	for _, sentence := range []string{"a server is told of its disks", "it tells them apart", "Nobody can see it", "start anew", "taking part"} {
		g.Expect(rulesFor(sentence)).NotTo(BeEmpty(), sentence)
	}
	g.Expect(rulesFor("The agent writes the node file.")).To(BeEmpty())
}

func TestCommentsUsePlainWords(t *testing.T) {
	const file = "prose-ceilings.txt"
	g := NewWithT(t)
	text, err := os.ReadFile(file)
	g.Expect(err).NotTo(HaveOccurred())
	ceilings := map[string][len(kinds)]int{}
	for line := range strings.Lines(string(text)) {
		var name string
		var n [len(kinds)]int
		if _, err := fmt.Sscan(line, &name, &n[0], &n[1], &n[2]); err == nil {
			ceilings[name] = n
		}
	}
	packages := readPackages(g)
	g.Expect(len(packages)).To(BeNumerically(">", 100), "the packages were not found")
	lowered := "# package, " + strings.Join(kinds[:], ", ") + " (comments_test.go)\n"
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		ceiling := ceilings[name]
		for i, found := range packages[name] {
			if len(found) > ceiling[i] {
				t.Errorf("%s has %d %s, and may have %d:\n%s", name, len(found), kinds[i], ceiling[i], strings.Join(found, "\n"))
			}
			ceiling[i] = min(ceiling[i], len(found))
		}
		if ceiling != [len(kinds)]int{} {
			lowered += fmt.Sprintln(name, ceiling[0], ceiling[1], ceiling[2])
		}
	}
	if *lower {
		g.Expect(os.WriteFile(file, []byte(lowered), 0o600)).To(Succeed())
	}
}

// readPackages returns the findings in all Go files of the project, by their directory.
func readPackages(g *WithT) map[string]findings {
	var files []string
	g.Expect(filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == "dist" || name == "testdata" || len(name) > 2 && name[0] == '.'):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "zz_generated"):
			files = append(files, path)
		}
		return nil
	})).To(Succeed())
	all := make([]findings, len(files))
	var group sync.WaitGroup
	for first := range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := first; i < len(files); i += runtime.GOMAXPROCS(0) {
				all[i] = inFile(files[i])
			}
		})
	}
	group.Wait()
	packages := map[string]findings{}
	for i, path := range files {
		name := filepath.ToSlash(filepath.Dir(strings.TrimPrefix(path, ".."+string(filepath.Separator))))
		sum := packages[name]
		for kind := range kinds {
			sum[kind] = append(sum[kind], all[i][kind]...)
		}
		packages[name] = sum
	}
	return packages
}

// inFile returns the findings in one file.
func inFile(path string) (out findings) {
	source, err := os.ReadFile(path) // #nosec G304 -- a file of the project
	if err != nil {
		return findings{{err.Error()}}
	}
	comments, messages := proseOfGo(source)
	for _, c := range comments {
		for _, sentence := range sentences(c.text) {
			where := fmt.Sprintf("%s:%d: ", path, c.line)
			for _, p := range rulesFor(sentence) {
				if word := p.FindString(sentence); word != "" {
					out[0] = append(out[0], where+fmt.Sprintf("%q: write %s", word, p.instead))
				}
			}
			if n := len(strings.Fields(sentence)); n > longestSentence {
				out[1] = append(out[1], where+fmt.Sprintf("%d words: %.60s…", n, sentence))
			}
		}
	}
	if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/test/") {
		return out
	}
	for _, m := range messages {
		if n := utf8.RuneCountInString(m.text); n > longestMessage && strings.Count(m.text, " ") > n/15 {
			out[2] = append(out[2], fmt.Sprintf("%s:%d: %d characters: %.60s…", path, m.line, n, m.text))
		}
	}
	return out
}

// rulesFor returns no rules for a sentence that none of them refuses.
func rulesFor(sentence string) []rule {
	if anyPattern.MatchString(sentence) {
		return patterns
	}
	return nil
}

// passage is a text in a Go file, and the line where it begins.
type passage struct {
	line int
	text string
}

var directive = regexp.MustCompile(`^//(go:|nolint|\s*\+|\s*#nosec|\t|  )`)

// proseOfGo returns the paragraphs of the comments in a Go file, without directives and examples, and its string constants, of which those
// that are added together are one.
func proseOfGo(source []byte) (comments, messages []passage) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	last := 0 // the line of the comment before
	var before [2]token.Token
	for {
		pos, tok, text := s.Scan()
		line := file.Line(pos)
		switch {
		case tok == token.EOF:
			return comments, messages
		case tok == token.COMMENT && (directive.MatchString(text) || strings.TrimSpace(text) == "//"):
			last = 0
		case tok == token.COMMENT:
			text = strings.TrimSpace(strings.TrimPrefix(text, "//"))
			if item := strings.HasPrefix(text, "- "); len(comments) > 0 && last > 0 && last == line-1 && !item {
				comments[len(comments)-1].text += " " + text
			} else {
				comments = append(comments, passage{line, text})
			}
			last = line
		case tok == token.STRING && text[0] == '"':
			content, _ := strconv.Unquote(text)
			if before == [2]token.Token{token.STRING, token.ADD} {
				messages[len(messages)-1].text += content
			} else {
				messages = append(messages, passage{line, content})
			}
		}
		if tok != token.COMMENT {
			before = [2]token.Token{before[1], tok}
		}
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?][)"]?\s+`)

// sentences splits a paragraph. It does not split after abbreviations, which end in a period and a letter before another period.
func sentences(text string) (out []string) {
	begin := 0
	for _, end := range sentenceEnd.FindAllStringIndex(text, -1) {
		if end[0] > 1 && text[end[0]-2] == '.' {
			continue
		}
		out, begin = append(out, text[begin:end[1]]), end[1]
	}
	if begin < len(text) {
		out = append(out, text[begin:])
	}
	return out
}
