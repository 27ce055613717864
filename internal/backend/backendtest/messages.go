package backendtest

import (
	"regexp"
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

// repeated returns the parts of a message that it contains twice, of those that commas, semicolons or parentheses separate.
func repeated(message string) (out []string) {
	const shortest = 12 // shorter parts, such as the name of a node, may be in two lists
	seen := map[string]bool{}
	for _, part := range regexp.MustCompile(`, |; |: | \(|\)`).Split(message, -1) {
		if len(part) >= shortest && seen[part] {
			out = append(out, part)
		}
		seen[part] = true
	}
	return out
}
