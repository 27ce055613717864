//go:build envtest

package filesystem_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystemnode"
)

// lookAll makes an operator reconcile the FileSystem and all objects for parts of it, each with a client of its own.
func (w *world) lookAll(fileSystem, targets, nodes client.Client) {
	w.t.Helper()
	w.Expect(errors.Join(w.reconcile(fileSystem), w.reconcileTargets(targets))).To(Succeed())
	r := &filesystemnode.Reconciler{Client: nodes, Reader: nodes, Recorder: w.events, Views: w.board, Clock: clock.RealClock{}}
	for _, n := range w.fileSystemNodes() {
		_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&n)})
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// start starts everything that a FileSystem on three disks needs, and counts the writes to its FileSystemNodes.
func (w *world) start() (data []*fakeDisk, writes int) {
	w.t.Helper()
	w.alive = true
	metadata, data := w.threeDisks()
	w.fileSystem(w.onDisks(metadata, data...))
	nodes := server.Killable(w.t, -1)
	look := func() { w.lookAll(server.Client, server.Client, nodes) }
	for range 3 { // first nothing answers, then disks are made, then servers start
		look()
	}
	for range 40 {
		look()
		changed := w.agents()
		look()
		if changed = w.runPods() || changed; !changed && w.ready().Status == metav1.ConditionTrue {
			break
		}
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	return data, len(nodes.Writes())
}

func TestTheStatusOfANodeIsWrittenWhenItsServersStartAndWhenTheyAreUp(t *testing.T) {
	w := newWorld(t)
	_, writes := w.start()
	for node, n := range w.fileSystemNodes() {
		w.Expect(meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%s: %+v", node, n.Status)
		w.Expect(n.Generation).To(BeNumerically(">", 1), "its servers were told of disks as they were ready")
	}
	w.Expect(writes).To(Equal(2 * len(w.nodes)))
}

func TestADeadDiskCausesOneWriteForEachObjectThatShowsItAndOneEvent(t *testing.T) {
	w := newWorld(t)
	data, _ := w.start()
	w.messages()
	data[1].dead = true
	target := w.target(data[1])
	w.report(target, w.act(target, data[1]))
	fileSystem, targets, nodes := server.Killable(t, -1), server.Killable(t, -1), server.Killable(t, -1)
	for range 3 {
		w.lookAll(fileSystem, targets, nodes)
	}
	w.inventory(data[1].node) // a few seconds later
	for range 3 {
		w.lookAll(fileSystem, targets, nodes)
	}
	w.Expect(fileSystem.Writes()).To(HaveLen(1))
	w.Expect(targets.Writes()).To(HaveLen(1))
	w.Expect(nodes.Writes()).To(HaveLen(1))
	w.Expect(w.messages()).To(ConsistOf(HavePrefix("Warning TargetsNotReady ")), "the agent has told it of the target")

	w.Expect(of(w.target(data[1]), v1alpha1.ConditionOnline).Status).To(Equal(metav1.ConditionFalse))
	w.Expect(w.condition(v1alpha1.ConditionDegraded).Status).To(Equal(metav1.ConditionTrue))
	n := w.fileSystemNodes()[w.nodes[1]]
	w.Expect(n.Status.Summary.Targets).To(Equal("0/1"))
}
