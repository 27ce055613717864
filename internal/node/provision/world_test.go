package provision

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/plan"
)

// world is a node with disks that are files, and programs that write to them. A disk begins with a line that says what it holds, and is
// blank if all of it is zero. Nothing can be mounted, so that each way to a target ends at the mount.
type world struct {
	*WithT
	dir   string
	agent *Provisioner
	// ran has the commands that write to disks, in their order.
	ran []string
	// failing makes the program fail whose command begins with it, after it has written leaves to disks.
	failing string
	leaves  map[string]string
	// busy keeps disks from being opened exclusively. lost makes a disk one that is not found.
	busy, lost bool
	// recorded has the states that were written, in their order.
	recorded []v1alpha1.StorageTargetStatus
	// unrecorded is why nothing can be recorded. end asks the process to end.
	unrecorded error
	end        func()
}

var errIO = errors.New("input/output error")

const (
	worldSize  = 64 << 10
	worldUUID  = "22222222-2222-4333-8444-555555555555"
	foreign    = "TYPE=xfs UUID=99999999-2222-4333-8444-555555555555 LABEL=backup"
	ambivalent = "TYPE=(ambivalent) UUID= LABEL="
)

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{WithT: NewWithT(t)}
	// A plan names its devices in /dev, and these are files there.
	dir, err := os.MkdirTemp("/dev/shm", fmt.Sprintf("parallelfs-test-%d-", os.Getpid())) //nolint:usetesting // t.TempDir is elsewhere
	w.Expect(err).NotTo(HaveOccurred())
	w.dir = dir
	mountpoint := filepath.Join(t.TempDir(), "target")
	t.Cleanup(func() {
		w.Expect(os.RemoveAll(dir)).To(Succeed())
		w.Expect(mounts.Remove(mountpoint)).To(Succeed())
	})
	for _, name := range []string{"data", "log", "other"} {
		w.put(name, "")
	}
	w.agent = &Provisioner{
		Look: w.look, Claims: &Claims{}, Run: w.run, Check: func(string, []string) plan.Kernel { return plan.Kernel{} },
		Path: func(string, string, string) string { return mountpoint }, Dev: "/dev", Sys: t.TempDir(), Proc: t.TempDir(),
		Now: func() time.Time { return time.Unix(9, 0) }, NewUUID: func() string { return worldUUID },
	}
	return w
}

// kernelName is what the kernel calls a disk in a directory of /dev.
func (w *world) kernelName(disk string) string { return "shm!" + filepath.Base(w.dir) + "!" + disk }

func (w *world) path(disk string) string { return filepath.Join(w.dir, disk) }

// put makes a disk that holds something, with data behind it; nothing makes it blank.
func (w *world) put(disk, holds string) {
	content := make([]byte, worldSize)
	if holds != "" {
		copy(content, holds+"\n")
		copy(content[worldSize/2:], "data of "+holds)
	}
	w.Expect(os.WriteFile(w.path(disk), content, 0o600)).To(Succeed())
}

// content is what a disk holds, with a dot for each byte that is zero.
func (w *world) content(disk string) string {
	content, err := os.ReadFile(w.path(disk))
	w.Expect(err).NotTo(HaveOccurred())
	return strings.ReplaceAll(string(content), "\x00", ".")
}

func (w *world) blank(disk string) bool { return strings.Trim(w.content(disk), ".") == "" }

func field(line, key string) string {
	_, rest, _ := strings.Cut(line, key+"=")
	value, _, _ := strings.Cut(rest, " ")
	return value
}

// facts is a look at a disk.
func (w *world) facts(disk string) plan.Facts {
	f := plan.Facts{Found: true, BlockDevice: v1alpha1.BlockDevice{
		KernelName: w.kernelName(disk), Type: "disk", IDs: []string{"wwn-" + disk}, WWN: disk, SizeBytes: worldSize,
	}}
	switch line, _, _ := strings.Cut(w.content(disk), "\n"); {
	case strings.HasPrefix(line, "TYPE="):
		f.Signatures = []v1alpha1.Signature{{
			Device: f.KernelName, Type: strings.Trim(field(line, "TYPE"), "()"), UUID: field(line, "UUID"), Label: field(line, "LABEL"),
		}}
	case !w.blank(disk):
		f.Unknown = "0x0 (checksum 1)"
	}
	if w.busy {
		f.Busy = "somebody has opened it"
	}
	return f
}

