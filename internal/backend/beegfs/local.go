package beegfs

import (
	"fmt"
	"maps"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// members are the servers by node, with what each is told. One that can't start yet says what it waits for.
func members(in backend.Input) map[string][]v1alpha1.NodeMember {
	fs, nodes := in.FileSystem, map[string][]v1alpha1.NodeMember{}
	tell := func(node, instance string, member v1alpha1.NodeMember, pinning *v1alpha1.CPUPinning) {
		backend.Bind(in, &member, node, instance, pinning)
		if len(member.Targets) == 0 && member.Waits == "" {
			member.Waits = "none of its targets may be used yet: no disk is chosen, or the management service has not answered"
		}
		nodes[node] = append(nodes[node], member)
	}
	if record := fs.Status.Metadata; record != nil {
		tell(record.Node, componentManagement, managementMember(in), nil)
	}
	for _, a := range allocations(fs) {
		switch {
		case a.Retired:
		case a.Role == v1alpha1.RoleMetadata:
			tell(a.Node, metaInstance(a.Slot), metaMember(in, a), fs.Spec.Metadata.CPUPinning)
		default:
			i := slices.IndexFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == poolOf(a) })
			if i >= 0 {
				pool := fs.Spec.StoragePools[i]
				tell(a.Node, storageInstance(pool.Name), storageMember(in, a, pool), pool.CPUPinning)
			}
		}
	}
	return nodes
}

// managementMember is what the management service is told: where its store is, and the limits of the capacity pools, which follow
// from the sizes of all targets. For its first start, it waits until all of them are chosen; afterwards, it must never wait.
func managementMember(in backend.Input) v1alpha1.NodeMember {
	fs, record := in.FileSystem, in.FileSystem.Status.Metadata
	granted, member := managementGranted(fs), backend.Member(v1alpha1.RoleManagement, componentManagement)
	if granted && !allChosen(in) {
		member.Waits = "its first start waits until every server has its target, because the limits of the capacity pools follow from the sizes of all"
		return member
	}
	limits := map[string]string{}
	for prefix, role := range map[string]v1alpha1.InstanceRole{"META": v1alpha1.RoleMetadata, "STORAGE": v1alpha1.RoleStorage} {
		disks := slices.DeleteFunc(slices.Clone(in.Targets), func(t v1alpha1.StorageTarget) bool { return t.Spec.Role != role })
		maps.Copy(limits, limitsFor(role, fs.Spec.Version, disks).variables(prefix))
	}
	member.Variables = valuesOf(limits)
	alias := map[string]v1alpha1.VariableValue{variableAlias: v1alpha1.VariableValue(managementName(record.Node))}
	if !backend.OnDevices(own(fs).Management.Targets) {
		member.Targets = []v1alpha1.MemberTarget{
			{Name: record.Directory, Path: record.Directory, Directory: true, Granted: granted, Variables: alias}}
		return member
	}
	for _, t := range backend.TargetsOf(in, v1alpha1.RoleManagement, "", record.Node) {
		if t.Name == record.Target {
			target := backend.MemberTarget(fs, t)
			target.Granted, target.Variables = granted, alias
			member.Targets = []v1alpha1.MemberTarget{target}
		}
	}
	return member
}

// valuesOf are the variables as a FileSystemNode has them.
func valuesOf(variables map[string]string) map[string]v1alpha1.VariableValue {
	out := make(map[string]v1alpha1.VariableValue, len(variables))
	for name, value := range variables {
		out[name] = v1alpha1.VariableValue(value)
	}
	return out
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

func metaMember(in backend.Input, a v1alpha1.BeeGFSAllocation) v1alpha1.NodeMember {
	member := backend.Member(a.Role, metaInstance(a.Slot))
	member.Slot, member.ID = a.Slot, a.NodeID
	member.Variables = valuesOf(map[string]string{variableNodeID: fmt.Sprint(a.NodeID), variableAlias: a.Name})
	for _, t := range a.Targets {
		if target, ok := memberTarget(in, a.Role, t, metadataDisks(in, a.Node, a.Slot)); ok {
			target.Variables = member.Variables
			member.Targets = append(member.Targets, target)
		}
	}
	return member
}

// storageMember has the targets that the server is to use: none that was taken out, and none of a directory that was never given an id.
func storageMember(in backend.Input, a v1alpha1.BeeGFSAllocation, pool v1alpha1.StoragePoolSpec) v1alpha1.NodeMember {
	member := backend.Member(a.Role, storageInstance(pool.Name))
	member.StoragePool, member.Slot, member.ID = pool.Name, a.Slot, a.NodeID
	member.Variables = valuesOf(map[string]string{variableNodeID: fmt.Sprint(a.NodeID), variableAlias: a.Name})
	for _, t := range a.Targets {
		target, ok := memberTarget(in, a.Role, t, backend.TargetsOf(in, v1alpha1.RoleStorage, pool.Name, a.Node))
		if !ok {
			continue
		}
		target.Variables = valuesOf(map[string]string{
			variableNodeID: fmt.Sprint(a.NodeID), variableAlias: a.Name,
			variableTargetID: fmt.Sprint(t.ID), variablePoolID: fmt.Sprint(poolID(a.Slot)),
		})
		member.Targets = append(member.Targets, target)
	}
	return member
}

// remembered is true when the management service lists a target, in use or not.
func remembered(state backend.State, role v1alpha1.InstanceRole, id int32) bool {
	if role == v1alpha1.RoleMetadata {
		return slices.ContainsFunc(state.Servers, func(s backend.Server) bool { return s.Role == role && s.ID == id })
	}
	return slices.ContainsFunc(state.Targets, func(t backend.Target) bool { return t.Role != v1alpha1.RoleMetadata && t.ID == id })
}

// memberTarget is a directory, or one of the disks; false for a disk that is not among them any more. One that was never seen in use is
// told only when the management service has answered, and may be prepared only when that remembers nothing of its id: a store that
// was taken over from an earlier filesystem knows what was on the targets. Such a target is taken over with what is on it; an empty one in
// its place is lost data, which BeeGFS up to 8.2 would take for the old one without a word.
func memberTarget(
	in backend.Input, role v1alpha1.InstanceRole, t v1alpha1.BeeGFSTargetID, disks []v1alpha1.StorageTarget,
) (v1alpha1.MemberTarget, bool) {
	if t.Initialized == nil && in.State == nil {
		return v1alpha1.MemberTarget{}, false
	}
	granted, expected := false, false
	if t.Initialized == nil {
		expected = remembered(*in.State, role, t.ID)
		granted = !expected
	}
	if isDirectory(t.Name) {
		return v1alpha1.MemberTarget{Name: t.Name, ID: t.ID, Path: t.Name, Directory: true, Granted: granted, Expected: expected}, true
	}
	for _, disk := range disks {
		if disk.Name == t.Name {
			target := backend.MemberTarget(in.FileSystem, disk)
			target.ID, target.Granted, target.Expected = t.ID, granted, expected
			return target, true
		}
	}
	return v1alpha1.MemberTarget{}, false
}
