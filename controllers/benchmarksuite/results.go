package benchmarksuite

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// maxResults bounds the ConfigMap of the results, in bytes: the API server takes 1 MiB of a ConfigMap.
const maxResults = 900 << 10

// found is the content of the results.
type found struct {
	figures []stats.Figure
	// name of the ConfigMap, and note about the parts that were left out.
	name, note string
}

// keep writes the results of all ended runs, including the run of this step, to the ConfigMap of the suite. It may be repeated at any time:
// the same runs give the same results. A ConfigMap that can't hold them does not stop the suite: the runs have their own.
func (r *Reconciler) keep(ctx context.Context, w *world, d decision) (*found, error) {
	kept := &corev1.ConfigMap{}
	name := results.ConfigMapOfSuite(w.suite.Name)
	there, err := r.configMap(ctx, w, name, kept)
	if err != nil {
		return nil, err
	}
	foreign := there && !metav1.IsControlledBy(kept, w.suite)
	if foreign {
		kept = &corev1.ConfigMap{}
	}
	document := results.Suite{Format: results.Format, Name: w.suite.Name, Namespace: w.suite.Namespace, UID: string(w.suite.UID)}
	before := earlier(ctx, kept)
	for i := range w.suite.Spec.Variants {
		status := w.variant(i)
		if d.next != nil && d.variant == i {
			status = *d.next
		}
		variant := results.Variant{Name: status.Name, Scale: w.suite.Spec.Variants[i].Scale}
		for j := range status.Runs {
			e := &status.Runs[j]
			if !over(e) {
				continue
			}
			run, err := r.document(ctx, w, e, before[[2]string{status.Name, e.Name}])
			if err != nil {
				return nil, err
			}
			if run != nil {
				variant.Runs = append(variant.Runs, results.SuiteRun{Name: e.Name, Run: *run})
			}
		}
		if len(variant.Runs) > 0 {
			document.Variants = append(document.Variants, variant)
		}
	}
	out := &found{figures: stats.Table(document)}
	if len(document.Variants) == 0 {
		return out, nil
	}
	if foreign {
		out.note = fmt.Sprintf("ConfigMap %s belongs to another owner, so the complete results are only in the ConfigMaps of the runs", name)
		return out, nil
	}
	packed, err := results.PackSuite(document, maxResults)
	if err != nil {
		out.note = fmt.Sprintf("the complete results are in the ConfigMaps of the runs only: %v", err)
		return out, nil
	}
	out.name, out.note = name, packed.Note
	return out, r.writeResults(ctx, w.suite, kept, there, packed)
}

// earlier returns the runs that were written before, by variant and run.
func earlier(ctx context.Context, kept *corev1.ConfigMap) map[[2]string]*results.Run {
	out := map[[2]string]*results.Run{}
	data := kept.BinaryData[results.FileJSON]
	if len(data) == 0 {
		return out
	}
	document, err := results.DecodeSuite(data)
	if err != nil {
		// The existing runs complete the results again.
		log.FromContext(ctx).Error(err, "The results that were kept can't be read, and are made again", "configmap", kept.Name)
		return out
	}
	for _, v := range document.Variants {
		for _, run := range v.Runs {
			out[[2]string{v.Name, run.Name}] = &run.Run
		}
	}
	return out
}

// document returns a run's complete results, else those that were written before, else those in its status. It is nil when there are none.
func (r *Reconciler) document(ctx context.Context, w *world, e *v1alpha1.SuiteRunStatus, before *results.Run) (*results.Run, error) {
	run := w.runs[e.BenchmarkRun]
	if run != nil && !metav1.IsControlledBy(run, w.suite) {
		run = nil
	}
	if before != nil && (run == nil || before.UID == string(run.UID) && len(before.Points) > 0) {
		return before, nil
	}
	if run == nil {
		return nil, nil
	}
	var cm corev1.ConfigMap
	there, err := r.configMap(ctx, w, results.ConfigMapOfRun(run.Name), &cm)
	if err != nil {
		return nil, err
	}
	if data := cm.BinaryData[results.FileJSON]; there && metav1.IsControlledBy(&cm, run) && len(data) > 0 {
		document, err := results.Decode(data)
		if err == nil && document.UID == string(run.UID) {
			return &document, nil
		}
		log.FromContext(ctx).Info("The complete results of a run can't be read; its status is taken", "configmap", cm.Name, "error", fmt.Sprint(err))
	}
	document := results.FromStatus(run)
	return &document, nil
}

// configMap reads past the cache, which holds no binary data.
func (r *Reconciler) configMap(ctx context.Context, w *world, name string, into *corev1.ConfigMap) (bool, error) {
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: w.suite.Namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	return true, nil
}

func (r *Reconciler) writeResults(ctx context.Context, suite *v1alpha1.BenchmarkSuite, kept *corev1.ConfigMap, there bool,
	packed results.Packed) error {
	cm := kept.DeepCopy()
	cm.Namespace, cm.Name = suite.Namespace, results.ConfigMapOfSuite(suite.Name)
	cm.Labels = map[string]string{v1alpha1.LabelBenchmarkSuite: suite.Name, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	cm.Data, cm.BinaryData = nil, packed.Files
	if err := controllerutil.SetControllerReference(suite, cm, r.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of ConfigMap %s: %w", cm.Name, err)
	}
	var err error
	if there {
		err = r.Client.Patch(ctx, cm, client.MergeFromWithOptions(kept, client.MergeFromWithOptimisticLock{}))
	} else {
		err = r.Client.Create(ctx, cm)
	}
	if err != nil {
		return fmt.Errorf("write ConfigMap %s with the results: %w", cm.Name, err)
	}
	return nil
}

// maxTable is the number of figures that the status holds.
const maxTable = 512

// tableOf returns the table of the status, and a note about the figures that it leaves out.
func tableOf(figures []stats.Figure) ([]v1alpha1.SuiteFigure, string) {
	shortened := ""
	if len(figures) > maxTable {
		shortened = "the table holds the first " + strconv.Itoa(maxTable) + " of " + strconv.Itoa(len(figures)) + " figures"
		figures = figures[:maxTable]
	}
	var out []v1alpha1.SuiteFigure
	for _, f := range figures {
		out = append(out, f.Status())
	}
	return out, shortened
}
