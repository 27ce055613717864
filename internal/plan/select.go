package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
)

// SelectInput is the input of the choice of disks.
type SelectInput struct {
	FileSystem *v1alpha1.FileSystem
	// Cluster is the identity of this cluster (StorageTarget.spec.cluster).
	Cluster string
	// FilesIn holds the directories in which files are counted (StorageTarget.spec.filesIn), by StorageTarget.
	FilesIn map[string][]string
	TargetNodes
	// Formats holds how new targets of each role are formatted and mounted where the spec leaves it out. A role without an entry gets XFS
	// without options.
	Formats map[v1alpha1.Role]v1alpha1.FormatSpec
	// GaveUp holds the decommissioned nodes. Disks that the spec names there are not chosen, and Existing has none of their targets.
	GaveUp map[string]bool
	// Inventories holds the inventories by node. A node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Attachments holds the volumes that Kubernetes has attached, by node.
	Attachments map[string][]Attachment
	// Existing holds the targets of this FileSystem, including those that are being deleted.
	Existing []v1alpha1.StorageTarget
	// Others holds the targets of all other FileSystems in all namespaces.
	Others []v1alpha1.StorageTarget
}

// TargetNodes holds the nodes on which the roles of a FileSystem keep data. A node that already has targets may be left out.
type TargetNodes struct {
	// Management holds the nodes of the management service, Metadata those of the metadata servers.
	Management, Metadata []string
	// Pools holds the nodes of each storage pool, by its name.
	Pools map[string][]string
	// Seconds holds the second node of disks that two nodes reach, by the pool and by the node on which the pool names the disk. Both nodes
	// may serve such a target, one at a time.
	Seconds map[string]map[string]string
	// LostMetadata is the StorageTarget of lost metadata that is recovered on another disk of the same node, so that a selector does not count
	// it; empty for none.
	LostMetadata string
	// Replaced are the StorageTargets of lost disks that other disks of their nodes replace: a selector does not count them, and devices need
	// not name them.
	Replaced []string
}

// Selection is the result of Select: the targets of a FileSystem.
type Selection struct {
	// Targets holds the targets that should exist, sorted by name, with complete metadata and spec, ready to be applied. spec.approvedPlan,
	// spec.remove and spec.destroyFor are never set.
	Targets []v1alpha1.StorageTarget
	// Problems holds the things that a person has to change, sorted. Targets is valid in spite of them.
	Problems []Problem
}

// Problem is one thing that a person has to change.
type Problem struct {
	// Reason is one of the reasons of a FileSystem's conditions.
	Reason  string
	Message string
}

// group is the metadata servers, the management service or one storage pool.
type group struct {
	role  v1alpha1.Role
	pool  string
	field string
	nodes []string
	spec  v1alpha1.TargetsSpec
	// instances on each node; 1 for a pool.
	instances int
}

// place is one group on one node.
type place struct {
	role       v1alpha1.Role
	pool, node string
}

func (g group) at(node string) place { return place{g.role, g.pool, node} }

// selection is the state of one Select.
type selection struct {
	in     SelectInput
	groups []group
	// chosen holds the chosen targets by name; existing holds those of them that existed before.
	chosen   map[string]*v1alpha1.StorageTarget
	existing map[string]*v1alpha1.StorageTarget
	// at holds the chosen targets of a group on a node.
	at map[place][]*v1alpha1.StorageTarget
	// taken holds the claims to disks, by identity.
	taken    map[string][]claim
	problems []Problem
}

