//go:build envtest

package filesystem_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/controllers/filesystemnode"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

// exampleWorld returns a world in which the example backend serves the type of the world's FileSystems, because admission accepts no other
// type.
func exampleWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Backends, operator.States = backend.SetOf(backendtest.Example{Kind: v1alpha1.MooseFS}), exampleStates{w}
	}
	w.startsOwn = func(pod *corev1.Pod) bool {
		return component(pod) == backendtest.ComponentClient || exampleStates{w}.serves(pod)
	}
	return w
}

// exampleStates simulates the answer of the probe beside the mount: the members whose pods are Ready are online, with the disks in their
// configuration that are mounted.
type exampleStates struct{ *world }

func (w exampleStates) State(_ context.Context, q filesystem.Question) (*backend.State, error) {
	w.Expect(q.URL).To(Equal("http://10.9.0.1:7000/state"))
	state := &backend.State{}
	for _, p := range w.pods() {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		if !ready || !p.DeletionTimestamp.IsZero() || component(&p) == backendtest.ComponentClient {
			continue
		}
		role := v1alpha1.RoleStorage
		if component(&p) == backendtest.ComponentMount {
			role = v1alpha1.RoleMetadata
		}
		state.Servers = append(state.Servers, backend.Server{Role: role, IP: w.ip(p.Spec.NodeName), Online: w.serves(&p)})
		state.Targets = append(state.Targets, w.disksIn(&p)...)
	}
	if !slices.ContainsFunc(state.Servers, func(s backend.Server) bool { return s.Role == v1alpha1.RoleMetadata }) {
		return nil, errors.New("nobody listens")
	}
	return state, nil
}

// serves reports whether a member has something to serve in its configuration, and has a directory or a mounted disk.
func (w exampleStates) serves(pod *corev1.Pod) bool {
	_, configured := w.configOf(pod, instanceIn(pod))
	fs := w.get()
	targets := fs.Spec.MetadataServers.Targets
	if component(pod) == backendtest.ComponentServer {
		targets = fs.Spec.StoragePools[0].Targets
	}
	return configured && (len(targets.Directories) > 0 || len(w.disksIn(pod)) > 0)
}

func instanceIn(pod *corev1.Pod) string {
	if pool := pod.Labels[v1alpha1.LabelStoragePool]; pool != "" {
		return component(pod) + "/" + pool
	}
	return component(pod)
}

// disksIn returns the present disks of a member, which reads its configuration again and again.
func (w exampleStates) disksIn(pod *corev1.Pod) (out []backend.Target) {
	member, _ := w.configOf(pod, instanceIn(pod))
	for _, t := range member.Targets {
		for _, d := range w.disks {
			if d.mounted && d.target == w.namespace+"/"+t.Name && d.uuid == t.UUID {
				out = append(out, backend.Target{Path: t.Path, Online: !d.dead, CapacityBytes: 4 << 40, Removing: t.Remove, Removable: t.Remove && w.moved})
			}
		}
	}
	return out
}

func TestAFilesystemOfATypeThatNoControllerNamesIsCreatedChangedAndStopped(t *testing.T) {
	w := exampleWorld(t)
	w.fileSystem(nil)

	// It is created, and becomes Ready when it reports that itself.
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonProbeUnreachable)))
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy),
		HaveField("Message", "4/4 servers and 3/3 targets are online, 3/3 clients have mounted")))
	w.Expect(w.pods()).To(HaveLen(7), "the mount of the metadata, a process and a client on each node")
	w.Expect(w.configFile("server-ssd.json")).To(ContainSubstring(`"granted": false`), "it was seen to be initialized")
	var secrets corev1.SecretList
	w.Expect(server.Client.List(w.ctx, &secrets, client.InNamespace(w.namespace))).To(Succeed())
	w.Expect(secrets.Items).To(HaveExactElements(HaveField("Name", "scratch-probe")), "it keeps no secret but the probe's")
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty(), "and nothing is left to do")

	// A changed option restarts the processes one at a time, and no mount.
	before := w.uids()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Annotations = map[string]string{backendtest.ExampleOption + "threads": "100"}
	})
	for range 10 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.Expect(len(before)-len(w.pods())).To(BeNumerically("<=", 1), "never more than one pod is missing")
		w.runPods()
	}
	w.settle()
	w.Expect(w.configFile("server-ssd.json")).To(ContainSubstring("threads = 100"))
	after := w.uids()
	for name, uid := range before {
		w.Expect(after[name] != uid).To(Equal(strings.HasPrefix(name, "scratch-server-ssd.")), name)
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))

	// It is stopped in the reverse order, and is gone.
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	var order []string
	for range 20 {
		sets := len(w.sets())
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		if left := w.sets(); len(left) < sets {
			var components []string
			for _, s := range left {
				components = append(components, s.Labels[v1alpha1.LabelComponent])
			}
			order = append(order, fmt.Sprint(components))
			w.runPods()
		}
		if err := server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}); apierrors.IsNotFound(err) {
			w.Expect(order).To(Equal([]string{"[mount server]", "[mount]", "[]"}))
			return
		}
	}
	t.Fatal("the FileSystem is still there")
}

