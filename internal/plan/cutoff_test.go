package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// machine is a node with one target: its disks, what is mounted, and the target's status in the API. The agent on it can be
// killed before and after every step, and within one.
type machine struct {
	target  *v1alpha1.StorageTarget
	disks   map[string]*plan.Facts
	marker  *plan.Marker // on the disk
	mounted bool
	// fuel is how many steps are taken before the agent is killed.
	fuel int
	// within is true when a step that the agent is killed in has had its effect, as far as one can be half done.
	within bool
	done   []plan.StepKind
}

// killed ends the agent.
type killed struct{}

func (m *machine) look() plan.Look {
	l := plan.Look{Device: *m.disks["sdb"]}
	if m.target.Spec.LogDevice != nil {
		log := *m.disks["nvme0n1p1"]
		l.Log = &log
	}
	uuid := ""
	for _, s := range l.Device.Signatures {
		if s.Type == "xfs" {
			uuid = s.UUID
		}
	}
	if m.mounted {
		l.Mount = plan.Mounted{Mounted: true, UUID: uuid, KernelName: "sdb", Marker: m.marker}
		l.Device.Mounts, l.Device.Busy = []string{mountpoint(m.target)}, "busy"
	} else {
		l.Device.Marker = m.marker
	}
	return l
}

// step takes one step, or is killed instead of it, or within it.
func (m *machine) step(kind plan.StepKind, half, whole func()) {
	if m.fuel == 0 {
		if m.within {
			half()
		}
		panic(killed{})
	}
	m.fuel--
	whole()
	m.done = append(m.done, kind)
}

// agent decides and acts until nothing is left to do, or it is killed; it says whether it was.
func (m *machine) agent(t *testing.T) (last plan.Decision, wasKilled bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			wasKilled = true
		}
	}()
	nothing := func() {}
	for range 20 {
		d := plan.Decide(m.target, m.look(), now, fixedUUID)
		write := func() { m.target.Status.Plan, m.target.Status.Provisioned = d.Plan, d.Provisioned }
		switch d.Action {
		case plan.None:
			write()
			return d, false
		case plan.Record:
			m.step(plan.StepRecord, nothing, write)
		case plan.Adopt:
			m.step(plan.StepFinish, nothing, write)
		case plan.Mark:
			m.step(plan.StepMark, nothing, m.mark)
		case plan.Format, plan.Mount:
			if p := m.target.Status.Provisioned; p == nil || d.Action == plan.Format && p.Finished != nil {
				t.Fatalf("%s with the record %+v", d.Action, p)
			}
			for _, s := range d.Steps {
				m.carryOut(t, s)
			}
		default:
			t.Fatalf("action %s", d.Action)
		}
	}
	t.Fatal("the agent does not come to an end")
	return plan.Decision{}, false
}

func (m *machine) mark() { m.marker = markerOf(m.target, m.target.Status.Provisioned.UUID, uidNow) }

// carryOut does what a command does to the disks.
func (m *machine) carryOut(t *testing.T, s plan.Step) {
	nothing := func() {}
	switch s.Kind {
	case plan.StepWipe:
		name := strings.TrimPrefix(s.Argv[len(s.Argv)-1], "/dev/")
		m.step(s.Kind, nothing, func() {
			for _, f := range m.disks {
				before := len(f.Signatures)
				f.Signatures = slices.DeleteFunc(slices.Clone(f.Signatures), func(s v1alpha1.Signature) bool { return s.Device == name })
				if f.KernelName == name {
					f.Partitions = nil
				}
				if before > 0 && len(f.Signatures) == 0 {
					f.Unknown = "0x400" // wipefs takes the magics only
				}
			}
		})
	case plan.StepZero:
		m.step(s.Kind, nothing, func() { m.disks[strings.TrimPrefix(s.Argv[len(s.Argv)-1], "/dev/")].Unknown = "" })
	case plan.StepMakeFileSystem:
		if f := m.disks["sdb"]; f.Unknown != "" {
			t.Fatalf("mkfs on a disk with data at %s", f.Unknown)
		}
		if m.marker != nil || len(m.disks["sdb"].Signatures) > 0 {
			t.Fatalf("mkfs on a disk that holds %+v and the marker %+v", m.disks["sdb"].Signatures, m.marker)
		}
		uuid := m.target.Status.Provisioned.UUID
		log := func() {
			if m.target.Spec.LogDevice != nil {
				holding("xfs_external_log", uuid, "")(m.disks["nvme0n1p1"])
			}
		}
		m.step(s.Kind, log, func() { log(); holding("xfs", uuid, plan.Label(m.target))(m.disks["sdb"]) })
	case plan.StepMount:
		m.step(s.Kind, nothing, func() { m.mounted = true })
	case plan.StepMark:
		m.step(s.Kind, nothing, m.mark)
	default:
		t.Fatalf("step %s", s.Kind)
	}
}

