package benchmarkrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

const (
	// maxLog bounds what is read of a pod's output, in bytes. The kubelet itself rotates logs at 10 MiB unless told otherwise.
	maxLog = 16 << 20
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
func (w *world) given(d decision) record {
	at := w.now.UTC().Truncate(time.Second)
	entry := w.blank(d.turn)
	entry.Started, entry.Finished, entry.Interrupted = at, at, d.interrupted
	if d.verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.run.Spec.Tool, d.verdict), maxTail)
	}
	return entry
}

// blank is the record of a turn before anything is known of it but what it is.
func (w *world) blank(t turn) record {
	entry := record{Point: t.point, Repetition: t.repetition, WarmUp: t.warmUp, Attempt: t.attempt, Step: t.step}
	if t.point < len(w.points) {
		entry.Parameters = w.points[t.point].Parameters
		steps := w.plans[t.point].Steps
		step := steps[min(t.step, len(steps)-1)]
		entry.StepName, entry.Command = step.Name, step.Command.Argv
		for _, call := range step.Command.Calls {
			entry.Command = append(entry.Command, callWords(call)...)
		}
	}
	return entry
}

// callWords writes a call of a filesystem's own tools as words; how they are spelled is the backend's.
func callWords(call benchmarks.Call) []string {
	words := []string{call.Verb}
	for _, name := range slices.Sorted(maps.Keys(call.Arguments)) {
		words = append(words, name+"="+call.Arguments[name])
	}
	return words
}

// read makes the record of a turn that is over, from its pods' state and output.
func (r *Reconciler) read(ctx context.Context, w *world, c *child, d decision) (record, []byte, error) {
	entry := w.blank(c.turn)
	entry.Nodes, entry.Placement = c.nodes, c.object.GetAnnotations()[annotationPlacement]
	entry.Started, entry.Finished = c.started.UTC(), w.now.UTC().Truncate(time.Second)
	if c.turn.point >= len(w.points) {
		return entry, nil, fmt.Errorf("the job %s is of a point that the run does not have; delete it", c.name)
	}
	raw, verdict, err := r.outputs(ctx, w, c, &entry, d.verdict)
	if err != nil {
		return entry, nil, err
	}
	if verdict == "" && d.invalid == "" {
		verdict = r.parse(w, &entry, raw)
	}
	if d.invalid != "" {
		// Whatever it printed, it is not measured.
		entry.Samples, entry.Invalid, verdict = nil, v1alpha1.Cut(fmt.Sprintf("%s %s", w.run.Spec.Tool, d.invalid), maxTail), ""
	}
	if verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.run.Spec.Tool, verdict), maxTail)
		entry.Tail = lastLines(raw, tailLines, maxTail-min(len(entry.Error), maxTail/2))
	}
	if r.Telemetry != nil && w.fileSystem != nil {
		entry.Telemetry = r.Telemetry.Telemetry(ctx, w.fileSystem, entry.Started, entry.Finished)
	}
	return entry, raw, nil
}

// outputs reads the output of all main pods, one after the other, and fills in how they ended. The verdict says why it is no result,
// beginning with the one that is known already.
func (r *Reconciler) outputs(ctx context.Context, w *world, c *child, entry *record, verdict string) ([]byte, string, error) {
	pods := c.mainPods()
	if worker := c.failedWorker(); worker != nil && !c.succeeded && !c.failed {
		pods = []*corev1.Pod{worker}
		if verdict == "" {
			verdict = fmt.Sprintf("was given up: its worker on node %s ended before the launcher", worker.Spec.NodeName)
		}
	}
	if len(pods) == 0 {
		if verdict == "" {
			verdict = "was lost: its pod was gone before its output could be read"
		}
		if c.message != "" {
			verdict += ": " + c.message
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
func (r *Reconciler) output(ctx context.Context, w *world, pod *corev1.Pod, entry *record) (raw []byte, verdict string, err error) {
	ended := terminated(pod, containerName)
	raw, err = r.Logs.Logs(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, containerName, maxLog)
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) || ended == nil:
		// The pod never started its container, or was removed: its state says why.
		raw = nil
	case w.now.Sub(ended.FinishedAt.Time) < logPatience:
		return nil, "", err
	default:
		return nil, fmt.Sprintf("ended, but its output could not be read: %v", err), nil
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == containerName {
			entry.ImageID = status.ImageID
		}
	}
	if ended == nil {
		return raw, fmt.Sprintf("was never run: its pod %s",
			cmp.Or(podTrouble(pod), strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message), "gives no reason")), nil
	}
	if entry.ExitCode == nil || *entry.ExitCode == 0 {
		entry.ExitCode = &ended.ExitCode
	}
	if !ended.FinishedAt.IsZero() {
		entry.Finished = ended.FinishedAt.UTC()
	}
	switch {
	case ended.ExitCode == timeoutExitCode:
		return raw, fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)", w.pointTimeout()), nil
	case ended.ExitCode != 0:
		reason := ""
		if ended.Reason != "" && ended.Reason != "Error" {
			reason = fmt.Sprintf(" (%s)", ended.Reason)
		}
		return raw, fmt.Sprintf("ended with exit code %d%s", ended.ExitCode, reason), nil
	case len(raw) >= maxLog:
		return raw, fmt.Sprintf("printed more than %d MiB, which is not read", maxLog>>20), nil
	}
	return raw, "", nil
}

// parse fills in the samples, or says why there are none.
func (r *Reconciler) parse(w *world, entry *record, raw []byte) string {
	report, err := r.Tools[w.run.Spec.Tool].Parse(&w.run.Spec, w.points[entry.Point], entry.Step, withoutOwnLines(raw))
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

func terminated(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			return c.State.Terminated
		}
	}
	return nil
}

// podTrouble says what keeps a pod from running; it is empty while the pod runs or just starts. Texts that change from one look to
// the next, such as the time of a next try, are left out.
func podTrouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("can't be scheduled: %s", c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch waiting, ended := c.State.Waiting, c.State.Terminated; {
		case waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff"):
			return fmt.Sprintf("can't pull the image %s", c.Image)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
			return fmt.Sprintf("waits: %s: %s", waiting.Reason, waiting.Message)
		case ended != nil && ended.ExitCode != 0:
			return fmt.Sprintf("has its container %s ended with exit code %d: %s", c.Name, ended.ExitCode, lastLines([]byte(ended.Message), 2, 300))
		}
	}
	return ""
}
