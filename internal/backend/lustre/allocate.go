package lustre

import (
	"cmp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// maxID is the highest number of a target.
const maxID = cli.MaxIndex + 1

// Indices are the numbers that targets were given, with what is added.
type Indices struct {
	// Given is what the status of the FileSystem has to say of numbers. It is written first.
	Given *v1alpha1.GivenNumbers
	// Nodes are the FileSystemNodes whose records are added or change, by node.
	Nodes []v1alpha1.FileSystemNode
	// More is true when so many numbers were promised that the rest has to wait until these are written; see backend.MostPromises.
	More bool
	// Unread says why something new has to wait; empty when nothing has to.
	Unread string
}

// GiveIndices gives each MDT and OST that has none its number, once and for ever, before anything is written to its disk: mkfs writes the
// index on it. Root is the StorageTarget that holds the root directory: no MDT gets a number before it, because MDT0000 is its own.
func GiveIndices(in backend.Input, root string) (Indices, error) {
	in = in.Indexed()
	disks, err := backend.ReadDisks(in)
	if err != nil {
		return Indices{}, err
	}
	a := &allocator{in: in, disks: disks, root: root, numbers: backend.NewNumbers(in, disks, numbering), records: backend.NewRecords(in)}
	if err := a.takeOver(); err != nil {
		return Indices{}, err
	}
	for _, t := range a.wanted() {
		if err := a.give(t); err != nil {
			return Indices{}, err
		}
	}
	if err := unique(a.records.All()); err != nil {
		return Indices{}, err
	}
	return Indices{Given: a.numbers.Settle(), Nodes: a.records.Changed(), More: a.numbers.More(), Unread: a.numbers.Unread()}, nil
}

// numbering: a server of Lustre is what it has mounted, so only targets have numbers.
var numbering = backend.Numbering{
	Target: map[v1alpha1.Role]v1alpha1.NumberKind{
		v1alpha1.RoleMetadata: v1alpha1.NumberOfMetadataTarget, v1alpha1.RoleStorage: v1alpha1.NumberOfStorageTarget,
	},
	Most:      map[v1alpha1.NumberKind]int32{v1alpha1.NumberOfMetadataTarget: maxID, v1alpha1.NumberOfStorageTarget: maxID},
	Remembers: "Lustre", From: "its MGS runs",
}

// allocator gives numbers to targets.
type allocator struct {
	in      backend.Input
	disks   backend.OnDisks
	numbers *backend.Numbers
	records *backend.Records
	// root is the StorageTarget that is to be MDT0000.
	root string
}

// takeOver records what disks say that their targets were given before.
func (a *allocator) takeOver() error {
	for _, given := range a.disks.Given {
		have, _ := a.records.Find(given.Node, given.Name)
		for _, t := range given.Targets {
			switch recorded, known := have.Target(t.Name); {
			case known && recorded.ID != t.ID:
				return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s on node %s says that it has the number %d, and %d is recorded for it; "+
					"take the disk out of the spec, and find out whose it is", t.Name, given.Node, t.ID, recorded.ID)
			case !known:
				a.record(given.Node, given.NodeMember, t)
			}
		}
	}
	return nil
}

// unique refuses records in which two targets have one number: the second that is mounted would take the place of the first.
func unique(nodes []v1alpha1.FileSystemNode) error {
	type number struct {
		role v1alpha1.Role
		id   int32
	}
	have := map[number]string{}
	for _, given := range backend.GivenOn(nodes) {
		for _, t := range given.Targets {
			other, twice := have[number{given.Role, t.ID}]
			if twice && t.ID != 0 {
				return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the targets %s and %s both have the number %d; take the disk that does not belong "+
					"to this filesystem out of the spec", other, t.Name, t.ID)
			}
			have[number{given.Role, t.ID}] = t.Name
		}
	}
	return nil
}

