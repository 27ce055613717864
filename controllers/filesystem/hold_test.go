package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/internal/backend"
)

func TestWhichChangesOfChildrenDisturb(t *testing.T) {
	cases := map[string]struct {
		kind    string
		change  apply.Change
		message string
	}{
		"daemons that get another configuration wait": {"DaemonSet", apply.Changed, "the daemons of scratch-x change"},
		"daemons that are stopped wait":               {"DaemonSet", apply.Unwanted, "the daemons of scratch-x are stopped"},
		"daemons that are down are started at once":   {"DaemonSet", apply.Missing, ""},
		"a job waits": {"Job", apply.Missing, "job scratch-x is to run"},
		"a job that has done its work is removed at once":     {"Job", apply.Unwanted, ""},
		"the configuration of pods is written at once":        {"ConfigMap", apply.Changed, ""},
		"a secret is written at once":                         {"Secret", apply.Changed, ""},
		"objects that are no longer read are removed at once": {"ConfigMap", apply.Unwanted, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changes, which := disruptive([]apply.Difference{{Kind: c.kind, Name: "scratch-x", Change: c.change}})
			if c.message == "" {
				g.Expect(changes).To(BeEmpty())
				g.Expect(which).To(BeEmpty())
				return
			}
			g.Expect(changes).To(Equal([]string{c.message}))
			g.Expect(which).To(HaveLen(1))
		})
	}
}

func TestARunStopsForAMaintenanceADrainAndARecovery(t *testing.T) {
	emptied := v1alpha1.StorageTarget{}
	emptied.Spec.Remove = true
	empty := *emptied.DeepCopy()
	empty.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionTrue}}
	for name, c := range map[string]struct {
		change func(h *hold, fs *v1alpha1.FileSystem)
		own    []v1alpha1.StorageTarget
		reason string
	}{
		"not for an upgrade":             {func(*hold, *v1alpha1.FileSystem) {}, []v1alpha1.StorageTarget{{}}, v1alpha1.ReasonBenchmarkRunning},
		"not for a disk that is empty":   {func(*hold, *v1alpha1.FileSystem) {}, []v1alpha1.StorageTarget{empty}, v1alpha1.ReasonBenchmarkRunning},
		"for a maintenance":              {func(h *hold, _ *v1alpha1.FileSystem) { h.maintains = true }, nil, v1alpha1.ReasonBenchmarkStopping},
		"for a disk that is emptied":     {func(*hold, *v1alpha1.FileSystem) {}, []v1alpha1.StorageTarget{{}, emptied}, v1alpha1.ReasonBenchmarkStopping},
		"for a recovery of the metadata": {func(_ *hold, fs *v1alpha1.FileSystem) { fs.Status.Recovery = &v1alpha1.RecoveryStatus{} }, nil, v1alpha1.ReasonBenchmarkStopping},
	} {
		t.Run(name, func(t *testing.T) {
			g, fs := NewWithT(t), &v1alpha1.FileSystem{}
			h := &hold{by: "BenchmarkRun creates", waiting: []string{"node n1 is to be away for maintenance"}}
			c.change(h, fs)
			h.describe(fs, c.own)
			g.Expect(fs.Status.Conditions).To(HaveExactElements(And(HaveField("Type", v1alpha1.ConditionChangesHeld), HaveField("Reason", c.reason),
				HaveField("Message", And(HavePrefix("BenchmarkRun creates has the lease"), ContainSubstring("node n1"), ContainSubstring("suspend the run"))))))
		})
	}
}

func TestAChangeIsUnderWayUntilItsJobsAndMovesHaveEnded(t *testing.T) {
	cases := map[string]struct {
		jobs    []backend.Job
		targets []backend.TargetStatus
		want    bool
	}{
		"nothing":                            {},
		"a job that runs":                    {jobs: []backend.Job{{Name: "a", Succeeded: true}, {Name: "b"}}, want: true},
		"jobs that have ended":               {jobs: []backend.Job{{Succeeded: true}, {Failed: true}}},
		"a target whose data is moved":       {targets: []backend.TargetStatus{{Online: true}, {Removing: true}}, want: true},
		"a target whose data has been moved": {targets: []backend.TargetStatus{{Removing: true, Removable: true}}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(underWay(c.jobs, backend.Observation{Targets: c.targets})).To(Equal(c.want))
		})
	}
}

func TestWhichChangesOfDisksWait(t *testing.T) {
	used := v1alpha1.StorageTarget{
		ObjectMeta: metav1.ObjectMeta{Name: "used"}, Spec: v1alpha1.StorageTargetSpec{Node: "n1"},
		Status: v1alpha1.StorageTargetStatus{Provisioned: &v1alpha1.TargetProvisioned{UUID: "u"}},
	}
	blank := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: "blank"}, Spec: v1alpha1.StorageTargetSpec{Node: "n1"}}
	fresh := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: "fresh"}, Spec: v1alpha1.StorageTargetSpec{Node: "n1", Device: v1alpha1.DeviceIdentity{ID: "wwn-1"}}}
	refused := *used.DeepCopy()
	refused.Spec.Conflict = "wanted by another"
	there := map[string]*v1alpha1.StorageTarget{"used": &used, "blank": &blank}
	differs := func(name string) []apply.Difference { return []apply.Difference{{Kind: "StorageTarget", Name: name}} }
	cases := map[string]struct {
		wanted      v1alpha1.StorageTarget
		leaving     []*v1alpha1.StorageTarget
		differences []apply.Difference
		changes     []string
		held        []apply.Difference
	}{
		"a disk that is taken up waits":                     {wanted: fresh, differences: differs("fresh"), changes: []string{"disk wwn-1 of node n1 is taken up as fresh"}, held: differs("fresh")},
		"settings of a disk in use wait":                    {wanted: used, differences: differs("used"), changes: []string{"the settings of used on node n1 change"}, held: differs("used")},
		"what a disk is that nothing uses is said at once":  {wanted: blank, differences: differs("blank")},
		"a disk that is selected twice is reported at once": {wanted: refused, differences: differs("used")},
		"what stays as it is waits for nothing":             {wanted: used},
		"a disk that is released waits":                     {wanted: used, leaving: []*v1alpha1.StorageTarget{&blank}, changes: []string{"blank on node n1 is released"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			changes, held := diskChanges([]v1alpha1.StorageTarget{c.wanted}, there, c.leaving, c.differences)
			g.Expect(changes).To(Equal(c.changes))
			g.Expect(held).To(Equal(c.held))
		})
	}
}
