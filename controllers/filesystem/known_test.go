package filesystem

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
)

// listing is a cache that counts how often StorageTargets are listed. A function may run during a list.
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
		for i := range targets.items {
			out = append(out, targets.items[i].Name)
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

func TestAFileSystemThatIsCreatedAgainUsesNoStateOfTheFormerOne(t *testing.T) {
	g, r := NewWithT(t), &Reconciler{Views: &views.Board{}}
	name := types.NamespacedName{Namespace: "storage", Name: "scratch"}
	first := r.remembered(name, "1")
	g.Expect(r.remembered(name, "1")).To(BeIdenticalTo(first))
	second := r.remembered(name, "2")
	g.Expect(second).NotTo(BeIdenticalTo(first))
	r.forget(name)
	g.Expect(r.remembered(name, "2")).NotTo(BeIdenticalTo(second))
}

func TestEachRelevantChangeOfANodeTriggersAPassAndNoHeartbeatDoes(t *testing.T) {
	node := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady}}}}
	for what, c := range map[string]struct {
		change  func(*corev1.Node)
		noticed bool
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
			NewWithT(t).Expect(nodeChanged().Update(event.UpdateEvent{ObjectOld: &node, ObjectNew: after})).To(Equal(c.noticed))
		})
	}
}

func TestAPassIsAskedForWhenATargetHasNews(t *testing.T) {
	before := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "a1", ResourceVersion: "1"}}
	before.Status.Service = &v1alpha1.TargetService{State: v1alpha1.StateOnline, UsedBytes: 5}
	fuller := func(t *v1alpha1.StorageTarget) {
		t.ResourceVersion = "2"
		t.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "parallelfs-storagetarget"}}
		t.Status.Service = &v1alpha1.TargetService{State: v1alpha1.StateOnline, UsedBytes: 10}
	}
	for name, c := range map[string]struct {
		change func(t *v1alpha1.StorageTarget)
		asks   bool
	}{
		"its disk has become fuller":              {fuller, false},
		"nothing is different (a new list)":       {func(*v1alpha1.StorageTarget) {}, true},
		"the agent has mounted it":                {func(t *v1alpha1.StorageTarget) { t.Status.MountPath = "/mnt/a1" }, true},
		"it is fuller, and the agent has news":    {func(t *v1alpha1.StorageTarget) { fuller(t); t.Status.MountPath = "/mnt/a1" }, true},
		"it is fuller, and somebody deletes it":   {func(t *v1alpha1.StorageTarget) { fuller(t); t.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, true},
		"it is fuller, and not online any more":   {func(t *v1alpha1.StorageTarget) { fuller(t); t.Status.Conditions = []metav1.Condition{{Type: "Online"}} }, true},
		"it is fuller, and offline":               {func(t *v1alpha1.StorageTarget) { fuller(t); t.Status.Service.State = v1alpha1.StateOffline }, true},
		"it is fuller, and its spec has changed":  {func(t *v1alpha1.StorageTarget) { fuller(t); t.Spec.Remove = true }, true},
		"it is fuller, and its labels are others": {func(t *v1alpha1.StorageTarget) { fuller(t); t.Labels = map[string]string{"a": "b"} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := *before.DeepCopy()
			c.change(&after)
			r, asked := &Reconciler{}, false
			events := r.targetChanges.watchNews(handler.Funcs{UpdateFunc: func(context.Context, event.UpdateEvent, queue) { asked = true }}, newsOfTarget)
			events.Update(t.Context(), event.UpdateEvent{ObjectOld: &before, ObjectNew: &after}, nil)
			g := NewWithT(t)
			g.Expect(asked).To(Equal(c.asks))
			count, _ := r.targetChanges.now()
			g.Expect(count == 1).To(Equal(c.asks), "what is known of targets is read anew")
		})
	}
}

func TestTargetsAreReadAgainAfterAConflictBecauseTheirVersionsMayBeOld(t *testing.T) {
	g, all := NewWithT(t), &listing{names: []string{"a1"}}
	r := &Reconciler{Client: all}
	r.targetChanges.watch(handler.Funcs{})
	read := func() int {
		_, err := r.targets(t.Context())
		g.Expect(err).NotTo(HaveOccurred())
		return all.lists
	}
	g.Expect(read()).To(Equal(1))
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "storagetargets"}, "a1")
	g.Expect(r.targetChanges.conflict(gone)).To(BeIdenticalTo(error(gone)))
	g.Expect(read()).To(Equal(1))
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "storagetargets"}, "a1", errors.New("it has changed"))
	g.Expect(r.targetChanges.conflict(conflict)).To(BeIdenticalTo(error(conflict)))
	g.Expect(read()).To(Equal(2))
}