func (w *world) look(_ context.Context, want v1alpha1.DeviceIdentity) (plan.Facts, error) {
	if w.lost {
		return plan.Facts{}, nil
	}
	return w.facts(want.WWN), nil
}

// run is every program of the node.
func (w *world) run(_ context.Context, argv []string, _ ...*os.File) ([]byte, error) {
	device := argv[len(argv)-1]
	disk := filepath.Base(device)
	w.Expect(filepath.Dir(device)).To(Equal(w.dir))
	if argv[0] != "blkid" {
		w.ran = append(w.ran, argv[0]+" "+disk)
	}
	if w.failing != "" && strings.HasPrefix(strings.Join(argv, " "), w.failing) {
		for on, holds := range w.leaves {
			w.put(on, holds)
		}
		return nil, errIO
	}
	option := func(name string) string { return argv[slices.Index(argv, name)+1] }
	switch argv[0] {
	case "wipefs":
		content, err := os.ReadFile(w.path(disk))
		w.Expect(err).NotTo(HaveOccurred())
		clear(content[:worldSize/4])
		w.Expect(os.WriteFile(w.path(disk), content, 0o600)).To(Succeed())
	case "mkfs.ext4":
		w.put(disk, fmt.Sprintf("TYPE=ext4 UUID=%s LABEL=%s", option("-U"), option("-L")))
	case "blkid":
		line, _, _ := strings.Cut(w.content(disk), "\n")
		return []byte(strings.ReplaceAll(line, " ", "\n") + "\n"), nil
	default:
		w.Expect(argv).To(BeEmpty(), "no other program runs")
	}
	return nil, nil
}

// target is a target on the disk data that is not made yet.
func (w *world) target(changes ...func(*v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	t := guarded(append([]func(*v1alpha1.StorageTarget){notMade}, changes...)...)
	t.Spec.Device = v1alpha1.DeviceIdentity{ID: "wwn-data", WWN: "data", SizeBytes: worldSize}
	if t.Spec.FormatPolicy == "" {
		t.Spec.FormatPolicy = v1alpha1.FormatIfBlank
	}
	return t
}

func (w *world) record(_ context.Context, t *v1alpha1.StorageTarget, status v1alpha1.StorageTargetStatus) error {
	if w.unrecorded != nil {
		return w.unrecorded
	}
	w.recorded = append(w.recorded, status)
	t.Status = status
	return nil
}

// pass is a pass, and the message of the condition Ready afterwards.
func (w *world) pass(t *testing.T, target *v1alpha1.StorageTarget) (ready string, err error) {
	t.Helper()
	err = w.agent.Pass(t.Context(), target, w.record)
	for _, c := range target.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			ready = c.Reason + ": " + c.Message
		}
	}
	return ready, err
}

func approved(t *v1alpha1.StorageTarget) { t.Spec.FormatPolicy = v1alpha1.FormatApproved }

func TestABlankDiskIsMadeATargetAndWhatIsOnAnotherStays(t *testing.T) {
	w := newWorld(t)
	w.put("other", foreign)
	target := w.target()
	ready, err := w.pass(t, target)
	w.Expect(err).To(MatchError(MatchRegexp("step Mount: .*can't (mount|ask the kernel for) (the )?ext4")), "no file can be mounted")
	w.Expect(w.ran).To(Equal([]string{"mkfs.ext4 data"}))
	w.Expect(w.recorded[0].Provisioned).NotTo(BeNil(), "the intent is recorded before anything is written")
	w.Expect(w.recorded[0].Conditions[0].Message).To(HaveSuffix("is being carried out"))
	w.Expect(w.content("data")).To(HavePrefix("TYPE=ext4 UUID=" + worldUUID + " LABEL=" + target.Status.Provisioned.Label + "\n"))
	w.Expect(ready).To(HavePrefix("ProvisioningFailed: step Mount failed: "))
	w.Expect(w.content("other")).To(HavePrefix(foreign))

	before := w.content("data")
	w.ran = nil
	_, _ = w.pass(t, target)
	w.Expect(w.ran).To(BeEmpty(), "a filesystem that was made is not made again")
	w.Expect(w.content("data")).To(Equal(before))
}

