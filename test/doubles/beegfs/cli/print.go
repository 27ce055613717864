package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// legacy is the id of a server, target, group or pool with its type (common/beegfs/entity.go, 8.3.1).
type legacy struct {
	Number int      `json:"num_id"`
	Type   nodeType `json:"node_type"`
}

// String returns the form "s:101".
func (l legacy) String() string {
	prefix := l.Type.String()[:1]
	if l.Type == managementType {
		prefix = "mg"
	}
	return prefix + ":" + strconv.Itoa(l.Number)
}

// nodeType is a number in JSON and a word in tables (common/beegfs/nodetype.go, 8.3.1).
type nodeType int

const (
	clientType nodeType = iota + 1
	metaType
	storageType
	managementType
)

var typeNames = []string{"<invalid>", "client", "meta", "storage", "management"}

// String is the word.
func (t nodeType) String() string { return typeNames[t] }

func typeOf(kind string) nodeType { return nodeType(slices.Index(typeNames, kind)) }

// named is an entity with all its names, such as "target_101[s:101, uid:7]".
func named(alias string, id legacy, uid int) string {
	return fmt.Sprintf("%s[%s, uid:%d]", alias, id, uid)
}

// entity resolves a reference: an alias, "s:101", or "uid:7". It returns the matching candidate.
func (c *call) entity(text string, kinds []string, candidates []candidate) (candidate, error) {
	kind, number, dashed := strings.Cut(text, ":")
	for _, one := range candidates {
		if !slices.Contains(kinds, one.kind) {
			continue
		}
		switch {
		case dashed && kind == "uid" && number == strconv.Itoa(one.uid):
			return one, nil
		case dashed && one.kind == kindOf(kind) && number == strconv.Itoa(one.id):
			return one, nil
		case !dashed && text == one.alias:
			return one, nil
		}
	}
	if !dashed && text != "" && text[0] >= '0' && text[0] <= '9' {
		return candidate{}, fmt.Errorf("invalid entity %q: must be an alias, <node-type>:<id> or uid:<id>", text)
	}
	return candidate{}, fmt.Errorf("rpc error: code = Unknown desc = %s doesn't exist", text)
}

// kindOf returns the type for a word, which may be abbreviated as long as it is unambiguous (common/beegfs/nodetype.go, 8.3.1).
func kindOf(word string) string {
	for _, known := range []struct {
		long, kind string
		least      int
	}{
		{"management", "management", 2}, {"mgmtd", "management", 2}, {"client", "client", 1}, {"storage", "storage", 1}, {"metadata", "meta", 1},
	} {
		if len(word) >= known.least && strings.HasPrefix(known.long, strings.ToLower(word)) {
			return known.kind
		}
	}
	return ""
}

// candidate is an entity that a reference may resolve to.
type candidate struct {
	kind  string
	id    int
	alias string
	uid   int
}

func (c *call) targets() []candidate {
	var all []candidate
	for _, t := range c.view.Targets {
		all = append(all, candidate{t.Type, t.ID, t.Alias, t.UID})
	}
	return all
}

func (c *call) nodes() []candidate {
	var all []candidate
	for _, n := range c.view.Nodes {
		all = append(all, candidate{n.Type, n.ID, n.Alias, n.UID})
	}
	return all
}

func (c *call) pools() []candidate {
	var all []candidate
	for _, p := range c.view.Pools {
		all = append(all, candidate{"storage", p.ID, p.Name, p.UID})
	}
	return all
}

func (c *call) groups() []candidate {
	var all []candidate
	for _, g := range c.view.Groups {
		all = append(all, candidate{g.Type, g.ID, g.Alias, g.UID})
	}
	return all
}

func (c *call) ids(texts []string, kinds []string, candidates []candidate) ([]int, error) {
	var ids []int
	for _, text := range texts {
		found, err := c.entity(strings.TrimSpace(text), kinds, candidates)
		if err != nil {
			return nil, err
		}
		ids = append(ids, found.id)
	}
	return ids, nil
}

// table prints rows according to --output and --columns.
type table struct {
	call     *call
	all      []string
	printed  []string
	rows     [][]any
	pageSize uint
}

