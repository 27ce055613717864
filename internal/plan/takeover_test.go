package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// uidFormer is the uid of the FileSystem that had the disk.
const uidFormer = "0b9c1c1e-0000-0000-0000-00000000000c"

// formersTarget is the target that the disk of aTarget was before: in another namespace, of another name, on another node.
func formersTarget() *v1alpha1.StorageTarget {
	return aTarget(func(t *v1alpha1.StorageTarget) {
		t.Namespace, t.Spec.FileSystem.Name, t.Spec.Node, t.Spec.Cluster = "lab", "old", "oss9", there
		t.Name = plan.TargetName("old", v1alpha1.RoleStorage, "ssd", "oss9", t.Spec.Device.ID)
	})
}

// former is that target as the agent shows it and the operator allows it.
func former() *v1alpha1.FormerTarget {
	return &v1alpha1.FormerTarget{
		Owner:         v1alpha1.FormerOwner{Cluster: there, Namespace: "lab", FileSystem: "old", Node: "oss9"},
		FileSystemUID: uidFormer, Type: v1alpha1.FileSystemType("AnyFS"), Target: formersTarget().Name, UUID: uuidOne, ServerID: 3, TargetID: 12,
	}
}

// besides is the record beside the marker of the former target.
func besides(f *plan.Facts) {
	f.Record = &spec.TargetRecord{
		Version: 1, FileSystem: spec.Owner{Namespace: "lab", Name: "old", UID: uidFormer}, Node: "oss9", Type: "AnyFS", MetadataNode: "mds9",
		Member: spec.RecordedMember{Name: "storage-ssd", Role: "Storage", StoragePool: "ssd", ID: 3}, Target: formersTarget().Name, TargetID: 12,
	}
}

// formersDisk is a disk that carries the former target.
func formersDisk(changes ...func(*plan.Facts)) plan.Look {
	return plan.Look{Device: blankDisk(append([]func(*plan.Facts){carrying(formersTarget(), uuidOne, uidFormer), besides}, changes...)...)}
}

// allowed lets a target take the disk over.
func allowed(t *v1alpha1.StorageTarget) { t.Spec.TakeOverFrom = former() }

// approved approves the plan that a look gives.
func approved(t *v1alpha1.StorageTarget, l plan.Look) *v1alpha1.StorageTarget {
	if d := decide(t, l); d.Plan != nil {
		t.Spec.ApprovedPlan = d.Plan.Hash
	}
	return t
}

func TestADiskOfAnotherOwnerIsTakenOverWhenItsPlanIsApproved(t *testing.T) {
	g := NewWithT(t)
	target, disk := aTarget(policy(v1alpha1.FormatNever)), formersDisk()
	d := decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonDeviceRefused))
	g.Expect(d.Ready.Message).To(ContainSubstring("in spec.provisioning.takeOverFrom of FileSystem scratch: {cluster: " + there + ", namespace: lab, fileSystem: old, node: oss9}"))
	g.Expect(d.FormerOwner).To(Equal(former()), "the status says what a person has to name")
	g.Expect(d.Plan.Refusals).NotTo(BeEmpty())

	allowed(target)
	d = decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonAwaitingApproval), d.Ready.Message)
	g.Expect(d.Plan.Refusals).To(BeEmpty())
	g.Expect(d.Plan.Destroys).To(BeEmpty())
	g.Expect(d.Plan.Steps[0]).To(ContainSubstring("StorageTarget lab/" + formersTarget().Name + " of AnyFS FileSystem lab/old on node oss9 of cluster " + there))

	target.Spec.ApprovedPlan = d.Plan.Hash
	d = decide(target, disk)
	g.Expect(d.Action).To(Equal(plan.Adopt), d.Ready.Message)
	g.Expect(d.Provisioned.PlanHash).To(BeEmpty(), "nothing was formatted")
	g.Expect(d.Provisioned.Label).To(Equal(plan.Label(formersTarget())))
	target.Status.Provisioned, target.Status.FormerOwner = d.Provisioned, d.FormerOwner

	g.Expect(decide(target, disk).Action).To(Equal(plan.Mount))
	g.Expect(decide(target, mounted(formersTarget(), uuidOne, uidFormer)).Action).To(Equal(plan.Mark))
	own := mounted(target, uuidOne, uidNow)
	own.Device.Signatures[0].Label = plan.Label(formersTarget())
	d = decide(target, own)
	g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonProven), d.Ready.Message)
	g.Expect(d.Provisioned.FormerOwner).To(BeNil())
	target.Status.Provisioned = d.Provisioned
	g.Expect(decide(target, formersDisk()).Ready.Reason).To(Equal(v1alpha1.ReasonTargetMissing), "the former owner is alive, and took it back")
}

func TestADiskThatWasTakenOverIsAdoptedByItsOwnMarkerWhateverItsLabelIs(t *testing.T) {
	disk := look(carrying(aTarget(), uuidOne, uidOld), func(f *plan.Facts) { f.Signatures[0].Label = plan.Label(formersTarget()) })
	d := decide(aTarget(), disk)
	NewWithT(t).Expect(d.Action).To(Equal(plan.Adopt), d.Ready.Message)
	NewWithT(t).Expect(d.Provisioned.Label).To(Equal(plan.Label(formersTarget())))
}

