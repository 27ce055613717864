package tool

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Lctl is lctl.
func Lctl(ctx context.Context, c Call) int {
	device := ""
	for len(c.Arguments) > 1 && c.Arguments[0] == "--device" {
		device, c.Arguments = c.Arguments[1], c.Arguments[2:]
	}
	if len(c.Arguments) == 0 {
		c.complain("lctl: the double has no prompt\n")
		return 1
	}
	command, rest := c.Arguments[0], c.Arguments[1:]
	switch {
	case command == "--version":
		c.say("lctl %s\n", kernel.Version)
		return 0
	case device != "" && (device != "MGS" || command != "del_ost" && command != "llog_print" && command != "llog_catlist"):
		c.complain("lctl: the double has --device MGS for del_ost, llog_catlist and llog_print only\n")
		return int(syscall.EINVAL)
	}
	commands := map[string]func(context.Context, []string) int{
		"dl": c.devices, "device_list": c.devices, "list_nids": c.listNIDs, "ping": c.ping, "network": c.network, "net": c.network,
		"get_param": c.getParam, "set_param": c.setParam, "conf_param": c.confParam, "del_ost": c.delOST, "llog_print": c.llogPrint,
		"llog_catlist": c.llogCatlist,
		"pool_list":    c.poolList,
	}
	for _, name := range []string{"pool_new", "pool_add", "pool_remove", "pool_destroy"} {
		commands[name] = func(ctx context.Context, rest []string) int { return c.pool(ctx, name, rest) }
	}
	run, known := commands[command]
	if !known {
		c.complain("%s is not a recognized command, for list of commands type \"lctl list-commands\"\n", command)
		return int(syscall.EOPNOTSUPP)
	}
	return run(ctx, rest)
}

// fail prints an error like most commands of lctl.
func (c *Call) fail(command string, err error) int {
	c.complain("%s: %s\n", command, err)
	return code(err)
}

func (c *Call) usage(command, form string) int {
	c.complain("usage: %s %s\n", command, form)
	return int(syscall.EINVAL)
}

func (c *Call) devices(ctx context.Context, _ []string) int {
	var list string
	// Without modules there is no device.
	if ask(ctx, "devices", kernel.Nothing{}, &list) == nil {
		c.say("%s", list)
	}
	return 0
}

func (c *Call) listNIDs(ctx context.Context, _ []string) int {
	var nets []kernel.Net
	if err := ask(ctx, "nets", kernel.Nothing{}, &nets); err != nil || len(nets) == 0 {
		c.complain("IOC_LIBCFS_GET_NI error 100: Network is down\n")
		return 255
	}
	for _, n := range nets {
		for _, i := range n.Interfaces {
			c.say("%s\n", i.NID)
		}
	}
	return 0
}

func (c *Call) network(ctx context.Context, rest []string) int {
	if len(rest) != 1 || rest[0] != "up" && rest[0] != "configure" {
		return c.usage("network", "<up>")
	}
	if err := load(ctx); err != nil {
		return c.fail("network", err)
	}
	if err := ask(ctx, "configure", kernel.Nothing{}, nil); err != nil {
		return c.fail("network", err)
	}
	c.say("LNET configured\n")
	return 0
}

func (c *Call) ping(ctx context.Context, rest []string) int {
	if len(rest) != 1 {
		return c.usage("ping", "nid")
	}
	var reached bool
	if err := ask(ctx, "ping", rest[0], &reached); err != nil || !reached {
		c.complain("failed to ping %s: %s\n", rest[0], wire.Words(syscall.EIO))
		return 1
	}
	c.say("12345-0@lo\n12345-%s\n", rest[0])
	return 0
}

// matching returns the parameters that match a pattern. Dots and slashes both separate the parts of a name; a NID contains dots itself.
func matching(all []kernel.Parameter, pattern string) []kernel.Parameter {
	var found []kernel.Parameter
	parts := strings.FieldsFunc(pattern, func(r rune) bool { return r == '.' || r == '/' })
	for _, p := range all {
		if matches(p.Name, parts) || matches(strings.FieldsFunc(strings.Join(p.Name, "."), func(r rune) bool { return r == '.' }), parts) {
			found = append(found, p)
		}
	}
	return found
}

func matches(name, parts []string) bool {
	if len(name) != len(parts) {
		return false
	}
	for i := range name {
		if is, err := path.Match(parts[i], name[i]); err != nil || !is {
			return false
		}
	}
	return true
}

// parameters returns the parameters of the node; without modules there are none.
func parameters(ctx context.Context) []kernel.Parameter {
	var all []kernel.Parameter
	_ = ask(ctx, "params", kernel.Nothing{}, &all)
	return all
}

