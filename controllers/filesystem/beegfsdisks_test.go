//go:build envtest

package filesystem_test

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// disksOfBeeGFS returns a disk for the management service and one for each metadata server on the first two nodes, and two for data on
// each.
func (w *world) disksOfBeeGFS() (management *fakeDisk, metadata, data []*fakeDisk) {
	management = w.disk(w.nodes[0], "mgmtd")
	for _, node := range w.nodes[:2] {
		metadata = append(metadata, w.disk(node, "meta0"), w.disk(node, "meta1"))
		data = append(data, w.disk(node, "data0"), w.disk(node, "data1"))
	}
	return management, metadata, data
}

// beeGFSOnDisks creates a BeeGFS on the disks of disksOfBeeGFS.
func (w *world) beeGFSOnDisks(changes ...func(fs *v1alpha1.FileSystem)) (management *fakeDisk, metadata, data []*fakeDisk) {
	w.t.Helper()
	management, metadata, data = w.disksOfBeeGFS()
	w.beeGFS(func(fs *v1alpha1.FileSystem) {
		for _, change := range changes {
			change(fs)
		}
		fs.Spec.BeeGFS.Management.Targets = v1alpha1.TargetsSpec{Devices: references(management)}
		fs.Spec.MetadataServers.Targets = v1alpha1.TargetsSpec{Devices: references(metadata...)}
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Devices: references(data...)}
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
	})
	return management, metadata, data
}

func TestABeeGFSOnDisksHasAStorageTargetForEachServer(t *testing.T) {
	w := newWorld(t)
	management, metadata, data := w.beeGFSOnDisks()
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.target(management).Spec.Role).To(Equal(v1alpha1.RoleManagement))
	w.Expect(w.get().Status.Metadata.Target).To(Equal(w.target(management).Name))
	for i, d := range metadata {
		w.Expect(w.target(d).Spec).To(And(HaveField("Role", v1alpha1.RoleMetadata), HaveField("Slot", int32(i%2))))
	}
	for _, d := range slices.Concat([]*fakeDisk{management}, metadata, data) {
		w.Expect(of(w.target(d), v1alpha1.ConditionOnline)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonServing)), d.id)
		w.Expect(d.formats).To(Equal(1), d.id)
	}
	w.Expect(w.condition(v1alpha1.ConditionEvaluationOnly)).To(BeZero())

	// One metadata server of four is down: only its own target shows it.
	w.hive.numbers[metadata[1].node+":"+spec.TargetPath(w.namespace, "scratch", w.target(metadata[1]).Name)] = "somebody else's"
	for _, p := range w.pods() {
		if component(&p) == "meta" && p.Spec.NodeName == metadata[1].node && p.Labels[v1alpha1.LabelSlot] == "1" {
			w.Expect(server.Client.Delete(w.ctx, &p, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
	w.settle()
	w.Expect(of(w.target(metadata[1]), v1alpha1.ConditionOnline).Status).To(Equal(metav1.ConditionTrue), "its server may just be restarting")
	lasting := w.operator(server.Client)
	for range 2 {
		w.Expect(lasting.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})).Error().NotTo(HaveOccurred())
	}
	w.Expect(w.reconcileTargets(server.Client)).To(Succeed())
	for i, d := range metadata {
		want := metav1.ConditionTrue
		if i == 1 {
			want = metav1.ConditionFalse
		}
		w.Expect(of(w.target(d), v1alpha1.ConditionOnline).Status).To(Equal(want), d.id)
	}
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonServersMissing))
}

func TestMetadataAndTheStoreOfABeeGFSAreNeverRemoved(t *testing.T) {
	w := newWorld(t)
	management, metadata, _ := w.beeGFSOnDisks()
	w.settle()
	commands := len(w.hive.commands)
	for _, d := range []*fakeDisk{management, metadata[0]} {
		w.person(w.target(d), func(t *v1alpha1.StorageTarget) { t.Spec.Remove, t.Spec.WritersStopped = true, true })
	}
	w.settle()
	w.Expect(of(w.target(management), v1alpha1.ConditionSafeToRemove)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonNotRemovable), HaveField("Message", ContainSubstring("BeeGFS forgets ids, pools and mirrors"))))
	w.Expect(of(w.target(metadata[0]), v1alpha1.ConditionSafeToRemove)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonNotRemovable), HaveField("Message", ContainSubstring("BeeGFS can't move metadata"))))
	w.Expect(w.hive.commands[commands:]).To(BeEmpty())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), "and all goes on")
}

