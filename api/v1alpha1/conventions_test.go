package v1alpha1_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// field is one field of a kind, as the CRD has it.
type field struct {
	// path as a user writes it, such as spec.storagePools[].name; the values of a map end in {}.
	path   string
	schema apiextensionsv1.JSONSchemaProps
}

// name of the field, empty for the items of a list and the values of a map.
func (f field) name() string {
	name := f.path[strings.LastIndex(f.path, ".")+1:]
	if strings.HasSuffix(name, "[]") || strings.HasSuffix(name, "{}") {
		return ""
	}
	return name
}

// crds reads the CRDs as they are installed: what holds of them holds of the API, whatever the Go types say.
func crds(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := crdsOf(t, "../../config/crd/bases/*.yaml")
	NewWithT(t).Expect(found).To(HaveLen(6))
	return found
}

// crdsOf reads the CRDs in the files that match.
func crdsOf(t *testing.T, pattern string) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	g := NewWithT(t)
	files, err := filepath.Glob(pattern)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty(), pattern)
	out := make([]apiextensionsv1.CustomResourceDefinition, len(files))
	for i, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(yaml.UnmarshalStrict(text, &out[i])).To(Succeed(), file)
		g.Expect(out[i].Spec.Versions).To(HaveLen(1), file)
	}
	return out
}

// fields are all fields of a kind below spec and status, those two included where there are both.
func fields(crd apiextensionsv1.CustomResourceDefinition) []field {
	var out []field
	var add func(path string, schema apiextensionsv1.JSONSchemaProps)
	add = func(path string, schema apiextensionsv1.JSONSchemaProps) {
		out = append(out, field{path: path, schema: schema})
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			add(path+"."+name, schema.Properties[name])
		}
		if schema.Items != nil {
			add(path+"[]", *schema.Items.Schema)
		}
		if schema.AdditionalProperties != nil {
			add(path+"{}", *schema.AdditionalProperties.Schema)
		}
	}
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	for _, name := range []string{"spec", "status"} {
		if schema, found := root.Properties[name]; found {
			add(name, schema)
		}
	}
	return out
}

// kubernetesOwn are the fields that Kubernetes' own types define, and with them their words and bounds: conditions, and what pods have.
var kubernetesOwn = regexp.MustCompile(`^status\.conditions\[\]|^spec\.nodes\.selector\.|^spec\.pods\.(tolerations\[\]|tolerationsByRole\.\w+\[\]|imagePullSecrets\[\]|resources\.\w+\.(requests|limits)\{\})`)

// conventions holds the rules for every field, by a sentence.
var conventions = map[string]func(f field) bool{
	"is no floating point number, which no two programs print alike": func(f field) bool {
		return f.schema.Type != "number"
	},
	"has a known type, or is a number that may stand in quotes": func(f field) bool {
		return slices.Contains([]string{"object", "array", "string", "integer", "boolean"}, f.schema.Type) != f.schema.XIntOrString
	},
	"keeps no field that it does not know, but those of a template, which are checked before it is used": func(f field) bool {
		return f.schema.XPreserveUnknownFields == nil || templates[f.path]
	},
	"is described, in words that begin with its name and end like a sentence": func(f field) bool {
		text := strings.TrimSpace(f.schema.Description)
		return f.name() == "" ||
			strings.HasPrefix(text, f.name()) && (strings.HasSuffix(text, ".") || strings.HasSuffix(text, `."`))
	},
	"is described in sentences of at most 36 words": func(f field) bool {
		for sentence := range strings.SplitSeq(strings.Join(strings.Fields(f.schema.Description), " "), ". ") {
			if len(strings.Fields(sentence)) > 36 {
				return false
			}
		}
		return true
	},
	"is a list of a known kind, so that two writers don't overwrite each other": func(f field) bool {
		return f.schema.Type != "array" || f.schema.XListType != nil
	},
	"is a list with a bound": func(f field) bool {
		return f.schema.Type != "array" || f.schema.MaxItems != nil
	},
	"is a map with a bound": func(f field) bool {
		return f.schema.AdditionalProperties == nil || f.schema.MaxProperties != nil
	},
	"is a string with a bound, an enumeration or a format": func(f field) bool {
		return f.schema.Type != "string" || f.schema.MaxLength != nil || len(f.schema.Enum) > 0 || f.schema.Format == "date-time" ||
			boundedByRule[mapOf(f.path)]
	},
	"is an integer of a known width": func(f field) bool {
		return f.schema.Type != "integer" || f.schema.Format == "int32" || f.schema.Format == "int64"
	},
	"is, in the spec, an integer with bounds": func(f field) bool {
		return f.schema.Type != "integer" || !strings.HasPrefix(f.path, "spec.") || f.schema.Minimum != nil && f.schema.Maximum != nil
	},
	"has, in the spec, a default that its description tells": func(f field) bool {
		if f.schema.Default == nil || !strings.HasPrefix(f.path, "spec.") {
			return true
		}
		return strings.Contains(f.schema.Description, "Defaults to "+strings.TrimSuffix(string(f.schema.Default.Raw), "\n")) ||
			strings.Contains(f.schema.Description, "Defaults to "+strings.Trim(string(f.schema.Default.Raw), `"`))
	},
	"is no boolean where a third state may come: what takes part, and how far a removal is, are words": func(f field) bool {
		return f.schema.Type != "boolean" || !slices.Contains([]string{"online", "removing", "removable"}, f.name())
	},
	"has the name that other kinds have for the same thing": func(f field) bool {
		// A slot is no instance; when something is formatted is a formatPolicy, and how, a format.
		return f.name() != "instance" && (f.name() != "format" || f.schema.Type == "object")
	},
	"begins, in kubectl explain, with a sentence of at most 25 words": func(f field) bool {
		first := sentenceEnd.Split(f.schema.Description, 2)[0]
		return len(strings.Fields(first)) <= 25
	},
	"has rules with a sentence for the user, who can't read CEL": func(f field) bool {
		return !slices.ContainsFunc(f.schema.XValidations, func(r apiextensionsv1.ValidationRule) bool { return r.Message == "" })
	},
}

