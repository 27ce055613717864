package provision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestADiskMayHoldTheFilesystemOfATargetUnlessAWholeLookFoundAnotherOne(t *testing.T) {
	for name, c := range map[string]struct {
		disk plan.Facts
		want bool
	}{
		"it holds it":                 {guardedDisk(), true},
		"it is not there":             {plan.Facts{BlockDevice: guardedDisk().BlockDevice}, false},
		"it holds another one":        {guardedDisk(func(f *plan.Facts) { f.Signatures[0].UUID = "x" }), false},
		"it is blank":                 {guardedDisk(func(f *plan.Facts) { f.Signatures = nil }), false},
		"not all of it could be read": {guardedDisk(func(f *plan.Facts) { f.Signatures, f.Incomplete = nil, "EIO" }), true},
	} {
		NewWithT(t).Expect(mayHold(c.disk, guardedUUID)).To(Equal(c.want), name)
	}
}

func TestADeviceIsLookedAtAgainOnlyWhileSomethingThatPassesIsInTheWay(t *testing.T) {
	busy := guardedDisk(func(f *plan.Facts) { f.Busy = "opened" })
	for name, c := range map[string]struct {
		disk  plan.Facts
		err   error
		looks int
	}{
		"it is free":                  {guardedDisk(), nil, 1},
		"a program has opened it":     {busy, nil, looks},
		"it is mounted":               {guardedDisk(func(f *plan.Facts) { f.Busy, f.Mounts = "opened", []string{"/mnt"} }), nil, 1},
		"something is made from it":   {guardedDisk(func(f *plan.Facts) { f.Busy, f.Holders = "opened", []string{"dm-0"} }), nil, 1},
		"not all of it could be read": {guardedDisk(func(f *plan.Facts) { f.Incomplete = "EIO" }), nil, looks},
		"nothing of it could be read": {plan.Facts{}, errors.New("EIO"), looks},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, count, start := NewWithT(t), 0, time.Now()
				p := &Provisioner{Look: func(context.Context, v1alpha1.DeviceIdentity) (plan.Facts, error) { count++; return c.disk, c.err }}
				found, err := p.device(t.Context(), v1alpha1.DeviceIdentity{})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(count).To(Equal(c.looks))
				g.Expect(time.Since(start)).To(Equal(time.Duration(c.looks-1) * lookPause))
				g.Expect(found.Incomplete != "").To(Equal(c.disk.Incomplete != "" || c.err != nil))
			})
		})
	}
	t.Run("and not after the program was asked to end", func(t *testing.T) {
		g, count := NewWithT(t), 0
		ctx, end := context.WithCancel(t.Context())
		p := &Provisioner{Look: func(context.Context, v1alpha1.DeviceIdentity) (plan.Facts, error) { count++; end(); return busy, nil }}
		_, err := p.device(ctx, v1alpha1.DeviceIdentity{})
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(count).To(Equal(1))
	})
}

func TestAMarkerIsReadOnlyFromAFreeDiskThatShowsATarget(t *testing.T) {
	labeled := func(f *plan.Facts) { f.Signatures[0].Label = plan.LabelPrefix + "1" }
	there := &plan.Marker{Target: "t"}
	mounted := plan.Mounted{Mounted: true, KernelName: "sda", Marker: there}
	for name, c := range map[string]struct {
		look  plan.Look
		want  *plan.Marker
		error string
	}{
		"it was read already":               {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) { f.Marker = there })}, there, ""},
		"it was tried already":              {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) { f.MarkerError = "EIO" })}, nil, "EIO"},
		"the disk is not there":             {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) { f.Found, f.Busy = false, "opened" })}, nil, ""},
		"the disk is mounted at its place":  {plan.Look{Device: guardedDisk(labeled), Mount: mounted}, there, ""},
		"another one is mounted there":      {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) { f.KernelName, f.Signatures[0].Device, f.Busy = "sdb", "sdb", "opened" }), Mount: mounted}, nil, "the device is in use"},
		"what was mounted there is not now": {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) { f.Busy = "opened" }), Mount: plan.Mounted{KernelName: "sda", Marker: there}}, nil, "the device is in use"},
		"its label is somebody's":           {plan.Look{Device: guardedDisk(func(f *plan.Facts) { f.Busy = "opened" })}, nil, ""},
		"a partition has the label":         {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) { f.Signatures[0].Device, f.Busy = "sda1", "opened" })}, nil, ""},
		"the label follows something else": {plan.Look{Device: guardedDisk(labeled, func(f *plan.Facts) {
			f.Signatures, f.Busy = append([]v1alpha1.Signature{{Device: "sda", Type: "gpt"}}, f.Signatures...), "opened"
		})}, nil, "the device is in use"},
		"the disk can't be read": {plan.Look{Device: guardedDisk(labeled), Log: &plan.Facts{}}, nil, " "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, start := NewWithT(t), time.Now()
				p := &Provisioner{Dev: filepath.Join(t.TempDir(), "missing"), Claims: &Claims{}}
				p.readMarker(t.Context(), &c.look)
				g.Expect(time.Since(start)).To(BeZero(), "only a device that somebody has open is tried again")
				g.Expect(c.look.Device.Marker).To(Equal(c.want))
				g.Expect(c.look.Device.MarkerError != "").To(Equal(c.error != ""), c.look.Device.MarkerError)
				g.Expect(c.look.Device.MarkerError).To(And(ContainSubstring(c.error), Not(ContainSubstring("has no log on a device of its own"))))
				g.Expect(c.look.Device.Busy == "somebody opened it while its marker was to be read").To(BeFalse())
			})
		})
	}
}

