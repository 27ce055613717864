package benchmarkrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/printed"
)

const (
	// maxCheckLog bounds the output that is read from a check, whose answer is one line.
	maxCheckLog = 256 << 10
	// maxTail bounds the part of an output that a message quotes.
	maxTail = reading.MaxTail
	// timeoutExitCode is the exit code of the node binary if it ended the tool at its time limit (spec.Benchmark.TimeoutSeconds).
	timeoutExitCode = 124
	// logPatience is how long an unreadable log is read again before the repetition counts as failed.
	logPatience = 2 * time.Minute
	// logTime is how long the outputs of a turn may take to come from the API server.
	logTime = time.Minute
)

// LogReader reads the output of a container.
type LogReader interface {
	// Logs opens the container's output, at most limit bytes from its start.
	Logs(ctx context.Context, pod types.NamespacedName, container string, limit int64) (io.ReadCloser, error)
}

// PodLogs reads logs from the API server.
type PodLogs struct {
	Clientset kubernetes.Interface
}

// Logs implements LogReader.
func (p PodLogs) Logs(ctx context.Context, pod types.NamespacedName, container string, limit int64) (io.ReadCloser, error) {
	stream, err := p.Clientset.CoreV1().Pods(pod.Namespace).
		GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, LimitBytes: &limit}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	return stream, nil
}

// given returns the record of a turn that had no job, with the reason.
func given(w *scope.Scope, d decision.Decision) turns.Record {
	at := w.Now.UTC().Truncate(time.Second)
	entry := w.Blank(d.Turn)
	entry.Started, entry.Finished, entry.Interrupted = at, at, d.Interrupted
	if d.Verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.Run.Spec.ToolName(), d.Verdict), maxTail)
	}
	return entry
}

// read returns the record of a turn that is over, from its pods' state and output. It returns errUnderWay while the output is being read.
func (r *Reconciler) read(ctx context.Context, w *scope.Scope, c *children.Child, d decision.Decision) (turns.Record, *turns.Raw, error) {
	entry := w.Blank(c.Turn)
	entry.Nodes, entry.Placement = c.Nodes, c.Object.GetAnnotations()[children.AnnotationPlacement]
	entry.Started, entry.Finished = c.Started.UTC(), w.Now.UTC().Truncate(time.Second)
	entry.PodChanges = podChanges(c)
	if c.Turn.Point >= len(w.Points) {
		return entry, nil, fmt.Errorf("the job %s is of a point that the run does not have; delete it", c.Name)
	}
	found := &finding{verdict: d.Verdict, invalid: d.Invalid}
	if !d.Unread {
		pods := found.podsOf(c)
		for _, pod := range pods {
			found.verdict = cmp.Or(found.verdict, endOf(w, pod, &entry))
		}
		var err error
		if found, err = r.readings.of(ctx, w, c, found, func(ctx context.Context, found *finding) error {
			return r.collect(ctx, w, c, pods, found)
		}, r.Moment); err != nil {
			return entry, nil, err
		}
	}
	if found.verdict == "" && found.invalid == "" {
		entry.Samples, entry.Version = found.answer.Samples, found.answer.Version
		entry.Throttled, entry.Clocks, found.invalid = found.answer.Throttled, found.answer.Clocks, found.answer.ClockTrouble
	}
	if found.invalid != "" {
		// Whatever the tool printed, it is not a measurement.
		entry.Samples, entry.Invalid = nil, v1alpha1.Cut(fmt.Sprintf("%s %s", w.Run.Spec.ToolName(), found.invalid), maxTail)
		found.verdict = ""
	}
	if found.verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.Run.Spec.ToolName(), found.verdict), maxTail)
		tail := []byte(found.answer.Tail)
		if len(tail) == 0 {
			tail = found.raw.End(maxEnd)
		}
		entry.Tail = text.LastLines(tail, reading.TailLines, maxTail-min(len(entry.Error), maxTail/2))
	}
	if r.Telemetry != nil && w.FileSystem != nil {
		nodes := w.Used(c.Turn.Point).Nodes()
		entry.Telemetry = r.Telemetry.Telemetry(ctx, client.ObjectKeyFromObject(w.FileSystem), nodes, entry.Started, entry.Finished)
	}
	return entry, &found.raw, nil
}

// maxPodChange bounds each text about pods in a record, in bytes.
const maxPodChange = 256

func podChanges(c *children.Child) (out []string) {
	for _, change := range c.PodChanges() {
		if len(out) < scope.MaxPodChanges {
			out = append(out, v1alpha1.Cut(change, maxPodChange))
		}
	}
	return out
}

// maxEnd is how much of the end of an output is searched for its last lines.
const maxEnd = 64 << 10

// finding is the result of a turn so far.
type finding struct {
	// verdict is why it is no result, and invalid what disturbed it. Both are the rest of a sentence about the tool.
	verdict, invalid string
	answer           reading.Answer
	raw              turns.Raw
}

// podsOf returns the pods whose output counts.
func (f *finding) podsOf(c *children.Child) []*corev1.Pod {
	pods := c.MainPods()
	if worker := c.FailedWorker(); worker != nil && !c.Succeeded && !c.Failed {
		pods = []*corev1.Pod{worker}
		f.verdict = cmp.Or(f.verdict, fmt.Sprintf("was stopped: its worker on node %s ended before the launcher", worker.Spec.NodeName))
	}
	if len(pods) == 0 {
		f.verdict = cmp.Or(f.verdict, "was lost: its pod was gone before its output could be read")
		if c.Message != "" {
			f.verdict += ": " + c.Message
		}
	}
	return pods
}

