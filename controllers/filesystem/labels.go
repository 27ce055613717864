package filesystem

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// labelNodes sets the labels on the nodes of a FileSystem that attract the pods of its servers (backend.NodeLabel), and removes those of
// retired servers. The pods of other servers go to their node by its name (backend.OnNodes). A node without a FileSystemNode keeps its
// labels, because the state of its servers is unknown.
func (p *pass) labelNodes(ctx context.Context) error {
	return apply.Together(len(p.in.FileSystemNodes), func(i int) error { //nolint:wrapcheck // the phase adds its name
		n := &p.in.FileSystemNodes[i]
		node, there := p.in.Node(n.Spec.Node)
		if !there {
			return nil
		}
		return p.labelNode(ctx, node.Name, labelChanges(p.fs, node.Labels, n.Spec.Members))
	})
}

// unlabelNodes removes all labels of a FileSystem from nodes.
func (p *pass) unlabelNodes(ctx context.Context) error {
	return apply.Together(len(p.nodes), func(i int) error { //nolint:wrapcheck // the phase adds its name
		return p.labelNode(ctx, p.nodes[i].Name, labelChanges(p.fs, p.nodes[i].Labels, nil))
	})
}

// labelChanges returns the labels that a node lacks, and, with the value nil, those of members that do not exist or have retired.
func labelChanges(fs *v1alpha1.FileSystem, have map[string]string, members []v1alpha1.NodeMember) map[string]*string {
	changes, prefix := map[string]*string{}, podspec.NodeLabels(fs.Namespace, fs.Name, fs.UID)
	for key := range have {
		if strings.HasPrefix(key, prefix) {
			changes[key] = nil
		}
	}
	for i := range members {
		if m := &members[i]; backend.IsRecord(m) && !m.Retired {
			changes[prefix+m.Name] = new("")
		}
	}
	maps.DeleteFunc(changes, func(key string, want *string) bool {
		value, there := have[key]
		return want != nil && there && value == *want
	})
	return changes
}

func (r *Reconciler) labelNode(ctx context.Context, name string, changes map[string]*string) error {
	if len(changes) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": changes}})
	if err != nil {
		return fmt.Errorf("encode the labels of node %s: %w", name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	err = r.Client.Patch(ctx, node, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(Name))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("label node %s, by which the pods of its servers come to it: %w", name, err)
	}
	return nil
}
