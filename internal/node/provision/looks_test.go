package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/plan"
)

// processes is a /proc of a node.
type processes struct {
	*WithT
	proc, disk string
	// mount is the ID of the mount of disk.
	mount int
}

const (
	onDisk    = "8:16"
	elsewhere = "8:32"
)

func newProcesses(t *testing.T) *processes {
	t.Helper()
	p := &processes{WithT: NewWithT(t), proc: t.TempDir(), disk: t.TempDir()}
	var err error
	p.mount, err = procfs.MountOf(p.disk)
	p.Expect(err).NotTo(HaveOccurred())
	p.add("self", "node", nil)
	p.Expect(os.Mkdir(filepath.Join(p.proc, "net"), 0o755)).To(Succeed())
	return p
}

// add makes a process in a namespace, with these links, and returns its directory.
func (p *processes) add(pid, namespace string, links map[string]string) string {
	dir := filepath.Join(p.proc, pid)
	p.Expect(os.MkdirAll(filepath.Join(dir, "ns"), 0o755)).To(Succeed())
	p.Expect(os.WriteFile(filepath.Join(dir, "comm"), []byte("p"+pid+"\n"), 0o600)).To(Succeed())
	if namespace != "" {
		p.Expect(os.Symlink("mnt:["+namespace+"]", filepath.Join(dir, "ns", "mnt"))).To(Succeed())
	}
	for name, to := range links {
		p.Expect(os.Symlink(to, filepath.Join(dir, name))).To(Succeed())
	}
	return dir
}

// mounts writes the mount table of a process: mount IDs and the numbers of their devices.
func (p *processes) mounts(dir string, devices ...string) {
	var table strings.Builder
	for i, device := range devices {
		id := p.mount
		if device != onDisk || i > 0 {
			id = 100000 + i
		}
		fmt.Fprintf(&table, "%d 1 %s / /mnt rw,relatime - ext4 /dev/missing rw\n", id, device)
	}
	p.Expect(os.WriteFile(filepath.Join(dir, "mountinfo"), []byte(table.String()), 0o600)).To(Succeed())
}

// open gives a process an open file on a mount.
func (p *processes) open(dir, descriptor, name string, mount int) {
	p.Expect(os.MkdirAll(filepath.Join(dir, "fd"), 0o755)).To(Succeed())
	p.Expect(os.MkdirAll(filepath.Join(dir, "fdinfo"), 0o755)).To(Succeed())
	p.Expect(os.Symlink(name, filepath.Join(dir, "fd", descriptor))).To(Succeed())
	p.Expect(os.WriteFile(filepath.Join(dir, "fdinfo", descriptor), fmt.Appendf(nil, "pos:\t0\nflags:\t0100002\nmnt_id:\t%d\n", mount), 0o600)).To(Succeed())
}

func (p *processes) users() []string { return Users(p.proc, 8, 16) }

func TestTheUsersOfAFilesystemAreTheProcessesThatKeepItBusy(t *testing.T) {
	for link, how := range map[string]string{"cwd": "its working directory", "root": "its root directory", "exe": "its program"} {
		p := newProcesses(t)
		p.mounts(p.add("7", "node", map[string]string{link: p.disk}), onDisk)
		p.mounts(p.add("8", "node", map[string]string{link: "/proc"}), onDisk)
		p.mounts(p.add("9", "node", map[string]string{link: p.disk + "/gone"}), onDisk)
		p.Expect(p.users()).To(Equal([]string{"p7 (process 7: " + how + ")"}))
	}

	p := newProcesses(t)
	dir := p.add("7", "node", nil)
	p.mounts(dir, onDisk)
	p.open(dir, "0", "socket:[1]", p.mount)
	p.open(dir, "1", "/elsewhere/file", p.mount+1)
	p.open(dir, "2", "/disk/file", p.mount)
	p.Expect(os.Symlink("/disk/unread", filepath.Join(dir, "fd", "1a"))).To(Succeed())
	p.Expect(p.users()).To(Equal([]string{"p7 (process 7: open /disk/file)"}), "of open files, those that are on it")

	p = newProcesses(t)
	p.mounts(p.add("7", "node", map[string]string{"cwd": p.disk}), elsewhere)
	p.Expect(p.users()).To(BeEmpty(), "the mount is known, and of another device")

	p = newProcesses(t)
	p.mounts(p.add(strconv.Itoa(os.Getpid()), "node", map[string]string{"cwd": p.disk}), onDisk)
	p.mounts(p.add("99999999", "node", map[string]string{"cwd": p.disk}), onDisk)
	p.Expect(p.users()).To(ConsistOf(HavePrefix("p99999999 ")), "all but this process")

	p = newProcesses(t)
	p.add("7", "", map[string]string{"cwd": p.disk})
	p.Expect(os.Remove(filepath.Join(p.proc, "7", "comm"))).To(Succeed())
	p.mounts(filepath.Join(p.proc, "7"), onDisk)
	p.Expect(p.users()).To(Equal([]string{"a process (process 7: its working directory)"}), "a process whose namespace and name are not shown")

	p.Expect(Users(filepath.Join(p.proc, "missing"), 8, 16)).To(ConsistOf(HavePrefix("unknown: can't read ")))
}

