package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// aFileSystem has its metadata in a directory, and one pool.
func aFileSystem(name string, pool v1alpha1.TargetsSpec) *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name, UID: types.UID("uid-of-" + name)},
		Spec: v1alpha1.FileSystemSpec{
			MetadataServers: v1alpha1.MetadataSpec{Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/srv/mds"}}},
			StoragePools:    []v1alpha1.StoragePoolSpec{{Name: "ssd", Targets: pool}},
		},
	}
}

func selecting(count int32, changes ...func(*v1alpha1.DeviceSelector)) v1alpha1.TargetsSpec {
	s := &v1alpha1.DeviceSelector{CountPerNode: count}
	for _, change := range changes {
		change(s)
	}
	return v1alpha1.TargetsSpec{Select: s}
}

func naming(devices ...v1alpha1.DeviceReference) v1alpha1.TargetsSpec {
	return v1alpha1.TargetsSpec{Devices: devices}
}

// anInput is a FileSystem on nodes with a number of blank disks each.
func anInput(fs *v1alpha1.FileSystem, disks int, nodes ...string) plan.SelectInput {
	in := plan.SelectInput{FileSystem: fs, TargetNodes: plan.TargetNodes{Pools: map[string][]string{}}, Inventories: map[string]v1alpha1.NodeInventoryStatus{}}
	for _, p := range fs.Spec.StoragePools {
		in.Pools[p.Name] = nodes
	}
	for _, node := range nodes {
		var inventory v1alpha1.NodeInventoryStatus
		for i := range disks {
			inventory.BlockDevices = append(inventory.BlockDevices, diskNumber(node, i))
		}
		in.Inventories[node] = inventory
	}
	return in
}

// change changes one disk of an input.
func change(in plan.SelectInput, node string, i int, f func(*v1alpha1.BlockDevice)) {
	f(&in.Inventories[node].BlockDevices[i])
}

func ids(targets []v1alpha1.StorageTarget) []string {
	var names []string
	for _, t := range targets {
		names = append(names, t.Spec.Node+":"+string(t.Spec.Device.ID))
	}
	slices.Sort(names)
	return names
}

func messages(problems []plan.Problem) []string {
	var all []string
	for _, p := range problems {
		all = append(all, p.Reason+": "+p.Message)
	}
	return all
}

// drained is a target that was marked for removal, and that nothing is left on.
func drained(t *v1alpha1.StorageTarget) {
	t.Spec.Remove = true
	t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionTrue}}
}

func TestATargetIsComplete(t *testing.T) {
	g := NewWithT(t)
	readAhead := int32(4096)
	spec := naming(v1alpha1.DeviceReference{Node: "oss1", ID: "serial-oss1-0003"})
	spec.Format = &v1alpha1.FormatSpec{MkfsOptions: []v1alpha1.MkfsOption{"-K"}}
	spec.Queue = &v1alpha1.QueueSpec{ReadAheadKB: &readAhead}
	fs := aFileSystem("scratch", spec)
	fs.Spec.Provisioning.FormatPolicy = v1alpha1.FormatApproved
	s := plan.Select(anInput(fs, 5, "oss1"))
	g.Expect(s.Problems).To(BeEmpty())
	g.Expect(s.Targets).To(HaveLen(1))
	target := s.Targets[0]
	isController := true
	g.Expect(target.TypeMeta).To(Equal(metav1.TypeMeta{APIVersion: "parallelfs.dev/v1alpha1", Kind: "StorageTarget"}))
	g.Expect(target.ObjectMeta).To(Equal(metav1.ObjectMeta{
		Namespace: "storage", Name: plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", "wwn-oss1-0003"), Finalizers: []string{v1alpha1.Finalizer},
		Labels: map[string]string{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelStoragePool: "ssd", v1alpha1.LabelNode: "oss1", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "parallelfs.dev/v1alpha1", Kind: "FileSystem", Name: "scratch", UID: "uid-of-scratch", Controller: &isController, BlockOwnerDeletion: &isController,
		}},
	}))
	g.Expect(target.Name).To(MatchRegexp(`^scratch-ssd-[0-9a-f]{16}$`))
	g.Expect(target.Spec).To(Equal(v1alpha1.StorageTargetSpec{
		FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "uid-of-scratch"}, Node: "oss1", Role: v1alpha1.RoleStorage, StoragePool: "ssd",
		Device: v1alpha1.DeviceIdentity{ID: "wwn-oss1-0003", Serial: "serial-oss1-0003", WWN: "0xoss1-0003", Model: "DISK", SizeBytes: tib},
		Format: v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MkfsOptions: []v1alpha1.MkfsOption{"-K"}}, Queue: spec.Queue, FormatPolicy: v1alpha1.FormatApproved,
	}))
	g.Expect(target.Status).To(BeZero())
}

func TestDisksThatAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		id     v1alpha1.DeviceID
		node   string
		change func(*v1alpha1.BlockDevice)
		ids    []string
		says   string
	}{
		"a disk by its id":                          {"wwn-oss1-0000", "oss1", nil, []string{"oss1:wwn-oss1-0000"}, ""},
		"a disk by its other id":                    {"scsi-oss1-0000", "oss1", nil, []string{"oss1:wwn-oss1-0000"}, ""},
		"a disk by its WWN":                         {"0xoss1-0000", "oss1", nil, []string{"oss1:wwn-oss1-0000"}, ""},
		"a disk by its serial":                      {"serial-oss1-0000", "oss1", nil, []string{"oss1:wwn-oss1-0000"}, ""},
		"a disk with data is taken, and planned":    {"wwn-oss1-0000", "oss1", func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds ext4"} }, []string{"oss1:wwn-oss1-0000"}, ""},
		"a disk that is not there":                  {"wwn-none", "oss1", nil, nil, "NoDevices: spec.storagePools[ssd].targets.devices: node oss1 has no disk wwn-none; it has wwn-oss1-0000, wwn-oss1-0001"},
		"a kernel name is no disk":                  {"sdaa", "oss1", nil, nil, "has no disk sdaa"},
		"a node that the pool does not have":        {"wwn-oss1-0000", "oss9", nil, nil, "node oss9, which has wwn-oss1-0000, does not match the nodeSelector"},
		"a disk without a size":                     {"wwn-oss1-0000", "oss1", func(b *v1alpha1.BlockDevice) { b.SizeBytes = 0 }, nil, "no medium"},
		"a disk with a WWN and no link has an id":   {"0xoss1-0000", "oss1", func(b *v1alpha1.BlockDevice) { b.IDs = nil }, []string{"oss1:0xoss1-0000"}, ""},
		"a disk whose ids the API takes not at all": {"0xoss1-0000", "oss1", func(b *v1alpha1.BlockDevice) { b.IDs = []string{"wwn bad/id"} }, []string{"oss1:0xoss1-0000"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := anInput(aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: c.node, ID: c.id})), 2, "oss1")
			if c.change != nil {
				change(in, "oss1", 0, c.change)
			}
			s := plan.Select(in)
			g.Expect(ids(s.Targets)).To(Equal(c.ids))
			if c.says == "" {
				g.Expect(s.Problems).To(BeEmpty())
			} else {
				g.Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring(c.says)))
			}
		})
	}
}

func TestANodeWithoutAnAgentIsNamed(t *testing.T) {
	for _, spec := range []v1alpha1.TargetsSpec{naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000"}), selecting(1)} {
		in := anInput(aFileSystem("scratch", spec), 1, "oss1")
		in.Inventories = nil
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(BeEmpty())
		NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(And(ContainSubstring("NoDevices"), ContainSubstring("kubectl label node oss1 parallelfs.dev/agent="))))
	}
}

