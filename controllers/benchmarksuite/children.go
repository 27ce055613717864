package benchmarksuite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// maxName is the longest name of a FileSystem and of a BenchmarkRun; admission enforces it.
const maxName = 40

// variantPlan has the objects that the suite makes for one variant.
type variantPlan struct {
	name string
	// fileSystem is the object that is sent, and its spec the decoded form. The API server gets exactly the fields that the user wrote,
	// without Go's zero values.
	fileSystem *unstructured.Unstructured
	spec       v1alpha1.FileSystemSpec
	// runs in the order of the suite.
	runs []*unstructured.Unstructured
}

// refusal is the reason why a suite can't begin.
type refusal struct{ reason, message string }

func invalid(format string, args ...any) *refusal {
	return &refusal{v1alpha1.ReasonInvalidSpec, fmt.Sprintf(format, args...)}
}

// build returns the objects of each variant, or why the spec is invalid.
func build(suite *v1alpha1.BenchmarkSuite, backends backend.Set) ([]variantPlan, *refusal) {
	plans := make([]variantPlan, 0, len(suite.Spec.Variants))
	for i := range suite.Spec.Variants {
		p, refused := buildVariant(suite, &suite.Spec.Variants[i])
		if refused != nil {
			return nil, refused
		}
		plans = append(plans, p)
	}
	return plans, check(suite, plans, backends)
}

func buildVariant(suite *v1alpha1.BenchmarkSuite, variant *v1alpha1.SuiteVariant) (variantPlan, *refusal) {
	p := variantPlan{name: variant.Name}
	content, err := merge(suite.Spec.FileSystem, variant.FileSystem)
	if err != nil {
		return p, invalid("variant %s: spec.fileSystem with spec.variants[%s].fileSystem: %v", variant.Name, variant.Name, err)
	}
	// The suite decides about the disks when it removes the FileSystem.
	content["deletionPolicy"] = string(v1alpha1.DeletionRetain)
	delete(content, "confirmDestroy")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &p.spec); err != nil {
		return p, invalid("variant %s: spec.fileSystem with spec.variants[%s].fileSystem: %v", variant.Name, variant.Name, err)
	}
	p.fileSystem = child(suite, "FileSystem", fileSystemName(suite.Name, variant.Name), content)
	p.fileSystem.SetAnnotations(map[string]string{v1alpha1.AnnotationSuite: string(suite.UID)})
	for i := range suite.Spec.Runs {
		run := &suite.Spec.Runs[i]
		content, err := merge(run.Spec, variant.Run)
		if err != nil {
			return p, invalid("variant %s: spec.runs[%s].spec with spec.variants[%s].run: %v", variant.Name, run.Name, variant.Name, err)
		}
		if err := complete(suite, content, variant.Name, p.fileSystem.GetName()); err != nil {
			return p, invalid("variant %s: spec.runs[%s].spec: %v", variant.Name, run.Name, err)
		}
		made := child(suite, "BenchmarkRun", runName(suite.Name, variant.Name, run.Name), content)
		made.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(suite, v1alpha1.GroupVersion.WithKind("BenchmarkSuite"))})
		p.runs = append(p.runs, made)
	}
	return p, nil
}

// merge applies a JSON merge patch (RFC 7386) to an object.
func merge(base runtime.RawExtension, patch *runtime.RawExtension) (map[string]any, error) {
	merged := base.Raw
	if patch != nil && len(patch.Raw) > 0 {
		var err error
		if merged, err = jsonpatch.MergePatch(base.Raw, patch.Raw); err != nil {
			return nil, fmt.Errorf("apply the merge patch: %w", err)
		}
	}
	// Numbers must come out as the API's own (int64 or float64), which encoding/json alone does not do.
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(slices.Concat([]byte(`{"kind":"Spec","apiVersion":"v1","spec":`), merged, []byte("}"))); err != nil {
		return nil, fmt.Errorf("read what it makes: %w", err)
	}
	content, ok := out.Object["spec"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("it makes no object, but %s", v1alpha1.Cut(string(merged), 64))
	}
	return content, nil
}

// complete sets the fields of a run's spec that the suite owns.
func complete(suite *v1alpha1.BenchmarkSuite, spec map[string]any, variant, fileSystem string) error {
	target, err := object(spec, "target", "target")
	if err != nil {
		return err
	}
	measured, err := object(target, "fileSystem", "target.fileSystem")
	if err != nil {
		return err
	}
	measured["name"] = fileSystem
	delete(spec, "suspend")
	delete(spec, "ttlSecondsAfterFinished")
	if suite.Spec.Baseline != nil && spec["baseline"] == nil {
		spec["baseline"] = map[string]any{"published": suite.Spec.Baseline.Published, "variant": variant}
	}
	if suite.Spec.Results != nil && spec["results"] == nil {
		results, err := runtime.DefaultUnstructuredConverter.ToUnstructured(suite.Spec.Results)
		if err != nil {
			return fmt.Errorf("take over spec.results: %w", err)
		}
		spec["results"] = results
	}
	return nil
}

// object returns the object in a field, and makes it if it is missing.
func object(in map[string]any, field, path string) (map[string]any, error) {
	if in[field] == nil {
		in[field] = map[string]any{}
	}
	found, ok := in[field].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is no object; leave it out, or set target.fileSystem.storagePool", path)
	}
	return found, nil
}

// child is an object that the suite makes.
func child(suite *v1alpha1.BenchmarkSuite, kind, name string, spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	u.SetNamespace(suite.Namespace)
	u.SetName(name)
	u.SetLabels(map[string]string{v1alpha1.LabelBenchmarkSuite: suite.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy})
	return u
}

func fileSystemName(suite, variant string) string { return suite + "-" + variant }

// runName is the name of a variant's run. A name that is too long is cut, and ends with a hash of the whole name.
func runName(suite, variant, run string) string {
	name := suite + "-" + variant + "-" + run
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:4])
	return strings.TrimRight(name[:maxName-1-len(hash)], "-") + "-" + hash
}

// made is true for a FileSystem that the suite made. A copy of its manifest has the annotation too: the uid in the status distinguishes
// them.
func made(suite *v1alpha1.BenchmarkSuite, fs metav1.Object) bool {
	return fs.GetLabels()[v1alpha1.LabelBenchmarkSuite] == suite.Name && fs.GetAnnotations()[v1alpha1.AnnotationSuite] == string(suite.UID)
}
