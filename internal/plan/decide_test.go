package plan_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func decide(t *v1alpha1.StorageTarget, l plan.Look) plan.Decision {
	return plan.Decide(t, l, now, fixedUUID)
}

func look(changes ...func(*plan.Facts)) plan.Look { return plan.Look{Device: blankDisk(changes...)} }

func TestHostileDisksAreNeverFormatted(t *testing.T) {
	for name, h := range hostile() {
		for _, p := range []v1alpha1.FormatPolicy{v1alpha1.FormatNever, v1alpha1.FormatIfBlank, v1alpha1.FormatApproved, "", "Always"} {
			for state, record := range map[string]func(*v1alpha1.StorageTarget){"new": func(*v1alpha1.StorageTarget) {}, "begun": begun, "finished": finished} {
				t.Run(name+", policy "+string(p)+", "+state, func(t *testing.T) {
					g := NewWithT(t)
					d := decide(aTarget(policy(p), record), look(h.change))
					g.Expect(d.Action).To(Equal(plan.None))
					g.Expect(d.Steps).To(BeEmpty())
					g.Expect(d.Ready.Status).To(Equal(metav1.ConditionFalse))
					g.Expect(d.Progress).To(Equal(plan.Stalled))
					g.Expect(d.Ready.Message).NotTo(BeEmpty())
				})
			}
		}
		t.Run(name+", with an approval of what is shown", func(t *testing.T) {
			g := NewWithT(t)
			target := aTarget(policy(v1alpha1.FormatApproved))
			first := decide(target, look(h.change))
			if first.Plan == nil {
				g.Expect(h.approvable).To(BeFalse(), "there is nothing to approve")
				return
			}
			target.Status.Plan, target.Spec.ApprovedPlan = first.Plan, first.Plan.Hash
			d := decide(target, look(h.change))
			if h.approvable {
				g.Expect(d.Action).To(Equal(plan.Record))
				g.Expect(d.Plan.Destroys).NotTo(BeEmpty())
			} else {
				g.Expect(d.Action).To(Equal(plan.None))
				g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
			}
		})
	}
}

func TestHostileLogsAreNeverOverwritten(t *testing.T) {
	for name, h := range hostile() {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := look()
			l.Log = blankLog(func(f *plan.Facts) {
				f.Type = "disk"
				h.change(f)
				if name == "a partition" {
					f.Holders = []string{"dm-1"} // A partition may be a log; this one is in use.
				}
			})
			target := aTarget(withLog)
			g.Expect(decide(target, l).Action).To(Equal(plan.None))
			target.Spec.FormatPolicy = v1alpha1.FormatApproved
			first := decide(target, l)
			target.Status.Plan, target.Spec.ApprovedPlan = first.Plan, first.Plan.Hash
			want := plan.None
			if h.approvable {
				want = plan.Record
			}
			g.Expect(decide(target, l).Action).To(Equal(want))
			begun(target)
			target.Spec.FormatPolicy = v1alpha1.FormatIfBlank
			g.Expect(decide(target, l).Action).To(Equal(plan.None))
		})
	}
}

