package scope

import (
	"maps"
	"slices"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// Blank returns the record of a turn before it has run.
func (w *Scope) Blank(t turns.Turn) turns.Record {
	entry := turns.Record{Point: t.Point, Repetition: t.Repetition, WarmUp: t.WarmUp, Attempt: t.Attempt, Step: t.Step}
	if t.Point < len(w.Points) {
		entry.Parameters = w.Points[t.Point].Parameters
		steps := w.Plans[t.Point].Steps
		step := steps[min(t.Step, len(steps)-1)]
		entry.StepName, entry.Command = step.Name, step.Command.Argv
		for _, call := range step.Command.Calls {
			entry.Command = append(entry.Command, callWords(call)...)
		}
	}
	return entry
}

// callWords formats a call of a filesystem's own tools as words. The backend decides their spelling.
func callWords(call benchmarks.Call) []string {
	words := []string{call.Verb}
	for _, name := range slices.Sorted(maps.Keys(call.Arguments)) {
		words = append(words, name+"="+call.Arguments[name])
	}
	return words
}

// Progress is the progress of a repetition or warm-up.
type Progress struct {
	// over is true if it is not tried again.
	over bool
	// next is the next turn, unless it is over.
	next turns.Turn
	// attempts counts the finished attempts.
	attempts int
	// bad is the record that leaves it without a result, if it is over.
	bad *turns.Record
	// Result holds the records of the attempt that counts, one for each step.
	Result []turns.Record
}

// samples returns the samples of all steps, in their order.
func (p Progress) samples() []benchmarks.Sample {
	var out []benchmarks.Sample
	for _, step := range p.Result {
		out = append(out, step.Samples...)
	}
	return out
}

const defaultInvalidRetries = 2

// retries returns how often a repetition may be tried again after a failure, and after a disturbance.
func (w *Scope) retries() (failed, invalid int) {
	invalid = defaultInvalidRetries
	if l := w.Run.Spec.Limits; l != nil {
		failed = int(l.Retries)
		if l.InvalidRetries != nil {
			invalid = int(*l.InvalidRetries)
		}
	}
	return failed, invalid
}

// Steps returns the number of steps of a repetition of a point.
func (w *Scope) Steps(point int) int {
	if point >= len(w.Plans) {
		return 1
	}
	return max(len(w.Plans[point].Steps), 1)
}

// ProgressOf returns the progress of a repetition or warm-up, from its records.
func (w *Scope) ProgressOf(point int, warmUp bool, repetition int) Progress {
	p := Progress{next: turns.Turn{Point: point, WarmUp: warmUp, Repetition: repetition, Attempt: 1}}
	failed, invalid := 0, 0
	mostFailed, mostInvalid := w.retries()
	var steps []turns.Record
	for _, entry := range w.Records.Of(point) {
		if entry.WarmUp != warmUp || entry.Repetition != repetition {
			continue
		}
		if entry.Attempt != p.next.Attempt {
			p.next.Attempt, steps = entry.Attempt, nil
		}
		steps = append(steps, entry)
		switch {
		case entry.Invalid != "":
			invalid++
		case entry.Error != "":
			failed++
		case entry.Interrupted != "":
		case len(steps) == w.Steps(point):
			p.over, p.Result = true, steps
			p.attempts++
			return p
		default:
			p.next.Step = len(steps)
			continue
		}
		p.attempts++
		if failed > mostFailed || invalid > mostInvalid || entry.Final() {
			p.over, p.bad = true, &entry
			return p
		}
		p.next.Attempt, p.next.Step, steps = entry.Attempt+1, 0, nil
	}
	return p
}

// PointState is the progress of a point.
type PointState struct {
	sweep.Progress
	// Results holds the samples of its repetitions.
	Results [][]benchmarks.Sample
	// Bad is the record that leaves the point without a result.
	Bad *turns.Record
	// Needs is the number of repetitions that the point needs, as far as is known.
	Needs int
	// Over is true if it gets no more turns.
	Over bool
}

// State returns the progress of a point.
func (w *Scope) State(point int) PointState {
	var s PointState
	if warm := w.Run.Spec.WarmUp; warm != nil {
		for s.WarmUps < max(int(warm.Repetitions), 1) {
			p := w.ProgressOf(point, true, s.WarmUps+1)
			if !p.over {
				break
			}
			if p.bad != nil {
				s.Bad = p.bad
				break
			}
			s.WarmUps++
		}
	}
	for s.Bad == nil {
		p := w.ProgressOf(point, false, s.Repetitions+1)
		if !p.over {
			break
		}
		if s.Bad = p.bad; s.Bad == nil {
			s.Repetitions++
			s.Results = append(s.Results, p.samples())
		}
	}
	s.Ended = s.Bad != nil
	wanted := max(int(w.Run.Spec.Repetitions), 1)
	s.Needs = max(wanted, s.Repetitions)
	if rule := w.Run.Spec.Until; rule != nil && !s.Ended && s.Repetitions >= wanted && !stats.Enough(rule, s.Results) {
		s.More, s.Needs = true, s.Repetitions+1
	}
	s.Over = s.Ended || s.Repetitions >= wanted && !s.More
	return s
}

// States returns the progress of all points.
func (w *Scope) States() []PointState {
	out := make([]PointState, len(w.Points))
	for i := range w.Points {
		out[i] = w.State(i)
	}
	return out
}

// Schedule returns the order of the run's repetitions.
func (w *Scope) Schedule() sweep.Schedule {
	return sweep.NewSchedule(&w.Run.Spec, len(w.Points), w.Run.UID)
}

// Next returns the next turn, false if all are over.
func (w *Scope) Next() (turns.Turn, bool) {
	var all []sweep.Progress
	for _, s := range w.States() {
		all = append(all, s.Progress)
	}
	t, more := w.Schedule().Next(all)
	if !more {
		return turns.Turn{}, false
	}
	return w.ProgressOf(t.Point, t.WarmUp, t.Repetition).next, true
}

// Ends reports whether a record ends its repetition, so that no attempt follows.
func (w *Scope) Ends(entry turns.Record) bool {
	with := *w
	with.Records = w.Records.With(entry)
	return with.ProgressOf(entry.Point, entry.WarmUp, entry.Repetition).over
}
