// Package outcomes describes the results of a run, from its scope and the decision: the complete results, the status, the provenance and
// the events.
package outcomes

import (
	"cmp"
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// documentPoints returns the points of the complete results, with their attempts if the argument is true, and the comparison with the
// baseline, nil without one.
func documentPoints(w *scope.Scope, d decision.Decision, attempts bool) ([]results.Point, *results.Comparison, error) {
	out := make([]results.Point, 0, len(w.Points))
	for i, point := range w.Points {
		s := w.State(i)
		p := results.Point{Index: i, Parameters: values(w, point), State: v1alpha1.PointPending}
		recorded := w.Records.Of(i)
		if len(recorded) > 0 {
			p.State = v1alpha1.PointRunning
			p.Placement = recorded[0].Placement
			p.Command = command(w, i)
		}
		switch {
		case s.Bad != nil:
			p.State = v1alpha1.PointFailed
			if s.Bad.Invalid != "" {
				p.State = v1alpha1.PointInvalid
			}
			p.Message = failureMessage(*s.Bad)
		case s.Over:
			p.State = v1alpha1.PointSucceeded
			metrics, err := stats.Summarize(s.Results, w.Run.Spec.Statistic, w.Run.Spec.Until)
			if err != nil {
				return nil, nil, fmt.Errorf("compute the metrics of point %d: %w", i, err)
			}
			p.Metrics, p.Message = metrics, remarks(w, i, s)
		case d.Ended && len(recorded) > 0:
			p.State = v1alpha1.PointFailed
			p.Message = fmt.Sprintf("spec.limits.timeout was reached after %d of %d repetitions", s.Repetitions, s.Needs)
		case d.Running && d.Turn.Point == i:
			p.State = v1alpha1.PointRunning
		}
		if attempts {
			for _, entry := range recorded {
				p.Attempts = append(p.Attempts, attemptOf(entry))
			}
		}
		out = append(out, p)
	}
	if w.Run.Spec.Along != "" {
		stats.Scaling(out, &w.Run.Spec)
	}
	return out, compare(w, out), nil
}

// compare adds the baseline's values to the points; it returns nil if there is no baseline.
func compare(w *scope.Scope, points []results.Point) *results.Comparison {
	if w.Baseline == nil {
		return nil
	}
	run := results.Run{Name: w.Run.Name, UID: string(w.Run.UID), Spec: w.Run.Spec, Provenance: documentProvenance(w), Points: points}
	found := stats.Compare([]stats.Pair{{Run: run, Baseline: *w.Baseline, Of: w.BaselineOf}}, stats.TermsOf(w.Run.Spec.Baseline))[0]
	if len(found.Refused) > 0 && !w.Run.Spec.Baseline.AllowDifferences {
		found.Summary = "without spec.baseline.allowDifferences " + found.Summary
	}
	return &found
}

// documentProvenance returns the provenance in the complete results.
func documentProvenance(w *scope.Scope) results.Provenance {
	out := w.Provenance.Provenance
	if p := runProvenance(w); p != nil {
		out.RunProvenance = *p
	}
	return out
}

// remarks returns remarks about a point that has a result: attempts that were no result, and a stop rule that was not met.
func remarks(w *scope.Scope, point int, s scope.PointState) string {
	var out []string
	for _, entry := range w.Records.Of(point) {
		if entry.Invalid != "" || entry.Error != "" {
			out = append(out, fmt.Sprintf("%s, attempt %d: %s", entry.Title(), entry.Attempt, entry.Trouble()))
		}
	}
	if limited := limits(w.Records.Of(point)); limited != "" {
		out = append(out, limited)
	}
	if rule := w.Run.Spec.Until; rule != nil {
		if missing := stats.Uncertain(rule, s.Results); missing != "" {
			out = append(out, missing)
		}
	}
	return v1alpha1.Cut(strings.Join(out, "; "), scope.MaxMessage)
}

// limits describes a CPU limit that the operator did not request and under which repetitions were measured; empty for none.
func limits(records []turns.Record) string {
	for _, entry := range records {
		for _, change := range entry.PodChanges {
			if admitted.LimitsCPU(change) {
				return "measured under a CPU limit that was not asked for: " + change + ", by a LimitRange or a webhook of the cluster"
			}
		}
	}
	return ""
}

// values returns the parameters of a point as a document holds them.
func values(w *scope.Scope, point benchmarks.Point) []results.Value {
	return results.Values(point, w.Parameters)
}

// command returns the command line of a point. The command lines of several steps are joined with semicolons.
func command(w *scope.Scope, point int) []string {
	var out []string
	for i := range w.Plans[point].Steps {
		if i > 0 {
			out = append(out, ";")
		}
		out = append(out, w.Blank(turns.Turn{Point: point, Step: i}).Command...)
	}
	return out
}

func attemptOf(entry turns.Record) results.Attempt {
	return results.Attempt{
		Repetition: entry.Repetition, Attempt: entry.Attempt, WarmUp: entry.WarmUp, Step: entry.StepName,
		Started: entry.Started, Ended: entry.Finished, ExitCode: entry.ExitCode,
		Error: cmp.Or(entry.Error, entry.Interrupted), Invalid: entry.Invalid, Samples: entry.Samples, Telemetry: entry.Telemetry,
	}
}

// Document returns the complete results so far.
func Document(w *scope.Scope, d decision.Decision) (results.Run, error) {
	points, comparison, err := documentPoints(w, d, true)
	if err != nil {
		return results.Run{}, err
	}
	out := results.Run{
		Format: results.Format, Name: w.Run.Name, Namespace: w.Run.Namespace, UID: string(w.Run.UID), Spec: w.Run.Spec,
		Provenance: documentProvenance(w), Points: points, Comparison: comparison,
	}
	if w.Run.Status.StartTime != nil {
		out.Started = w.Run.Status.StartTime.Time
	}
	if d.Ended {
		out.Ended = w.Records.LastEnd()
	}
	return out, nil
}
