package benchmarkrun

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
)

const (
	// maxRaw is how much of a repetition's raw output is kept, in bytes before compression.
	maxRaw = 512 << 10
	// maxStored bounds the data of one ConfigMap, in bytes; the API's own limit is 1 MiB.
	maxStored = 900 << 10
)

// record is what is known of one repetition that has ended, with a result or without. It is written once, and all of the
// run's status follows from the records and the spec.
type record struct {
	Point      int                           `json:"point"`
	Repetition int                           `json:"repetition"`
	Parameters map[v1alpha1.SweepName]string `json:"parameters,omitempty"`
	// Command is the tool's command line; Nodes are those that it ran on.
	Command []string `json:"command,omitempty"`
	Nodes   []string `json:"nodes,omitempty"`
	// Started is when its job was made, Finished when its container ended.
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	// Samples are the result.
	Samples []benchmarks.Sample `json:"samples,omitempty"`
	// Error says why there is no result, and Tail holds the last lines of the output.
	Error string `json:"error,omitempty"`
	Tail  string `json:"tail,omitempty"`
	// Truncated says what of the raw output was not kept.
	Truncated string `json:"truncated,omitempty"`
}

func (r record) duration() time.Duration { return max(0, r.Finished.Sub(r.Started)) }

// records of a run: by point, then by repetition (from 1).
type records map[int]map[int]record

func (r records) add(entry record) {
	if r[entry.Point] == nil {
		r[entry.Point] = map[int]record{}
	}
	r[entry.Point][entry.Repetition] = entry
}

// failure returns the record that makes a point fail.
func (r records) failure(point int) (record, bool) {
	for _, repetition := range slices.Sorted(maps.Keys(r[point])) {
		if entry := r[point][repetition]; entry.Error != "" {
			return entry, true
		}
	}
	return record{}, false
}

// total returns the time that all repetitions took, and how many there are.
func (r records) total() (sum time.Duration, count int) {
	for _, point := range r {
		for _, entry := range point {
			sum += entry.duration()
			count++
		}
	}
	return sum, count
}

func pointName(run string, point int) string { return fmt.Sprintf("%s-p%03d", run, point) }

func recordKey(repetition int) string { return fmt.Sprintf("rep-%d.json", repetition) }
func rawKey(repetition int) string    { return fmt.Sprintf("rep-%d.txt.gz", repetition) }

// decodeRecords reads the records of a run from its ConfigMaps.
func decodeRecords(list []corev1.ConfigMap, run *v1alpha1.BenchmarkRun) (records, error) {
	out := records{}
	for i := range list {
		cm := &list[i]
		if !metav1.IsControlledBy(cm, run) {
			continue
		}
		for key, text := range cm.Data {
			if !strings.HasPrefix(key, "rep-") || !strings.HasSuffix(key, ".json") {
				continue
			}
			var entry record
			if err := json.Unmarshal([]byte(text), &entry); err != nil {
				return nil, fmt.Errorf("read %s of ConfigMap %s: %w; remove that key to run the repetition again", key, cm.Name, err)
			}
			out.add(entry)
		}
	}
	return out, nil
}

