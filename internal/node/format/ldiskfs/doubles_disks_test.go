//go:build disks

package ldiskfs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
)

// doubles is the directory with the doubles of Lustre's programs. On a machine with the real programs, for which LUSTRE_REAL is set, it is
// empty.
var doubles string

// genuine is true on a machine with Lustre.
var genuine = os.Getenv("LUSTRE_REAL") != ""

func TestMain(m *testing.M) {
	if genuine {
		os.Exit(m.Run())
	}
	os.Exit(func() int {
		var err error
		if doubles, err = os.MkdirTemp("", "lustre-doubles"); err != nil {
			panic(err)
		}
		defer os.RemoveAll(doubles)
		binary := filepath.Join(doubles, "lustre-double")
		build := exec.Command("go", "build", "-o", binary, "parallelfs.dev/operator/test/doubles/lustre/cmd/lustre-double")
		if output, err := build.CombinedOutput(); err != nil {
			panic(string(output))
		}
		for _, name := range []string{ldiskfs.Mkfs, ldiskfs.Tunefs} {
			if err := os.Symlink(binary, filepath.Join(doubles, name)); err != nil {
				panic(err)
			}
		}
		return m.Run()
	}())
}

// lab is a test with an image as a disk.
type lab struct {
	*testing.T
	directory, disk string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t, t.TempDir(), ""}
	l.disk = l.blank("disk")
	return l
}

func (l *lab) must(argv ...string) string {
	l.Helper()
	output, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	NewWithT(l).Expect(err).NotTo(HaveOccurred(), "%v: %s", argv, output)
	return strings.TrimSpace(string(output))
}

// blank makes an image of zeros, which serves as a disk of the real programs.
func (l *lab) blank(name string) string {
	l.Helper()
	path := filepath.Join(l.directory, name)
	NewWithT(l).Expect(os.RemoveAll(path)).To(Succeed())
	NewWithT(l).Expect(os.WriteFile(path, nil, 0o600)).To(Succeed())
	NewWithT(l).Expect(os.Truncate(path, 128<<20)).To(Succeed())
	if !genuine {
		return path
	}
	loop := l.must("losetup", "--find", "--show", path)
	l.Cleanup(func() { l.must("losetup", "--detach", loop) })
	return loop
}

// run runs a program of Lustre, and returns its exit code and its standard output.
func (l *lab) run(argv ...string) (int, string) {
	l.Helper()
	var stdout bytes.Buffer
	command := exec.Command(filepath.Join(doubles, argv[0]), argv[1:]...)
	command.Stdout, command.Stderr = &stdout, l.Output()
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		l.Fatal(err)
	}
	return command.ProcessState.ExitCode(), stdout.String()
}

func (l *lab) target(s ldiskfs.Service) ldiskfs.New {
	n := made(s)
	n.Device = l.disk
	return n
}

// made makes a target on the disk.
func (l *lab) made(s ldiskfs.Service) {
	l.Helper()
	code, said := l.run(l.target(s).Make()...)
	NewWithT(l).Expect(code).To(BeZero(), said)
}

func (l *lab) blkid(tag string) string {
	l.Helper()
	return l.must("blkid", "-p", "-o", "value", "-s", tag, l.disk)
}

// seen returns what the disk shows.
func (l *lab) seen() ldiskfs.Seen {
	l.Helper()
	found, err := ldiskfs.ParseReadBack(l.run(ldiskfs.Format{}.ReadBack(l.disk)...))
	NewWithT(l).Expect(err).NotTo(HaveOccurred())
	return ldiskfs.Seen{Type: l.blkid("TYPE"), UUID: l.blkid("UUID"), Label: l.blkid("LABEL"), Target: found}
}

func TestATargetIsMadeAndReadBackAndMayBeMounted(t *testing.T) {
	for name, s := range map[string]ldiskfs.Service{"an MGS": mgs, "MDT0000 with the MGS": mdt0, "an MDT": mdt1, "an OST": ost0, "an OST of two nodes": ost1} {
		t.Run(name, func(t *testing.T) {
			l, g := newLab(t), NewWithT(t)
			before := l.must("sha256sum", l.disk)
			planned, err := ldiskfs.ParseDryRun(l.run(l.target(s).DryRun()...))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(ldiskfs.Differences(s, mark, planned)).To(BeEmpty())
			g.Expect(l.must("sha256sum", l.disk)).To(Equal(before), "a dry run writes nothing")

			l.made(s)
			seen := l.seen()
			g.Expect(ldiskfs.Refusal(s, uuid, mark, seen)).To(BeEmpty())
			g.Expect(seen.UUID).To(Equal(uuid))
			g.Expect(seen.Label).To(Equal(s.Label(ldiskfs.FirstTime)))

			if len(s.ServiceNodes) > 0 {
				g.Expect(l.must("dumpe2fs", "-h", l.disk)).To(MatchRegexp(`features:.* mmp`), "two nodes can't mount it at once")
				return // e2label would wait for the other node
			}
			l.must("e2label", l.disk, s.Label(ldiskfs.Registered)) // its first mount writes this label too
			g.Expect(ldiskfs.Refusal(s, uuid, mark, l.seen())).To(BeEmpty())
		})
	}
}

