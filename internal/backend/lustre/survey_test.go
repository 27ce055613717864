package lustre_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/lustre"
)

func TestSurveysMeasureTheTargetsOfEachNodeByTheirNames(t *testing.T) {
	g, in := NewWithT(t), running(t)
	b := lustre.New()
	g.Expect(b.MeasuresServers(v1alpha1.ToolMDSSurvey)).To(BeTrue())
	g.Expect(b.MeasuresServers(v1alpha1.ToolOBDFilterSurvey)).To(BeTrue())
	g.Expect(b.MeasuresServers(v1alpha1.ToolStoragebench)).To(BeFalse())
	g.Expect(b.MeasuredTargets(in, v1alpha1.RoleMetadata)).To(Equal(map[string][]string{
		"n1": {"pfs-MDT0000", "pfs-MDT0002"}, "n2": {"pfs-MDT0001", "pfs-MDT0003"},
	}))
	g.Expect(b.MeasuredTargets(in, v1alpha1.RoleStorage)).To(Equal(map[string][]string{
		"n1": {"pfs-OST0000", "pfs-OST0001"}, "n2": {"pfs-OST0002", "pfs-OST0003"},
	}))

	t.Run("and none that was drained, and none of a decommissioned node", func(t *testing.T) {
		g := NewWithT(t)
		for i := range in.FileSystemNodes {
			n := &in.FileSystemNodes[i]
			for j := range n.Spec.Members {
				if m := &n.Spec.Members[j]; n.Spec.Node == "n1" && m.Role == v1alpha1.RoleStorage {
					m.Targets = slices.Clone(m.Targets)
					m.Targets[0].Drained = new(metav1.Now())
				}
			}
			if n.Spec.Node == "n2" {
				n.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
			}
		}
		g.Expect(b.MeasuredTargets(in, v1alpha1.RoleStorage)).To(Equal(map[string][]string{"n1": {"pfs-OST0001"}}))
	})
}
