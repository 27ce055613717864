package provision

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
	"parallelfs.dev/operator/test/patience"
)

func TestOptionsOfTheMountAreDistinguishedFromThoseOfTheFilesystem(t *testing.T) {
	g := NewWithT(t)
	attr, own := split([]string{"noatime", "nodiratime", "logbsize=256k", "inode64", "nosuid", "defaults", "relatime", "compress=zstd:3"})
	g.Expect(attr).To(Equal(unix.MOUNT_ATTR_NOATIME | unix.MOUNT_ATTR_NODIRATIME | unix.MOUNT_ATTR_NOSUID))
	g.Expect(own).To(Equal([]parameter{{"logbsize", "256k"}, {"inode64", ""}, {"compress", "zstd:3"}}))
}

func TestAProgramMayWriteToTheTargetsDevicesOnly(t *testing.T) {
	g := NewWithT(t)
	dev := t.TempDir()
	for _, name := range []string{"sda", "sda1", "sdb", "nvme0n1p2"} {
		g.Expect(os.WriteFile(filepath.Join(dev, name), nil, 0o600)).To(Succeed())
	}
	g.Expect(os.Mkdir(filepath.Join(dev, "cciss"), 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(dev, "cciss", "c0d0"), nil, 0o600)).To(Succeed())
	g.Expect(os.Symlink("sdb", filepath.Join(dev, "link"))).To(Succeed())
	look := func(name string, partitions ...string) plan.Look {
		return plan.Look{
			Device: plan.Facts{BlockDevice: v1alpha1.BlockDevice{KernelName: name, Partitions: partitions}, Found: true},
			Log:    &plan.Facts{BlockDevice: v1alpha1.BlockDevice{KernelName: "nvme0n1p2"}, Found: true},
		}
	}
	cases := map[string]struct {
		look    plan.Look
		argv    []string
		allowed bool
	}{
		"its disk":                      {look("sda"), []string{"mkfs.ext4", "-L", "pfs-1", dev + "/sda"}, true},
		"a partition of its disk":       {look("sda", "sda1"), []string{"wipefs", "--all", dev + "/sda1"}, true},
		"its log device":                {look("sda"), []string{"mkfs.xfs", "-l", "logdev=" + dev + "/nvme0n1p2", dev + "/sda"}, true},
		"its log device with a size":    {look("sda"), []string{"mkfs.xfs", "-l", "logdev=" + dev + "/nvme0n1p2,size=64m", dev + "/sda"}, true},
		"a disk in a directory of /dev": {look("cciss!c0d0"), []string{"mkfs.ext4", dev + "/cciss/c0d0"}, true},
		"another disk":                  {look("sda"), []string{"mkfs.ext4", dev + "/sdb"}, false},
		"another disk as its log":       {look("sda"), []string{"mkfs.xfs", "-l", "logdev=" + dev + "/sdb", dev + "/sda"}, false},
		"a partition that it has not":   {look("sda"), []string{"wipefs", "--all", dev + "/sda1"}, false},
		"a link to another disk":        {look("sda"), []string{"mkfs.ext4", dev + "/link"}, false},
		"a disk that is not there":      {look("sdz"), []string{"mkfs.ext4", dev + "/sdz"}, false},
		"no disk":                       {look("sda"), []string{"wipefs", "--all"}, false},
	}
	for sentence, c := range cases {
		t.Run(sentence, func(t *testing.T) {
			g := NewWithT(t)
			err := (&Provisioner{Dev: dev}).onlyOwn(c.look, c.argv)
			g.Expect(err == nil).To(Equal(c.allowed), "%v", err)
		})
	}
}

