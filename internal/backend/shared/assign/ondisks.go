package assign

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
)

// OnDisks holds the assignments that are stored on the disks of a filesystem, from before it was deleted and created again, or before its
// cluster was lost. They are assigned again. No new number is assigned while an unread disk may hold more.
type OnDisks struct {
	// Facts holds the values of the whole filesystem, nil if no disk has them.
	Facts *v1alpha1.FileSystemFacts
	// Given holds the servers, by node and name, with the assignments that disks have for them and for their targets.
	Given []backend.Given
	// Unread lists the disks that may hold more, each with the reason why it was not read, by node and name.
	Unread []string

	slots map[string]int32
	// metadata is the record on the disk that holds the metadata. open is true if that disk is present and was not read yet.
	metadata *v1alpha1.RecordedMember
	open     bool
	early    bool
}

// ReadDisks collects what the StorageTargets report from their disks. An *InvalidSpecError names disks that contradict each other or the
// FileSystem.
func ReadDisks(in backend.Input) (OnDisks, error) {
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
	slices.SortFunc(out.Given, func(a, b backend.Given) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Name, b.Name))
	})
	return out, r.agreesWithStatus()
}

// isTakingOver reports whether a person has named former owners for the disks of a filesystem.
func isTakingOver(fs *v1alpha1.FileSystem) bool {
	return fs.Spec.Provisioning.TakeOver != "" || len(fs.Spec.Provisioning.TakeOverFrom) > 0
}

// hasMetadataDisk reports whether the disk of the metadata is chosen, or the metadata is in a directory. That disk holds the other
// assignments. A node that has just joined has not listed its disks yet.
func hasMetadataDisk(in backend.Input) bool {
	role, targets := v1alpha1.RoleMetadata, in.FileSystem.Spec.MetadataServers.Targets
	if m := in.FileSystem.Spec.Management(); m != nil {
		role, targets = v1alpha1.RoleManagement, *m.Targets
	}
	return !OnDevices(targets) || slices.ContainsFunc(in.Targets, func(t v1alpha1.StorageTarget) bool { return t.Spec.Role == role })
}

// hasDisks reports whether a disk of a pool is chosen.
func hasDisks(in backend.Input, pool string) bool {
	return slices.ContainsFunc(in.Targets, func(t v1alpha1.StorageTarget) bool {
		return t.Spec.Role == v1alpha1.RoleStorage && t.Spec.StoragePool == pool
	})
}

// placed describes where a role keeps its data.
type placed struct {
	nodeSelector map[string]string
	targets      v1alpha1.TargetsSpec
}

// onDisks returns the roles of a filesystem that keep their data on disks.
func onDisks(fs *v1alpha1.FileSystem) []placed {
	all := []placed{{fs.Spec.MetadataServers.NodeSelector, fs.Spec.MetadataServers.Targets}}
	if m := fs.Spec.Management(); m != nil {
		all = append(all, placed{m.NodeSelector, *m.Targets})
	}
	for i := range fs.Spec.StoragePools {
		all = append(all, placed{fs.Spec.StoragePools[i].NodeSelector, fs.Spec.StoragePools[i].Targets})
	}
	return slices.DeleteFunc(all, func(p placed) bool { return !OnDevices(p.targets) })
}

