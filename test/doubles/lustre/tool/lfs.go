package tool

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Lfs is lfs.
func Lfs(ctx context.Context, c Call) int {
	if len(c.Arguments) == 0 {
		c.complain("lfs: the double has no prompt\n")
		return 1
	}
	command, rest := c.Arguments[0], c.Arguments[1:]
	commands := map[string]func(context.Context, []string) int{
		"df": c.df, "osts": c.targets, "mdts": c.targets, "check": c.check, "getname": c.getName, "pool_list": c.poolList, "path2fid": c.fid,
		"getstripe": c.getStripe, "setstripe": c.setStripe, "getdirstripe": c.getDirStripe, "setdirstripe": c.setDirStripe,
		"mkdir": c.setDirStripe,
		"find":  c.find, "migrate": c.migrate, "setquota": c.setQuota, "quota": c.quota, "project": c.project,
	}
	run, known := commands[command]
	switch {
	case command == "--version":
		c.say("lfs %s\n", kernel.Version)
		return 0
	case !known:
		c.complain("lfs: the double does not play %s\n", strings.Join(c.Arguments, " "))
		return int(syscall.EOPNOTSUPP)
	}
	return run(ctx, rest)
}

// lfsError is an error of lfs about a path.
func (c *Call) lfsError(path string, err error) int {
	c.complain("error: lfs %s: %s: %s\n", c.Arguments[0], path, wire.Words(syscall.Errno(code(err))))
	return code(err)
}

// options parses the options of a command line by name; arguments without a name are the rest. Names without a value are in flags.
func (c *Call) options(arguments []string, values, flags string) (found map[string]string, rest []string, ok bool) {
	found = map[string]string{}
	for i := 0; i < len(arguments); i++ {
		a := arguments[i]
		switch {
		case !strings.HasPrefix(a, "-") || a == "-":
			rest = append(rest, a)
		case slices.Contains(strings.Fields(values), a) && i+1 < len(arguments):
			i++
			found[a] = arguments[i]
		case slices.Contains(strings.Fields(flags), a):
			found[a] = "true"
		default:
			c.complain("lfs %s: unrecognized option '%s'\n", c.Arguments[0], a)
			return nil, nil, false
		}
	}
	return found, rest, true
}

// mounts returns the clients of this node.
func mounts(ctx context.Context) []kernel.Mounted {
	var all []kernel.Mounted
	_ = ask(ctx, "clients", kernel.Nothing{}, &all)
	return all
}

// place finds the client for a path.
func place(ctx context.Context, path string) (kernel.Mounted, kernel.Place, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return kernel.Mounted{}, kernel.Place{}, err
	}
	if directory, err := filepath.EvalSymlinks(filepath.Dir(absolute)); err == nil && absolute != "/" {
		absolute = filepath.Join(directory, filepath.Base(absolute))
	}
	table, err := mountinfo.GetMounts(mountinfo.ParentsFilter(absolute))
	if err != nil {
		return kernel.Mounted{}, kernel.Place{}, err
	}
	var deepest *mountinfo.Info
	for _, i := range table {
		if deepest == nil || len(i.Mountpoint) >= len(deepest.Mountpoint) {
			deepest = i
		}
	}
	for _, m := range mounts(ctx) {
		if deepest == nil || deepest.FSType != "fuse.lustre" || m.Path != deepest.Mountpoint || m.Source != deepest.Source {
			continue
		}
		relative, err := filepath.Rel(m.Path, absolute)
		return m, kernel.Place{Mount: m.Path, Path: relative}, err
	}
	return kernel.Mounted{}, kernel.Place{}, syscall.ENOTTY
}

func (c *Call) getName(ctx context.Context, _ []string) int {
	for _, m := range mounts(ctx) {
		c.say("%s-%s %s\n", m.FSName, m.Instance, m.Path)
	}
	return 0
}

// chosen returns the clients for a command.
func (c *Call) chosen(ctx context.Context, rest []string) ([]kernel.Mounted, int) {
	all := mounts(ctx)
	if len(rest) > 0 {
		m, _, err := place(ctx, rest[0])
		if err != nil {
			return nil, c.lfsError(rest[0], err)
		}
		all = []kernel.Mounted{m}
	}
	return all, 0
}