func TestDisksThatAreSelected(t *testing.T) {
	numa := func(n int32) *int32 { return &n }
	for name, c := range map[string]struct {
		selector func(*v1alpha1.DeviceSelector)
		disk     func(*v1alpha1.BlockDevice)
		says     string // empty when the changed disk is chosen
	}{
		"a blank disk":                       {func(*v1alpha1.DeviceSelector) {}, func(*v1alpha1.BlockDevice) {}, ""},
		"another media type":                 {func(s *v1alpha1.DeviceSelector) { s.MediaType = v1alpha1.HDD }, func(*v1alpha1.BlockDevice) {}, "it is SSD, not HDD"},
		"the media type":                     {func(s *v1alpha1.DeviceSelector) { s.MediaType = v1alpha1.SSD }, func(*v1alpha1.BlockDevice) {}, ""},
		"an unknown media type":              {func(s *v1alpha1.DeviceSelector) { s.MediaType = v1alpha1.SSD }, func(b *v1alpha1.BlockDevice) { b.MediaType = "" }, "unknown media type"},
		"too small":                          {func(s *v1alpha1.DeviceSelector) { s.MinSize = resource.MustParse("1Ti") }, func(b *v1alpha1.BlockDevice) { b.SizeBytes-- }, "less than 1Ti"},
		"as small as can be":                 {func(s *v1alpha1.DeviceSelector) { s.MinSize = resource.MustParse("1Ti") }, func(*v1alpha1.BlockDevice) {}, ""},
		"too large":                          {func(s *v1alpha1.DeviceSelector) { s.MaxSize = resource.MustParse("1Ti") }, func(b *v1alpha1.BlockDevice) { b.SizeBytes++ }, "more than 1Ti"},
		"as large as can be":                 {func(s *v1alpha1.DeviceSelector) { s.MaxSize = resource.MustParse("1Ti") }, func(*v1alpha1.BlockDevice) {}, ""},
		"another model":                      {func(s *v1alpha1.DeviceSelector) { s.Models = []v1alpha1.Glob{"SAMSUNG*", "INTEL*"} }, func(*v1alpha1.BlockDevice) {}, `its model "DISK" matches none`},
		"one of the models":                  {func(s *v1alpha1.DeviceSelector) { s.Models = []v1alpha1.Glob{"SAMSUNG*", "D?SK"} }, func(*v1alpha1.BlockDevice) {}, ""},
		"another id":                         {func(s *v1alpha1.DeviceSelector) { s.IDGlobs = []v1alpha1.Glob{"nvme-*"} }, func(*v1alpha1.BlockDevice) {}, "none of its ids"},
		"any one of its ids":                 {func(s *v1alpha1.DeviceSelector) { s.IDGlobs = []v1alpha1.Glob{"scsi-*"} }, func(*v1alpha1.BlockDevice) {}, ""},
		"another NUMA node":                  {func(s *v1alpha1.DeviceSelector) { s.NUMANodes = []int32{0} }, func(b *v1alpha1.BlockDevice) { b.NUMANode = numa(1) }, "on NUMA node 1"},
		"an unknown NUMA node":               {func(s *v1alpha1.DeviceSelector) { s.NUMANodes = []int32{0} }, func(*v1alpha1.BlockDevice) {}, "NUMA node is not known"},
		"one of the NUMA nodes":              {func(s *v1alpha1.DeviceSelector) { s.NUMANodes = []int32{0, 1} }, func(b *v1alpha1.BlockDevice) { b.NUMANode = numa(1) }, ""},
		"a disk in a slot":                   {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Transport = "nvme" }, ""},
		"a logical unit of a storage system": {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Transport = "iscsi" }, "it is attached by iscsi, so it may be somebody else's"},
		"a namespace through a network":      {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Transport = "nvme-tcp" }, "it is attached by nvme-tcp"},
		"a disk that can be unplugged":       {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Transport = "usb" }, "it is attached by usb"},
		"a transport that is new":            {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Transport = "cxl" }, "it is attached by cxl"},
		"a transport that is asked for":      {func(s *v1alpha1.DeviceSelector) { s.Transports = []v1alpha1.Transport{"fc", "iscsi"} }, func(b *v1alpha1.BlockDevice) { b.Transport = "iscsi" }, ""},
		"a transport that is not asked for":  {func(s *v1alpha1.DeviceSelector) { s.Transports = []v1alpha1.Transport{"fc"} }, func(b *v1alpha1.BlockDevice) { b.Transport = "sas" }, "it is attached by sas, which is none of transports"},
		"an unknown transport":               {func(s *v1alpha1.DeviceSelector) { s.Transports = []v1alpha1.Transport{"sas"} }, func(b *v1alpha1.BlockDevice) {}, "it is not known how it is attached"},
		"a disk of iSCSI that carries its own target": {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) {
			b.Transport, b.Unusable = "iscsi", []string{"it is not blank"}
			b.Target = "storage/" + plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", "wwn-oss1-0000")
		}, ""},
		"a disk that is unusable":            {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds ext4"} }, "it holds ext4"},
		"a logical volume":                   {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Type = "lvm" }, "only whole disks"},
		"a partition":                        {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Type = "part" }, "is a partition"},
		"a disk without a stable name":       {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.IDs, b.WWN, b.Serial = nil, "", "" }, "no stable name"},
		"a disk that carries another target": {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) { b.Target, b.Unusable = "storage/home-x", []string{"it carries home-x"} }, "it carries home-x"},
		"a disk that carries its own target": {func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) {
			b.Target, b.Unusable = "storage/"+plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", "wwn-oss1-0000"), []string{"it is not blank"}
		}, ""},
		"a disk that carries its own label, which no agent ascribes to a target that is no more": {
			func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) {
				own := aTarget(func(t *v1alpha1.StorageTarget) {
					t.Name = plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", "wwn-oss1-0000")
				})
				b.Signatures = []v1alpha1.Signature{{Device: b.KernelName, Type: "xfs", Label: plan.Label(own)}}
				b.Unusable = []string{"it is not blank"}
			}, "",
		},
		"a disk that carries the label of another target": {
			func(*v1alpha1.DeviceSelector) {}, func(b *v1alpha1.BlockDevice) {
				b.Signatures = []v1alpha1.Signature{{Device: b.KernelName, Type: "xfs", Label: plan.Label(aTarget())}}
				b.Unusable = []string{"it is not blank"}
			}, "it is not blank",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			in := anInput(aFileSystem("scratch", selecting(1, c.selector)), 1, "oss1")
			change(in, "oss1", 0, c.disk)
			s := plan.Select(in)
			if c.says == "" {
				g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000"}))
				g.Expect(s.Problems).To(BeEmpty())
				return
			}
			g.Expect(s.Targets).To(BeEmpty())
			g.Expect(messages(s.Problems)).To(ConsistOf(And(ContainSubstring("node oss1 has 0 of 1 disks"), ContainSubstring(c.says))))
		})
	}
}

