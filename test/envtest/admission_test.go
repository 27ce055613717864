//go:build envtest

// Package envtest_test tests what the API server accepts and refuses, and the error messages for users.
package envtest_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"parallelfs.dev/operator/test/envtest/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) { apiserver.Run(m, &server) }

// refusal is one manifest that the API server must not accept.
type refusal struct {
	// change is a merge patch in YAML (RFC 7386: null removes) for an accepted manifest, or several, separated by ---.
	change string
	// before, if set, is another such patch for the object before the update by change.
	before string
	// field is the field in the error, with [] for any item of a list and {} for any value of a map.
	field string
	// says is part of the message for that field.
	says string
}

// refusals holds the refusals of one kind, by a sentence that describes the fault.
type refusals map[string]refusal

// join adds the rows of others, whose sentences must be different.
func (r refusals) join(others ...refusals) refusals {
	for _, other := range others {
		for sentence, row := range other {
			if _, twice := r[sentence]; twice {
				panic("two refusals are called: " + sentence)
			}
			r[sentence] = row
		}
	}
	return r
}

func TestTheAPIServerRefuses(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	for kind, rows := range allRefusals {
		for _, sentence := range slices.Sorted(maps.Keys(rows)) {
			row := rows[sentence]
			t.Run(kind+"/"+sentence, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				var err error
				if row.before == "" {
					object := manifest(t, namespace, goodManifests[kind], row.change)
					err = server.Client.Create(t.Context(), object, client.DryRunAll)
				} else {
					object := manifest(t, namespace, goodManifests[kind], row.before, "metadata: {name: null, generateName: update-}")
					createWithStatus(t, object)
					object.Object = changed(t, object.Object, row.change)
					err = server.Client.Update(t.Context(), object, client.DryRunAll)
				}
				g.Expect(err).To(HaveOccurred(), "it was accepted")
				g.Expect(causes(t, err)).To(ContainElement(SatisfyAll(
					HaveField("Field", Equal(row.field)), HaveField("Message", ContainSubstring(row.says)))), err.Error())
			})
		}
	}
}

// createWithStatus creates an object, and then its status if there is one.
func createWithStatus(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	g := NewWithT(t)
	status, has := object.Object["status"]
	g.Expect(server.Client.Create(t.Context(), object)).To(Succeed())
	if has {
		object.Object["status"] = status
		g.Expect(server.Client.Status().Update(t.Context(), object)).To(Succeed())
	}
}

func TestTheAPIServerAccepts(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	for kind, rows := range allAccepted {
		for _, sentence := range slices.Sorted(maps.Keys(rows)) {
			t.Run(kind+"/"+sentence, func(t *testing.T) {
				t.Parallel()
				object := manifest(t, namespace, goodManifests[kind], rows[sentence])
				NewWithT(t).Expect(server.Client.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
			})
		}
	}
}

func TestTheAPIServerAcceptsTheChange(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	for kind, rows := range allChanges {
		for _, sentence := range slices.Sorted(maps.Keys(rows)) {
			t.Run(kind+"/"+sentence, func(t *testing.T) {
				t.Parallel()
				g := NewWithT(t)
				object := manifest(t, namespace, goodManifests[kind], "metadata: {name: null, generateName: change-}")
				g.Expect(server.Client.Create(t.Context(), object)).To(Succeed())
				object.Object = changed(t, object.Object, rows[sentence])
				g.Expect(server.Client.Update(t.Context(), object)).To(Succeed())
				g.Expect(object.GetGeneration()).To(Equal(int64(2)), "the change did not arrive in the spec")
			})
		}
	}
}

// The API server aborts a rule that takes too long, and would then refuse every change of an object that it has accepted.
func TestTheLargestObjectsCanStillBeChanged(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	for name, c := range map[string]struct{ kind, made, change string }{
		"a FileSystem of directories": {"FileSystem", largest["FileSystem"] + "\n---\n" + largestBackups, clients("/mnt/scratch")},
		"a FileSystem of devices":     {"FileSystem", largestOfDevices, clients("/mnt/scratch")},
		"a BeeGFS":                    {"BeeGFS", largestBeeGFS, clients("/mnt/scratch")},
		"a BenchmarkRun":              {"BenchmarkRun", largest["BenchmarkRun"], "spec: {suspend: true}"},
		"a FileSystemNode":            {"FileSystemNode", largest["FileSystemNode"], "spec: {fileSystem: {uid: 22-22}}"},
		"a StorageTarget":             {"StorageTarget", largest["StorageTarget"], "spec: {remove: true}"},
		"a Lustre":                    {"Lustre", largestLustre, lustreChanges["a parameter is set"]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			object := manifest(t, namespace, goodManifests[c.kind], c.made, "metadata: {name: null, generateName: large-}")
			g.Expect(server.Client.Create(t.Context(), object)).To(Succeed())
			object.Object = changed(t, object.Object, c.change)
			g.Expect(server.Client.Update(t.Context(), object)).To(Succeed())
		})
	}
}

