package benchmarkrun

import (
	"bytes"
	"cmp"
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
	"parallelfs.dev/operator/benchmarks/telemetry"
)

const (
	// maxRaw is how much of a repetition's raw output is kept, in bytes before compression.
	maxRaw = 512 << 10
	// maxStored bounds the data of one ConfigMap, in bytes; the API's own limit is 1 MiB.
	maxStored = 900 << 10
)

// record is what is known of one turn that has ended, with a result or without. It is written once, and all of the
// run's status follows from the records and the spec.
type record struct {
	Point      int `json:"point"`
	Repetition int `json:"repetition"`
	// WarmUp is true for a repetition that does not count. Attempt counts from 1; the records of old runs have none, which is the first.
	WarmUp  bool `json:"warmUp,omitempty"`
	Attempt int  `json:"attempt,omitempty"`
	// Step is the number of the phase from 0, and StepName its name, of a repetition that has several.
	Step       int                           `json:"step,omitempty"`
	StepName   string                        `json:"stepName,omitempty"`
	Parameters map[v1alpha1.SweepName]string `json:"parameters,omitempty"`
	// Command is the tool's command line; Nodes are those that it ran on, and Placement says how many processes they had.
	Command   []string `json:"command,omitempty"`
	Nodes     []string `json:"nodes,omitempty"`
	Placement string   `json:"placement,omitempty"`
	// Started is when its job was started, Finished when its container ended.
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	// Version is what the tool says of itself, ImageID the digest of its image.
	Version string `json:"version,omitempty"`
	ImageID string `json:"imageID,omitempty"`
	// Samples are the result.
	Samples []benchmarks.Sample `json:"samples,omitempty"`
	// Error says why there is no result, and Tail holds the last lines of the output.
	Error string `json:"error,omitempty"`
	Tail  string `json:"tail,omitempty"`
	// Invalid says what disturbed it, whatever it measured. Interrupted says why an attempt was given up through nobody's fault: its
	// repetition begins anew, and that counts for nothing.
	Invalid     string `json:"invalid,omitempty"`
	Interrupted string `json:"interrupted,omitempty"`
	// Telemetry is what the servers did meanwhile.
	Telemetry []telemetry.Summary `json:"telemetry,omitempty"`
	// Truncated says what of the raw output and the telemetry was not kept.
	Truncated string `json:"truncated,omitempty"`
}

func (r record) duration() time.Duration { return max(0, r.Finished.Sub(r.Started)) }

func (r record) turn() turn {
	return turn{point: r.Point, warmUp: r.WarmUp, repetition: r.Repetition, attempt: max(r.Attempt, 1), step: r.Step}
}

// title names the repetition.
func (r record) title() string {
	if r.WarmUp {
		return fmt.Sprintf("warm-up %d", r.Repetition)
	}
	return fmt.Sprintf("repetition %d", r.Repetition)
}

// trouble says why a record is no result, empty when it is one.
func (r record) trouble() string {
	return cmp.Or(r.Invalid, r.Error, r.Interrupted)
}

// records of a run by point, those of a point in the order of their turns: warm-ups first, then repetition, attempt and step.
type records map[int][]record

func inOrder(a, b record) int {
	warm := func(r record) int {
		if r.WarmUp {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(warm(a), warm(b)), cmp.Compare(a.Repetition, b.Repetition),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Step, b.Step))
}

// add takes a record in, in the place of one of the same turn.
func (r records) add(entry record) {
	entry.Attempt = max(entry.Attempt, 1)
	at, found := slices.BinarySearchFunc(r[entry.Point], entry, inOrder)
	if found {
		r[entry.Point][at] = entry
		return
	}
	r[entry.Point] = slices.Insert(r[entry.Point], at, entry)
}

// with is a copy that has one more.
func (r records) with(entry record) records {
	out := maps.Clone(r)
	if out == nil {
		out = records{}
	}
	out[entry.Point] = slices.Clone(r[entry.Point])
	out.add(entry)
	return out
}

func (r records) of(point int) []record { return r[point] }

// find returns the record of a turn.
func (r records) find(t turn) (record, bool) {
	for _, entry := range r[t.point] {
		if entry.turn() == t {
			return entry, true
		}
	}
	return record{}, false
}

// total returns the time that all turns took, and how many there are.
func (r records) total() (sum time.Duration, count int) {
	for _, point := range r {
		for _, entry := range point {
			sum += entry.duration()
			count++
		}
	}
	return sum, count
}

// lastEnd is when the last of all turns ended.
func (r records) lastEnd() time.Time {
	var last time.Time
	for _, point := range r {
		for _, entry := range point {
			if entry.Finished.After(last) {
				last = entry.Finished
			}
		}
	}
	return last
}

func pointName(run string, point int) string { return fmt.Sprintf("%s-p%03d", run, point) }

const (
	recordEnding = ".json"
	rawEnding    = ".txt.gz"
)

