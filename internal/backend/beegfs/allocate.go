package beegfs

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/plan"
)

// Allocate chooses the node and target of the management store, the nodes of the metadata and of each pool, and the ports and ids of the
// daemons and their targets.
func (b Backend) Allocate(in backend.Input) (backend.Allocation, error) {
	in = in.Indexed()
	if err := checkSpec(in); err != nil {
		return backend.Allocation{}, err
	}
	node, err := recordManagementNode(in)
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
	nodes, err := recordMetadataNodes(in)
	if err != nil {
		return backend.Allocation{}, err
	}
	place := b.MetadataPlace(in.FileSystem)
	on := plan.TargetNodes{
		Management: metadatajobs.MetadataNodes(in.FileSystem, in.Nodes, place.NodeSelector, node), Metadata: nodes,
		Pools:        assign.PoolNodes(pools),
		LostMetadata: metadatajobs.LostMetadataTarget(in.FileSystem, in.Nodes, place.NodeSelector),
	}
	if disks.Waits(in.FileSystem) {
		return backend.Allocation{Status: in.FileSystem.Status, TargetNodes: on, Waits: true, Unread: disks.Why()}, nil
	}
	management, err := disks.RecordMetadata(in, place, node)
	if err != nil {
		return backend.Allocation{}, err
	}
	a, err := allocate(in, disks, numbers, nodes, pools)
	if err != nil {
		return backend.Allocation{}, err
	}
	on.Replaced = backend.SortedKeys(a.notCounted)
	fs, after := *in.FileSystem, in
	var joins []string
	fs.Status, joins = assign.Recorded(in, management, pools, numbers)
	fs.Status.BeeGFS = a.status
	after.FileSystem, after.FileSystemNodes = &fs, a.records.All()
	if err := refuseOwnConflicts(after); err != nil {
		return backend.Allocation{}, err
	}
	if err := assign.RefuseConflicts(in, b.Claims(&fs, after.FileSystemNodes)); err != nil {
		return backend.Allocation{}, err
	}
	return backend.Allocation{
		Status: fs.Status, Nodes: a.records.Changed(), More: numbers.More(), Joins: append(joins, addedServers(in, after)...), TargetNodes: on,
		Unread: a.unread(pools),
	}, nil
}

// addedServers returns the metadata servers that join those already recorded. It returns none for the first servers of a filesystem.
func addedServers(before, after backend.Input) []string {
	if before.FileSystem.Status.BeeGFS == nil {
		return nil
	}
	var joins []string
	for _, g := range after.Given() {
		if _, known := before.GivenTo(g.Node, g.Name); g.Role == v1alpha1.RoleMetadata && !known {
			joins = append(joins, fmt.Sprintf("metadata server %s is added", g.Server()))
		}
	}
	return joins
}

// reservedPorts is how many ports a filesystem reserves from its base port; see v1alpha1.BeeGFSSpec.BasePort.
const reservedPorts = 64

// Claims lists the ports, and the directories of the management service, the metadata servers and the pools.
func (Backend) Claims(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) backend.Claims {
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
	for _, g := range backend.GivenOn(nodes) {
		claims.Use(g.Node)
		for _, t := range g.Targets {
			if g.Role == v1alpha1.RoleMetadata && isDirectory(t.Name) {
				claims.Use(g.Node, t.Name)
			}
		}
	}
	claims.UsePools(fs, nodes)
	return claims
}

// Adopts is not empty for a filesystem whose daemons get the ids, and so the data, of an earlier one.
func (Backend) Adopts(spec *v1alpha1.FileSystemSpec) string {
	if spec.BeeGFS == nil || len(spec.BeeGFS.Adopt) == 0 {
		return ""
	}
	return "beegfs.adopt"
}

// maxID is the highest numeric id of a node or a target: BeeGFS keeps them in 16 bits (beegfs-setup-meta -s, 7.4.6).
const maxID = 65535

// numbering: the only target of a metadata server has its server's id.
var numbering = assign.Numbering{
	Server: map[v1alpha1.Role]v1alpha1.NumberKind{
		v1alpha1.RoleMetadata: v1alpha1.NumberOfMetadataServer, v1alpha1.RoleStorage: v1alpha1.NumberOfStorageServer,
	},
	Target: map[v1alpha1.Role]v1alpha1.NumberKind{
		v1alpha1.RoleMetadata: v1alpha1.NumberOfMetadataServer, v1alpha1.RoleStorage: v1alpha1.NumberOfStorageTarget,
	},
	Most: map[v1alpha1.NumberKind]int32{
		v1alpha1.NumberOfMetadataServer: maxID, v1alpha1.NumberOfStorageServer: maxID, v1alpha1.NumberOfStorageTarget: maxID,
		v1alpha1.NumberOfStoragePool: maxSlots,
	},
	Remembers: "BeeGFS", From: "its management service runs",
}