func TestDecideOnANewTarget(t *testing.T) {
	ours := aTarget()
	conflict := func(t *v1alpha1.StorageTarget) { t.Spec.Conflict = "wanted twice: by a and by b" }
	btrfs := func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = v1alpha1.Btrfs }
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		action plan.Action
		reason string
		says   string
	}{
		"a blank disk is recorded first":                             {aTarget(), look(), plan.Record, v1alpha1.ReasonProvisioning, "sha256:"},
		"a blank disk with policy Never is left alone":               {aTarget(policy(v1alpha1.FormatNever)), look(), plan.None, v1alpha1.ReasonFormatForbidden, "IfBlank or Approved"},
		"a blank disk with policy Approved waits":                    {aTarget(policy(v1alpha1.FormatApproved)), look(), plan.None, v1alpha1.ReasonAwaitingApproval, "kubectl patch storagetarget"},
		"an unknown policy formats nothing":                          {aTarget(policy("Always")), look(), plan.None, v1alpha1.ReasonFormatForbidden, "unknown"},
		"a conflict blocks a blank disk":                             {aTarget(conflict), look(), plan.None, v1alpha1.ReasonDeviceConflict, "by a and by b"},
		"a disk with data and policy IfBlank says what would help":   {aTarget(), look(holding("ext4", "u", "home")), plan.None, v1alpha1.ReasonDeviceRefused, `label "home"`},
		"its own disk of a FileSystem from before is adopted":        {aTarget(policy(v1alpha1.FormatNever)), look(carrying(ours, uuidTwo, uidOld)), plan.Adopt, v1alpha1.ReasonProvisioning, uuidTwo},
		"its own disk, still mounted, is adopted":                    {aTarget(), mounted(ours, uuidTwo, uidOld), plan.Adopt, v1alpha1.ReasonProvisioning, uuidTwo},
		"a conflict blocks the adoption":                             {aTarget(conflict), look(carrying(ours, uuidTwo, uidOld)), plan.None, v1alpha1.ReasonDeviceConflict, "by a"},
		"its own disk with another filesystem than asked for stays":  {aTarget(btrfs), look(carrying(ours, uuidTwo, uidOld)), plan.None, v1alpha1.ReasonDeviceRefused, "where btrfs"},
		"a marker that was copied from another disk proves nothing":  {aTarget(), look(holding("xfs", uuidOne, plan.Label(ours)), func(f *plan.Facts) { f.Marker = markerOf(ours, uuidTwo, uidNow) }), plan.None, v1alpha1.ReasonDeviceRefused, uuidTwo},
		"its own disk that was grown is not adopted":                 {aTarget(), look(carrying(ours, uuidTwo, uidOld), func(f *plan.Facts) { f.SizeBytes++ }), plan.None, v1alpha1.ReasonDeviceRefused, "grown disk"},
		"its own disk that is mounted elsewhere is not adopted":      {aTarget(), look(carrying(ours, uuidTwo, uidOld), func(f *plan.Facts) { f.Mounts = []string{"/mnt"} }), plan.None, v1alpha1.ReasonDeviceRefused, "/mnt"},
		"a marker of another role is another's":                      {aTarget(), look(carrying(ours, uuidTwo, uidOld), func(f *plan.Facts) { f.Marker.Role = "Metadata" }), plan.None, v1alpha1.ReasonDeviceRefused, "wipe it by hand"},
		"a marker of another pool is another's":                      {aTarget(), look(carrying(ours, uuidTwo, uidOld), func(f *plan.Facts) { f.Marker.StoragePool = "hdd" }), plan.None, v1alpha1.ReasonDeviceRefused, "wipe it by hand"},
		"something else at the mountpoint blocks the plan":           {aTarget(), plan.Look{Device: blankDisk(), Mount: plan.Mounted{Mounted: true, KernelName: "sdq"}}, plan.None, v1alpha1.ReasonDeviceRefused, "sdq is mounted at the target's mountpoint"},
		"a mountpoint with a problem blocks the plan":                {aTarget(), plan.Look{Device: blankDisk(), Mount: plan.Mounted{Problem: "it is not empty"}}, plan.None, v1alpha1.ReasonDeviceRefused, "it is not empty"},
		"a kernel without the filesystem blocks the plan":            {aTarget(), plan.Look{Device: blankDisk(), Kernel: plan.Kernel{FSTypeMissing: "no module xfs"}}, plan.None, v1alpha1.ReasonDeviceRefused, "no module xfs"},
		"a mount option that the kernel refuses blocks the plan":     {aTarget(), plan.Look{Device: blankDisk(), Kernel: plan.Kernel{RefusedOptions: map[string]string{"nobarrier": "Unknown parameter"}}}, plan.None, v1alpha1.ReasonDeviceRefused, `refuses "nobarrier" for xfs (Unknown parameter)`},
		"a log that was not looked at blocks the plan":               {aTarget(withLog), look(), plan.None, v1alpha1.ReasonDeviceRefused, "log device was not looked at"},
		"a log below 64 MiB blocks the plan":                         {aTarget(withLog, func(t *v1alpha1.StorageTarget) { t.Spec.LogDevice.SizeBytes = 1 << 20 }), plan.Look{Device: blankDisk(), Log: blankLog(func(f *plan.Facts) { f.SizeBytes = 1 << 20 })}, plan.None, v1alpha1.ReasonDeviceRefused, "needs 64 MiB"},
		"a log on the disk itself blocks the plan":                   {aTarget(withLog), plan.Look{Device: blankDisk(), Log: blankLog(func(f *plan.Facts) { f.KernelName = "sdb" })}, plan.None, v1alpha1.ReasonDeviceRefused, "the disk itself"},
		"a log for ext4 blocks the plan":                             {aTarget(withLog, func(t *v1alpha1.StorageTarget) { t.Spec.Format.FSType = v1alpha1.Ext4 }), plan.Look{Device: blankDisk(), Log: blankLog()}, plan.None, v1alpha1.ReasonDeviceRefused, "belongs to XFS"},
		"a blank log and a blank disk are recorded":                  {aTarget(withLog), plan.Look{Device: blankDisk(), Log: blankLog()}, plan.Record, v1alpha1.ReasonProvisioning, "sha256:"},
		"its own label without a marker needs an approval":           {aTarget(), look(holding("xfs", uuidTwo, plan.Label(ours))), plan.None, v1alpha1.ReasonDeviceRefused, "the label of this very target"},
		"its own label with a marker that can't be read is refused":  {aTarget(policy(v1alpha1.FormatApproved)), look(holding("xfs", uuidTwo, plan.Label(ours)), func(f *plan.Facts) { f.MarkerError = "busy" }), plan.None, v1alpha1.ReasonDeviceRefused, "could not be read; it may hold data of an earlier FileSystem: busy"},
		"its own disk in use is refused, and no wipe is advised":     {aTarget(policy(v1alpha1.FormatApproved)), look(holding("xfs", uuidTwo, plan.Label(ours)), func(f *plan.Facts) { f.MarkerError, f.Mounts = "in use", []string{"/mnt"} }), plan.None, v1alpha1.ReasonDeviceRefused, "of an earlier FileSystem: in use; the marker is read when nobody uses the device"},
		"a disk that is known by a kernel name is refused":           {aTarget(func(t *v1alpha1.StorageTarget) { t.Spec.Device.ID = "sdb" }), look(func(f *plan.Facts) { f.IDs = []string{"sdb"} }), plan.None, v1alpha1.ReasonDeviceRefused, "is a kernel name"},
		"its own disk with its own log is adopted":                   {aTarget(withLog), plan.Look{Device: blankDisk(carrying(ours, uuidTwo, uidOld)), Log: blankLog(holding("xfs_external_log", uuidTwo, ""))}, plan.Adopt, v1alpha1.ReasonProvisioning, uuidTwo},
		"its own disk with another XFS's log is not adopted":         {aTarget(withLog), plan.Look{Device: blankDisk(carrying(ours, uuidTwo, uidOld)), Log: blankLog(holding("xfs_external_log", uuidOne, ""))}, plan.None, v1alpha1.ReasonDeviceRefused, "log device: nvme0n1p1: xfs_external_log"},
		"a target that is adopted without the log that it has stays": {aTarget(withLog), plan.Look{Device: blankDisk(carrying(ours, uuidTwo, uidOld)), Log: blankLog()}, plan.None, v1alpha1.ReasonDeviceRefused, "log device: nvme0n1p1 is blank"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide(c.target, c.look)
			g.Expect(d.Action).To(Equal(c.action), d.Ready.Message)
			g.Expect(d.Ready.Reason).To(Equal(c.reason))
			g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
			switch c.action {
			case plan.Record:
				g.Expect(d.Provisioned).To(And(HaveField("UUID", uuidOne), HaveField("PlanHash", d.Plan.Hash), HaveField("Finished", BeNil()), HaveField("Started", Not(BeNil()))))
				g.Expect(d.Steps).To(BeEmpty(), "nothing is done before the record is written")
			case plan.Adopt:
				g.Expect(d.Provisioned).To(And(HaveField("UUID", uuidTwo), HaveField("PlanHash", ""), HaveField("Finished", Not(BeNil()))))
			default:
				g.Expect(d.Provisioned).To(BeNil())
			}
		})
	}
}

