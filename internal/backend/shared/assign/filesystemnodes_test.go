package assign

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestTheRecordIsNeverTakenFromTheConfiguration(t *testing.T) {
	g := NewWithT(t)
	observed := new(metav1.NewTime(time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)))
	in := backend.Input{FileSystem: filesystem()}
	records := NewRecords(in)
	records.Change("n1", v1alpha1.NodeMember{Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", Slot: 2, ID: 7, Targets: []v1alpha1.MemberTarget{
		{Name: "kept", ID: 70, Initialized: observed}, {Name: "taken-out", ID: 71, Initialized: observed, Drained: observed, TakenOut: observed},
	}})
	records.Change("n1", v1alpha1.NodeMember{Name: "meta-0", Role: v1alpha1.RoleMetadata, ID: 3, Retired: true})
	in.FileSystemNodes = records.All()

	configured := map[string][]v1alpha1.NodeMember{
		"n1": {
			{Name: "storage-ssd", Role: v1alpha1.RoleStorage, ID: 9, Waits: "for CPUs", Targets: []v1alpha1.MemberTarget{
				{Name: "kept", ID: 90, Path: "/mnt/kept"}, {Name: "directory", Path: "/data"}, {Name: "never-given", ID: 91, Path: "/mnt/x"},
			}},
			{Name: "management", Role: v1alpha1.RoleManagement},
			{Name: "storage-hdd", Role: v1alpha1.RoleStorage, StoragePool: "hdd", ID: 10},
		},
		"n2": {{Name: "metalogger", Role: v1alpha1.RoleMetadataBackup}},
	}
	nodes := FileSystemNodes(in, nil, configured)
	g.Expect(nodes).To(HaveLen(2))
	g.Expect(nodes[0].Spec.Members).To(HaveExactElements(
		And(HaveField("Name", "management"), HaveField("ID", BeZero())),
		And(HaveField("Name", "meta-0"), HaveField("ID", int32(3)), HaveField("Retired", true)),
		And(HaveField("Name", "storage-ssd"), HaveField("StoragePool", "ssd"), HaveField("Slot", int32(2)), HaveField("ID", int32(7)), HaveField("Waits", "for CPUs"),
			HaveField("Targets", HaveExactElements(
				v1alpha1.MemberTarget{Name: "directory", Path: "/data"},
				v1alpha1.MemberTarget{Name: "kept", ID: 70, Path: "/mnt/kept", Initialized: observed},
				v1alpha1.MemberTarget{Name: "taken-out", ID: 71, Initialized: observed, Drained: observed, TakenOut: observed},
			)))), "what was given to nobody is not told either")
	g.Expect(nodes[0].Labels).To(And(HaveKeyWithValue(v1alpha1.LabelFileSystem, "scratch"), HaveKeyWithValue(v1alpha1.LabelNode, "n1")))

	in.FileSystemNodes = nodes
	again := FileSystemNodes(in, nil, nil)
	g.Expect(again[0].Spec.Members).To(HaveExactElements(HaveField("Name", "meta-0"), HaveField("Name", "storage-ssd")), "of nothing told, the record stays")
	g.Expect(again[1].Spec.Members).To(BeEmpty(), "who was given nothing goes")
}

func TestRecordsChangeCopiesOnlyAndNameWhatTheyChanged(t *testing.T) {
	g := NewWithT(t)
	in := backend.Input{FileSystem: filesystem(), FileSystemNodes: onNodes("ssd", "n1", "n2")}
	records := NewRecords(in)
	records.Join([]backend.PoolRecord{{Name: "ssd", Nodes: []string{"n1", "n2", "n3"}}}, func(pool string) string { return "storage/" + pool })
	g.Expect(records.Changed()).To(HaveExactElements(HaveField("Spec.Node", "n3")))
	records.Change("n1", v1alpha1.NodeMember{Name: "storage-ssd"}).Retired = true
	g.Expect(in.FileSystemNodes[0].Spec.Members[0].Retired).To(BeFalse())
	g.Expect(records.Changed()).To(HaveExactElements(HaveField("Spec.Node", "n1"), HaveField("Spec.Node", "n3")))
	g.Expect(records.All()).To(HaveLen(3))

	in.FileSystemNodes = WithRecords(in.FileSystemNodes, records.Changed())
	given, ok := in.GivenTo("n1", "storage-ssd")
	g.Expect(ok).To(BeTrue())
	g.Expect(given.Retired).To(BeTrue())
	g.Expect(given.Server()).To(Equal("storage-ssd.n1"))
	in.FileSystem.Status.StoragePools = []v1alpha1.StoragePoolStatus{{Name: "ssd", Slot: 4}}
	pool, recorded := in.Pool("ssd")
	g.Expect(recorded).To(BeTrue())
	g.Expect(pool).To(Equal(backend.PoolRecord{Name: "ssd", Slot: 4, Nodes: []string{"n1", "n2", "n3"}}))
}