func TestTheDeviceOfAMountIsNamedAsTheKernelNamesIt(t *testing.T) {
	g, top := NewWithT(t), t.TempDir()
	g.Expect(os.MkdirAll(filepath.Join(top, "dev", "block"), 0o755)).To(Succeed())
	g.Expect(os.Symlink("../../devices/sdq", filepath.Join(top, "dev", "block", "8:1"))).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(top, "dm-7"), nil, 0o600)).To(Succeed())
	g.Expect(os.Symlink("dm-7", filepath.Join(top, "vg-lv"))).To(Succeed())
	p := &Provisioner{Sys: top}
	g.Expect(p.kernelName(8, 1, "/dev/other")).To(Equal("sdq"), "by its number")
	g.Expect(p.kernelName(0, 9, filepath.Join(top, "vg-lv"))).To(Equal("dm-7"), "by what its source leads to")
	g.Expect(p.kernelName(0, 9, "/missing/sdx")).To(Equal("sdx"), "by its source")
}

func TestOnlyTheSameWorkIsCarriedOutUnderTheLock(t *testing.T) {
	work := func(changes ...func(*plan.Decision)) plan.Decision {
		d := plan.Decision{
			Action: plan.Format, Steps: []plan.Step{{Kind: plan.StepWipe, Argv: []string{"wipefs", "--all", "/dev/sda"}}},
			Provisioned: &v1alpha1.TargetProvisioned{UUID: guardedUUID},
		}
		for _, change := range changes {
			change(&d)
		}
		return d
	}
	for name, c := range map[string]struct {
		change func(*plan.Decision)
		same   bool
	}{
		"nothing has changed":       {func(*plan.Decision) {}, true},
		"another sentence":          {func(d *plan.Decision) { d.Ready.Message = "x" }, true},
		"another action":            {func(d *plan.Decision) { d.Action = plan.Wipe }, false},
		"another device":            {func(d *plan.Decision) { d.Steps[0].Argv[2] = "/dev/sdb" }, false},
		"another filesystem":        {func(d *plan.Decision) { d.Provisioned.UUID = "x" }, false},
		"nothing to do any longer":  {func(d *plan.Decision) { d.Action, d.Steps = plan.None, nil }, false},
		"one step less than before": {func(d *plan.Decision) { d.Steps = nil }, false},
	} {
		NewWithT(t).Expect(sameWork(work(), work(c.change))).To(Equal(c.same), name)
	}
}

