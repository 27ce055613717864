// Command hostile is a process that has no right in the cluster and disturbs its node. It has a file open on a FUSE mount that answers
// nothing, and keeps as many connections to an address as it can, without a request.
//
//	hostile --mount DIRECTORY --connect HOST:PORT --connections N --stop FILE      prints "ready" once it disturbs
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

func main() {
	mount := flag.String("mount", "", "`DIRECTORY` at which the mount answers nothing")
	address := flag.String("connect", "", "`HOST:PORT` that gets connections")
	connections := flag.Int("connections", 0, "`number` of connections at a time")
	stop := flag.String("stop", "", "`FILE` whose existence ends the program")
	flag.Parse()
	if err := disturb(*mount, *address, *connections, *stop); err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(1)
	}
}

func disturb(mount, address string, connections int, stop string) error {
	if err := os.MkdirAll(mount, 0o755); err != nil {
		return fmt.Errorf("make the directory of the mount: %w", err)
	}
	file := &silent{again: make(chan struct{})}
	root := &fs.Inode{}
	server, err := fs.Mount(mount, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "hostile"},
		OnAdd: func(ctx context.Context) {
			root.AddChild("file", root.NewPersistentInode(ctx, file, fs.StableAttr{Mode: syscall.S_IFREG}), true)
		},
	})
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	opened, err := os.OpenFile(filepath.Join(mount, "file"), os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the file of the mount: %w", err)
	}
	file.silent.Store(true)
	for range connections {
		go connect(address)
	}
	if _, err := fmt.Fprintln(os.Stdout, "ready"); err != nil {
		return fmt.Errorf("report that the program disturbs: %w", err)
	}
	for range time.Tick(100 * time.Millisecond) {
		if _, err := os.Stat(stop); err == nil {
			break
		}
	}
	close(file.again)
	_ = opened.Close()
	if err := server.Unmount(); err != nil {
		return fmt.Errorf("unmount: %w", err)
	}
	return nil
}

// connect keeps one connection, and opens it again when it is closed.
func connect(address string) {
	for range time.Tick(50 * time.Millisecond) {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(context.Background(), "tcp", address)
		if err == nil {
			_, _ = c.Read(make([]byte, 1)) // until the other side closes it
			_ = c.Close()
		}
	}
}

// silent is a file that answers nothing once silent is true.
type silent struct {
	fs.Inode
	silent atomic.Bool
	again  chan struct{}
}

// Getattr waits until the program ends.
func (s *silent) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if s.silent.Load() {
		select {
		case <-s.again:
		case <-ctx.Done():
			return syscall.EINTR
		}
	}
	out.Mode = syscall.S_IFREG | 0o600
	return 0
}

// Open keeps nothing of the file in the kernel.
func (s *silent) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}
