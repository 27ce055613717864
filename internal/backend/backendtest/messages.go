package backendtest

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
)

// mostOfMessage is how many characters a message may have.
const mostOfMessage = 400

// nothing matches a number that shows that something is absent, such as "0 chunks".
var nothing = regexp.MustCompile(`(^|[ (])0 [a-z]`)

// Readable checks that every message of an Observation is short, mentions nothing that is absent, and lists nothing twice.
func Readable(t *testing.T, seen backend.Observation) {
	t.Helper()
	g := gomega.NewWithT(t)
	for _, message := range messagesOf(seen) {
		g.Expect(utf8.RuneCountInString(message)).To(gomega.BeNumerically("<=", mostOfMessage), message)
		g.Expect(nothing.MatchString(message)).To(gomega.BeFalse(), message)
		g.Expect(repeated(message)).To(gomega.BeEmpty(), message)
	}
}

// messagesOf returns the messages of all problems, conditions, servers, targets and clients.
func messagesOf(seen backend.Observation) (out []string) {
	conditions := []*backend.Problem{seen.Licensed, seen.Pinned, seen.Spread, seen.Copies, seen.Partners}
	if seen.Transport != nil {
		conditions = append(conditions, &seen.Transport.Problem)
	}
	for _, p := range conditions {
		if p != nil {
			out = append(out, p.Message)
		}
	}
	for _, p := range seen.Problems {
		out = append(out, p.Message)
	}
	for i := range seen.Servers {
		out = append(out, seen.Servers[i].Message)
	}
	for i := range seen.Targets {
		out = append(out, seen.Targets[i].Message)
	}
	for i := range seen.Clients {
		out = append(out, seen.Clients[i].Message)
	}
	return out
}

// repeated returns the items that a list in a message has twice. Two items may have the same reason in parentheses.
func repeated(message string) (out []string) {
	seen := map[string]bool{}
	for _, item := range separator.Split(message, -1) {
		if _, inside, opens := strings.Cut(item, "("); opens && !strings.Contains(inside, ")") {
			item = inside // the first item of a list in parentheses
		} else if !opens {
			item, _, _ = strings.Cut(item, ")")
		}
		if seen[item] {
			out = append(out, item)
		}
		seen[item] = true
	}
	return out
}

var separator = regexp.MustCompile(`[,;] `)
