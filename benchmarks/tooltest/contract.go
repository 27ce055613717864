// Package tooltest is the contract of benchmarks.Tool as a test, which every tool runs on real output of its own.
package tooltest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	. "github.com/onsi/gomega" //nolint:staticcheck // a test, though it stands in no file of that name

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/sweep"
)

// Case is a run of one point and what the tool really printed when it was run well.
type Case struct {
	// Spec has one point.
	Spec *v1alpha1.BenchmarkRunSpec
	// Output is that of one repetition.
	Output []byte
}

// Run holds a tool to its contract. The cases' names are sentences.
func Run(t *testing.T, tool benchmarks.Tool, cases map[string]Case) {
	NewWithT(t).Expect(cases).NotTo(BeEmpty())
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			points, err := sweep.Expand(tool, c.Spec)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(points).To(HaveLen(1))
			s := suite{tool: tool, spec: c.Spec, point: points[0], output: c.Output}
			t.Run("serves the tool of the spec", func(t *testing.T) { NewWithT(t).Expect(tool.Name()).To(Equal(c.Spec.Tool)) })
			t.Run("is pure", s.pure)
			t.Run("has parameters that each change the command", s.parameters)
			t.Run("refuses a point without a usable value of each parameter", s.unusable)
			t.Run("gives samples that the API can hold", s.samples)
			t.Run("refuses output that is cut off anywhere", s.cutOff)
			t.Run("refuses what is no output of one repetition", s.garbage)
		})
	}
}

// suite is one case.
type suite struct {
	tool   benchmarks.Tool
	spec   *v1alpha1.BenchmarkRunSpec
	point  benchmarks.Point
	output []byte
}

// with is the point with another value of a parameter.
func (s suite) with(name v1alpha1.SweepName, value string) benchmarks.Point {
	out := s.point
	out.Parameters = maps.Clone(s.point.Parameters)
	out.Parameters[name] = value
	return out
}

func (s suite) pure(t *testing.T) {
	g := NewWithT(t)
	spec, output, point := s.spec.DeepCopy(), bytes.Clone(s.output), s.point
	point.Parameters, point.Varied = maps.Clone(s.point.Parameters), slices.Clone(s.point.Varied)
	parameters := s.tool.Parameters(s.spec)
	command, err := s.tool.Command(s.spec, s.point)
	g.Expect(err).NotTo(HaveOccurred())
	samples, err := s.tool.Parse(s.spec, s.point, s.output)
	g.Expect(err).NotTo(HaveOccurred())
	for range 5 {
		g.Expect(s.tool.Parameters(s.spec)).To(Equal(parameters))
		g.Expect(s.tool.Command(s.spec, s.point)).To(Equal(command))
		g.Expect(s.tool.Parse(s.spec, s.point, s.output)).To(Equal(samples))
	}
	g.Expect(s.spec).To(Equal(spec), "the spec is not changed")
	g.Expect(s.point).To(Equal(point), "the point is not changed")
	g.Expect(bytes.Equal(s.output, output)).To(BeTrue(), "the output is not changed")
}

func (s suite) parameters(t *testing.T) {
	g := NewWithT(t)
	base, err := s.tool.Command(s.spec, s.point)
	g.Expect(err).NotTo(HaveOccurred())
	seen := map[v1alpha1.SweepName]bool{}
	for _, p := range s.tool.Parameters(s.spec) {
		g.Expect(seen).NotTo(HaveKey(p.Name), "a parameter is named once")
		seen[p.Name] = true
		changed, accepted := false, 0
		for _, value := range others(g, p) {
			command, err := s.tool.Command(s.spec, s.with(p.Name, value))
			if invalid := (*benchmarks.InvalidPointError)(nil); errors.As(err, &invalid) {
				continue
			}
			g.Expect(err).NotTo(HaveOccurred())
			accepted++
			changed = changed || fmt.Sprintf("%+v", command) != fmt.Sprintf("%+v", base)
		}
		g.Expect(accepted).To(BeNumerically(">", 0), "%s has another value that can be run", p.Name)
		g.Expect(changed).To(BeTrue(), "%s changes the command", p.Name)
	}
}

