package assign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// anyNumbering describes a filesystem whose storage servers and their targets have numbers up to 100.
var anyNumbering = Numbering{
	Server: map[v1alpha1.Role]v1alpha1.NumberKind{v1alpha1.RoleStorage: v1alpha1.NumberOfStorageServer},
	Target: map[v1alpha1.Role]v1alpha1.NumberKind{v1alpha1.RoleStorage: v1alpha1.NumberOfStorageTarget},
	Most: map[v1alpha1.NumberKind]int32{
		v1alpha1.NumberOfStorageServer: 100, v1alpha1.NumberOfStorageTarget: 100, v1alpha1.NumberOfStoragePool: 100,
	},
	Remembers: "AnyFS", From: "it runs",
}

// aServer returns a server of a node, and aTarget one of its targets.
func aServer(node string) Holder {
	return Holder{Kind: v1alpha1.NumberOfStorageServer, Node: node, Member: "storage-ssd"}
}

func aTarget(node, name string) Holder {
	return Holder{Kind: v1alpha1.NumberOfStorageTarget, Node: node, Member: "storage-ssd", Target: name}
}

// recordedOn returns the FileSystemNode of a storage server with a target.
func recordedOn(node string, server, target int32) v1alpha1.FileSystemNode {
	return v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: node, Members: []v1alpha1.NodeMember{{
		Name: "storage-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: server, Targets: []v1alpha1.MemberTarget{{Name: "a", ID: target}},
	}}}}
}

