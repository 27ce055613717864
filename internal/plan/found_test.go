package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestADiskIsTheTargetsOnlyByItsLabelOrItsMount(t *testing.T) {
	target := aTarget()
	labeled := func(device, label string) func(*v1alpha1.BlockDevice) {
		return func(b *v1alpha1.BlockDevice) {
			b.Signatures = []v1alpha1.Signature{{Device: device, Type: "xfs", Label: label}}
			b.Unusable = []string{"xfs lies on it"}
		}
	}
	for name, c := range map[string]struct {
		change func(b *v1alpha1.BlockDevice)
		want   plan.Found
	}{
		"nothing on it":                      {func(*v1alpha1.BlockDevice) {}, plan.BlankDisk},
		"its label":                          {labeled("sdb", plan.Label(target)), plan.OwnDisk},
		"its label on a partition":           {labeled("sdb1", plan.Label(target)), plan.OtherDisk},
		"the label of another target":        {labeled("sdb", plan.Label(aTarget(func(t *v1alpha1.StorageTarget) { t.Name = "other" }))), plan.OtherDisk},
		"another filesystem":                 {labeled("sdb", "data"), plan.OtherDisk},
		"it is mounted as the target":        {func(b *v1alpha1.BlockDevice) { b.Target = "storage/" + target.Name }, plan.OwnDisk},
		"it is mounted as another target":    {func(b *v1alpha1.BlockDevice) { b.Target, b.Unusable = "storage/other", []string{"mounted"} }, plan.OtherDisk},
		"it is in use":                       {func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"sdb is mounted"} }, plan.OtherDisk},
		"another disk has the target's name": {func(b *v1alpha1.BlockDevice) { b.IDs, b.WWN, b.Serial = []string{"wwn-0x6000"}, "0x6000", "S2" }, plan.NoDisk},
	} {
		disk := blankDisk().BlockDevice
		c.change(&disk)
		found := plan.DiskOf(v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{disk}}, target)
		NewWithT(t).Expect(found).To(Equal(c.want), name)
	}
}

func TestEachNodeThatShowsTheDiskOfATargetIsNamed(t *testing.T) {
	made := aTarget(finished)
	made.Status.Provisioned.UUID = uuidTwo
	accepted := aTarget(finished, func(t *v1alpha1.StorageTarget) {
		t.Status.Provisioned.Device = &v1alpha1.DeviceIdentity{ID: "virtio-new", Serial: "new", SizeBytes: tib}
	})
	other := func(changes ...func(*plan.Facts)) v1alpha1.BlockDevice {
		f := plan.Facts{BlockDevice: diskNumber("oss2", 3)}
		for _, change := range changes {
			change(&f)
		}
		return f.BlockDevice
	}
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		disk   v1alpha1.BlockDevice
		want   []string
	}{
		"a disk with its identity":                {aTarget(), blankDisk().BlockDevice, []string{"oss2", "oss3"}},
		"a disk with the identity of before":      {accepted, blankDisk().BlockDevice, []string{"oss2", "oss3"}},
		"a disk with the identity of now":         {accepted, other(func(f *plan.Facts) { f.IDs, f.WWN, f.Serial = []string{"virtio-new"}, "", "new" }), []string{"oss2", "oss3"}},
		"a disk with its label":                   {aTarget(), other(holding("xfs", uuidTwo, plan.Label(made))), []string{"oss2", "oss3"}},
		"a disk with its UUID":                    {made, other(holding("xfs", uuidTwo, "relabeled")), []string{"oss2", "oss3"}},
		"a disk with another UUID":                {made, other(holding("xfs", uuidOne, "")), nil},
		"a disk without a UUID":                   {made, other(holding("xfs", "", "")), nil},
		"a disk without a UUID, before a target":  {aTarget(), other(holding("xfs", "", "")), nil},
		"a disk with a UUID, and it has none yet": {aTarget(), other(holding("xfs", uuidTwo, "")), nil},
		"another disk":                            {made, other(), nil},
	} {
		shows := v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{diskNumber("oss2", 4), c.disk}}
		inventories := map[string]v1alpha1.NodeInventoryStatus{"oss1": {}, "oss3": shows, "oss2": shows}
		NewWithT(t).Expect(plan.ShownOn(inventories, c.target)).To(Equal(c.want), name)
	}
}