func TestADetachedMountIsKnownByItsDevice(t *testing.T) {
	p := newProcesses(t)
	device, _, err := procfs.Device(p.disk)
	p.Expect(err).NotTo(HaveOccurred())
	p.mounts(p.add("7", "node", map[string]string{"cwd": p.disk}), elsewhere, elsewhere)
	p.Expect(os.Remove(filepath.Join(p.proc, "7", "mountinfo"))).To(Succeed())
	major, minor := int(unix.Major(device)), int(unix.Minor(device))
	p.Expect(Users(p.proc, major, minor)).To(ConsistOf(HavePrefix("p7 ")))
	p.Expect(Users(p.proc, major, minor+1)).To(BeEmpty())
	p.Expect(filesystem{device: device}.has(-1, p.disk+"/gone")).To(BeFalse())
	p.Expect(filesystem{}.has(-1, p.disk+"/gone")).To(BeFalse())
}

func TestOfProcessesWithACopyOfTheMountTheFirstOfEachNamespaceIsNamed(t *testing.T) {
	p := newProcesses(t)
	for pid, c := range map[string]struct {
		namespace string
		mounts    []string
	}{
		"2": {"node", []string{onDisk}},
		"3": {"a", []string{elsewhere, onDisk, elsewhere}}, "4": {"a", []string{onDisk}},
		"5": {"b", []string{elsewhere, "9:16", "8:17"}},
		"6": {"c", []string{onDisk}}, "60": {"c", []string{elsewhere}},
		"8": {"", []string{onDisk}},
	} {
		p.mounts(p.add(pid, c.namespace, nil), c.mounts...)
	}
	p.Expect(p.users()).To(Equal([]string{"p3 (process 3: a copy of the mount)", "p6 (process 6: a copy of the mount)"}))

	p.Expect(os.Symlink(p.disk, filepath.Join(p.proc, "5", "cwd"))).To(Succeed())
	three := []string{"p5 (process 5: its working directory)", "p3 (process 3: a copy of the mount)", "p6 (process 6: a copy of the mount)"}
	p.Expect(p.users()).To(Equal(three))
	p.Expect(os.Symlink(p.disk, filepath.Join(p.proc, "60", "root"))).To(Succeed())
	p.Expect(os.Symlink(p.disk, filepath.Join(p.proc, "8", "root"))).To(Succeed())
	p.Expect(p.users()).To(Equal([]string{
		"p5 (process 5: its working directory)", "p60 (process 60: its root directory)", "p8 (process 8: its root directory)", "and 2 more",
	}))
}