func TestDecideOnABegunTarget(t *testing.T) {
	ours := aTarget()
	ourDisk := holding("xfs", uuidOne, plan.Label(ours))
	withMount := func(l plan.Look, change func(*plan.Look)) plan.Look { change(&l); return l }
	change := withMount
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		action plan.Action
		reason string
		says   string
	}{
		"a blank disk is formatted":                             {aTarget(begun), look(), plan.Format, v1alpha1.ReasonProvisioning, ""},
		"a disk with data that no probe recognizes is refused":  {aTarget(begun), look(func(f *plan.Facts) { f.Unknown = "0x200" }), plan.None, v1alpha1.ReasonDeviceRefused, "data that no probe knows lies at 0x200"},
		"a filesystem with the recorded UUID is mounted":        {aTarget(begun), look(ourDisk), plan.Mount, v1alpha1.ReasonProvisioning, "is not made again"},
		"one whose marker can't be read is mounted":             {aTarget(begun), look(ourDisk, func(f *plan.Facts) { f.MarkerError = "EIO" }), plan.Mount, v1alpha1.ReasonProvisioning, "is not made again"},
		"one that this kernel can't mount is left alone":        {aTarget(begun), change(look(ourDisk), func(l *plan.Look) { l.Kernel.FSTypeMissing = "no module" }), plan.None, v1alpha1.ReasonMountFailed, "no module"},
		"a disk that is open is waited for":                     {aTarget(begun), look(ourDisk, func(f *plan.Facts) { f.MarkerError, f.Busy = "busy", "opened" }), plan.None, v1alpha1.ReasonDeviceRefused, "opened"},
		"a disk with another UUID is refused":                   {aTarget(begun), look(holding("xfs", uuidTwo, plan.Label(ours))), plan.None, v1alpha1.ReasonDeviceRefused, "the device has changed since then"},
		"a disk with no UUID is refused":                        {aTarget(begun), look(holding("ext4", "", "")), plan.None, v1alpha1.ReasonDeviceRefused, "the device has changed since then"},
		"a disk with its own and another find is refused":       {aTarget(begun), look(ourDisk, holding("ext4", "u", "")), plan.None, v1alpha1.ReasonDeviceRefused, "ext4"},
		"the marker means that nothing is formatted":            {aTarget(begun), look(carrying(ours, uuidOne, uidNow)), plan.Adopt, v1alpha1.ReasonProvisioning, uuidOne},
		"a marker with another UUID is never formatted over":    {aTarget(begun), look(carrying(ours, uuidTwo, uidNow)), plan.None, v1alpha1.ReasonDeviceRefused, "carries the marker"},
		"a mounted filesystem gets its marker":                  {aTarget(begun), withMount(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.Marker = nil }), plan.Mark, v1alpha1.ReasonProvisioning, "marker"},
		"a mounted filesystem with its marker is finished":      {aTarget(begun), mounted(ours, uuidOne, uidNow), plan.Adopt, v1alpha1.ReasonProvisioning, uuidOne},
		"a marker that can't be understood is not written over": {aTarget(begun), withMount(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.Marker, l.Mount.MarkerError = nil, "has version 2" }), plan.None, v1alpha1.ReasonDeviceRefused, "stays as it is: has version 2"},
		"a mounted filesystem of another disk gets no marker":   {aTarget(begun), withMount(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.Marker, l.Mount.KernelName = nil, "sdc" }), plan.None, v1alpha1.ReasonDeviceRefused, "sdc"},
		"one that is mounted with a fault is not made":          {aTarget(begun), withMount(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.Marker, l.Mount.Problem, l.Device.Busy = nil, "2 mounts on each other", "" }), plan.None, v1alpha1.ReasonDeviceRefused, "unmount it there first"},
		"policy Never stops what was begun":                     {aTarget(begun, policy(v1alpha1.FormatNever)), look(), plan.None, v1alpha1.ReasonFormatForbidden, "set it back"},
		"a conflict stops what was begun":                       {aTarget(begun, func(t *v1alpha1.StorageTarget) { t.Spec.Conflict = "a and b" }), look(), plan.None, v1alpha1.ReasonDeviceConflict, "a and b"},
		"a disk that was replaced by a blank one is refused":    {aTarget(begun), look(func(f *plan.Facts) { f.Serial = "S2" }), plan.None, v1alpha1.ReasonDeviceRefused, "wrong serial"},
		"a disk and a log with the recorded UUID are mounted":   {aTarget(begun, withLog), plan.Look{Device: blankDisk(ourDisk), Log: blankLog(holding("xfs_external_log", uuidOne, ""))}, plan.Mount, v1alpha1.ReasonProvisioning, ""},
		"a log that mkfs made before it was cut off is shown":   {aTarget(begun, withLog), plan.Look{Device: blankDisk(), Log: blankLog(holding("xfs_external_log", uuidOne, ""))}, plan.None, v1alpha1.ReasonDeviceRefused, "the device has changed since then"},
		"a log with another UUID is refused":                    {aTarget(begun, withLog), plan.Look{Device: blankDisk(ourDisk), Log: blankLog(holding("xfs_external_log", uuidTwo, ""))}, plan.None, v1alpha1.ReasonDeviceRefused, uuidTwo},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide(c.target, c.look)
			g.Expect(d.Action).To(Equal(c.action), d.Ready.Message)
			g.Expect(d.Ready.Reason).To(Equal(c.reason))
			g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
			g.Expect(d.Provisioned).To(HaveField("UUID", uuidOne))
			g.Expect(d.Provisioned.Started).To(Equal(c.target.Status.Provisioned.Started))
		})
	}
}

