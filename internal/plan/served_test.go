package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// ofLustre makes a target the OST with an index.
func ofLustre(index int32) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		t.Spec.Format = v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs}
		t.Spec.Lustre = &v1alpha1.LustreTarget{Kind: v1alpha1.LustreOST, FSName: "work", Index: &index, ManagementNIDs: []string{"10.0.0.1@tcp"}}
	}
}

// said is what tunefs.lustre says of a target with this mark.
func said(t *v1alpha1.StorageTarget, mark string) *format.Answer {
	return &format.Answer{Stdout: fmt.Sprintf(`checking for existing Lustre data: found

   Read previous values:
Device:     /dev/sdb
Target:     work-OST%04x
Index:      %d
Lustre FS:  work
Mount type: ldiskfs
Flags:      0x62
              (OST first_time update )
Persistent mount opts: errors=remount-ro
Parameters: mgsnode=10.0.0.1@tcp
Comment:    %s

exiting because there is no change.
`, *t.Spec.Lustre.Index, *t.Spec.Lustre.Index, mark)}
}

// made is the disk of a target of Lustre that was made for this FileSystem.
func made(t *v1alpha1.StorageTarget) func(*plan.Facts) {
	return func(f *plan.Facts) {
		holding("ext4", uuidOne, plan.Label(t))(f)
		f.Answer = said(t, plan.NewOf(t, plan.Look{}, uuidOne).Mark)
		f.Marker = markerOf(t, uuidOne, t.Spec.FileSystem.UID)
	}
}

func TestATargetOfLustreIsPlannedByItsOwnCommandAndNotMounted(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10))
	p := plan.Make(target, plan.Look{Device: blankDisk()}, uuidOne)
	g.Expect(p.Refusals).To(BeEmpty())
	g.Expect(p.Steps).To(HaveExactElements(And(HavePrefix("mkfs.lustre --backfstype=ldiskfs --ost --fsname=work --index=10 --mgsnode=10.0.0.1@tcp --comment={"),
		ContainSubstring("-U 11111111-2222-4333-8444-555555555555"), HaveSuffix(" /dev/sdb"), Not(ContainSubstring("--reformat")))))

	// The mark says whose the target is, as the marker of other disks does.
	mark := plan.NewOf(target, plan.Look{}, uuidOne).Mark
	var marker spec.TargetMarker
	g.Expect(json.Unmarshal([]byte(mark), &marker)).To(Succeed())
	g.Expect(marker).To(Equal(spec.TargetMarker{
		Version: 1, Owner: spec.Owner{Namespace: "storage", Name: "scratch", UID: uidNow}, Cluster: here, Target: target.Name, Role: "Storage", StoragePool: "ssd", UUID: uuidOne,
	}))

	d := decide(target, plan.Look{Device: blankDisk()})
	g.Expect(d.Action).To(Equal(plan.Record))
	g.Expect(d.Provisioned.Label).To(Equal("work:OST000a"))
}

func TestTheLongestMarkHasRoomOnADisk(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10))
	long := func(n int) string { return strings.Repeat("n", n) }
	target.Namespace, target.Spec.FileSystem = long(63), v1alpha1.TargetOwner{Name: long(40), UID: long(64)}
	target.Spec.Cluster, target.Spec.StoragePool, target.Name = long(64), long(24), plan.TargetName(long(40), v1alpha1.RoleStorage, long(24), "n", "wwn-0x5000")
	g.Expect(plan.Make(target, plan.Look{Device: blankDisk()}, uuidOne).Refusals).NotTo(ContainElement(ContainSubstring("the mark")))
}

