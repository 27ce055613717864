package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// ofNode is the FileSystemNode of scratch on the node n1, with a condition in the operator's words.
func ofNode(kind, reason, message string) *v1alpha1.FileSystemNode {
	n := &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch-n1-0f1e", Namespace: "storage", Annotations: map[string]string{"of": "somebody"}},
		Spec:       v1alpha1.FileSystemNodeSpec{Node: "n1", FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: "u"}},
		Status: v1alpha1.FileSystemNodeStatus{
			Members: []v1alpha1.MemberStatus{{Name: "storage-0", State: v1alpha1.StateOffline}},
			Summary: v1alpha1.FileSystemNodeSummary{Servers: "0/1", Targets: "0/2"},
		},
	}
	if kind != "" {
		n.Status.Conditions = []metav1.Condition{{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}}
	}
	return n
}

// scratch is a FileSystem, and a second one that has servers on a node of the same name.
func scratch(n *v1alpha1.FileSystemNode) []client.Object {
	other := ofNode("", "", "")
	other.Name, other.Spec.FileSystem.Name = "archive-n1", "archive"
	return []client.Object{other, n, &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"}}}
}

// annotations returns the annotations of an object after a call.
func annotations(t *testing.T, c client.Client, object client.Object) map[string]string {
	t.Helper()
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKeyFromObject(object), object)).To(Succeed())
	return object.GetAnnotations()
}

const (
	lossMessage = "node n1 is not decommissioned yet, because this would be lost: 12 chunks. To accept exactly this: " +
		"kubectl -n storage annotate --overwrite filesystemnode scratch-n1-0f1e parallelfs.dev/accept-loss=1a2b3c4d"
	waitsMessage = "the node is cordoned, and its guard keeps it from being drained; it may be away when a person says so: it has the only copy. " +
		"To release it anyway, until its next restart: kubectl -n storage annotate --overwrite filesystemnode scratch-n1-0f1e parallelfs.dev/allow-maintenance=5d41402a"
)

func TestAPersonsRequestAboutANodeIsTheAnnotationThatTheOperatorReads(t *testing.T) {
	given := ofNode("", "", "")
	given.Spec.GivenUp = &v1alpha1.NodeGivenUp{Time: metav1.NewTime(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), Lost: "7 chunks"}
	given.Annotations[v1alpha1.AnnotationGiveUp], given.Annotations[v1alpha1.AnnotationAcceptLoss] = "n1", "1a2b3c4d"
	for name, test := range map[string]struct {
		node *v1alpha1.FileSystemNode
		line string
		// sets has the annotations without the foreign one, and says is the output on stderr before.
		sets map[string]string
		says string
	}{
		"that it never comes back": {
			ofNode("", "", ""), "node give-up scratch n1", map[string]string{"parallelfs.dev/give-up": "n1"}, "storage-0 (Offline); 0/1 servers and 0/2 targets are online",
		},
		"that what is lost is accepted": {
			ofNode("GivenUp", "LossNotAccepted", lossMessage), "node accept-loss scratch n1 --accept 1a2b3c4d",
			map[string]string{"parallelfs.dev/accept-loss": "1a2b3c4d"}, "this would be lost: 12 chunks",
		},
		"that it may go although programs wait": {
			ofNode("Maintenance", "MaintenanceNotAllowed", waitsMessage), "node allow-maintenance scratch n1",
			map[string]string{"parallelfs.dev/allow-maintenance": "5d41402a"}, "it has the only copy",
		},
		"that it came back after all": {given, "node take-back scratch n1", map[string]string{}, "accepted as lost: 7 chunks"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, pfs := cluster(t, scratch(test.node.DeepCopy()))
			before := annotations(t, c, test.node.DeepCopy())
			dry := pfs(append(strings.Fields(test.line), "--dry-run")...)
			g.Expect(dry.code).To(Equal(exitGood), dry.stderr)
			g.Expect(dry.stdout).To(HavePrefix(`{"metadata":{"annotations":{"parallelfs.dev/`))
			g.Expect(dry.stderr).To(And(ContainSubstring(test.says), ContainSubstring("kubectl -n storage annotate --overwrite filesystemnode scratch-n1-0f1e parallelfs.dev/")))
			g.Expect(annotations(t, c, test.node.DeepCopy())).To(Equal(before))

			got := pfs(strings.Fields(test.line)...)
			g.Expect(got.code).To(Equal(exitGood), got.stderr)
			g.Expect(got.stderr).To(ContainSubstring(test.says))
			g.Expect(got.stdout).To(HavePrefix("filesystemnode/scratch-n1-0f1e annotated: parallelfs.dev/"))
			test.sets["of"] = "somebody"
			g.Expect(annotations(t, c, test.node.DeepCopy())).To(Equal(test.sets))
		})
	}
}