func TestDecideOnAFinishedTarget(t *testing.T) {
	ours := aTarget()
	change := func(l plan.Look, change func(*plan.Look)) plan.Look { change(&l); return l }
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		action plan.Action
		reason string
		says   string
	}{
		"its disk is mounted":                              {aTarget(finished), look(carrying(ours, uuidOne, uidNow)), plan.Mount, v1alpha1.ReasonProvisioning, ""},
		"its mounted disk is proven":                       {aTarget(finished), mounted(ours, uuidOne, uidNow), plan.None, v1alpha1.ReasonProven, uuidOne},
		"a disk that lost its link is proven":              {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Device.Renamed = "no device has the name" }), plan.None, v1alpha1.ReasonProven, "; no device has the name"},
		"a device with paths to two disks is missing":      {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Device.TwoDisks = "these are two disks" }), plan.None, v1alpha1.ReasonTargetMissing, "two disks"},
		"a conflict does not stop it":                      {aTarget(finished, func(t *v1alpha1.StorageTarget) { t.Spec.Conflict = "a and b" }), mounted(ours, uuidOne, uidNow), plan.None, v1alpha1.ReasonProven, uuidOne},
		"policy Never does not stop it":                    {aTarget(finished, policy(v1alpha1.FormatNever)), mounted(ours, uuidOne, uidNow), plan.None, v1alpha1.ReasonProven, uuidOne},
		"another kernel name does not stop it":             {aTarget(finished), look(func(f *plan.Facts) { f.KernelName = "sdx" }, carrying(ours, uuidOne, uidNow)), plan.Mount, v1alpha1.ReasonProvisioning, ""},
		"a new FileSystem of its name is marked":           {aTarget(finished), mounted(ours, uuidOne, uidOld), plan.Mark, v1alpha1.ReasonProvisioning, "the uids of the new FileSystem"},
		"a blank disk in its place is missing":             {aTarget(finished), look(), plan.None, v1alpha1.ReasonTargetMissing, "sdb is blank"},
		"a foreign disk in its place is missing":           {aTarget(finished), look(holding("xfs", uuidTwo, "")), plan.None, v1alpha1.ReasonTargetMissing, uuidTwo},
		"a disk that is gone is missing":                   {aTarget(finished), plan.Look{}, plan.None, v1alpha1.ReasonTargetMissing, "never formatted again"},
		"a disk that went while mounted is missing":        {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Device = plan.Facts{} }), plan.None, v1alpha1.ReasonTargetMissing, "not there"},
		"a disk with a wrong serial is missing":            {aTarget(finished), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) { f.Serial = "S2" }), plan.None, v1alpha1.ReasonTargetMissing, "wrong serial"},
		"a marker of another target is missing":            {aTarget(finished), look(holding("xfs", uuidOne, plan.Label(ours)), func(f *plan.Facts) { f.Marker = &plan.Marker{Namespace: "n", Target: "x"} }), plan.None, v1alpha1.ReasonTargetMissing, "n/x"},
		"a marker of a newer operator is named":            {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.Marker, l.Mount.MarkerError = nil, "has version 2" }), plan.None, v1alpha1.ReasonTargetMissing, "nothing proves that it is this target: has version 2"},
		"a lost marker is missing":                         {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.Marker = nil }), plan.None, v1alpha1.ReasonTargetMissing, "lost its marker"},
		"another mounted filesystem is missing":            {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.UUID = uuidTwo }), plan.None, v1alpha1.ReasonTargetMissing, uuidTwo},
		"a copy that is mounted is missing":                {aTarget(finished), change(mounted(ours, uuidOne, uidNow), func(l *plan.Look) { l.Mount.KernelName = "sdc" }), plan.None, v1alpha1.ReasonTargetMissing, "sdc"},
		"a damaged filesystem is tried to be mounted":      {aTarget(finished), look(holding("xfs", uuidOne, plan.Label(ours)), func(f *plan.Facts) { f.MarkerError = "Structure needs cleaning" }), plan.Mount, v1alpha1.ReasonProvisioning, ""},
		"a refused mount option is reported before":        {aTarget(finished), change(look(carrying(ours, uuidOne, uidNow)), func(l *plan.Look) { l.Kernel.RefusedOptions = map[string]string{"attr2": ""} }), plan.None, v1alpha1.ReasonMountFailed, `refuses "attr2"`},
		"a mountpoint with a problem is left alone":        {aTarget(finished), change(look(carrying(ours, uuidOne, uidNow)), func(l *plan.Look) { l.Mount.Problem = "not empty" }), plan.None, v1alpha1.ReasonMountFailed, "not empty"},
		"its log is proven before it is mounted":           {aTarget(finished, withLog), plan.Look{Device: blankDisk(carrying(ours, uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidTwo, ""))}, plan.None, v1alpha1.ReasonTargetMissing, "log device"},
		"a log that its spec does not name is not its own": {aTarget(finished), plan.Look{Device: blankDisk(carrying(ours, uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidTwo, ""))}, plan.Mount, v1alpha1.ReasonProvisioning, ""},
		"its lost log is missing":                          {aTarget(finished, withLog), look(carrying(ours, uuidOne, uidNow)), plan.None, v1alpha1.ReasonTargetMissing, "nvme-eui.0025385b71b0c4a1-part1"},
		"its disk and log are mounted":                     {aTarget(finished, withLog), plan.Look{Device: blankDisk(carrying(ours, uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidOne, ""))}, plan.Mount, v1alpha1.ReasonProvisioning, ""},
		"its mount in another namespace does not block":    {aTarget(finished), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) { f.Mounts = []string{"/host" + mountpoint(ours)} }), plan.Mount, v1alpha1.ReasonProvisioning, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide(c.target, c.look)
			g.Expect(d.Action).To(Equal(c.action), d.Ready.Message)
			g.Expect(d.Ready.Reason).To(Equal(c.reason), d.Ready.Message)
			g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
			g.Expect(d.Ready.Status == metav1.ConditionTrue).To(Equal(c.reason == v1alpha1.ReasonProven))
			g.Expect(d.Provisioned).To(Equal(c.target.Status.Provisioned), "the record is never forgotten")
			g.Expect(d.Plan).To(BeNil())
			for _, s := range d.Steps {
				g.Expect(s.Kind).To(Equal(plan.StepMount))
			}
		})
	}
}