func (c *call) table(all, printed []string) *table {
	if c.debug {
		printed = all
	}
	if len(c.columns) > 0 {
		printed = c.columns
	}
	return &table{call: c, all: all, printed: printed, pageSize: c.pageSize}
}

func (t *table) add(row ...any) { t.rows = append(t.rows, row) }

func (t *table) shown(column string) bool {
	return slices.Contains(t.printed, column) || slices.Contains(t.printed, "all")
}

// print writes all rows, page by page.
func (t *table) print() error {
	c := t.call
	if c.format == "ndjson" || c.format == "json" && t.pageSize == 0 {
		for _, row := range t.rows {
			if err := c.json(t.object(row)); err != nil {
				return err
			}
		}
		return nil
	}
	for page := range slices.Chunk(t.rows, int(max(t.pageSize, 1))) {
		if c.format != "table" {
			objects := make([]map[string]any, len(page))
			for i, row := range page {
				objects[i] = t.object(row)
			}
			if err := c.json(objects); err != nil {
				return err
			}
		} else {
			t.text(page)
		}
		if t.pageSize > 0 {
			c.say("\n")
		}
	}
	return nil
}

func (t *table) object(row []any) map[string]any {
	object := map[string]any{}
	for i, column := range t.all {
		if t.shown(column) {
			object[column] = row[i]
		}
	}
	return object
}

// text writes a page with a title. Columns have the minimum width, with two spaces between them.
func (t *table) text(page [][]any) {
	var lines [][]string
	title := make([]string, 0, len(t.all))
	for _, column := range t.all {
		if t.shown(column) {
			title = append(title, strings.ToUpper(column))
		}
	}
	if t.pageSize > 0 {
		lines = append(lines, title)
	}
	for _, row := range page {
		var cells [][]string
		height := 1
		for i, column := range t.all {
			if t.shown(column) {
				cell := strings.Split(fmt.Sprint(row[i]), "\n")
				cells, height = append(cells, cell), max(height, len(cell))
			}
		}
		for line := range height {
			texts := make([]string, len(cells))
			for i, cell := range cells {
				if line < len(cell) {
					texts[i] = cell[line]
				}
			}
			lines = append(lines, texts)
		}
	}
	widths := make([]int, len(title))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, line := range lines {
		for i, cell := range line {
			t.call.say("%s%s  ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		t.call.say("\n")
	}
}

func (c *call) json(value any) error {
	content, err := json.Marshal(value)
	if c.format == "json-pretty" {
		content, err = json.MarshalIndent(value, "", " ")
	}
	if err != nil {
		return err
	}
	c.say("%s\n", content)
	return nil
}

// bytes formats a size: raw, or with a binary unit.
func (c *call) bytes(size uint64) string {
	if c.raw {
		return strconv.FormatUint(size, 10)
	}
	return scaled(float64(size), 1024, []string{"", "Ki", "Mi", "Gi", "Ti", "Pi"}) + "B"
}

// count formats a number: raw, or with a decimal unit.
func (c *call) count(number uint64) string {
	if c.raw {
		return strconv.FormatUint(number, 10)
	}
	return scaled(float64(number), 1000, []string{"", "k", "M", "G", "T", "P"})
}

func scaled(number, step float64, units []string) string {
	unit := 0
	for number >= step && unit < len(units)-1 {
		number /= step
		unit++
	}
	if unit == 0 {
		return fmt.Sprintf("%.1f", number)
	}
	return fmt.Sprintf("%.1f%s", number, units[unit])
}

// space returns the cells of a target's capacity.
func (c *call) space(target *wire.TargetView) []any {
	if target.Space == nil {
		return []any{"-", "-", "-", "-", "-", "-"}
	}
	share := func(free, total uint64) string {
		if total == 0 {
			return " (0.00%)"
		}
		return fmt.Sprintf(" (%.2f%%)", 100-float64(free)/float64(total)*100)
	}
	s := target.Space
	return []any{
		c.bytes(s.Total), c.bytes(s.Total-s.Free) + share(s.Free, s.Total), c.bytes(s.Free), c.count(s.Inodes),
		c.count(s.Inodes-s.FreeInodes) + share(s.FreeInodes, s.Inodes), c.count(s.FreeInodes),
	}
}
