package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestEveryRuleHasAMessage(t *testing.T) {
	target := aTarget()
	identity := target.Spec.Device
	hasIdentity := func(f plan.Facts) string { return plan.HasIdentity(f, identity) }
	isNoOthersTarget := func(f plan.Facts) string { return plan.IsNoOthersTarget(f, target) }
	isNoOthersLog := func(f plan.Facts) string { return plan.IsNoOthersLog(f, target) }
	other := aTarget(func(o *v1alpha1.StorageTarget) { o.Spec.FileSystem.Name, o.Name = "home", "home-ssd-00000000" })
	for name, c := range map[string]struct {
		rule   func(plan.Facts) string
		change func(*plan.Facts)
		says   string
	}{
		"a device that is not there does not exist":          {plan.Exists, func(f *plan.Facts) { f.Found = false }, "not there"},
		"a disk that lost its id is another disk":            {hasIdentity, func(f *plan.Facts) { f.IDs = []string{"wwn-0x1"} }, "its names are wwn-0x1"},
		"a disk with a wrong serial is another disk":         {hasIdentity, func(f *plan.Facts) { f.Serial = "S2" }, `wrong serial: wwn-0x5000c500a1b2c3d4 was recorded with serial "S1" and has "S2" now`},
		"a disk that lost its serial is another disk":        {hasIdentity, func(f *plan.Facts) { f.Serial = "" }, `has "" now`},
		"a disk with a wrong WWN is another disk":            {hasIdentity, func(f *plan.Facts) { f.WWN = "0x1" }, "wrong WWN"},
		"a disk that shrank by a sector is refused":          {hasIdentity, func(f *plan.Facts) { f.SizeBytes -= 512 }, "shrunk disk"},
		"a disk that grew by a sector is refused":            {hasIdentity, func(f *plan.Facts) { f.SizeBytes += 512 }, "grown disk"},
		"a partition is no whole disk":                       {plan.IsWholeDisk, func(f *plan.Facts) { f.Type = "part" }, "is a partition"},
		"a logical volume is no whole disk":                  {plan.IsWholeDisk, func(f *plan.Facts) { f.Type = "lvm" }, `type "lvm"`},
		"an encrypted device is no whole disk":               {plan.IsWholeDisk, func(f *plan.Facts) { f.Type = "crypt" }, `type "crypt"`},
		"a device of no type is no whole disk":               {plan.IsWholeDisk, func(f *plan.Facts) { f.Type = "" }, `type ""`},
		"a logical volume is no log device":                  {plan.IsWholeDiskOrPartition, func(f *plan.Facts) { f.Type = "lvm" }, `type "lvm"`},
		"a write-protected disk is not writable":             {plan.IsWritable, func(f *plan.Facts) { f.ReadOnly = true }, "read-only"},
		"a partitioned disk has partitions":                  {plan.HasNoPartitions, func(f *plan.Facts) { f.Partitions = []string{"sdb1", "sdb2"} }, "sdb1, sdb2"},
		"a member of a multipath device has a holder":        {plan.HasNoHolders, func(f *plan.Facts) { f.Holders = []string{"dm-3"} }, "dm-3 is made from it"},
		"a disk that is mounted somewhere is mounted":        {plan.IsNotMounted, func(f *plan.Facts) { f.Mounts = []string{"/home", "[SWAP]"} }, "mounted at /home; unmount"},
		"swap space in use is swap":                          {plan.IsNoSwap, func(f *plan.Facts) { f.Mounts = []string{"[SWAP]"} }, "swapoff"},
		"a filesystem is a signature":                        {plan.HasNoSignatures, holding("ext4", "u", `my "data"`), `sdb: ext4 at 0x0, label "my \"data\"", uuid u`},
		"a probe that could not tell is ambivalent":          {plan.IsNotAmbivalent, holding("ambivalent", "", ""), "several things at once"},
		"data without a signature is data":                   {plan.HoldsNothingUnknown, func(f *plan.Facts) { f.Unknown = "0x0" }, "data that no probe knows lies at 0x0"},
		"a look that was cut off is not complete":            {plan.IsLookComplete, func(f *plan.Facts) { f.Incomplete = "I/O error at 0" }, "I/O error at 0"},
		"a disk that lost its name is not formatted":         {plan.HasItsName, func(f *plan.Facts) { f.Renamed = "sdb has another name" }, "never formatted"},
		"paths to two disks are not one disk":                {plan.IsOneDisk, func(f *plan.Facts) { f.TwoDisks = "these are two disks" }, "these are two disks"},
		"a device that can't be opened exclusively is busy":  {plan.OpensExclusively, func(f *plan.Facts) { f.Busy = "held by pid 7" }, "held by pid 7"},
		"a disk that another machine has mounted is in use":  {plan.IsMountedNowhereElse, func(f *plan.Facts) { f.Elsewhere = "the machine \"oss2\" has it mounted" }, `sdb is in use: the machine "oss2" has it mounted`},
		"a disk with kernel names only has no stable name":   {plan.HasStableID, func(f *plan.Facts) { f.IDs, f.WWN, f.Serial = []string{"sdb"}, "", "" }, "no stable name"},
		"a marker of another FileSystem is another's target": {isNoOthersTarget, carrying(other, uuidTwo, uidOld), "FileSystem storage/home"},
		"a label of another target is another's target":      {isNoOthersTarget, holding("xfs", uuidTwo, plan.Label(other)), "label " + `"` + plan.Label(other)},
		"a label of another target on a partition is another's": {isNoOthersTarget, func(f *plan.Facts) {
			f.Signatures = []v1alpha1.Signature{{Device: "sdb1", Type: "xfs", Label: "pfs-0badcafe"}}
		}, "sdb1 carries the label"},
		"a name of another target is another's target":   {isNoOthersTarget, func(f *plan.Facts) { f.Target = "storage/home-x" }, "StorageTarget storage/home-x"},
		"a marker of this target holds a target":         {plan.HoldsNoTarget, carrying(target, uuidOne, uidNow), "carries the marker"},
		"a log of another target's XFS is another's log": {isNoOthersLog, func(f *plan.Facts) { f.LogOf = &v1alpha1.Signature{Device: "sdz", Label: "pfs-0badcafe"} }, "is the log of the target"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(c.rule(blankDisk())).To(BeEmpty(), "a blank disk keeps the rule")
			g.Expect(c.rule(blankDisk(c.change))).To(ContainSubstring(c.says))
		})
	}
}

