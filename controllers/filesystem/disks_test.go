//go:build envtest

package filesystem_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// threeDisks creates a disk for the metadata on the first node, and one for data on each of three nodes.
func (w *world) threeDisks() (metadata *fakeDisk, data []*fakeDisk) {
	metadata = w.disk(w.nodes[0], "meta")
	for _, node := range w.nodes {
		data = append(data, w.disk(node, "data"))
	}
	return metadata, data
}

// of returns a condition of a StorageTarget.
func of(t *v1alpha1.StorageTarget, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(t.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// person changes the spec of a StorageTarget as a person does: by a merge patch.
func (w *world) person(t *v1alpha1.StorageTarget, how func(t *v1alpha1.StorageTarget)) {
	w.t.Helper()
	before := t.DeepCopy()
	how(t)
	w.Expect(server.Client.Patch(w.ctx, t, client.MergeFrom(before), client.FieldOwner("kubectl-edit"))).To(Succeed())
}

func (w *world) formats() (n int) {
	for _, d := range w.disks {
		n += d.formats
	}
	return n
}

func TestAFileSystemOnDisksMakesAStorageTargetForEachAndStartsNothingBeforeTheyAreProven(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		w.onDisks(metadata, data...)(fs)
		fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatApproved
	})
	w.settle()
	w.Expect(w.targets()).To(HaveLen(4))
	w.Expect(w.target(metadata).Spec.Role).To(Equal(v1alpha1.RoleMetadata))
	for _, d := range data {
		w.Expect(w.target(d).Spec).To(And(HaveField("Role", v1alpha1.RoleStorage), HaveField("StoragePool", "ssd"), HaveField("Device.Serial", "S-"+d.id)))
		w.Expect(w.target(d).Finalizers).To(ConsistOf(v1alpha1.Finalizer))
	}
	w.Expect(w.formats()).To(BeZero())
	w.Expect(w.took).To(BeEmpty(), "no daemon has started")
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonTargetsNotReady),
		HaveField("Message", And(ContainSubstring(w.target(metadata).Name), ContainSubstring(v1alpha1.ReasonAwaitingApproval)))))
	w.Expect(of(w.target(data[0]), v1alpha1.ConditionOnline)).To(BeZero(), "of a filesystem that is being made, its own status tells")
	operator := w.operator(server.Client)
	for range 2 { // the passes are 20 minutes apart, and nothing has come online
		_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
		w.Expect(err).NotTo(HaveOccurred())
	}
	w.Expect(w.reconcileTargets(server.Client)).To(Succeed())
	w.Expect(of(w.target(data[0]), v1alpha1.ConditionOnline)).To(And(HaveField("Status", metav1.ConditionUnknown),
		HaveField("Reason", v1alpha1.ReasonProbeUnreachable)), "there is no filesystem that says anything")
	w.Expect(w.condition(v1alpha1.ConditionEvaluationOnly)).To(BeZero())

	for _, d := range w.disks {
		w.person(w.target(d), func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan = planHash })
	}
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)))
	w.Expect(w.get().Status.Metadata.Target).To(Equal(w.target(metadata).Name))
	w.Expect(w.get().Status.Summary).To(HaveValue(HaveField("Targets", "3/3")))
	for _, d := range w.disks {
		w.Expect(d.formats).To(Equal(1))
		w.Expect(of(w.target(d), v1alpha1.ConditionOnline)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonServing)))
	}
}

func TestAPersonsChangesOfAStorageTargetSurviveReconciles(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	w.person(w.target(data[0]), func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan, t.Spec.Remove = planHash, true })
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Queue = &v1alpha1.QueueSpec{Scheduler: "none"}
	})
	w.settle()
	w.Expect(w.target(data[0]).Spec).To(And(HaveField("ApprovedPlan", planHash), HaveField("Remove", true),
		HaveField("Queue", HaveValue(HaveField("Scheduler", "none")))))
	w.Expect(w.target(data[1]).Spec).To(And(HaveField("ApprovedPlan", ""), HaveField("Remove", false)))
}