func TestADiskOfAnotherOwnerIsLeftAloneUnlessAllAgrees(t *testing.T) {
	other := func(change func(*v1alpha1.FormerTarget)) func(*v1alpha1.StorageTarget) {
		return func(t *v1alpha1.StorageTarget) {
			allowed(t)
			change(t.Spec.TakeOverFrom)
		}
	}
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
		says   string
	}{
		"the owner is not named":              {aTarget(), formersDisk(), "name its owner in spec.provisioning.takeOverFrom"},
		"another cluster was named":           {aTarget(other(func(f *v1alpha1.FormerTarget) { f.Owner.Cluster = here })), formersDisk(), "another target was to be taken over"},
		"another namespace was named":         {aTarget(other(func(f *v1alpha1.FormerTarget) { f.Owner.Namespace = "storage" })), formersDisk(), "another target was to be"},
		"another FileSystem was named":        {aTarget(other(func(f *v1alpha1.FormerTarget) { f.Owner.FileSystem = "scratch" })), formersDisk(), "another target was to be"},
		"another node was named":              {aTarget(other(func(f *v1alpha1.FormerTarget) { f.Owner.Node = "oss1" })), formersDisk(), "another target was to be"},
		"the FileSystem has another uid":      {aTarget(other(func(f *v1alpha1.FormerTarget) { f.FileSystemUID = uidOld })), formersDisk(), "another target was to be"},
		"the disk has another uuid":           {aTarget(other(func(f *v1alpha1.FormerTarget) { f.UUID = uuidTwo })), formersDisk(), "another target was to be"},
		"the server has another id":           {aTarget(other(func(f *v1alpha1.FormerTarget) { f.ServerID = 4 })), formersDisk(), "another target was to be"},
		"the target has another id":           {aTarget(other(func(f *v1alpha1.FormerTarget) { f.TargetID = 13 })), formersDisk(), "another target was to be"},
		"the disk has no record":              {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Record = nil }), "never formatted for another one"},
		"the record is of another FileSystem": {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Record.FileSystem.Name = "copied" }), "never formatted for another one"},
		"the record is of another target":     {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Record.Target = "old-ssd-0" }), "never formatted for another one"},
		"the marker names no cluster":         {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Marker.Cluster = "" }), "never formatted for another one"},
		"the marker was copied":               {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Signatures[0].UUID = uuidTwo }), "the marker was copied"},
		"the disk was in another pool":        {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Marker.StoragePool = "hdd" }), `pool "hdd"`},
		"the disk had another role":           {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Marker.Role = "Metadata" }), "the role Metadata"},
		"the disk is mounted":                 {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Mounts = []string{"/mnt"} }), "is mounted at /mnt"},
		"the disk is in use":                  {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Busy = "device or resource busy" }), "is in use"},
		"another machine has it mounted":      {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Elsewhere = "oss9 has it mounted" }), "oss9 has it mounted"},
		"the disk has another serial number":  {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Serial = "S9" }), "wrong serial"},
		"not all of the disk was looked at":   {aTarget(allowed), formersDisk(func(f *plan.Facts) { f.Incomplete = "no answer" }), "no answer"},
		"the target has a log device":         {aTarget(allowed, withLog), plan.Look{Device: formersDisk().Device, Log: blankLog()}, "an external log is not taken over"},
		"its plan was begun for a format":     {aTarget(allowed, begun), formersDisk(), "never formatted for another one"},
		"the target has its own disk already": {aTarget(allowed, finished), formersDisk(), "never formatted for another one"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			for _, p := range []v1alpha1.FormatPolicy{v1alpha1.FormatNever, v1alpha1.FormatIfBlank, v1alpha1.FormatApproved} {
				target := c.target.DeepCopy()
				policy(p)(target)
				d := decide(approved(target, c.look), c.look)
				g.Expect(d.Action).To(Equal(plan.None), d.Ready.Message)
				g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
				g.Expect(d.Provisioned).To(Equal(c.target.Status.Provisioned))
			}
		})
	}
	t.Run("the plan of another look is no approval", func(t *testing.T) {
		target := approved(aTarget(allowed), formersDisk())
		d := decide(target, formersDisk(func(f *plan.Facts) { f.Model = "OTHER" }))
		NewWithT(t).Expect(d.Action).To(Equal(plan.None))
		NewWithT(t).Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonApprovalRefused))
	})
	t.Run("a deleted target does not wipe it", func(t *testing.T) {
		target := aTarget(allowed, finished, deleted(uidNow))
		target.Status.Provisioned.FormerOwner = former()
		d := decide(target, formersDisk())
		NewWithT(t).Expect(d.Action).To(Equal(plan.None))
		NewWithT(t).Expect(d.Destroyed).To(HaveValue(HaveField("Message", ContainSubstring("its marker is that of StorageTarget lab/"))))
	})
}

