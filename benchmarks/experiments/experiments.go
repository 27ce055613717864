package experiments

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Experiment is the content of a directory of manifests: a FileSystem and its BenchmarkRuns, or a BenchmarkSuite.
type Experiment struct {
	// Namespace is the manifest of the namespace.
	Namespace  string
	FileSystem *v1alpha1.FileSystem
	Runs       []v1alpha1.BenchmarkRun
	Suite      *v1alpha1.BenchmarkSuite
}

// Variant is one filesystem of an experiment with its runs.
type Variant struct {
	// Name is empty if there is only one variant.
	Name       string
	FileSystem v1alpha1.FileSystem
	Runs       []v1alpha1.BenchmarkRun
}

// Load reads the manifests of an experiment. A field that the API does not have is an error.
func Load(files fs.FS, name string) (Experiment, error) {
	var out Experiment
	manifests, err := fs.Glob(files, path.Join(name, "*.yaml"))
	if err != nil {
		return out, fmt.Errorf("look for the manifests of %s: %w", name, err)
	}
	if len(manifests) == 0 {
		return out, fmt.Errorf("there is no experiment %s", name)
	}
	for _, manifest := range manifests {
		text, err := fs.ReadFile(files, manifest)
		if err != nil {
			return out, fmt.Errorf("read the experiment %s: %w", name, err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			if err := out.add(document); err != nil {
				return out, fmt.Errorf("%s: %w", manifest, err)
			}
		}
	}
	return out, nil
}

func (e *Experiment) add(document string) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
		return fmt.Errorf("read a document: %w", err)
	}
	decode := func(into any) error { return yaml.UnmarshalStrict([]byte(document), into) }
	switch kind.Kind {
	case "Namespace":
		e.Namespace = document
		return nil
	case "FileSystem":
		e.FileSystem = &v1alpha1.FileSystem{}
		return decode(e.FileSystem)
	case "BenchmarkRun":
		e.Runs = append(e.Runs, v1alpha1.BenchmarkRun{})
		return decode(&e.Runs[len(e.Runs)-1])
	case "BenchmarkSuite":
		e.Suite = &v1alpha1.BenchmarkSuite{}
		return decode(e.Suite)
	}
	return fmt.Errorf("an experiment holds no %q", kind.Kind)
}

// Variants returns the filesystems of an experiment with the runs of each, as they are created on a cluster.
func (e Experiment) Variants() ([]Variant, error) {
	if e.Suite == nil {
		return []Variant{{FileSystem: *e.FileSystem, Runs: e.Runs}}, nil
	}
	var out []Variant
	for _, v := range e.Suite.Spec.Variants {
		variant := Variant{Name: v.Name}
		variant.FileSystem.Namespace, variant.FileSystem.Name = e.Suite.Namespace, e.Suite.Name+"-"+v.Name
		if err := merged(e.Suite.Spec.FileSystem, v.FileSystem, &variant.FileSystem.Spec); err != nil {
			return nil, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		for _, r := range e.Suite.Spec.Runs {
			run := v1alpha1.BenchmarkRun{}
			run.Namespace, run.Name = e.Suite.Namespace, variant.FileSystem.Name+"-"+r.Name
			if err := merged(r.Spec, v.Run, &run.Spec); err != nil {
				return nil, fmt.Errorf("variant %s, run %s: %w", v.Name, r.Name, err)
			}
			run.Spec.Target.FileSystem.Name = variant.FileSystem.Name
			variant.Runs = append(variant.Runs, run)
		}
		out = append(out, variant)
	}
	return out, nil
}

// merged decodes an object after applying a merge patch.
func merged(base runtime.RawExtension, patch *runtime.RawExtension, into any) error {
	raw := base.Raw
	if patch != nil {
		var err error
		if raw, err = jsonpatch.MergePatch(base.Raw, patch.Raw); err != nil {
			return fmt.Errorf("apply the merge patch: %w", err)
		}
	}
	return yaml.UnmarshalStrict(raw, into)
}

// changed decodes an object, applies change, and encodes it again.
func changed[T any](raw *runtime.RawExtension, change func(*T)) error {
	var object T
	if err := yaml.UnmarshalStrict(raw.Raw, &object); err != nil {
		return err
	}
	change(&object)
	text, err := json.Marshal(object)
	raw.Raw = text
	return err
}