func TestANoOpReconcileOfDisksWritesNothing(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	c := server.Killable(t, -1)
	for range 5 {
		w.Expect(w.reconcile(c)).To(Succeed())
		w.Expect(w.reconcileTargets(c)).To(Succeed())
	}
	w.Expect(c.Writes()).To(BeEmpty())
}

func TestADiskThatTwoFileSystemsSelectIsRefusedForBothWithTheirNames(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.fileSystem(w.onDisks(metadata, data...))
	w.Expect(w.reconcile(server.Client)).To(Succeed())

	other := *w
	other.namespace = server.Namespace(w.ctx, t)
	*w.namespaces = append(*w.namespaces, other.namespace)
	otherMetadata := w.disk(w.nodes[1], "meta")
	other.disks = w.disks
	other.fileSystem(func(fs *v1alpha1.FileSystem) {
		other.onDisks(otherMetadata, w.disk(w.nodes[0], "more"), data[1])(fs)
		fs.Spec.MooseFS.BasePort = 20000
		fs.Spec.MetadataServers.NodeSelector = v1alpha1.NodeSelector{corev1.LabelHostname: w.nodes[1]}
		fs.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"storage-of": w.namespace}
		fs.Spec.Clients = nil
	})
	var node corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: w.nodes[1]}, &node)).To(Succeed())
	node.Labels[corev1.LabelHostname] = w.nodes[1]
	w.Expect(server.Client.Update(w.ctx, &node)).To(Succeed())

	for range 3 {
		w.Expect(other.reconcile(server.Client)).To(Succeed())
		w.Expect(w.reconcile(server.Client)).To(Succeed())
	}
	w.agents()
	other.agents()
	w.Expect(data[1].formats).To(BeZero())
	w.Expect(data[0].formats).To(Equal(1), "the disks that only one wants go on")
	for _, one := range []*world{w, &other} {
		w.Expect(one.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonDeviceConflict),
			HaveField("Message", And(ContainSubstring(data[1].id), ContainSubstring(w.namespace+"/scratch"), ContainSubstring(other.namespace+"/scratch")))))
		w.Expect(one.condition(v1alpha1.ConditionStalled).Status).To(Equal(metav1.ConditionTrue))
	}
}

func TestANodeWithoutAnAgentIsNamedWithTheWayToGetOne(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.agentGone(w.nodes[2])
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		w.onDisks(metadata, data...)(fs)
		fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{Select: &v1alpha1.DeviceSelector{IDGlobs: []v1alpha1.Glob{"*-data"}, CountPerNode: 1}}
	})
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", And(
		ContainSubstring(w.nodes[2]), ContainSubstring(v1alpha1.LabelAgent)))))
	w.Expect(w.condition(v1alpha1.ConditionDegraded).Message).To(ContainSubstring(w.nodes[2]))
	w.Expect(w.get().Status.Summary.Targets).To(HavePrefix("2/"), "the other two nodes go on")

	w.mute[w.nodes[2]] = false
	w.inventory(w.nodes[2])
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}

func TestADiskIsAddedAndTakenUpByItsServerAlone(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	before := map[string]string{}
	for _, p := range w.pods() {
		before[p.Name] = string(p.UID)
	}
	more := w.disk(w.nodes[1], "more")
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = references(append(data, more)...)
	})
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Summary.Targets).To(Equal("4/4"))
	w.Expect(more.formats).To(Equal(1))
	for _, p := range w.pods() {
		restarted := string(p.UID) != before[p.Name]
		w.Expect(restarted).To(Equal(p.Name == "scratch-chunkserver-ssd."+w.nodes[1]), p.Name)
	}
}