// Select chooses the disks of a FileSystem. The result does not depend on the order of the input's lists.
//
// An existing target keeps its disk and its recorded identity, even if the disk is gone, no longer matches, or its node has left the role.
// It is dropped only if it was taken out of spec.devices, was marked for removal, and its condition SafeToRemove is true.
// A selector chooses another disk for a target that is marked for removal and safe to remove. The same holds for a target whose lost
// metadata is recovered on another disk, and for one whose lost disk is replaced.
//
// spec.devices chooses new disks by name, whatever their content; the plan then lists the content. A selector chooses only disks that are
// usable as they are and not claimed, in the order of their ids. Disks that carry an earlier target of this FileSystem come first.
func Select(in SelectInput) Selection {
	in = inOrder(in)
	s := &selection{
		in: in, groups: groupsOf(in), chosen: map[string]*v1alpha1.StorageTarget{}, existing: map[string]*v1alpha1.StorageTarget{},
		at: map[place][]*v1alpha1.StorageTarget{}, taken: map[string][]claim{},
	}
	for i := range in.Existing {
		t := &in.Existing[i]
		s.existing[t.Name] = t
		s.claim(t)
	}
	for i := range in.Others {
		s.claim(&in.Others[i])
	}
	for _, g := range s.groups {
		s.keep(g)
	}
	for _, g := range s.groups {
		s.explicit(g)
	}
	for _, g := range s.groups {
		s.selected(g)
	}
	for _, g := range s.groups {
		s.logs(g)
	}
	s.conflicts()
	result := Selection{Problems: s.problems, Targets: make([]v1alpha1.StorageTarget, 0, len(s.chosen))}
	for _, name := range slices.Sorted(maps.Keys(s.chosen)) {
		result.Targets = append(result.Targets, *s.chosen[name])
	}
	slices.SortFunc(result.Problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Message, b.Message))
	})
	result.Problems = slices.Compact(result.Problems)
	return result
}

// inOrder returns the input with its lists sorted.
func inOrder(in SelectInput) SelectInput {
	in.Existing, in.Others = slices.Clone(in.Existing), slices.Clone(in.Others)
	slices.SortFunc(in.Existing, compareTargets)
	slices.SortFunc(in.Others, compareTargets)
	inventories := make(map[string]v1alpha1.NodeInventoryStatus, len(in.Inventories))
	for node, inventory := range in.Inventories {
		byName := func(a, b v1alpha1.BlockDevice) int { return strings.Compare(a.KernelName, b.KernelName) }
		if !slices.IsSortedFunc(inventory.BlockDevices, byName) {
			inventory.BlockDevices = slices.Clone(inventory.BlockDevices)
			slices.SortFunc(inventory.BlockDevices, byName)
		}
		inventories[node] = inventory
	}
	in.Inventories = bySerialFirst(inventories)
	return in
}

// bySerialFirst returns the inventories in which a shared WWN never names a disk. If a disk on another node has the same WWN and another
// serial number, the links made from the WWN come last, so that none of them becomes the disk's id. A person may still use such a link.
func bySerialFirst(inventories map[string]v1alpha1.NodeInventoryStatus) map[string]v1alpha1.NodeInventoryStatus {
	serialOf, shared := map[string]string{}, map[string]bool{}
	for _, inventory := range inventories {
		for _, b := range inventory.BlockDevices {
			if wwn := cmp.Or(b.WWN, b.SharedWWN); wwn != "" && b.Serial != "" {
				shared[wwn] = shared[wwn] || serialOf[wwn] != "" && serialOf[wwn] != b.Serial
				serialOf[wwn] = b.Serial
			}
		}
	}
	for node, inventory := range inventories {
		inventory.BlockDevices = slices.Clone(inventory.BlockDevices)
		for i := range inventory.BlockDevices {
			if b := &inventory.BlockDevices[i]; shared[b.WWN] {
				isOfWWN := func(id string) bool { return IsLinkOfWWN(id, b.WWN) }
				others := slices.DeleteFunc(slices.Clone(b.IDs), isOfWWN)
				b.IDs = slices.Concat(others, slices.DeleteFunc(slices.Clone(b.IDs), func(id string) bool { return !isOfWWN(id) }))
			}
		}
		inventories[node] = inventory
	}
	return inventories
}

// compareTargets orders targets by namespace and name.
func compareTargets(a, b v1alpha1.StorageTarget) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

