//go:build disks

package mounts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// serveVerb makes the test binary a mount program that serves an empty filesystem by FUSE.
const serveVerb = "serve-fuse"

// Operations that are sent to a filesystem if only its size is queried (linux/fuse.h).
const (
	fuseGetattr = 3
	fuseStatfs  = 17
	fuseInit    = 26
	fuseForget  = 2
)

// serveFUSE mounts a filesystem and serves it until it is unmounted.
func serveFUSE(path string) error {
	device, err := unix.Open("/dev/fuse", unix.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open /dev/fuse: %w", err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", device)
	if err := unix.Mount("scratch", path, "fuse", 0, options); err != nil {
		return fmt.Errorf("mount %s: %w", path, err)
	}
	request := make([]byte, 256<<10)
	for {
		n, err := unix.Read(device, request)
		switch {
		case errors.Is(err, unix.ENODEV): // unmounted
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case n < 40:
			return fmt.Errorf("a request of %d bytes", n)
		}
		opcode := binary.NativeEndian.Uint32(request[4:])
		if opcode == fuseForget {
			continue
		}
		if _, err := unix.Write(device, fuseAnswer(opcode, request[8:16])); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
}

// fuseAnswer returns struct fuse_out_header and the body of the operation.
func fuseAnswer(opcode uint32, unique []byte) []byte {
	var body []byte
	failed := int32(0)
	switch opcode {
	case fuseInit:
		body = make([]byte, 64)
		binary.NativeEndian.PutUint32(body, 7)         // major
		binary.NativeEndian.PutUint32(body[4:], 31)    // minor
		binary.NativeEndian.PutUint32(body[20:], 4096) // max_write
	case fuseGetattr:
		body = make([]byte, 104)
		binary.NativeEndian.PutUint64(body[16:], 1)          // ino
		binary.NativeEndian.PutUint32(body[16+60:], 0o40755) // mode
		binary.NativeEndian.PutUint32(body[16+64:], 2)       // nlink
	case fuseStatfs:
		body = make([]byte, 80)
	default:
		failed = -int32(unix.ENOSYS)
	}
	out := make([]byte, 16, 16+len(body))
	binary.NativeEndian.PutUint32(out, uint32(16+len(body)))
	binary.NativeEndian.PutUint32(out[4:], uint32(failed))
	copy(out[8:], unique)
	return append(out, body...)
}

// sharedNode is a directory whose mounts propagate to other mount namespaces, as on a node of Kubernetes.
func sharedNode(t *testing.T) string {
	t.Helper()
	node := t.TempDir()
	command(t, "mount", "--bind", node, node)
	command(t, "mount", "--make-rshared", node)
	t.Cleanup(func() { command(t, "umount", "-R", "-l", node) })
	return node
}

// pod is a process in its own mount namespace that has one directory of the node, mounted at the path at (HostToContainer).
func pod(t *testing.T, hostPath, at string) (process int) {
	t.Helper()
	g := NewWithT(t)
	script := `mount --rbind "$1" "$2" && mount --make-rslave "$2" && echo started && exec sleep infinity`
	c := exec.Command("unshare", "--mount", "--propagation", "slave", "sh", "-c", script, "sh", hostPath, at)
	out, err := c.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	c.Stderr = os.Stderr
	g.Expect(c.Start()).To(Succeed())
	t.Cleanup(func() {
		g.Expect(c.Process.Kill()).To(Succeed())
		g.Expect(c.Wait()).To(HaveOccurred())
	})
	said := make([]byte, len("started"))
	_, err = out.Read(said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(said)).To(Equal("started"))
	return c.Process.Pid
}

// somebodyUnmounts calls umount(8), and repeats it while a check of the supervisor keeps the mount busy.
func somebodyUnmounts(g Gomega, path string) {
	g.Eventually(func() error { return unix.Unmount(path, 0) }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
}

// mountsOf returns the mounts that a process sees at a path.
func mountsOf(g Gomega, process int, path string) []Entry {
	table, err := os.Open("/proc/" + strconv.Itoa(process) + "/mountinfo")
	g.Expect(err).NotTo(HaveOccurred())
	defer table.Close()
	entries, err := entriesAt(table, path)
	g.Expect(err).NotTo(HaveOccurred())
	return entries
}

func TestAPodThatHasTheViewSeesThisFilesystemOnlyAndSeesItMountedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		mount spec.Mount
		// crash makes the filesystem disappear, as it happens on a node.
		crash func(g Gomega, s *supervised, path string)
	}{
		"FUSE, whose program is killed": {
			mount: spec.Mount{FSType: "fuse", Source: "scratch", Command: []string{"/proc/self/exe", serveVerb}},
			crash: func(_ Gomega, s *supervised, _ string) { s.program.Load().Kill() },
		},
		"FUSE, that somebody unmounts": {
			mount: spec.Mount{FSType: "fuse", Source: "scratch", Command: []string{"/proc/self/exe", serveVerb}},
			crash: func(g Gomega, _ *supervised, path string) { somebodyUnmounts(g, path) },
		},
		"the kernel's, that somebody unmounts": {
			mount: spec.Mount{FSType: "tmpfs", Source: "scratch", Kernel: true, Command: []string{"mount", "-t", "tmpfs", "scratch"}},
			crash: func(g Gomega, _ *supervised, path string) { somebodyUnmounts(g, path) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, node := NewWithT(t), sharedNode(t)
			users, own := filepath.Join(node, "mnt"), filepath.Join(node, "own")
			for _, d := range []string{users, own, filepath.Join(users, "archive"), filepath.Join(node, "seen")} {
				g.Expect(os.Mkdir(d, 0o755)).To(Succeed())
			}
			command(t, "mount", "-t", "tmpfs", "another", filepath.Join(users, "archive"))
			m := c.mount
			m.Path, m.View = filepath.Join(users, "scratch"), filepath.Join(own, "scratch")
			m.Command = append(append([]string(nil), m.Command...), m.Path)
			t.Cleanup(func() {
				for unix.Unmount(m.Path, unix.MNT_DETACH) == nil {
				}
				g.Expect(Remove(m.Path)).To(Succeed())
			})

			seen := filepath.Join(node, "seen")
			runs := pod(t, own, seen)
			s := supervise(t, m, hurried)
			there := func() []Entry { return mountsOf(g, runs, filepath.Join(seen, "scratch")) }
			g.Eventually(there).WithTimeout(patience.Bound(time.Minute)).Should(Equal([]Entry{{m.FSType, "scratch"}}), "%s", s)
			g.Eventually(func() error { return Check(t.Context(), m, time.Minute) }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
			inside, err := os.ReadDir("/proc/" + strconv.Itoa(runs) + "/root" + seen)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(inside).To(HaveLen(1), "the filesystem of another is not there")

			c.crash(g, s, m.Path)
			s.says(g, "is not mounted any more and is mounted again")
			g.Eventually(func() error { return Check(t.Context(), m, time.Minute) }).WithTimeout(patience.Bound(time.Minute)).Should(Succeed(), "%s", s)
			g.Expect(there()).To(HaveLen(1), "what is dead has gone from the pod")
			g.Expect(unix.Statfs("/proc/"+strconv.Itoa(runs)+"/root"+seen+"/scratch", &unix.Statfs_t{})).To(Succeed(), "it answers in the pod")
			g.Expect(at(m.Path)).To(HaveLen(1))

			s.cancel()
			g.Eventually(s.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
			g.Expect(there()).To(BeEmpty())
			g.Expect(at(m.Path)).To(BeEmpty())
			g.Expect(m.View).NotTo(BeAnExistingFile(), "nothing is left behind")
			g.Expect(os.WriteFile(filepath.Join(m.Path, "data"), nil, 0o600)).NotTo(Succeed(), "the users' mount point is closed while nothing is mounted")
			g.Expect(at(filepath.Join(users, "archive"))).To(HaveLen(1), "the filesystem of another stays")
		})
	}
}

func TestAnUnmountedViewIsMountedAgain(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	m := spec.Mount{Path: mountPoint(t), View: filepath.Join(directory, "scratch"), FSType: "tmpfs", Source: "scratch", Kernel: true}
	m.Command = []string{"mount", "-t", "tmpfs", "scratch", m.Path}
	s := supervise(t, m, hurried)
	checked := func() error { return Check(t.Context(), m, time.Minute) }
	g.Eventually(checked).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	g.Expect(os.WriteFile(filepath.Join(m.Path, "data"), nil, 0o600)).To(Succeed())
	somebodyUnmounts(g, m.View)
	g.Eventually(checked).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	g.Expect(filepath.Join(m.View, "data")).To(BeAnExistingFile(), "it is the same filesystem, which was not mounted anew")

	// A killed supervision leaves both mounts.
	next := supervise(t, m, hurried)
	next.says(g, "the mount is taken over")
	g.Eventually(checked).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	g.Expect(at(m.View)).To(HaveLen(1))
	user, err := os.Open(filepath.Join(m.View, "data"))
	g.Expect(err).NotTo(HaveOccurred())
	defer user.Close()
	s.cancel()
	next.cancel()
	g.Eventually(s.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Eventually(next.ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
	g.Expect(at(m.View)).To(BeEmpty(), "though it was in use")
	g.Expect(at(m.Path)).To(BeEmpty())
}

// A view of the node's own directory would be a foreign mount forever, because nothing would unmount it.
func TestAViewIsNotMadeOfAFilesystemThatWasJustUnmounted(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	path, view := filepath.Join(directory, "scratch"), filepath.Join(directory, "views", "scratch")
	g.Expect(os.Mkdir(path, 0o700)).To(Succeed())
	t.Cleanup(func() {
		for unix.Unmount(view, unix.MNT_DETACH) == nil {
		}
	})
	g.Expect(bind(path, view)).To(MatchError(unix.EINVAL))
	g.Expect(at(view)).To(BeEmpty())
}
