package lustre

import (
	"slices"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/plan"
)

// Nodes returns the FileSystemNodes.
func (Backend) Nodes(in backend.Input) []v1alpha1.FileSystemNode {
	in = in.Indexed()
	pins := pinsOf(in)
	nodes := assign.FileSystemNodes(in, assign.Facts(in.FileSystem, 0), members(in, pins))
	for i := range nodes {
		n := &nodes[i].Spec
		if p, asks := pins[n.Node]; !asks {
			n.ModuleOptions = nil
		} else if len(p.lines) > 0 { // partitions that are impossible change nothing
			n.ModuleOptions = &v1alpha1.ModuleOptions{Lines: p.lines, Write: own(in.FileSystem).ModuleOptions == v1alpha1.ModuleOptionsWrite}
		}
	}
	return nodes
}

// members returns the members by node, with the targets that each of them mounts.
func members(in backend.Input, pins map[string]pin) map[string][]v1alpha1.NodeMember {
	fs, nodes := in.FileSystem, map[string][]v1alpha1.NodeMember{}
	if fs.Status.Metadata == nil {
		return nodes
	}
	tell := func(g backend.Given, member v1alpha1.NodeMember, disks []*v1alpha1.StorageTarget) {
		for _, t := range disks {
			record, _ := g.Target(t.Name)
			told := assign.MemberTarget(fs, t)
			told.ID, told.Turn = record.ID, plan.Turn(t)
			member.Targets = append(member.Targets, told)
		}
		assign.InitializedOn(fs, member.Targets)
		nodes[g.Node] = append(nodes[g.Node], member)
	}
	if node := given(fs).ManagementNode; hasMGT(fs) && node != "" {
		tell(backend.Given{Node: node}, backend.Member(v1alpha1.RoleManagement, componentMGS), managementDisk(in))
	}
	others := othersDisks(in)
	for _, g := range in.Given() {
		if g.Retired || g.GivenUp {
			continue
		}
		member := v1alpha1.NodeMember{Name: g.Name, Role: g.Role}
		if p, asks := pins[g.Node]; asks {
			member.Waits = p.unpinned(g)
		}
		tell(g, member, append(disksOf(in, g), others[secondPlace{g.Node, g.StoragePool}]...))
	}
	return nodes
}

// managementDisk is the disk of an MGT of its own; the record stays in force if the choice changes.
func managementDisk(in backend.Input) []*v1alpha1.StorageTarget {
	if t := in.TargetNamed(given(in.FileSystem).ManagementTarget); t != nil && t.Spec.Role == v1alpha1.RoleManagement {
		return []*v1alpha1.StorageTarget{t}
	}
	return nil
}

// disksOf returns the disks of a member that have their index.
func disksOf(in backend.Input, g backend.Given) []*v1alpha1.StorageTarget {
	return slices.DeleteFunc(assign.TargetsOf(in, g.Role, g.StoragePool, g.Node), func(t *v1alpha1.StorageTarget) bool {
		_, has := g.Target(t.Name)
		return !has || g.Role == v1alpha1.RoleMetadata && t.Spec.Slot != g.Slot
	})
}

// numbersOf returns the recorded numbers, by StorageTarget.
func numbersOf(in backend.Input) map[string]int32 {
	numbers := map[string]int32{}
	for _, g := range in.Given() {
		for _, t := range g.Targets {
			if t.ID != 0 {
				numbers[t.Name] = t.ID
			}
		}
	}
	return numbers
}

// Unassigned is true when a disk has a recorded number, or is the MGT, and its StorageTarget does not have that yet.
func (Backend) Unassigned(in backend.Input) bool {
	var numbers map[string]int32
	for i := range in.Targets {
		t := &in.Targets[i]
		if t.Spec.Lustre != nil {
			continue
		}
		if numbers == nil {
			numbers = numbersOf(in) // most passes have nothing to write
		}
		if targetOf(in, t, numbers[t.Name]) != nil {
			return true
		}
	}
	return false
}

// TellTargets writes the Lustre configuration of the disks, from the recorded numbers. The MGT has no number, and is the disk that was
// chosen for it.
func (Backend) TellTargets(in backend.Input, targets []v1alpha1.StorageTarget) {
	in = in.Indexed()
	numbers := numbersOf(in)
	for i := range targets {
		t := &targets[i]
		told := t.Spec.Lustre
		if live := in.TargetNamed(t.Name); live != nil {
			told = live.Spec.Lustre
		}
		if t.Spec.Lustre = told.DeepCopy(); told == nil {
			t.Spec.Lustre = targetOf(in, t, numbers[t.Name])
		}
	}
}

// targetOf is the Lustre configuration of a disk with a number. It is nil until its number and the NIDs of the MGS are on record, and until
// the NIDs of its two nodes are known.
func targetOf(in backend.Input, t *v1alpha1.StorageTarget, number int32) *v1alpha1.LustreTarget {
	fs := in.FileSystem
	record := given(fs)
	if len(record.ManagementNIDs) == 0 {
		return nil
	}
	switch is := TargetOf(own(fs).FSName, t.Spec.Role, number); {
	case is.Kind == cli.MGT && isMGT(fs, t):
		return &v1alpha1.LustreTarget{Kind: v1alpha1.LustreMGT}
	case is.Kind == cli.MGT || number == 0:
		return nil
	case t.Name == record.ManagementTarget:
		return &v1alpha1.LustreTarget{Kind: v1alpha1.LustreMDT, FSName: is.FSName, Index: &is.Index, WithMGT: true}
	default:
		nodes, why := serviceNodes(in, t)
		if why != "" {
			return nil
		}
		return &v1alpha1.LustreTarget{
			Kind: v1alpha1.LustreTargetKind(is.Kind), FSName: is.FSName, Index: &is.Index, ManagementNIDs: slices.Clone(record.ManagementNIDs),
			ServiceNodes: nodes,
		}
	}
}
