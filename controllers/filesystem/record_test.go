//go:build envtest

package filesystem_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// oldLists returns a client whose lists of FileSystemNodes are from an earlier time.
func oldLists(t *testing.T, old v1alpha1.FileSystemNodeList) client.Client {
	t.Helper()
	return interceptor.NewClient(server.Killable(t, -1), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if nodes, ok := list.(*v1alpha1.FileSystemNodeList); ok {
				old.DeepCopyInto(nodes)
				return nil
			}
			return c.List(ctx, list, options...)
		},
	})
}

// listNodes returns the present content of a cache of FileSystemNodes.
func (w *world) listNodes() v1alpha1.FileSystemNodeList {
	w.t.Helper()
	var list v1alpha1.FileSystemNodeList
	w.Expect(server.Client.List(w.ctx, &list, client.InNamespace(w.namespace))).To(Succeed())
	return list
}

// idsByOwner returns the holder of each id: a server, or a target of one.
func (w *world) idsByOwner() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	own := func(id, owner string) {
		w.Expect(out).NotTo(HaveKey(id), "%s and %s have it", out[id], owner)
		out[id] = owner
	}
	for _, g := range w.given() {
		if g.ID == 0 {
			continue
		}
		own(fmt.Sprintf("%s server %d", g.Role, g.ID), g.Server())
		for _, t := range g.Targets {
			if g.Role == v1alpha1.RoleStorage {
				own(fmt.Sprintf("target %d", t.ID), g.Server()+"/"+t.Name)
			}
		}
	}
	return out
}

// noIDTwice checks that no id changes its holder, and records the holders.
func (w *world) noIDTwice(had map[string]string) {
	w.t.Helper()
	for id, owner := range w.idsByOwner() {
		if before, used := had[id]; used {
			w.Expect(owner).To(Equal(before), id)
		}
		had[id] = owner
	}
}

func TestAManagerThatReadsOldListsAssignsNoIDTwice(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	before := w.listNodes()
	w.settle()
	made := w.listNodes()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Directories = append(fs.Spec.StoragePools[0].Targets.Directories, "/data/ssd1")
	})
	w.settle()
	numbers, had := w.numbersGiven(), w.idsByOwner()
	w.Expect(had).To(HaveLen(10))

	for name, old := range map[string]v1alpha1.FileSystemNodeList{"before any was made": before, "before the second target": made} {
		c := oldLists(t, old)
		for range 3 {
			err := w.reconcile(c)
			w.Expect(w.numbersGiven()).To(Equal(numbers), name)
			w.Expect(err).To(HaveOccurred(), "%s: the pass ends, and is tried again", name)
		}
	}
	w.Expect(w.get().Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(BeNumerically(">", 4), "what was used up in vain is not given to others")
	w.settle()
	w.Expect(w.numbersGiven()).To(Equal(numbers))
	w.Expect(w.get().Status.Given.Promised).To(BeEmpty())
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.hive.refused).To(BeEmpty())

	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Directories = append(fs.Spec.StoragePools[0].Targets.Directories, "/data/ssd2")
	})
	w.settle()
	w.noIDTwice(had)
	w.Expect(w.idsByOwner()).To(HaveLen(12))
}

func TestOperatorsOfABeeGFSThatAreKilledAfterEveryWriteAssignNoIDTwice(t *testing.T) {
	w := newWorld(t)
	_, _, data := w.beeGFSOnDisks()
	had := map[string]string{}
	w.eachLook = func() { w.noIDTwice(had) }
	w.Expect(w.settleKilled()).To(BeNumerically(">", 3))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(had).To(HaveLen(10), "4 metadata servers, 2 storage servers and 4 targets: none was lost")

	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = references(append(slices.Clone(data), w.disk(w.nodes[0], "more"))...)
	})
	w.Expect(w.settleKilled()).To(BeNumerically(">", 3))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(had).To(HaveLen(11))
	w.Expect(w.get().Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(5)))
	w.Expect(w.get().Status.Given.Promised).To(BeEmpty())
	w.Expect(w.hive.refused).To(BeEmpty())
}