func TestADiskIsWipedOnlyByTheApprovalOfWhatIsOnIt(t *testing.T) {
	w := newWorld(t)
	w.put("data", foreign)
	target := w.target(approved)
	ready, err := w.pass(t, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(ready).To(HavePrefix("AwaitingApproval: "))
	target.Spec.ApprovedPlan = target.Status.Plan.Hash

	w.put("data", strings.Replace(foreign, "backup", "another", 1))
	ready, err = w.pass(t, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(ready).To(HavePrefix("ApprovalRefused: "))
	w.Expect(w.ran).To(BeEmpty())
	w.Expect(w.content("data")).To(ContainSubstring("another"))

	w.put("data", foreign)
	_, err = w.pass(t, target)
	w.Expect(err).To(MatchError(ContainSubstring("step Mount: ")))
	w.Expect(w.ran).To(Equal([]string{"wipefs data", "mkfs.ext4 data"}))
	w.Expect(w.content("data")).NotTo(ContainSubstring("backup"))
}

func TestWhatAFailedMkfsLeavesIsClearedUnlessItMayBeSomebodyElses(t *testing.T) {
	own := "TYPE=ext4 UUID=" + worldUUID + " LABEL=pfs-x"
	for name, c := range map[string]struct {
		leaves string
		stays  bool
	}{
		"nothing":                             {"", false},
		"its own filesystem":                  {own, false},
		"data without a signature":            {"half of a superblock", false},
		"a filesystem of another UUID":        {foreign, true},
		"its own and another one":             {strings.Replace(ambivalent, "UUID=", "UUID="+worldUUID, 1), true},
		"a filesystem without a UUID":         {"TYPE=swap UUID= LABEL=", true},
		"the marked filesystem of its target": {own, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.failing, w.leaves = "mkfs.ext4", map[string]string{"data": c.leaves}
			ready, err := w.pass(t, w.target())
			w.Expect(err).To(MatchError(ContainSubstring("step MakeFileSystem: input/output error")))
			w.Expect(ready).To(HavePrefix("ProvisioningFailed: step MakeFileSystem failed: "))
			w.Expect(w.blank("data")).To(Equal(!c.stays), w.content("data")[:80])
		})
	}
	t.Run("a disk that is in use by then", func(t *testing.T) {
		w := newWorld(t)
		w.failing, w.leaves = "mkfs.ext4", map[string]string{"data": own}
		run := w.agent.Run
		w.agent.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
			out, err := run(ctx, argv, keep...)
			w.busy = w.busy || err != nil
			return out, err
		}
		_, err := w.pass(t, w.target())
		w.Expect(err).To(MatchError(errIO))
		w.Expect(w.content("data")).To(HavePrefix(own))
	})
	t.Run("a disk that can't be cleared", func(t *testing.T) {
		w := newWorld(t)
		w.failing, w.leaves = "", nil
		run := w.agent.Run
		w.agent.Run = func(ctx context.Context, argv []string, keep ...*os.File) ([]byte, error) {
			if argv[0] == "mkfs.ext4" {
				w.put("data", own)
				return nil, errors.New("mkfs broke")
			}
			if argv[0] == "wipefs" {
				return nil, errors.New("wipefs broke")
			}
			return run(ctx, argv, keep...)
		}
		_, err := w.pass(t, w.target())
		w.Expect(err).To(MatchError(And(ContainSubstring("mkfs broke"), ContainSubstring("wipefs broke"))))
		w.Expect(w.content("data")).To(HavePrefix(own), "a disk that can't be wiped is not zeroed")
	})
}

