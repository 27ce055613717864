package turns

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestTheNameOfAJobContainsItsTurn(t *testing.T) {
	for name, want := range map[string]Turn{
		"sweep-p3-r2":          {Point: 3, Repetition: 2, Attempt: 1},
		"sweep-p3-r2-a2":       {Point: 3, Repetition: 2, Attempt: 2},
		"sweep-p3-r2-s1":       {Point: 3, Repetition: 2, Attempt: 1, Step: 1},
		"sweep-p3-r2-a2-s1":    {Point: 3, Repetition: 2, Attempt: 2, Step: 1},
		"sweep-p0-w1":          {WarmUp: true, Repetition: 1, Attempt: 1},
		"sweep-p255-r100-a21":  {Point: 255, Repetition: 100, Attempt: 21},
		"sweep-p1-r1-p0-w2-a3": {WarmUp: true, Repetition: 2, Attempt: 3}, // a run with the name sweep-p1-r1
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, is := TurnOf(name)
			g.Expect(is).To(BeTrue())
			g.Expect(found).To(Equal(want))
			g.Expect(name).To(HaveSuffix(want.Suffix()))
		})
	}
	t.Run("and a name of another form has none", func(t *testing.T) {
		for _, name := range []string{"sweep-clean", "sweep-p1", "sweep-p1-r", "sweep-p1-r1-x"} {
			_, is := TurnOf(name)
			NewWithT(t).Expect(is).To(BeFalse(), name)
		}
	})
	t.Run("however long the run's name is, there is room for the name of a worker's host", func(t *testing.T) {
		g := NewWithT(t)
		last := Turn{Point: 255, Repetition: 100, Attempt: 21, Step: 9}
		name := JobName(strings.Repeat("x", 40), last.Suffix())
		g.Expect(len(name + "-worker-1023")).To(BeNumerically("<=", 63))
		found, _ := TurnOf(name)
		g.Expect(found).To(Equal(last))
		g.Expect(name).NotTo(Equal(JobName(strings.Repeat("x", 39)+"y", last.Suffix())), "runs are told apart")
		g.Expect(JobName("sweep", last.Suffix())).To(Equal("sweep-p255-r100-a21-s9"))
	})
}
