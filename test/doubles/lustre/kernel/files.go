package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Stripe is the layout of a file, or of new files in a directory.
type Stripe struct {
	Count  int
	Size   int64
	Offset int
	Pool   string
	// Components holds the components of a composite layout, as passed to lfs setstripe.
	Components []string
}

// standard returns Lustre's default layout.
func standard() Stripe { return Stripe{Count: 1, Size: 4 << 20, Offset: -1} }

// Object is an object of a file on an OST.
type Object struct {
	OST, ID  int
	Sequence uint64
}

// Directories is the default of new directories in a directory.
type Directories struct {
	Count, Offset, Inherit, RoundRobin int
	Hash                               string
}

// Layout is Lustre's layout of a file or directory.
type Layout struct {
	Stripe  *Stripe
	Objects []Object
	Gen     int
	// MDT is the MDT of a file or directory, and MDTs those of a striped directory.
	MDT  int
	MDTs []int
	// Default is the default for new directories.
	Default *Directories
	// Next is the index of the next MDT in round-robin order.
	Next    int
	Project uint32
}

const attribute = "trusted.lustre-double"

// descriptors is the parent path of a store, which is an open directory.
const descriptors = "/proc/self/fd"

// inside returns a path inside the store instead of the link to it.
func inside(path string) string {
	if filepath.Dir(path) == descriptors {
		return path + "/."
	}
	return path
}

// read reads the layout of a path; a path without one is on MDT0000.
func read(path string) Layout {
	var l Layout
	value := make([]byte, 1<<16)
	n, err := unix.Lgetxattr(inside(path), attribute, value)
	if err != nil || json.Unmarshal(value[:n], &l) != nil {
		return Layout{}
	}
	return l
}

func write(path string, l Layout) error {
	value, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return unix.Lsetxattr(inside(path), attribute, value, 0)
}

// node is a file or a directory of a mounted client.
type node struct {
	*fs.LoopbackNode
	client *Client
}

var (
	_ fs.NodeWrapChilder    = &node{}
	_ fs.NodeStatfser       = &node{}
	_ fs.NodeCreater        = &node{}
	_ fs.NodeMkdirer        = &node{}
	_ fs.NodeOpener         = &node{}
	_ fs.NodeOpendirHandler = &node{}
	_ fs.NodeReader         = &node{}
	_ fs.NodeWriter         = &node{}
	_ fs.NodeLookuper       = &node{}
	_ fs.NodeUnlinker       = &node{}
	_ fs.NodeGetxattrer     = &node{}
	_ fs.NodeListxattrer    = &node{}
)

func (c *Client) top() (fs.InodeEmbedder, error) {
	top, err := fs.NewLoopbackRoot(c.store)
	if err != nil {
		return nil, err
	}
	if read(c.store).Default == nil {
		err = write(c.store, Layout{Default: &Directories{Count: 1, Offset: -1, Inherit: -1, RoundRobin: 3, Hash: "none"}})
	}
	return &node{top.(*fs.LoopbackNode), c}, err
}

// WrapChild makes everything below the top a node.
func (n *node) WrapChild(_ context.Context, ops fs.InodeEmbedder) fs.InodeEmbedder {
	return &node{ops.(*fs.LoopbackNode), n.client}
}

func (n *node) place(name string) string {
	return filepath.Join(n.client.store, n.Path(n.Root()), name)
}

func (n *node) mdt(l Layout) string { return fmt.Sprintf("%s-MDT%04x", n.client.fsName, l.MDT) }

// Statfs returns the total size of all OSTs that are up.
func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	var all, meta Space
	for _, kind := range []string{"MDT", "OST"} {
		n.client.kernel.mutex.Lock()
		connections := n.client.targets(kind)
		n.client.kernel.mutex.Unlock()
		for _, c := range connections {
			n.client.kernel.mutex.Lock()
			works, nids := c.works(), n.client.nids[c.Target]
			n.client.kernel.mutex.Unlock()
			var s Space
			if !works || n.client.kernel.ask(ctx, nids, "statfs", c.Target, &s) != nil {
				continue
			}
			into := map[string]*Space{"MDT": &meta, "OST": &all}[kind]
			into.Kilobytes, into.Used, into.Available = into.Kilobytes+s.Kilobytes, into.Used+s.Used, into.Available+s.Available
			into.Inodes, into.InodesUsed = into.Inodes+s.Inodes, into.InodesUsed+s.InodesUsed
		}
	}
	free := min(all.Inodes-all.InodesUsed, meta.Inodes-meta.InodesUsed)
	all.Inodes, all.InodesUsed = meta.InodesUsed+free, meta.InodesUsed
	all.fill(out)
	return 0
}