func (c *Call) getParam(ctx context.Context, rest []string) int {
	bare := false
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		if rest[0] != "-n" {
			c.complain("error: get_param: the double does not play %s\n", rest[0])
			return int(syscall.EINVAL)
		}
		bare, rest = true, rest[1:]
	}
	if len(rest) == 0 {
		return c.usage("get_param", "[-n] PARAM_PATTERN...")
	}
	all, result := parameters(ctx), 0
	for _, pattern := range rest {
		found := slices.DeleteFunc(matching(all, pattern), func(p kernel.Parameter) bool { return p.Hidden })
		if len(found) == 0 {
			c.complain("error: get_param: param_path '%s': %s\n", slashes(pattern), wire.Words(syscall.ENOENT))
			result = int(syscall.ENOENT)
		}
		for _, p := range found {
			switch {
			case p.Errno != 0:
				c.complain("error: read_param: '/sys/fs/lustre/%s': %s\n", strings.Join(p.Name, "/"), wire.Words(p.Errno))
			case bare:
				c.say("%s\n", strings.TrimPrefix(strings.TrimSuffix(p.Value, "\n"), "\n"))
			case strings.Contains(strings.TrimSuffix(p.Value, "\n"), "\n"):
				c.say("%s=\n%s\n", strings.Join(p.Name, "."), strings.TrimPrefix(strings.TrimSuffix(p.Value, "\n"), "\n"))
			default:
				c.say("%s=%s\n", strings.Join(p.Name, "."), p.Value)
			}
		}
	}
	return result
}

func slashes(pattern string) string { return strings.ReplaceAll(pattern, ".", "/") }

func (c *Call) setParam(ctx context.Context, rest []string) int {
	permanent := false
	for len(rest) > 0 && strings.HasPrefix(rest[0], "-") {
		if rest[0] != "-P" {
			c.complain("error: set_param: the double does not play %s\n", rest[0])
			return int(syscall.EINVAL)
		}
		permanent, rest = true, rest[1:]
	}
	if len(rest) == 0 {
		return c.usage("set_param", "[-P] PARAM=VALUE...")
	}
	all, result := parameters(ctx), 0
	for _, assignment := range rest {
		pattern, value, has := strings.Cut(assignment, "=")
		if !has {
			c.complain("error: set_param: parameter '%s' has no value\n", assignment)
			return int(syscall.EINVAL)
		}
		if permanent {
			if err := ask(ctx, "set-permanent", assignment, nil); err != nil {
				return c.fail("error: set_param", err)
			}
			continue
		}
		found := matching(all, pattern)
		if len(found) == 0 {
			c.complain("error: set_param: param_path '%s': %s\n", slashes(pattern), wire.Words(syscall.ENOENT))
			result = int(syscall.ENOENT)
		}
		for _, p := range found {
			if err := ask(ctx, "set", kernel.Setting{Name: p.Name, Value: value}, nil); err != nil {
				c.complain("error: set_param: setting /sys/fs/lustre/%s=%s: %s\n", strings.Join(p.Name, "/"), value, err)
				result = code(err)
				continue
			}
			c.say("%s=%s\n", strings.Join(p.Name, "."), value)
		}
	}
	return result
}

func (c *Call) confParam(ctx context.Context, rest []string) int {
	if len(rest) != 1 {
		return c.usage("conf_param", "<target.keyword=val>")
	}
	if err := ask(ctx, "conf_param", rest[0], nil); err != nil {
		return c.fail("error: conf_param", err)
	}
	return 0
}

func (c *Call) poolList(ctx context.Context, rest []string) int {
	if len(rest) != 1 {
		return c.usage("pool_list", "<fsname>[.<pool>]")
	}
	fsName, name, one := strings.Cut(rest[0], ".")
	var pools []kernel.Pool
	if err := ask(ctx, "pools", fsName, &pools); err != nil {
		return c.fail("pool_list", err)
	}
	if !one {
		c.say("Pools from %s:\n", fsName)
		for _, p := range pools {
			c.say("%s.%s\n", fsName, p.Name)
		}
		return 0
	}
	at := slices.IndexFunc(pools, func(p kernel.Pool) bool { return p.Name == name })
	if at < 0 {
		return c.fail("pool_list", wire.Refuse(syscall.ENOENT, "pool %s does not exist", rest[0]))
	}
	c.say("Pool: %s\n", rest[0])
	for _, ost := range pools[at].OSTs {
		c.say("%s_UUID\n", ost)
	}
	return 0
}

