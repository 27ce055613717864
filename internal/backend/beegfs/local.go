package beegfs

import (
	"fmt"
	"maps"
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// Nodes returns the FileSystemNodes.
func (Backend) Nodes(in backend.Input) []v1alpha1.FileSystemNode {
	in = in.Indexed()
	return assign.FileSystemNodes(in, facts(in), members(in))
}

// facts returns the permanent facts of the filesystem other than its ids.
func facts(in backend.Input) *v1alpha1.FileSystemFacts {
	if in.FileSystem.Status.BeeGFS == nil {
		return nil
	}
	return assign.Facts(in.FileSystem, in.FileSystem.Status.BeeGFS.BasePort)
}

// members returns the servers by node, with their configuration. A server that can't start yet has the reason why it waits.
func members(in backend.Input) map[string][]v1alpha1.NodeMember {
	fs, nodes := in.FileSystem, map[string][]v1alpha1.NodeMember{}
	remembers := remembered(in.State)
	tell := func(node, daemon string, member v1alpha1.NodeMember, pinning *v1alpha1.CPUPinning) {
		podspec.Bind(in, &member, node, daemon, pinning)
		if len(member.Targets) == 0 && member.Waits == "" {
			member.Waits = "none of its targets may be used yet: no disk is chosen, or the management service has not answered"
		}
		nodes[node] = append(nodes[node], member)
	}
	if record := fs.Status.Metadata; record != nil {
		tell(record.Node, componentManagement, managementMember(in), nil)
	}
	for _, a := range in.Given() {
		switch {
		case a.Retired:
		case a.Role == v1alpha1.RoleMetadata:
			tell(a.Node, metaDaemon(a.Slot), metaMember(in, a, remembers), fs.Spec.MetadataServers.CPUPinning)
		default:
			i := slices.IndexFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == a.StoragePool })
			if i >= 0 {
				pool := fs.Spec.StoragePools[i]
				tell(a.Node, storageDaemon(pool.Name), storageMember(in, a, remembers), pool.CPUPinning)
			}
		}
	}
	return nodes
}

// managementMember returns the configuration of the management service: the place of its store, and the limits of the capacity pools, which
// follow from the sizes of all targets. Before its first start, it waits until all targets are chosen; afterwards, it must never wait.
func managementMember(in backend.Input) v1alpha1.NodeMember {
	fs, record := in.FileSystem, in.FileSystem.Status.Metadata
	granted, expected := managementGranted(in), assign.MetadataExpected(in)
	member := backend.Member(v1alpha1.RoleManagement, componentManagement)
	if granted && !allChosen(in) {
		member.Waits = "its first start waits until every server has its target, because the limits of the capacity pools follow from the sizes of all"
		return member
	}
	limits := map[string]string{}
	for prefix, role := range map[string]v1alpha1.Role{"META": v1alpha1.RoleMetadata, "STORAGE": v1alpha1.RoleStorage} {
		maps.Copy(limits, limitsFor(role, backend.Version(fs), in.Targets).variables(prefix))
	}
	member.Variables = valuesOf(limits)
	alias := map[string]v1alpha1.VariableValue{variableAlias: v1alpha1.VariableValue(managementName(record.Node))}
	if !assign.OnDevices(own(fs).Management.Targets) {
		member.Targets = []v1alpha1.MemberTarget{
			{Name: record.Directory, Path: record.Directory, Directory: true, Granted: granted, Expected: expected, Variables: alias}}
		return member
	}
	for _, t := range assign.TargetsOf(in, v1alpha1.RoleManagement, "", record.Node) {
		if t.Name == record.Target {
			target := assign.MemberTarget(fs, t)
			target.Granted, target.Expected, target.Variables = granted, expected, alias
			member.Targets = []v1alpha1.MemberTarget{target}
			assign.InitializedOn(fs, member.Targets)
		}
	}
	return member
}

// valuesOf returns the variables in the form of a FileSystemNode.
func valuesOf(variables map[string]string) map[string]v1alpha1.VariableValue {
	out := make(map[string]v1alpha1.VariableValue, len(variables))
	for name, value := range variables {
		out[name] = v1alpha1.VariableValue(value)
	}
	return out
}

// managementGranted is the permission to make a new store. Once any target was seen in use, the store existed. A new one would have no ids,
// pools and mirrors, and servers would register in it as if nothing had happened.
func managementGranted(in backend.Input) bool {
	if in.FileSystem.Status.Metadata.Initialized != nil || assign.MetadataExpected(in) {
		return false
	}
	return !slices.ContainsFunc(in.Given(), func(a backend.Given) bool {
		return slices.ContainsFunc(a.Targets, func(t v1alpha1.MemberTarget) bool { return t.Initialized != nil })
	})
}