func TestRulesHoldWhereTheyShould(t *testing.T) {
	target := aTarget()
	for name, says := range map[string]string{
		"a multipath device is a whole disk": plan.IsWholeDisk(blankDisk(func(f *plan.Facts) { f.Type = "mpath" })),
		"a RAID is a whole disk":             plan.IsWholeDisk(blankDisk(func(f *plan.Facts) { f.Type = "raid10" })),
		"a partition may be a log":           plan.IsWholeDiskOrPartition(*blankLog()),
		"swap is not a mount":                plan.IsNotMounted(blankDisk(func(f *plan.Facts) { f.Mounts = []string{"[SWAP]"} })),
		"a serial is a stable name":          plan.HasStableID(blankDisk(func(f *plan.Facts) { f.IDs, f.WWN = nil, "" })),
		"what was recorded as empty is not compared": plan.HasIdentity(blankDisk(),
			v1alpha1.DeviceIdentity{ID: "wwn-0x5000c500a1b2c3d4", SizeBytes: tib}),
		"a disk may be known by its serial": plan.HasIdentity(blankDisk(), v1alpha1.DeviceIdentity{ID: "S1", SizeBytes: tib}),
		"its own label is not another's":    plan.IsNoOthersTarget(blankDisk(holding("xfs", uuidOne, plan.Label(target))), target),
		"a log of its own XFS is its own":   plan.IsNoOthersLog(*blankLog(func(f *plan.Facts) { f.LogOf = &v1alpha1.Signature{Label: plan.Label(target)} }), target),
		"a by-id name is stable":            plan.IsNamedStably("wwn-0x5000c500a1b2c3d4"),
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(says).To(BeEmpty()) })
	}
}

func TestADiskThatALookAscribesToATargetIsNotBlank(t *testing.T) {
	own := aTarget()
	ascribed := func(f *plan.Facts) { f.Target = own.Namespace + "/" + own.Name }
	g := NewWithT(t)
	g.Expect(plan.Blank(blankDisk(ascribed))).To(ConsistOf("sdb carries StorageTarget " + own.Namespace + "/" + own.Name))
	g.Expect(plan.Blank(blankDisk(carrying(own, uuidOne, uidNow), ascribed))).NotTo(ContainElement(HavePrefix("sdb carries StorageTarget ")), "its marker says it")
	g.Expect(decide(own, look(ascribed)).Action).To(Equal(plan.None))
}

func TestKernelNamesAreNoIDs(t *testing.T) {
	for _, name := range []v1alpha1.DeviceID{"sda", "sdab", "vda1", "nvme0n1", "nvme10n2p3", "dm-3", "md127", "loop0", "mmcblk0p1", ""} {
		NewWithT(t).Expect(plan.IsNamedStably(name)).NotTo(BeEmpty(), string(name))
	}
}

func TestLabelsFitXFS(t *testing.T) {
	g := NewWithT(t)
	g.Expect(plan.Label(aTarget())).To(MatchRegexp(`^pfs-[0-9a-f]{8}$`))
	g.Expect(plan.Label(aTarget(func(t *v1alpha1.StorageTarget) { t.Namespace = "other" }))).NotTo(Equal(plan.Label(aTarget())))
}

