package benchmarkrun

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
)

const (
	maxCurrent   = 256
	maxMessage   = 2048
	maxPlacement = 128
	maxTelemetry = 8
	maxMetrics   = 32
	someMetrics  = 16
	fewMetrics   = 8
)

// derive makes the status from the spec, the records and what was decided. Only the times of start and end, the directory, what became of
// the export and the conditions' times of change come from the status before.
func derive(w *world, d decision) (v1alpha1.BenchmarkRunStatus, error) {
	status := *w.run.Status.DeepCopy()
	failures.Clear(&status.Conditions)
	if d.unobserved {
		return status, nil
	}
	status.ObservedGeneration = w.run.Generation
	if d.reason != "" {
		conditions.Set(&status.Conditions, w.run.Generation, v1alpha1.ConditionSucceeded, d.status, d.progress, d.reason, d.message)
	}
	if w.run.Status.CompletionTime != nil && !w.changed() || w.invalid != "" {
		return status, nil
	}
	now := metav1.NewTime(w.now.UTC().Truncate(time.Second))
	if d.intends {
		if w.any(onClients) {
			status.Directory = w.directory()
		}
		if status.StartTime == nil {
			status.StartTime = &now
		}
	}
	if d.cleaned {
		status.Directory = ""
	}
	if d.exported != "" {
		status.Exported = d.exported
	}
	if d.ended {
		status.CompletionTime = &now
	}
	if w.published != "" {
		status.Results = results.ConfigMapOfRun(w.run.Name)
	}
	if w.run.Spec.Order == v1alpha1.OrderShuffled {
		status.Seed = new(w.schedule().Seed)
	}
	status.Provenance = w.runProvenance()
	if err := w.results(&status, d); err != nil {
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
	if d.running {
		status.Current = v1alpha1.Cut(w.current(d.turn), maxCurrent)
	}
	sum, count := w.records.total()
	status.ActiveSeconds = int64(sum / time.Second)
	if count > 0 && status.CompletionTime == nil {
		status.TimeLeft = shortDuration(sum / time.Duration(count) * time.Duration(w.turnsLeft()))
	}
	shorten(&status)
	return status, nil
}

// changed is true when a run that has ended has another spec than its status is about: another baseline, perhaps.
func (w *world) changed() bool {
	return w.run.Status.ObservedGeneration != w.run.Generation && w.run.Status.Results != "" && w.invalid == ""
}

// results fills in the points, and what follows from all of them.
func (w *world) results(status *v1alpha1.BenchmarkRunStatus, d decision) error {
	d.ended = d.ended || status.CompletionTime != nil
	points, comparison, err := w.documentPoints(d, false)
	if err != nil {
		return err
	}
	status.Baseline = w.baselineProblem
	if comparison != nil {
		status.Baseline = v1alpha1.Cut(comparison.Sentence(), maxBaseline)
	}
	status.Best = nil
	for _, best := range stats.BestPoints(points) {
		if len(status.Best) < maxMetrics {
			status.Best = append(status.Best, best.Status())
		}
	}
	status.Points = make([]v1alpha1.PointStatus, 0, len(points))
	for i, p := range points {
		status.Points = append(status.Points, w.pointStatus(i, p))
	}
	return nil
}

// pointStatus is a point of the complete results as the status shows it.
func (w *world) pointStatus(i int, p results.Point) v1alpha1.PointStatus {
	s := w.state(i)
	out := v1alpha1.PointStatus{
		Index: int32(i), State: p.State, Parameters: varied(w.points[i]), Repetitions: int32(s.Repetitions), //nolint:gosec // few
		Command: v1alpha1.Cut(quoted(p.Command), maxMessage), Placement: v1alpha1.Cut(p.Placement, maxPlacement), Message: p.Message,
	}
	metrics := stats.Statuses(p.Metrics)
	out.Metrics = metrics[:min(len(metrics), maxMetrics)]
	recorded := w.records.of(i)
	if len(recorded) == 0 {
		return out
	}
	out.Output = pointName(w.run.Name, i)
	if attempts := w.attempts(i); attempts > s.Repetitions {
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
		out.Telemetry = w.telemetry(i, s)
	}
	return out
}

// attempts counts those of a point that have ended, its warm-ups left out.
func (w *world) attempts(point int) int {
	type one struct{ repetition, attempt int }
	seen := map[one]bool{}
	for _, entry := range w.records.of(point) {
		if !entry.WarmUp && (entry.trouble() != "" || entry.Step == w.steps(point)-1) {
			seen[one{entry.Repetition, entry.Attempt}] = true
		}
	}
	return len(seen)
}

// telemetry is what the servers did during the last repetition that counts, in short.
func (w *world) telemetry(point int, s pointState) []string {
	steps := w.progressOf(point, false, s.Repetitions).result
	var out []string
	for _, step := range steps {
		prefix := ""
		if step.StepName != "" {
			prefix = step.StepName + ": "
		}
		for _, text := range telemetry.Short(step.Telemetry, max(maxTelemetry/len(steps), 1)) {
			if len(out) < maxTelemetry {
				out = append(out, v1alpha1.Cut(prefix+text, maxCurrent))
			}
		}
	}
	return out
}

// runProvenance is what the results were measured on, with what the attempts have told of the tool since.
func (w *world) runProvenance() *v1alpha1.RunProvenance {
	if w.provenance.CheckedBy == "" {
		return nil
	}
	out := w.provenance.DeepCopy()
	out.ToolVersion = w.provenance.Checked.Version
	for i := range w.points {
		for _, entry := range w.records.of(i) {
			if entry.Version != "" && out.ToolVersion == "" {
				out.ToolVersion = entry.Version
			}
			if entry.ImageID != "" && out.ImageID == "" {
				out.ImageID = entry.ImageID
			}
		}
	}
	out.ToolVersion, out.ImageID = v1alpha1.Cut(out.ToolVersion, maxCurrent), v1alpha1.Cut(out.ImageID, maxPinning)
	return out
}

// maxStatus bounds the JSON of a status, in bytes: an object has at most 1.5 MiB in etcd, and is read by many.
const maxStatus = 512 << 10

// shorten leaves out of a status that is too large what is needed least, and says so.
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
		{"the end of messages", all(func(p *v1alpha1.PointStatus) { p.Message = v1alpha1.Cut(p.Message, maxCurrent) })},
		{"standard deviations and comparisons", each(func(m *v1alpha1.MetricResult) {
			m.StdDev, m.Baseline, m.Speedup, m.Efficiency = "", "", "", ""
		})},
		{"all metrics but the first sixteen", all(func(p *v1alpha1.PointStatus) { p.Metrics = p.Metrics[:min(len(p.Metrics), someMetrics)] })},
		{"all metrics but the first eight", all(func(p *v1alpha1.PointStatus) { p.Metrics = p.Metrics[:min(len(p.Metrics), fewMetrics)] })},
		{"the metrics", all(func(p *v1alpha1.PointStatus) { p.Metrics = nil })},
	} {
		raw, err := json.Marshal(status)
		if err != nil || len(raw) <= maxStatus {
			return
		}
		step.do()
		left = append(left, step.what)
		status.Shortened = v1alpha1.Cut(fmt.Sprintf("%s were left out of %d points; the complete results are in the ConfigMap %s",
			sentenceList(left), len(status.Points), status.Results), maxBaseline)
	}
}

