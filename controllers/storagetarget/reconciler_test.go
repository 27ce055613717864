package storagetarget

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

var errBroken = errors.New("the API server is broken")

// cluster is a target in a cluster: its FileSystem, its node with an agent, whose inventory has its disk, its FileSystemNode, and its
// namespace. A pass has seen it online.
type cluster struct {
	*WithT
	target     *v1alpha1.StorageTarget
	fileSystem *v1alpha1.FileSystem
	node       *corev1.Node
	inventory  *v1alpha1.NodeInventory
	member     *v1alpha1.FileSystemNode
	namespace  *corev1.Namespace
	board      *views.Board
	// unread is a kind that can't be read. unwritten is why nothing can be written.
	unread    client.Object
	unwritten error
	writes    int
	events    *events.FakeRecorder
	client    client.Client
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	one := oneTarget()
	c := &cluster{
		WithT: NewWithT(t), target: one.target, fileSystem: one.fileSystem,
		node:      &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "oss1"}},
		inventory: &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: "oss1"}},
		member: &v1alpha1.FileSystemNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: backend.FileSystemNodeName("scratch", "oss1")},
			Spec:       v1alpha1.FileSystemNodeSpec{FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "1-2-3"}},
		},
		namespace: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "storage"}},
		board:     &views.Board{}, events: events.NewFakeRecorder(8),
	}
	c.inventory.Status.BlockDevices = []v1alpha1.BlockDevice{{KernelName: "sda", Target: "storage/another"}, {KernelName: "sdb", Target: "storage/" + c.target.Name}}
	c.board.Show(client.ObjectKeyFromObject(c.fileSystem), c.fileSystem.UID, views.FileSystem{Targets: map[string]views.Target{c.target.Name: *one.observed}})
	return c
}

// deleted deletes an object that another finalizer keeps.
func deleted(o client.Object, finalizers ...string) {
	o.SetDeletionTimestamp(new(metav1.NewTime(time.Unix(1, 0))))
	o.SetFinalizers(append(finalizers, "example.com/keeps"))
}

func (c *cluster) reconciler() *Reconciler {
	scheme := runtime.NewScheme()
	c.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	c.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1alpha1.StorageTarget{})
	for _, o := range []client.Object{c.target, c.fileSystem, c.namespace} {
		builder = builder.WithObjects(o)
	}
	if c.node != nil {
		builder = builder.WithObjects(c.node)
	}
	if c.inventory != nil {
		builder = builder.WithObjects(c.inventory)
	}
	if c.member != nil {
		builder = builder.WithObjects(c.member)
	}
	c.client = builder.WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if c.unread != nil && fmt.Sprintf("%T", o) == fmt.Sprintf("%T", c.unread) {
				return errBroken
			}
			return w.Get(ctx, key, o, options...)
		},
		Patch: func(ctx context.Context, w client.WithWatch, o client.Object, p client.Patch, options ...client.PatchOption) error {
			c.writes++
			if c.unwritten != nil {
				return c.unwritten
			}
			return w.Patch(ctx, o, p, options...)
		},
		SubResourceApply: func(ctx context.Context, w client.Client, sub string, o runtime.ApplyConfiguration, options ...client.SubResourceApplyOption) error {
			c.writes++
			if c.unwritten != nil {
				return c.unwritten
			}
			return w.SubResource(sub).Apply(ctx, o, options...)
		},
	}).Build()
	return &Reconciler{Client: c.client, Reader: c.client, Recorder: c.events, Views: c.board}
}

// present is the target in the cluster, nil if it is gone.
func (c *cluster) present() *v1alpha1.StorageTarget {
	found := &v1alpha1.StorageTarget{}
	err := c.client.Get(context.Background(), client.ObjectKeyFromObject(c.target), found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	c.Expect(err).NotTo(HaveOccurred())
	return found
}

func (c *cluster) pass(r *Reconciler) (ctrl.Result, error) {
	return r.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c.target)})
}

