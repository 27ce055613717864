package benchmarks

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// RankPrefix begins each line of the output of one of several processes: "[rank 3] ", as the node binary prints it. A process that has
// ended is said by the line RankEnd.
const (
	RankPrefix = "[rank %d] "
	RankEnd    = "[rank %d ended with exit code %d]"
	// TargetPrefix begins each line, behind RankPrefix, of a command that was started once for each target of a server
	// (Command.ForEachTarget): "[target pfs-MDT0001] ".
	TargetPrefix = "[target %s] "
)

var (
	targetLine = regexp.MustCompile(`^\[target ([^ \]]{1,64})\] ?`)
	rankLine   = regexp.MustCompile(`^\[rank (0|[1-9]\d{0,8})\] ?`)
	rankEnd    = regexp.MustCompile(`^\[rank (0|[1-9]\d{0,8}) ended with exit code (-?\d{1,9})\]\r?\n?$`)
)

// SplitRanks takes the output of OnEachProcess, OnEachClient and OnServers apart, by the number of the process. Lines of nobody, such as
// those of ssh and mpirun and those that begin with "parallelfs: ", are left out. It returns an error for a process that did not say that
// it ended, or that ended with another exit code than 0, and unless there are the numbers from 0 to count-1; count 0 takes as many as
// there are.
func SplitRanks(output []byte, count int) ([][]byte, error) {
	parts, ended := map[int]*bytes.Buffer{}, map[int]bool{}
	number := 0
	for line := range strings.Lines(string(output)) {
		number++
		if !strings.HasPrefix(line, "[rank ") {
			continue
		}
		end := rankEnd.FindStringSubmatch(line)
		match := end
		if end == nil {
			match = rankLine.FindStringSubmatch(line)
		}
		if match == nil {
			return nil, fmt.Errorf("line %d is of no process: %q", number, strings.TrimSpace(line))
		}
		rank, err := strconv.Atoi(match[1])
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		if parts[rank] == nil {
			parts[rank] = &bytes.Buffer{}
		}
		switch {
		case end == nil && ended[rank]:
			return nil, fmt.Errorf("line %d: process %d printed something after it had ended", number, rank)
		case end == nil:
			_, _ = parts[rank].WriteString(line[len(match[0]):])
		case ended[rank]:
			return nil, fmt.Errorf("line %d: process %d ended a second time", number, rank)
		case end[2] != "0":
			return nil, fmt.Errorf("line %d: process %d ended with exit code %s", number, rank, end[2])
		default:
			ended[rank] = true
		}
	}
	if count == 0 {
		count = len(parts)
	}
	if len(parts) != count || count == 0 {
		return nil, fmt.Errorf("there is output of %d processes; %d were started", len(parts), count)
	}
	out := make([][]byte, count)
	for rank := range count {
		if parts[rank] == nil {
			return nil, fmt.Errorf("there is no output of process %d; %d were started", rank, count)
		}
		if !ended[rank] {
			return nil, fmt.Errorf("process %d did not end; its output is cut off", rank)
		}
		out[rank] = parts[rank].Bytes()
	}
	return out, nil
}

// SplitTargets takes the output of one server apart by the targets that a command was started for, in their order. Output in which no line
// names one is that of one command; a line that names none between lines that do is left out, like those of nobody.
func SplitTargets(output []byte) [][]byte {
	parts := map[string]*bytes.Buffer{}
	for line := range bytes.Lines(output) {
		match := targetLine.FindSubmatch(line)
		if match == nil {
			continue
		}
		name := string(match[1])
		if parts[name] == nil {
			parts[name] = &bytes.Buffer{}
		}
		_, _ = parts[name].Write(line[len(match[0]):])
	}
	if len(parts) == 0 {
		return [][]byte{output}
	}
	out := make([][]byte, 0, len(parts))
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		out = append(out, parts[name].Bytes())
	}
	return out
}
