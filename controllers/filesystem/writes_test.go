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

func TestTheStatusOfANodeIsWrittenAsItBeginsToStartAndAsItIsUp(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	metadata, data := w.threeDisks()
	w.fileSystem(w.onDisks(metadata, data...))
	writes := server.Killable(t, -1)
	r := &filesystemnode.Reconciler{Client: writes, Reader: writes, Recorder: w.events, Views: w.board, Clock: clock.RealClock{}}
	look := func() {
		w.Expect(errors.Join(w.reconcile(server.Client), w.reconcileTargets(server.Client))).To(Succeed())
		for _, n := range w.fileSystemNodes() {
			_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&n)})
			w.Expect(err).NotTo(HaveOccurred())
		}
	}
	for range 3 { // nothing answers, then disks are made, then servers start
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
	for node, n := range w.fileSystemNodes() {
		w.Expect(meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue(), "%s: %+v", node, n.Status)
		w.Expect(n.Generation).To(BeNumerically(">", 1), "its servers were told of disks as they were ready")
	}
	w.Expect(writes.Writes()).To(HaveLen(2*len(w.nodes)), "two for each node")
}