func TestATargetOfABeeGFSIsDrainedProvenEmptyTakenOutAndForgotten(t *testing.T) {
	w := newWorld(t)
	_, _, data := w.beeGFSOnDisks()
	w.settle()
	leaves := w.target(data[3])
	// The names of two disks of a node contain a hash, which decides which one gets the lower number.
	var id int32
	for _, a := range w.given() {
		for _, t := range a.Targets {
			if t.Name == leaves.Name {
				id = t.ID
			}
		}
	}
	w.Expect(id).To(BeElementOf(int32(3), int32(4)))
	pool := func() int32 {
		return w.hive.targets[slices.IndexFunc(w.hive.targets, func(t backend.Target) bool { return t.ID == id })].PoolID
	}
	safe := func() metav1.Condition { return of(w.target(data[3]), v1alpha1.ConditionSafeToRemove) }

	data[3].files = 412
	w.person(leaves, func(t *v1alpha1.StorageTarget) { t.Spec.Remove, t.Spec.WritersStopped = true, true })
	w.settle()
	w.Expect(pool()).To(Equal(int32(100)), "it is in the pool draining, which gets no new files")
	w.Expect(w.hive.pools).To(HaveKeyWithValue(int32(100), "draining"))
	w.Expect(w.hive.commands).To(ContainElement(HavePrefix(fmt.Sprintf("--migrate --targetid=%d ", id))))
	w.Expect(safe()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonMovingData)),
		"what the tool says that it has moved proves nothing")
	w.Expect(w.given()).NotTo(ContainElement(HaveField("Targets", ContainElement(HaveField("Drained", Not(BeNil()))))))

	data[3].files = 0
	w.settle()
	w.Expect(safe()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonDataMoved)))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)

	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(data[:3]...) })
	w.settle()
	w.Expect(w.targets()).To(HaveLen(8), "its StorageTarget has gone")
	w.Expect(data[3].mounted).To(BeFalse())
	w.Expect(data[3].wipes).To(BeZero(), "what is on it was kept")
	w.Expect(w.hive.targets).NotTo(ContainElement(HaveField("ID", id)), "BeeGFS was told to forget it")
	w.Expect(w.hive.commands).To(ContainElement(fmt.Sprintf("--removetarget %d", id)))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Summary.Targets).To(Equal("3/3"))

	// The last target of the node is removed as well, and its server with it.
	w.person(w.target(data[2]), func(t *v1alpha1.StorageTarget) { t.Spec.Remove, t.Spec.WritersStopped = true, true })
	w.settle()
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(data[:2]...) })
	w.settle()
	w.Expect(w.hive.commands).To(ContainElement("--removenode --nodetype=storage 2"))
	w.Expect(w.given()).To(ContainElement(And(HaveField("ID", int32(2)), HaveField("Role", v1alpha1.RoleStorage), HaveField("Retired", true))))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)

	// A disk that is added later gets a number of its own.
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = references(append(slices.Clone(data[:2]), w.disk(w.nodes[1], "data2"))...)
	})
	w.settle()
	w.Expect(w.get().Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(5)), "no number is given twice")
	w.Expect(w.hive.targets).To(ContainElement(And(HaveField("ID", int32(5)), HaveField("Online", true))))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.hive.refused).To(BeEmpty())
}

func TestADrainEndsAlsoIfTheOperatorIsKilledAfterAnyWrite(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (w *world, leaves *fakeDisk) {
		w = newWorld(t)
		stays := w.disk(w.nodes[0], "data0")
		leaves = w.disk(w.nodes[1], "data0")
		w.beeGFS(func(fs *v1alpha1.FileSystem) {
			fs.Spec.MetadataServers.NodeSelector, fs.Spec.MetadataServers.InstancesPerNode = fs.Spec.BeeGFS.Management.NodeSelector, 1
			fs.Spec.MetadataServers.Targets.Directories = fs.Spec.MetadataServers.Targets.Directories[:1]
			fs.Spec.Clients.NodeSelector = fs.Spec.BeeGFS.Management.NodeSelector
			fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Devices: references(stays, leaves)}
			fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatIfBlank
		})
		w.settle()
		w.person(w.target(leaves), func(t *v1alpha1.StorageTarget) { t.Spec.Remove, t.Spec.WritersStopped = true, true })
		return w, leaves
	}
	// takenOut ends the drain as a person does, after the status asks for it.
	takenOut := func(w *world, leaves *fakeDisk) {
		w.settle()
		w.Expect(of(w.target(leaves), v1alpha1.ConditionSafeToRemove).Status).To(Equal(metav1.ConditionTrue))
		w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(w.disks[0]) })
	}
	ended := func(w *world, leaves *fakeDisk) {
		w.settle()
		w.Expect(w.hive.targets).To(HaveExactElements(HaveField("ID", int32(1))))
		w.Expect(leaves.mounted).To(BeFalse())
		w.Expect(leaves.wipes).To(BeZero())
		w.Expect(w.given()).To(ContainElement(And(HaveField("Role", v1alpha1.RoleStorage), HaveField("ID", int32(2)), HaveField("Retired", true))))
		w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
		w.forget()
	}
	for _, each := range inEach {
		t.Run(fmt.Sprintf("after each %d", each), func(t *testing.T) {
			w, leaves := begin(t)
			w.Expect(w.settleByDying(each, nil)).To(BeNumerically(">", 1), "of moving the data")
			takenOut(w, leaves)
			w.Expect(w.settleByDying(each, nil)).To(BeNumerically(">", 1), "of letting the disk go")
			ended(w, leaves)
		})
	}
}
