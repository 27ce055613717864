package assign

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Records adds to the records in the FileSystemNodes of a filesystem. It never changes the FileSystemNodes that it started from.
type Records struct {
	fs      *v1alpha1.FileSystem
	nodes   map[string]*v1alpha1.FileSystemNode
	changed map[string]bool
}

// NewRecords starts from the FileSystemNodes of the filesystem.
func NewRecords(in backend.Input) *Records {
	r := &Records{fs: in.FileSystem, nodes: make(map[string]*v1alpha1.FileSystemNode, len(in.FileSystemNodes)), changed: map[string]bool{}}
	for i := range in.FileSystemNodes {
		r.nodes[in.FileSystemNodes[i].Spec.Node] = &in.FileSystemNodes[i]
	}
	return r
}

// Find returns the assignments of a member of a node. The result is read-only.
func (r *Records) Find(node, member string) (backend.Given, bool) {
	n, ok := r.nodes[node]
	if !ok {
		return backend.Given{}, false
	}
	return backend.GivenIn(n, member)
}

// Change returns the member of that name on a node, to be changed before the next call. If there is none, it adds m.
func (r *Records) Change(node string, m v1alpha1.NodeMember) *v1alpha1.NodeMember {
	n := r.nodes[node]
	if !r.changed[node] {
		if n == nil {
			n = newFileSystemNode(r.fs, node)
		} else {
			n = n.DeepCopy()
		}
		r.nodes[node], r.changed[node] = n, true
	}
	i, found := slices.BinarySearchFunc(n.Spec.Members, m.Name, func(have v1alpha1.NodeMember, name string) int {
		return strings.Compare(have.Name, name)
	})
	if !found {
		n.Spec.Members = slices.Insert(n.Spec.Members, i, m)
	}
	return &n.Spec.Members[i]
}

// Join records servers of pools that need no id, on nodes without one. The name of a server on its node identifies it (spec.Run.Daemon).
func (r *Records) Join(pools []backend.PoolRecord, daemon func(pool string) string) {
	for _, pool := range pools {
		if pool.Waits {
			continue
		}
		m := backend.Member(v1alpha1.RoleStorage, daemon(pool.Name))
		m.StoragePool, m.Slot = pool.Name, pool.Slot
		for _, node := range pool.Nodes {
			if _, there := r.Find(node, m.Name); !there {
				r.Change(node, m)
			}
		}
	}
}

// Changed returns the FileSystemNodes that were changed or added, by node.
func (r *Records) Changed() []v1alpha1.FileSystemNode {
	var out []v1alpha1.FileSystemNode
	for _, node := range slices.Sorted(maps.Keys(r.changed)) {
		out = append(out, *r.nodes[node])
	}
	return out
}

// All returns the FileSystemNodes including the additions, by node. They are read-only.
func (r *Records) All() []v1alpha1.FileSystemNode {
	out := make([]v1alpha1.FileSystemNode, 0, len(r.nodes))
	for _, node := range slices.Sorted(maps.Keys(r.nodes)) {
		out = append(out, *r.nodes[node])
	}
	return out
}

// WithRecords returns FileSystemNodes with some of them replaced or added, by node.
func WithRecords(nodes, changed []v1alpha1.FileSystemNode) []v1alpha1.FileSystemNode {
	of := make(map[string]v1alpha1.FileSystemNode, len(nodes))
	for _, n := range slices.Concat(nodes, changed) {
		of[n.Spec.Node] = n
	}
	out := make([]v1alpha1.FileSystemNode, 0, len(of))
	for _, node := range slices.Sorted(maps.Keys(of)) {
		out = append(out, of[node])
	}
	return out
}

// newFileSystemNode returns the FileSystemNode of a node that has none yet.
func newFileSystemNode(fs *v1alpha1.FileSystem, node string) *v1alpha1.FileSystemNode {
	n := &v1alpha1.FileSystemNode{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FileSystemNode"},
		ObjectMeta: metav1.ObjectMeta{Namespace: fs.Namespace, Name: backend.FileSystemNodeName(fs.Name, node)},
		Spec:       v1alpha1.FileSystemNodeSpec{FileSystem: v1alpha1.TargetOwner{Name: fs.Name, UID: string(fs.UID)}, Node: node},
	}
	label(n)
	return n
}

