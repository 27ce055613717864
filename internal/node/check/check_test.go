package check_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/check"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// TestMain implements the verb by which the node binary runs a program of the node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.OnNode {
		_, _ = fmt.Fprintln(os.Stdout, "on the node:", strings.Join(os.Args[2:], " "))
		os.Exit(len(os.Args) - 3)
	}
	os.Exit(m.Run())
}

func shell(script string) []string { return []string{"sh", "-c", script} }

// lines returns each output as one finding.
func lines(_ string, outputs [][]byte) (spec.CheckAnswer, error) {
	answer := spec.CheckAnswer{Done: true}
	for _, o := range outputs {
		answer.Findings = append(answer.Findings, spec.CheckFinding{What: strings.TrimSpace(string(o)), Count: 1})
	}
	return answer, nil
}

func TestOutputsOfToolsAreReadInTheirOrderAndShown(t *testing.T) {
	g := NewWithT(t)
	var shown bytes.Buffer
	answer, err := check.Run(t.Context(), spec.Check{Commands: [][]string{shell("echo one; echo aside >&2"), shell("echo two")}}, lines, &shown)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Findings).To(Equal([]spec.CheckFinding{{What: "one", Count: 1}, {What: "two", Count: 1}}))
	g.Expect(shown.String()).To(And(ContainSubstring("one"), ContainSubstring("aside"), ContainSubstring("two")))
}

func TestACheckHasNoResultWhen(t *testing.T) {
	refuses := func(string, [][]byte) (spec.CheckAnswer, error) {
		return spec.CheckAnswer{}, errors.New("that is no answer")
	}
	half := func(string, [][]byte) (spec.CheckAnswer, error) { return spec.CheckAnswer{Message: "half of it"}, nil }
	for sentence, c := range map[string]struct {
		commands [][]string
		read     func(string, [][]byte) (spec.CheckAnswer, error)
		says     string
	}{
		"there is no tool":                 {nil, lines, "no tool to run"},
		"a tool has no name":               {[][]string{{}}, lines, "a tool without a name"},
		"a tool is not in the image":       {[][]string{{"/nowhere/tool"}}, lines, "/nowhere/tool"},
		"a tool fails":                     {[][]string{shell("echo a server is away >&2; exit 3")}, lines, "sh ended with exit code 3: a server is away"},
		"what it prints is no answer":      {[][]string{shell("true")}, refuses, "that is no answer"},
		"it has not looked at all":         {[][]string{shell("true")}, half, "half of it"},
		"it prints more than anyone reads": {[][]string{shell("head -c 17000000 /dev/zero")}, lines, "printed more than 16 MiB"},
	} {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			answer, err := check.Run(t.Context(), spec.Check{Commands: c.commands}, c.read, &bytes.Buffer{})
			g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			g.Expect(answer.Done).To(BeFalse())
			g.Expect(answer.Message).To(ContainSubstring(c.says))
		})
	}
}

func TestAToolEndsWithThePod(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	answer, err := check.Run(ctx, spec.Check{Commands: [][]string{{"sleep", "600"}}}, lines, &bytes.Buffer{})
	g.Expect(err).To(MatchError("stopped while sleep was looking"))
	g.Expect(answer.Message).To(Equal("stopped while sleep was looking"))
	g.Expect(time.Since(began)).To(BeNumerically("<", patience.Bound(30*time.Second)))
}

func TestToolsOfTheNodeLookOnTheNode(t *testing.T) {
	g := NewWithT(t)
	var shown bytes.Buffer
	answer, err := check.Run(t.Context(), spec.Check{Host: true, Commands: [][]string{{"lctl"}}}, lines, &shown)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Findings).To(HaveExactElements(HaveField("What", "on the node: lctl")))
	_, err = check.Run(t.Context(), spec.Check{Host: true, Commands: [][]string{{"lctl", "dl"}}}, lines, &shown)
	g.Expect(err).To(MatchError(HavePrefix("lctl ended with exit code 1")))
}
