// Package openmpi parses the output of an MPI program that mpirun or another launcher has started. It separates the program's lines from
// those of the launcher, of ssh and of MPI libraries, and finds lines about a failure of the program.
package openmpi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/benchmarks"
)

// Line is a line of the program's output.
type Line struct {
	// Number counts all lines of the output, from 1.
	Number int
	// Text is the line without surrounding blanks.
	Text string
}

var (
	// border matches the lines around a help message of mpirun.
	border = regexp.MustCompile(`^-{60,}$`)
	// bad matches help messages about processes that failed or were never started.
	bad = regexp.MustCompile(`(?i)abort|terminat|exited|killed|on signal|non-zero|has lost|not enough slots|failed to start`)
	// lacking matches help messages about something missing. mpirun may have continued without it, for example without a network card whose
	// port is inactive, and prints the same words in that case.
	lacking = regexp.MustCompile(`(?i)was unable|were unable|could not|cannot be|was not found|not able to`)
	// warning matches the beginning of a help message after which mpirun continues.
	warning = regexp.MustCompile(`^WARNING: `)
	// remark matches harmless lines of network libraries of MPI: UCX prints the level after [time] [host:pid:thread].
	remark = regexp.MustCompile(`^\[\d+\.\d+\] \[[^\]]+\] .* UCX +(WARN|DIAG|INFO|DEBUG|TRACE) ` +
		`|^lib(ibverbs|rdmacm|fabric|psm2|hwloc|pmix|prrte)[^ ]*: +[Ww]arn`)
	// part matches the beginning of a line of a component of Open MPI, which may be an error.
	part = regexp.MustCompile(`^\[[^ \]]+:\d+\] `)
	// notices matches harmless lines. ssh prints one for a new host. mpirun prints them for omitted messages, for a missing network component,
	// and for memory of other processes that it may not read, as in containers. It prints another one if ssh had already entered a process
	// group.
	notices = regexp.MustCompile(`^Warning: Permanently added ` +
		`|^\[[^ \]]+:\d+\] (\d+ more process(es)? ha(s|ve) sent help message|Set MCA parameter "orte_base_help_aggregate" to 0` +
		`|mca_base_component_repository_open: unable to open|Read -1, expected \d+, errno = 1$` +
		`|plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=Permission denied\(13\)$)`)
)

// launcher matches lines of a launcher, a resource manager or an MPI library about itself, at any position. They begin with a name and a
// colon, the number of a process in brackets, or words of Intel MPI, ALPS and the fabrics.
var launcher = regexp.MustCompile(`^(srun|yhrun|prun|aprun|apsched|jsrun|salloc|sbatch|slurmstepd|` +
	`mpirun|mpiexec(\.hydra)?|orterun|prterun|prted|ssh|pdsh): ` +
	`|^\[(mpiexec|proxy:\d+:\d+)@[^\]]+\] |^(\[\d+\] )?MPI startup\(\): |^\[\d+\] \w[\w ]* = |^Application \d+ resources: ` +
	`|^\[\d+\.\d+\] \[[^\]]+\] .* (MXM|UCX|HCOLL?|hcoll|SHARP|sharp) +(WARN|DIAG|INFO|DEBUG|TRACE) ` +
	`|^(\[?[\w.-]+\]?[:.]?[\w:.]*)? ?(PSM2?|OPX|hfi_wait_for_device|hwloc/linux|PMIX|libfabric):? `)

// failed matches words that mean that a program has failed.
var failed = regexp.MustCompile(`(?i)\b(abort(ed|ing)?|killed|terminat(ed|ing)|seg(mentation )?fault|core dumped` +
	`|caught signal|on signal|signal \d+` +
	`|sig(kill|term|segv|bus|abrt)|exit(ed|ing)?( with)?( exit)? (code|status)[ :]*[1-9]\d*|non-?zero|out of memory` +
	`|oom-?kill\w*|cancell?ed|time limit` +
	`|errors?|fail(ed|s|ure|ures)?|fatal|panic|exception|no space|assertion` +
	`|(invalid|illegal|unrecogni[sz]ed|unknown|bad) (option|argument))\b`)

// Failed is true for a line outside of a report that describes a failure. The numbers of such an output are not used.
func Failed(text string) bool { return failed.MatchString(text) }

// own is the prefix of the node binary's lines, which starts mpirun.
const own = "parallelfs: "

// complaint matches a line of the program that probably contains the reason.
var complaint = regexp.MustCompile(`(?i)\b(error|failed|invalid|assertion|unable|no such|no space)\b`)

// Output is the output of a program and mpirun.
type Output struct {
	// Lines holds the program's lines that are not blank.
	Lines []Line
	// Remarks holds the harmless lines of launchers and libraries.
	Remarks benchmarks.Remarks
	// doubt is a message of mpirun that explains an incomplete report.
	doubt error
}

// Explain returns the reason why a report can't be parsed: a message of mpirun, or otherwise the parser's error. mpirun also prints such
// messages when it continues, so they don't invalidate a complete report.
func (o Output) Explain(err error) error {
	if err != nil && o.doubt != nil {
		return o.doubt
	}
	return err
}

// Read splits an output. If mpirun reports that a process failed, it returns an error with that line, and quotes the program's own message.
// Other messages of mpirun are ignored.
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

// says quotes a message of mpirun, and the line of the program that probably contains the reason.
func says(message *Line, program []Line) error {
	why := slices.IndexFunc(program, func(l Line) bool { return complaint.MatchString(l.Text) })
	if why < 0 {
		return fmt.Errorf("line %d: mpirun says %q", message.Number, benchmarks.Short(message.Text))
	}
	return fmt.Errorf("line %d: mpirun says %q; line %d says %q",
		message.Number, benchmarks.Short(message.Text), program[why].Number, benchmarks.Short(program[why].Text))
}
