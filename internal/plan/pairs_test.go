package plan_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// ofPair makes a target one of two nodes, oss1 and oss2, which a node holds.
func ofPair(holder *v1alpha1.TargetHolder, serveOn string) func(t *v1alpha1.StorageTarget) {
	return func(t *v1alpha1.StorageTarget) {
		ofLustre(10)(t)
		t.Spec.SecondNode, t.Spec.ServeOn, t.Status.Holder = "oss2", serveOn, holder
		t.Spec.Lustre.ServiceNodes = []v1alpha1.LustreServiceNode{{NIDs: []string{"10.0.0.2@tcp", "10.1.0.2@tcp"}}, {NIDs: []string{"10.0.0.3@tcp"}}}
	}
}

func holds(node string, number int64, takenUp bool) *v1alpha1.TargetHolder {
	h := &v1alpha1.TargetHolder{Node: node, Number: number}
	if takenUp {
		h.TakenUp = &metav1.Time{Time: time.Unix(1, 0)}
	}
	return h
}

func TestATargetOfTwoNodesIsOnesAtATime(t *testing.T) {
	type does struct{ serves, gives, takesUp bool }
	for name, c := range map[string]struct {
		holder   *v1alpha1.TargetHolder
		serveOn  string
		deleted  bool
		one, two does
	}{
		"it was never handed over":                             {one: does{serves: true}},
		"it is where it is wanted":                             {serveOn: "oss1", one: does{serves: true}},
		"the second is to have it":                             {serveOn: "oss2", one: does{gives: true}},
		"it was not given away, and the agent has said why":    {holder: holds("oss1", 0, false), serveOn: "oss2", one: does{gives: true}},
		"it was given to the second":                           {holder: holds("oss2", 1, false), serveOn: "oss2", two: does{takesUp: true}},
		"the second has taken it up":                           {holder: holds("oss2", 1, true), serveOn: "oss2", two: does{serves: true}},
		"the first is to have it back":                         {holder: holds("oss2", 1, true), two: does{gives: true}},
		"the first is to have it back before it was taken up":  {holder: holds("oss2", 1, false), serveOn: "oss1", two: does{gives: true}},
		"the first has it again, and has not looked at it yet": {holder: holds("oss1", 2, false), one: does{takesUp: true}},
		"the first has it again":                               {holder: holds("oss1", 2, true), one: does{serves: true}},
		"it is deleted where it is wiped":                      {serveOn: "oss2", deleted: true},
		"it is deleted while the second has it":                {holder: holds("oss2", 1, true), serveOn: "oss1", deleted: true, two: does{gives: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := aTarget(ofPair(c.holder, c.serveOn))
			if c.deleted {
				target.DeletionTimestamp = &metav1.Time{Time: now}
			}
			for node, want := range map[string]does{"oss1": c.one, "oss2": c.two, "oss3": {}} {
				g.Expect(does{plan.MayServe(target, node), plan.IsToBeGiven(target, node), plan.IsToBeTakenUp(target, node)}).To(Equal(want), node)
			}
		})
	}
}

func TestATargetOfOneNodeBelongsToItWhateverTheStatus(t *testing.T) {
	g := NewWithT(t)
	target := aTarget(ofLustre(10))
	target.Status.Holder = holds("oss2", 1, true)
	g.Expect(plan.HolderOf(target).Node).To(Equal("oss1"))
	g.Expect(plan.MayServe(target, "oss1")).To(BeTrue())
	g.Expect(plan.MayServe(target, "oss2")).To(BeFalse())
	g.Expect(plan.IsToBeGiven(target, "oss1")).To(BeFalse())
}

func TestATargetOfTwoNodesIsMadeWithTheAddressesOfBoth(t *testing.T) {
	g := NewWithT(t)
	p := plan.Make(aTarget(ofPair(nil, "")), plan.Look{Device: blankDisk()}, uuidOne)
	g.Expect(p.Refusals).To(BeEmpty())
	g.Expect(p.Steps).To(HaveExactElements(ContainSubstring(" --servicenode=10.0.0.2@tcp,10.1.0.2@tcp --servicenode=10.0.0.3@tcp --comment=")))
}

