package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

func needsPath(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("missing <path> argument. Usage: %s", command.Use)
	}
	return nil
}

func (c *call) entryCommands() *cobra.Command {
	var verbose, recurse, retro bool
	info := &cobra.Command{Use: "info <path> [<path>] ...", Args: needsPath, RunE: func(command *cobra.Command, paths []string) error {
		return c.entryInfo(command.Context(), paths, verbose)
	}}
	info.Flags().BoolVar(&verbose, "verbose", false, "")
	info.Flags().BoolVar(&recurse, "recurse", false, "")
	info.Flags().BoolVar(&retro, "retro", false, "")
	var nodes []string
	var flat bool
	directory := &cobra.Command{
		Use: "directory <path> [<path>] ...", Aliases: []string{"dir"}, Args: needsPath,
		RunE: func(command *cobra.Command, paths []string) error {
			return c.entryCreate(command.Context(), paths, nodes, flat)
		},
	}
	directory.Flags().StringSliceVar(&nodes, "nodes", nil, "")
	directory.Flags().BoolVar(&flat, "no-mirror", false, "")
	for _, name := range []string{"permissions", "uid", "gid"} {
		directory.Flags().String(name, "", "")
	}
	migrate := &cobra.Command{Use: "migrate <path>", Args: cobra.ExactArgs(1), RunE: func(*cobra.Command, []string) error {
		return errors.New("unable to get a valid BeeGFS client: no BeeGFS is mounted, and files are only migrated where one is")
	}}
	for _, name := range []string{"recurse", "yes", "update-directories", "rebalance", "skip-mirrors", "verbose"} {
		migrate.Flags().Bool(name, false, "")
	}
	for _, name := range []string{"from-targets", "from-nodes", "from-pools", "pool", "targets", "groups", "filter-files"} {
		migrate.Flags().String(name, "", "")
	}
	return group("entry", info, c.entrySet(), group("create", directory), migrate)
}

func (c *call) entryInfo(ctx context.Context, paths []string, verbose bool) error {
	t, err := c.tree()
	if err != nil {
		return err
	}
	all := []string{"path", "entry_id", "type", "meta_node", "meta_mirror", "storage_pool", "stripe_pattern", "storage_targets",
		"storage_mirrors", "remote_targets", "cool_down", "client_sessions", "access", "state"}
	printed := append(append([]string{}, all[:10]...), "access", "state")
	if verbose {
		printed = all
	}
	rows := c.table(all, printed)
	for _, path := range paths {
		directory, err := t.Find(ctx, path)
		if err != nil {
			return fmt.Errorf("unable to get entry info for path %s: %w", path, err)
		}
		var mirror any = "(unmirrored)"
		if group := c.view.GroupOf("meta", directory.Owner); directory.Mirrored && group != nil {
			mirror = legacy{group.ID, metaType}
		}
		kind, pool := "RAID0", "<unknown>"
		if directory.Pattern.Mirrored {
			kind = "Buddy Mirror"
		}
		if known := c.view.Pool(directory.Pattern.Pool); known != nil {
			pool = known.Name
		}
		chunk := strconv.FormatUint(directory.Pattern.ChunkSize, 10)
		if !c.raw {
			chunk = binary(directory.Pattern.ChunkSize)
		}
		rows.add(path, directory.EntryID, entryType(directoryEntry), legacy{directory.Owner, metaType}.String(), mirror,
			fmt.Sprintf("%s (%d)", pool, directory.Pattern.Pool), fmt.Sprintf("%s (%dx%s)", kind, directory.Pattern.Targets, chunk),
			"(directory)", "(directory)", "(none)", "(n/a)", "(directory)", "(n/a)", "(n/a)")
	}
	return rows.print()
}

// entryType is a number in JSON and a word in tables (common/beegfs/entry.go, 8.3.1).
type entryType int

const directoryEntry = 1

// String is the word.
func (entryType) String() string { return "directory" }

// status is a number in JSON and a text in tables (common/beegfs/errors.go, 8.3.1).
type status int

const (
	done   status = 0
	exists status = 7
)

