package benchmarkrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"parallelfs.dev/operator/api/v1alpha1"
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

// read makes the record of a repetition that is over, from its pod's state and output.
func (r *Reconciler) read(ctx context.Context, w *world, c *child, verdict string) (record, []byte, error) {
	entry := record{
		Point: c.point, Repetition: c.repetition, Nodes: c.nodes,
		Started: c.created.UTC(), Finished: w.now.UTC().Truncate(time.Second),
	}
	if c.point >= len(w.points) {
		return entry, nil, fmt.Errorf("the job %s is of a point that the run does not have; delete it", c.name)
	}
	point := w.points[c.point]
	entry.Parameters, entry.Command = point.Parameters, w.commands[c.point].Argv

	pod := c.mainPod()
	if worker := c.failedWorker(); worker != nil && !c.succeeded && !c.failed {
		pod = worker
		if verdict == "" {
			verdict = fmt.Sprintf("was given up: its worker on node %s ended before the launcher", worker.Spec.NodeName)
		}
	}
	if pod == nil {
		if verdict == "" {
			verdict = "was lost: its pod was gone before its output could be read"
		}
		if c.message != "" {
			verdict += ": " + c.message
		}
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.run.Spec.Tool, verdict), maxTail)
		return entry, nil, nil
	}

	raw, err := r.Logs.Logs(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}, containerName, maxLog)
	ended := terminated(pod, containerName)
	switch {
	case err == nil:
	case apierrors.IsNotFound(err) || ended == nil:
		// The pod never started its container, or was removed: its state says why.
		raw = nil
	case w.now.Sub(ended.FinishedAt.Time) < logPatience:
		return entry, nil, err
	case verdict == "":
		verdict = fmt.Sprintf("ended, but its output could not be read: %v", err)
	}
	if ended != nil {
		entry.ExitCode = &ended.ExitCode
		if !ended.FinishedAt.IsZero() {
			entry.Finished = ended.FinishedAt.UTC()
		}
	}
	if verdict == "" {
		verdict = r.judge(w, &entry, ended, pod, raw)
	}
	if verdict != "" {
		entry.Error = v1alpha1.Cut(fmt.Sprintf("%s %s", w.run.Spec.Tool, verdict), maxTail)
		entry.Tail = lastLines(raw, tailLines, maxTail-min(len(entry.Error), maxTail/2))
	}
	return entry, raw, nil
}

// judge fills in the samples, or says why there are none.
func (r *Reconciler) judge(w *world, entry *record, ended *corev1.ContainerStateTerminated, pod *corev1.Pod, raw []byte) string {
	switch {
	case ended == nil:
		return fmt.Sprintf("was never run: its pod %s", cmp.Or(podTrouble(pod), strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message), "gives no reason"))
	case ended.ExitCode == timeoutExitCode:
		return fmt.Sprintf("did not end within %s (spec.limits.pointTimeout)", w.pointTimeout())
	case ended.ExitCode != 0:
		reason := ""
		if ended.Reason != "" && ended.Reason != "Error" {
			reason = fmt.Sprintf(" (%s)", ended.Reason)
		}
		return fmt.Sprintf("ended with exit code %d%s", ended.ExitCode, reason)
	case len(raw) >= maxLog:
		return fmt.Sprintf("printed more than %d MiB, which is not read", maxLog>>20)
	}
	samples, err := r.Tools[w.run.Spec.Tool].Parse(&w.run.Spec, w.points[entry.Point], withoutOwnLines(raw))
	if err != nil {
		return fmt.Sprintf("printed something that can't be read as its result: %v", err)
	}
	entry.Samples = samples
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
