package registry_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/registry"
)

// spec returns the schema of spec in the generated API.
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

// variants holds specs of each tool: an empty one, and those with other parameters than the empty one.
var variants = map[v1alpha1.BenchmarkTool][]*v1alpha1.BenchmarkRunSpec{
	v1alpha1.ToolIOzone: {
		{IOzone: &v1alpha1.IOzoneSpec{}}, {IOzone: &v1alpha1.IOzoneSpec{Mode: v1alpha1.IOzoneDistributed}},
	},
	v1alpha1.ToolMdtest:          {{Mdtest: &v1alpha1.MdtestSpec{}}},
	v1alpha1.ToolIOR:             {{IOR: &v1alpha1.IORSpec{}}},
	v1alpha1.ToolFio:             {{Fio: &v1alpha1.FioSpec{}}, {Fio: &v1alpha1.FioSpec{Engine: "libaio"}}},
	v1alpha1.ToolPostmark:        {{Postmark: &v1alpha1.PostmarkSpec{}}},
	v1alpha1.ToolVdbench:         {{Vdbench: &v1alpha1.VdbenchSpec{}}},
	v1alpha1.ToolNetmist:         {{Netmist: &v1alpha1.NetmistSpec{}}},
	v1alpha1.ToolMDSSurvey:       {{MDSSurvey: &v1alpha1.MDSSurveySpec{}}},
	v1alpha1.ToolOBDFilterSurvey: {{OBDFilterSurvey: &v1alpha1.OBDFilterSurveySpec{}}},
	v1alpha1.ToolStoragebench:    {{Storagebench: &v1alpha1.StoragebenchSpec{}}},
	v1alpha1.ToolCustom:          {{Custom: &v1alpha1.CustomSpec{Parameters: []v1alpha1.CustomParameter{{Name: "depth", Value: "8"}}}}},
}

// The API accepts a sweep over any name that begins with the tool's member; the tool decides which ones exist.
func TestEveryParameterOfAToolIsNamedAfterItsMember(t *testing.T) {
	schema := spec(t)
	for name, tool := range registry.Tools() {
		g := NewWithT(t)
		g.Expect(variants).To(HaveKey(name))
		g.Expect(schema.Properties).To(HaveKey(string(name)))
		for _, s := range variants[name] {
			for _, p := range tool.Parameters(s) {
				if slices.Contains([]v1alpha1.SweepName{"processes", "clients", "storagePool"}, p.Name) {
					continue
				}
				field, found := strings.CutPrefix(string(p.Name), string(name)+".")
				g.Expect(found).To(BeTrue(), "%s is named after %s", p.Name, name)
				g.Expect(string(p.Name)).To(MatchRegexp(`^[a-z][A-Za-z]*\.[a-z][A-Za-z0-9]*$`), "the API can hold it")
				if name != v1alpha1.ToolCustom {
					g.Expect(schema.Properties[string(name)].Properties).To(HaveKey(field), "a parameter is a field of the spec")
				}
			}
		}
	}
	for _, list := range []string{"sweep", "derive"} {
		NewWithT(t).Expect(schema.XValidations).To(ContainElement(HaveField("Rule", And(
			HavePrefix("!has(self."+list+")"), ContainSubstring("s.name.startsWith(tool + '.')")))), "the rule of spec.%s", list)
	}
}

func TestEachSweepableFieldOfTheAPIIsAParameter(t *testing.T) {
	schema := spec(t)
	for name, tool := range registry.Tools() {
		for field, property := range schema.Properties[string(name)].Properties {
			if !strings.Contains(property.Description, "Sweepable") && !strings.Contains(property.Description, "A sweep or derive can vary it") {
				continue
			}
			var names []string
			for _, s := range variants[name] {
				for _, p := range tool.Parameters(s) {
					names = append(names, string(p.Name))
				}
			}
			NewWithT(t).Expect(names).To(ContainElement(string(name)+"."+field), "spec.%s.%s is called sweepable", name, field)
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
	schema := spec(t)
	for name, tool := range registry.Tools() {
		if name == v1alpha1.ToolCustom {
			continue // its parameters are defined by the user
		}
		g := NewWithT(t)
		for _, p := range tool.Parameters(variants[name][len(variants[name])-1]) {
			field, is := strings.CutPrefix(string(p.Name), string(name)+".")
			if !is {
				continue
			}
			fallback := schema.Properties[string(name)].Properties[field].Default
			if fallback == nil {
				g.Expect(p.Value).To(BeElementOf("", "0"), "%s has no default in the API", p.Name)
				continue
			}
			g.Expect(p.Value).To(Equal(strings.Trim(string(fallback.Raw), `"`)), "the default of %s", p.Name)
		}
	}
	g := NewWithT(t)
	g.Expect(string(schema.Properties["processes"].Default.Raw)).To(Equal("1"))
	g.Expect(string(schema.Properties["iozone"].Properties["mode"].Default.Raw)).To(Equal(`"SingleClient"`))
}