// String is the text.
func (s status) String() string {
	return map[status]string{done: "Success", exists: "Entry exists already"}[s]
}

func binary(size uint64) string {
	for _, unit := range []struct {
		letter string
		size   uint64
	}{{"Gi", 1 << 30}, {"Mi", 1 << 20}, {"Ki", 1 << 10}} {
		if size >= unit.size {
			return fmt.Sprintf("%.0f%s", float64(size)/float64(unit.size), unit.letter)
		}
	}
	return strconv.FormatUint(size, 10)
}

func (c *call) entryCreate(ctx context.Context, paths, nodes []string, flat bool) error {
	t, err := c.tree()
	if err != nil {
		return err
	}
	owners, err := c.ids(nodes, []string{"meta"}, c.nodes())
	if err != nil {
		return fmt.Errorf("unable to look up requested node in the node store: %w", err)
	}
	rows, failed := c.table([]string{"name", "status", "entry_id", "type"}, []string{"name", "status", "entry_id", "type"}), false
	for _, path := range paths {
		made, err := t.Make(ctx, path, owners, flat)
		switch {
		case err == nil:
			rows.add(path, done, made.EntryID, entryType(directoryEntry))
		case tree.Exists(err):
			failed = true
			rows.add(path, exists, "n/a", "n/a")
		default:
			return fmt.Errorf("unable to get entry info for parent path of %s: %w", path, err)
		}
	}
	if err := rows.print(); err != nil {
		return err
	}
	if failed {
		return errors.New("unable to create one or more entries (see individual results for details)")
	}
	return nil
}

func (c *call) entrySet() *cobra.Command {
	var pool, chunk, pattern, number string
	var force bool
	command := &cobra.Command{Use: "set <path> [<path>] ...", Args: needsPath}
	flags := command.Flags()
	flags.StringVar(&pool, "pool", "", "")
	flags.StringVar(&chunk, "chunk-size", "", "")
	flags.StringVar(&pattern, "pattern", "", "")
	flags.StringVar(&number, "num-targets", "", "")
	flags.BoolVar(&force, "force", false, "")
	flags.Bool("verbose", false, "")
	flags.Bool("yes", false, "")
	command.RunE = func(command *cobra.Command, paths []string) error {
		change, said, err := c.patternOf(pool, chunk, pattern, number)
		if err != nil {
			return err
		}
		t, err := c.tree()
		if err != nil {
			return err
		}
		for _, path := range paths {
			directory, err := t.Find(command.Context(), path)
			if err != nil {
				return fmt.Errorf("unable to get entry info for path %s: %w", path, err)
			}
			next := change(directory.Pattern)
			if err := c.allowed(path, next, pattern != "", pool != "", force); err != nil {
				return err
			}
			request := wire.EntryRequest{EntryID: directory.EntryID, Pattern: &next}
			if err := t.Ask(command.Context(), c.view.Node("meta", directory.Owner), "set-pattern", request, nil); err != nil {
				return fmt.Errorf("server returned an error performing the requested updates for path %s: %w", path, err)
			}
		}
		c.tell("Summary: processed %d entries | configuration updates: %s\n", len(paths), strings.Join(said, ", "))
		return nil
	}
	return command
}

// allowed refuses a pool without targets for the pattern.
func (c *call) allowed(path string, next wire.Pattern, pattern, pool, force bool) error {
	if force || !pattern && !pool {
		return nil
	}
	name := fmt.Sprint(next.Pool)
	if known := c.view.Pool(next.Pool); known != nil {
		name = named(known.Name, legacy{known.ID, storageType}, known.UID)
	}
	if next.Mirrored {
		for _, g := range c.view.Groups {
			if g.Type == "storage" && g.Pool == next.Pool {
				return nil
			}
		}
		return fmt.Errorf("refusing to set stripe pattern Buddy Mirror on path %s because its assigned storage pool %s does not contain any "+
			"buddy groups (use force to override)", path, name)
	}
	for _, t := range c.view.Targets {
		if t.Type == "storage" && t.Pool == next.Pool {
			return nil
		}
	}
	return fmt.Errorf("storage pool with ID %d does not contain any targets (use force to override)", next.Pool)
}

