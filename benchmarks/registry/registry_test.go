package registry_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/registry"
)

// spec is the schema of spec in the API as it is generated.
func spec(t *testing.T) apiextensionsv1.JSONSchemaProps {
	g := NewWithT(t)
	text, err := os.ReadFile("../../config/crd/bases/parallelfs.dev_benchmarkruns.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	var crd apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.UnmarshalStrict(text, &crd)).To(Succeed())
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

func TestTheAPITakesExactlyTheToolsThatThereAre(t *testing.T) {
	g := NewWithT(t)
	var allowed, found []string
	for _, value := range spec(t).Properties["tool"].Enum {
		allowed = append(allowed, strings.Trim(string(value.Raw), `"`))
	}
	for name, tool := range registry.Tools() {
		g.Expect(tool.Name()).To(Equal(name))
		found = append(found, string(name))
	}
	g.Expect(found).To(ConsistOf(allowed))
}

func TestTheAPITakesExactlyTheParametersOfATool(t *testing.T) {
	specs := map[v1alpha1.BenchmarkTool][]*v1alpha1.BenchmarkRunSpec{
		// Each mode, because a parameter of one may be none of another.
		v1alpha1.ToolIOzone: {
			{IOzone: &v1alpha1.IOzoneSpec{Mode: v1alpha1.IOzoneSingleClient}}, {IOzone: &v1alpha1.IOzoneSpec{Mode: v1alpha1.IOzoneDistributed}},
		},
	}
	for name, tool := range registry.Tools() {
		g := NewWithT(t)
		g.Expect(specs).To(HaveKey(name))
		var known []string
		for _, s := range specs[name] {
			for _, p := range tool.Parameters(s) {
				if !slices.Contains(known, string(p.Name)) {
					known = append(known, string(p.Name))
				}
			}
		}
		for _, field := range []string{"sweep", "derive"} {
			rule := regexp.MustCompile(fmt.Sprintf(`self\.tool != '%s' \|\| self\.%s\.all\(\w+, \w+\.name in \[([^]]*)\]\)`, name, field))
			var allowed []string
			for _, validation := range spec(t).XValidations {
				if match := rule.FindStringSubmatch(validation.Rule); match != nil {
					for word := range strings.SplitSeq(match[1], ", ") {
						allowed = append(allowed, strings.Trim(word, "'"))
					}
				}
			}
			g.Expect(allowed).To(ConsistOf(known), "the rule of spec.%s for %s names the parameters of the tool", field, name)
		}
	}
}

func TestClientsAreNoParameterOfIOzoneOnOneClientInTheAPIEither(t *testing.T) {
	g := NewWithT(t)
	tool := registry.Tools()[v1alpha1.ToolIOzone]
	for _, p := range tool.Parameters(&v1alpha1.BenchmarkRunSpec{IOzone: &v1alpha1.IOzoneSpec{Mode: v1alpha1.IOzoneSingleClient}}) {
		g.Expect(p.Name).NotTo(Equal(v1alpha1.SweepName("clients")))
	}
	g.Expect(spec(t).XValidations).To(ContainElement(
		HaveField("Message", "clients can't be swept or derived when spec.iozone.mode is SingleClient")))
}

func TestTheDefaultsOfAToolAreThoseOfTheAPI(t *testing.T) {
	g := NewWithT(t)
	schema := spec(t)
	fallback := func(p apiextensionsv1.JSONSchemaProps) string {
		g.Expect(p.Default).NotTo(BeNil())
		return strings.Trim(string(p.Default.Raw), `"`)
	}
	iozone := schema.Properties["iozone"].Properties
	defaults := map[v1alpha1.SweepName]string{
		"processes": fallback(schema.Properties["processes"]), "iozone.recordSize": fallback(iozone["recordSize"]), "iozone.fileSize": fallback(iozone["fileSize"]),
	}
	got := map[v1alpha1.SweepName]string{}
	for _, p := range registry.Tools()[v1alpha1.ToolIOzone].Parameters(&v1alpha1.BenchmarkRunSpec{IOzone: &v1alpha1.IOzoneSpec{}}) {
		got[p.Name] = p.Value
	}
	g.Expect(got).To(Equal(defaults))
	g.Expect(fallback(iozone["mode"])).To(Equal(string(v1alpha1.IOzoneSingleClient)))
}
