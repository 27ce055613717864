//go:build disks

package devices

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/disktest"
	"parallelfs.dev/operator/internal/plan"
)

// mebibyte is 1 MiB in bytes.
const mebibyte = 1 << 20

// lab has loop devices in a /dev of its own, with links like udev's.
type lab struct {
	*testing.T
	looker Looker
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t, looker: ThisHost()}
	l.looker.Dev, l.looker.Udev = t.TempDir(), t.TempDir()
	NewWithT(t).Expect(os.MkdirAll(filepath.Join(l.looker.Dev, "disk/by-id"), 0o700)).To(Succeed())
	return l
}

// disk is a loop device over a file.
type disk struct {
	lab        *lab
	file, path string
	name       string
	// swap is the size of a swap space that is in use, or 0.
	swap int64
}

// disk attaches a blank disk, with a link that begins with wwn-.
func (l *lab) disk(megabytes int64, options ...string) *disk {
	l.Helper()
	g := NewWithT(l)
	d := &disk{lab: l, file: filepath.Join(l.TempDir(), "disk")}
	file, err := os.Create(d.file)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Truncate(megabytes * mebibyte)).To(Succeed())
	g.Expect(file.Close()).To(Succeed())
	d.attach(options...)
	return d
}

// attach makes a loop device of the file.
func (d *disk) attach(options ...string) {
	d.lab.Helper()
	d.path = strings.TrimSpace(d.lab.run("losetup", append(options, "--find", "--show", d.file)...))
	d.name = filepath.Base(d.path)
	d.lab.Cleanup(func() { d.lab.run("losetup", "--detach", d.path) })
	d.lab.link("wwn-0x5000c500a1b2"+d.hex(), d.name)
}

// hex is a part of the id that is unique in the lab.
func (d *disk) hex() string {
	digits := strings.TrimPrefix(d.name, "loop")
	return strings.Repeat("0", 4-len(digits)) + digits
}

func (d *disk) id() v1alpha1.DeviceID { return v1alpha1.DeviceID("wwn-0x5000c500a1b2" + d.hex()) }

// partition registers a partition of 10 MiB with the kernel, independently of any partition table, and returns its path in the lab's /dev.
func (d *disk) partition(number int) (path, name string) {
	d.lab.Helper()
	start := strconv.Itoa(2048 + (number-1)*20480)
	d.lab.run("addpart", d.path, strconv.Itoa(number), start, "20480")
	d.lab.Cleanup(func() { d.lab.run("delpart", d.path, strconv.Itoa(number)) })
	name = d.name + "p" + strconv.Itoa(number)
	d.lab.link(string(d.id())+"-part"+strconv.Itoa(number), name)
	return filepath.Join(d.lab.looker.Dev, name), name
}

// link makes the node of a device and a link to it.
func (l *lab) link(id, name string) {
	l.Helper()
	g := NewWithT(l)
	var at unix.Stat_t
	g.Expect(unix.Stat("/dev/"+name, &at)).To(Succeed())
	g.Expect(unix.Mknod(filepath.Join(l.looker.Dev, name), unix.S_IFBLK|0o600, int(at.Rdev))).To(Succeed())
	g.Expect(os.Symlink("../../"+name, filepath.Join(l.looker.Dev, "disk/by-id", id))).To(Succeed())
}

// run runs a program that must succeed.
func (l *lab) run(program string, args ...string) string {
	l.Helper()
	output, err := exec.Command(program, args...).Output()
	if err != nil {
		var said []byte
		if exit, ok := err.(*exec.ExitError); ok { //nolint:errorlint // it comes from os/exec itself
			said = exit.Stderr
		}
		l.Fatalf("%s %v: %s: %s", program, args, err, said)
	}
	return string(output)
}

// mount mounts read-only, so that the filesystem changes nothing by itself.
func (l *lab) mount(path, options string) string {
	l.Helper()
	at := l.TempDir()
	l.run("mount", "-o", "ro"+options, path, at)
	l.Cleanup(func() { l.run("umount", at) })
	return at
}

// write writes bytes to the disk.
func (d *disk) write(offset int64, content []byte) {
	d.lab.Helper()
	g := NewWithT(d.lab)
	file, err := os.OpenFile(d.path, os.O_WRONLY, 0)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = file.WriteAt(content, offset)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(file.Sync()).To(Succeed())
	g.Expect(file.Close()).To(Succeed())
}

// sum is disktest.Content.
func (d *disk) sum() string {
	d.lab.Helper()
	content, err := disktest.Content(d.file, d.path, d.swap)
	NewWithT(d.lab).Expect(err).NotTo(HaveOccurred())
	return content
}

// look reads the disk in both ways, which must agree, and changes no bit of it.
func (d *disk) look() plan.Facts {
	d.lab.Helper()
	g := NewWithT(d.lab)
	before := d.sum()
	facts, err := d.lab.looker.ByID(d.lab.Context(), d.id())
	g.Expect(err).NotTo(HaveOccurred())
	all, problems := d.lab.looker.All(d.lab.Context())
	g.Expect(d.sum()).To(Equal(before), "a look changes nothing")
	g.Expect(problems).To(BeEmpty())
	g.Expect(facts.Found).To(BeTrue())
	g.Expect(facts.Incomplete).To(BeEmpty())
	g.Expect(facts.KernelName).To(Equal(d.name))
	var listed *plan.Facts
	for i := range all {
		if all[i].KernelName == d.name {
			listed = &all[i]
		}
	}
	g.Expect(listed).NotTo(BeNil(), "the inventory lists it")
	if !strings.HasPrefix(facts.Busy, "process") { // Only the scan of one device searches for processes.
		g.Expect(listed.BlockDevice).To(Equal(facts.BlockDevice))
	}
	return facts
}

// uuidOf reads the UUID on a device with libblkid.
func (l *lab) uuidOf(path string) string {
	l.Helper()
	return strings.TrimSpace(l.run("blkid", "-p", "-o", "value", "-s", "UUID", path))
}

// elsewhere mounts a device in the mount namespace of a single process.
func (l *lab) elsewhere(path string) string {
	l.Helper()
	g := NewWithT(l)
	at := l.TempDir()
	command := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", `mount -o ro "$1" "$2" && echo mounted && read end`, "sh", path, at)
	input, err := command.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	output, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	var said bytes.Buffer
	command.Stderr = &said
	g.Expect(command.Start()).To(Succeed())
	l.Cleanup(func() {
		_ = input.Close()
		_ = command.Wait() // read ends with 1 at the end of the input
	})
	word := make([]byte, len("mounted"))
	_, err = io.ReadFull(output, word)
	g.Expect(err).NotTo(HaveOccurred(), said.String())
	return at
}
