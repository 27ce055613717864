package tool

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
)

// account parses the owner of a quota, and returns the rest of the command line.
func (c *Call) account(rest []string, values, flags string) (a kernel.Account, given map[string]string, path string, ok bool) {
	given, rest, ok = c.options(rest, "-u -g -p "+values, flags)
	if !ok {
		return a, nil, "", false
	}
	found := 0
	for _, kind := range []string{"u", "g", "p"} {
		if given["-"+kind] == "" {
			continue
		}
		id, err := strconv.ParseUint(given["-"+kind], 10, 32)
		if err != nil {
			c.complain("lfs %s: the double takes numbers only: -%s %s\n", c.Arguments[0], kind, given["-"+kind])
			return a, nil, "", false
		}
		a, found = kernel.Account{Kind: kind, ID: uint32(id)}, found+1
	}
	if found != 1 || len(rest) != 1 {
		c.complain("lfs %s: one of -u, -g and -p, and one path, must be given\n", c.Arguments[0])
		return a, nil, "", false
	}
	return a, given, rest[0], true
}

func (c *Call) setQuota(ctx context.Context, rest []string) int {
	a, given, path, ok := c.account(rest, "-b -B -i -I", "")
	if !ok {
		return int(syscall.EINVAL)
	}
	_, p, err := place(ctx, path)
	if err != nil {
		return c.lfsError(path, err)
	}
	var now kernel.Quota
	if err := ask(ctx, "quota", kernel.QuotaChange{Place: p, Account: a}, &now); err != nil {
		return c.lfsError(path, err)
	}
	l := now.Limits
	for _, limit := range []struct {
		option, name string
		into         *int64
		unit, least  int64
	}{
		{"-b", "block softlimit", &l.BlockSoft, 1024, 1024}, {"-B", "block hardlimit", &l.BlockHard, 1024, 1024},
		{"-i", "inode softlimit", &l.InodeSoft, 1, 1024}, {"-I", "inode hardlimit", &l.InodeHard, 1, 1024},
	} {
		text := given[limit.option]
		if text == "" {
			continue
		}
		n, ok := amount(text, limit.unit)
		if !ok {
			c.complain("lfs setquota: error: bad %s '%s'\n", limit.name, text)
			return int(syscall.EINVAL)
		}
		if n > 0 && n < limit.least {
			c.complain("lfs setquota: warning: %s '%s' smaller than minimum qunit size\nSee 'lfs help setquota' or Lustre manual for details\n", limit.name, text)
		}
		*limit.into = n
	}
	if err := ask(ctx, "quota", kernel.QuotaChange{Place: p, Account: a, Limits: &l}, nil); err != nil {
		return c.lfsError(path, err)
	}
	return 0
}

// amount parses a limit. Without a unit, a limit of blocks is in kilobytes.
func amount(text string, unit int64) (int64, bool) {
	factor := int64(1)
	if at := strings.IndexByte("KMGTP", strings.ToUpper(text)[len(text)-1]); at >= 0 {
		factor, text = 1<<(10*(at+1)), text[:len(text)-1]
		factor /= unit
	}
	n, err := strconv.ParseInt(text, 10, 40)
	return n * factor, err == nil && n >= 0
}

func (c *Call) quota(ctx context.Context, rest []string) int {
	a, given, path, ok := c.account(rest, "", "-h")
	if !ok {
		return int(syscall.EINVAL)
	}
	_, p, err := place(ctx, path)
	if err != nil {
		return c.lfsError(path, err)
	}
	var q kernel.Quota
	if err := ask(ctx, "quota", kernel.QuotaChange{Place: p, Account: a}, &q); err != nil {
		return c.lfsError(path, err)
	}
	kind, id := map[string]string{"u": "usr", "g": "grp", "p": "prj"}[a.Kind], map[string]string{"u": "uid", "g": "gid", "p": "pid"}[a.Kind]
	size, title := func(n int64) string { return strconv.FormatInt(n, 10) }, "kbytes"
	if given["-h"] != "" {
		size, title = quotaSize, "used"
	}
	c.say("Disk quotas for %s <unknown> (%s %d):\n%15s", kind, id, a.ID, "Filesystem")
	c.columns(title, "bquota", "blimit", "bgrace", "files", "iquota", "ilimit", "igrace")
	// An account over its limit gets a mark at both values.
	over := map[bool]string{true: "*"}[q.Limits.BlockHard > 0 && q.Kilobytes > q.Limits.BlockHard]
	c.say("%15s", path)
	c.columns(size(q.Kilobytes)+over, size(q.Limits.BlockSoft), size(q.Limits.BlockHard), "-",
		fmt.Sprint(q.Inodes)+over, fmt.Sprint(q.Limits.InodeSoft), fmt.Sprint(q.Limits.InodeHard), "-")
	return 0
}

func (c *Call) columns(texts ...string) {
	for _, text := range texts {
		c.say("%8s", text)
	}
	c.say(" \n")
}

// quotaSize formats a number of kilobytes with its unit.
func quotaSize(n int64) string {
	value, units := float64(n), "kMGTP"
	for value >= 1024 && len(units) > 1 {
		value, units = value/1024, units[1:]
	}
	return fmt.Sprintf("%.4g%s", value, units[:1])
}

func (c *Call) project(ctx context.Context, rest []string) int {
	a, given, path, ok := c.account(rest, "", "-s -r")
	if !ok || a.Kind != "p" || given["-s"] == "" {
		c.complain("lfs project: the double plays -p ID -s [-r] DIRECTORY\n")
		return int(syscall.EINVAL)
	}
	_, p, err := place(ctx, path)
	if err == nil {
		err = ask(ctx, "project", kernel.QuotaChange{Place: p, Account: a, Below: given["-r"] != ""}, nil)
	}
	if err != nil {
		return c.lfsError(path, err)
	}
	return 0
}
