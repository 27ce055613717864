package ctl

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// title maps a server's type to beegfs-ctl's name for it.
var title = map[string]string{"management": "beegfs-mgmtd", "meta": "beegfs-meta", "storage": "beegfs-storage", "client": "beegfs-client"}

// kindArgument takes --nodetype, and complains about an invalid one.
func (c *call) kindArgument(otherwise, complaint string) (string, bool) {
	text, given := c.take("--nodetype")
	if !given {
		text = otherwise
	}
	if kind(text) == "" {
		c.complain("%s", complaint)
		return "", false
	}
	return kind(text), true
}

func listNodes(c *call) int {
	kind, known := c.kindArgument("", "Invalid or missing node type.")
	if !known {
		return invalidConfig
	}
	_, cards := c.take("--nicdetails")
	_, details := c.take("--details")
	_, reachable := c.take("--reachable")
	_, ping := c.take("--ping")
	if c.leftover() {
		return invalidConfig
	}
	count := 0
	for i := range c.view.Nodes {
		node := &c.view.Nodes[i]
		if node.Type != kind {
			continue
		}
		count++
		c.say("%s [ID: %d]", node.Alias, node.ID)
		if cards || details {
			c.say("   Ports: UDP: %d; TCP: %d", node.UDP, node.TCP)
			c.cards(node, cards)
		}
		if reachable || ping {
			answer := "<no>"
			if c.reach(node) {
				answer = "<yes>"
			}
			c.say("   Reachable: %s", answer)
		}
	}
	if cards || details {
		c.say("\nNumber of nodes: %d", count)
		if kind == "meta" && c.view.Root != 0 {
			c.say("Root: %d", c.view.Root)
		}
	}
	return success
}

func (c *call) cards(node *wire.NodeView, details bool) {
	if !details {
		var names strings.Builder
		for _, card := range node.Interfaces {
			names.WriteString(card.Name + "(TCP) ")
		}
		c.say("   Interfaces: %s", names.String())
		return
	}
	c.say("   Interfaces: ")
	for _, card := range node.Interfaces {
		c.say("   + %s[ip addr: %s; type: TCP]", card.Name, card.Address)
	}
}

// reach reports whether a server answers at an address that it published.
func (c *call) reach(node *wire.NodeView) bool {
	if node.Type == "management" {
		return true
	}
	return c.ask(node, "ping", nil, nil) == nil
}

// column is one column of --listtargets: its title and its values. A width of 0 is as wide as the text.
type column struct {
	title string
	width int
	value func(*wire.TargetView) string
}

func (c *call) targetColumns(kind string) []column {
	var columns []column
	has := func(name string) bool { _, given := c.take(name); return given }
	if has("--mirrorgroups") {
		columns = append(columns,
			column{"MirrorGroupID", 13, func(t *wire.TargetView) string { return fmt.Sprint(c.view.GroupOf(kind, t.ID).ID) }},
			column{"MGMemberType", 13, func(t *wire.TargetView) string {
				if c.view.GroupOf(kind, t.ID).Primary == t.ID {
					return "primary"
				}
				return "secondary"
			}})
		columns[1].width = 12
	}
	columns = append(columns, column{"TargetID", 8, func(t *wire.TargetView) string { return fmt.Sprint(t.ID) }})
	if has("--state") {
		columns = append(columns,
			column{"Reachability", 16, func(t *wire.TargetView) string { return t.Reachability }},
			column{"Consistency", 12, func(t *wire.TargetView) string { return t.Consistency }})
	}
	if has("--storagepools") && kind == "storage" {
		columns = append(columns, column{"St. Pool", 10, func(t *wire.TargetView) string { return fmt.Sprint(t.Pool) }})
	}
	if has("--pools") {
		columns = append(columns, column{"Cap. Pool", 11, func(t *wire.TargetView) string { return strings.ToLower(t.Capacity) }})
	}
	if has("--spaceinfo") {
		columns = append(columns, spaceColumns()...)
	}
	if has("--longnodes") {
		columns = append(columns, column{"NodeID", -1, c.longName})
	} else if !has("--hidenodeid") {
		columns = append(columns, column{"NodeID", 8, func(t *wire.TargetView) string { return fmt.Sprint(t.Node) }})
	}
	return columns
}

// longName returns the name of the server of a target.
func (c *call) longName(t *wire.TargetView) string {
	node := c.view.Node(t.Type, t.Node)
	if node == nil {
		return fmt.Sprintf("<unknown> [ID: %d]", t.Node)
	}
	return fmt.Sprintf("%s %s [ID: %d]", title[t.Type], node.Alias, node.ID)
}