func (c *Call) targets(ctx context.Context, rest []string) int {
	all, code := c.chosen(ctx, rest)
	for _, m := range all {
		title, seen := "OBDS:", m.OSTs
		if c.Arguments[0] == "mdts" {
			title, seen = "MDTS:", m.MDTs
		}
		c.say("%s\n", title)
		for _, s := range seen {
			c.say("%d: %s_UUID %s\n", index(s.Target), s.Target, map[bool]string{true: "ACTIVE", false: "INACTIVE"}[s.Active])
		}
	}
	return code
}

func index(target string) int {
	n, err := strconv.ParseInt(target[max(len(target)-4, 0):], 16, 32)
	if err != nil {
		return -1
	}
	return int(n)
}

// check checks each connection. A client's connection waits for its target; if it is killed meanwhile, pending output is lost.
func (c *Call) check(ctx context.Context, rest []string) int {
	all := []string{"osc", "mdc", "mgc"}
	kinds := map[string][]string{"servers": all, "all": all, "osts": {"osc"}, "mdts": {"mdc"}, "mgts": {"mgc"}}
	if len(rest) != 1 || kinds[rest[0]] == nil {
		c.complain("lfs check: unrecognized option '%s'\n", strings.Join(rest, " "))
		return int(syscall.EINVAL)
	}
	var said strings.Builder
	seen, result := 0, 0
	for waiting := true; waiting; {
		var all []kernel.Checked
		if err := ask(ctx, "check", kernel.Nothing{}, &all); err != nil {
			return c.lfsError(rest[0], err)
		}
		all = slices.DeleteFunc(all, func(d kernel.Checked) bool { return !slices.Contains(kinds[rest[0]], d.Kind) })
		waiting = false
		for _, d := range all[min(seen, len(all)):] {
			if waiting = d.Client && d.Active && !d.Works; waiting {
				break
			}
			seen++
			switch {
			case d.Works:
				fmt.Fprintf(&said, "%s active.\n", d.Device)
			case d.Active:
				c.complain("lfs check: error: check '%s': %s (%d)\n", d.Device, wire.Words(syscall.EAGAIN), int(syscall.EAGAIN))
				result = int(syscall.EAGAIN)
			default:
				c.complain("lfs check: error: check '%s': %s (%d)\n", d.Device, wire.Words(syscall.ESHUTDOWN), int(syscall.ESHUTDOWN))
				result = int(syscall.ESHUTDOWN)
			}
		}
		if waiting {
			pause(ctx)
		}
	}
	c.say("%s", said.String())
	return result
}

func (c *Call) df(ctx context.Context, rest []string) int {
	given, rest, ok := c.options(rest, "-p --pool", "-h -i")
	if !ok {
		return int(syscall.EINVAL)
	}
	all, result := c.chosen(ctx, rest)
	for _, m := range all {
		seen := slices.Concat(m.MDTs, m.OSTs)
		if name := given["-p"] + given["--pool"]; name != "" {
			_, pool, _ := strings.Cut(name, ".")
			at := slices.IndexFunc(m.Pools, func(p kernel.Pool) bool { return p.Name == pool })
			if at < 0 {
				c.complain("error: lfs df: pool '%s' does not exist\n", name)
				return int(syscall.ENOENT)
			}
			seen = slices.DeleteFunc(seen, func(s kernel.Seen) bool {
				return strings.Contains(s.Target, "-OST") && !slices.Contains(m.Pools[at].OSTs, s.Target)
			})
		}
		c.table(ctx, m, seen, given["-h"] != "", given["-i"] != "")
	}
	return result
}

// row is one line of lfs df.
func (c *Call) row(name, place string, all, used, free int64, human bool) {
	width, show := 11, func(n int64) string { return strconv.FormatInt(n, 10) }
	if human {
		width, show = 9, humanKilobytes
	}
	share := int64(0)
	if used+free > 0 {
		share = (used*100 + used + free - 1) / (used + free)
	}
	c.say("%-20s %*s %*s %*s %3d%%  %s \n", name, width, show(all), width, show(used), width, show(free), share, place)
}