func TestATargetIsReleasedOnlyByLooksThatAgreeWhileItsDiskIsHeld(t *testing.T) {
	held := func(path string, _ format.Guarded) (*os.File, string, error) {
		file, err := os.Open(path)
		return file, "", err
	}
	ext4 := func(changes ...func(*plan.Facts)) plan.Facts {
		return guardedDisk(append([]func(*plan.Facts){func(f *plan.Facts) { f.Signatures[0].Type = "ext4" }}, changes...)...)
	}
	gone := func(f *plan.Facts) { *f = plan.Facts{} }
	foreignUUID := func(f *plan.Facts) { f.Signatures[0].UUID = "x" }
	mounted := func(f *plan.Facts) { f.Mounts = []string{"/mnt"} }
	for name, c := range map[string]struct {
		looks []plan.Facts
		hold  func(string, format.Guarded) (*os.File, string, error)
		given func(p *Provisioner)
		why   string
		fails error
	}{
		"it is":                            {looks: []plan.Facts{ext4(), ext4()}, hold: held},
		"it is not there":                  {looks: []plan.Facts{ext4(gone)}, why: "is not there"},
		"it holds another filesystem":      {looks: []plan.Facts{ext4(foreignUUID)}, why: "does not hold the one filesystem"},
		"its file in /dev is gone":         {looks: []plan.Facts{ext4()}, given: func(p *Provisioner) { p.Dev += "/missing" }, why: "can't open"},
		"its disk is in use":               {looks: []plan.Facts{ext4(mounted)}, hold: func(string, format.Guarded) (*os.File, string, error) { return nil, "it is open", nil }, why: "it is open; "},
		"its disk can't be held":           {looks: []plan.Facts{ext4()}, hold: func(string, format.Guarded) (*os.File, string, error) { return nil, "", errIO }, fails: errIO},
		"it leaves while it is held":       {looks: []plan.Facts{ext4(), ext4(gone)}, hold: held, why: "is not there"},
		"it is overwritten while it is":    {looks: []plan.Facts{ext4(), ext4(foreignUUID)}, hold: held, why: "does not hold the one filesystem"},
		"the second look fails":            {looks: []plan.Facts{ext4()}, hold: held, fails: errIO},
		"a look hangs, and nothing is let": {looks: []plan.Facts{ext4()}, hold: held, given: func(p *Provisioner) { hang(p, "sda") }, fails: errHung},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				target, _ := servedTarget(t)
				looks := c.looks
				p := &Provisioner{Dev: t.TempDir(), Claims: &Claims{}, Path: func(string, string, string) string { return "/missing" },
					Look: func(context.Context, v1alpha1.DeviceIdentity) (plan.Facts, error) {
						if len(looks) == 0 {
							return plan.Facts{}, errIO
						}
						f := looks[0]
						looks = looks[1:]
						return f, nil
					}}
				g.Expect(os.WriteFile(filepath.Join(p.Dev, "sda"), nil, 0o600)).To(Succeed())
				if c.given != nil {
					c.given(p)
				}
				unmounted, why, err := p.proveUnmounted(t.Context(), target, c.hold)
				if c.fails != nil {
					g.Expect(err).To(MatchError(c.fails))
				} else {
					g.Expect(err).NotTo(HaveOccurred())
				}
				g.Expect(why).To(ContainSubstring(c.why))
				g.Expect(unmounted != nil).To(Equal(c.why == "" && c.fails == nil))
				device, err := os.Open(filepath.Join(p.Dev, "sda"))
				if err != nil {
					return
				}
				defer device.Close()
				free := func() error { return unix.Flock(int(device.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
				if unmounted != nil {
					g.Expect(free()).To(MatchError(unix.EWOULDBLOCK), "the disk is locked")
					g.Expect(p.Claims.of("sda").working).To(Equal(1))
					g.Expect(unmounted.Close()).To(Succeed())
				}
				g.Expect(free()).To(Succeed(), "the lock ends with it")
				g.Expect(p.Claims.of("sda").working).To(BeZero(), "it may be looked at again")
			})
		})
	}
}

// hang makes a look at a device that never ends.
func hang(p *Provisioner, name string) { p.Claims.of(name).probing.Lock() }