func TestACommandIsRefusedIfTheNodeDoesNotWaitForIt(t *testing.T) {
	given := ofNode("GivenUp", "NodeGivenUp", "the filesystem goes on")
	given.Spec.GivenUp = &v1alpha1.NodeGivenUp{Time: metav1.Now()}
	for name, test := range map[string]struct {
		node *v1alpha1.FileSystemNode
		line string
		code int
		says string
	}{
		"another loss than what is lost now": {ofNode("GivenUp", "LossNotAccepted", lossMessage),
			"node accept-loss scratch n1 --accept 99999999", exitFailed, "its hash is 1a2b3c4d. Nothing was changed"},
		"an unknown loss": {ofNode("", "", ""), "node accept-loss scratch n1 --accept 1a2b3c4d", exitFailed,
			"kubectl pfs node give-up scratch n1"},
		"a loss that is being looked for": {ofNode("GivenUp", "GiveUpWaits", "the master counts"), "node accept-loss scratch n1",
			exitFailed, "(GiveUpWaits): the master counts"},
		"a loss of a decommissioned node":     {given, "node accept-loss scratch n1 --accept 1a2b3c4d", exitFailed, "was decommissioned at"},
		"a decommissioned node":               {given, "node give-up scratch n1", exitGood, ": the filesystem goes on without it"},
		"a maintenance that is not requested": {ofNode("", "", ""), "node allow-maintenance scratch n1", exitFailed, "kubectl cordon n1"},
		"a maintenance that is under way": {ofNode("Maintenance", "InMaintenance", "since noon"), "node allow-maintenance scratch n1",
			exitGood, "It is released already: since noon"},
		"an unannounced reboot": {ofNode("Maintenance", "RebootedUnasked", "started anew"), "node allow-maintenance scratch n1",
			exitFailed, "waits for no decision of a person"},
		"a node that stays": {ofNode("", "", ""), "node take-back scratch n1", exitGood, "Nobody has said"},
		"a node without servers": {ofNode("", "", ""), "node give-up scratch n2", exitFailed,
			`no servers on a node "n2"; it has some on n1`},
		"a FileSystem that is not there": {ofNode("", "", ""), "node give-up nothing n1", exitFailed, "there is no FileSystem nothing in the namespace storage"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			c, pfs := cluster(t, scratch(test.node.DeepCopy()))
			got := pfs(strings.Fields(test.line)...)
			g.Expect(got.code).To(Equal(test.code))
			g.Expect(got.stderr).To(ContainSubstring(test.says))
			g.Expect(annotations(t, c, test.node.DeepCopy())).To(Equal(map[string]string{"of": "somebody"}))
		})
	}
}

func TestALossIsShownWithItsConfirmationBeforeItIsAccepted(t *testing.T) {
	g := NewWithT(t)
	n := ofNode("GivenUp", "LossNotAccepted", lossMessage)
	c, pfs := cluster(t, scratch(n))
	got := pfs("node", "accept-loss", "scratch", "n1")
	g.Expect(got.code).To(Equal(exitGood))
	g.Expect(got.stdout).To(Equal("node n1 is not decommissioned yet, because this would be lost: 12 chunks.\n" +
		"To accept exactly this: kubectl pfs -n storage node accept-loss scratch n1 --accept 1a2b3c4d\n"))
	g.Expect(annotations(t, c, n.DeepCopy())).To(Equal(map[string]string{"of": "somebody"}))
}

