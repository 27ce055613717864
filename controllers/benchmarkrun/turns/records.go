package turns

import (
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/telemetry"
	"parallelfs.dev/operator/internal/node/stored"
)

// MaxStored bounds the data of one ConfigMap, in bytes; the API's own limit is 1 MiB.
const MaxStored = 900 << 10

// RecordFormat is the version of the format of a Record that this program writes. It reads all versions up to this one.
const RecordFormat = 1

// Record describes one turn that has ended, with a result or without. It is written once. The run's whole status follows from the records
// and the spec.
type Record struct {
	// Format is RecordFormat in stored records.
	Format     int `json:"format"`
	Point      int `json:"point"`
	Repetition int `json:"repetition"`
	// WarmUp is true for a repetition that does not count. Attempt counts from 1.
	WarmUp  bool `json:"warmUp,omitempty"`
	Attempt int  `json:"attempt"`
	// Step is the number of the phase from 0, and StepName its name, for a repetition that has several.
	Step       int                           `json:"step,omitempty"`
	StepName   string                        `json:"stepName,omitempty"`
	Parameters map[v1alpha1.SweepName]string `json:"parameters,omitempty"`
	// Command is the tool's command line. Nodes lists the nodes that it ran on, and Placement the number of their processes.
	Command   []string `json:"command,omitempty"`
	Nodes     []string `json:"nodes,omitempty"`
	Placement string   `json:"placement,omitempty"`
	// Started is when its job started, Finished when its container ended.
	Started  time.Time `json:"started"`
	Finished time.Time `json:"finished"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	// Version is the version that the tool reports, ImageID the digest of its image.
	Version string `json:"version,omitempty"`
	ImageID string `json:"imageID,omitempty"`
	// Samples holds the result.
	Samples []benchmarks.Sample `json:"samples,omitempty"`
	// Error is why there is no result, and Tail holds the last lines of the output.
	Error string `json:"error,omitempty"`
	Tail  string `json:"tail,omitempty"`
	// Invalid is what disturbed it, whatever it measured. Interrupted is why an attempt was abandoned without a fault: its repetition begins
	// again, and the attempt does not count.
	Invalid     string `json:"invalid,omitempty"`
	Interrupted string `json:"interrupted,omitempty"`
	// Telemetry holds the servers' activity during the turn.
	Telemetry []telemetry.Summary `json:"telemetry,omitempty"`
	// PodChanges lists how its pods differed from the request. Throttled is how long a CPU quota stopped a container, and Clocks how far the
	// clocks of the clients differed.
	PodChanges []string `json:"podChanges,omitempty"`
	Throttled  string   `json:"throttled,omitempty"`
	Clocks     string   `json:"clocks,omitempty"`
	// Truncated is which parts of the raw output and the telemetry were not stored.
	Truncated string `json:"truncated,omitempty"`
}

// Unreadable is the Invalid of a turn whose output crashed the operator each time it was read.
const Unreadable = "is not read a third time: the operator ended twice while it read what it printed; have it print less, or report it"

// Final reports whether nothing more of its run is measured after a record, because the next output would have the same effect.
func (r Record) Final() bool { return strings.HasSuffix(r.Invalid, Unreadable) }

// Duration returns the time that the turn took.
func (r Record) Duration() time.Duration { return max(0, r.Finished.Sub(r.Started)) }

// Turn returns the turn of this record.
func (r Record) Turn() Turn {
	return Turn{Point: r.Point, WarmUp: r.WarmUp, Repetition: r.Repetition, Attempt: r.Attempt, Step: r.Step}
}

// Title names the repetition.
func (r Record) Title() string {
	if r.WarmUp {
		return fmt.Sprintf("warm-up %d", r.Repetition)
	}
	return fmt.Sprintf("repetition %d", r.Repetition)
}

// Trouble returns why a record is no result, empty if it is one.
func (r Record) Trouble() string {
	return cmp.Or(r.Invalid, r.Error, r.Interrupted)
}

// Records holds the records of a run by point, those of a point in the order of their turns: warm-ups first, then repetition, attempt and
// step.
type Records map[int][]Record

func inOrder(a, b Record) int {
	warm := func(r Record) int {
		if r.WarmUp {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(warm(a), warm(b)), cmp.Compare(a.Repetition, b.Repetition),
		cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Step, b.Step))
}

// Add adds a record, and replaces one of the same turn.
func (r Records) Add(entry Record) {
	at, found := slices.BinarySearchFunc(r[entry.Point], entry, inOrder)
	if found {
		r[entry.Point][at] = entry
		return
	}
	r[entry.Point] = slices.Insert(r[entry.Point], at, entry)
}

// With returns a copy with one more record.
func (r Records) With(entry Record) Records {
	out := maps.Clone(r)
	if out == nil {
		out = Records{}
	}
	out[entry.Point] = slices.Clone(r[entry.Point])
	out.Add(entry)
	return out
}

// Of returns the records of a point, in the order of their turns.
func (r Records) Of(point int) []Record { return r[point] }

// Find returns the record of a turn.
func (r Records) Find(t Turn) (Record, bool) {
	for _, entry := range r[t.Point] {
		if entry.Turn() == t {
			return entry, true
		}
	}
	return Record{}, false
}

// Total returns the time that all turns took, and how many there are.
func (r Records) Total() (sum time.Duration, count int) {
	for _, point := range r {
		for _, entry := range point {
			sum += entry.Duration()
			count++
		}
	}
	return sum, count
}

// Final reports whether one of the records is final.
func (r Records) Final() bool {
	for _, point := range r {
		if slices.ContainsFunc(point, Record.Final) {
			return true
		}
	}
	return false
}

// LastEnd returns when the last of all turns ended.
func (r Records) LastEnd() time.Time {
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

// PointName returns the name of the ConfigMap of a point.
func PointName(run string, point int) string { return fmt.Sprintf("%s-p%03d", run, point) }

const (
	recordEnding = ".json"
	rawEnding    = ".txt.gz"
)

// isRecord reports whether a key of a ConfigMap is that of a record.
func isRecord(key string) bool {
	return (strings.HasPrefix(key, "rep-") || strings.HasPrefix(key, "warmup-")) && strings.HasSuffix(key, recordEnding)
}

// HoldsRecords reports whether a ConfigMap is that of a point.
func HoldsRecords(cm *corev1.ConfigMap) bool {
	for key := range cm.Data {
		if isRecord(key) {
			return true
		}
	}
	return false
}

// DecodeRecords reads the records of a run from its ConfigMaps.
func DecodeRecords(list []corev1.ConfigMap, run *v1alpha1.BenchmarkRun) (Records, error) {
	out := Records{}
	for i := range list {
		cm := &list[i]
		if !metav1.IsControlledBy(cm, run) {
			continue
		}
		found, err := RecordsIn(cm)
		if err != nil {
			return nil, err
		}
		for _, entry := range found {
			out.Add(entry)
		}
	}
	return out, nil
}

// RecordsIn reads the records of one ConfigMap.
func RecordsIn(cm *corev1.ConfigMap) ([]Record, error) {
	var out []Record
	for key, text := range cm.Data {
		if !isRecord(key) {
			continue
		}
		entry, err := decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s of ConfigMap %s %w", key, cm.Name, err)
		}
		out = append(out, entry)
	}
	return out, nil
}

// decode decodes one record. Its error is the rest of a sentence about the record.
func decode(text string) (entry Record, err error) {
	var form struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal([]byte(text), &form); err != nil {
		return entry, fmt.Errorf("can't be understood: %w; remove that key to run the repetition again", err)
	}
	if err := stored.Known("format", form.Format, RecordFormat); err != nil {
		return entry, err //nolint:wrapcheck // it is the rest of that sentence
	}
	if err := json.Unmarshal([]byte(text), &entry); err != nil {
		return entry, fmt.Errorf("can't be understood: %w; remove that key to run the repetition again", err)
	}
	return entry, nil
}

// AddTo puts a record and its raw output into a ConfigMap's data. If they do not fit, it cuts first the output, then the telemetry.
func (r Record) AddTo(cm *corev1.ConfigMap, key string, raw *Raw) error {
	used := 4 << 10 // for the record itself without samples and tail
	for key, value := range cm.Data {
		used += len(key) + len(value)
	}
	for key, value := range cm.BinaryData {
		used += len(key) + len(value)
	}
	entry := r
	entry.Format = RecordFormat
	pack := gzip.NewWriter(nil)
	for limit := maxRaw; ; limit /= 2 {
		kept := raw.cut(limit)
		if raw.Len() > limit {
			entry.Truncated = fmt.Sprintf("the first and the last part of %d bytes of raw output were kept, %d bytes in all", raw.Len(), len(kept))
		}
		if limit == 0 && raw.Len() > 0 {
			kept, entry.Truncated = nil, fmt.Sprintf("none of %d bytes of raw output was kept: the ConfigMap is full", raw.Len())
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return fmt.Errorf("encode repetition %d: %w", r.Repetition, err)
		}
		packed, err := compress(pack, kept)
		if err != nil {
			return err
		}
		if used+len(text)+len(packed) > MaxStored && limit > 0 {
			continue
		}
		if used+len(text) > MaxStored && len(entry.Telemetry) > 0 {
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
