package outcomes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

func TestDerive(t *testing.T) {
	for name, c := range map[string]struct {
		given func(w *scope.Scope)
		check func(g *WithT, s v1alpha1.BenchmarkRunStatus)
	}{
		"before the first job, the status names the directory and the start": {
			func(w *scope.Scope) { w.Run.Status.Directory = ""; scopetest.Checked(w, 1<<40) },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Directory).To(Equal("/mnt/scratch/ssd/.parallelfs-benchmarks/uid"))
				g.Expect(s.StartTime.Time).To(Equal(scopetest.Now))
				g.Expect(s.Progress).To(Equal("0/2"))
				g.Expect(s.TimeLeft).To(BeEmpty(), "nothing is known yet")
			},
		},
		"a start is kept when the run goes on after a pause": {
			func(w *scope.Scope) {
				scopetest.Checked(w, 1<<40)
				w.Run.Status.Directory, w.Run.Status.StartTime = "", &metav1.Time{Time: scopetest.Now.Add(-time.Hour)}
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.StartTime.Time).To(Equal(scopetest.Now.Add(-time.Hour)))
			},
		},
		"a point that runs shows what runs, how many repetitions it has and how long the rest takes": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, ""); scopetest.Job(w, 0, 2, time.Second) },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Current).To(Equal("iozone.recordSize=64k (repetition 2/2)"))
				g.Expect(s.TimeLeft).To(Equal("30s"), "three repetitions of ten seconds are left")
				g.Expect(s.ActiveSeconds).To(Equal(int64(10)))
				g.Expect(s.Points[0].State).To(Equal(v1alpha1.PointRunning))
				g.Expect(s.Points[0].Repetitions).To(Equal(int32(1)))
				g.Expect(s.Points[0].Metrics).To(BeEmpty(), "half a point has no result")
				g.Expect(s.Points[1].State).To(Equal(v1alpha1.PointPending))
			},
		},
		"a point that has ended shows its metrics and where its output is": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, ""); scopetest.Done(w, 0, 2, "") },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Progress).To(Equal("1/2"))
				p := s.Points[0]
				g.Expect(p.State).To(Equal(v1alpha1.PointSucceeded))
				g.Expect(p.Metrics).To(HaveLen(1))
				g.Expect(p.Metrics[0].Value).To(Equal("1.5"))
				g.Expect(p.Metrics[0].Samples).To(Equal(int32(2)))
				g.Expect(p.Output).To(Equal("sweep-p000"))
				g.Expect(p.Parameters).To(Equal([]v1alpha1.PointParameter{{Name: "iozone.recordSize", Value: "64k"}}))
			},
		},
		"an expectation is judged, and its condition stands beside Succeeded": {
			func(w *scope.Scope) {
				w.Run.Spec.Expect = []v1alpha1.Expectation{{
					Name: "fast", Metric: "write", AtLeast: "2", Where: []v1alpha1.ParameterValue{{Name: "iozone.recordSize", Value: "64Ki"}},
				}}
				scopetest.Done(w, 0, 1, "")
				scopetest.Done(w, 0, 2, "")
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Expectations).To(HaveLen(1))
				g.Expect(s.Expectations[0].Message).To(HavePrefix("write is 1.5 ± 6.3531 kB/s at iozone.recordSize=64k, and a bound is within that interval"))
				accepted := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionAccepted)
				g.Expect(accepted.Status).To(Equal(metav1.ConditionUnknown))
				g.Expect(accepted.Reason).To(Equal(v1alpha1.ReasonExpectationsUndecided))
				g.Expect(s.Conditions[0].Type).To(Equal(v1alpha1.ConditionSucceeded))
			},
		},
		"a failed point counts as ended, has a message and no metrics": {
			func(w *scope.Scope) {
				scopetest.Done(w, 0, 1, "")
				scopetest.Done(w, 0, 2, "")
				entry, _ := w.Records.Find(scopetest.At(0, 2))
				entry.Error, entry.Tail = "iozone ended with exit code 3", "one\ntwo"
				w.Records.Add(entry)
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Progress).To(Equal("1/2"))
				g.Expect(s.FailedPoints).To(Equal(int32(1)))
				g.Expect(s.Points[0].State).To(Equal(v1alpha1.PointFailed))
				g.Expect(s.Points[0].Message).To(Equal("repetition 2: iozone ended with exit code 3\none\ntwo"))
				g.Expect(s.Points[0].Metrics).To(BeEmpty())
				g.Expect(s.Points[0].Repetitions).To(Equal(int32(1)))
				g.Expect(s.TimeLeft).To(Equal("20s"), "only the other point is left")
			},
		},
		"a point that the time of the run cut off has failed": {
			func(w *scope.Scope) {
				scopetest.Limit(w, time.Hour, 10*time.Second)
				scopetest.Done(w, 0, 1, "")
				w.Run.Status.Directory = ""
				scopetest.Settled(w)
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Points[0].State).To(Equal(v1alpha1.PointFailed))
				g.Expect(s.Points[0].Message).To(Equal("spec.limits.timeout was reached after 1 of 2 repetitions"))
				g.Expect(s.Points[1].State).To(Equal(v1alpha1.PointPending))
				g.Expect(s.CompletionTime).NotTo(BeNil())
			},
		},
		"a run that has ended has no directory, nothing current and no time left": {
			func(w *scope.Scope) { scopetest.AllDone(w); w.Cleaner = &children.Child{Succeeded: true} },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Directory).To(BeEmpty())
				g.Expect(s.Current).To(BeEmpty())
				g.Expect(s.TimeLeft).To(BeEmpty())
				g.Expect(s.Progress).To(Equal("2/2"))
				g.Expect(s.CompletionTime.Time).To(Equal(scopetest.Now))
			},
		},
		"the results of a run that has ended stay as they are": {
			func(w *scope.Scope) {
				w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now}
				w.Run.Status.Progress, w.Run.Status.Points = "2/2", []v1alpha1.PointStatus{{Index: 0, State: v1alpha1.PointSucceeded}}
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Progress).To(Equal("2/2"))
				g.Expect(s.Points).To(HaveLen(1))
			},
		},
		"the status says which spec it is about": {
			func(w *scope.Scope) { w.Run.Generation = 7 },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.ObservedGeneration).To(Equal(int64(7)))
				g.Expect(s.Conditions[0].Type).To(Equal(v1alpha1.ConditionSucceeded))
				g.Expect(s.Conditions[0].ObservedGeneration).To(Equal(int64(7)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			c.given(w)
			status, err := Derive(w, decision.Decide(w))
			g.Expect(err).NotTo(HaveOccurred())
			c.check(g, status)
		})
	}
}