// spaceColumns returns the columns with the sizes that each server reports itself. A server that is down has sizes of 0.
func spaceColumns() []column {
	sized := func(pick func(*wire.Space) string) func(*wire.TargetView) string {
		return func(t *wire.TargetView) string {
			if !answers(t) {
				return pick(&wire.Space{})
			}
			return pick(t.Space)
		}
	}
	return []column{
		{"Total", 12, sized(func(s *wire.Space) string { return gib(s.Total) })},
		{"Free", 12, sized(func(s *wire.Space) string { return gib(s.Free) })},
		{"%", 4, sized(func(s *wire.Space) string { return percent(s.Free, s.Total) })},
		{"ITotal", 11, sized(func(s *wire.Space) string { return mega(s.Inodes) })},
		{"IFree", 11, sized(func(s *wire.Space) string { return mega(s.FreeInodes) })},
		{"%", 4, sized(func(s *wire.Space) string { return percent(s.FreeInodes, s.Inodes) })},
	}
}

// answers is true if a server reports the size of its target.
func answers(t *wire.TargetView) bool { return t.Space != nil && t.Reachability == wire.Online }

func gib(bytes uint64) string { return fmt.Sprintf("%.1fGiB", float64(bytes)/(1<<30)) }

func mega(number uint64) string { return fmt.Sprintf("%.1fM", float64(number)/1e6) }

func percent(part, whole uint64) string {
	if whole == 0 {
		return "0%"
	}
	return fmt.Sprintf("%.0f%%", math.Round(float64(part)*100/float64(whole)))
}

func listTargets(c *call) int {
	kind, known := c.kindArgument("storage", "Invalid node type.")
	if !known || kind == "management" || kind == "client" {
		if known {
			c.complain("Invalid node type.")
		}
		return invalidConfig
	}
	_, grouped := c.rest["--mirrorgroups"]
	_, sized := c.rest["--spaceinfo"]
	only, filter := c.take("--storagepoolid")
	columns := c.targetColumns(kind)
	_, _ = c.take("--errorcodes")
	if c.leftover() {
		return invalidConfig
	}
	titles, lines := make([]string, len(columns)), make([]string, len(columns))
	for i, column := range columns {
		titles[i], lines[i] = pad(column, column.title), pad(column, strings.Repeat("=", len(column.title)))
	}
	c.say("%s \n%s ", strings.Join(titles, " "), strings.Join(lines, " "))
	code := success
	for _, target := range c.order(kind, grouped) {
		if filter && only != fmt.Sprint(target.Pool) {
			continue
		}
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = pad(column, column.value(target))
		}
		if sized && !answers(target) {
			c.complain(" [ERROR from %s: Communication error]", c.longName(target))
			code = runtimeError
		}
		c.say("%s ", strings.Join(cells, " "))
	}
	return code
}

// order returns the targets in the order of the list: by id, or by group with the first of each before the second.
func (c *call) order(kind string, grouped bool) []*wire.TargetView {
	var all []*wire.TargetView
	for i := range c.view.Groups {
		if group := &c.view.Groups[i]; grouped && group.Type == kind {
			all = append(all, c.view.Target(kind, group.Primary), c.view.Target(kind, group.Secondary))
		}
	}
	for i := range c.view.Targets {
		if target := &c.view.Targets[i]; !grouped && target.Type == kind {
			all = append(all, target)
		}
	}
	return all
}

// pad aligns a cell to the right; the last column, with a server's name, is aligned to the left.
func pad(column column, text string) string {
	switch {
	case column.width < 0 && text != column.title && !strings.HasPrefix(text, "="):
		return "  " + text
	case column.width < 0:
		return fmt.Sprintf("%8s", text)
	}
	return fmt.Sprintf("%*s", column.width, text)
}

func listMirrorGroups(c *call) int {
	kind, known := c.kindArgument("", "Invalid or missing node type.")
	if !known || c.leftover() {
		return invalidConfig
	}
	what, wide := "Target", 17
	if kind == "meta" {
		what = "Node"
	}
	printed := false
	for _, group := range c.view.Groups {
		if group.Type != kind {
			continue
		}
		if !printed {
			primary, secondary := "Primary"+what+"ID", "Secondary"+what+"ID"
			c.say("%17s %*s %*s", "BuddyGroupID", wide, primary, wide, secondary)
			c.say("%17s %*s %*s", strings.Repeat("=", 12), wide, strings.Repeat("=", len(primary)), wide, strings.Repeat("=", len(secondary)))
			printed = true
		}
		c.say("%17d %*d %*d", group.ID, wide, group.Primary, wide, group.Secondary)
	}
	if !printed {
		c.complain("No mirror buddy groups defined.")
	}
	return success
}

