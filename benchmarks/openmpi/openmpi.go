// Package openmpi reads the output of an MPI program that mpirun or another launcher has started: it separates the program's lines from
// those of the launcher, of ssh and of MPI's libraries, and finds those that say that the program has not ended well.
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
	// lacking is what a help message says of something that was not there. mpirun may have gone on without it, such as without a
	// network card
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

// launcher are lines that a launcher, a resource manager or a library of MPI prints of itself, wherever they come: a name with a
// colon, the number of a process in brackets, or the words that Intel MPI, ALPS and the fabrics begin with.
var launcher = regexp.MustCompile(`^(srun|yhrun|prun|aprun|apsched|jsrun|salloc|sbatch|slurmstepd|` +
	`mpirun|mpiexec(\.hydra)?|orterun|prterun|prted|ssh|pdsh): ` +
	`|^\[(mpiexec|proxy:\d+:\d+)@[^\]]+\] |^(\[\d+\] )?MPI startup\(\): |^\[\d+\] \w[\w ]* = |^Application \d+ resources: ` +
	`|^\[\d+\.\d+\] \[[^\]]+\] .* (MXM|UCX|HCOLL?|hcoll|SHARP|sharp) +(WARN|DIAG|INFO|DEBUG|TRACE) ` +
	`|^(\[?[\w.-]+\]?[:.]?[\w:.]*)? ?(PSM2?|OPX|hfi_wait_for_device|hwloc/linux|PMIX|libfabric):? `)

// failed are words after which a program has not done what it was to do.
var failed = regexp.MustCompile(`(?i)\b(abort(ed|ing)?|killed|terminat(ed|ing)|seg(mentation )?fault|core dumped` +
	`|caught signal|on signal|signal \d+` +
	`|sig(kill|term|segv|bus|abrt)|exit(ed|ing)?( with)?( exit)? (code|status)[ :]*[1-9]\d*|non-?zero|out of memory` +
	`|oom-?kill\w*|cancell?ed|time limit` +
	`|errors?|fail(ed|s|ure|ures)?|fatal|panic|exception|no space|assertion` +
	`|(invalid|illegal|unrecogni[sz]ed|unknown|bad) (option|argument))\b`)

// Failed is true for a line outside of a report that says that something has not ended well. The numbers of such an output are not used.
func Failed(text string) bool { return failed.MatchString(text) }

// own begins the lines of the node binary, which starts mpirun.
const own = "parallelfs: "

// complaint is a line of the program that probably says why.
var complaint = regexp.MustCompile(`(?i)\b(error|failed|invalid|assertion|unable|no such|no space)\b`)

// Output is what a program and mpirun have printed.
type Output struct {
	// Lines are those of the program that are not blank.
	Lines []Line
	// Remarks are lines of launchers and libraries that are no error.
	Remarks benchmarks.Remarks
	// doubt is a message of mpirun that explains a report which is not complete.
	doubt error
}

// Explain returns why a report can't be read: the message of mpirun that says it, or else the error of the parser. mpirun also
// prints such
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
	var remarks benchmarks.Remarks
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
		case line.Text == "", strings.HasPrefix(line.Text, own):
		case notices.MatchString(line.Text), remark.MatchString(line.Text),
			part.MatchString(line.Text) && !strings.Contains(line.Text, "***") && !bad.MatchString(line.Text) && !complaint.MatchString(line.Text),
			launcher.MatchString(line.Text) && !Failed(line.Text):
			remarks.Add(number, line.Text)
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
		return Output{Lines: out, Remarks: remarks, doubt: says(doubt, out)}, nil
	}
	return Output{Lines: out, Remarks: remarks}, nil
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