// Somebody formats disks at any moment before the agent has its lock, and programs fail. What was somebody's stays, whatever happens.
func TestNoSequenceOfPassesClearsWhatWasSomebodyElses(t *testing.T) {
	const worlds = 100
	for seed := range uint64(worlds) {
		w, random := newWorld(t), rand.New(rand.NewPCG(seed, 44))
		changes := []func(*v1alpha1.StorageTarget){func(*v1alpha1.StorageTarget) {}, approved}
		target := w.target(changes[random.IntN(2)])
		w.put("other", foreign)
		if random.IntN(2) == 0 {
			w.put("data", strings.Replace(foreign, "backup", "first", 1))
		}
		approve := random.IntN(2) == 0
		somebody := false
		act := func() {
			if !somebody && random.IntN(6) == 0 {
				somebody = true
				w.put("data", []string{foreign, "a database", ambivalent}[random.IntN(3)])
			}
		}
		w.agent.Hook = func(step string, done bool) error {
			if step == string(plan.Record) || step == "Lock" && !done {
				act()
			}
			if random.IntN(12) == 0 {
				return errors.New("killed")
			}
			return nil
		}
		if random.IntN(3) == 0 {
			w.failing, w.leaves = []string{"mkfs.ext4", "wipefs"}[random.IntN(2)], map[string]string{"data": "half of a filesystem"}
		}
		for range 4 {
			_, _ = w.pass(t, target)
			if approve && target.Status.Plan != nil && !somebody {
				target.Spec.ApprovedPlan = target.Status.Plan.Hash
			}
			if w.failing != "" && random.IntN(2) == 0 {
				w.failing = ""
			}
			before := somebody
			act()
			if somebody && !before {
				w.ran = nil
			}
		}
		w.Expect(w.content("other")).To(HavePrefix(foreign), "world %d", seed)
		w.Expect(w.blank("log")).To(BeTrue(), "world %d", seed)
		if somebody {
			w.Expect(w.blank("data")).To(BeFalse(), "world %d", seed)
			w.Expect(w.content("data")).NotTo(ContainSubstring(worldUUID), "world %d: it is not made over somebody's data", seed)
			w.Expect(w.content("data")[worldSize/2:]).To(HavePrefix("data of "), "world %d: nothing of it is zeroed", seed)
		}
	}
}

func TestNothingIsWrittenToADiskThatChangesBeforeItsLockOrIsNotRecorded(t *testing.T) {
	before := func(step string, do func(w *world)) func(w *world) {
		return func(w *world) {
			w.agent.Hook = func(now string, done bool) error {
				if now == step && !done {
					do(w)
				}
				return nil
			}
		}
	}
	for name, c := range map[string]struct {
		given func(w *world)
		says  string
		ready string
	}{
		"somebody formats it":       {before("Lock", func(w *world) { w.put("data", foreign) }), "", "DeviceRefused: "},
		"somebody opens it":         {before("Lock", func(w *world) { w.busy = true }), "", "DeviceRefused: "},
		"it leaves":                 {before("Lock", func(w *world) { w.lost = true }), "", "DeviceRefused: "},
		"its file in /dev is gone":  {before("Lock", func(w *world) { w.agent.Dev += "/missing" }), "step Lock: can't open", "ProvisioningFailed: step Lock failed"},
		"somebody has opened it":    {func(w *world) { w.busy = true }, "", "DeviceRefused: "},
		"the process is to end":     {before("Record", func(w *world) { w.end() }), "context canceled", ""},
		"nothing could be recorded": {func(w *world) { w.unrecorded = errors.New("the API server is away") }, "the API server is away", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			c.given(w)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.end = cancel
			target := w.target()
			err := w.agent.Pass(ctx, target, w.record)
			if c.says == "" {
				w.Expect(err).NotTo(HaveOccurred())
			} else {
				w.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
			w.Expect(w.ran).To(BeEmpty())
			if c.ready != "" {
				w.Expect(target.Status.Conditions[0].Reason + ": " + target.Status.Conditions[0].Message).To(HavePrefix(c.ready))
			}
		})
	}
}

