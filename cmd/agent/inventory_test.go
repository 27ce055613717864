package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestInventoryPrintsTheObjectThatTheAgentPublishes(t *testing.T) {
	for _, format := range []string{"yaml", "json"} {
		t.Run("as "+format, func(t *testing.T) {
			g := NewWithT(t)
			got := run(t, "inventory", "-o", format)
			g.Expect(got.code).To(BeZero(), got.stderr)
			var found v1alpha1.NodeInventory
			g.Expect(yaml.UnmarshalStrict([]byte(got.stdout), &found)).To(Succeed())
			g.Expect(found.APIVersion).To(Equal("parallelfs.dev/v1alpha1"))
			g.Expect(found.Kind).To(Equal("NodeInventory"))
			g.Expect(found.Name).NotTo(BeEmpty())
			g.Expect(found.Status.CPU.Threads).To(BeNumerically(">", 0))
			g.Expect(found.Status.Kernel.Release).NotTo(BeEmpty())
			g.Expect(found.Status.Settings).To(ContainElement(HaveField("Name", "transparentHugePages")))
		})
	}
}

func TestInventoryRefusesAFormatThatItDoesNotHave(t *testing.T) {
	g := NewWithT(t)
	got := run(t, "inventory", "-o", "xml")
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.stderr).To(Equal("agent inventory: there is no output format \"xml\"; use -o yaml or -o json\n"))
	g.Expect(got.message).To(BeEmpty())
}
