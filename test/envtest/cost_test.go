//go:build envtest

package envtest_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API server estimates the worst-case cost of a rule, and refuses a CRD whose rules could cost too much. The estimate differs slightly
// between versions of Kubernetes, so the rules stay far below the limit.
func TestTheRulesCouldCostTwiceAsMuchAndStillBeAccepted(t *testing.T) {
	t.Parallel()
	for _, crd := range customResources(t) {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			crd.Spec.Group = "twice." + crd.Spec.Group
			crd.Name = crd.Spec.Names.Plural + "." + crd.Spec.Group
			everySchema(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, "", func(_ string, schema *apiextensionsv1.JSONSchemaProps) {
				for i, rule := range schema.XValidations {
					schema.XValidations[i].Rule = fmt.Sprintf("(%[1]s) && (%[1]s)", rule.Rule)
				}
			})
			g.Expect(server.Client.Create(t.Context(), &crd, client.DryRunAll)).To(Succeed())
		})
	}
}
