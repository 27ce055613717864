//go:build scale

package main

import (
	"context"
	"fmt"
	"maps"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// idleSizes notes the largest objects of a healthy filesystem.
func (r *run) idleSizes(ctx context.Context) error {
	if err := r.sizes(ctx); err != nil {
		return err
	}
	maps.Copy(r.result.Largest, r.result.AtWorst)
	return nil
}

// sizes finds the largest object of each kind that the operator writes, as JSON with the fields that the API server adds, and notes those
// that are larger than all before.
func (r *run) sizes(ctx context.Context) error {
	kinds := []metav1.GroupVersionKind{
		{Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"}, {Group: "apps", Version: "v1", Kind: "DaemonSet"},
		{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
		{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	}
	for name := range r.cluster.scheme.KnownTypes(v1alpha1.GroupVersion) {
		kinds = append(kinds, metav1.GroupVersionKind{Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Kind: name})
	}
	for _, kind := range kinds {
		if !isKind(r.cluster.scheme, kind) {
			continue
		}
		bytes, err := r.largest(ctx, kind)
		if err != nil {
			return err
		}
		if bytes > 0 {
			r.result.AtWorst[kind.Kind] = max(r.result.AtWorst[kind.Kind], math.Round(float64(bytes)/102.4)/10)
		}
	}
	return nil
}

// largest is the number of bytes of the largest object of a kind, 0 when there is none.
func (r *run) largest(ctx context.Context, kind metav1.GroupVersionKind) (bytes int, err error) {
	const page = 500
	for next := ""; ; {
		list := &unstructured.UnstructuredList{Object: map[string]any{"kind": kind.Kind + "List"}}
		list.SetAPIVersion(metav1.GroupVersion{Group: kind.Group, Version: kind.Version}.String())
		if err := r.person.List(ctx, list, client.Limit(page), client.Continue(next)); err != nil {
			return 0, fmt.Errorf("list objects of the kind %s: %w", kind.Kind, err)
		}
		for i := range list.Items {
			content, err := list.Items[i].MarshalJSON()
			if err != nil {
				return 0, fmt.Errorf("encode an object of the kind %s: %w", kind.Kind, err)
			}
			bytes = max(bytes, len(content))
		}
		if next = list.GetContinue(); next == "" {
			return bytes, nil
		}
	}
}

// isKind is true for a kind of objects that has a list.
func isKind(scheme *runtime.Scheme, kind metav1.GroupVersionKind) bool {
	return scheme.Recognizes(schema.GroupVersionKind{Group: kind.Group, Version: kind.Version, Kind: kind.Kind + "List"})
}
