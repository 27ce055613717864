//go:build envtest

package agent

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/mountlock"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/node/spec"
)

// paired is one of the two nodes of a pair, with its agent. The test supplies the agent's access to the disk.
type paired struct {
	*world
	name  string
	node  *v1alpha1.FileSystemNode
	files *NodeFiles
	pairs *Pairs
	// keeps is the reason why the node does not release the target or does not take it up. looks counts the checks, and during is called in
	// each.
	keeps  string
	looks  int
	during func()
	// proveUnmounted is called when other nodes may mount the disk again.
	proveUnmounted func()
}

// Close implements io.Closer.
func (p *paired) Close() error {
	if p.proveUnmounted != nil {
		p.proveUnmounted()
	}
	return nil
}

func (p *paired) look() string {
	p.looks++
	if p.during != nil {
		p.during()
	}
	return p.keeps
}

// pair makes a target that two nodes may serve, whose disk is already formatted.
func (w *world) pair() (one, two *paired, target *v1alpha1.StorageTarget) {
	w.t.Helper()
	both := []string{w.node.Name, w.namespace + "-oss2"}
	target = w.target("a", both[0], func(t *v1alpha1.StorageTarget) {
		t.Spec.SecondNode, t.Spec.Format.FSType = both[1], v1alpha1.Ldiskfs
		t.Spec.Lustre = &v1alpha1.LustreTarget{
			Kind: v1alpha1.LustreOST, FSName: "pfs", Index: new(int32(3)), ManagementNIDs: []string{"10.0.0.1@tcp"},
			ServiceNodes: []v1alpha1.LustreServiceNode{{NIDs: []string{"10.0.0.2@tcp"}}, {NIDs: []string{"10.0.0.3@tcp"}}},
		}
	})
	of := func(name string) *paired {
		p := &paired{world: w, name: name, node: w.fileSystemNode("scratch", name, storage("a"))}
		p.files = w.nodeFiles()
		p.files.NodeName, p.files.BootID, p.files.Client = name, "start of "+name, cacheOf{server.Client, name}
		p.pairs = &Pairs{
			Client: server.Client, Live: server.Client, NodeName: name, Resync: time.Minute, Files: p.files,
			Now: func() time.Time { return time.Unix(1700000000, 0) }, devices: &inUse{},
			ProveUnmounted: func(context.Context, *v1alpha1.StorageTarget) (io.Closer, string, error) {
				if why := p.look(); why != "" {
					return nil, why, nil
				}
				return p, "", nil
			},
			TakeUp: func(context.Context, *v1alpha1.StorageTarget) (string, error) { return p.look(), nil },
		}
		p.passes()
		return p
	}
	return of(both[0]), of(both[1]), target
}

// cacheOf is the cache of an agent, which contains only the targets of its own node.
type cacheOf struct {
	client.Client
	node string
}

func (c cacheOf) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	err := c.Client.Get(ctx, key, object, options...)
	if t, is := object.(*v1alpha1.StorageTarget); is && err == nil && t.Spec.Node != c.node {
		return apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("storagetargets").GroupResource(), key.Name)
	}
	return err
}

// passes makes one pass of each of the node's controllers that write the configuration of its server.
func (p *paired) passes() {
	p.t.Helper()
	_, err := p.writes(p.files, p.node)
	p.Expect(err).NotTo(HaveOccurred())
	_, err = p.moves()
	p.Expect(err).NotTo(HaveOccurred())
}

func (p *paired) moves() (ctrl.Result, error) {
	return p.pairs.Reconcile(p.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(p.node)})
}

// told returns the target in the configuration of the node's server, or nil.
func (p *paired) told() *spec.Target {
	p.t.Helper()
	if all := p.reads(p.fileOf(p.files, "scratch")).Members[0].Targets; len(all) > 0 {
		return &all[0]
	}
	return nil
}

// lock is the path of the lock of the target's mount.
func (p *paired) lock() string {
	return filepath.Join(filepath.Dir(p.fileOf(p.files, "scratch")), "a.lock")
}

// wanted sets the node that shall serve the target.
func (w *world) wanted(target *v1alpha1.StorageTarget, node string) {
	w.t.Helper()
	live := w.live(target)
	live.Spec.ServeOn = node
	w.Expect(server.Client.Update(w.t.Context(), live)).To(Succeed())
}

