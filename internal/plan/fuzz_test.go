package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// randomFacts are a disk of which anything may have been found.
func randomFacts(r *rand.Rand, base plan.Facts, target *v1alpha1.StorageTarget) plan.Facts {
	f := base
	rarely := func() bool { return r.IntN(12) == 0 }
	kinds := []string{"ext4", "xfs", "btrfs", "gpt", "dos", "LVM2_member", "linux_raid_member", "swap", "crypto_LUKS", "zfs_member", "ambivalent", "xfs_external_log", "bcache", fmt.Sprint(r.Int())}
	uuids := []string{"", uuidOne, uuidTwo, fmt.Sprint(r.Int())}
	labels := []string{"", plan.Label(target), "pfs-0badcafe", "data", fmt.Sprint(r.Int())}
	if f.Type == "disk" && r.IntN(4) == 0 {
		carrying(target, uuidOne, []string{uidNow, uidOld}[r.IntN(2)])(&f)
		if r.IntN(2) == 0 {
			f.Marker = nil
		}
	} else if r.IntN(3) != 0 {
		for range r.IntN(3) {
			f.Signatures = append(f.Signatures, v1alpha1.Signature{
				Device: []string{f.KernelName, f.KernelName, f.KernelName, f.KernelName + "1"}[r.IntN(4)], Type: kinds[r.IntN(len(kinds))],
				Offset: fmt.Sprintf("0x%x", r.IntN(4)), UUID: uuids[r.IntN(len(uuids))], Label: labels[r.IntN(len(labels))],
			})
		}
	}
	change := func(do func()) {
		if rarely() {
			do()
		}
	}
	change(func() { f.Found = false })
	change(func() { f.Busy = "busy" })
	change(func() { f.Incomplete = "EIO" })
	change(func() { f.Renamed = "no device has the name that was recorded" })
	change(func() { f.TwoDisks = "these are two disks" })
	change(func() { f.Mounts = []string{"/mnt"} })
	change(func() { f.Mounts = append(f.Mounts, "[SWAP]") })
	change(func() { f.Holders = []string{"dm-0"} })
	change(func() { f.Partitions = []string{f.KernelName + "1"} })
	change(func() { f.ReadOnly = true })
	change(func() { f.SizeBytes += int64(r.IntN(3)) - 1 })
	change(func() { f.Serial = fmt.Sprint(r.Int()) })
	change(func() { f.WWN = "" })
	change(func() { f.IDs = nil })
	change(func() { f.Type = []string{"part", "lvm", "loop", "mpath", ""}[r.IntN(5)] })
	change(func() { f.Target = "storage/other" })
	change(func() { f.MarkerError = "EIO" })
	change(func() { f.Unknown = fmt.Sprintf("0x%x", r.IntN(3)) })
	change(func() { f.LogOf = &v1alpha1.Signature{Device: "sdz", Label: labels[r.IntN(len(labels))]} })
	change(func() {
		f.Marker = markerOf(target, uuids[r.IntN(len(uuids))], uidOld)
		change(func() { f.Marker.FileSystem = "home" })
	})
	return f
}

