package tool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/doubles/lustre/kernel"
	"parallelfs.dev/operator/test/doubles/lustre/wire"
)

// Store is the directory with the files of all doubles: that of the node, which the nodes of a test cluster share, or otherwise one beside
// the mount point of a client.
const (
	Store      = ".lustre-double"
	storeOfAll = "/mnt/" + Store
)

func storeOf(mountPoint, fsName string) string {
	if info, err := os.Stat(storeOfAll); err == nil && info.IsDir() {
		return filepath.Join(storeOfAll, fsName)
	}
	return filepath.Join(filepath.Dir(mountPoint), Store, fsName)
}

// Mount is mount.lustre and mount.lustre_tgt, which mount(8) calls with the source, the directory, and -o.
func Mount(ctx context.Context, c Call) int {
	if slices.Contains(c.Arguments, "--version") {
		c.say("%s %s\n", c.Name, kernel.Version)
		return 0
	}
	var rest, options []string
	for i := 0; i < len(c.Arguments); i++ {
		switch a := c.Arguments[i]; {
		case a == "-o" && i+1 < len(c.Arguments):
			i++
			options = append(options, strings.Split(c.Arguments[i], ",")...)
		case a == "-n" || a == "-v" || a == "-s":
		case strings.HasPrefix(a, "-"):
			c.complain("%s: unrecognized option '%s'\n", c.Name, a)
			return int(syscall.EINVAL)
		default:
			rest = append(rest, a)
		}
	}
	if len(rest) != 2 {
		c.complain("%s: need a source and a directory\n", c.Name)
		return int(syscall.EINVAL)
	}
	m := mounting{Call: c, source: rest[0], path: rest[1], options: options, kind: strings.TrimPrefix(c.Name, "mount.")}
	mgs, fsName, isClient := strings.Cut(m.source, ":/")
	if isClient {
		return m.client(ctx, mgs, fsName)
	}
	return m.target(ctx)
}

// mounting is one call of mount.lustre.
type mounting struct {
	Call
	source, path string
	options      []string
	kind         string
}

// hints returns the text of mount.lustre below an error (documented with the error codes in its man page).
func (m mounting) hints(errno syscall.Errno, fsName string) string {
	switch errno {
	case syscall.ENODEV:
		return "Are the lustre modules loaded?\nCheck /etc/modprobe.conf and /proc/filesystems\n"
	case syscall.ENOENT:
		return "Is the MGS specification correct?\nIs the filesystem name correct?\nIf upgrading, is the copied client log valid? (see upgrade docs)\n"
	case syscall.EALREADY:
		return fmt.Sprintf("The target service is already running. (%s)\n", m.source)
	case syscall.EIO:
		return "Is the MGS running?\n"
	case syscall.EADDRINUSE:
		return fmt.Sprintf("The target service's index is already in use. (%s)\n", m.source)
	case syscall.EINVAL:
		text := "This may have multiple causes.\n"
		if fsName != "" {
			text += fmt.Sprintf("Is '%s' the correct filesystem name?\n", fsName)
		}
		return text + "Are the mount options correct?\nCheck the syslog for more info.\n"
	}
	return ""
}

// failed prints why nothing was mounted. Messages that only a double has come last.
func (m mounting) failed(err error, fsName string) int {
	number := wire.Errno(err)
	if number == 0 {
		m.complain("%s: mount %s at %s failed: %v\n", m.Name, m.source, m.path, err)
		return 1
	}
	var refused *wire.Error
	special := errors.As(err, &refused) && refused.Text != ""
	if special && number == syscall.ENODEV {
		m.complain("%s: %s\n", m.Name, refused.Text)
		return int(number)
	}
	m.complain("%s: mount %s at %s failed: %s\n%s", m.Name, m.source, m.path, wire.Words(number), m.hints(number, fsName))
	if special {
		m.complain("%s: %s\n", m.Name, refused.Text)
	}
	return int(number)
}

// already reports whether the mount table has the source at the path.
func already(source, path string) (at, anywhere bool) {
	table, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) { return i.Source != source, false })
	if err != nil {
		return false, false
	}
	return slices.ContainsFunc(table, func(i *mountinfo.Info) bool { return i.Mountpoint == path }), len(table) > 0
}

func (m mounting) mounted() int {
	m.complain("%s: according to /etc/mtab %s is already mounted on %s\n", m.Name, m.source, m.path)
	return int(syscall.EEXIST)
}

