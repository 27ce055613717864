//go:build envtest

package filesystem_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/lease"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// measures starts a BenchmarkRun that has the lease of the filesystem, as its controller does.
func (w *world) measures() *v1alpha1.BenchmarkRun {
	w.t.Helper()
	run := &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "creates", Namespace: w.namespace},
		Spec: v1alpha1.BenchmarkRunSpec{
			Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: "scratch"}}, Tool: "iozone", IOzone: &v1alpha1.IOzoneSpec{},
			Clients: v1alpha1.BenchmarkClients{NodeSelector: v1alpha1.NodeSelector{"storage-of": w.namespace}},
		},
	}
	w.Expect(server.Client.Create(w.ctx, run)).To(Succeed())
	w.Expect(w.asks(run)).To(BeEmpty())
	return run
}

// asks returns the holder of the lease after a run asks for it.
func (w *world) asks(run *v1alpha1.BenchmarkRun) string {
	w.t.Helper()
	by, err := lease.Acquire(w.ctx, server.Client, server.Client, lease.Of(w.get()), lease.OfRun(run), time.Now())
	w.Expect(err).NotTo(HaveOccurred())
	return by
}

// ends ends a run. The run then no longer holds the lease, although it has not released it.
func (w *world) ends(run *v1alpha1.BenchmarkRun) {
	w.t.Helper()
	w.Expect(server.Client.Get(w.ctx, client.ObjectKeyFromObject(run), run)).To(Succeed())
	now := metav1.Now()
	run.Status.CompletionTime = &now
	w.Expect(server.Client.Status().Update(w.ctx, run)).To(Succeed())
}

// finishJobs simulates the Job controller: all Jobs have succeeded. MooseFS shows the result of its job without further steps.
func (w *world) finishJobs() {
	w.t.Helper()
	now := metav1.Now()
	for _, job := range w.jobs() {
		if job.Status.Succeeded > 0 {
			continue
		}
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}
		w.Expect(server.Client.Status().Update(w.ctx, &job)).To(Succeed())
	}
}

func (w *world) uids() map[string]string {
	out := map[string]string{}
	for _, p := range w.pods() {
		if !strings.HasSuffix(p.Name, ".pod") { // the others belong to jobs
			out[p.Name] = string(p.UID)
		}
	}
	return out
}

// holds proves that a change waits for a run, and that the filesystem is Ready for the run meanwhile.
func (w *world) holds(changes ...string) {
	w.t.Helper()
	w.holdsFor(v1alpha1.ReasonBenchmarkRunning, changes...)
}

// holdsFor is holds with the reason, which shows whether the run should stop for the change.
func (w *world) holdsFor(reason string, changes ...string) {
	w.t.Helper()
	held := w.condition(v1alpha1.ConditionChangesHeld)
	w.Expect(held).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", reason),
		HaveField("Message", HavePrefix("BenchmarkRun creates has the lease"))))
	for _, change := range changes {
		w.Expect(held.Message).To(ContainSubstring(change))
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(HaveField("Reason", reason), "the spec is not carried out yet")
}

func TestARestartWaveAndANodeThatJoinsWaitForABenchmarkAndGoOnAfterIt(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"pool-of": w.namespace}
	})
	label := func(node string) {
		var n corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &n)).To(Succeed())
		n.Labels["pool-of"] = w.namespace
		w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
	}
	label(w.nodes[0])
	label(w.nodes[1])
	w.settle()
	w.finishJobs()
	w.settle()
	run := w.measures()
	before := w.uids()

	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
	})
	w.settle()
	w.Expect(w.uids()).To(Equal(before))
	w.holds("the daemons of scratch-chunkserver-ssd change", "suspend the run (spec.suspend) or delete it")

	label(w.nodes[2])
	w.settle()
	w.Expect(w.uids()).To(Equal(before))
	w.holds("node " + w.nodes[2] + " joins storage pool ssd")
	w.Expect(w.poolNodes("ssd")).To(Equal(w.nodes[:2]), "nothing of it is recorded")
	c := server.Killable(t, -1)
	for range 3 {
		w.Expect(w.reconcile(c)).To(Succeed())
	}
	w.Expect(c.Writes()).To(BeEmpty(), "waiting writes nothing")

	w.ends(run)
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionChangesHeld)).To(BeZero())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.poolNodes("ssd")).To(Equal(w.nodes))
	for name, uid := range before {
		if strings.Contains(name, "chunkserver") {
			w.Expect(w.uids()[name]).NotTo(Equal(uid), name)
		}
	}
	w.Expect(w.asks(w.another(run))).To(BeEmpty(), "the change is over, and the lease is free")
}

// another returns a run that does not exist yet.
func (w *world) another(run *v1alpha1.BenchmarkRun) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "next", Namespace: run.Namespace, UID: "next"}}
}

