//go:build envtest

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestOnlyTheAgentOfTheHolderHandsATargetOfTwoNodesOver(t *testing.T) {
	const (
		onlyHolder = "only the agent of the node that holds a StorageTarget writes who holds it"
		ofSecond   = "the agent of the second writes only who holds it"
		kernelName = `{"kernelName":"nvme0n1"}`
	)
	ofPair := func(holder *v1alpha1.TargetHolder) *v1alpha1.StorageTarget {
		of := target("pair", "n1")
		of.Spec.Format.FSType, of.Spec.SecondNode = v1alpha1.Ldiskfs, "n2"
		of.Status.Holder = holder
		return made(t, of)
	}
	first, second := ofPair(nil), ofPair(&v1alpha1.TargetHolder{Node: "n2", Number: 1})
	for name, c := range map[string]struct {
		of               *v1alpha1.StorageTarget
		node, does, says string
	}{
		"the first node has it from the beginning":             {first, "n1", `{"holder":{"node":"n2","number":1}}`, ""},
		"and so the second does not take it":                   {first, "n2", `{"holder":{"node":"n2","number":1}}`, onlyHolder},
		"nor a third":                                          {first, "n3", `{"holder":{"node":"n3","number":1}}`, ownStatus},
		"the second takes up what it was given":                {second, "n2", `{"holder":{"takenUp":"2026-11-25T03:00:00Z"}}`, ""},
		"and gives it back":                                    {second, "n2", `{"holder":{"node":"n1","number":2}}`, ""},
		"and the first does not take it back":                  {second, "n1", `{"holder":{"node":"n1","number":2}}`, onlyHolder},
		"the first writes how the disk is, whoever has it":     {second, "n1", kernelName, ""},
		"the second writes nothing else, also when it has it":  {second, "n2", kernelName, ofSecond},
		"and not both at once":                                 {second, "n2", `{"holder":{"node":"n1","number":2},"kernelName":"sda"}`, ofSecond},
		"a third node writes nothing of a target that is away": {second, "n3", kernelName, ownStatus},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			change := client.RawPatch("application/merge-patch+json", []byte(`{"status":`+c.does+`}`))
			err := user(t, "an agent@"+c.node).Status().Patch(t.Context(), c.of.DeepCopy(), change, client.DryRunAll)
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%v", err)
			g.Expect(err.Error()).To(ContainSubstring(c.says))
		})
	}
}
