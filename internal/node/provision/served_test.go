package provision

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/plan"
)

// servedTarget is a target of Lustre, which only its own server mounts, and the format of such targets.
func servedTarget(t *testing.T, changes ...func(*v1alpha1.StorageTarget)) (*v1alpha1.StorageTarget, format.Served) {
	t.Helper()
	target := guarded(append([]func(*v1alpha1.StorageTarget){func(t *v1alpha1.StorageTarget) {
		t.Spec.Format = v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
		t.Spec.Role = v1alpha1.RoleStorage
		t.Spec.Lustre = &v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "work", Index: new(int32(3)), ManagementNIDs: []string{"10.0.0.1@tcp"}}
	}}, changes...)...)
	served, is := registry.Served(target.Spec.Format)
	NewWithT(t).Expect(is).To(BeTrue())
	return target, served
}

// ofServer puts a target that only its own server mounts on the disk data, with its mark.
func (w *world) ofServer(t *testing.T, changes ...func(*v1alpha1.StorageTarget)) *v1alpha1.StorageTarget {
	t.Helper()
	target, served := servedTarget(t, changes...)
	target.Spec.Device = v1alpha1.DeviceIdentity{ID: "wwn-data", WWN: "data", SizeBytes: worldSize}
	w.put("data", fmt.Sprintf("TYPE=ext4 UUID=%s LABEL=%s", guardedUUID, served.Label(*target.Spec.Lustre)))
	mark := plan.NewOf(target, plan.Look{}, guardedUUID).Mark
	w.agent.OnNode = func(context.Context, []string, ...*os.File) ([]byte, error) { return []byte(readBackOf(mark)), nil }
	return target
}

func notMade(t *v1alpha1.StorageTarget) { t.Status.Provisioned = nil }

// readBackOf is the output of tunefs.lustre for a target with this mark.
func readBackOf(mark string) string {
	return fmt.Sprintf(`checking for existing Lustre data: found

   Read previous values:
Device:     /dev/sda
Target:     work-OST0003
Index:      3
Lustre FS:  work
Mount type: ldiskfs
Flags:      0x62
              (OST first_time update )
Persistent mount opts: errors=remount-ro
Parameters: mgsnode=10.0.0.1@tcp
Comment:    %s

exiting because there is no change.
`, mark)
}

// sharedReadBackOf is that of a target which two nodes may serve.
func sharedReadBackOf(mark string) string {
	return strings.NewReplacer("0x62", "0x1062", "mgsnode=10.0.0.1@tcp", "mgsnode=10.0.0.1@tcp failover.node=10.0.0.2@tcp:10.0.0.3@tcp").Replace(readBackOf(mark))
}

// answering is a Provisioner on whose node each program prints this, or fails.
func answering(stdout string, err error) *Provisioner {
	return &Provisioner{Dev: "/dev", OnNode: func(context.Context, []string, ...*os.File) ([]byte, error) { return []byte(stdout), err }}
}

func TestAProgramThatEndsWithACodeHasAnsweredAndAnyOtherHasNot(t *testing.T) {
	g := NewWithT(t)
	ended := exec.Command("sh", "-c", "exit 3").Run()
	killed := exec.Command("sh", "-c", "kill -9 $$").Run()
	a, err := answering("out", &RunError{Said: "no device", Err: ended}).ask(t.Context(), nil)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(a).To(Equal(format.Answer{Code: 3, Stdout: "out", Said: "no device"}))
	for name, failure := range map[string]error{
		"it was killed": &RunError{Err: killed}, "it does not exist": &RunError{Err: exec.ErrNotFound}, "nobody has its output": ended,
	} {
		a, err := answering("out", failure).ask(t.Context(), nil)
		g.Expect(err).To(Equal(failure), name)
		g.Expect(a.Code).To(BeZero(), name)
	}
}

func TestMkfsIsTriedOutOnlyForATargetThatMayStillBeMade(t *testing.T) {
	begun := func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.Finished = nil }
	for name, c := range map[string]struct {
		change func(*v1alpha1.StorageTarget)
		disk   plan.Facts
		tried  bool
	}{
		"nothing is recorded":            {notMade, guardedDisk(), true},
		"its plan was begun":             {begun, guardedDisk(), true},
		"it was made":                    {func(*v1alpha1.StorageTarget) {}, guardedDisk(), false},
		"its disk is not there":          {notMade, plan.Facts{}, false},
		"its server is not assigned yet": {func(t *v1alpha1.StorageTarget) { t.Status.Provisioned, t.Spec.Lustre = nil, nil }, guardedDisk(), false},
		"its options are refused": {func(t *v1alpha1.StorageTarget) {
			t.Status.Provisioned, t.Spec.Format.MkfsOptions = nil, []v1alpha1.MkfsOption{"--reformat"}
		}, guardedDisk(), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, served := servedTarget(t, c.change)
			g.Expect(answering("no output of mkfs.lustre", nil).tryOut(t.Context(), target, plan.Look{Device: c.disk}, served) != "").To(Equal(c.tried))
			failed := answering("", errors.New("no such program")).tryOut(t.Context(), target, plan.Look{Device: c.disk}, served)
			g.Expect(failed == "no such program").To(Equal(c.tried))
		})
	}
}

