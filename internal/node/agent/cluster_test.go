//go:build envtest

package agent

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/envtest/apiserver"
	"parallelfs.dev/operator/test/patience"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.Run(m, &server) }

// world is an API server with a namespace, a node and an agent of that node. The test supplies the agent's work on disks.
type world struct {
	Gomega
	t         *testing.T
	namespace string
	node      *corev1.Node
	events    *events.FakeRecorder
}

// newWorld makes a world for a test that runs in parallel with others.
func newWorld(t *testing.T) *world {
	t.Helper()
	t.Parallel()
	w := &world{Gomega: NewWithT(t), t: t, namespace: server.Namespace(t.Context(), t), events: events.NewFakeRecorder(1000)}
	w.node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-oss1"}}
	w.Expect(server.Client.Create(t.Context(), w.node)).To(Succeed())
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), w.node) }) // nothing else reads it
	return w
}

func (w *world) target(name, node string, changes ...func(*v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	w.t.Helper()
	target := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: w.namespace, Finalizers: []string{v1alpha1.Finalizer}, Labels: map[string]string{v1alpha1.LabelNode: node},
		},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "1-2-3"}, Node: node, Role: v1alpha1.RoleStorage, StoragePool: "ssd",
			Device: v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID("wwn-" + name), SizeBytes: 1 << 40},
			Format: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4}, Cluster: "c1-c1", FormatPolicy: v1alpha1.FormatIfBlank,
		},
	}
	for _, change := range changes {
		change(target)
	}
	w.Expect(server.Client.Create(w.t.Context(), target)).To(Succeed())
	return target
}

func (w *world) live(target *v1alpha1.StorageTarget) *v1alpha1.StorageTarget {
	w.t.Helper()
	live := &v1alpha1.StorageTarget{}
	w.Expect(server.Client.Get(w.t.Context(), client.ObjectKeyFromObject(target), live)).To(Succeed())
	return live
}

func (w *world) reconciler(pass Pass) *Reconciler {
	return &Reconciler{
		Client: server.Client, Live: server.Client, Recorder: w.events, NodeName: w.node.Name, Resync: time.Minute, Pass: pass,
	}
}

func (w *world) reconcile(r *Reconciler, target *v1alpha1.StorageTarget) (ctrl.Result, error) {
	return r.Reconcile(w.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(target)})
}

// proven returns a status that leaves no work to do.
func proven(t *v1alpha1.StorageTarget) v1alpha1.StorageTargetStatus {
	now := metav1.NewTime(time.Unix(1700000000, 0))
	return v1alpha1.StorageTargetStatus{
		ObservedGeneration: t.Generation, KernelName: "sda", MountPath: "/var/lib/parallelfs/targets/x", CapacityBytes: 1 << 40, Capacity: "1.0TiB",
		Provisioned: &v1alpha1.TargetProvisioned{UUID: "a-b-c", Label: "pfs-00000000", PlanHash: "sha256:1", Started: &now, Finished: &now},
		Conditions: []metav1.Condition{{
			Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven, Message: "mounted", LastTransitionTime: now,
			ObservedGeneration: t.Generation,
		}},
	}
}

func TestAPassThatFindsNothingNewWritesNothing(t *testing.T) {
	w := newWorld(t)
	target := w.target("quiet", w.node.Name)
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		return record(ctx, t, proven(t))
	})
	result, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(Equal(time.Minute))
	first := w.live(target)
	w.Expect(first.Status.Provisioned.UUID).To(Equal("a-b-c"))
	w.Expect(w.events.Events).To(HaveLen(2), "formatted and mounted, each once")
	for range 3 {
		_, err := w.reconcile(r, target)
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.live(target).ResourceVersion).To(Equal(first.ResourceVersion))
	w.Expect(w.events.Events).To(HaveLen(2))

	live := w.live(target)
	live.Status.Conditions = append(live.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionTrue,
		Reason: v1alpha1.ReasonServing, Message: "listed", LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))})
	live.Status.Service = &v1alpha1.TargetService{State: v1alpha1.StateOnline, UsedBytes: 1 << 30}
	w.Expect(server.Client.Status().Update(t.Context(), live)).To(Succeed())
	wrote, err := r.record(t.Context(), live, proven(live))
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(wrote).To(BeFalse(), "what the operator has written is no difference")
	w.Expect(w.live(target).Status.Service.UsedBytes).To(Equal(int64(1 << 30)))
}

