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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

// exampleWorld is a world in which the example serves the type that the world's FileSystems have: admission knows no other.
func exampleWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Backends, operator.States = backend.SetOf(backendtest.Example{Kind: v1alpha1.MooseFS}), exampleStates{w}
	}
	return w
}

// exampleStates say that the processes are there whose pods are Ready.
type exampleStates struct{ *world }

func (w exampleStates) State(_ context.Context, q filesystem.Question) (*backend.State, error) {
	w.Expect(q.URL).To(Equal("http://10.9.0.1:7000/state"))
	state := &backend.State{}
	for _, p := range w.pods() {
		ready := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
		if component(&p) == backendtest.ComponentServer && ready && p.DeletionTimestamp.IsZero() {
			state.Servers = append(state.Servers, backend.Server{Role: v1alpha1.RoleStorage, IP: w.ip(p.Spec.NodeName), Online: true})
		}
	}
	if len(state.Servers) == 0 {
		return nil, errors.New("nobody listens")
	}
	return state, nil
}

func TestAFilesystemOfWhichNoControllerKnowsTheNameIsMadeChangedAndStopped(t *testing.T) {
	w := exampleWorld(t)
	w.fileSystem(nil)

	// It is made, and Ready when it says so itself.
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonProbeUnreachable)))
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy),
		HaveField("Message", "3/3 servers and 3/3 targets are online, 3/3 clients have mounted")))
	w.Expect(w.pods()).To(HaveLen(6), "a process and a mount on each node")
	w.Expect(w.told("server-ssd.json")).To(ContainSubstring(`"granted": false`), "it was seen to be initialized")
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
	w.Expect(w.told("server-ssd.json")).To(ContainSubstring("threads = 100"))
	after := w.uids()
	for name, uid := range before {
		w.Expect(after[name] != uid).To(Equal(strings.HasPrefix(name, "scratch-server-ssd.")), name)
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))

	// It is stopped in the reverse order, and gone.
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
			w.Expect(order).To(Equal([]string{"[server]", "[]"}))
			return
		}
	}
	t.Fatal("the FileSystem is still there")
}

// told is a file of the ConfigMap of the example.
func (w *world) told(file string) string {
	w.t.Helper()
	var m corev1.ConfigMap
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "scratch-example"}, &m)).To(Succeed())
	return m.Data[file]
}
