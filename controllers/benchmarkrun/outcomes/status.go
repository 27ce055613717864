package outcomes

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
)

// Derive builds the status from the spec, the records and the decision. It takes only the times of start and end, the directory, the result
// of the export and the conditions' times of change from the former status.
func Derive(w *scope.Scope, d decision.Decision) (v1alpha1.BenchmarkRunStatus, error) {
	status := *w.Run.Status.DeepCopy()
	failures.Clear(&status.Conditions)
	if d.Unobserved {
		return status, nil
	}
	status.ObservedGeneration = w.Run.Generation
	status.Tool, status.Target = w.Run.Spec.ToolName(), w.Run.Spec.Target.String()
	if d.Reason != "" {
		conditions.Set(&status.Conditions, w.Run.Generation, v1alpha1.ConditionSucceeded, d.Status, d.Progress, d.Reason, d.Message)
	}
	now := metav1.NewTime(w.Now.UTC().Truncate(time.Second))
	if d.Forgotten {
		status.RawOutputRemoved = &now
	}
	if w.Run.Status.CompletionTime != nil && !w.Changed() || w.Invalid != "" {
		return status, nil
	}
	if d.Intends {
		if w.Any(scope.OnClients) {
			status.Directory = w.Directory()
		}
		if status.StartTime == nil {
			status.StartTime = &now
		}
	}
	if d.Cleaned {
		status.Directory = ""
	}
	if d.Exported != "" {
		status.Exported = d.Exported
	}
	if d.Ended {
		status.CompletionTime = &now
	}
	if w.Published != "" {
		status.Results = results.ConfigMapOfRun(w.Run.Name)
	}
	if w.Run.Spec.Order == v1alpha1.OrderShuffled {
		status.Seed = new(w.Schedule().Seed)
	}
	status.Provenance = runProvenance(w)
	if err := fillResults(w, &status, d); err != nil {
		return status, err
	}

	ended, failed := 0, int32(0)
	for _, p := range status.Points {
		switch p.State {
		case v1alpha1.PointFailed, v1alpha1.PointInvalid:
			ended++
			failed++
		case v1alpha1.PointSucceeded:
			ended++
		case v1alpha1.PointPending, v1alpha1.PointRunning:
		}
	}
	status.FailedPoints = failed
	status.Progress = fmt.Sprintf("%d/%d", ended, len(status.Points))
	status.Current, status.TimeLeft = "", ""
	if d.Running {
		status.Current = v1alpha1.Cut(w.Current(d.Turn), scope.MaxCurrent)
	}
	sum, count := w.Records.Total()
	status.ActiveSeconds = int64(sum / time.Second)
	if count > 0 && status.CompletionTime == nil {
		status.TimeLeft = text.ShortDuration(sum / time.Duration(count) * time.Duration(turnsLeft(w)))
	}
	shorten(&status)
	return status, nil
}

// fillResults fills in the points, and what follows from all of them.
func fillResults(w *scope.Scope, status *v1alpha1.BenchmarkRunStatus, d decision.Decision) error {
	d.Ended = d.Ended || status.CompletionTime != nil
	points, comparison, err := documentPoints(w, d, false)
	if err != nil {
		return err
	}
	status.Baseline = w.BaselineProblem
	if comparison != nil {
		status.Baseline = v1alpha1.Cut(comparison.Sentence(), scope.MaxBaseline)
	}
	status.Best = nil
	for _, best := range stats.BestPoints(points) {
		if len(status.Best) < scope.MaxMetrics {
			status.Best = append(status.Best, best.Status())
		}
	}
	judged := results.Run{Spec: w.Run.Spec, Points: points}
	if d.Ended {
		judged.Ended = w.Now
	}
	setAccepted(status, w.Run.Generation, judged)
	status.Points = make([]v1alpha1.PointStatus, 0, len(points))
	for i, p := range points {
		status.Points = append(status.Points, pointStatus(w, i, p))
	}
	return nil
}

