package benchmarks

import (
	"fmt"
	"strings"
)

// mostRemarks is the number of lines that are kept with their text.
const mostRemarks = 8

// Remarks holds the lines of an output that are outside of the tool's report, such as those of a launcher or a shell.
type Remarks struct {
	// First holds the first of them with their line numbers.
	First []string
	// Count is the number of all of them.
	Count int
}

// Add records a line.
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

// String describes the skipped lines in a sentence without its period; it is empty if there are none.
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
