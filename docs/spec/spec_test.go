// Package spec_test holds that the documents beside it name all that there is.
package spec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// documents by the CRD that they are about.
var documents = map[string]string{
	"parallelfs.dev_filesystems.yaml":   "filesystem.md",
	"parallelfs.dev_benchmarkruns.yaml": "benchmarkrun.md",
}

func TestEveryFieldHasARowInItsDocument(t *testing.T) {
	for file, document := range documents {
		t.Run(document, func(t *testing.T) {
			g := NewWithT(t)
			text, rows := read(t, document), map[string]bool{}
			for line := range strings.Lines(text) {
				if cells := strings.Split(line, "|"); len(cells) > 2 {
					rows[strings.Trim(strings.TrimSpace(cells[1]), "`")] = true
				}
			}
			var crd apiextensionsv1.CustomResourceDefinition
			g.Expect(yaml.Unmarshal([]byte(read(t, "../../config/crd/bases/"+file)), &crd)).To(Succeed())
			known := map[string]bool{}
			root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			fields(root.Properties["spec"], "spec", known)
			fields(root.Properties["status"], "status", known)
			g.Expect(known).To(HaveKey("spec"))
			for path := range known {
				// Kubernetes documents its own conditions.
				if strings.Contains(path, ".") && !strings.HasPrefix(path, "status.conditions[]") {
					g.Expect(rows).To(HaveKey(path), "no row of a table begins with `%s`", path)
				}
			}
			for row := range rows {
				if strings.HasPrefix(row, "spec.") || strings.HasPrefix(row, "status.") {
					g.Expect(known).To(HaveKey(row), "the document has a row of a field that there is not")
				}
			}
			for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
				_, columns, _ := strings.Cut(text, "## Printer columns")
				g.Expect(columns).To(ContainSubstring(column.Name), "a printer column is not named")
			}
		})
	}
}

// fields collects the paths of a schema's fields, as a user writes them; the items of a list have [] and no row of their own.
func fields(schema apiextensionsv1.JSONSchemaProps, path string, into map[string]bool) {
	if !strings.HasSuffix(path, "[]") {
		into[path] = true
	}
	for name, property := range schema.Properties {
		fields(property, path+"."+name, into)
	}
	if schema.Items != nil {
		fields(*schema.Items.Schema, path+"[]", into)
	}
}

func TestEveryConditionAndReasonIsExplained(t *testing.T) {
	g := NewWithT(t)
	text := read(t, "filesystem.md") + read(t, "benchmarkrun.md")
	file, err := parser.ParseFile(token.NewFileSet(), "../../api/v1alpha1/conditions.go", nil, 0)
	g.Expect(err).NotTo(HaveOccurred())
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Condition") && !strings.HasPrefix(spec.Names[0].Name, "Reason") {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(text).To(ContainSubstring("| `"+value+"` |"), "no row of a table explains %s", spec.Names[0].Name)
		found++
		return true
	})
	g.Expect(found).To(BeNumerically(">", 30), "conditions.go was not understood")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
