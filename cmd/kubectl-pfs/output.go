package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// screenWidth is the number of columns that no line of a table or of a wrapped text exceeds.
const screenWidth = 120

// outputFlag adds -o to a command.
func outputFlag(cmd *cobra.Command, format *string) {
	cmd.Flags().StringVarP(format, "output", "o", "", "json or yaml, for scripts")
}

// encode writes a value as JSON or YAML. Characters that a terminal obeys are escaped, so that a script reads them as they are. YAML has no
// escapes in plain text, so a value with such characters is written as JSON, which is YAML too.
func encode(w io.Writer, format string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	text := escaped(string(data))
	if err == nil && format == "yaml" && text == string(data) {
		data, err = yaml.JSONToYAML(data)
		text = string(data)
	}
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	_, err = fmt.Fprintln(w, strings.TrimSuffix(text, "\n"))
	return err
}

// knownFormat refuses a value of -o that no command has.
func knownFormat(format string) error {
	if format == "" || format == "json" || format == "yaml" {
		return nil
	}
	return usage(fmt.Errorf("-o is json or yaml, and not %q", format))
}

// cut shortens a text to so many characters, and puts it on one line.
func cut(text string, most int) string {
	text = printable(strings.Join(strings.Fields(text), " "))
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:max(most-1, 0)]) + "…"
}

// wrapped breaks a text into lines of the screen. Each line begins with indent, the first with first instead.
func wrapped(first, indent, text string) string {
	var out strings.Builder
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		word = printable(word)
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > screenWidth {
			out.WriteString(line + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	return out.String() + line + "\n"
}

// column is one of a table; most bounds its width.
type column struct {
	title string
	most  int
}

// table renders rows in columns that are two blanks apart. The last column gets what is left of the screen.
func table(columns []column, rows [][]string) string {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c.title)
	}
	cells := make([][]string, len(rows))
	for n, row := range rows {
		cells[n] = make([]string, len(columns))
		for i := range columns {
			most := columns[i].most
			if i == len(columns)-1 {
				most = screenWidth
			}
			cells[n][i] = cut(row[i], most)
			widths[i] = max(widths[i], utf8.RuneCountInString(cells[n][i]))
		}
	}
	left := screenWidth
	for _, w := range widths[:len(widths)-1] {
		left -= w + 2
	}
	var out strings.Builder
	write := func(row []string) {
		var line strings.Builder
		last := len(row) - 1
		for i, cell := range row[:last] {
			line.WriteString(cell + strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+2))
		}
		line.WriteString(cut(row[last], max(left, 1)))
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	write(titles)
	for _, row := range cells {
		write(row)
	}
	return out.String()
}