func TestTextsAreCutToWhatTheAPITakes(t *testing.T) {
	t.Run("a long message is cut at the end of a character", func(t *testing.T) {
		g := NewWithT(t)
		cut := v1alpha1.Cut(strings.Repeat("ä", 2000), scope.MaxMessage)
		g.Expect(len(cut)).To(BeNumerically("<=", scope.MaxMessage))
		g.Expect(cut).To(HaveSuffix("ä…"))
	})
	t.Run("of an output the last lines that are not blank are quoted", func(t *testing.T) {
		g := NewWithT(t)
		var output strings.Builder
		for i := range 100 {
			fmt.Fprintf(&output, "line %d\n\n", i)
		}
		g.Expect(text.LastLines([]byte(output.String()), 2, 100)).To(Equal("line 98\nline 99"))
		g.Expect(text.LastLines([]byte(output.String()), 10, 17)).To(Equal("line 98\nline 99"))
		g.Expect(text.LastLines(nil, 2, 100)).To(BeEmpty())
	})
	t.Run("an output of no text is no obstacle", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(text.LastLines([]byte("a\xff\xfeb\n\x00\n"), 5, 100)).To(HavePrefix("a?b"))
	})
}

func TestTheCompleteResultsHoldEveryAttempt(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	scopetest.Tries(w, 1, 1)
	second := turns.Turn{Repetition: 1, Attempt: 2}
	third := turns.Turn{Repetition: 1, Attempt: 3}
	scopetest.Entry(w, scopetest.At(0, 1), scopetest.Failed)
	scopetest.Entry(w, second, scopetest.Disturbed)
	scopetest.Entry(w, third)
	document, err := Document(w, decision.Decision{})
	g.Expect(err).NotTo(HaveOccurred())
	attempts := document.Points[0].Attempts
	g.Expect(attempts).To(HaveLen(3))
	g.Expect(attempts[0].Error).To(Equal("iozone ended with exit code 1"))
	g.Expect(attempts[1].Invalid).To(Equal("iozone was disturbed: pod master on node n1 was restarted"))
	g.Expect(attempts[2].Samples).To(HaveLen(1))
	g.Expect(attempts[2].Attempt).To(Equal(3))
	g.Expect(document.Points[1].State).To(Equal(v1alpha1.PointPending))
}
