package benchmarkrun

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

func TestTheNameOfAJobSaysItsTurn(t *testing.T) {
	for name, want := range map[string]turn{
		"sweep-p3-r2":          {point: 3, repetition: 2, attempt: 1},
		"sweep-p3-r2-a2":       {point: 3, repetition: 2, attempt: 2},
		"sweep-p3-r2-s1":       {point: 3, repetition: 2, attempt: 1, step: 1},
		"sweep-p3-r2-a2-s1":    {point: 3, repetition: 2, attempt: 2, step: 1},
		"sweep-p0-w1":          {warmUp: true, repetition: 1, attempt: 1},
		"sweep-p255-r100-a21":  {point: 255, repetition: 100, attempt: 21},
		"sweep-p1-r1-p0-w2-a3": {warmUp: true, repetition: 2, attempt: 3}, // a run named sweep-p1-r1
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, is := turnOf(name)
			g.Expect(is).To(BeTrue())
			g.Expect(found).To(Equal(want))
			g.Expect(name).To(HaveSuffix(want.suffix()))
		})
	}
	t.Run("and a name of another form says none", func(t *testing.T) {
		for _, name := range []string{"sweep-clean", "sweep-p1", "sweep-p1-r", "sweep-p1-r1-x"} {
			_, is := turnOf(name)
			NewWithT(t).Expect(is).To(BeFalse(), name)
		}
	})
	t.Run("however long the run's name is, there is room for the name of a worker's host", func(t *testing.T) {
		g := NewWithT(t)
		last := turn{point: 255, repetition: 100, attempt: 21, step: 9}
		name := jobName(strings.Repeat("x", 40), last.suffix())
		g.Expect(len(name + "-worker-1023")).To(BeNumerically("<=", 63))
		found, _ := turnOf(name)
		g.Expect(found).To(Equal(last))
		g.Expect(name).NotTo(Equal(jobName(strings.Repeat("x", 39)+"y", last.suffix())), "runs are told apart")
		g.Expect(jobName("sweep", last.suffix())).To(Equal("sweep-p255-r100-a21-s9"))
	})
}

func (w *world) entry(t turn, change ...func(*record)) {
	entry := record{
		Point: t.point, Repetition: t.repetition, WarmUp: t.warmUp, Attempt: t.attempt, Step: t.step, Started: now, Finished: now.Add(10e9),
		Samples: []benchmarks.Sample{{Name: "write", Unit: "kB/s", Value: float64(t.repetition)}},
	}
	for _, c := range change {
		c(&entry)
		entry.Samples = nil
	}
	w.records.add(entry)
}

func failed(r *record)      { r.Error = "iozone ended with exit code 1" }
func disturbed(r *record)   { r.Invalid = "iozone was disturbed: pod master on node n1 was restarted" }
func interrupted(r *record) { r.Interrupted = "was stopped" }

func (w *world) tries(failed, invalid int32) {
	w.run.Spec.Limits = &v1alpha1.BenchmarkLimits{Retries: failed, InvalidRetries: &invalid}
}