// setAccepted writes the verdict on each expectation, and the condition Accepted. Without expectations there is neither.
func setAccepted(status *v1alpha1.BenchmarkRunStatus, generation int64, run results.Run) {
	status.Expectations = nil
	if len(run.Spec.Expect) == 0 {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionAccepted)
		return
	}
	status.Expectations = stats.Judge(run)
	c := stats.Accepted(status.Expectations)
	conditions.Add(&status.Conditions, generation, v1alpha1.ConditionSucceeded, c.Type, c.Status, c.Reason, c.Message)
}

// pointStatus returns a point of the complete results in the form of the status.
func pointStatus(w *scope.Scope, i int, p results.Point) v1alpha1.PointStatus {
	s := w.State(i)
	out := v1alpha1.PointStatus{
		Index: int32(i), State: p.State, Parameters: varied(w.Points[i]), Repetitions: int32(s.Repetitions), //nolint:gosec // few
		Command: v1alpha1.Cut(text.Quoted(p.Command), scope.MaxMessage), Placement: v1alpha1.Cut(p.Placement, scope.MaxPlacement),
		Message: p.Message,
	}
	metrics := stats.Statuses(p.Metrics)
	out.Metrics = metrics[:min(len(metrics), scope.MaxMetrics)]
	recorded := w.Records.Of(i)
	if len(recorded) == 0 {
		return out
	}
	out.Output = turns.PointName(w.Run.Name, i)
	if attempts := attempts(w, i); attempts > s.Repetitions {
		out.Attempts = int32(attempts) //nolint:gosec // at most 100 repetitions of at most 21 attempts
	}
	first, last := recorded[0].Started, recorded[0].Finished
	for _, entry := range recorded {
		if entry.Started.Before(first) {
			first = entry.Started
		}
		if entry.Finished.After(last) {
			last = entry.Finished
		}
	}
	out.StartTime = new(metav1.NewTime(first.Truncate(time.Second)))
	if p.State != v1alpha1.PointRunning && p.State != v1alpha1.PointPending {
		out.CompletionTime = new(metav1.NewTime(last.Truncate(time.Second)))
	}
	if p.State == v1alpha1.PointSucceeded {
		out.Telemetry = shortTelemetry(w, i, s)
	}
	return out
}

// attempts counts the finished attempts of a point, without its warm-ups.
func attempts(w *scope.Scope, point int) int {
	type one struct{ repetition, attempt int }
	seen := map[one]bool{}
	for _, entry := range w.Records.Of(point) {
		if !entry.WarmUp && (entry.Trouble() != "" || entry.Step == w.Steps(point)-1) {
			seen[one{entry.Repetition, entry.Attempt}] = true
		}
	}
	return len(seen)
}

// shortTelemetry summarizes the servers' activity during the last repetition that counts.
func shortTelemetry(w *scope.Scope, point int, s scope.PointState) []string {
	steps := w.ProgressOf(point, false, s.Repetitions).Result
	var out []string
	for _, step := range steps {
		prefix := ""
		if step.StepName != "" {
			prefix = step.StepName + ": "
		}
		for _, text := range telemetry.Short(step.Telemetry, max(scope.MaxTelemetry/len(steps), 1)) {
			if len(out) < scope.MaxTelemetry {
				out = append(out, v1alpha1.Cut(prefix+text, scope.MaxCurrent))
			}
		}
	}
	return out
}

// runProvenance returns what the results were measured on, with what the attempts have reported about the tool since.
func runProvenance(w *scope.Scope) *v1alpha1.RunProvenance {
	if w.Provenance.CheckedBy == "" {
		return nil
	}
	out := w.Provenance.DeepCopy()
	out.ToolVersion = w.Provenance.Checked.Version
	for i := range w.Points {
		for _, entry := range w.Records.Of(i) {
			if entry.Version != "" && out.ToolVersion == "" {
				out.ToolVersion = entry.Version
			}
			if entry.ImageID != "" && out.ImageID == "" {
				out.ImageID = entry.ImageID
			}
			for _, change := range entry.PodChanges {
				if !slices.Contains(out.PodChanges, change) && len(out.PodChanges) < scope.MaxPodChanges {
					out.PodChanges = append(out.PodChanges, change)
				}
			}
			if out.Throttled == "" {
				out.Throttled = v1alpha1.Cut(entry.Throttled, scope.MaxCurrent)
			}
			if entry.Clocks != "" {
				out.Clocks = v1alpha1.Cut(entry.Clocks, scope.MaxPinning)
			}
		}
	}
	out.ToolVersion, out.ImageID = v1alpha1.Cut(out.ToolVersion, scope.MaxCurrent), v1alpha1.Cut(out.ImageID, scope.MaxPinning)
	return out
}