func TestAnAgentThatIsKilledAnywhereComesToTheSameEnd(t *testing.T) {
	worlds := map[string]func() *machine{
		"a blank disk": func() *machine {
			f := blankDisk()
			return &machine{target: aTarget(), disks: map[string]*plan.Facts{"sdb": &f}}
		},
		"a blank disk and a blank log": func() *machine {
			f := blankDisk()
			return &machine{target: aTarget(withLog), disks: map[string]*plan.Facts{"sdb": &f, "nvme0n1p1": blankLog()}}
		},
		"a disk with partitions and a log with an old one, approved": func() *machine {
			f := blankDisk(holding("gpt", "g", ""), func(f *plan.Facts) {
				f.Partitions = []string{"sdb1", "sdb2"}
				f.Signatures = append(f.Signatures, v1alpha1.Signature{Device: "sdb1", Type: "ext4", UUID: "e"}, v1alpha1.Signature{Device: "sdb2", Type: "swap", UUID: "s"})
			})
			m := &machine{target: aTarget(withLog, policy(v1alpha1.FormatApproved)), disks: map[string]*plan.Facts{"sdb": &f, "nvme0n1p1": blankLog(holding("xfs_external_log", "l", ""))}}
			d := plan.Decide(m.target, m.look(), now, fixedUUID)
			m.target.Status.Plan, m.target.Spec.ApprovedPlan = d.Plan, d.Plan.Hash
			return m
		},
	}
	for name, world := range worlds {
		t.Run(name, func(t *testing.T) {
			whole := world()
			whole.fuel = 1000
			last, _ := whole.agent(t)
			NewWithT(t).Expect(last.Ready.Reason).To(Equal(v1alpha1.ReasonProven), last.Ready.Message)
			kinds := slices.Clone(whole.done)
			if whole.target.Spec.FormatPolicy == v1alpha1.FormatApproved {
				NewWithT(t).Expect(kinds).To(ContainElements(plan.StepRecord, plan.StepWipe, plan.StepZero, plan.StepMakeFileSystem,
					plan.StepMount, plan.StepMark, plan.StepFinish), "every kind of step was there to be killed at")
			}
			asked, all, hash := 0, 0, whole.target.Status.Provisioned.PlanHash
			for first := range whole.done {
				for second := -1; second <= len(whole.done); second++ {
					for variant := range 4 {
						all++
						m := world()
						m.within = variant&1 != 0
						kill := fmt.Sprintf("killed after %d steps, then after %d more, variant %d", first, second, variant)
						for _, fuel := range []int{first, second} {
							if fuel < 0 {
								continue
							}
							m.fuel = fuel
							if _, was := m.agent(t); was && variant&2 != 0 {
								m.mounted = false // the node restarts
							}
						}
						m.fuel = 1000
						last, _ := m.agent(t)
						g := NewWithT(t)
						if last.Ready.Reason != v1alpha1.ReasonProven {
							// The disk has content that is not proven to be the agent's own, so a person decides again.
							g.Expect(last.Plan.Destroys).NotTo(BeEmpty(), kill+": "+last.Ready.Message)
							g.Expect(last.Ready.Reason).To(BeElementOf(v1alpha1.ReasonDeviceRefused, v1alpha1.ReasonApprovalRefused), kill)
							m.target.Spec.FormatPolicy, m.target.Spec.ApprovedPlan = v1alpha1.FormatApproved, last.Plan.Hash
							last, _ = m.agent(t)
							asked++
							whole.target.Status.Provisioned.PlanHash = m.target.Status.Provisioned.PlanHash
						} else {
							whole.target.Status.Provisioned.PlanHash = hash
						}
						g.Expect(last.Ready.Reason).To(Equal(v1alpha1.ReasonProven), kill+": "+last.Ready.Message)
						g.Expect(m.disks).To(Equal(whole.disks), kill)
						g.Expect(m.target.Status.Provisioned).To(Equal(whole.target.Status.Provisioned), kill)
						g.Expect(m.marker).To(Equal(whole.marker), kill)
					}
				}
			}
			t.Logf("of %d agents that were killed, %d asked for a new approval", all, asked)
			NewWithT(t).Expect(asked).To(BeNumerically("<", all/2))
		})
	}
}
