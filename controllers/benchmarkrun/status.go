package benchmarkrun

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/conditions"
)

const (
	maxCurrent = 256
	maxMessage = 2048
)

// derive makes the status from the spec, the records and what was decided. Only the times of start and end, the directory
// and the conditions' times of change come from the status before.
func derive(w *world, d decision) (v1alpha1.BenchmarkRunStatus, error) {
	status := *w.run.Status.DeepCopy()
	status.ObservedGeneration = w.run.Generation
	if d.reason != "" {
		conditions.Set(&status.Conditions, w.run.Generation, v1alpha1.ConditionSucceeded, d.status, d.progress, d.reason, d.message)
	}
	if w.run.Status.CompletionTime != nil || w.invalid != "" {
		return status, nil
	}
	now := metav1.NewTime(w.now.UTC().Truncate(time.Second))
	if d.intends {
		status.Directory = w.root()
		if status.StartTime == nil {
			status.StartTime = &now
		}
	}
	if d.cleaned {
		status.Directory = ""
	}
	if d.ended {
		status.CompletionTime = &now
	}

	points, err := w.pointStatuses(d)
	if err != nil {
		return status, err
	}
	status.Points = points
	ended, failed := 0, int32(0)
	for _, p := range points {
		switch p.State {
		case v1alpha1.PointFailed:
			ended++
			failed++
		case v1alpha1.PointSucceeded:
			ended++
		}
	}
	status.FailedPoints = failed
	status.Progress = fmt.Sprintf("%d/%d", ended, len(points))
	status.Current, status.TimeLeft = "", ""
	if d.running {
		status.Current = v1alpha1.Cut(w.current(d.point, d.repetition), maxCurrent)
	}
	sum, count := w.records.total()
	status.ActiveSeconds = int64(sum / time.Second)
	if count > 0 && !d.ended {
		status.TimeLeft = shortDuration(sum / time.Duration(count) * time.Duration(w.repetitionsLeft()))
	}
	return status, nil
}

func (w *world) pointStatuses(d decision) ([]v1alpha1.PointStatus, error) {
	out := make([]v1alpha1.PointStatus, 0, len(w.points))
	for i, point := range w.points {
		p := v1alpha1.PointStatus{Index: int32(i), State: v1alpha1.PointPending, Parameters: varied(point)}
		recorded := w.records[i]
		if len(recorded) > 0 {
			p.Output = pointName(w.run.Name, i)
			p.State = v1alpha1.PointRunning
		}
		for _, entry := range recorded {
			if entry.Error == "" {
				p.Repetitions++
			}
		}
		failure, failed := w.records.failure(i)
		switch {
		case failed:
			p.State = v1alpha1.PointFailed
			p.Message = failureMessage(failure)
		case w.pointEnded(i):
			p.State = v1alpha1.PointSucceeded
			metrics, err := w.metrics(i)
			if err != nil {
				return nil, fmt.Errorf("compute the metrics of point %d: %w", i, err)
			}
			p.Metrics = metrics
		case d.ended && len(recorded) > 0:
			p.State = v1alpha1.PointFailed
			p.Message = fmt.Sprintf("spec.limits.timeout was reached after %d of %d repetitions", len(recorded), w.run.Spec.Repetitions)
		case d.running && d.point == i:
			p.State = v1alpha1.PointRunning
		}
		out = append(out, p)
	}
	return out, nil
}

func failureMessage(entry record) string {
	message := fmt.Sprintf("repetition %d: %s", entry.Repetition, entry.Error)
	if entry.Tail != "" {
		message += "\n" + entry.Tail
	}
	return v1alpha1.Cut(message, maxMessage)
}

// repetitionsLeft counts those that have no record, of the points that have not ended.
func (w *world) repetitionsLeft() int {
	left := 0
	for i := range w.points {
		if !w.pointEnded(i) {
			left += int(w.run.Spec.Repetitions) - len(w.records[i])
		}
	}
	return left
}

// samples returns those of a point's repetitions, in their order.
func (w *world) samples(point int) [][]benchmarks.Sample {
	var out [][]benchmarks.Sample
	for repetition := 1; repetition <= int(w.run.Spec.Repetitions); repetition++ {
		if entry, ok := w.records[point][repetition]; ok {
			out = append(out, entry.Samples)
		}
	}
	return out
}

func varied(point benchmarks.Point) []v1alpha1.PointParameter {
	var out []v1alpha1.PointParameter
	for _, name := range point.Varied {
		out = append(out, v1alpha1.PointParameter{Name: name, Value: point.Parameters[name]})
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
