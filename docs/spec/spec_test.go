// Package spec_test holds that the documents beside it name all that there is.
package spec_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// documents by the CRD that they are about.
var documents = map[string]string{
	"parallelfs.dev_filesystems.yaml":     "filesystem.md",
	"parallelfs.dev_benchmarkruns.yaml":   "benchmarkrun.md",
	"parallelfs.dev_benchmarksuites.yaml": "benchmarksuite.md",
	"parallelfs.dev_filesystemnodes.yaml": "filesystemnode.md",
	"parallelfs.dev_storagetargets.yaml":  "storagetarget.md",
	"parallelfs.dev_nodeinventories.yaml": "nodeinventory.md",
}

// shared are the fields that several places have: their rows stand once, in filesystem.md, without what comes before them.
var shared = []string{"targets", "cpuPinning", "select", "logDevices", "format", "queue"}

// ofKubernetes are the fields whose own fields are those of a pod: Kubernetes documents them.
var ofKubernetes = regexp.MustCompile(`^spec\.nodes\.selector\.|^spec\.(?:.*\.)?pods\.(?:tolerations|tolerationsByRole\.[A-Za-z]+|imagePullSecrets|resources\.[A-Za-z]+)(?:\[\])?\.`)

// short is the row that explains a field: targets.devices[].id explains spec.storagePools[].targets.devices[].id.
func short(path string) string {
	if !strings.HasPrefix(path, "spec.") {
		return path
	}
	elements := strings.Split(path, ".")
	// The innermost counts: the fields of logDevices are those of select, wherever the format is.
	for i := len(elements) - 2; i > 0; i-- {
		switch name := elements[i]; {
		case !slices.Contains(shared, name):
		case name == "logDevices":
			return "select." + strings.Join(elements[i+1:], ".")
		default:
			return strings.Join(elements[i:], ".")
		}
	}
	return path
}

func TestEveryFieldHasARowInItsDocument(t *testing.T) {
	for file, document := range documents {
		t.Run(document, func(t *testing.T) {
			g := NewWithT(t)
			text := read(t, document)
			rows, common := rowsOf(text), rowsOf(read(t, "filesystem.md"))
			var crd apiextensionsv1.CustomResourceDefinition
			g.Expect(yaml.Unmarshal([]byte(read(t, "../../config/crd/bases/"+file)), &crd)).To(Succeed())
			known := map[string]bool{}
			root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
			fields(root.Properties["spec"], "spec", known)
			fields(root.Properties["status"], "status", known)
			g.Expect(known).To(HaveKey("status"))
			shorts := map[string]bool{}
			for path := range known {
				row := short(path)
				shorts[row] = true
				switch {
				case !strings.Contains(path, ".") || strings.HasPrefix(path, "status.conditions[]") || ofKubernetes.MatchString(path): // Kubernetes documents its own conditions.
				case row == path:
					g.Expect(rows).To(HaveKey(row), "no row of a table begins with `%s`", row)
				default:
					g.Expect(common).To(HaveKey(row), "no row of a table in filesystem.md begins with `%s`, for %s", row, path)
				}
			}
			for row := range rows {
				first, _, isPath := strings.Cut(row, ".")
				if isPath && (first == "spec" || first == "status" || slices.Contains(shared, first)) {
					g.Expect(shorts).To(HaveKey(row), "the document has a row of a field that there is not")
				}
			}
			for _, column := range crd.Spec.Versions[0].AdditionalPrinterColumns {
				_, columns, _ := strings.Cut(text, "## Printer columns")
				g.Expect(columns).To(ContainSubstring(column.Name), "a printer column is not named")
			}
		})
	}
}

// rowsOf are the first cells of all tables of a document.
func rowsOf(text string) map[string]bool {
	rows := map[string]bool{}
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			rows[strings.Trim(strings.TrimSpace(cells[1]), "`")] = true
		}
	}
	return rows
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

// ofNodes are the fields of a Node that documents name.
var ofNodes = []string{"spec.unschedulable"}

// Decisions are left out: some name what was not chosen.
func TestEveryFieldThatADocumentNamesIsThere(t *testing.T) {
	g := NewWithT(t)
	known := map[string]bool{}
	for file := range documents {
		var crd apiextensionsv1.CustomResourceDefinition
		g.Expect(yaml.Unmarshal([]byte(read(t, "../../config/crd/bases/"+file)), &crd)).To(Succeed())
		for _, name := range []string{"spec", "status"} {
			fields(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[name], name, known)
		}
	}
	index := regexp.MustCompile(`\[[^]]*]`)
	for path := range maps.Clone(known) {
		known[index.ReplaceAllString(path, "")] = true
	}
	texts := []string{"../../README.md", "../../benchmarks/README.md", "../../charts/parallelfs-operator/README.md"}
	for _, pattern := range []string{"*.md", "../*.md"} {
		found, err := filepath.Glob(pattern)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(found).NotTo(BeEmpty())
		texts = append(texts, found...)
	}
	name := regexp.MustCompile("`((?:spec|status)(?:\\.[a-z][A-Za-z]*(?:\\[\\w*\\])?)+)`")
	named := 0
	for _, text := range texts {
		for _, found := range name.FindAllStringSubmatch(read(t, text), -1) {
			path := index.ReplaceAllString(found[1], "")
			g.Expect(known[path] || slices.Contains(ofNodes, path)).To(BeTrue(), "%s: no kind has %s", text, found[1])
			named++
		}
	}
	g.Expect(named).To(BeNumerically(">", 500), "the documents were not understood")
}

func TestEveryConditionAndReasonIsExplained(t *testing.T) {
	g := NewWithT(t)
	var text string
	for _, document := range documents {
		text += read(t, document)
	}
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
