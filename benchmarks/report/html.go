package report

import (
	_ "embed" // for the page
	"fmt"
	"html/template"
	"io"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/stats"
)

//go:embed report.html.tmpl
var page string

// View types of the template.
type (
	pageView struct {
		Title, Kind, Format string
		Facts               []fact
		Problems, Figures   *tableView
		// Expectations has a row for each expectation, and Accepted is the verdict on all of them.
		Expectations *tableView
		Accepted     string
		Best         []bestView
		Verdicts     []verdictView
		Sections     []sectionView
		Runs         []runPage
	}
	sectionView struct {
		ID, Name string
		Charts   []chartView
		Tables   []tableView
	}
	chartView struct {
		Title, Unit, Note string
		SVG               template.HTML
		Small             bool
	}
	runPage struct {
		ID, Heading      string
		Provenance       []fact
		Tables           []tableView
		Commands         []commandView
		Spec, FileSystem string
	}
	tableView struct {
		Caption string
		Columns []column
		Rows    []rowView
	}
	rowView struct {
		Mark  string
		Cells []cellView
	}
	cellView struct{ Class, Text string }
)

// HTML writes one self-contained page: no network, no script, no font.
func (r *Report) HTML(w io.Writer) error {
	parsed, err := template.New("report").Parse(page)
	if err != nil {
		return fmt.Errorf("read the template of the report: %w", err)
	}
	view := pageView{Title: r.title, Kind: r.kind, Format: results.Format, Facts: r.facts, Best: r.best, Verdicts: r.verdicts}
	if t := r.problemTable(); len(t.Rows) > 0 {
		view.Problems = pageTable(t)
	}
	if t := r.expectationTable(); len(t.Rows) > 0 {
		view.Expectations, view.Accepted = pageTable(t), r.accepted()
	}
	if len(r.figures) > 0 {
		view.Figures = pageTable(figureTable(r.figures))
	}
	for _, s := range r.sections {
		section := sectionView{ID: s.sheet.id, Name: s.sheet.heading()}
		for i := range s.charts {
			c := &s.charts[i]
			svg, err := c.svg()
			if err != nil {
				return fmt.Errorf("draw %s: %w", c.title, err)
			}
			section.Charts = append(section.Charts, chartView{
				c.title, c.caption(), c.note(s.sheet),
				template.HTML(svg), //nolint:gosec // made by vgsvg and svgElement, which escape every text
				c.small(),
			})
		}
		for _, t := range s.sheet.tables() {
			section.Tables = append(section.Tables, *pageTable(t))
		}
		view.Sections = append(view.Sections, section)
	}
	for i, run := range r.runs {
		one := runPage{
			ID: fmt.Sprintf("measured-%d", i), Heading: "Measured on and with", Provenance: run.Provenance,
			Commands: run.Commands, Spec: run.Spec, FileSystem: run.FileSystem,
		}
		if run.Name != "" {
			one.Heading += ": " + run.Name
		}
		for _, t := range run.tables() {
			one.Tables = append(one.Tables, *pageTable(t))
		}
		view.Runs = append(view.Runs, one)
	}
	return parsed.Execute(w, view)
}

// heading returns the heading of a sheet. A single run needs no name.
func (s *sheet) heading() string {
	if s.id == "run" {
		return "Results"
	}
	return s.title
}

// caption returns the unit after the title; a speed-up has none.
func (c *chart) caption() string {
	if c.shows != theValue {
		return ""
	}
	return c.unit
}

// note explains how to read a chart.
func (c *chart) note(s *sheet) string {
	var parts []string
	switch {
	case s.best:
		parts = append(parts, "Each value is that of the variant's best point.")
	case c.shows == theValue:
		parts = append(parts, fmt.Sprintf("Values are the %s of the samples.", statisticName(s.statistic)))
	}
	if c.whiskers != "" {
		parts = append(parts, "Error bars: "+c.whiskers+".")
	}
	if c.baselineOf != "" {
		parts = append(parts, "Short dashes and hollow markers: "+c.baselineOf+".")
	}
	if c.log2 {
		parts = append(parts, "The horizontal axis is logarithmic.")
	}
	return strings.Join(parts, " ")
}