// Lookup waits for the MDT of the directory.
func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	if errno := n.client.talk(ctx, n.mdt(read(n.place("")))); errno != 0 {
		return nil, errno
	}
	return n.LoopbackNode.Lookup(ctx, name, out)
}

// OpendirHandle waits for the MDT of the directory.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.client.talk(ctx, n.mdt(read(n.place("")))); errno != 0 {
		return nil, 0, errno
	}
	return n.LoopbackNode.OpendirHandle(ctx, flags)
}

// Unlink waits for the MDT of the directory.
func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	if errno := n.client.talk(ctx, n.mdt(read(n.place("")))); errno != 0 {
		return errno
	}
	return n.LoopbackNode.Unlink(ctx, name)
}

// Mkdir creates a directory with its inherited properties.
func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	parent := read(n.place(""))
	if errno := n.client.talk(ctx, n.mdt(parent)); errno != 0 {
		return nil, errno
	}
	made, errno := n.LoopbackNode.Mkdir(ctx, name, mode, out)
	if errno == 0 {
		errno = fs.ToErrno(write(n.place(name), n.client.directory(n.place(""), nil)))
	}
	return made, errno
}

// directory returns the layout of a new directory: on the requested MDT, or otherwise according to the parent or the root.
func (c *Client) directory(parent string, asked *int) Layout {
	l := read(parent)
	top := read(c.store)
	made := Layout{MDT: l.MDT, Project: l.Project}
	c.kernel.mutex.Lock()
	mdts := c.targets("MDT")
	c.kernel.mutex.Unlock()
	d := l.Default
	if d == nil {
		d = top.Default
	} else if d.Inherit < 0 || d.Inherit > 1 {
		inherited := *d
		if inherited.Inherit > 1 {
			inherited.Inherit--
		}
		if inherited.RoundRobin > 0 {
			inherited.RoundRobin--
		}
		if parent != c.store {
			made.Default = &inherited
		}
	}
	switch {
	case asked != nil:
		made.MDT = *asked
	case d == nil:
	case d.Offset >= 0:
		made.MDT = d.Offset
	case d.RoundRobin != 0 && len(mdts) > 0:
		made.MDT = indexOf(mdts[l.Next%len(mdts)].Target)
		l.Next++
		_ = write(parent, l)
	}
	if d != nil && d.Count != 1 && d.Count != 0 {
		made.MDTs = c.over(d.Count, made.MDT)
	}
	made.Stripe = l.Stripe
	return made
}

// over returns the MDTs for a striped directory, starting with a given one.
func (c *Client) over(count, first int) []int {
	c.kernel.mutex.Lock()
	defer c.kernel.mutex.Unlock()
	var all []int
	for _, connection := range c.targets("MDT") {
		if index := indexOf(connection.Target); index >= first {
			all = append(all, index)
		}
	}
	for _, connection := range c.targets("MDT") {
		if index := indexOf(connection.Target); index < first {
			all = append(all, index)
		}
	}
	if count > 0 && count < len(all) {
		all = all[:count]
	}
	return all
}

// Create creates a file with objects on OSTs.
func (n *node) Create(
	ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut,
) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	directory := n.place("")
	parent := read(directory)
	if errno := n.client.talk(ctx, n.mdt(parent)); errno != 0 {
		return nil, nil, 0, errno
	}
	l, err := n.client.kernel.fileIn(ctx, n.client, directory, nil)
	if err != nil {
		return nil, nil, 0, fs.ToErrno(wire.Errno(err))
	}
	made, handle, fuseFlags, errno := n.LoopbackNode.Create(ctx, name, flags, mode, out)
	if errno == 0 && len(read(n.place(name)).Objects) == 0 {
		errno = fs.ToErrno(write(n.place(name), l))
	}
	return made, seen(handle), fuseFlags, errno
}

// open is a file of a store whose reads and writes go through this program.
type open struct{ *fs.LoopbackFile }

// PassthroughFd prevents the node's own kernel (from Linux 6.9) from accessing the file in the store directly, because a program would then
// not wait for an OST.
func (open) PassthroughFd() (int, bool) { return 0, false }

func seen(handle fs.FileHandle) fs.FileHandle {
	if file, is := handle.(*fs.LoopbackFile); is {
		return open{file}
	}
	return handle
}

// fileIn returns the layout of a new file in a directory: the requested one, or otherwise the directory's, the root's, or Lustre's default.
func (k *Kernel) fileIn(ctx context.Context, c *Client, directory string, asked *Stripe) (Layout, error) {
	parent := read(directory)
	for _, s := range []*Stripe{asked, parent.Stripe, read(c.store).Stripe} {
		if s == nil {
			continue
		}
		return k.file(ctx, c, parent, *s)
	}
	return k.file(ctx, c, parent, standard())
}

