package plan_test

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestAPlanThatIsLongerThanTheAPIHoldsIsRefused(t *testing.T) {
	const tooMuch = "the devices hold more than a plan can show"
	partitions := func(n int) plan.Look {
		return look(func(f *plan.Facts) {
			for i := range n {
				f.Partitions = append(f.Partitions, fmt.Sprintf("sdb%d", i))
			}
		})
	}
	finds := func(n int) plan.Look {
		return look(func(f *plan.Facts) {
			for range n {
				holding("ext4", "u", "")(f)
			}
		})
	}
	labelOfLength := func(n int) plan.Look {
		without := plan.Destroys(aTarget(), look(holding("ext4", "u", "x")))[0]
		return look(holding("ext4", "u", strings.Repeat("x", n+1-len(without))))
	}
	for name, c := range map[string]struct {
		look    plan.Look
		refused bool
	}{
		"32 steps":                       {partitions(27), false},
		"33 steps":                       {partitions(28), true},
		"128 finds":                      {finds(128), false},
		"129 finds":                      {finds(129), true},
		"a find of 512 characters":       {labelOfLength(512), false},
		"a find of 513 characters":       {labelOfLength(513), true},
		"129 finds and not one too long": {finds(200), true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := plan.Make(aTarget(), c.look, uuidOne)
			if c.refused {
				g.Expect(p.Refusals).To(ConsistOf(ContainSubstring(tooMuch)))
				g.Expect(p.Steps).To(BeEmpty())
			} else {
				g.Expect(p.Refusals).To(BeEmpty())
			}
			g.Expect(len(p.Destroys)).To(BeNumerically("<=", 128))
			g.Expect(p.Destroys).To(HaveEach(WithTransform(func(s string) int { return len(s) }, BeNumerically("<=", 512))))
		})
	}
}

func TestAPlanShowsThirtyTwoRefusalsAndTheNumberOfTheOthers(t *testing.T) {
	refusals := func(n int) []string {
		refused := map[string]string{}
		for i := range n {
			refused[fmt.Sprintf("option%03d", i)] = ""
		}
		return plan.Make(aTarget(), plan.Look{Device: blankDisk(), Kernel: plan.Kernel{RefusedOptions: refused}}, uuidOne).Refusals
	}
	g := NewWithT(t)
	g.Expect(refusals(32)).To(And(HaveLen(32), HaveEach(ContainSubstring("refuses"))))
	g.Expect(refusals(34)).To(And(HaveLen(32), ContainElement("and 3 more reasons")))
}

func TestAnApprovalShowsWhatIsLost(t *testing.T) {
	g := NewWithT(t)
	l := plan.Look{
		Device: blankDisk(holding("xfs", uuidTwo, plan.Label(aTarget()))),
		Log: blankLog(holding("xfs_external_log", uuidTwo, ""), func(f *plan.Facts) {
			f.LogOf = &v1alpha1.Signature{Device: "sdz", Label: "data"}
		}),
	}
	g.Expect(plan.Destroys(aTarget(withLog), l)).To(Equal([]string{
		`sdb: xfs at 0x0, label "` + plan.Label(aTarget()) + `", uuid ` + uuidTwo + ", the label of this very target: data of an earlier FileSystem of this name",
		"log device: nvme0n1p1: xfs_external_log at 0x0, uuid " + uuidTwo + `, the log of the XFS with that uuid, which is lost without it (on sdz, label "data")`,
	}))
	blank := decide(aTarget(policy(v1alpha1.FormatApproved)), look())
	g.Expect(blank.Ready.Message).To(ContainSubstring("It destroys nothing: the device is blank"))
}

func TestALogOfTheLeastSizeIsLongEnough(t *testing.T) {
	const least = 64 << 20
	target := aTarget(withLog, func(t *v1alpha1.StorageTarget) { t.Spec.LogDevice.SizeBytes = least })
	log := blankLog(func(f *plan.Facts) { f.SizeBytes = least })
	NewWithT(t).Expect(plan.Make(target, plan.Look{Device: blankDisk(), Log: log}, uuidOne).Refusals).To(BeEmpty())
}

func TestAProblemNamesSomeDisksAndTheNumberOfTheOthers(t *testing.T) {
	says := func(spec v1alpha1.TargetsSpec, disks int) string {
		in := anInput(aFileSystem("scratch", spec), disks, "oss1")
		for i := range disks {
			change(in, "oss1", i, func(b *v1alpha1.BlockDevice) { b.Unusable = []string{"it holds ext4"} })
		}
		return strings.Join(messages(plan.Select(in).Problems), "\n")
	}
	missing := naming(v1alpha1.DeviceReference{Node: "oss1", ID: "wwn-none"})
	g := NewWithT(t)
	g.Expect(says(selecting(1), 10)).To(HaveSuffix("sdaj (wwn-oss1-0009): it holds ext4"))
	g.Expect(says(selecting(1), 12)).To(HaveSuffix("sdaj (wwn-oss1-0009): it holds ext4; and 2 more"))
	g.Expect(says(missing, 24)).To(HaveSuffix("wwn-oss1-0023"))
	g.Expect(says(missing, 26)).To(HaveSuffix("wwn-oss1-0023, and 2 more"))
}
