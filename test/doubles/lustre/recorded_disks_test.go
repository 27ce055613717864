//go:build disks

package lustre_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/doubles/lustre/mountdata"
	"parallelfs.dev/operator/test/doubles/lustre/sandbox"
)

// doubles is the directory with the programs; empty if the real ones are used.
var doubles string

// genuine is true on a machine with a real Lustre (test/vm), which must be in the recorded state: with its network, and nothing mounted.
var genuine = os.Getenv("LUSTRE_REAL") != ""

func TestMain(m *testing.M) {
	if genuine {
		os.Exit(m.Run())
	}
	if doubles = os.Getenv(sandboxed); doubles != "" {
		if err := furnish(); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		var err error
		if doubles, err = os.MkdirTemp("", "lustre-doubles"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(doubles)
		binary := filepath.Join(doubles, "lustre-double")
		if output, err := exec.Command("go", "build", "-o", binary, "./cmd/lustre-double").CombinedOutput(); err != nil {
			panic(string(output))
		}
		for _, name := range []string{
			"mkfs.lustre", "tunefs.lustre", "mount.lustre", "mount.lustre_tgt", "umount.fuse.lustre", "umount.fuse.lustre_tgt", "lctl", "lfs", "lfs_migrate", "lnetctl", "llog_reader",
			"mds-survey", "obdfilter-survey",
		} {
			if err := os.Symlink(binary, filepath.Join(doubles, name)); err != nil {
				panic(err)
			}
		}
		return sandbox.Run(sandboxed, doubles)
	}())
}

// lab has images as disks.
type lab struct {
	*testing.T
	directory string
	// devices maps images to the real devices that replace them with real programs, by path.
	devices map[string]string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	return &lab{t, t.TempDir(), map[string]string{}}
}

func (l *lab) must(argv ...string) string {
	l.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	NewWithT(l).Expect(err).NotTo(HaveOccurred(), "%v: %s", argv, output)
	return string(output)
}

// disk makes an image of zeros.
func (l *lab) disk(name string, bytes int64) string {
	l.Helper()
	path := filepath.Join(l.directory, name)
	g := NewWithT(l)
	g.Expect(os.RemoveAll(path)).To(Succeed())
	if genuine {
		if device, is := realDisks[name]; is {
			l.must("wipefs", "--all", "--force", "--quiet", device)
			l.must("dd", "if=/dev/zero", "of="+device, "bs=1M", "count=8", "conv=notrunc", "status=none")
			kernelName, err := filepath.EvalSymlinks(device)
			g.Expect(err).NotTo(HaveOccurred())
			l.devices[path] = kernelName
			g.Expect(os.Symlink(device, path)).To(Succeed())
			return path
		}
	}
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	g.Expect(os.Truncate(path, bytes)).To(Succeed())
	return path
}

// realDisks maps image names to the disks of a machine with a real Lustre, because a failed mount removes the loop device that it was given
// (mount.lustre).
var realDisks = func() map[string]string {
	disks := map[string]string{}
	for i := range 5 {
		device := fmt.Sprintf("%sdisk%d", recorded, i+1)
		disks[fmt.Sprintf("disk%d", i+1)], disks["vd"+string(rune('a'+i))] = device, device
	}
	return disks
}()

// run runs a double. Its output has the form of the recorded answers: standard error first.
func (l *lab) run(argv ...string) string {
	l.Helper()
	var stdout, stderr bytes.Buffer
	command := exec.Command(filepath.Join(doubles, argv[0]), argv[1:]...)
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		l.Fatal(err)
	}
	return fmt.Sprintf("%s%sexit %d\n", stderr.String(), stdout.String(), command.ProcessState.ExitCode())
}

// Name prefixes of the real disks and of the images.
const recorded = "/dev/disk/by-id/virtio-"

// expectRecorded runs the command of a recorded answer and expects that answer.
func (l *lab) expectRecorded(name string) {
	l.Helper()
	content, err := os.ReadFile("testdata/2.17.57/" + name + ".txt")
	g := NewWithT(l)
	g.Expect(err).NotTo(HaveOccurred())
	line, answer, _ := strings.Cut(strings.TrimPrefix(string(content), "$ "), "\n")
	said := l.run(strings.Fields(strings.ReplaceAll(line, recorded, l.directory+"/"))...)
	g.Expect(strings.ReplaceAll(said, l.directory+"/", recorded)).To(Equal(answer), "%s: %s", name, line)
}

// TestTheDoublesPrintTheRecordedOutput runs the recorded commands in order, with disks of the same size.
func TestTheDoublesPrintTheRecordedOutput(t *testing.T) {
	l := newLab(t)
	for i := range 4 {
		l.disk(fmt.Sprintf("disk%d", i+1), 2<<30)
	}
	l.disk("disk5", 512<<20)
	for _, name := range []string{"mgs-mdt0", "mdt1", "ost0", "ost1-servicenodes", "mgs"} {
		l.expectRecorded("dryrun-" + name)
	}
	for _, name := range []string{"mgs-mdt0", "mdt1", "ost0", "ost1", "again", "without-fsname", "without-index", "without-mgsnode"} {
		l.expectRecorded("make-" + name)
	}
	l.must("mke2fs", "-q", "-F", l.directory+"/disk5")
	l.expectRecorded("make-over-ext4")
	for _, name := range []string{"print-mdt0", "mdt0", "print-ost0", "ost0"} {
		l.expectRecorded("tunefs-" + name)
	}
	l.must("mke2fs", "-q", "-F", l.directory+"/disk5")
	l.expectRecorded("tunefs-ext4")
	l.disk("disk5", 512<<20)
	l.expectRecorded("tunefs-zeros")
	l.mount("disk3", "pfs-OST0000")
	for _, name := range []string{"registered", "writeconf", "other-mgs"} {
		l.expectRecorded("tunefs-" + name)
	}
}

