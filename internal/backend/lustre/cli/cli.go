// Package cli makes the command lines of Lustre's own tools, and reads what they print: lctl and lfs, by their man pages and by what
// 2.17.57 has printed (testdata). All of it is pure. Exit codes are not enough for any of it: lfs_migrate ends with 0 although it skips
// files, and lctl conf_param works later than it returns. So what is done is always read back. What makes a disk a target belongs to its
// format.
package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// colors are what lctl 2.17 writes around values when it takes its standard output for a terminal.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// reader goes through an answer line by line.
type reader struct {
	// command is what was run, for errors.
	command string
	rest    string
	// number and text are of the line that was read last.
	number int
	text   string
}

func read(command string, output []byte) *reader {
	return &reader{command: command, rest: colors.ReplaceAllString(string(output), "")}
}

// next reads a line that is not blank; it returns false at the end.
func (r *reader) next() bool {
	for r.rest != "" {
		line, rest, _ := strings.Cut(r.rest, "\n")
		r.number++
		r.text, r.rest = strings.TrimRight(line, " \t"), rest
		if r.text != "" {
			return true
		}
	}
	return false
}

// wrong is an error about the line that was read last.
func (r *reader) wrong(format string, args ...any) error {
	const most = 200
	said := r.text
	if len(said) > most {
		said = said[:most] + "..."
	}
	return fmt.Errorf("%s: line %d %s: %q", r.command, r.number, fmt.Sprintf(format, args...), said)
}

// without is an error about an answer that ends too early.
func (r *reader) without(missing string) error {
	return fmt.Errorf("%s: its answer ends after line %d, without %s", r.command, r.number, missing)
}