func TestAChosenValueStays(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", selecting(2)), 4, "oss1", "oss2")
	first := plan.Select(in)
	g.Expect(ids(first.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000", "oss1:wwn-oss1-0001", "oss2:wwn-oss2-0000", "oss2:wwn-oss2-0001"}))
	in.Existing = first.Targets
	again := func(in plan.SelectInput) []string { return ids(plan.Select(in).Targets) }

	t.Run("when better ones appear", func(t *testing.T) {
		in := in
		in.Inventories = map[string]v1alpha1.NodeInventoryStatus{}
		for node, inventory := range anInput(in.FileSystem, 4, "oss1", "oss2").Inventories {
			inventory.BlockDevices = append(inventory.BlockDevices, diskNumber("a", 0, func(b *v1alpha1.BlockDevice) { b.KernelName = "sdzz" }))
			in.Inventories[node] = inventory
		}
		NewWithT(t).Expect(again(in)).To(Equal(ids(first.Targets)))
	})
	t.Run("when they are no longer blank, as all targets", func(t *testing.T) {
		in := in
		in.Inventories = anInput(in.FileSystem, 4, "oss1", "oss2").Inventories
		change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds xfs"} })
		NewWithT(t).Expect(again(in)).To(Equal(ids(first.Targets)))
	})
	t.Run("when they no longer match", func(t *testing.T) {
		in := in
		in.FileSystem = aFileSystem("scratch", selecting(2, func(s *v1alpha1.DeviceSelector) { s.MediaType = v1alpha1.HDD }))
		NewWithT(t).Expect(again(in)).To(Equal(ids(first.Targets)))
	})
	t.Run("when they vanish, and their names change", func(t *testing.T) {
		in := in
		in.Inventories = anInput(in.FileSystem, 4, "oss2").Inventories
		change(in, "oss2", 0, func(b *v1alpha1.BlockDevice) { b.KernelName, b.IDs, b.SizeBytes = "sdq", []string{"other"}, 7 })
		s := plan.Select(in)
		NewWithT(t).Expect(ids(s.Targets)).To(Equal(ids(first.Targets)))
		NewWithT(t).Expect(s.Targets).To(Equal(first.Targets), "with the identity that was recorded")
	})
	t.Run("when their node leaves the pool", func(t *testing.T) {
		in := in
		in.Pools = map[string][]string{"ssd": {"oss2"}}
		NewWithT(t).Expect(again(in)).To(Equal(ids(first.Targets)))
	})
	t.Run("when the count shrinks", func(t *testing.T) {
		in := in
		in.FileSystem = aFileSystem("scratch", selecting(1))
		NewWithT(t).Expect(again(in)).To(Equal(ids(first.Targets)))
	})
	t.Run("and the count adds others", func(t *testing.T) {
		in := in
		in.FileSystem = aFileSystem("scratch", selecting(3))
		NewWithT(t).Expect(again(in)).To(Equal(slices.Sorted(slices.Values(append(ids(first.Targets), "oss1:wwn-oss1-0002", "oss2:wwn-oss2-0002")))))
	})
	t.Run("and a drained one is replaced", func(t *testing.T) {
		in := in
		in.Existing = slices.Clone(first.Targets)
		drained(&in.Existing[0])
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(5), "the drained one stays until somebody deletes it")
		for _, target := range s.Targets {
			NewWithT(t).Expect(target.Spec.Remove).To(BeFalse(), "the mark is its user's")
		}
	})
	t.Run("and one that was drained, and is wanted back, is not replaced", func(t *testing.T) {
		in := in
		in.Existing = slices.Clone(first.Targets)
		drained(&in.Existing[0])
		in.Existing[0].Spec.Remove = false
		NewWithT(t).Expect(again(in)).To(Equal(ids(first.Targets)))
	})
	t.Run("and one that is deleted is replaced, and not chosen again", func(t *testing.T) {
		in := in
		in.Existing = slices.Clone(first.Targets)
		at := metav1.NewTime(now)
		in.Existing[0].DeletionTimestamp = &at
		gone := in.Existing[0].Spec.Node + ":" + string(in.Existing[0].Spec.Device.ID)
		NewWithT(t).Expect(again(in)).To(And(HaveLen(4), Not(ContainElement(gone))))
	})
}

func TestADiskThatCarriesItsOwnTargetIsChosenFirst(t *testing.T) {
	in := anInput(aFileSystem("scratch", selecting(1)), 4, "oss1")
	change(in, "oss1", 3, func(b *v1alpha1.BlockDevice) {
		b.Target, b.Unusable = "storage/"+plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "oss1", "wwn-oss1-0003"), []string{"it is not blank"}
	})
	NewWithT(t).Expect(ids(plan.Select(in).Targets)).To(Equal([]string{"oss1:wwn-oss1-0003"}))
}

