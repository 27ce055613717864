// Package guess finds which benchmark printed an output, and where its runs begin.
package guess

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// signs match lines that only one tool prints.
var signs = map[v1alpha1.BenchmarkTool]*regexp.Regexp{
	v1alpha1.ToolMdtest: regexp.MustCompile(`(?m)^\s*(-- started at .* --|mdtest-\S+ was launched with )`),
	v1alpha1.ToolIOR:    regexp.MustCompile(`(?m)^\s*(IOR-\S+: MPI Coordinated Test of Parallel I/O|"Command line"\s*:)`),
	v1alpha1.ToolFio:    regexp.MustCompile(`(?m)^(\[rank \d+\] )?\s*"fio version"\s*:|^\s*fio(-\d|: )`),
	v1alpha1.ToolIOzone: regexp.MustCompile(`(?m)^\s*(Iozone: Performance Test of File I/O|Children see throughput for )`),
	v1alpha1.ToolPostmark: regexp.MustCompile(
		`(?m)^(\[rank \d+\] )?\s*(PostMark v\d|\d+ seconds of transactions \()`),
	v1alpha1.ToolVdbench:         regexp.MustCompile(`(?m)^(<title>Vdbench |\s*Vdbench distribution: )`),
	v1alpha1.ToolOBDFilterSurvey: regexp.MustCompile(`(?m)^(\[rank \d+\] )?(.* Obdfilter-survey for case=|ost +\d+ sz +\d+K )`),
	v1alpha1.ToolMDSSurvey:       regexp.MustCompile(`(?m)^(\[rank \d+\] )?(.*mds-survey from |mdt +\d+ file +\d+ )`),
	v1alpha1.ToolNetmist:         regexp.MustCompile(`(?m)^\s*(Running \d+ copies of the test on \d+ clients|Overall average latency )`),
}

// begins match the lines with which a run begins, for the tools whose runs are often saved in one file.
var begins = map[v1alpha1.BenchmarkTool]*regexp.Regexp{
	v1alpha1.ToolMdtest: regexp.MustCompile(`(?m)^\s*-- started at .* --\s*$`),
	v1alpha1.ToolIOR:    regexp.MustCompile(`(?m)^\s*IOR-\S+: MPI Coordinated Test of Parallel I/O\s*$`),
}

// maxParts is how many runs one file may hold.
const maxParts = 256

// Tool returns the tool that has printed an output.
func Tool(output []byte) (v1alpha1.BenchmarkTool, error) {
	var found []string
	for _, tool := range slices.Sorted(maps.Keys(signs)) {
		if signs[tool].Match(output) {
			found = append(found, string(tool))
		}
	}
	switch len(found) {
	case 1:
		return v1alpha1.BenchmarkTool(found[0]), nil
	case 0:
		return "", errors.New("nothing in it shows which tool printed it; name the tool with --tool, and for one that only you know --tool custom with --spec")
	}
	return "", fmt.Errorf("it holds lines of %s; keep one tool in each file, or name the tool with --tool", strings.Join(found, " and of "))
}

// Runs splits an output with several successive runs. Each part has blank lines instead of the lines of the others, so that its line
// numbers are those of the file.
func Runs(tool v1alpha1.BenchmarkTool, output []byte) ([][]byte, error) {
	first := begins[tool]
	if first == nil {
		return [][]byte{output}, nil
	}
	places := first.FindAllIndex(output, maxParts+1)
	switch {
	case len(places) < 2:
		return [][]byte{output}, nil
	case len(places) > maxParts:
		return nil, fmt.Errorf("it holds more than %d runs of %s; keep fewer in one file", maxParts, tool)
	}
	out := make([][]byte, 0, len(places))
	from := 0
	for i := range places {
		to := len(output)
		if i+1 < len(places) {
			to = places[i+1][0]
		}
		out = append(out, append(bytes.Repeat([]byte("\n"), bytes.Count(output[:from], []byte("\n"))), output[from:to]...))
		from = to
	}
	return out, nil
}