func TestTheMarkOfATargetIsReadBackAndADoubtIsAnError(t *testing.T) {
	target, served := servedTarget(t)
	mark := plan.NewOf(target, plan.Look{}, guardedUUID).Mark
	for name, c := range map[string]struct {
		stdout string
		err    error
		owner  string
		says   string
	}{
		"it is there":                {readBackOf(mark), nil, target.Name, ""},
		"it is somebody's comment":   {readBackOf("made by hand"), nil, "", ""},
		"a newer operator wrote it":  {readBackOf(`{"version": 99}`), nil, "", "version 99"},
		"the output is something":    {"something", nil, "", "something"},
		"the program could not run":  {readBackOf(mark), errors.New("EIO"), "", "EIO"},
		"the program stopped midway": {readBackOf(mark)[:100], nil, "", "tunefs.lustre"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk := guardedDisk()
			answering(c.stdout, c.err).readBack(t.Context(), &disk, served)
			g.Expect(disk.MarkerError != "").To(Equal(c.says != ""), disk.MarkerError)
			g.Expect(disk.Answer == nil).To(Equal(c.err != nil))
			if c.owner == "" {
				g.Expect(disk.Marker).To(BeNil())
				return
			}
			g.Expect(disk.Marker).To(HaveField("Target", c.owner))
		})
	}
}

func TestANewFilesystemOfAServerIsReadBack(t *testing.T) {
	shared := func(t *v1alpha1.StorageTarget) {
		t.Spec.Lustre.ServiceNodes = []v1alpha1.LustreServiceNode{{NIDs: []string{"10.0.0.2@tcp"}}, {NIDs: []string{"10.0.0.3@tcp"}}}
	}
	// withProtection is the superblock of an ext4 that shows who has mounted it.
	withProtection := func(sequence uint32) []byte {
		disk := make([]byte, 64<<10)
		number := binary.LittleEndian
		number.PutUint32(disk[1024+24:], 2)
		number.PutUint16(disk[1024+56:], 0xef53)
		number.PutUint32(disk[1024+92:], 0x4)
		number.PutUint32(disk[1024+96:], 0x100|0x2c2)
		number.PutUint64(disk[1024+360:], 9)
		number.PutUint32(disk[9*4096:], 0x004d4d50)
		number.PutUint32(disk[9*4096+4:], sequence)
		return disk
	}
	const unmounted, mounted = 0xff4d4d50, 0x1234
	for name, c := range map[string]struct {
		change  func(*v1alpha1.StorageTarget)
		disk    []byte
		uuid    string
		err     error
		refused string
	}{
		"it is the target":                        {func(*v1alpha1.StorageTarget) {}, nil, guardedUUID, nil, ""},
		"its UUID is another one":                 {func(*v1alpha1.StorageTarget) {}, nil, "99999999-2222-4333-8444-555555555555", nil, "is not what the target was given"},
		"it can't be read":                        {func(*v1alpha1.StorageTarget) {}, nil, guardedUUID, errors.New("EIO"), "can't read back"},
		"two nodes see each other's mount":        {shared, withProtection(unmounted), guardedUUID, nil, ""},
		"two nodes may have it, and one does":     {shared, withProtection(mounted), guardedUUID, nil, "two nodes may mount"},
		"two nodes may have it, and it is broken": {shared, make([]byte, 64<<10), guardedUUID, nil, "it holds no ext4"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, served := servedTarget(t, c.change)
			p := answering(readBackOf(plan.NewOf(target, plan.Look{}, guardedUUID).Mark), c.err)
			if c.disk != nil {
				p = answering(sharedReadBackOf(plan.NewOf(target, plan.Look{}, guardedUUID).Mark), c.err)
			}
			p.Dev = t.TempDir()
			g.Expect(os.WriteFile(filepath.Join(p.Dev, "sda"), c.disk, 0o600)).To(Succeed())
			err := p.verifyServed(t.Context(), target, plan.Look{Device: guardedDisk()}, served,
				format.Seen{Type: "ext4", UUID: c.uuid, Label: served.Label(*target.Spec.Lustre)})
			if c.refused == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.refused)))
		})
	}
}

func TestTheAssignmentOnADiskIsRecordedOnceAndOnlyWhenThisClusterDidNotMakeIt(t *testing.T) {
	adopted := func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.PlanHash = "" }
	made := func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.PlanHash = "sha256:1" }
	before := func(message string) func(*v1alpha1.StorageTarget) {
		return func(t *v1alpha1.StorageTarget) { t.Status.Record = &v1alpha1.TargetRecord{Message: message} }
	}
	none := func(*v1alpha1.StorageTarget) {}
	for name, c := range map[string]struct {
		status, record func(*v1alpha1.StorageTarget)
		marked         bool
		want           bool
	}{
		"nothing is recorded":            {notMade, none, true, true},
		"its disk was taken over":        {adopted, none, true, true},
		"this cluster made it":           {made, none, true, false},
		"it was read before":             {adopted, before(""), true, false},
		"it could not be used before":    {adopted, before("it has no index"), true, true},
		"nothing shows whose disk it is": {notMade, none, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, served := servedTarget(t, c.status, c.record)
			disk := guardedDisk()
			mark := plan.NewOf(target, plan.Look{}, guardedUUID).Mark
			if !c.marked {
				mark = ""
			}
			answering(readBackOf(mark), nil).readBack(t.Context(), &disk, served)
			g.Expect(recorded(target, plan.Look{Device: disk}) != nil).To(Equal(c.want))
		})
	}
}