func (k *Kernel) file(ctx context.Context, c *Client, parent Layout, s Stripe) (Layout, error) {
	mdt := parent.MDT
	if len(parent.MDTs) > 0 {
		mdt = parent.MDTs[parent.Next%len(parent.MDTs)]
	}
	name := fmt.Sprintf("%s-MDT%04x", c.fsName, mdt)
	if e := c.talk(ctx, name); e != 0 {
		return Layout{}, e
	}
	k.mutex.Lock()
	nids := c.nids[name]
	k.mutex.Unlock()
	var objects []Object
	if err := k.ask(ctx, nids, "create", create{name, s}, &objects); err != nil {
		return Layout{}, err
	}
	return Layout{Stripe: &s, Objects: objects, MDT: mdt, Project: parent.Project}, nil
}

// create is a request to an MDT for the objects of a new file.
type create struct {
	MDT    string
	Stripe Stripe
}

// objects returns the objects of a new file, on OSTs that accept new ones.
func (t *target) objects(s Stripe) ([]Object, error) {
	var usable []*Connection
	var members []string
	if s.Pool != "" {
		at := slices.IndexFunc(t.lov.pools, func(p pool) bool { return p.name == s.Pool })
		if at < 0 {
			return nil, errno(syscall.EINVAL)
		}
		members = t.lov.pools[at].osts
	}
	for _, c := range t.lov.targets("OST") {
		// An OST that is requested by index but down still has precreated objects.
		made := c.Active && len(c.States) > 0 && indexOf(c.Target) == s.Offset
		if (c.works() || made) && c.MaxCreate > 0 && (s.Pool == "" || slices.Contains(members, c.Target)) {
			usable = append(usable, c)
		}
	}
	if len(usable) == 0 {
		return nil, errno(syscall.ENOSPC)
	}
	count := max(s.Count, 1)
	if s.Count < 0 || count > len(usable) {
		count = len(usable)
	}
	first := t.next % len(usable)
	if s.Offset >= 0 {
		if first = slices.IndexFunc(usable, func(c *Connection) bool { return indexOf(c.Target) == s.Offset }); first < 0 {
			return nil, errno(syscall.EINVAL)
		}
	}
	t.next += count
	var objects []Object
	for i := range count {
		ost := usable[(first+i)%len(usable)].Target
		last := max(t.objectsGiven[ost], 1) + 1
		t.objectsGiven[ost] = last
		t.kept.Objects[ost] = (last/ahead + 1) * ahead
		sequence := uint64(0x280000400) + uint64(indexOf(ost))<<30
		if t.data.Index == 0 {
			sequence++
		}
		objects = append(objects, Object{indexOf(ost), last, sequence})
	}
	return objects, nil
}

// reach waits for all OSTs of a file.
func (n *node) reach(ctx context.Context) syscall.Errno {
	for _, o := range read(n.place("")).Objects {
		if errno := n.client.talk(ctx, fmt.Sprintf("%s-OST%04x", n.client.fsName, o.OST)); errno != 0 {
			return errno
		}
	}
	return 0
}

// Open waits for the MDT of the file.
func (n *node) Open(ctx context.Context, flags uint32) (fs.FileHandle, uint32, syscall.Errno) {
	if errno := n.client.talk(ctx, n.mdt(read(n.place("")))); errno != 0 {
		return nil, 0, errno
	}
	handle, fuseFlags, errno := n.LoopbackNode.Open(ctx, flags)
	return seen(handle), fuseFlags, errno
}

// Read waits for the OSTs of the file.
func (n *node) Read(ctx context.Context, handle fs.FileHandle, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if errno := n.reach(ctx); errno != 0 {
		return nil, errno
	}
	return handle.(fs.FileReader).Read(ctx, dest, off)
}

// Write waits for the OSTs of the file.
func (n *node) Write(ctx context.Context, handle fs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	if errno := n.reach(ctx); errno != 0 {
		return 0, errno
	}
	if errno := n.within(ctx); errno != 0 {
		return 0, errno
	}
	return handle.(fs.FileWriter).Write(ctx, data, off)
}

// Getxattr hides the layout, which only lfs prints.
func (n *node) Getxattr(ctx context.Context, name string, dest []byte) (uint32, syscall.Errno) {
	if name == attribute {
		return 0, syscall.ENODATA
	}
	return n.LoopbackNode.Getxattr(ctx, name, dest)
}

// Listxattr hides the layout as well.
func (n *node) Listxattr(ctx context.Context, dest []byte) (uint32, syscall.Errno) {
	all := make([]byte, 1<<16)
	size, errno := n.LoopbackNode.Listxattr(ctx, all)
	if errno != 0 {
		return 0, errno
	}
	rest := strings.ReplaceAll(string(all[:size]), attribute+"\x00", "")
	if len(rest) > len(dest) {
		return uint32(len(rest)), syscall.ERANGE
	}
	return uint32(copy(dest, rest)), 0
}
