// Package cli makes the command lines of Lustre's own tools lctl and lfs, and reads their output, according to their man pages and the
// output of 2.17.57 (testdata). All of it is pure. Exit codes are not enough for any of them: lfs_migrate ends with 0 although it skips
// files, and lctl conf_param takes effect after it has returned. So what is done is always read back. The properties that make a disk a
// target belong to its format.
package cli

import (
	"fmt"
	"regexp"
	"strings"
)

// colors matches the codes that lctl 2.17 writes around values if its standard output seems to be a terminal.
var colors = regexp.MustCompile("\x1b\\[[0-9;]*m")

// reader goes through an answer line by line.
type reader struct {
	// command is the command that was run, for errors.
	command string
	rest    string
	// number and text are those of the last line read.
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

// wrong returns an error about the last line read.
func (r *reader) wrong(format string, args ...any) error {
	const most = 200
	said := r.text
	if len(said) > most {
		said = said[:most] + "..."
	}
	return fmt.Errorf("%s: line %d %s: %q", r.command, r.number, fmt.Sprintf(format, args...), said)
}

// without returns an error about an answer that ends too early.
func (r *reader) without(missing string) error {
	return fmt.Errorf("%s: its answer ends after line %d, without %s", r.command, r.number, missing)
}