func TestAMountAtTheMountpointOfATargetIsThatTarget(t *testing.T) {
	target, served := servedTarget(t)
	unassigned, _ := servedTarget(t, func(t *v1alpha1.StorageTarget) { t.Spec.Lustre = nil })
	mount := func(kind, source, options string) *mountinfo.Info {
		return &mountinfo.Info{FSType: kind, Source: source, VFSOptions: options}
	}
	own := mount("lustre_tgt", "/dev/sda", "ro,svname=work-OST0003")
	for name, c := range map[string]struct {
		target  *v1alpha1.StorageTarget
		there   []*mountinfo.Info
		problem string
	}{
		"it is":                       {target, []*mountinfo.Info{own}, ""},
		"it shows no name":            {target, []*mountinfo.Info{mount("lustre_tgt", "/dev/sda", "ro")}, ""},
		"it is another target":        {target, []*mountinfo.Info{mount("lustre_tgt", "/dev/sda", "svname=work-OST0004")}, "serves"},
		"it is a client's mount":      {target, []*mountinfo.Info{mount("lustre", "10.0.0.1@tcp:/work", "")}, "is of the type lustre"},
		"it is an ordinary ext4":      {target, []*mountinfo.Info{mount("ext4", "/dev/sda", "")}, "is of the type ext4"},
		"two are on each other":       {target, []*mountinfo.Info{own, own}, "2 filesystems"},
		"it has no assignment so far": {unassigned, []*mountinfo.Info{mount("lustre_tgt", "/dev/sda", "ro")}, "serves"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := (&Provisioner{Sys: t.TempDir()}).mountedByServer(c.target, "/targets/t", c.there, served)
			g.Expect(m.Mounted).To(BeTrue())
			g.Expect(m.Problem != "").To(Equal(c.problem != ""), m.Problem)
			g.Expect(m.Problem).To(ContainSubstring(c.problem))
		})
	}
}

func TestADiskOfAServerIsRecognizedByItsSignature(t *testing.T) {
	target, served := servedTarget(t)
	label := served.Label(*target.Spec.Lustre)
	for device, want := range map[string]bool{"sda": true, "sda1": false} {
		disk := guardedDisk(func(f *plan.Facts) {
			f.Signatures = []v1alpha1.Signature{{Device: "sda", Type: "gpt"}, {Device: device, Type: "ext4", Label: label}}
		})
		_, is := servedBy(disk)
		NewWithT(t).Expect(is).To(Equal(want), device)
	}
	_, is := servedBy(guardedDisk())
	NewWithT(t).Expect(is).To(BeFalse(), "an ordinary ext4")
}

func TestANewMarkIsReadBackAndAFailureIsThatOfItsStep(t *testing.T) {
	at := metav1.NewTime(time.Unix(1, 0))
	for name, c := range map[string]struct {
		failing string
		mark    string
		step    string
	}{
		"it is as it was written":        {"", "new", ""},
		"it could not be written":        {"--comment", "new", "Mark"},
		"the disk can't be read back":    {"blkid", "new", "VerifyMark"},
		"the old one is still on it":     {"", "old", "VerifyMark"},
		"what it says can't be read now": {"--dryrun", "new", "VerifyMark"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target, served := servedTarget(t, func(t *v1alpha1.StorageTarget) { t.Status.Provisioned.Finished = &at })
			marks := map[string]string{"new": plan.NewOf(target, plan.Look{}, guardedUUID).Mark, "old": "made by hand"}
			run := func(_ context.Context, argv []string, _ ...*os.File) ([]byte, error) {
				if c.failing != "" && strings.Contains(strings.Join(argv, " "), c.failing) {
					return nil, errors.New("EIO")
				}
				if argv[0] == "blkid" {
					return fmt.Appendf(nil, "TYPE=ext4\nUUID=%s\nLABEL=%s\n", guardedUUID, served.Label(*target.Spec.Lustre)), nil
				}
				return []byte(readBackOf(marks[c.mark])), nil
			}
			p := &Provisioner{Dev: t.TempDir(), Claims: &Claims{}, Run: run, OnNode: run}
			g.Expect(os.WriteFile(filepath.Join(p.Dev, "sda"), nil, 0o600)).To(Succeed())
			disk := guardedDisk(func(f *plan.Facts) { f.Marker = &plan.Marker{UUID: guardedUUID} })
			err := p.remark(t.Context(), target, plan.Look{Device: disk}, served, nil)
			var failed *StepError
			if c.step == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(errors.As(err, &failed)).To(BeTrue(), "%v", err)
			g.Expect(failed.Step).To(Equal(c.step))
		})
	}
}
