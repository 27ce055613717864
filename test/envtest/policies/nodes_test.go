//go:build envtest

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

func TestTheManagerChangesOfANodeOnlyItsOwnLabels(t *testing.T) {
	own := podspec.NodeLabels("storage", "scratch", "11111111-2222") + "meta-0"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{GenerateName: "labeled-", Labels: map[string]string{"rack": "a", own: ""}}}
	g := NewWithT(t)
	g.Expect(server.Client.Create(t.Context(), node)).To(Succeed())
	for name, c := range map[string]struct{ patch, says string }{
		"it gives a label of its own":              {patch: `{"metadata": {"labels": {"22222222.home.storage.parallelfs.node-restriction.kubernetes.io/meta-0": ""}}}`},
		"it takes a label of its own":              {patch: `{"metadata": {"labels": {"` + own + `": null}}}`},
		"it gives a label of somebody else":        {`{"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}`, "gives a node only labels below"},
		"it changes a label of somebody else":      {`{"metadata": {"labels": {"rack": "b"}}}`, "gives a node only labels below"},
		"it takes a label of somebody else":        {`{"metadata": {"labels": {"rack": null}}}`, "takes only labels below"},
		"it gives one that only ends like its own": {`{"metadata": {"labels": {"evilparallelfs.node-restriction.kubernetes.io/x": ""}}}`, "gives a node only labels below"},
		"it taints a node":                         {`{"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}`, "nothing of a node besides its labels"},
		"it annotates a node":                      {`{"metadata": {"annotations": {"a": "b"}}}`, "nothing of a node besides its labels"},
		"it gives a node a finalizer":              {`{"metadata": {"finalizers": ["parallelfs.dev/x"]}}`, "nothing of a node besides its labels"},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, user(t, "the manager").Patch(t.Context(), node.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(c.patch)), client.DryRunAll), c.says)
		})
	}
}