func TestTheNextNumberIsBehindTheHighestOfAllThatIsKnown(t *testing.T) {
	for name, change := range map[string]func(in *backend.Input, disks *OnDisks){
		"what the status has used up": func(in *backend.Input, _ *OnDisks) {
			in.FileSystem.Status.Given = &v1alpha1.GivenNumbers{Highest: []v1alpha1.HighestNumber{
				{Kind: v1alpha1.NumberOfStorageServer, Number: 7}, {Kind: v1alpha1.NumberOfStorageTarget, Number: 9}}}
		},
		"what the status has promised": func(in *backend.Input, _ *OnDisks) {
			in.FileSystem.Status.Given = &v1alpha1.GivenNumbers{Promised: []v1alpha1.PromisedNumbers{{Node: "n9", Numbers: []v1alpha1.PromisedNumber{
				{Kind: v1alpha1.NumberOfStorageServer, Member: "storage-ssd", Number: 7},
				{Kind: v1alpha1.NumberOfStorageTarget, Member: "storage-ssd", Target: "a", Number: 9},
			}}}}
		},
		"what is recorded": func(in *backend.Input, _ *OnDisks) {
			in.FileSystemNodes = []v1alpha1.FileSystemNode{recordedOn("n9", 7, 9)}
		},
		"what is recorded of a node that goes": func(in *backend.Input, _ *OnDisks) {
			in.FileSystemNodes = []v1alpha1.FileSystemNode{recordedOn("n9", 7, 9)}
			in.FileSystemNodes[0].DeletionTimestamp = &metav1.Time{}
			in.FileSystemNodes[0].Spec.GivenUp = &v1alpha1.NodeGivenUp{}
		},
		"what disks say": func(_ *backend.Input, disks *OnDisks) {
			disks.Given = backend.GivenOn([]v1alpha1.FileSystemNode{recordedOn("n9", 7, 9)})
		},
		"what the filesystem lists": func(in *backend.Input, _ *OnDisks) {
			in.State = &backend.State{Targets: []backend.Target{{ID: 9, ServerID: 7}}}
		},
		"each of them, a little of it": func(in *backend.Input, disks *OnDisks) {
			in.State, disks.Given = &backend.State{Servers: []backend.Server{{Role: v1alpha1.RoleStorage, ID: 7}}}, backend.GivenOn([]v1alpha1.FileSystemNode{recordedOn("n9", 3, 9)})
			in.FileSystemNodes = []v1alpha1.FileSystemNode{recordedOn("n8", 5, 6)}
		},
		"and nothing that there can't be": func(in *backend.Input, _ *OnDisks) {
			in.State = &backend.State{Servers: []backend.Server{{Role: v1alpha1.RoleStorage, ID: 7}, {Role: v1alpha1.RoleStorage, ID: 101}}, Targets: []backend.Target{{ID: 9}, {ID: 65535}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in, disks := backend.Input{FileSystem: &v1alpha1.FileSystem{}}, OnDisks{}
			change(&in, &disks)
			n := NewNumbers(in, disks, anyNumbering)
			g.Expect(n.Promise(aServer("n1"))).To(Equal(int32(8)))
			g.Expect(n.Promise(aTarget("n1", "b"))).To(Equal(int32(10)))
			g.Expect(n.Settle()).To(Equal(&v1alpha1.GivenNumbers{
				Highest: []v1alpha1.HighestNumber{{Kind: v1alpha1.NumberOfStorageServer, Number: 8}, {Kind: v1alpha1.NumberOfStorageTarget, Number: 10}},
				Promised: []v1alpha1.PromisedNumbers{{Node: "n1", Numbers: []v1alpha1.PromisedNumber{
					{Kind: v1alpha1.NumberOfStorageServer, Member: "storage-ssd", Number: 8},
					{Kind: v1alpha1.NumberOfStorageTarget, Member: "storage-ssd", Target: "b", Number: 10},
				}}},
			}))
		})
	}
}

func TestASlotIsANumberOfAPool(t *testing.T) {
	g := NewWithT(t)
	in := backend.Input{FileSystem: &v1alpha1.FileSystem{}}
	g.Expect(NewNumbers(in, OnDisks{}, anyNumbering).Settle()).To(BeNil(), "nothing was given")
	in.FileSystem.Status.StoragePools = []v1alpha1.StoragePoolStatus{{Name: "ssd", Slot: 2}}
	g.Expect(NewNumbers(in, OnDisks{}, anyNumbering).Highest(v1alpha1.NumberOfStoragePool)).To(Equal(int32(3)))
	g.Expect(NewNumbers(in, OnDisks{slots: map[string]int32{"bulk": 5}}, anyNumbering).Highest(v1alpha1.NumberOfStoragePool)).To(Equal(int32(6)))
}

func TestNoNewNumberIsAssignedWhileASourceIsUnreadButPromisedOnesAre(t *testing.T) {
	in := backend.Input{FileSystem: &v1alpha1.FileSystem{}}
	in.FileSystem.Status.Given = &v1alpha1.GivenNumbers{Promised: []v1alpha1.PromisedNumbers{{Node: "n1", Numbers: []v1alpha1.PromisedNumber{
		{Kind: v1alpha1.NumberOfStorageServer, Member: "storage-ssd", Number: 7}}}}}
	for name, c := range map[string]struct {
		disks   OnDisks
		message string
	}{
		"a disk that was not read":      {OnDisks{Unread: []string{"b on node n2"}}, "until these disks are read"},
		"a filesystem that is silent":   {OnDisks{Facts: &v1alpha1.FileSystemFacts{}}, "before AnyFS has said which ones it remembers"},
		"a filesystem, after its disks": {OnDisks{Facts: &v1alpha1.FileSystemFacts{}, Unread: []string{"b on node n2"}}, "until these disks are read"},
	} {
		t.Run(name, func(t *testing.T) {
			g, n := NewWithT(t), NewNumbers(in, c.disks, anyNumbering)
			g.Expect(n.Promise(aServer("n1"))).To(Equal(int32(7)))
			g.Expect(n.Unread()).To(BeEmpty(), "nobody has to wait yet")
			g.Expect(n.Promise(aServer("n2"))).To(BeZero())
			g.Expect(n.Unread()).To(ContainSubstring(c.message))
			g.Expect(n.Settle().Highest).To(HaveExactElements(HaveField("Number", int32(7))))
		})
	}
}

func TestSoManyPromisesAreOpenAndNoMore(t *testing.T) {
	g := NewWithT(t)
	by := anyNumbering
	by.Most = map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStorageTarget: 1000}
	in := backend.Input{FileSystem: &v1alpha1.FileSystem{}}
	n := NewNumbers(in, OnDisks{}, by)
	open := func() (count int) {
		for _, node := range in.FileSystem.Status.Given.Promised {
			count += len(node.Numbers)
		}
		return count
	}
	for i := range 300 {
		number, err := n.Promise(aTarget("n5", fmt.Sprintf("disk-%03d", i)))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(number == 0).To(Equal(i >= MostPromises))
	}
	g.Expect(n.More()).To(BeTrue())
	in.FileSystem.Status.Given = n.Settle()
	g.Expect(open()).To(Equal(MostPromises))

	// Nothing was recorded, and new disks are requested first. The holders of promises keep theirs, and there is no room for others.
	n = NewNumbers(in, OnDisks{}, by)
	g.Expect(n.Promise(aTarget("n1", "new"))).To(BeZero())
	for i := range MostPromises {
		g.Expect(n.Promise(aTarget("n5", fmt.Sprintf("disk-%03d", i)))).To(Equal(int32(i + 1)))
	}
	in.FileSystem.Status.Given = n.Settle()
	g.Expect(open()).To(Equal(MostPromises))

	// Recorded numbers make room, and so do promises to holders that are no longer requested.
	in.FileSystemNodes = []v1alpha1.FileSystemNode{recordedOn("n5", 0, 0)}
	targets := &in.FileSystemNodes[0].Spec.Members[0].Targets
	*targets = nil
	for i := range 200 {
		*targets = append(*targets, v1alpha1.MemberTarget{Name: fmt.Sprintf("disk-%03d", i), ID: int32(i + 1)})
	}
	n = NewNumbers(in, OnDisks{}, by)
	g.Expect(n.Promise(aTarget("n1", "new"))).To(Equal(int32(MostPromises + 1)))
	in.FileSystem.Status.Given = n.Settle()
	g.Expect(open()).To(Equal(1))
	g.Expect(NewNumbers(in, OnDisks{}, by).Promise(aTarget("n5", "disk-255"))).To(Equal(int32(MostPromises+2)), "nobody gets what was promised in vain")
}

