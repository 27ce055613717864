package custom

import (
	"bytes"
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// maxStates bounds a regular expression: matching takes up to 15 ns for each state and byte, measured with Go 1.26.
	maxStates = 512
	// maxWork bounds the work of all regular expressions of a point, in states times bytes: four seconds at worst, and usually a few tenths of
	// a second.
	maxWork = 1 << 28
	// perLine and perTry are the work for a line without the literal prefix of an expression, and for the call of the matcher: 25 and 200 ns.
	perLine, perTry = 2, 14
)

// compileExpression compiles a regular expression of RE2, and refuses one that is too large to be tried on each line.
func compileExpression(text string) (*regexp.Regexp, int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf("its regex is none of RE2: %w", err)
	}
	states := statesOf(parsed)
	if states > maxStates {
		return nil, 0, fmt.Errorf("its regex has more than %d states, as each repetition {n} counts n times; use * or + instead", maxStates)
	}
	expression, err := regexp.Compile(text)
	if err != nil {
		return nil, 0, fmt.Errorf("its regex is none of RE2: %w", err)
	}
	return expression, states, nil
}

// statesOf estimates the states of an expression without building them, and stops a little above maxStates.
func statesOf(r *syntax.Regexp) int {
	out := 1
	switch r.Op { //nolint:exhaustive // all others take one
	case syntax.OpLiteral:
		out = len(r.Rune)
	case syntax.OpConcat, syntax.OpRepeat:
		out = 0
	}
	for _, sub := range r.Sub {
		if out += statesOf(sub); out > maxStates {
			return maxStates + 1
		}
	}
	if r.Op == syntax.OpRepeat {
		out *= max(1, r.Min+1, r.Max)
	}
	return min(out, maxStates+1)
}

// bounded refuses an output that would take too long for the regular expressions of all metrics. A line without the literal prefix of an
// expression costs little.
func bounded(metrics []metric, outputs [][]byte) error {
	lines, work := 0, 0
	for _, text := range outputs {
		lines += bytes.Count(text, []byte("\n")) + 1
	}
	check := func(m metric, more int) error {
		if work += more; work <= maxWork {
			return nil
		}
		return fmt.Errorf("the output is too long for the regular expressions of the metrics: have the program print less, "+
			"begin each regex with the text before its number, or shorten them (%s has %d states)", m.Name, m.states)
	}
	for _, m := range metrics {
		if m.regex == nil {
			continue
		}
		if err := check(m, perLine*lines); err != nil {
			return err
		}
	}
	for _, m := range metrics {
		if m.regex == nil {
			continue
		}
		prefix, _ := m.regex.LiteralPrefix()
		for _, text := range outputs {
			for line := range bytes.Lines(text) {
				if prefix != "" && !bytes.Contains(line, []byte(prefix)) {
					continue
				}
				if err := check(m, perTry+len(line)*m.states); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