func TestAFileSystemNodeThatIsDeletedByHandIsKeptAndGoesWithItsFileSystem(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	numbers, pods := w.numbersGiven(), w.uids()
	n := w.fileSystemNodes()[w.nodes[1]]
	w.Expect(n.Finalizers).To(ConsistOf(v1alpha1.Finalizer))
	w.Expect(server.Client.Delete(w.ctx, &n)).To(Succeed())
	w.settle()
	kept := w.fileSystemNodes()[w.nodes[1]]
	w.Expect(kept.UID).To(Equal(n.UID))
	w.Expect(kept.Status.Conditions).To(ContainElement(And(HaveField("Type", v1alpha1.ConditionStalled), HaveField("Reason", v1alpha1.ReasonRecordKept),
		HaveField("Message", ContainSubstring("the record of the assignments of meta-0, meta-1, storage-ssd")))))
	w.Expect(w.messages()).To(ContainElement(ContainSubstring("Warning RecordKept this FileSystemNode was deleted")))
	w.Expect(w.numbersGiven()).To(Equal(numbers))
	w.Expect(w.uids()).To(Equal(pods), "its servers go on")
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)

	// An addition meanwhile is recorded there as well.
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Directories = append(fs.Spec.StoragePools[0].Targets.Directories, "/data/ssd1")
	})
	w.settle()
	w.Expect(w.numbersGiven()).To(ContainElement("storage-ssd.n2 2: /data/ssd0=2 /data/ssd1=4"))

	w.delete()
	w.Expect(w.gone()).To(BeTrue(), "it does not hold up the deletion of its FileSystem")
	w.Expect(w.fileSystemNodes()).NotTo(HaveKey(w.nodes[1]), "and goes after it")
	w.collectGarbage()
}

func TestAFileSystemThatWaitsForItsDependentsReleasesItsFileSystemNodes(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	w.Expect(server.Client.Delete(w.ctx, w.get(), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
	for _, n := range w.fileSystemNodes() { // the garbage collector deletes them at once
		w.Expect(server.Client.Delete(w.ctx, &n)).To(Succeed())
	}
	w.Expect(w.reconcileNodes(server.Client)).To(Succeed())
	w.Expect(w.fileSystemNodes()).NotTo(BeEmpty(), "its servers still run")
	w.settle()
	w.Expect(w.pods()).To(BeEmpty())
	w.Expect(w.get().Finalizers).To(ConsistOf(metav1.FinalizerDeleteDependents))
	w.Expect(w.reconcileNodes(server.Client)).To(Succeed())
	w.Expect(w.fileSystemNodes()).To(BeEmpty())
}

func TestTheIDsOfAFileSystemNodeThatWasRemovedByForceAreNotAssignedAgain(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	w.settle()
	had := w.idsByOwner()
	n := w.fileSystemNodes()[w.nodes[1]]
	n.Finalizers = nil
	w.Expect(server.Client.Update(w.ctx, &n)).To(Succeed())
	w.Expect(server.Client.Delete(w.ctx, &n)).To(Succeed())
	for range 3 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
	}
	w.noIDTwice(had)
	w.Expect(w.numbersGiven()).To(ContainElements("meta-0.n1 1: /data/meta0=1", "meta-0.n2 5: /data/meta0=5", "storage-ssd.n2 3: /data/ssd0=3"))
}

func TestWritesThatOneFileSystemNodeRefusesHoldUpNoOther(t *testing.T) {
	w := newWorld(t)
	w.beeGFS(nil)
	refusing := interceptor.NewClient(server.Killable(t, -1), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if n, ok := o.(*v1alpha1.FileSystemNode); ok && n.Spec.Node == w.nodes[0] {
				return apiserver.ErrKilled
			}
			return c.Create(ctx, o, options...)
		},
	})
	for range 3 {
		w.Expect(w.reconcile(refusing)).To(MatchError(ContainSubstring("make FileSystemNode")))
	}
	w.Expect(w.fileSystemNodes()).To(And(HaveKey(w.nodes[1]), Not(HaveKey(w.nodes[0]))))
	w.Expect(w.sets()).To(BeEmpty(), "nothing follows from what is not recorded")
	w.settle()
	w.Expect(strings.Join(w.numbersGiven(), " ")).To(ContainSubstring("meta-0.n1 1:"), "what was promised is given")
	w.Expect(w.get().Status.Given.HighestOf(v1alpha1.NumberOfMetadataServer)).To(Equal(int32(4)))
}