// wanted are the disks that are to have a number, in the order in which they get it. MDTs that follow each other lie on different nodes, as
// far as that goes: new directories go to one after the other.
func (a *allocator) wanted() []*v1alpha1.StorageTarget {
	var mdts, osts []*v1alpha1.StorageTarget
	pools, rooted := map[string]int{}, false
	for i, pool := range a.in.FileSystem.Spec.StoragePools {
		if _, recorded := a.in.PoolSlot(pool.Name); recorded {
			pools[pool.Name] = i + 1
		}
	}
	for i := range a.in.Targets {
		t := &a.in.Targets[i]
		switch {
		case a.in.GaveUp(t.Spec.Node):
		case t.Spec.Role == v1alpha1.RoleMetadata:
			mdts = append(mdts, t)
			rooted = rooted || t.Name == a.root
		case t.Spec.Role == v1alpha1.RoleStorage && pools[t.Spec.StoragePool] != 0:
			osts = append(osts, t)
		}
	}
	if !rooted && a.numbers.Highest(v1alpha1.NumberOfMetadataTarget) == 0 {
		mdts = nil
	}
	first := func(t *v1alpha1.StorageTarget) int {
		if t.Name == a.root {
			return 0
		}
		return 1
	}
	slices.SortFunc(mdts, func(x, y *v1alpha1.StorageTarget) int {
		return cmp.Or(cmp.Compare(first(x), first(y)), cmp.Compare(x.Spec.Slot, y.Spec.Slot),
			strings.Compare(x.Spec.Node, y.Spec.Node), strings.Compare(x.Name, y.Name))
	})
	slices.SortFunc(osts, func(x, y *v1alpha1.StorageTarget) int {
		return cmp.Or(cmp.Compare(pools[x.Spec.StoragePool], pools[y.Spec.StoragePool]),
			strings.Compare(x.Spec.Node, y.Spec.Node), strings.Compare(x.Name, y.Name))
	})
	return append(mdts, osts...)
}

// give finds what a target was given, or gives it its number.
func (a *allocator) give(t *v1alpha1.StorageTarget) error {
	node := t.Spec.Node
	m := backend.Member(t.Spec.Role, Member(&t.Spec))
	m.Slot = t.Spec.Slot
	if t.Spec.Role == v1alpha1.RoleStorage {
		m.StoragePool = t.Spec.StoragePool
		m.Slot, _ = a.in.PoolSlot(t.Spec.StoragePool)
	}
	have, _ := a.records.Find(node, m.Name)
	if recorded, known := have.Target(t.Name); known {
		if recorded.TakenOut != nil {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec, "the disk of %s on node %s was taken out, and Lustre has forgotten it: an index is not used again. "+
				"Take the disk out of the spec", t.Name, node)
		}
		return nil
	}
	id, err := a.number(t, m.Name)
	if err != nil || id == 0 {
		return err
	}
	if t.Spec.Role == v1alpha1.RoleMetadata {
		m.ID = id
	}
	a.record(node, m, v1alpha1.MemberTarget{Name: t.Name, ID: id})
	return nil
}

// number is that of a target which has none yet; 0 for one that has to wait.
func (a *allocator) number(t *v1alpha1.StorageTarget, member string) (int32, error) {
	to := backend.Holder{Kind: numbering.Target[t.Spec.Role], Node: t.Spec.Node, Member: member, Target: t.Name}
	if t.Name == a.root && a.numbers.Promised(to) == 0 && a.numbers.Highest(to.Kind) != 0 && a.numbers.HasToWait() == "" {
		return 0, backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s is to hold the root directory, as MDT0000, and that index was given to another target "+
			"before; bring back the disk that has it", t.Name)
	}
	return a.numbers.Promise(to)
}

// record adds a target to what its member was given.
func (a *allocator) record(node string, m v1alpha1.NodeMember, t v1alpha1.MemberTarget) {
	m.Targets = nil
	record := a.records.Change(node, m)
	record.Targets = append(record.Targets, t)
	record.Retired = false // it serves again
	slices.SortFunc(record.Targets, func(x, y v1alpha1.MemberTarget) int { return strings.Compare(x.Name, y.Name) })
}