func TestATargetIsTakenUpOnlyFromADiskThatIsReleased(t *testing.T) {
	w := newWorld(t)
	target, _ := servedTarget(t)
	target.Spec.Device = v1alpha1.DeviceIdentity{ID: "wwn-data", WWN: "data", SizeBytes: worldSize}
	why, err := w.agent.TakeUp(t.Context(), target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(why).To(ContainSubstring("does not hold the one filesystem"))
	w.Expect(w.agent.mountpoint(target)).To(BeADirectory())
	w.Expect(mounts.Remove(w.agent.mountpoint(target))).To(Succeed())
	w.Expect(os.WriteFile(w.agent.mountpoint(target), nil, 0o600)).To(Succeed())
	_, err = w.agent.TakeUp(t.Context(), target)
	w.Expect(err).To(MatchError(ContainSubstring("is not a directory")))
	w.Expect(os.Remove(w.agent.mountpoint(target))).To(Succeed())
}

func TestTheStatusHasWhatIsKnownOfAMountedTargetAndKeepsTheRest(t *testing.T) {
	first := &v1alpha1.FormerTarget{Target: "first"}
	second := &v1alpha1.FormerTarget{Target: "second"}
	mounted := plan.Mounted{Mounted: true, KernelName: "sda"}
	ready := plan.Outcome{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonProven}
	for name, c := range map[string]struct {
		change    func(*v1alpha1.StorageTarget)
		look      plan.Look
		decision  func(*plan.Decision)
		there     bool
		read      bool
		formerIs  *v1alpha1.FormerTarget
		registers string
		reason    string
	}{
		"it is mounted and proven": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true, read: true, registers: "1-2-3"},
		"its queue is refused": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true, read: true, registers: "1-2-3",
			change: func(t *v1alpha1.StorageTarget) { t.Spec.Queue = &v1alpha1.QueueSpec{Scheduler: "x"} }, reason: v1alpha1.ReasonQueueRefused},
		"it is not proven": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true,
			decision: func(d *plan.Decision) { d.Ready.Status = metav1.ConditionFalse }},
		"it is not mounted":          {look: plan.Look{Device: guardedDisk(), Mount: plan.Mounted{KernelName: "sda"}}},
		"another disk is mounted":    {look: plan.Look{Device: guardedDisk(), Mount: plan.Mounted{Mounted: true, KernelName: "sdb"}}},
		"its disk is not there":      {look: plan.Look{Mount: plan.Mounted{Mounted: true}}},
		"nothing of it is recorded":  {look: plan.Look{Device: guardedDisk(), Mount: mounted}, decision: func(d *plan.Decision) { d.Provisioned = nil }},
		"its former owner is kept":   {change: func(t *v1alpha1.StorageTarget) { t.Status.FormerOwner = first }, formerIs: first},
		"a new former owner is used": {change: func(t *v1alpha1.StorageTarget) { t.Status.FormerOwner = first }, decision: func(d *plan.Decision) { d.FormerOwner = second }, formerIs: second},
		"a target that is not made has no former owner": {change: func(t *v1alpha1.StorageTarget) { t.Status.FormerOwner = first },
			decision: func(d *plan.Decision) { d.Provisioned = nil }},
		"a metadata target registers with nothing": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true, read: true,
			change: func(t *v1alpha1.StorageTarget) { t.Spec.Role = v1alpha1.RoleMetadata }},
		"this cluster's own disk has no foreign record": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true, registers: "1-2-3",
			decision: func(d *plan.Decision) { d.Provisioned.PlanHash = "sha256:1" }},
		"a record is read once": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true, registers: "1-2-3",
			change: func(t *v1alpha1.StorageTarget) { t.Status.Record = &v1alpha1.TargetRecord{} }},
		"a record that could not be used is read again": {look: plan.Look{Device: guardedDisk(), Mount: mounted}, there: true, read: true, registers: "1-2-3",
			change: func(t *v1alpha1.StorageTarget) { t.Status.Record = &v1alpha1.TargetRecord{Message: "it was damaged"} }},
	} {
		t.Run(name, func(t *testing.T) {
			g, top := NewWithT(t), t.TempDir()
			target := guarded(func(t *v1alpha1.StorageTarget) {
				t.Spec.Role, t.Status.CapacityBytes, t.Status.Capacity = v1alpha1.RoleStorage, 7, "7B"
			})
			if c.change != nil {
				c.change(target)
			}
			g.Expect(os.MkdirAll(filepath.Dir(filepath.Join(top, registrationFile)), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(top, registrationFile), []byte("1-2-3\n"), 0o600)).To(Succeed())
			d := plan.Decision{Ready: ready, Provisioned: target.Status.Provisioned.DeepCopy(), Progress: plan.Settled}
			if c.decision != nil {
				c.decision(&d)
			}
			p := &Provisioner{Path: func(string, string, string) string { return top }, Sys: t.TempDir(), Now: time.Now}
			s := p.status(target, c.look, d)
			g.Expect(s.MountPath != "").To(Equal(c.there))
			if c.there {
				size, err := capacity(top)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(s.CapacityBytes).To(Equal(size))
			} else {
				g.Expect(s.CapacityBytes).To(BeEquivalentTo(7), "it keeps its former size")
			}
			g.Expect(s.Queue != nil).To(Equal(c.there && d.Ready.Status == metav1.ConditionTrue))
			g.Expect(s.Record != nil && s.Record != target.Status.Record).To(Equal(c.read))
			g.Expect(s.FormerOwner).To(Equal(c.formerIs))
			g.Expect(s.Registration).To(Equal(c.registers))
			if c.reason != "" {
				g.Expect(s.Conditions[0].Reason).To(Equal(c.reason))
			} else {
				g.Expect(s.Conditions[0].Reason).To(Equal(v1alpha1.ReasonProven))
			}
		})
	}
	_, err := capacity(filepath.Join(t.TempDir(), "missing"))
	NewWithT(t).Expect(err).To(HaveOccurred())
	var before unix.Statfs_t
	NewWithT(t).Expect(unix.Statfs("/", &before)).To(Succeed())
	NewWithT(t).Expect(capacity("/")).To(BeEquivalentTo(int64(before.Blocks) * before.Bsize))
}

