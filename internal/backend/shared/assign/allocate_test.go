package assign

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestAPoolKeepsItsSlotAndItsNodes(t *testing.T) {
	g := NewWithT(t)
	pool := func(name, label string) v1alpha1.StoragePoolSpec {
		targets := v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data"}}
		return v1alpha1.StoragePoolSpec{Name: name, NodeSelector: v1alpha1.NodeSelector{label: ""}, Copies: 1, Targets: targets}
	}
	in := backend.Input{
		FileSystem: &v1alpha1.FileSystem{
			Spec:   v1alpha1.FileSystemSpec{Type: "Example", StoragePools: []v1alpha1.StoragePoolSpec{pool("new", "ssd"), pool("old", "hdd")}},
			Status: v1alpha1.FileSystemStatus{StoragePools: []v1alpha1.StoragePoolStatus{{Name: "old", Slot: 0}}},
		},
		FileSystemNodes: onNodes("old", "n9"),
		Nodes:           []backend.Node{{Name: "n1", Labels: map[string]string{"ssd": "", "hdd": ""}}},
	}
	of := func(most int32) *Numbers {
		return NewNumbers(in, OnDisks{}, Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: most}})
	}
	g.Expect(RecordPools(in, OnDisks{}, of(2))).To(Equal([]backend.PoolRecord{{Name: "new", Slot: 1, Nodes: []string{"n1"}}, {Name: "old", Slot: 0, Nodes: []string{"n1", "n9"}}}))
	_, err := RecordPools(in, OnDisks{}, of(1))
	g.Expect(err).To(MatchError(ContainSubstring(`storage pool "new" is one too many: a Example filesystem has at most 1`)))

	in.FileSystem.Spec.StoragePools[0].Targets.Directories = nil
	g.Expect(RecordPools(in, OnDisks{}, of(1))).To(ContainElement(And(HaveField("Name", "new"), HaveField("Waits", true))),
		"its disks may say which slot it has, none is chosen yet, and no slot is used up meanwhile")
}

func TestServersThatJoinAreNamed(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{Status: v1alpha1.FileSystemStatus{StoragePools: []v1alpha1.StoragePoolStatus{{Name: "ssd", UsedBytes: 7}}}}
	in := backend.Input{FileSystem: fs, FileSystemNodes: onNodes("ssd", "n1", "n2")}
	metadata := v1alpha1.MetadataRecord{Node: "n1"}
	numbers := NewNumbers(in, OnDisks{}, Numbering{Most: map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStoragePool: 2}})
	same, joins := Recorded(in, metadata, []backend.PoolRecord{{Name: "ssd", Nodes: []string{"n1", "n2"}}}, numbers)
	g.Expect(joins).To(BeEmpty())
	g.Expect(same.StoragePools).To(Equal(fs.Status.StoragePools), "what was observed of a pool stays")
	g.Expect(same.Metadata).To(HaveValue(Equal(metadata)))
	g.Expect(same.Given.HighestOf(v1alpha1.NumberOfStoragePool)).To(Equal(int32(1)))

	pools := []backend.PoolRecord{{Name: "ssd", Nodes: []string{"n1", "n2", "n3"}}, {Name: "bulk", Slot: 1, Nodes: []string{"n4"}}}
	grown, joins := Recorded(in, metadata, pools, numbers)
	g.Expect(joins).To(Equal([]string{"node n3 joins storage pool ssd", "storage pool bulk is made"}))
	g.Expect(grown.StoragePools).To(HaveExactElements(HaveField("Name", "ssd"), And(HaveField("Name", "bulk"), HaveField("Slot", int32(1)))))
	g.Expect(PoolNodes(pools)).To(Equal(map[string][]string{"ssd": {"n1", "n2", "n3"}, "bulk": {"n4"}}))
	g.Expect(fs.Status.Metadata).To(BeNil(), "the question is left as it was")
	g.Expect(fs.Status.StoragePools).To(HaveLen(1))
}
