package ctl

import (
	"bufio"
	"errors"
	"strconv"
	"strings"
	"time"

	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

func addStoragePool(c *call) int {
	// An invalid number or 0 makes the service choose one; more than 65535 becomes 65535, as in 7.4.6.
	text, _ := c.take("--id")
	id, _ := strconv.Atoi(text)
	name, _ := c.take("--desc")
	list, moving := c.take("--targets")
	groupList, movingGroups := c.take("--mirrorgroups")
	if name == "" {
		c.complain("--desc must be set.")
		return invalidConfig
	}
	change := wire.Change{ID: min(max(id, 0), 65535), Name: name}
	var valid bool
	if change.Targets, valid = numbers(list); moving && !valid {
		c.complain("--targets must be a comma-separated list of numeric values.")
		return invalidConfig
	}
	if change.Groups, valid = numbers(groupList); movingGroups && !valid {
		c.complain("--mirrorgroups must be a comma-separated list of numeric values.")
		return invalidConfig
	}
	if c.leftover() {
		return invalidConfig
	}
	if !c.movable(change.Targets) {
		return runtimeError
	}
	changed, err := c.change("add-pool", change)
	switch {
	case is(err, "A storage pool with this ID exists already"):
		c.complain("Couldn't create storage pool. A storage pool with this ID exists already.")
		return notComplete
	case err != nil:
		return c.failed(err)
	case changed.Complete:
		c.say("Successfully created storage pool.\n\nID: %d; Description: %s", changed.ID, changed.Name)
		return success
	}
	c.complain("Successfully created storage pool, but not all requested targets or buddy groups could be moved to new pool.\n\n"+
		"ID: %d; Description: %s", changed.ID, changed.Name)
	return notComplete
}

// movable refuses targets that are in a buddy group: the group must be moved.
func (c *call) movable(targets []int) bool {
	refused := false
	for _, id := range targets {
		if c.view.GroupOf("storage", id) != nil {
			c.complain("Refusing to move target with ID %d. Target is part of a buddy group. Please use the buddy group instead of the target.", id)
			refused = true
		}
	}
	if refused {
		c.complain("\nNote: Due to the above errors, the operation was not performed.")
	}
	return !refused
}

func modifyStoragePool(c *call) int {
	text, _ := c.take("--id")
	id, err := strconv.Atoi(text)
	if err != nil || id <= 0 {
		c.complain("--id must be set.")
		return runtimeError
	}
	change, given := wire.Change{ID: id}, 0
	if name, asked := c.take("--desc"); asked {
		change.Name = name
		given++
	}
	for name, list := range map[string]*[]int{
		"--addtargets": &change.Targets, "--rmtargets": &change.Away, "--addmirrorgroups": &change.Groups,
	} {
		text, asked := c.take(name)
		if !asked {
			continue
		}
		given++
		var valid bool
		if *list, valid = numbers(text); !valid {
			c.complain("%s must be a comma-separated list of numeric values.", name)
			return invalidConfig
		}
	}
	if given != 1 {
		c.complain("Exactly one of --desc/--addtargets/--rmtargets/--addmirrorgroups/--rmmirrorgroups must be set.")
		return runtimeError
	}
	if c.leftover() {
		return invalidConfig
	}
	if !c.movable(append(change.Targets, change.Away...)) {
		return runtimeError
	}
	pool := c.view.Pool(id)
	complete := pool != nil && c.modifiable(change)
	if complete {
		changed, err := c.change("modify-pool", change)
		if err != nil {
			return c.failed(err)
		}
		complete = changed.Complete
	}
	switch {
	case pool == nil:
		c.complain("Storage Pool ID is unknown.\n")
	case complete:
		c.say("Successfully modified storage pool.\n")
	default:
		c.complain("Failed to modify storage pool. However, if you requested to add or remove targets, parts of the operation might have " +
			"been successful.\n")
	}
	// beegfs-ctl 7 exits with 0 whatever the result is.
	return success
}

// modifiable is false where 7.4.6 refuses: only targets of the default pool can be added to another pool. None can be added to the default
// pool; targets return to it when they are removed from the other one.
func (c *call) modifiable(change wire.Change) bool {
	for _, id := range change.Targets {
		if target := c.view.Target("storage", id); target == nil || target.Pool != 1 || change.ID == 1 {
			return false
		}
	}
	return true
}

func removeStoragePool(c *call) int {
	text, given := c.positional()
	if !given {
		c.complain("No storage pool ID specified.")
		return invalidConfig
	}
	id, err := strconv.Atoi(text)
	if err != nil || id <= 0 {
		c.complain("Invalid storage pool ID given (must be numeric): %s", text)
		return invalidConfig
	}
	c.say("Removing storage pool %[1]d will move all targets of the pool to the default pool. \nFurthermore, ID %[1]d will be reused for new "+
		"pools, i.e. if the pool ID is still referenced in stripe patterns, the stripe patterns will automatically reference any new pool "+
		"with ID %[1]d.\n", id)
	answers := bufio.NewScanner(c.input)
	for answer := ""; answer != "y"; answer = strings.TrimSpace(answers.Text()) {
		c.say("Do you really want to continue? (y/n)")
		// The real program repeats the question forever without an answer. The double ends, so that a test ends too.
		if !answers.Scan() || strings.TrimSpace(answers.Text()) == "n" {
			return runtimeError
		}
	}
	_, err = c.change("remove-pool", wire.Change{ID: id})
	switch {
	case c.view.Pool(id) == nil:
		c.complain("Failed to remove storage pool, because pool with ID %d doesn't exist.", id)
	case id == 1:
		c.complain("The management daemon refused to delete storage pool with ID 1. The storage pool is probably the default pool.")
	case err != nil:
		return c.failed(err)
	default:
		c.say("Successfully removed storage pool with ID %d.", id)
	}
	return success
}

// failed prints the error if the management service disconnects, or refuses without a text of its own.
func (c *call) failed(err error) int {
	c.complain("Operation failed on server: %s", err)
	return runtimeError
}

func removeTarget(c *call) int {
	text, given := c.positional()
	if !given {
		c.complain("No target ID specified.")
		return runtimeError
	}
	if c.leftover() {
		return invalidConfig
	}
	id, _ := strconv.Atoi(text)
	if _, err := c.change("remove-target", wire.Change{ID: id}); err != nil {
		c.complain("Failed to remove target: %s (Error: %s)", text, err)
		return runtimeError
	}
	c.say("Removal of target succeeded: %s", text)
	return success
}

func removeNode(c *call) int {
	kind, known := c.kindArgument("", "Invalid or missing node type.")
	if !known {
		return invalidConfig
	}
	text, given := c.positional()
	if !given {
		c.complain("No node ID specified.")
		return invalidConfig
	}
	if c.leftover() {
		return invalidConfig
	}
	id, _ := strconv.Atoi(text)
	if _, err := c.change("remove-node", wire.Change{Type: kind, ID: id}); err != nil {
		c.complain("Failed to remove node: %s (Error: %s)", text, err)
		return runtimeError
	}
	c.say("Removal of node succeeded: %s", text)
	return success
}

func addMirrorGroup(c *call) int {
	kind, known := c.kindArgument("", "Invalid or missing node type.")
	if !known {
		return invalidConfig
	}
	change := wire.Change{Type: kind}
	for _, side := range []struct {
		name, complaint string
		id              *int
	}{
		{"--primary", "No primary target ID specified.", &change.Primary},
		{"--secondary", "No secondary target ID specified.", &change.Secondary},
		{"--groupid", "", &change.ID},
	} {
		text, given := c.take(side.name)
		if !given && side.complaint != "" {
			c.complain("%s", side.complaint)
			return invalidConfig
		}
		*side.id, _ = strconv.Atoi(text)
	}
	if c.leftover() {
		return invalidConfig
	}
	primary, secondary := c.view.Target(kind, change.Primary), c.view.Target(kind, change.Secondary)
	if primary == nil || secondary == nil || primary.Pool != secondary.Pool {
		c.complain("Could not add buddy group: Requested targets are in different storage pools.")
		return runtimeError
	}
	changed, err := c.change("add-group", change)
	if err == nil {
		c.say("Mirror buddy group successfully set: groupID %d -> target IDs %d, %d", changed.ID, change.Primary, change.Secondary)
		return success
	}
	why := "One of the targets is already mapped to a buddy group."
	if is(err, "ID conflict") || c.view.Group(kind, change.ID) != nil {
		why = "Mirror buddy group with ID " + strconv.Itoa(change.ID) + " already exists."
	}
	c.complain("Failed to add mirror buddy group: primaryTargetID %d; secondaryTargetID %d; Error: %s", change.Primary, change.Secondary, why)
	c.complain("Could not add buddy group: Internal error")
	return runtimeError
}

func startResync(c *call) int {
	kind, known := c.kindArgument("storage", "Invalid or missing node type.")
	if !known {
		return invalidConfig
	}
	text, _ := c.take("--targetid")
	if kind == "meta" {
		text, _ = c.take("--nodeid")
	}
	stamp, ordered := c.take("--timestamp")
	for _, name := range []string{"--timespan", "--restart"} {
		_, _ = c.take(name)
	}
	if c.leftover() {
		return invalidConfig
	}
	id, _ := strconv.Atoi(text)
	group := c.view.GroupOf(kind, id)
	if group == nil {
		c.complain("Couldn't find mirror buddy for target ID: %d.", id)
		return runtimeError
	}
	if kind == "meta" {
		if _, err := c.change("set-state", wire.Change{Type: kind, ID: group.Secondary, State: wire.NeedsResync}); err != nil {
			return c.failed(err)
		}
		c.say("Resync request sent. ")
		return success
	}
	if timestamp, err := strconv.ParseInt(stamp, 10, 64); ordered && err != nil {
		c.complain("Invalid timestamp given (must be numeric): %s", stamp)
		return invalidConfig
	} else if ordered && c.askTarget(group.Primary, "override-buddy-comm", wire.Resync{Target: group.Primary, Timestamp: timestamp}) != "" {
		c.complain("Could not override last buddy communication timestamp.Resync request not successful; primary target ID: %d; nodeID: ", group.Primary)
		return runtimeError
	}
	if refused := c.askTarget(group.Secondary, "set-consistency", wire.Resync{Target: group.Secondary, State: wire.NeedsResync}); refused != "" {
		c.complain("Resync request not successful; secondary target ID: %d; nodeID: %d; Error: %s", group.Secondary,
			c.view.Target(kind, group.Secondary).Node, refused)
		return runtimeError
	}
	c.say("Resync request sent. ")
	return success
}

// resyncStates are the tool's words for the states of a resync (ModeResyncStats.cpp, 7.4.6).
var resyncStates = []string{"Not started", "Running", "Completed successfully", "Interrupted", "Failed", "Completed with errors"}

// resyncStats prints the statistics of storage targets; metadata servers of the doubles have none.
func resyncStats(c *call) int {
	kind, known := c.kindArgument("", "Invalid or missing node type.")
	if !known {
		return invalidConfig
	}
	text, byGroup := c.take("--mirrorgroupid")
	if !byGroup {
		text, _ = c.take("--targetid")
	}
	if c.leftover() {
		return invalidConfig
	}
	id, _ := strconv.Atoi(text)
	group := c.view.Group(kind, id)
	if !byGroup {
		group = c.view.GroupOf(kind, id)
	}
	if group == nil {
		c.complain("Could not find buddy group %d.", id)
		return runtimeError
	}
	var stats wire.ResyncStats
	if kind == "storage" {
		node := c.view.Node(kind, c.view.Target(kind, group.Primary).Node)
		if err := tree.Ask(c.ctx, c.secret, node, "resync-stats", wire.Resync{Target: group.Primary}, &stats); err != nil {
			c.complain("Statistics could not be retrieved; primary target ID: %d; secondary target ID: %d; Error: %s", group.Primary, id, err)
			return runtimeError
		}
	}
	c.say("Job state: %s", resyncStates[stats.State])
	for _, at := range []struct {
		name string
		when int64
	}{{"start", stats.Start}, {"end", stats.End}} {
		if at.when != 0 {
			c.say("Job %s time: %s", at.name, time.Unix(at.when, 0).Format(time.ANSIC))
		}
	}
	c.say("# of discovered dirs: 0\n# of discovered files: %d\n# of dir sync candidates: 0\n# of file sync candidates: %d\n"+
		"# of synced dirs: 0\n# of synced files: %d\n# of dir sync errors: 0\n# of file sync errors: %d",
		stats.Discovered, stats.Discovered, stats.Synced, stats.Errored)
	return success
}

// askTarget asks the server of a storage target, and returns why that has failed; empty when it has not.
func (c *call) askTarget(id int, op string, argument wire.Resync) string {
	node := c.view.Node("storage", c.view.Target("storage", id).Node)
	err := tree.Ask(c.ctx, c.secret, node, op, argument, nil)
	var refused *wire.RefusedError
	switch {
	case errors.As(err, &refused):
		return refused.Text
	case err != nil:
		return "Communication error"
	}
	return ""
}
