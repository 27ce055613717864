package backend

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// OnDisks is what the disks of a filesystem say that it was given: before it was deleted and made again, or before its cluster was lost.
// What they say is given again. Nothing new is given while a disk may say more.
type OnDisks struct {
	// Facts are what the filesystem was given, nil when no disk says anything.
	Facts *v1alpha1.FileSystemFacts
	// Given are the servers, by node and name, with what they and those of their targets were given whose disks say so.
	Given []Given
	// Unread are the disks that may say more, each with why it was not read, by node and name.
	Unread []string

	slots map[string]int32
	// metadata is the record on the disk that holds the metadata, and open is true when that disk is there and was not read yet.
	metadata *v1alpha1.RecordedMember
	open     bool
	early    bool
}

// ReadDisks is what the StorageTargets say of their disks. An *InvalidSpecError says which disks contradict each other or the FileSystem.
func ReadDisks(in Input) (OnDisks, error) {
	fs := in.FileSystem
	early := fs.Status.Metadata == nil && len(onDisks(fs)) > 0 && (!in.Chosen || !hasMetadataDisk(in))
	out := OnDisks{slots: map[string]int32{}, early: early}
	r := reading{out: &out, fs: fs, members: map[[2]string]int{}, from: map[any]string{}, called: calledBefore(in.Targets)}
	var unread []*v1alpha1.StorageTarget
	for i := range in.Targets {
		t := &in.Targets[i]
		why := unreadFor(in, t)
		if why == "" {
			why = r.lacksMetadata(in, t)
		}
		if why != "" {
			out.Unread = append(out.Unread, fmt.Sprintf("%s on node %s (%s)", t.Name, t.Spec.Node, why))
			unread = append(unread, t)
		} else if err := r.add(t); err != nil {
			return out, err
		}
	}
	if isTakingOver(fs) {
		for _, node := range nodesWithDisks(in) {
			if _, there := in.Inventories[node]; !there {
				out.Unread = append(out.Unread, fmt.Sprintf("those of node %s (it has no NodeInventory, so its disks are unknown)", node))
			}
		}
	}
	if out.Facts == nil {
		return out, nil
	}
	out.open = slices.ContainsFunc(unread, func(t *v1alpha1.StorageTarget) bool { return t.Name == out.Facts.MetadataTarget })
	slices.SortFunc(out.Given, func(a, b Given) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Name, b.Name))
	})
	return out, r.agreesWithStatus()
}

// isTakingOver is true when a person has named owners of before for the disks of a filesystem.
func isTakingOver(fs *v1alpha1.FileSystem) bool {
	return fs.Spec.Provisioning.TakeOver != "" || len(fs.Spec.Provisioning.TakeOverFrom) > 0
}

// hasMetadataDisk is true when the disk of the metadata is chosen, or the metadata lies in a directory. It says what else was given; a node
// that was just joined has not listed its disks yet.
func hasMetadataDisk(in Input) bool {
	role, targets := v1alpha1.RoleMetadata, in.FileSystem.Spec.Metadata.Targets
	if m := in.FileSystem.Spec.Management(); m != nil {
		role, targets = v1alpha1.RoleManagement, *m.Targets
	}
	return !OnDevices(targets) || slices.ContainsFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Spec.Role == role })
}

// hasDisks is true when a disk of a pool is chosen.
func hasDisks(in Input, pool string) bool {
	return slices.ContainsFunc(in.Targets, func(t v1alpha1.StorageTarget) bool {
		return t.Spec.Role == v1alpha1.RoleStorage && t.Spec.StoragePool == pool
	})
}

// placed is where a role keeps its data.
type placed struct {
	nodeSelector map[string]string
	targets      v1alpha1.TargetsSpec
}

// onDisks are the roles of a filesystem that keep their data on disks.
func onDisks(fs *v1alpha1.FileSystem) []placed {
	all := []placed{{fs.Spec.Metadata.NodeSelector, fs.Spec.Metadata.Targets}}
	if m := fs.Spec.Management(); m != nil {
		all = append(all, placed{m.NodeSelector, *m.Targets})
	}
	for i := range fs.Spec.StoragePools {
		all = append(all, placed{fs.Spec.StoragePools[i].NodeSelector, fs.Spec.StoragePools[i].Targets})
	}
	return slices.DeleteFunc(all, func(p placed) bool { return !OnDevices(p.targets) })
}

