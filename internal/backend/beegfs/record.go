package beegfs

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
)

// recordManagementNode is the recorded node, or the one that matches.
func recordManagementNode(in backend.Input) (string, error) {
	fs := in.FileSystem
	if fs.Status.Metadata != nil {
		return fs.Status.Metadata.Node, nil
	}
	selector := own(fs).Management.NodeSelector
	nodes := nodefacts.OneNode(in, v1alpha1.RoleManagement, selector, own(fs).Management.Targets)
	by := nodefacts.SelectedBy(fs, "spec.beegfs.management.nodeSelector", selector)
	switch len(nodes) {
	case 0:
		return "", backend.Invalid(v1alpha1.ReasonNoNodes,
			"no node matches %s; label the node that shall run the management service", by)
	case 1:
		node := nodes[0].Name
		if !nodefacts.HasTargets(own(fs).Management.Targets, node) {
			return "", backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"%s matches %s, and spec.beegfs.management.targets.devices names a disk of node %s; label that node instead, or name a disk of %s",
				by, node, own(fs).Management.Targets.Devices[0].Node, node)
		}
		return node, nil
	default:
		return "", backend.Invalid(v1alpha1.ReasonTooManyNodes,
			"%s matches %s, but a BeeGFS has exactly one management service; leave the label on one node", by, nodefacts.NodeNames(nodes))
	}
}

// recordMetadataNodes returns the nodes with metadata servers, by name: those on record, and matching nodes up to
// spec.metadataServers.nodeCount.
// Nodes whose disks carry metadata of this filesystem come first, the others in the order of their names.
func recordMetadataNodes(in backend.Input) ([]string, error) {
	fs, spec := in.FileSystem, in.FileSystem.Spec.MetadataServers
	nodes := metadataNodes(in)
	count := int(spec.NodeCount)
	if count > 0 && len(nodes) > count {
		return nil, backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.metadataServers.nodeCount is %d, but %s have metadata servers; metadata can't be moved to another server, so set it to %d, or more, again",
			count, backend.List(nodes), len(nodes))
	}
	var others []string
	for _, n := range backend.NodesOf(fs, in.Nodes, spec.NodeSelector) {
		if nodefacts.HasTargets(spec.Targets, n.Name) && !slices.Contains(nodes, n.Name) {
			others = append(others, n.Name)
		}
	}
	// Nodes whose disks carry earlier metadata of this filesystem come first.
	holds := func(node string) int {
		inventory, ok := in.Inventories[node]
		if ok && plan.Holds(fs, v1alpha1.RoleMetadata, node, inventory) {
			return 0
		}
		return 1
	}
	slices.SortFunc(others, func(a, b string) int { return cmp.Or(cmp.Compare(holds(a), holds(b)), strings.Compare(a, b)) })
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
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes, "no node matches %s%s; label the nodes that shall run metadata servers",
			nodefacts.SelectedBy(fs, "spec.metadataServers.nodeSelector", spec.NodeSelector), among)
	case len(nodes) < count:
		return nil, backend.Invalid(v1alpha1.ReasonNoNodes,
			"spec.metadataServers.nodeCount is %d, and %s matches %d usable nodes (%s); label more nodes, or lower nodeCount to %d",
			count, nodefacts.SelectedBy(fs, "spec.metadataServers.nodeSelector", spec.NodeSelector), len(nodes), backend.List(nodes), len(nodes))
	}
	return nodes, nil
}

// checkSpec refuses a spec that contradicts itself, even if admission has accepted it.
func checkSpec(in backend.Input) error {
	fs := in.FileSystem
	if fs.Spec.BeeGFS == nil {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.beegfs is required when spec.type is BeeGFS: spec.beegfs.management says where the management service runs")
	}
	if err := checkMetadata(in); err != nil {
		return err
	}
	for _, pool := range fs.Spec.StoragePools {
		if pool.Name == drain.PoolName {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec, "a storage pool can't be named %q: targets that are being drained go to a pool of that name; choose another name", drain.PoolName)
		}
		striping := ownPool(pool).Striping
		if striping == nil || striping.ChunkSize.IsZero() {
			continue
		}
		if bytes := striping.ChunkSize.Value(); bytes < 64<<10 || bytes > 2<<30 || bytes&(bytes-1) != 0 {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"spec.storagePools[%s].beegfs.striping.chunkSize is %q; BeeGFS takes a power of two from 64Ki to 2Gi, such as 512Ki or 1Mi", pool.Name, striping.ChunkSize.String())
		}
	}
	return nil
}

// checkMetadata refuses a number of metadata targets that differs from the number of metadata servers: each server keeps its metadata on a
// target of its own.
func checkMetadata(in backend.Input) error {
	fs := in.FileSystem
	slots, targets := int(metaSlots(fs)), fs.Spec.MetadataServers.Targets
	if slots > maxSlots {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.metadataServers.instancesPerNode is %d, and a node has room for %d metadata servers", slots, maxSlots)
	}
	for _, a := range in.Given() {
		if a.Role == v1alpha1.RoleMetadata && int(a.Slot) >= slots {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"spec.metadataServers.instancesPerNode is %d, but node %s has the metadata server %s; metadata can't be moved to another server, so set it to %d again",
				slots, a.Node, a.Server(), a.Slot+1)
		}
	}
	if n := len(targets.Directories); n > 0 && n != slots {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.metadataServers.targets has %d directories for %d metadata servers on each node (spec.metadataServers.instancesPerNode); give as many as servers", n, slots)
	}
	if s := targets.Select; s != nil && s.CountPerNode != 0 && int(s.CountPerNode) != slots {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.metadataServers.targets.select.countPerNode is %d for %d metadata servers on each node (spec.metadataServers.instancesPerNode); make them equal", s.CountPerNode, slots)
	}
	devices := map[string]int{}
	for _, d := range targets.Devices {
		devices[d.Node]++
	}
	for _, node := range backend.SortedKeys(devices) {
		if devices[node] != slots {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"spec.metadataServers.targets.devices names %d disks of node %s for %d metadata servers (spec.metadataServers.instancesPerNode); name as many as servers",
				devices[node], node, slots)
		}
	}
	return nil
}

