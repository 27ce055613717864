package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

func (a *app) compareCommand() *cobra.Command {
	var flags compareFlags
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Compare B with A, point by point",
		Long: `compare shows how far the results of B differ from those of A. Each is a BenchmarkRun, a BenchmarkSuite, a file with a document (a
name with a dot or slash; - is standard input), or a published table as published/NAME, with variants as published/NAME/VARIANT.

Points are matched by their parameters, metrics by name and unit. A difference counts as better or worse only when it is at least
--tolerance, and beyond what repetitions alone could make: of all that is compared at once, two equal runs differ in anything in at most
5 % of cases (Welch's t-test, Holm's method). With --metric, only the named metrics are judged, which finds smaller losses in them. Without
repetitions on either side, nobody can say. What only one of the two has is named on stderr, and so is what differs between them: versions,
configuration, clients, placement. Two that did not measure the same (another tool, statistic or unit, other options of the tool, other
caches) are not compared, unless --allow-differences asks for it.`,
		Example: `  kubectl pfs bench compare creates-before creates-after
  kubectl pfs bench compare old-results.json creates --fail-on-regression --tolerance 5
  kubectl pfs bench compare creates-before creates-after --metric 'File creation'
  kubectl pfs bench compare published/netapp-tr4782-mdtest scratch
  kubectl pfs bench compare published/lustre-2014-mdtest-low/lustre2 creates`,
		Args: exactly("A", "B"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.compare(cmd, args[0], args[1], flags) },
	}
	cmd.Flags().BoolVar(&flags.fail, "fail-on-regression", false, "exit with 3 when something is worse")
	cmd.Flags().Float64Var(&flags.tolerance, "tolerance", 100*stats.DefaultTolerance, "smallest difference that counts as better or worse, in percent")
	cmd.Flags().StringArrayVar(&flags.metrics, "metric", nil, "judge this metric alone, such as 'File creation'; repeat it for several")
	cmd.Flags().BoolVar(&flags.allow, "allow-differences", false, "compare although A and B did not measure the same")
	cmd.Flags().BoolVar(&flags.suite, "suite", false, "A and B are BenchmarkSuites, though BenchmarkRuns have those names too")
	return cmd
}

type compareFlags struct {
	fail, allow, suite bool
	tolerance          float64
	metrics            []string
}

// pair holds the two runs of a comparison, and their variant and run if they belong to a suite.
type pair struct {
	name string
	a, b results.Run
}

