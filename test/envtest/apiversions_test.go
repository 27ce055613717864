//go:build envtest

package envtest_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/test/patience"
)

// aged is the kind FileSystem in a group of this test alone, whose schema it changes while others use the real one.
var aged = schema.GroupVersionKind{Group: "aged.example.com", Version: "v1alpha1", Kind: "FileSystem"}

// agedCRD is the CRD of that kind; older has neither spec.nodes nor status.chosen, and so requires what they made optional.
func agedCRD(t *testing.T, older bool) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	for _, crd := range customResources(t) {
		if crd.Spec.Names.Kind != "FileSystem" {
			continue
		}
		crd.TypeMeta = metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"}
		crd.ObjectMeta = metav1.ObjectMeta{Name: "filesystems." + aged.Group}
		crd.Spec.Group, crd.Spec.Names.ShortNames, crd.Spec.Names.Categories = aged.Group, nil, nil
		root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		if spec, status := root.Properties["spec"], root.Properties["status"]; older {
			delete(spec.Properties, "nodes")
			delete(spec.Properties, "defaultStoragePool")
			delete(status.Properties, "chosen")
			spec.Required, spec.XValidations = append(spec.Required, "version"), nil
			root.Properties["spec"], root.Properties["status"] = spec, status
		}
		return &crd
	}
	t.Fatal("there is no CRD of FileSystems")
	return nil
}

// install applies a CRD, and waits until the API server serves its schema.
func install(t *testing.T, namespace string, older bool) {
	t.Helper()
	g := NewWithT(t)
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(agedCRD(t, older))
	g.Expect(err).NotTo(HaveOccurred())
	delete(raw, "status")
	g.Expect(server.Client.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{Object: raw}),
		client.ForceOwnership, client.FieldOwner("helm"))).To(Succeed())
	g.Eventually(func() bool {
		probe := agedObject(namespace, "probe")
		_ = unstructured.SetNestedStringSlice(probe.Object, []string{"n1"}, "spec", "nodes", "names")
		if err := server.Client.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return false
		}
		_, has, _ := unstructured.NestedFieldNoCopy(probe.Object, "spec", "nodes")
		return has != older
	}).WithTimeout(servesSoon).Should(BeTrue())
}

// servesSoon bounds the time in which the API server serves another schema.
var servesSoon = patience.Bound(time.Minute)

func agedObject(namespace, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"type": "MooseFS", "version": "4.57.5",
		"metadataServers": map[string]any{"nodeSelector": map[string]any{"m": ""}, "targets": map[string]any{"directories": []any{"/data/metadata"}}},
		"storagePools": []any{map[string]any{
			"name": "ssd", "nodeSelector": map[string]any{"s": ""}, "targets": map[string]any{"directories": []any{"/data/ssd"}},
		}},
	}}}
	object.SetGroupVersionKind(aged)
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}