// groupsOf returns the roles of a FileSystem that keep data: the management service and the metadata servers first, then the pools in the
// order of the spec.
func groupsOf(in SelectInput) []group {
	fs := in.FileSystem.Spec
	nodes := func(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }
	groups := []group{{
		role: v1alpha1.RoleMetadata, field: "spec.metadataServers.targets", nodes: nodes(in.Metadata), spec: fs.MetadataServers.Targets,
		instances: max(1, int(fs.MetadataServers.InstancesPerNode)),
	}}
	if m := fs.Management(); m != nil {
		groups = slices.Insert(groups, 0, group{
			role: v1alpha1.RoleManagement, field: m.Field + ".targets", nodes: nodes(in.Management), spec: *m.Targets,
			instances: 1,
		})
	}
	for _, p := range fs.StoragePools {
		groups = append(groups, group{
			role: v1alpha1.RoleStorage, pool: p.Name, field: fmt.Sprintf("spec.storagePools[%s].targets", p.Name),
			nodes: nodes(in.Pools[p.Name]), spec: p.Targets, instances: 1,
		})
	}
	return groups
}

// owns reports whether a target belongs to this group.
func (g group) owns(t *v1alpha1.StorageTarget) bool {
	return t.Spec.Role == g.role && t.Spec.StoragePool == g.pool
}

