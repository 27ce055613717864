package benchmarkrun

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// turn is what one job does: one step of one attempt of one repetition, or warm-up, of a point.
type turn struct {
	point int
	// warmUp is true for a repetition that does not count; they are numbered by themselves.
	warmUp bool
	// repetition and attempt count from 1, step from 0.
	repetition, attempt, step int
}

// suffix names a turn behind the run's name: "-p3-r2", of a warm-up "-p3-w1", of a second attempt "-p3-r2-a2", of a later step
// "-p3-r2-s1".
func (t turn) suffix() string {
	out := "-" + t.directory()
	if t.attempt > 1 {
		out += fmt.Sprintf("-a%d", t.attempt)
	}
	if t.step > 0 {
		out += fmt.Sprintf("-s%d", t.step)
	}
	return out
}

// directory is the name of the directory that a turn works in: all attempts and steps of a repetition have the same one, of which the first
// step of an attempt clears what is there.
func (t turn) directory() string {
	kind := "r"
	if t.warmUp {
		kind = "w"
	}
	return fmt.Sprintf("p%d-%s%d", t.point, kind, t.repetition)
}

// key is that of a record in the ConfigMap of its point, without its ending. A repetition ends with rep-2, with a result or without; what
// came before that is rep-2.attempt-1, or, while an attempt has more steps to come, rep-2.step-0 and rep-2.attempt-2.step-0.
func (t turn) key(ends, lastStep bool) string {
	out := fmt.Sprintf("rep-%d", t.repetition)
	if t.warmUp {
		out = fmt.Sprintf("warmup-%d", t.repetition)
	}
	if ends {
		return out
	}
	if t.attempt > 1 || lastStep {
		out += fmt.Sprintf(".attempt-%d", t.attempt)
	}
	if !lastStep {
		out += fmt.Sprintf(".step-%d", t.step)
	}
	return out
}

var turnPattern = regexp.MustCompile(`-p([0-9]+)-([rw])([0-9]+)(?:-a([0-9]+))?(?:-s([0-9]+))?$`)

// turnOf reads the turn from the name of its job.
func turnOf(job string) (turn, bool) {
	m := turnPattern.FindStringSubmatch(job)
	if m == nil {
		return turn{}, false
	}
	number := func(text string, otherwise int) int {
		if n, err := strconv.Atoi(text); err == nil {
			return n
		}
		return otherwise
	}
	return turn{
		point: number(m[1], 0), warmUp: m[2] == "w", repetition: number(m[3], 1), attempt: number(m[4], 1), step: number(m[5], 0),
	}, true
}

const (
	// maxJobName leaves room for what the MPI operator adds to make the name of a host of it (-worker-1023), which has at most 63.
	maxJobName = 51
	// hashLength is that of what stands for the rest of a name that is cut.
	hashLength = 8
)

// jobName is the run's name with a suffix; of a long name, the start and a hash of it.
func jobName(run, suffix string) string {
	if len(run)+len(suffix) <= maxJobName {
		return run + suffix
	}
	sum := sha256.Sum256([]byte(run))
	return run[:maxJobName-len(suffix)-hashLength-1] + "-" + hex.EncodeToString(sum[:])[:hashLength] + suffix
}

func cleanName(run string) string  { return jobName(run, "-clean") }
func checkName(run string) string  { return jobName(run, "-check") }
func exportName(run string) string { return jobName(run, "-export") }

// progress is how far a repetition or warm-up is.
type progress struct {
	// over is true when it is not tried again.
	over bool
	// next is the turn that follows, unless it is over.
	next turn
	// attempts counts those that have ended.
	attempts int
	// bad is the record that leaves it without a result, when it is over.
	bad *record
	// result are the records of the attempt that counts, one for each step.
	result []record
}

// samples of all steps, in their order.
func (p progress) samples() []benchmarks.Sample {
	var out []benchmarks.Sample
	for _, step := range p.result {
		out = append(out, step.Samples...)
	}
	return out
}

const defaultInvalidRetries = 2

