package benchmarkrun

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

func provenanceName(run string) string { return run + "-provenance" }

func decodeProvenance(cm *corev1.ConfigMap) (scope.Provenance, error) {
	var out scope.Provenance
	if err := json.Unmarshal([]byte(cm.Data[scope.ProvenanceKey]), &out); err != nil {
		return out, fmt.Errorf("read %s of ConfigMap %s: %w; delete that ConfigMap to have it made again", scope.ProvenanceKey, cm.Name, err)
	}
	return out, nil
}

// storeProvenance writes the ConfigMap, and replaces the result of an earlier check.
func (r *Reconciler) storeProvenance(ctx context.Context, w *scope.Scope, found scope.Provenance) error {
	text, err := json.Marshal(found)
	if err == nil && len(text) > turns.MaxStored {
		found.Servers, found.Targets = nil, nil
		text, err = json.Marshal(found)
	}
	if err != nil {
		return fmt.Errorf("encode the provenance: %w", err)
	}
	if err := r.writeConfigMap(ctx, w, provenanceName(w.Run.Name), func(cm *corev1.ConfigMap) {
		cm.Data = map[string]string{scope.ProvenanceKey: string(text)}
	}); err != nil {
		return err
	}
	w.Provenance = found
	return nil
}

// writeConfigMap creates or changes a ConfigMap of the run.
func (r *Reconciler) writeConfigMap(ctx context.Context, w *scope.Scope, name string, change func(*corev1.ConfigMap)) error {
	cm := &corev1.ConfigMap{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: w.Run.Namespace, Name: name}, cm)
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.Run.Namespace, Name: name, Labels: children.Labels(w.Run)}}
		if err := controllerutil.SetControllerReference(w.Run, cm, r.Client.Scheme()); err != nil {
			return fmt.Errorf("set the owner of ConfigMap %s: %w", name, err)
		}
		change(cm)
		if err := r.Client.Create(ctx, cm); err != nil {
			return fmt.Errorf("create ConfigMap %s: %w", name, err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if !metav1.IsControlledBy(cm, w.Run) {
		return foreign("ConfigMap", name, w.Run)
	}
	before := cm.DeepCopy()
	change(cm)
	if err := r.Client.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write ConfigMap %s: %w", name, err)
	}
	return nil
}
