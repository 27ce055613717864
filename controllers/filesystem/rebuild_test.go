//go:build envtest

package filesystem_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// anotherCluster is the identity of the cluster that replaces the lost one.
const anotherCluster = "c2c2c2c2-0000-0000-0000-000000000002"

// loseCluster drops all objects, as when etcd is lost. The content of the disks stays, and nothing is mounted after the reboot. A BeeGFS
// keeps its state, which is on a disk.
func (w *world) loseCluster() {
	w.t.Helper()
	w.loseObjects()
	w.cluster = anotherCluster
}

func (w *world) loseObjects() {
	w.t.Helper()
	ctx := context.WithoutCancel(w.ctx)
	for _, list := range []client.ObjectList{
		&v1alpha1.StorageTargetList{}, &v1alpha1.FileSystemNodeList{}, &v1alpha1.FileSystemList{}, &appsv1.DaemonSetList{}, &batchv1.JobList{},
		&appsv1.DeploymentList{}, &policyv1.PodDisruptionBudgetList{},
		&corev1.PodList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &coordinationv1.LeaseList{},
	} {
		w.Expect(server.Client.List(ctx, list, client.InNamespace(w.namespace))).To(Succeed())
		for _, o := range objectsOf(list) {
			if len(o.GetFinalizers()) > 0 {
				o.SetFinalizers(nil)
				w.Expect(server.Client.Update(ctx, o)).To(Succeed())
			}
			err := server.Client.Delete(ctx, o, client.GracePeriodSeconds(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
			w.Expect(client.IgnoreNotFound(err)).To(Succeed())
		}
	}
	for _, d := range w.disks {
		d.mounted = false
	}
	clear(w.files)
	clear(w.took)
	if w.hive != nil {
		clear(w.hive.has)
	}
}

func objectsOf(list client.ObjectList) []client.Object {
	items, _ := meta.ExtractList(list) // the types are lists
	out := make([]client.Object, len(items))
	for i := range items {
		out[i], _ = items[i].(client.Object)
	}
	return out
}

// numbers returns everything that is assigned permanently: ids, ports and slots, by holder.
func (w *world) numbers() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for _, g := range w.given() {
		out[g.Server()] = fmt.Sprintf("%s %s slot %d id %d", g.Role, g.StoragePool, g.Slot, g.ID)
		for _, t := range g.Targets {
			if t.ID != 0 {
				out[g.Server()+"/"+t.Name] = fmt.Sprintf("id %d initialized %t", t.ID, t.Initialized != nil)
			}
		}
	}
	fs := w.get()
	for _, p := range fs.Status.StoragePools {
		out["pool "+p.Name] = fmt.Sprint("slot ", p.Slot)
	}
	if m := fs.Status.Metadata; m != nil {
		out["metadata"] = fmt.Sprintf("%s %s initialized %t", m.Node, m.Directory, m.Initialized != nil)
	}
	if fs.Status.BeeGFS != nil {
		out["ports"] = fmt.Sprint(fs.Status.BeeGFS.BasePort)
	}
	return out
}

// grownBeeGFS creates a BeeGFS on disks whose ids and ports differ from those that a new one would get: its second node was added first,
// and its ports were requested.
func (w *world) grownBeeGFS() (management *fakeDisk, metadata, data []*fakeDisk) {
	w.t.Helper()
	management, metadata, data = w.beeGFSOnDisks(func(fs *v1alpha1.FileSystem) { fs.Spec.BeeGFS.BasePort = new(int32(9000)) })
	w.relabel(w.nodes[0], "bee-of", "not-yet")
	w.settle()
	w.relabel(w.nodes[0], "bee-of", w.namespace)
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	return management, metadata, data
}

func (w *world) relabel(node, name, value string) {
	w.t.Helper()
	var n corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &n)).To(Succeed())
	n.Labels[name] = value
	w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
}