// nodesWithDisks returns the nodes on which a role should keep its data on disks, by name.
func nodesWithDisks(in backend.Input) []string {
	var out []string
	for _, role := range onDisks(in.FileSystem) {
		for _, n := range backend.NodesOf(in.FileSystem, in.Nodes, role.nodeSelector) {
			if nodefacts.HasTargets(role.targets, n.Name) {
				out = append(out, n.Name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// unreadFor returns why the record on a disk is unknown; empty if it is known, or if the disk has none.
func unreadFor(in backend.Input, t *v1alpha1.StorageTarget) string {
	p, record := t.Status.Provisioned, t.Status.Record
	switch {
	case p != nil && p.PlanHash != "":
		return "" // this cluster has made it
	case p == nil && record != nil && record.Facts != nil:
		return "" // it is taken over after it got the assignments on its disk
	case p != nil && record == nil:
		return "it is being taken over"
	case p != nil:
		return record.Message
	case t.Status.FormerOwner != nil && slices.Contains(in.FileSystem.Spec.Provisioning.TakeOverFrom, t.Status.FormerOwner.Owner):
		_, why := Proven(t)
		return "it was not taken over from its former owner yet: " + why
	case t.Spec.Conflict != "" && len(in.FileSystem.Spec.Provisioning.TakeOverFrom) > 0:
		// Its agent does not look at the disk while another target has it, so the disk may be the one to take over.
		return "another target has its disk: " + t.Spec.Conflict
	}
	found := plan.DiskOf(in.Inventories[t.Spec.Node], t)
	ready, lost := Condition(t, v1alpha1.ConditionReady), isTakingOver(in.FileSystem)
	switch {
	case found == plan.OwnDisk, ready != nil && t.Status.Plan == nil && t.Spec.Conflict == "":
		// If an agent finds no target of this name on a disk, it makes a plan.
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

// Waits reports whether nothing at all may be assigned yet: the disks are not chosen, above all that of the metadata, or no disk has been
// read that holds the assignments.
func (d OnDisks) Waits(fs *v1alpha1.FileSystem) bool {
	if fs.Status.Metadata != nil {
		return false
	}
	return d.early || d.open || d.Facts == nil && len(d.Unread) > 0
}

// Why names the disks for which something new has to wait, as a sentence; empty if nothing has to.
func (d OnDisks) Why() string {
	if len(d.Unread) == 0 {
		return ""
	}
	return fmt.Sprintf("no new ids are assigned until these disks are read, because they may already use them: %s. Bring the disks and their nodes back. "+
		"Where a disk is lost for good, take it out of the spec; where the disks are those of another cluster, set spec.provisioning.takeOver",
		backend.List(d.Unread))
}

// Slot returns the slot of a pool.
func (d OnDisks) Slot(pool string) (int32, bool) {
	slot, ok := d.slots[pool]
	return slot, ok
}

// RecordMetadata keeps the recorded node and directory permanently, because a server on another one would start without the metadata.
// Without a record, the disks decide. Without either, it chooses the node and its first disk.
func (d OnDisks) RecordMetadata(in backend.Input, at backend.MetadataPlace, node string) (v1alpha1.MetadataRecord, error) {
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

// refuseElsewhere refuses a spec that places the metadata elsewhere than the disks show.
func (d OnDisks) refuseElsewhere(in backend.Input, at backend.MetadataPlace) error {
	matching := backend.NodesOf(in.FileSystem, in.Nodes, at.NodeSelector)
	if !slices.ContainsFunc(matching, func(n backend.Node) bool { return n.Name == d.Facts.MetadataNode }) {
		return backend.Invalid(v1alpha1.ReasonRecordsDisagree,
			"the disks record that the metadata of this filesystem is on node %s, and the nodeSelector of the metadata matches %s; label that node instead",
			d.Facts.MetadataNode, nodefacts.NodeNames(matching))
	}
	if !OnDevices(at.Targets) && d.Facts.MetadataTarget != "" {
		return backend.Invalid(v1alpha1.ReasonRecordsDisagree,
			"the disks record that the metadata of this filesystem is on the disk of %s, and the spec names a directory; name the disk", d.Facts.MetadataTarget)
	}
	return nil
}

// MetadataExpected reports whether the disks show existing metadata, which is taken over and never created again. Metadata on a disk that
// can't be read, or in a directory, is assumed to exist, so that it counts as lost and is not replaced by empty metadata.
func MetadataExpected(in backend.Input) bool {
	if m := in.FileSystem.Status.Metadata; m == nil || m.Initialized != nil {
		return false
	}
	disks, err := ReadDisks(in)
	return err != nil || disks.Facts != nil && (disks.metadata == nil || disks.metadata.Initialized != nil)
}

// reading combines the records of disks, and keeps the disk of each record.
type reading struct {
	out     *OnDisks
	fs      *v1alpha1.FileSystem
	members map[[2]string]int
	// from is the StorageTarget that a value came from, by the subject of the value.
	from map[any]string
	// called holds the targets that were taken over from another owner, by their former names.
	called map[string]*v1alpha1.StorageTarget
}

// lacksMetadata returns why the record on a disk can't be used yet: it comes from another owner, and names a disk of the metadata that no
// target has or had as its name.
func (r *reading) lacksMetadata(in backend.Input, t *v1alpha1.StorageTarget) string {
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

// calledBefore returns the targets that were taken over from another owner, by their former names.
func calledBefore(targets []v1alpha1.StorageTarget) map[string]*v1alpha1.StorageTarget {
	out := map[string]*v1alpha1.StorageTarget{}
	for i := range targets {
		if f := targets[i].Status.FormerOwner; f != nil && targets[i].Status.Provisioned != nil {
			out[f.Target] = &targets[i]
		}
	}
	return out
}

// Keys of values that must be unique, or must agree, among all disks.
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
	return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disks of %s and %s (%s) have different records: %s. Find out which of them belongs to this filesystem "+
		"as it was last, and take the other one out of the spec; nothing on them is changed meanwhile",
		one, t.Name, t.Spec.Node, fmt.Sprintf(format, args...))
}

// add adds the record of one disk.
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
		return nil // it has no assignments
	}
	return r.member(t, m)
}

func (r *reading) facts(t *v1alpha1.StorageTarget, facts v1alpha1.FileSystemFacts) error {
	if facts.Type != r.fs.Spec.Type {
		return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s (%s) holds data of a %s filesystem, and this one is a %s; take the disk out of the spec, "+
			"or make a FileSystem of that type", t.Name, t.Spec.Node, facts.Type, r.fs.Spec.Type)
	}
	if now := r.called[facts.MetadataTarget]; now != nil && t.Status.FormerOwner != nil {
		facts.MetadataTarget, facts.MetadataNode = now.Name, now.Spec.Node
	}
	if r.out.Facts == nil {
		r.out.Facts, r.from[aboutFact{}] = &facts, t.Name
		r.from[aboutFact{"target"}] = t.Name
		return nil
	}
	have, first := r.out.Facts, r.from[aboutFact{}]
	if have.BasePort == 0 && facts.BasePort != 0 {
		merged := *have
		merged.BasePort = facts.BasePort
		r.out.Facts, have = &merged, &merged
	}
	switch {
	case facts.MetadataNode != have.MetadataNode:
		return r.disagree(first, t, "one that the metadata is on node %s, the other one on %s", have.MetadataNode, facts.MetadataNode)
	case facts.BasePort != have.BasePort && facts.BasePort != 0 && have.BasePort != 0: // 0 means that the spec named it
		return r.disagree(first, t, "one that the first port is %d, the other one %d", have.BasePort, facts.BasePort)
	case facts.MetadataTarget == "" || facts.MetadataTarget == have.MetadataTarget:
	case have.MetadataTarget == "":
		// The first disk got its record before the metadata had its disk.
		merged := *have
		merged.MetadataTarget = facts.MetadataTarget
		r.out.Facts, r.from[aboutFact{"target"}] = &merged, t.Name
	default:
		return r.disagree(r.from[aboutFact{"target"}], t, "one that the metadata is on %s, the other one on %s", have.MetadataTarget, facts.MetadataTarget)
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
		r.out.Given = append(r.out.Given, backend.Given{Node: t.Spec.Node, NodeMember: v1alpha1.NodeMember{
			Name: m.Name, Role: m.Role, StoragePool: m.StoragePool, Slot: m.Slot, ID: m.ID,
		}})
	}
	if m.TargetID == 0 {
		return nil
	}
	if m.Role == v1alpha1.RoleStorage { // the number of a metadata target is that of its server
		if other := r.from[aboutTarget{m.TargetID}]; other != "" {
			return r.disagree(other, t, "the target id %d is that of both", m.TargetID)
		}
		r.from[aboutTarget{m.TargetID}] = t.Name
	}
	given := &r.out.Given[i]
	given.Targets = append(given.Targets, v1alpha1.MemberTarget{Name: t.Name, ID: m.TargetID})
	return nil
}

// agreesWithStatus refuses disks that contradict the FileSystem's own record.
func (r *reading) agreesWithStatus() error {
	have, facts := r.fs.Status.Metadata, r.out.Facts
	refuse := func(what, recorded, onDisk string) error {
		return backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk of %s records that the %s is %s, and this FileSystem has recorded %s. Take the disk out of the spec, "+
			"or, if the disks are right, delete the FileSystem with deletionPolicy Retain and make it again", r.from[aboutFact{}], what, onDisk, recorded)
	}
	switch {
	case have == nil, have.Recovered != nil: // a recovery has moved it since the disk was written
	case have.Node != facts.MetadataNode:
		return refuse("node of the metadata", have.Node, facts.MetadataNode)
	case have.Target != "" && facts.MetadataTarget != "" && have.Target != facts.MetadataTarget:
		return refuse("StorageTarget of the metadata", have.Target, facts.MetadataTarget)
	}
	for _, p := range r.fs.Status.StoragePools {
		if slot, ok := r.out.slots[p.Name]; ok && slot != p.Slot {
			return refuse("slot of pool "+p.Name, fmt.Sprint(p.Slot), fmt.Sprint(slot))
		}
	}
	return nil
}

// Facts returns the values that are assigned to the whole filesystem and not to its servers, for spec.facts of its FileSystemNodes; nil
// while nothing is recorded. basePort is 0 if the spec sets it.
func Facts(fs *v1alpha1.FileSystem, basePort int32) *v1alpha1.FileSystemFacts {
	m := fs.Status.Metadata
	if m == nil {
		return nil
	}
	return &v1alpha1.FileSystemFacts{Type: fs.Spec.Type, MetadataNode: m.Node, MetadataTarget: m.Target, BasePort: basePort}
}

// InitializedOn records on the target that holds the metadata when it was initialized.
func InitializedOn(fs *v1alpha1.FileSystem, targets []v1alpha1.MemberTarget) {
	for i := range targets {
		if !targets[i].Directory && targets[i].Name == fs.Status.Metadata.Target {
			targets[i].Initialized = fs.Status.Metadata.Initialized.DeepCopy()
		}
	}
}
