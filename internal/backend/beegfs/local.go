package beegfs

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// localMap is what differs from node to node. A daemon waits until its entry is there.
func (b *builder) localMap() (*corev1.ConfigMap, error) {
	return backend.LocalMap(b.in.FileSystem, localMapName(b.in.FileSystem), locals(b.in))
}

// locals are what the daemons are told of their own nodes, by node.
func locals(in backend.Input) map[string]spec.Local {
	fs, nodes := in.FileSystem, map[string]spec.Local{}
	told := func(node, instance string, daemon spec.LocalDaemon, pinning *v1alpha1.CPUPinning) {
		if len(daemon.Targets) == 0 {
			return // it waits for its target
		}
		if backend.Bound(pinning) {
			to, known := in.Pinnings[node][instance]
			if !known {
				return // and for its CPUs
			}
			daemon.Pinning = &to
		}
		if nodes[node].Daemons == nil {
			nodes[node] = spec.Local{Daemons: map[string]spec.LocalDaemon{}}
		}
		nodes[node].Daemons[instance] = daemon
	}
	if daemon, ok := managementLocal(in); ok {
		told(fs.Status.Metadata.Node, componentManagement, daemon, nil)
	}
	for _, a := range allocations(fs) {
		switch {
		case a.Retired:
		case a.Role == v1alpha1.RoleMetadata:
			told(a.Node, metaInstance(a.Slot), metaLocal(in, a), fs.Spec.Metadata.CPUPinning)
		default:
			i := slices.IndexFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == poolOf(a) })
			if i >= 0 {
				pool := fs.Spec.StoragePools[i]
				told(a.Node, storageInstance(pool.Name), storageLocal(in, a, pool), pool.CPUPinning)
			}
		}
	}
	return nodes
}

// managementLocal is what the management service is told: where its store is, and the limits of the capacity pools, which follow
// from the sizes of all targets. For its first start, it waits until all of them are chosen; afterwards, it must never wait.
func managementLocal(in backend.Input) (spec.LocalDaemon, bool) {
	fs, record := in.FileSystem, in.FileSystem.Status.Metadata
	granted := managementGranted(fs)
	if granted && !allChosen(in) {
		return spec.LocalDaemon{}, false
	}
	variables := map[string]string{}
	for prefix, role := range map[string]v1alpha1.InstanceRole{"META": v1alpha1.RoleMetadata, "STORAGE": v1alpha1.RoleStorage} {
		disks := slices.DeleteFunc(slices.Clone(in.Targets), func(t v1alpha1.StorageTarget) bool { return t.Spec.Role != role })
		maps.Copy(variables, limitsFor(role, fs.Spec.Version, disks).variables(prefix))
	}
	daemon := spec.LocalDaemon{Variables: variables}
	alias := map[string]string{variableAlias: managementName(record.Node)}
	if !backend.OnDevices(own(fs).Management.Targets) {
		daemon.Targets = []spec.Target{{Name: record.Directory, Path: record.Directory, Directory: true, Granted: granted, Variables: alias}}
		return daemon, true
	}
	for _, t := range backend.TargetsOf(in, v1alpha1.RoleManagement, "", record.Node) {
		if t.Name == record.Target {
			local := backend.LocalTarget(fs, t)
			local.Granted, local.Variables = granted, alias
			daemon.Targets = []spec.Target{local}
		}
	}
	return daemon, true
}

// managementGranted is the permission to make a new store. Once any target was seen in use, the store was there: a new one would
// know no ids, pools and mirrors, and servers would register in it as if nothing had happened.
func managementGranted(fs *v1alpha1.FileSystem) bool {
	if fs.Status.Metadata.Initialized != nil {
		return false
	}
	return !slices.ContainsFunc(allocations(fs), func(a v1alpha1.BeeGFSAllocation) bool {
		return slices.ContainsFunc(a.Targets, func(t v1alpha1.BeeGFSTargetID) bool { return t.Initialized != nil })
	})
}

// allChosen is true when every daemon has its target.
func allChosen(in backend.Input) bool {
	given := allocations(in.FileSystem)
	return len(given) > 0 && !slices.ContainsFunc(given, func(a v1alpha1.BeeGFSAllocation) bool { return !a.Retired && len(a.Targets) == 0 })
}

func metaLocal(in backend.Input, a v1alpha1.BeeGFSAllocation) spec.LocalDaemon {
	variables := map[string]string{variableNodeID: fmt.Sprint(a.NodeID), variableAlias: a.Name}
	daemon := spec.LocalDaemon{Variables: variables}
	for _, t := range a.Targets {
		if local, ok := localTarget(in, a.Role, t, metadataDisks(in, a.Node, a.Slot)); ok {
			local.Variables = variables
			daemon.Targets = append(daemon.Targets, local)
		}
	}
	return daemon
}

// storageLocal has the targets that the server is to use: none that was taken out, and none of a directory that was never given an id.
func storageLocal(in backend.Input, a v1alpha1.BeeGFSAllocation, pool v1alpha1.StoragePoolSpec) spec.LocalDaemon {
	daemon := spec.LocalDaemon{Variables: map[string]string{variableNodeID: fmt.Sprint(a.NodeID), variableAlias: a.Name}}
	for _, t := range a.Targets {
		local, ok := localTarget(in, a.Role, t, backend.TargetsOf(in, v1alpha1.RoleStorage, pool.Name, a.Node))
		if !ok {
			continue
		}
		local.Variables = map[string]string{
			variableNodeID: fmt.Sprint(a.NodeID), variableAlias: a.Name,
			variableTargetID: fmt.Sprint(t.ID), variablePoolID: fmt.Sprint(poolID(a.Slot)),
		}
		daemon.Targets = append(daemon.Targets, local)
	}
	return daemon
}

// remembered is true when the management service lists a target, in use or not.
func remembered(state backend.State, role v1alpha1.InstanceRole, id int32) bool {
	if role == v1alpha1.RoleMetadata {
		return slices.ContainsFunc(state.Servers, func(s backend.Server) bool { return s.Role == role && s.ID == id })
	}
	return slices.ContainsFunc(state.Targets, func(t backend.Target) bool { return t.Role != v1alpha1.RoleMetadata && t.ID == id })
}

// localTarget is a directory, or one of the disks; false for a disk that is not among them any more. One that was never seen in use is
// told only when the management service has answered, and may be prepared only when that remembers nothing of its id: a store that
// was taken over from an earlier filesystem knows what was on the targets. Such a target is taken over with what is on it; an empty one in
// its place is lost data, which BeeGFS up to 8.2 would take for the old one without a word.
func localTarget(
	in backend.Input, role v1alpha1.InstanceRole, t v1alpha1.BeeGFSTargetID, disks []v1alpha1.StorageTarget,
) (spec.Target, bool) {
	if t.Initialized == nil && in.State == nil {
		return spec.Target{}, false
	}
	granted, expected := false, false
	if t.Initialized == nil {
		expected = remembered(*in.State, role, t.ID)
		granted = !expected
	}
	if isDirectory(t.Name) {
		return spec.Target{Name: t.Name, Path: t.Name, Directory: true, Granted: granted, Expected: expected}, true
	}
	for _, disk := range disks {
		if disk.Name == t.Name {
			local := backend.LocalTarget(in.FileSystem, disk)
			local.Granted, local.Expected = granted, expected
			return local, true
		}
	}
	return spec.Target{}, false
}