func TestATargetThatCanNotGoOnIsLookedAtAgainSoon(t *testing.T) {
	w := newWorld(t)
	target := w.target("busy", w.node.Name)
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		status := proven(t)
		status.Conditions[0].Status, status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonDeviceRefused
		stalled := status.Conditions[0]
		stalled.Type, stalled.Status = v1alpha1.ConditionStalled, metav1.ConditionTrue
		status.Conditions = append(status.Conditions, stalled)
		return record(ctx, t, status)
	})
	result, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(Equal(30 * time.Second))
}

func TestATargetThatItsServerHasNotMountedYetIsLookedAtAgainSoon(t *testing.T) {
	w := newWorld(t)
	target := w.target("served", w.node.Name)
	mountPath := ""
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		status := proven(t)
		status.MountPath = mountPath
		return record(ctx, t, status)
	})
	r.Resync = time.Hour
	result, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(Equal(30 * time.Second))
	mountPath = "/var/lib/parallelfs/targets/x"
	result, err = w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(result.RequeueAfter).To(Equal(time.Hour))
}

func TestTheIntentIsOnTheAPIServerBeforeThePassGoesOn(t *testing.T) {
	w := newWorld(t)
	target := w.target("intent", w.node.Name)
	seen := false
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		intent := proven(t)
		intent.Provisioned.Finished = nil
		if err := record(ctx, t, intent); err != nil {
			return err
		}
		seen = w.live(target).Status.Provisioned.UUID == "a-b-c" && t.Status.Provisioned != nil
		return record(ctx, t, proven(t))
	})
	_, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(seen).To(BeTrue())
	w.Expect(w.live(target).Status.Provisioned.Finished).NotTo(BeNil())
}

func TestAnApprovalThatIsTakenBackMeanwhileStopsThePass(t *testing.T) {
	w := newWorld(t)
	target := w.target("taken-back", w.node.Name)
	wrote := false
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		live := w.live(target)
		live.Spec.FormatPolicy = v1alpha1.FormatNever
		w.Expect(server.Client.Update(ctx, live)).To(Succeed())
		err := record(ctx, t, proven(t))
		wrote = err == nil
		return err
	})
	result, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred(), "a conflict is another pass, and no error")
	w.Expect(result.RequeueAfter).To(Equal(catchUp))
	w.Expect(wrote).To(BeFalse())
	w.Expect(w.live(target).Status.Provisioned).To(BeNil())
}

func TestValuesOfTheOperatorStay(t *testing.T) {
	w := newWorld(t)
	target := w.target("shared", w.node.Name)
	online := metav1.Condition{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonServing, Message: "listed",
		LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))}
	live := w.live(target)
	live.Status.Conditions = []metav1.Condition{online}
	w.Expect(server.Client.Status().Update(t.Context(), live)).To(Succeed())
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		return record(ctx, t, proven(t))
	})
	_, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	now := w.live(target)
	w.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionOnline)).To(BeTrue())
	w.Expect(meta.IsStatusConditionTrue(now.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	w.Expect(now.Finalizers).To(Equal([]string{v1alpha1.Finalizer}))
}

func TestHowADiskBecameATargetIsNeverForgotten(t *testing.T) {
	w := newWorld(t)
	target := w.target("memory", w.node.Name)
	forget := false
	r := w.reconciler(func(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
		status := proven(t)
		if forget {
			status.Provisioned = nil
		}
		return record(ctx, t, status)
	})
	_, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
	forget = true
	_, err = w.reconcile(r, target)
	w.Expect(err).To(MatchError(ContainSubstring("would be forgotten")))
	w.Expect(w.live(target).Status.Provisioned.UUID).To(Equal("a-b-c"))
}

func TestATargetOfAnotherNodeIsNotTouched(t *testing.T) {
	w := newWorld(t)
	target := w.target("foreign", "another-node")
	r := w.reconciler(func(context.Context, *v1alpha1.StorageTarget, provision.Record) error {
		t.Error("a pass was made over a target of another node")
		return nil
	})
	_, err := w.reconcile(r, target)
	w.Expect(err).NotTo(HaveOccurred())
}

func TestAnAPIServerThatDoesNotAnswerStopsNothing(t *testing.T) {
	w := newWorld(t)
	target := w.target("unreachable", w.node.Name)
	r := w.reconciler(func(context.Context, *v1alpha1.StorageTarget, provision.Record) error {
		t.Error("a pass was made without knowing what the API server has")
		return nil
	})
	dead := server.Killable(t, 0)
	w.Expect(dead.Create(t.Context(), &corev1.Namespace{})).To(MatchError(apiserver.ErrKilled))
	r.Live = dead
	_, err := w.reconcile(r, target)
	w.Expect(err).To(MatchError(apiserver.ErrKilled))
}

// node holds the agent's observations; a test changes them while the agent runs.
type node struct {
	mutex     sync.Mutex
	inventory v1alpha1.NodeInventoryStatus
	passes    map[string]int
	collected int
}

func (n *node) pass(ctx context.Context, t *v1alpha1.StorageTarget, record provision.Record) error {
	n.mutex.Lock()
	n.passes[t.Name]++
	n.mutex.Unlock()
	return record(ctx, t, proven(t))
}

func (n *node) collect(context.Context) v1alpha1.NodeInventoryStatus {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.collected++
	return *n.inventory.DeepCopy()
}

func (n *node) counts(name string) (passes, collected int) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.passes[name], n.collected
}