func TestADiskOfLustreIsNotTouchedWhile(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *v1alpha1.StorageTarget, l *plan.Look)
		says   string
	}{
		"the operator has not assigned its index": {func(t *v1alpha1.StorageTarget, _ *plan.Look) { t.Spec.Lustre = nil }, "has not said yet what the target is to Lustre"},
		"it has no NID of the MGS":                {func(t *v1alpha1.StorageTarget, _ *plan.Look) { t.Spec.Lustre.ManagementNIDs = nil }, "is told no NID of its MGS"},
		"the dry run differs":                     {func(_ *v1alpha1.StorageTarget, l *plan.Look) { l.TriedOut = "it would be OST0011" }, "it would be OST0011"},
		"the options would make something else":   {func(t *v1alpha1.StorageTarget, _ *plan.Look) { t.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-F"} }, `"-F" of mkfs.lustre is refused`},
		"another FileSystem's target lies on it": {func(_ *v1alpha1.StorageTarget, l *plan.Look) {
			other := aTarget(ofLustre(3))
			other.Name = "other"
			made(other)(&l.Device)
		}, "carries the data of StorageTarget storage/other"},
		"nobody could read whose target lies on it": {func(t *v1alpha1.StorageTarget, l *plan.Look) {
			holding("ext4", uuidTwo, "work-OST0003")(&l.Device)
			l.Device.MarkerError = "the node has no tunefs.lustre"
		}, "its marker could not be read"},
		"another cluster's target lies on it": {func(t *v1alpha1.StorageTarget, l *plan.Look) {
			old := t.DeepCopy()
			old.Spec.Cluster = there
			made(old)(&l.Device)
		}, "the disk carries this target of another cluster"},
		"an earlier FileSystem's target lies on it, and nobody has said what it is": {func(t *v1alpha1.StorageTarget, l *plan.Look) {
			old := t.DeepCopy()
			old.Spec.FileSystem.UID = uidOld
			made(old)(&l.Device)
			t.Spec.Lustre = nil
		}, "has not said yet what the target is to Lustre"},
		"an earlier FileSystem's target lies on it with another index": {func(t *v1alpha1.StorageTarget, l *plan.Look) {
			old := aTarget(ofLustre(11))
			old.Spec.FileSystem.UID = uidOld
			made(old)(&l.Device)
		}, `its index is "11", and it was given "10"`},
		"it carries this target with another index": {func(t *v1alpha1.StorageTarget, l *plan.Look) { old := aTarget(ofLustre(11)); made(old)(&l.Device) }, `its index is "11", and it was given "10"`},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := aTarget(ofLustre(10), policy(v1alpha1.FormatApproved))
			l := plan.Look{Device: blankDisk()}
			c.change(target, &l)
			d := decide(target, l)
			g.Expect(d.Action).To(Equal(plan.None))
			g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
			if d.Plan != nil { // it can't be approved either
				target.Status.Plan, target.Spec.ApprovedPlan = d.Plan, d.Plan.Hash
				g.Expect(decide(target, l).Action).To(Equal(plan.None))
			}
		})
	}
}

func TestATargetOfLustreThatWasMadeIsFinishedAndProvenWithoutAMount(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10), begun)
	l := plan.Look{Device: blankDisk(made(target))}
	d := decide(target, l)
	g.Expect(d.Action).To(Equal(plan.Adopt), "the mark is the last thing that mkfs writes")
	target.Status.Provisioned = d.Provisioned
	d = decide(target, l)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Status).To(BeEquivalentTo("True"), d.Ready.Message)
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonProven))
	g.Expect(d.Ready.Message).To(ContainSubstring("its server mounts it"))
}

// A mkfs that was cut off before the mark leaves an ext4 with the label and the UUID. It is neither finished nor mounted.
func TestATargetOfLustreWithoutAMarkIsNotFinished(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10), begun)
	l := plan.Look{Device: blankDisk(holding("ext4", uuidOne, plan.Label(target)))}
	l.Device.Answer = &format.Answer{Code: 19, Stdout: "checking for existing Lustre data: not found\n"}
	d := decide(target, l)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
	g.Expect(d.Ready.Message).To(ContainSubstring("mkfs was interrupted"))
	g.Expect(plan.LeftByMkfs(target, l, uuidOne)).To(BeTrue(), "the agent that ran it may clear it")
	made(target)(&l.Device)
	g.Expect(plan.LeftByMkfs(target, l, uuidOne)).To(BeFalse(), "what has a mark is a target")
}

