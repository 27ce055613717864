package lustre

import (
	"cmp"
	"maps"
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
	// Status is what is used up. It is written first.
	Status v1alpha1.LustreStatus
	// Nodes are the FileSystemNodes whose records are added or change, by node.
	Nodes []v1alpha1.FileSystemNode
	// More is true when so many numbers were given that the rest has to wait until these are written; see backend.MostIDs.
	More bool
	// Unread says why something new has to wait; empty when nothing has to.
	Unread string
}

// GiveIndices gives each MDT and OST that has none its number, once and for ever, before anything is written to its disk: mkfs writes the
// index on it. It starts from the status, from what is recorded, from what disks say, and from what Lustre itself lists; the highest wins.
// Root is the StorageTarget that holds the root directory: no MDT gets a number before it, because MDT0000 is its own.
func GiveIndices(in backend.Input, status v1alpha1.LustreStatus, root string) (Indices, error) {
	in = in.Indexed()
	disks, err := backend.ReadDisks(in)
	if err != nil {
		return Indices{}, err
	}
	a := &allocator{
		in: in, disks: disks, root: root, status: *status.DeepCopy(), records: backend.NewRecords(in),
		promised: map[string]v1alpha1.GivenIndex{}, giving: map[string]map[string]v1alpha1.GivenIndex{},
	}
	for _, node := range status.Giving {
		for _, t := range node.Targets {
			a.promised[t.Name] = t
		}
	}
	a.catchUp()
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
	a.status.Giving = a.promises()
	out := Indices{Status: a.status, Nodes: a.records.Changed(), More: a.more}
	if a.waits {
		out.Unread = a.hasToWait()
	}
	return out, nil
}

// allocator gives numbers to targets.
type allocator struct {
	in      backend.Input
	disks   backend.OnDisks
	status  v1alpha1.LustreStatus
	records *backend.Records
	// root is the StorageTarget that is to be MDT0000.
	root string
	// promised are the numbers that the status has used up for targets that have not got them yet, by StorageTarget.
	promised map[string]v1alpha1.GivenIndex
	// giving are those that are used up now, by node and StorageTarget, open is how many, and more is true when others have to wait because
	// these are enough.
	giving map[string]map[string]v1alpha1.GivenIndex
	open   int
	more   bool
	// waits is true when something has to wait until the disks, or Lustre, say more.
	waits bool
}

// catchUp makes the status the highest of all that is known: one that was restored may be older than what was given, and Lustre remembers
// targets that nobody recorded.
func (a *allocator) catchUp() {
	for _, given := range slices.Concat(a.in.Given(), a.disks.Given) {
		for _, t := range given.Targets {
			a.raise(given.Role, t.ID)
		}
	}
	for _, t := range a.promised {
		if strings.HasPrefix(t.Member, componentMDT+"-") {
			a.raise(v1alpha1.RoleMetadata, t.ID)
		} else {
			a.raise(v1alpha1.RoleStorage, t.ID)
		}
	}
	if a.in.State != nil {
		for _, t := range a.in.State.Targets {
			a.raise(cmp.Or(t.Role, v1alpha1.RoleStorage), t.ID)
		}
	}
}

// raise remembers that a number was given.
func (a *allocator) raise(role v1alpha1.Role, id int32) {
	if last := a.last(role); last != nil && id <= maxID {
		*last = max(*last, id)
	}
}

// last is the highest number that was given to targets of a role, nil for a role without numbers.
func (a *allocator) last(role v1alpha1.Role) *int32 {
	switch role {
	case v1alpha1.RoleMetadata:
		return &a.status.LastMDT
	case v1alpha1.RoleStorage:
		return &a.status.LastOST
	default:
		return nil
	}
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
	if !rooted && a.status.LastMDT == 0 {
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
	id, err := a.number(t)
	if err != nil || id == 0 {
		return err
	}
	if a.giving[node] == nil {
		a.giving[node] = map[string]v1alpha1.GivenIndex{}
	}
	a.giving[node][t.Name] = v1alpha1.GivenIndex{Name: t.Name, Member: m.Name, ID: id}
	if t.Spec.Role == v1alpha1.RoleMetadata {
		m.ID = id
	}
	a.record(node, m, v1alpha1.MemberTarget{Name: t.Name, ID: id})
	return nil
}

// number is that of a target which has none yet: the one that was promised to it, or one that was never given. It is 0 for what has to
// wait.
func (a *allocator) number(t *v1alpha1.StorageTarget) (int32, error) {
	last, promised := a.last(t.Spec.Role), a.promised[t.Name].ID
	switch {
	case promised != 0:
	case a.hasToWait() != "":
		a.waits = true
		return 0, nil
	case a.open >= backend.MostIDs:
		a.more = true
		return 0, nil
	case t.Name == a.root && *last != 0:
		return 0, backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s is to hold the root directory, as MDT0000, and that index was given to another target "+
			"before; bring back the disk that has it", t.Name)
	case *last >= maxID:
		return 0, backend.Invalid(v1alpha1.ReasonInvalidSpec, "all %d indices of Lustre for a target like %s were given, and none is given twice; make another FileSystem", maxID, t.Name)
	default:
		*last++
		promised = *last
	}
	a.open++
	return promised, nil
}

// hasToWait is why no new number is given; empty when one may be.
func (a *allocator) hasToWait() string {
	if why := a.disks.Why(); why != "" {
		return why
	}
	if a.disks.Facts != nil && a.in.State == nil {
		return "nothing new gets an index before Lustre has said which ones it remembers, because disks that are not there may have them; " +
			"that takes until its MGS runs"
	}
	return ""
}

// record adds a target to what its member was given.
func (a *allocator) record(node string, m v1alpha1.NodeMember, t v1alpha1.MemberTarget) {
	m.Targets = nil
	record := a.records.Change(node, m)
	record.Targets = append(record.Targets, t)
	record.Retired = false // it serves again
	slices.SortFunc(record.Targets, func(x, y v1alpha1.MemberTarget) int { return strings.Compare(x.Name, y.Name) })
}

// promises are the numbers that are used up and not recorded yet, for the status. What was promised to a target that is not wanted any more
// is not among them, and is given to nobody.
func (a *allocator) promises() []v1alpha1.GivenIndices {
	var out []v1alpha1.GivenIndices
	for _, node := range slices.Sorted(maps.Keys(a.giving)) {
		of := v1alpha1.GivenIndices{Node: node}
		for _, name := range slices.Sorted(maps.Keys(a.giving[node])) {
			of.Targets = append(of.Targets, a.giving[node][name])
		}
		out = append(out, of)
	}
	return out
}