func TestDecideOnADeletedTarget(t *testing.T) {
	ours := aTarget()
	change := func(l plan.Look, change func(*plan.Look)) plan.Look { change(&l); return l }
	const yes, no, none = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionStatus("")
	for name, c := range map[string]struct {
		target              *v1alpha1.StorageTarget
		look                plan.Look
		action              plan.Action
		released, destroyed metav1.ConditionStatus
		says                string
	}{
		"a mounted target is unmounted":                           {aTarget(finished, deleted("")), mounted(ours, uuidOne, uidNow), plan.Unmount, none, none, ""},
		"a mounted target is unmounted before it is wiped":        {aTarget(finished, deleted(uidNow)), mounted(ours, uuidOne, uidNow), plan.Unmount, none, none, ""},
		"an unmounted target is released":                         {aTarget(finished, deleted("")), look(carrying(ours, uuidOne, uidNow)), plan.None, yes, none, ""},
		"a target whose disk is gone is released":                 {aTarget(finished, deleted("")), plan.Look{}, plan.None, yes, none, ""},
		"a target with a conflict is released":                    {aTarget(deleted(""), func(t *v1alpha1.StorageTarget) { t.Spec.Conflict = "x" }), look(), plan.None, yes, none, ""},
		"a target that was never provisioned is not touched":      {aTarget(deleted(uidNow)), look(holding("ext4", "u", "")), plan.None, yes, yes, "not touched"},
		"a proven target is wiped":                                {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow)), plan.Wipe, yes, none, ""},
		"a wiped target is destroyed":                             {aTarget(finished, deleted(uidNow)), look(), plan.None, yes, yes, "nothing is on it"},
		"a target of another FileSystem's uid is not wiped":       {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidOld)), plan.None, yes, no, uidOld},
		"a wipe for another uid is refused":                       {aTarget(finished, deleted(uidOld)), look(carrying(ours, uuidOne, uidOld)), plan.None, yes, no, "belongs to uid"},
		"a target with another UUID is not wiped":                 {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidTwo, uidNow)), plan.None, yes, no, uuidTwo},
		"a target without a marker is not wiped":                  {aTarget(finished, deleted(uidNow)), look(holding("xfs", uuidOne, plan.Label(ours))), plan.None, yes, no, "no marker"},
		"a target whose marker can't be read is not wiped":        {aTarget(finished, deleted(uidNow)), look(holding("xfs", uuidOne, plan.Label(ours)), func(f *plan.Facts) { f.MarkerError = "EIO" }), plan.None, yes, no, "EIO"},
		"a target with a wrong serial is not wiped":               {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) { f.Serial = "x" }), plan.None, yes, no, "wrong serial"},
		"a busy target is not wiped":                              {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) { f.Busy = "dd" }), plan.None, yes, no, "dd"},
		"a target that is gone is not reported as wiped":          {aTarget(finished, deleted(uidNow)), plan.Look{}, plan.None, yes, no, "not there"},
		"a blank disk with a wrong serial is not wiped":           {aTarget(finished, deleted(uidNow)), look(func(f *plan.Facts) { f.Serial = "x" }), plan.None, yes, no, "wrong serial"},
		"a blank disk of which not all is known is not wiped":     {aTarget(finished, deleted(uidNow)), look(func(f *plan.Facts) { f.Incomplete = "EIO" }), plan.None, yes, no, "EIO"},
		"a target that is mounted elsewhere is not wiped":         {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) { f.Mounts = []string{"/mnt"} }), plan.None, yes, no, "/mnt"},
		"a mountpoint that could not be looked at is no release":  {aTarget(finished, deleted(uidNow)), change(look(), func(l *plan.Look) { l.Mount.Problem = "EIO" }), plan.None, no, none, "EIO"},
		"a log is wiped too":                                      {aTarget(finished, deleted(uidNow), withLog), plan.Look{Device: blankDisk(carrying(ours, uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidOne, ""))}, plan.Wipe, yes, none, ""},
		"a log of another XFS is not wiped":                       {aTarget(finished, deleted(uidNow), withLog), plan.Look{Device: blankDisk(carrying(ours, uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidTwo, ""))}, plan.None, yes, no, uuidTwo},
		"a target whose log was not looked at is not wiped":       {aTarget(finished, deleted(uidNow), withLog), look(carrying(ours, uuidOne, uidNow)), plan.None, yes, no, "log device: "},
		"a target whose log is wiped already is wiped to its end": {aTarget(finished, deleted(uidNow), withLog), plan.Look{Device: blankDisk(carrying(ours, uuidOne, uidNow)), Log: blankLog()}, plan.Wipe, yes, none, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			d := decide(c.target, c.look)
			status := func(o *plan.Outcome) metav1.ConditionStatus {
				if o == nil {
					return none
				}
				return o.Status
			}
			all := d.Ready.Message
			for _, o := range []*plan.Outcome{d.Released, d.Destroyed} {
				if o != nil {
					all += "; " + o.Message
				}
			}
			g.Expect(d.Action).To(Equal(c.action), all)
			g.Expect(status(d.Released)).To(Equal(c.released), all)
			g.Expect(status(d.Destroyed)).To(Equal(c.destroyed), all)
			g.Expect(all).To(ContainSubstring(c.says))
			for _, s := range d.Steps {
				g.Expect(s.Kind).To(BeElementOf(plan.StepWipe, plan.StepZero))
			}
		})
	}
}

