package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// wanting is an input whose filesystem wants ext4 with an option and a mount option for storage.
func wanting(format *v1alpha1.FormatSpec) plan.SelectInput {
	targets := selecting(1)
	targets.Format = format
	fs := aFileSystem("a", targets)
	fs.Spec.Type = "Example"
	in := anInput(fs, 1, "n1")
	in.Formats = map[v1alpha1.Role]v1alpha1.FormatSpec{v1alpha1.RoleStorage: {
		FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-I", "512"}, MountOptions: []v1alpha1.LocalMountOption{"noatime"},
	}}
	return in
}

func TestANewTargetGetsTheDefaultFormatOfItsFilesystem(t *testing.T) {
	noatime := []v1alpha1.LocalMountOption{"noatime"}
	for name, c := range map[string]struct {
		asked *v1alpha1.FormatSpec
		want  v1alpha1.FormatSpec
		from  string
	}{
		"nothing is asked for": {
			want: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-I", "512"}, MountOptions: noatime},
			from: "default of type Example for storage: fsType, mkfsOptions, mountOptions; asked for: the rest",
		},
		"its own kind is asked for": {
			asked: &v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-m", "0"}},
			want:  v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-m", "0"}, MountOptions: noatime},
			from:  "default of type Example for storage: mountOptions; asked for: the rest",
		},
		"another kind is asked for": {
			asked: &v1alpha1.FormatSpec{FSType: v1alpha1.XFS}, want: v1alpha1.FormatSpec{FSType: v1alpha1.XFS}, from: "asked for",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := wanting(c.asked)
			selection := plan.Select(in)
			g.Expect(selection.Targets).To(HaveLen(1))
			g.Expect(selection.Targets[0].Spec.Format).To(Equal(c.want))
			g.Expect(selection.Targets[0].Spec.FormatFrom).To(Equal(c.from))
			in.Existing = selection.Targets
			g.Expect(plan.Select(in).Targets).To(Equal(selection.Targets), "the next pass chooses the same")
		})
	}
}

func TestANewTargetWithALogIsXFSWhateverTheDefaultIs(t *testing.T) {
	g := NewWithT(t)
	in := wanting(&v1alpha1.FormatSpec{LogDevices: &v1alpha1.DeviceSelector{MaxSize: resource.MustParse("4Gi"), CountPerNode: 1}})
	log := diskNumber("n1", 1)
	log.SizeBytes = 4 << 30
	in.Inventories["n1"] = v1alpha1.NodeInventoryStatus{BlockDevices: []v1alpha1.BlockDevice{in.Inventories["n1"].BlockDevices[0], log}}
	selection := plan.Select(in)
	g.Expect(selection.Targets).To(HaveLen(1))
	g.Expect(selection.Targets[0].Spec.LogDevice).NotTo(BeNil())
	g.Expect(selection.Targets[0].Spec.Format).To(Equal(v1alpha1.FormatSpec{FSType: v1alpha1.XFS}))
}

func TestTheStripeOfARAIDIsAmongTheOptionsOfANewTarget(t *testing.T) {
	raid := &v1alpha1.RAIDGeometry{Level: new(int32(6)), Data: 8, Chunk: resource.MustParse("128Ki")}
	for name, c := range map[string]struct {
		asked v1alpha1.FormatSpec
		want  []v1alpha1.MkfsOption
	}{
		"XFS": {
			asked: v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MkfsOptions: []v1alpha1.MkfsOption{"-i", "size=512"}},
			want:  []v1alpha1.MkfsOption{"-i", "size=512", "-d", "su=131072,sw=8"},
		},
		"ext4, beside the default of the role": {
			asked: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4}, want: []v1alpha1.MkfsOption{"-I", "512", "-E", "stride=32,stripe_width=256"},
		},
		"ext4, in the extended options that are asked for": {
			asked: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-E", "nodiscard", "-m", "0"}},
			want:  []v1alpha1.MkfsOption{"-E", "nodiscard,stride=32,stripe_width=256", "-m", "0"},
		},
		"ldiskfs, in one argument": {
			asked: v1alpha1.FormatSpec{FSType: v1alpha1.Ldiskfs, MkfsOptions: []v1alpha1.MkfsOption{"-Enodiscard"}},
			want:  []v1alpha1.MkfsOption{"-Enodiscard,stride=32,stripe_width=256"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c.asked.RAID = raid
			in := wanting(&c.asked)
			target := plan.Select(in).Targets[0]
			g.Expect(target.Spec.Format.MkfsOptions).To(Equal(c.want))
			g.Expect(target.Spec.Format.RAID).To(BeNil())
			g.Expect(plan.RefusedMkfsOptions(target.Spec.Format)).To(BeEmpty())
		})
	}
}

func TestTheStripeOfARAIDChangesNoTargetThatWasMade(t *testing.T) {
	g := NewWithT(t)
	in := wanting(&v1alpha1.FormatSpec{FSType: v1alpha1.XFS})
	in.Existing = plan.Select(in).Targets
	in.Existing[0].Status.Provisioned = &v1alpha1.TargetProvisioned{Finished: &metav1.Time{}}
	in.FileSystem.Spec.StoragePools[0].Targets.Format.RAID = &v1alpha1.RAIDGeometry{Level: new(int32(5)), Data: 4, Chunk: resource.MustParse("64Ki")}
	g.Expect(plan.Select(in).Targets[0].Spec.Format).To(Equal(v1alpha1.FormatSpec{FSType: v1alpha1.XFS}))
}

