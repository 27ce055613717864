package plan

import (
	"fmt"
	"maps"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// claim records that a target wants a disk, for its data or for its log.
type claim struct {
	target *v1alpha1.StorageTarget
	device v1alpha1.DeviceIdentity
	isLog  bool
}

// sentence describes a claim: the target, the node, the purpose and the disk.
func (c claim) sentence() string {
	t := c.target
	role := "the metadata"
	if t.Spec.StoragePool != "" {
		role = "pool " + t.Spec.StoragePool
	}
	use := ""
	if c.isLog {
		use = "as the log of "
	}
	return fmt.Sprintf("%sStorageTarget %s/%s (FileSystem %s/%s, %s, node %s, disk %s)",
		use, t.Namespace, t.Name, t.Namespace, t.Spec.FileSystem.Name, role, t.Spec.Node, c.device.ID)
}

// claimsOf returns the claims of a target: on its disk, and on its log device if it has one.
func claimsOf(t *v1alpha1.StorageTarget) []claim {
	claims := []claim{{target: t, device: t.Spec.Device}}
	if t.Spec.LogDevice != nil {
		claims = append(claims, claim{target: t, device: *t.Spec.LogDevice, isLog: true})
	}
	return claims
}

// claimsOf returns the claims of a target. The disk is also claimed by the identity that a person has accepted.
func (s *selection) claimsOf(t *v1alpha1.StorageTarget) []claim {
	claims := claimsOf(t)
	if now := s.deviceOf(t); now != t.Spec.Device {
		claims = append(claims, claim{target: t, device: now})
	}
	return claims
}

// deviceOf returns the current identity of a target's disk. A target that this Select chose has no status yet, so the status of the
// existing StorageTarget counts.
func (s *selection) deviceOf(t *v1alpha1.StorageTarget) v1alpha1.DeviceIdentity {
	if old := s.existing[t.Name]; old != nil && old.Namespace == t.Namespace {
		t = old
	}
	return DeviceOf(t)
}

// identities returns every name that identifies a disk. Ids, WWNs and serial numbers share one space, because an id may be a WWN or a
// serial number.
func identities(d v1alpha1.DeviceIdentity) []string {
	names := slices.DeleteFunc([]string{string(d.ID), d.WWN, d.Serial}, func(s string) bool { return s == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// areDistinct reports whether two disks that share a name are certainly different disks. Different serial numbers: some makers give one WWN
// to several disks. Different WWNs on one node: two namespaces of an NVMe controller, or two logical units of an enclosure, share a serial
// number. The same serial number on two nodes may be one disk that both reach.
func areDistinct(nodesA []string, a v1alpha1.DeviceIdentity, nodesB []string, b v1alpha1.DeviceIdentity) bool {
	if a.Serial != "" && b.Serial != "" && a.Serial != b.Serial {
		return true
	}
	reached := slices.ContainsFunc(nodesA, func(node string) bool { return slices.Contains(nodesB, node) })
	return reached && a.WWN != "" && b.WWN != "" && a.WWN != b.WWN
}

// nodesOf returns the nodes that reach the disk of a target.
func nodesOf(t *v1alpha1.StorageTarget) []string {
	if IsOfPair(t) {
		return []string{t.Spec.Node, t.Spec.SecondNode}
	}
	return []string{t.Spec.Node}
}

// claim adds the claims of a target.
func (s *selection) claim(t *v1alpha1.StorageTarget) {
	for _, c := range s.claimsOf(t) {
		s.claimDevice(c)
	}
}

func (s *selection) claimDevice(c claim) {
	for _, name := range identities(c.device) {
		s.taken[name] = append(s.taken[name], c)
	}
}

// takenBy returns the current owner of a disk; empty if the disk is free.
func (s *selection) takenBy(node string, device v1alpha1.DeviceIdentity) string {
	for _, name := range identities(device) {
		for _, c := range s.taken[name] {
			if !areDistinct([]string{node}, device, nodesOf(c.target), c.device) {
				return "it belongs to " + c.sentence()
			}
		}
	}
	return ""
}

// shownTwice reports the disks of a node that a selector leaves out because another node shows them too and has a target on them that was
// never provisioned. The disk itself does not prove which node it is attached to: either both nodes reach it, or one inventory is wrong. A
// provisioned target keeps its disk in any case.
func (s *selection) shownTwice(g group, node string, inventory v1alpha1.NodeInventoryStatus) {
	for _, b := range inventory.BlockDevices {
		identity, why := identify(b)
		if why != "" {
			continue
		}
		for _, name := range identities(identity) {
			i := slices.IndexFunc(s.taken[name], func(c claim) bool {
				there := s.in.Inventories[c.target.Spec.Node].BlockDevices
				shows := func(b v1alpha1.BlockDevice) bool { return sameDevice(b, c.device) }
				return !slices.Contains(nodesOf(c.target), node) && !s.isProvisioned(c.target) && slices.ContainsFunc(there, shows) &&
					!areDistinct([]string{node}, identity, nodesOf(c.target), c.device)
			})
			if i < 0 {
				continue
			}
			c := s.taken[name][i]
			s.problem(v1alpha1.ReasonDeviceConflict, "nodes %s and %s both show the disk %s (serial %q, WWN %q): compare lsblk -o NAME,SERIAL,WWN on both. "+
				"If only %s has it, stop the agent of %s, which shows what it doesn't have, and set spec.remove of %s; until then it is no disk for %s of %s",
				node, c.target.Spec.Node, identity.ID, identity.Serial, identity.WWN, node, c.target.Spec.Node, c.sentence(), g.field, node)
			break
		}
	}
}

// logs assigns a log device to every target of a group: the device it already has, the one that spec.devices names, or one of logDevices. A
// target that should have a log waits until one is free, because a log can't be added after formatting.
func (s *selection) logs(g group) {
	var selector *v1alpha1.DeviceSelector
	if g.spec.Format != nil {
		selector = g.spec.Format.LogDevices
	}
	used := map[string]int{}
	var without []*v1alpha1.StorageTarget
	for _, name := range slices.Sorted(maps.Keys(s.chosen)) {
		t := s.chosen[name]
		if !g.owns(t) {
			continue
		}
		if t.Spec.LogDevice != nil {
			used[t.Spec.Node]++
			continue
		}
		if old := s.existing[name]; old == nil || old.Status.Provisioned == nil {
			without = append(without, t)
		}
	}
	for _, t := range without {
		id := s.namedLog(g, t)
		if id == "" && selector == nil {
			continue
		}
		log, why := s.logFor(g, t, id, selector, used[t.Spec.Node])
		if why != "" {
			s.problem(v1alpha1.ReasonNoDevices, "%s: the disk %s of node %s gets no log device and is left out: %s", g.field, t.Spec.Device.ID, t.Spec.Node, why)
			if s.existing[t.Name] == nil {
				delete(s.chosen, t.Name)
			} else {
				t.Spec.Conflict = "it waits for a log device: " + why
			}
			continue
		}
		t.Spec.LogDevice = &log
		used[t.Spec.Node]++
		s.claimDevice(claim{target: t, device: log, isLog: true})
	}
}

// namedLog returns the log device that spec.devices names for a target.
func (s *selection) namedLog(g group, t *v1alpha1.StorageTarget) v1alpha1.DeviceID {
	for _, d := range g.spec.Devices {
		if d.Node == t.Spec.Node && s.refersTo(d, t) {
			return d.LogDevice
		}
	}
	return ""
}

// logFor returns the log device of one target, or the reason why there is none.
func (s *selection) logFor(
	g group, t *v1alpha1.StorageTarget, id v1alpha1.DeviceID, selector *v1alpha1.DeviceSelector, used int,
) (v1alpha1.DeviceIdentity, string) {
	inventory, ok := s.in.Inventories[t.Spec.Node]
	if !ok {
		return v1alpha1.DeviceIdentity{}, noInventory(t.Spec.Node)
	}
	if id != "" {
		b := findDevice(inventory, string(id))
		if b == nil {
			return v1alpha1.DeviceIdentity{}, fmt.Sprintf("node %s has no device %s; it has %s", t.Spec.Node, id, namesOfDisks(inventory))
		}
		if why := attachedAs(s.in.Attachments[t.Spec.Node], *b); why != "" {
			return v1alpha1.DeviceIdentity{}, fmt.Sprintf("%s can't be used: %s", id, why)
		}
		return identify(*b)
	}
	if n := int(selector.CountPerNode); n > 0 && used >= n {
		return v1alpha1.DeviceIdentity{}, fmt.Sprintf("all logs that logDevices.countPerNode (%d) allows are in use; set it to the number of targets on a node",
			selector.CountPerNode)
	}
	matching, others := s.candidates(g, t.Spec.Node, inventory, *selector, true)
	if len(matching) == 0 {
		return v1alpha1.DeviceIdentity{}, "logDevices finds none; " + summary(others, "the node has no other disks")
	}
	return matching[0].identity, ""
}

// conflicts marks the targets whose disks something else claims too. A provisioned target keeps working, and only the newcomer gets the
// conflict. If neither is provisioned, both get it, because a person has to decide.
func (s *selection) conflicts() {
	claims := map[string][]claim{}
	add := func(t *v1alpha1.StorageTarget) {
		for _, c := range s.claimsOf(t) {
			for _, name := range identities(c.device) {
				claims[name] = append(claims[name], c)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.chosen)) {
		add(s.chosen[name])
	}
	for _, name := range slices.Sorted(maps.Keys(s.existing)) {
		if s.chosen[name] == nil {
			add(s.existing[name])
		}
	}
	for i := range s.in.Others {
		add(&s.in.Others[i])
	}
	for _, name := range slices.Sorted(maps.Keys(s.chosen)) {
		t := s.chosen[name]
		for _, mine := range s.claimsOf(t) {
			other := s.rival(mine, claims)
			if other == nil {
				continue
			}
			if s.isProvisioned(t) && !s.isProvisioned(other.target) {
				continue
			}
			text := fmt.Sprintf("the device is wanted twice: by %s and by %s; take it out of one of them, or delete that StorageTarget", mine.sentence(), other.sentence())
			t.Spec.Conflict = v1alpha1.Cut(text, 2*maxLine)
			s.problem(v1alpha1.ReasonDeviceConflict, "%s", text)
			break
		}
	}
}

// rival returns the first other claim to a disk, provisioned ones first; nil if there is none.
func (s *selection) rival(mine claim, claims map[string][]claim) *claim {
	var found *claim
	for _, name := range identities(mine.device) {
		for _, c := range claims[name] {
			isSelf := c.target == mine.target && c.isLog == mine.isLog
			if isSelf || areDistinct(nodesOf(mine.target), mine.device, nodesOf(c.target), c.device) {
				continue
			}
			if found == nil || !s.isProvisioned(found.target) && s.isProvisioned(c.target) {
				found = &c
			}
		}
	}
	return found
}

// isProvisioned reports whether the disk of a target was provisioned or taken over.
func (s *selection) isProvisioned(t *v1alpha1.StorageTarget) bool {
	if old := s.existing[t.Name]; old != nil && old.Namespace == t.Namespace {
		t = old
	}
	return isFinished(t)
}

// isFinished reports whether the status of a target itself says that its disk was provisioned or taken over.
func isFinished(t *v1alpha1.StorageTarget) bool {
	return t.Status.Provisioned != nil && t.Status.Provisioned.Finished != nil
}