func TestAConditionKeepsItsTimeWhileItsStatusStays(t *testing.T) {
	g := NewWithT(t)
	began, now := metav1.NewTime(time.Unix(100, 0)), time.Unix(200, 0)
	target := guarded(func(t *v1alpha1.StorageTarget) {
		t.Generation = 3
		t.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: began},
			{Type: v1alpha1.ConditionReleased, Status: metav1.ConditionTrue, LastTransitionTime: began},
		}
	})
	p := &Provisioner{Now: func() time.Time { return now }}
	no := plan.Outcome{Status: metav1.ConditionFalse, Reason: "No"}
	since := map[string]int64{}
	for _, c := range p.conditions(target, plan.Decision{Progress: plan.Stalled, Released: &no, Destroyed: &no}, no) {
		since[c.Type] = c.LastTransitionTime.Unix()
		g.Expect(c.ObservedGeneration).To(BeEquivalentTo(3))
	}
	g.Expect(since).To(Equal(map[string]int64{
		v1alpha1.ConditionReady: 100, v1alpha1.ConditionStalled: 200, v1alpha1.ConditionReleased: 200, v1alpha1.ConditionDestroyed: 200,
	}))
	var kinds []string
	for _, c := range p.conditions(target, plan.Decision{Progress: plan.Reconciling}, no) {
		kinds = append(kinds, c.Type)
	}
	g.Expect(kinds).To(Equal([]string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling}))
	g.Expect(p.conditions(target, plan.Decision{Progress: plan.Settled}, no)).To(HaveLen(1))
}

