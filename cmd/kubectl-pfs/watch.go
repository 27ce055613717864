package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) watchCommand() *cobra.Command {
	interval, suite := 2*time.Second, false
	cmd := &cobra.Command{
		Use:   "watch NAME",
		Short: "Follow a run or suite until its end",
		Long: `watch shows how far a BenchmarkRun or BenchmarkSuite is, the point that is being run, an estimate of the time that is left, and
each result when it is there. Where the output is no terminal, it prints plain lines.

It ends with exit code 0 when the run has succeeded and its results are accepted (spec.expect), and with 1 when it ended with points that
have no result, when its results are not accepted or that is undecided, when nothing goes on until a person changes something (Stalled), and
when it was deleted. To stop watching stops nothing else.`,
		Example: `  kubectl pfs bench watch creates
  kubectl pfs bench watch creates && kubectl pfs bench report creates --file creates.html`,
		Args: exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.watch(cmd, args[0], suite, interval) },
	}
	cmd.Flags().DurationVar(&interval, "interval", interval, "time between two looks")
	cmd.Flags().BoolVar(&suite, "suite", false, "NAME is a BenchmarkSuite, though a BenchmarkRun has that name too")
	return cmd
}

// view is the part of a run or suite that is watched.
type view struct {
	kind, progress, current, left string
	conditions                    []metav1.Condition
	// results has a line for each point or run that has ended, by a permanent key.
	keys    []string
	results map[string]string
}

// missed is how many polls in a row may fail before watching ends: a restarted API server is back by then.
const missed = 30

func (a *app) watch(cmd *cobra.Command, name string, suite bool, interval time.Duration) error {
	if interval <= 0 {
		return usage(errors.New("--interval must be more than 0"))
	}
	c, err := a.connect(a.cluster)
	if err != nil {
		return err
	}
	s := &screen{out: cmd.OutOrStdout(), terminal: a.terminal}
	kind, failures := "", 0
	for {
		v, err := c.look(cmd.Context(), name, suite, kind)
		switch {
		case err == nil:
			failures, kind = 0, v.kind
			s.show(v)
			if end := ended(v); end != nil {
				s.finish()
				_, _ = fmt.Fprintf(s.out, "%s: %s\n", state(v.conditions), end.Message) // a closed screen needs no output
				accepted := meta.FindStatusCondition(v.conditions, v1alpha1.ConditionAccepted)
				if accepted != nil {
					_, _ = fmt.Fprintf(s.out, "%s: %s\n", accepted.Reason, accepted.Message)
				}
				if end.Status == metav1.ConditionTrue && (accepted == nil || accepted.Status == metav1.ConditionTrue) {
					return nil
				}
				return &exitError{code: exitFailed}
			}
		case apierrors.IsNotFound(err) && kind != "":
			s.finish()
			return fmt.Errorf("the %s %s was deleted", kind, name)
		case kind == "" || failures >= missed || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err):
			s.finish()
			return err
		default:
			failures++
		}
		if !a.wait(cmd.Context(), interval) {
			s.finish()
			return &exitError{exitFailed, "stopped watching; the " + kind + " goes on"}
		}
	}
}

// ended is the condition that ended the watched object, nil while it continues.
func ended(v view) *metav1.Condition {
	done := meta.FindStatusCondition(v.conditions, v1alpha1.ConditionSucceeded)
	if done == nil || done.Status == metav1.ConditionUnknown {
		return nil
	}
	return done
}

// look reads a run, or else a suite; kind is the result of an earlier poll.
func (c connection) look(ctx context.Context, name string, suite bool, kind string) (view, error) {
	key := client.ObjectKey{Namespace: c.namespace, Name: name}
	if !suite && kind != "BenchmarkSuite" {
		run := &v1alpha1.BenchmarkRun{}
		err := c.Get(ctx, key, run)
		if err == nil {
			return viewOfRun(run), nil
		}
		if !apierrors.IsNotFound(err) || kind != "" {
			return view{}, err
		}
	}
	one := &v1alpha1.BenchmarkSuite{}
	err := c.Get(ctx, key, one)
	switch {
	case err == nil:
		return viewOfSuite(one), nil
	case apierrors.IsNotFound(err) && kind == "":
		return view{}, fmt.Errorf("there is no BenchmarkRun or BenchmarkSuite %s in the namespace %s; name another with --namespace", name, c.namespace)
	}
	return view{}, err
}

