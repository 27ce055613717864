package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
)

// agents is the name of the DaemonSet of the agents.
var agents = types.NamespacedName{Namespace: "operator", Name: "agent"}

func agentSet() *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: agents.Namespace, Name: agents.Name, UID: "agents"}}
}

// agentPod is the pod of an agent.
func agentPod(node string, ready corev1.ConditionStatus) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "operator", Name: "agent-" + node,
			Labels:          map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, labelComponent: agentComponent},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "agent", UID: "agents", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
	}
}

func TestReportsAreConfirmedByAnAgentThatIsReadyAndAWhileAfterItWas(t *testing.T) {
	g, clock := NewWithT(t), clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	found := map[string]v1alpha1.NodeInventoryStatus{"ready": {}, "dead": {}, "none": {}, "ending": {}}
	ending := agentPod("ending", corev1.ConditionTrue)
	ending.DeletionTimestamp, ending.Finalizers = new(metav1.Now()), []string{"a/b"}
	c := fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).WithObjects(
		agentPod("ready", corev1.ConditionTrue), agentPod("dead", corev1.ConditionFalse), ending, agentSet()).Build()
	operator := func() *Reconciler {
		return &Reconciler{Client: c, Reader: c, Order: clock, Agents: agents}
	}
	r := operator()
	unconfirmed := func(r *Reconciler) map[string]string {
		out, err := r.unconfirmedReports(t.Context(), found)
		g.Expect(err).NotTo(HaveOccurred())
		return out
	}
	g.Expect(unconfirmed(r)).To(And(HaveLen(3), Not(HaveKey("ready")),
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
	g.Expect(unconfirmed(r)).To(HaveLen(3), "without the name of the agents, nothing new is confirmed")
}

func TestAPodIsAnAgentOnlyIfTheDaemonSetOfTheAgentsControlsIt(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(pod *corev1.Pod, set *appsv1.DaemonSet)
		confirm bool
	}{
		"it is controlled by it":        {func(*corev1.Pod, *appsv1.DaemonSet) {}, true},
		"nothing controls it":           {func(pod *corev1.Pod, _ *appsv1.DaemonSet) { pod.OwnerReferences = nil }, false},
		"its owner does not control it": {func(pod *corev1.Pod, _ *appsv1.DaemonSet) { pod.OwnerReferences[0].Controller = nil }, false},
		"it only names the DaemonSet":   {func(pod *corev1.Pod, _ *appsv1.DaemonSet) { pod.OwnerReferences[0].UID = "other" }, false},
		"it has no UID of a controller": {func(pod *corev1.Pod, _ *appsv1.DaemonSet) { pod.OwnerReferences[0].UID = "" }, false},
		"it is in another namespace":    {func(pod *corev1.Pod, _ *appsv1.DaemonSet) { pod.Namespace = "scratch" }, false},
		"the DaemonSet was made again":  {func(_ *corev1.Pod, set *appsv1.DaemonSet) { set.UID = "again" }, false},
		"the DaemonSet is gone":         {func(_ *corev1.Pod, set *appsv1.DaemonSet) { set.Name = "other" }, false},
		"it is a mirror pod": {func(pod *corev1.Pod, _ *appsv1.DaemonSet) {
			pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod, set := agentPod("n1", corev1.ConditionTrue), agentSet()
			c.change(pod, set)
			k := fake.NewClientBuilder().WithObjects(pod, set).Build()
			r := &Reconciler{Client: k, Reader: k, Order: clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), Agents: agents}
			out, err := r.unconfirmedReports(t.Context(), map[string]v1alpha1.NodeInventoryStatus{"n1": {}})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(out["n1"] == "").To(Equal(c.confirm))
		})
	}
}