func TestASettingThatTheKernelDoesNotTakeIsASentenceWithWhatItOffers(t *testing.T) {
	g := NewWithT(t)
	sys := queues(t)
	n := func(v int32) *int32 { return &v }
	file := func(disk, name string) string { return filepath.Join(sys, "class/block", disk, "queue", name) }
	for _, name := range []string{"max_sectors_kb", "nr_requests"} {
		// Writes to this file are lost.
		g.Expect(os.Remove(file("sda", name))).To(Succeed())
		g.Expect(os.Symlink("/dev/null", file("sda", name))).To(Succeed())
	}
	// This file can only be read.
	g.Expect(os.Remove(file("sda", "scheduler"))).To(Succeed())
	g.Expect(os.Symlink("/proc/sys/kernel/ostype", file("sda", "scheduler"))).To(Succeed())
	status, refused := ApplyQueue(sys, "sda", &v1alpha1.QueueSpec{Scheduler: "bfq", MaxSectorsKB: n(2048), Requests: n(64), ReadAheadKB: n(128)})
	g.Expect(refused).To(HaveExactElements(
		And(HavePrefix("the kernel does not take scheduler=bfq for sda: "), HaveSuffix("; it stays Linux; it offers Linux")),
		Equal("the kernel does not take nr_requests=64 for sda: it made it "),
		Equal("the kernel does not take max_sectors_kb=2048 for sda: it made it ; the device takes at most 1024"),
	))
	g.Expect(*status).To(Equal(v1alpha1.QueueStatus{Scheduler: "Linux", ReadAheadKB: 128}), "what can't be read is left out")

	g.Expect(os.Remove(file("sda", "max_hw_sectors_kb"))).To(Succeed())
	g.Expect(os.Remove(file("sda", "scheduler"))).To(Succeed())
	status, refused = ApplyQueue(sys, "sda", &v1alpha1.QueueSpec{MaxSectorsKB: n(2048)})
	g.Expect(refused).To(Equal([]string{"the kernel does not take max_sectors_kb=2048 for sda: it made it "}))
	g.Expect(status.Scheduler).To(BeEmpty())
	g.Expect(setting{file: "scheduler"}.choices(sys, "sda")).To(BeEmpty())

	_, refused = ApplyQueue(sys, "sdb", nil)
	g.Expect(refused).To(BeEmpty(), "nothing is asked for")
	g.Expect(os.WriteFile(file("sdb", "scheduler"), []byte("none [mq-deadline] broken["), 0o600)).To(Succeed())
	status, _ = ApplyQueue(sys, "sdb", nil)
	g.Expect(status.Scheduler).To(Equal("mq-deadline"))
	g.Expect(os.WriteFile(file("sdb", "scheduler"), []byte("broken[x\n"), 0o600)).To(Succeed())
	status, _ = ApplyQueue(sys, "sdb", nil)
	g.Expect(status.Scheduler).To(Equal("broken[x"))
}

func TestTheDisksBelowADeviceAreSearchedInEightLayers(t *testing.T) {
	g, sys := NewWithT(t), t.TempDir()
	block := filepath.Join(sys, "class", "block")
	for i := range 10 {
		g.Expect(os.MkdirAll(filepath.Join(block, fmt.Sprintf("dm-%d", i), "slaves", fmt.Sprintf("dm-%d", i+1)), 0o755)).To(Succeed())
	}
	g.Expect(disksBelow(sys, "dm-0")).To(Equal([]string{"dm-8"}))
	g.Expect(disksBelow(sys, "dm-3")).To(Equal([]string{"dm-10"}))
	g.Expect(os.WriteFile(filepath.Join(block, "dm-10"), nil, 0o600)).To(Succeed())
	_, err := disksBelow(sys, "dm-9")
	g.Expect(err).To(MatchError(unix.ENOTDIR))
	_, refused := ApplyQueue(sys, "dm-9", nil)
	g.Expect(refused).To(ConsistOf(HavePrefix("can't find the disks below dm-9: ")))
	g.Expect(os.MkdirAll(filepath.Join(block, "part", "partition"), 0o755)).To(Succeed())
	g.Expect(os.Symlink("part", filepath.Join(block, "link"))).To(Succeed())
	g.Expect(diskOf(sys, "link")).To(Equal("block"), "the disk is the directory above the partition")
}

