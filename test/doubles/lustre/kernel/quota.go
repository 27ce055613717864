package kernel

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Limits are the limits of one user, group or project in kilobytes and inodes; 0 means none.
type Limits struct{ BlockSoft, BlockHard, InodeSoft, InodeHard int64 }

// Account is the owner of limits: u, g or p, and the number.
type Account struct {
	Kind string
	ID   uint32
}

func (a Account) key() string { return fmt.Sprint(a.Kind, a.ID) }

// QuotaChange sets limits, or the project of a directory, which its new files inherit. With Below it also sets the project of everything
// below.
type QuotaChange struct {
	Place   Place
	Account Account
	Limits  *Limits
	Below   bool
}

// Quota is the usage and the limits of an account.
type Quota struct {
	Kilobytes, Inodes int64
	Limits            Limits
}

// limits is a request to MDT0000 for the limits of an account, or to set them.
type limits struct {
	MDT     string
	Account Account
	Set     *Limits
}

func (k *Kernel) onLimits(_ context.Context, question limits) (Limits, error) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	t, err := k.targetOf(question.MDT)
	if err != nil {
		return Limits{}, err
	}
	if question.Set != nil {
		if t.kept.Limits == nil {
			t.kept.Limits = map[string]Limits{}
		}
		t.kept.Limits[question.Account.key()] = *question.Set
	}
	return t.kept.Limits[question.Account.key()], nil
}

// limitsOf returns the limits of an account, after setting them if set is given.
func (k *Kernel) limitsOf(ctx context.Context, c *Client, a Account, set *Limits) (l Limits, err error) {
	mdt := c.fsName + "-MDT0000"
	k.mutex.Lock()
	nids := c.nids[mdt]
	k.mutex.Unlock()
	err = k.ask(ctx, nids, "limits", limits{mdt, a, set}, &l)
	return l, err
}

func (k *Kernel) onQuota(ctx context.Context, question QuotaChange) (Quota, error) {
	c, _, err := k.place(question.Place)
	if err != nil {
		return Quota{}, err
	}
	l, err := k.limitsOf(ctx, c, question.Account, question.Limits)
	if err != nil {
		return Quota{}, err
	}
	has := c.has(question.Account)
	return Quota{has.Kilobytes, has.Objects, l}, nil
}

// onProject assigns a directory to a project, with everything below if requested.
func (k *Kernel) onProject(_ context.Context, question QuotaChange) (Nothing, error) {
	_, path, err := k.place(question.Place)
	if err != nil {
		return Nothing{}, err
	}
	give := func(path string) error {
		l := read(path)
		l.Project = question.Account.ID
		return write(path, l)
	}
	if !question.Below {
		return Nothing{}, give(inside(path))
	}
	return Nothing{}, filepath.WalkDir(inside(path), func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return give(path)
	})
}

// has sums the usage of an account.
func (c *Client) has(a Account) usage {
	var all usage
	// Files that disappear in the meantime are not counted.
	_ = filepath.WalkDir(inside(c.store), func(path string, entry fs.DirEntry, err error) error {
		var stat syscall.Stat_t
		if err != nil || syscall.Lstat(path, &stat) != nil || path == inside(c.store) {
			return nil //nolint:nilerr // it is gone
		}
		if id := map[string]uint32{"u": stat.Uid, "g": stat.Gid, "p": read(path).Project}[a.Kind]; id == a.ID {
			all.Objects++
			if !entry.IsDir() {
				all.Kilobytes += stat.Blocks / 2
			}
		}
		return nil
	})
	return all
}

// within reports whether a program may write more. Root always may.
func (n *node) within(ctx context.Context) syscall.Errno {
	caller, is := fuse.FromContext(ctx)
	k := n.client.kernel
	k.mutex.Lock()
	enforced := n.client.parameters["quota.ost"]
	k.mutex.Unlock()
	if !is || caller.Uid == 0 || enforced == "" {
		return 0
	}
	for _, a := range []Account{{"u", caller.Uid}, {"g", caller.Gid}, {"p", read(n.place("")).Project}} {
		if !strings.Contains(enforced, a.Kind) || a.ID == 0 {
			continue
		}
		l, err := k.limitsOf(ctx, n.client, a, nil)
		if err == nil && l.BlockHard > 0 && n.client.has(a).Kilobytes >= l.BlockHard {
			return syscall.EDQUOT
		}
	}
	return 0
}
