package benchmarkrun

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
)

// baselinesKept is how many results of other runs are cached. Each has no samples, and takes up to about 1 MiB.
const baselinesKept = 32

// knownBaseline holds the results of another run from one version of their ConfigMap.
type knownBaseline struct {
	version string
	run     results.Run
}

// gatherBaseline reads the results to compare with. The results of another run are large and not in the client's cache, so they are read
// again only after they have changed.
func (r *Reconciler) gatherBaseline(ctx context.Context, w *scope.Scope) error {
	spec := w.Run.Spec.Baseline
	switch {
	case spec == nil || w.Run.Status.CompletionTime != nil && w.Run.Status.ObservedGeneration == w.Run.Generation:
		return nil
	case spec.Published != "" && r.Published == nil:
		w.BaselineProblem = "this operator holds no published tables"
		return nil
	case spec.Published != "":
		table, err := r.Published(spec.Published, spec.Variant)
		if err != nil {
			w.BaselineProblem = v1alpha1.Cut("spec.baseline.published: "+err.Error(), scope.MaxBaseline)
			return nil //nolint:nilerr // the status reports it, and the run continues
		}
		w.Baseline, w.BaselineOf = &table, spec.Published
		if spec.Variant != "" {
			w.BaselineOf += ", " + spec.Variant
		}
		return nil
	}
	key := types.NamespacedName{Namespace: w.Run.Namespace, Name: results.ConfigMapOfRun(spec.Run)}
	cm := &corev1.ConfigMap{}
	err := r.Client.Get(ctx, key, cm)
	if apierrors.IsNotFound(err) {
		w.BaselineProblem = fmt.Sprintf("spec.baseline.run: BenchmarkRun %s has no results (there is no ConfigMap %s)", spec.Run, key.Name)
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", key.Name, err)
	}
	r.once.Do(func() { r.baselines = lru.New(baselinesKept) })
	var known knownBaseline
	if cached, ok := r.baselines.Get(key); ok {
		known, _ = cached.(knownBaseline)
	}
	if known.version != cm.ResourceVersion {
		if err := r.Reader.Get(ctx, key, cm); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read ConfigMap %s: %w", key.Name, err)
		}
		document, err := results.Decode(cm.BinaryData[results.FileJSON])
		if err != nil {
			w.BaselineProblem = v1alpha1.Cut(
				fmt.Sprintf("spec.baseline.run: the results of BenchmarkRun %s can't be read: %v", spec.Run, err), scope.MaxBaseline)
			return nil
		}
		for i := range document.Points {
			document.Points[i].Attempts = nil // a comparison needs no samples, which are the largest part
		}
		known = knownBaseline{version: cm.ResourceVersion, run: document}
		r.baselines.Add(key, known)
	}
	w.Baseline, w.BaselineOf = &known.run, spec.Run
	return nil
}
