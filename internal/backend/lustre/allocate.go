package lustre

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

// maxID is the highest number of a target.
const maxID = cli.MaxIndex + 1

// numbering: servers have no numbers, because a server of Lustre is only the set of its mounted targets. Targets and pools have numbers.
var numbering = assign.Numbering{
	Target: map[v1alpha1.Role]v1alpha1.NumberKind{
		v1alpha1.RoleMetadata: v1alpha1.NumberOfMetadataTarget, v1alpha1.RoleStorage: v1alpha1.NumberOfStorageTarget,
	},
	Most: map[v1alpha1.NumberKind]int32{
		v1alpha1.NumberOfMetadataTarget: maxID, v1alpha1.NumberOfStorageTarget: maxID, v1alpha1.NumberOfStoragePool: maxSlots,
	},
	Remembers: "Lustre", From: "its MGS runs",
}

// Allocate chooses the disks of MDT0000 and the MGT, the NIDs of the MGS, the nodes with MDTs, the nodes and the slot of each pool, and the
// index of each MDT and OST. All of that is on record before anything is written to a disk.
func (b Backend) Allocate(in backend.Input) (backend.Allocation, error) {
	in = withRecords(in.Indexed())
	if err := cmp.Or(checkSpec(in), checkRecords(in)); err != nil {
		return backend.Allocation{}, err
	}
	mgs, err := managementNode(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	nodes, err := metadataNodes(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	disks, err := assign.ReadDisks(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	numbers := assign.NewNumbers(in, disks, numbering)
	pools, err := assign.RecordPools(in, disks, numbers)
	if err != nil {
		return backend.Allocation{}, err
	}
	on := plan.TargetNodes{Metadata: nodes, Pools: assign.PoolNodes(pools), Seconds: secondsOf(in.FileSystem)}
	if hasMGT(in.FileSystem) {
		on.Management, on.LostMetadata = []string{mgs}, b.lostMGT(in.FileSystem, in.Nodes)
	}
	if disks.Waits(in.FileSystem) || in.FileSystem.Status.Metadata == nil && !hasRoot(in) {
		return backend.Allocation{Status: in.FileSystem.Status, TargetNodes: on, Waits: true, Unread: disks.Why()}, nil
	}
	metadata, err := disks.RecordMetadata(in, backend.MetadataPlace{
		Role: v1alpha1.RoleMetadata, NodeSelector: in.FileSystem.Spec.MetadataServers.NodeSelector,
		Targets: in.FileSystem.Spec.MetadataServers.Targets,
	}, rootNode(in, nodes))
	if err != nil {
		return backend.Allocation{}, err
	}
	lustre, err := recordManagement(in, disks, mgs, metadata)
	if err != nil {
		return backend.Allocation{}, err
	}
	fs, before := *in.FileSystem, in
	var joins []string
	fs.Status, joins = assign.Recorded(in, metadata, pools, numbers)
	in.FileSystem = &fs
	a := &allocator{in: in, disks: disks, root: metadata.Target, numbers: numbers, records: assign.NewRecords(in)}
	if err := a.allocate(pools); err != nil {
		return backend.Allocation{}, err
	}
	fs.Status.Lustre, fs.Status.Given = lustre, numbers.Settle()
	after := a.records.All()
	claims := b.Claims(&fs, after)
	if err := assign.RefuseConflicts(in, claims); err != nil {
		return backend.Allocation{}, err
	}
	if err := refuseOthers(in, lustre, claims.Directories); err != nil {
		return backend.Allocation{}, err
	}
	out := backend.Allocation{
		Status: fs.Status, Nodes: a.records.Changed(), More: numbers.More(), Joins: append(joins, addedMDTs(before, after)...), TargetNodes: on,
		Unread: numbers.Unread(),
	}
	if slices.ContainsFunc(pools, func(p backend.PoolRecord) bool { return p.Waits }) {
		out.Unread = cmp.Or(numbers.HasToWait(), disks.Why())
	}
	if len(lustre.ManagementNIDs) == 0 {
		out.Unread = cmp.Or(out.Unread, disks.Why())
	}
	return out, nil
}

// hasRoot is true when there is a disk for MDT0000.
func hasRoot(in backend.Input) bool {
	return slices.ContainsFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Spec.Role == v1alpha1.RoleMetadata })
}

// rootNode is the node of MDT0000: the recorded one, or the first that has a disk for it.
func rootNode(in backend.Input, nodes []string) string {
	if m := in.FileSystem.Status.Metadata; m != nil {
		return m.Node
	}
	for _, node := range nodes {
		for range in.TargetsOn(v1alpha1.RoleMetadata, "", node) {
			return node
		}
	}
	return nodes[0]
}

// addedMDTs returns the MDTs that join those already recorded. It returns none for the first MDTs of a filesystem.
func addedMDTs(before backend.Input, after []v1alpha1.FileSystemNode) []string {
	if before.FileSystem.Status.Given.HighestOf(v1alpha1.NumberOfMetadataTarget) == 0 {
		return nil
	}
	var joins []string
	for _, g := range backend.GivenOn(after) {
		if _, known := before.GivenTo(g.Node, g.Name); g.Role == v1alpha1.RoleMetadata && !known {
			joins = append(joins, fmt.Sprintf("metadata server %s is added", g.Server()))
		}
	}
	return joins
}

// Claims lists the ports of the probes, on each node of the filesystem.
func (Backend) Claims(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) backend.Claims {
	claims := backend.NewClaims(fs, backend.PortRange{First: portsOf(fs).base, Count: reservedPorts}, "spec.lustre.basePort")
	if fs.Status.Metadata == nil {
		return claims
	}
	claims.Use(fs.Status.Metadata.Node)
	if node := given(fs).ManagementNode; node != "" {
		claims.Use(node)
	}
	for _, g := range backend.GivenOn(nodes) {
		claims.Use(g.Node)
	}
	return claims
}

// allocator assigns numbers to targets.
type allocator struct {
	in      backend.Input
	disks   assign.OnDisks
	numbers *assign.Numbers
	records *assign.Records
	// root is the StorageTarget that is to be MDT0000.
	root string
	// departures has the OSTs that are to be taken out.
	departures []departure
}

// allocate assigns each pool its servers, and each MDT and OST without a number its number. Numbers are permanent: mkfs writes the index on
// the disk. No MDT gets a number before the disk of the root directory does, because that disk is MDT0000.
func (a *allocator) allocate(pools []backend.PoolRecord) error {
	a.records.Join(pools, ostDaemon)
	if err := a.takeOver(); err != nil {
		return err
	}
	for _, t := range a.wanted() {
		if err := a.give(t); err != nil {
			return err
		}
	}
	a.observe()
	return unique(a.records.All())
}

// observe records since when targets serve: from then on, they belong to the Lustre.
func (a *allocator) observe() {
	if a.in.State == nil || a.in.State.Asked.IsZero() {
		return
	}
	now := metav1.NewTime(a.in.State.Asked).Rfc3339Copy()
	a.departures = departuresOf(a.in)
	for _, g := range backend.GivenOn(a.records.All()) {
		targets := slices.Clone(g.Targets)
		for i := range targets {
			t := &targets[i]
			if said := a.in.TargetWithID(g.Role, t.ID); t.Initialized == nil && said != nil && said.Online {
				t.Initialized = &now
			}
			if g.Role == v1alpha1.RoleStorage {
				a.leaves(t, now)
			}
		}
		stays := slices.ContainsFunc(targets, func(t v1alpha1.MemberTarget) bool { return t.TakenOut == nil })
		goes := g.Retired || g.Role == v1alpha1.RoleStorage && len(targets) > 0 && !stays &&
			len(assign.TargetsOf(a.in, g.Role, g.StoragePool, g.Node)) == 0
		if goes != g.Retired || !slices.EqualFunc(targets, g.Targets, sameRecord) {
			record := a.records.Change(g.Node, g.NodeMember)
			record.Retired, record.Targets = goes, targets
		}
	}
}

// leaves records the progress of an OST that a person takes out: that it was proven to be empty, and that it was removed. If the person
// changes the request before the OST is removed, its record is as before.
func (a *allocator) leaves(t *v1alpha1.MemberTarget, now metav1.Time) {
	disk := a.in.TargetNamed(t.Name)
	switch {
	case disk == nil && t.Drained != nil && t.TakenOut == nil:
		t.TakenOut = &now
	case disk == nil:
	case !disk.Spec.Remove:
		t.Drained = nil
	case t.Drained == nil:
		i := slices.IndexFunc(a.departures, func(d departure) bool { return d.target.ID == t.ID })
		if i < 0 {
			return
		}
		if when, proven := a.departures[i].proven(a.in); proven {
			t.Drained = new(metav1.NewTime(when).Rfc3339Copy())
		}
	}
}

// sameRecord is true when the record of a target has not changed.
func sameRecord(a, b v1alpha1.MemberTarget) bool {
	return a.ID == b.ID && a.Initialized.Equal(b.Initialized) && a.Drained.Equal(b.Drained) && a.TakenOut.Equal(b.TakenOut)
}

// takeOver records the numbers that are on disks from before.
func (a *allocator) takeOver() error {
	for _, given := range a.disks.Given {
		have, _ := a.records.Find(given.Node, given.Name)
		for _, t := range given.Targets {
			switch recorded, known := have.Target(t.Name); {
			case known && recorded.ID != t.ID:
				return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s on node %s records the number %d, and %d is recorded for it; "+
					"take the disk out of the spec, and find out whose it is", t.Name, given.Node, t.ID, recorded.ID)
			case !known:
				a.record(given.Node, given.NodeMember, t)
			}
		}
	}
	return nil
}