// checkDecision decides on a random target with a random look, and fails when a byte could be written that nobody gave up.
func checkDecision(t *testing.T, seed int64) plan.Action {
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	policies := []v1alpha1.FormatPolicy{v1alpha1.FormatNever, v1alpha1.FormatIfBlank, v1alpha1.FormatApproved, v1alpha1.FormatApproved}
	target := aTarget(policy(policies[r.IntN(len(policies))]))
	if r.IntN(3) == 0 {
		withLog(target)
	}
	l := plan.Look{Device: randomFacts(r, blankDisk(), target)}
	if target.Spec.LogDevice != nil {
		log := randomFacts(r, *blankLog(), target)
		l.Log = &log
	}
	switch r.IntN(12) {
	case 0:
		l.Mount = plan.Mounted{Mounted: true, UUID: uuidOne, KernelName: "sdb"}
	case 1:
		l.Mount = plan.Mounted{Mounted: true, UUID: uuidOne, KernelName: "sdb", Marker: markerOf(target, uuidOne, uidNow)}
	case 2:
		l.Mount.Problem = "EIO"
	case 3:
		l.Kernel.FSTypeMissing = "no module"
	case 4:
		target.Spec.Conflict = "wanted twice"
	}
	switch r.IntN(4) {
	case 0, 1:
		begun(target)
	case 2:
		finished(target)
	}
	// The look of before, when the plan was shown and perhaps approved: the same one, or another.
	before := l
	if r.IntN(3) == 0 {
		before.Device = randomFacts(r, blankDisk(), target)
	}
	shown := plan.Make(target, before, uuidOne)
	if r.IntN(4) != 0 {
		target.Status.Plan = &shown
		if p := target.Status.Provisioned; p != nil && r.IntN(2) == 0 {
			p.PlanHash = shown.Hash
		}
	}
	if r.IntN(3) != 0 {
		target.Spec.ApprovedPlan = shown.Hash
	}
	if r.IntN(8) == 0 {
		deleted([]string{"", uidNow, uidNow, uidNow, uidOld}[r.IntN(5)])(target)
	}

	given := target.DeepCopy()
	d := plan.Decide(target, l, now, func() string { return uuidOne })
	if !slices.Equal(given.Status.Conditions, target.Status.Conditions) || given.Spec.ApprovedPlan != target.Spec.ApprovedPlan {
		t.Fatalf("seed %d: Decide changed the target", seed)
	}
	if d.Action == plan.Record || d.Action == plan.Format {
		mayWrite(t, seed, target, l, d)
	}
	if d.Action == plan.Wipe {
		mayWipe(t, seed, target, l)
	}
	if d.Ready.Message == "" || d.Ready.Reason == "" || (d.Ready.Status == metav1.ConditionTrue) != (d.Ready.Reason == v1alpha1.ReasonProven) {
		t.Fatalf("seed %d: the decision %+v does not show why", seed, d)
	}
	if d.Action != plan.Format && d.Action != plan.Wipe && d.Action != plan.Mount && len(d.Steps) > 0 {
		t.Fatalf("seed %d: %s has steps", seed, d.Action)
	}
	return d.Action
}