func TestTheLastNumberIsFollowedByASentence(t *testing.T) {
	g, in := NewWithT(t), backend.Input{FileSystem: &v1alpha1.FileSystem{}}
	in.State = &backend.State{Targets: []backend.Target{{ID: 99}}}
	n := NewNumbers(in, OnDisks{}, anyNumbering)
	g.Expect(n.Promise(aTarget("n1", "a"))).To(Equal(int32(100)))
	_, err := n.Promise(aTarget("n1", "b"))
	g.Expect(err).To(MatchError("all 100 numbers of a storage target were given, and none is given twice; make another FileSystem"))
}

// TestNoNumberIsAssignedTwiceWhateverIsWrittenAndRead simulates several operators. Each reads a status and records, both perhaps
// old. A write of an old status fails. Each writes only some of the records that it has decided on, and perhaps late.
func TestNoNumberIsAssignedTwiceWhateverIsWrittenAndRead(t *testing.T) {
	for seed := range 200 {
		g, random := NewWithT(t), rand.New(rand.NewPCG(uint64(seed), 2))
		by := anyNumbering
		by.Most = map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfStorageTarget: 65535}
		var status *v1alpha1.GivenNumbers
		have, owners := map[string]int32{}, map[int32]string{}
		var late []map[string]int32
		for step := range 40 {
			in := backend.Input{FileSystem: &v1alpha1.FileSystem{}}
			in.FileSystem.Status.Given = status
			for _, name := range backend.SortedKeys(have) {
				if random.IntN(3) > 0 {
					n := recordedOn("n1", 0, have[name])
					n.Spec.Node, n.Spec.Members[0].Targets[0].Name = "node-of-"+name, name
					in.FileSystemNodes = append(in.FileSystemNodes, n)
				}
			}
			n, given := NewNumbers(in, OnDisks{}, by), map[string]int32{}
			wanted := make([]string, 1+step/2)
			for i := range wanted {
				wanted[i] = fmt.Sprint("disk-", i)
			}
			random.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
			for _, name := range wanted {
				if slices.ContainsFunc(in.FileSystemNodes, func(n v1alpha1.FileSystemNode) bool { return n.Spec.Node == "node-of-"+name }) {
					continue
				}
				number, err := n.Promise(aTarget("node-of-"+name, name))
				g.Expect(err).NotTo(HaveOccurred())
				given[name] = number
			}
			if random.IntN(4) == 0 {
				continue // another operator has written the status since, so this write fails
			}
			status, late = n.Settle(), append(late, given)
			if step%3 > 0 {
				continue // this operator is slow, and writes its records after others have taken over
			}
			for _, given := range late {
				for _, name := range backend.SortedKeys(given) {
					if _, there := have[name]; there || random.IntN(2) == 0 { // the creation of an existing object fails
						continue
					}
					number := given[name]
					have[name] = number
					before, used := owners[number]
					g.Expect(used && before != name).To(BeFalse(), "seed %d, step %d: %d is that of %s and of %s", seed, step, number, before, name)
					owners[number] = name
				}
			}
			late = nil
		}
		g.Expect(len(have)).To(BeNumerically(">", 5))
	}
}