// patternOf parses the flags of `entry set`: the changes of a pattern, and the messages about them.
func (c *call) patternOf(pool, chunk, pattern, number string) (func(wire.Pattern) wire.Pattern, []string, error) {
	var change wire.Pattern
	var said []string
	if chunk != "" {
		size, err := option.Units(strings.TrimSuffix(chunk, "B"))
		if err != nil {
			return nil, nil, fmt.Errorf("invalid argument %q for \"--chunk-size\" flag: %w", chunk, err)
		}
		if size < 65536 || size > 4294967295 {
			return nil, nil, fmt.Errorf("parsed chunksize (%d bytes) is out of bounds (must be between 65536 bytes and 4294967295 bytes)", size)
		}
		if size&(size-1) != 0 {
			return nil, nil, fmt.Errorf("chunksize is not a power of 2: %d", size)
		}
		change.ChunkSize = size
		said = append(said, fmt.Sprintf("Chunksize (%d)", size))
	}
	if number != "" {
		targets, err := strconv.ParseUint(number, 10, 32)
		if err != nil || targets == 0 {
			return nil, nil, fmt.Errorf("invalid argument %q for \"--num-targets\" flag", number)
		}
		change.Targets = int(targets)
		said = append(said, fmt.Sprintf("DefaultNumTargets (%d)", targets))
	}
	if pool != "" {
		found, err := c.entity(pool, []string{"storage"}, c.pools())
		if err != nil {
			return nil, nil, fmt.Errorf("unable to retrieve the specified storage pool %s: %w", pool, err)
		}
		change.Pool = found.id
		said = append(said, "Pool ("+pool+")")
	}
	switch pattern {
	case "", "raid0", "mirrored":
	default:
		return nil, nil, errors.New("unsupported stripe pattern (supported patterns: raid0, mirrored)")
	}
	if pattern != "" {
		said = append(said, "StripePattern ("+map[string]string{"raid0": "RAID0", "mirrored": "Buddy Mirror"}[pattern]+")")
	}
	return func(before wire.Pattern) wire.Pattern {
		if change.ChunkSize != 0 {
			before.ChunkSize = change.ChunkSize
		}
		if change.Targets != 0 {
			before.Targets = change.Targets
		}
		if change.Pool != 0 {
			before.Pool = change.Pool
		}
		if pattern != "" {
			before.Mirrored = pattern == "mirrored"
		}
		return before
	}, said, nil
}

// health is `beegfs health check`: it fails if any target is not online, not good, or not in the capacity pool Normal.
func (c *call) health() *cobra.Command {
	var ignore bool
	check := &cobra.Command{Use: "check [<mount-path>] ...", RunE: func(*cobra.Command, []string) error {
		c.say("Running Health Check for beegfs://%s\n>>>>> Checking Targets <<<<<\n\n", c.management)
		failed := false
		for _, one := range []struct {
			title, good, bad string
			fine             func(*wire.TargetView) bool
		}{
			{"Reachability", "All targets are responding.", "Not all targets are responding.",
				func(t *wire.TargetView) bool { return t.Reachability == wire.Online }},
			{"Consistency", "All mirrors are synchronized.", "Not all mirrors are synchronized.",
				func(t *wire.TargetView) bool { return t.Consistency == wire.Good }},
			{"Available Capacity",
				"All targets have sufficient free space based on the thresholds defined by the management service's configuration.",
				"Not all targets have sufficient free space based on the thresholds defined by the management service's configuration.",
				func(t *wire.TargetView) bool { return t.Capacity == "Normal" }},
		} {
			mark, text := "✅", one.good
			for i := range c.view.Targets {
				if !one.fine(&c.view.Targets[i]) {
					mark, text, failed = "🛑", one.bad, true
				}
			}
			c.say("%s %s -> %s\n", mark, one.title, text)
		}
		if failed && !ignore {
			return errors.New("one or more checks failed")
		}
		return nil
	}}
	check.Flags().BoolVar(&ignore, "ignore-failed-checks", false, "")
	return group("health", check)
}