func TestStoredObjectsOfAnOlderSchemaAreReadByANewerOne(t *testing.T) {
	g := NewWithT(t)
	namespace := server.Namespace(t.Context(), t)
	install(t, namespace, true)
	t.Cleanup(func() {
		g.Expect(client.IgnoreNotFound(server.Client.Delete(context.WithoutCancel(t.Context()), agedCRD(t, true)))).To(Succeed())
	})
	made := agedObject(namespace, "scratch")
	g.Expect(server.Client.Create(t.Context(), made)).To(Succeed())
	_ = unstructured.SetNestedField(made.Object, "4.57.5", "status", "version")
	g.Expect(server.Client.Status().Update(t.Context(), made)).To(Succeed())

	install(t, namespace, false)
	read := func() *unstructured.Unstructured {
		now := agedObject(namespace, "scratch")
		g.Expect(server.Client.Get(t.Context(), client.ObjectKeyFromObject(now), now)).To(Succeed())
		return now
	}
	now := read()
	g.Expect(now.Object["spec"]).To(Equal(made.Object["spec"]), "what was stored is read as it is")
	g.Expect(now.Object["status"]).To(Equal(made.Object["status"]))

	newer := now.DeepCopy()
	_ = unstructured.SetNestedStringSlice(newer.Object, []string{"n1", "n2"}, "spec", "nodes", "names")
	g.Expect(server.Client.Patch(t.Context(), newer, client.MergeFrom(now))).To(Succeed())
	written := newer.DeepCopy()
	_ = unstructured.SetNestedField(written.Object, int64(2), "status", "chosen", "copies")
	g.Expect(server.Client.Status().Patch(t.Context(), written, client.MergeFrom(newer))).To(Succeed())

	// The types of an older operator lack both fields, and drop them on reading.
	before := read()
	unstructured.RemoveNestedField(before.Object, "spec", "nodes")
	unstructured.RemoveNestedField(before.Object, "status", "chosen")
	after := before.DeepCopy()
	_ = unstructured.SetNestedField(after.Object, int64(7), "status", "observedGeneration")
	g.Expect(server.Client.Status().Patch(t.Context(), after, client.MergeFrom(before))).To(Succeed())
	claimed := before.DeepCopy()
	claimed.SetResourceVersion("")
	old := claimed.DeepCopy()
	claimed.SetFinalizers([]string{"parallelfs.dev/test"})
	g.Expect(server.Client.Patch(t.Context(), claimed, client.MergeFrom(old))).To(Succeed())
	kept := read()
	g.Expect(at(kept.Object["spec"], "nodes.names")).To(Equal([]any{"n1", "n2"}), "a patch of an older operator leaves it alone")
	g.Expect(at(kept.Object["status"], "chosen.copies")).To(Equal(int64(2)))
	g.Expect(at(kept.Object["status"], "observedGeneration")).To(Equal(int64(7)))

	// A list is one value for a merge patch: what items of it have, and the older operator does not, is gone when it changes the list.
	lists := func(items ...any) map[string]any {
		return map[string]any{"status": map[string]any{"storagePools": items}}
	}
	patch := func(content map[string]any) {
		text, err := json.Marshal(content)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(server.Client.Status().Patch(t.Context(), read(), client.RawPatch("application/merge-patch+json", text))).To(Succeed())
	}
	patch(lists(map[string]any{"name": "ssd", "slot": int64(0), "capacity": "1TiB"}))
	patch(lists(map[string]any{"name": "ssd", "slot": int64(1)}))
	g.Expect(at(read().Object["status"], "storagePools[0]")).To(Equal(map[string]any{"name": "ssd", "slot": int64(1)}))

	// Server-side apply removes what the same owner no longer applies, and nothing of others.
	apply := func(status map[string]any) {
		intent := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		intent.SetGroupVersionKind(aged)
		intent.SetNamespace(namespace)
		intent.SetName("scratch")
		g.Expect(server.Client.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(intent), client.ForceOwnership,
			client.FieldOwner("parallelfs-manager"))).To(Succeed())
	}
	apply(map[string]any{"mountPath": "/mnt/scratch", "chosen": map[string]any{"basePort": int64(9419)}})
	apply(map[string]any{"mountPath": "/mnt/scratch"})
	g.Expect(at(read().Object["status"], "chosen")).To(Equal(map[string]any{"copies": int64(2)}), "docs/api-versions.md names the kinds")

	// The chart's CRDs are templates, so helm rollback applies the older ones. Nothing is lost before a write: with the newer CRDs, all is back.
	stored := read()
	install(t, namespace, true)
	_, has, _ := unstructured.NestedFieldNoCopy(read().Object, "spec", "nodes")
	g.Expect(has).To(BeFalse(), "an older operator reads what its schema has")
	install(t, namespace, false)
	g.Expect(read()).To(Equal(stored), "a rollback that was taken back before a write")

	// An object that leaves out what the older schema requires stays as it is: an older operator can write its metadata and its status.
	short := agedObject(namespace, "short")
	unstructured.RemoveNestedField(short.Object, "spec", "version")
	g.Expect(server.Client.Create(t.Context(), short)).To(Succeed())
	install(t, namespace, true)
	merge := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	g.Expect(server.Client.Status().Patch(t.Context(), short, merge(`{"status":{"observedGeneration":1}}`))).To(Succeed())
	g.Expect(server.Client.Patch(t.Context(), short, merge(`{"metadata":{"finalizers":["parallelfs.dev/test"]}}`))).To(Succeed())
	g.Expect(server.Client.Patch(t.Context(), short, merge(`{"metadata":{"finalizers":null}}`))).To(Succeed())

	// An older schema loses the values: at the next write, the API server drops fields that the schema lacks.
	released := read()
	g.Expect(server.Client.Patch(t.Context(), released, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
	install(t, namespace, false)
	dropped := read()
	_, has, _ = unstructured.NestedFieldNoCopy(dropped.Object, "spec", "nodes")
	g.Expect(has).To(BeFalse(), "docs/api-versions.md says how to take an operator back without its CRDs")
}
