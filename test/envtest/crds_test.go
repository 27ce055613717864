//go:build envtest

package envtest_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// customResources reads the operator's CRDs as they are installed.
func customResources(t testing.TB) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	crds := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.UnmarshalStrict(text, &crds[i])).To(Succeed(), file)
		g.Expect(crds[i].Spec.Versions).To(HaveLen(1), file)
	}
	return crds
}

// everySchema calls visit for a schema and all nested ones, each with its path as a user writes it: spec.storagePools[].name.
func everySchema(schema *apiextensionsv1.JSONSchemaProps, path string, visit func(path string, schema *apiextensionsv1.JSONSchemaProps)) {
	visit(path, schema)
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		property := schema.Properties[name]
		child := name
		if path != "" {
			child = path + "." + name
		}
		everySchema(&property, child, visit)
		schema.Properties[name] = property
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		everySchema(schema.Items.Schema, path+"[]", visit)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		everySchema(schema.AdditionalProperties.Schema, path+"{}", visit)
	}
}