func TestADaemonThatIsDownIsStartedAlthoughABenchmarkHasTheLease(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(nil)
	w.settle()
	w.finishJobs()
	w.settle()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
	})
	w.Expect(w.reconcile(server.Client)).To(Succeed(), "the daemons are to be restarted, and one is")
	w.runPods()
	outdated := slices.IndexFunc(w.pods(), func(p corev1.Pod) bool {
		for _, s := range w.sets() {
			if s.Name == "scratch-chunkserver-ssd" && strings.HasPrefix(p.Name, s.Name+".") {
				return p.Annotations[backend.TemplateHashAnnotation] != s.Spec.Template.Annotations[backend.TemplateHashAnnotation]
			}
		}
		return false
	})
	w.Expect(outdated).To(BeNumerically(">=", 0))
	down := w.pods()[outdated]
	down.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	w.Expect(server.Client.Status().Update(w.ctx, &down)).To(Succeed())
	fs := w.get()
	w.Expect(lease.Release(w.ctx, server.Client, server.Client, lease.Of(fs).Key, lease.OfFileSystem(fs))).To(Succeed())
	w.measures()

	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(ContainElement("delete *v1.Pod " + down.Name))
}

func TestADrainOfAMooseFSWaitsForABenchmarkAndKeepsTheNextOneWaiting(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	more := w.disk(w.nodes[1], "more")
	w.alive = true
	w.fileSystem(w.onDisks(metadata, append(data, more)...))
	w.settle()
	w.finishJobs()
	w.settle()
	run := w.measures()
	before := w.uids()

	w.person(w.target(more), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
	w.settle()
	w.Expect(w.uids()).To(Equal(before), "a chunkserver learns at its start what it has to empty")
	w.Expect(w.service(more)).To(HaveField("Removal", v1alpha1.RemovalState("")))
	w.holdsFor(v1alpha1.ReasonBenchmarkStopping, "chunkserver on node "+w.nodes[1]+" is to be restarted: the disk "+w.target(more).Name+" is to be emptied")

	w.ends(run)
	w.settle()
	w.Expect(w.service(more)).To(HaveField("Removal", v1alpha1.RemovalMovingData))
	w.Expect(w.condition(v1alpha1.ConditionChangesHeld)).To(BeZero())
	w.Expect(w.asks(w.another(run))).To(Equal("FileSystem scratch"), "data is being moved")

	w.moved = true
	w.settle()
	w.Expect(w.asks(w.another(run))).To(BeEmpty())
}

func TestADrainOfABeeGFSAndADiskThatIsAddedWaitForABenchmark(t *testing.T) {
	w := newWorld(t)
	_, _, data := w.beeGFSOnDisks()
	w.settle()
	run := w.measures()
	commands := len(w.hive.commands)

	w.person(w.target(data[3]), func(t *v1alpha1.StorageTarget) { t.Spec.Remove, t.Spec.WritersStopped = true, true })
	w.settle()
	w.holdsFor(v1alpha1.ReasonBenchmarkStopping, "job scratch-configure-")
	more := w.disk(w.nodes[1], "data2")
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = references(append(slices.Clone(data), more)...)
	})
	w.settle()
	w.holdsFor(v1alpha1.ReasonBenchmarkStopping, "job scratch-configure-", "is taken up as scratch-ssd-")
	w.Expect(w.hive.commands).To(HaveLen(commands), "BeeGFS was told nothing")
	w.Expect(more.formats).To(BeZero())

	w.ends(run)
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionChangesHeld)).To(BeZero())
	w.Expect(more.formats).To(Equal(1))
	w.Expect(w.hive.pools).To(HaveKeyWithValue(int32(100), "draining"))
	w.Expect(of(w.target(data[3]), v1alpha1.ConditionSafeToRemove).Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.asks(w.another(run))).To(BeEmpty())
}

func TestADeletionDoesNotWaitForABenchmark(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(nil)
	w.settle()
	w.finishJobs()
	w.settle()
	w.measures()
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	w.settle()
	w.Expect(w.sets()).To(BeEmpty())
}

func TestAnOperatorThatIsKilledWhileAChangeWaitedEndsInTheSameState(t *testing.T) {
	t.Parallel()
	change := func(w *world) { w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Copies = 1 }) }
	for n := range 3 {
		t.Run(fmt.Sprintf("after %d writes", n), func(t *testing.T) {
			w := newWorld(t)
			w.alive = true
			w.fileSystem(nil)
			w.settle()
			w.finishJobs()
			w.settle()
			run := w.measures()
			change(w)
			if err := w.settleWith(server.Killable(t, n)); err != nil {
				w.Expect(err).To(MatchError(apiserver.ErrKilled))
			}
			w.settle()
			w.holds("job scratch-")
			w.ends(run)
			w.settle()
			w.finishJobs()
			w.settle()
			w.Expect(w.condition(v1alpha1.ConditionChangesHeld)).To(BeZero())
			w.Expect(w.asks(w.another(run))).To(BeEmpty())
			w.forget()
		})
	}
}