// quoted joins a command line, arguments with blanks in quotation marks.
func quoted(argv []string) string {
	words := make([]string, 0, len(argv))
	for _, word := range argv {
		if word == "" || strings.ContainsAny(word, " \t\n\"'") {
			word = strconv.Quote(word)
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func failureMessage(entry record) string {
	message := fmt.Sprintf("%s: %s", entry.title(), entry.trouble())
	if entry.Tail != "" {
		message += "\n" + entry.Tail
	}
	return v1alpha1.Cut(message, maxMessage)
}

// turnsLeft counts those that are left, as far as is known.
func (w *world) turnsLeft() int {
	left := 0
	warm := 0
	if spec := w.run.Spec.WarmUp; spec != nil && spec.Of == v1alpha1.WarmUpEach {
		warm = max(int(spec.Repetitions), 1)
	}
	for i := range w.points {
		if s := w.state(i); !s.over {
			left += (s.needs - s.Repetitions) * w.steps(i)
			if s.Repetitions == 0 {
				left += max(warm-s.WarmUps, 0) * w.steps(i)
			}
		}
	}
	return left
}

func varied(point benchmarks.Point) []v1alpha1.PointParameter {
	var out []v1alpha1.PointParameter
	for _, name := range point.Varied {
		out = append(out, v1alpha1.PointParameter{Name: name, Value: v1alpha1.SweepValue(point.Parameters[name])})
	}
	return out
}

// describe names a point by what varies, such as "iozone.recordSize=64k processes=4".
func describe(point benchmarks.Point) string {
	var words []string
	for _, name := range point.Varied {
		words = append(words, fmt.Sprintf("%s=%s", name, point.Parameters[name]))
	}
	if len(words) == 0 {
		return "the only point"
	}
	return strings.Join(words, " ")
}

// shortDuration writes a duration with its two largest units: "1h12m", "12m", "45s".
func shortDuration(d time.Duration) string {
	if d = d.Round(time.Second); d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	if d = d.Round(time.Minute); d < time.Hour {
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
}

// lastLines returns the last lines of an output that are not blank, in at most so many bytes.
func lastLines(output []byte, lines, most int) string {
	var kept []string
	for line := range strings.Lines(strings.ToValidUTF8(string(output[max(0, len(output)-16*most):]), "?")) {
		if line = strings.TrimRight(line, " \r\n\t"); line != "" {
			kept = append(kept, strings.ReplaceAll(line, "\x00", ""))
		}
	}
	kept = kept[max(0, len(kept)-lines):]
	text := strings.Join(kept, "\n")
	for len(text) > most {
		if len(kept) == 1 {
			return v1alpha1.Cut(text, most)
		}
		kept = slices.Delete(kept, 0, 1)
		text = strings.Join(kept, "\n")
	}
	return text
}
