package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
)

// agentPod is the pod of an agent.
func agentPod(node string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "operator", Name: "agent-" + node,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, labelComponent: agentComponent},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func TestReportsAreConfirmedByAnAgentThatIsReadyAndAWhileAfterItWas(t *testing.T) {
	g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	found := map[string]v1alpha1.NodeInventoryStatus{"ready": {}, "dead": {}, "none": {}, "forged": {}, "ending": {}}
	forged := agentPod("forged", corev1.ConditionTrue)
	forged.OwnerReferences = nil
	ending := agentPod("ending", corev1.ConditionTrue)
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"a/b"}
	elsewhere := agentPod("none", corev1.ConditionTrue)
	elsewhere.Namespace = "scratch"
	c := fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).WithObjects(
		agentPod("ready", corev1.ConditionTrue), agentPod("dead", corev1.ConditionFalse), forged, ending, elsewhere).Build()
	operator := func() *Reconciler {
		return &Reconciler{Client: c, Order: clock, Agents: types.NamespacedName{Namespace: "operator", Name: "agent"}}
	}
	r := operator()
	unconfirmed := func(r *Reconciler) map[string]string {
		out, err := r.unconfirmedReports(t.Context(), found)
		g.Expect(err).NotTo(HaveOccurred())
		return out
	}
	g.Expect(unconfirmed(r)).To(And(HaveLen(4), Not(HaveKey("ready")),
		HaveKeyWithValue("dead", "the agent of node dead is not Ready, so that its reports may be outdated; look at its pod and log")))

	g.Expect(c.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "operator", Name: "agent-ready"}})).To(Succeed())
	clock.SetTime(clock.Now().Add(restartTime - time.Second))
	g.Expect(unconfirmed(r)).NotTo(HaveKey("ready"), "it may just restart")
	g.Expect(unconfirmed(operator())).To(HaveKey("ready"), "a manager that has never seen it Ready relies on nothing")
	clock.SetTime(clock.Now().Add(time.Second))
	g.Expect(unconfirmed(r)).To(HaveKey("ready"))

	dead := agentPod("dead", corev1.ConditionTrue)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(dead), dead)).To(Succeed())
	dead.Status.Conditions[0].Status = corev1.ConditionTrue
	g.Expect(c.Status().Update(t.Context(), dead)).To(Succeed())
	g.Expect(unconfirmed(r)).NotTo(HaveKey("dead"))
	r.Agents = types.NamespacedName{}
	g.Expect(unconfirmed(r)).To(HaveLen(4), "without the name of the agents, nothing new is confirmed")
}
