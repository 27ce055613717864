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
	bad = regexp.MustCompile(`(?i)abort|terminat|exited|killed|on signal|non-zero|has lost|not enough slots|failed to start`)
	// lacking is what a help message says of something that was not there. mpirun may have gone on without it, such as without a network card
	// whose port is inactive, and then says the same words.
	lacking = regexp.MustCompile(`(?i)was unable|were unable|could not|cannot be|was not found|not able to`)
	// warning begins a help message after which mpirun goes on.
	warning = regexp.MustCompile(`^WARNING: `)
	// remark is a line of a library of MPI's networks that is no error: UCX names the level behind [time] [host:pid:thread].
	remark = regexp.MustCompile(`^\[\d+\.\d+\] \[[^\]]+\] .* UCX +(WARN|DIAG|INFO|DEBUG|TRACE) ` +
		`|^lib(ibverbs|rdmacm|fabric|psm2|hwloc|pmix|prrte)[^ ]*: +[Ww]arn`)
	// part begins a line of a part of Open MPI, which may be an error.
	part = regexp.MustCompile(`^\[[^ \]]+:\d+\] `)
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

// Output is what a program and mpirun have printed.
type Output struct {
	// Lines are those of the program that are not blank.
	Lines []Line
	// doubt is a message of mpirun that explains a report which is not complete.
	doubt error
}

// Explain returns why a report can't be read: the message of mpirun that says it, or else the error of the parser. mpirun also prints such
// messages when it goes on, so that they are none of a report that is complete.
func (o Output) Explain(err error) error {
	if err != nil && o.doubt != nil {
		return o.doubt
	}
	return err
}

// Read takes an output apart. It returns an error, with its line, for a message of mpirun that says that a process did not end well; it
// quotes what the program said of it. Other messages of mpirun are left out.
func Read(output []byte) (Output, error) {
	if err := benchmarks.BoundLines(output); err != nil {
		return Output{}, err //nolint:wrapcheck // it is a sentence about the output
	}
	var out, box []Line
	var failure, doubt *Line
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
			warns := len(box) > 1 && warning.MatchString(box[1].Text)
			switch {
			case failure == nil && !warns && bad.MatchString(line.Text):
				failure = &line
			case doubt == nil && (bad.MatchString(line.Text) || lacking.MatchString(line.Text)):
				doubt = &line
			}
		case line.Text == "", strings.HasPrefix(line.Text, own), notices.MatchString(line.Text):
		case remark.MatchString(line.Text):
		case part.MatchString(line.Text) && !strings.Contains(line.Text, "***") && !bad.MatchString(line.Text) &&
			!complaint.MatchString(line.Text):
		default:
			out = append(out, line)
		}
	}
	switch {
	case failure != nil:
		return Output{}, says(failure, out)
	case len(box) > 0:
		return Output{}, fmt.Errorf("line %d: a message of mpirun begins, and the output is cut off in it", box[0].Number)
	case doubt != nil:
		return Output{Lines: out, doubt: says(doubt, out)}, nil
	}
	return Output{Lines: out}, nil
}

// says quotes a message of mpirun, and the line of the program that probably says why.
func says(message *Line, program []Line) error {
	why := slices.IndexFunc(program, func(l Line) bool { return complaint.MatchString(l.Text) })
	if why < 0 {
		return fmt.Errorf("line %d: mpirun says %q", message.Number, benchmarks.Short(message.Text))
	}
	return fmt.Errorf("line %d: mpirun says %q; line %d says %q",
		message.Number, benchmarks.Short(message.Text), program[why].Number, benchmarks.Short(program[why].Text))
}