// applyAgain creates the FileSystem from the earlier manifest, with the lost cluster in takeOver.
func (w *world) applyAgain(before *v1alpha1.FileSystem, change func(fs *v1alpha1.FileSystem)) {
	w.t.Helper()
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec = *before.Spec.DeepCopy()
		fs.Spec.Provisioning.TakeOver = cluster
		if fs.Spec.BeeGFS != nil {
			fs.Spec.BeeGFS.BasePort = nil
		}
		if change != nil {
			change(fs)
		}
	})
}

func TestALostClusterIsRebuiltFromItsDisksWithOneApproval(t *testing.T) {
	w := newWorld(t)
	w.grownBeeGFS()
	before, had, formats, prepared, commands := w.get(), w.numbers(), w.formats(), maps.Clone(w.hive.prepared), len(w.hive.commands)
	w.Expect(had).To(HaveKeyWithValue("storage-ssd."+w.nodes[0], "Storage ssd slot 0 id 2"), "a new filesystem would give it 1")

	w.loseCluster()
	w.applyAgain(before, func(fs *v1alpha1.FileSystem) { fs.Spec.Provisioning.TakeOver = "" })
	w.settle()
	w.Expect(w.get().Status.Metadata).To(BeNil(), "nothing is given while the disks may say what was given")
	w.Expect(w.given()).To(BeEmpty())
	w.Expect(w.sets()).To(BeEmpty())
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(BeZero(), "nothing comes by itself")
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Reason", v1alpha1.ReasonRecordsUnread),
		HaveField("Message", And(ContainSubstring("OtherCluster"), ContainSubstring("spec.provisioning.takeOver")))))

	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Provisioning.TakeOver = cluster })
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "%s", w.ready().Message)
	w.Expect(w.numbers()).To(Equal(had))
	w.Expect(w.formats()).To(Equal(formats))
	w.Expect(w.hive.prepared).To(Equal(prepared), "no daemon prepared a directory anew")
	w.Expect(w.hive.refused).To(BeEmpty())
	w.Expect(w.hive.commands[commands:]).NotTo(ContainElement(ContainSubstring("--remove")))

	// New members get numbers after all earlier ones.
	more := w.disk(w.nodes[0], "data2")
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = append(fs.Spec.StoragePools[0].Targets.Devices, references(more)...)
	})
	w.settle()
	w.Expect(w.numbers()).To(HaveKeyWithValue("storage-ssd."+w.nodes[0]+"/"+w.target(more).Name, "id 5 initialized true"))
}

func TestARebuildWithAKillAfterEveryWriteEndsInTheSameState(t *testing.T) {
	w := newWorld(t)
	w.grownBeeGFS()
	before, had := w.get(), w.numbers()
	w.loseCluster()
	w.applyAgain(before, nil)
	for killed := 0; ; killed++ {
		err := w.settleWith(server.Killable(t, 1+killed%3))
		if err == nil {
			w.Expect(killed).To(BeNumerically(">", 10))
			break
		}
		w.Expect(err).To(MatchError(apiserver.ErrKilled))
		w.Expect(killed).To(BeNumerically("<", 300), "it does not get on")
		w.agents()
		w.runPods()
		w.workJobs()
	}
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "%s", w.ready().Message)
	w.Expect(w.numbers()).To(Equal(had))
	w.Expect(w.hive.refused).To(BeEmpty())
}

func TestRecordedTargetsServeAndNothingNewIsAssignedWhileADiskIsUnread(t *testing.T) {
	w := newWorld(t)
	_, _, data := w.grownBeeGFS()
	before, had := w.get(), w.numbers()
	w.loseCluster()
	dead, more := data[1], w.disk(w.nodes[1], "data2")
	dead.unreadable = "input/output error"
	w.applyAgain(before, func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = append(fs.Spec.StoragePools[0].Targets.Devices, references(more)...)
	})
	w.settle()
	lacks := "storage-ssd." + w.nodes[0] + "/" + w.target(dead).Name
	expected := maps.Clone(had)
	delete(expected, lacks)
	w.Expect(w.numbers()).To(Equal(expected), "all others have what they had, and the new disk nothing")
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Reason", v1alpha1.ReasonRecordsUnread),
		HaveField("Message", ContainSubstring(w.target(dead).Name+" on node "+w.nodes[0]))))
	w.Expect(w.hive.refused).To(BeEmpty())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), "what is known serves")
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonRecordsUnread)))

	dead.unreadable = ""
	w.settle()
	expected[lacks] = had[lacks]
	expected["storage-ssd."+w.nodes[1]+"/"+w.target(more).Name] = "id 5 initialized true"
	w.Expect(w.numbers()).To(Equal(expected))
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "%s", w.ready().Message)
}