func pageTable(t table) *tableView {
	out := &tableView{Caption: t.Caption, Columns: t.Columns}
	for _, r := range t.Rows {
		row := rowView{Mark: r.Mark}
		for i, text := range r.Cells {
			class := "text"
			switch {
			case t.Columns[i].Number:
				class = "n"
			case t.Columns[i].Name == remarksColumn:
				class = "short"
			}
			row.Cells = append(row.Cells, cellView{class, text})
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

// problemTable lists the points and attempts without a result.
func (r *Report) problemTable() table {
	t := table{Caption: "Points and attempts to know about", Columns: []column{
		{"Run", false}, {"Point", false}, {"State", false}, {"Why", false},
	}}
	for _, p := range r.problems {
		t.Rows = append(t.Rows, tableRow{Cells: []string{p.Run, p.Point, p.State, p.Why}})
	}
	return t.withoutEmpty()
}

// expectationsHeading is the heading of the verdicts on expectations.
const expectationsHeading = "Expected of the results"

func (r *Report) expectationTable() table {
	t := table{Caption: "Expectations", Columns: []column{{"Run", false}, {"Expectation", false}, {"Verdict", false}, {"Result", false}}}
	for _, e := range r.expectations {
		mark := ""
		switch e.State {
		case v1alpha1.ExpectationNotMet:
			mark = "worse"
		case v1alpha1.ExpectationUndecided, v1alpha1.ExpectationPending:
			mark = "none"
		case v1alpha1.ExpectationMet:
		}
		t.Rows = append(t.Rows, tableRow{[]string{e.Run, e.Name, string(e.State), e.Message}, mark})
	}
	return t.withoutEmpty()
}

// accepted returns the verdict on all expectations as a sentence. There is at least one expectation.
func (r *Report) accepted() string {
	all := make([]v1alpha1.ExpectationStatus, 0, len(r.expectations))
	for _, e := range r.expectations {
		all = append(all, e.ExpectationStatus)
	}
	c := stats.Accepted(all)
	return fmt.Sprintf("%s: %s.", c.Reason, c.Message)
}

// tables describes what else a run was measured on, and the activity of its servers.
func (v runView) tables() []table {
	var out []table
	add := func(t table) {
		if len(t.Rows) > 0 {
			out = append(out, t.withoutEmpty())
		}
	}
	servers := table{Caption: "What the servers did (the busiest)", Columns: []column{
		{"Point", false}, {"Disks", false}, {"Mean of all disks", true}, {"Daemons", false}, {"Without figures", false},
	}}
	for _, t := range v.Telemetry {
		servers.Rows = append(servers.Rows, tableRow{Cells: []string{
			t.Point, strings.Join(t.Disks, "; "), t.MeanUtilization, strings.Join(t.Daemons, "; "), strings.Join(t.Problems, "; "),
		}})
	}
	add(servers)
	clients := table{Caption: "Clients", Columns: []column{{"Node", false}, {"Kernel", false}, {"CPUs", true}, {"CPU model", false}}}
	for _, c := range v.Clients {
		clients.Rows = append(clients.Rows, tableRow{Cells: []string{c.Node, c.Kernel, nonzero(int64(c.CPUs)), c.CPUModel}})
	}
	add(clients)
	daemons := table{Caption: "Daemons", Columns: []column{
		{"Daemon", false}, {"Role", false}, {"Node", false}, {"Pool", false}, {"Version", false},
		{"CPUs", false}, {"NUMA nodes", false}, {"Remarks", false},
	}}
	for _, s := range v.Servers {
		cells := []string{s.Name, string(s.Role), s.Node, s.StoragePool, s.Version, "", "", s.Message}
		if p := s.Placement; p != nil {
			cells[5], cells[6] = p.CPUs, p.NUMANodes
			if p.Drift != "" {
				cells[7] = strings.TrimPrefix(cells[7]+"; "+p.Drift, "; ")
			}
		}
		daemons.Rows = append(daemons.Rows, tableRow{Cells: cells})
	}
	add(daemons)
	targets := table{Caption: "Targets", Columns: []column{
		{"Target", false}, {"Node", false}, {"Pool", false}, {"Directory", false}, {"Disk", false},
		{"Capacity in GB", true}, {"Used in GB", true}, {"Remarks", false},
	}}
	for _, t := range v.Targets {
		targets.Rows = append(targets.Rows, tableRow{Cells: []string{
			t.Name, t.Node, t.StoragePool, t.Directory, t.StorageTarget, gigabytes(t.CapacityBytes), gigabytes(t.UsedBytes), t.Message,
		}})
	}
	add(targets)
	return out
}

func nonzero(v int64) string {
	if v == 0 {
		return ""
	}
	return fmt.Sprint(v)
}

// gigabytes formats bytes in units of 10^9.
func gigabytes(bytes int64) string {
	if bytes == 0 {
		return ""
	}
	return number(roundTo(float64(bytes)/1e9, 1))
}