func TestTheNextTurn(t *testing.T) {
	attempt := func(number, step int) turn { return turn{repetition: 1, attempt: number, step: step} }
	two := func(w *world) {
		for i := range w.plans {
			w.plans[i] = planOf(benchmarks.OnClient, "write", "read")
		}
	}
	for name, c := range map[string]struct {
		given func(w *world)
		want  turn
	}{
		"is the first repetition of the first point":   {func(*world) {}, at(0, 1)},
		"is the next point when a repetition failed":   {func(w *world) { w.entry(at(0, 1), failed) }, at(1, 1)},
		"is a second attempt when retries are allowed": {func(w *world) { w.tries(1, 0); w.entry(at(0, 1), failed) }, attempt(2, 0)},
		"is the next point when the retries are used up": {
			func(w *world) { w.tries(1, 0); w.entry(at(0, 1), failed); w.entry(attempt(2, 0), failed) }, at(1, 1)},
		"is a second attempt when the first was disturbed": {func(w *world) { w.entry(at(0, 1), disturbed) }, attempt(2, 0)},
		"is the next point after three disturbances": {
			func(w *world) {
				w.entry(attempt(1, 0), disturbed)
				w.entry(attempt(2, 0), disturbed)
				w.entry(attempt(3, 0), disturbed)
			}, at(1, 1)},
		"counts failures and disturbances each by themselves": {
			func(w *world) {
				w.tries(1, 1)
				w.entry(attempt(1, 0), disturbed)
				w.entry(attempt(2, 0), failed)
			}, attempt(3, 0)},
		"is the next repetition after an attempt that went well": {
			func(w *world) { w.entry(attempt(1, 0), disturbed); w.entry(attempt(2, 0)) }, at(0, 2)},
		"is the second step after the first":                {func(w *world) { two(w); w.entry(attempt(1, 0)) }, attempt(1, 1)},
		"is the next repetition after the last step":        {func(w *world) { two(w); w.entry(attempt(1, 0)); w.entry(attempt(1, 1)) }, at(0, 2)},
		"is the first step again when a later one was lost": {func(w *world) { two(w); w.entry(attempt(1, 0)); w.entry(attempt(1, 1), disturbed) }, attempt(2, 0)},
		"is another attempt, which counts for nothing, after an interruption": {
			func(w *world) {
				two(w)
				w.tries(0, 0)
				w.entry(attempt(1, 0))
				w.entry(attempt(1, 1), interrupted)
			}, attempt(2, 0)},
		"is a warm-up, before the first point alone": {
			func(w *world) { w.run.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpFirst, Repetitions: 2} }, turn{warmUp: true, repetition: 1, attempt: 1}},
		"is no warm-up when they are over": {
			func(w *world) {
				w.run.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpFirst, Repetitions: 1}
				w.entry(turn{warmUp: true, repetition: 1, attempt: 1})
			}, at(0, 1)},
		"is a warm-up of each point, when each is warmed up": {
			func(w *world) {
				w.run.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpEach, Repetitions: 1}
				w.entry(turn{warmUp: true, repetition: 1, attempt: 1})
				w.done(0, 1, "")
				w.done(0, 2, "")
			}, turn{point: 1, warmUp: true, repetition: 1, attempt: 1}},
		"is another repetition while the result is not certain enough": {
			func(w *world) {
				w.run.Spec.Until = &v1alpha1.StopRule{StandardErrorPercent: "1", MaxRepetitions: 5}
				w.done(0, 1, "")
				w.done(0, 2, "")
			}, at(0, 3)},
		"is the next point when there are as many repetitions as the rule allows": {
			func(w *world) {
				w.run.Spec.Until = &v1alpha1.StopRule{StandardErrorPercent: "1", MaxRepetitions: 3}
				w.done(0, 1, "")
				w.done(0, 2, "")
				w.done(0, 3, "")
			}, at(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			c.given(w)
			next, found := w.next()
			g.Expect(found).To(BeTrue())
			g.Expect(next).To(Equal(c.want))
		})
	}
	t.Run("of a shuffled run is the same each time, and follows from the seed", func(t *testing.T) {
		g := NewWithT(t)
		seen := map[int]bool{}
		for seed := range int64(20) {
			w := idle()
			w.run.Spec.Order, w.run.Spec.Seed = v1alpha1.OrderShuffled, &seed
			first, _ := w.next()
			again, _ := w.next()
			g.Expect(again).To(Equal(first))
			seen[first.point] = true
		}
		g.Expect(seen).To(HaveLen(2), "either point may be first")
	})
}

func TestWhereARecordIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		turn     turn
		ends     bool
		lastStep bool
		key      string
	}{
		"a repetition that ends":                  {at(0, 2), true, true, "rep-2"},
		"an earlier attempt":                      {at(0, 2), false, true, "rep-2.attempt-1"},
		"a step before the last":                  {at(0, 2), false, false, "rep-2.step-0"},
		"a step of a second attempt":              {turn{repetition: 2, attempt: 2}, false, false, "rep-2.attempt-2.step-0"},
		"the last attempt, whatever its number":   {turn{repetition: 2, attempt: 3, step: 1}, true, true, "rep-2"},
		"a warm-up":                               {turn{warmUp: true, repetition: 1, attempt: 1}, true, true, "warmup-1"},
		"a step at which an attempt was given up": {turn{repetition: 2, attempt: 2, step: 1}, false, true, "rep-2.attempt-2"},
	} {
		t.Run(name+" is at "+c.key, func(t *testing.T) {
			NewWithT(t).Expect(c.turn.key(c.ends, c.lastStep)).To(Equal(c.key))
		})
	}
	t.Run("the records of a run from before there were attempts are read", func(t *testing.T) {
		g := NewWithT(t)
		w := idle()
		cm := corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "sweep-p000", OwnerReferences: []metav1.OwnerReference{{UID: "uid", Controller: new(true)}}},
			Data: map[string]string{
				"rep-1.json": `{"point":0,"repetition":1,"started":"2026-11-21T12:00:00Z","finished":"2026-11-21T12:00:10Z","samples":[{"name":"write","unit":"kB/s","value":1}]}`,
				"rep-2.json": `{"point":0,"repetition":2,"started":"2026-11-21T12:00:10Z","finished":"2026-11-21T12:00:20Z","error":"broke"}`,
			},
		}
		var err error
		w.records, err = decodeRecords([]corev1.ConfigMap{cm}, w.run)
		g.Expect(err).NotTo(HaveOccurred())
		s := w.state(0)
		g.Expect(s.Repetitions).To(Equal(1))
		g.Expect(s.bad.Error).To(Equal("broke"))
	})
}
