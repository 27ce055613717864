package filesystemnode

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

func TestANodeIsReadyWhenAllOfItsServersAndTargetsAreOnline(t *testing.T) {
	up := v1alpha1.MemberStatus{Name: "server-ssd", State: v1alpha1.StateOnline}
	down := v1alpha1.MemberStatus{Name: "server-hdd", State: v1alpha1.StateOffline, Message: "it is being stopped"}
	for name, c := range map[string]struct {
		seen   views.Node
		status metav1.ConditionStatus
		reason string
		says   string
		counts v1alpha1.FileSystemNodeSummary
	}{
		"all of them do": {
			views.Node{Members: []v1alpha1.MemberStatus{up}, Wanted: 24, Online: 24}, metav1.ConditionTrue, v1alpha1.ReasonHealthy,
			"1/1 servers and 24/24 targets are online", v1alpha1.FileSystemNodeSummary{Servers: "1/1", Targets: "24/24"},
		},
		"a server does not": {
			views.Node{Members: []v1alpha1.MemberStatus{down, up}, Wanted: 24, Online: 12}, metav1.ConditionFalse, v1alpha1.ReasonServersMissing,
			"servers are not online: server-hdd (it is being stopped)", v1alpha1.FileSystemNodeSummary{Servers: "1/2", Targets: "12/24"},
		},
		"nobody can be asked": {
			views.Node{Members: []v1alpha1.MemberStatus{down, up}, Wanted: 24, Online: 12, Silent: true}, metav1.ConditionUnknown,
			v1alpha1.ReasonProbeUnreachable, "the state of its servers is unknown", v1alpha1.FileSystemNodeSummary{Servers: "1/2", Targets: "12/24"},
		},
		"nobody can be asked, and a pod shows why it does not run": {
			views.Node{Members: []v1alpha1.MemberStatus{down, up}, Wanted: 24, Online: 12, Silent: true, Troubled: true}, metav1.ConditionFalse,
			v1alpha1.ReasonServersMissing, "servers are not online", v1alpha1.FileSystemNodeSummary{Servers: "1/2", Targets: "12/24"},
		},
		"a target does not": {
			views.Node{Members: []v1alpha1.MemberStatus{up}, Wanted: 24, Online: 23}, metav1.ConditionFalse, v1alpha1.ReasonTargetsMissing,
			"23/24 targets are online; the StorageTargets of this node show", v1alpha1.FileSystemNodeSummary{Servers: "1/1", Targets: "23/24"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			node := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
			node.Status.Agent = &v1alpha1.NodeAgentStatus{ObservedGeneration: 7}
			got := describe(node, c.seen)
			g.Expect(got.Conditions).To(HaveExactElements(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", c.status),
				HaveField("Reason", c.reason), HaveField("Message", HavePrefix(c.says)), HaveField("ObservedGeneration", int64(7)))))
			g.Expect(got.Members).To(Equal(c.seen.Members))
			g.Expect(got.Summary).To(Equal(c.counts))
			g.Expect(got.Agent).To(Equal(node.Status.Agent), "what the agent wrote stays")
			node.Status = got
			g.Expect(describe(node, c.seen)).To(Equal(got), "and nothing is written twice")
		})
	}
}

func TestANodeWithStartingServersHasOneMessageUntilTheyAreOnline(t *testing.T) {
	made := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	down := []v1alpha1.MemberStatus{{Name: "server-ssd", State: v1alpha1.StateOffline, Message: "there is no pod of it on the node"}}
	up := []v1alpha1.MemberStatus{{Name: "server-ssd", State: v1alpha1.StateOnline}}
	said := func(reason string) v1alpha1.FileSystemNodeStatus {
		return v1alpha1.FileSystemNodeStatus{Conditions: []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason}}}
	}
	for name, c := range map[string]struct {
		status v1alpha1.FileSystemNodeStatus
		seen   views.Node
		age    time.Duration
		left   time.Duration
	}{
		"while it was just made":                       {seen: views.Node{Members: down}, age: time.Minute, left: 9 * time.Minute},
		"while it is already reported":                 {status: said(v1alpha1.ReasonStarting), seen: views.Node{Members: down}, left: 10 * time.Minute},
		"while disks are missing":                      {seen: views.Node{Members: up, Wanted: 24, Online: 23}, left: 10 * time.Minute},
		"not when all is online":                       {status: said(v1alpha1.ReasonStarting), seen: views.Node{Members: up, Wanted: 24, Online: 24}},
		"not when something keeps it from that":        {status: said(v1alpha1.ReasonStarting), seen: views.Node{Members: down, Troubled: true}},
		"not when it was online before":                {status: said(v1alpha1.ReasonHealthy), seen: views.Node{Members: down}},
		"not when more was said before, such as why":   {status: said(v1alpha1.ReasonServersMissing), seen: views.Node{Members: down}},
		"not when it takes longer than it should take": {status: said(v1alpha1.ReasonStarting), seen: views.Node{Members: down}, age: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			node := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(made)}, Status: c.status}
			NewWithT(t).Expect(starting(node, c.seen, made.Add(c.age))).To(Equal(c.left))
		})
	}
}

func TestADecommissionedNodeIsNotReadyAndReportsItsState(t *testing.T) {
	g := NewWithT(t)
	node := &v1alpha1.FileSystemNode{}
	waits := backend.Problem{Reason: v1alpha1.ReasonGiveUpWaits, Message: "not yet"}
	up := views.Node{Members: []v1alpha1.MemberStatus{{Name: "server-ssd", State: v1alpha1.StateOnline}}, GivingUp: &waits}
	node.Status = describe(node, up)
	g.Expect(node.Status.Conditions).To(ConsistOf(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionTrue)),
		And(HaveField("Type", v1alpha1.ConditionGivenUp), HaveField("Status", metav1.ConditionFalse), HaveField("Message", "not yet"))))
	gone := backend.Problem{Reason: v1alpha1.ReasonNodeGivenUp, Message: "it goes on without"}
	node.Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	node.Status = describe(node, views.Node{GivingUp: &gone})
	g.Expect(node.Status.Conditions).To(HaveExactElements(
		And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonNodeGivenUp)),
		And(HaveField("Type", v1alpha1.ConditionGivenUp), HaveField("Status", metav1.ConditionTrue), HaveField("Message", "it goes on without"))))
	g.Expect(node.Status.Summary).To(Equal(v1alpha1.FileSystemNodeSummary{Servers: "0/0", Targets: "0/0"}))
	node.Spec.GivenUp = nil
	g.Expect(describe(node, views.Node{}).Conditions).To(HaveLen(1), "nobody says so any more")
}

func TestANewNodeShowsAtOnceThatItsServersAreStarting(t *testing.T) {
	g := NewWithT(t)
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	node := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	status := v1alpha1.FileSystemNodeStatus{}
	sayStarting(node, &status, now)
	g.Expect(status.Conditions).To(HaveExactElements(And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonStarting), HaveField("LastTransitionTime.Time", BeTemporally("==", now)))))
	sayStarting(node, &status, now.Add(time.Hour))
	g.Expect(status.Conditions[0].LastTransitionTime.Time).To(BeTemporally("==", now), "once")
	status = describe(&v1alpha1.FileSystemNode{Status: status}, views.Node{Members: []v1alpha1.MemberStatus{{Name: "server-ssd", State: v1alpha1.StateOnline}}})
	sayStarting(node, &status, now)
	g.Expect(status.Conditions).To(HaveExactElements(HaveField("Reason", v1alpha1.ReasonHealthy)), "it gives way to what was seen")
}
