package main

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestPlacementPrintsWhatAProgramCanRead(t *testing.T) {
	g := NewWithT(t)
	for output, decode := range map[string]func(string, any) error{
		"yaml": func(text string, v any) error { return yaml.UnmarshalStrict([]byte(text), v) },
		"json": func(text string, v any) error { return json.Unmarshal([]byte(text), v) },
	} {
		got := run(t, "placement", "--output", output)
		g.Expect(got.code).To(BeZero())
		var placements []v1alpha1.DaemonPlacement
		g.Expect(decode(got.stdout, &placements)).To(Succeed())
		g.Expect(placements).NotTo(BeNil(), "no daemon is an empty list")
	}
	got := run(t, "placement", "-o", "xml")
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.stderr).To(ContainSubstring(`--output is yaml or json, not "xml"`))
	g.Expect(got.message).To(BeEmpty())
}