// targetOptions lists the options that a double accepts for a target. None of them evicts clients or disables a service.
var targetOptions = []string{
	"rw", "defaults", "_netdev", "noatime", "relatime", "skip_lfsck", "noscrub", "user_xattr", "errors=remount-ro",
}

func (m mounting) target(ctx context.Context) int {
	device, err := filepath.EvalSymlinks(m.source)
	if err != nil {
		return m.failed(syscall.ENOENT, "")
	}
	at, anywhere := already(device, m.path)
	if at {
		return m.mounted()
	}
	for _, o := range m.options {
		if !slices.Contains(targetOptions, o) {
			return m.failed(wire.Refuse(syscall.EINVAL, "the double does not play the option %s of a target", o), "")
		}
	}
	if err := load(ctx); err != nil {
		return m.failed(err, "")
	}
	var started kernel.Started
	question := kernel.StartTarget{Device: device, Path: m.path, Free: !anywhere}
	if err := ask(ctx, "start-target", question, &started); err != nil {
		return m.failed(err, "")
	}
	return m.finish(ctx, device, started)
}

func (m mounting) client(ctx context.Context, mgs, fsName string) int {
	if at, _ := already(m.source, m.path); at {
		return m.mounted()
	}
	if m.kind != "lustre" {
		return m.failed(wire.Refuse(syscall.EINVAL, "lustre_tgt is the type of targets: mount a client with -t lustre"), "")
	}
	if strings.Contains(fsName, "/") {
		return m.failed(wire.Refuse(syscall.EINVAL, "the double mounts no directory below the root"), fsName)
	}
	store := storeOf(m.path, fsName)
	if err := load(ctx); err != nil {
		return m.failed(err, fsName)
	}
	nids := strings.FieldsFunc(mgs, func(r rune) bool { return r == ',' || r == ':' })
	if slices.ContainsFunc(nids, func(nid string) bool { return !strings.Contains(nid, "@") }) {
		return m.failed(wire.Refuse(syscall.EINVAL, "the double asks no resolver for the address of a NID: %s", mgs), fsName)
	}
	var started kernel.Started
	question := kernel.StartClient{MGS: nids, FSName: fsName, Source: m.source, Path: m.path, Options: m.options}
	if err := ask(ctx, "start-client", question, &started); err != nil {
		return m.failed(err, fsName)
	}
	if err := os.MkdirAll(store, 0o755); err != nil {
		return m.failed(err, fsName)
	}
	files, err := os.Open(store)
	if err != nil {
		return m.failed(err, fsName)
	}
	defer files.Close()
	return m.finish(ctx, m.source, started, files)
}

// finish makes the mount in the program's namespace, and lets the kernel's part serve it.
func (m mounting) finish(ctx context.Context, source string, started kernel.Started, more ...*os.File) int {
	give := func(err error) int {
		_ = ask(ctx, "abandon", started.Number, nil)
		return m.failed(err, "")
	}
	file, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		return give(err)
	}
	defer file.Close()
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other,default_permissions", file.Fd())
	if err := unix.Mount(source, m.path, "fuse."+m.kind, 0, data); err != nil {
		return give(err)
	}
	if err := ask(ctx, "serve", started.Number, nil, append([]*os.File{file}, more...)...); err != nil {
		_ = unix.Unmount(m.path, unix.MNT_DETACH)
		return m.failed(err, "")
	}
	return 0
}

// Umount is the helper of umount(8) for a mount of a double: it returns when the target has stopped, like the real one.
func Umount(ctx context.Context, c Call) int {
	var path string
	flags := 0
	for _, a := range c.Arguments {
		switch {
		case !strings.HasPrefix(a, "-"):
			if path == "" {
				path = a
			}
		default:
			if strings.Contains(a, "f") {
				flags |= unix.MNT_FORCE
			}
			if strings.Contains(a, "l") {
				flags |= unix.MNT_DETACH
			}
		}
	}
	table, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(path))
	if err != nil || len(table) == 0 {
		c.complain("umount: %s: not mounted.\n", path)
		return 32
	}
	question := kernel.Unmounted{Source: table[0].Source, Path: path, Before: true, Force: flags&unix.MNT_FORCE != 0}
	// If the kernel's part is down it can't be asked, but its mounts are unmounted all the same.
	there := ask(ctx, "stopped", question, nil) == nil
	if err := unix.Unmount(path, flags&^unix.MNT_FORCE); err != nil {
		c.complain("umount: %s: %s.\n", path, err)
		return 32
	}
	if question.Before = false; there && flags&unix.MNT_DETACH == 0 {
		_ = ask(ctx, "stopped", question, nil)
	}
	return 0
}
