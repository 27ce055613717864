package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// group is a command that only has others below it.
func group(use string, commands ...*cobra.Command) *cobra.Command {
	command := &cobra.Command{
		Use: use, Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(commands...)
	return command
}

func (c *call) target() *cobra.Command {
	var state, capacity bool
	var kind, pool string
	list := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error {
		return c.listTargets(kind, pool, state, capacity)
	}}
	list.Flags().BoolVar(&state, "state", false, "")
	list.Flags().BoolVar(&capacity, "capacity", false, "")
	list.Flags().StringVar(&kind, "node-type", "", "")
	list.Flags().StringVar(&pool, "pool", "", "")
	remove := c.deletion("delete <target>", "Target", "remove-target", []string{"storage"}, func() []candidate { return c.targets() })
	return group("target", list, remove)
}

func (c *call) listTargets(kind, pool string, state, capacity bool) error {
	all := []string{"uid", "id", "type", "alias", "node", "storage_pool", "reachability", "last_contact", "consistency", "sync_state",
		"cap_pool", "space", "space_used", "space_free", "inodes", "inodes_used", "inodes_free"}
	printed := []string{"id", "type", "alias", "node", "storage_pool"}
	if state {
		printed = append(printed, "reachability", "last_contact", "consistency", "sync_state")
	}
	if capacity {
		printed = append(printed, all[10:]...)
	}
	only := 0
	if pool != "" {
		found, err := c.entity(pool, []string{"storage"}, c.pools())
		if err != nil {
			return err
		}
		only = found.id
	}
	rows := c.table(all, printed)
	for i := range c.view.Targets {
		t := &c.view.Targets[i]
		if kind != "" && t.Type != kindOf(kind) || only != 0 && t.Pool != only {
			continue
		}
		node, inPool, contact, sync := "<unmapped>", "(n/a)", "unknown", "Healthy"
		if c.view.Node(t.Type, t.Node) != nil {
			node = legacy{t.Node, typeOf(t.Type)}.String()
		}
		if t.Type == "storage" {
			inPool = legacy{t.Pool, storageType}.String()
		}
		if t.LastContact >= 0 {
			contact = fmt.Sprintf("%ds ago", t.LastContact)
		}
		if t.Consistency != wire.Good {
			sync = "Unknown"
		}
		row := []any{t.UID, legacy{t.ID, typeOf(t.Type)}, typeOf(t.Type), t.Alias, node, inPool, t.Reachability, contact, t.Consistency, sync,
			t.Capacity}
		rows.add(append(row, c.space(t)...)...)
	}
	return rows.print()
}

// deletion is a command that removes something with --yes, and otherwise prints whether it could.
func (c *call) deletion(use, what, op string, kinds []string, candidates func() []candidate) *cobra.Command {
	var execute bool
	command := &cobra.Command{Use: use, Args: cobra.ExactArgs(1), RunE: func(command *cobra.Command, arguments []string) error {
		found, err := c.entity(arguments[0], kinds, candidates())
		if err != nil {
			return err
		}
		var changed wire.Changed
		change := wire.Change{Type: found.kind, ID: found.id, Execute: execute}
		if err := c.ask(command.Context(), op, change, &changed); err != nil {
			return err
		}
		name := named(changed.Name, legacy{changed.ID, typeOf(found.kind)}, changed.UID)
		if execute {
			c.tell("%s deleted: %s\n", what, name)
		} else {
			c.tell("%s can be deleted: %s\nIf you really want to delete it, please add the --yes flag to the command.\n", what, name)
		}
		return nil
	}}
	command.Flags().BoolVar(&execute, "yes", false, "")
	return command
}

func (c *call) node() *cobra.Command {
	var kind string
	var cards, reachable, failing bool
	list := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error {
		return c.listNodes(command.Context(), kind, cards, reachable || failing, failing)
	}}
	list.Flags().StringVar(&kind, "node-type", "", "")
	list.Flags().BoolVar(&cards, "with-nics", false, "")
	list.Flags().BoolVar(&reachable, "reachability-check", false, "")
	list.Flags().BoolVar(&failing, "reachability-error", false, "")
	alias := c.alias("set-alias <node> <new-alias>", "node", []string{"meta", "storage", "management"},
		func() []candidate { return c.nodes() })
	remove := c.deletion("delete <node>", "Node", "remove-node", []string{"meta", "storage", "client", "management"},
		func() []candidate { return c.nodes() })
	return group("node", list, alias, remove)
}