// mayWrite fails unless every rule holds, and all that is on the devices is nothing, the record's own, or approved.
func mayWrite(t *testing.T, seed int64, target *v1alpha1.StorageTarget, l plan.Look, d plan.Decision) {
	fail := func(why string) {
		t.Fatalf("seed %d: %s although %s\ntarget %+v\nlook %+v", seed, d.Action, why, target, l)
	}
	p := target.Status.Provisioned
	if p != nil && p.Finished != nil || target.DeletionTimestamp != nil || target.Spec.Conflict != "" || target.Spec.FormatPolicy == v1alpha1.FormatNever {
		fail("the target is finished, deleted, in conflict or never to be formatted")
	}
	if l.Mount.Mounted || l.Mount.Problem != "" || l.Kernel.FSTypeMissing != "" {
		fail("the mountpoint or the kernel is not ready")
	}
	devices := []plan.Facts{l.Device}
	identities := []v1alpha1.DeviceIdentity{target.Spec.Device}
	if target.Spec.LogDevice != nil {
		devices, identities = append(devices, *l.Log), append(identities, *target.Spec.LogDevice)
	}
	blank := true
	for i, f := range devices {
		for _, says := range []string{
			plan.Exists(f), plan.HasIdentity(f, identities[i]), plan.IsLookComplete(f), plan.IsOneDisk(f), plan.HasItsName(f), plan.IsWritable(f), plan.HasNoHolders(f), plan.IsNotMounted(f), plan.IsNoSwap(f),
			plan.OpensExclusively(f), plan.HasStableID(f), plan.IsNoOthersTarget(f, target), plan.IsMarkerRead(f), plan.HoldsNoTarget(f), plan.IsNoOthersLog(f, target), plan.IsWholeDiskOrPartition(f),
		} {
			if says != "" {
				fail(says)
			}
		}
		if i == 0 && plan.IsWholeDisk(f) != "" {
			fail(plan.IsWholeDisk(f))
		}
		blank = blank && len(f.Signatures) == 0 && len(f.Partitions) == 0 && f.Unknown == ""
	}
	if d.Action == plan.Format {
		if p == nil || len(d.Steps) == 0 {
			fail("nothing was recorded before")
		}
		if blank {
			return
		}
		// An approval of a plan whose finds are all that is there.
		begun := target.Status.Plan
		if target.Spec.FormatPolicy != v1alpha1.FormatApproved || begun == nil || begun.Hash != target.Spec.ApprovedPlan || begun.Hash != p.PlanHash {
			fail("what is on the devices was not given up")
		}
		for _, line := range plan.Destroys(target, l) {
			if !slices.Contains(begun.Destroys, line) {
				fail(line + " is not part of what was approved")
			}
		}
		return
	}
	exact := plan.Make(target, l, d.Provisioned.UUID).Hash
	if d.Provisioned.PlanHash != exact {
		fail("the record names another plan")
	}
	if target.Spec.FormatPolicy == v1alpha1.FormatApproved && target.Spec.ApprovedPlan != exact {
		fail("another plan was approved")
	}
	if target.Spec.FormatPolicy == v1alpha1.FormatIfBlank && !blank {
		fail("the devices are not blank")
	}
}

// mayWipe fails unless the disk proves to be the target's own, of the FileSystem that is to be destroyed.
func mayWipe(t *testing.T, seed int64, target *v1alpha1.StorageTarget, l plan.Look) {
	m, p := l.Device.Marker, target.Status.Provisioned
	if target.DeletionTimestamp == nil || target.Spec.DestroyFor == "" || p == nil || m == nil || m.FileSystemUID != target.Spec.DestroyFor ||
		m.UUID != p.UUID || m.Target != target.Name || plan.HasIdentityOrGrew(l.Device, target.Spec.Device) != "" || l.Mount.Mounted || l.Device.Busy != "" || l.Device.TwoDisks != "" {
		t.Fatalf("seed %d: wiped without proof: %+v", seed, l)
	}
}

func FuzzDecideNeverWritesWhereItMayNot(f *testing.F) {
	for seed := range int64(16) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed int64) { checkDecision(t, seed) })
}

func TestDecideNeverWritesWhereItMayNot(t *testing.T) {
	counts := map[plan.Action]int{}
	for seed := range int64(20000) {
		counts[checkDecision(t, seed)]++
	}
	for _, a := range []plan.Action{plan.None, plan.Record, plan.Format, plan.Mark, plan.Mount, plan.Adopt, plan.Unmount, plan.Wipe} {
		if counts[a] < 5 {
			t.Errorf("the random disks led only %d times to %s: %v", counts[a], a, counts)
		}
	}
}

func FuzzMkfsOptionsNameNoDevice(f *testing.F) {
	for _, seed := range []string{"-f", "-Lx", "/dev/sda", "-l", "logdev=x", "--label=x", "-m", "uuid=1"} {
		f.Add(seed, "sdc")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, fsType := range []v1alpha1.FSType{v1alpha1.Ext4, v1alpha1.XFS, v1alpha1.Btrfs} {
			refused := plan.RefusedMkfsOptions(v1alpha1.FormatSpec{FSType: fsType, MkfsOptions: []v1alpha1.MkfsOption{v1alpha1.MkfsOption(a), v1alpha1.MkfsOption(b)}})
			if len(refused) > 0 {
				continue
			}
			if a == "" || a[0] != '-' {
				t.Fatalf("mkfs.%s would take %q for a device", fsType, a)
			}
		}
	})
}