// hostile are disks that must be left as they are, with whether an approval may give up what is on them.
func hostile() map[string]struct {
	change     func(*plan.Facts)
	approvable bool
} {
	return map[string]struct {
		change     func(*plan.Facts)
		approvable bool
	}{
		"mounted":                      {func(f *plan.Facts) { holding("ext4", "u", "")(f); f.Mounts = []string{"/srv"} }, false},
		"partitioned":                  {func(f *plan.Facts) { holding("gpt", "u", "")(f); f.Partitions = []string{"sdb1"} }, true},
		"partitions only":              {func(f *plan.Facts) { f.Partitions = []string{"sdb1"} }, true},
		"LVM in use":                   {func(f *plan.Facts) { holding("LVM2_member", "u", "")(f); f.Holders = []string{"dm-0"} }, false},
		"LVM at rest":                  {holding("LVM2_member", "u", ""), true},
		"RAID in use":                  {func(f *plan.Facts) { holding("linux_raid_member", "u", "")(f); f.Holders = []string{"md0"} }, false},
		"RAID at rest":                 {holding("linux_raid_member", "u", ""), true},
		"swap in use":                  {func(f *plan.Facts) { holding("swap", "u", "")(f); f.Mounts = []string{"[SWAP]"} }, false},
		"swap at rest":                 {holding("swap", "u", ""), true},
		"LUKS":                         {holding("crypto_LUKS", "u", ""), true},
		"ext4":                         {holding("ext4", "u", "data"), true},
		"XFS":                          {holding("xfs", "u", "data"), true},
		"XFS log":                      {holding("xfs_external_log", "u", ""), true},
		"ZFS":                          {holding("zfs_member", "u", "tank"), true},
		"ambivalent":                   {holding("ambivalent", "", ""), true},
		"label of another target":      {holding("xfs", "u", "pfs-0badcafe"), false},
		"target of another FileSystem": {carrying(aTarget(func(o *v1alpha1.StorageTarget) { o.Spec.FileSystem.Name = "home" }), uuidTwo, uidOld), false},
		"shrunk":                       {func(f *plan.Facts) { f.SizeBytes-- }, false},
		"grown":                        {func(f *plan.Facts) { f.SizeBytes++ }, false},
		"wrong serial":                 {func(f *plan.Facts) { f.Serial = "S9" }, false},
		"wrong WWN":                    {func(f *plan.Facts) { f.WWN = "0x9" }, false},
		"read-only":                    {func(f *plan.Facts) { f.ReadOnly = true }, false},
		"mounted by another machine":   {func(f *plan.Facts) { holding("ext4", "u", "data")(f); f.Elsewhere = "oss2 has it mounted" }, false},
		"busy by O_EXCL":               {func(f *plan.Facts) { f.Busy = "device or resource busy" }, false},
		"found by another name":        {func(f *plan.Facts) { f.Renamed = "no device has the name that was recorded" }, false},
		"two disks as one":             {func(f *plan.Facts) { f.TwoDisks = "dm-0 has paths to sda and sdb" }, false},
		"not all known":                {func(f *plan.Facts) { f.Incomplete = "I/O error" }, false},
		"not there":                    {func(f *plan.Facts) { *f = plan.Facts{} }, false},
		"a partition":                  {func(f *plan.Facts) { f.Type = "part" }, false},
		"log of another target": {func(f *plan.Facts) {
			holding("xfs_external_log", "u", "")(f)
			f.LogOf = &v1alpha1.Signature{Device: "sdz", Label: "pfs-0badcafe"}
		}, false},
		"own target that can't be adopted": {func(f *plan.Facts) { carrying(aTarget(), uuidTwo, uidOld)(f); f.Signatures[0].UUID = uuidOne }, false},
	}
}

func TestHostileDisksAreUnusable(t *testing.T) {
	for name, h := range hostile() {
		f := blankDisk(h.change)
		if f.Renamed != "" {
			continue // An inventory looks for no name.
		}
		if plan.HasIdentity(f, aTarget().Spec.Device) != "" && f.Found {
			continue // A wrong identity is a matter between a target and a disk.
		}
		NewWithT(t).Expect(plan.Unusable(f)).NotTo(BeEmpty(), name)
	}
	NewWithT(t).Expect(plan.Unusable(blankDisk())).To(BeEmpty())
	NewWithT(t).Expect(plan.Blank(*blankLog())).To(BeEmpty(), "a blank partition is blank")
	NewWithT(t).Expect(plan.Unusable(*blankLog())).To(ConsistOf(ContainSubstring("is a partition")))
}