// holder returns the holder of a target.
func (w *world) holder(target *v1alpha1.StorageTarget) v1alpha1.TargetHolder {
	w.t.Helper()
	if h := w.live(target).Status.Holder; h != nil {
		return *h
	}
	return v1alpha1.TargetHolder{}
}

func TestATargetOfTwoNodesMovesToTheOtherNodeAndBack(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	w.Expect(one.told().Served.BootID).To(Equal("start of " + one.name))
	w.Expect(one.lock()).To(BeARegularFile())
	w.Expect(two.told()).To(BeNil())
	w.Expect(one.looks + two.looks).To(BeZero())

	w.wanted(target, two.name)
	one.keeps = "vdc is mounted at /mnt"
	result, err := one.moves()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(Equal(giveAgain))
	w.Expect(one.told()).To(BeNil(), "its server unmounts it")
	w.Expect(w.holder(target)).To(Equal(v1alpha1.TargetHolder{Node: one.name, Message: "vdc is mounted at /mnt"}))
	two.passes()
	w.Expect(two.told()).To(BeNil())
	w.Expect(two.looks).To(BeZero(), "it is not this node's to look at")

	one.keeps = ""
	one.during = func() {
		_, err := mountlock.Take(one.lock())
		w.Expect(err).To(HaveOccurred(), "no server mounts it now")
		w.Expect(one.told()).To(BeNil(), "and none is told to")
	}
	one.proveUnmounted = func() {
		w.Expect(w.holder(target).Node).To(Equal(two.name), "nobody mounts it here before the other node is the holder")
		_, err := mountlock.Take(one.lock())
		w.Expect(err).To(HaveOccurred())
	}
	one.passes()
	w.Expect(w.holder(target)).To(Equal(v1alpha1.TargetHolder{Node: two.name, Number: 1}))
	one.passes()
	w.Expect(one.looks).To(Equal(2))

	two.keeps = `the machine "oss1" has it mounted`
	two.passes()
	w.Expect(two.told()).To(BeNil(), "the disk says that it is mounted")
	w.Expect(w.holder(target).Message).To(Equal(`the machine "oss1" has it mounted`))
	two.keeps = ""
	two.passes()
	w.Expect(w.holder(target)).To(And(HaveField("Node", two.name), HaveField("Number", BeEquivalentTo(1)), HaveField("Message", ""), HaveField("TakenUp", Not(BeNil()))))
	w.Expect(two.told().Served.BootID).To(Equal("start of " + two.name))
	w.Expect(one.told()).To(BeNil())

	one.during, one.proveUnmounted = nil, nil
	w.wanted(target, "")
	two.passes()
	w.Expect(two.told()).To(BeNil())
	w.Expect(w.holder(target)).To(Equal(v1alpha1.TargetHolder{Node: one.name, Number: 2}))
	one.passes()
	w.Expect(one.told()).NotTo(BeNil())
	w.Expect(w.holder(target).TakenUp).NotTo(BeNil())
}

func TestATargetIsNotHandedOverWhileItIsBeingMounted(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	mount, err := mountlock.Take(one.lock())
	w.Expect(err).NotTo(HaveOccurred())
	w.wanted(target, two.name)
	one.passes()
	w.Expect(one.looks).To(BeZero(), "a look would not show it")
	w.Expect(w.holder(target)).To(And(HaveField("Node", one.name), HaveField("Number", BeZero()), HaveField("Message", ContainSubstring("is locked"))))
	w.Expect(mount.Close()).To(Succeed())
	one.passes()
	w.Expect(w.holder(target).Node).To(Equal(two.name))
}

func TestATargetThatIsChangedDuringAScanIsNotHandedOver(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	w.wanted(target, two.name)
	one.during = func() { w.wanted(target, one.name) }
	result, err := one.moves()
	w.Expect(err).NotTo(HaveOccurred(), "it is read anew, and that is no error")
	w.Expect(result.RequeueAfter).To(Equal(giveAgain))
	w.Expect(w.holder(target)).To(BeZero())
	one.passes()
	w.Expect(one.told()).NotTo(BeNil(), "it stays")
	w.Expect(one.looks).To(Equal(1))
}

// behind is a client whose reads of a target are stale.
type behind struct {
	client.Client
	was *v1alpha1.StorageTarget
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if t, is := object.(*v1alpha1.StorageTarget); is {
		b.was.DeepCopyInto(t)
		return nil
	}
	return b.Client.Get(ctx, key, object, options...)
}