func humanKilobytes(n int64) string {
	value, units := float64(n), "KMGTPE"
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	return fmt.Sprintf("%.1f%s", value, units[:1])
}

func (c *Call) table(ctx context.Context, m kernel.Mounted, seen []kernel.Seen, human, inodes bool) {
	titles := []any{"UUID", "1K-blocks", "Used", "Available", "Use%", "Mounted on"}
	switch {
	case inodes:
		titles = []any{"UUID", "Inodes", "IUsed", "IFree", "IUse%", "Mounted on"}
	case human:
		titles[1] = "bytes"
	}
	c.say("%-20s %11s %11s %11s %4s  %s\n", titles...)
	var mdts, osts kernel.Space
	for _, s := range seen {
		var space kernel.Space
		if err := ask(ctx, "df", kernel.DF{Path: m.Path, Target: s.Target}, &space); err != nil {
			continue // only lfs df -v, which is not implemented, shows an unused OST
		}
		kind, sum := "OST", &osts
		if strings.Contains(s.Target, "-MDT") {
			kind, sum = "MDT", &mdts
		}
		sum.Kilobytes, sum.Used, sum.Available = sum.Kilobytes+space.Kilobytes, sum.Used+space.Used, sum.Available+space.Available
		sum.Inodes, sum.InodesUsed = sum.Inodes+space.Inodes, sum.InodesUsed+space.InodesUsed
		where := fmt.Sprintf("%s[%s:%d]", m.Path, kind, index(s.Target))
		if inodes {
			c.row(s.Target+"_UUID", where, space.Inodes, space.InodesUsed, space.Inodes-space.InodesUsed, false)
		} else {
			c.row(s.Target+"_UUID", where, space.Kilobytes, space.Used, space.Available, human)
		}
	}
	c.say("\n")
	if inodes {
		free := min(mdts.Inodes-mdts.InodesUsed, osts.Inodes-osts.InodesUsed)
		c.row("filesystem_summary:", m.Path, mdts.InodesUsed+free, mdts.InodesUsed, free, false)
	} else {
		c.row("filesystem_summary:", m.Path, osts.Kilobytes, osts.Used, osts.Available, human)
	}
	c.say("\n")
}

// layoutOf reads the layout at a path.
func layoutOf(ctx context.Context, path string) (kernel.At, error) {
	_, p, err := place(ctx, path)
	if err != nil {
		return kernel.At{}, err
	}
	var at kernel.At
	err = ask(ctx, "layout", p, &at)
	return at, err
}

func (c *Call) fid(ctx context.Context, rest []string) int {
	for _, path := range rest {
		at, err := layoutOf(ctx, path)
		if err != nil {
			return c.lfsError(path, err)
		}
		c.say("[0x%x:0x%x:0x0]\n", 0x200000402+at.Layout.MDT<<30, at.Inode)
	}
	return 0
}

func (c *Call) getStripe(ctx context.Context, rest []string) int {
	given, rest, ok := c.options(rest, "", "-d -i -c -p")
	if !ok {
		return int(syscall.EINVAL)
	}
	for _, path := range rest {
		at, err := layoutOf(ctx, path)
		switch {
		case err != nil:
			return c.lfsError(path, err)
		case at.IsDirectory != (given["-d"] != ""):
			c.complain("lfs getstripe: the double takes files, or directories with -d: %s\n", path)
			return int(syscall.EINVAL)
		}
		s := at.Layout.Stripe
		if s == nil {
			s = at.Root.Stripe
		}
		if s == nil {
			s = &kernel.Stripe{Count: 1, Size: 4 << 20, Offset: -1}
		}
		if len(s.Components) > 0 {
			c.complain("lfs getstripe: what the real one prints of a layout with several components was never recorded: %s\n", path)
			return int(syscall.EOPNOTSUPP)
		}
		c.showStripe(path, at, *s, given)
	}
	return 0
}

