package benchmarkrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestDerive(t *testing.T) {
	for name, c := range map[string]struct {
		given func(w *world)
		check func(g *WithT, s v1alpha1.BenchmarkRunStatus)
	}{
		"before the first job, the status names the directory and the start": {
			func(w *world) { w.run.Status.Directory = ""; w.checked(1 << 40) },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Directory).To(Equal("/mnt/scratch/ssd/.parallelfs-benchmarks/uid"))
				g.Expect(s.StartTime.Time).To(Equal(now))
				g.Expect(s.Progress).To(Equal("0/2"))
				g.Expect(s.TimeLeft).To(BeEmpty(), "nothing is known yet")
			},
		},
		"a start is kept when the run goes on after a pause": {
			func(w *world) {
				w.checked(1 << 40)
				w.run.Status.Directory, w.run.Status.StartTime = "", &metav1.Time{Time: now.Add(-time.Hour)}
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.StartTime.Time).To(Equal(now.Add(-time.Hour)))
			},
		},
		"a point that runs shows what runs, how many repetitions it has and how long the rest takes": {
			func(w *world) { w.done(0, 1, ""); w.job(0, 2, time.Second) },
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
			func(w *world) { w.done(0, 1, ""); w.done(0, 2, "") },
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
		"a failed point counts as ended, has a message and no metrics": {
			func(w *world) {
				w.done(0, 1, "")
				w.done(0, 2, "")
				entry, _ := w.records.find(at(0, 2))
				entry.Error, entry.Tail = "iozone ended with exit code 3", "one\ntwo"
				w.records.add(entry)
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
			func(w *world) {
				w.limit(time.Hour, 10*time.Second)
				w.done(0, 1, "")
				w.run.Status.Directory = ""
				w.settled()
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Points[0].State).To(Equal(v1alpha1.PointFailed))
				g.Expect(s.Points[0].Message).To(Equal("spec.limits.timeout was reached after 1 of 2 repetitions"))
				g.Expect(s.Points[1].State).To(Equal(v1alpha1.PointPending))
				g.Expect(s.CompletionTime).NotTo(BeNil())
			},
		},
		"a run that has ended has no directory, nothing current and no time left": {
			func(w *world) { w.allDone(); w.cleaner = &child{succeeded: true} },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Directory).To(BeEmpty())
				g.Expect(s.Current).To(BeEmpty())
				g.Expect(s.TimeLeft).To(BeEmpty())
				g.Expect(s.Progress).To(Equal("2/2"))
				g.Expect(s.CompletionTime.Time).To(Equal(now))
			},
		},
		"the results of a run that has ended stay as they are": {
			func(w *world) {
				w.run.Status.CompletionTime = &metav1.Time{Time: now}
				w.run.Status.Progress, w.run.Status.Points = "2/2", []v1alpha1.PointStatus{{Index: 0, State: v1alpha1.PointSucceeded}}
			},
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.Progress).To(Equal("2/2"))
				g.Expect(s.Points).To(HaveLen(1))
			},
		},
		"the status says which spec it is about": {
			func(w *world) { w.run.Generation = 7 },
			func(g *WithT, s v1alpha1.BenchmarkRunStatus) {
				g.Expect(s.ObservedGeneration).To(Equal(int64(7)))
				g.Expect(s.Conditions[0].Type).To(Equal(v1alpha1.ConditionSucceeded))
				g.Expect(s.Conditions[0].ObservedGeneration).To(Equal(int64(7)))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			c.given(w)
			status, err := derive(w, decide(w))
			g.Expect(err).NotTo(HaveOccurred())
			c.check(g, status)
		})
	}
}

func TestTextsAreCutToWhatTheAPITakes(t *testing.T) {
	t.Run("a long message is cut at the end of a character", func(t *testing.T) {
		g := NewWithT(t)
		cut := v1alpha1.Cut(strings.Repeat("ä", 2000), maxMessage)
		g.Expect(len(cut)).To(BeNumerically("<=", maxMessage))
		g.Expect(cut).To(HaveSuffix("ä…"))
	})
	t.Run("of an output the last lines that are not blank are quoted", func(t *testing.T) {
		g := NewWithT(t)
		var output strings.Builder
		for i := range 100 {
			fmt.Fprintf(&output, "line %d\n\n", i)
		}
		g.Expect(lastLines([]byte(output.String()), 2, 100)).To(Equal("line 98\nline 99"))
		g.Expect(lastLines([]byte(output.String()), 10, 17)).To(Equal("line 98\nline 99"))
		g.Expect(lastLines(nil, 2, 100)).To(BeEmpty())
	})
	t.Run("an output of no text is no obstacle", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(lastLines([]byte("a\xff\xfeb\n\x00\n"), 5, 100)).To(HavePrefix("a?b"))
	})
}

func TestADurationIsWrittenShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 45 * time.Second: "45s", 90 * time.Second: "2m", 72 * time.Minute: "1h12m", 25*time.Hour + 29*time.Second: "25h0m", 59*time.Minute + 59*time.Second: "1h0m",
	} {
		t.Run(want, func(t *testing.T) { NewWithT(t).Expect(shortDuration(d)).To(Equal(want)) })
	}
}

func TestTheCompleteResultsHoldEveryAttempt(t *testing.T) {
	g := NewWithT(t)
	w := idle()
	w.tries(1, 1)
	second := turn{repetition: 1, attempt: 2}
	third := turn{repetition: 1, attempt: 3}
	w.entry(at(0, 1), failed)
	w.entry(second, disturbed)
	w.entry(third)
	document, err := w.document(decision{})
	g.Expect(err).NotTo(HaveOccurred())
	attempts := document.Points[0].Attempts
	g.Expect(attempts).To(HaveLen(3))
	g.Expect(attempts[0].Error).To(Equal("iozone ended with exit code 1"))
	g.Expect(attempts[1].Invalid).To(Equal("iozone was disturbed: pod master on node n1 was restarted"))
	g.Expect(attempts[2].Samples).To(HaveLen(1))
	g.Expect(attempts[2].Attempt).To(Equal(3))
	g.Expect(document.Points[1].State).To(Equal(v1alpha1.PointPending))
}