// problem adds something that a person has to change.
func (s *selection) problem(reason, format string, args ...any) {
	s.problems = append(s.problems, Problem{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// keep adds the existing targets of a group.
func (s *selection) keep(g group) {
	if len(g.spec.Directories) > 0 {
		return
	}
	for i := range s.in.Existing {
		t := &s.in.Existing[i]
		if !g.owns(t) || !t.DeletionTimestamp.IsZero() {
			continue
		}
		if g.spec.Select == nil && !s.named(g, t) {
			if isDrained(t) {
				continue
			}
			if slices.Contains(s.in.Replaced, t.Name) {
				s.choose(g, t.Spec.Node, t.Spec.Slot, t.Spec.Device, t.Name)
				continue
			}
			s.problem(v1alpha1.ReasonTargetsNotReady, "%s: StorageTarget %s (node %s, disk %s) is no longer in devices, and may hold data; set its spec.remove to true and wait "+
				"until its condition SafeToRemove is true, or name the disk again", g.field, t.Name, t.Spec.Node, t.Spec.Device.ID)
		}
		s.choose(g, t.Spec.Node, t.Spec.Slot, t.Spec.Device, t.Name)
	}
}

// named reports whether spec.devices names the disk of a target.
func (s *selection) named(g group, t *v1alpha1.StorageTarget) bool {
	return slices.ContainsFunc(g.spec.Devices, func(d v1alpha1.DeviceReference) bool {
		if d.Node != t.Spec.Node {
			return false
		}
		return s.refersTo(d, t)
	})
}

// isDrained reports whether a target is marked for removal and holds no data. The mark is checked too, because the condition may be older
// than the withdrawal of the mark.
func isDrained(t *v1alpha1.StorageTarget) bool {
	return t.Spec.Remove && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
}

// explicit chooses the disks that spec.devices names.
func (s *selection) explicit(g group) {
	byNode := map[string][]v1alpha1.DeviceReference{}
	for _, d := range g.spec.Devices {
		byNode[d.Node] = append(byNode[d.Node], d)
	}
	for _, node := range slices.Sorted(maps.Keys(byNode)) {
		references := byNode[node]
		if s.in.GaveUp[node] {
			continue
		}
		if len(references)%g.instances != 0 {
			s.problem(v1alpha1.ReasonInvalidSpec, "%s.devices: node %s has %d devices for %d metadata servers; give each server the same number", g.field, node, len(references), g.instances)
			continue
		}
		seen := map[string]v1alpha1.DeviceID{}
		for i, d := range references {
			s.explicitDevice(g, d, int32(i/(len(references)/g.instances)), seen) // #nosec G115 -- a slot is at most 15
		}
	}
}

// explicitDevice chooses one disk that spec.devices names.
func (s *selection) explicitDevice(g group, d v1alpha1.DeviceReference, slot int32, seen map[string]v1alpha1.DeviceID) {
	for _, t := range s.at[g.at(d.Node)] {
		if s.refersTo(d, t) {
			if first, twice := seen[t.Name]; twice {
				s.problem(v1alpha1.ReasonInvalidSpec, "%s.devices: node %s: %s and %s are the same disk; name it once", g.field, d.Node, first, d.ID)
			}
			seen[t.Name] = d.ID
			return
		}
	}
	if !slices.Contains(g.nodes, d.Node) {
		s.problem(v1alpha1.ReasonInvalidSpec, "%s.devices: node %s, which has %s, does not match the nodeSelector beside it; label the node, or take the device out",
			g.field, d.Node, d.ID)
		return
	}
	inventory, ok := s.in.Inventories[d.Node]
	if !ok {
		s.problem(v1alpha1.ReasonNoDevices, "%s.devices: %s", g.field, noInventory(d.Node))
		return
	}
	b := findDevice(inventory, string(d.ID))
	if b == nil {
		s.problem(v1alpha1.ReasonNoDevices, "%s.devices: node %s has no disk %s; it has %s", g.field, d.Node, d.ID, namesOfDisks(inventory))
		return
	}
	identity, why := identify(*b)
	if why != "" {
		s.problem(v1alpha1.ReasonNoDevices, "%s.devices: node %s: %s", g.field, d.Node, why)
		return
	}
	if carried := g.carriedBy(s.in.FileSystem, slot, d.Node, *b); carried != "" {
		identity.ID = carried
	} else if why := attachedAs(s.in.Attachments[d.Node], *b); why != "" {
		s.problem(v1alpha1.ReasonNoDevices, "%s.devices: node %s: %s can't be used: %s", g.field, d.Node, d.ID, why)
		return
	}
	name := g.targetName(s.in.FileSystem.Name, slot, d.Node, identity.ID)
	if old := s.existing[name]; old != nil {
		// The existing target is being deleted. Its name is free afterwards.
		return
	}
	second := s.in.Seconds[g.pool][d.Node]
	if second != "" {
		if why := s.notShared(identity, second); why != "" {
			s.problem(v1alpha1.ReasonNoDevices, "%s.devices: node %s: %s is not taken up, because node %s is to serve it, too, and %s", g.field, d.Node, d.ID, second, why)
			return
		}
	}
	s.choose(g, d.Node, slot, identity, name)
	s.chosen[name].Spec.SecondNode = second
	seen[name] = d.ID
}

// refersTo reports whether a reference names the disk of a target, by its recorded identity or the one that a person has accepted since.
func (s *selection) refersTo(d v1alpha1.DeviceReference, t *v1alpha1.StorageTarget) bool {
	b := findDevice(s.in.Inventories[d.Node], string(d.ID))
	for _, id := range []v1alpha1.DeviceIdentity{t.Spec.Device, s.deviceOf(t)} {
		if d.ID == id.ID || string(d.ID) == id.WWN || string(d.ID) == id.Serial || b != nil && sameDevice(*b, id) {
			return true
		}
	}
	return false
}

// selected chooses disks by spec.select.
func (s *selection) selected(g group) {
	if g.spec.Select == nil {
		return
	}
	for _, node := range g.nodes {
		have := make([]int, g.instances)
		count := 0
		for _, t := range s.at[g.at(node)] {
			if old := s.existing[t.Name]; t.Name != s.in.LostMetadata && !slices.Contains(s.in.Replaced, t.Name) && (old == nil || !isDrained(old)) {
				if i := int(t.Spec.Slot); i < len(have) {
					have[i]++
				}
				count++
			}
		}
		want := g.countPerNode()
		if want%g.instances != 0 {
			s.problem(v1alpha1.ReasonInvalidSpec, "%s.select: countPerNode %d can't be shared out to %d metadata servers; make it a multiple", g.field, want, g.instances)
			return
		}
		if count >= want {
			continue
		}
		inventory, ok := s.in.Inventories[node]
		if !ok {
			s.problem(v1alpha1.ReasonNoDevices, "%s.select: %s", g.field, noInventory(node))
			continue
		}
		matching, others := s.candidates(g, node, inventory, *g.spec.Select, false)
		for _, c := range matching {
			if count == want {
				break
			}
			slot := slices.IndexFunc(have, func(n int) bool { return n < want/g.instances })
			if slot < 0 {
				break
			}
			if c.carries >= 0 {
				slot = c.carries
			}
			name := g.targetName(s.in.FileSystem.Name, int32(slot), node, c.identity.ID) // #nosec G115 -- a slot is at most 15
			s.choose(g, node, int32(slot), c.identity, name)                             // #nosec G115 -- as above
			have[slot]++
			count++
		}
		switch {
		case g.takesAll() && count == 0:
			s.problem(v1alpha1.ReasonNoDevices, "%s.select: node %s has no disk that matches; %s", g.field, node,
				summary(others, "it has no disk at all"))
			s.shownTwice(g, node, inventory)
		case !g.takesAll() && count < want:
			s.problem(v1alpha1.ReasonNoDevices, "%s.select: node %s has %d of %d disks; %s",
				g.field, node, count, want, summary(others, "there are no others"))
			s.shownTwice(g, node, inventory)
		}
	}
}

// mostPerNode limits the disks that a selector chooses on a node.
const mostPerNode = 128

// countPerNode returns the number of disks that the selector of a group chooses on a node at most. If the spec leaves it out, it is one for
// the management service and for each metadata server, and all matching disks for a pool.
func (g group) countPerNode() int {
	switch n := int(g.spec.Select.CountPerNode); {
	case n > 0:
		return n
	case g.takesAll():
		return mostPerNode
	default:
		return g.instances
	}
}

// takesAll reports whether the selector of a pool chooses all matching disks.
func (g group) takesAll() bool {
	return g.role == v1alpha1.RoleStorage && g.spec.Select.CountPerNode == 0
}

// candidate is a disk that may be chosen.
type candidate struct {
	identity v1alpha1.DeviceIdentity
	// carries is the slot of the earlier target that is on the disk, -1 for none.
	carries int
}

// candidates returns the free disks of a node that match a selector, those with an earlier target of this group first, then by id; and the
// other disks, each with the reason. For logs, partitions count as disks.
func (s *selection) candidates(
	g group, node string, inventory v1alpha1.NodeInventoryStatus, selector v1alpha1.DeviceSelector, forLog bool,
) ([]candidate, []string) {
	var matching []candidate
	var others []string
	for _, b := range inventory.BlockDevices {
		identity, why := identify(b)
		carries := -1
		if why == "" && !forLog {
			if slot, id := s.carries(g, node, b); id != "" {
				carries, identity.ID = slot, id
			}
		}
		if why == "" {
			why = mismatch(b, selector)
		}
		if why == "" {
			why = s.takenBy(node, identity)
		}
		if why == "" && carries < 0 {
			why = cmp.Or(wrongTransport(b, selector), s.attached(node, inventory, b), notUsable(b, forLog))
		}
		if why != "" {
			others = append(others, fmt.Sprintf("%s (%s): %s", b.KernelName, cmp.Or(string(identity.ID), "no stable name"), why))
			continue
		}
		matching = append(matching, candidate{identity: identity, carries: carries})
	}
	slices.SortFunc(matching, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(min(b.carries, 0), min(a.carries, 0)), strings.Compare(string(a.identity.ID), string(b.identity.ID)))
	})
	slices.Sort(others)
	return matching, others
}

// carries returns the slot of this group whose earlier target a disk carries, and the id in that target's name; empty for none. The label
// decides, because no agent reads the marker while there is no StorageTarget.
func (s *selection) carries(g group, node string, b v1alpha1.BlockDevice) (slot int, id v1alpha1.DeviceID) {
	fs := s.in.FileSystem
	for i := range g.instances {
		id := g.carriedBy(fs, int32(i), node, b)                                      // #nosec G115 -- a slot is at most 15
		if id != "" && s.existing[g.targetName(fs.Name, int32(i), node, id)] == nil { // #nosec G115 -- as above
			return i, id
		}
	}
	return -1, ""
}

// notUsable returns why a selector can't choose a disk. A log may be a partition.
func notUsable(b v1alpha1.BlockDevice, forLog bool) string {
	kind := IsWholeDisk(Facts{BlockDevice: b})
	reasons := slices.DeleteFunc(slices.Clone(b.Unusable), func(r string) bool { return r == kind })
	if !forLog || b.Type != "part" {
		reasons = append(reasons, sentences(kind)...)
	}
	return strings.Join(reasons, "; ")
}

// mismatch returns why a selector does not match a disk; empty if it does.
func mismatch(b v1alpha1.BlockDevice, selector v1alpha1.DeviceSelector) string {
	if selector.MediaType != "" && b.MediaType != selector.MediaType {
		return fmt.Sprintf("it is %s, not %s", cmp.Or(string(b.MediaType), "of an unknown media type"), selector.MediaType)
	}
	if limit := selector.MinSize; !limit.IsZero() && b.SizeBytes < limit.Value() {
		return fmt.Sprintf("its %d bytes are less than %s", b.SizeBytes, limit.String())
	}
	if limit := selector.MaxSize; !limit.IsZero() && b.SizeBytes > limit.Value() {
		return fmt.Sprintf("its %d bytes are more than %s", b.SizeBytes, limit.String())
	}
	matches := func(globs []v1alpha1.Glob, names ...string) bool {
		return len(globs) == 0 || slices.ContainsFunc(globs, func(g v1alpha1.Glob) bool {
			return slices.ContainsFunc(names, func(name string) bool {
				ok, err := path.Match(string(g), name)
				return ok && err == nil
			})
		})
	}
	if !matches(selector.Models, b.Model) {
		return fmt.Sprintf("its model %q matches none of models", b.Model)
	}
	if !matches(selector.IDGlobs, b.IDs...) {
		return "none of its ids matches idGlobs"
	}
	if len(selector.ExcludeIDGlobs) > 0 && matches(selector.ExcludeIDGlobs, b.IDs...) {
		return "one of its ids matches excludeIDGlobs"
	}
	if len(selector.NUMANodes) > 0 {
		if b.NUMANode == nil {
			return "its NUMA node is not known"
		}
		if !slices.Contains(selector.NUMANodes, *b.NUMANode) {
			return fmt.Sprintf("it is on NUMA node %d", *b.NUMANode)
		}
	}
	return ""
}

// wrongTransport returns why a selector does not accept how a disk is attached; empty if it does.
func wrongTransport(b v1alpha1.BlockDevice, selector v1alpha1.DeviceSelector) string {
	transport := v1alpha1.Transport(b.Transport)
	switch {
	case slices.Contains(selector.Transports, transport):
		return ""
	case len(selector.Transports) > 0 && transport == "":
		return "it is not known how it is attached, and transports lists what is"
	case len(selector.Transports) > 0:
		return fmt.Sprintf("it is attached by %s, which is none of transports", transport)
	case transport == "" || slices.Contains(v1alpha1.LocalTransports, transport):
		return ""
	}
	return fmt.Sprintf("it is attached by %s, so it may be somebody else's; if it is not, list %s in transports, or name it in devices", transport, transport)
}

// summary formats a list of reasons for a sentence: the first ones, and the number of the others.
func summary(reasons []string, none string) string {
	const shown = 10
	switch {
	case len(reasons) == 0:
		return none
	case len(reasons) > shown:
		return fmt.Sprintf("no other disk qualifies: %s; and %d more", strings.Join(reasons[:shown], "; "), len(reasons)-shown)
	}
	return "no other disk qualifies: " + strings.Join(reasons, "; ")
}

// noInventory reports that a node has no agent, and how it gets one.
func noInventory(node string) string {
	return fmt.Sprintf("node %s has no NodeInventory, so its disks are unknown; give it an agent (kubectl label node %s %s=), or find out why its agent does not run",
		node, node, v1alpha1.LabelAgent)
}

// namesOfDisks lists the ids in an inventory, for a sentence.
func namesOfDisks(inventory v1alpha1.NodeInventoryStatus) string {
	var names []string
	for _, b := range inventory.BlockDevices {
		if identity, why := identify(b); why == "" {
			names = append(names, string(identity.ID))
		}
	}
	slices.Sort(names)
	const shown = 24
	if len(names) > shown {
		return fmt.Sprintf("%s, and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return cmp.Or(strings.Join(names, ", "), "none with a stable name")
}

// groupName is the part of a target's name that shows its purpose.
func groupName(g group, slot int32) string {
	switch g.role {
	case v1alpha1.RoleManagement:
		return "management"
	case v1alpha1.RoleMetadata:
		return fmt.Sprintf("mds%d", slot)
	default:
		return g.pool
	}
}

// targetName returns the name of the StorageTarget of a disk in a slot of this group.
func (g group) targetName(fileSystem string, slot int32, node string, id v1alpha1.DeviceID) string {
	return TargetName(fileSystem, g.role, groupName(g, slot), node, id)
}

// TargetName returns the permanent name of the StorageTarget of a disk: the FileSystem, the pool ("ssd") or slot ("mds0"), and 64 bits of a
// hash over everything that distinguishes targets. The readable part alone is ambiguous: a pool may be named "mds0", and the FileSystem "a"
// with the pool "b-c" reads like "a-b" with "c". Two of 24 000 disks have the same hash in one of 60 000 million clusters (n²/2⁶⁵).
func TargetName(fileSystem string, role v1alpha1.Role, poolOrSlot, node string, id v1alpha1.DeviceID) string {
	// Only the last part, the device's id, may contain a slash.
	sum := sha256.Sum256([]byte(strings.Join([]string{fileSystem, string(role), poolOrSlot, node, string(id)}, "/")))
	return fmt.Sprintf("%s-%s-%s", fileSystem, poolOrSlot, hex.EncodeToString(sum[:8]))
}

// choose adds a target.
func (s *selection) choose(g group, node string, slot int32, device v1alpha1.DeviceIdentity, name string) {
	fs := s.in.FileSystem
	t := &v1alpha1.StorageTarget{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "StorageTarget"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fs.Namespace, Name: name, Finalizers: []string{v1alpha1.Finalizer},
			Labels:          map[string]string{v1alpha1.LabelFileSystem: fs.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fs, v1alpha1.GroupVersion.WithKind("FileSystem"))},
		},
		Spec: v1alpha1.StorageTargetSpec{
			FileSystem: v1alpha1.TargetOwner{Name: fs.Name, UID: string(fs.UID)}, Cluster: s.in.Cluster, TakeOver: fs.Spec.Provisioning.TakeOver,
			FilesIn: s.in.FilesIn[name],
			Node:    node, Role: g.role, StoragePool: g.pool, Slot: slot, Device: device,
			Queue:        g.spec.Queue,
			FormatPolicy: cmp.Or(fs.Spec.Provisioning.FormatPolicy, v1alpha1.FormatApproved),
		},
	}
	if g.pool != "" {
		t.Labels[v1alpha1.LabelStoragePool] = g.pool
	}
	if len(validation.IsValidLabelValue(node)) == 0 {
		t.Labels[v1alpha1.LabelNode] = node
	}
	t.Spec.Format, t.Spec.FormatFrom = s.formatOf(g, node, device.ID, name)
	if old := s.existing[name]; old != nil {
		var problem string
		if t.Spec.TakeOverFrom, problem = s.allowTakeOver(old); problem != "" {
			s.problem(v1alpha1.ReasonDeviceConflict, "spec.provisioning.takeOverFrom: %s", problem)
		}
		t.Spec.LogDevice = old.Spec.LogDevice.DeepCopy()
		// Select decides neither which of two nodes should serve the target, nor whether two nodes may.
		t.Spec.SecondNode = old.Spec.SecondNode
		if isFinished(old) {
			// The format of an existing target stays as it is; its mount options may change.
			t.Spec.Format.FSType, t.Spec.Format.MkfsOptions = old.Spec.Format.FSType, slices.Clone(old.Spec.Format.MkfsOptions)
			t.Spec.FormatFrom = old.Spec.FormatFrom
		}
	}
	s.chosen[name] = t
	s.at[g.at(node)] = append(s.at[g.at(node)], t)
	s.claim(t)
}