func TestTheAgentWorksOnItsTargetsAndPublishesItsNode(t *testing.T) {
	w := newWorld(t)
	mine := w.target("mine", w.node.Name)
	w.target("theirs", "another-node")
	label := plan.Label(mine)
	n := &node{passes: map[string]int{}, inventory: v1alpha1.NodeInventoryStatus{
		Kernel: v1alpha1.KernelStatus{Release: "6.12"},
		BlockDevices: []v1alpha1.BlockDevice{{KernelName: "sda", SizeBytes: 1 << 40,
			Signatures: []v1alpha1.Signature{{Device: "sda", Type: "ext4", Label: label}}}},
	}}
	changes := make(chan struct{})
	dropped, address := make(chan struct{}, 8), freeAddress(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, server.Config, Node{
			Pass: n.pass, Collect: n.collect, Changes: changes,
			Placements: func() ([]v1alpha1.DaemonPlacement, error) { return nil, nil },
			Processes: func() (map[string][]int, error) {
				return map[string][]int{w.namespace + "/scratch/meta/0": {os.Getpid()}}, nil
			},
			DropCaches: func(context.Context) error { dropped <- struct{}{}; return nil },
		}, Options{
			NodeName: w.node.Name, Resync: time.Hour, HealthAddress: "0", MetricsAddress: "0",
			TelemetryInterval: 100 * time.Millisecond, TelemetryAddress: address,
		}, logr.Discard())
	}()
	inventory := &v1alpha1.NodeInventory{}
	w.Eventually(func() error {
		if err := server.Client.Get(ctx, client.ObjectKey{Name: w.node.Name}, inventory); err != nil {
			return err
		}
		if len(inventory.Status.BlockDevices) == 0 {
			return errors.New("there is nothing in it yet")
		}
		return nil
	}, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(Succeed())
	w.Expect(inventory.OwnerReferences).To(HaveLen(1))
	w.Expect(inventory.OwnerReferences[0].UID).To(Equal(w.node.UID))
	w.Eventually(func() int { passes, _ := n.counts("mine"); return passes }, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(BeNumerically(">=", 1))
	w.Eventually(func() bool { return w.live(mine).Status.Provisioned != nil }, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(BeTrue())
	w.Eventually(func() string {
		if err := server.Client.Get(ctx, client.ObjectKey{Name: w.node.Name}, inventory); err != nil {
			return err.Error()
		}
		return inventory.Status.BlockDevices[0].Target
	}, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(Equal(w.namespace + "/mine"))

	// A change of devices triggers a full scan, and nothing is written if nothing has changed.
	before := w.live(mine).ResourceVersion
	passes, collected := n.counts("mine")
	changes <- struct{}{}
	w.Eventually(func() bool {
		p, c := n.counts("mine")
		return p > passes && c > collected
	}, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(BeTrue())
	w.Expect(w.live(mine).ResourceVersion).To(Equal(before))
	n.mutex.Lock()
	n.inventory.Kernel.Release = "6.18"
	n.mutex.Unlock()
	version := inventory.ResourceVersion
	changes <- struct{}{}
	w.Eventually(func() string {
		if err := server.Client.Get(ctx, client.ObjectKey{Name: w.node.Name}, inventory); err != nil {
			return err.Error()
		}
		return inventory.Status.Kernel.Release
	}, patience.Bound(2*time.Minute), 50*time.Millisecond).Should(Equal("6.18"))
	w.Expect(inventory.ResourceVersion).NotTo(Equal(version))

	theirs, _ := n.counts("theirs")
	w.Expect(theirs).To(BeZero())
	w.dropsAndServes(dropped, address)
	stop()
	w.Eventually(ended, patience.Bound(2*time.Minute)).Should(Receive(BeNil()))
	w.Expect(apierrors.IsNotFound(server.Client.Get(t.Context(), client.ObjectKey{Name: "another-node"}, inventory))).To(BeTrue())
}