func TestAPassWhoseRecordsAreLostEnds(t *testing.T) {
	w := newWorld(t)
	records := 0
	err := w.agent.Pass(t.Context(), w.target(), func(context.Context, *v1alpha1.StorageTarget, v1alpha1.StorageTargetStatus) error {
		records++
		return nil
	})
	w.Expect(err).To(MatchError(ErrUndecided))
	w.Expect(records).To(Equal(mostRounds))
	w.Expect(w.ran).To(BeEmpty())
}

func TestTheFilesystemOfATargetIsSearchedOnlyWhenItsDiskDoesNotHoldIt(t *testing.T) {
	own := "TYPE=ext4 UUID=" + guardedUUID + " LABEL=pfs-1"
	for name, c := range map[string]struct {
		data    string
		made    bool
		failing error
		there   bool
		want    string
		says    string
	}{
		"its disk holds it":                 {own, true, nil, true, "data", ""},
		"another disk has its name":         {foreign, true, nil, true, "other", ""},
		"no disk holds it":                  {foreign, true, nil, false, "data", ""},
		"the disks can't be looked through": {foreign, true, errIO, false, "data", "input/output error"},
		"it was never made":                 {foreign, false, nil, true, "data", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("data", c.data)
			target := w.target()
			if c.made {
				target.Status = guarded().Status
			}
			w.agent.Holding = func(_ context.Context, uuid string, size int64) (plan.Facts, error) {
				w.Expect(uuid).To(Equal(guardedUUID))
				w.Expect(size).To(BeEquivalentTo(worldSize))
				if !c.there {
					return plan.Facts{}, c.failing
				}
				return w.facts("other"), nil
			}
			l, err := w.agent.look(t.Context(), target)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(l.Device.KernelName).To(Equal(w.kernelName(c.want)))
			w.Expect(l.Device.Incomplete).To(Equal(c.says))
		})
	}
	t.Run("and a node that searches none has the disk of that name", func(t *testing.T) {
		w := newWorld(t)
		w.put("data", foreign)
		target := w.target()
		target.Status = guarded().Status
		l, err := w.agent.look(t.Context(), target)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(l.Device.KernelName).To(Equal(w.kernelName("data")))
	})
}

func TestNoMarkerIsWrittenWhereNothingIsMounted(t *testing.T) {
	w := newWorld(t)
	target := w.target()
	for _, status := range []v1alpha1.StorageTargetStatus{{}, {Provisioned: &v1alpha1.TargetProvisioned{UUID: worldUUID}}, guarded().Status} {
		target.Status = status
		w.Expect(w.agent.mark(target, plan.Look{})).To(MatchError(ContainSubstring("has 0 mounts instead of one; no marker was written")))
	}
	target.Status = v1alpha1.StorageTargetStatus{}
	w.Expect(w.agent.mount(target, plan.Look{}, nil)).To(MatchError(ContainSubstring("the target was never provisioned; nothing is mounted")))
	w.Expect(w.agent.carryOutStep(t.Context(), target, plan.Look{}, plan.Decision{}, plan.Step{Kind: "Shred"}, nil)).
		To(MatchError(ContainSubstring("this agent does not know the step")))
	w.Expect(w.agent.act(t.Context(), target, plan.Look{}, plan.Decision{Action: "Shred"}, w.record)).
		To(MatchError(ContainSubstring(`does not know the action "Shred"`)))
	w.Expect(w.recorded).To(BeEmpty())
}