// nodesWithDisks are the nodes on which a role is to keep its data on disks, by name.
func nodesWithDisks(in Input) []string {
	var out []string
	for _, role := range onDisks(in.FileSystem) {
		for _, n := range NodesOf(in.FileSystem, in.Nodes, role.nodeSelector) {
			if HasTargets(role.targets, n.Name) {
				out = append(out, n.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unreadFor is why it is not known what a disk says; empty when it is known, or the disk says nothing.
func unreadFor(in Input, t *v1alpha1.StorageTarget) string {
	p, record := t.Status.Provisioned, t.Status.Record
	switch {
	case p != nil && p.PlanHash != "":
		return "" // this cluster has made it
	case p == nil && record != nil && record.Facts != nil:
		return "" // it is taken over when it was given what it says
	case p != nil && record == nil:
		return "it is being taken over"
	case p != nil:
		return record.Message
	case t.Status.FormerOwner != nil && slices.Contains(in.FileSystem.Spec.Provisioning.TakeOverFrom, t.Status.FormerOwner.Owner):
		_, why := Proven(t)
		return "it was not taken over from its former owner yet: " + why
	}
	found := plan.DiskOf(in.Inventories[t.Spec.Node], t)
	ready, lost := Condition(t, v1alpha1.ConditionReady), isTakingOver(in.FileSystem)
	switch {
	case found == plan.OwnDisk, ready != nil && t.Status.Plan == nil && t.Spec.Conflict == "":
		// An agent that finds no target of this name on a disk makes a plan.
		_, why := Proven(t)
		return "it carries a target, and was not taken over yet: " + why
	case found == plan.NoDisk && lost:
		return "it is not there"
	case found == plan.OtherDisk && ready == nil:
		return "no agent has looked at it yet"
	default:
		return ""
	}
}

// Waits is true when nothing at all may be given yet: the disks were not chosen, above all that of the metadata, or none has said yet what
// the filesystem was given.
func (d OnDisks) Waits(fs *v1alpha1.FileSystem) bool {
	if fs.Status.Metadata != nil {
		return false
	}
	return d.early || d.open || d.Facts == nil && len(d.Unread) > 0
}

// Why is the sentence that says for which disks something new has to wait; empty when nothing has to.
func (d OnDisks) Why() string {
	if len(d.Unread) == 0 {
		return ""
	}
	return fmt.Sprintf("no new ids are assigned until these disks are read, because they may already use them: %s. Bring the disks and their nodes back. "+
		"Where a disk is lost for good, take it out of the spec; where the disks are those of another cluster, set spec.provisioning.takeOver",
		List(d.Unread))
}

// Slot is that of a pool.
func (d OnDisks) Slot(pool string) (int32, bool) {
	slot, ok := d.slots[pool]
	return slot, ok
}

// MetadataPlace is where a filesystem keeps its metadata, or the store of its management service.
type MetadataPlace struct {
	Role         v1alpha1.Role
	NodeSelector v1alpha1.NodeSelector
	Targets      v1alpha1.TargetsSpec
	// Component is the server, and the directory on its disk.
	Component string
	// Field of the spec says this, and Noun is what lies there, in a sentence.
	Field, Noun string
	// Stays is true for what can't come to another node. Loses says what would be lost, Lacking what becomes of what is on record and not in
	// a copy, and Otherwise what a person can do where there is no copy, each as the rest of a sentence or empty.
	Stays                     bool
	Loses, Lacking, Otherwise string
	// Beware is what a person has to know who has it made again from a copy, and what no copy says of itself; empty for nothing.
	Beware string
}

// RecordMetadata keeps the recorded node, and directory, for ever: a server on another one would start without the metadata. Where the
// disks say it, they are right. Else it is a node, and its first disk.
func (d OnDisks) RecordMetadata(in Input, at MetadataPlace, node string) (v1alpha1.MetadataRecord, error) {
	fs := in.FileSystem
	record := v1alpha1.MetadataRecord{Node: node}
	switch {
	case fs.Status.Metadata != nil:
		record = *fs.Status.Metadata
	case d.Facts != nil:
		if err := d.refuseElsewhere(in, at); err != nil {
			return record, err
		}
		record = v1alpha1.MetadataRecord{Node: d.Facts.MetadataNode, Target: d.Facts.MetadataTarget}
	}
	if record.Directory != "" {
		return record, nil
	}
	if !OnDevices(at.Targets) {
		record.Directory = string(at.Targets.Directories[0])
		return record, nil
	}
	if disks := TargetsOf(in, at.Role, "", record.Node); record.Target == "" && len(disks) > 0 {
		record.Target = disks[0].Name
	}
	if record.Target != "" {
		record.Directory = path.Join(TargetPath(fs, record.Target), at.Component)
	}
	return record, nil
}

// refuseElsewhere refuses a spec that has the metadata elsewhere than the disks say.
func (d OnDisks) refuseElsewhere(in Input, at MetadataPlace) error {
	matching := NodesOf(in.FileSystem, in.Nodes, at.NodeSelector)
	if !slices.ContainsFunc(matching, func(n Node) bool { return n.Name == d.Facts.MetadataNode }) {
		return Invalid(v1alpha1.ReasonRecordsDisagree,
			"the disks say that the metadata of this filesystem lies on node %s, and the nodeSelector of the metadata matches %s; label that node instead",
			d.Facts.MetadataNode, NodeNames(matching))
	}
	if !OnDevices(at.Targets) && d.Facts.MetadataTarget != "" {
		return Invalid(v1alpha1.ReasonRecordsDisagree,
			"the disks say that the metadata of this filesystem lies on the disk of %s, and the spec names a directory; name the disk", d.Facts.MetadataTarget)
	}
	return nil
}

// MetadataExpected is true when the disks say that there is metadata from before: it is taken over, and never made anew. What lies on a
// disk that can't be read, and in a directory, is taken to be there: it is lost rather than made anew.
func MetadataExpected(in Input) bool {
	if m := in.FileSystem.Status.Metadata; m == nil || m.Initialized != nil {
		return false
	}
	disks, err := ReadDisks(in)
	return err != nil || disks.Facts != nil && (disks.metadata == nil || disks.metadata.Initialized != nil)
}

// Expected is true when the disk of a StorageTarget says that the filesystem has listed it before.
func (in Input) Expected(target string) bool {
	t := in.TargetNamed(target)
	if t == nil || t.Status.Record == nil {
		return false
	}
	m := t.Status.Record.Member
	return m != nil && m.Initialized != nil
}

// reading puts together what disks say, and remembers which disk said what.
type reading struct {
	out     *OnDisks
	fs      *v1alpha1.FileSystem
	members map[[2]string]int
	// from is the StorageTarget that said something, by what it is about.
	from map[any]string
	// called are the targets that were taken over from another owner, by the name that they had.
	called map[string]*v1alpha1.StorageTarget
}

// lacksMetadata is why what a disk says can't be used yet: it comes from another owner, and calls the disk of the metadata by a name that
// no target has or had.
func (r *reading) lacksMetadata(in Input, t *v1alpha1.StorageTarget) string {
	record := t.Status.Record
	if t.Status.FormerOwner == nil || record == nil || record.Facts == nil {
		return ""
	}
	name := record.Facts.MetadataTarget
	if name == "" || r.called[name] != nil || in.TargetNamed(name) != nil {
		return ""
	}
	return fmt.Sprintf("the disk with its metadata, StorageTarget %s of before, was not taken over", name)
}

// calledBefore are the targets that were taken over from another owner, by the name that they had there.
func calledBefore(targets []v1alpha1.StorageTarget) map[string]*v1alpha1.StorageTarget {
	out := map[string]*v1alpha1.StorageTarget{}
	for i := range targets {
		if f := targets[i].Status.FormerOwner; f != nil && targets[i].Status.Provisioned != nil {
			out[f.Target] = &targets[i]
		}
	}
	return out
}

// The things of which no two disks may say different things, or which no two may have.
type (
	aboutFact   struct{ name string }
	aboutSlot   struct{ slot int32 }
	aboutPool   struct{ pool string }
	aboutServer struct {
		role v1alpha1.Role
		id   int32
	}
	aboutTarget struct{ id int32 }
)

func (r *reading) disagree(one string, t *v1alpha1.StorageTarget, format string, args ...any) error {
	return Invalid(v1alpha1.ReasonRecordsDisagree, "the disks of %s and %s (%s) say different things: %s. Find out which of them belongs to this filesystem "+
		"as it was last, and take the other one out of the spec; nothing on them is changed meanwhile",
		one, t.Name, t.Spec.Node, fmt.Sprintf(format, args...))
}

// add adds what one disk says.
func (r *reading) add(t *v1alpha1.StorageTarget) error {
	record := t.Status.Record
	if record == nil || record.Facts == nil || record.Member == nil {
		return nil
	}
	if err := r.facts(t, *record.Facts); err != nil {
		return err
	}
	m := record.Member
	if m.Role == v1alpha1.RoleStorage {
		if err := r.slot(t, m); err != nil {
			return err
		}
	}
	if t.Name == r.out.Facts.MetadataTarget {
		r.out.metadata = m
	}
	if m.Role != v1alpha1.RoleStorage && m.ID == 0 {
		return nil // it was given nothing
	}
	return r.member(t, m)
}

func (r *reading) facts(t *v1alpha1.StorageTarget, says v1alpha1.FileSystemFacts) error {
	if says.Type != r.fs.Spec.Type {
		return Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s (%s) holds data of a %s filesystem, and this one is a %s; take the disk out of the spec, "+
			"or make a FileSystem of that type", t.Name, t.Spec.Node, says.Type, r.fs.Spec.Type)
	}
	if now := r.called[says.MetadataTarget]; now != nil && t.Status.FormerOwner != nil {
		says.MetadataTarget, says.MetadataNode = now.Name, now.Spec.Node
	}
	if r.out.Facts == nil {
		r.out.Facts, r.from[aboutFact{}] = &says, t.Name
		r.from[aboutFact{"target"}] = t.Name
		return nil
	}
	have, first := r.out.Facts, r.from[aboutFact{}]
	if have.BasePort == 0 && says.BasePort != 0 {
		merged := *have
		merged.BasePort = says.BasePort
		r.out.Facts, have = &merged, &merged
	}
	switch {
	case says.MetadataNode != have.MetadataNode:
		return r.disagree(first, t, "one that the metadata lies on node %s, the other one on %s", have.MetadataNode, says.MetadataNode)
	case says.BasePort != have.BasePort && says.BasePort != 0 && have.BasePort != 0: // 0 is of a spec that named it
		return r.disagree(first, t, "one that the first port is %d, the other one %d", have.BasePort, says.BasePort)
	case says.MetadataTarget == "" || says.MetadataTarget == have.MetadataTarget:
	case have.MetadataTarget == "":
		// The first disk was told before the metadata had its disk.
		merged := *have
		merged.MetadataTarget = says.MetadataTarget
		r.out.Facts, r.from[aboutFact{"target"}] = &merged, t.Name
	default:
		return r.disagree(r.from[aboutFact{"target"}], t, "one that the metadata lies on %s, the other one on %s", have.MetadataTarget, says.MetadataTarget)
	}
	return nil
}

func (r *reading) slot(t *v1alpha1.StorageTarget, m *v1alpha1.RecordedMember) error {
	slot, known := r.out.slots[m.StoragePool]
	switch other := r.from[aboutSlot{m.Slot}]; {
	case known && slot != m.Slot:
		return r.disagree(r.from[aboutPool{m.StoragePool}], t, "one that pool %s has the slot %d, the other one %d", m.StoragePool, slot, m.Slot)
	case !known && other != "":
		return r.disagree(other, t, "the slot %d is that of two pools", m.Slot)
	}
	r.out.slots[m.StoragePool] = m.Slot
	r.from[aboutPool{m.StoragePool}], r.from[aboutSlot{m.Slot}] = t.Name, t.Name
	return nil
}

func (r *reading) member(t *v1alpha1.StorageTarget, m *v1alpha1.RecordedMember) error {
	at := [2]string{t.Spec.Node, m.Name}
	i, known := r.members[at]
	switch other := r.from[aboutServer{m.Role, m.ID}]; {
	case known && r.out.Given[i].ID != m.ID:
		return r.disagree(r.from[at], t, "one that server %s.%s has the id %d, the other one %d", m.Name, t.Spec.Node, r.out.Given[i].ID, m.ID)
	case !known && m.ID != 0 && other != "":
		return r.disagree(other, t, "the %s server id %d is that of two servers", m.Role, m.ID)
	}
	if !known {
		i = len(r.out.Given)
		r.members[at], r.from[at], r.from[aboutServer{m.Role, m.ID}] = i, t.Name, t.Name
		r.out.Given = append(r.out.Given, Given{Node: t.Spec.Node, NodeMember: v1alpha1.NodeMember{
			Name: m.Name, Role: m.Role, StoragePool: m.StoragePool, Slot: m.Slot, ID: m.ID,
		}})
	}
	if m.TargetID == 0 {
		return nil
	}
	if m.Role == v1alpha1.RoleStorage { // that of a metadata server is the server's own
		if other := r.from[aboutTarget{m.TargetID}]; other != "" {
			return r.disagree(other, t, "the target id %d is that of both", m.TargetID)
		}
		r.from[aboutTarget{m.TargetID}] = t.Name
	}
	given := &r.out.Given[i]
	given.Targets = append(given.Targets, v1alpha1.MemberTarget{Name: t.Name, ID: m.TargetID})
	return nil
}

// agreesWithStatus refuses disks that say what the FileSystem has recorded otherwise.
func (r *reading) agreesWithStatus() error {
	have, says := r.fs.Status.Metadata, r.out.Facts
	refuse := func(what, recorded, said string) error {
		return Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s says that the %s is %s, and this FileSystem has recorded %s. Take the disk out of the spec, "+
			"or, if the disks are right, delete the FileSystem with deletionPolicy Retain and make it again", r.from[aboutFact{}], what, said, recorded)
	}
	switch {
	case have == nil, have.Recovered != nil: // a recovery has moved it since the disk was told
	case have.Node != says.MetadataNode:
		return refuse("node of the metadata", have.Node, says.MetadataNode)
	case have.Target != "" && says.MetadataTarget != "" && have.Target != says.MetadataTarget:
		return refuse("StorageTarget of the metadata", have.Target, says.MetadataTarget)
	}
	for _, p := range r.fs.Status.StoragePools {
		if slot, ok := r.out.slots[p.Name]; ok && slot != p.Slot {
			return refuse("slot of pool "+p.Name, fmt.Sprint(p.Slot), fmt.Sprint(slot))
		}
	}
	return nil
}

// Facts are what a filesystem was given besides what its servers were given, for spec.facts of its FileSystemNodes; nil while nothing is
// recorded. basePort is 0 where the spec says it.
func Facts(fs *v1alpha1.FileSystem, basePort int32) *v1alpha1.FileSystemFacts {
	m := fs.Status.Metadata
	if m == nil {
		return nil
	}
	return &v1alpha1.FileSystemFacts{Type: fs.Spec.Type, MetadataNode: m.Node, MetadataTarget: m.Target, BasePort: basePort}
}

// InitializedOn notes on the target that holds the metadata since when it does.
func InitializedOn(fs *v1alpha1.FileSystem, targets []v1alpha1.MemberTarget) {
	for i := range targets {
		if !targets[i].Directory && targets[i].Name == fs.Status.Metadata.Target {
			targets[i].Initialized = fs.Status.Metadata.Initialized.DeepCopy()
		}
	}
}
