//go:build envtest

package policies_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	onlyTheOperatorMakes  = "only the operator makes FileSystemNodes"
	onlyTheOperatorWrites = "only the operator writes the spec of a FileSystemNode"
	whoseItIs             = "say which FileSystem a FileSystemNode belongs to"
	goesWithItsFileSystem = "goes with its FileSystem: delete that"
	ownNodesStatus        = "an agent writes only the status of the FileSystemNodes of its own node"
	ownPart               = "an agent writes only status.agent"
)

// fileSystemNode returns the FileSystemNode of an existing filesystem.
func fileSystemNode(name, node string) *v1alpha1.FileSystemNode {
	return &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: v1alpha1.GroupVersion.String(), Kind: "FileSystem", Name: "scratch", UID: "11-11", Controller: new(true),
		}}},
		Spec: v1alpha1.FileSystemNodeSpec{
			FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "11-11"}, Node: node,
			Members: []v1alpha1.NodeMember{{Name: "meta-0", Role: v1alpha1.RoleMetadata, ID: 1}},
		},
	}
}

// madeNode creates a FileSystemNode as the manager does, with a unique name.
func madeNode(t *testing.T, n *v1alpha1.FileSystemNode) *v1alpha1.FileSystemNode {
	t.Helper()
	n.GenerateName, n.Name = n.Name+"-", ""
	NewWithT(t).Expect(user(t, "the manager").Create(t.Context(), n)).To(Succeed())
	return n
}

// confirm writes the status of a FileSystemNode as the agent does.
func confirm(t *testing.T, c client.Client, n *v1alpha1.FileSystemNode, status v1alpha1.FileSystemNodeStatus) error {
	t.Helper()
	n = n.DeepCopy()
	if status.Conditions == nil {
		status.Conditions = n.Status.Conditions // the operator's conditions stay, and so do those of the API server for a new object
	}
	n.Status = status
	return c.Status().Update(t.Context(), n)
}

// refused checks that an error is a policy's refusal with this text, or that there is none if the text is empty.
func refused(t *testing.T, err error, says string) {
	t.Helper()
	g := NewWithT(t)
	if says == "" {
		g.Expect(err).NotTo(HaveOccurred())
		return
	}
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
	g.Expect(err.Error()).To(ContainSubstring(says))
}

func TestOnlyTheManagerMakesFileSystemNodes(t *testing.T) {
	for name, says := range map[string]string{
		"the manager":                        "",
		"an administrator of the cluster":    onlyTheOperatorMakes,
		"an administrator of filesystems":    "cannot create resource",
		"the one user of all controllers":    onlyTheOperatorMakes,
		"a service account of the same name": onlyTheOperatorMakes,
		// Two policies refuse it, and the API server quotes one of them.
		"an agent allowed everything@n1": "denied request",
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, user(t, name).Create(t.Context(), fileSystemNode("made", "n1"), client.DryRunAll), says)
		})
	}
}

// changesOfANode holds a change of each field of the spec that can change.
var changesOfANode = map[string]string{
	"fileSystem": `{"uid":"22-22"}`,
	"facts":      `{"type":"BeeGFS","metadataNode":"n9"}`,
	"members":    `[]`,
	"givenUp":    `{"time":"2026-11-01T12:00:00Z"}`,
	// An agent writes this into its node's /etc/modprobe.d.
	"moduleOptions": `{"lines":["options mdt mds_num_cpts=[1]"],"write":true}`,
	"node":          "", // the CRD itself keeps this field immutable
}

func TestOnlyTheManagerChangesTheSpecOfAFileSystemNode(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile("../../../config/crd/bases/parallelfs.dev_filesystemnodes.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(text, &crd)).To(Succeed())
	fields := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	g.Expect(slices.Collect(maps.Keys(changesOfANode))).To(ConsistOf(slices.Collect(maps.Keys(fields))))

	object := madeNode(t, fileSystemNode("change", "n1"))
	for field, to := range changesOfANode {
		if to == "" {
			continue
		}
		change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"`+field+`":`+to+`}}`))
		for name, says := range map[string]string{
			"the manager":                     "",
			"an administrator of the cluster": onlyTheOperatorWrites,
			"an administrator of filesystems": onlyTheOperatorWrites,
			"the garbage collector":           onlyTheOperatorWrites,
			"an agent@n1":                     "cannot patch resource",
			"an agent allowed everything@n1":  "denied request",
		} {
			t.Run(field+" by "+name, func(t *testing.T) {
				refused(t, user(t, name).Patch(t.Context(), object.DeepCopy(), change, client.DryRunAll), says)
			})
		}
	}
}

func TestOnlyAdministratorsSayThatANodeNeverComesBack(t *testing.T) {
	object := madeNode(t, fileSystemNode("word", "n1"))
	word := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"parallelfs.dev/give-up":"n1","parallelfs.dev/accept-loss":"1a2b3c4d"}}}`))
	for name, says := range map[string]string{
		"an administrator of the cluster": "",
		"an administrator of filesystems": "",
		"an agent@n1":                     "cannot patch resource",
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, user(t, name).Patch(t.Context(), object.DeepCopy(), word, client.DryRunAll), says)
		})
	}
}

