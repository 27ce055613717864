package kernel

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Client is a mounted filesystem.
type Client struct {
	follower
	kernel *Kernel
	// UUID and Instance are different for each mount.
	UUID, Instance string
	source, path   string
	// store is the directory with the files.
	store   string
	files   *os.File
	told    time.Time
	stopped chan struct{}
}

type usage struct{ Kilobytes, Objects int64 }

// StartClient is a request to mount a client.
type StartClient struct {
	MGS                  []string
	FSName, Source, Path string
	Options              []string
}

// clientOptions lists the options of mount.lustre(8) for a client, without and with a value.
var clientOptions = []string{
	"rw", "ro", "defaults", "_netdev", "nosuid", "suid", "nodev", "dev", "noexec", "exec", "noatime", "relatime", "nodiratime",
	"flock", "noflock", "localflock", "checksum", "nochecksum", "user_xattr", "nouser_xattr", "lazystatfs", "nolazystatfs",
	"user_fid2path", "nouser_fid2path", "verbose", "noverbose", "always_ping", "noalways_ping", "lruresize", "nolruresize",
	"encrypt", "noencrypt", "statfs_project", "nostatfs_project", "sync_on_close", "nosync_on_close", "retry=", "skpath=",
}

func (k *Kernel) startClient(ctx context.Context, question StartClient) (Started, error) {
	for _, o := range question.Options {
		name, value, has := strings.Cut(o, "=")
		if has && value != "" {
			name += "="
		}
		if !slices.Contains(clientOptions, name) {
			return Started{}, wire.Refuse(syscall.EINVAL, "")
		}
	}
	if err := k.configure(ctx); err != nil {
		return Started{}, err
	}
	if err := k.ask(ctx, question.MGS, "filesystem", question.FSName, nil); err != nil {
		if wire.Errno(err) == syscall.EINVAL {
			return Started{}, err
		}
		return Started{}, errno(syscall.EIO)
	}
	c := &Client{kernel: k, UUID: uuid(), source: question.Source, path: question.Path, stopped: make(chan struct{})}
	c.Instance = fmt.Sprintf("ff%014x", time.Now().UnixNano()&(1<<56-1))
	c.follower = follower{
		owner: c, fsName: question.FSName, log: question.FSName + "-client", instance: c.Instance, mgs: question.MGS,
	}
	k.mutex.Lock()
	k.addDevice("mgc", "MGC"+question.MGS[0], uuid(), c)
	k.addDevice("lov", question.FSName+"-clilov-"+c.Instance, c.UUID, c)
	k.addDevice("lmv", question.FSName+"-clilmv-"+c.Instance, c.UUID, c)
	k.mutex.Unlock()
	if err := k.meetRoot(ctx, c); err != nil {
		k.mutex.Lock()
		k.removeDevices(c)
		k.mutex.Unlock()
		return Started{}, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return Started{k.number(c), ""}, nil
}

// meetRoot connects a client for the first time. It waits for MDT0000 as long as the mount command runs.
func (k *Kernel) meetRoot(ctx context.Context, c *Client) error {
	if err := k.follow(ctx, &c.follower, 0); err != nil {
		return errno(syscall.EIO)
	}
	for {
		k.connect(ctx, &c.follower)
		k.mutex.Lock()
		root := c.to(c.fsName + "-MDT0000")
		works := root != nil && root.works()
		k.mutex.Unlock()
		if works {
			return nil
		}
		if err := wait(ctx, beat); err != nil {
			return err
		}
	}
}

// to returns the connection to a target.
func (f *follower) to(target string) *Connection {
	for _, c := range f.connections {
		if c.Target == target {
			return c
		}
	}
	return nil
}

// serveClient serves a mount until it is unmounted.
func (k *Kernel) serveClient(ctx context.Context, c *Client, file, store *os.File) error {
	c.files, c.store = store, filepath.Join(descriptors, fmt.Sprint(store.Fd()))
	top, err := c.top()
	if err != nil {
		return err
	}
	server, err := serveFUSE(top, file, "lustre", c.source)
	if err != nil {
		return err
	}
	k.mutex.Lock()
	k.clients = append(k.clients, c)
	k.mutex.Unlock()
	go func() {
		server.Wait()
		k.stopClient(context.WithoutCancel(ctx), c)
	}()
	return nil
}

func (k *Kernel) stopClient(ctx context.Context, c *Client) {
	k.mutex.Lock()
	k.clients = slices.DeleteFunc(k.clients, func(o *Client) bool { return o == c })
	k.removeDevices(c)
	k.mutex.Unlock()
	k.bye(ctx, &c.follower)
	_ = c.files.Close()
	close(c.stopped)
}

// talk waits until the connection to a target works. A program gets an error if the client was evicted in the meantime or the target was
// deactivated. It also gets one if the target was down and is on the client's own node, because such a client does not join the recovery.
func (c *Client) talk(ctx context.Context, name string) syscall.Errno {
	waited := false
	for {
		c.kernel.mutex.Lock()
		connection := c.to(name)
		var given, works, shutdown, local bool
		if connection != nil {
			given, works, shutdown = !connection.Active, connection.works(), connection.shutdown
			connection.shutdown = false
			local = slices.ContainsFunc(c.kernel.targets, func(t *target) bool { return t.name == name })
		}
		c.kernel.mutex.Unlock()
		switch {
		case shutdown:
			return syscall.ESHUTDOWN
		case given:
			return syscall.EIO
		case works && waited && local && strings.Contains(name, "-OST"):
			return syscall.EIO
		case works:
			return 0
		}
		waited = true
		if wait(ctx, beat/4) != nil {
			return syscall.EINTR
		}
	}
}

// targets returns a client's MDTs or OSTs in the order of their indices.
func (f *follower) targets(kind string) []*Connection {
	var all []*Connection
	for _, c := range f.connections {
		if strings.Contains(c.Target, "-"+kind) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(x, y *Connection) int { return indexOf(x.Target) - indexOf(y.Target) })
	return all
}

// count sums the usage of the files on each OST and MDT.
func (c *Client) count() map[string]usage {
	all := map[string]usage{}
	// Files that disappear in the meantime are not counted.
	_ = filepath.WalkDir(inside(c.store), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		l := read(path)
		mdt := fmt.Sprintf("%s-MDT%04x", c.fsName, l.MDT)
		u := all[mdt]
		all[mdt] = usage{u.Kilobytes, u.Objects + 1}
		var stat syscall.Stat_t
		if len(l.Objects) == 0 || syscall.Lstat(path, &stat) != nil {
			return nil //nolint:nilerr // it is gone
		}
		for _, o := range l.Objects {
			ost := fmt.Sprintf("%s-OST%04x", c.fsName, o.OST)
			all[ost] = usage{all[ost].Kilobytes + stat.Blocks/2/int64(len(l.Objects)), all[ost].Objects + 1}
		}
		return nil
	})
	return all
}

// told is a client's report about all files.
type told struct {
	Target string
	Usage  usage
}

// tellUsage reports the usage of files to the targets.
func (k *Kernel) tellUsage(ctx context.Context, c *Client) {
	const often = 2 * time.Second
	k.mutex.Lock()
	early := time.Since(c.told) < often
	k.mutex.Unlock()
	if !early {
		k.tell(ctx, c)
	}
}

func (k *Kernel) tell(ctx context.Context, c *Client) {
	now := c.count()
	k.mutex.Lock()
	c.told = time.Now()
	connections := slices.Clone(c.connections)
	k.mutex.Unlock()
	for _, connection := range connections {
		k.mutex.Lock()
		nids, works := c.nids[connection.Target], connection.works()
		k.mutex.Unlock()
		if works {
			_ = k.ask(ctx, nids, "used", told{connection.Target, now[connection.Target]}, nil)
		}
	}
}
