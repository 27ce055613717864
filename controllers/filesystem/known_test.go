package filesystem

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
)

// listing is a cache that counts how often StorageTargets are listed. While it lists them, another thing may happen.
type listing struct {
	client.Client
	names     []string
	lists     int
	meanwhile func()
}

func (l *listing) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	l.lists++
	list, _ := into.(*v1alpha1.StorageTargetList)
	for _, name := range l.names {
		t := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}}
		t.Spec.Node = name[:1]
		list.Items = append(list.Items, t)
	}
	if l.meanwhile != nil {
		l.meanwhile()
	}
	return nil
}

func TestTargetsAreReadAgainWhenOneOfThemHasChangedSince(t *testing.T) {
	g, all := NewWithT(t), &listing{names: []string{"b2", "a3", "b1", "a1"}}
	r := &Reconciler{Client: all}
	names := func() (out []string) {
		targets, err := r.targets(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		for i := range targets {
			out = append(out, targets[i].Name)
		}
		return out
	}
	g.Expect(names()).To(Equal([]string{"a1", "a3", "b1", "b2"}))
	names()
	g.Expect(all.lists).To(Equal(2), "nobody notes what changes")

	asked := 0
	events := r.targetChanges.watch(handler.Funcs{UpdateFunc: func(context.Context, event.UpdateEvent, queue) {
		asked++
		all.names[0] = "b3"
		g.Expect(names()).To(Equal([]string{"a1", "a3", "b1", "b3"}), "a pass that is asked for sees why")
		all.names[0] = "b2"
	}})
	names()
	names()
	g.Expect(all.lists).To(Equal(3), "nothing has changed since")
	events.Update(t.Context(), event.UpdateEvent{}, nil)
	g.Expect(asked).To(Equal(1))
	g.Expect(all.lists).To(Equal(4))
	for n, happens := range []func(){
		func() { events.Create(t.Context(), event.CreateEvent{}, nil) },
		func() { events.Delete(t.Context(), event.DeleteEvent{}, nil) },
		func() { events.Generic(t.Context(), event.GenericEvent{}, nil) },
	} {
		happens()
		names()
		g.Expect(all.lists).To(Equal(5 + n))
	}

	events.Delete(t.Context(), event.DeleteEvent{}, nil)
	all.meanwhile = func() { events.Delete(t.Context(), event.DeleteEvent{}, nil) }
	names()
	all.meanwhile = nil
	before := all.lists
	names()
	g.Expect(all.lists).To(Equal(before+1), "the list may be from before the change")
}

func TestAFileSystemThatWasMadeAnewTakesNothingOfTheOneBefore(t *testing.T) {
	g, r := NewWithT(t), &Reconciler{Views: &views.Board{}}
	name := types.NamespacedName{Namespace: "storage", Name: "scratch"}
	first := r.remembered(name, "1")
	g.Expect(r.remembered(name, "1")).To(BeIdenticalTo(first))
	second := r.remembered(name, "2")
	g.Expect(second).NotTo(BeIdenticalTo(first))
	r.forget(name)
	g.Expect(r.remembered(name, "2")).NotTo(BeIdenticalTo(second))
}

func TestOfANodeEachChangeThatPassesLookAtIsSeenAndNoHeartbeat(t *testing.T) {
	node := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}}}}
	for what, c := range map[string]struct {
		change func(*corev1.Node)
		seen   bool
	}{
		"a heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.Now() }, false},
		"Ready":       {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue }, true},
		"a taint": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}
		}, true},
		"a label":  {func(n *corev1.Node) { n.Labels = map[string]string{"rack": "r1"} }, true},
		"a cordon": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, true},
		"an address": {func(n *corev1.Node) {
			n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
		}, true},
		"a boot": {func(n *corev1.Node) { n.Status.NodeInfo.BootID = "2" }, true},
	} {
		t.Run(what, func(t *testing.T) {
			after := node.DeepCopy()
			c.change(after)
			NewWithT(t).Expect(nodeChanged().Update(event.UpdateEvent{ObjectOld: &node, ObjectNew: after})).To(Equal(c.seen))
		})
	}
}