// sentenceEnd ends a sentence of a description. A dot inside of a number or a path ends none.
var sentenceEnd = regexp.MustCompile(`[a-zA-Z0-9)\]"}][.](\s|$)`)

// templates are the specs, and patches of specs, of what a BenchmarkSuite makes: its controller has the API server check them first.
var templates = map[string]bool{"spec.fileSystem": true, "spec.variants[].fileSystem": true, "spec.variants[].run": true, "spec.runs[].spec": true}

// boundedByRule are the maps whose rule bounds the length of their values.
var boundedByRule = map[string]bool{"nodeSelector": true, "labels": true, "annotations": true}

// mapOf is the name of the map that a value belongs to.
func mapOf(path string) string {
	path, isValue := strings.CutSuffix(path, "{}")
	if !isValue {
		return ""
	}
	return path[strings.LastIndex(path, ".")+1:]
}

func TestEveryFieldOfTheAPI(t *testing.T) {
	for sentence, holds := range conventions {
		t.Run(sentence, func(t *testing.T) {
			for _, crd := range crds(t) {
				for _, f := range fields(crd) {
					if !kubernetesOwn.MatchString(f.path) && !holds(f) {
						t.Errorf("%s %s does not: %q", crd.Spec.Names.Kind, f.path, f.schema.Description)
					}
				}
			}
		})
	}
}

// controller-gen drops a line of a description that begins with a plus sign, as it drops a marker.
func TestEveryLineThatLooksLikeAMarkerIsOne(t *testing.T) {
	g := NewWithT(t)
	marker := regexp.MustCompile(`^\+(optional|required|listType=\w+|listMapKey=\w+|kubebuilder:[a-z]+.*)$`)
	files, err := filepath.Glob("*_types.go")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(files).NotTo(BeEmpty())
	for _, file := range files {
		text, err := os.ReadFile(file)
		g.Expect(err).NotTo(HaveOccurred())
		for line := range strings.Lines(string(text)) {
			if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok && strings.HasPrefix(comment, "+") {
				g.Expect(comment).To(MatchRegexp(marker.String()), file)
			}
		}
	}
}

func TestEveryTypeBelongsToAKind(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob("*_types.go")
	g.Expect(err).NotTo(HaveOccurred())
	names, uses := map[string]string{}, map[string][]string{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		g.Expect(err).NotTo(HaveOccurred())
		ast.Inspect(parsed, func(n ast.Node) bool {
			declared, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			names[declared.Name.Name] = file
			ast.Inspect(declared.Type, func(n ast.Node) bool {
				if used, ok := n.(*ast.Ident); ok {
					uses[declared.Name.Name] = append(uses[declared.Name.Name], used.Name)
				}
				return true
			})
			return false
		})
	}
	var reach func(name string)
	reach = func(name string) {
		if _, known := names[name]; !known {
			return
		}
		delete(names, name)
		for _, used := range uses[name] {
			reach(used)
		}
	}
	for _, crd := range crds(t) {
		reach(crd.Spec.Names.ListKind)
	}
	g.Expect(names).To(BeEmpty(), "no kind has these")
}

// The name of a type or a tool is also the name of the member with its settings. Names of types are those of their makers; members are in
// small letters.
func TestEachTypeAndEachToolIsSpelledAsTheMemberWithItsSettings(t *testing.T) {
	g := NewWithT(t)
	tagged := map[string]string{"FileSystem": "type", "BenchmarkRun": "tool"}
	for _, crd := range crds(t) {
		tag, found := tagged[crd.Spec.Names.Kind]
		if !found {
			continue
		}
		delete(tagged, crd.Spec.Names.Kind)
		spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		g.Expect(spec.Properties[tag].Enum).NotTo(BeEmpty())
		for _, value := range spec.Properties[tag].Enum {
			name := strings.Trim(string(value.Raw), `"`)
			if tag == "type" {
				name = strings.ToLower(name)
			}
			g.Expect(spec.Properties).To(HaveKey(name), "spec.%s %s", tag, value.Raw)
		}
	}
	g.Expect(tagged).To(BeEmpty())
}

