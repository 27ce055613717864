package assign

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// onNodes returns FileSystemNodes with a server of a pool each.
func onNodes(pool string, nodes ...string) []v1alpha1.FileSystemNode {
	var out []v1alpha1.FileSystemNode
	for _, node := range nodes {
		out = append(out, v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: node, Members: []v1alpha1.NodeMember{
			{Name: "storage-" + pool, Role: v1alpha1.RoleStorage, StoragePool: pool},
		}}})
	}
	return out
}

func filesystem() *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "1-1"}}
}
