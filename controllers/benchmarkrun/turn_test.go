package benchmarkrun

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

func TestTheNextTurn(t *testing.T) {
	attempt := func(number, step int) turns.Turn { return turns.Turn{Repetition: 1, Attempt: number, Step: step} }
	two := func(w *scope.Scope) {
		for i := range w.Plans {
			w.Plans[i] = scopetest.PlanOf(benchmarks.OnClient, "write", "read")
		}
	}
	for name, c := range map[string]struct {
		given func(w *scope.Scope)
		want  turns.Turn
	}{
		"is the first repetition of the first point": {func(*scope.Scope) {}, scopetest.At(0, 1)},
		"is the next point when a repetition failed": {func(w *scope.Scope) { scopetest.Entry(w, scopetest.At(0, 1), scopetest.Failed) }, scopetest.At(1, 1)},
		"is a second attempt when retries are allowed": {func(w *scope.Scope) {
			scopetest.Tries(w, 1, 0)
			scopetest.Entry(w, scopetest.At(0, 1), scopetest.Failed)
		}, attempt(2, 0)},
		"is the next point when the retries are used up": {
			func(w *scope.Scope) {
				scopetest.Tries(w, 1, 0)
				scopetest.Entry(w, scopetest.At(0, 1), scopetest.Failed)
				scopetest.Entry(w, attempt(2, 0), scopetest.Failed)
			}, scopetest.At(1, 1)},
		"is a second attempt when the first was disturbed": {func(w *scope.Scope) { scopetest.Entry(w, scopetest.At(0, 1), scopetest.Disturbed) }, attempt(2, 0)},
		"is the next point after three disturbances": {
			func(w *scope.Scope) {
				scopetest.Entry(w, attempt(1, 0), scopetest.Disturbed)
				scopetest.Entry(w, attempt(2, 0), scopetest.Disturbed)
				scopetest.Entry(w, attempt(3, 0), scopetest.Disturbed)
			}, scopetest.At(1, 1)},
		"counts failures and disturbances each by themselves": {
			func(w *scope.Scope) {
				scopetest.Tries(w, 1, 1)
				scopetest.Entry(w, attempt(1, 0), scopetest.Disturbed)
				scopetest.Entry(w, attempt(2, 0), scopetest.Failed)
			}, attempt(3, 0)},
		"is the next repetition after an attempt that went well": {
			func(w *scope.Scope) {
				scopetest.Entry(w, attempt(1, 0), scopetest.Disturbed)
				scopetest.Entry(w, attempt(2, 0))
			}, scopetest.At(0, 2)},
		"is the second step after the first":         {func(w *scope.Scope) { two(w); scopetest.Entry(w, attempt(1, 0)) }, attempt(1, 1)},
		"is the next repetition after the last step": {func(w *scope.Scope) { two(w); scopetest.Entry(w, attempt(1, 0)); scopetest.Entry(w, attempt(1, 1)) }, scopetest.At(0, 2)},
		"is the first step again when a later one was lost": {func(w *scope.Scope) {
			two(w)
			scopetest.Entry(w, attempt(1, 0))
			scopetest.Entry(w, attempt(1, 1), scopetest.Disturbed)
		}, attempt(2, 0)},
		"is another attempt, which counts for nothing, after an interruption": {
			func(w *scope.Scope) {
				two(w)
				scopetest.Tries(w, 0, 0)
				scopetest.Entry(w, attempt(1, 0))
				scopetest.Entry(w, attempt(1, 1), scopetest.Interrupted)
			}, attempt(2, 0)},
		"is a warm-up, before the first point alone": {
			func(w *scope.Scope) {
				w.Run.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpFirst, Repetitions: 2}
			}, turns.Turn{WarmUp: true, Repetition: 1, Attempt: 1}},
		"is no warm-up when they are over": {
			func(w *scope.Scope) {
				w.Run.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpFirst, Repetitions: 1}
				scopetest.Entry(w, turns.Turn{WarmUp: true, Repetition: 1, Attempt: 1})
			}, scopetest.At(0, 1)},
		"is a warm-up of each point, when each is warmed up": {
			func(w *scope.Scope) {
				w.Run.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpEach, Repetitions: 1}
				scopetest.Entry(w, turns.Turn{WarmUp: true, Repetition: 1, Attempt: 1})
				scopetest.Done(w, 0, 1, "")
				scopetest.Done(w, 0, 2, "")
			}, turns.Turn{Point: 1, WarmUp: true, Repetition: 1, Attempt: 1}},
		"is another repetition while the result is not certain enough": {
			func(w *scope.Scope) {
				w.Run.Spec.Until = &v1alpha1.StopRule{ConfidencePercent: "1", MaxRepetitions: 5}
				scopetest.Done(w, 0, 1, "")
				scopetest.Done(w, 0, 2, "")
			}, scopetest.At(0, 3)},
		"is the next point when there are as many repetitions as the rule allows": {
			func(w *scope.Scope) {
				w.Run.Spec.Until = &v1alpha1.StopRule{ConfidencePercent: "1", MaxRepetitions: 5}
				for repetition := range 5 {
					scopetest.Done(w, 0, repetition+1, "")
				}
			}, scopetest.At(1, 1)},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			c.given(w)
			next, found := w.Next()
			g.Expect(found).To(BeTrue())
			g.Expect(next).To(Equal(c.want))
		})
	}
	t.Run("of a shuffled run is the same each time, and follows from the seed", func(t *testing.T) {
		g := NewWithT(t)
		seen := map[int]bool{}
		for seed := range int64(20) {
			w := scopetest.Idle()
			w.Run.Spec.Order, w.Run.Spec.Seed = v1alpha1.OrderShuffled, &seed
			first, _ := w.Next()
			again, _ := w.Next()
			g.Expect(again).To(Equal(first))
			seen[first.Point] = true
		}
		g.Expect(seen).To(HaveLen(2), "either point may be first")
	})
}

func TestWhereARecordIsKept(t *testing.T) {
	for name, c := range map[string]struct {
		turn     turns.Turn
		ends     bool
		lastStep bool
		key      string
	}{
		"a repetition that ends":                   {scopetest.At(0, 2), true, true, "rep-2"},
		"an earlier attempt":                       {scopetest.At(0, 2), false, true, "rep-2.attempt-1"},
		"a step before the last":                   {scopetest.At(0, 2), false, false, "rep-2.step-0"},
		"a step of a second attempt":               {turns.Turn{Repetition: 2, Attempt: 2}, false, false, "rep-2.attempt-2.step-0"},
		"the last attempt, whatever its number":    {turns.Turn{Repetition: 2, Attempt: 3, Step: 1}, true, true, "rep-2"},
		"a warm-up":                                {turns.Turn{WarmUp: true, Repetition: 1, Attempt: 1}, true, true, "warmup-1"},
		"a step at which an attempt was abandoned": {turns.Turn{Repetition: 2, Attempt: 2, Step: 1}, false, true, "rep-2.attempt-2"},
	} {
		t.Run(name+" is at "+c.key, func(t *testing.T) {
			NewWithT(t).Expect(c.turn.Key(c.ends, c.lastStep)).To(Equal(c.key))
		})
	}
}