// maxStatus bounds the JSON of a status, in bytes: etcd accepts objects of at most 1.5 MiB, and many clients read the status.
const maxStatus = 512 << 10

// shorten drops the least important parts of a status that is too large, and records that it did.
func shorten(status *v1alpha1.BenchmarkRunStatus) {
	status.Shortened = ""
	all := func(change func(p *v1alpha1.PointStatus)) func() {
		return func() {
			for i := range status.Points {
				change(&status.Points[i])
			}
		}
	}
	each := func(change func(m *v1alpha1.MetricResult)) func() {
		return all(func(p *v1alpha1.PointStatus) {
			for i := range p.Metrics {
				change(&p.Metrics[i])
			}
		})
	}
	var left []string
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"outliers, medians and confidence intervals", each(func(m *v1alpha1.MetricResult) { m.Outliers, m.Median, m.Confidence = nil, "", "" })},
		{"means, lowest and highest samples", each(func(m *v1alpha1.MetricResult) { m.Mean, m.Min, m.Max = "", "", "" })},
		{"telemetry", all(func(p *v1alpha1.PointStatus) { p.Telemetry = nil })},
		{"command lines", all(func(p *v1alpha1.PointStatus) { p.Command = "" })},
		{"the end of messages", all(func(p *v1alpha1.PointStatus) { p.Message = v1alpha1.Cut(p.Message, scope.MaxCurrent) })},
		{"standard deviations and comparisons", each(func(m *v1alpha1.MetricResult) {
			m.StdDev, m.Baseline, m.Speedup, m.Efficiency = "", "", "", ""
		})},
		{"all metrics but the first sixteen", all(func(p *v1alpha1.PointStatus) {
			p.Metrics = p.Metrics[:min(len(p.Metrics), scope.SomeMetrics)]
		})},
		{"all metrics but the first eight", all(func(p *v1alpha1.PointStatus) { p.Metrics = p.Metrics[:min(len(p.Metrics), scope.FewMetrics)] })},
		{"the metrics", all(func(p *v1alpha1.PointStatus) { p.Metrics = nil })},
	} {
		raw, err := json.Marshal(status)
		if err != nil || len(raw) <= maxStatus {
			return
		}
		step.do()
		left = append(left, step.what)
		status.Shortened = v1alpha1.Cut(fmt.Sprintf("%s were left out of %d points; the complete results are in the ConfigMap %s",
			text.SentenceList(left), len(status.Points), status.Results), scope.MaxBaseline)
	}
}

func failureMessage(entry turns.Record) string {
	message := fmt.Sprintf("%s: %s", entry.Title(), entry.Trouble())
	if entry.Tail != "" {
		message += "\n" + entry.Tail
	}
	return v1alpha1.Cut(message, scope.MaxMessage)
}

// turnsLeft counts the remaining turns, as far as they are known.
func turnsLeft(w *scope.Scope) int {
	left := 0
	warm := 0
	if spec := w.Run.Spec.WarmUp; spec != nil && spec.Of == v1alpha1.WarmUpEach {
		warm = max(int(spec.Repetitions), 1)
	}
	for i := range w.Points {
		if s := w.State(i); !s.Over {
			left += (s.Needs - s.Repetitions) * w.Steps(i)
			if s.Repetitions == 0 {
				left += max(warm-s.WarmUps, 0) * w.Steps(i)
			}
		}
	}
	return left
}

func varied(point benchmarks.Point) []v1alpha1.PointParameter {
	var out []v1alpha1.PointParameter
	for _, name := range point.Varied {
		out = append(out, v1alpha1.PointParameter{Name: name, Value: v1alpha1.PointValue(point.Parameters[name])})
	}
	return out
}