func TestADiskThatIsNoLongerNamed(t *testing.T) {
	g := NewWithT(t)
	one, two := v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000"}, v1alpha1.DeviceReference{Node: "oss1", ID: "0xoss1-0001"}
	in := anInput(aFileSystem("scratch", naming(one, two)), 2, "oss1")
	in.Existing = plan.Select(in).Targets
	g.Expect(in.Existing).To(HaveLen(2))
	in.FileSystem = aFileSystem("scratch", naming(two))
	s := plan.Select(in)
	g.Expect(s.Targets).To(HaveLen(2), "it may hold data")
	g.Expect(messages(s.Problems)).To(ConsistOf(And(ContainSubstring("disk wwn-oss1-0000"), ContainSubstring("spec.remove"))))
	for i := range in.Existing {
		drained(&in.Existing[i])
	}
	s = plan.Select(in)
	g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0001"}), "a drained one goes; one that is named stays")
	g.Expect(s.Problems).To(BeEmpty())
}

func TestTheNamesOfTargetsDoNotCollide(t *testing.T) {
	g := NewWithT(t)
	const disk = v1alpha1.DeviceID("wwn-0x5000c500a1b2c3d4")
	names := map[string]int{}
	for i, of := range []struct {
		fileSystem       string
		role             v1alpha1.Role
		poolOrSlot, node string
		id               v1alpha1.DeviceID
	}{
		{"a", v1alpha1.RoleStorage, "b-c", "n1", disk}, {"a-b", v1alpha1.RoleStorage, "c", "n1", disk},
		{"a", v1alpha1.RoleStorage, "mds0", "n1", disk}, {"a", v1alpha1.RoleMetadata, "mds0", "n1", disk},
		{"a", v1alpha1.RoleStorage, "management", "n1", disk}, {"a", v1alpha1.RoleManagement, "management", "n1", disk},
		{"a", v1alpha1.RoleMetadata, "mds1", "n1", disk}, {"a", v1alpha1.RoleMetadata, "mds1", "n2", disk}, {"a", v1alpha1.RoleMetadata, "mds1", "n1", disk + "a"},
		{strings.Repeat("f", 40), v1alpha1.RoleStorage, strings.Repeat("p", 24), strings.Repeat("n", 253), disk},
	} {
		name := plan.TargetName(of.fileSystem, of.role, of.poolOrSlot, of.node, of.id)
		g.Expect(validation.IsDNS1123Subdomain(name)).To(BeEmpty(), name)
		g.Expect(name).To(MatchRegexp("^" + of.fileSystem + "-" + of.poolOrSlot + "-[0-9a-f]{16}$"))
		g.Expect(names).NotTo(HaveKey(name), "%v", of)
		names[name] = i
	}
	g.Expect(plan.TargetName("scratch", v1alpha1.RoleStorage, "ssd", "n1", disk)).To(Equal("scratch-ssd-093b004a85476148"), "a name is for ever")
}

