package benchmarkrun

import (
	"fmt"
	"strings"
	"testing"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/jobs"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
	"parallelfs.dev/operator/controllers/cached"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
)

// clientPod returns the pod that mounts scratch on a node.
func clientPod(node string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "storage", Name: "scratch-client-" + node,
			Labels:          map[string]string{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelComponent: trust.ComponentClient},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "scratch-client", UID: "set", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

// many returns a cluster with the given number of nodes that all mount scratch, whose status names the first 256, and a run that selects
// its clients.
func many(t *testing.T, nodes int) (*Reconciler, *v1alpha1.BenchmarkRun) {
	t.Helper()
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, mpiv2.AddToScheme} {
		g.Expect(add(scheme)).To(Succeed())
	}
	run := scopetest.Idle().Run
	run.Spec.IOzone = &v1alpha1.IOzoneSpec{RecordSize: "64Ki", FileSize: "1Gi"}
	run.Spec.Clients.NodeSelector = v1alpha1.NodeSelector{"rack": "last"}
	run.Status.Directory = ""
	fs := scopetest.Idle().FileSystem
	fs.Namespace, fs.Spec.Type, fs.Spec.MooseFS = "storage", v1alpha1.MooseFS, &v1alpha1.MooseFSSpec{}
	fs.Spec.Clients = &v1alpha1.ClientsSpec{MountPath: "/mnt/scratch"}
	fs.Status.Management = &v1alpha1.ManagementStatus{Address: "10.0.0.1:9421"}
	fs.UID = "fs"
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: "storage", Name: "scratch-client", UID: "set", Labels: map[string]string{v1alpha1.LabelFileSystem: "scratch"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "FileSystem", Name: "scratch", UID: "fs", Controller: new(true)}},
	}}
	objects := []client.Object{fs, run, set}
	for i := range nodes {
		name := fmt.Sprintf("client-%03d", i)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": "first"}}}
		if i >= nodes-2 {
			node.Labels["rack"] = "last"
		}
		node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		objects = append(objects, node, clientPod(name, corev1.ConditionTrue))
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(run).WithObjects(objects...)
	for _, i := range cached.Indexes() {
		builder = builder.WithIndex(i.Object, i.Field, i.Values)
	}
	c := builder.Build()
	return &Reconciler{
		Client: c, Reader: c, Clock: clocktesting.NewFakePassiveClock(scopetest.Now), PollInterval: time.Second, Tools: registry.Tools(), Read: reading.Here(registry.Tools()),
		Backends: all.Backends(backend.DefaultTellTime), Images: backend.Images{Node: "node:1", Benchmarks: map[string]string{"iozone": "iozone:1"}},
	}, run
}

func names(w *scope.Scope) []string {
	var out []string
	for _, n := range w.Clients {
		out = append(out, n.Name)
	}
	return out
}

func TestARunChoosesFromAllClientsAndNotFromThoseThatTheStatusNames(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 300)
	w, err := r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(w)).To(Equal([]string{"client-298", "client-299"}))
	g.Expect(decision.Decide(w).Action).To(Equal(decision.Check), "%s", decision.Decide(w).Message)
	w.Clients = w.Clients[1:]
	placed, err := w.Place(0, 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(placed[0].Node).To(Equal("client-299"))
}

func TestARunThatSelectsNoClientsHasAllThatMountItsFileSystem(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 300)
	run.Spec.Clients.NodeSelector = nil
	g.Expect(r.Client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "oss-1"}})).To(Succeed())
	w, err := r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names(w)).To(HaveLen(300))
	g.Expect(names(w)).NotTo(ContainElement("oss-1"), "it mounts nothing")
}

func TestWhichNodesAreClients(t *testing.T) {
	for name, c := range map[string]struct {
		change func(fs *v1alpha1.FileSystem, p *corev1.Pod)
		is     bool
	}{
		"a pod whose mount answers":                     {func(*v1alpha1.FileSystem, *corev1.Pod) {}, true},
		"a pod that is not Ready is none":               {func(_ *v1alpha1.FileSystem, p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }, false},
		"a pod that says nothing yet is none":           {func(_ *v1alpha1.FileSystem, p *corev1.Pod) { p.Status.Conditions = nil }, false},
		"a pod of another filesystem is none":           {func(_ *v1alpha1.FileSystem, p *corev1.Pod) { p.Labels[v1alpha1.LabelFileSystem] = "home" }, false},
		"a pod that nobody but its maker knows is none": {func(_ *v1alpha1.FileSystem, p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"a pod of a DaemonSet of somebody else is none": {func(_ *v1alpha1.FileSystem, p *corev1.Pod) { p.OwnerReferences[0].UID = "other" }, false},
		"a mirror pod is none": {func(_ *v1alpha1.FileSystem, p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		}, false},
		"a node that the status knows to be bad is none": {func(fs *v1alpha1.FileSystem, _ *corev1.Pod) {
			fs.Status.Missing = []v1alpha1.MissingMember{{Kind: v1alpha1.ClientMember, Node: "client-001"}}
		}, false},
		"a node of which only a server is missing is one": {func(fs *v1alpha1.FileSystem, _ *corev1.Pod) {
			fs.Status.Missing = []v1alpha1.MissingMember{{Kind: v1alpha1.ServerMember, Node: "client-001"}}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, run := many(t, 2)
			fs, p := &v1alpha1.FileSystem{}, &corev1.Pod{}
			g.Expect(r.Client.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "scratch"}, fs)).To(Succeed())
			g.Expect(r.Client.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "scratch-client-client-001"}, p)).To(Succeed())
			c.change(fs, p)
			status := p.Status
			g.Expect(r.Client.Update(t.Context(), fs)).To(Succeed())
			g.Expect(r.Client.Update(t.Context(), p)).To(Succeed())
			p.Status = status
			g.Expect(r.Client.Status().Update(t.Context(), p)).To(Succeed())
			w, err := r.gather(t.Context(), run)
			g.Expect(err).NotTo(HaveOccurred())
			if c.is {
				g.Expect(names(w)).To(Equal([]string{"client-000", "client-001"}))
			} else {
				g.Expect(names(w)).To(Equal([]string{"client-000"}))
			}
		})
	}
}

func TestAJobThatCanRunAnywhereNamesFewNodes(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 300)
	w, err := r.gather(t.Context(), run)
	g.Expect(err).NotTo(HaveOccurred())
	w.Run.Status.Directory = w.Directory()
	nodes := jobs.Renderer{Scope: w}.Cleaner().GetAnnotations()[children.AnnotationNodes]
	g.Expect(strings.Split(nodes, ",")).To(And(HaveLen(jobs.MaxCandidates), ContainElement("client-298")), "one that takes part is among them")
}