func TestADefaultChangesNothingThatExists(t *testing.T) {
	finished := &v1alpha1.TargetProvisioned{Finished: &metav1.Time{}}
	for name, provisioned := range map[string]*v1alpha1.TargetProvisioned{"a target in use": finished, "a target whose plan waits for approval": nil} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := wanting(nil)
			in.Formats = nil
			in.Existing = plan.Select(in).Targets
			g.Expect(in.Existing[0].Spec.Format).To(Equal(v1alpha1.FormatSpec{FSType: v1alpha1.XFS}), "as an earlier operator made it")
			in.Existing[0].Status.Provisioned = provisioned
			before := in.Existing
			in.Formats = wanting(nil).Formats
			g.Expect(plan.Select(in).Targets[0].Spec.Format).To(Equal(before[0].Spec.Format))
		})
	}
}

func TestADefaultSetsOnlyItsOwnFields(t *testing.T) {
	mounted := []v1alpha1.LocalMountOption{"nobarrier"}
	for name, c := range map[string]struct {
		asked, standard *v1alpha1.FormatSpec
		want            v1alpha1.FormatSpec
		from            string
	}{
		"it has no options": {
			standard: &v1alpha1.FormatSpec{FSType: v1alpha1.Ext4}, want: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4},
			from: "default of type Example for storage: fsType; asked for: the rest",
		},
		"the options of the mount are asked for": {
			asked: &v1alpha1.FormatSpec{MountOptions: mounted}, from: "default of type Example for storage: fsType, mkfsOptions; asked for: the rest",
			want: v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-I", "512"}, MountOptions: mounted},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := wanting(c.asked)
			if c.standard != nil {
				in.Formats[v1alpha1.RoleStorage] = *c.standard
			}
			target := plan.Select(in).Targets[0]
			g.Expect(target.Spec.Format).To(Equal(c.want))
			g.Expect(target.Spec.FormatFrom).To(Equal(c.from))
		})
	}
}

func TestOnlyATargetOfXFSWithoutOptionsIsTakenForOneFromBeforeTheDefaults(t *testing.T) {
	standard := wanting(nil).Formats[v1alpha1.RoleStorage]
	for name, c := range map[string]struct{ was, want v1alpha1.FormatSpec }{
		"XFS":                             {v1alpha1.FormatSpec{FSType: v1alpha1.XFS}, v1alpha1.FormatSpec{FSType: v1alpha1.XFS}},
		"XFS with an option":              {v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MkfsOptions: []v1alpha1.MkfsOption{"-K"}}, standard},
		"XFS with an option of the mount": {v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime"}}, standard},
		"ext4":                            {v1alpha1.FormatSpec{FSType: v1alpha1.Ext4}, standard},
	} {
		in := wanting(nil)
		in.Existing = plan.Select(in).Targets
		in.Existing[0].Spec.Format = c.was
		NewWithT(t).Expect(plan.Select(in).Targets[0].Spec.Format).To(Equal(c.want), name)
	}
}

func TestTheFormatThatWasFoundOnADiskIsThatOfItsOwnTarget(t *testing.T) {
	named := func(log v1alpha1.DeviceID) plan.SelectInput {
		in := wanting(nil)
		in.FileSystem.Spec.StoragePools[0].Targets = naming(v1alpha1.DeviceReference{Node: "n1", ID: "wwn-n1-0000", LogDevice: log})
		in.Inventories["n1"] = v1alpha1.NodeInventoryStatus{BlockDevices: append(in.Inventories["n1"].BlockDevices, diskNumber("n1", 1))}
		return in
	}
	fsType := func(in plan.SelectInput) v1alpha1.FSType { return plan.Select(in).Targets[0].Spec.Format.FSType }
	g := NewWithT(t)
	g.Expect(fsType(named(""))).To(Equal(v1alpha1.Ext4))
	g.Expect(fsType(named("wwn-n1-0001"))).To(Equal(v1alpha1.XFS), "a log device belongs to XFS")

	others := named("")
	change(others, "n1", 0, func(b *v1alpha1.BlockDevice) {
		b.Signatures = []v1alpha1.Signature{{Device: b.KernelName, Type: "btrfs", Label: "data"}}
	})
	g.Expect(fsType(others)).To(Equal(v1alpha1.Ext4), "what somebody else has made says nothing")

	gone := named("")
	gone.Existing = plan.Select(gone).Targets
	delete(gone.Inventories, "n1")
	g.Expect(fsType(gone)).To(Equal(v1alpha1.Ext4))

	own := named("")
	label := plan.Label(&plan.Select(own).Targets[0])
	change(own, "n1", 0, func(b *v1alpha1.BlockDevice) {
		b.Signatures = []v1alpha1.Signature{
			{Device: b.KernelName, Type: "unheard-of"}, {Device: b.KernelName + "1", Type: "btrfs"}, {Device: b.KernelName, Type: "xfs", Label: label},
		}
	})
	g.Expect(fsType(own)).To(Equal(v1alpha1.XFS), "neither a partition nor a find that is no format counts")
}

// Without its objects, a cluster has nothing but the disks.
func TestADiskThatCarriesATargetFromBeforeKeepsItsFormat(t *testing.T) {
	g := NewWithT(t)
	in := wanting(nil)
	target := plan.Select(in).Targets[0]
	change(in, "n1", 0, func(b *v1alpha1.BlockDevice) {
		b.Signatures = []v1alpha1.Signature{{Device: b.KernelName, Type: "xfs", Label: plan.Label(&target)}}
		b.Unusable = []string{"xfs"}
	})
	again := plan.Select(in).Targets
	g.Expect(again).To(HaveLen(1))
	g.Expect(again[0].Name).To(Equal(target.Name))
	g.Expect(again[0].Spec.Format.FSType).To(Equal(v1alpha1.XFS))
	g.Expect(again[0].Spec.Format.MkfsOptions).To(BeEmpty())
}
