package openmpi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"parallelfs.dev/operator/benchmarks"
)

// Reader reads the lines of a report. Its errors contain the last line that was read.
type Reader struct {
	// Lines holds the remaining lines.
	Lines []Line
	// At is the last line that was read; its number is 0 before the first.
	At Line
	// Skipped holds the lines outside of the report.
	Skipped benchmarks.Remarks
}

// ownLine matches lines of the tool itself, which may come from any process at any time.
var ownLine = regexp.MustCompile(`^(ior )?(WARNING|ERROR|V-\d+)\b`)

// Skip records the last line as outside of the report, unless it describes a failure or is a warning of the tool itself.
func (r *Reader) Skip() error {
	if Failed(r.At.Text) || ownLine.MatchString(r.At.Text) || strings.Contains(r.At.Text, "***") {
		return r.Fail("%q stands outside of the report and says that something has not ended well, so no number is taken", benchmarks.Short(r.At.Text))
	}
	r.Skipped.Add(r.At.Number, r.At.Text)
	return nil
}

// Next reads the next line; false at the end.
func (r *Reader) Next() bool {
	if len(r.Lines) == 0 {
		return false
	}
	r.At, r.Lines = r.Lines[0], r.Lines[1:]
	return true
}

// Fail returns an error for the last line.
func (r *Reader) Fail(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", r.At.Number, fmt.Sprintf(format, args...))
}

// Unexpected returns the error of an unexpected last line.
func (r *Reader) Unexpected(want string) error {
	return r.Fail("found %q instead of %s", benchmarks.Short(r.At.Text), want)
}

// CutOff returns the error of an incomplete output.
func (r *Reader) CutOff(want string) error {
	if r.At.Number == 0 {
		return errors.New("the output is empty")
	}
	return fmt.Errorf("the output is cut off after line %d (%q), before %s", r.At.Number, benchmarks.Short(r.At.Text), want)
}