func TestAnApprovalIsUsedOnceAndForOnePlan(t *testing.T) {
	g := NewWithT(t)
	disk := look(holding("ext4", "u", "data"))
	target := aTarget(policy(v1alpha1.FormatApproved))

	d := decide(target, disk)
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonAwaitingApproval))
	g.Expect(d.Ready.Message).To(And(ContainSubstring(d.Plan.Hash), ContainSubstring(`sdb: ext4 at 0x0, label "data", uuid u`)))
	target.Status.Plan = d.Plan

	target.Spec.ApprovedPlan = "sha256:" + strings.Repeat("0", 64)
	d = decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonApprovalRefused))
	g.Expect(d.Ready.Message).To(And(ContainSubstring(target.Spec.ApprovedPlan), ContainSubstring(d.Plan.Hash)), "it names both")

	target.Spec.ApprovedPlan = d.Plan.Hash
	d = decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.Record))
	target.Status.Plan, target.Status.Provisioned = d.Plan, d.Provisioned
	d = decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.Format))
	g.Expect(d.Steps[0].Argv).To(Equal([]string{"wipefs", "--all", "/dev/sdb"}))

	t.Run("the same data on the disk after it was finished is not formatted", func(t *testing.T) {
		again := target.DeepCopy()
		at := metav1.NewTime(now)
		again.Status.Provisioned.Finished = &at
		NewWithT(t).Expect(decide(again, disk).Ready.Reason).To(Equal(v1alpha1.ReasonTargetMissing))
	})
	t.Run("a target that is made again has a plan of its own", func(t *testing.T) {
		again := target.DeepCopy()
		again.Status = v1alpha1.StorageTargetStatus{}
		d := plan.Decide(again, disk, now, func() string { return uuidTwo })
		NewWithT(t).Expect(d.Action).To(Equal(plan.None))
		NewWithT(t).Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonApprovalRefused))
	})
	t.Run("another file on the disk after the record needs another approval", func(t *testing.T) {
		g := NewWithT(t)
		other := look(holding("ext4", "u2", "data"))
		d := decide(target, other)
		g.Expect(d.Action).To(Equal(plan.None))
		g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonApprovalRefused))
		again := target.DeepCopy()
		again.Status.Plan = d.Plan
		g.Expect(decide(again, other).Action).To(Equal(plan.None), "that a plan is shown does not approve it")
		again.Spec.ApprovedPlan = d.Plan.Hash
		d = decide(again, other)
		g.Expect(d.Action).To(Equal(plan.Record))
		again.Status.Plan, again.Status.Provisioned = d.Plan, d.Provisioned
		g.Expect(decide(again, other).Action).To(Equal(plan.Format))
	})
	t.Run("an approval that was taken back stops what was recorded", func(t *testing.T) {
		again := target.DeepCopy()
		again.Spec.ApprovedPlan = ""
		NewWithT(t).Expect(decide(again, disk).Ready.Reason).To(Equal(v1alpha1.ReasonAwaitingApproval))
	})
	t.Run("other options of mkfs after the record need another approval", func(t *testing.T) {
		again := target.DeepCopy()
		again.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-K"}
		NewWithT(t).Expect(decide(again, disk).Ready.Reason).To(Equal(v1alpha1.ReasonApprovalRefused))
	})
}

