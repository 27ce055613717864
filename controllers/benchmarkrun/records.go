package benchmarkrun

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// forget removes the raw output from the ConfigMaps of the points. It keeps the records: parameters, samples and telemetry.
func (r *Reconciler) forget(ctx context.Context, w *scope.Scope) error {
	for i := range w.Outputs {
		cm := &w.Outputs[i]
		// The patch needs no read, because the cache holds no raw output. The uid protects another ConfigMap of that name.
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"binaryData":null}`, cm.UID)
		if err := r.Client.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("remove the raw output from ConfigMap %s: %w", cm.Name, err)
		}
	}
	return nil
}

// maxRunRaw bounds the raw output of a run, in bytes as it is stored: etcd holds 2 to 8 GiB for all objects of a cluster. The last
// repetition may exceed it by the limit of one repetition.
const maxRunRaw = 16 << 20

// rawOf returns how many bytes of raw output a ConfigMap has.
func rawOf(cm *corev1.ConfigMap) (sum int) {
	for _, packed := range cm.BinaryData {
		sum += len(packed)
	}
	return sum
}

// bounded returns the raw output that is stored with a record: none if the run has reached its limit.
func bounded(w *scope.Scope, entry *turns.Record, raw *turns.Raw) *turns.Raw {
	sum := 0
	for i := range w.Outputs {
		size, err := strconv.Atoi(w.Outputs[i].Annotations[children.AnnotationRaw])
		if err != nil {
			continue // it was written before sizes were recorded
		}
		sum += size
	}
	if sum < maxRunRaw || raw.Len() == 0 {
		return raw
	}
	entry.Truncated = fmt.Sprintf("none of %d bytes of raw output was kept: the run has %d MiB already", raw.Len(), maxRunRaw>>20)
	return &turns.Raw{}
}

// maxNamespaceRaw bounds the raw output of all runs of a namespace, in bytes as it is stored. Unfinished runs may exceed it by their own
// limits.
const maxNamespaceRaw = 256 << 20

// oldestRaw returns the run whose raw output is removed next: the one that ended first. It returns nil while all runs of the namespace
// together have at most the given number of bytes.
func oldestRaw(runs []v1alpha1.BenchmarkRun, outputs []corev1.ConfigMap, most int) *v1alpha1.BenchmarkRun {
	kept := map[types.UID]*v1alpha1.BenchmarkRun{}
	for i := range runs {
		if runs[i].Status.RawOutputRemoved == nil {
			kept[runs[i].UID] = &runs[i]
		}
	}
	sum, has := 0, map[types.UID]bool{}
	for i := range outputs {
		owner := metav1.GetControllerOf(&outputs[i])
		size, err := strconv.Atoi(outputs[i].Annotations[children.AnnotationRaw])
		if owner == nil || kept[owner.UID] == nil || err != nil || size <= 0 {
			continue
		}
		sum += size
		has[owner.UID] = true
	}
	if sum <= most {
		return nil
	}
	var oldest *v1alpha1.BenchmarkRun
	for id := range has {
		run := kept[id]
		if run.Status.CompletionTime == nil || !run.DeletionTimestamp.IsZero() {
			continue
		}
		if oldest == nil || endedBefore(run, oldest) {
			oldest = run
		}
	}
	return oldest
}

// endedBefore reports whether a run ended before another one. If both ended at once, the name decides.
func endedBefore(run, other *v1alpha1.BenchmarkRun) bool {
	return cmp.Or(run.Status.CompletionTime.Compare(other.Status.CompletionTime.Time), strings.Compare(run.Name, other.Name)) < 0
}

// oldestRawOf returns the run of a namespace whose raw output is removed next.
func (r *Reconciler) oldestRawOf(ctx context.Context, namespace string) (*v1alpha1.BenchmarkRun, error) {
	var runs v1alpha1.BenchmarkRunList
	if err := r.Client.List(ctx, &runs, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list BenchmarkRuns: %w", err)
	}
	var outputs corev1.ConfigMapList
	of := client.HasLabels{v1alpha1.LabelBenchmarkRun}
	if err := r.Client.List(ctx, &outputs, client.InNamespace(namespace), of, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the ConfigMaps of BenchmarkRuns: %w", err)
	}
	return oldestRaw(runs.Items, outputs.Items, maxNamespaceRaw), nil
}

// gatherRaw checks whether the raw output of a run that has ended must be removed because its namespace has too much.
func (r *Reconciler) gatherRaw(ctx context.Context, w *scope.Scope) error {
	if w.Run.Status.CompletionTime == nil || w.Run.Status.RawOutputRemoved != nil {
		return nil
	}
	oldest, err := r.oldestRawOf(ctx, w.Run.Namespace)
	w.RawExceeds = oldest != nil && oldest.UID == w.Run.UID
	return err
}

// add puts a record into the ConfigMap of its point.
func add(cm *corev1.ConfigMap, entry turns.Record, key string, raw *turns.Raw) error {
	if err := entry.AddTo(cm, key, raw); err != nil {
		return err
	}
	if cm.Annotations == nil {
		cm.Annotations = map[string]string{}
	}
	cm.Annotations[children.AnnotationRaw] = strconv.Itoa(rawOf(cm))
	return nil
}

// store writes a record, unless the API server already has one of that turn, which it then returns. It reads from the API server, because
// an outdated cache would let a repetition count twice.
func (r *Reconciler) store(ctx context.Context, w *scope.Scope, entry turns.Record, raw *turns.Raw) (turns.Record, error) {
	run := w.Run
	raw = bounded(w, &entry, raw)
	cm := &corev1.ConfigMap{}
	name := client.ObjectKey{Namespace: run.Namespace, Name: turns.PointName(run.Name, entry.Point)}
	key := func() string {
		lastStep := entry.Step == w.Steps(entry.Point)-1 || entry.Trouble() != ""
		return entry.Turn().Key(w.Ends(entry), lastStep)
	}
	err := r.Reader.Get(ctx, name, cm)
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: children.Labels(run)}}
		if err := controllerutil.SetControllerReference(run, cm, r.Client.Scheme()); err != nil {
			return turns.Record{}, fmt.Errorf("set the owner of ConfigMap %s: %w", name.Name, err)
		}
		if err := add(cm, entry, key(), raw); err != nil {
			return turns.Record{}, err
		}
		if err := r.Client.Create(ctx, cm); err != nil {
			return turns.Record{}, fmt.Errorf("create ConfigMap %s: %w", name.Name, err)
		}
		return entry, nil
	}
	if err != nil {
		return turns.Record{}, fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	}
	if !metav1.IsControlledBy(cm, run) {
		return turns.Record{}, foreign("ConfigMap", name.Name, run)
	}
	known, err := turns.RecordsIn(cm)
	if err != nil {
		return turns.Record{}, err
	}
	for _, found := range known {
		w.Records.Add(found)
	}
	if found, ok := w.Records.Find(entry.Turn()); ok {
		return found, nil
	}
	before := cm.DeepCopy()
	if err := add(cm, entry, key(), raw); err != nil {
		return turns.Record{}, err
	}
	if err := r.Client.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return turns.Record{}, fmt.Errorf("write ConfigMap %s: %w", name.Name, err)
	}
	return entry, nil
}

// refresh reads the records of a point from the API server, because the cache may be outdated.
func (r *Reconciler) refresh(ctx context.Context, w *scope.Scope, point int) error {
	var cm corev1.ConfigMap
	name := turns.PointName(w.Run.Name, point)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: w.Run.Namespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if !metav1.IsControlledBy(&cm, w.Run) {
		return foreign("ConfigMap", cm.Name, w.Run)
	}
	found, err := turns.RecordsIn(&cm)
	for _, entry := range found {
		w.Records.Add(entry)
	}
	return err
}

func foreign(kind, name string, run *v1alpha1.BenchmarkRun) error {
	return fmt.Errorf("%s %s exists and does not belong to BenchmarkRun %s; delete or rename it", kind, name, run.Name)
}