func TestADiskIsRemovedWhenTheFilesystemReportsItEmpty(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	more := w.disk(w.nodes[1], "more")
	w.alive = true
	w.fileSystem(w.onDisks(metadata, append(data, more)...))
	w.settle()
	without := func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(data...) }

	w.person(w.target(more), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
	w.settle()
	w.Expect(of(w.target(more), v1alpha1.ConditionSafeToRemove)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonMovingData), HaveField("Message", ContainSubstring("are left on this target"))))
	w.change(without)
	w.settle()
	w.Expect(w.target(more).DeletionTimestamp).To(BeNil(), "its data is still on it")
	w.Expect(more.mounted).To(BeTrue())

	w.moved = true
	w.settle()
	w.Expect(w.targets()).To(HaveLen(4))
	w.Expect(more.mounted).To(BeFalse())
	w.Expect(more.target).NotTo(BeEmpty(), "what is on it is left as it is")
	w.Expect(more.wipes).To(BeZero())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Summary.Targets).To(Equal("3/3"))
}

func TestAnEmptyDiskIsReleasedOnlyByAnAnswerToTheRunningManager(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"data has come back to it":       func(w *world) { w.moved = false },
		"the filesystem does not answer": func(w *world) { w.alive = false },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			metadata, data := w.threeDisks()
			more := w.disk(w.nodes[1], "more")
			w.alive, w.moved = true, true
			w.fileSystem(w.onDisks(metadata, append(data, more)...))
			w.settle()
			w.person(w.target(more), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
			w.settle()
			w.Expect(of(w.target(more), v1alpha1.ConditionSafeToRemove).Status).To(Equal(metav1.ConditionTrue))

			happens(w)
			w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(data...) })
			for range 2 {
				w.Expect(w.reconcile(server.Client)).To(Succeed(), "nobody has said yet that it is not safe any more")
			}
			w.Expect(of(w.target(more), v1alpha1.ConditionSafeToRemove).Status).To(Equal(metav1.ConditionTrue))
			w.Expect(w.target(more).DeletionTimestamp).To(BeNil())
			w.Expect(more.mounted).To(BeTrue())

			w.alive, w.moved = true, true
			w.settle()
			w.Expect(w.targets()).To(HaveLen(4))
			w.Expect(more.mounted).To(BeFalse())
		})
	}
}

func TestADiskWithDataIsNotReleasedWhenItLeavesTheSpec(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	more := w.disk(w.nodes[1], "more")
	w.alive = true
	w.fileSystem(w.onDisks(metadata, append(data, more)...))
	w.settle()
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Targets.Devices = references(data...) })
	w.settle()
	w.Expect(w.target(more).DeletionTimestamp).To(BeNil())
	w.Expect(of(w.target(more), v1alpha1.ConditionOnline).Status).To(Equal(metav1.ConditionTrue))
}

func TestTheMetadataCanNotBeMovedToAnotherDisk(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	w.person(w.target(metadata), func(t *v1alpha1.StorageTarget) { t.Spec.Remove = true })
	w.settle()
	w.Expect(of(w.target(metadata), v1alpha1.ConditionSafeToRemove)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonNotRemovable)))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
}

func TestAStorageTargetThatIsDeletedByHandIsCreatedAgainWithItsData(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	was := w.target(data[1])
	w.Expect(server.Client.Delete(w.ctx, was)).To(Succeed())
	w.settle()
	w.Expect(w.target(data[1]).UID).To(Equal(was.UID), "its server still uses it")
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Reason", v1alpha1.ReasonTargetsNotReady), HaveField("Message", ContainSubstring(was.Name+" was deleted, and may hold data"))))

	for _, p := range w.pods() {
		if p.Name == "scratch-chunkserver-ssd."+w.nodes[1] {
			w.Expect(server.Client.Delete(w.ctx, &p)).To(Succeed())
		}
	}
	w.settle()
	again := w.target(data[1])
	w.Expect(again.UID).NotTo(Equal(was.UID))
	w.Expect(again.Status.Provisioned.UUID).To(Equal(was.Status.Provisioned.UUID))
	w.Expect(data[1].formats).To(Equal(1))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
}
