package mounts

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

var scratch = spec.Mount{Path: "/mnt/scratch", FSType: "fuse", Source: "mfs#10.0.0.1:9421", Command: []string{"mfsmount"}}

// table is /proc/self/mountinfo of a node with two filesystems on one path, the second with a space in its name.
const table = `27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
982 27 0:545 / /mnt/scratch rw,nosuid,nodev,relatime shared:172 - fuse mfs\04310.0.0.1:9421 rw,user_id=0,group_id=0,allow_other
983 982 0:546 / /mnt/scratch rw shared:173 master:3 - fuse.sshfs somebody\040else rw
984 27 0:547 / /mnt/scratch2 rw - tmpfs shm rw
985 27 0:548 / /mnt/with\040space rw - tmpfs shm rw
`

// layers is the line of an overlay that a container runtime has made of thousands of layers (fsconfig(2) has no limit of one page).
var layers = "981 27 0:40 / /merged rw - overlay overlay rw," + strings.Repeat("lowerdir+=/layer,", 1<<13) + "upperdir=/a\n"

func TestEntriesAt(t *testing.T) {
	for name, c := range map[string]struct {
		table, path string
		want        []Entry
	}{
		"all mounts on a path are listed, the topmost last": {
			table: table, path: "/mnt/scratch", want: []Entry{{"fuse", "mfs#10.0.0.1:9421"}, {"fuse.sshfs", "somebody else"}},
		},
		"a path that begins the same is another":   {table: table, path: "/mnt/scratch2", want: []Entry{{"tmpfs", "shm"}}},
		"a path with a space is found":             {table: table, path: "/mnt/with space", want: []Entry{{"tmpfs", "shm"}}},
		"a path below a mount has none of its own": {table: table, path: "/mnt/scratch/a", want: []Entry{}},
		"an overlay of many layers hides no mount": {table: layers + table, path: "/mnt/scratch2", want: []Entry{{"tmpfs", "shm"}}},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(entriesAt(strings.NewReader(c.table), c.path)).To(Equal(c.want))
		})
	}
}

func TestATableThatIsNoTableIsAnError(t *testing.T) {
	_, err := entriesAt(strings.NewReader("27 1 nonsense\n"), "/")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("can't read the mounts")))
}

func TestAssess(t *testing.T) {
	ours := Entry{"fuse", "mfs#10.0.0.1:9421"}
	for name, c := range map[string]struct {
		entries []Entry
		change  func(m *spec.Mount)
		want    State
	}{
		"no mount is absent":                {want: Absent},
		"the filesystem itself is ours":     {entries: []Entry{ours}, want: Ours},
		"a subtype is ours":                 {entries: []Entry{{"fuse.mfs", ours.Source}}, want: Ours},
		"a block device by FUSE is foreign": {entries: []Entry{{"fuseblk", ours.Source}}, want: Foreign},
		"a program that serves the wanted type is ours": {
			entries: []Entry{{"fuse.examplefs", "examplefs_scratch"}}, change: func(m *spec.Mount) { m.FSType, m.Source = "examplefs", "examplefs_scratch" }, want: Ours,
		},
		"another type is foreign":                     {entries: []Entry{{"nfs4", ours.Source}}, want: Foreign},
		"the same type from another server is":        {entries: []Entry{{"fuse", "mfs#10.0.0.2:9421"}}, want: Another},
		"a port that only begins the same is another": {entries: []Entry{{"fuse", "mfs#10.0.0.1:94219"}}, want: Another},
		"a folder of the filesystem is ours":          {entries: []Entry{{"fuse", "mfs#10.0.0.1:9421/projects"}}, want: Ours},
		"ours below another is not ours":              {entries: []Entry{ours, {"tmpfs", "tmpfs"}}, want: Foreign},
		"ours on top of another is ours":              {entries: []Entry{{"tmpfs", "tmpfs"}, ours}, want: Ours},
		"no source in the spec takes any source": {
			entries: []Entry{{"fuse", "examplefs_nodev1"}}, change: func(m *spec.Mount) { m.Source = "" }, want: Ours,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := scratch
			if c.change != nil {
				c.change(&m)
			}
			NewWithT(t).Expect(Assess(c.entries, m)).To(Equal(c.want))
		})
	}
}