// allocator assigns ids to servers and targets permanently, by numbers.
type allocator struct {
	in      backend.Input
	status  *v1alpha1.BeeGFSStatus
	numbers *assign.Numbers
	records *assign.Records
	// adopted holds the ids of an earlier filesystem.
	adopted map[server]v1alpha1.GivenServerID
	// disks holds what was read from the disks.
	disks assign.OnDisks
	// gone holds the StorageTargets whose numbers other disks have. notCounted also holds those that a person wants to replace. The new disks
	// of the servers in held get no numbers of their own meanwhile.
	gone, notCounted map[string]bool
	held             map[serverPlace]bool
}

// server names a member of a node.
type server struct{ node, member string }

func (s server) String() string { return s.member + "." + s.node }

// allocate starts from what is recorded, and adds ports, and ids for what has none.
func allocate(
	in backend.Input, disks assign.OnDisks, numbers *assign.Numbers, metadataNodes []string, pools []backend.PoolRecord,
) (*allocator, error) {
	status := &v1alpha1.BeeGFSStatus{}
	if in.FileSystem.Status.BeeGFS != nil {
		status = in.FileSystem.Status.BeeGFS.DeepCopy()
	}
	var err error
	if status.BasePort, err = recordPorts(in, disks, status.BasePort); err != nil {
		return nil, err
	}
	a := &allocator{
		in: in, disks: disks, status: status, numbers: numbers, records: assign.NewRecords(in), adopted: map[server]v1alpha1.GivenServerID{},
	}
	if err := a.adopt(); err != nil {
		return nil, err
	}
	if err := a.takeOver(); err != nil {
		return nil, err
	}
	for _, node := range metadataNodes {
		for slot := range metaSlots(in.FileSystem) {
			if err := a.metadata(node, slot); err != nil {
				return nil, err
			}
		}
	}
	a.replace()
	for _, pool := range pools {
		if pool.Waits {
			continue
		}
		for _, node := range pool.Nodes {
			if err := a.storage(pool, node); err != nil {
				return nil, err
			}
		}
	}
	a.observe()
	return a, nil
}

// unread returns why the allocation has to wait; empty when nothing has to.
func (a *allocator) unread(pools []backend.PoolRecord) string {
	if slices.ContainsFunc(pools, func(p backend.PoolRecord) bool { return p.Waits }) {
		return a.numbers.HasToWait()
	}
	return a.numbers.Unread()
}

// server returns the record of a server, or assigns it an id. The second result is false for a server that has to wait.
func (a *allocator) server(node string, m v1alpha1.NodeMember) (backend.Given, bool, error) {
	if given, ok := a.records.Find(node, m.Name); ok {
		return given, true, nil
	}
	if err := checkInterfaces(a.in, node); err != nil {
		return backend.Given{}, false, err
	}
	if m.ID = a.adopted[server{node, m.Name}].ID; m.ID == 0 {
		var err error
		if m.ID, err = a.numbers.Promise(assign.Holder{Kind: numbering.Server[m.Role], Node: node, Member: m.Name}); err != nil || m.ID == 0 {
			return backend.Given{}, false, err
		}
	}
	return backend.Given{Node: node, NodeMember: *a.records.Change(node, m)}, true, nil
}

// metadata assigns a metadata server its id, and its target once that is chosen.
func (a *allocator) metadata(node string, slot int32) error {
	m := backend.Member(v1alpha1.RoleMetadata, metaDaemon(slot))
	m.Slot = slot
	if assign.OnDevices(a.in.FileSystem.Spec.MetadataServers.Targets) && len(metadataDisks(a.in, node, slot)) == 0 {
		return nil // its disk may hold its id
	}
	given, ok, err := a.server(node, m)
	if err != nil || !ok || len(given.Targets) > 0 {
		return err
	}
	targets := a.in.FileSystem.Spec.MetadataServers.Targets
	name := ""
	if !assign.OnDevices(targets) {
		name = string(targets.Directories[slot])
	} else if disks := metadataDisks(a.in, node, slot); len(disks) > 0 {
		name = disks[0].Name
	}
	if name != "" {
		a.records.Change(node, given.NodeMember).Targets = []v1alpha1.MemberTarget{{Name: name, ID: given.ID}}
	}
	return nil
}

// metadataDisks returns the disks that were chosen for a metadata server: none or one.
func metadataDisks(in backend.Input, node string, slot int32) []*v1alpha1.StorageTarget {
	return slices.DeleteFunc(assign.TargetsOf(in, v1alpha1.RoleMetadata, "", node), func(t *v1alpha1.StorageTarget) bool {
		return t.Spec.Slot != slot
	})
}

