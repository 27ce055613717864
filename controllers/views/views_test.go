package views

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
)

var scratch = types.NamespacedName{Namespace: "storage", Name: "scratch"}

func online(is bool) Target {
	return Target{Service: &v1alpha1.TargetService{State: v1alpha1.StateOf(is)}}
}

// started returns a board with both controllers, and a function that returns the names triggered since its last call.
func started(t *testing.T) (*Board, func() []string) {
	t.Helper()
	b := &Board{}
	newQueue := func() workqueue.TypedRateLimitingInterface[reconcile.Request] {
		q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		t.Cleanup(q.ShutDown)
		return q
	}
	targets, nodes := newQueue(), newQueue()
	NewWithT(t).Expect(b.Targets().Start(t.Context(), targets)).To(Succeed())
	NewWithT(t).Expect(b.Nodes().Start(t.Context(), nodes)).To(Succeed())
	return b, func() []string {
		var woken []string
		for _, q := range []workqueue.TypedRateLimitingInterface[reconcile.Request]{targets, nodes} {
			for q.Len() > 0 {
				request, _ := q.Get()
				woken = append(woken, request.String())
				q.Done(request)
			}
		}
		return woken
	}
}

func TestOnlyWhatHasChangedWakesWhoWritesIt(t *testing.T) {
	g := NewWithT(t)
	b, woken := started(t)
	view := func(second bool) FileSystem {
		return FileSystem{
			Targets: map[string]Target{"a": online(true), "b": online(second)},
			Nodes:   map[string]Node{"n": {Wanted: 2, Online: 1}},
		}
	}
	b.Show(scratch, "1", view(true))
	g.Expect(woken()).To(ConsistOf("storage/a", "storage/b", "storage/n"))
	b.Show(scratch, "1", view(true))
	g.Expect(woken()).To(BeEmpty())
	b.Show(scratch, "1", view(false))
	g.Expect(woken()).To(ConsistOf("storage/b"))
	now, _ := b.Target(scratch, "1", "b")
	g.Expect(now).To(Equal(online(false)))
	b.Show(scratch, "1", FileSystem{})
	g.Expect(woken()).To(ConsistOf("storage/a", "storage/b", "storage/n"), "nobody sees them any more")
}

func TestTheViewOfAnEarlierFileSystemOfTheSameNameCountsNothing(t *testing.T) {
	g := NewWithT(t)
	b, woken := started(t)
	there := func(uid types.UID) bool {
		_, target := b.Target(scratch, uid, "a")
		_, node := b.Node(scratch, uid, "n")
		g.Expect(node).To(Equal(target))
		return target
	}
	view := FileSystem{Targets: map[string]Target{"a": online(true)}, Nodes: map[string]Node{"n": {}}}
	g.Expect(there("1")).To(BeFalse())
	b.Show(scratch, "1", view)
	g.Expect(there("1")).To(BeTrue())
	g.Expect(there("2")).To(BeFalse())
	woken()
	b.Show(scratch, "2", view)
	g.Expect(woken()).To(ConsistOf("storage/a", "storage/n"), "those of the new one were never seen")
	g.Expect(there("1")).To(BeFalse())
	b.Forget(scratch)
	g.Expect(there("2")).To(BeFalse())
}