func TestAFileSystemNodeGoesWithItsFileSystemOnly(t *testing.T) {
	lives, left := madeNode(t, fileSystemNode("lives", "n1")), fileSystemNode("left", "n1")
	left.OwnerReferences = nil
	left = madeNode(t, left)
	for name, says := range map[string]string{
		"the manager":                     "",
		"an administrator of the cluster": goesWithItsFileSystem,
		"an administrator of filesystems": goesWithItsFileSystem,
		"the garbage collector":           "",
		"the namespace controller":        "",
		"the one user of all controllers": "",
		"an agent allowed everything@n1":  "denied request",
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, user(t, name).Delete(t.Context(), lives.DeepCopy(), client.DryRunAll), says)
		})
	}
	t.Run("one that its FileSystem has left is deleted by hand", func(t *testing.T) {
		refused(t, user(t, "an administrator of filesystems").Delete(t.Context(), left.DeepCopy(), client.DryRunAll), "")
	})
	t.Run("an agent deletes not even such a one", func(t *testing.T) {
		refused(t, user(t, "an agent allowed everything@n1").Delete(t.Context(), left.DeepCopy(), client.DryRunAll), "an agent deletes nothing")
	})

	change, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": nil}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, says := range map[string]string{
		"an administrator of the cluster": whoseItIs,
		"the garbage collector":           "",
		"the manager":                     "",
	} {
		t.Run(name+" makes it nobody's", func(t *testing.T) {
			refused(t, user(t, name).Patch(t.Context(), lives.DeepCopy(), client.RawPatch("application/merge-patch+json", change), client.DryRunAll), says)
		})
	}
}

func TestAnAgentConfirmsTheNodeFileOfItsOwnNode(t *testing.T) {
	own, other := madeNode(t, fileSystemNode("own", "n1")), madeNode(t, fileSystemNode("other", "n2"))
	confirmed := v1alpha1.FileSystemNodeStatus{Agent: &v1alpha1.NodeAgentStatus{ObservedGeneration: 1}}
	said := func(change func(s *v1alpha1.FileSystemNodeStatus)) v1alpha1.FileSystemNodeStatus {
		s := *confirmed.DeepCopy()
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		user   string
		of     *v1alpha1.FileSystemNode
		status v1alpha1.FileSystemNodeStatus
		says   string
	}{
		"of its own node":     {"an agent@n1", own, confirmed, ""},
		"not of another node": {"an agent@n1", other, confirmed, ownNodesStatus},
		"not without a node":  {"an agent without a node", own, confirmed, noNode},
		"not that all members serve": {"an agent@n1", own, said(func(s *v1alpha1.FileSystemNodeStatus) {
			s.Members = []v1alpha1.MemberStatus{{Name: "meta-0", State: v1alpha1.StateOnline}}
		}), ownPart},
		"not that it is Ready": {"an agent@n1", own, said(func(s *v1alpha1.FileSystemNodeStatus) {
			s.Conditions = []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Healthy", LastTransitionTime: metav1.Now()}}
		}), ownPart},
		"not how many serve": {"an agent@n1", own, said(func(s *v1alpha1.FileSystemNodeStatus) { s.Summary.Servers = "1/1" }), ownPart},
	} {
		t.Run(name, func(t *testing.T) {
			var live v1alpha1.FileSystemNode
			NewWithT(t).Expect(user(t, c.user).Get(t.Context(), client.ObjectKeyFromObject(c.of), &live)).To(Succeed())
			refused(t, confirm(t, user(t, c.user), &live, c.status), c.says)
		})
	}
}