func TestAMountpointIsClosedWhileATargetMayComeAndIsRemovedWithIt(t *testing.T) {
	w := newWorld(t)
	target := w.target(func(t *v1alpha1.StorageTarget) { t.Spec.Conflict = "another target has the disk" })
	mountpoint := w.agent.mountpoint(target)
	problem := func() string {
		m, err := w.agent.mounted(target)
		w.Expect(err).NotTo(HaveOccurred())
		w.Expect(m.Mounted).To(BeFalse())
		return m.Problem
	}
	w.Expect(problem()).To(BeEmpty())
	w.Expect(mountpoint).NotTo(BeAnExistingFile(), "a target that another one keeps from its disk has no mountpoint")
	target.Spec.Conflict = ""
	w.Expect(problem()).To(BeEmpty())
	w.Expect(mountpoint).To(BeADirectory())

	w.Expect(mounts.Remove(mountpoint)).To(Succeed())
	target.Spec.Conflict, target.Status = "another target has the disk", guarded().Status
	w.Expect(problem()).To(BeEmpty())
	w.Expect(mountpoint).To(BeADirectory(), "a target that was made keeps its mountpoint")

	target.DeletionTimestamp = target.Status.Provisioned.Finished
	w.Expect(w.agent.unmount(target)).To(Succeed())
	w.Expect(mountpoint).NotTo(BeAnExistingFile())
	target.DeletionTimestamp = nil
	w.Expect(w.agent.unmount(target)).To(Succeed())
	w.Expect(mountpoint).To(BeADirectory())
	w.Expect(mounts.Remove(mountpoint)).To(Succeed())

	w.Expect(os.WriteFile(mountpoint, nil, 0o600)).To(Succeed())
	w.Expect(problem()).To(ContainSubstring("is not a directory"))
	target.DeletionTimestamp = target.Status.Provisioned.Finished
	w.Expect(problem()).To(ContainSubstring("is not a directory"))
	w.Expect(os.Remove(mountpoint)).To(Succeed())
	w.Expect(problem()).To(BeEmpty())
}

func TestALineOfAProgramIsNotTakenForItsDevice(t *testing.T) {
	w := newWorld(t)
	w.agent.Run = func(context.Context, []string, ...*os.File) ([]byte, error) {
		return bytes.NewBufferString("TYPE=ext4\nno value\nLABEL=a\\ b=c\n").Bytes(), nil
	}
	w.Expect(w.agent.probe(t.Context(), "x")).To(Equal(map[string]string{"TYPE": "ext4", "LABEL": "a b=c"}))
}

func TestAFormatThatHadToWaitIsShownBeforeItBegins(t *testing.T) {
	w := newWorld(t)
	w.agent.Hook = func(step string, done bool) error {
		w.busy = w.busy || step == string(plan.Record) && done
		return nil
	}
	target := w.target()
	ready, err := w.pass(t, target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(ready).To(HavePrefix("DeviceRefused: "))
	w.agent.Hook, w.busy, w.unrecorded = nil, false, errIO
	_, err = w.pass(t, target)
	w.Expect(err).To(MatchError(errIO))
	w.Expect(w.ran).To(BeEmpty(), "nothing begins that is not shown")
	w.unrecorded, w.recorded = nil, nil
	_, err = w.pass(t, target)
	w.Expect(err).To(MatchError(ContainSubstring("step Mount")))
	w.Expect(w.recorded[0].Conditions[0].Message).To(And(ContainSubstring(" is being carried out; running: mkfs.ext4 "), HaveSuffix("/data")))
	w.Expect(w.ran).To(Equal([]string{"mkfs.ext4 data"}))
}

func TestATargetWhoseMarkIsOnItsDiskIsAdoptedAndNotMade(t *testing.T) {
	begun := func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.Finished = nil }
	for name, c := range map[string]struct {
		change  func(*v1alpha1.StorageTarget)
		records int
	}{
		"nothing was recorded":  {notMade, 2},
		"its plan had begun":    {begun, 1},
		"it was recorded whole": {func(*v1alpha1.StorageTarget) {}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			target := w.ofServer(t, c.change)
			before := w.content("data")
			ready, err := w.pass(t, target)
			w.Expect(err).NotTo(HaveOccurred())
			w.Expect(w.recorded).To(HaveLen(c.records), ready)
			w.Expect(target.Status.Provisioned).To(And(HaveField("UUID", guardedUUID), HaveField("Finished", Not(BeNil()))))
			w.Expect(w.ran).To(BeEmpty())
			w.Expect(w.content("data")).To(Equal(before))
			w.Expect(w.agent.mountpoint(target)).To(BeADirectory())
		})
	}
}

