package lustre

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// checkSpec refuses a spec that contradicts itself, or with settings that a user may not make.
func checkSpec(in backend.Input) error {
	fs := in.FileSystem
	if fs.Spec.Lustre == nil {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.lustre is required when spec.type is Lustre: spec.lustre.fsName is written on every disk")
	}
	if refused := RefusedParameters(own(fs).Parameters); len(refused) > 0 {
		return backend.Invalid(v1alpha1.ReasonOptionRefused, "%s", refused[0])
	}
	if err := checkPairs(in); err != nil {
		return err
	}
	slots := metadataSlots(fs)
	devices := map[string]int32{}
	for _, d := range fs.Spec.MetadataServers.Targets.Devices {
		devices[d.Node]++
	}
	for _, node := range backend.SortedKeys(devices) {
		if devices[node] != slots {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"spec.metadataServers.targets.devices names %d disks of node %s for %d MDTs (spec.metadataServers.instancesPerNode); each MDT is one disk: name as many as MDTs",
				devices[node], node, slots)
		}
	}
	for _, g := range in.Given() {
		if g.Role == v1alpha1.RoleMetadata && !g.Retired && g.Slot >= slots {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"spec.metadataServers.instancesPerNode is %d, but node %s has %s; an MDT can't be taken away, so set it to %d again", slots, g.Node,
				g.Name, g.Slot+1)
		}
	}
	return nil
}

// metadataSlots is how many MDTs each node of the metadata has.
func metadataSlots(fs *v1alpha1.FileSystem) int32 {
	return max(1, fs.Spec.MetadataServers.InstancesPerNode)
}

// managementNode is the node of an MGS of its own: the recorded one, or the one that matches. It is empty if MDT0000 has the MGT.
func managementNode(in backend.Input) (string, error) {
	fs := in.FileSystem
	if node := given(fs).ManagementNode; node != "" || !hasMGT(fs) {
		return node, nil
	}
	m := own(fs).Management
	nodes := nodefacts.OneNode(in, v1alpha1.RoleManagement, m.NodeSelector, m.Targets)
	by := nodefacts.SelectedBy(fs, "spec.lustre.management.nodeSelector", m.NodeSelector)
	switch len(nodes) {
	case 0:
		return "", backend.Invalid(v1alpha1.ReasonNoNodes,
			"no node matches %s; label the node that shall be the MGS", by)
	case 1:
		node := nodes[0].Name
		if !nodefacts.HasTargets(m.Targets, node) {
			return "", backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"%s matches %s, and spec.lustre.management.targets.devices names a disk of node %s; label that node instead, or name a disk of %s",
				by, node, m.Targets.Devices[0].Node, node)
		}
		return node, nil
	default:
		return "", backend.Invalid(v1alpha1.ReasonTooManyNodes,
			"%s matches %s, but a Lustre has exactly one MGS; leave the label on one node", by, nodefacts.NodeNames(nodes))
	}
}

// metadataNodes returns the nodes with MDTs, by name: that of MDT0000, those with MDTs on record, and matching nodes in the order of their
// names, up to spec.metadataServers.nodeCount.
func metadataNodes(in backend.Input) ([]string, error) {
	fs, spec := in.FileSystem, in.FileSystem.Spec.MetadataServers
	nodes := recordedMetadataNodes(in)
	count := int(spec.NodeCount)
	if count > 0 && len(nodes) > count {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.metadataServers.nodeCount is %d, but %s have MDTs; an MDT can't be taken away, so set it to %d, or more, again", count,
			backend.List(nodes), len(nodes))
	}
	var others []string
	for _, n := range backend.NodesOf(fs, in.Nodes, spec.NodeSelector) {
		if nodefacts.HasTargets(spec.Targets, n.Name) && !slices.Contains(nodes, n.Name) && !in.GaveUp(n.Name) {
			others = append(others, n.Name)
		}
	}
	slices.Sort(others)
	if count > 0 {
		others = others[:min(len(others), count-len(nodes))]
	}
	nodes = append(nodes, others...)
	slices.Sort(nodes)
	among := ""
	if len(spec.Targets.Devices) > 0 {
		among = " and is in spec.metadataServers.targets.devices"
	}
	switch {
	case len(nodes) == 0:
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes, "no node matches %s%s; label the nodes that shall have MDTs",
			nodefacts.SelectedBy(fs, "spec.metadataServers.nodeSelector", spec.NodeSelector), among)
	case len(nodes) < count:
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
			"spec.metadataServers.nodeCount is %d, and %s matches %d usable nodes (%s); label more nodes, or lower nodeCount to %d",
			count, nodefacts.SelectedBy(fs, "spec.metadataServers.nodeSelector", spec.NodeSelector), len(nodes), backend.List(nodes), len(nodes))
	}
	return nodes, nil
}

