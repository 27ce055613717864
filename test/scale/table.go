//go:build scale

package main

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// mark follows a figure that misses its goal.
const mark = " !"

// sheet is one table, and shown one of its columns, with its value for a size.
type sheet struct {
	title   string
	columns []shown
}

type shown struct {
	column
	of func(*Result) float64
}

// sheets are all tables: those of the columns, and those of the sizes of objects, with the kinds that were found.
func sheets(results []*Result) []sheet {
	var out []sheet
	for _, t := range tables {
		s := sheet{title: t.title}
		for _, c := range t.columns {
			s.columns = append(s.columns, shown{c, func(r *Result) float64 { return r.value(c) }})
		}
		out = append(out, s)
	}
	return append(out,
		ofSizes("Largest object in KiB, idle", "largestKiB.", results, func(r *Result) map[string]float64 { return r.Largest }),
		ofSizes("Largest object in KiB, at worst", "largestAtWorstKiB.", results, func(r *Result) map[string]float64 { return r.AtWorst }))
}

// ofSizes is a table of the largest objects by kind.
func ofSizes(title, prefix string, results []*Result, of func(*Result) map[string]float64) sheet {
	kinds := map[string]bool{}
	for _, r := range results {
		for kind := range of(r) {
			kinds[kind] = true
		}
	}
	s := sheet{title: title}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		c := column{name: prefix + kind, head: kind, goal: sizeGoal(kind), grows: true}
		s.columns = append(s.columns, shown{c, func(r *Result) float64 {
			if len(of(r)) == 0 {
				return math.NaN() // it was not measured
			}
			return of(r)[kind]
		}})
	}
	return s
}

// print prints the tables, each with the exponents of growth and the goals below it, and then the missed goals.
func (d Document) print(out io.Writer) error {
	var b strings.Builder
	for _, s := range sheets(d.Results) {
		d.table(&b, s)
	}
	for _, r := range d.Results {
		if r.Stopped != "" {
			after := ""
			if seconds := r.value(stoppedSeconds); !math.IsNaN(seconds) {
				after = fmt.Sprintf(" (after %.0f s, %.0f s of the manager's CPU)", seconds, r.value(managerSeconds))
			}
			fmt.Fprintf(&b, "%d nodes, %d targets: %s%s\n", r.Nodes, r.Targets, r.Stopped, after)
		}
	}
	if len(d.Missed) == 0 {
		b.WriteString("No goal was missed.\n")
	} else {
		fmt.Fprintf(&b, "Goals that were missed: %d\n", len(d.Missed))
		for _, sentence := range d.Missed {
			fmt.Fprintf(&b, "  %s\n", sentence)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func (d Document) table(b *strings.Builder, s sheet) {
	fmt.Fprintf(b, "%s\n", s.title)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name, targets string, cell func(c shown) string) {
		fmt.Fprintf(w, "%s\t%s", name, targets)
		for _, c := range s.columns {
			fmt.Fprintf(w, "\t%s", cell(c))
		}
		fmt.Fprint(w, "\t\n")
	}
	marked := func(value float64, missed bool) string {
		if missed {
			return figure(value) + mark
		}
		return figure(value)
	}
	row("N", "targets", func(c shown) string { return c.head })
	for _, r := range d.Results {
		row(fmt.Sprint(r.Nodes), fmt.Sprint(r.Targets), func(c shown) string { return marked(c.of(r), c.goal.missed(r.Nodes, c.of(r))) })
	}
	row("grows with N^", "", func(c shown) string { return marked(growth(d.Results, c)) })
	row(fmt.Sprintf("goal at %d", goalNodes), "", func(c shown) string { return c.goal.String() })
	_ = w.Flush() // into memory
	b.WriteByte('\n')
}
