package benchmarkrun

import (
	"bytes"
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
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/measured"
	"parallelfs.dev/operator/internal/node/printed"
)

const (
	// maxLog bounds what is read of a pod's output, in bytes. The kubelet itself rotates logs at 10 MiB unless told otherwise.
	maxLog = 16 << 20
	// maxCheckLog bounds what is read of a check, whose answer is one line.
	maxCheckLog = 256 << 10
	// tailLines and maxTail bound what a message quotes of an output.
	tailLines, maxTail = 10, 1500
	// timeoutExitCode is how the node binary ends a tool that took too long (spec.Benchmark.TimeoutSeconds).
	timeoutExitCode = 124
	// logPatience is how long a log that can't be read is asked for again before the repetition counts as failed.
	logPatience = 2 * time.Minute
)

// LogReader reads what a container has printed.
type LogReader interface {
	// Logs returns at most limit bytes from the start of the container's output.
	Logs(ctx context.Context, pod types.NamespacedName, container string, limit int64) ([]byte, error)
}

// PodLogs reads logs from the API server.
type PodLogs struct {
	Clientset kubernetes.Interface
}

// Logs implements LogReader.
func (p PodLogs) Logs(ctx context.Context, pod types.NamespacedName, container string, limit int64) ([]byte, error) {
	stream, err := p.Clientset.CoreV1().Pods(pod.Namespace).
		GetLogs(pod.Name, &corev1.PodLogOptions{Container: container, LimitBytes: &limit}).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	text, err := io.ReadAll(stream)
	if err = errors.Join(err, stream.Close()); err != nil {
		return nil, fmt.Errorf("read the log of pod %s: %w", pod.Name, err)
	}
	return text, nil
}

// given is the record of a turn that had no job, with why.
func given(w *scope.Scope, d decision.Decision) turns.Record {
	at := w.Now.UTC().Truncate(time.Second)
	entry := w.Blank(d.Turn)
	entry.Started, entry.Finished, entry.Interrupted = at, at, d.Interrupted
	if d.Verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.Run.Spec.ToolName(), d.Verdict), maxTail)
	}
	return entry
}

// read makes the record of a turn that is over, from its pods' state and output.
func (r *Reconciler) read(ctx context.Context, w *scope.Scope, c *children.Child, d decision.Decision) (turns.Record, []byte, error) {
	entry := w.Blank(c.Turn)
	entry.Nodes, entry.Placement = c.Nodes, c.Object.GetAnnotations()[children.AnnotationPlacement]
	entry.Started, entry.Finished = c.Started.UTC(), w.Now.UTC().Truncate(time.Second)
	entry.PodChanges = podChanges(c)
	if c.Turn.Point >= len(w.Points) {
		return entry, nil, fmt.Errorf("the job %s is of a point that the run does not have; delete it", c.Name)
	}
	var raw []byte
	verdict := d.Verdict
	if !d.Unread {
		var err error
		if raw, verdict, err = r.outputs(ctx, w, c, &entry, verdict); err != nil {
			return entry, nil, err
		}
	}
	if verdict == "" && d.Invalid == "" {
		verdict = r.parse(w, &entry, raw)
	}
	if verdict == "" && d.Invalid == "" && w.Plans[c.Turn.Point].Steps[c.Turn.Step].Command.Launch != benchmarks.OnManagement {
		report := machines(raw, c)
		entry.Throttled, entry.Clocks, d.Invalid = report.Throttled(), report.Clocks(), report.ClockTrouble()
	}
	if d.Invalid != "" {
		// Whatever it printed, it is not measured.
		entry.Samples, entry.Invalid, verdict = nil, v1alpha1.Cut(fmt.Sprintf("%s %s", w.Run.Spec.ToolName(), d.Invalid), maxTail), ""
	}
	if verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.Run.Spec.ToolName(), verdict), maxTail)
		entry.Tail = text.LastLines(raw, tailLines, maxTail-min(len(entry.Error), maxTail/2))
	}
	if r.Telemetry != nil && w.FileSystem != nil {
		nodes := w.Used(c.Turn.Point).Nodes()
		entry.Telemetry = r.Telemetry.Telemetry(ctx, client.ObjectKeyFromObject(w.FileSystem), nodes, entry.Started, entry.Finished)
	}
	return entry, raw, nil
}

// maxPodChange bounds each text of what a record says of its pods, in bytes.
const maxPodChange = 256

func podChanges(c *children.Child) (out []string) {
	for _, change := range c.PodChanges() {
		if len(out) < scope.MaxPodChanges {
			out = append(out, v1alpha1.Cut(change, maxPodChange))
		}
	}
	return out
}

