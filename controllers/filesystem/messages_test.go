package filesystem

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// TestAMessageOfAConditionHasAtMost800Characters has a filesystem with many problems, each in a sentence of 160 characters.
func TestAMessageOfAConditionHasAtMost800Characters(t *testing.T) {
	g := NewWithT(t)
	var problems []backend.Problem
	for i, reason := range []string{
		v1alpha1.ReasonTargetsMissing, v1alpha1.ReasonServersMissing, v1alpha1.ReasonChunksEndangered, v1alpha1.ReasonLicenseMissing,
		v1alpha1.ReasonUnknownMembers, v1alpha1.ReasonRestarting,
	} {
		problems = append(problems, backend.Problem{Reason: reason, Message: fmt.Sprintf("problem %d %s", i, strings.Repeat("ä", 150))})
	}
	for _, observation := range []backend.Observation{{}, {Serves: true}, {Pending: true}, {Unknown: true}} {
		for n := range problems {
			fs := &v1alpha1.FileSystem{}
			fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
			observation.Problems = problems[n:]
			describe(fs, observation, nil, nil, true, false, time.Now())
			for _, c := range fs.Status.Conditions {
				g.Expect(utf8.RuneCountInString(c.Message)).To(BeNumerically("<=", 800), "%s: %s", c.Type, c.Message)
			}
			g.Expect(fs.Status.Conditions[0].Message).To(Or(ContainSubstring("problem %d ", n), Equal(whole(observation).Message), ContainSubstring("problem 5")))
		}
	}
}

func TestProblemsThatDoNotFitAreCounted(t *testing.T) {
	g := NewWithT(t)
	long := strings.Repeat("x", 400)
	g.Expect(together(nil)).To(BeNil())
	one := backend.Problem{Reason: "A", Message: strings.Repeat("y", 500)}
	g.Expect(together([]backend.Problem{one})).To(HaveValue(Equal(one)), "what is worst is said in whole")
	g.Expect(together([]backend.Problem{{Reason: "A", Message: "a"}, {Reason: "B", Message: "b"}})).To(HaveValue(Equal(backend.Problem{Reason: "A", Message: "a; b"})))
	g.Expect(together([]backend.Problem{{Reason: "A", Message: "a"}, {Message: long}, {Message: long}, {Message: "d"}}).Message).To(Equal("a; " + long + "; and 2 more"))
}
