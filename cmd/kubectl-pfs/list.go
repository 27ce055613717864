package main

import (
	"cmp"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func (a *app) listCommand() *cobra.Command {
	everywhere := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List runs and suites, and how far they are",
		Example: `  kubectl pfs bench list
  kubectl pfs bench list --all-namespaces`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd, everywhere) },
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

// entry is a row of the list.
type entry struct {
	kind, namespace, name, what, progress, state, left string
	made                                               metav1.Time
}

func (a *app) list(cmd *cobra.Command, everywhere bool) error {
	c, err := a.connect(a.cluster)
	if err != nil {
		return err
	}
	in := client.InNamespace(c.namespace)
	if everywhere {
		in = ""
	}
	var runs v1alpha1.BenchmarkRunList
	if err := c.List(cmd.Context(), &runs, in); err != nil {
		return fmt.Errorf("list BenchmarkRuns: %w", err)
	}
	var suites v1alpha1.BenchmarkSuiteList
	if err := c.List(cmd.Context(), &suites, in); err != nil {
		return fmt.Errorf("list BenchmarkSuites: %w", err)
	}
	var entries []entry
	for _, s := range suites.Items {
		entries = append(entries, entry{
			"suite", s.Namespace, s.Name, fmt.Sprintf("%d variants", len(s.Spec.Variants)), s.Status.Progress, state(s.Status.Conditions), "", s.CreationTimestamp,
		})
	}
	for _, r := range runs.Items {
		entries = append(entries, entry{
			"run", r.Namespace, r.Name, string(r.Spec.ToolName()) + " on " + r.Spec.Target.String(), r.Status.Progress, state(r.Status.Conditions),
			r.Status.TimeLeft, r.CreationTimestamp,
		})
	}
	if len(entries) == 0 {
		where := "in the namespace " + c.namespace
		if everywhere {
			where = "in any namespace"
		}
		cmd.PrintErrln("There is no BenchmarkRun or BenchmarkSuite " + where + ".")
		return nil
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), b.made.Compare(a.made.Time), cmp.Compare(a.name, b.name))
	})
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
	if everywhere {
		_, _ = fmt.Fprint(w, "NAMESPACE\t") // the writer keeps the error for Flush
	}
	_, _ = fmt.Fprintln(w, "KIND\tNAME\tWHAT\tPROGRESS\tSTATE\tLEFT\tAGE")
	for _, e := range entries {
		if everywhere {
			_, _ = fmt.Fprint(w, e.namespace+"\t")
		}
		age := duration.HumanDuration(a.now().Sub(e.made.Time))
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", e.kind, e.name, e.what, cmp.Or(e.progress, "-"), e.state, cmp.Or(e.left, "-"), age)
	}
	return w.Flush()
}

// state summarizes the conditions of a run or suite in one word.
func state(conditions []metav1.Condition) string {
	stalled := meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled)
	done := meta.FindStatusCondition(conditions, v1alpha1.ConditionSucceeded)
	switch {
	case stalled != nil && stalled.Status == metav1.ConditionTrue:
		return "Stalled: " + stalled.Reason
	case done == nil:
		return "New"
	case done.Status == metav1.ConditionTrue:
		return "Succeeded"
	}
	return done.Reason
}
