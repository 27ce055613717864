// Package client is the double of BeeGFS's client: mount(8) with the kernel module behind it. It reads beegfs-client.conf, finds the
// filesystem by its management service, and mounts a directory with the files by FUSE: .beegfs-double/<source> beside the mount point. If
// several nodes share that directory, they see the same files. It contains the metadata servers' directories; written data goes to no
// target.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/tree"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

const (
	// Store is the directory beside the mount point that holds the files of all doubles.
	Store = ".beegfs-double"
	// Serve is the first argument of the process that stays behind and serves a mount.
	Serve = "--serve"
	// failed is the exit code of mount(8) for a mount that failed.
	failed = 32
	// refresh is the interval at which the metadata servers' directories are read.
	refresh = 2 * time.Second
)

// mounting holds the arguments of mount(8).
type mounting struct {
	source, path string
	options      []string
	config       string
}

// Run is mount: it returns when the filesystem is mounted, and leaves a process that serves it.
func Run(ctx context.Context, arguments []string, output, errs io.Writer) int {
	serving := len(arguments) > 0 && arguments[0] == Serve
	if serving {
		arguments = arguments[1:]
	}
	m, err := parse(arguments)
	if err == nil && serving {
		err = m.serve(ctx)
	} else if err == nil {
		err = m.start(ctx, output)
	}
	if err != nil {
		fmt.Fprintf(errs, "mount: %s: %v\n", m.path, err)
		return failed
	}
	return 0
}

// parse parses -t beegfs SOURCE PATH -o OPTIONS.
func parse(arguments []string) (mounting, error) {
	var m mounting
	if len(arguments) != 6 || arguments[0] != "-t" || arguments[1] != "beegfs" || arguments[4] != "-o" {
		return m, fmt.Errorf("the double takes -t beegfs SOURCE PATH -o OPTIONS, and got %s", strings.Join(arguments, " "))
	}
	m.source, m.path, m.options = arguments[2], arguments[3], strings.Split(arguments[5], ",")
	for _, o := range m.options {
		if file, is := strings.CutPrefix(o, "cfgFile="); is {
			m.config = file
		}
	}
	if m.config == "" {
		return m, errors.New("mount point not specified in /etc/beegfs/beegfs-mounts.conf: there is no cfgFile")
	}
	return m, nil
}

// known is true for options of beegfs-client.conf.
func known(name string) bool {
	_, is := option.Ctl()[name]
	return is && name != "mount" && name != "runDaemonized" || slices.Contains(option.CtlIgnores(), name)
}

// view returns the management service's whole state, and the secret for requests to servers.
func (m mounting) view(ctx context.Context) (view wire.View, secret uint64, err error) {
	values, err := option.File(m.config)
	if err != nil {
		return view, 0, err
	}
	for _, name := range option.Sorted(values) {
		if !known(name) {
			return view, 0, fmt.Errorf("the config argument '%s' is invalid", name)
		}
	}
	if secret, err = option.Secret(7, values); err != nil {
		return view, 0, err
	}
	host := net.ParseIP(values["sysMgmtdHost"])
	if host == nil {
		return view, 0, fmt.Errorf("sysMgmtdHost is %q: the kernel's client takes a number only", values["sysMgmtdHost"])
	}
	port, _, err := option.Ports(7, values, "Mgmtd", 8008)
	if err != nil {
		return view, 0, err
	}
	if err := wire.Ask(ctx, net.JoinHostPort(host.String(), strconv.Itoa(port)), secret, "view", nil, &view); err != nil {
		return view, 0, fmt.Errorf("no management service: %w", err)
	}
	return view, secret, nil
}

// directories reads the directories in the root from the metadata servers.
func (m mounting) directories(ctx context.Context) ([]string, error) {
	view, secret, err := m.view(ctx)
	if err != nil {
		return nil, err
	}
	t := &tree.Tree{View: &view, Ask: func(ctx context.Context, node *wire.NodeView, op string, argument, result any) error {
		return tree.Ask(ctx, secret, node, op, argument, result)
	}}
	root, err := t.Find(ctx, "/")
	if err != nil {
		return nil, fmt.Errorf("the root directory can't be read: %w", err)
	}
	var names []string
	for name := range root.Children {
		names = append(names, name)
	}
	return names, nil
}

// tellOpen reports the number of open files to each server, under the number of this process. The doubles don't track which servers hold a
// file.
func (m mounting) tellOpen(ctx context.Context) error {
	open, err := m.openFiles()
	if err != nil {
		return err
	}
	view, secret, err := m.view(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for i := range view.Nodes {
		if node := &view.Nodes[i]; node.Type == "storage" || node.Type == "meta" {
			errs = append(errs, tree.Ask(ctx, secret, node, "open-files", wire.OpenFiles{Client: os.Getpid(), Files: open}, nil))
		}
	}
	return errors.Join(errs...)
}

// openFiles counts the files that programs have open in the mount, because this process has each of them open in the store.
func (m mounting) openFiles() (open int, err error) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		path, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil || !strings.HasPrefix(path, m.store()+"/") {
			continue
		}
		if at, err := os.Stat(filepath.Join("/proc/self/fd", e.Name())); err == nil && at.Mode().IsRegular() {
			open++
		}
	}
	return open, nil
}

func (m mounting) store() string { return filepath.Join(filepath.Dir(m.path), Store, m.source) }

// make creates the metadata servers' directories.
func (m mounting) make(ctx context.Context) error {
	names, err := m.directories(ctx)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(m.store(), name), 0o755); err != nil {
			return err
		}
	}
	return os.MkdirAll(m.store(), 0o755)
}

// start starts another process that serves the mount, and waits until it does.
func (m mounting) start(ctx context.Context, output io.Writer) error {
	if err := m.make(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	server := exec.CommandContext(context.WithoutCancel(ctx), self,
		Serve, "-t", "beegfs", m.source, m.path, "-o", strings.Join(m.options, ","))
	server.Args[0] = "mount"
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ready, tells, err := os.Pipe()
	if err != nil {
		return err
	}
	server.ExtraFiles = []*os.File{tells}
	if err := errors.Join(server.Start(), tells.Close()); err != nil {
		return err
	}
	said, err := io.ReadAll(ready)
	if err != nil {
		return err
	}
	if text := string(said); text != "mounted" {
		return fmt.Errorf("the server of the mount ended: %s", text)
	}
	fmt.Fprintf(output, "mounted %s at %s\n", m.source, m.path)
	return server.Process.Release()
}

// serve mounts by FUSE and stays until it is unmounted.
func (m mounting) serve(ctx context.Context) error {
	tell := os.NewFile(3, "ready")
	loopback, err := fs.NewLoopbackRoot(m.store())
	var server *fuse.Server
	if err == nil {
		server, err = fs.Mount(m.path, loopback, &fs.Options{MountOptions: fuse.MountOptions{
			AllowOther: true, FsName: m.source, Name: "beegfs", DirectMountStrict: true, DisableReadDirPlus: false,
		}})
	}
	if err != nil {
		_, _ = fmt.Fprint(tell, err)
		return errors.Join(err, tell.Close())
	}
	_, _ = fmt.Fprint(tell, "mounted")
	if err := tell.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for ticker := time.NewTicker(refresh); ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				// If a server is down, no new directories are made and nothing is reported.
				_ = m.make(ctx)
				_ = m.tellOpen(ctx)
			}
		}
	}()
	server.Wait()
	return nil
}
