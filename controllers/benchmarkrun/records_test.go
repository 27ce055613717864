package benchmarkrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/printed"
)

// told is a LogReader with one answer: the log of a program that printed a text, or an incomplete one without its first bytes or its last
// line.
type told struct {
	text    string
	rotated int
	cut     bool
	err     error
}

func (l told) Logs(context.Context, types.NamespacedName, string, int64) (io.ReadCloser, error) {
	text := []byte(l.text)
	if !l.cut {
		text = printed.Log(text)[l.rotated:]
	}
	return io.NopCloser(bytes.NewReader(text)), l.err
}

// number is a tool that prints a number.
type number struct{ benchmarks.Tool }

func (number) Parse(_ *v1alpha1.BenchmarkRunSpec, _ benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	sample := benchmarks.Sample{Name: "write", Unit: "kB/s"}
	_, err := fmt.Sscanf(string(output), "%f\n", &sample.Value)
	return benchmarks.Report{Version: "1.0", Samples: []benchmarks.Sample{sample}}, err
}

// echo is a tool whose version is its whole output.
type echo struct{ benchmarks.Tool }

func (echo) Parse(_ *v1alpha1.BenchmarkRunSpec, _ benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	return benchmarks.Report{Version: string(output)}, nil
}

func TestTheFindingsOfARepetition(t *testing.T) {
	ended := func(role string, code int32, reason string) corev1.Pod {
		pod := scopetest.PodOf(role, corev1.PodFailed)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: children.ContainerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(scopetest.Now.Add(-time.Second)),
		}}}}
		return pod
	}
	for name, c := range map[string]struct {
		pods   []corev1.Pod
		failed bool
		logs   told
		says   string
		tail   string
		value  float64
	}{
		"is the number that the tool printed": {pods: []corev1.Pod{ended(children.RoleClient, 0, "Completed")}, logs: told{text: "42\n"}, value: 42},
		"leaves out the lines of the node binary": {
			pods: []corev1.Pod{ended(children.RoleClient, 0, "Completed")}, logs: told{text: "parallelfs: 2 workers are ready\n42\n"}, value: 42,
		},
		"is not that of a worker": {
			pods: []corev1.Pod{scopetest.PodOf(children.RoleWorker, corev1.PodRunning), ended(children.RoleLauncher, 0, "Completed")}, logs: told{text: "42\n"}, value: 42,
		},
		"is none of a log that the kubelet has rotated": {
			pods: []corev1.Pod{ended(children.RoleClient, 0, "Completed")}, logs: told{text: "261\n60\n", rotated: 4},
			says: "iozone printed 7 bytes, and 3 of 7 are left: the kubelet has rotated the log", tail: "60\nparallelfs: printed 7 bytes, crc32c 68fa4a9c",
		},
		"is none of a log that lacks its end": {
			pods: []corev1.Pod{ended(children.RoleLauncher, 0, "Completed")}, logs: told{text: "42\n", cut: true},
			says: "iozone ended, but its output was read without its last line", tail: "42",
		},
		"is none when the log of one of several servers is not whole": {
			pods: []corev1.Pod{ended(children.RoleServer, 0, "Completed"), ended(children.RoleServer, 0, "Completed")}, logs: told{text: "42\n", rotated: 1},
			says: "2 of 3 are left",
			tail: "2\nparallelfs: printed 3 bytes, crc32c 63b58bab\n2\nparallelfs: printed 3 bytes, crc32c 63b58bab",
		},
		"names why the kernel ended the tool": {
			pods: []corev1.Pod{ended(children.RoleClient, 137, "OOMKilled")}, failed: true, logs: told{text: "begun\n", cut: true},
			says: "iozone ended with exit code 137 (OOMKilled)", tail: "begun",
		},
		"names a pod that is gone, and what its job says": {failed: true, says: "iozone was lost: its pod was gone before its output could be read: deadline exceeded"},
		"names what kept a pod from running": {
			pods: []corev1.Pod{func() corev1.Pod {
				pod := scopetest.PodOf(children.RoleClient, corev1.PodFailed)
				pod.Status.Reason, pod.Status.Message = "UnexpectedAdmissionError", "no memory left"
				return pod
			}()}, failed: true, logs: told{err: errors.New("no container yet")},
			says: "iozone was never run: its pod UnexpectedAdmissionError no memory left",
		},
		"is that of the worker when it ends before the launcher": {
			pods: []corev1.Pod{ended(children.RoleWorker, 1, "Error"), scopetest.PodOf(children.RoleLauncher, corev1.PodRunning)}, logs: told{text: "/mnt/scratch is not mounted\n", cut: true},
			says: "iozone was stopped: its worker on node n1 ended before the launcher", tail: "/mnt/scratch is not mounted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			job := scopetest.Job(w, 0, 1, time.Minute)
			job.Pods, job.Failed, job.Message, job.Nodes = c.pods, c.failed, "deadline exceeded", []string{"n1"}
			r := &Reconciler{Logs: c.logs, Read: reading.Here(reading.Tools{v1alpha1.ToolIOzone: number{}})}
			entry, _, err := r.read(t.Context(), w, job, decision.Decision{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entry.Nodes).To(Equal([]string{"n1"}))
			g.Expect(entry.Started).To(Equal(scopetest.Now.Add(-time.Minute)))
			if c.says == "" {
				g.Expect(entry.Error).To(BeEmpty())
				g.Expect(entry.Samples).To(HaveLen(1))
				g.Expect(entry.Samples[0].Value).To(Equal(c.value))
				return
			}
			g.Expect(entry.Samples).To(BeEmpty())
			g.Expect(entry.Error).To(ContainSubstring(c.says))
			g.Expect(entry.Tail).To(Equal(c.tail))
		})
	}
	t.Run("has the lines by which the node binary ends the calls of a filesystem's own tools", func(t *testing.T) {
		g := NewWithT(t)
		w := scopetest.Idle()
		w.Plans[0].Steps[0].Command.Launch = benchmarks.OnManagement
		job := scopetest.Job(w, 0, 1, time.Minute)
		job.Succeeded, job.Pods = true, []corev1.Pod{ended(children.RoleClient, 0, "Completed")}
		r := &Reconciler{
			Logs: told{text: "parallelfs: write has ended\n"}, Read: reading.Here(reading.Tools{v1alpha1.ToolIOzone: echo{}}),
		}
		entry, _, err := r.read(t.Context(), w, job, decision.Decision{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entry.Version).To(Equal("parallelfs: write has ended\n"))
	})
	t.Run("is requested again while the log of an ended pod can't be read, and fails after a while", func(t *testing.T) {
		g := NewWithT(t)
		w := scopetest.Idle()
		job := scopetest.Job(w, 0, 1, time.Hour)
		job.Succeeded, job.Pods = true, []corev1.Pod{ended(children.RoleClient, 0, "Completed")}
		r := &Reconciler{Logs: told{err: errors.New("no route to host")}, Read: reading.Here(nil)}
		_, _, err := r.read(t.Context(), w, job, decision.Decision{})
		g.Expect(err).To(MatchError("no route to host"))
		w.Now = scopetest.Now.Add(logPatience)
		entry, _, err := r.read(t.Context(), w, job, decision.Decision{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entry.Error).To(Equal("iozone ended, but its output could not be read: no route to host"))
	})
}

// kept returns raw output.
func kept(text string) *turns.Raw {
	var raw turns.Raw
	_, _ = raw.Write([]byte(text)) // it accepts everything
	return &raw
}

func TestTheRawOutputOfARunIsBounded(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	raw := kept("42\n")
	output := func(size string) corev1.ConfigMap {
		return corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{children.AnnotationRaw: size}}}
	}
	w.Outputs = []corev1.ConfigMap{output("8388608"), output("8388607"), {}}
	var entry turns.Record
	g.Expect(bounded(w, &entry, raw)).To(Equal(raw))
	g.Expect(entry.Truncated).To(BeEmpty())
	w.Outputs[1] = output("8388608")
	g.Expect(bounded(w, &entry, raw).Len()).To(BeZero())
	cm := &corev1.ConfigMap{}
	g.Expect(add(cm, entry, "rep-1", &turns.Raw{})).To(Succeed())
	g.Expect(cm.Data["rep-1.json"]).To(ContainSubstring("none of 3 bytes of raw output was kept: the run has 16 MiB already"))
	g.Expect(cm.Annotations).To(HaveKeyWithValue(children.AnnotationRaw, "0"))
	g.Expect(add(cm, turns.Record{}, "rep-2", raw)).To(Succeed())
	g.Expect(cm.Annotations).To(HaveKeyWithValue(children.AnnotationRaw, fmt.Sprint(len(cm.BinaryData["rep-2.txt.gz"]))))
}
