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

// nothing matches a number that says that there is nothing, such as "0 chunks".
var nothing = regexp.MustCompile(`(^|[ (])0 [a-z]`)

// Readable holds that people can read the problems of an Observation: they are short, and name nothing that there is none of.
func Readable(t *testing.T, seen backend.Observation) {
	t.Helper()
	g := gomega.NewWithT(t)
	for _, p := range seen.Problems {
		g.Expect(utf8.RuneCountInString(p.Message)).To(gomega.BeNumerically("<=", mostOfMessage), p.Message)
		g.Expect(nothing.MatchString(p.Message)).To(gomega.BeFalse(), p.Message)
	}
}
