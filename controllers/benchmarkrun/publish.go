package benchmarkrun

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/outcomes"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// annotationPublished on the ConfigMap of results is the state of the run when the results were written.
const annotationPublished = "parallelfs.dev/benchmark-published"

// publish writes the ConfigMap of results.
func (r *Reconciler) publish(ctx context.Context, w *scope.Scope, d decision.Decision) error {
	final := w.Final()
	d.Ended = final
	document, err := outcomes.Document(w, d)
	if err != nil {
		return err
	}
	packed, err := results.Pack(document, turns.MaxStored)
	if err != nil {
		return fmt.Errorf("write the complete results: %w", err)
	}
	about := w.ToPublish(final)
	if err := r.writeConfigMap(ctx, w, results.ConfigMapOfRun(w.Run.Name), func(cm *corev1.ConfigMap) {
		cm.Data, cm.BinaryData = nil, packed.Files
		if packed.Note != "" {
			cm.Data = map[string]string{"left-out.txt": packed.Note}
		}
		if cm.Annotations == nil {
			cm.Annotations = map[string]string{}
		}
		cm.Annotations[annotationPublished] = about
	}); err != nil {
		return err
	}
	w.Published = about
	return nil
}