// storage assigns an id to a storage server, and to each of its targets that has none.
func (a *allocator) storage(pool backend.PoolRecord, node string) error {
	m := backend.Member(v1alpha1.RoleStorage, storageDaemon(pool.Name))
	m.StoragePool, m.Slot = pool.Name, pool.Slot
	names := a.storageTargets(pool.Name, node)
	if len(names) == 0 {
		return nil // its disks may hold its id
	}
	given, ok, err := a.server(node, m)
	if err != nil || !ok {
		return err
	}
	adopted, waits := a.adopted[server{node, m.Name}], a.held[serverPlace{pool.Name, node}]
	for _, name := range names {
		if _, ok := given.Target(name); ok || waits {
			continue
		}
		target := v1alpha1.MemberTarget{Name: name}
		if target.ID = targetID(adopted, name); target.ID == 0 {
			holder := assign.Holder{Kind: v1alpha1.NumberOfStorageTarget, Node: node, Member: m.Name, Target: name}
			if target.ID, err = a.numbers.Promise(holder); err != nil {
				return err
			}
			if target.ID == 0 {
				continue // this target has to wait, and the others need not
			}
		}
		record := a.records.Change(node, given.NodeMember)
		record.Targets = append(record.Targets, target)
		record.Retired = false // it serves again
		slices.SortFunc(record.Targets, func(x, y v1alpha1.MemberTarget) int { return strings.Compare(x.Name, y.Name) })
	}
	return nil
}

// targetID returns the id of the target with that name, 0 for none.
func targetID(of v1alpha1.GivenServerID, name string) int32 {
	for _, t := range of.Targets {
		if t.Name == name {
			return t.ID
		}
	}
	return 0
}

// storageTargets returns the names of the targets that a pool has on a node now: directories, or disks.
func (a *allocator) storageTargets(pool, node string) []string {
	var names []string
	for _, p := range a.in.FileSystem.Spec.StoragePools {
		if p.Name == pool {
			for _, d := range p.Targets.Directories {
				names = append(names, string(d))
			}
		}
	}
	for t := range a.in.TargetsOn(v1alpha1.RoleStorage, pool, node) {
		if !a.gone[t.Name] {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}

// observe records what the answers of the management service and the jobs prove about the targets.
func (a *allocator) observe() {
	now := answered(a.in)
	if now != nil && a.in.State.MetadataMirrored && a.status.MetadataMirrored == nil {
		a.status.MetadataMirrored = now
	}
	v := viewOf(a.in)
	serve, drained, retired := serving(a.in), v.drainedTargets(), map[string]bool{}
	for _, name := range v.retirable() {
		retired[name] = true
	}
	for _, given := range backend.GivenOn(a.records.All()) {
		goes := given.Retired || retired[given.Server()] && len(a.storageTargets(given.StoragePool, given.Node)) == 0
		targets := slices.Clone(given.Targets)
		for i := range targets {
			target := &targets[i]
			noteOrder(a.in, target, now)
			unordered := isReplacement(target) && target.FullResync == nil
			if now != nil && target.Initialized == nil && !unordered && serve[place{given.Role, target.ID}] {
				target.Initialized = now
			}
			if given.Role != v1alpha1.RoleStorage || isDirectory(target.Name) {
				continue
			}
			if a.in.TargetNamed(target.Name) == nil { // the state of a disk that was taken out is on record, and stays
				if target.Drained != nil && target.TakenOut == nil {
					target.TakenOut = now
				}
				continue
			}
			target.TakenOut = nil
			when, empty := drained[target.ID]
			switch {
			case !empty:
				target.Drained = nil // the target is to stay after all, and may hold new data
			case target.Drained == nil:
				target.Drained = new(metav1.NewTime(when).Rfc3339Copy())
			}
		}
		if goes != given.Retired || !slices.EqualFunc(targets, given.Targets, sameRecord) {
			record := a.records.Change(given.Node, given.NodeMember)
			record.Retired, record.Targets = goes, targets
		}
	}
}

// sameRecord is true when the record of a target has not changed.
func sameRecord(a, b v1alpha1.MemberTarget) bool {
	return a.ID == b.ID && a.Initialized.Equal(b.Initialized) && a.Drained.Equal(b.Drained) && a.TakenOut.Equal(b.TakenOut) &&
		a.FullResync.Equal(b.FullResync)
}

// place identifies a server or target by its role and id.
type place struct {
	role v1alpha1.Role
	id   int32
}

// serving returns the metadata servers and the storage targets that the management service lists as online. Being listed proves nothing: a
// store that is taken over from an earlier filesystem lists all of them before any daemon has read its directory.
func serving(in backend.Input) map[place]bool {
	out := map[place]bool{}
	if in.State == nil {
		return out
	}
	for _, s := range in.State.Servers {
		if s.Role == v1alpha1.RoleMetadata && s.Online {
			out[place{s.Role, s.ID}] = true
		}
	}
	for _, t := range in.State.Targets {
		if t.Role != v1alpha1.RoleMetadata && t.Online {
			out[place{v1alpha1.RoleStorage, t.ID}] = true
		}
	}
	return out
}

// isDirectory is true if the name of a target is a directory of its node. Other names are those of StorageTargets.
func isDirectory(name string) bool { return strings.HasPrefix(name, "/") }
