package procfs_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/procfs"
)

func TestHeadReadsNoMoreThanItsLimit(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "environ")
	g.Expect(os.WriteFile(path, []byte("A=1\x00B=2\x00"), 0o600)).To(Succeed())
	g.Expect(procfs.Head(path, 1024)).To(Equal([]byte("A=1\x00B=2\x00")))
	g.Expect(os.Truncate(path, 2<<30)).To(Succeed()) // a sparse file of 2 GiB
	g.Expect(procfs.Head(path, 1024)).To(HaveLen(1024))
}

func TestALineOfAMebibyteHidesNoOtherMount(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "mountinfo")
	layers := strings.Repeat("lowerdir+=/layer,", 1<<16)
	table := "22 1 8:1 / / rw - ext4 /dev/root rw\n" +
		"23 22 0:40 / /merged rw master:3 - overlay overlay rw," + layers + "logdev=/dev/vdb\n" +
		"24 22 254:0 / /mnt rw - xfs /dev/vda rw\n"
	g.Expect(os.WriteFile(path, []byte(table), 0o600)).To(Succeed())
	var found []*mountinfo.Info
	g.Expect(procfs.EachMount(path, func(m *mountinfo.Info) { found = append(found, m) })).To(Succeed())
	g.Expect(found).To(HaveLen(3))
	g.Expect(found[1]).To(And(HaveField("Mountpoint", "/merged"), HaveField("FSType", "overlay"), HaveField("Optional", "master:3")))
	g.Expect(found[2]).To(And(HaveField("ID", 24), HaveField("Source", "/dev/vda"), HaveField("Major", 254)))
}

func TestATableThatIsNoTableIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mountinfo")
	for _, text := range []string{"nonsense\n", strings.Repeat("nonsense ", 1<<16)} {
		NewWithT(t).Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
		NewWithT(t).Expect(procfs.EachMount(path, func(*mountinfo.Info) {})).NotTo(Succeed())
	}
}

func TestTheMountOfAnOpenFileIsThatOfItsPath(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	opened, err := procfs.FileOf("/proc/self", strconv.Itoa(int(file.Fd())))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(opened.Writes).To(BeTrue())
	g.Expect(procfs.MountOf(filepath.Dir(path))).To(Equal(opened.Mount))
	listed := map[int]bool{}
	g.Expect(procfs.EachMount("/proc/self/mountinfo", func(m *mountinfo.Info) { listed[m.ID] = true })).To(Succeed())
	g.Expect(listed).To(HaveKey(opened.Mount))
	reader, err := os.Open(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer reader.Close()
	g.Expect(procfs.FileOf("/proc/self", strconv.Itoa(int(reader.Fd())))).To(HaveField("Writes", false))
}

func TestADeviceIsThatOfTheFilesystemAndOfTheFileItself(t *testing.T) {
	g := NewWithT(t)
	path := t.TempDir()
	var stat unix.Stat_t
	g.Expect(unix.Stat(path, &stat)).To(Succeed())
	filesystem, itself, err := procfs.Device(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(filesystem).To(Equal(stat.Dev))
	g.Expect(itself).To(BeZero())
}

func TestAMountOfAUserIsKnownByItsUserID(t *testing.T) {
	g := NewWithT(t)
	for line, want := range map[string]bool{
		"30 1 0:50 / /mnt rw - fuse.lustre_tgt /dev/vda rw,user_id=1000,group_id=1000": true,
		"30 1 0:50 / /mnt rw - fuse.lustre_tgt /dev/vda rw,user_id=0,group_id=0":       false,
		"30 1 0:50 / /mnt rw - lustre_tgt /dev/vda rw":                                 false,
	} {
		path := filepath.Join(t.TempDir(), "mountinfo")
		g.Expect(os.WriteFile(path, []byte(line+"\n"), 0o600)).To(Succeed())
		g.Expect(procfs.EachMount(path, func(m *mountinfo.Info) { g.Expect(procfs.IsOfUser(m)).To(Equal(want), line) })).To(Succeed())
	}
}

// BenchmarkEachMount reads a table of 100,000 mounts, the most that a kernel allows by default (sysctl fs.mount-max).
func BenchmarkEachMount(b *testing.B) {
	path := filepath.Join(b.TempDir(), "mountinfo")
	file, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	table := bufio.NewWriter(file)
	for i := range 100_000 {
		fmt.Fprintf(table, "%d 1 0:%d / /mnt/%d rw,relatime shared:%d - tmpfs tmpfs rw,size=64k\n", 100+i, i, i, i)
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
	_ = file.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := procfs.EachMount(path, func(*mountinfo.Info) {}); err != nil {
			b.Fatal(err)
		}
	}
}