func (c *Call) showStripe(path string, at kernel.At, s kernel.Stripe, given map[string]string) {
	if at.IsDirectory {
		c.say("stripe_count:  %d stripe_size:   %d pattern:       raid0 stripe_offset: %d", s.Count, s.Size, s.Offset)
		if s.Pool != "" {
			c.say(" pool:          %s", s.Pool)
		}
		c.say("\n\n")
		return
	}
	objects := at.Layout.Objects
	first := -1
	if len(objects) > 0 {
		first = objects[0].OST
	}
	if given["-i"] != "" {
		c.say("%d\n\n", first)
		return
	}
	c.say("%s\nlmm_stripe_count:  %d\nlmm_stripe_size:   %d\nlmm_pattern:       raid0\nlmm_layout_gen:    %d\nlmm_stripe_offset: %d\n",
		path, len(objects), s.Size, at.Layout.Gen, first)
	if s.Pool != "" {
		c.say("lmm_pool:          %s\n", s.Pool)
	}
	c.say("\tobdidx\t\t objid\t\t objid\t\t group\n") //nolint:dupword // in decimal, and in hexadecimal
	for _, o := range objects {
		c.say("\t%6d\t%14d\t%#13x\t%#14x\n", o.OST, o.ID, o.ID, o.Sequence)
	}
	c.say("\n")
}

