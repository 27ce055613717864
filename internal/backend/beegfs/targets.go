package beegfs

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/drain"
	"parallelfs.dev/operator/internal/backend/shared/assign"
)

// target is one storage target that a pool should have on a node, with its state in BeeGFS.
type target struct {
	pool *v1alpha1.StoragePoolSpec
	slot int32
	node string
	// name is that of the StorageTarget, or the directory of the node.
	name string
	// disk is nil for a directory.
	disk *v1alpha1.StorageTarget
	// id and server are 0 while none is assigned.
	id, server int32
	// initialized, drained, fullResync, replaces and files are from the record.
	initialized, drained, fullResync *metav1.Time
	replaces                         string
	files                            map[string]v1alpha1.VariableValue
	// said is the target as BeeGFS lists it, nil when it does not.
	said *backend.Target
	// mirror is the number of its buddy group, 0 for none.
	mirror int32
}

// targetsOf returns the storage targets that a filesystem should have, by pool, node and name.
func targetsOf(in backend.Input) []target {
	out, gone := make([]target, 0, len(in.Targets)), replaced(in.FileSystemNodes)
	for i := range in.FileSystem.Spec.StoragePools {
		pool := &in.FileSystem.Spec.StoragePools[i]
		record, ok := in.Pool(pool.Name)
		if !ok {
			continue
		}
		for _, node := range record.Nodes {
			server, _ := in.GivenTo(node, storageMemberName(pool.Name))
			for _, t := range wantedOn(in, pool, node) {
				if gone[t.name] {
					continue // another disk has its number
				}
				t.pool, t.slot, t.node, t.server = pool, record.Slot, node, server.ID
				if given, ok := server.Target(t.name); ok {
					t.id, t.initialized, t.drained = given.ID, given.Initialized, given.Drained
					t.replaces, t.fullResync, t.files = given.Replaces, given.FullResync, given.Files
					t.said, t.mirror = listed(in, v1alpha1.RoleStorage, t.id), mirrorOf(in, v1alpha1.RoleStorage, t.id)
				}
				out = append(out, t)
			}
		}
	}
	return out
}

// wantedOn returns the directories of a pool, or its disks on a node.
func wantedOn(in backend.Input, pool *v1alpha1.StoragePoolSpec, node string) []target {
	var out []target
	for _, d := range slices.Sorted(slices.Values(pool.Targets.Directories)) {
		out = append(out, target{name: string(d)})
	}
	if assign.OnDevices(pool.Targets) {
		for disk := range in.TargetsOn(v1alpha1.RoleStorage, pool.Name, node) {
			out = append(out, target{name: disk.Name, disk: disk})
		}
	}
	return out
}

// place is where its storage server runs.
func (t *target) place() serverPlace { return serverPlace{t.pool.Name, t.node} }

// asked is true for a disk that a person wants to take out.
func (t target) asked() bool { return t.disk != nil && t.disk.Spec.Remove }

// poolNow is the pool that BeeGFS has the target in, 0 while it does not list the target.
func (t target) poolNow() int32 {
	if t.said == nil {
		return 0
	}
	return t.said.PoolID
}

// online is true when BeeGFS reaches the target.
func (t target) online() bool { return t.said != nil && t.said.Online }

// usurped returns a sentence if BeeGFS has the target on another server than the recorded one; else it is empty.
func (t target) usurped() string {
	if t.said == nil || t.said.ServerID == 0 || t.said.ServerID == t.server {
		return ""
	}
	return fmt.Sprintf("BeeGFS has target %d on server %d, and it was assigned to server %d: another disk has the same number; find it and stop its server",
		t.id, t.said.ServerID, t.server)
}

// directory is the target's directory on its node.
func (t *target) directory(fs *v1alpha1.FileSystem) string {
	if t.disk == nil {
		return t.name
	}
	return assign.TargetPath(fs, t.name)
}

// dataPath is where the storage server keeps its data, in the directory of the target.
func (t target) dataPath() string {
	if t.disk == nil {
		return dataSubdirectory
	}
	return path.Join(componentStorage, dataSubdirectory)
}

// listed returns a target as BeeGFS lists it, nil when it does not.
func listed(in backend.Input, role v1alpha1.Role, id int32) *backend.Target {
	return in.TargetWithID(role, id)
}

// serverOf returns a server as BeeGFS lists it, nil when it does not. There is one management service, whatever its id.
func serverOf(in backend.Input, role v1alpha1.Role, id int32) *backend.Server {
	if role != v1alpha1.RoleManagement {
		return in.ServerWithID(role, id)
	}
	if in.State != nil {
		for i := range in.State.Servers {
			if s := &in.State.Servers[i]; s.Role == role {
				return s
			}
		}
	}
	return nil
}