// others are values other than the parameter's own, some of which can be run.
func others(g *WithT, p benchmarks.Parameter) []string {
	if p.Kind == benchmarks.Size {
		bytes, err := benchmarks.ParseSize(p.Value)
		g.Expect(err).NotTo(HaveOccurred())
		return []string{benchmarks.FormatSize(bytes * 2), benchmarks.FormatSize(max(benchmarks.Kilo, bytes/2/benchmarks.Kilo*benchmarks.Kilo))}
	}
	if p.Value == "" {
		return []string{"1", "2"}
	}
	number, err := benchmarks.ParseCount(p.Value)
	g.Expect(err).NotTo(HaveOccurred())
	return []string{fmt.Sprint(number * 2), fmt.Sprint(max(1, number/2))}
}

func (s suite) unusable(t *testing.T) {
	g := NewWithT(t)
	for _, p := range s.tool.Parameters(s.spec) {
		for _, value := range []string{"", "0", "-1", "x", "1.5", "4Ki", "9223372036854775807", "999999999999g"} {
			_, err := s.tool.Command(s.spec, s.with(p.Name, value))
			var invalid *benchmarks.InvalidPointError
			g.Expect(errors.As(err, &invalid)).To(BeTrue(), "%s=%q: %v", p.Name, value, err)
			g.Expect(err).To(MatchError(ContainSubstring(string(p.Name))), "the error names the parameter")
		}
	}
}

func (s suite) samples(t *testing.T) {
	g := NewWithT(t)
	samples, err := s.tool.Parse(s.spec, s.point, s.output)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(samples).NotTo(BeEmpty())
	g.Expect(len(samples)).To(BeNumerically("<=", 32), "status.points[].metrics holds 32")
	var seen []string
	for _, sample := range samples {
		g.Expect(sample.Name).To(MatchRegexp("^[a-z][A-Za-z0-9]{0,63}$"))
		g.Expect(sample.Unit).To(MatchRegexp("^[^ ].{0,31}$"))
		g.Expect(sample.Value).To(BeNumerically(">=", 0))
		g.Expect(math.IsInf(sample.Value, 0)).To(BeFalse())
		key := sample.Name + " " + sample.Unit
		g.Expect(slices.Contains(seen, key)).To(BeFalse(), "%s is measured once", key)
		seen = append(seen, key)
	}
}

// refused expects an error and no samples.
func (s suite) refused(g *WithT, output []byte, what string) {
	samples, err := s.tool.Parse(s.spec, s.point, output)
	g.Expect(err).To(HaveOccurred(), what)
	g.Expect(samples).To(BeNil(), what)
}

func (s suite) cutOff(t *testing.T) {
	g := NewWithT(t)
	whole := bytes.TrimRight(s.output, " \t\r\n")
	cuts := 0
	for i, c := range whole {
		if c == '\n' {
			s.refused(g, whole[:i], fmt.Sprintf("cut off before byte %d", i))
			s.refused(g, whole[:i+1], fmt.Sprintf("cut off at byte %d", i))
			cuts++
		}
	}
	g.Expect(cuts).To(BeNumerically(">", 1))
	s.refused(g, whole[:len(whole)-1], "without its last character")
}

func (s suite) garbage(t *testing.T) {
	g := NewWithT(t)
	for what, output := range map[string][]byte{
		"nothing":          nil,
		"blanks":           []byte(" \n\t\n\n"),
		"zeros":            make([]byte, 4096),
		"words":            []byte("the quick brown fox\njumps over 42 lazy dogs\n"),
		"one long line":    bytes.Repeat([]byte("9"), 1<<20),
		"two repetitions":  slices.Concat(s.output, []byte("\n"), s.output),
		"without newlines": bytes.ReplaceAll(s.output, []byte("\n"), nil),
	} {
		s.refused(g, output, what)
	}
}
