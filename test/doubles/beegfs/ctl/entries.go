package ctl

import (
	"context"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// ask sends a request to the first address that a server published.
func (c *call) ask(node *wire.NodeView, op string, argument, result any) error {
	return tree.Ask(c.ctx, c.secret, node, op, argument, result)
}

func (c *call) tree() *tree.Tree {
	return &tree.Tree{View: &c.view, Ask: func(ctx context.Context, node *wire.NodeView, op string, argument, result any) error {
		return tree.Ask(ctx, c.secret, node, op, argument, result)
	}}
}

// missing prints that a path has no metadata server.
func (c *call) missing(path string) int {
	c.complain("Unable to find metadata node for path: %s\nError: Path does not exist", path)
	return runtimeError
}

func getEntryInfo(c *call) int {
	_, verbose := c.take("--verbose")
	_, _ = c.take("--nomappings")
	_, unmounted := c.rest["--unmounted"]
	delete(c.rest, "--unmounted")
	name, given := c.positional()
	if !given {
		c.complain("No path specified.")
		return runtimeError
	}
	if c.leftover() {
		return invalidConfig
	}
	if !unmounted {
		return c.notMounted(name)
	}
	directory, err := c.tree().Find(c.ctx, name)
	if err != nil && tree.Unreachable(err) == nil {
		return c.missing(name)
	}
	if dead := tree.Unreachable(err); dead != nil {
		if path.Clean("/"+name) == "/" {
			c.say("Entry type: directory\nEntryID: root\nMetadata node: %s [ID: %d]", dead.Alias, dead.ID)
		}
		c.complain("Communication with server failed: beegfs-meta %s [ID: %d]", dead.Alias, dead.ID)
		return runtimeError
	}
	c.entry(directory, verbose)
	return success
}

func (c *call) notMounted(path string) int {
	c.complain("Unable to retrieve entryInfo for %s: Inappropriate ioctl for device", path)
	return runtimeError
}

func (c *call) entry(directory *wire.Directory, verbose bool) {
	c.say("Entry type: directory\nEntryID: %s", directory.EntryID)
	if verbose && directory.ParentID != "" {
		c.say("ParentID: %s", directory.ParentID)
	}
	owner := "<unknown>"
	if node := c.view.Node("meta", directory.Owner); node != nil {
		owner = node.Alias
	}
	if group := c.view.GroupOf("meta", directory.Owner); directory.Mirrored && group != nil {
		c.say("Metadata buddy group: %d\nCurrent primary metadata node: %s [ID: %d]", group.ID, owner, directory.Owner)
	} else {
		c.say("Metadata node: %s [ID: %d]", owner, directory.Owner)
	}
	kind := "RAID0"
	if directory.Pattern.Mirrored {
		kind = "Buddy Mirror"
	}
	pool := "<unknown>"
	if known := c.view.Pool(directory.Pattern.Pool); known != nil {
		pool = known.Name
	}
	c.say("Stripe pattern details:\n+ Type: %s\n+ Chunksize: %s\n+ Number of storage targets: desired: %d\n+ Storage Pool: %d (%s)", kind,
		binary(directory.Pattern.ChunkSize), directory.Pattern.Targets, directory.Pattern.Pool, pool)
}

// binary formats a chunk size with the largest unit that divides it.
func binary(size uint64) string {
	for _, unit := range []struct {
		letter string
		size   uint64
	}{{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}} {
		if size >= unit.size && size%unit.size == 0 {
			return fmt.Sprintf("%d%s", size/unit.size, unit.letter)
		}
	}
	return strconv.FormatUint(size, 10)
}

func createDir(c *call) int {
	nodes, chosen := c.take("--nodes")
	_, flat := c.take("--nomirror")
	for _, name := range []string{"--access", "--uid", "--gid"} {
		_, _ = c.take(name)
	}
	_, unmounted := c.rest["--unmounted"]
	delete(c.rest, "--unmounted")
	name, given := c.positional()
	if !given {
		c.complain("No path specified.")
		return runtimeError
	}
	if !unmounted {
		return c.notMounted(path.Dir(name))
	}
	var owners []int
	if chosen {
		owners, _ = numbers(nodes)
		for _, id := range owners {
			if c.view.Node("meta", id) == nil {
				c.complain("Unknown node %d", id)
				return runtimeError
			}
		}
	}
	if name == "/" {
		c.complain("Invalid path specified.")
		return runtimeError
	}
	name = strings.TrimRight(name, "/")
	if !strings.HasPrefix(name, "/") {
		// The real program searches for the parent directory, "." here, and does not find it.
		return c.missing(path.Dir(name))
	}
	if c.leftover() {
		return invalidConfig
	}
	_, err := c.tree().Make(c.ctx, name, owners, flat)
	switch dead := tree.Unreachable(err); {
	case dead != nil:
		c.complain("Communication with server failed: beegfs-meta %s [ID: %d]", dead.Alias, dead.ID)
		return runtimeError
	case tree.Exists(err):
		c.complain("Node encountered an error: Entry exists already")
		return runtimeError
	case err != nil:
		return c.missing(path.Dir(name))
	}
	c.say("Operation succeeded.")
	return success
}

// Bounds of a chunk size (ctl/modes/ModeSetPattern.cpp, 7.4.6).
const (
	smallestChunk = 65536
	largestChunk  = 4294967295
)

func setPattern(c *call) int {
	var said strings.Builder
	change, code := c.pattern(&said)
	if code != success {
		return code
	}
	_, force := c.take("--force")
	_, unmounted := c.rest["--unmounted"]
	delete(c.rest, "--unmounted")
	name, given := c.positional()
	if !given {
		c.complain("No path specified.")
		return runtimeError
	}
	if c.leftover() {
		return invalidConfig
	}
	if change.mirrored != nil && *change.mirrored && !force && !c.hasGroups() {
		c.complain("Cannot set buddy mirroring when no groups have been defined. Override with --force.")
		return runtimeError
	}
	c.say("%s", said.String())
	if !unmounted {
		return c.notMounted(name)
	}
	directory, err := c.tree().Find(c.ctx, name)
	if err == nil {
		next := change.apply(directory.Pattern)
		err = c.ask(c.view.Node("meta", directory.Owner), "set-pattern", wire.EntryRequest{EntryID: directory.EntryID, Pattern: &next}, nil)
	}
	if dead := tree.Unreachable(err); dead != nil {
		c.complain("Communication with server failed: beegfs-meta %s [ID: %d]", dead.Alias, dead.ID)
		return runtimeError
	}
	if err != nil {
		return c.missing(name)
	}
	return success
}

func (c *call) hasGroups() bool {
	for _, group := range c.view.Groups {
		if group.Type == "storage" {
			return true
		}
	}
	return false
}

// patternChange holds the changes by --setpattern; values that are not given stay.
type patternChange struct {
	chunk         uint64
	targets, pool int
	mirrored      *bool
}

func (p patternChange) apply(pattern wire.Pattern) wire.Pattern {
	if p.chunk != 0 {
		pattern.ChunkSize = p.chunk
	}
	if p.targets != 0 {
		pattern.Targets = p.targets
	}
	if p.pool != 0 {
		pattern.Pool = p.pool
	}
	if p.mirrored != nil {
		pattern.Mirrored = *p.mirrored
	}
	return pattern
}

func (c *call) pattern(said *strings.Builder) (patternChange, int) {
	var change patternChange
	if text, given := c.take("--chunksize"); given {
		change.chunk = option.Bytes(text)
		switch {
		case change.chunk < smallestChunk || change.chunk > largestChunk:
			c.complain("Chunksize --chunksize out of bounds, must be between %d and %d", smallestChunk, largestChunk)
			return change, runtimeError
		case change.chunk&(change.chunk-1) != 0:
			c.complain("Chunksize must be a power of two: --chunksize")
			return change, runtimeError
		}
		fmt.Fprintf(said, "New chunksize: %d\n", change.chunk)
	}
	if text, given := c.take("--numtargets"); given {
		if change.targets, _ = strconv.Atoi(text); change.targets > 0 {
			fmt.Fprintf(said, "New number of storage targets: %d\n", change.targets)
		}
	}
	if text, given := c.take("--storagepoolid"); given {
		change.pool, _ = strconv.Atoi(text)
		if c.view.Pool(change.pool) == nil {
			c.complain("Storage pool with ID %s does not exist.", text)
			return change, runtimeError
		}
		fmt.Fprintf(said, "New storage pool ID: %d\n", change.pool)
	}
	if text, given := c.take("--pattern"); given {
		mirrored := text == "buddymirror"
		if !mirrored && text != "raid0" {
			c.complain("--pattern must be raid0 or buddymirror.")
			return change, runtimeError
		}
		change.mirrored = &mirrored
	}
	return change, success
}

// migrate is the double of --migrate and --find. In a mount of the double there is nothing to move, because written data goes to no target.
func migrate(c *call) int {
	which := false
	for _, name := range []string{"--targetid", "--nodeid", "--storagepoolid", "--destinationpoolid", "--nomirrors", "--verbose",
		"--nodetype", "--nofiles"} {
		_, given := c.take(name)
		which = which || given && name != "--destinationpoolid" && strings.HasSuffix(name, "id")
	}
	if !which {
		c.complain("Either 'nodeid', 'targetid' or 'storagepoolid' must be specified.")
		return runtimeError
	}
	name, given := c.positional()
	if !given {
		c.complain("No path specified.")
		return runtimeError
	}
	mounted, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(name))
	if err == nil && len(mounted) > 0 && mounted[0].FSType == "fuse.beegfs" {
		return success
	}
	c.complain("%s is not a BeeGFS directory. Aborting.", name)
	return runtimeError
}

func mirrorMetadata(c *call) int {
	_, _ = c.take("--force")
	if c.leftover() {
		return invalidConfig
	}
	if c.view.RootMirrored {
		c.complain("Meta mirroring is already enabled")
		return runtimeError
	}
	groups := false
	for _, group := range c.view.Groups {
		groups = groups || group.Type == "meta"
	}
	if !groups {
		c.complain("There are no metadata buddy mirror groups defined.")
		return runtimeError
	}
	if _, err := c.change("mirror-root", wire.Change{}); err != nil {
		c.complain("Operation failed on server: beegfs-mgmtd %s [ID: 1]; Error: Internal error\nSee the server's log file for details.",
			net.JoinHostPort(c.management, ""))
		return runtimeError
	}
	root := c.view.Node("meta", c.view.Root)
	if err := c.ask(root, "mirror", wire.EntryRequest{EntryID: "root"}, nil); err != nil {
		return c.failed(err)
	}
	c.say("Operation succeeded.")
	return success
}