func (a *app) compare(cmd *cobra.Command, nameA, nameB string, flags compareFlags) error {
	if math.IsNaN(flags.tolerance) || flags.tolerance < 0 || flags.tolerance >= 100 {
		return usage(fmt.Errorf("--tolerance is %v instead of a percentage from 0 to less than 100", flags.tolerance))
	}
	first, err := a.load(cmd.Context(), nameA, flags.suite)
	if err != nil {
		return err
	}
	second, err := a.load(cmd.Context(), nameB, flags.suite)
	if err != nil {
		return err
	}
	first.say(cmd)
	second.say(cmd)
	pairs, err := pairsOf(first, second)
	if err != nil {
		return err
	}
	// All pairs together are one family of tests.
	found := stats.Compare(statsPairs(pairs), stats.Terms{
		Tolerance: flags.tolerance / 100, AllowDifferences: flags.allow, Metrics: flags.metrics,
	})
	for i, p := range pairs {
		calls(p, &found[i])
	}
	if err := refused(cmd, pairs, found, flags.allow); err != nil {
		return err
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "POINT\tMETRIC\tUNIT\tA\tB\tCHANGE\tVERDICT\n") // the writer keeps the error for Flush
	compared, worse := 0, 0
	for _, p := range pairs {
		for _, point := range p.b.Points {
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
	notes(cmd, pairs, found)
	if worse > 0 && flags.fail {
		return &exitError{exitRegression, fmt.Sprintf("%d of %d values are worse, beyond the noise and by at least %s %%", worse, compared, plain(flags.tolerance))}
	}
	return nil
}

// statsPairs returns the pairs in the order of the comparison: B with A.
func statsPairs(pairs []pair) []stats.Pair {
	out := make([]stats.Pair, 0, len(pairs))
	for _, p := range pairs {
		out = append(out, stats.Pair{Run: p.b, Baseline: p.a, Of: p.a.Name})
	}
	return out
}

// calls compares the command lines of the tool, where one side was read from a saved output. An option without a field in the spec may
// change the measurement; other words, such as a directory, are only listed. It names the first points of the same parameters that differ.
func calls(p pair, found *results.Comparison) {
	if p.a.UID != "" && p.b.UID != "" {
		return
	}
	named := false
	for _, here := range p.b.Points {
		for _, there := range p.a.Points {
			if !matches(here, there) || len(here.Command) == 0 && len(there.Command) == 0 {
				continue
			}
			if x, y := only(here.Options, there.Options), only(there.Options, here.Options); x != y {
				found.Refused = append(found.Refused, results.Difference{
					What: fmt.Sprintf("what no field of a spec stands for in the options of point %d", here.Index),
					Here: cmp.Or(x, "not there"), There: cmp.Or(y, "not there"),
				})
				return
			}
			if len(here.Command) == 0 || len(there.Command) == 0 || named {
				continue
			}
			if x, y := only(here.Command, there.Command), only(there.Command, here.Command); x != y {
				found.Differs = append(found.Differs, results.Difference{
					What: fmt.Sprintf("the command line of point %d", here.Index), Here: cmp.Or(x, "not there"), There: cmp.Or(y, "not there"),
				})
				named = true
			}
		}
	}
}

// matches is true for points whose common parameters are all equal.
func matches(a, b results.Point) bool {
	for _, v := range a.Parameters {
		if other := b.Value(v.Name); other != "" && !results.Same(v.Name, other, v.Value) {
			return false
		}
	}
	return true
}

// only returns the words of one list that another lacks.
func only(words, others []string) string {
	left := slices.Clone(others)
	var out []string
	for _, word := range words {
		if i := slices.Index(left, word); i >= 0 {
			left = slices.Delete(left, i, i+1)
			continue
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// refused prints on stderr why the numbers of two runs are not comparable, and returns an error unless that was allowed.
func refused(cmd *cobra.Command, pairs []pair, found []results.Comparison, allowed bool) error {
	count := 0
	for i, p := range pairs {
		for _, d := range found[i].Refused {
			count++
			cmd.PrintErrln(named(p, "Measured otherwise", d))
		}
	}
	if count > 0 && !allowed {
		return errors.New("the two runs did not measure the same, so nothing was compared; --allow-differences compares all the same")
	}
	return nil
}

// named describes a difference.
func named(p pair, what string, d results.Difference) string {
	if p.name != "" {
		what += " in " + p.name
	}
	return fmt.Sprintf("%s: %s is %s in A and %s in B.", what, d.What, d.There, d.Here)
}

// notes prints on stderr the summary of the comparison, other differences, and the points that could not be compared.
func notes(cmd *cobra.Command, pairs []pair, found []results.Comparison) {
	var missing, differs []string
	for i, p := range pairs {
		cmd.PrintErrln(strings.TrimPrefix(p.name+": "+found[i].Summary, ": ") + ".")
		for _, d := range found[i].Differs {
			differs = append(differs, named(p, "Differs", d))
		}
		missing = append(missing, unmatched(p.name, p.b, p.b.Points, "only B has")...)
		back := turned(p)
		missing = append(missing, unmatched(p.name, p.a, back.Points, "only A has")...)
	}
	for _, text := range differs {
		cmd.PrintErrln(text)
	}
	for _, text := range missing[:min(len(missing), mostMissing)] {
		cmd.PrintErrln("Not compared: " + text + ".")
	}
	if more := len(missing) - mostMissing; more > 0 {
		cmd.PrintErrln(fmt.Sprintf("Not compared: %d more points.", more))
	}
}

// turned is A compared with B, which shows the points of A without a counterpart.
func turned(p pair) results.Run {
	out := copied(p.a)
	stats.Compare([]stats.Pair{{Run: out, Baseline: p.b}}, stats.Terms{AllowDifferences: true})
	return out
}

// copied returns a copy of a run with its own metrics, without the results of earlier comparisons.
func copied(run results.Run) results.Run {
	run.Points = slices.Clone(run.Points)
	for i := range run.Points {
		run.Points[i].Metrics = slices.Clone(run.Points[i].Metrics)
		for j := range run.Points[i].Metrics {
			run.Points[i].Metrics[j].Baseline = nil
		}
	}
	return run
}

// mostMissing is how many points that could not be compared are listed.
const mostMissing = 20

// unmatched lists the points and metrics without a counterpart on the other side, and those without a result.
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

// pairsOf returns the runs that belong together.
func pairsOf(a, b document) ([]pair, error) {
	switch {
	case a.run != nil && b.run != nil:
		return []pair{{"", *a.run, copied(*b.run)}}, nil
	case a.run != nil || b.run != nil:
		return nil, fmt.Errorf("one of %s and %s is a run and the other a suite; compare two of the same kind", a.name, b.name)
	}
	var out []pair
	for _, variant := range b.suite.Variants {
		for _, run := range variant.Runs {
			for _, other := range a.suite.Variants {
				for _, before := range other.Runs {
					if other.Name == variant.Name && before.Name == run.Name {
						out = append(out, pair{variant.Name + "/" + run.Name, before.Run, copied(run.Run)})
					}
				}
			}
		}
	}
	return out, nil
}

// pointName names a point by the parameters that vary in its run; if none does, by all its parameters.
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
