package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// accepting is a finished target with the annotation that accepts what it offers.
func accepting(hash string) func(*v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		t.Annotations = map[string]string{v1alpha1.AnnotationAcceptDevice: hash}
	}
}

func TestADiskWithAnotherIdentityServesWhenAPersonAcceptsIt(t *testing.T) {
	ours := aTarget()
	all := carrying(ours, uuidOne, uidNow)
	for name, change := range map[string]func(*plan.Facts){
		"a serial number of new firmware":              func(f *plan.Facts) { f.Serial = "S2" },
		"another WWN":                                  func(f *plan.Facts) { f.WWN = "0x6" },
		"the link has gone, and another serial number": func(f *plan.Facts) { f.IDs, f.Serial = []string{"wwn-new"}, "S2" },
		"all names are others": func(f *plan.Facts) {
			f.IDs, f.WWN, f.Serial = []string{"virtio-new"}, "", "new"
		},
		"another serial number, and it grew": func(f *plan.Facts) { f.Serial, f.SizeBytes = "S2", 2*tib },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			disk := look(all, change)
			d := decide(aTarget(finished), disk)
			g.Expect(d.Action).To(Equal(plan.None))
			g.Expect(d.Ready.Reason).To(Equal(v1alpha1.ReasonTargetMissing))
			g.Expect(d.NewDevice).NotTo(BeNil(), d.Ready.Message)
			g.Expect(d.NewDevice.Hash).To(MatchRegexp("^sha256:[0-9a-f]{64}$"))
			g.Expect(d.Ready.Message).To(ContainSubstring("kubectl annotate --overwrite storagetarget " + ours.Name + " -n storage parallelfs.dev/accept-device=" + d.NewDevice.Hash))

			g.Expect(decide(aTarget(finished, accepting("sha256:0")), disk).Action).To(Equal(plan.None), "another hash accepts nothing")

			target := aTarget(finished, accepting(d.NewDevice.Hash))
			accepted := decide(target, disk)
			g.Expect(accepted.Action).To(Equal(plan.Record))
			g.Expect(accepted.Provisioned.Device).To(Equal(&d.NewDevice.Device))
			g.Expect(accepted.Provisioned.UUID).To(Equal(uuidOne))
			g.Expect(accepted.Steps).To(BeEmpty())

			target.Status.Provisioned = accepted.Provisioned
			g.Expect(decide(target, disk).Action).To(Equal(plan.Mount))
			g.Expect(decide(target, look(all)).Action).NotTo(Equal(plan.Mount), "what it had before is another disk now")

			again := decide(target, look(all, change, func(f *plan.Facts) { f.Serial = "S9" }))
			g.Expect(again.Action).To(Equal(plan.None), "the hash that accepted the former change accepts no later one")
			g.Expect(again.NewDevice.Hash).NotTo(Equal(d.NewDevice.Hash))
		})
	}
}

func TestAWWNThatSeveralDisksHaveIsOfferedBesideASerialNumberOnly(t *testing.T) {
	shared := func(serial string) plan.Look {
		return look(carrying(aTarget(), uuidOne, uidNow), func(f *plan.Facts) { f.Serial, f.WWN, f.SharedWWN = serial, "", f.WWN })
	}
	g := NewWithT(t)
	g.Expect(decide(aTarget(finished), shared("S2")).NewDevice.Device.WWN).To(Equal(aTarget().Spec.Device.WWN))
	g.Expect(decide(aTarget(finished), shared("")).NewDevice.Device.WWN).To(BeEmpty())
}

func TestAnotherIdentityIsOfferedWhileTheDiskIsMountedAtItsPlace(t *testing.T) {
	l := mounted(aTarget(), uuidOne, uidNow)
	l.Device.Serial = "S2"
	NewWithT(t).Expect(decide(aTarget(finished), l).NewDevice).NotTo(BeNil())
	l.Mount.KernelName = "sdc"
	NewWithT(t).Expect(decide(aTarget(finished), l).NewDevice).To(BeNil(), "what is mounted may be another disk")
}