// isRecord is true for the key of a record in a ConfigMap.
func isRecord(key string) bool {
	return (strings.HasPrefix(key, "rep-") || strings.HasPrefix(key, "warmup-")) && strings.HasSuffix(key, recordEnding)
}

// decodeRecords reads the records of a run from its ConfigMaps.
func decodeRecords(list []corev1.ConfigMap, run *v1alpha1.BenchmarkRun) (records, error) {
	out := records{}
	for i := range list {
		cm := &list[i]
		if !metav1.IsControlledBy(cm, run) {
			continue
		}
		found, err := recordsIn(cm)
		if err != nil {
			return nil, err
		}
		for _, entry := range found {
			out.add(entry)
		}
	}
	return out, nil
}

// recordsIn reads the records of one ConfigMap.
func recordsIn(cm *corev1.ConfigMap) ([]record, error) {
	var out []record
	for key, text := range cm.Data {
		if !isRecord(key) {
			continue
		}
		var entry record
		if err := json.Unmarshal([]byte(text), &entry); err != nil {
			return nil, fmt.Errorf("read %s of ConfigMap %s: %w; remove that key to run the repetition again", key, cm.Name, err)
		}
		out = append(out, entry)
	}
	return out, nil
}

// addTo puts a record and its raw output into a ConfigMap's data, cutting to what fits: the output first, then the telemetry.
func (r record) addTo(cm *corev1.ConfigMap, key string, raw []byte) error {
	used := 4 << 10 // for the record itself without its samples and tail
	for key, value := range cm.Data {
		used += len(key) + len(value)
	}
	for key, value := range cm.BinaryData {
		used += len(key) + len(value)
	}
	entry := r
	for limit := maxRaw; ; limit /= 2 {
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
		if used+len(text) > maxStored && len(entry.Telemetry) > 0 {
			entry.Telemetry = nil
			entry.Truncated = strings.TrimPrefix(entry.Truncated+"; the telemetry was not kept: the ConfigMap is full", "; ")
			if text, err = json.Marshal(entry); err != nil {
				return fmt.Errorf("encode repetition %d: %w", r.Repetition, err)
			}
		}
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[key+recordEnding] = string(text)
		if len(kept) > 0 {
			if cm.BinaryData == nil {
				cm.BinaryData = map[string][]byte{}
			}
			cm.BinaryData[key+rawEnding] = packed
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

// store writes a record, unless the API server has one of that turn already: then that one is returned. It reads
// past the cache, because a cache that lags would let a repetition count twice.
func (r *Reconciler) store(ctx context.Context, w *world, entry record, raw []byte) (record, error) {
	run := w.run
	cm := &corev1.ConfigMap{}
	name := client.ObjectKey{Namespace: run.Namespace, Name: pointName(run.Name, entry.Point)}
	key := func() string {
		lastStep := entry.Step == w.steps(entry.Point)-1 || entry.trouble() != ""
		return entry.turn().key(w.ends(entry), lastStep)
	}
	err := r.Reader.Get(ctx, name, cm)
	if apierrors.IsNotFound(err) {
		cm = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, Labels: labels(run)}}
		if err := controllerutil.SetControllerReference(run, cm, r.Client.Scheme()); err != nil {
			return record{}, fmt.Errorf("set the owner of ConfigMap %s: %w", name.Name, err)
		}
		if err := entry.addTo(cm, key(), raw); err != nil {
			return record{}, err
		}
		if err := r.Client.Create(ctx, cm); err != nil {
			return record{}, fmt.Errorf("create ConfigMap %s: %w", name.Name, err)
		}
		return entry, nil
	}
	if err != nil {
		return record{}, fmt.Errorf("read ConfigMap %s: %w", name.Name, err)
	}
	if !metav1.IsControlledBy(cm, run) {
		return record{}, foreign("ConfigMap", name.Name, run)
	}
	known, err := recordsIn(cm)
	if err != nil {
		return record{}, err
	}
	for _, found := range known {
		w.records.add(found)
	}
	if found, ok := w.records.find(entry.turn()); ok {
		return found, nil
	}
	before := cm.DeepCopy()
	if err := entry.addTo(cm, key(), raw); err != nil {
		return record{}, err
	}
	if err := r.Client.Patch(ctx, cm, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return record{}, fmt.Errorf("write ConfigMap %s: %w", name.Name, err)
	}
	return entry, nil
}

// refresh reads the records of a point past the cache, which may be behind.
func (r *Reconciler) refresh(ctx context.Context, w *world, point int) error {
	var cm corev1.ConfigMap
	name := pointName(w.run.Name, point)
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: w.run.Namespace, Name: name}, &cm)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read ConfigMap %s: %w", name, err)
	}
	if !metav1.IsControlledBy(&cm, w.run) {
		return foreign("ConfigMap", cm.Name, w.run)
	}
	found, err := recordsIn(&cm)
	for _, entry := range found {
		w.records.add(entry)
	}
	return err
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