func listStoragePools(c *call) int {
	if c.leftover() {
		return invalidConfig
	}
	c.say("%7s %18s %28s %28s", "Pool ID", "Pool Description", "Targets", "Buddy Groups")
	c.say("%s %s %s %s", strings.Repeat("=", 7), strings.Repeat("=", 18), strings.Repeat("=", 28), strings.Repeat("=", 28))
	for _, pool := range c.view.Pools {
		var targets, groups []int
		for _, target := range c.view.Targets {
			if target.Type == "storage" && target.Pool == pool.ID {
				targets = append(targets, target.ID)
			}
		}
		for _, group := range c.view.Groups {
			if group.Type == "storage" && group.Pool == pool.ID {
				groups = append(groups, group.ID)
			}
		}
		c.poolRow(pool, wrap(join(targets)), wrap(join(groups)))
	}
	return success
}

// poolRow prints a pool; lists that do not fit continue on more lines.
func (c *call) poolRow(pool wire.Pool, targets, groups []string) {
	for line := range max(len(targets), len(groups)) {
		id, name, first, second := "", "", "", ""
		if line == 0 {
			id, name = fmt.Sprint(pool.ID), pool.Name
		}
		if line < len(targets) {
			first = targets[line]
		}
		if line < len(groups) {
			second = groups[line]
		}
		c.say("%7s %18s %-28s %-28s", id, name, first, second)
	}
}

// wrap breaks a list after a comma where it exceeds a column of 28 letters.
func wrap(list string) []string {
	const width = 28
	lines := []string{}
	for len(list) > width {
		cut := strings.LastIndex(list[:width], ",") + 1
		if cut == 0 {
			cut = width
		}
		lines, list = append(lines, list[:cut]), list[cut:]
	}
	return append(lines, list)
}

func serverStats(c *call) int {
	kind, known := c.kindArgument("", "Invalid or missing node type.")
	if !known {
		return invalidConfig
	}
	history, _ := c.take("--history")
	for _, name := range []string{"--interval", "--perserver", "--nodeid"} {
		_, _ = c.take(name)
	}
	if c.leftover() {
		return invalidConfig
	}
	count := 0
	for i := range c.view.Nodes {
		if c.view.Nodes[i].Type == kind {
			count++
		}
	}
	c.say("Total results for %d nodes:", count)
	rows := 1
	_, _ = fmt.Sscanf(history, "%d", &rows)
	second := time.Now().Unix() - int64(rows)
	if kind == "storage" {
		c.say(" time_index write_KiB  read_KiB   reqs   qlen bsy")
	} else {
		c.say(" time_index   reqs   qlen bsy")
	}
	for row := range rows {
		if kind == "storage" {
			c.say(" %10d %9d %9d %6d %6d %3d", second+int64(row), 0, 0, 0, 0, 0)
		} else {
			c.say(" %10d %6d %6d %3d", second+int64(row), 0, 0, 0)
		}
	}
	c.say("")
	return success
}

// genericDebug is the double of --genericdebug: servers are queried only for open files.
func genericDebug(c *call) int {
	text, _ := c.take("--nodetype")
	kind := kind(text)
	if kind == "" || kind == "client" {
		c.complain("Invalid or missing node type.")
		return invalidConfig
	}
	id, given := c.take("--nodeid")
	if !given {
		c.complain("NodeID not specified.")
		return invalidConfig
	}
	command, given := c.positional()
	if !given {
		c.complain("Command string not specified.")
		return invalidConfig
	}
	if c.leftover() {
		return invalidConfig
	}
	number, _ := strconv.Atoi(id)
	node := c.view.Node(kind, number)
	if node == nil {
		c.complain("Unknown node: %s", id)
		return runtimeError
	}
	said := "Unknown/invalid operation"
	if kind != "management" && command == "listopenfiles" {
		var open []wire.OpenFiles
		if err := c.ask(node, "list-open-files", nil, &open); err != nil {
			c.complain("Failed to communicate with node: %s", id)
			return runtimeError
		}
		said = wire.Sessions(kind, open)
	}
	c.say("Command: %s\nResponse:\n%s", command, said)
	return success
}