func TestAPlanKeepsItsHashWhileNothingChanges(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(policy(v1alpha1.FormatApproved))
	first := decide(target, look(holding("ext4", "u", ""), holding("gpt", "g", "")))
	target.Status.Plan = first.Plan
	second := plan.Decide(target, look(holding("gpt", "g", ""), holding("ext4", "u", ""), func(f *plan.Facts) { f.IDs[0], f.IDs[1] = f.IDs[1], f.IDs[0] }),
		now.Add(1), func() string { return uuidTwo })
	g.Expect(second.Plan).To(Equal(first.Plan), "the order of finds and names means nothing")
}

func TestTheLogIsWipedBeforeTheMarker(t *testing.T) {
	target := aTarget(finished, deleted(uidNow), withLog)
	d := decide(target, plan.Look{Device: blankDisk(carrying(aTarget(), uuidOne, uidNow)), Log: blankLog(holding("xfs_external_log", uuidOne, ""))})
	var commands []string
	for _, s := range d.Steps {
		commands = append(commands, strings.Join(s.Argv, " "))
	}
	NewWithT(t).Expect(commands).To(Equal([]string{
		"wipefs --all /dev/nvme0n1p1",
		"zero-sample /dev/nvme0n1p1",
		"wipefs --all /dev/sdb",
		"zero-sample /dev/sdb",
	}), "while the disk has its marker, a wipe that was cut off goes on")
}