func TestADiskThatWasChangedIsNotMounted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(l *lab)
		says   string
	}{
		"its mark": {func(l *lab) { l.run(ldiskfs.Tunefs, "--comment=mine", l.disk) }, `its mark is "mine"`},
		"its MGS": {func(l *lab) { l.run(ldiskfs.Tunefs, "--erase-params", "--mgsnode=10.0.0.9@tcp", l.disk) },
			`its MGS nodes are ["10.0.0.9@tcp"]`},
		"its nodes":      {func(l *lab) { l.run(ldiskfs.Tunefs, "--servicenode=10.0.0.9@tcp", l.disk) }, `its service nodes are ["10.0.0.9@tcp"]`},
		"its next mount": {func(l *lab) { l.run(ldiskfs.Tunefs, "--writeconf", l.disk) }, "its label pfs=OST0000 says that the next mount writes"},
		"its label":      {func(l *lab) { l.must("e2label", l.disk, "pfs:OST0001") }, "its label is pfs:OST0001, and that of the target is pfs:OST0000"},
		"its UUID":       {func(l *lab) { l.must("tune2fs", "-f", "-U", "00000000-0000-4000-8000-000000000001", l.disk) }, "has the UUID 00000000-0000-4000-8000-000000000001"},
		"what it is, to another target of the same UUID": {func(l *lab) { l.disk = l.blank("other"); l.made(ost1) }, `its index is "1", and it was given "0"`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			l.made(ost0)
			c.change(l)
			NewWithT(t).Expect(ldiskfs.Refusal(ost0, uuid, mark, l.seen())).To(ContainSubstring(c.says))
		})
	}
}

func TestADiskThatIsNoTargetIsReadAsNone(t *testing.T) {
	for name, change := range map[string]func(l *lab){
		"a blank disk":   func(*lab) {},
		"a plain ext4":   func(l *lab) { l.must("mke2fs", "-q", "-F", l.disk) },
		"another format": func(l *lab) { l.must("mkswap", l.disk) },
		"an mkfs that was cut off before the mark": func(l *lab) {
			l.must("mke2fs", "-q", "-F", "-L", ost0.Label(ldiskfs.FirstTime), "-U", uuid, l.disk)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			change(l)
			_, err := ldiskfs.ParseReadBack(l.run(ldiskfs.Format{}.ReadBack(l.disk)...))
			NewWithT(t).Expect(err).To(MatchError(ldiskfs.ErrNoTarget))
		})
	}
}

// Only a target is guarded by mkfs; everything else is guarded by the operator's own look alone.
func TestMkfsItselfGuardsATargetAndNothingElse(t *testing.T) {
	l, g := newLab(t), NewWithT(t)
	l.must("mke2fs", "-q", "-F", "-L", "somebodys", l.disk)
	l.made(ost0)
	before := l.must("sha256sum", l.disk)
	code, _ := l.run(l.target(ost1).Make()...)
	g.Expect(code).To(Equal(1))
	g.Expect(l.must("sha256sum", l.disk)).To(Equal(before))
}

func TestATargetGetsItsAssignedUUID(t *testing.T) {
	for _, given := range []string{
		"bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbbbb", "EEEEEEEE-EEEE-EEEE-EEEE-EEEEEEEEEEEE", "0a1b2c3d-baaa-4000-8000-b00000000000",
	} {
		l, g := newLab(t), NewWithT(t)
		n := l.target(ost0)
		n.UUID = given
		code, said := l.run(n.Make()...)
		g.Expect(code).To(BeZero(), said)
		g.Expect(l.blkid("UUID")).To(BeEquivalentTo(strings.ToLower(given)))
	}
}

func TestTheUsersOptionsReachTheFilesystem(t *testing.T) {
	l, g := newLab(t), NewWithT(t)
	n := l.target(ost0)
	n.Options = []v1alpha1.MkfsOption{"-i", "65536", "-I", "1024", "-E", "stride=16,stripe_width=64", "-O", "64bit"}
	g.Expect(ldiskfs.Format{}.RefusedOptions(n.Options)).To(BeEmpty())
	code, said := l.run(n.Make()...)
	g.Expect(code).To(BeZero(), said)
	g.Expect(l.must("dumpe2fs", "-h", l.disk)).To(And(MatchRegexp(`Inode size:\s+1024`), MatchRegexp(`RAID stride:\s+16`),
		MatchRegexp(`features:.*64bit.*large_dir`), MatchRegexp(`Filesystem UUID:\s+`+uuid)))
	g.Expect(ldiskfs.Refusal(ost0, uuid, mark, l.seen())).To(BeEmpty())
}

func TestTheLongestMarkIsKept(t *testing.T) {
	l, g := newLab(t), NewWithT(t)
	n := l.target(ost0)
	n.Mark = strings.Repeat("m", ldiskfs.MarkLength)
	g.Expect(n.Problems()).To(BeEmpty())
	code, said := l.run(n.Make()...)
	g.Expect(code).To(BeZero(), said)
	g.Expect(l.seen().Target.Mark).To(Equal(n.Mark))
}
