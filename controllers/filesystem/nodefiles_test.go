//go:build envtest

package filesystem_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
)

func TestEachNodeWithServersHasItsOwnObjectAndNoConfigMapNamesAllNodes(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(nil)
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	nodes := w.fileSystemNodes()
	w.Expect(nodes).To(HaveLen(3), "also where servers keep their data in directories and ask for no CPUs")
	for node, n := range nodes {
		w.Expect(n.Spec.FileSystem).To(Equal(v1alpha1.TargetOwner{Name: "scratch", UID: string(w.get().UID)}))
		w.Expect(metav1.IsControlledBy(&n, w.get())).To(BeTrue(), "it goes with its FileSystem")
		w.Expect(n.Labels).To(HaveKeyWithValue(v1alpha1.LabelNode, node))
		w.Expect(n.Spec.Members).To(ContainElement(HaveField("Name", "chunkserver-ssd")))
	}
	w.Expect(nodes[w.nodes[0]].Spec.Members).To(ContainElement(HaveField("Name", "master")))
	var maps corev1.ConfigMapList
	w.Expect(server.Client.List(w.ctx, &maps, w.mine()...)).To(Succeed())
	for _, m := range maps.Items {
		for key, content := range m.Data {
			w.Expect(key+content).NotTo(ContainSubstring(w.nodes[1]), "%s of %s", key, m.Name)
		}
	}
}

func TestANodeKeepsItsObjectWhenItHasNoServerLeft(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	n3 := w.nodes[2]
	relabel := func(change func(labels map[string]string)) {
		var n corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: n3}, &n)).To(Succeed())
		change(n.Labels)
		w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
	}
	relabel(func(labels map[string]string) {
		delete(labels, "storage-of")
		labels["metalogger-of"] = w.namespace
	})
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Metaloggers = &v1alpha1.MetaloggersSpec{NodeSelector: v1alpha1.NodeSelector{"metalogger-of": w.namespace}}
	})
	w.settle()
	before := w.fileSystemNodes()[n3]
	w.Expect(before.Spec.Members).To(HaveExactElements(HaveField("Name", "metalogger")))

	relabel(func(labels map[string]string) { delete(labels, "metalogger-of") })
	w.settle()
	after := w.fileSystemNodes()[n3]
	w.Expect(after.UID).To(Equal(before.UID), "it is the record of what was given there")
	w.Expect(after.Spec.Members).To(BeEmpty())
	w.Expect(w.files[n3].Members).To(BeEmpty(), "the agent is told")
}

func TestAServerRestartsForADiskAfterTheAgentHasWrittenTheNodeFile(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	before := w.uids()

	more := w.disk(w.nodes[1], "more")
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = references(append(data, more)...)
	})
	w.mute[w.nodes[1]] = true
	w.settle()
	w.Expect(of(w.target(more), v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "the disk is proven")
	n := w.fileSystemNodes()[w.nodes[1]]
	w.Expect(n.Spec.Members[0].Targets).To(ContainElement(And(HaveField("Name", w.target(more).Name), HaveField("UUID", more.uuid))))
	w.Expect(n.Status.Agent.ObservedGeneration).To(BeNumerically("<", n.Generation))
	w.Expect(w.uids()).To(Equal(before), "no server starts anew before it could know the disk")
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).To(ContainSubstring("when the agent of its node has written its configuration"))

	w.mute[w.nodes[1]] = false
	w.settle()
	after := w.uids()
	for name, uid := range before {
		w.Expect(after[name] != uid).To(Equal(name == "scratch-chunkserver-ssd."+w.nodes[1]), name)
	}
	w.Expect(of(w.target(more), v1alpha1.ConditionOnline).Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))
}

func TestAFileSystemNamesTheNodesWhoseNodeFileNoAgentWrites(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	n3 := w.nodes[2]
	w.mute[n3] = true
	w.fileSystem(nil)
	w.settle()
	// One manager observes twice, with 20 minutes between.
	operator := w.operator(server.Client)
	look := func(operator *filesystem.Reconciler) {
		t.Helper()
		_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
		w.Expect(err).NotTo(HaveOccurred())
	}
	look(operator)
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).NotTo(ContainSubstring("no agent"), "it may be about to")
	look(operator)
	condition := w.condition(v1alpha1.ConditionReconciling)
	w.Expect(condition.Status).To(Equal(metav1.ConditionTrue))
	w.Expect(condition.Reason).To(Equal(v1alpha1.ReasonServersNotTold))
	w.Expect(condition.Message).To(And(ContainSubstring("kubectl label node "+n3+" parallelfs.dev/agent="), Not(ContainSubstring("servers on "+w.nodes[0]))))
	w.Expect(w.condition(v1alpha1.ConditionDegraded).Message).To(ContainSubstring(n3), "its server is not there")
	for _, pod := range w.pods() {
		if strings.HasPrefix(pod.Name, "scratch-chunkserver") {
			w.Expect(len(pod.Status.Conditions) > 0).To(Equal(pod.Spec.NodeName != n3), pod.Name)
		}
	}

	// The message contains what the agent itself reports.
	n := w.fileSystemNodes()[n3]
	n.Status.Agent = &v1alpha1.NodeAgentStatus{Message: "can't write node.json: no space left on device"}
	w.Expect(server.Client.Status().Update(w.ctx, &n)).To(Succeed())
	look(operator)
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).To(ContainSubstring("no space left on device"))

	w.mute[n3] = false
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)))
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(BeZero())

	// While servers run, an agent that is gone stops nothing.
	w.mute[n3] = true
	n = w.fileSystemNodes()[n3]
	n.Spec.Members = nil
	w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
	operator = w.operator(server.Client)
	for range 3 {
		look(operator)
	}
	w.Expect(w.fileSystemNodes()[n3].Spec.Members).To(HaveLen(1), "what somebody has changed is put right")
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).To(ContainSubstring("no agent configures the servers on " + n3))
}