// mirrorOf is the number of the buddy group that a target or a metadata server is in, 0 for none.
func mirrorOf(in backend.Input, role v1alpha1.Role, id int32) int32 {
	if m := in.MirrorWith(role, id); m != nil && id != 0 {
		return m.ID
	}
	return 0
}

// leftover is a storage target with an assigned number that is no longer desired.
type leftover struct {
	v1alpha1.MemberTarget
	server backend.Given
	said   *backend.Target
}

// leftovers returns the disks that were taken out of the filesystem, and all targets of nodes that were given up. No other directory is a
// leftover: it can't be taken out.
func leftovers(in backend.Input) []leftover {
	var out []leftover
	for _, a := range in.Given() {
		if a.Role != v1alpha1.RoleStorage || a.Retired && !a.GivenUp {
			continue
		}
		for i := range a.Targets {
			t := &a.Targets[i]
			if a.GivenUp || !path.IsAbs(t.Name) && in.TargetNamed(t.Name) == nil {
				out = append(out, leftover{MemberTarget: *t, server: a, said: listed(in, v1alpha1.RoleStorage, t.ID)})
			}
		}
	}
	return out
}

// retirable returns the storage servers, by their names in the status, that BeeGFS no longer lists. All their targets were drained and
// taken out, or given up and then removed from BeeGFS by hand, and no other target replaced them. An answer without any target is
// incomplete.
func (v *view) retirable() []string {
	if v.in.State == nil {
		return nil
	}
	var out []string
	for _, a := range v.withoutTargets(func(l leftover) bool { return l.Drained != nil || len(v.in.State.Targets) > 0 }) {
		if serverOf(v.in, v1alpha1.RoleStorage, a.ID) == nil {
			out = append(out, a.Server())
		}
	}
	return out
}

// emptied returns the storage servers whose targets were all drained and taken out, or given up with their node, and removed from BeeGFS.
func (v *view) emptied() []backend.Given {
	return v.withoutTargets(func(l leftover) bool { return l.Drained != nil || l.server.GivenUp })
}

// withoutTargets returns the storage servers whose targets were all taken out, are selected by which, and are not listed by BeeGFS.
func (v *view) withoutTargets(which func(l leftover) bool) []backend.Given {
	gone := map[int32]bool{}
	for _, l := range v.leftovers {
		gone[l.ID] = which(l) && l.said == nil
	}
	var out []backend.Given
	for _, a := range v.in.Given() {
		busy := len(v.ofServer[serverPlace{a.StoragePool, a.Node}]) > 0
		if a.Role != v1alpha1.RoleStorage || a.Retired && !a.GivenUp || busy || len(a.Targets) == 0 {
			continue
		}
		if !slices.ContainsFunc(a.Targets, func(t v1alpha1.MemberTarget) bool { return !gone[t.ID] }) {
			out = append(out, a)
		}
	}
	return out
}

// storage observes the storage servers, their targets and the pools.
func (o *observer) storage() {
	for _, pool := range o.fs.Spec.StoragePools {
		record, ok := o.in.Pool(pool.Name)
		if !ok {
			continue
		}
		status := v1alpha1.StoragePoolStatus{Name: pool.Name, Slot: record.Slot}
		online, wanted, first := 0, 0, len(o.seen.Targets)
		for _, node := range record.Nodes {
			o.storageServer(pool, record.Slot, node)
			for _, t := range o.ofServer[serverPlace{pool.Name, node}] {
				seen := o.target(t)
				wanted++
				if seen.Online {
					online++
					status.CapacityBytes += t.said.CapacityBytes
					status.UsedBytes += t.said.UsedBytes
				}
				o.seen.Targets = append(o.seen.Targets, seen)
			}
		}
		status.UsedBytes = backend.Coarse(status.UsedBytes, status.CapacityBytes)
		status.Capacity, status.Used = v1alpha1.Bytes(status.CapacityBytes), v1alpha1.Bytes(status.UsedBytes)
		status.Fullness = backend.Fullness(o.seen.Targets[first:])
		status.Targets = backend.Ratio(online, wanted)
		o.seen.StoragePools = append(o.seen.StoragePools, status)
	}
}

