package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// Markdown writes the tables of the report for an issue or a wiki.
func (r *Report) Markdown(to io.Writer) error {
	w := bufio.NewWriter(to)
	out := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) } // w keeps the error, and Flush returns it
	out("# %s %s\n\n", r.kind, escape(r.title))
	for _, f := range r.facts {
		out("- %s: %s\n", escape(f.Name), escape(f.Text))
	}
	if t := r.problemTable(); len(t.Rows) > 0 {
		out("\n## What has no result, was disturbed, or can't be checked\n\n")
		writeTable(w, t)
	}
	if t := r.expectationTable(); len(t.Rows) > 0 {
		out("\n## %s\n\n%s\n\n", expectationsHeading, escape(r.accepted()))
		writeTable(w, t)
	}
	if len(r.figures) > 0 {
		out("\n## The variants\n\n")
		writeTable(w, figureTable(r.figures))
	}
	if len(r.best) > 0 {
		out("\n## Best points\n\n")
		for _, b := range r.best {
			run := ""
			if b.Run != "" {
				run = " (" + b.Run + ")"
			}
			out("- %s%s: **%s %s** at %s\n", escape(b.Metric), escape(run), b.Value, escape(b.Unit), escape(b.At))
		}
	}
	for i, v := range r.verdicts {
		if i == 0 {
			out("\n## Compared with the baseline\n\n")
		}
		run := ""
		if v.Run != "" {
			run = v.Run + ", with "
		}
		out("- %s**%s**: %d better, %d worse, %d within the noise, %d below the tolerance, %d not known\n",
			escape(run), escape(v.Of), v.Better, v.Worse, v.Within, v.Small, v.Unsure)
		if v.Summary != "" {
			out("  - %s\n", escape(v.Summary))
		}
		for _, text := range v.Differs {
			out("  - %s\n", escape(text))
		}
		for _, text := range v.Regressions() {
			out("  - worse: %s\n", escape(text))
		}
	}
	for _, s := range r.sections {
		out("\n## %s\n", escape(s.sheet.heading()))
		for _, t := range s.sheet.tables() {
			out("\n### %s\n\n", escape(t.Caption))
			writeTable(w, t)
		}
	}
	for _, run := range r.runs {
		name := "Measured on and with"
		if run.Name != "" {
			name += ": " + run.Name
		}
		out("\n## %s\n\n", escape(name))
		for _, f := range run.Provenance {
			out("- %s: %s\n", escape(f.Name), escape(f.Text))
		}
		for _, t := range run.tables() {
			out("\n### %s\n\n", escape(t.Caption))
			writeTable(w, t)
		}
	}
	return w.Flush()
}

func writeTable(w *bufio.Writer, t table) {
	line := func(cells []string) { _, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	var names, rules []string
	for _, c := range t.Columns {
		names = append(names, escape(c.Name))
		rule := "---"
		if c.Number {
			rule = "---:"
		}
		rules = append(rules, rule)
	}
	line(names)
	line(rules)
	for _, r := range t.Rows {
		var cells []string
		for _, text := range r.Cells {
			text = escape(text)
			if r.Mark == "best" && text != "" {
				text = "**" + text + "**"
			}
			cells = append(cells, text)
		}
		line(cells)
	}
}

// escape escapes a text so that Markdown shows it literally.
func escape(text string) string {
	return strings.NewReplacer(
		"\\", "\\\\", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]",
		"<", "&lt;", ">", "&gt;", "&", "&amp;", "\r", "", "\n", " ",
	).Replace(text)
}