// A kind without a spec is an observation: it requests nothing, so it has neither an observed generation nor a condition.
func observation(crd apiextensionsv1.CustomResourceDefinition) bool {
	_, asked := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	return !asked
}

// selectable are the fields of the spec that objects of a kind can be selected by. Of BenchmarkSuites there are few, and a NodeInventory
// has the name of its node.
var selectable = map[string][]string{
	"FileSystem": {"type"}, "FileSystemNode": {"fileSystem.name", "node"}, "StorageTarget": {"fileSystem.name", "role", "storagePool", "node"},
	"BenchmarkRun": {"target.fileSystem.name", "target.persistentVolumeClaim.claimName", "target.storageClass.name", ".status.tool"},
}

func TestEveryKind(t *testing.T) {
	for _, crd := range crds(t) {
		version := crd.Spec.Versions[0]
		status := version.Schema.OpenAPIV3Schema.Properties["status"]
		checks := map[string]func(g *WithT){
			"is in the group and version of the package, served and stored": func(g *WithT) {
				g.Expect(crd.Spec.Group).To(Equal("parallelfs.dev"))
				g.Expect(version.Name).To(Equal("v1alpha1"))
				g.Expect(version.Served && version.Storage).To(BeTrue())
			},
			"has a short name of ours, and is found by our category unless it has an object for each disk or node": func(g *WithT) {
				g.Expect(crd.Spec.Names.ShortNames).To(ConsistOf(HavePrefix("pfs")))
				if kind := crd.Spec.Names.Kind; kind == "StorageTarget" || kind == "NodeInventory" || kind == "FileSystemNode" {
					g.Expect(crd.Spec.Names.Categories).To(BeEmpty(), "kubectl get parallelfs would print thousands")
				} else {
					g.Expect(crd.Spec.Names.Categories).To(ConsistOf("parallelfs"))
				}
			},
			"can be selected by what tells its objects apart": func(g *WithT) {
				known := map[string]bool{}
				for _, f := range fields(crd) {
					known["."+f.path] = true
				}
				var paths []string
				for _, field := range version.SelectableFields {
					g.Expect(known).To(HaveKey(field.JSONPath))
					paths = append(paths, strings.TrimPrefix(field.JSONPath, ".spec."))
				}
				g.Expect(paths).To(ConsistOf(selectable[crd.Spec.Names.Kind]))
			},
			"is described": func(g *WithT) {
				g.Expect(version.Schema.OpenAPIV3Schema.Description).To(HavePrefix(crd.Spec.Names.Kind + " is "))
			},
			"has a status that only its controller writes": func(g *WithT) {
				g.Expect(version.Subresources).NotTo(BeNil())
				g.Expect(version.Subresources.Status).NotTo(BeNil())
			},
			"prints only what there is": func(g *WithT) {
				known := map[string]bool{"metadata.creationTimestamp": true}
				for _, f := range fields(crd) {
					known[strings.ReplaceAll(f.path, "[]", "")] = true
				}
				for _, column := range version.AdditionalPrinterColumns {
					path, rest, _ := strings.Cut(strings.TrimPrefix(column.JSONPath, "."), "[?(")
					if _, last, found := strings.Cut(rest, ")]"); found {
						path += last
					}
					g.Expect(known).To(HaveKey(path), column.Name)
				}
			},
		}
		asked := map[string]func(g *WithT){
			"belongs to a namespace": func(g *WithT) {
				g.Expect(crd.Spec.Scope).To(Equal(apiextensionsv1.NamespaceScoped))
			},
			"requires its spec": func(g *WithT) {
				g.Expect(version.Schema.OpenAPIV3Schema.Required).To(ConsistOf("spec"))
			},
			"says which generation its status is about": func(g *WithT) {
				g.Expect(status.Properties).To(HaveKeyWithValue("observedGeneration", HaveField("Format", "int64")))
			},
			"has conditions, each type once": func(g *WithT) {
				g.Expect(status.Properties).To(HaveKey("conditions"))
				conditions := status.Properties["conditions"]
				g.Expect(conditions.XListType).To(HaveValue(Equal("map")))
				g.Expect(conditions.XListMapKeys).To(ConsistOf("type"))
			},
			"prints its age, its condition's reason, and the message when asked for more": func(g *WithT) {
				columns := version.AdditionalPrinterColumns
				g.Expect(columns).To(ContainElements(
					And(HaveField("Name", "Age"), HaveField("JSONPath", ".metadata.creationTimestamp")),
					And(HaveField("Name", "Reason"), HaveField("Priority", int32(0))),
					And(HaveField("Name", "Message"), HaveField("Priority", int32(1)))))
			},
		}
		if !observation(crd) {
			maps.Copy(checks, asked)
		}
		for sentence, check := range checks {
			t.Run(crd.Spec.Names.Kind+"/"+sentence, func(t *testing.T) { check(NewWithT(t)) })
		}
	}
}