func TestTwoDisksThatClaimOneNumberAreNamedAndNothingIsAssigned(t *testing.T) {
	w := newWorld(t)
	_, _, data := w.grownBeeGFS()
	before := w.get()
	name := w.target(data[1]).Name
	w.loseCluster()
	path := filepath.Join(data[1].top, spec.TargetRecordFile)
	content, err := os.ReadFile(path)
	w.Expect(err).NotTo(HaveOccurred())
	claims := regexp.MustCompile(`"targetID": [34]`)
	w.Expect(claims.Find(content)).NotTo(BeNil())
	w.Expect(os.WriteFile(path, claims.ReplaceAll(content, []byte(`"targetID": 2`)), 0o600)).To(Succeed())
	w.applyAgain(before, nil)
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Reason", v1alpha1.ReasonRecordsDisagree),
		HaveField("Message", And(ContainSubstring(name), ContainSubstring("the target id 2 is that of both")))))
	w.Expect(w.given()).To(BeEmpty())
}

func TestAMooseFSIsRebuiltWithItsSlotsAndItsMasterIsNeverInitializedAgain(t *testing.T) {
	w := newWorld(t)
	metadata, data := w.threeDisks()
	var more []*fakeDisk
	for _, node := range w.nodes {
		more = append(more, w.disk(node, "bulk"))
	}
	w.alive = true
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	w.change(func(fs *v1alpha1.FileSystem) {
		bulk := *fs.Spec.StoragePools[0].DeepCopy()
		bulk.Name, bulk.Targets.Devices = "bulk", references(more...)
		fs.Spec.StoragePools = append([]v1alpha1.StoragePoolSpec{bulk}, fs.Spec.StoragePools...)
	})
	w.settle()
	before, had := w.get(), w.numbers()
	w.Expect(had).To(HaveKeyWithValue("pool bulk", "slot 1"), "a new filesystem would give it 0, because it stands first")
	name := w.target(metadata).Name

	w.loseCluster()
	w.applyAgain(before, nil)
	w.settle()
	w.Expect(w.numbers()).To(Equal(had))
	w.Expect(w.masterMayInitialize()).To(BeFalse())
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "%s", w.ready().Message)

	// It happens again, and the disk of the metadata is gone: no other disk replaces it.
	w.loseCluster()
	w.disks = slices.DeleteFunc(w.disks, func(d *fakeDisk) bool { return d == metadata })
	instead := w.disk(w.nodes[0], "instead")
	w.cluster = "c3c3c3c3-0000-0000-0000-000000000003"
	w.applyAgain(before, func(fs *v1alpha1.FileSystem) {
		fs.Spec.Provisioning.TakeOver = anotherCluster
		fs.Spec.MetadataServers.Targets.Devices = references(instead)
	})
	w.settle()
	w.Expect(w.get().Status.Metadata).To(HaveField("Target", name))
	w.Expect(w.masterMayInitialize()).To(BeFalse())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionFalse))
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Annotations = map[string]string{v1alpha1.AnnotationRecoverMetadata: v1alpha1.RecoverPlan}
	})
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionRecovering)).To(HaveField("Message", ContainSubstring("docs/recovery.md (A lost cluster)")))
}