func TestAFinishedTargetOfLustreIsMissingWhen(t *testing.T) {
	for name, change := range map[string]func(t *v1alpha1.StorageTarget, l *plan.Look){
		"it has lost its mark": func(t *v1alpha1.StorageTarget, l *plan.Look) { l.Device.Answer, l.Device.Marker = said(t, ""), nil },
		"it is another target": func(t *v1alpha1.StorageTarget, l *plan.Look) {
			*l = plan.Look{Device: blankDisk(made(aTarget(ofLustre(11))))}
		},
		"it is no target of Lustre": func(t *v1alpha1.StorageTarget, l *plan.Look) {
			*l = plan.Look{Device: blankDisk(holding("ext4", uuidOne, "data"))}
		},
		"what it says can't be read": func(_ *v1alpha1.StorageTarget, l *plan.Look) {
			l.Device.Answer, l.Device.MarkerError = nil, "no tunefs.lustre"
		},
		"the next mount would write its configuration again": func(t *v1alpha1.StorageTarget, l *plan.Look) {
			l.Device.Signatures[0].Label = "work=OST000a"
			l.Device.Answer.Stdout = strings.Replace(l.Device.Answer.Stdout, "0x62", "0x142", 1)
		},
		"the kernel has another target mounted, and no process sees where": func(_ *v1alpha1.StorageTarget, l *plan.Look) {
			*l = plan.Look{Device: blankDisk(made(aTarget(ofLustre(11))), unseen)}
		},
		"it is mounted by somebody else": func(_ *v1alpha1.StorageTarget, l *plan.Look) { l.Device.Mounts = []string{"/mnt/mine"} },
		"another disk is mounted in its place": func(_ *v1alpha1.StorageTarget, l *plan.Look) {
			l.Mount = plan.Mounted{Mounted: true, KernelName: "sdc", UUID: uuidTwo}
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := aTarget(ofLustre(10), finished)
			l := plan.Look{Device: blankDisk(made(target))}
			change(target, &l)
			d := decide(target, l)
			g.Expect(d.Action).To(Equal(plan.None))
			g.Expect(d.Ready.Status).To(BeEquivalentTo("False"))
			g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonTargetMissing), d.Ready.Message)
		})
	}
}

// unseen is a disk whose server mounts or unmounts it just now.
func unseen(f *plan.Facts) { f.Busy, f.Mounts = "it is in use", []string{plan.UnseenMount("ldiskfs")} }

// A real Lustre has a target's ldiskfs for itself before its mount shows, and after that has gone.
func TestATargetOfLustreThatItsServerMountsJustNowIsProven(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10), finished)
	d := decide(target, plan.Look{Device: blankDisk(made(target), unseen)})
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Status).To(BeEquivalentTo("True"), d.Ready.Message)
	g.Expect(d.Ready.Message).To(ContainSubstring("mounts or unmounts it just now"))
	g.Expect(d.Progress).To(Equal(plan.Reconciling), "it is looked at again soon")

	// The mark of an earlier FileSystem can't be replaced meanwhile.
	old := target.DeepCopy()
	old.Spec.FileSystem.UID = uidOld
	d = decide(target, plan.Look{Device: blankDisk(made(old), unseen)})
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Status).To(BeEquivalentTo("False"))
}

// The content of a mounted target was proven before its mount, and need not be read again.
func TestATargetOfLustreThatItsServerHasMountedIsProven(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10), finished)
	l := plan.Look{
		Device: blankDisk(holding("ext4", uuidOne, "work-OST000a"), func(f *plan.Facts) { f.Busy, f.Mounts = "it is mounted", []string{mountpoint(target)} }),
		Mount:  plan.Mounted{Mounted: true, KernelName: "sdb", UUID: uuidOne},
	}
	d := decide(target, l)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Status).To(BeEquivalentTo("True"), d.Ready.Message)
	g.Expect(d.Ready.Message).To(ContainSubstring("is mounted by its server"))

	// One that was not finished yet is not marked, as others are.
	target.Status.Provisioned.Finished = nil
	d = decide(target, l)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonDeviceRefused), "it is no disk that could be mounted")
}

func TestOnlyAFileSystemsOwnTargetOfLustreIsWiped(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10), finished, deleted(uidNow))
	g.Expect(decide(target, plan.Look{Device: blankDisk(made(target))}).Action).To(Equal(plan.Wipe))
	other := aTarget(ofLustre(11))
	d := decide(target, plan.Look{Device: blankDisk(made(other))})
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Destroyed.Message).To(ContainSubstring(`its index is "11"`))

	l := plan.Look{Device: blankDisk(made(target))}
	l.Device.Elsewhere = `the machine "oss2" has it mounted`
	d = decide(target, l)
	g.Expect(d.Action).To(Equal(plan.None), "another machine that reaches the disk serves it")
	g.Expect(d.Destroyed.Message).To(ContainSubstring(`the machine "oss2" has it mounted`))
}