func TestNothingIsDoneToADiskThatTheOtherNodeHolds(t *testing.T) {
	blank, mounted := plan.Look{Device: blankDisk()}, plan.Look{Device: blankDisk(), Mount: plan.Mounted{Mounted: true, KernelName: "sdb"}}
	finished := &v1alpha1.TargetProvisioned{PlanHash: "sha256:1", UUID: uuidOne, Finished: &metav1.Time{Time: now}}
	for name, c := range map[string]struct {
		change func(t *v1alpha1.StorageTarget)
		look   plan.Look
		reason string
		says   string
	}{
		"and looks blank":   {func(*v1alpha1.StorageTarget) {}, blank, v1alpha1.ReasonProven, "node oss2 holds the target"},
		"and was not begun": {func(t *v1alpha1.StorageTarget) { t.Status.Provisioned = nil }, blank, v1alpha1.ReasonProven, "node oss2 holds the target"},
		"and is to be wiped": {func(t *v1alpha1.StorageTarget) {
			t.DeletionTimestamp, t.Spec.DestroyFor = &metav1.Time{Time: now}, t.Spec.FileSystem.UID
		}, blank, v1alpha1.ReasonReleasing, "gives it back first"},
		"and is mounted here": {func(*v1alpha1.StorageTarget) {}, mounted, v1alpha1.ReasonMountFailed, "Unmount it on oss1 at once"},
		"and is deleted and mounted here": {func(t *v1alpha1.StorageTarget) {
			t.DeletionTimestamp = &metav1.Time{Time: now}
		}, mounted, v1alpha1.ReasonMountFailed, "Unmount it on oss1 at once"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			target := aTarget(ofPair(holds("oss2", 1, true), "oss2"))
			target.Status.Provisioned = finished.DeepCopy()
			c.change(target)
			d := decide(target, c.look)
			g.Expect(d.Action).To(Equal(plan.None))
			g.Expect(d.Provisioned).To(Equal(target.Status.Provisioned), "nothing is forgotten")
			g.Expect(d.Ready.Reason).To(Equal(c.reason))
			g.Expect(d.Ready.Message).To(ContainSubstring(c.says))
			if !target.DeletionTimestamp.IsZero() && c.reason == v1alpha1.ReasonReleasing {
				g.Expect(d.Released.Status).To(Equal(metav1.ConditionFalse), "its object stays")
			}
			g.Expect(d.Destroyed).To(BeNil())
		})
	}
}

func TestADiskIsReachedOnlyByWhatItIsKnownBy(t *testing.T) {
	target := aTarget(ofPair(nil, ""))
	for says, change := range map[string]func(disks []v1alpha1.BlockDevice, t *v1alpha1.StorageTarget) []v1alpha1.BlockDevice{
		"":                                 func(disks []v1alpha1.BlockDevice, _ *v1alpha1.StorageTarget) []v1alpha1.BlockDevice { return disks },
		"node oss2 does not show the disk": func([]v1alpha1.BlockDevice, *v1alpha1.StorageTarget) []v1alpha1.BlockDevice { return nil },
		"another disk: wrong serial": func(disks []v1alpha1.BlockDevice, _ *v1alpha1.StorageTarget) []v1alpha1.BlockDevice {
			disks[0].Serial = "S2"
			return disks
		},
		"another disk: wrong WWN": func(disks []v1alpha1.BlockDevice, _ *v1alpha1.StorageTarget) []v1alpha1.BlockDevice {
			disks[0].WWN = "0x6000"
			return disks
		},
		"another disk: shrunk disk": func(disks []v1alpha1.BlockDevice, _ *v1alpha1.StorageTarget) []v1alpha1.BlockDevice {
			disks[0].SizeBytes--
			return disks
		},
		"on node oss2, sdb could not be looked at completely": func(disks []v1alpha1.BlockDevice, _ *v1alpha1.StorageTarget) []v1alpha1.BlockDevice {
			disks[0].Unusable = []string{disks[0].KernelName + " could not be looked at completely: no answer within 30s"}
			return disks
		},
		"shows 2 disks with the WWN": func(disks []v1alpha1.BlockDevice, _ *v1alpha1.StorageTarget) []v1alpha1.BlockDevice {
			return append(disks, disks[0])
		},
		"was recorded without a WWN or a serial number": func(disks []v1alpha1.BlockDevice, t *v1alpha1.StorageTarget) []v1alpha1.BlockDevice {
			t.Spec.Device.Serial = ""
			return disks
		},
	} {
		of := target.DeepCopy()
		of.Status.Provisioned = nil
		disks := change([]v1alpha1.BlockDevice{blankDisk().BlockDevice}, of)
		why := plan.Unreached("oss2", map[string]v1alpha1.NodeInventoryStatus{"oss2": {BlockDevices: disks}}, of)
		if says == "" {
			NewWithT(t).Expect(why).To(BeEmpty())
			continue
		}
		NewWithT(t).Expect(why).To(ContainSubstring(says))
	}
	NewWithT(t).Expect(plan.Unreached("oss2", nil, target)).NotTo(BeEmpty(), "nothing is known of a node without an inventory")
}