func TestADiskThatIsNamedTwiceInAPoolIsOneTarget(t *testing.T) {
	s := plan.Select(anInput(aFileSystem("scratch", naming(
		v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000"}, v1alpha1.DeviceReference{Node: "oss1", ID: "serial-oss1-0000"})), 2, "oss1"))
	NewWithT(t).Expect(s.Targets).To(HaveLen(1))
	NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring("wwn-oss1-0000 and serial-oss1-0000 are the same disk")))
}

func TestTargetsOfMetadataServers(t *testing.T) {
	for name, spec := range map[string]v1alpha1.TargetsSpec{
		"named": naming(v1alpha1.DeviceReference{Node: "mds1", ID: "wwn-mds1-0002"}, v1alpha1.DeviceReference{Node: "mds1", ID: "wwn-mds1-0003"},
			v1alpha1.DeviceReference{Node: "mds1", ID: "wwn-mds1-0000"}, v1alpha1.DeviceReference{Node: "mds1", ID: "wwn-mds1-0001"}),
		"selected": selecting(4),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := aFileSystem("scratch", v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/srv/a"}})
			fs.Spec.MetadataServers.Targets, fs.Spec.MetadataServers.InstancesPerNode = spec, 2
			in := anInput(fs, 4, "mds1")
			in.Metadata = []string{"mds1"}
			s := plan.Select(in)
			g.Expect(s.Problems).To(BeEmpty())
			instances := map[int32]int{}
			for _, target := range s.Targets {
				instances[target.Spec.Slot]++
				g.Expect(target.Spec.Role).To(Equal(v1alpha1.RoleMetadata))
				g.Expect(target.Name).To(HavePrefix(fmt.Sprintf("scratch-mds%d-", target.Spec.Slot)))
				if name == "named" {
					g.Expect(target.Spec.Slot == 0).To(Equal(target.Spec.Device.ID >= "wwn-mds1-0002"), "in the order of the list")
				}
			}
			g.Expect(instances).To(Equal(map[int32]int{0: 2, 1: 2}))
			in.Existing = s.Targets
			g.Expect(plan.Select(in)).To(Equal(s), "and they stay")
			fs.Spec.MetadataServers.InstancesPerNode = 3
			in.Existing = nil
			g.Expect(plan.Select(in).Problems).To(HaveLen(1), "4 disks can't be shared out to 3")
		})
	}
}

func TestLostMetadataGetsAnotherDiskOfItsNodeAndNoThirdOne(t *testing.T) {
	g := NewWithT(t)
	fs := aFileSystem("scratch", v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/srv/a"}})
	fs.Spec.MetadataServers.Targets = selecting(1)
	in := anInput(fs, 4, "mds1")
	in.Metadata = []string{"mds1"}
	in.Existing = plan.Select(in).Targets
	g.Expect(in.Existing).To(HaveLen(1))
	in.LostMetadata = in.Existing[0].Name
	s := plan.Select(in)
	g.Expect(s.Problems).To(BeEmpty())
	g.Expect(s.Targets).To(And(HaveLen(2), ContainElement(HaveField("Name", in.LostMetadata))), "the lost one stays on record")
	in.Existing = s.Targets
	g.Expect(plan.Select(in)).To(Equal(s))
	in.LostMetadata = ""
	g.Expect(plan.Select(in)).To(Equal(s), "nor when it was made again")
}

func TestALostDiskThatIsReplacedGetsOneDiskOfItsNodeInItsPlaceAndNoThirdOne(t *testing.T) {
	g := NewWithT(t)
	fs := aFileSystem("scratch", selecting(1))
	in := anInput(fs, 4, "oss1")
	in.Pools = map[string][]string{fs.Spec.StoragePools[0].Name: {"oss1"}}
	in.Existing = plan.Select(in).Targets
	g.Expect(in.Existing).To(HaveLen(1))
	in.Replaced = []string{in.Existing[0].Name}
	s := plan.Select(in)
	g.Expect(s.Problems).To(BeEmpty())
	g.Expect(s.Targets).To(And(HaveLen(2), ContainElement(HaveField("Name", in.Replaced[0]))), "the lost one stays until a person deletes it")
	in.Existing = s.Targets
	g.Expect(plan.Select(in)).To(Equal(s))

	// The devices of the spec name the other disk only.
	fs.Spec.StoragePools[0].Targets = v1alpha1.TargetsSpec{}
	for _, t := range s.Targets {
		if t.Name != in.Replaced[0] {
			fs.Spec.StoragePools[0].Targets.Devices = []v1alpha1.DeviceReference{{Node: "oss1", ID: t.Spec.Device.ID}}
		}
	}
	named := plan.Select(in)
	g.Expect(named.Problems).To(BeEmpty())
	g.Expect(named.Targets).To(HaveLen(2))
	in.Replaced = nil
	g.Expect(plan.Select(in).Problems).To(ContainElement(HaveField("Message", ContainSubstring("is no longer in devices"))))
}

func TestADiskThatIsSelectedTwiceIsRefusedForBoth(t *testing.T) {
	serial := func(s string) func(*v1alpha1.BlockDevice) {
		return func(b *v1alpha1.BlockDevice) { b.Serial = s }
	}
	disk := func(node string, i int) v1alpha1.DeviceReference {
		return v1alpha1.DeviceReference{Node: node, ID: v1alpha1.DeviceID(fmt.Sprintf("wwn-%s-%04d", node, i))}
	}
	t.Run("by two FileSystems", func(t *testing.T) {
		g := NewWithT(t)
		mine, other := anInput(aFileSystem("scratch", naming(disk("oss1", 0))), 1, "oss1"), anInput(aFileSystem("home", naming(disk("oss1", 0))), 1, "oss1")
		mine.Existing, other.Existing = plan.Select(mine).Targets, plan.Select(other).Targets
		mine.Others, other.Others = other.Existing, mine.Existing
		for _, in := range []plan.SelectInput{mine, other} {
			s := plan.Select(in)
			g.Expect(s.Targets).To(HaveLen(1))
			g.Expect(s.Targets[0].Spec.Conflict).To(And(ContainSubstring("FileSystem storage/scratch"), ContainSubstring("FileSystem storage/home")))
			g.Expect(messages(s.Problems)).To(ConsistOf(HavePrefix("DeviceConflict: ")))
		}
		t.Run("but the one that is provisioned goes on", func(t *testing.T) {
			g := NewWithT(t)
			finished(&mine.Existing[0])
			g.Expect(plan.Select(mine).Targets[0].Spec.Conflict).To(BeEmpty())
			g.Expect(plan.Select(mine).Problems).To(BeEmpty())
			g.Expect(plan.Select(other).Targets[0].Spec.Conflict).NotTo(BeEmpty())
		})
	})
	t.Run("by two roles", func(t *testing.T) {
		fs := aFileSystem("scratch", naming(disk("oss1", 0)))
		fs.Spec.MetadataServers.Targets = naming(disk("oss1", 0))
		in := anInput(fs, 1, "oss1")
		in.Metadata = []string{"oss1"}
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(2))
		for _, target := range s.Targets {
			NewWithT(t).Expect(target.Spec.Conflict).To(And(ContainSubstring("the metadata"), ContainSubstring("pool ssd")))
		}
	})
	t.Run("by two pools", func(t *testing.T) {
		fs := aFileSystem("scratch", naming(disk("oss1", 0)))
		fs.Spec.StoragePools = append(fs.Spec.StoragePools, v1alpha1.StoragePoolSpec{Name: "hdd", Targets: naming(v1alpha1.DeviceReference{Node: "oss1", ID: "serial-oss1-0000"})})
		for _, target := range plan.Select(anInput(fs, 1, "oss1")).Targets {
			NewWithT(t).Expect(target.Spec.Conflict).To(And(ContainSubstring("pool hdd"), ContainSubstring("pool ssd")))
		}
	})
	t.Run("by a pool that is called like an instance", func(t *testing.T) {
		fs := aFileSystem("scratch", naming(disk("oss1", 0)))
		fs.Spec.MetadataServers.Targets, fs.Spec.StoragePools[0].Name = naming(disk("oss1", 0)), "mds0"
		in := anInput(fs, 1, "oss1")
		in.Metadata = []string{"oss1"}
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(2))
		for _, target := range s.Targets {
			NewWithT(t).Expect(target.Spec.Conflict).To(And(ContainSubstring("the metadata"), ContainSubstring("pool mds0")))
		}
	})
	t.Run("by two nodes that reach one disk", func(t *testing.T) {
		in := anInput(aFileSystem("scratch", naming(disk("oss1", 0), disk("oss2", 0))), 1, "oss1", "oss2")
		change(in, "oss1", 0, serial("shared"))
		change(in, "oss2", 0, serial("shared"))
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(2))
		for _, target := range s.Targets {
			NewWithT(t).Expect(target.Spec.Conflict).To(And(ContainSubstring("node oss1"), ContainSubstring("node oss2")))
		}
	})
	t.Run("as a disk and as a log", func(t *testing.T) {
		a, b := disk("oss1", 0), disk("oss1", 1)
		a.LogDevice = b.ID
		s := plan.Select(anInput(aFileSystem("scratch", naming(a, b)), 2, "oss1"))
		NewWithT(t).Expect(s.Targets).To(HaveLen(2))
		for _, target := range s.Targets {
			NewWithT(t).Expect(target.Spec.Conflict).To(ContainSubstring("as the log of"))
		}
	})
	t.Run("as the log of two", func(t *testing.T) {
		a, b := disk("oss1", 0), disk("oss1", 1)
		a.LogDevice, b.LogDevice = "wwn-oss1-0002", "serial-oss1-0002"
		for _, target := range plan.Select(anInput(aFileSystem("scratch", naming(a, b)), 3, "oss1")).Targets {
			NewWithT(t).Expect(target.Spec.Conflict).To(ContainSubstring("as the log of"))
		}
	})
	t.Run("but not two namespaces of one controller, which share its serial", func(t *testing.T) {
		in := anInput(aFileSystem("scratch", naming(disk("oss1", 0), disk("oss1", 1))), 2, "oss1")
		change(in, "oss1", 0, serial("controller"))
		change(in, "oss1", 1, serial("controller"))
		s := plan.Select(in)
		NewWithT(t).Expect(s.Problems).To(BeEmpty())
		NewWithT(t).Expect(s.Targets).To(HaveEach(HaveField("Spec.Conflict", "")))
	})
	t.Run("and a selector leaves the disks of others alone", func(t *testing.T) {
		other := anInput(aFileSystem("home", naming(disk("oss1", 0))), 3, "oss1")
		in := anInput(aFileSystem("scratch", selecting(2)), 3, "oss1")
		in.Others = plan.Select(other).Targets
		s := plan.Select(in)
		NewWithT(t).Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0001", "oss1:wwn-oss1-0002"}))
		in.FileSystem = aFileSystem("scratch", selecting(3))
		NewWithT(t).Expect(messages(plan.Select(in).Problems)).To(ConsistOf(ContainSubstring("it belongs to StorageTarget storage/home-ssd")))
	})
}

