package beegfs

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestTheHighestOfAllThatIsKnownWins(t *testing.T) {
	cases := map[string]func(in *backend.Input){
		"a status that was restored is older than what is recorded": func(in *backend.Input) {
			in.FileSystem.Status.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 8000}
			usedUp(in, v1alpha1.NumberOfMetadataServer, 1)
			give(in, "oss2", v1alpha1.NodeMember{Name: "meta-3", Role: v1alpha1.RoleMetadata, Slot: 3, ID: 20})
			give(in, "gone", v1alpha1.NodeMember{
				Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 30, Retired: true, Targets: []v1alpha1.MemberTarget{{Name: "a", ID: 40}}})
		},
		"BeeGFS lists servers and targets without a record": func(in *backend.Input) {
			in.State = &backend.State{
				Servers: []backend.Server{{Role: v1alpha1.RoleMetadata, ID: 20}, {Role: v1alpha1.RoleStorage, ID: 30}, {Role: v1alpha1.RoleManagement, ID: 1}},
				Targets: []backend.Target{{Role: v1alpha1.RoleMetadata, ID: 19}, {Role: v1alpha1.RoleStorage, ID: 40, ServerID: 29}},
			}
		},
		"BeeGFS remembers a target, and not its server": func(in *backend.Input) {
			in.State = &backend.State{Targets: []backend.Target{{Role: v1alpha1.RoleMetadata, ID: 20}, {ID: 40, ServerID: 30}}}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := cluster("7.4.6")
			change(&in)
			in = recorded(t, in)
			highest := in.FileSystem.Status.Given.HighestOf
			g.Expect(highest(v1alpha1.NumberOfMetadataServer)).To(BeNumerically(">=", 27))
			g.Expect(highest(v1alpha1.NumberOfStorageServer)).To(BeEquivalentTo(34))
			g.Expect(highest(v1alpha1.NumberOfStorageTarget)).To(BeEquivalentTo(46))
			g.Expect(given(in)).To(ContainElements("meta-0.oss1 21: ssd-m0=21", "storage-ssd.oss1 31: ssd-s0=41 ssd-s1=42"))
		})
	}
}

func TestAnIDIsPromisedByTheStatusUntilItIsRecorded(t *testing.T) {
	g := NewWithT(t)
	in := cluster("7.4.6")
	first, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(first.Status.Given.Promised).To(HaveExactElements(HaveField("Node", "oss1"), HaveField("Node", "oss2")))

	// The operator is killed after it has written the status, and then a node is added whose name sorts before all others.
	in.FileSystem.Status = first.Status
	in.Nodes = append(in.Nodes, backend.Node{Name: "aaa", IP: "10.0.0.3", Ready: true, Labels: labels(storageLabel)})
	in.FileSystem.Spec.StoragePools[0].Targets.Devices = append(in.FileSystem.Spec.StoragePools[0].Targets.Devices, devices("aaa", "new")...)
	in.Targets = append(in.Targets, disk("aaa", "new", v1alpha1.RoleStorage, "ssd", 0, 1e12))
	second, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	in.FileSystem.Status, in.FileSystemNodes = second.Status, second.Nodes
	g.Expect(given(in)).To(ContainElements("storage-ssd.oss1 1: ssd-s0=1 ssd-s1=2", "storage-ssd.aaa 5: new=7"), "each gets what was promised to it")

	third, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(third.Nodes).To(BeEmpty())
	g.Expect(third.Status.Given.Promised).To(BeEmpty(), "it is recorded")
	g.Expect(third.Status.Given.HighestOf(v1alpha1.NumberOfStorageTarget)).To(Equal(int32(7)))
}

func TestANumberPromisedToAMissingDiskIsNotAssigned(t *testing.T) {
	g := NewWithT(t)
	in := cluster("7.4.6")
	first, err := New().Allocate(in)
	g.Expect(err).NotTo(HaveOccurred())
	in.FileSystem.Status = first.Status
	in.Targets = deleteTarget(in.Targets, "scratch-oss1-ssd-s0")
	in = recorded(t, in)
	g.Expect(given(in)).To(ContainElement("storage-ssd.oss1 1: ssd-s1=2"))
	in.Targets = append(in.Targets, disk("oss1", "ssd-s0", v1alpha1.RoleStorage, "ssd", 0, 1600e9))
	g.Expect(given(recorded(t, in))).To(ContainElement("storage-ssd.oss1 1: ssd-s0=7 ssd-s1=2"))
}

// TestNoIDIsUsedTwiceWhateverIsWrittenAndWhateverIsLost runs one operator after another. Each writes the status, and then only some of the
// FileSystemNodes. The next operator does not read all of those that were written, and its writes of the others fail.
func TestNoIDIsUsedTwiceWhateverIsWrittenAndWhateverIsLost(t *testing.T) {
	for seed := range 50 {
		g := NewWithT(t)
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		in := cluster("7.4.6")
		there, owners := map[string]v1alpha1.FileSystemNode{}, map[string]string{}
		for step := range 30 {
			if step%5 == 4 { // one more disk
				node, id := []string{"oss1", "oss2"}[random.IntN(2)], fmt.Sprintf("more-%d", step)
				in.Targets = append(in.Targets, disk(node, id, v1alpha1.RoleStorage, "ssd", 0, 1e12))
			}
			in.FileSystemNodes = nil
			for _, node := range slices.Sorted(maps.Keys(there)) {
				if random.IntN(3) > 0 {
					in.FileSystemNodes = append(in.FileSystemNodes, there[node])
				}
			}
			read := nodesOf(in)
			allocation, err := New().Allocate(in)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(nodesOf(in)).To(Equal(read), "the question is left as it was")
			in.FileSystem.Status = allocation.Status
			for _, n := range allocation.Nodes {
				_, exists := there[n.Spec.Node]
				known := slices.ContainsFunc(read, func(r v1alpha1.FileSystemNode) bool { return r.Spec.Node == n.Spec.Node })
				if exists == known && random.IntN(2) == 0 { // Create of an existing object fails
					there[n.Spec.Node] = n
				}
			}
			for _, g2 := range backend.GivenOn(slices.Collect(maps.Values(there))) {
				for _, key := range append([]string{fmt.Sprintf("%s %d=", g2.Role, g2.ID)}, targetKeys(g2)...) {
					id, owner, _ := strings.Cut(key, "=")
					owner = g2.Server() + "/" + owner
					if before, used := owners[id]; used {
						g.Expect(before).To(Equal(owner), "seed %d, step %d: %s", seed, step, id)
					}
					owners[id] = owner
				}
			}
		}
		in.FileSystemNodes = nil
		for _, node := range slices.Sorted(maps.Keys(there)) {
			in.FileSystemNodes = append(in.FileSystemNodes, there[node])
		}
		in = recorded(t, in)
		g.Expect(in.Given()).To(HaveLen(12), "and all have theirs in the end")
		g.Expect(in.FileSystem.Status.Given.Promised).To(BeEmpty())
	}
}

// targetKeys returns the ids of a storage server's targets, each with its target.
func targetKeys(g backend.Given) []string {
	var out []string
	for _, t := range g.Targets {
		if g.Role == v1alpha1.RoleStorage {
			out = append(out, fmt.Sprintf("target %d=%s", t.ID, t.Name))
		}
	}
	return out
}