func TestDataThatNoProbeRecognizes(t *testing.T) {
	unknown := func(f *plan.Facts) { f.Unknown = "0x200" }
	t.Run("is formatted with an approval only, and named in the plan", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(decide(aTarget(), look(unknown)).Ready.Message).To(ContainSubstring("data that no probe knows lies at 0x200"))
		d := decide(aTarget(policy(v1alpha1.FormatApproved)), look(unknown))
		g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonAwaitingApproval))
		g.Expect(d.Plan.Destroys).To(ConsistOf(ContainSubstring("sdb: data that no probe knows lies at 0x200")))
		g.Expect(decide(aTarget(policy(v1alpha1.FormatApproved)), look()).Plan.Hash).NotTo(Equal(d.Plan.Hash))
		approved := aTarget(policy(v1alpha1.FormatApproved))
		approved.Status.Plan, approved.Spec.ApprovedPlan = d.Plan, d.Plan.Hash
		g.Expect(decide(approved, look(unknown)).Action).To(Equal(plan.Record))
		g.Expect(plan.Unusable(blankDisk(unknown))).NotTo(BeEmpty(), "and no selector chooses the disk")
	})
	t.Run("is never overwritten by a log", func(t *testing.T) {
		l := look()
		l.Log = blankLog(unknown)
		NewWithT(t).Expect(decide(aTarget(withLog), l).Action).To(Equal(plan.None))
	})
	t.Run("is not taken for what a mkfs has left that was cut off", func(t *testing.T) {
		g := NewWithT(t)
		target := aTarget()
		begun := decide(target, look())
		target.Status.Plan, target.Status.Provisioned = begun.Plan, begun.Provisioned
		// mkfs has failed since, a program uses the disk, and the options are corrected.
		target.Spec.Format.MkfsOptions = []v1alpha1.MkfsOption{"-K"}
		d := decide(target, look(unknown))
		g.Expect(d.Action).To(Equal(plan.None), d.Ready.Message)
		g.Expect(d.Ready.Message).To(ContainSubstring("data that no probe knows lies at 0x200"))
		target.Spec.FormatPolicy, target.Status.Plan = v1alpha1.FormatApproved, d.Plan
		g.Expect(decide(target, look(unknown)).Ready.Reason).To(Equal(v1alpha1.ReasonAwaitingApproval))
		target.Spec.ApprovedPlan = d.Plan.Hash
		g.Expect(decide(target, look(unknown)).Action).To(Equal(plan.Record))
	})
	t.Run("is what a wipe that was cut off leaves, which is wiped", func(t *testing.T) {
		d := decide(aTarget(finished, deleted(uidNow)), look(unknown))
		NewWithT(t).Expect(d.Destroyed).To(HaveValue(And(HaveField("Reason", v1alpha1.ReasonWiped), HaveField("Message", ContainSubstring("it is not blank")))))
	})
}