func TestAnotherIdentityIsNotOfferedWhen(t *testing.T) {
	ours := aTarget()
	serial := func(f *plan.Facts) { f.Serial = "S2" }
	other := aTarget(func(o *v1alpha1.StorageTarget) { o.Spec.FileSystem.Name, o.Name = "home", "home-ssd-0" })
	for name, c := range map[string]struct {
		target *v1alpha1.StorageTarget
		look   plan.Look
	}{
		"the UUID is another one":          {aTarget(finished), look(carrying(ours, uuidTwo, uidNow), serial)},
		"the marker is not there":          {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.Marker = nil })},
		"the marker is of another one":     {aTarget(finished), look(holding("xfs", uuidOne, plan.Label(ours)), serial, func(f *plan.Facts) { f.Marker = markerOf(other, uuidOne, uidNow) })},
		"the marker has another UUID":      {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.Marker.UUID = uuidTwo })},
		"the marker is of another cluster": {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.Marker.Cluster = there })},
		"it is smaller":                    {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.SizeBytes -= 512 })},
		"not all is known of it":           {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.Incomplete = "EIO" })},
		"it is two disks":                  {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.TwoDisks = "these are two disks" })},
		"it is mounted":                    {aTarget(finished), look(carrying(ours, uuidOne, uidNow), serial, func(f *plan.Facts) { f.Mounts = []string{"/mnt"} })},
		"it has no name that stays":        {aTarget(finished), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) { f.IDs, f.WWN, f.Serial = nil, "", "" })},
		"only the recorded name is at fault": {aTarget(finished, func(t *v1alpha1.StorageTarget) { t.Spec.Device.ID = "nvme0n1" }), look(carrying(ours, uuidOne, uidNow), func(f *plan.Facts) {
			f.IDs = append(f.IDs, "nvme0n1")
		})},
		"the target is not finished": {aTarget(begun), look(carrying(ours, uuidOne, uidNow), serial)},
		"the target is deleted":      {aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow), serial)},
		"it is not there":            {aTarget(finished), plan.Look{}},
		"it went while it was mounted": {aTarget(finished), func() plan.Look {
			l := mounted(ours, uuidOne, uidNow)
			l.Device = plan.Facts{}
			return l
		}()},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(c.target, c.look)
			NewWithT(t).Expect(d.NewDevice).To(BeNil())
			NewWithT(t).Expect(d.Action).To(Equal(plan.None))
		})
	}
}

func TestAnotherIdentityIsOfferedToFinishedTargetsOnly(t *testing.T) {
	disk := look(carrying(aTarget(), uuidOne, uidNow), func(f *plan.Facts) { f.Serial = "S2" })
	g := NewWithT(t)
	g.Expect(plan.NewDevice(aTarget(finished), disk)).NotTo(BeNil())
	g.Expect(plan.NewDevice(aTarget(begun), disk)).To(BeNil())
	g.Expect(plan.NewDevice(aTarget(), disk)).To(BeNil())
}

func TestADiskThatGrewContinuesToServeAndReportsIt(t *testing.T) {
	g := NewWithT(t)
	ours := aTarget()
	grown := func(f *plan.Facts) { f.SizeBytes = 2 * tib }
	l := mounted(ours, uuidOne, uidNow)
	grown(&l.Device)
	d := decide(aTarget(finished), l)
	g.Expect(d.Ready.Status).To(Equal(metav1.ConditionTrue), d.Ready.Message)
	g.Expect(d.Ready.Message).To(ContainSubstring("its disk was recorded with 1099511627776 bytes and has 2199023255552 now: the target goes on"))
	g.Expect(decide(aTarget(finished), look(carrying(ours, uuidOne, uidNow), grown)).Action).To(Equal(plan.Mount))

	// One without serial number and WWN is proven by UUID and marker only, so a person says that it is the same.
	nameless := func(t *v1alpha1.StorageTarget) { t.Spec.Device.Serial, t.Spec.Device.WWN = "", "" }
	bare := func(f *plan.Facts) { f.Serial, f.WWN = "", "" }
	disk := look(carrying(ours, uuidOne, uidNow), grown, bare)
	asked := decide(aTarget(finished, nameless), disk)
	g.Expect(asked.Action).To(Equal(plan.None))
	target := aTarget(finished, nameless, accepting(asked.NewDevice.Hash))
	target.Status.Provisioned = decide(target, disk).Provisioned
	g.Expect(decide(target, disk).Action).To(Equal(plan.Mount))

	// Either of the two proves it.
	for _, one := range []func(f *plan.Facts, d *v1alpha1.DeviceIdentity){
		func(f *plan.Facts, d *v1alpha1.DeviceIdentity) { f.Serial, d.Serial = "", "" },
		func(f *plan.Facts, d *v1alpha1.DeviceIdentity) { f.WWN, d.WWN = "", "" },
	} {
		f, was := blankDisk(grown), aTarget().Spec.Device
		one(&f, &was)
		g.Expect(plan.HasIdentityOrGrew(f, was)).To(BeEmpty())
	}
	g.Expect(decide(aTarget(finished), mounted(ours, uuidOne, uidNow)).Ready.Message).NotTo(ContainSubstring("was recorded with"), "it did not grow")

	// A plan to format is void all the same.
	g.Expect(decide(aTarget(), look(grown)).Ready.Message).To(ContainSubstring("grown disk"))
}