func TestThePassKnowsOfATargetWhatIsInTheClusterNow(t *testing.T) {
	destroys := func(c *cluster) {
		c.fileSystem.Spec.DeletionPolicy, c.fileSystem.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, "1-2-3"
	}
	type known struct{ fileSystem, observed, node, agent, disk, gaveUp, namespaceEnds bool }
	all := known{fileSystem: true, observed: true, node: true, agent: true, disk: true}
	but := func(change func(k *known)) known {
		k := all
		change(&k)
		return k
	}
	for name, c := range map[string]struct {
		given func(c *cluster)
		want  known
	}{
		"all of it is there":                           {func(*cluster) {}, all},
		"its FileSystem is a new one":                  {func(c *cluster) { c.fileSystem.UID = "9" }, but(func(k *known) { k.fileSystem, k.observed = false, false })},
		"no pass has seen it":                          {func(c *cluster) { c.board = &views.Board{} }, but(func(k *known) { k.observed = false })},
		"its node is gone":                             {func(c *cluster) { c.node = nil }, but(func(k *known) { k.node = false })},
		"its node has no agent":                        {func(c *cluster) { c.inventory = nil }, but(func(k *known) { k.agent, k.disk = false, false })},
		"its disk is not there":                        {func(c *cluster) { c.inventory.Status.BlockDevices = c.inventory.Status.BlockDevices[:1] }, but(func(k *known) { k.disk = false })},
		"it is the first disk":                         {func(c *cluster) { c.inventory.Status.BlockDevices = c.inventory.Status.BlockDevices[1:] }, all},
		"its node is given up while it is not deleted": {func(c *cluster) { c.member.Spec.GivenUp = &v1alpha1.NodeGivenUp{} }, all},
		"its node is given up":                         {func(c *cluster) { deleted(c.target); c.member.Spec.GivenUp = &v1alpha1.NodeGivenUp{} }, but(func(k *known) { k.gaveUp = true })},
		"the node of an earlier FileSystem is given up": {func(c *cluster) {
			deleted(c.target)
			c.member.Spec.GivenUp, c.member.Spec.FileSystem.UID = &v1alpha1.NodeGivenUp{}, "9"
		}, all},
		"its node is not given up":         {func(c *cluster) { deleted(c.target) }, all},
		"its node is no part of it":        {func(c *cluster) { deleted(c.target); c.member = nil }, all},
		"its namespace goes":               {func(c *cluster) { deleted(c.target); deleted(c.namespace); destroys(c) }, but(func(k *known) { k.namespaceEnds = true })},
		"its namespace stays":              {func(c *cluster) { deleted(c.target); destroys(c) }, all},
		"its namespace goes, and it stays": {func(c *cluster) { deleted(c.namespace); destroys(c) }, all},
		"its namespace goes, with no wipe": {func(c *cluster) { deleted(c.target); deleted(c.namespace) }, all},
		"the wipe of another one is wanted": {func(c *cluster) {
			deleted(c.target)
			deleted(c.namespace)
			destroys(c)
			c.fileSystem.Spec.ConfirmDestroy = "9"
		}, all},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			c.given(cl)
			f, err := cl.reconciler().gather(t.Context(), cl.target)
			cl.Expect(err).NotTo(HaveOccurred())
			cl.Expect(known{f.fileSystem != nil, f.observed != nil, f.node, f.agent, f.disk != nil, f.gaveUp, f.namespaceEnds}).To(Equal(c.want))
			if f.disk != nil {
				cl.Expect(f.disk.KernelName).To(Equal("sdb"))
			}
		})
	}
}

func TestAPassThatCannotReadOneThingWritesNothing(t *testing.T) {
	for _, unread := range []client.Object{
		&v1alpha1.StorageTarget{}, &v1alpha1.FileSystem{}, &corev1.Node{}, &v1alpha1.NodeInventory{}, &v1alpha1.FileSystemNode{}, &corev1.Namespace{},
	} {
		c := newCluster(t)
		deleted(c.target, v1alpha1.Finalizer)
		c.fileSystem.Spec.DeletionPolicy, c.fileSystem.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, "1-2-3"
		c.unread = unread
		_, err := c.pass(c.reconciler())
		c.Expect(err).To(MatchError(errBroken), "%T", unread)
		c.Expect(c.writes).To(BeZero(), "%T", unread)
	}
}