func TestTheAPIServerFillsInTheDefaults(t *testing.T) {
	t.Parallel()
	emptied := map[string]string{"BeeGFS": beeOwnPool("striping: {}")}
	namespace := server.Namespace(t.Context(), t)
	for kind, want := range map[string]map[string]any{
		"FileSystem": {
			"metadataServers.instancesPerNode": int64(1), "provisioning.formatPolicy": "Approved", "deletionPolicy": "Retain",
		},
		"BeeGFS": {
			"beegfs.targetChooser": "Randomized", "beegfs.rdma": "Auto", "storagePools[0].beegfs.striping.chunkSize": "512Ki",
			"storagePools[0].beegfs.striping.targetsPerFile": int64(4),
		},
		"Lustre": {"lustre.basePort": int64(9700), "lustre.directories.mdtsPerDirectory": int64(1), "lustre.directories.roundRobinDepth": int64(3)},
		"BenchmarkRun": {
			"processes": int64(1), "repetitions": int64(1), "statistic": "Mean",
			"iozone.mode": "SingleClient", "iozone.recordSize": "64Ki", "iozone.fileSize": "1Gi",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			object := manifest(t, namespace, goodManifests[kind], emptied[kind])
			g.Expect(server.Client.Create(t.Context(), object, client.DryRunAll)).To(Succeed())
			for path, value := range want {
				g.Expect(at(object.Object["spec"], path)).To(Equal(value), path)
			}
		})
	}
}

func TestTheAPIServerAcceptsEveryManifestOfTheProject(t *testing.T) {
	t.Parallel()
	namespace := server.Namespace(t.Context(), t)
	var files []string
	for _, pattern := range []string{
		"../../config/samples/*.yaml", "../../benchmarks/experiments/*/*.yaml",
		"../../docs/*.md", "../../docs/spec/*.md",
	} {
		found, err := filepath.Glob(pattern)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		files = append(files, found...)
	}
	seen := map[string]bool{}
	for _, file := range files {
		t.Run(strings.TrimPrefix(filepath.ToSlash(file), "../../"), func(t *testing.T) {
			g := NewWithT(t)
			text, err := os.ReadFile(file)
			g.Expect(err).NotTo(HaveOccurred())
			if strings.HasSuffix(file, ".md") {
				text = []byte(strings.Join(yamlBlocks(string(text)), "\n---\n"))
			}
			for _, document := range documents(string(text)) {
				object := &unstructured.Unstructured{Object: parse(t, document)}
				switch _, isSpec := object.Object["spec"]; {
				case len(object.Object) == 0:
					continue
				case object.GetKind() == "" && isSpec: // a part of a FileSystem in a document about BeeGFS
					object = manifest(t, namespace, goodManifests["BeeGFS"], document)
				case object.GetKind() == "": // values of the chart
					continue
				}
				if object.GetKind() != "Namespace" && object.GetKind() != "NodeInventory" {
					object.SetNamespace(namespace)
				}
				g.Expect(server.Client.Create(t.Context(), object, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
				seen[object.GetKind()] = true
			}
		})
	}
	NewWithT(t).Expect(seen).To(And(HaveKey("FileSystem"), HaveKey("BenchmarkRun")))
}

// yamlBlocks returns the examples in a document.
func yamlBlocks(markdown string) []string {
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```yaml\n(.*?)\n```").FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, match[1])
	}
	return blocks
}

// manifest returns a manifest with changes, in a namespace.
func manifest(t testing.TB, namespace, text string, changes ...string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{Object: changed(t, map[string]any{}, slices.Concat([]string{text}, changes)...)}
	out.SetNamespace(namespace)
	return out
}

// changed returns an object after merge patches.
func changed(t testing.TB, object map[string]any, changes ...string) map[string]any {
	t.Helper()
	for _, change := range changes {
		for _, patch := range documents(change) {
			object = merge(object, parse(t, patch)).(map[string]any)
		}
	}
	return object
}

// documents splits a YAML file into documents.
func documents(text string) []string { return regexp.MustCompile(`(?m)^---$`).Split(text, -1) }

// parse parses YAML with whole numbers in the form of the API machinery.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	json, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	if string(json) == "null" {
		return map[string]any{}
	}
	var out unstructured.Unstructured
	if err := out.UnmarshalJSON(json); err != nil && !strings.Contains(err.Error(), "Kind") {
		t.Fatalf("%v:\n%s", err, text)
	}
	return out.Object
}

// merge applies a merge patch as RFC 7386 defines it.
func merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object = maps.Clone(object)
	for name, change := range changes {
		if change == nil {
			delete(object, name)
		} else {
			object[name] = merge(object[name], change)
		}
	}
	return object
}

// at finds the value at a path such as storagePools[0].copies.
func at(value any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		name, index, isList := strings.Cut(name, "[")
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
		if isList {
			var i int
			if _, err := fmt.Sscanf(index, "%d]", &i); err != nil {
				panic(err)
			}
			value = value.([]any)[i]
		}
	}
	return value
}

var (
	listIndex = regexp.MustCompile(`\[\d+\]`)
	optionKey = regexp.MustCompile(`^(spec\.lustre\.parameters|spec\.(?:moosefs|beegfs)\.config\.(?:management|metadata|storage|client)|spec\.moosefs\.metaloggers\.config|` +
		`spec\.pods\.(?:labels|annotations|resources\.(?:[A-Za-z]+\.)?(?:requests|limits))|spec\.members\[\]\.(?:targets\[\]\.)?(?:variables|files))[.\[].*$`)
)

// causes returns the causes in the API server's error, with the items of lists as [] and the values of maps as {}.
func causes(t testing.TB, err error) []metav1.StatusCause {
	t.Helper()
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil {
		t.Fatalf("the API server refused it without a field: %v", err)
	}
	out := status.ErrStatus.Details.Causes
	for i := range out {
		out[i].Field = optionKey.ReplaceAllString(listIndex.ReplaceAllString(out[i].Field, "[]"), "$1{}")
	}
	return out
}
