package telemetry

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"parallelfs.dev/operator/benchmarks/telemetry"
)

const (
	// keep is how long samples are kept.
	keep = 2 * time.Hour
	// mostBytes bounds the memory of the samples. If there are too many disks and daemons, samples are kept for a shorter time. 64 targets and
	// 64 daemons take 29 MiB for 2 hours at one sample a second, 12 and 8 take 5 MiB.
	mostBytes = 48 << 20
)

// names holds the sorted disks and daemons of a record. Most records share one value.
type names struct{ disks, daemons []string }

// record is one sample in a compact form: its rows are in the order of its names.
type record struct {
	at      time.Time
	names   *names
	disks   []telemetry.Disk
	daemons []telemetry.Daemon
}

func (r record) bytes() int {
	return int(unsafe.Sizeof(r)) + len(r.disks)*int(unsafe.Sizeof(telemetry.Disk{})) + len(r.daemons)*int(unsafe.Sizeof(telemetry.Daemon{}))
}

// ring holds the samples of the last two hours.
type ring struct {
	mutex   sync.Mutex
	records []record // the oldest first; dropped ones are cut off at the front
	size    int
	most    int
}

func (r *ring) add(s telemetry.Sample) {
	disks, daemons := slices.Sorted(maps.Keys(s.Disks)), slices.Sorted(maps.Keys(s.Daemons))
	r.mutex.Lock()
	defer r.mutex.Unlock()
	added := record{at: s.Time, disks: make([]telemetry.Disk, len(disks)), daemons: make([]telemetry.Daemon, len(daemons))}
	if n := len(r.records); n > 0 && slices.Equal(r.records[n-1].names.disks, disks) && slices.Equal(r.records[n-1].names.daemons, daemons) {
		added.names = r.records[n-1].names
	} else {
		added.names = &names{disks, daemons}
	}
	for i, name := range disks {
		added.disks[i] = s.Disks[name]
	}
	for i, name := range daemons {
		added.daemons[i] = s.Daemons[name]
	}
	r.records, r.size = append(r.records, added), r.size+added.bytes()
	old := 0
	for old < len(r.records)-1 && (r.size > r.most || r.records[old].at.Before(s.Time.Add(-keep))) {
		r.size -= r.records[old].bytes()
		r.records[old] = record{} // frees the rows before the array
		old++
	}
	r.records = r.records[old:]
}

// since returns the records from the last one before from up to the first one after to. They never change.
func (r *ring) since(from, to time.Time) []record {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	compare := func(a record, t time.Time) int { return a.at.Compare(t) }
	first, _ := slices.BinarySearchFunc(r.records, from, compare)
	last, _ := slices.BinarySearchFunc(r.records, to, compare)
	return slices.Clone(r.records[max(0, first-1):min(len(r.records), last+1)])
}

// newest returns the newest sample, or false if there is none.
func (r *ring) newest() (telemetry.Sample, bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.records) == 0 {
		return telemetry.Sample{}, false
	}
	return r.records[len(r.records)-1].sample(""), true
}

// sample returns a record for readers: with all names, or with the names that begin with a prefix, which is removed.
func (r record) sample(prefix string) telemetry.Sample {
	s := telemetry.Sample{Time: r.at, Disks: map[string]telemetry.Disk{}, Daemons: map[string]telemetry.Daemon{}}
	for i, name := range r.names.disks {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			s.Disks[rest] = r.disks[i]
		}
	}
	for i, name := range r.names.daemons {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			s.Daemons[rest] = r.daemons[i]
		}
	}
	return s
}

// samples returns records for readers one after the other, so that not all are in memory in that form.
func samples(records []record, prefix string) iter.Seq[telemetry.Sample] {
	return func(yield func(telemetry.Sample) bool) {
		for _, r := range records {
			if !yield(r.sample(prefix)) {
				return
			}
		}
	}
}

// spread returns at most n evenly spread records, including the first and the last. Counters only grow, so only the intermediate values are
// lost.
func spread(records []record, n int) []record {
	if len(records) <= n || n < 2 {
		return records[:min(len(records), n)]
	}
	out := make([]record, n)
	for i := range n {
		out[i] = records[i*(len(records)-1)/(n-1)]
	}
	return out
}