func TestATargetIsReleasedOnceAndItsReleaseIsAnEvent(t *testing.T) {
	released := func(c *cluster) {
		deleted(c.target, v1alpha1.Finalizer)
		c.target.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReleased, Status: metav1.ConditionTrue}}
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "storagetargets"}, "scratch-ssd-01234567", errors.New("it was modified"))
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "storagetargets"}, "scratch-ssd-01234567")
	for name, c := range map[string]struct {
		given func(c *cluster)
		// writes counts the writes, kept is true if the finalizer stays.
		writes  int
		kept    bool
		event   string
		again   bool
		message string
	}{
		"its agent has let go of it": {given: released, writes: 1, event: "Normal Released "},
		"it is given up": {given: func(c *cluster) {
			deleted(c.target, v1alpha1.Finalizer)
			c.member.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
		},
			writes: 1, event: "Warning GaveUp "},
		"its FileSystem is gone, too":      {given: func(c *cluster) { released(c); c.fileSystem.UID = "9" }, writes: 1, event: "Normal Released "},
		"its agent has not let go of it":   {given: func(c *cluster) { deleted(c.target, v1alpha1.Finalizer) }, writes: 1, kept: true},
		"only another finalizer is left":   {given: func(c *cluster) { released(c); c.target.Finalizers = []string{"example.com/keeps"} }},
		"it has changed since it was read": {given: func(c *cluster) { released(c); c.unwritten = conflict }, writes: 1, kept: true, again: true},
		"it is gone already":               {given: func(c *cluster) { released(c); c.unwritten = gone; c.board = &views.Board{} }, writes: 1, kept: true},
		"it can't be written":              {given: func(c *cluster) { released(c); c.unwritten = errBroken }, writes: 1, kept: true, message: "remove the finalizer of scratch-ssd-01234567"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := newCluster(t)
			c.given(cl)
			result, err := cl.pass(cl.reconciler())
			if c.message != "" {
				cl.Expect(err).To(MatchError(ContainSubstring(c.message)))
			} else {
				cl.Expect(err).NotTo(HaveOccurred())
			}
			cl.Expect(result.RequeueAfter > 0).To(Equal(c.again))
			cl.Expect(cl.writes).To(Equal(c.writes))
			cl.Expect(cl.present().Finalizers).To(ContainElement("example.com/keeps"))
			if c.kept {
				cl.Expect(cl.present().Finalizers).To(ContainElement(v1alpha1.Finalizer))
			} else {
				cl.Expect(cl.present().Finalizers).NotTo(ContainElement(v1alpha1.Finalizer))
			}
			if c.event == "" {
				cl.Expect(cl.events.Events).NotTo(Receive())
			} else {
				cl.Expect(cl.events.Events).To(Receive(HavePrefix(c.event)))
			}
		})
	}
}

func TestAStatusIsWrittenOnceForEachChange(t *testing.T) {
	c := newCluster(t)
	c.target.Status.Service = nil
	r := c.reconciler()
	passes := func(writes int) *v1alpha1.StorageTarget {
		t.Helper()
		c.writes = 0
		for range 2 {
			_, err := c.pass(r)
			c.Expect(err).NotTo(HaveOccurred())
		}
		c.Expect(c.writes).To(Equal(writes))
		return c.present()
	}
	status := passes(1).Status
	c.Expect(status.Conditions).To(ConsistOf(And(HaveField("Type", v1alpha1.ConditionOnline), HaveField("Status", metav1.ConditionTrue))))
	c.Expect(status.Service).To(HaveValue(HaveField("UsedBytes", BeEquivalentTo(int64(1)<<40))))
	c.Expect(status.Provisioned).NotTo(BeNil(), "what the agent wrote stays")

	target := *oneTarget().observed
	target.Service = target.Service.DeepCopy()
	target.Service.UsedBytes = 7
	show := func() {
		c.board.Show(client.ObjectKeyFromObject(c.fileSystem), c.fileSystem.UID, views.FileSystem{Targets: map[string]views.Target{c.target.Name: target}})
	}
	show()
	c.Expect(passes(1).Status.Service.UsedBytes).To(BeEquivalentTo(7), "only what the filesystem says of it has changed")
	target.Service = nil
	show()
	status = passes(1).Status
	c.Expect(status.Service).To(BeNil())
	c.Expect(status.Conditions).To(ConsistOf(HaveField("Status", metav1.ConditionFalse)))

	c.board = &views.Board{}
	r.Views = c.board
	c.Expect(passes(0).Status).To(Equal(status), "nothing is known after a start, and nothing is written")

	target.Service = &v1alpha1.TargetService{State: v1alpha1.StateOnline}
	show()
	c.unwritten = errBroken
	_, err := c.pass(r)
	c.Expect(err).To(MatchError(ContainSubstring("write the status of scratch-ssd-01234567: the API server is broken")))
	c.unwritten = apierrors.NewNotFound(schema.GroupResource{Resource: "storagetargets"}, c.target.Name)
	for len(c.events.Events) > 0 {
		<-c.events.Events
	}
	_, err = c.pass(r)
	c.Expect(err).NotTo(HaveOccurred())
	c.Expect(c.events.Events).NotTo(Receive(), "what was not written is no news")
}

func TestOnlyDisksOfTargetsThatReportAboutThemselvesWakeTheirTargets(t *testing.T) {
	g := NewWithT(t)
	failing := &v1alpha1.DiskHealth{State: v1alpha1.DiskFailing}
	n := &v1alpha1.NodeInventory{}
	n.Status.BlockDevices = []v1alpha1.BlockDevice{{Target: "storage/a", Health: failing}, {Target: "storage/b"}, {Health: failing}}
	g.Expect(healthOf(n)).To(Equal(map[string]*v1alpha1.DiskHealth{"storage/a": failing}))
	g.Expect(healthOf(&corev1.Node{})).To(BeEmpty())

	broken := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errBroken
		},
	})
	g.Expect((&Reconciler{Client: broken}).requests(t.Context())).To(BeNil())
}
