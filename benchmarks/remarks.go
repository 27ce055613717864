package benchmarks

import (
	"fmt"
	"strings"
)

// mostRemarks lines are kept with their text.
const mostRemarks = 8

// Remarks are lines of an output that stand outside of the tool's report, such as those of a launcher or a shell.
type Remarks struct {
	// First are the first of them, with their numbers.
	First []string
	// Count counts all.
	Count int
}

// Add keeps a line.
func (r *Remarks) Add(number int, text string) {
	if r.Count++; len(r.First) < mostRemarks {
		r.First = append(r.First, fmt.Sprintf("line %d %q", number, Short(text)))
	}
}

// Join adds the remarks of another part of the same output.
func (r *Remarks) Join(other Remarks) {
	r.Count += other.Count
	r.First = append(r.First, other.First[:min(len(other.First), mostRemarks-min(len(r.First), mostRemarks))]...)
}

// String says what was skipped in a sentence without its full stop; it is empty when nothing was.
func (r Remarks) String() string {
	const shown = 3
	switch r.Count {
	case 0:
		return ""
	case 1:
		return "one line outside of the report was skipped: " + r.First[0]
	}
	text := fmt.Sprintf("%d lines outside of the report were skipped: %s", r.Count, strings.Join(r.First[:min(len(r.First), shown)], ", "))
	if r.Count > shown {
		text += fmt.Sprintf(" and %d more", r.Count-shown)
	}
	return text
}