func TestADeletedTargetIsWipedOnlyOnRequestAndOnlyItsOwnDisk(t *testing.T) {
	asked := func(t *v1alpha1.StorageTarget) { t.Spec.DestroyFor = t.Spec.FileSystem.UID }
	for name, c := range map[string]struct {
		change  func(*v1alpha1.StorageTarget)
		given   func(w *world)
		ran     []string
		wiped   bool
		becomes string
		fails   bool
	}{
		"nobody asks":                     {func(*v1alpha1.StorageTarget) {}, func(*world) {}, nil, false, "", false},
		"it is asked for":                 {asked, func(*world) {}, []string{"wipefs data"}, true, "True", false},
		"for another FileSystem":          {func(t *v1alpha1.StorageTarget) { t.Spec.DestroyFor = "9" }, func(*world) {}, nil, false, "False", false},
		"somebody has formatted it":       {asked, func(w *world) { w.put("data", foreign) }, nil, false, "False", false},
		"somebody has opened it":          {asked, func(w *world) { w.busy = true }, nil, false, "False", false},
		"it is not there":                 {asked, func(w *world) { w.lost = true }, nil, false, "False", false},
		"its mark can't be read":          {asked, func(w *world) { w.agent.OnNode = answering("", errIO).OnNode }, nil, false, "False", false},
		"it has another mark":             {asked, func(w *world) { w.agent.OnNode = answering(readBackOf("made by hand"), nil).OnNode }, nil, false, "False", false},
		"the program that wipes it fails": {asked, func(w *world) { w.failing = "wipefs" }, []string{"wipefs data"}, false, "False", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.put("other", foreign)
			target := w.ofServer(t, c.change)
			target.DeletionTimestamp = target.Status.Provisioned.Finished
			c.given(w)
			before := w.content("data")
			_, err := w.pass(t, target)
			w.Expect(err != nil).To(Equal(c.fails), "%v", err)
			w.Expect(w.ran).To(Equal(c.ran))
			w.Expect(w.content("other")).To(HavePrefix(foreign))
			if c.wiped {
				w.Expect(w.blank("data")).To(BeTrue())
			} else {
				w.Expect(w.content("data")).To(Equal(before))
			}
			destroyed := ""
			for _, condition := range target.Status.Conditions {
				if condition.Type == v1alpha1.ConditionDestroyed {
					destroyed = string(condition.Status)
				}
			}
			w.Expect(destroyed).To(Equal(c.becomes))
		})
	}
}

func TestALogDeviceIsReadBackOnlyIfItShowsATargetOfAServer(t *testing.T) {
	w := newWorld(t)
	served := w.ofServer(t)
	target := w.target(func(t *v1alpha1.StorageTarget) {
		t.Spec.LogDevice = &v1alpha1.DeviceIdentity{ID: "wwn-log", WWN: "log", SizeBytes: worldSize}
	})
	l, err := w.agent.look(t.Context(), target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(l.Log).To(HaveValue(And(HaveField("Found", true), HaveField("Marker", BeNil()), HaveField("MarkerError", ""))))
	w.put("log", strings.TrimRight(strings.SplitAfter(w.content("data"), "\n")[0], "\n"))
	l, err = w.agent.look(t.Context(), target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(l.Log.Marker).To(HaveValue(HaveField("Target", served.Name)), "mkfs overwrites a log device without a look at it")
	w.lost = true
	l, err = w.agent.look(t.Context(), target)
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(l.Log).To(HaveValue(HaveField("Found", false)))
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = w.agent.look(ended, target)
	w.Expect(err).To(MatchError(context.Canceled))
}