// unique refuses records in which two targets have one number: the second to be mounted would replace the first.
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

// wanted returns the disks that are to have a number, in the order in which they get it. Successive MDTs are on different nodes, as far as
// possible, because Lustre places new directories on one MDT after the other.
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

// give returns the record of a target, or assigns it a number.
func (a *allocator) give(t *v1alpha1.StorageTarget) error {
	node := t.Spec.Node
	m := backend.Member(t.Spec.Role, daemonOf(&t.Spec))
	m.Slot = t.Spec.Slot
	if t.Spec.Role == v1alpha1.RoleStorage {
		m.StoragePool = t.Spec.StoragePool
		m.Slot, _ = a.in.PoolSlot(t.Spec.StoragePool)
	}
	if second := t.Spec.SecondNode; second != "" && !a.in.GaveUp(second) {
		a.join(second, m)
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

// join adds a member to a node, for targets whose number is on record on another node.
func (a *allocator) join(node string, m v1alpha1.NodeMember) {
	if have, there := a.records.Find(node, m.Name); !there || have.Retired {
		m.Targets = nil
		a.records.Change(node, m).Retired = false
	}
}

// number returns the number for a target that has none yet; 0 for one that has to wait.
func (a *allocator) number(t *v1alpha1.StorageTarget, member string) (int32, error) {
	to := assign.Holder{Kind: numbering.Target[t.Spec.Role], Node: t.Spec.Node, Member: member, Target: t.Name}
	if t.Name == a.root && a.numbers.Promised(to) == 0 && a.numbers.Highest(to.Kind) != 0 && a.numbers.HasToWait() == "" {
		return 0, backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s is to hold the root directory, as MDT0000, and that index was given to another target "+
			"before; bring back the disk that has it", t.Name)
	}
	return a.numbers.Promise(to)
}

// record adds a target to the record of its member.
func (a *allocator) record(node string, m v1alpha1.NodeMember, t v1alpha1.MemberTarget) {
	m.Targets = nil
	record := a.records.Change(node, m)
	record.Targets = append(record.Targets, t)
	record.Retired = false // it serves again
	slices.SortFunc(record.Targets, func(x, y v1alpha1.MemberTarget) int { return strings.Compare(x.Name, y.Name) })
}
