package decisions

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// AllocateReachable returns the backend's allocation. It refuses an allocation that adds a node whose addresses the filesystem can't use.
func AllocateReachable(b backend.Backend, in backend.Input) (backend.Allocation, error) {
	a, err := b.Allocate(in)
	if err == nil {
		err = nodefacts.RefuseAddresses(in, b.Families(in.FileSystem), &a)
	}
	if err != nil {
		return backend.Allocation{}, err //nolint:wrapcheck // it is a sentence for a person
	}
	return a, nil
}

// DiskQuestion returns the input of plan.Select, without the StorageTargets of this FileSystem and of others.
func DiskQuestion(b backend.Backend, in backend.Input, cluster string, nodes plan.TargetNodes) plan.SelectInput {
	question := plan.SelectInput{
		FileSystem: in.FileSystem, Cluster: cluster, TargetNodes: nodes, Inventories: in.Inventories, GaveUp: map[string]bool{},
		Formats: map[v1alpha1.Role]v1alpha1.FormatSpec{},
	}
	for i := range in.FileSystemNodes {
		if n := &in.FileSystemNodes[i]; n.Spec.GivenUp != nil {
			question.GaveUp[n.Spec.Node] = true
		}
	}
	for _, role := range []v1alpha1.Role{v1alpha1.RoleManagement, v1alpha1.RoleMetadata, v1alpha1.RoleStorage} {
		question.Formats[role] = b.DefaultFormat(role)
	}
	if finder, ok := b.(backend.FileFinder); ok {
		question.FilesIn = finder.FilesIn(in)
	}
	return question
}

// Pinnings returns the CPUs of the daemons of a filesystem, and a problem for each pinning that contradicts another one or a node. The
// pinnings are nil for a backend without pinning.
func Pinnings(all backend.Set, b backend.Backend, in backend.Input) (map[string]map[string]spec.Pinning, []plan.Problem) {
	pinner, ok := b.(backend.Pinner)
	if !ok {
		return nil, nil
	}
	question := plan.PinInput{
		FileSystem: client.ObjectKeyFromObject(in.FileSystem).String(), Daemons: pinner.PinDaemons(in.FileSystem, in.FileSystemNodes),
		Inventories: in.Inventories, Targets: in.Targets, Others: map[string][]plan.PinDaemon{},
	}
	for i := range in.Others {
		other := &in.Others[i]
		if its, ok := all[other.Spec.Type].(backend.Pinner); ok {
			question.Others[client.ObjectKeyFromObject(other).String()] = its.PinDaemons(other, in.OthersNodes[other.UID])
		}
	}
	return plan.Pin(question)
}