// refuseOwnConflicts refuses two uses of one directory on a node within the filesystem that is to be recorded.
func refuseOwnConflicts(in backend.Input) error {
	fs, record := in.FileSystem, in.FileSystem.Status
	type use struct{ what, directory string }
	uses := map[string][]use{}
	add := func(node, what, directory string) { uses[node] = append(uses[node], use{what, directory}) }
	if record.Metadata.Target == "" && record.Metadata.Directory != "" {
		add(record.Metadata.Node, "the management service", record.Metadata.Directory)
	}
	for _, a := range in.Given() {
		for _, t := range a.Targets {
			if isDirectory(t.Name) {
				add(a.Node, a.Server(), t.Name)
			}
		}
	}
	for _, node := range backend.SortedKeys(uses) {
		if fs.Spec.Clients != nil {
			add(node, "spec.clients.mountPath", string(fs.Spec.Clients.MountPath))
		}
		for i, a := range uses[node] {
			for _, b := range uses[node][:i] {
				if assign.Nested(a.directory, b.directory) {
					return backend.Invalid(v1alpha1.ReasonDirectoryConflict, "on node %s, %s is for %s, and %s for %s; give each a directory of its own, outside of the others",
						node, b.directory, b.what, a.directory, a.what)
				}
			}
		}
	}
	return refuseSharedMount(in)
}

// refuseSharedMount refuses another filesystem's mount at a path where this one mounts or keeps data, on a node that both use.
func refuseSharedMount(in backend.Input) error {
	fs, record := in.FileSystem, in.FileSystem.Status
	mine := map[string][]string{record.Metadata.Node: {record.Metadata.Directory}}
	for _, a := range in.Given() {
		for _, t := range a.Targets {
			if isDirectory(t.Name) {
				mine[a.Node] = append(mine[a.Node], t.Name)
			}
		}
	}
	for _, n := range backend.ClientNodes(fs, in.Nodes) {
		mine[n.Name] = append(mine[n.Name], string(fs.Spec.Clients.MountPath))
	}
	for i := range in.Others {
		other := &in.Others[i]
		if other.Spec.Clients == nil || other.Status.Metadata == nil {
			continue
		}
		for _, n := range backend.ClientNodes(other, in.Nodes) {
			for _, d := range mine[n.Name] {
				if d != "" && assign.Nested(d, string(other.Spec.Clients.MountPath)) {
					return backend.Invalid(v1alpha1.ReasonDirectoryConflict, "FileSystem %s/%s is mounted at %s on node %s, and this one uses %s there; give each its own directory",
						other.Namespace, other.Name, other.Spec.Clients.MountPath, n.Name, d)
				}
			}
		}
	}
	return nil
}

// checkInterfaces refuses a node that is to get its first daemon and has none of the named interfaces: no other daemon and no client could
// reach it. Without an agent, the interfaces are unknown.
func checkInterfaces(in backend.Input, node string) error {
	network := in.FileSystem.Spec.Network
	inventory, known := in.Inventories[node]
	if network == nil || len(network.Interfaces) == 0 || !known || len(inventory.NetworkInterfaces) == 0 {
		return nil
	}
	wanted := make([]string, len(network.Interfaces))
	for i, name := range network.Interfaces {
		wanted[i] = string(name)
	}
	there := make([]string, len(inventory.NetworkInterfaces))
	for i, have := range inventory.NetworkInterfaces {
		there[i] = have.Name
		if slices.Contains(wanted, have.Name) {
			return nil
		}
	}
	slices.Sort(there)
	return backend.Invalid(v1alpha1.ReasonInvalidSpec, "node %s has none of spec.network.interfaces (%s); it has %s. Name one of those too, or take the label from the node",
		node, strings.Join(wanted, ", "), backend.List(there))
}

// recordPorts keeps the base port that is recorded, or that is on the disks, permanently. If the spec has none, it is the first range, from
// 8000, that no other filesystem uses or requests.
func recordPorts(in backend.Input, disks assign.OnDisks, recorded int32) (int32, error) {
	const first, last = 8000, 65472
	asked := in.FileSystem.Spec.BeeGFS.BasePort
	if disks.Facts != nil {
		said := disks.Facts.BasePort
		if recorded != 0 && said != recorded {
			return 0, backend.Invalid(v1alpha1.ReasonRecordsDisagree,
				"the disks record that the first port is %d, and %d was assigned to this FileSystem; take these disks out of the spec, or, if they are right, "+
					"delete the FileSystem with deletionPolicy Retain and make it again", said, recorded)
		}
		recorded = said
	}
	switch {
	case recorded != 0 && asked != nil && *asked != recorded:
		return 0, backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.beegfs.basePort is %d, but %d was assigned to this filesystem, and its daemons and clients know each other by it; set it to %d", *asked, recorded, recorded)
	case recorded != 0:
		return recorded, nil
	case asked != nil:
		return *asked, nil
	}
	return assign.FreePorts(in, first, last, reservedPorts, "spec.beegfs.basePort") //nolint:wrapcheck // it is a sentence for a person
}

// answered is the time of the query behind the answer, by the manager's clock; nil while there is none.
func answered(in backend.Input) *metav1.Time {
	if in.State == nil || in.State.Asked.IsZero() {
		return nil
	}
	return new(metav1.NewTime(in.State.Asked).Rfc3339Copy())
}