// endOf fills in how the container of a pod ended. It returns why the turn is no result, whatever was printed.
func endOf(w *scope.Scope, pod *corev1.Pod, entry *turns.Record) (verdict string) {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == children.ContainerName {
			entry.ImageID = status.ImageID
		}
	}
	end := children.Terminated(pod, children.ContainerName)
	if end == nil {
		return fmt.Sprintf("was never run: its pod %s",
			cmp.Or(children.PodTrouble(pod), strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message), "gives no reason"))
	}
	if entry.ExitCode == nil || *entry.ExitCode == 0 {
		entry.ExitCode = &end.ExitCode
	}
	if !end.FinishedAt.IsZero() {
		entry.Finished = end.FinishedAt.UTC()
	}
	switch {
	case end.ExitCode == timeoutExitCode:
		return fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)", w.PointTimeout())
	case end.ExitCode != 0:
		reason := ""
		if end.Reason != "" && end.Reason != "Error" {
			reason = fmt.Sprintf(" (%s)", end.Reason)
		}
		return fmt.Sprintf("ended with exit code %d%s", end.ExitCode, reason)
	}
	return ""
}

// unreadableError means that the API server did not return an output.
type unreadableError struct {
	pod *corev1.Pod
	err error
}

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// outputs opens one output after the other, and copies what is read into raw.
func (r *Reconciler) outputs(ctx context.Context, pods []*corev1.Pod, raw *turns.Raw) reading.Outputs {
	return func(yield func(io.Reader, error) bool) {
		ctx, cancel := context.WithTimeout(ctx, logTime)
		defer cancel()
		for _, pod := range pods {
			key := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			stream, err := r.Logs.Logs(ctx, key, children.ContainerName, benchmarks.MaxOutput)
			if err != nil {
				if !yield(nil, &unreadableError{pod, err}) {
					return
				}
				continue
			}
			more := yield(io.TeeReader(io.LimitReader(&blamed{stream, pod}, benchmarks.MaxOutput), raw), nil)
			_ = stream.Close() // it was read
			raw.Drop(printed.LastLine(raw.End(maxLastLine)))
			if !more {
				return
			}
		}
	}
}

// maxLastLine is longer than the last line of a log (printed.LastLine).
const maxLastLine = 256

// blamed is an output that marks its errors as those of the API server.
type blamed struct {
	io.Reader
	pod *corev1.Pod
}

func (b *blamed) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &unreadableError{b.pod, fmt.Errorf("read the log of pod %s: %w", b.pod.Name, err)}
	}
	return n, err
}

// collect reads the outputs of a turn. If they are already known to be no result, it only stores them.
func (r *Reconciler) collect(ctx context.Context, w *scope.Scope, c *children.Child, pods []*corev1.Pod, found *finding) error {
	if found.verdict != "" || found.invalid != "" {
		for output, err := range r.outputs(ctx, pods, &found.raw) {
			if err == nil {
				_, err = io.Copy(io.Discard, output)
			}
			if err := r.excuse(w, err, found); err != nil {
				return err
			}
		}
		return nil
	}
	request := reading.Request{Spec: &w.Run.Spec, Point: w.Points[c.Turn.Point], Step: c.Turn.Step, Nodes: map[string]string{}}
	request.OfServers = w.Plans[c.Turn.Point].Steps[c.Turn.Step].Command.Launch == benchmarks.OnManagement
	for i := range c.Pods {
		request.Nodes[c.Pods[i].Name] = c.Pods[i].Spec.NodeName
	}
	answer, err := r.Read(ctx, request, r.outputs(ctx, pods, &found.raw))
	if is := (*reading.EndedError)(nil); errors.As(err, &is) {
		found.invalid = unread(pods, is)
		return nil
	}
	if err != nil {
		return r.excuse(w, err, found)
	}
	found.answer, found.verdict = answer, answer.Verdict
	return nil
}

// unread describes an output that crashed its reader, as the rest of a sentence about the tool.
func unread(pods []*corev1.Pod, why *reading.EndedError) string {
	of := "pod " + pods[0].Name
	if len(pods) > 1 {
		of += fmt.Sprintf(" and of %d more", len(pods)-1)
	}
	return fmt.Sprintf("has no result: the reader of the output of %s %s; have it print less, or report it", of, why.Reason)
}

// excuse returns a verdict for an output that the API server did not return. If the output may still arrive, it returns an error.
func (r *Reconciler) excuse(w *scope.Scope, err error, found *finding) error {
	unreadable, is := errors.AsType[*unreadableError](err)
	if !is {
		return err
	}
	end := children.Terminated(unreadable.pod, children.ContainerName)
	switch {
	case end == nil || apierrors.IsNotFound(err):
		// The pod never started its container, or was removed. Its state has the reason.
		found.verdict = cmp.Or(found.verdict, "was lost: its pod was gone before its output could be read")
	case w.Now.Sub(end.FinishedAt.Time) < logPatience:
		return unreadable.err
	default:
		found.verdict = cmp.Or(found.verdict, fmt.Sprintf("ended, but its output could not be read: %v", err))
	}
	return nil
}