func TestANodeHoldsMetadataWhenADiskHasTheLabelOfAMetadataTarget(t *testing.T) {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch"}}
	fs.Spec.MetadataServers.InstancesPerNode = 2
	of := func(role v1alpha1.Role, poolOrSlot string) string {
		return plan.Label(aTarget(func(t *v1alpha1.StorageTarget) {
			t.Name = plan.TargetName("scratch", role, poolOrSlot, "oss1", t.Spec.Device.ID)
		}))
	}
	for name, c := range map[string]struct {
		label string
		want  bool
	}{
		"the first metadata server":           {of(v1alpha1.RoleMetadata, "mds0"), true},
		"the second metadata server":          {of(v1alpha1.RoleMetadata, "mds1"), true},
		"a third one, which the spec has not": {of(v1alpha1.RoleMetadata, "mds2"), false},
		"a pool":                              {of(v1alpha1.RoleStorage, "ssd"), false},
		"a foreign filesystem":                {"data", false},
	} {
		disk := blankDisk().BlockDevice
		disk.Signatures = []v1alpha1.Signature{{Device: disk.KernelName, Type: "xfs", Label: c.label}}
		inventory := v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{diskNumber("oss1", 7), disk}}
		NewWithT(t).Expect(plan.Holds(fs, v1alpha1.RoleMetadata, "oss1", inventory)).To(Equal(c.want), name)
	}
}

func TestAPairChangesHandsByItsHolder(t *testing.T) {
	of := func(serveOn, holder string, number, takenOver int64) *v1alpha1.StorageTarget {
		return aTarget(func(t *v1alpha1.StorageTarget) {
			t.Spec.SecondNode, t.Spec.ServeOn = "oss2", serveOn
			t.Status.Holder = &v1alpha1.TargetHolder{Node: holder, Number: number, TakenOver: takenOver}
		})
	}
	g := NewWithT(t)
	g.Expect(plan.IsAway(of("", "oss1", 0, 0))).To(BeFalse())
	g.Expect(plan.IsAway(of("oss2", "oss2", 1, 0))).To(BeTrue())
	g.Expect(plan.OtherOf(of("", "oss1", 0, 0), "oss1")).To(Equal("oss2"))
	g.Expect(plan.OtherOf(of("", "oss1", 0, 0), "oss2")).To(Equal("oss1"))
	g.Expect(plan.IsTakenOver(of("", "oss1", 0, 0))).To(BeFalse(), "nobody has given it away")
	g.Expect(plan.IsTakenOver(of("oss2", "oss2", 1, 1))).To(BeTrue())
	g.Expect(plan.IsTakenOver(of("oss2", "oss1", 2, 1))).To(BeFalse(), "it was given back since")
	g.Expect(plan.Turn(aTarget())).To(BeEmpty(), "it has one node")
	turns := map[string]bool{}
	for _, t := range []*v1alpha1.StorageTarget{of("", "oss1", 0, 0), of("oss2", "oss1", 0, 0), of("oss2", "oss2", 1, 0), of("oss1", "oss2", 1, 0)} {
		turns[plan.Turn(t)] = true
	}
	g.Expect(turns).To(HaveLen(4))
}

func TestADiskThatAPodHasAsABlockVolumeIsInUse(t *testing.T) {
	disk := blankDisk(func(f *plan.Facts) { f.Mounts = []string{plan.BlockVolume("/dev/loop7")} })
	NewWithT(t).Expect(plan.IsNotMounted(disk)).To(ContainSubstring("a pod has it at /dev/loop7"))
}
