package plan

import (
	"fmt"
	"maps"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
)

// claim is that a target wants a disk, as its own or as its log.
type claim struct {
	target *v1alpha1.StorageTarget
	device v1alpha1.DeviceIdentity
	isLog  bool
}

// sentence names a claim with all that tells it from another one.
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

// claimsOf are the disks that a target wants.
func claimsOf(t *v1alpha1.StorageTarget) []claim {
	claims := []claim{{target: t, device: t.Spec.Device}}
	if t.Spec.LogDevice != nil {
		claims = append(claims, claim{target: t, device: *t.Spec.LogDevice, isLog: true})
	}
	return claims
}

// claimsOf are the disks that a target wants, also by the identity that a person has accepted.
func (s *selection) claimsOf(t *v1alpha1.StorageTarget) []claim {
	claims := claimsOf(t)
	if now := s.deviceOf(t); now != t.Spec.Device {
		claims = append(claims, claim{target: t, device: now})
	}
	return claims
}

// deviceOf is what the disk of a target is known by. A target that was chosen anew has no status of its own.
func (s *selection) deviceOf(t *v1alpha1.StorageTarget) v1alpha1.DeviceIdentity {
	if old := s.existing[t.Name]; old != nil && old.Namespace == t.Namespace {
		t = old
	}
	return DeviceOf(t)
}

// identities are what a disk is known by. All are in one space: an id may be a WWN or a serial.
func identities(d v1alpha1.DeviceIdentity) []string {
	names := slices.DeleteFunc([]string{string(d.ID), d.WWN, d.Serial}, func(s string) bool { return s == "" })
	slices.Sort(names)
	return slices.Compact(names)
}

// areDistinct is true for two disks that are certainly not one although they share a name. Two with different serial numbers share a WWN
// that some maker gives to several disks. Two that one node reaches, with different WWNs, are two namespaces of one NVMe controller, or two
// logical units of one enclosure, which share its serial. On two nodes, the same serial may be one disk that both reach.
func areDistinct(nodesA []string, a v1alpha1.DeviceIdentity, nodesB []string, b v1alpha1.DeviceIdentity) bool {
	if a.Serial != "" && b.Serial != "" && a.Serial != b.Serial {
		return true
	}
	reached := slices.ContainsFunc(nodesA, func(node string) bool { return slices.Contains(nodesB, node) })
	return reached && a.WWN != "" && b.WWN != "" && a.WWN != b.WWN
}

// nodesOf are the nodes that reach the disk of a target.
func nodesOf(t *v1alpha1.StorageTarget) []string {
	if IsOfPair(t) {
		return []string{t.Spec.Node, t.Spec.SecondNode}
	}
	return []string{t.Spec.Node}
}

// claim notes what a target wants.
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

// takenBy is whose a disk is already; empty when it is free.
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

// shownTwice says which disks of a node are missing to a selector there because another node shows them, too, and has a target on them that
// was never made. Nothing on such a disk proves where it is: either both nodes reach it, or the inventory of one of them is wrong. A target
// that was made keeps its disk, whatever another node shows.
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
		}
	}
}

// logs gives every target of a group its log device: that which it has, that which spec.devices names, or one of logDevices.
// A target that should have a log and gets none is left out until it does: once it is formatted, it can't get one.
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

// namedLog is the log device that spec.devices names for a target.
func (s *selection) namedLog(g group, t *v1alpha1.StorageTarget) v1alpha1.DeviceID {
	for _, d := range g.spec.Devices {
		if d.Node == t.Spec.Node && s.refersTo(d, t) {
			return d.LogDevice
		}
	}
	return ""
}

// logFor is the log device of one target, or why there is none.
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

// conflicts marks the targets whose disks somebody else wants too. A target that is provisioned keeps working; then only the
// newcomer has the conflict. When neither is provisioned, both have it: which one is right is for a person to say.
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

// rival is the first other claim to a disk; one that is provisioned goes before others. Nil when there is none.
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

// isProvisioned is true for a target whose disk was made one, or taken over.
func (s *selection) isProvisioned(t *v1alpha1.StorageTarget) bool {
	if old := s.existing[t.Name]; old != nil && old.Namespace == t.Namespace {
		t = old
	}
	return isFinished(t)
}

// isFinished is true for a target whose disk was made one, or taken over, by its own status.
func isFinished(t *v1alpha1.StorageTarget) bool {
	return t.Status.Provisioned != nil && t.Status.Provisioned.Finished != nil
}
