package members

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/cached"
)

// The RBAC rules that only runs on a FileSystem need.
//
// +kubebuilder:rbac:groups=parallelfs.dev,resources=filesystems,verbs=get;list;watch
// +kubebuilder:rbac:groups=parallelfs.dev,resources=storagetargets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// Read reads the members of a filesystem from its FileSystemNodes and StorageTargets, in the order of their names. No other code depends on
// which objects hold them.
func Read(ctx context.Context, reader client.Reader, fs *v1alpha1.FileSystem) (Members, error) {
	// Labels do not select them, because an object that has lost its labels serves as well.
	mine := []client.ListOption{
		client.InNamespace(fs.Namespace), client.MatchingFields{cached.ByFileSystem: fs.Name}, client.UnsafeDisableDeepCopy,
	}
	var nodes v1alpha1.FileSystemNodeList
	if err := reader.List(ctx, &nodes, mine...); err != nil {
		return Members{}, fmt.Errorf("list the FileSystemNodes of %s: %w", fs.Name, err)
	}
	var targets v1alpha1.StorageTargetList
	if err := reader.List(ctx, &targets, mine...); err != nil {
		return Members{}, fmt.Errorf("list the StorageTargets of %s: %w", fs.Name, err)
	}
	var out Members
	ids := map[string]int32{}
	for i := range nodes.Items {
		if n := &nodes.Items[i]; n.Spec.FileSystem.UID == string(fs.UID) {
			out.add(n, ids)
			out.nodes = append(out.nodes, *n)
		}
	}
	slices.SortFunc(out.nodes, func(a, b v1alpha1.FileSystemNode) int { return strings.Compare(a.Spec.Node, b.Spec.Node) })
	for i := range targets.Items {
		t := &targets.Items[i]
		if t.Spec.FileSystem.UID != string(fs.UID) || t.Spec.Role != v1alpha1.RoleStorage {
			continue
		}
		service := v1alpha1.TargetService{}
		if t.Status.Service != nil {
			service = *t.Status.Service
		}
		out.Targets = append(out.Targets, target(t.Spec.Node, t.Spec.StoragePool, cmp.Or(t.Status.MountPath, t.Name), ids[t.Name], service))
		out.Targets[len(out.Targets)-1].StorageTarget = t.Name
	}
	slices.SortFunc(out.Servers, func(a, b results.Server) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(out.Targets, func(a, b results.Target) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// add adds the servers of a node, and those of their targets that are directories. It stores the numbers of all of them in ids, by name.
func (m *Members) add(n *v1alpha1.FileSystemNode, ids map[string]int32) {
	node := n.Spec.Node
	for _, told := range n.Spec.Members {
		if told.Retired {
			continue
		}
		server := results.Server{
			Name: told.Name + "." + node, Role: told.Role, Node: node, StoragePool: told.StoragePool, Slot: told.Slot, ID: told.ID,
			State: v1alpha1.StateOffline,
		}
		for _, t := range told.Targets {
			ids[t.Name] = t.ID
			if told.Role != v1alpha1.RoleStorage {
				server.Target = t.Name
			}
		}
		for _, seen := range n.Status.Members {
			if seen.Name != told.Name {
				continue
			}
			server.Address, server.Version, server.State = seen.Address, seen.Version, cmp.Or(seen.State, v1alpha1.StateOffline)
			server.Placement, server.Message = seen.Placement, seen.Message
			for _, d := range seen.Directories {
				m.Targets = append(m.Targets, target(node, told.StoragePool, d.Name, ids[d.Name], d.TargetService))
			}
		}
		m.Servers = append(m.Servers, server)
	}
}

func target(node, pool, directory string, id int32, service v1alpha1.TargetService) results.Target {
	return results.Target{
		Name: node + ":" + directory, Node: node, StoragePool: pool, Directory: directory, ID: id,
		State: cmp.Or(service.State, v1alpha1.StateOffline), Removal: service.Removal,
		CapacityBytes: service.CapacityBytes, UsedBytes: service.UsedBytes, Message: service.Message,
	}
}