// mount changes a disk like a first mount.
func (l *lab) mount(name, label string) {
	l.Helper()
	g, device := NewWithT(l), l.directory+"/"+name
	l.must("e2label", device, label)
	data, _, found, err := mountdata.Of(device)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(BeTrue())
	data.Flags &^= mountdata.Update
	g.Expect(mountdata.Write(device, data)).To(Succeed())
}

func TestOverwritesOfTheRealProgramsAreRefused(t *testing.T) {
	l, g := newLab(t), NewWithT(t)
	device := l.disk("disk1", 64<<20)
	ost := []string{"--ost", "--fsname=pfs", "--index=0", "--mgsnode=10.0.0.1@tcp"}
	g.Expect(l.run(append(append([]string{"mkfs.lustre"}, ost...), device)...)).To(HaveSuffix("exit 0\n"))
	before := l.must("sha256sum", device)
	for _, option := range []string{"--reformat", "--replace", "--skipmmp"} {
		g.Expect(l.run(append(append([]string{"mkfs.lustre", option}, ost...), device)...)).To(And(
			ContainSubstring("the double does not play "+option), HaveSuffix("exit 22\n")))
	}
	g.Expect(l.must("sha256sum", device)).To(Equal(before))
}

func TestTheDoubleRefusesWhatTheRealMkfsRefuses(t *testing.T) {
	l := newLab(t)
	device := l.disk("disk1", 64<<20)
	l.disk("small", 31<<20)
	if genuine { // the real program accepts any file size
		loop := strings.TrimSpace(l.must("losetup", "--find", "--show", l.directory+"/small"))
		l.Cleanup(func() { l.must("losetup", "--detach", loop) })
		l.must("ln", "-sf", loop, l.directory+"/small")
	}
	for line, says := range map[string]string{
		"--ost": "Not enough arguments - device name",
		device:  "must set target type: MDT,OST,MGS\nmkfs.lustre: exiting with 22", device + " " + device: "Only one device is allowed",
		"--ost --mdt --fsname=a --index=0 --mgsnode=10.0.0.1@tcp " + device:              "OST type is exclusive with MDT,MGS",
		"--mdt --fsname=a --index=0 " + device:                                           "Must specify --mgs or --mgsnode",
		"--ost --fsname=123456789 --index=0 --mgsnode=10.0.0.1@tcp " + device:            "filesystem name must be 1-8 chars\nmkfs.lustre: exiting with 1",
		"--ost --fsname=a.b --index=0 --mgsnode=10.0.0.1@tcp " + device:                  "char '.' not allowed in filesystem name",
		"--ost --fsname=a --index=one --mgsnode=10.0.0.1@tcp " + device:                  "wrong index one",
		"--ost --fsname=a --index=65504 --mgsnode=10.0.0.1@tcp " + device:                "wrong index 65504",
		"--ost --fsname=a --index=0 --mgsnode=mgs.example.com " + device:                 "Can't parse NID 'mgs.example.com'",
		"--ost --fsname=a --index=0 --mgsnode=10.0.0.1@tcp --backfstype=zfs " + device:   "unhandled/unloaded OSD plugin 5 'zfs'",
		"--ost --fsname=a --index=0 --mgsnode=10.0.0.1@tcp --mkfsoptions=-b=7 " + device: "blocksize 0 not in 1024-65536 bytes",
		"--ost --fsname=a --index=0 --mgsnode=10.0.0.1@tcp " + l.directory + "/small":    "must be larger than 32MB",
		"--ost --fsname=a --index=0 --mgsnode=10.0.0.1@tcp --mkfsoptions=-Q " + device:   "Unable to build fs",
	} {
		t.Run(line, func(t *testing.T) {
			said := l.run(append([]string{"mkfs.lustre"}, strings.Fields(line)...)...)
			NewWithT(t).Expect(said).To(And(ContainSubstring(says), Not(HaveSuffix("exit 0\n"))))
		})
	}
}

func TestACommentIsKeptUntilItIsChanged(t *testing.T) {
	l, g := newLab(t), NewWithT(t)
	device := l.disk("disk1", 64<<20)
	for option, size := range map[string]int{"--comment=": 824, "--mkfsoptions=": 512} {
		said := l.run("mkfs.lustre", "--mgs", option+strings.Repeat("x", size), device)
		g.Expect(said).To(And(ContainSubstring("string buffer overflow (max %d)", size), HaveSuffix("'\nexit 75\n")))
	}
	g.Expect(l.run("mkfs.lustre", "--mgs", "--comment="+strings.Repeat("x", 823), device)).To(HaveSuffix("exit 0\n"))
	g.Expect(l.run("tunefs.lustre", "--dryrun", device)).To(ContainSubstring("\nComment: " + strings.Repeat("x", 823) + "\n"))
	g.Expect(l.run("tunefs.lustre", "--param", "sys.timeout=40", device)).To(HaveSuffix("exit 0\n"))
	g.Expect(l.run("tunefs.lustre", "--dryrun", device)).To(And(ContainSubstring("\nComment: xxx"), ContainSubstring("Parameters: sys.timeout=40\n")))
	g.Expect(l.run("tunefs.lustre", "--comment=mine", device)).To(HaveSuffix("exit 0\n"))
	g.Expect(l.run("tunefs.lustre", "--dryrun", device)).To(ContainSubstring("\nComment: mine\n"))
}