// addTo puts a record and its raw output into a ConfigMap's data, cutting the output to what fits.
func (r record) addTo(cm *corev1.ConfigMap, raw []byte) error {
	used := 4 << 10 // for the record itself without its samples and tail
	for key, value := range cm.Data {
		used += len(key) + len(value)
	}
	for key, value := range cm.BinaryData {
		used += len(key) + len(value)
	}
	for limit := maxRaw; ; limit /= 2 {
		entry := r
		kept := cutMiddle(raw, limit)
		if len(kept) < len(raw) {
			entry.Truncated = fmt.Sprintf("the first and the last part of %d bytes of raw output were kept, %d bytes in all", len(raw), len(kept))
		}
		if limit == 0 && len(raw) > 0 {
			kept, entry.Truncated = nil, fmt.Sprintf("none of %d bytes of raw output was kept: the ConfigMap is full", len(raw))
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("encode repetition %d: %w", r.Repetition, err)
		}
		packed, err := compress(kept)
		if err != nil {
			return err
		}
		if used+len(text)+len(packed) > maxStored && limit > 0 {
			continue
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[recordKey(r.Repetition)] = string(text)
		if len(kept) > 0 {
			if cm.BinaryData == nil {
				cm.BinaryData = map[string][]byte{}
			}
			cm.BinaryData[rawKey(r.Repetition)] = packed
		}
		return nil
	}
}

// cutMiddle keeps the first and the last part of a text that is longer than limit bytes.
func cutMiddle(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	mark := fmt.Appendf(nil, "\n[... %d bytes were left out here ...]\n", len(text)-limit)
	half := limit / 2
	return slices.Concat(text[:half], mark, text[len(text)-half:])
}

func compress(text []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(text); err != nil {
		return nil, fmt.Errorf("compress the raw output: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress the raw output: %w", err)
	}
	return out.Bytes(), nil
}

// store writes a record, unless the API server has one of that repetition already: then that one is returned. It reads
// past the cache, because a cache that lags would let a repetition count twice.
func (r *Reconciler) store(ctx context.Context, run *v1alpha1.BenchmarkRun, entry record, raw []byte) (record, error) {
	cm := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: run.Namespace, Name: pointName(run.Name, entry.Point)}
	err := r.Reader.Get(ctx, key, cm)
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels(run)}}
		if err := controllerutil.SetControllerReference(run, cm, r.Client.Scheme()); err != nil {
			return record{}, fmt.Errorf("set the owner of ConfigMap %s: %w", key.Name, err)
		}
		if err := entry.addTo(cm, raw); err != nil {
			return record{}, err
		}
		if err := r.Client.Create(ctx, cm); err != nil {
			return record{}, fmt.Errorf("create ConfigMap %s: %w", key.Name, err)
		}
		return entry, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read ConfigMap %s: %w", key.Name, err)
	}
	if !metav1.IsControlledBy(cm, run) {
		return record{}, foreign("ConfigMap", key.Name, run)
	}
	if text, ok := cm.Data[recordKey(entry.Repetition)]; ok {
		var known record
		if err := json.Unmarshal([]byte(text), &known); err != nil {
			return record{}, fmt.Errorf("read %s of ConfigMap %s: %w", recordKey(entry.Repetition), key.Name, err)
		}
		return known, nil
	}
	before := cm.DeepCopy()
	if err := entry.addTo(cm, raw); err != nil {
		return record{}, err
	}
	if err := r.Client.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return record{}, fmt.Errorf("write ConfigMap %s: %w", key.Name, err)
	}
	return entry, nil
}

// isRecorded asks the API server, past the cache, whether a repetition has a record.
func (r *Reconciler) isRecorded(ctx context.Context, run *v1alpha1.BenchmarkRun, point, repetition int) (bool, error) {
	var cm corev1.ConfigMap
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: pointName(run.Name, point)}, &cm)
	if apierrors.IsNotFound(err) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("read ConfigMap %s: %w", pointName(run.Name, point), err)
	}
	if !metav1.IsControlledBy(&cm, run) {
		return false, foreign("ConfigMap", cm.Name, run)
	}
	_, ok := cm.Data[recordKey(repetition)]
	return ok, nil
}

func foreign(kind, name string, run *v1alpha1.BenchmarkRun) error {
	return fmt.Errorf("%s %s exists and does not belong to BenchmarkRun %s; delete or rename it", kind, name, run.Name)
}

// WithoutRawOutput drops the raw output of benchmarks from ConfigMaps on their way into the cache: the controller never reads it
// there, and a sweep has many megabytes of it. It is a cache.TransformFunc.
func WithoutRawOutput(object any) (any, error) {
	if cm, ok := object.(*corev1.ConfigMap); ok {
		cm.ManagedFields = nil
		if cm.Labels[v1alpha1.LabelBenchmarkRun] != "" {
			cm.BinaryData = nil
		}
	}
	return object, nil
}