func TestTheStatusShowsWhatIsDoneToADiskBeforeItIsDone(t *testing.T) {
	d := plan.Decision{Ready: plan.Outcome{Message: "it is being made"}, Steps: []plan.Step{
		{Kind: plan.StepWipe, Argv: []string{"wipefs", "/dev/sda"}}, {Kind: plan.StepRecord},
		{Kind: plan.StepMakeFileSystem, Argv: []string{"mkfs.ext4", "/dev/sda"}}, {Kind: plan.StepMount, Argv: []string{"mount"}},
	}}
	NewWithT(t).Expect(underWay(d).Ready.Message).To(Equal("it is being made; running: wipefs /dev/sda, then mkfs.ext4 /dev/sda"))

	ready := func(reason string) *v1alpha1.StorageTarget {
		return guarded(func(t *v1alpha1.StorageTarget) {
			t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}
		})
	}
	for name, c := range map[string]struct {
		reason string
		action plan.Action
		want   bool
	}{
		"a format":                      {v1alpha1.ReasonAwaitingApproval, plan.Format, true},
		"a wipe":                        {v1alpha1.ReasonAwaitingApproval, plan.Wipe, true},
		"a mount is short":              {v1alpha1.ReasonAwaitingApproval, plan.Mount, false},
		"a mark is short":               {v1alpha1.ReasonAwaitingApproval, plan.Mark, false},
		"a format that has failed":      {v1alpha1.ReasonProvisioningFailed, plan.Format, false},
		"a wipe that has failed":        {v1alpha1.ReasonWipeFailed, plan.Wipe, false},
		"a format that is shown":        {v1alpha1.ReasonProvisioning, plan.Format, false},
		"a wipe in place of the format": {v1alpha1.ReasonProvisioning, plan.Wipe, true},
	} {
		NewWithT(t).Expect((&Provisioner{}).announces(ready(c.reason), plan.Decision{Action: c.action})).To(Equal(c.want), name)
	}
}

func TestOnlyAMarkedTargetThatIsBusyIsWaitedFor(t *testing.T) {
	busy := &busyError{}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"it is busy":                   {&StepError{stepSettle, busy}, true},
		"it is busy, and not alone":    {errors.Join(errors.New("x"), fmt.Errorf("y: %w", &StepError{stepSettle, busy})), true},
		"another step finds it busy":   {&StepError{"Unmount", busy}, false},
		"no step":                      {busy, false},
		"it can't be unmounted at all": {&StepError{stepSettle, errors.New("EIO")}, false},
		"nothing":                      {nil, false},
	} {
		NewWithT(t).Expect(settles(c.err)).To(Equal(c.want), name)
	}
}

func TestADevicesPathIsOfADeviceThatIsThere(t *testing.T) {
	g, p := NewWithT(t), &Provisioner{Dev: "/dev"}
	log := guardedDisk(func(f *plan.Facts) { f.KernelName = "sdb" })
	g.Expect(p.devices(plan.Look{Device: guardedDisk(), Log: &log})).To(Equal([]string{"/dev/sda", "/dev/sdb"}))
	g.Expect(p.devices(plan.Look{Device: guardedDisk(), Log: &plan.Facts{}})).To(Equal([]string{"/dev/sda"}))
	g.Expect(p.devices(plan.Look{Device: guardedDisk()})).To(Equal([]string{"/dev/sda"}))
	g.Expect(p.devices(plan.Look{})).To(BeEmpty())
}

func TestAPassEndsAtAStepWithAFailingHook(t *testing.T) {
	killed := errors.New("killed")
	for name, c := range map[string]struct {
		before, after, do error
		want              []string
	}{
		"nothing fails":       {nil, nil, nil, []string{"before", "do", "after"}},
		"it ends before":      {killed, nil, nil, []string{"before"}},
		"it ends after":       {nil, killed, nil, []string{"before", "do", "after"}},
		"the step itself has": {nil, nil, killed, []string{"before", "do"}},
	} {
		var done []string
		p := &Provisioner{Hook: func(step string, over bool) error {
			done = append(done, map[bool]string{false: "before", true: "after"}[over])
			return map[bool]error{false: c.before, true: c.after}[over]
		}}
		err := p.try("Wipe", func() error { done = append(done, "do"); return c.do })
		g := NewWithT(t)
		g.Expect(done).To(Equal(c.want), name)
		g.Expect(err != nil).To(Equal(len(c.want) < 3 || c.after != nil), name)
		_, is := errors.AsType[*StepError](err)
		g.Expect(is).To(Equal(c.do != nil), "%s: only the failure of a step is shown as one", name)
	}
	NewWithT(t).Expect((&Provisioner{}).step("Wipe", func() error { return nil })).To(Succeed(), "a pass without a hook")
}