// label sets the labels by which a FileSystemNode is found: its FileSystem and its node.
func label(n *v1alpha1.FileSystemNode) {
	labels := maps.Clone(n.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelFileSystem], labels[v1alpha1.LabelManagedBy] = n.Spec.FileSystem.Name, v1alpha1.ManagedBy
	if len(validation.IsValidLabelValue(n.Spec.Node)) == 0 {
		labels[v1alpha1.LabelNode] = n.Spec.Node
	}
	n.Labels = labels
}

// FileSystemNodes returns the desired FileSystemNodes of the filesystem: the records, and the current configuration of the servers on each
// node. The configuration never changes a record. A recorded server without configuration stays, and a configured server without a record
// is left out. The facts are those of the whole filesystem. None of this belongs in a template's hash: a server reads it when it starts,
// and a changed disk must not restart all servers.
func FileSystemNodes(
	in backend.Input, facts *v1alpha1.FileSystemFacts, configured map[string][]v1alpha1.NodeMember,
) []v1alpha1.FileSystemNode {
	of := make(map[string]*v1alpha1.FileSystemNode, len(configured))
	for i := range in.FileSystemNodes {
		of[in.FileSystemNodes[i].Spec.Node] = &in.FileSystemNodes[i]
	}
	nodes := slices.Collect(maps.Keys(of))
	for node := range configured {
		if of[node] == nil {
			nodes, of[node] = append(nodes, node), newFileSystemNode(in.FileSystem, node)
		}
	}
	slices.Sort(nodes)
	out := make([]v1alpha1.FileSystemNode, len(nodes))
	for i, node := range nodes {
		out[i] = *of[node]
		out[i].Spec.Facts, out[i].Spec.Members = facts, withConfiguration(of[node].Spec.Members, configured[node])
		label(&out[i])
	}
	return out
}

// withConfiguration returns members with their records and their configuration.
func withConfiguration(recorded, configured []v1alpha1.NodeMember) []v1alpha1.NodeMember {
	var out []v1alpha1.NodeMember
	for i := range recorded {
		if m := &recorded[i]; backend.IsRecord(m) {
			j := slices.IndexFunc(configured, func(t v1alpha1.NodeMember) bool { return t.Name == m.Name })
			var now v1alpha1.NodeMember
			if j >= 0 {
				now = configured[j]
			}
			now.Name, now.Role, now.StoragePool, now.Slot, now.ID, now.Retired = m.Name, m.Role, m.StoragePool, m.Slot, m.ID, m.Retired
			now.Targets = targetsWithConfiguration(m.Targets, now.Targets)
			out = append(out, now)
		}
	}
	for i := range configured {
		given := slices.ContainsFunc(out, func(m v1alpha1.NodeMember) bool { return m.Name == configured[i].Name })
		if !given && !backend.IsRecord(&configured[i]) {
			out = append(out, configured[i])
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.NodeMember) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// targetsWithConfiguration returns targets with the records of those that have an id, and the server's configuration for them.
func targetsWithConfiguration(recorded, configured []v1alpha1.MemberTarget) []v1alpha1.MemberTarget {
	named := make(map[string]int, len(configured))
	for i := range configured {
		backend.First(named, configured[i].Name, i)
	}
	out := slices.Grow([]v1alpha1.MemberTarget(nil), len(configured))
	for i := range recorded {
		t := &recorded[i]
		if t.ID == 0 {
			continue
		}
		now := v1alpha1.MemberTarget{Name: t.Name}
		if j, ok := named[t.Name]; ok {
			now = configured[j]
		}
		now.ID, now.Initialized, now.Drained, now.TakenOut = t.ID, t.Initialized, t.Drained, t.TakenOut
		now.Replaces, now.Files, now.FullResync = t.Replaces, t.Files, t.FullResync
		out = append(out, now)
	}
	for i := range configured {
		if configured[i].ID == 0 {
			out = append(out, configured[i])
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.MemberTarget) int { return strings.Compare(a.Name, b.Name) })
	return out
}
