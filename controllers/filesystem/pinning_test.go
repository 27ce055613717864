//go:build envtest

package filesystem_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// processors writes what the agent of each node finds about its CPUs, and about the chunkserver that runs on them.
func (w *world) processors(chunkserver v1alpha1.DaemonPlacement) {
	w.t.Helper()
	chunkserver.Name = w.namespace + "/scratch/chunkserver/ssd"
	for _, node := range w.nodes {
		w.inventory(node)
		var inventory v1alpha1.NodeInventory
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &inventory)).To(Succeed())
		inventory.Status.CPU = v1alpha1.CPUStatus{Threads: 8, NUMANodes: []v1alpha1.NUMANode{{ID: 0, CPUs: "0-3"}, {ID: 1, CPUs: "4-7"}}}
		inventory.Status.Daemons = []v1alpha1.DaemonPlacement{chunkserver}
		w.Expect(server.Client.Status().Update(w.ctx, &inventory)).To(Succeed())
	}
	w.settle()
}

func TestPlacementsAreThoseOfTheKernelAndAContradictionNamesBothSides(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	onNode := func(numa int32) func(fs *v1alpha1.FileSystem) {
		return func(fs *v1alpha1.FileSystem) {
			fs.Spec.StoragePools[0].CPUPinning = &v1alpha1.CPUPinning{Mode: v1alpha1.PinningNUMANode, NUMANodes: []int32{numa}}
		}
	}
	w.fileSystem(onNode(7))
	w.processors(v1alpha1.DaemonPlacement{CPUs: "0-7", MemoryPolicy: "default"})
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Status", metav1.ConditionTrue),
		HaveField("Reason", v1alpha1.ReasonPinningConflict),
		HaveField("Message", ContainSubstring("asks for NUMA node 7, and node "+w.nodes[0]+" has the NUMA nodes 0, 1"))))
	w.Expect(w.get().Status.Metadata.Initialized).NotTo(BeNil(), "the master, which asks for no CPUs, goes on")

	w.change(onNode(1))
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(BeZero())
	w.Expect(w.condition(v1alpha1.ConditionPinned)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonDrifted),
		HaveField("Message", ContainSubstring("it may run on the CPUs 0-7, and 4-7 are asked for"))))

	w.processors(v1alpha1.DaemonPlacement{CPUs: "4-7", MemoryPolicy: "prefer:1"})
	w.Expect(w.condition(v1alpha1.ConditionPinned)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonAsAsked)))

	for _, node := range w.nodes {
		w.agentGone(node)
	}
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionPinned).Status).To(Equal(metav1.ConditionUnknown), "nobody sees where they run")

	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].CPUPinning = nil })
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionPinned)).To(BeZero())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}