func TestLostMetadataIsPlannedShownAndApproved(t *testing.T) {
	g := NewWithT(t)
	at := metav1.NewTime(time.Date(2026, 11, 23, 12, 4, 31, 0, time.UTC))
	fs := &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"},
		Status: v1alpha1.FileSystemStatus{Conditions: []metav1.Condition{
			{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Unreachable", Message: "nobody answers"},
		}},
	}
	c, pfs := cluster(t, []client.Object{fs})
	good := func(got called) called {
		t.Helper()
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		return got
	}
	g.Expect(good(pfs("recover", "scratch")).stdout).To(ContainSubstring("Nobody has asked for a recovery. Ready of the FileSystem: Unreachable: nobody answers"))
	early := pfs("recover", "scratch", "--approve", "5d0c91e2")
	g.Expect(early.code).To(Equal(exitFailed))
	g.Expect(early.stderr).To(ContainSubstring("there is no plan to approve"))
	good(pfs("recover", "scratch", "--plan", "--dry-run"))
	g.Expect(annotations(t, c, fs.DeepCopy())).To(BeEmpty())

	good(pfs("recover", "scratch", "--plan"))
	g.Expect(annotations(t, c, fs.DeepCopy())).To(Equal(map[string]string{"parallelfs.dev/recover-metadata": "plan"}))
	planned := fs.DeepCopy()
	annotations(t, c, planned)
	planned.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRecovering, Status: metav1.ConditionFalse,
		Reason: "ApprovalNeeded", Message: "made from follower-n2"}}
	planned.Status.Recovery = &v1alpha1.RecoveryStatus{Asked: at, Node: "n2", Directory: "/d", From: "follower-n2", PlanHash: "5d0c91e2",
		Candidates: []v1alpha1.RecoveryCandidate{
			{Name: "follower-n2", Kind: v1alpha1.RecoveryFollower, Version: 48214102, Time: &at}, {Name: "server-n1", Kind: v1alpha1.RecoveryServer, Message: "its node is not Ready"},
			{Name: "backup-1", Kind: v1alpha1.RecoveryBackup, Time: &at, Lacks: "target 7"},
		}}
	g.Expect(c.Update(t.Context(), planned)).To(Succeed())
	g.Expect(good(pfs("recover", "scratch")).stdout).To(And(ContainSubstring("ApprovalNeeded: made from follower-n2"),
		MatchRegexp(`follower-n2 +48214102 +2026-11-23T12:04:31Z +yes`), MatchRegexp(`server-n1 .*its node is not Ready`),
		MatchRegexp(`backup-1 +2026-11-23T12:04:31Z +target 7`),
		ContainSubstring("kubectl pfs -n storage recover scratch --approve 5d0c91e2"), Not(ContainSubstring("HAS"))))
	planned.Status.Recovery.Candidates[2].Has = "4 logs with 40 records"
	g.Expect(c.Update(t.Context(), planned)).To(Succeed())
	g.Expect(good(pfs("recover", "scratch")).stdout).To(And(MatchRegexp(`CANDIDATE .*USED +HAS +LACKS`),
		MatchRegexp(`backup-1 +2026-11-23T12:04:31Z +4 logs with 40 records +target 7`)))

	wrong := pfs("recover", "scratch", "--approve", "11111111")
	g.Expect(wrong.code).To(Equal(exitFailed))
	g.Expect(wrong.stderr).To(ContainSubstring(`"11111111" is not the hash of the plan, which is 5d0c91e2 now`))
	g.Expect(annotations(t, c, fs.DeepCopy())).To(HaveKeyWithValue("parallelfs.dev/recover-metadata", "plan"))
	good(pfs("recover", "scratch", "--from", "backup-1"))
	g.Expect(annotations(t, c, fs.DeepCopy())).To(Equal(map[string]string{"parallelfs.dev/recover-metadata": "plan",
		"parallelfs.dev/recover-from": "backup-1"}))
	g.Expect(good(pfs("recover", "scratch", "--approve", "5d0c91e2")).stderr).To(ContainSubstring("made from follower-n2"))
	g.Expect(annotations(t, c, fs.DeepCopy())).To(HaveKeyWithValue("parallelfs.dev/recover-metadata", "5d0c91e2"))
	good(pfs("recover", "scratch", "--withdraw"))
	g.Expect(annotations(t, c, fs.DeepCopy())).To(BeEmpty())
}
