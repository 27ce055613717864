package openmpi

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"parallelfs.dev/operator/benchmarks"
)

// Reader walks over the lines of a report. Its errors name the line that was taken last.
type Reader struct {
	// Lines are those that were not taken yet.
	Lines []Line
	// At is the line that was taken last; its number is 0 before the first.
	At Line
	// Skipped are the lines outside of the report.
	Skipped benchmarks.Remarks
}

// ownLine are lines of the tool itself, which may come from any process at any time.
var ownLine = regexp.MustCompile(`^(ior )?(WARNING|ERROR|V-\d+)\b`)

// Skip leaves out the last line taken, which stands outside of the report, unless it says that something has not ended well, or is a
// warning of the tool itself.
func (r *Reader) Skip() error {
	if Failed(r.At.Text) || ownLine.MatchString(r.At.Text) || strings.Contains(r.At.Text, "***") {
		return r.Fail("%q stands outside of the report and says that something has not ended well, so no number is taken", benchmarks.Short(r.At.Text))
	}
	r.Skipped.Add(r.At.Number, r.At.Text)
	return nil
}

// Next takes the next line; false at the end.
func (r *Reader) Next() bool {
	if len(r.Lines) == 0 {
		return false
	}
	r.At, r.Lines = r.Lines[0], r.Lines[1:]
	return true
}

// Fail is an error at the last line taken.
func (r *Reader) Fail(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", r.At.Number, fmt.Sprintf(format, args...))
}

// Unexpected refuses the last line taken.
func (r *Reader) Unexpected(want string) error {
	return r.Fail("found %q instead of %s", benchmarks.Short(r.At.Text), want)
}

// CutOff says that the output ends too early.
func (r *Reader) CutOff(want string) error {
	if r.At.Number == 0 {
		return errors.New("the output is empty")
	}
	return fmt.Errorf("the output is cut off after line %d (%q), before %s", r.At.Number, benchmarks.Short(r.At.Text), want)
}
