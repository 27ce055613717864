package benchmarkrun

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

func unpack(g *WithT, packed []byte) string {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	g.Expect(err).NotTo(HaveOccurred())
	text, err := io.ReadAll(reader)
	g.Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// noise is text that does not compress.
func noise(size int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	out := make([]byte, size)
	_, _ = random.Read(out) // it never fails
	return out
}

func TestAConfigMapHoldsARepetition(t *testing.T) {
	t.Run("whole, when it is small", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		g.Expect(record{Point: 1, Repetition: 2}.addTo(&cm, "rep-2", []byte("out\n"))).To(Succeed())
		g.Expect(unpack(g, cm.BinaryData["rep-2.txt.gz"])).To(Equal("out\n"))
		var entry record
		g.Expect(json.Unmarshal([]byte(cm.Data["rep-2.json"]), &entry)).To(Succeed())
		g.Expect(entry).To(Equal(record{Point: 1, Repetition: 2}))
	})
	t.Run("with its first and last part, and a word on what is missing, when it is large", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		raw := append(append([]byte("first"), bytes.Repeat([]byte("x"), 2*maxRaw)...), "last"...)
		g.Expect(record{Repetition: 1}.addTo(&cm, "rep-1", raw)).To(Succeed())
		kept := unpack(g, cm.BinaryData["rep-1.txt.gz"])
		g.Expect(kept).To(HavePrefix("firstx"))
		g.Expect(kept).To(HaveSuffix("xlast"))
		g.Expect(kept).To(ContainSubstring("bytes were left out here"))
		g.Expect(cm.Data["rep-1.json"]).To(ContainSubstring(fmt.Sprintf("of %d bytes of raw output were kept", len(raw))))
	})
	t.Run("with less and less of the output when many share it, but with all results", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		for repetition := 1; repetition <= 20; repetition++ {
			entry := record{Repetition: repetition, Samples: []benchmarks.Sample{{Name: "write", Unit: "kB/s", Value: 1}}}
			g.Expect(entry.addTo(&cm, fmt.Sprintf("rep-%d", repetition), noise(200<<10))).To(Succeed())
		}
		size := 0
		for key, value := range cm.Data {
			size += len(key) + len(value)
		}
		for key, value := range cm.BinaryData {
			size += len(key) + len(value)
		}
		g.Expect(size).To(BeNumerically("<", 1<<20), "the API takes no more")
		g.Expect(cm.Data).To(HaveLen(20))
		g.Expect(cm.Data["rep-20.json"]).To(ContainSubstring("raw output was kept"))
	})
}

func TestOnlyTheRunsOwnConfigMapsCount(t *testing.T) {
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "sweep", UID: "mine"}}
	held := func(owner types.UID, data map[string]string) corev1.ConfigMap {
		return corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "sweep-p000", OwnerReferences: []metav1.OwnerReference{{UID: owner, Controller: new(true)}}}, Data: data,
		}
	}
	t.Run("one of an older run of that name does not", func(t *testing.T) {
		g := NewWithT(t)
		found, err := decodeRecords([]corev1.ConfigMap{held("other", map[string]string{"rep-1.json": `{"point":0,"repetition":1}`})}, run)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).To(BeEmpty())
	})
	t.Run("one that was damaged is named, with what to do", func(t *testing.T) {
		g := NewWithT(t)
		_, err := decodeRecords([]corev1.ConfigMap{held("mine", map[string]string{"rep-1.json": `{`})}, run)
		g.Expect(err).To(MatchError(ContainSubstring("read rep-1.json of ConfigMap sweep-p000")))
		g.Expect(err).To(MatchError(ContainSubstring("remove that key to run the repetition again")))
	})
}

// told is a LogReader with one answer.
type told struct {
	text string
	err  error
}

func (l told) Logs(context.Context, types.NamespacedName, string, int64) ([]byte, error) {
	return []byte(l.text), l.err
}

// number is a tool that prints a number.
type number struct{ benchmarks.Tool }

func (number) Parse(_ *v1alpha1.BenchmarkRunSpec, _ benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	sample := benchmarks.Sample{Name: "write", Unit: "kB/s"}
	_, err := fmt.Sscanf(string(output), "%f\n", &sample.Value)
	return benchmarks.Report{Version: "1.0", Samples: []benchmarks.Sample{sample}}, err
}

func TestWhatARepetitionFound(t *testing.T) {
	ended := func(role string, code int32, reason string) corev1.Pod {
		pod := podOf(role, corev1.PodFailed)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, FinishedAt: metav1.NewTime(now.Add(-time.Second)),
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
		"is the number that the tool printed": {pods: []corev1.Pod{ended(roleClient, 0, "Completed")}, logs: told{text: "42\n"}, value: 42},
		"leaves out the lines of the node binary": {
			pods: []corev1.Pod{ended(roleClient, 0, "Completed")}, logs: told{text: "parallelfs: 2 workers are ready\n42\n"}, value: 42,
		},
		"is not that of a worker": {
			pods: []corev1.Pod{podOf(roleWorker, corev1.PodRunning), ended(roleLauncher, 0, "Completed")}, logs: told{text: "42\n"}, value: 42,
		},
		"names why the kernel ended the tool": {
			pods: []corev1.Pod{ended(roleClient, 137, "OOMKilled")}, failed: true, logs: told{text: "begun\n"},
			says: "iozone ended with exit code 137 (OOMKilled)", tail: "begun",
		},
		"names a pod that is gone, and what its job says": {failed: true, says: "iozone was lost: its pod was gone before its output could be read: deadline exceeded"},
		"names what kept a pod from running": {
			pods: []corev1.Pod{func() corev1.Pod {
				pod := podOf(roleClient, corev1.PodFailed)
				pod.Status.Reason, pod.Status.Message = "UnexpectedAdmissionError", "no memory left"
				return pod
			}()}, failed: true, logs: told{err: errors.New("no container yet")},
			says: "iozone was never run: its pod UnexpectedAdmissionError no memory left",
		},
		"is that of the worker when it ends before the launcher": {
			pods: []corev1.Pod{ended(roleWorker, 1, "Error"), podOf(roleLauncher, corev1.PodRunning)}, logs: told{text: "/mnt/scratch is not mounted\n"},
			says: "iozone was given up: its worker on node n1 ended before the launcher", tail: "/mnt/scratch is not mounted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			job := w.job(0, 1, time.Minute)
			job.pods, job.failed, job.message, job.nodes = c.pods, c.failed, "deadline exceeded", []string{"n1"}
			r := &Reconciler{Logs: c.logs, Tools: map[v1alpha1.BenchmarkTool]benchmarks.Tool{v1alpha1.ToolIOzone: number{}}}
			entry, _, err := r.read(t.Context(), w, job, decision{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(entry.Nodes).To(Equal([]string{"n1"}))
			g.Expect(entry.Started).To(Equal(now.Add(-time.Minute)))
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
	t.Run("is asked for again while the log of a pod that has ended can't be read, and then given up", func(t *testing.T) {
		g := NewWithT(t)
		w := idle()
		job := w.job(0, 1, time.Hour)
		job.succeeded, job.pods = true, []corev1.Pod{ended(roleClient, 0, "Completed")}
		r := &Reconciler{Logs: told{err: errors.New("no route to host")}}
		_, _, err := r.read(t.Context(), w, job, decision{})
		g.Expect(err).To(MatchError("no route to host"))
		w.now = now.Add(logPatience)
		entry, _, err := r.read(t.Context(), w, job, decision{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(entry.Error).To(Equal("iozone ended, but its output could not be read: no route to host"))
	})
}