// machines is what the node binary has said of the machines, by the names of their nodes where the pods are still there.
func machines(raw []byte, c *children.Child) measured.Report {
	report := measured.Read(raw)
	for i := range report {
		for _, pod := range c.Pods {
			if pod.Name == report[i].Name && pod.Spec.NodeName != "" {
				report[i].Name = "node " + pod.Spec.NodeName
			}
		}
	}
	return report
}

// outputs reads the output of all main pods, one after the other, and fills in how they ended. The verdict says why it is no result,
// beginning with the one that is known already.
func (r *Reconciler) outputs(ctx context.Context, w *scope.Scope, c *children.Child, entry *turns.Record, verdict string) (
	[]byte, string, error,
) {
	pods := c.MainPods()
	if worker := c.FailedWorker(); worker != nil && !c.Succeeded && !c.Failed {
		pods = []*corev1.Pod{worker}
		if verdict == "" {
			verdict = fmt.Sprintf("was given up: its worker on node %s ended before the launcher", worker.Spec.NodeName)
		}
	}
	if len(pods) == 0 {
		if verdict == "" {
			verdict = "was lost: its pod was gone before its output could be read"
		}
		if c.Message != "" {
			verdict += ": " + c.Message
		}
		return nil, verdict, nil
	}
	var all []byte
	for _, pod := range pods {
		raw, why, err := r.output(ctx, w, pod, entry)
		if err != nil {
			return nil, "", err
		}
		all = append(all, raw...)
		verdict = cmp.Or(verdict, why)
	}
	return all, verdict, nil
}

// output reads that of one pod.
func (r *Reconciler) output(ctx context.Context, w *scope.Scope, pod *corev1.Pod, entry *turns.Record) (
	raw []byte, verdict string, err error,
) {
	ended := children.Terminated(pod, children.ContainerName)
	raw, err = r.Logs.Logs(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, children.ContainerName, maxLog)
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) || ended == nil:
		// The pod never started its container, or was removed: its state says why.
		raw = nil
	case w.Now.Sub(ended.FinishedAt.Time) < logPatience:
		return nil, "", err
	default:
		return nil, fmt.Sprintf("ended, but its output could not be read: %v", err), nil
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == children.ContainerName {
			entry.ImageID = status.ImageID
		}
	}
	if ended == nil {
		return raw, fmt.Sprintf("was never run: its pod %s",
			cmp.Or(children.PodTrouble(pod), strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message), "gives no reason")), nil
	}
	if entry.ExitCode == nil || *entry.ExitCode == 0 {
		entry.ExitCode = &ended.ExitCode
	}
	if !ended.FinishedAt.IsZero() {
		entry.Finished = ended.FinishedAt.UTC()
	}
	switch {
	case ended.ExitCode == timeoutExitCode:
		return raw, fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)", w.PointTimeout()), nil
	case ended.ExitCode != 0:
		reason := ""
		if ended.Reason != "" && ended.Reason != "Error" {
			reason = fmt.Sprintf(" (%s)", ended.Reason)
		}
		return raw, fmt.Sprintf("ended with exit code %d%s", ended.ExitCode, reason), nil
	case len(raw) >= maxLog:
		return raw, fmt.Sprintf("printed more than %d MiB, which is not read", maxLog>>20), nil
	}
	output, err := printed.Check(raw)
	if err != nil {
		return raw, err.Error(), nil //nolint:nilerr // a log that is not whole is a verdict on the repetition
	}
	return output, "", nil
}

// parse fills in the samples, or says why there are none.
func (r *Reconciler) parse(w *scope.Scope, entry *turns.Record, raw []byte) (verdict string) {
	defer func() {
		// A fault of a parser is one of this output, and not of the pass, which would be tried again without end.
		if fault := recover(); fault != nil {
			entry.Samples, verdict = nil, fmt.Sprintf("printed something that its parser fails on; report it: %v", fault)
		}
	}()
	// The calls of a filesystem's own tools are told apart by the lines of the node binary.
	if w.Plans[entry.Point].Steps[entry.Step].Command.Launch != benchmarks.OnManagement {
		raw = withoutOwnLines(raw)
	}
	report, err := r.Tools[w.Run.Spec.ToolName()].Parse(&w.Run.Spec, w.Points[entry.Point], entry.Step, raw)
	if err != nil {
		return fmt.Sprintf("printed something that can't be read as its result: %v", err)
	}
	entry.Samples, entry.Version = report.Samples, report.Version
	return ""
}

// withoutOwnLines drops what the node binary itself has printed between the tool's lines: it begins with "parallelfs: ".
func withoutOwnLines(raw []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(raw) {
		if !bytes.HasPrefix(line, []byte("parallelfs: ")) {
			kept = append(kept, line...)
		}
	}
	return kept
}
