package kernel

import (
	"fmt"
	"strings"
	"time"
)

// Field is a value in a record, by the name that lctl llog_print gives it.
type Field struct{ Name, Value string }

// Record is one entry of a configuration log. Markers, which stand before and after what belongs together, have no event.
type Record struct {
	Index     int
	At        time.Time
	Event     string
	Fields    []Field
	Cancelled bool
}

// Value is that of a field, empty when there is none.
func (r Record) Value(name string) string {
	for _, f := range r.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// String is how lctl llog_print shows a record.
func (r Record) String() string {
	parts := []string{fmt.Sprintf("index: %d", r.Index), "event: " + r.Event}
	for _, f := range r.Fields {
		parts = append(parts, f.Name+": "+f.Value)
	}
	return "- { " + strings.Join(parts, ", ") + " }"
}

// Log is the configuration of a client or of an MDT, as the MGS keeps it.
type Log struct{ Records []Record }

// with puts events into the log, between two markers.
func (l *Log) with(events ...Record) {
	at := time.Now()
	add := func(r Record) {
		r.Index, r.At = len(l.Records)+1, at
		l.Records = append(l.Records, r)
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

// cancel takes records out of force; a reader that has not come to them never sees them.
func (l *Log) cancel(which func(r Record) bool) (indices []int) {
	for i := len(l.Records) - 1; i >= 0; i-- {
		if r := &l.Records[i]; r.Event != "" && !r.Cancelled && which(*r) {
			r.Cancelled = true
			indices = append(indices, r.Index)
		}
	}
	return indices
}

// live is a record that is in force.
func (l *Log) live(which func(r Record) bool) bool {
	for _, r := range l.Records {
		if r.Event != "" && !r.Cancelled && which(r) {
			return true
		}
	}
	return false
}
