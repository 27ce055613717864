package benchmarks_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
)

func TestTheTargetsOfAServerAreDistinguished(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		want   []string
	}{
		"one command":                    {"a\nb\n", []string{"a\nb\n"}},
		"two targets, in any order":      {"[target b] b1\n[target a] a1\n[target b] b2\n", []string{"a1\n", "b1\nb2\n"}},
		"empty lines":                    {"[target a]\n[target a] \n[target a]  a\n", []string{"\n\n a\n"}},
		"a line of nobody":               {"[target a] a1\nnobody\n[target a] a2\n", []string{"a1\na2\n"}},
		"brackets that name something":   {"[ 1.00, 2.00]\n[rank 0] a\n", []string{"[ 1.00, 2.00]\n[rank 0] a\n"}},
		"a last line that was not ended": {"[target a] a1", []string{"a1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			var got []string
			for _, part := range benchmarks.SplitTargets([]byte(test.output)) {
				got = append(got, string(part))
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestRanksAreDistinguished(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		count  int
		want   []string
	}{
		"one process": {"[rank 0] a\n[rank 0] b\n[rank 0 ended with exit code 0]\n", 1, []string{"a\nb\n"}},
		"lines of several, in any order": {
			"[rank 1] b1\n[rank 0] a1\n[rank 1] b2\n[rank 1 ended with exit code 0]\n[rank 0] a2\n[rank 0 ended with exit code 0]\n", 2,
			[]string{"a1\na2\n", "b1\nb2\n"},
		},
		"a process that printed nothing": {"[rank 0 ended with exit code 0]\n[rank 1] b\n[rank 1 ended with exit code 0]\n", 2, []string{"", "b\n"}},
		"as many as there are":           {"[rank 1] b\n[rank 1 ended with exit code 0]\n[rank 0 ended with exit code 0]\n", 0, []string{"", "b\n"}},
		"empty lines and blanks":         {"[rank 0] \n[rank 0]   a  \n[rank 0]\n[rank 0 ended with exit code 0]\n", 1, []string{"\n  a  \n\n"}},
		"lines of others": {
			"parallelfs: 2 workers are ready\nWarning: Permanently added 'n1' to the list of known hosts.\n[n1:7] 1 more process has sent help message x\n" +
				"[rank 0] a\n\n[rank 0 ended with exit code 0]\n", 1, []string{"a\n"},
		},
		"a line that looks like another's": {"[rank 0] [rank 1] b\n[rank 0 ended with exit code 0]\n", 1, []string{"[rank 1] b\n"}},
		"a line that looks like an end":    {"[rank 0] [rank 0 ended with exit code 1]\n[rank 0 ended with exit code 0]\n", 1, []string{"[rank 0 ended with exit code 1]\n"}},
		"an end without a newline":         {"[rank 0] a\n[rank 0 ended with exit code 0]", 1, []string{"a\n"}},
		"the line endings of a terminal":   {"[rank 0] a\r\n[rank 0 ended with exit code 0]\r\n", 1, []string{"a\r\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			parts, err := benchmarks.SplitRanks([]byte(test.output), test.count)
			g.Expect(err).NotTo(HaveOccurred())
			var got []string
			for _, part := range parts {
				got = append(got, string(part))
			}
			g.Expect(got).To(Equal(test.want))
		})
	}
}

func TestRanksThatDidNotEndWellAreRefused(t *testing.T) {
	const ended = "[rank 0 ended with exit code 0]\n"
	for name, test := range map[string]struct {
		output string
		count  int
		says   string
	}{
		"nothing":                             {"", 0, "there is output of 0 processes; 0 were started"},
		"nothing of one":                      {"", 1, "there is output of 0 processes; 1 were started"},
		"lines of nobody":                     {"a\nb\n", 0, "there is output of 0 processes"},
		"a process that did not end":          {"[rank 0] a\n", 1, "process 0 did not end; its output is cut off"},
		"one of two that did not end":         {"[rank 1] b\n[rank 0] a\n" + ended, 2, "process 1 did not end; its output is cut off"},
		"an end that is cut off":              {"[rank 0] a\n[rank 0 ended with exit", 1, `line 2 is of no process: "[rank 0 ended with exit"`},
		"a code that is cut off":              {"[rank 0] a\n[rank 0 ended with exit code 0", 1, `line 2 is of no process: "[rank 0 ended with exit code 0"`},
		"a code with something behind it":     {"[rank 0] a\n[rank 0 ended with exit code 0] x\n", 1, "line 2 is of no process"},
		"a process that failed":               {"[rank 0] a\n[rank 0 ended with exit code 1]\n", 1, "line 2: process 0 ended with exit code 1"},
		"a process that was killed":           {"[rank 0 ended with exit code 137]\n", 1, "line 1: process 0 ended with exit code 137"},
		"a code below 0":                      {"[rank 0 ended with exit code -1]\n", 1, "line 1: process 0 ended with exit code -1"},
		"a process that ended twice":          {ended + ended, 1, "line 2: process 0 ended a second time"},
		"a line behind the end":               {ended + "[rank 0] a\n", 1, "line 2: process 0 printed something after it had ended"},
		"fewer than were started":             {ended, 2, "there is output of 1 processes; 2 were started"},
		"more than were started":              {ended + "[rank 1 ended with exit code 0]\n", 1, "there is output of 2 processes; 1 were started"},
		"a number that is missing":            {ended + "[rank 2 ended with exit code 0]\n", 2, "there is no output of process 1; 2 were started"},
		"a number that is missing among all":  {ended + "[rank 2 ended with exit code 0]\n", 0, "there is no output of process 1; 2 were started"},
		"a number below 0":                    {ended + "[rank -1] a\n[rank -1 ended with exit code 0]\n", 0, "line 2 is of no process"},
		"a number with a sign":                {"[rank +0] a\n" + ended, 1, "line 1 is of no process"},
		"a number that is none":               {"[rank x] a\n" + ended, 1, "line 1 is of no process"},
		"a number beyond counting":            {"[rank 99999999999999999999] a\n" + ended, 1, "line 1 is of no process"},
		"a prefix that is cut off":            {"[rank 0] a\n" + ended + "[rank ", 1, "line 3 is of no process"},
		"two processes on one line":           {"[rank 0[rank 1] ab\n" + ended, 1, "line 1 is of no process"},
		"a start in the midst of another end": {"[rank 0 ended [rank 1] b\n", 1, "line 1 is of no process"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			parts, err := benchmarks.SplitRanks([]byte(test.output), test.count)
			g.Expect(err).To(MatchError(ContainSubstring(test.says)))
			g.Expect(parts).To(BeNil())
		})
	}
}

func TestATruncatedOutputIsRefused(t *testing.T) {
	g := NewWithT(t)
	var whole strings.Builder
	for i := range 3 {
		fmt.Fprintf(&whole, benchmarks.RankPrefix+"result %d\n", i, i)
	}
	for i := range 3 {
		fmt.Fprintf(&whole, benchmarks.RankEnd+"\n", i, 0)
	}
	text := whole.String()
	g.Expect(benchmarks.SplitRanks([]byte(text), 3)).To(HaveLen(3))
	for i := range len(text) - 1 {
		parts, err := benchmarks.SplitRanks([]byte(text[:i]), 3)
		g.Expect(err).To(HaveOccurred(), "cut off at byte %d", i)
		g.Expect(parts).To(BeNil())
	}
}

func FuzzSplitRanks(f *testing.F) {
	f.Add("[rank 1] b1\n[rank 0] a1\n[rank 1 ended with exit code 0]\n[rank 0 ended with exit code 0]\n", 2)
	f.Add("[rank 0 ended with exit code 137]\n", 0)
	f.Fuzz(func(t *testing.T, text string, count int) {
		parts, err := benchmarks.SplitRanks([]byte(text), count)
		if err != nil {
			return
		}
		if len(parts) == 0 || count > 0 && len(parts) != count {
			t.Fatalf("%d parts of %d", len(parts), count)
		}
		for rank := range parts {
			if !strings.Contains(text, fmt.Sprintf(benchmarks.RankEnd, rank, 0)) {
				t.Fatalf("process %d has not ended", rank)
			}
		}
	})
}
