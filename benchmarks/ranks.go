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

// RankPrefix is the prefix of each output line of one of several processes, such as "[rank 3] ". The node binary prints it. RankEnd is the
// line for the end of a process.
const (
	RankPrefix = "[rank %d] "
	RankEnd    = "[rank %d ended with exit code %d]"
)

var (
	// targetLine matches the prefix, after RankPrefix, of each line of a command that was started once for each target of a server
	// (Command.ForEachTarget), such as "[target pfs-MDT0001] ".
	targetLine = regexp.MustCompile(`^\[target ([^ \]]{1,64})\] ?`)
	rankEnd    = regexp.MustCompile(`^\[rank (0|[1-9]\d{0,8}) ended with exit code (-?\d{1,9})\]\r?\n?$`)
)

// SplitRanks splits the output of OnEachProcess, OnEachClient and OnServers by the number of the process. Lines without a process are left
// out, such as those of ssh and mpirun, and those that begin with "parallelfs: ". It returns an error for a process without a RankEnd line
// or with another exit code than 0, and unless the processes 0 to count-1 exist. count 0 accepts any number.
func SplitRanks(output []byte, count int) ([][]byte, error) {
	if len(output) > MaxOutput {
		return nil, tooLarge(len(output))
	}
	sizes, ended, err := ranks(output)
	if err != nil {
		return nil, err
	}
	if count == 0 {
		count = len(sizes)
	}
	if len(sizes) != count || count == 0 {
		return nil, fmt.Errorf("there is output of %d processes; %d were started", len(sizes), count)
	}
	out := make([][]byte, count)
	for rank := range count {
		size, found := sizes[rank]
		if !found {
			return nil, fmt.Errorf("there is no output of process %d; %d were started", rank, count)
		}
		if !ended[rank] {
			return nil, fmt.Errorf("process %d did not end; its output is cut off", rank)
		}
		out[rank] = make([]byte, 0, size)
	}
	for line := range bytes.Lines(output) {
		if rank, rest, is := ofRank(line); is {
			out[rank] = append(out[rank], rest...)
		}
	}
	return out, nil
}

// ranks returns the size of each process's output, and the processes that have succeeded.
func ranks(output []byte) (sizes map[int]int, ended map[int]bool, err error) {
	sizes, ended = map[int]int{}, map[int]bool{}
	number := 0
	for line := range bytes.Lines(output) {
		number++
		if !bytes.HasPrefix(line, []byte("[rank ")) {
			continue
		}
		rank, rest, is := ofRank(line)
		code := ""
		if !is {
			match := rankEnd.FindSubmatch(line)
			if match == nil {
				return nil, nil, fmt.Errorf("line %d is of no process: %q", number, Short(strings.TrimSpace(string(line))))
			}
			rank, err = strconv.Atoi(string(match[1]))
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", number, err)
			}
			code = string(match[2])
		}
		switch {
		case rank >= maxRank:
			return nil, nil, fmt.Errorf("line %d is of process %d, and the numbers end below %d", number, rank, maxRank)
		case is && ended[rank]:
			return nil, nil, fmt.Errorf("line %d: process %d printed something after it had ended", number, rank)
		case is:
			sizes[rank] += len(rest)
		case ended[rank]:
			return nil, nil, fmt.Errorf("line %d: process %d ended a second time", number, rank)
		case code != "0":
			return nil, nil, fmt.Errorf("line %d: process %d ended with exit code %s", number, rank, code)
		default:
			sizes[rank] += 0
			ended[rank] = true
		}
	}
	return sizes, ended, nil
}

// ofRank returns the number of the process that printed a line, and the text; false for a line without a process and for RankEnd.
func ofRank(line []byte) (rank int, rest []byte, is bool) {
	const most = 9 // digits
	rest, is = bytes.CutPrefix(line, []byte("[rank "))
	digits := 0
	for is && digits < min(len(rest), most) && rest[digits] >= '0' && rest[digits] <= '9' {
		rank = rank*10 + int(rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 1 && rest[0] == '0' || digits == len(rest) || rest[digits] != ']' {
		return 0, nil, false
	}
	return rank, bytes.TrimPrefix(rest[digits+1:], []byte(" ")), true
}

// SplitTargets splits the output of one server by the targets of a command, in their order. Output without any target is that of one
// command. A line without a target between lines with one is left out.
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
