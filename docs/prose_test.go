package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// refused is a pattern, and what to write instead.
type refused struct{ pattern, instead string }

// rule is a refused pattern, ready to be searched for.
type rule struct {
	*regexp.Regexp
	instead string
}

func compiled(patterns []refused) (out []rule) {
	for _, p := range patterns {
		out = append(out, rule{regexp.MustCompile(p.pattern), p.instead})
	}
	return out
}

// refusedWords lists patterns that no document may contain, with what to write instead. A pattern belongs here only if it is always wrong.
var refusedWords = []refused{
	//nolint:misspell // it refuses them
	{`(?i)\b(behaviour|colour|favour|honour|neighbour|labelled|labelling|cancelled|modelling|centre|licence|learnt|whilst|artefact)`,
		"the American spelling"},
	{`(?i)\b(initialis|optimis|recognis|organis|summaris|synchronis)(e|ed|es|ing|ation)\b`, "the American spelling"},
	{`(?i)\banew\b`, "again"},
	{`(?i)\bany more[.,;:)|]`, "no longer, any longer"},
	{`(?i)\bfor ever\b`, "permanently, forever"},
	{`(?i)\b(wherein|whereof|whereby|thereof|therein|thereby)\b`, "in which, of which, so that"},
	{`(?i)\bof (theirs|ours)\b`, "their, our, of this project"},
	{`(?i)\blies? (in|there|where|beside|below|on (a|its|the (disk|node|target|mount)))\b`, "is in, is on"},
	{`(?i)\bstands? in (the|its|their) (status|spec|record|file|marker|log|message|object)\b`, "is in"},
	{`(?i)\btak(es?|en|ing) part\b`, "is online, serves, joins"},
	{`(?i)\bg(ives?|iven|ave|iving) (it |them )?away\b`, "hand over"},
	{`(?i)\blet(s|ting)? (it|them|a node|the node|a target|the target) go\b`, "release"},
	{`(?i)\bpok(e|es|ed|ing)\b`, "trigger"},
	{`(?i)\bcalm`, "quiet, healthy"},
	{`(?i)\bthe word of a person\b|\bperson's (second )?word\b`, "approval, confirmation"},
	{`(?i)\bnobody (knows|knew)\b`, "it is unknown"},
	{`(?i)\b(servers?|daemons?|nodes?|agents?|probes?|pods?|filesystems?|targets?) (is|are|was|were) told\b`, "is configured, gets"},
	{`(^|[.!?] )Who [a-z][^.?|:,]* (is|are|has|have|was|were|gets?|needs?|may|must|can) [^.?|:]*\.`,
		"a noun as the subject: a person who, a program that"},
	{`(^|[.!?] )What [a-z][^.?|:,]* (is|are|has|have|was|were|gets?|stays?|keeps?|goes|comes?|waits?|counts?|says?) [^.?|:]*\.`,
		"a noun as the subject"},
}

// unread lists documents that the test leaves out: the glossary names the words that are not to be used, and a program writes the page of
// simulations.
var unread = map[string]bool{"glossary.md": true, "simulations.md": true}

func TestDocumentsUsePlainWords(t *testing.T) {
	g := NewWithT(t)
	var files []string
	for _, pattern := range []string{"*.md", "*/*.md", "../*.md", "../benchmarks/*.md", "../charts/*/*.md", "../test/doubles/*.md"} {
		found, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	g.Expect(len(files)).To(BeNumerically(">", 100), "the documents were not found")
	var found []string
	for _, p := range compiled(append(refusedByGlossary(), refusedWords...)) {
		for _, file := range files {
			if unread[file] {
				continue
			}
			text, err := os.ReadFile(file) // #nosec G304 -- a file of the project
			g.Expect(err).NotTo(HaveOccurred())
			for _, part := range proseOf(string(text)) {
				if word := p.FindString(part); word != "" {
					found = append(found, fmt.Sprintf("%s: %q: write %s", file, word, p.instead))
				}
			}
		}
	}
	g.Expect(found).To(BeEmpty())
}

func TestTheTestOfPlainWordsFindsThemInProseOnly(t *testing.T) {
	for text, prose := range map[string][]string{
		"One line\ngoes on.\n\nAnother.":             {"One line goes on.", "Another."},
		"- an item\n  of two lines\n- another":       {"an item of two lines", "another"},
		"| a cell | another |\n|---|---|\n| c | d |": {"a cell", "another", "c", "d"},
		"# A heading\ntext":                          {"A heading", "text"},
		"before\n```sh\nanew\n```\nafter":            {"before", "after"},
		"run `anew` and see [a page](anew.md)":       {"run ` and see [a page]"},
	} {
		NewWithT(t).Expect(proseOf(text)).To(Equal(prose), text)
	}
}

var (
	codeBlock  = regexp.MustCompile("(?s)```.*?```")
	codeSpan   = regexp.MustCompile("`[^`]*`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	newPart    = regexp.MustCompile(`^\s*(?:[-*] |\d+\. |#+ )`)
	tableRule  = regexp.MustCompile(`^[-: ]+$`)
)

// proseOf returns the paragraphs, list items, headings and table cells of a document, each on one line, without code and link targets.
func proseOf(text string) (parts []string) {
	text = codeBlock.ReplaceAllString(text, "\n\n")
	text = linkTarget.ReplaceAllString(codeSpan.ReplaceAllString(text, "`"), "]")
	var open []string
	end := func() {
		if len(open) > 0 {
			parts, open = append(parts, strings.Join(open, " ")), nil
		}
	}
	for line := range strings.Lines(text) {
		marker := newPart.FindString(line)
		content := strings.TrimSpace(strings.TrimPrefix(line, marker))
		switch {
		case content == "":
			end()
			continue
		case strings.HasPrefix(content, "|"):
			end()
			for cell := range strings.SplitSeq(strings.Trim(content, "|"), "|") {
				if cell = strings.TrimSpace(cell); cell != "" && !tableRule.MatchString(cell) {
					parts = append(parts, cell)
				}
			}
			continue
		case marker != "":
			end()
		}
		open = append(open, content)
		if strings.HasPrefix(strings.TrimSpace(marker), "#") {
			end()
		}
	}
	end()
	return parts
}
