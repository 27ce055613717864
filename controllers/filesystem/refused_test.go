package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/refusals"
	"parallelfs.dev/operator/internal/backend"
)

// refusing returns a FileSystem in a namespace in which Pod Security forbids its pods, and the reader of its events.
func refusing(t *testing.T) (*pass, *clocktesting.FakePassiveClock) {
	t.Helper()
	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "fs"}}
	owned := func(name, component string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "storage", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(made),
			Labels:          map[string]string{v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelComponent: component},
			OwnerReferences: []metav1.OwnerReference{{UID: "fs", Kind: "FileSystem", Controller: new(true)}},
		}
	}
	event := func(kind, name, message string) *corev1.Event {
		return &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "storage", Name: name + ".1"},
			InvolvedObject: corev1.ObjectReference{Kind: kind, Namespace: "storage", Name: name},
			Type:           corev1.EventTypeWarning, Reason: "FailedCreate", Message: message, LastTimestamp: metav1.NewTime(made.Add(time.Second)),
		}
	}
	const words = `is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`
	guard := &appsv1.Deployment{ObjectMeta: owned("scratch.n1", "guard")}
	guard.Labels[v1alpha1.LabelGuard] = "scratch"
	guard.Status.Conditions = []appsv1.DeploymentCondition{{
		Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: `pods "scratch.n1-abc" is forbidden: exceeded quota: small, used: pods=1`,
	}}
	backup := &batchv1.Job{ObjectMeta: owned("scratch-backup-1", "")}
	backup.Labels = map[string]string{v1alpha1.LabelBackup: "scratch"}
	field := func(value func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string {
			if e, is := o.(*corev1.Event); is {
				return []string{value(e)}
			}
			return nil
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&appsv1.DaemonSet{ObjectMeta: owned("scratch-master", "master"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 1}},
		&appsv1.DaemonSet{ObjectMeta: owned("scratch-client", "client"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 3}},
		&appsv1.DaemonSet{ObjectMeta: owned("scratch-elsewhere", "metalogger")},
		backup, guard,
		event("DaemonSet", "scratch-master", `Error creating: pods "scratch-master-x1" `+words),
		event("DaemonSet", "scratch-client", `Error creating: pods "scratch-client-x2" `+words),
		event("Job", "scratch-backup-1", `Error creating: pods "scratch-backup-1-x3" is forbidden: no PriorityClass with name fast was found`),
	).
		WithIndex(&corev1.Event{}, "involvedObject.kind", field(func(e *corev1.Event) string { return e.InvolvedObject.Kind })).
		WithIndex(&corev1.Event{}, "involvedObject.name", field(func(e *corev1.Event) string { return e.InvolvedObject.Name })).
		WithIndex(&corev1.Event{}, "type", field(func(e *corev1.Event) string { return e.Type })).
		Build()
	clock := clocktesting.NewFakePassiveClock(made)
	return &pass{
		Reconciler: &Reconciler{Client: c, Reader: c, Order: clock, Clock: clock}, fs: fs, in: backend.Input{
			FileSystem: fs, Nodes: []backend.Node{{Name: "n1", IP: "10.0.0.1", Ready: true}},
		},
	}, clock
}

func TestRefusedPodsAreReportedInTheWordsOfTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	p, clock := refusing(t)
	g.Expect(p.lookForRefusals(t.Context())).To(Succeed())
	g.Expect(p.problems).To(BeEmpty(), "pods that are missing for a moment are being made")
	clock.SetTime(clock.Now().Add(refusals.Patience))
	g.Expect(p.lookForRefusals(t.Context())).To(Succeed())
	g.Expect(p.problems).To(HaveExactElements(
		backend.Problem{Reason: v1alpha1.ReasonPodsRefused, Message: "the pods of DaemonSet scratch-client and 1 more are refused: run kubectl label " +
			"--overwrite namespace storage pod-security.kubernetes.io/enforce=privileged. The API server reported: " +
			`violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)`},
		backend.Problem{Reason: v1alpha1.ReasonPodsRefused, Message: "the pods of Deployment scratch.n1 are refused: make room, or run kubectl -n storage " +
			"edit resourcequota small. The API server reported: exceeded quota: small, used: pods=1"},
		backend.Problem{Reason: v1alpha1.ReasonPodsRefused, Message: "the pods of Job scratch-backup-1 are refused: set spec.pods.priorityClassName to one " +
			"of kubectl get priorityclasses. The API server reported: no PriorityClass with name fast was found"},
	))
	g.Expect(p.in.Away("master", "", "", "n1")).To(Equal("there is no pod of it on the node: the API server refuses it (PodsRefused)"))
	g.Expect(p.in.Away("metalogger", "", "", "n1")).To(Equal("there is no pod of it on the node"))

	fs := &v1alpha1.FileSystem{}
	observation := backend.Observation{Problems: append(p.problems, backend.Problem{Reason: v1alpha1.ReasonStarting, Message: "connection refused"})}
	describe(fs, observation, nil, nil, false, false, clock.Now())
	g.Expect(fs.Status.Conditions).To(ContainElements(
		And(HaveField("Type", v1alpha1.ConditionReady), HaveField("Reason", v1alpha1.ReasonPodsRefused)),
		And(HaveField("Type", v1alpha1.ConditionStalled), HaveField("Reason", v1alpha1.ReasonPodsRefused)),
	))
}

func TestARefusalIsOverWhenAPodOfTheSetWasMadeLater(t *testing.T) {
	g := NewWithT(t)
	p, clock := refusing(t)
	g.Expect(p.Client.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "storage", Name: "scratch-client-1", CreationTimestamp: metav1.NewTime(clock.Now().Add(time.Minute)),
		Labels:          map[string]string{v1alpha1.LabelFileSystem: "scratch"},
		OwnerReferences: []metav1.OwnerReference{{UID: "scratch-client", Kind: "DaemonSet", Controller: new(true)}},
	}})).To(Succeed())
	g.Expect(p.lookForRefusals(t.Context())).To(Succeed())
	clock.SetTime(clock.Now().Add(time.Hour))
	g.Expect(p.lookForRefusals(t.Context())).To(Succeed())
	g.Expect(p.problems[0].Message).To(HavePrefix("the pods of DaemonSet scratch-master are refused"), "of two pods that are still missing nothing is known")
}

func TestTheReasonWhyNoAgentRunsIsTheMessageOfTheAPIServer(t *testing.T) {
	g := NewWithT(t)
	p, _ := refusing(t)
	words, err := p.agentsRefused(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(words).To(BeEmpty(), "nobody has said which DaemonSet is that of the agents")
	p.Agents = types.NamespacedName{Namespace: "storage", Name: "scratch-master"}
	words, err = p.agentsRefused(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(words).To(HavePrefix("the pods of DaemonSet scratch-master are refused: run kubectl label --overwrite namespace storage "))
}