// A label of Lustre can begin as those of all other targets do.
func TestAFileSystemOfLustreMayBeCalledAsTheLabelsOfOtherTargetsBegin(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10), finished)
	target.Spec.Lustre.FSName = "pfs"
	l := plan.Look{Device: blankDisk(made(target))}
	l.Device.Answer.Stdout = strings.NewReplacer("work", "pfs", "0x62", "0x2").Replace(l.Device.Answer.Stdout)
	l.Device.Signatures[0].Label = "pfs-OST000a"
	g.Expect(decide(target, l).Ready.Status).To(BeEquivalentTo("True"), decide(target, l).Ready.Message)
}

func TestTheDiskOfAnEarlierFileSystemIsTakenOverAndItsMarkIsWrittenAgain(t *testing.T) {
	for name, change := range map[string]func(old, now *v1alpha1.StorageTarget){
		"of the same name":   func(old, _ *v1alpha1.StorageTarget) { old.Spec.FileSystem.UID = uidOld },
		"of another cluster": func(old, now *v1alpha1.StorageTarget) { old.Spec.Cluster, now.Spec.TakeOver = there, there },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := aTarget(ofLustre(10), policy(v1alpha1.FormatNever))
			old := target.DeepCopy()
			change(old, target)
			l := plan.Look{Device: blankDisk(made(old))}
			d := decide(target, l)
			g.Expect(d.Action).To(Equal(plan.Adopt), d.Ready.Message)
			g.Expect(d.Provisioned.PlanHash).To(BeEmpty())
			target.Status.Provisioned = d.Provisioned
			g.Expect(decide(target, l).Action).To(Equal(plan.Mark))

			mounted := l
			mounted.Mount = plan.Mounted{Mounted: true, KernelName: "sdb", UUID: uuidOne, Marker: l.Device.Marker}
			d = decide(target, mounted)
			g.Expect(d.Action).To(Equal(plan.None), "a mark is not changed under a mount")
			g.Expect(d.Ready.Message).To(ContainSubstring("unmount it"))
			served := l
			served.Device.Elsewhere = `the machine "oss2" has it mounted`
			d = decide(target, served)
			g.Expect(d.Action).To(Equal(plan.None), "neither by another machine")
			g.Expect(d.Ready.Message).To(ContainSubstring(`the machine "oss2" has it mounted`))

			d = decide(target, plan.Look{Device: blankDisk(made(target))})
			g.Expect(d.Action).To(Equal(plan.None))
			g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonProven), d.Ready.Message)
			g.Expect(d.Provisioned.TakenFrom).To(BeEmpty(), "from now on the mark must name this cluster")
		})
	}
}

func TestTheAssignmentsOnADiskCountBeforeAllOthers(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10))
	given := target.Spec.Lustre
	old := target.DeepCopy()
	old.Spec.FileSystem.UID = uidOld
	l := plan.Look{Device: blankDisk(made(old))}
	target.Spec.Lustre = nil
	said, why := plan.Said(target, l)
	g.Expect(why).To(BeEmpty())
	g.Expect(said).To(Equal(given))

	other := target.DeepCopy()
	other.Name = "other"
	said, why = plan.Said(other, l)
	g.Expect(said).To(BeNil(), "it is not this target's disk")
	g.Expect(why).To(BeEmpty())
	foreign := target.DeepCopy()
	foreign.Spec.Cluster = there
	said, _ = plan.Said(foreign, l)
	g.Expect(said).To(BeNil(), "it is another cluster's, and nobody has said that it may be taken over")

	said, why = plan.Said(aTarget(), plan.Look{Device: blankDisk(carrying(aTarget(), uuidOne, uidNow), func(f *plan.Facts) { f.Answer = l.Device.Answer })})
	g.Expect(said).To(BeNil(), "it is no target that only its own server mounts")
	g.Expect(why).To(BeEmpty())
	for _, without := range []func(f *plan.Facts){func(f *plan.Facts) { f.Answer = nil }, func(f *plan.Facts) { f.Marker = nil }} {
		silent := plan.Look{Device: blankDisk(made(old), without)}
		said, why = plan.Said(target, silent)
		g.Expect(said).To(BeNil(), "it does not say it")
		g.Expect(why).To(BeEmpty())
	}

	l.Device.Answer.Stdout = strings.Replace(l.Device.Answer.Stdout, "mgsnode=10.0.0.1@tcp", "mgsnode=10.0.0.1@tcp:10.0.0.2@tcp", 1)
	_, why = plan.Said(target, l)
	g.Expect(why).To(ContainSubstring("several nodes"))
}