// storageServer observes the server of a pool on a node. One that has no number yet waits for its disks.
func (o *observer) storageServer(pool v1alpha1.StoragePoolSpec, slot int32, node string) {
	name := storageName(pool.Name, node)
	disks := assign.TargetsOf(o.in, v1alpha1.RoleStorage, pool.Name, node)
	a, given := o.in.GivenTo(node, storageMemberName(pool.Name))
	if given && a.Retired {
		return
	}
	if assign.OnDevices(pool.Targets) && len(disks) == 0 && (!given || len(o.leftOn[name]) == 0) {
		o.unplaced = append(o.unplaced, fmt.Sprintf("one in pool %s on node %s", pool.Name, node))
	}
	if !given {
		return
	}
	server := backend.ServerStatus{Name: name, Role: v1alpha1.RoleStorage, Node: node, StoragePool: pool.Name, ID: a.ID}
	o.server(&server, daemon{component: componentStorage, pool: pool.Name}, portsOf(o.fs).storage(slot))
	if !server.Online {
		o.offline[serverPlace{pool.Name, node}] = server.Message
	}
	server.Placement = o.placements.Of(node, storageDaemon(pool.Name), name, pool.CPUPinning, disks)
	o.seen.Servers = append(o.seen.Servers, server)
}

// target observes one storage target.
func (o *observer) target(t target) backend.TargetStatus {
	directory := t.directory(o.fs)
	status := backend.TargetStatus{
		Node: t.node, StoragePool: t.pool.Name, Directory: directory, ID: t.id,
	}
	if t.disk != nil {
		status.StorageTarget = t.disk.Name
	}
	if t.said != nil {
		// A server that is away serves no target, even if BeeGFS lists it as online: BeeGFS takes up to three minutes to notice.
		away := o.in.Away(componentStorage, t.pool.Name, "", t.node)
		status.Online, status.CapacityBytes = t.said.Online && away == "", t.said.CapacityBytes
		status.UsedBytes = backend.Coarse(t.said.UsedBytes, t.said.CapacityBytes)
		status.Inodes, status.UsedInodes = t.said.Inodes, backend.Coarse(t.said.UsedInodes, t.said.Inodes)
	}
	status.Removing = t.asked() && (t.poolNow() == drain.Pool || t.drained != nil && t.said == nil)
	status.Removable = status.Removing && t.drained != nil
	status.Message = backend.Shorten(o.targetMessage(t, status))
	return status
}

// targetMessage describes what is wrong with a target, or the progress of its change.
func (o *observer) targetMessage(t target, status backend.TargetStatus) string {
	why := ""
	if t.disk != nil {
		_, why = assign.Proven(t.disk)
	}
	replacing := o.replaceMessage(t)
	switch {
	case status.Removable:
		return "no file is left on it"
	case replacing != "":
		return replacing
	case why != "" && !status.Online:
		return "its disk: " + why
	case o.in.State == nil:
		return "unknown while the management service does not answer: " + o.in.StateError
	case t.id == 0:
		return "it has no number yet"
	case t.said == nil && t.initialized != nil:
		return fmt.Sprintf("BeeGFS does not list target %d any more, which it did at %s; look whether the management service still has its store, "+
			"and why the storage server does not register the target", t.id, t.initialized.UTC().Format("2006-01-02 15:04"))
	case t.said == nil:
		return fmt.Sprintf("target %d has not registered: %s", t.id, o.serverMessage(t))
	case !t.said.Online:
		return fmt.Sprintf("BeeGFS reports target %d as %s: %s", t.id, cmp.Or(t.said.Status, "offline"), o.serverMessage(t))
	case !status.Online:
		return o.serverMessage(t)
	case t.usurped() != "":
		return t.usurped()
	case t.asked():
		return o.drainMessage(t)
	}
	if message := stateMessage(t.said); message != "" || backend.Copies(*t.pool) < 2 || t.mirror != 0 {
		return message
	}
	return "it is in no buddy group, and gets no files: give another node of the pool one more target"
}

// stateMessage describes a wrong state of a target that is online.
func stateMessage(t *backend.Target) string {
	return strings.Join(slices.DeleteFunc([]string{consistencyMessage(t.Consistency), capacityMessage(t.CapacityPool)},
		func(s string) bool { return s == "" }), "; ")
}

// serverMessage describes what is wrong with the server of a target, in words that follow a colon.
func (o *observer) serverMessage(t target) string {
	if why, away := o.offline[t.place()]; away {
		return why
	}
	return "its storage server runs without it: it started before the disk was proven, or refuses it, as its log says"
}

func consistencyMessage(consistency string) string {
	switch consistency {
	case "", cli.Good:
		return ""
	case cli.Behind:
		return "BeeGFS reports " + cli.Behind + ": what its buddy has is being copied to it"
	default:
		return "BeeGFS reports " + consistency + ": its data does not agree with that of its buddy; see beegfs-ctl --startresync, or beegfs mirror resync"
	}
}

func capacityMessage(pool string) string {
	if strings.EqualFold(pool, "Emergency") {
		return "BeeGFS has it in capacity pool Emergency: it is nearly full, and gets new files only when no other can take them"
	}
	return ""
}