// configFile returns a file of the example's ConfigMap.
func (w *world) configFile(file string) string {
	w.t.Helper()
	var m corev1.ConfigMap
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scratch-example"}, &m)).To(Succeed())
	return m.Data[file]
}

// lookAtNodes makes an operator reconcile every FileSystemNode.
func (w *world) lookAtNodes() {
	w.t.Helper()
	r := &filesystemnode.Reconciler{Client: server.Client, Reader: server.Client, Recorder: w.events, Views: w.board, Clock: clock.RealClock{}}
	for _, n := range w.fileSystemNodes() {
		_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&n)})
		w.Expect(err).NotTo(HaveOccurred())
	}
}

// nodeSays returns the condition Ready of a FileSystemNode.
func (w *world) nodeSays(node string) metav1.Condition {
	w.t.Helper()
	w.lookAtNodes()
	n := w.fileSystemNodes()[node]
	return *meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady)
}

func TestAFilesystemOfAMountAndProcessesLosesADiskReplacesOneAndReleasesAll(t *testing.T) {
	w := exampleWorld(t)
	metadata, data := w.threeDisks()
	spare := w.disk(w.nodes[1], "data-spare")
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
		fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{"*-meta"}, CountPerNode: 1}}
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{"*-data*"}, CountPerNode: 1}}
	})

	// It is created: each disk is a StorageTarget, and each member has its own disks in its configuration.
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy),
		HaveField("Message", "4/4 servers and 3/3 targets are online, 3/3 clients have mounted")))
	w.Expect(w.formats()).To(Equal(4), "and a spare disk is left alone")
	w.Expect(w.get().Status.Metadata).To(HaveValue(HaveField("Target", w.target(metadata).Name)))
	w.Expect(w.fileSystemNodes()[w.nodes[0]].Spec.Members).To(HaveExactElements(
		And(HaveField("Name", "mount"), HaveField("Targets", HaveExactElements(HaveField("UUID", metadata.uuid)))),
		And(HaveField("Name", "server-ssd"), HaveField("Targets", HaveExactElements(HaveField("UUID", data[0].uuid))))))
	for _, d := range append(data, metadata) {
		w.Expect(of(w.target(d), v1alpha1.ConditionOnline)).To(HaveField("Reason", v1alpha1.ReasonServing), d.id)
		w.Expect(w.nodeSays(d.node)).To(HaveField("Status", metav1.ConditionTrue), d.node)
	}
	before := w.uids()

	// A disk is lost: its target and its node show it, and the filesystem goes on, because the other copies are online.
	data[2].dead = true
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Reason", v1alpha1.ReasonTargetsNotReady),
		HaveField("Message", ContainSubstring(w.target(data[2]).Name))))
	w.Expect(of(w.target(data[2]), v1alpha1.ConditionOnline)).To(HaveField("Status", metav1.ConditionFalse))
	w.Expect(w.nodeSays(w.nodes[2])).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonTargetsMissing)))
	w.Expect(w.nodeSays(w.nodes[1])).To(HaveField("Status", metav1.ConditionTrue))
	data[2].dead = false
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(BeZero())
	w.Expect(w.nodeSays(w.nodes[2])).To(HaveField("Status", metav1.ConditionTrue))

	// A disk is removed after its process has moved the data, and the spare replaces it. For the mount, there is no process that could move
	// the data.
	gone := data[1]
	for _, d := range []*fakeDisk{metadata, gone} {
		w.person(w.target(d), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
	}
	w.settle()
	w.Expect(of(w.target(metadata), v1alpha1.ConditionSafeToRemove)).To(HaveField("Reason", v1alpha1.ReasonNotRemovable))
	w.Expect(of(w.target(gone), v1alpha1.ConditionSafeToRemove)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Message", HavePrefix("the process moves the data elsewhere: "))))
	w.Expect(spare.mounted).To(BeFalse())
	w.moved = true
	w.settle()
	w.Expect(of(w.target(gone), v1alpha1.ConditionSafeToRemove)).To(HaveField("Status", metav1.ConditionTrue))
	w.Expect(server.Client.Delete(w.ctx, w.target(gone))).To(Succeed())
	w.settle()
	w.Expect(w.targets()).To(HaveLen(4))
	w.Expect([]any{gone.mounted, gone.wipes}).To(Equal([]any{false, 0}), "it is unmounted, and what is on it stays")
	w.Expect(of(w.target(spare), v1alpha1.ConditionOnline)).To(HaveField("Reason", v1alpha1.ReasonServing))
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("3/3 targets are online"))))
	w.Expect(w.uids()).To(Equal(before), "no member was restarted for a disk")

	// It is deleted: the members stop, the agents release the disks, and their content stays.
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	for range 20 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		if apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{})) {
			break
		}
		w.runPods()
		w.agents()
		w.Expect(w.reconcileTargets(server.Client)).To(Succeed())
	}
	w.Expect(apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))).To(BeTrue())
	w.Expect(w.pods()).To(BeEmpty())
	w.Expect(w.targets()).To(BeEmpty())
	for _, d := range w.disks {
		w.Expect([]any{d.mounted, d.wipes}).To(Equal([]any{false, 0}), d.id)
		w.Expect(d.target).NotTo(BeEmpty(), d.id)
	}
}
