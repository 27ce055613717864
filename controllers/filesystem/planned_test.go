package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// restarting returns a pass over a filesystem with chunkservers on three nodes. The one on n1 is away, and the copies are not counted yet.
func restarting() (*pass, *clocktesting.FakeClock) {
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	p := &pass{
		Reconciler: &Reconciler{Order: clock}, fs: &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1"}},
		observation: backend.Observation{Pending: true},
	}
	p.in = backend.Input{FileSystem: p.fs, State: &backend.State{}}
	for _, node := range []string{"n1", "n2", "n3"} {
		p.in.Pods = append(p.in.Pods, backend.Pod{
			Name: types.NamespacedName{Name: "pod-" + node}, Component: "chunkserver", StoragePool: "ssd", Node: node, Ready: node != "n1"})
		p.observation.Servers = append(p.observation.Servers, backend.ServerStatus{
			Name: "chunkserver-ssd." + node, Role: v1alpha1.RoleStorage, Node: node, StoragePool: "ssd", Online: node != "n1"})
		p.observation.Targets = append(p.observation.Targets, backend.TargetStatus{Node: node, StoragePool: "ssd", Directory: "/data", Online: node != "n1"})
	}
	return p, clock
}

func TestAnAbsenceIsPlannedWhilePlannedStepsExplainAllOfIt(t *testing.T) {
	restart := func(p *pass) { p.plan(types.NamespacedName{Name: "pod-n1"}) }
	for name, c := range map[string]struct {
		change func(p *pass, clock *clocktesting.FakeClock)
		want   bool
	}{
		"the operator has restarted it": {func(p *pass, _ *clocktesting.FakeClock) { restart(p) }, true},
		"it came back, and its targets are not listed yet": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.observation.Servers[0].Online = true
		}, true},
		"nobody has": {func(*pass, *clocktesting.FakeClock) {}, false},
		"it was restarted a while ago": {func(p *pass, clock *clocktesting.FakeClock) {
			restart(p)
			clock.Step(plannedLimit + time.Second)
		}, false},
		"its node is in maintenance": {func(p *pass, _ *clocktesting.FakeClock) {
			p.fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n1"}}
		}, true},
		"the maintenance of its node has ended": {func(p *pass, _ *clocktesting.FakeClock) {
			p.fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n1", Ended: new(metav1.Now())}}
		}, false},
		"another server has failed meanwhile": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.observation.Servers[1].Online, p.observation.Targets[1].Online = false, false
		}, false},
		"a disk of another server has failed meanwhile": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.observation.Targets[1].Online = false
		}, false},
		"all is back": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.observation.Servers[0].Online, p.observation.Targets[0].Online = true, true
		}, false},
		"it is known whether programs go on": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.observation.Pending = false
		}, false},
		"it has been unknown for long": {func(p *pass, clock *clocktesting.FakeClock) {
			p.fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n1"}}
			p.isPlanned()
			clock.Step(plannedLimit + time.Second)
		}, false},
		"the one that is asked was restarted, and the others run": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.in.State, p.observation.Pending, p.observation.Unknown = nil, false, true
			for i := range p.observation.Servers {
				p.observation.Servers[i].Online, p.observation.Targets[i].Online = false, false
			}
		}, true},
		"the one that is asked was restarted, and another one does not run": {func(p *pass, _ *clocktesting.FakeClock) {
			restart(p)
			p.in.State, p.observation.Pending, p.observation.Unknown = nil, false, true
			for i := range p.observation.Servers {
				p.observation.Servers[i].Online, p.observation.Targets[i].Online = false, false
			}
			p.in.Pods[2].Ready = false
		}, false},
		"a node does not answer, and was not restarted": {func(p *pass, _ *clocktesting.FakeClock) {
			p.in.Pods[0].Ready, p.in.Unanswered = true, map[string]string{"n1": "nobody listens"}
			p.observation.Pending, p.observation.Unknown = false, true
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, clock := restarting()
			c.change(p, clock)
			NewWithT(t).Expect(p.isPlanned()).To(Equal(c.want))
		})
	}
}

func TestAfterAPlannedStepReadyStaysAsItWasUntilMoreIsKnown(t *testing.T) {
	const missing = "1 of 3 targets is not online"
	pending, unknown := backend.Observation{Pending: true}, backend.Observation{Unknown: true}
	failed, serves := backend.Observation{}, backend.Observation{Serves: true}
	for name, c := range map[string]struct {
		was         metav1.ConditionStatus
		observation backend.Observation
		planned     bool
		want        metav1.ConditionStatus
	}{
		"copies are not counted after a restart":                   {metav1.ConditionTrue, pending, true, metav1.ConditionTrue},
		"copies are not counted after a failure":                   {metav1.ConditionTrue, pending, false, metav1.ConditionFalse},
		"it was not Ready before the restart":                      {metav1.ConditionFalse, pending, true, metav1.ConditionFalse},
		"it is new":                                                {"", pending, true, metav1.ConditionFalse},
		"a part can't be asked after a restart":                    {metav1.ConditionTrue, unknown, true, metav1.ConditionTrue},
		"a part can't be asked after a restart that programs felt": {metav1.ConditionFalse, unknown, true, metav1.ConditionFalse},
		"a part can't be asked":                                    {metav1.ConditionTrue, unknown, false, metav1.ConditionUnknown},
		"a restart has shown that programs wait":                   {metav1.ConditionTrue, failed, true, metav1.ConditionFalse},
		"programs go on":                                           {metav1.ConditionFalse, serves, false, metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{}
			if c.was != "" {
				fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: c.was, Reason: v1alpha1.ReasonHealthy}}
			}
			c.observation.Problems = []backend.Problem{{Reason: v1alpha1.ReasonTargetsMissing, Message: missing}}
			describe(fs, c.observation, nil, nil, c.planned, false, time.Now())
			ready := fs.Status.Conditions[0]
			g.Expect(ready.Status).To(Equal(c.want))
			g.Expect(ready.Message).To(ContainSubstring(missing))
		})
	}
}

func TestDataThatWasMissingIsMissedUntilItsCopiesAreCounted(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{}
	uncounted := backend.Observation{Pending: true, Problems: []backend.Problem{{Reason: v1alpha1.ReasonDataUnknown, Message: "not counted yet"}}}
	describe(fs, uncounted, nil, nil, false, false, time.Now())
	g.Expect(fs.Status.Conditions[0].Status).To(Equal(metav1.ConditionTrue), "all targets are online")
	fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonChunksEndangered}}
	describe(fs, uncounted, nil, nil, false, false, time.Now())
	g.Expect(fs.Status.Conditions[0]).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonChunksEndangered),
		HaveField("Message", "data was missing when its copies were last counted; not counted yet")))
}