func TestAFileSystemThatIsMadeAgainInItsClusterHasItsNumbersFromItsDisks(t *testing.T) {
	w := newWorld(t)
	w.grownBeeGFS()
	before, had := w.get(), w.numbers()
	w.delete()
	w.Expect(w.gone()).To(BeTrue())
	w.loseObjects() // the garbage collector, which does not run here, removes the FileSystem's children
	w.applyAgain(before, func(fs *v1alpha1.FileSystem) { fs.Spec.Provisioning.TakeOver = "" })
	w.settle()
	w.Expect(w.numbers()).To(Equal(had))
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "%s", w.ready().Message)
}

func TestAFileSystemOfAnotherNamespaceTakesOverTheDisksOfADeletedOneWhenTheirPlansAreApproved(t *testing.T) {
	w, metadata, data := onRunningDisks(t, nil)
	all := append([]*fakeDisk{metadata}, data...)
	before, had, formats, old, earlier := w.get(), w.numbers(), w.formats(), w.namespace, map[*fakeDisk]string{}
	var owners []v1alpha1.FormerOwner
	for _, node := range w.nodes {
		owners = append(owners, v1alpha1.FormerOwner{Cluster: cluster, Namespace: old, FileSystem: before.Name, Node: node})
	}
	for _, d := range all {
		earlier[d] = d.target
	}
	untouched := func(why string) {
		t.Helper()
		for _, d := range all {
			w.Expect(d.target).To(Equal(earlier[d]), why)
		}
		w.Expect(w.formats()).To(Equal(formats), why)
		w.Expect(w.sets()).To(BeEmpty(), why)
		w.Expect(w.given()).To(BeEmpty(), why)
		w.Expect(w.get().Status.Metadata).To(BeNil(), why)
	}

	w.namespace = server.Namespace(w.ctx, t)
	*w.namespaces = append(*w.namespaces, w.namespace)
	w.applyAgain(before, func(fs *v1alpha1.FileSystem) {
		fs.Spec.Provisioning.TakeOver, fs.Spec.Provisioning.TakeOverFrom = "", owners
		fs.Spec.MooseFS.BasePort += 100
		fs.Spec.Clients = nil
	})
	w.settle()
	untouched("the FileSystem that has the disks still exists")
	for _, d := range all {
		w.Expect(of(w.target(d), v1alpha1.ConditionReady)).To(And(HaveField("Reason", v1alpha1.ReasonDeviceConflict),
			HaveField("Message", ContainSubstring(earlier[d]))))
	}

	is := w.namespace
	w.namespace = old
	w.delete()
	w.Expect(w.gone()).To(BeTrue())
	w.loseObjects() // the garbage collector, which does not run here, removes the FileSystem's children
	w.namespace = is
	w.settle()
	untouched("nobody has approved the plans")
	plans := map[*fakeDisk]string{}
	for _, d := range all {
		target := w.target(d)
		ready := of(target, v1alpha1.ConditionReady)
		w.Expect(ready).To(HaveField("Reason", v1alpha1.ReasonAwaitingApproval), "%s", ready.Message)
		w.Expect(target.Status.Plan.Steps[0]).To(ContainSubstring("StorageTarget %s of MooseFS FileSystem %s/scratch on node %s of cluster %s",
			earlier[d], old, d.node, cluster))
		w.Expect(target.Status.Plan.Destroys).To(BeEmpty())
		plans[d] = target.Status.Plan.Hash
		w.person(target, func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan = planHash })
	}
	w.settle()
	untouched("another hash was approved")

	for _, d := range all {
		w.person(w.target(d), func(t *v1alpha1.StorageTarget) { t.Spec.ApprovedPlan = plans[d] })
	}
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "%s", w.ready().Message)
	had["metadata"] = strings.Replace(had["metadata"], "/"+old+".", "/"+w.namespace+".", 1)
	w.Expect(w.numbers()).To(Equal(had))
	w.Expect(w.formats()).To(Equal(formats))
	w.Expect(w.masterMayInitialize()).To(BeFalse())
	for _, d := range all {
		w.Expect(d.target).To(Equal(w.namespace + "/" + w.target(d).Name))
		w.Expect(d.uuid).To(Equal(w.target(d).Status.Provisioned.UUID))
	}
}