// stripeSize parses a size such as 1M.
func stripeSize(text string) (int64, bool) {
	unit := int64(1)
	if at := strings.IndexByte("KMGT", strings.ToUpper(text + " ")[max(len(text)-1, 0)]); at >= 0 {
		unit, text = 1<<(10*(at+1)), text[:len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 40)
	return n * unit, err == nil && n > 0 && n*unit%(64<<10) == 0
}

// stripe parses the options of a layout.
func (c *Call) stripe(given map[string]string) (*kernel.Stripe, bool) {
	s := kernel.Stripe{Count: 1, Size: 4 << 20, Offset: -1, Pool: given["-p"]}
	if given["-p"] != "" {
		s.Pool = s.Pool[strings.Index(s.Pool, ".")+1:]
	}
	for name, into := range map[string]*int{"-c": &s.Count, "-i": &s.Offset} {
		if given[name] == "" {
			continue
		}
		n, err := strconv.Atoi(given[name])
		if err != nil || n < -1 {
			c.complain("lfs %s: error: bad value of %s '%s'\n", c.Arguments[0], name, given[name])
			return nil, false
		}
		*into = n
	}
	if given["-S"] != "" {
		size, ok := stripeSize(given["-S"])
		if !ok {
			c.complain("error: lfs %s: stripe size '%s': must be multiple of 65536 bytes\n", c.Arguments[0], given["-S"])
			return nil, false
		}
		s.Size = size
	}
	return &s, true
}

// components returns the arguments of a composite layout; the path follows them.
func components(arguments []string) (all []string, rest []string) {
	for i := 0; i < len(arguments); i++ {
		if strings.HasPrefix(arguments[i], "-") && i+1 < len(arguments) {
			all = append(all, arguments[i], arguments[i+1])
			i++
			continue
		}
		rest = append(rest, arguments[i])
	}
	return all, rest
}

func (c *Call) setStripe(ctx context.Context, rest []string) int {
	var several []string
	if slices.Contains(rest, "-E") {
		several, rest = components(rest)
		// The objects of a file belong to its last component.
		for i := 0; i+1 < len(several); i += 2 {
			if several[i] != "-E" && several[i] != "-L" {
				rest = append(rest, several[i], several[i+1])
			}
		}
	}
	given, rest, ok := c.options(rest, "-c -S -i -p", "")
	if !ok || len(rest) == 0 {
		return int(syscall.EINVAL)
	}
	s, ok := c.stripe(given)
	if !ok {
		return int(syscall.EINVAL)
	}
	s.Components = several
	for _, path := range rest {
		m, p, err := place(ctx, path)
		if err != nil {
			return c.lfsError(path, err)
		}
		at, err := layoutOf(ctx, path)
		change := kernel.LayoutChange{Place: p, Stripe: s, New: err != nil}
		if err == nil && !at.IsDirectory {
			return c.lfsError(path, syscall.EEXIST)
		}
		if err := ask(ctx, "set-layout", change, nil); err != nil {
			c.missing(m, s)
			return c.lfsError(path, err)
		}
	}
	return 0
}

// missing prints a warning if a layout names a pool that the client does not have.
func (c *Call) missing(m kernel.Mounted, s *kernel.Stripe) {
	if s == nil || s.Pool == "" || slices.ContainsFunc(m.Pools, func(p kernel.Pool) bool { return p.Name == s.Pool }) {
		return
	}
	c.complain("lfs %s: pool '%s fsname %s' does not exist: No such file or directory (2)\n", c.Arguments[0], s.Pool, m.FSName)
}

func (c *Call) getDirStripe(ctx context.Context, rest []string) int {
	given, rest, ok := c.options(rest, "", "-D")
	if !ok {
		return int(syscall.EINVAL)
	}
	for _, path := range rest {
		at, err := layoutOf(ctx, path)
		if err != nil {
			return c.lfsError(path, err)
		}
		l := at.Layout
		switch {
		case given["-D"] != "":
			d := kernel.Directories{Offset: -1, Hash: "none"}
			if l.Default != nil {
				d = *l.Default
			}
			c.say("lmv_stripe_count: %d lmv_stripe_offset: %d lmv_hash_type: %s lmv_max_inherit: %d lmv_max_inherit_rr: %d\n",
				d.Count, d.Offset, d.Hash, d.Inherit, d.RoundRobin)
		case len(l.MDTs) > 1:
			c.say("lmv_stripe_count: %d lmv_stripe_offset: %d lmv_hash_type: fnv_1a_64\nmdtidx\t\t FID[seq:oid:ver]\n", len(l.MDTs), l.MDTs[0])
			for _, mdt := range l.MDTs {
				c.say("%6d\t\t [0x%x:0x%x:0x0]\t\t\n", mdt, 0x200000400+mdt<<30, at.Inode)
			}
		default:
			c.say("lmv_stripe_count: 0 lmv_stripe_offset: %d lmv_hash_type: none\n", l.MDT)
		}
	}
	return 0
}

func (c *Call) setDirStripe(ctx context.Context, rest []string) int {
	given, rest, ok := c.options(rest, "-c -i --max-inherit --max-inherit-rr", "-D")
	if !ok || len(rest) == 0 {
		return int(syscall.EINVAL)
	}
	numbers := map[string]int{}
	for name, value := range given {
		n, err := strconv.Atoi(value)
		if name != "-D" && err != nil {
			c.complain("lfs %s: error: bad value of %s '%s'\n", c.Arguments[0], name, value)
			return int(syscall.EINVAL)
		}
		numbers[name] = n
	}
	for _, path := range rest {
		m, p, err := place(ctx, path)
		if err != nil {
			return c.lfsError(path, err)
		}
		change := kernel.LayoutChange{Place: p, Count: numbers["-c"]}
		if mdt, asked := numbers["-i"]; asked && mdt >= 0 {
			if !slices.ContainsFunc(m.MDTs, func(s kernel.Seen) bool { return index(s.Target) == mdt }) {
				return c.lfsError(path, syscall.EINVAL)
			}
			change.MDT = &mdt
		}
		if change.Directory = given["-D"] == ""; !change.Directory {
			change.Default = defaults(numbers, given)
		}
		if err := ask(ctx, "set-layout", change, nil); err != nil {
			return c.lfsError(path, err)
		}
	}
	return 0
}

// defaults returns the defaults of new directories: striped ones inherit them three levels deep, others without limit.
func defaults(numbers map[string]int, given map[string]string) *kernel.Directories {
	d := &kernel.Directories{Count: max(numbers["-c"], 1), Offset: -1, Inherit: -1, RoundRobin: numbers["--max-inherit-rr"], Hash: "none"}
	if numbers["-c"] < 0 {
		d.Count = -1
	}
	if d.Count != 1 {
		d.Inherit = 3
	}
	if given["--max-inherit"] != "" {
		d.Inherit = numbers["--max-inherit"]
	}
	if given["-i"] != "" {
		d.Offset = numbers["-i"]
	}
	return d
}

func (c *Call) find(ctx context.Context, rest []string) int {
	given, rest, ok := c.options(rest, "--ost -O -type --type", "-0 --print0")
	if !ok || len(rest) == 0 {
		return int(syscall.EINVAL)
	}
	end := "\n"
	if given["-0"]+given["--print0"] != "" {
		end = "\x00"
	}
	for _, path := range rest {
		m, p, err := place(ctx, path)
		if err != nil {
			return c.lfsError(path, err)
		}
		question := kernel.Find{Place: p, Type: given["-type"] + given["--type"]}
		for name := range strings.FieldsFuncSeq(given["--ost"]+given["-O"], func(r rune) bool { return r == ',' }) {
			at := slices.IndexFunc(m.OSTs, func(s kernel.Seen) bool { return s.Target+"_UUID" == name || strconv.Itoa(index(s.Target)) == name })
			if at < 0 {
				c.complain("error: lfs find: unknown OST '%s'\n", name)
				return int(syscall.EINVAL)
			}
			question.OSTs = append(question.OSTs, index(m.OSTs[at].Target))
		}
		var found []string
		if err := ask(ctx, "find", question, &found); err != nil {
			return c.lfsError(path, err)
		}
		for _, f := range found {
			if f == "." {
				c.say("%s%s", path, end)
				continue
			}
			c.say("%s/%s%s", strings.TrimSuffix(path, "/"), f, end)
		}
	}
	return 0
}

// migrate moves files to other objects.
func (c *Call) migrate(ctx context.Context, rest []string) int {
	given, rest, ok := c.options(rest, "-c -S -i -p", "")
	if !ok || len(rest) == 0 {
		return int(syscall.EINVAL)
	}
	var asked *kernel.Stripe
	if len(given) > 0 {
		if asked, ok = c.stripe(given); !ok {
			return int(syscall.EINVAL)
		}
	}
	for _, path := range rest {
		if number := c.move(ctx, path, asked); number != 0 {
			return number
		}
	}
	return 0
}

func (c *Call) move(ctx context.Context, path string, asked *kernel.Stripe) int {
	m, p, err := place(ctx, path)
	if err != nil {
		return c.lfsError(path, err)
	}
	at, err := layoutOf(ctx, path)
	if err != nil {
		return c.lfsError(path, err)
	}
	if at.IsDirectory {
		return c.lfsError(path, syscall.EISDIR)
	}
	of := asked
	if of == nil && at.Layout.Stripe != nil {
		same := *at.Layout.Stripe
		same.Offset = -1
		of = &same
	}
	if err := ask(ctx, "set-layout", kernel.LayoutChange{Place: p, Stripe: of, Move: true}, nil); err != nil {
		c.missing(m, of)
		c.complain("error: lfs migrate: %s: cannot create volatile file: %s\n", path, wire.Words(syscall.Errno(code(err))))
		return code(err)
	}
	return 0
}

// Migrate is lfs_migrate for files in its arguments or on its standard input. It exits with 0 although it skips files, like the real one.
func Migrate(ctx context.Context, c Call) int {
	c.complain("WARNING: lfs_migrate is scheduled for removal after Lustre 2.20, please use 'lfs migrate' instead.\n")
	end, sure := "\n", false
	var files []string
	for _, a := range c.Arguments {
		switch {
		case a == "-0":
			end = "\x00"
		case a == "-y":
			sure = true
		case strings.HasPrefix(a, "-"):
			c.complain("lfs_migrate: the double does not play %s\n", a)
			return 1
		default:
			files = append(files, a)
		}
	}
	if !sure {
		c.complain("lfs_migrate: the double asks nobody: -y is missing\n")
		return 1
	}
	if len(files) == 0 {
		content, err := io.ReadAll(c.Stdin)
		if err != nil {
			c.complain("lfs_migrate: %s\n", err)
			return 1
		}
		files = strings.FieldsFunc(string(content), func(r rune) bool { return string(r) == end })
	}
	lfs := c
	lfs.Arguments = []string{"migrate"}
	for _, path := range files {
		c.say("%s: ", path)
		if lfs.move(ctx, path, nil) != 0 {
			c.say("%s: refusing to fall back to rsync, skipped\n", path)
			continue
		}
		c.say("done\n")
	}
	return 0
}