func TestTheNodeFileNeverGetsATargetByAnOutdatedCache(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	before := w.live(target)
	w.wanted(target, two.name)
	one.passes()
	w.Expect(w.holder(target).Node).To(Equal(two.name))
	one.files.Client = behind{server.Client, before}
	_, err := w.writes(one.files, one.node)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(one.told()).To(BeNil())
}

func TestTwoAgentsOfANodeDoNotWriteTheNodeFileAtOnce(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	other, err := mountlock.Take(filepath.Dir(one.lock()))
	w.Expect(err).NotTo(HaveOccurred())
	w.wanted(target, two.name)
	_, err = w.writes(one.files, one.node)
	w.Expect(err).To(MatchError(ContainSubstring("another agent may be at work on this node")))
	_, err = one.moves()
	w.Expect(err).To(MatchError(ContainSubstring("another agent may be at work on this node")))
	w.Expect(one.looks).To(BeZero())
	w.Expect(w.holder(target)).To(BeZero())
	w.Expect(other.Close()).To(Succeed())
	one.passes()
	w.Expect(w.holder(target).Node).To(Equal(two.name))
}

func TestAnAgentWithoutTheBootIDOfItsNodeWritesNoNodeFile(t *testing.T) {
	w := newWorld(t)
	one, _, _ := w.pair()
	one.files.BootID = ""
	live := w.liveNode(one.node)
	live.Spec.Members[0].Targets[0].Granted = true
	w.Expect(server.Client.Update(t.Context(), live)).To(Succeed())
	_, err := w.writes(one.files, one.node)
	w.Expect(err).To(MatchError(ContainSubstring("the boot id of this node is unknown")))
}

func TestAPassOverADiskNoticesThatItWasHandedOverMeanwhile(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	before := w.live(target)
	w.wanted(target, two.name)
	one.passes()
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		w.Expect(t.Status.Holder).To(HaveValue(HaveField("Node", two.name)))
		return record(ctx, t, proven(t))
	})
	r.Live = &first{Reader: server.Client, says: before}
	_, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.holder(target)).To(Equal(v1alpha1.TargetHolder{Node: two.name, Number: 1}))
	version := w.live(target).ResourceVersion
	_, err = w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(w.live(target).ResourceVersion).To(Equal(version), "that it has a holder is no difference")
}

// first returns one stale answer.
type first struct {
	client.Reader
	says *v1alpha1.StorageTarget
}

func (f *first) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if t, is := object.(*v1alpha1.StorageTarget); is && f.says != nil {
		f.says.DeepCopyInto(t)
		f.says = nil
		return nil
	}
	return f.Reader.Get(ctx, key, object, options...)
}

func TestTheNumberOfAHolderGrowsWithEachChangeOfItsNode(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	w.wanted(target, two.name)
	one.passes()
	const grows = "the number of the holder grows with each change of its node, and the holder stays"
	for name, wrong := range map[string]*v1alpha1.TargetHolder{
		"another node with the same number": {Node: one.name, Number: 1},
		"a smaller number":                  {Node: two.name, Number: 0},
		"no holder any more":                nil,
	} {
		live := w.live(target)
		live.Status.Holder = wrong
		w.Expect(server.Client.Status().Update(t.Context(), live)).To(MatchError(ContainSubstring(grows)), name)
	}
	live := w.live(target)
	live.Status.Holder = &v1alpha1.TargetHolder{Node: one.name, Number: 2, TakenUp: &metav1.Time{Time: time.Unix(1, 0)}}
	w.Expect(server.Client.Status().Update(t.Context(), live)).To(Succeed())
}

func TestATargetIsNotHandedOverWhileTheAPIServerDoesNotAnswer(t *testing.T) {
	w := newWorld(t)
	one, two, target := w.pair()
	w.wanted(target, two.name)
	one.pairs.Client = unwritable{server.Client}
	_, err := one.moves()
	w.Expect(err).To(MatchError(errAway))
	w.Expect(w.holder(target)).To(BeZero())
	w.Expect(one.told()).To(BeNil(), "nobody knows whether it was written, so nobody is told")
}

// unwritable is an API server that accepts no status.
type unwritable struct{ client.Client }

func (u unwritable) Status() client.SubResourceWriter { return noStatus{u.Client.Status()} }

type noStatus struct{ client.SubResourceWriter }

func (noStatus) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errAway
}
