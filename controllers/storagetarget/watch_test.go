//go:build envtest

package storagetarget_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/controllers/storagetarget"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/test/envtest/apiserver"
	"parallelfs.dev/operator/test/patience"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.Run(m, &server) }

// start runs the controller in a manager, as cmd/manager does, until the test ends. It works on the targets of one namespace.
func start(t *testing.T, namespace string, board *views.Board) {
	t.Helper()
	g := NewWithT(t)
	mgr, err := ctrl.NewManager(server.Config, ctrl.Options{
		Scheme: server.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cached.IndexAll(t.Context(), mgr.GetFieldIndexer(), true)).To(Succeed())
	g.Expect((&storagetarget.Reconciler{Views: board}).Setup(mgr)).To(Succeed())
	ended := make(chan error)
	go func() { ended <- mgr.Start(t.Context()) }()
	t.Cleanup(func() { g.Expect(<-ended).To(Succeed()) })
}

func TestAStorageTargetFollowsItsFileSystemAndItsAgent(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	namespace := server.Namespace(ctx, t)
	node := namespace + "-n1"
	fs := &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: namespace},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: "4.57.5", MooseFS: &v1alpha1.MooseFSSpec{},
			MetadataServers: v1alpha1.MetadataSpec{
				NodeSelector: v1alpha1.NodeSelector{"a": "b"}, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta"}},
			},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: "ssd", NodeSelector: v1alpha1.NodeSelector{"a": "b"}, Targets: v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{CountPerNode: 1}},
			}},
		},
	}
	g.Expect(server.Client.Create(ctx, fs)).To(Succeed())
	target := &v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-ssd-01234567", Namespace: namespace, Finalizers: []string{v1alpha1.Finalizer}},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: fs.Name, UID: string(fs.UID)}, Node: node, Role: v1alpha1.RoleStorage, StoragePool: "ssd",
			Device: v1alpha1.DeviceIdentity{ID: "wwn-0x5000c500a1b2c3d4", SizeBytes: 4 << 40}, Cluster: "c1-c1", FormatPolicy: v1alpha1.FormatIfBlank,
			Format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS},
		},
	}
	g.Expect(server.Client.Create(ctx, target)).To(Succeed())
	board := &views.Board{}
	start(t, namespace, board)
	looks := func(view views.Target) {
		view.Generation = target.Generation
		board.Show(client.ObjectKeyFromObject(fs), fs.UID, views.FileSystem{Targets: map[string]views.Target{target.Name: view}})
	}
	looks(views.Target{})

	becomes := func(kind, reason string) {
		t.Helper()
		g.Eventually(func(g Gomega) {
			g.Expect(server.Client.Get(ctx, client.ObjectKeyFromObject(target), target)).To(Succeed())
			g.Expect(meta.FindStatusCondition(target.Status.Conditions, kind)).To(HaveValue(HaveField("Reason", reason)))
		}).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	}
	becomes(v1alpha1.ConditionOnline, v1alpha1.ReasonAgentMissing)

	// The node comes with an agent, which writes its own part of the status.
	g.Expect(server.Client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
	g.Expect(server.Client.Create(ctx, &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
	becomes(v1alpha1.ConditionOnline, v1alpha1.ReasonNotServing)
	recorded := &v1alpha1.TargetProvisioned{UUID: "aaaa", Finished: new(metav1.Now())}
	agent(ctx, g, target, recorded, v1alpha1.ConditionReady, v1alpha1.ReasonProven)

	// The agent publishes that the disk fails.
	inventory := &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: node}}
	g.Expect(server.Client.Get(ctx, client.ObjectKeyFromObject(inventory), inventory)).To(Succeed())
	inventory.Status.BlockDevices = []v1alpha1.BlockDevice{{
		KernelName: "sda", Target: namespace + "/" + target.Name, Health: &v1alpha1.DiskHealth{State: v1alpha1.DiskFailing},
	}}
	g.Expect(server.Client.Status().Update(ctx, inventory)).To(Succeed())
	becomes(v1alpha1.ConditionDiskHealthy, v1alpha1.ReasonDiskFailing)

	// The filesystem says that it serves, then that it is empty.
	looks(views.Target{Service: &v1alpha1.TargetService{State: v1alpha1.StateOnline}})
	becomes(v1alpha1.ConditionOnline, v1alpha1.ReasonServing)
	before := target.DeepCopy()
	target.Spec.Remove = true
	g.Expect(server.Client.Patch(ctx, target, client.MergeFrom(before))).To(Succeed())
	becomes(v1alpha1.ConditionSafeToRemove, v1alpha1.ReasonMovingData)
	looks(views.Target{Service: &v1alpha1.TargetService{State: v1alpha1.StateOnline, Removal: v1alpha1.RemovalDataMoved}, Removal: &backend.Removal{}})
	becomes(v1alpha1.ConditionSafeToRemove, v1alpha1.ReasonDataMoved)
	before = target.DeepCopy()
	target.Spec.Remove = false
	g.Expect(server.Client.Patch(ctx, target, client.MergeFrom(before))).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(server.Client.Get(ctx, client.ObjectKeyFromObject(target), target)).To(Succeed())
		g.Expect(target.Status.Conditions).NotTo(ContainElement(HaveField("Type", v1alpha1.ConditionSafeToRemove)))
	}).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	g.Expect(target.Status.Conditions).To(ContainElement(HaveField("Reason", v1alpha1.ReasonProven)), "what the agent wrote is still there")
	g.Expect(target.Status.Provisioned.UUID).To(Equal("aaaa"))

	// It is removed when the agent has released the disk.
	g.Expect(server.Client.Delete(ctx, target)).To(Succeed())
	agent(ctx, g, target, recorded, v1alpha1.ConditionReleased, v1alpha1.ReasonUnmounted)
	g.Eventually(func() bool {
		return apierrors.IsNotFound(server.Client.Get(ctx, client.ObjectKeyFromObject(target), &v1alpha1.StorageTarget{}))
	}).WithTimeout(patience.Bound(time.Minute)).Should(BeTrue())
}

// agent writes the agent's part of a status: what is recorded, and one condition that is true.
func agent(ctx context.Context, g Gomega, target *v1alpha1.StorageTarget, recorded *v1alpha1.TargetProvisioned, kind, reason string) {
	status := v1alpha1.StorageTargetStatus{Provisioned: recorded}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	g.Expect(err).NotTo(HaveOccurred())
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": target.Name, "namespace": target.Namespace}, "status": content,
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageTarget"))
	g.Expect(server.Client.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership,
		client.FieldOwner("parallelfs-agent"))).To(Succeed())
}
