package beegfs

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/plan"
)

// Allocate decides which node and target hold the store of the management service, which nodes belong to the metadata and to each
// pool, and which ports and ids the daemons and their targets have.
func (b Backend) Allocate(in backend.Input) (backend.Allocation, error) {
	if err := checkSpec(in.FileSystem); err != nil {
		return backend.Allocation{}, err
	}
	management, err := recordManagement(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	pools, err := backend.RecordPools(in, maxSlots)
	if err != nil {
		return backend.Allocation{}, err
	}
	nodes, err := recordMetadataNodes(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	given, err := allocate(in, nodes, pools)
	if err != nil {
		return backend.Allocation{}, err
	}
	fs := *in.FileSystem
	var joins []string
	fs.Status, joins = backend.Recorded(in.FileSystem, management, pools)
	fs.Status.BeeGFS = given
	if err := refuseOwnConflicts(in, &fs); err != nil {
		return backend.Allocation{}, err
	}
	if err := backend.RefuseConflicts(in, b.Claims(&fs)); err != nil {
		return backend.Allocation{}, err
	}
	return backend.Allocation{
		Status: fs.Status, Joins: append(joins, addedServers(in.FileSystem, given)...),
		TargetNodes: plan.TargetNodes{
			Management: []string{management.Node}, Metadata: metadataNodes(&fs), Pools: backend.PoolNodes(fs.Status),
		},
	}, nil
}

// addedServers are the metadata servers that join those that are recorded. The first of all join nothing.
func addedServers(fs *v1alpha1.FileSystem, given *v1alpha1.BeeGFSStatus) []string {
	if fs.Status.BeeGFS == nil {
		return nil
	}
	var joins []string
	for _, a := range given.Allocations {
		if _, known := allocationNamed(fs, a.Name); a.Role == v1alpha1.RoleMetadata && !known {
			joins = append(joins, fmt.Sprintf("metadata server %s is added", a.Name))
		}
	}
	return joins
}

// reservedPorts is how many ports a filesystem reserves from its base port; see v1alpha1.BeeGFSSpec.BasePort.
const reservedPorts = 64

// Claims are its ports, and the directories of the management service, the metadata servers and the pools.
func (Backend) Claims(fs *v1alpha1.FileSystem) backend.Claims {
	var ports backend.PortRange
	switch {
	case fs.Status.BeeGFS != nil && fs.Status.BeeGFS.BasePort != 0:
		ports = backend.PortRange{First: fs.Status.BeeGFS.BasePort, Count: reservedPorts}
	case fs.Spec.BeeGFS != nil && fs.Spec.BeeGFS.BasePort != nil:
		ports = backend.PortRange{First: *fs.Spec.BeeGFS.BasePort, Count: reservedPorts}
	}
	claims := backend.NewClaims(fs, ports, "spec.beegfs.basePort")
	if fs.Status.Metadata == nil {
		return claims
	}
	claims.UseMetadata(*fs.Status.Metadata)
	for _, a := range allocations(fs) {
		claims.Use(a.Node)
		for _, t := range a.Targets {
			if a.Role == v1alpha1.RoleMetadata && isDirectory(t.Name) {
				claims.Use(a.Node, t.Name)
			}
		}
	}
	claims.UsePools(fs)
	return claims
}

// Adopts is true for a filesystem whose daemons get the ids of an earlier one, and so its data.
func (Backend) Adopts(spec *v1alpha1.FileSystemSpec) string {
	if spec.BeeGFS == nil || len(spec.BeeGFS.Adopt) == 0 {
		return ""
	}
	return "beegfs.adopt"
}

// maxID is the highest numeric id of a node or a target: BeeGFS keeps them in 16 bits (beegfs-setup-meta -s, 7.4.6).
const maxID = 65535

// allocator gives ids to daemons and targets, once and for ever. What was given lies in the status.
type allocator struct {
	in     backend.Input
	status *v1alpha1.BeeGFSStatus
	// adopted are the ids of an earlier filesystem, by name of the daemon.
	adopted map[string]v1alpha1.BeeGFSAllocation
}

// allocate starts from what is recorded, and adds ports, and ids for what has none.
func allocate(in backend.Input, metadataNodes []string, pools []backend.PoolRecord) (*v1alpha1.BeeGFSStatus, error) {
	status := &v1alpha1.BeeGFSStatus{}
	if in.FileSystem.Status.BeeGFS != nil {
		status = in.FileSystem.Status.BeeGFS.DeepCopy()
	}
	var err error
	if status.BasePort, err = recordPorts(in, status.BasePort); err != nil {
		return nil, err
	}
	a := &allocator{in: in, status: status, adopted: map[string]v1alpha1.BeeGFSAllocation{}}
	if err := a.adopt(); err != nil {
		return nil, err
	}
	for _, node := range metadataNodes {
		for slot := range metaSlots(in.FileSystem) {
			if err := a.metadata(node, slot); err != nil {
				return nil, err
			}
		}
	}
	for _, pool := range pools {
		for _, node := range pool.Nodes {
			if err := a.storage(pool, node); err != nil {
				return nil, err
			}
		}
	}
	a.observe()
	slices.SortFunc(status.Allocations, func(x, y v1alpha1.BeeGFSAllocation) int { return strings.Compare(x.Name, y.Name) })
	return status, nil
}

// adopt reads the ids of an earlier filesystem. None of them, used or not, is ever given to anything else.
func (a *allocator) adopt() error {
	type key struct {
		kind string
		id   int32
	}
	owners := map[key]string{}
	claim := func(kind string, id int32, owner string) error {
		if other, taken := owners[key{kind, id}]; taken && other != owner {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"the %s id %d is that of %s and of %s; with one id for two, files are lost. Give in spec.beegfs.adopt what status.beegfs.allocations of the earlier FileSystem said",
				kind, id, other, owner)
		}
		owners[key{kind, id}] = owner
		return nil
	}
	claimAll := func(x v1alpha1.BeeGFSAllocation) error {
		if err := claim(kindOf(x.Role), x.NodeID, x.Name); err != nil {
			return err
		}
		for _, t := range x.Targets {
			if x.Role == v1alpha1.RoleMetadata {
				continue // it is the server's own
			}
			if err := claim("storage target", t.ID, x.Name+"/"+t.Name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, given := range a.status.Allocations {
		if err := claimAll(given); err != nil {
			return err
		}
	}
	for _, x := range a.in.FileSystem.Spec.BeeGFS.Adopt {
		if err := a.agrees(x); err != nil {
			return err
		}
		if err := claimAll(x); err != nil {
			return err
		}
		a.adopted[x.Name] = x
		a.raise(x)
	}
	return nil
}

func kindOf(role v1alpha1.InstanceRole) string {
	if role == v1alpha1.RoleMetadata {
		return "metadata server"
	}
	return "storage server"
}

// agrees refuses ids for what has others already, and an entry that contradicts itself.
func (a *allocator) agrees(x v1alpha1.BeeGFSAllocation) error {
	switch x.Role {
	case v1alpha1.RoleMetadata:
		if x.Name != metaName(x.Slot, x.Node) {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.beegfs.adopt[%s]: the metadata server %d of node %s is called %s; correct the entry", x.Name, x.Slot, x.Node, metaName(x.Slot, x.Node))
		}
		if len(x.Targets) > 1 || len(x.Targets) == 1 && x.Targets[0].ID != x.NodeID {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.beegfs.adopt[%s]: a metadata server has one target, whose id is the server's own, %d; correct the entry", x.Name, x.NodeID)
		}
	case v1alpha1.RoleStorage:
		if !strings.HasPrefix(x.Name, componentStorage+"-") || !strings.HasSuffix(x.Name, "."+x.Node) {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.beegfs.adopt[%s]: a storage server of node %s is called %s; correct the entry", x.Name, x.Node, storageName("<pool>", x.Node))
		}
	default:
		return backend.Invalid(v1alpha1.ReasonInvalidSpec, "spec.beegfs.adopt[%s]: the role is %s, and only %s and %s have ids; correct the entry", x.Name, x.Role, v1alpha1.RoleMetadata, v1alpha1.RoleStorage)
	}
	given := a.find(x.Name)
	if given == nil {
		return nil
	}
	if given.NodeID != x.NodeID {
		return backend.Invalid(v1alpha1.ReasonInvalidSpec,
			"spec.beegfs.adopt says that %s has the %s id %d, but %d was given to it already, and ids are never changed; remove the entry, or make the FileSystem again with it",
			x.Name, kindOf(x.Role), x.NodeID, given.NodeID)
	}
	for _, t := range x.Targets {
		if have, ok := targetNamed(*given, t.Name); ok && have.ID != t.ID {
			return backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"spec.beegfs.adopt says that the target %s of %s has the id %d, but %d was given to it already, and ids are never changed; remove the entry, or make the FileSystem again with it",
				t.Name, x.Name, t.ID, have.ID)
		}
	}
	return nil
}

// raise remembers that ids were given.
func (a *allocator) raise(x v1alpha1.BeeGFSAllocation) {
	if x.Role == v1alpha1.RoleMetadata {
		a.status.LastMetadataID = max(a.status.LastMetadataID, x.NodeID)
		return
	}
	a.status.LastStorageID = max(a.status.LastStorageID, x.NodeID)
	for _, t := range x.Targets {
		a.status.LastTargetID = max(a.status.LastTargetID, t.ID)
	}
}

// find returns what was given to a daemon, to be added to, nil when it is nothing.
func (a *allocator) find(name string) *v1alpha1.BeeGFSAllocation {
	i := slices.IndexFunc(a.status.Allocations, func(x v1alpha1.BeeGFSAllocation) bool { return x.Name == name })
	if i < 0 {
		return nil
	}
	return &a.status.Allocations[i]
}

// next is an id that was never given.
func next(last *int32, kind string) (int32, error) {
	if *last >= maxID {
		return 0, backend.Invalid(v1alpha1.ReasonInvalidSpec, "all %d ids of BeeGFS for a %s were given, and none is given twice; make another FileSystem", maxID, kind)
	}
	*last++
	return *last, nil
}

// daemon finds what was given to a daemon, or gives it its id.
func (a *allocator) daemon(x v1alpha1.BeeGFSAllocation, last *int32) (*v1alpha1.BeeGFSAllocation, error) {
	if given := a.find(x.Name); given != nil {
		return given, nil
	}
	if err := checkInterfaces(a.in, x.Node); err != nil {
		return nil, err
	}
	if adopted, ok := a.adopted[x.Name]; ok {
		x.NodeID = adopted.NodeID
	} else {
		var err error
		if x.NodeID, err = next(last, kindOf(x.Role)); err != nil {
			return nil, err
		}
	}
	a.status.Allocations = append(a.status.Allocations, x)
	return &a.status.Allocations[len(a.status.Allocations)-1], nil
}

// metadata gives a metadata server its id, and its target, once that is chosen.
func (a *allocator) metadata(node string, slot int32) error {
	given, err := a.daemon(v1alpha1.BeeGFSAllocation{
		Name: metaName(slot, node), Role: v1alpha1.RoleMetadata, Node: node, Slot: slot,
	}, &a.status.LastMetadataID)
	if err != nil || len(given.Targets) > 0 {
		return err
	}
	targets := a.in.FileSystem.Spec.Metadata.Targets
	name := ""
	if !backend.OnDevices(targets) {
		name = string(targets.Directories[slot])
	} else if disks := metadataDisks(a.in, node, slot); len(disks) > 0 {
		name = disks[0].Name
	}
	if name != "" {
		given.Targets = []v1alpha1.BeeGFSTargetID{{Name: name, ID: given.NodeID}}
	}
	return nil
}

// metadataDisks are the disks that were chosen for a metadata server: one.
func metadataDisks(in backend.Input, node string, slot int32) []v1alpha1.StorageTarget {
	return slices.DeleteFunc(backend.TargetsOf(in, v1alpha1.RoleMetadata, "", node), func(t v1alpha1.StorageTarget) bool {
		return t.Spec.Instance != slot
	})
}

// storage gives a storage server its id, and those of its targets that have none theirs.
func (a *allocator) storage(pool backend.PoolRecord, node string) error {
	given, err := a.daemon(v1alpha1.BeeGFSAllocation{
		Name: storageName(pool.Name, node), Role: v1alpha1.RoleStorage, Node: node, Slot: pool.Slot,
	}, &a.status.LastStorageID)
	if err != nil {
		return err
	}
	for _, name := range a.storageTargets(pool.Name, node) {
		if _, ok := targetNamed(*given, name); ok {
			continue
		}
		target := v1alpha1.BeeGFSTargetID{Name: name}
		if adopted, ok := targetNamed(a.adopted[given.Name], name); ok {
			target.ID = adopted.ID
		} else if target.ID, err = next(&a.status.LastTargetID, "storage target"); err != nil {
			return err
		}
		given.Targets = append(given.Targets, target)
		given.Retired = false // it serves again
	}
	slices.SortFunc(given.Targets, func(x, y v1alpha1.BeeGFSTargetID) int { return strings.Compare(x.Name, y.Name) })
	return nil
}

// poolOf is the pool of a storage server, from its name; see storageName.
func poolOf(given v1alpha1.BeeGFSAllocation) string {
	return strings.TrimSuffix(strings.TrimPrefix(given.Name, componentStorage+"-"), "."+given.Node)
}

// storageTargets are the names of the targets that a pool has on a node now: directories, or disks.
func (a *allocator) storageTargets(pool, node string) []string {
	var names []string
	for _, p := range a.in.FileSystem.Spec.StoragePools {
		if p.Name == pool {
			for _, d := range p.Targets.Directories {
				names = append(names, string(d))
			}
		}
	}
	for _, t := range backend.TargetsOf(a.in, v1alpha1.RoleStorage, pool, node) {
		names = append(names, t.Name)
	}
	slices.Sort(names)
	return names
}

// observe records what the management service and the jobs have shown of the targets.
func (a *allocator) observe() {
	now := answered(a.in)
	if now != nil && a.in.State.MetadataMirrored && a.status.MetadataMirrored == nil {
		a.status.MetadataMirrored = now
	}
	disks := map[string]bool{}
	for _, t := range a.in.Targets {
		disks[t.Name] = true
	}
	drained, retired := drainedTargets(a.in), retirable(a.in)
	for i := range a.status.Allocations {
		given := &a.status.Allocations[i]
		given.Retired = given.Retired || slices.Contains(retired, given.Name) && len(a.storageTargets(poolOf(*given), given.Node)) == 0
		for j := range given.Targets {
			target := &given.Targets[j]
			if now != nil && target.Initialized == nil && a.serves(given.Role, target.ID) {
				target.Initialized = now
			}
			if given.Role != v1alpha1.RoleStorage || isDirectory(target.Name) {
				continue
			}
			if !disks[target.Name] { // what became of a disk that was taken out is known, and stays so
				if target.Drained != nil && target.TakenOut == nil {
					target.TakenOut = now
				}
				continue
			}
			target.TakenOut = nil
			when, empty := drained[target.ID]
			switch {
			case !empty:
				target.Drained = nil // it is to stay after all, and may hold new data
			case target.Drained == nil:
				target.Drained = new(metav1.NewTime(when).Rfc3339Copy())
			}
		}
	}
}

// serves is true when the management service says that a target takes part. That it remembers one proves nothing: a store
// that is taken over from an earlier filesystem remembers all of them, before any daemon has looked at its directory.
func (a *allocator) serves(role v1alpha1.InstanceRole, id int32) bool {
	if role == v1alpha1.RoleMetadata {
		return slices.ContainsFunc(a.in.State.Servers, func(s backend.Server) bool {
			return s.Role == v1alpha1.RoleMetadata && s.ID == id && s.Online
		})
	}
	return slices.ContainsFunc(a.in.State.Targets, func(t backend.Target) bool {
		return t.Role != v1alpha1.RoleMetadata && t.ID == id && t.Online
	})
}

// isDirectory is true for the name of a target that is a directory of its node. Others are StorageTargets.
func isDirectory(name string) bool { return strings.HasPrefix(name, "/") }