func viewOfRun(run *v1alpha1.BenchmarkRun) view {
	s := run.Status
	v := view{
		kind: "BenchmarkRun", progress: s.Progress, current: s.Current, left: s.TimeLeft, conditions: s.Conditions,
		results: map[string]string{},
	}
	for _, p := range s.Points {
		if p.State == v1alpha1.PointPending || p.State == v1alpha1.PointRunning {
			continue
		}
		var names, values []string
		for _, one := range p.Parameters {
			names = append(names, fmt.Sprintf("%s=%s", one.Name, one.Value))
		}
		for _, m := range p.Metrics {
			text := m.Name + " " + m.Value + " " + m.Unit
			if m.Baseline != "" {
				text += " (" + m.Baseline + ")"
			}
			values = append(values, text)
		}
		line := strings.Join(names, " ") + ": " + strings.Join(values, ", ")
		if len(names) == 0 {
			line = strings.Join(values, ", ")
		}
		if p.State != v1alpha1.PointSucceeded {
			first, _, _ := strings.Cut(p.Message, "\n")
			line = strings.TrimPrefix(strings.Join(names, " ")+": "+string(p.State)+": "+first, ": ")
		}
		key := strconv.Itoa(int(p.Index))
		v.keys = append(v.keys, key)
		v.results[key] = line
	}
	return v
}

func viewOfSuite(suite *v1alpha1.BenchmarkSuite) view {
	s := suite.Status
	v := view{kind: "BenchmarkSuite", progress: s.Progress, current: s.Current, conditions: s.Conditions, results: map[string]string{}}
	for _, one := range s.Variants {
		if one.State != v1alpha1.VariantDone && one.State != v1alpha1.VariantFailed {
			continue
		}
		line := one.Name + ": " + string(one.State)
		if one.Message != "" {
			line += ": " + one.Message
		}
		parts := []string{line}
		for _, f := range s.Table {
			if f.Variant == one.Name {
				parts = append(parts, fmt.Sprintf("%s %s %s %s", f.Run, f.Metric, f.Value, f.Unit))
			}
		}
		v.keys = append(v.keys, one.Name)
		v.results[one.Name] = strings.Join(parts, "; ")
	}
	return v
}

// screen shows views: on a terminal, one changing line below the results; elsewhere, a line for each change.
type screen struct {
	out      io.Writer
	terminal bool
	shown    map[string]string
	last     string
	open     bool
}

// show prints the changes.
func (s *screen) show(v view) {
	if s.shown == nil {
		s.shown = map[string]string{}
	}
	printed := false
	for _, key := range v.keys {
		if s.shown[key] != v.results[key] {
			s.shown[key] = v.results[key]
			s.clear()
			s.print(v.results[key] + "\n")
			printed = true
		}
	}
	line := status(v, s.terminal)
	switch {
	case line == s.last && (!printed || !s.terminal):
	case s.terminal:
		s.clear()
		s.print(line)
		s.open = true
	default:
		s.print(line + "\n")
	}
	s.last = line
}

// print writes a text. A screen that is gone shows nothing, and that is no error.
func (s *screen) print(text string) { _, _ = io.WriteString(s.out, text) }

// clear goes back to the start of the line that changes, and empties it.
func (s *screen) clear() {
	if s.terminal && s.open {
		control(s.out, "\r\x1b[K")
		s.open = false
	}
}

// finish leaves the changing line as it is.
func (s *screen) finish() {
	if s.open {
		s.print("\n")
		s.open = false
	}
}

// widest is the length of the changing line; a line that wraps could not be cleared.
const widest = 100

// status is the line with the progress of a view. Outside of a terminal, it leaves out the remaining time, which changes with each poll.
func status(v view, terminal bool) string {
	parts := []string{}
	if terminal {
		parts = append(parts, bar(v.progress))
	}
	if v.progress != "" {
		parts = append(parts, v.progress)
	}
	if word := state(v.conditions); word != v1alpha1.ReasonRunning {
		parts = append(parts, word)
	}
	if v.current != "" {
		parts = append(parts, v.current)
	}
	if terminal && v.left != "" {
		parts = append(parts, v.left+" left")
	}
	line := strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), "  ")
	if runes := []rune(line); terminal && len(runes) > widest {
		line = string(runes[:widest-1]) + "…"
	}
	return line
}

// bar draws "7/30" as a bar of twenty characters.
func bar(progress string) string {
	const length = 20
	first, second, _ := strings.Cut(progress, "/")
	done, err := strconv.Atoi(first)
	all, err2 := strconv.Atoi(second)
	if err != nil || err2 != nil || all <= 0 || done < 0 {
		return ""
	}
	full := min(done*length/all, length)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", length-full) + "]"
}