var (
	poolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,15}$`)
	ostRange = regexp.MustCompile(`^(?:(\S+)-)?OST\[([0-9a-f]{1,4})-([0-9a-f]{1,4})(?:/([0-9]+))?\]$`)
)

// osts returns the OSTs in an argument: one, or several as in lctl-pool_add(8).
func osts(fsName, argument string) []string {
	found := ostRange.FindStringSubmatch(argument)
	if found == nil {
		if !strings.HasPrefix(argument, fsName+"-") {
			argument = fsName + "-" + argument
		}
		return []string{strings.TrimSuffix(argument, "_UUID")}
	}
	first, _ := strconv.ParseInt(found[2], 16, 32)
	last, _ := strconv.ParseInt(found[3], 16, 32)
	step, _ := strconv.ParseInt(found[4], 10, 32)
	var all []string
	for i := first; i <= last; i += max(step, 1) {
		all = append(all, fmt.Sprintf("%s-OST%04x", fsName, i))
	}
	return all
}

func (c *Call) pool(ctx context.Context, command string, rest []string) int {
	members := command == "pool_add" || command == "pool_remove"
	if members && len(rest) < 2 || !members && len(rest) != 1 {
		return c.usage(command, "<fsname>.<pool> [<ostname>...]")
	}
	fsName, name, has := strings.Cut(rest[0], ".")
	if !has || !poolName.MatchString(name) {
		return c.fail(command, wire.Refuse(syscall.EINVAL, "pool name '%s' is not a name of at most 15 characters behind a filesystem", rest[0]))
	}
	change := kernel.PoolChange{What: command, FSName: fsName, Pool: name}
	if !members {
		if err := ask(ctx, "pool", change, nil); err != nil {
			return c.fail(command, err)
		}
		c.say("Pool %s %s\n", rest[0], map[string]string{"pool_new": "created", "pool_destroy": "destroyed"}[command])
		return 0
	}
	for _, argument := range rest[1:] {
		for _, ost := range osts(fsName, argument) {
			change.OST = ost
			if err := ask(ctx, "pool", change, nil); err != nil {
				return c.fail(command, err)
			}
			c.say("OST %s_UUID %s pool %s\n", ost, map[string]string{"pool_add": "added to", "pool_remove": "removed from"}[command], rest[0])
		}
	}
	return 0
}

func (c *Call) delOST(ctx context.Context, rest []string) int {
	question := kernel.DeleteOST{}
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == "--dryrun" || rest[i] == "-n":
			question.DryRun = true
		case (rest[i] == "--target" || rest[i] == "-t") && i+1 < len(rest):
			i++
			question.OST = rest[i]
		default:
			return c.usage("del_ost", "[--dryrun] --target <$fsname-OSTxxxx>")
		}
	}
	if question.OST == "" {
		return c.usage("del_ost", "[--dryrun] --target <$fsname-OSTxxxx>")
	}
	var deletions []kernel.Deletion
	if err := ask(ctx, "del_ost", question, &deletions); err != nil {
		return c.fail("del_ost", err)
	}
	if question.DryRun {
		c.say("del_ost: dry run for target %s\n", question.OST)
	}
	for _, d := range deletions {
		c.say("config_log: %s\n", d.Log)
		for _, r := range d.Records {
			if question.DryRun {
				c.say("[DRY RUN] cancel catalog '%s:%d':\"%s\"\n", d.Log, r.Index, r)
			} else {
				c.say("cancel catalog %s log_idx %d: done\n", d.Log, r.Index)
			}
		}
		if question.DryRun || len(d.Records) == 0 {
			c.say("del_ost: no catalog entry deleted\n")
		} else {
			c.say("del_ost: cancelled %d catalog entries\n", len(d.Records))
		}
	}
	return 0
}

func (c *Call) llogCatlist(ctx context.Context, rest []string) int {
	if len(rest) != 0 {
		return c.usage("llog_catlist", "")
	}
	var names []string
	if err := ask(ctx, "llogs", kernel.Nothing{}, &names); err != nil {
		return c.fail("llog_catlist", err)
	}
	for _, name := range names {
		c.say("config_log: %s\n", name)
	}
	return 0
}

func (c *Call) llogPrint(ctx context.Context, rest []string) int {
	if len(rest) != 1 {
		return c.usage("llog_print", "<logname>")
	}
	var records []kernel.Record
	if err := ask(ctx, "llog", rest[0], &records); err != nil {
		return c.fail("llog_print", err)
	}
	for _, r := range records {
		c.say("%s\n", r)
	}
	return 0
}