// retries are how often a repetition may be tried again after a failure, and after a disturbance.
func (w *world) retries() (failed, invalid int) {
	invalid = defaultInvalidRetries
	if l := w.run.Spec.Limits; l != nil {
		failed = int(l.Retries)
		if l.InvalidRetries != nil {
			invalid = int(*l.InvalidRetries)
		}
	}
	return failed, invalid
}

// steps is the number of steps of a repetition of a point.
func (w *world) steps(point int) int {
	if point >= len(w.plans) {
		return 1
	}
	return max(len(w.plans[point].Steps), 1)
}

// progressOf says how far a repetition or warm-up is, from its records.
func (w *world) progressOf(point int, warmUp bool, repetition int) progress {
	p := progress{next: turn{point: point, warmUp: warmUp, repetition: repetition, attempt: 1}}
	failed, invalid := 0, 0
	mostFailed, mostInvalid := w.retries()
	var steps []record
	for _, entry := range w.records.of(point) {
		if entry.WarmUp != warmUp || entry.Repetition != repetition {
			continue
		}
		if entry.Attempt != p.next.attempt {
			p.next.attempt, steps = entry.Attempt, nil
		}
		steps = append(steps, entry)
		switch {
		case entry.Invalid != "":
			invalid++
		case entry.Error != "":
			failed++
		case entry.Interrupted != "":
		case len(steps) == w.steps(point):
			p.over, p.result = true, steps
			p.attempts++
			return p
		default:
			p.next.step = len(steps)
			continue
		}
		p.attempts++
		if failed > mostFailed || invalid > mostInvalid {
			p.over, p.bad = true, &entry
			return p
		}
		p.next.attempt, p.next.step, steps = entry.Attempt+1, 0, nil
	}
	return p
}

// pointState is how far a point is.
type pointState struct {
	sweep.Progress
	// results are the samples of its repetitions.
	results [][]benchmarks.Sample
	// bad is what leaves the point without a result.
	bad *record
	// needs is the number of repetitions that it has when it is over, as far as is known.
	needs int
	// over is true when it gets no more turns.
	over bool
}

// state says how far a point is.
func (w *world) state(point int) pointState {
	var s pointState
	if warm := w.run.Spec.WarmUp; warm != nil {
		for s.WarmUps < max(int(warm.Repetitions), 1) {
			p := w.progressOf(point, true, s.WarmUps+1)
			if !p.over {
				break
			}
			if p.bad != nil {
				s.bad = p.bad
				break
			}
			s.WarmUps++
		}
	}
	for s.bad == nil {
		p := w.progressOf(point, false, s.Repetitions+1)
		if !p.over {
			break
		}
		if s.bad = p.bad; s.bad == nil {
			s.Repetitions++
			s.results = append(s.results, p.samples())
		}
	}
	s.Ended = s.bad != nil
	wanted := max(int(w.run.Spec.Repetitions), 1)
	s.needs = max(wanted, s.Repetitions)
	if rule := w.run.Spec.Until; rule != nil && !s.Ended && s.Repetitions >= wanted && !stats.Enough(rule, s.results) {
		s.More, s.needs = true, s.Repetitions+1
	}
	s.over = s.Ended || s.Repetitions >= wanted && !s.More
	return s
}

// states are those of all points.
func (w *world) states() []pointState {
	out := make([]pointState, len(w.points))
	for i := range w.points {
		out[i] = w.state(i)
	}
	return out
}

// schedule is the order of the run's repetitions.
func (w *world) schedule() sweep.Schedule {
	return sweep.NewSchedule(&w.run.Spec, len(w.points), w.run.UID)
}

// next is the turn that follows, false when all is over.
func (w *world) next() (turn, bool) {
	var all []sweep.Progress
	for _, s := range w.states() {
		all = append(all, s.Progress)
	}
	t, more := w.schedule().Next(all)
	if !more {
		return turn{}, false
	}
	return w.progressOf(t.Point, t.WarmUp, t.Repetition).next, true
}

// ends is true when a record ends its repetition: no attempt follows it.
func (w *world) ends(entry record) bool {
	with := *w
	with.records = w.records.with(entry)
	return with.progressOf(entry.Point, entry.WarmUp, entry.Repetition).over
}
