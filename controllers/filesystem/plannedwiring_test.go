//go:build envtest

package filesystem_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend"
)

func TestAFileSystemStaysReadyWhileTheOperatorRestartsItsChunkserversInTurn(t *testing.T) {
	w := newWorld(t)
	w.alter = func(operator *filesystem.Reconciler) { operator.Order = clock.RealClock{} }
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.finishJobs()
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), w.ready().Message)
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
	})

	c := server.Killable(t, -1)
	operator := w.operator(c) // one process restarts all of them, so it has planned every absence
	away := map[string]bool{}
	pass := func() {
		t.Helper()
		w.data = nil
		for _, node := range w.nodes {
			if _, runs := w.runs("chunkserver", "ssd", node); !runs {
				away[node] = true
				w.data = &backend.DataHealth{} // the master has not counted the copies of chunks yet
			}
		}
		_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), w.ready().Message)
	}
	for settled := false; !settled; {
		before := len(c.Writes())
		for range 3 { // the new configuration, the end of a pod, and a pass while the server is away
			pass()
		}
		changed := w.agents()
		changed = w.runPods() || changed
		settled = len(c.Writes()) == before && !changed
	}
	w.Expect(away).To(HaveLen(len(w.nodes)), "each chunkserver was away once")
}
