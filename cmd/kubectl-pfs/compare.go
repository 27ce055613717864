package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

func (a *app) compareCommand() *cobra.Command {
	fail, suite := false, false
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare B with A, point by point",
		Long: `compare shows how far the results of B differ from those of A. Each is a BenchmarkRun, a BenchmarkSuite, a file with a document (a
name with a dot or slash; - is standard input), or a published table as published/NAME.

Points are matched by their parameters, metrics by name and unit. A difference counts as better or worse only when it is beyond what
repetitions alone could make; without repetitions on either side, nobody can say. What only one of the two has is named on stderr.`,
		Example: `  kubectl pfs bench compare creates-before creates-after
  kubectl pfs bench compare old-results.json creates --fail-on-regression
  kubectl pfs bench compare published/moosefs-ipoib-2017-table2-distributed moosefs`,
		Args: exactly("A", "B"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compare(cmd, args[0], args[1], suite, fail) },
	}
	cmd.Flags().BoolVar(&fail, "fail-on-regression", false, "exit with 3 when something is worse beyond the noise")
	cmd.Flags().BoolVar(&suite, "suite", false, "A and B are BenchmarkSuites, though BenchmarkRuns have those names too")
	return cmd
}

// pair is what is compared: two runs, and the variant and run of a suite that they are of.
type pair struct {
	name string
	a, b results.Run
}

func (a *app) compare(cmd *cobra.Command, nameA, nameB string, suite, fail bool) error {
	first, err := a.load(cmd.Context(), nameA, suite)
	if err != nil {
		return err
	}
	second, err := a.load(cmd.Context(), nameB, suite)
	if err != nil {
		return err
	}
	first.say(cmd)
	second.say(cmd)
	pairs, err := pairsOf(first, second)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "POINT\tMETRIC\tUNIT\tA\tB\tCHANGE\tVERDICT\n") // the writer keeps the error for Flush
	compared, worse := 0, 0
	var sums, missing []string
	for _, p := range pairs {
		points, sum := against(p.b.Points, p.a)
		sums = append(sums, strings.TrimPrefix(p.name+": "+sum, ": "))
		missing = append(missing, unmatched(p.name, p.b, points, "only B has")...)
		back, _ := against(p.a.Points, p.b)
		missing = append(missing, unmatched(p.name, p.a, back, "only A has")...)
		for _, point := range points {
			at := strings.TrimSpace(p.name + " " + pointName(p.b, point))
			for _, m := range point.Metrics {
				if m.Baseline == nil {
					continue
				}
				compared++
				if m.Baseline.Verdict == results.Worse {
					worse++
				}
				_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%+.1f %%\t%s\n", // the writer keeps the error for Flush
					at, m.Name, m.Unit, plain(m.Baseline.Value), plain(m.Value), m.Baseline.Change*100, m.Baseline.Verdict)
			}
		}
	}
	if compared == 0 {
		return fmt.Errorf("nothing of %s has the same parameters, metric and unit as something of %s, so nothing was compared", nameB, nameA)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, text := range sums {
		cmd.PrintErrln(text + ".")
	}
	for _, text := range missing[:min(len(missing), mostMissing)] {
		cmd.PrintErrln("Not compared: " + text + ".")
	}
	if more := len(missing) - mostMissing; more > 0 {
		cmd.PrintErrln(fmt.Sprintf("Not compared: %d more points.", more))
	}
	if worse > 0 && fail {
		return &exitError{exitRegression, fmt.Sprintf("%d of %d values are worse beyond the noise", worse, compared)}
	}
	return nil
}

// mostMissing points that could not be compared are named.
const mostMissing = 20

// against compares points with those of a run, without a trace of earlier comparisons.
func against(points []results.Point, other results.Run) ([]results.Point, string) {
	out := slices.Clone(points)
	for i := range out {
		out[i].Metrics = slices.Clone(out[i].Metrics)
		for j := range out[i].Metrics {
			out[i].Metrics[j].Baseline = nil
		}
	}
	return out, stats.Compare(out, other.Points, other.Name)
}

// unmatched names the points, and what of them, that have nothing beside them on the other side, and those without a result.
func unmatched(prefix string, run results.Run, points []results.Point, whose string) []string {
	var out []string
	for _, p := range points {
		at := strings.TrimSpace(prefix + " " + pointName(run, p))
		var names []string
		for _, m := range p.Metrics {
			if m.Baseline == nil {
				names = append(names, m.Name+" in "+m.Unit)
			}
		}
		switch {
		case len(p.Metrics) == 0:
			out = append(out, fmt.Sprintf("%s, which is %s in %s", at, strings.ToLower(string(p.State)), run.Name))
		case len(names) > 0:
			out = append(out, fmt.Sprintf("%s, of which %s %s", at, whose, strings.Join(names, ", ")))
		}
	}
	return out
}

// pairsOf are the runs that belong together.
func pairsOf(a, b document) ([]pair, error) {
	switch {
	case a.run != nil && b.run != nil:
		return []pair{{"", *a.run, *b.run}}, nil
	case a.run != nil || b.run != nil:
		return nil, fmt.Errorf("one of %s and %s is a run and the other a suite; compare two of the same kind", a.name, b.name)
	}
	var out []pair
	for _, variant := range b.suite.Variants {
		for _, run := range variant.Runs {
			for _, other := range a.suite.Variants {
				for _, before := range other.Runs {
					if other.Name == variant.Name && before.Name == run.Name {
						out = append(out, pair{variant.Name + "/" + run.Name, before.Run, run.Run})
					}
				}
			}
		}
	}
	return out, nil
}

// pointName names a point by what varies in its run; where nothing does, by all its parameters.
func pointName(run results.Run, point results.Point) string {
	var parts []string
	for _, name := range run.Varied() {
		if text := point.Value(name); text != "" {
			parts = append(parts, fmt.Sprintf("%s=%s", name, text))
		}
	}
	if len(parts) == 0 {
		for _, v := range point.Parameters {
			parts = append(parts, fmt.Sprintf("%s=%s", v.Name, v.Value))
		}
	}
	return strings.Join(parts, " ")
}

// plain writes a number with at most three decimals and no exponent.
func plain(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(v, 'f', 3, 64), "0"), ".")
}
