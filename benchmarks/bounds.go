package benchmarks

import (
	"bytes"
	"fmt"
)

// The content of an output is under the control of anyone who may create a BenchmarkRun. Therefore every parser has bounds from the start:
// it allocates at most 64 MiB, whatever it reads.
const (
	// MaxOutput is the maximum size of an output in bytes.
	MaxOutput = 16 << 20
	// MaxLines bounds the lines of a report that is read line by line. Vdbench prints one line per second, which makes 86400 lines per day.
	MaxLines = 1 << 17
	// MaxLine bounds the bytes of one line.
	MaxLine = 64 << 10
	// maxRank bounds the number of processes, as the API does.
	maxRank = 65536
	// maxDepth bounds the nesting of JSON.
	maxDepth = 64
)

// BoundLines refuses a report with more or longer lines than a tool prints.
func BoundLines(output []byte) error {
	if len(output) > MaxOutput {
		return tooLarge(len(output))
	}
	number := 0
	for line := range bytes.Lines(output) {
		number++
		switch {
		case number > MaxLines:
			return fmt.Errorf("the output has more than %d lines, which no report has; have the tool print less", MaxLines)
		case len(line) > MaxLine:
			return fmt.Errorf("line %d has more than %d KiB, which no line of a report has", number, MaxLine>>10)
		}
	}
	return nil
}

// BoundJSON refuses a JSON document before it is decoded if it has more than most values or is nested deeper than 64 levels, because
// decoding takes up to 200 bytes for each value. It returns an upper bound of their number from the number of brackets and commas.
func BoundJSON(text []byte, most int) (values int, err error) {
	values = 1
	depth := 0
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			values++
			depth++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
		switch {
		case values > most:
			return 0, fmt.Errorf("its JSON has more than %d values; have the program print less", most)
		case depth > maxDepth:
			return 0, fmt.Errorf("its JSON is nested deeper than %d levels", maxDepth)
		}
	}
	return values, nil
}

func tooLarge(size int) error {
	return fmt.Errorf("the output has %d MiB, and at most %d are read; have the tool print less", (size+1<<20-1)>>20, MaxOutput>>20)
}
