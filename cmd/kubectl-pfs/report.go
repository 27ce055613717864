package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/report"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

// formats has the formats of a report, and the endings of file names that select them.
var formats = map[string][]string{
	"html": {".html", ".htm"}, "markdown": {".md", ".markdown"}, "csv": {".csv"}, "json": {".json"}, "png": {".png"},
}

type reportFlags struct {
	output, file, from, bars string
	suite                    bool
}

func (a *app) reportCommand() *cobra.Command {
	var flags reportFlags
	cmd := &cobra.Command{
		Use:   "report NAME | report --from FILE",
		Short: "Write the results of a run or suite as HTML, Markdown, CSV, JSON or PNG",
		Long: `report writes the complete results of a BenchmarkRun or BenchmarkSuite, finished or not.

html      one file that needs nothing else: charts with the baseline beside them, tables, what disturbed points, what the servers did,
          and what everything was measured on; it can be read without a network and printed
markdown  the tables, for an issue or a wiki
csv       a row for each metric of each point, with all digits
json      the complete document, with every sample; report --from and compare read it again
png       the charts as one picture

When the run has expectations (spec.expect), html and markdown have a part about them, to be printed and signed. The report is written in
any case; the exit code is 1 unless every expectation is met.

When the ConfigMap with the complete results is gone, the report is made from the status, whose numbers are rounded, and says so.`,
		Example: `  kubectl pfs bench report creates --file creates.html
  kubectl pfs bench report creates -o markdown
  kubectl pfs bench report instances --suite --file instances.html
  kubectl pfs bench report --from old-results.json -o csv`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.report(cmd, args, flags) },
	}
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "html, markdown, csv, json or png (default: by the name of --file, else html)")
	cmd.Flags().StringVar(&flags.file, "file", "", "file to write (default: standard output)")
	cmd.Flags().StringVar(&flags.from, "from", "", "file with a saved document, in the place of NAME; - is standard input")
	cmd.Flags().StringVar(&flags.bars, "error-bars", string(report.MinMax), "min-max (lowest and highest sample) or 95 (confidence interval of the mean)")
	cmd.Flags().BoolVar(&flags.suite, "suite", false, "NAME is a BenchmarkSuite, though a BenchmarkRun has that name too")
	return cmd
}

func (a *app) report(cmd *cobra.Command, args []string, flags reportFlags) error {
	format, err := formatOf(flags.output, flags.file)
	if err != nil {
		return usage(err)
	}
	bars := report.ErrorBars(flags.bars)
	switch {
	case bars != report.MinMax && bars != report.Confidence:
		return usage(fmt.Errorf("--error-bars is %q instead of min-max or 95", flags.bars))
	case (flags.from == "") == (len(args) == 0):
		return usage(errors.New("name a run or suite, or a file with --from, and not both"))
	case format == "png" && flags.file == "" && a.terminal:
		return usage(errors.New("a picture is nothing for a terminal: name a file with --file"))
	}
	var d document
	if flags.from != "" {
		d, err = a.file(flags.from)
	} else {
		d, err = a.load(cmd.Context(), args[0], flags.suite)
	}
	if err != nil {
		return err
	}
	d.say(cmd)
	made, err := d.form(format, bars)
	if err != nil {
		return err
	}
	if err := write(cmd, flags.file, made); err != nil {
		return err
	}
	if refused := d.refused(); refused != "" {
		return &exitError{exitFailed, refused}
	}
	return nil
}

// refused returns why the results are not accepted; empty if they are, or if nothing is expected of them.
func (d document) refused() string {
	var all []v1alpha1.ExpectationStatus
	for _, run := range d.runs() {
		all = append(all, stats.Judge(run)...)
	}
	if len(all) == 0 {
		return ""
	}
	if c := stats.Accepted(all); c.Status != metav1.ConditionTrue {
		return c.Message
	}
	return ""
}

// runs returns the run of the document, or all runs of the suite.
func (d document) runs() []results.Run {
	if d.suite == nil {
		return []results.Run{*d.run}
	}
	var out []results.Run
	for _, v := range d.suite.Variants {
		for _, one := range v.Runs {
			out = append(out, one.Run)
		}
	}
	return out
}

// formatOf returns the requested format, by its name or by the ending of the file name.
func formatOf(output, file string) (string, error) {
	if output != "" {
		if _, known := formats[output]; !known {
			return "", fmt.Errorf("--output is %q instead of html, markdown, csv, json or png", output)
		}
		return output, nil
	}
	end := strings.ToLower(filepath.Ext(file))
	for name, ends := range formats {
		if slices.Contains(ends, end) {
			return name, nil
		}
	}
	if file != "" {
		return "", fmt.Errorf("the name %q says no format: name one with --output", file)
	}
	return "html", nil
}

// form returns the function that writes the document in a format.
func (d document) form(format string, bars report.ErrorBars) (func(io.Writer) error, error) {
	plain := func(data []byte, err error) (func(io.Writer) error, error) {
		return func(w io.Writer) error { _, err := w.Write(data); return err }, err
	}
	switch {
	case format == "json" && d.suite != nil:
		data, err := results.EncodeSuite(*d.suite)
		return plain([]byte(escaped(string(data))), err)
	case format == "json":
		data, err := results.Encode(*d.run)
		return plain([]byte(escaped(string(data))), err)
	case format == "csv" && d.suite != nil:
		return plain(results.SuiteCSV(*d.suite))
	case format == "csv":
		return plain(results.CSV(*d.run))
	}
	var made *report.Report
	var err error
	if d.suite != nil {
		made, err = report.OfSuite(*d.suite, bars)
	} else {
		made, err = report.OfRun(*d.run, bars)
	}
	if err != nil {
		return nil, err
	}
	switch format {
	case "markdown":
		return made.Markdown, nil
	case "png":
		return func(w io.Writer) error { return made.PNG(unchanged(w)) }, nil
	default:
		return made.HTML, nil
	}
}
