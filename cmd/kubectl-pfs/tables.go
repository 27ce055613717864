package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/benchmarks/reference"
	"parallelfs.dev/operator/benchmarks/results"
)

func tablesCommand(name string) *cobra.Command {
	return &cobra.Command{
		Use:   name + " [NAME]",
		Short: "List the published tables, or show one",
		Long: `Published tables are what others have measured on their hardware: to show beside results of your own (spec.baseline.published),
never what yours should reach.`,
		Example: `  kubectl pfs bench tables
  kubectl pfs bench tables netapp-tr4782-mdtest`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return showTable(cmd, args[0])
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 3, ' ', 0)
			_, _ = fmt.Fprintln(w, "NAME\tPOINTS\tMETRICS") // the writer keeps the error for Flush
			for _, name := range reference.Names() {
				points, err := reference.Published(name)
				if err != nil {
					return err
				}
				_, _ = fmt.Fprintf(w, "%s\t%d\t%s\n", name, len(points), shortened(metricNames(points))) // as above
			}
			return w.Flush()
		},
	}
}

func metricNames(points []results.Point) []string {
	var out []string
	for _, p := range points {
		for _, m := range p.Metrics {
			if !slices.Contains(out, m.Name) {
				out = append(out, m.Name)
			}
		}
	}
	return out
}

// shortened returns the first of many names.
func shortened(names []string) string {
	const most = 4
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// showTable shows the points of one table.
func showTable(cmd *cobra.Command, name string) error {
	points, err := reference.Published(name)
	if err != nil {
		return err
	}
	if source := reference.Source(name); source != "" {
		cmd.PrintErrln(source)
	}
	return printPoints(cmd.OutOrStdout(), results.Run{Points: points})
}
