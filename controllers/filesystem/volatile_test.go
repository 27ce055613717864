package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem/derive"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

// keeping is a backend that keeps copies of metadata on nodes.
type keeping struct{ backendtest.Example }

func (keeping) Selectors(*v1alpha1.FileSystem) []backend.Selector {
	return []backend.Selector{{Labels: v1alpha1.NodeSelector{"copies": ""}}}
}

func TestNodesWithServersThatDoNotSeeTheirDisksAreNamed(t *testing.T) {
	g := NewWithT(t)
	own := []v1alpha1.StorageTarget{{}, {}, {}, {}, {}}
	for i, node := range []string{"n2", "n1", "n1", "n3", "n4"} {
		own[i].Spec.Node = node
	}
	in := backend.Input{Inventories: map[string]v1alpha1.NodeInventoryStatus{
		"n1": {UnsharedState: "/"}, "n2": {UnsharedState: "/var"}, "n3": {}, "n5": {UnsharedState: "/"},
	}}
	fs := &v1alpha1.FileSystem{}
	condition := func() *metav1.Condition {
		derive.Unshared(fs, own, in)
		return meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionMountsShared)
	}
	g.Expect(condition()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonUnsharedMount), HaveField("Message",
		"servers do not see disks that the agent mounts; run mount --make-rshared for these mounts at each start of the node: n1 (/), n2 (/var)")))
	own = own[3:]
	g.Expect(condition()).To(BeNil(), "no disk of the filesystem is on the others")
}

func TestPartnersThatAreNotProvenAreReportedUntilTheyAreAndAreNoFaultOfTheFilesystem(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	p := &pass{
		Reconciler: &Reconciler{Clock: clock.RealClock{}, Order: clock.RealClock{}},
		fs:         fs, read: fs, observed: true, backend: backendtest.Example{}, hold: &hold{},
	}
	condition := func(partners *backend.Problem) *metav1.Condition {
		p.observation.Partners = partners
		p.describe(nil)
		return meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPartnersProven)
	}
	g.Expect(condition(nil)).To(BeNil())
	before := meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionDegraded)
	g.Expect(condition(&backend.Problem{Reason: v1alpha1.ReasonPartnersUnproven, Message: "1 target has no second node"})).To(HaveValue(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonPartnersUnproven),
		HaveField("Message", "1 target has no second node"), HaveField("ObservedGeneration", int64(3)))))
	g.Expect(meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionDegraded)).To(Equal(before))
	g.Expect(condition(nil)).To(BeNil(), "it goes when they are proven")
}

func TestCopiesOfMetadataOnNodesThatKeepNothingAreNamed(t *testing.T) {
	g := NewWithT(t)
	labels := map[string]string{"copies": "", "backups": ""}
	in := backend.Input{
		Nodes: []backend.Node{{Name: "n1", Labels: labels}, {Name: "n2", Labels: labels}, {Name: "n3", Labels: labels}, {Name: "n4"}},
		Inventories: map[string]v1alpha1.NodeInventoryStatus{
			"n1": {VolatileState: "tmpfs"}, "n2": {}, "n4": {VolatileState: "tmpfs"},
		},
	}
	fs := &v1alpha1.FileSystem{}
	condition := func(b backend.Backend) *metav1.Condition {
		derive.Volatile(b, fs, in)
		return meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionCopiesLast)
	}
	g.Expect(condition(keeping{})).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonVolatileNodes), HaveField("Message",
		"copies of metadata are lost when these nodes restart; mount a disk at /var/lib there, or choose others: n1 (tmpfs)")))
	g.Expect(condition(backendtest.Example{})).To(BeNil(), "it keeps none")
	fs.Spec.Backups = &v1alpha1.BackupsSpec{Nodes: &v1alpha1.BackupsNodes{NodeSelector: v1alpha1.NodeSelector{"backups": ""}, Count: 1, Directory: "/var/lib/parallelfs-backups"}}
	g.Expect(condition(backendtest.Example{})).NotTo(BeNil())
	fs.Spec.Backups.Nodes.Directory = "/disks/backups"
	g.Expect(condition(backendtest.Example{})).To(BeNil(), "nobody has looked at that directory")
	in.Inventories["n1"] = v1alpha1.NodeInventoryStatus{}
	g.Expect(condition(keeping{})).To(BeNil())
}