// queues is a /sys with a multipath device over two disks, one of them by a partition.
func queues(t *testing.T) string {
	t.Helper()
	g := NewWithT(t)
	sys := t.TempDir()
	write := func(path, content string) {
		path = filepath.Join(sys, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	}
	for _, disk := range []string{"sda", "sdb", "dm-0"} {
		write("devices/"+disk+"/queue/read_ahead_kb", "128\n")
		write("devices/"+disk+"/queue/max_sectors_kb", "512\n")
		write("devices/"+disk+"/queue/max_hw_sectors_kb", "1024\n")
		write("devices/"+disk+"/queue/nr_requests", "128\n")
		write("devices/"+disk+"/queue/scheduler", "[none] mq-deadline\n")
	}
	write("devices/sdb/sdb1/partition", "1\n")
	write("devices/dm-0/slaves/sda/x", "")
	write("devices/dm-0/slaves/sdb1/x", "")
	g.Expect(os.MkdirAll(filepath.Join(sys, "class/block"), 0o755)).To(Succeed())
	for name, device := range map[string]string{"sda": "sda", "sdb": "sdb", "sdb1": "sdb/sdb1", "dm-0": "dm-0"} {
		g.Expect(os.Symlink(filepath.Join(sys, "devices", device), filepath.Join(sys, "class/block", name))).To(Succeed())
	}
	return sys
}

func TestTheQueuesOfTheDisksBelowADeviceAreSetToo(t *testing.T) {
	g := NewWithT(t)
	sys := queues(t)
	n := func(v int32) *int32 { return &v }
	status, refused := ApplyQueue(sys, "dm-0", &v1alpha1.QueueSpec{ReadAheadKB: n(4096), MaxSectorsKB: n(1024), Requests: n(64)})
	g.Expect(refused).To(BeEmpty())
	g.Expect(*status).To(Equal(v1alpha1.QueueStatus{Scheduler: "none", ReadAheadKB: 4096, MaxSectorsKB: 1024, Requests: 64}))
	read := func(disk, file string) string {
		content, err := os.ReadFile(filepath.Join(sys, "class/block", disk, "queue", file))
		g.Expect(err).NotTo(HaveOccurred())
		return strings.TrimSpace(string(content))
	}
	for _, disk := range []string{"sda", "sdb"} {
		g.Expect(read(disk, "read_ahead_kb")).To(Equal("4096"))
		g.Expect(read(disk, "max_sectors_kb")).To(Equal("1024"))
		g.Expect(read(disk, "nr_requests")).To(Equal("64"))
	}
	g.Expect(read("dm-0", "read_ahead_kb")).To(Equal("4096"))
	g.Expect(read("dm-0", "nr_requests")).To(Equal("128"), "a device that passes requests on has none of its own")
}

func TestAQueueThatCannotBeSetIsASentence(t *testing.T) {
	g := NewWithT(t)
	sys := queues(t)
	g.Expect(os.Remove(filepath.Join(sys, "class/block/sda/queue/nr_requests"))).To(Succeed())
	n := int32(64)
	_, refused := ApplyQueue(sys, "sda", &v1alpha1.QueueSpec{Requests: &n})
	g.Expect(refused).To(HaveLen(1))
	g.Expect(refused[0]).To(ContainSubstring("nr_requests of sda can't be set to 64"))
}

func TestALookDoesNotOpenADeviceThatIsWorkedOn(t *testing.T) {
	g := NewWithT(t)
	var claims Claims
	opened := 0
	ask := claims.Ask(func(string, string) (string, error) { opened++; return "", nil })
	release, err := claims.hold("sda", "sdb")
	g.Expect(err).NotTo(HaveOccurred())
	busy, err := ask("/dev/sda", "8:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(busy).NotTo(BeEmpty())
	g.Expect(opened).To(BeZero())
	busy, err = ask("/dev/sdc", "8:32")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(busy).To(BeEmpty())
	release()
	busy, err = ask("/dev/sda", "8:0")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(busy).To(BeEmpty())
	g.Expect(opened).To(Equal(2))
}

func TestAWorkWaitsForTheLookThatIsUnderWay(t *testing.T) {
	g := NewWithT(t)
	var claims Claims
	begun, goOn := make(chan struct{}), make(chan struct{})
	ask := claims.Ask(func(string, string) (string, error) {
		close(begun)
		<-goOn
		return "", nil
	})
	looked := make(chan struct{})
	go func() {
		_, _ = ask("/dev/sda", "8:0")
		close(looked)
	}()
	<-begun
	held := make(chan error, 1)
	go func() {
		_, err := claims.hold("sda")
		held <- err
	}()
	g.Consistently(held, "50ms").ShouldNot(Receive())
	close(goOn)
	<-looked
	g.Eventually(held).WithTimeout(patience.Bound(time.Minute)).Should(Receive(BeNil()))
}

func TestAFailedProgramIsQuotedWithItsBeginningAndItsEnd(t *testing.T) {
	g := NewWithT(t)
	_, err := Run(t.Context(), []string{"sh", "-c", `echo "the reason" >&2; head -c 5000 /dev/zero | tr '\0' 'u' >&2; echo " the end" >&2; exit 3`})
	g.Expect(err).To(MatchError(And(ContainSubstring("the reason"), ContainSubstring("the end"), ContainSubstring("exit status 3"))))
	g.Expect(len(err.Error())).To(BeNumerically("<", 2000))
	var failed *RunError
	g.Expect(errors.As(err, &failed)).To(BeTrue())
}

func TestAProgramKeepsALockUntilItEnds(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "device")
	g.Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	held, err := lock(t.Context(), path)
	g.Expect(err).NotTo(HaveOccurred())
	other, err := os.Open(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer other.Close()
	free := func() error { return unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	g.Expect(free()).To(MatchError(unix.EWOULDBLOCK))
	// The program outlives the one that started it, as a mkfs outlives an agent that is killed.
	_, err = Run(t.Context(), []string{"sh", "-c", "exec 1>&- 2>&-; sleep 600 & echo $! >" + path + ".pid"}, held)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(held.Close()).To(Succeed())
	g.Expect(free()).To(MatchError(unix.EWOULDBLOCK))
	pid, err := os.ReadFile(path + ".pid")
	g.Expect(err).NotTo(HaveOccurred())
	_, err = Run(t.Context(), []string{"kill", "-KILL", strings.TrimSpace(string(pid))})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(free).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
}