func TestADiskIsTakenOverOnlyFromANamedOwnerThatIsGone(t *testing.T) {
	mine := func(change func(*v1alpha1.FormerTarget)) plan.SelectInput {
		fs := aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000"}))
		fs.Spec.Type = v1alpha1.FileSystemType("AnyFS")
		in := anInput(fs, 1, "oss1")
		in.Cluster = here
		in.Existing = plan.Select(in).Targets
		f := former()
		change(f)
		in.Existing[0].Status.FormerOwner = f
		fs.Spec.Provisioning.TakeOverFrom = []v1alpha1.FormerOwner{f.Owner}
		return in
	}
	inThisCluster := func(f *v1alpha1.FormerTarget) { f.Owner.Cluster = here }
	itself := func(f *v1alpha1.FormerTarget) {
		f.Owner = v1alpha1.FormerOwner{Cluster: here, Namespace: "storage", FileSystem: "scratch", Node: "oss9"}
	}
	asItIs := func(*v1alpha1.FormerTarget) {}
	for name, c := range map[string]struct {
		in     plan.SelectInput
		change func(in *plan.SelectInput)
		says   string
	}{
		"it is allowed":                     {in: mine(asItIs)},
		"it is allowed in the same cluster": {in: mine(inThisCluster)},
		"the owner still serves the disk":   {mine(inThisCluster), func(in *plan.SelectInput) { in.Others = append(in.Others, *formersTarget()) }, "still exists here and node oss9 serves it"},
		"another target of the owner is there": {in: mine(inThisCluster), change: func(in *plan.SelectInput) {
			o := *formersTarget()
			o.Name = "old-ssd-1"
			in.Others = append(in.Others, o)
		}},
		"the same name in another cluster":        {in: mine(asItIs), change: func(in *plan.SelectInput) { in.Others = append(in.Others, *formersTarget()) }},
		"it is of another type":                   {mine(asItIs), func(in *plan.SelectInput) { in.FileSystem.Spec.Type = v1alpha1.FileSystemType("OtherFS") }, "because FileSystem scratch is a OtherFS"},
		"its numbers are recorded for its node":   {mine(itself), nil, "numbers don't move"},
		"only its server has a number":            {mine(func(f *v1alpha1.FormerTarget) { itself(f); f.TargetID = 0 }), nil, "numbers don't move"},
		"only its target has a number":            {mine(func(f *v1alpha1.FormerTarget) { itself(f); f.ServerID = 0 }), nil, "numbers don't move"},
		"the same names in another cluster move":  {in: mine(func(f *v1alpha1.FormerTarget) { itself(f); f.Owner.Cluster = there })},
		"the same name in another namespace":      {in: mine(func(f *v1alpha1.FormerTarget) { itself(f); f.Owner.Namespace = "lab" })},
		"another name in the same namespace":      {in: mine(func(f *v1alpha1.FormerTarget) { itself(f); f.Owner.FileSystem = "old" })},
		"a disk without numbers moves to a node":  {in: mine(func(f *v1alpha1.FormerTarget) { itself(f); f.ServerID, f.TargetID = 0, 0 })},
		"the FileSystem has files of its own":     {mine(asItIs), func(in *plan.SelectInput) { in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n"} }, "two filesystems can't become one"},
		"the FileSystem goes on with its disks":   {in: mine(asItIs), change: hasTakenOverItsMetadata},
		"the disk carries nothing that was named": {mine(asItIs), func(in *plan.SelectInput) { in.FileSystem.Spec.Provisioning.TakeOverFrom[0].Node = "oss8" }, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			g, in := NewWithT(t), c.in
			if c.change != nil {
				c.change(&in)
			}
			s := plan.Select(in)
			target := s.Targets[len(s.Targets)-1]
			for _, one := range s.Targets {
				if one.Spec.StoragePool != "" {
					target = one
				}
			}
			if c.says == "" {
				g.Expect(messages(s.Problems)).To(BeEmpty())
				g.Expect(target.Spec.TakeOverFrom).To(Equal(in.Existing[0].Status.FormerOwner))
				return
			}
			g.Expect(target.Spec.TakeOverFrom).To(BeNil())
			if c.says == "-" {
				g.Expect(messages(s.Problems)).To(BeEmpty(), "the StorageTarget says what to name")
				return
			}
			g.Expect(messages(s.Problems)).To(ConsistOf(And(HavePrefix("DeviceConflict: spec.provisioning.takeOverFrom: "), ContainSubstring(c.says))))
		})
	}
}

// hasTakenOverItsMetadata gives a FileSystem the metadata of the owner whose other disk is to follow.
func hasTakenOverItsMetadata(in *plan.SelectInput) {
	in.FileSystem.Status.Metadata = &v1alpha1.MetadataRecord{Node: "n"}
	metadata := aTarget(finished, func(t *v1alpha1.StorageTarget) {
		t.Name, t.Spec.Role, t.Spec.StoragePool, t.Spec.Device = "scratch-mds0-1", v1alpha1.RoleMetadata, "", v1alpha1.DeviceIdentity{ID: "wwn-0x77", SizeBytes: tib}
		t.Status.FormerOwner = former()
	})
	in.Existing = append(in.Existing, *metadata)
}
