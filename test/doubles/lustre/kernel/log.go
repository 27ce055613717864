package kernel

import (
	"fmt"
	"strings"
	"time"
)

// Field is a value in a record, with its name in lctl llog_print.
type Field struct{ Name, Value string }

// Record is one entry of a configuration log. Markers, which are before and after related records, have no event, and neither has padding.
type Record struct {
	Index              int
	At                 time.Time
	Event              string
	Fields             []Field
	Cancelled, Padding bool
}

// Value returns the value of a field, or empty if there is none.
func (r Record) Value(name string) string {
	for _, f := range r.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// String returns a record in the format of lctl llog_print.
func (r Record) String() string {
	parts := []string{fmt.Sprintf("index: %d", r.Index), "event: " + r.Event}
	for _, f := range r.Fields {
		parts = append(parts, f.Name+": "+f.Value)
	}
	return "- { " + strings.Join(parts, ", ") + " }"
}

// Log is the configuration of a client or of an MDT as the MGS stores it.
type Log struct {
	Records []Record
	// Bytes is the total size of the records on a real disk.
	Bytes int
}

// chunk is the size of one write to a log.
const chunk = 8192

// size returns the size of a record on a real disk: with its head and its tail, and each value padded to a multiple of 8.
func (r Record) size() int {
	const around = recordHead + recordTail
	if r.Event == "" {
		return around + padded(configHead+2*4) + markerLength
	}
	values := make([]string, 0, len(r.Fields))
	for _, f := range r.Fields {
		values = append(values, f.Value)
	}
	total := around
	if r.Event == "add_uuid" {
		values = []string{r.Value("node")}
		total += padded(configHead + 2*4)
	} else {
		total += padded(configHead + 4*len(values))
	}
	for _, v := range values {
		if v == "" {
			total += description
		} else {
			total += padded(len(v) + 1)
		}
	}
	return total
}

// with appends events to the log between two markers.
func (l *Log) with(events ...Record) {
	at := time.Now()
	add := func(r Record) {
		const least = recordHead + recordTail
		size := r.size()
		if left := chunk - l.Bytes%chunk; left != size && left < size+least {
			// No record crosses a chunk boundary: the rest of a chunk is filled by a padding record.
			l.Records = append(l.Records, Record{Index: len(l.Records) + 1, At: at, Padding: true})
			l.Bytes += left
		}
		r.Index, r.At = len(l.Records)+1, at
		l.Records, l.Bytes = append(l.Records, r), l.Bytes+size
	}
	add(Record{})
	for _, r := range events {
		add(r)
	}
	add(Record{})
}

func event(name string, fields ...string) Record {
	r := Record{Event: name}
	for i := 0; i+1 < len(fields); i += 2 {
		r.Fields = append(r.Fields, Field{fields[i], fields[i+1]})
	}
	return r
}

// cancel cancels records; a reader that has not reached them never sees them.
func (l *Log) cancel(which func(r Record) bool) {
	for i := len(l.Records) - 1; i >= 0; i-- {
		if r := &l.Records[i]; r.Event != "" && !r.Cancelled && which(*r) {
			r.Cancelled = true
		}
	}
}

// live is true if a matching record is not canceled.
func (l *Log) live(which func(r Record) bool) bool {
	for _, r := range l.Records {
		if r.Event != "" && !r.Cancelled && which(r) {
			return true
		}
	}
	return false
}
