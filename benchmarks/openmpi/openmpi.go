// Package openmpi reads the output of an MPI program that Open MPI's mpirun has started over ssh: it tells the program's lines from
// those of mpirun and ssh, and knows which of these say that the program has not ended well.
package openmpi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/benchmarks"
)

// Line is a line of the program.
type Line struct {
	// Number counts all lines of the output, from 1.
	Number int
	// Text without the blanks around it.
	Text string
}

var (
	// border begins and ends the box that a help message of mpirun stands in.
	border = regexp.MustCompile(`^-{60,}$`)
	// bad is what a help message says when processes have not ended well, or were never started.
	bad = regexp.MustCompile(`(?i)abort|terminat|exited|killed|on signal|non-zero|was unable|has lost|not enough slots|could not|cannot be` +
		`|failed to start`)
	// notices are lines that are no error: of ssh, which has met a host for the first time, and of mpirun, which counts the messages that it
	// has left out, lacks a component for a network, may not read another process's memory, as in containers, and takes another way, or
	// would have put ssh into a group of processes after ssh had done so itself.
	notices = regexp.MustCompile(`^Warning: Permanently added ` +
		`|^\[[^ \]]+:\d+\] (\d+ more process(es)? ha(s|ve) sent help message|Set MCA parameter "orte_base_help_aggregate" to 0` +
		`|mca_base_component_repository_open: unable to open|Read -1, expected \d+, errno = 1$` +
		`|plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=Permission denied\(13\)$)`)
)

// own begins the lines of the node binary, which starts mpirun.
const own = "parallelfs: "

// complaint is a line of the program that probably says why.
var complaint = regexp.MustCompile(`(?i)\b(error|failed|invalid|assertion|unable|no such|no space)\b`)

// Lines returns the lines of the program that are not blank. It returns an error, with its line, for a message of mpirun that says that a
// process did not end well; it quotes what the program said of it. Other messages of mpirun are left out.
func Lines(output []byte) ([]Line, error) {
	var out, box []Line
	var failure *Line
	number := 0
	for raw := range strings.Lines(string(output)) {
		number++
		line := Line{Number: number, Text: strings.TrimSpace(raw)}
		switch {
		case border.MatchString(line.Text) && len(box) > 0:
			box = nil
		case border.MatchString(line.Text):
			box = []Line{line}
		case len(box) > 0:
			box = append(box, line)
			if failure == nil && bad.MatchString(line.Text) {
				failure = &line
			}
		case line.Text == "", strings.HasPrefix(line.Text, own), notices.MatchString(line.Text):
		default:
			out = append(out, line)
		}
	}
	switch why := slices.IndexFunc(out, func(l Line) bool { return complaint.MatchString(l.Text) }); {
	case failure != nil && why >= 0:
		return nil, fmt.Errorf("line %d: mpirun says %q; line %d says %q",
			failure.Number, benchmarks.Short(failure.Text), out[why].Number, benchmarks.Short(out[why].Text))
	case failure != nil:
		return nil, fmt.Errorf("line %d: mpirun says %q", failure.Number, benchmarks.Short(failure.Text))
	case len(box) > 0:
		return nil, fmt.Errorf("line %d: a message of mpirun begins, and the output is cut off in it", box[0].Number)
	}
	return out, nil
}