// recordedMetadataNodes returns the nodes with MDTs on record, by name.
func recordedMetadataNodes(in backend.Input) []string {
	var out []string
	if m := in.FileSystem.Status.Metadata; m != nil {
		out = append(out, m.Node)
	}
	for _, g := range in.Given() {
		if g.Role == v1alpha1.RoleMetadata && !g.Retired {
			out = append(out, g.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// recordManagement records the permanent facts of the MGS: its node, the disk of the MGT, and the NIDs, which are on every disk. The NIDs
// are recorded once, when there is a disk for the MGT.
//
// If disks of an earlier Lustre are taken over, the disk of the MGT comes from their records. It is not guessed while a record may still be
// missing.
func recordManagement(
	in backend.Input, disks assign.OnDisks, node string, metadata v1alpha1.MetadataRecord,
) (*v1alpha1.LustreStatus, error) {
	fs := in.FileSystem
	record := given(fs)
	if record.ManagementTarget == "" {
		if record.ManagementNode, record.ManagementTarget = metadata.Node, metadata.Target; hasMGT(fs) {
			record.ManagementNode, record.ManagementTarget = node, ""
			if disks := assign.TargetsOf(in, v1alpha1.RoleManagement, "", node); len(disks) > 0 {
				record.ManagementTarget = disks[0].Name
			}
		}
	}
	if len(record.ManagementNIDs) > 0 || record.ManagementTarget == "" {
		return &record, nil
	}
	said, err := recordedNIDs(in)
	if err != nil || said != nil {
		record.ManagementNIDs = slices.Clone(said)
		return &record, err
	}
	if disks.Facts != nil && len(disks.Unread) > 0 {
		return &record, nil
	}
	where, _ := in.Node(record.ManagementNode)
	where.Name = record.ManagementNode
	network, found := NetworkOf(fs.Spec.Network, own(fs).RDMA), in.Inventories[where.Name]
	nids, err := network.NIDs(where, found)
	if err != nil {
		return nil, err
	}
	if why := network.Missing(where.Name, nids, lnetOf(found)); why != "" {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec, "%s", why)
	}
	record.ManagementNIDs = nids
	return &record, nil
}

// lnetOf returns the NIDs that a node has already.
func lnetOf(found v1alpha1.NodeInventoryStatus) []string {
	for i := range found.Software {
		if found.Software[i].Name == string(v1alpha1.Lustre) {
			return found.Software[i].NIDs
		}
	}
	return nil
}

// refuseOthers refuses conflicts of two filesystems of this type on a node: its kernel can run one MGS, and finds targets by the name of
// their filesystem.
func refuseOthers(in backend.Input, mine *v1alpha1.LustreStatus, nodes map[string][]string) error {
	fs := in.FileSystem
	for i := range in.Others {
		other := &in.Others[i]
		theirs := other.Status.Lustre
		if other.Spec.Lustre == nil || theirs == nil {
			continue // that one detects the conflict when it records its own
		}
		name := other.Namespace + "/" + other.Name
		if theirs.ManagementNode == mine.ManagementNode && mine.ManagementNode != "" {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"FileSystem %s has its MGS on node %s, and the kernel of a node has one; select another node for the MGS of this one", name, mine.ManagementNode)
		}
		if other.Spec.Lustre.FSName != own(fs).FSName {
			continue
		}
		for _, node := range servingNodes(in.OthersNodes[other.UID]) {
			if _, shared := nodes[node]; shared {
				return backend.Invalid(v1alpha1.ReasonInvalidSpec,
					"FileSystem %s is called %q in Lustre, too, and has targets on node %s; its kernel can't tell them apart: choose another spec.lustre.fsName, or other nodes",
					name, own(fs).FSName, node)
			}
		}
	}
	return nil
}

// servingNodes returns the nodes of these FileSystemNodes that have members, by name.
func servingNodes(nodes []v1alpha1.FileSystemNode) []string {
	var out []string
	for i := range nodes {
		if len(nodes[i].Spec.Members) > 0 {
			out = append(out, nodes[i].Spec.Node)
		}
	}
	return out
}