func TestDead(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Dead("fuse", fmt.Errorf("statfs: %w", syscall.ENOTCONN))).To(BeTrue())
	g.Expect(Dead("fuse.mfs", syscall.ECONNABORTED)).To(BeTrue())
	g.Expect(Dead("kfs", syscall.ESTALE)).To(BeTrue())
	g.Expect(Dead("kfs", syscall.ENOTCONN)).To(BeFalse(), "a server has given the client up, which comes back by itself")
	g.Expect(Dead("fuse", syscall.EIO)).To(BeFalse(), "the server is there and says so")
	g.Expect(Dead("fuse", nil)).To(BeFalse())
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		mount  spec.Mount
		reason string
	}{
		"a directory is not a mount":               {spec.Mount{Path: t.TempDir(), FSType: "fuse"}, "is not mounted"},
		"another type at the path is named":        {spec.Mount{Path: "/proc", FSType: "fuse"}, "/proc has another filesystem mounted on it (type proc"},
		"a relative path is refused":               {spec.Mount{Path: "mnt", FSType: "fuse"}, `"mnt" is not an absolute path`},
		"a path with a slash at its end is unlike": {spec.Mount{Path: "/proc/", FSType: "proc"}, "is not an absolute path without"},
		"an unknown type is refused":               {spec.Mount{Path: "/proc"}, "does not say the type"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Check(t.Context(), c.mount, time.Minute)).To(MatchError(ContainSubstring(c.reason)))
		})
	}
	t.Run("a mounted filesystem that answers is fine", func(t *testing.T) {
		NewWithT(t).Expect(Check(t.Context(), spec.Mount{Path: "/proc", FSType: "proc"}, time.Minute)).To(Succeed())
	})
}

func TestPrepare(t *testing.T) {
	none := func(string, bool) error { return syscall.ENOTTY }
	t.Run("a mount point is made closed and immutable", func(t *testing.T) {
		g, path := NewWithT(t), t.TempDir()+"/mnt/scratch"
		var flags []bool
		set := func(_ string, on bool) error { flags = append(flags, on); return nil }
		g.Expect(prepare(path, set)).To(BeTrue())
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode()).To(Equal(os.ModeDir))
		g.Expect(flags).To(Equal([]bool{false, true}), "the flag is off while the permissions change")
	})
	t.Run("a filesystem without the flag is reported", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(prepare(t.TempDir()+"/scratch", none)).To(BeFalse())
	})
	t.Run("a mount point with files is refused and left alone", func(t *testing.T) {
		g, path := NewWithT(t), t.TempDir()
		g.Expect(os.WriteFile(path+"/thesis.tex", nil, 0o600)).To(Succeed())
		_, err := prepare(path, none)
		g.Expect(err).To(MatchError(ContainSubstring("is not empty (thesis.tex, 1 in all)")))
		info, err := os.Stat(path)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).NotTo(BeZero())
	})
	t.Run("a symbolic link is refused, and what it leads to left alone", func(t *testing.T) {
		g, other := NewWithT(t), t.TempDir()
		link := t.TempDir() + "/scratch"
		g.Expect(os.Symlink(other, link)).To(Succeed())
		_, err := prepare(link, none)
		g.Expect(err).To(MatchError(ContainSubstring("is not a directory")))
		info, err := os.Stat(other)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(info.Mode().Perm()).NotTo(BeZero())
	})
	t.Run("a flag that can't be set for another reason is an error", func(t *testing.T) {
		g := NewWithT(t)
		_, err := prepare(t.TempDir()+"/scratch", func(string, bool) error { return syscall.EIO })
		g.Expect(err).To(MatchError(syscall.EIO))
	})
}