func (c *call) listNodes(ctx context.Context, kind string, cards, reachable, failing bool) error {
	printed := []string{"id", "type", "alias"}
	if cards || reachable {
		printed = append(printed, "nics")
	}
	if reachable {
		printed = append(printed, "reachable")
	}
	rows := c.table([]string{"uid", "id", "type", "alias", "nics", "reachable"}, printed)
	alone := false
	for _, wanted := range typeNames {
		for i := range c.view.Nodes {
			n := &c.view.Nodes[i]
			if n.Type != wanted || kind != "" && n.Type != kindOf(kind) {
				continue
			}
			nics, answers := c.nics(ctx, n, cards || reachable, reachable)
			alone = alone || reachable && !strings.Contains(answers, "yes")
			rows.add(n.UID, legacy{n.ID, typeOf(n.Type)}, typeOf(n.Type), n.Alias, nics, answers)
		}
	}
	if err := rows.print(); err != nil {
		return err
	}
	if failing && alone {
		return errors.New("at least one node is unreachable")
	}
	return nil
}

// nics returns the cells with a server's addresses, and whether it answers there.
func (c *call) nics(ctx context.Context, n *wire.NodeView, cards, reachable bool) (nics, answers string) {
	if !cards {
		return "", ""
	}
	var all, yes []string
	for _, card := range n.Interfaces {
		port := n.TCP
		if n.Type == "management" {
			_, _ = fmt.Sscanf(c.management[strings.LastIndex(c.management, ":")+1:], "%d", &port)
			all = append(all, fmt.Sprintf("ethernet:%s (%s:%d,%d)", card.Name, card.Address, n.TCP, port))
		} else {
			all = append(all, fmt.Sprintf("ethernet:%s (%s:%d)", card.Name, card.Address, port))
		}
		answer := "?"
		if reachable {
			answer = "no"
			address := fmt.Sprintf("%s:%d", card.Address, n.TCP)
			op := "ping"
			if n.Type == "management" {
				op = "view"
			}
			if wire.Ask(ctx, address, c.secret, op, nil, nil) == nil {
				answer = "yes"
			}
		}
		yes = append(yes, answer)
	}
	return strings.Join(all, "\n"), strings.Join(yes, "\n")
}

var aliasForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-_.]*$`)

func checkAlias(text string) error {
	if !aliasForm.MatchString(text) || len(text) > 32 {
		return fmt.Errorf("invalid alias %q: must start with a letter and may contain letters, digits, '-', '_' and '.', at most 32 of them", text)
	}
	return nil
}

// alias is a command that renames something, which needs no license.
func (c *call) alias(use, what string, kinds []string, candidates func() []candidate) *cobra.Command {
	return &cobra.Command{Use: use, Args: cobra.ExactArgs(2), RunE: func(command *cobra.Command, arguments []string) error {
		if err := checkAlias(arguments[1]); err != nil {
			return err
		}
		found, err := c.entity(arguments[0], kinds, candidates())
		if err != nil {
			return err
		}
		change := wire.Change{Type: found.kind, State: what, ID: found.id, Name: arguments[1]}
		if err := c.ask(command.Context(), "set-alias", change, nil); err != nil {
			return err
		}
		c.tell("Alias set to %s\n", arguments[1])
		return nil
	}}
}

func (c *call) pool() *cobra.Command {
	list := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return c.listPools() }}
	list.Flags().Bool("with-limits", false, "")
	var number uint16
	var targets, groups []string
	create := &cobra.Command{Use: "create <alias>", Args: cobra.ExactArgs(1), RunE: func(command *cobra.Command, arguments []string) error {
		if err := checkAlias(arguments[0]); err != nil {
			return err
		}
		err := c.fillPool(command.Context(), "add-pool", "Pool created", wire.Change{ID: int(number), Name: arguments[0]}, targets, groups)
		if err == nil && len(targets)+len(groups) == 0 {
			c.tell("\nNo targets or buddy groups were initially assigned to this pool.\nCreating files in directories assigned to this pool " +
				"will fail until targets/mirrors are assigned with 'beegfs pool assign'.\n")
		}
		return err
	}}
	create.Flags().Uint16Var(&number, "num-id", 0, "")
	assign := &cobra.Command{Use: "assign <pool>", Args: cobra.ExactArgs(1), RunE: func(command *cobra.Command, arguments []string) error {
		found, err := c.entity(arguments[0], []string{"storage"}, c.pools())
		if err != nil {
			return err
		}
		return c.fillPool(command.Context(), "modify-pool", "Pool assigned", wire.Change{ID: found.id}, targets, groups)
	}}
	for _, command := range []*cobra.Command{create, assign} {
		command.Flags().StringSliceVarP(&targets, "targets", "t", nil, "")
		command.Flags().StringSliceVarP(&groups, "groups", "g", nil, "")
	}
	assign.MarkFlagsOneRequired("targets", "groups")
	alias := c.alias("set-alias <pool> <new-alias>", "pool", []string{"storage"}, func() []candidate { return c.pools() })
	remove := c.deletion("delete <pool>", "Pool", "remove-pool", []string{"storage"}, func() []candidate { return c.pools() })
	return group("pool", list, create, assign, alias, remove)
}

func (c *call) fillPool(ctx context.Context, op, done string, change wire.Change, targets, groups []string) error {
	var err error
	if change.Targets, err = c.ids(targets, []string{"storage"}, c.targets()); err != nil {
		return err
	}
	if change.Groups, err = c.ids(groups, []string{"storage"}, c.groups()); err != nil {
		return err
	}
	var changed wire.Changed
	if err := c.ask(ctx, op, change, &changed); err != nil {
		return err
	}
	c.tell("%s: %s\n", done, named(changed.Name, legacy{changed.ID, storageType}, changed.UID))
	return nil
}

func (c *call) listPools() error {
	if c.pageSize == 0 {
		return errors.New("--page-size=0 is not supported for this view")
	}
	rows := c.table([]string{"uid", "id", "alias", "targets", "mirrors", "user_space_limit", "user_inode_limit", "group_space_limit",
		"group_inode_limit"}, []string{"id", "alias", "targets", "mirrors"})
	for _, pool := range c.view.Pools {
		var targets, groups []string
		for _, t := range c.view.Targets {
			if t.Type == "storage" && t.Pool == pool.ID {
				targets = append(targets, legacy{t.ID, storageType}.String())
			}
		}
		for _, g := range c.view.Groups {
			if g.Type == "storage" && g.Pool == pool.ID {
				groups = append(groups, legacy{g.ID, storageType}.String())
			}
		}
		rows.add(pool.UID, legacy{pool.ID, storageType}, pool.Name, strings.Join(targets, ","), strings.Join(groups, ","), "", "", "", "")
	}
	return rows.print()
}

func (c *call) mirror() *cobra.Command {
	var kind, primary, secondary string
	var number uint16
	list := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return c.listGroups(kind) }}
	list.Flags().StringVar(&kind, "node-type", "", "")
	create := &cobra.Command{Use: "create <alias>", Args: cobra.ExactArgs(1), RunE: func(command *cobra.Command, arguments []string) error {
		if err := checkAlias(arguments[0]); err != nil {
			return err
		}
		sides, err := c.ids([]string{primary, secondary}, []string{kind}, c.targets())
		if err != nil {
			return err
		}
		var changed wire.Changed
		change := wire.Change{Type: kind, ID: int(number), Name: arguments[0], Primary: sides[0], Secondary: sides[1]}
		if err := c.ask(command.Context(), "add-group", change, &changed); err != nil {
			return err
		}
		c.tell("Buddy group created: %s\n", named(changed.Name, legacy{changed.ID, typeOf(kind)}, changed.UID))
		return nil
	}}
	create.Flags().StringVar(&kind, "node-type", "", "")
	create.Flags().Uint16Var(&number, "num-id", 0, "")
	create.Flags().StringVar(&primary, "primary", "", "")
	create.Flags().StringVar(&secondary, "secondary", "", "")
	for _, name := range []string{"node-type", "primary", "secondary"} {
		_ = create.MarkFlagRequired(name)
	}
	remove := c.deletion("delete <group>", "Buddy group", "remove-group", []string{"storage"}, func() []candidate { return c.groups() })
	return group("mirror", list, create, remove, c.mirrorRoot(), group("resync", c.startResync(), c.resyncStats()))
}

// startResync is the double of mirror resync start (ctl/internal/cmd/buddygroup/resync, and grpc/start_resync.rs of the service, 8.3.1).
// The primary gets the timestamp. The service calls the secondary Needs-resync, also while its server does not serve it.
func (c *call) startResync() *cobra.Command {
	var timestamp int64
	run := func(command *cobra.Command, arguments []string) error {
		found, err := c.entity(arguments[0], []string{"meta", "storage"}, c.groups())
		if err != nil {
			return err
		}
		of := c.view.Group(found.kind, found.id)
		if found.kind == "meta" && timestamp >= 0 {
			//nolint:staticcheck,revive // the service's own text
			return errors.New("Metadata targets can only do full resync, timestamp and timespan is not supported.")
		}
		if timestamp >= 0 {
			node := c.view.Node("storage", c.view.Target("storage", of.Primary).Node)
			order := wire.Resync{Target: of.Primary, Timestamp: timestamp}
			if err := tree.Ask(command.Context(), c.secret, node, "override-buddy-comm", order, nil); err != nil {
				return err
			}
		}
		change := wire.Change{Type: found.kind, ID: of.Secondary, State: wire.NeedsResync}
		if err := c.ask(command.Context(), "start-resync", change, nil); err != nil {
			return err
		}
		c.tell("Successfully sent resync request. Progress can be monitored with 'beegfs mirror resync stats'.\n")
		return nil
	}
	command := &cobra.Command{Use: "start <buddy-group>", Args: cobra.ExactArgs(1), RunE: run}
	command.Flags().Int64Var(&timestamp, "timestamp", -1, "")
	return command
}

// resyncStates are the tool's words for the states of a resync (common/beemsg/msg/resync.go, 8.3.1).
var resyncStates = []string{"Not-started", "Running", "Success", "Interrupted", "Failure", "Errors"}

// resyncStats is the double of mirror resync stats for storage targets; metadata servers of the doubles have no statistics.
func (c *call) resyncStats() *cobra.Command {
	return &cobra.Command{Use: "stats <buddy-group>", Args: cobra.ExactArgs(1), RunE: func(command *cobra.Command, arguments []string) error {
		found, err := c.entity(arguments[0], []string{"meta", "storage"}, c.groups())
		if err != nil {
			return err
		}
		var stats wire.ResyncStats
		if found.kind == "storage" {
			primary := c.view.Group(found.kind, found.id).Primary
			node := c.view.Node("storage", c.view.Target("storage", primary).Node)
			if err := tree.Ask(command.Context(), c.secret, node, "resync-stats", wire.Resync{Target: primary}, &stats); err != nil {
				return err
			}
		}
		end := ""
		if stats.End != 0 {
			end = "End Time: " + time.Unix(stats.End, 0).Format(time.RFC3339) + "\n"
		}
		_, err = fmt.Fprintf(c.output, "Status\n------\nJob State: %s\nStart Time: %s\n%s\nDiscovery Results\n-----------------\n"+
			"Files Discovered: %d\nDirectories Discovered: 0\n\nSync candidates\n---------------\nFiles Matched: %d\n"+
			"Directories Matched: 0\n\nSync Results\n------------\n"+
			"Files Synced: %d\nDirectories Synced: 0\n\nError Summary\n-------------\nFile Errors: %d\nDirectory Errors: 0\n",
			resyncStates[stats.State], time.Unix(stats.Start, 0).Format(time.RFC3339), end, stats.Discovered, stats.Discovered, stats.Synced,
			stats.Errored)
		return err
	}}
}

func (c *call) mirrorRoot() *cobra.Command {
	var execute bool
	command := &cobra.Command{Use: "init", Args: cobra.NoArgs, RunE: func(command *cobra.Command, _ []string) error {
		if !execute {
			c.tell("Initialize mirroring for the root directory cannot be undone. \nIf you really want to initialize mirroring for the root " +
				"directory, please add the --yes flag to the command.\n")
			return nil
		}
		if err := c.ask(command.Context(), "mirror-root", wire.Change{}, nil); err != nil {
			return err
		}
		c.mount = "none"
		t, err := c.tree()
		if err != nil {
			return err
		}
		root := c.view.Node("meta", c.view.Root)
		if err := t.Ask(command.Context(), root, "mirror", wire.EntryRequest{EntryID: "root"}, nil); err != nil {
			return err
		}
		c.tell("Successfully initialized mirroring for the root directory.\nNOTE: To complete activating mirroring, please remount any " +
			"clients and restart all metadata, storage, remote, and sync services now.\n")
		return nil
	}}
	command.Flags().BoolVar(&execute, "yes", false, "")
	return command
}

func (c *call) listGroups(kind string) error {
	if len(c.view.Groups) == 0 {
		return errors.New("no mirrors configured")
	}
	all := []string{"uid", "alias", "id", "type", "primary_target", "primary_consistency", "secondary_target", "secondary_consistency"}
	rows := c.table(all, all[1:])
	for _, g := range c.view.Groups {
		if kind != "" && g.Type != kindOf(kind) {
			continue
		}
		of := typeOf(g.Type)
		rows.add(g.UID, g.Alias, legacy{g.ID, of}, of, legacy{g.Primary, of}.String(), c.view.Target(g.Type, g.Primary).Consistency,
			legacy{g.Secondary, of}.String(), c.view.Target(g.Type, g.Secondary).Consistency)
	}
	return rows.print()
}

// debugging is the double of debug: servers are asked only for open files.
func (c *call) debugging() *cobra.Command {
	return &cobra.Command{
		Use: "debug <node> <command>", Hidden: true, Args: cobra.MinimumNArgs(2), RunE: func(command *cobra.Command, arguments []string) error {
			found, err := c.entity(arguments[0], []string{"meta", "storage"}, c.nodes())
			if err != nil {
				return err
			}
			said := "Unknown/invalid operation"
			if strings.Join(arguments[1:], " ") == "listopenfiles" {
				var open []wire.OpenFiles
				if err := tree.Ask(command.Context(), c.secret, c.view.Node(found.kind, found.id), "list-open-files", nil, &open); err != nil {
					return err
				}
				said = wire.Sessions(found.kind, open)
			}
			c.say("%s\n", said)
			return nil
		},
	}
}
