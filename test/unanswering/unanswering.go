// Package unanswering has a filesystem whose server answers no more, as one on a network whose servers are away.
package unanswering

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/onsi/gomega"
)

// Open mounts a filesystem by FUSE that answers no question about its file any more, and starts a process that has the file open
// for writing. Both end with the test.
func Open(t *testing.T) {
	t.Helper()
	g := gomega.NewWithT(t)
	at := t.TempDir()
	file := &unanswering{again: make(chan struct{})}
	root := &unansweringRoot{}
	server, err := fs.Mount(at, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMount: true, FsName: "unanswering"},
		OnAdd: func(ctx context.Context) {
			root.AddChild("file", root.NewPersistentInode(ctx, file, fs.StableAttr{Mode: syscall.S_IFREG}), true)
		},
	})
	g.Expect(err).NotTo(gomega.HaveOccurred())
	t.Cleanup(func() { gomega.NewWithT(t).Expect(server.Unmount()).To(gomega.Succeed()) })
	opened, err := os.OpenFile(filepath.Join(at, "file"), os.O_RDWR, 0)
	g.Expect(err).NotTo(gomega.HaveOccurred())
	holder := exec.Command("cat")
	holder.ExtraFiles = []*os.File{opened}
	input, err := holder.StdinPipe()
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Expect(holder.Start()).To(gomega.Succeed())
	t.Cleanup(func() {
		close(file.again)
		_ = input.Close()
		_ = holder.Wait()
		_ = opened.Close()
	})
	file.silent.Store(true)
}

type unanswering struct {
	fs.Inode
	silent atomic.Bool
	again  chan struct{}
}

// Getattr waits for the end of the test.
func (u *unanswering) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	if u.silent.Load() {
		select {
		case <-u.again:
		case <-ctx.Done():
			return syscall.EINTR
		}
	}
	out.Mode = syscall.S_IFREG | 0o600
	return 0
}

// Open keeps nothing of the file in the kernel.
func (u *unanswering) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return nil, fuse.FOPEN_DIRECT_IO, 0
}

type unansweringRoot struct{ fs.Inode }