func TestAnErrorQuotesWhatTheProgramHasSaid(t *testing.T) {
	g := NewWithT(t)
	g.Expect(said(" an\nerror \n", "output")).To(Equal("an error"))
	g.Expect(said(" \n", "the\noutput\n")).To(Equal("the output"))
	exact := strings.Repeat("x", 2*quoted)
	g.Expect(said(exact, "")).To(Equal(exact))
	g.Expect(said(exact+"y", "")).To(Equal(exact[:quoted] + " … " + exact[1:quoted] + "y"))
	g.Expect((&RunError{Argv: []string{"a", "b"}, Err: errIO}).Error()).To(Equal("a b: input/output error"))
	g.Expect((&RunError{Argv: []string{"a"}, Err: errIO, Said: "why"}).Error()).To(Equal("a: input/output error: why"))
	_, err := Run(t.Context(), nil)
	g.Expect(err).To(MatchError("there is no program to run"))
	_, err = RunOnNode(t.Context(), []string{"no-such-program-of-a-node"})
	g.Expect(err).To(HaveOccurred())
	out, err := Run(t.Context(), []string{"sh", "-c", "echo out; echo $LC_ALL"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(out)).To(Equal("out\nC\n"))
}

func TestTheKernelsOwnWordsAreInTheErrorOfAMount(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"its errors":          {[]string{"e ext4: bad option\n", "i it is said too\n", "e and bad value "}, "ext4: bad option; and bad value (input/output error)"},
		"no error":            {[]string{"w a warning\n", "strange", "extra words"}, "input/output error"},
		"nothing":             {nil, "input/output error"},
		"nothing was refused": {[]string{"e no"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			// A packet is read as a whole, as a line of the kernel's is.
			ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
			g.Expect(err).NotTo(HaveOccurred())
			for _, line := range c.lines {
				_, err := unix.Write(ends[1], []byte(line))
				g.Expect(err).NotTo(HaveOccurred())
			}
			g.Expect(unix.Close(ends[1])).To(Succeed())
			s := &superblock{ends[0]}
			defer s.close()
			if c.want == "" {
				g.Expect(s.explain(nil)).To(Succeed())
				return
			}
			explained := s.explain(errIO)
			g.Expect(explained).To(MatchError(c.want))
			g.Expect(errors.Is(explained, errIO)).To(BeTrue())
		})
	}
	g := NewWithT(t)
	g.Expect((&superblock{-1}).explain(errIO)).To(Equal(errIO), "a descriptor that can't be read")
	g.Expect(parameter{"ro", ""}.String()).To(Equal("ro"))
	g.Expect(parameter{"data", "x"}.String()).To(Equal("data=x"))
}

func TestWhatIsMountedAtAMountpointIsDescribedAndNotChanged(t *testing.T) {
	served, _ := servedTarget(t)
	// Filesystems in memory, of which each machine has some, and which are no targets.
	for _, path := range []string{"/proc", "/sys", "/dev", "/dev/shm"} {
		g := NewWithT(t)
		there, err := mountsAt(path)
		g.Expect(err).NotTo(HaveOccurred())
		if len(there) == 0 {
			continue
		}
		p := &Provisioner{Path: func(string, string, string) string { return path }, Sys: t.TempDir()}
		m, err := p.mounted(guarded())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Mounted).To(BeTrue())
		g.Expect(m.KernelName).NotTo(BeEmpty())
		g.Expect(m.Marker).To(BeNil())
		g.Expect(m.MarkerError).To(BeEmpty(), "it has none")
		stacked := ContainSubstring(fmt.Sprintf("%d filesystems are mounted on each other at %s", len(there), path))
		switch {
		case len(there) > 1:
			g.Expect(m.Problem).To(stacked)
		case there[0].Root != "/":
			g.Expect(m.Problem).NotTo(BeEmpty())
		case m.UUID == "":
			g.Expect(m.Problem).To(ContainSubstring("does not say the UUID of what is mounted at " + path))
		default:
			g.Expect(m.Problem).To(BeEmpty())
		}
		m, err = p.mounted(served)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(m.Problem).To(Or(stacked, ContainSubstring("and a target of ldiskfs is mounted as")))
		_, why, err := p.proveUnmounted(t.Context(), served, nil)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(why).To(Equal(m.Problem), "what is not the target's stays mounted")
	}
}