func TestLogDevices(t *testing.T) {
	small := func(b *v1alpha1.BlockDevice) { b.SizeBytes = 1 << 30 }
	spec := selecting(2, func(s *v1alpha1.DeviceSelector) { s.MinSize = resource.MustParse("1Ti") })
	spec.Format = &v1alpha1.FormatSpec{FSType: v1alpha1.XFS, LogDevices: &v1alpha1.DeviceSelector{MaxSize: resource.MustParse("4Gi"), CountPerNode: 2}}
	input := func() plan.SelectInput {
		in := anInput(aFileSystem("scratch", spec), 6, "oss1")
		for i := 3; i < 6; i++ {
			change(in, "oss1", i, small)
		}
		return in
	}
	logs := func(s plan.Selection) map[string]string {
		found := map[string]string{}
		for _, target := range s.Targets {
			if target.Spec.LogDevice != nil {
				found[string(target.Spec.Device.ID)] = string(target.Spec.LogDevice.ID)
			}
		}
		return found
	}
	t.Run("every target gets one of its own, and keeps it", func(t *testing.T) {
		g := NewWithT(t)
		in := input()
		s := plan.Select(in)
		g.Expect(s.Problems).To(BeEmpty())
		g.Expect(logs(s)).To(HaveLen(2))
		g.Expect(s.Targets[0].Spec.LogDevice.ID).NotTo(Equal(s.Targets[1].Spec.LogDevice.ID))
		g.Expect(s.Targets).To(HaveEach(HaveField("Spec.Format.LogDevices", BeNil())))
		in.Existing = s.Targets
		in.Inventories = nil
		g.Expect(logs(plan.Select(in))).To(Equal(logs(s)))
	})
	t.Run("a target that gets none is left out", func(t *testing.T) {
		in := input()
		change(in, "oss1", 3, func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds a log"} })
		change(in, "oss1", 4, func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds a log"} })
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(1))
		NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(And(ContainSubstring("gets no log device"), ContainSubstring("it holds a log"))))
	})
	t.Run("a partition may be a log", func(t *testing.T) {
		in := input()
		for i := 3; i < 6; i++ {
			change(in, "oss1", i, func(b *v1alpha1.BlockDevice) {
				b.Type = "part"
				b.Unusable = plan.Unusable(plan.Facts{BlockDevice: *b, Found: true})
			})
		}
		NewWithT(t).Expect(logs(plan.Select(in))).To(HaveLen(2))
	})
	t.Run("a provisioned target without a log gets none", func(t *testing.T) {
		in := input()
		without := selecting(2, func(s *v1alpha1.DeviceSelector) { s.MinSize = resource.MustParse("1Ti") })
		in.FileSystem = aFileSystem("scratch", without)
		in.Existing = plan.Select(in).Targets
		for i := range in.Existing {
			finished(&in.Existing[i])
		}
		in.FileSystem = aFileSystem("scratch", spec)
		s := plan.Select(in)
		NewWithT(t).Expect(s.Targets).To(HaveLen(2))
		NewWithT(t).Expect(logs(s)).To(BeEmpty())
	})
	t.Run("a named log that is not there is named", func(t *testing.T) {
		s := plan.Select(anInput(aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000", LogDevice: "wwn-none"})), 1, "oss1"))
		NewWithT(t).Expect(s.Targets).To(BeEmpty())
		NewWithT(t).Expect(messages(s.Problems)).To(ConsistOf(ContainSubstring("has no device wwn-none")))
	})
}

func TestATargetKeepsItsFormat(t *testing.T) {
	g := NewWithT(t)
	spec := selecting(1)
	spec.Format = &v1alpha1.FormatSpec{FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-v"}}
	in := anInput(aFileSystem("scratch", spec), 1, "oss1")
	in.Existing = plan.Select(in).Targets
	spec.Format = &v1alpha1.FormatSpec{FSType: v1alpha1.XFS, MountOptions: []v1alpha1.LocalMountOption{"noatime"}}
	in.FileSystem = aFileSystem("scratch", spec)
	g.Expect(plan.Select(in).Targets[0].Spec.Format.FSType).To(Equal(v1alpha1.XFS), "before it is made, it may change")
	finished(&in.Existing[0])
	g.Expect(plan.Select(in).Targets[0].Spec.Format).To(Equal(v1alpha1.FormatSpec{
		FSType: v1alpha1.Ext4, MkfsOptions: []v1alpha1.MkfsOption{"-v"}, MountOptions: []v1alpha1.LocalMountOption{"noatime"},
	}))
}

func TestNoDiskOfADecommissionedNodeIsChosenAndNoProblemAsksForOthers(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", naming()), 1, "oss1", "oss2")
	for _, node := range []string{"oss1", "oss2"} {
		in.FileSystem.Spec.StoragePools[0].Targets.Devices = append(in.FileSystem.Spec.StoragePools[0].Targets.Devices,
			v1alpha1.DeviceReference{Node: node, ID: v1alpha1.DeviceID(diskNumber(node, 0).IDs[0])})
	}
	in.Pools["ssd"] = []string{"oss1"}
	g.Expect(plan.Select(in).Problems).NotTo(BeEmpty())
	in.GaveUp = map[string]bool{"oss2": true}
	chosen := plan.Select(in)
	g.Expect(chosen.Problems).To(BeEmpty())
	g.Expect(chosen.Targets).To(HaveExactElements(HaveField("Spec.Node", "oss1")))
}