func TestADiskThatGrewIsWipedOnlyWhenItsSerialNumberOrWWNProvesIt(t *testing.T) {
	g := NewWithT(t)
	ours := aTarget()
	grown := func(f *plan.Facts) { f.SizeBytes = 2 * tib }
	g.Expect(decide(aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow), grown)).Action).To(Equal(plan.Wipe))

	// Without growth, a disk is wiped whatever it has of the two.
	for _, without := range []func(f *plan.Facts, d *v1alpha1.DeviceIdentity){
		func(f *plan.Facts, d *v1alpha1.DeviceIdentity) { f.WWN, d.WWN = "", "" },
		func(f *plan.Facts, d *v1alpha1.DeviceIdentity) { f.Serial, d.Serial, f.WWN, d.WWN = "", "", "", "" },
	} {
		target, l := aTarget(finished, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow))
		without(&l.Device, &target.Spec.Device)
		g.Expect(decide(target, l).Action).To(Equal(plan.Wipe))
	}

	accepted := func(t *v1alpha1.StorageTarget) {
		t.Spec.Device.Serial, t.Spec.Device.WWN = "", ""
		now := t.Spec.Device
		now.SizeBytes = 2 * tib
		t.Status.Provisioned.Device = &now
	}
	d := decide(aTarget(finished, accepted, deleted(uidNow)), look(carrying(ours, uuidOne, uidNow), grown, func(f *plan.Facts) { f.Serial, f.WWN = "", "" }))
	g.Expect(d.Action).To(Equal(plan.None))
	g.Expect(d.Destroyed.Message).To(ContainSubstring("no serial number or WWN proves that it is the same disk"))
}

func TestADiskIsNamedByTheIdentityThatWasAccepted(t *testing.T) {
	g := NewWithT(t)
	in := anInput(aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-oss1-0000"})), 2, "oss1")
	in.Existing = plan.Select(in).Targets
	finished(&in.Existing[0])
	in.Existing[0].Status.Provisioned.Device = &v1alpha1.DeviceIdentity{ID: "virtio-new", Serial: "new", SizeBytes: tib}
	change(in, "oss1", 0, func(b *v1alpha1.BlockDevice) {
		b.IDs, b.WWN, b.Serial, b.Unusable = []string{"virtio-new"}, "", "new", []string{"it is not blank"}
	})
	for _, id := range []v1alpha1.DeviceID{"wwn-oss1-0000", "virtio-new", "new"} {
		in.FileSystem = aFileSystem("scratch", naming(v1alpha1.DeviceReference{Node: "oss1", ID: id}))
		s := plan.Select(in)
		g.Expect(s.Problems).To(BeEmpty(), string(id))
		g.Expect(ids(s.Targets)).To(Equal([]string{"oss1:wwn-oss1-0000"}), string(id))
	}
	// No other FileSystem gets the disk.
	other := anInput(aFileSystem("home", naming(v1alpha1.DeviceReference{Node: "oss1", ID: "virtio-new"})), 2, "oss1")
	other.Inventories, other.Others = in.Inventories, in.Existing
	g.Expect(plan.Select(other).Targets).To(HaveEach(HaveField("Spec.Conflict", ContainSubstring("StorageTarget storage/scratch-ssd"))))
}