// allChosen is true when every desired server has its target.
func allChosen(in backend.Input) bool {
	has := func(node, member string) bool {
		given, ok := in.GivenTo(node, member)
		return ok && (given.Retired || len(given.Targets) > 0)
	}
	nodes, err := recordMetadataNodes(in)
	if err != nil || len(nodes) == 0 {
		return false
	}
	for _, node := range nodes {
		for slot := range metaSlots(in.FileSystem) {
			if !has(node, metaMemberName(slot)) {
				return false
			}
		}
	}
	for _, pool := range in.FileSystem.Spec.StoragePools {
		for _, n := range backend.NodesOf(in.FileSystem, in.Nodes, pool.NodeSelector) {
			if nodefacts.HasTargets(pool.Targets, n.Name) && !has(n.Name, spec.MemberName(storageDaemon(pool.Name))) {
				return false
			}
		}
	}
	return true
}

func metaMember(in backend.Input, a backend.Given, remembers map[place]bool) v1alpha1.NodeMember {
	member := backend.Member(a.Role, metaDaemon(a.Slot))
	member.Variables = valuesOf(map[string]string{variableNodeID: fmt.Sprint(a.ID), variableAlias: a.Server()})
	for i := range a.Targets {
		if target, ok := memberTarget(in, a, &a.Targets[i], remembers); ok {
			target.Variables = member.Variables
			member.Targets = append(member.Targets, target)
		}
	}
	if perCore(in.FileSystem) > 0 {
		member.Variables = maps.Clone(member.Variables)
		member.Variables[variableWorkers] = v1alpha1.VariableValue(fmt.Sprint(workersOf(in, a)))
	}
	return member
}

// storageMember has the targets that the server is to use: none that was taken out, and no directory that never got an id.
func storageMember(in backend.Input, a backend.Given, remembers map[place]bool) v1alpha1.NodeMember {
	member := backend.Member(a.Role, storageDaemon(a.StoragePool))
	member.Variables = valuesOf(map[string]string{variableNodeID: fmt.Sprint(a.ID), variableAlias: a.Server()})
	for i := range a.Targets {
		t := &a.Targets[i]
		target, ok := memberTarget(in, a, t, remembers)
		if !ok {
			continue
		}
		target.Variables = valuesOf(map[string]string{
			variableNodeID: fmt.Sprint(a.ID), variableAlias: a.Server(),
			variableTargetID: fmt.Sprint(t.ID), variablePoolID: fmt.Sprint(poolID(a.Slot)),
		})
		member.Targets = append(member.Targets, target)
	}
	return member
}

// remembered returns the metadata servers and storage targets that the management service lists, in use or not; nil while it does not
// answer.
func remembered(state *backend.State) map[place]bool {
	if state == nil {
		return nil
	}
	out := map[place]bool{}
	for _, s := range state.Servers {
		if s.Role == v1alpha1.RoleMetadata {
			out[place{s.Role, s.ID}] = true
		}
	}
	for _, t := range state.Targets {
		if t.Role != v1alpha1.RoleMetadata {
			out[place{v1alpha1.RoleStorage, t.ID}] = true
		}
	}
	return out
}

// memberTarget returns the target of a directory or a disk; false for a disk that no longer belongs to the server. A target that was never
// seen in use is configured only after the management service has answered. It may be prepared only if the answer does not list its id: a
// store from an earlier filesystem lists the targets of that filesystem. A target that is listed is taken over with its data. An empty disk
// in its place means lost data, and BeeGFS up to 8.2 would accept it silently.
func memberTarget(
	in backend.Input, a backend.Given, t *v1alpha1.MemberTarget, remembers map[place]bool,
) (v1alpha1.MemberTarget, bool) {
	if t.Initialized == nil && remembers == nil {
		return v1alpha1.MemberTarget{}, false
	}
	if isReplacement(t) && t.FullResync == nil {
		return v1alpha1.MemberTarget{}, false // the copy that the filesystem would make is not complete
	}
	expected := t.Initialized == nil && !isReplacement(t) && (remembers[place{a.Role, t.ID}] || in.Expected(t.Name))
	granted := t.Initialized == nil && !expected
	if isDirectory(t.Name) {
		return v1alpha1.MemberTarget{Name: t.Name, ID: t.ID, Path: t.Name, Directory: true, Granted: granted, Expected: expected}, true
	}
	disk := in.TargetNamed(t.Name)
	if disk == nil || disk.Spec.Role != a.Role || disk.Spec.StoragePool != a.StoragePool || disk.Spec.Node != a.Node {
		return v1alpha1.MemberTarget{}, false
	}
	target := assign.MemberTarget(in.FileSystem, disk)
	target.ID, target.Granted, target.Expected = t.ID, granted, expected
	return target, true
}
