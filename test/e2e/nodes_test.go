//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// server is a server of a filesystem on a node: its configuration, and its state in the filesystem.
type server struct {
	node string
	told v1alpha1.NodeMember
	seen v1alpha1.MemberStatus
}

// servers returns those of a filesystem in a role.
func (s *story) servers(fs string, role v1alpha1.Role) []server {
	GinkgoHelper()
	var nodes v1alpha1.FileSystemNodeList
	Expect(api.List(context.Background(), &nodes, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: fs})).To(Succeed())
	var out []server
	for _, n := range nodes.Items {
		seen := map[string]v1alpha1.MemberStatus{}
		for _, m := range n.Status.Members {
			seen[m.Name] = m
		}
		for _, m := range n.Spec.Members {
			if m.Role == role && !m.Retired {
				out = append(out, server{node: n.Spec.Node, told: m, seen: seen[m.Name]})
			}
		}
	}
	return out
}

// given returns the ids of the servers and targets of hive on each node, as the FileSystemNodes record them: "NODE {name: …, id: …,
// targets: […]}, …".
func (s *story) given() []string {
	GinkgoHelper()
	var nodes v1alpha1.FileSystemNodeList
	Expect(api.List(context.Background(), &nodes, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: "hive"})).To(Succeed())
	var out []string
	for _, n := range nodes.Items {
		var members []string
		for _, m := range n.Spec.Members {
			if m.ID == 0 {
				continue
			}
			var targets []string
			for _, t := range m.Targets {
				targets = append(targets, fmt.Sprintf("{name: %s, id: %d}", t.Name, t.ID))
			}
			members = append(members, fmt.Sprintf("{name: %s, id: %d, targets: [%s]}", m.Name, m.ID, strings.Join(targets, ", ")))
		}
		if len(members) > 0 {
			out = append(out, n.Spec.Node+" "+strings.Join(members, ", "))
		}
	}
	return out
}

// numberOf returns the filesystem's own number of a StorageTarget.
func (s *story) numberOf(fs, target string) int32 {
	GinkgoHelper()
	for _, i := range s.servers(fs, v1alpha1.RoleStorage) {
		for _, t := range i.told.Targets {
			if t.Name == target {
				return t.ID
			}
		}
	}
	Fail(fmt.Sprintf("no server of %s has %s", fs, target))
	return 0
}
