//go:build envtest

package filesystem_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// guardedWorld returns a world whose filesystem is up, and whose nodes have guards.
func guardedWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	for _, node := range w.nodes {
		w.boots(node, "first")
	}
	w.fileSystem(nil)
	w.alive = true
	w.goesOn()
	w.runGuards()
	w.Expect(w.guards()).To(HaveLen(3))
	return w
}

// goesOn ends jobs and runs passes until nothing more is written.
func (w *world) goesOn() {
	w.t.Helper()
	for range 2 {
		w.settle()
		w.finishJobs()
		w.looks()
	}
	w.settle()
}

// changeNode changes a node as kubelets and people do.
func (w *world) changeNode(name string, how func(n *corev1.Node)) {
	w.t.Helper()
	var node corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
	before := node.DeepCopy()
	how(&node)
	w.Expect(server.Client.Patch(w.ctx, &node, client.MergeFrom(before))).To(Succeed())
	before.ResourceVersion = node.ResourceVersion
	how(&node)
	w.Expect(server.Client.Status().Patch(w.ctx, &node, client.MergeFrom(before))).To(Succeed())
}

// boots restarts the kernel of a node.
func (w *world) boots(node, id string) {
	w.t.Helper()
	w.changeNode(node, func(n *corev1.Node) { n.Status.NodeInfo.BootID = id })
}

func (w *world) cordons(node string, is bool) {
	w.t.Helper()
	w.changeNode(node, func(n *corev1.Node) { n.Spec.Unschedulable = is })
}

func (w *world) ofGuards() []client.ListOption {
	return []client.ListOption{client.InNamespace(w.namespace), client.MatchingLabels{v1alpha1.LabelGuard: "scratch"}}
}

// guards returns the guards of nodes, by node.
func (w *world) guards() map[string]appsv1.Deployment {
	w.t.Helper()
	var list appsv1.DeploymentList
	w.Expect(server.Client.List(w.ctx, &list, w.ofGuards()...)).To(Succeed())
	out := map[string]appsv1.Deployment{}
	for _, d := range list.Items {
		if d.DeletionTimestamp.IsZero() {
			terms := d.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
			out[terms[0].MatchFields[0].Values[0]] = d
		}
	}
	return out
}

func (w *world) budget(node string) *policyv1.PodDisruptionBudget {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	key := client.ObjectKey{Namespace: w.namespace, Name: w.fileSystemNodes()[node].Name}
	w.Expect(server.Client.Get(w.ctx, key, budget)).To(Succeed())
	return budget
}

func (w *world) guardPods() map[string]corev1.Pod {
	w.t.Helper()
	var list corev1.PodList
	w.Expect(server.Client.List(w.ctx, &list, w.ofGuards()...)).To(Succeed())
	out := map[string]corev1.Pod{}
	for _, p := range list.Items {
		out[p.Spec.NodeName] = p
	}
	return out
}

// runGuards simulates the controllers of Deployments and of PodDisruptionBudgets, and the scheduler.
func (w *world) runGuards() {
	w.t.Helper()
	there := w.guardPods()
	for node, d := range w.guards() {
		var n corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &n)).To(Succeed())
		if _, runs := there[node]; !runs && !n.Spec.Unschedulable {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{GenerateName: d.Name + "-", Namespace: w.namespace, Labels: d.Spec.Template.Labels},
				Spec:       *d.Spec.Template.Spec.DeepCopy(),
			}
			pod.Spec.NodeName, pod.Spec.PriorityClassName = node, ""
			w.Expect(server.Client.Create(w.ctx, pod)).To(Succeed())
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			w.Expect(server.Client.Status().Update(w.ctx, pod)).To(Succeed())
		}
	}
	there = w.guardPods()
	for node := range w.guards() {
		budget := w.budget(node)
		healthy := int32(0)
		if _, runs := there[node]; runs {
			healthy = 1
		}
		wanted := 1 - int32(budget.Spec.MaxUnavailable.IntValue())
		budget.Status = policyv1.PodDisruptionBudgetStatus{
			ObservedGeneration: budget.Generation, ExpectedPods: 1, CurrentHealthy: healthy, DesiredHealthy: wanted, DisruptionsAllowed: max(0, healthy-wanted),
			Conditions: []metav1.Condition{{
				Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionTrue, Reason: "Test", LastTransitionTime: metav1.Now(),
			}},
		}
		w.Expect(server.Client.Status().Update(w.ctx, budget)).To(Succeed())
	}
}

// drains evicts the guard of a node as `kubectl drain` does, and returns whether the API server has allowed it.
func (w *world) drains(node string) bool {
	w.t.Helper()
	w.runGuards()
	pod, runs := w.guardPods()[node]
	w.Expect(runs).To(BeTrue(), "the guard of %s runs", node)
	err := server.Client.SubResource("eviction").Create(w.ctx, &pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))},
	})
	if err == nil {
		w.runGuards()
		return true
	}
	w.Expect(apierrors.IsTooManyRequests(err)).To(BeTrue(), "%v", err)
	return false
}

// maintenance returns the condition Maintenance of a node.
func (w *world) maintenance(node string) metav1.Condition {
	w.t.Helper()
	n := w.fileSystemNodes()[node]
	if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionMaintenance); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// modesNow returns the chunkservers that jobs have switched to maintenance mode, by address and port, as the master would keep them.
func (w *world) modesNow() map[string]bool {
	w.t.Helper()
	if w.modes == nil {
		w.modes = map[string]bool{}
	}
	for _, job := range w.jobs() {
		var config spec.Configure
		text := job.Spec.Template.Annotations[podspec.ToldAnnotation]
		if job.Labels[v1alpha1.LabelComponent] != "maintenance" || w.deaf {
			continue
		}
		w.Expect(json.Unmarshal([]byte(text), &config)).To(Succeed())
		for _, c := range config.Commands {
			command := c.Argv[len(c.Argv)-1]
			if gone, is := strings.CutPrefix(command, "-CRC/"); is {
				if w.forgotten == nil {
					w.forgotten = map[string]bool{}
				}
				w.forgotten[gone] = true
				continue
			}
			on, found := strings.CutPrefix(command, "-CM")
			w.Expect(found).To(BeTrue(), command)
			w.modes[on[2:]] = on[0] == '1'
		}
	}
	return w.modes
}

// eventsOf returns the events since the last call.
func (w *world) eventsOf(reason string) []string {
	var out []string
	for {
		select {
		case e := <-w.events.Events:
			if strings.Contains(e, " "+reason+" ") {
				out = append(out, e)
			}
		default:
			return out
		}
	}
}

func TestANodeIsDrainedWhenTheFilesystemCanDoWithoutItAndIsGuardedAgainWhenItIsBack(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	for _, d := range w.guards() {
		w.Expect(d.Spec.Template.Spec.Tolerations).To(BeEmpty(), "on a node that is cordoned, it waits")
		w.Expect(d.Spec.Template.Labels).NotTo(HaveKey(v1alpha1.LabelFileSystem), "it is no daemon")
	}
	w.Expect(w.drains(node)).To(BeFalse(), "nobody has cordoned it")
	w.eventsOf("")

	w.cordons(node, true)
	w.goesOn()
	w.Expect(w.maintenance(node)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonInMaintenance),
		HaveField("Message", ContainSubstring("for 2h0m0s at most"))))
	w.Expect(w.eventsOf(v1alpha1.ReasonInMaintenance)).To(HaveLen(1))
	w.Expect(w.get().Status.Maintenance).To(HaveExactElements(And(HaveField("Node", node), HaveField("Allowed", false), HaveField("Ended", BeNil()))))
	w.Expect(w.modesNow()).To(Equal(map[string]bool{w.ip(node) + "/9435": true}), "no copies are made of what is on it")
	w.Expect(w.jobs()).NotTo(ContainElement(HaveField("Labels", HaveKeyWithValue(v1alpha1.LabelComponent, "maintenance"))), "what was to be done is done")
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue))
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(HaveField("Reason", v1alpha1.ReasonInMaintenance))
	w.Expect(w.drains(w.nodes[2])).To(BeFalse())
	w.Expect(w.drains(node)).To(BeTrue())
	w.Expect(w.guardPods()).NotTo(HaveKey(node))

	w.loses(node)
	w.goesOn()
	w.Expect(w.ready()).To(HaveField("Reason", v1alpha1.ReasonDegradedService), "the status says that a server is away")
	w.boots(node, "second")
	w.comesBack(node)
	w.goesOn()
	w.Expect(w.maintenance(node)).To(HaveField("Status", metav1.ConditionTrue), "it is still cordoned")
	w.cordons(node, false)
	w.goesOn()
	w.Expect(w.get().Status.Maintenance).To(BeEmpty())
	w.Expect(w.maintenance(node)).To(BeZero(), "it was started anew while it might")
	w.Expect(w.fileSystemNodes()[node].Status.BootID).To(Equal("second"))
	w.Expect(w.modesNow()).To(Equal(map[string]bool{w.ip(node) + "/9435": false}))
	w.runGuards()
	w.Expect(w.drains(node)).To(BeFalse())
	w.Expect(w.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy))
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty())
}

func TestNodesOfTwoFailureDomainsAreNeverInMaintenanceAtOnceAndNothingElseIsTakenAwayMeanwhile(t *testing.T) {
	w := guardedWorld(t)
	a, b := w.nodes[1], w.nodes[2]
	w.cordons(a, true)
	w.cordons(b, true)
	w.goesOn()
	w.Expect(w.get().Status.Maintenance).To(HaveExactElements(HaveField("Node", a)))
	w.Expect(w.maintenance(b)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonMaintenanceWaits),
		HaveField("Message", ContainSubstring("the maintenance of these nodes is over: "+a))))
	w.Expect(w.drains(b)).To(BeFalse())

	before := w.uids()
	w.change(slower)
	w.goesOn()
	w.Expect(w.uids()).To(Equal(before), "no daemon is restarted")
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).To(ContainSubstring("are to be restarted when the maintenance of these nodes is over: " + a))

	w.Expect(w.drains(a)).To(BeTrue())
	w.cordons(a, false)
	w.goesOn()
	w.runGuards()
	w.Expect(w.get().Status.Maintenance).To(HaveExactElements(HaveField("Node", b)))
	w.Expect(w.drains(a)).To(BeFalse())
	w.Expect(w.drains(b)).To(BeTrue())
}

func TestANodeThatHoldsWhatNoOtherHasGoesOnlyWhenAPersonAllowsThisMaintenance(t *testing.T) {
	w := guardedWorld(t)
	master := w.nodes[0]
	w.eventsOf("")
	w.cordons(master, true)
	w.goesOn()
	c := w.maintenance(master)
	w.Expect(c).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonMaintenanceNotAllowed),
		HaveField("Message", ContainSubstring("a person allows it, because there is one master"))))
	w.Expect(w.eventsOf(v1alpha1.ReasonMaintenanceNotAllowed)).To(HaveLen(1))
	w.Expect(w.drains(master)).To(BeFalse())

	w.annotate(master, v1alpha1.AnnotationAllowMaintenance, master)
	w.goesOn()
	w.Expect(w.drains(master)).To(BeFalse(), "it is no word for this time")

	_, word, _ := strings.Cut(c.Message, v1alpha1.AnnotationAllowMaintenance+"=")
	w.annotate(master, v1alpha1.AnnotationAllowMaintenance, word)
	w.goesOn()
	w.Expect(w.get().Status.Maintenance).To(HaveExactElements(And(HaveField("Node", master), HaveField("Allowed", true))))
	w.Expect(w.drains(master)).To(BeTrue())

	w.boots(master, "second")
	w.cordons(master, false)
	w.goesOn()
	w.runGuards()
	w.cordons(master, true)
	w.goesOn()
	w.Expect(w.maintenance(master)).To(HaveField("Reason", v1alpha1.ReasonMaintenanceNotAllowed), "the word was for the time until it was started anew")
	w.Expect(w.drains(master)).To(BeFalse())
}

func TestAMaintenanceThatIsTooLongIsReportedAndEndsForTheFilesystem(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Updates.Maintenance.Limit = metav1.Duration{Duration: time.Hour}
	})
	w.cordons(node, true)
	w.goesOn()
	w.Expect(w.modesNow()).To(HaveKeyWithValue(w.ip(node)+"/9435", true))
	w.eventsOf("")
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(61 * time.Minute))
	}
	w.goesOn()
	w.Expect(w.maintenance(node)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonMaintenanceTooLong),
		HaveField("Message", ContainSubstring("has lasted longer than 1h0m0s"))))
	w.Expect(w.eventsOf(v1alpha1.ReasonMaintenanceTooLong)).To(HaveExactElements(ContainSubstring("uncordon it")))
	w.Expect(w.modesNow()).To(HaveKeyWithValue(w.ip(node)+"/9435", false), "copies are made again")
	w.Expect(w.drains(node)).To(BeFalse(), "its guard is closed")
	w.Expect(w.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy), "it takes part")

	w.cordons(w.nodes[2], true)
	w.goesOn()
	w.Expect(w.drains(w.nodes[2])).To(BeTrue(), "a node that somebody has forgotten holds up no other")
	w.cordons(w.nodes[2], false)
	w.cordons(node, false)
	w.goesOn()
	w.Expect(w.get().Status.Maintenance).To(BeEmpty())
	w.Expect(w.maintenance(node)).To(BeZero())
	w.cordons(node, true)
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(130 * time.Minute))
	}
	w.goesOn()
	w.Expect(w.drains(node)).To(BeTrue(), "this is another maintenance, and others have had their turn")
}

func TestANodeThatIsGoneForGoodIsNotLeftInMaintenance(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	w.cordons(node, true)
	w.goesOn()
	w.Expect(w.drains(node)).To(BeTrue())
	w.loses(node)
	w.Expect(server.Client.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})).To(Succeed())
	w.looks()
	w.Expect(w.get().Status.Maintenance).To(HaveExactElements(And(HaveField("Ended", BeNil()), HaveField("Address", w.ip(node)))))
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(3 * time.Hour))
	}
	for range 3 {
		w.looks()
		w.finishJobs()
	}
	w.Expect(w.modesNow()).To(HaveKeyWithValue(w.ip(node)+"/9435", false), "its data gets new copies")
	w.Expect(w.get().Status.Maintenance).To(BeEmpty())
}

func TestAnUnannouncedRebootIsNoticedAndReported(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[2]
	w.Expect(w.fileSystemNodes()[node].Status.BootID).To(Equal("first"))
	w.eventsOf("")
	w.boots(node, "second")
	w.goesOn()
	w.Expect(w.maintenance(node)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonRebooted),
		HaveField("Message", ContainSubstring("kubectl drain "+node))))
	w.Expect(w.eventsOf(v1alpha1.ReasonRebooted)).To(HaveLen(1))
	w.Expect(w.fileSystemNodes()[node].Status.BootID).To(Equal("second"))
	w.goesOn()
	w.Expect(w.eventsOf(v1alpha1.ReasonRebooted)).To(BeEmpty())
	w.Expect(w.maintenance(node)).To(HaveField("Reason", v1alpha1.ReasonRebooted), "it stays until the next maintenance")
	w.cordons(node, true)
	w.goesOn()
	w.cordons(node, false)
	w.goesOn()
	w.Expect(w.maintenance(node)).To(BeZero())
}

func TestANodeMayNotBeAwayWhileTheFilesystemIsUnhealthyOrABenchmarkRuns(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	w.data = &backend.DataHealth{Known: true, Undergoal: 3, Stable: 5, Fewest: 1}
	w.cordons(node, true)
	w.goesOn()
	w.Expect(w.maintenance(node).Message).To(ContainSubstring("it may be away when the filesystem is healthy"))
	w.Expect(w.drains(node)).To(BeFalse())

	w.data = nil
	run := w.measures()
	w.goesOn()
	w.Expect(w.maintenance(node).Message).To(ContainSubstring("BenchmarkRun creates has ended"))
	w.Expect(w.drains(node)).To(BeFalse())
	w.ends(run)
	w.goesOn()
	w.Expect(w.drains(node)).To(BeTrue())
	w.Expect(w.asks(w.another(run))).NotTo(BeEmpty(), "nobody measures a filesystem while a node of it is away")
}

func TestANodeWithoutAnythingOnlineHasNothingToGuard(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	w.lost = append(w.lost, node+":/data/ssd0")
	w.cordons(node, true)
	w.loses(node)
	w.looks()
	w.Expect(w.maintenance(node).Message).To(ContainSubstring("nothing on it is online"))
	w.Expect(w.get().Status.Maintenance).To(BeEmpty())
	w.Expect(w.modesNow()).To(BeEmpty(), "new copies are made of what was on it")
	w.Expect(w.drains(node)).To(BeTrue())
}

func TestAnOperatorThatIsKilledAfterAnyWriteOfAMaintenanceIsFollowedByOneThatGoesOn(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	stories := []func(){
		func() { w.cordons(node, true) },
		func() { w.Expect(w.drains(node)).To(BeTrue()) },
		func() { w.cordons(node, false) },
	}
	closed := func() {
		w.runGuards()
		active := backend.Maintained(w.get())
		for _, n := range w.nodes {
			if open := *w.budget(n).Spec.MaxUnavailable != intstr.FromInt32(0); open {
				w.Expect(active).To(ContainElement(n), "a guard is open only while the maintenance is on record")
			}
		}
	}
	for _, story := range stories {
		story()
		killed := 0
		for range 2 { // the next operators continue from the work of guards and Jobs
			killed += w.settleByDying(1, func() {
				w.finishJobs()
				closed()
			})
		}
		t.Logf("%d operators were killed", killed)
		w.goesOn()
	}
	w.Expect(w.get().Status.Maintenance).To(BeEmpty())
	w.Expect(w.modesNow()).To(Equal(map[string]bool{w.ip(node) + "/9435": false}))
	w.Expect(w.drains(w.nodes[1])).To(BeFalse())
}

func TestAGuardStaysClosedUntilItIsOnRecordThatItsNodeMayGo(t *testing.T) {
	w := guardedWorld(t)
	master := w.nodes[0]
	w.cordons(master, true)
	w.goesOn()
	_, word, _ := strings.Cut(w.maintenance(master).Message, v1alpha1.AnnotationAllowMaintenance+"=")
	w.annotate(master, v1alpha1.AnnotationAllowMaintenance, word) // nothing else is necessary before the guard opens
	unrecorded := interceptor.NewClient(server.Killable(t, -1), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if _, ok := o.(*v1alpha1.FileSystem); ok {
				return apiserver.ErrKilled
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	for range 3 {
		w.Expect(w.reconcile(unrecorded)).To(MatchError(ContainSubstring("write the status")))
		w.Expect(w.budget(master).Spec.MaxUnavailable.IntValue()).To(Equal(0), "it is not on record")
	}
	w.Expect(w.drains(master)).To(BeFalse())
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.get().Status.Maintenance).To(HaveExactElements(HaveField("Node", master)))
	w.Expect(w.drains(master)).To(BeFalse(), "the pass that records it opens nothing")
	w.goesOn()
	w.Expect(w.drains(master)).To(BeTrue())
}

func TestAFileSystemThatIsDeletedDuringAMaintenanceEndsItFirst(t *testing.T) {
	for name, options := range map[string][]client.DeleteOption{
		"with its daemons":    nil,
		"and leaves the rest": {client.PropagationPolicy(metav1.DeletePropagationOrphan)},
	} {
		t.Run(name, func(t *testing.T) {
			w := guardedWorld(t)
			node := w.nodes[1]
			w.cordons(node, true)
			w.goesOn()
			w.Expect(w.modesNow()).To(Equal(map[string]bool{w.ip(node) + "/9435": true}))
			before := len(w.sets())
			w.Expect(server.Client.Delete(w.ctx, w.get(), options...)).To(Succeed())
			w.Expect(w.reconcile(server.Client)).To(Succeed())
			w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(And(HaveField("Reason", v1alpha1.ReasonDeleting),
				HaveField("Message", ContainSubstring("are not in maintenance mode any more"))))
			w.Expect(w.sets()).To(HaveLen(before), "the master is told by itself")
			w.finishJobs()
			w.Expect(w.modesNow()).To(Equal(map[string]bool{w.ip(node) + "/9435": false}))
			w.eventsOf("")
			w.stops(5)
			w.Expect(w.finalizerRemoved()).To(BeTrue())
			w.Expect(w.eventsOf(v1alpha1.ReasonInMaintenance)).To(BeEmpty())
		})
	}
}

func TestADeletionDoesNotWaitForeverForTheEndOfAMaintenance(t *testing.T) {
	w := guardedWorld(t)
	w.cordons(w.nodes[1], true)
	w.goesOn()
	w.alive = false
	w.eventsOf("")
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	w.stops(3)
	w.Expect(w.finalizerRemoved()).To(BeFalse())
	w.Expect(w.sets()).NotTo(BeEmpty())
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Message).To(ContainSubstring("the daemons are stopped when the master answers, or 2m0s after the deletion"))
	w.alter = func(operator *filesystem.Reconciler) {
		operator.Clock = clocktesting.NewFakePassiveClock(time.Now().Add(3 * time.Minute))
	}
	w.stops(8)
	w.Expect(w.finalizerRemoved()).To(BeTrue())
	w.Expect(w.eventsOf(v1alpha1.ReasonInMaintenance)).To(HaveExactElements(ContainSubstring("was not told within 2m0s")))
}

// stops runs some passes over a FileSystem that is deleted, with kubelets between them.
func (w *world) stops(n int) {
	w.t.Helper()
	for range n {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.runPods()
	}
}

// finalizerRemoved reports whether the operator has removed its finalizer, so that the rest is for the garbage collector.
func (w *world) finalizerRemoved() bool {
	w.t.Helper()
	fs := &v1alpha1.FileSystem{}
	err := server.Client.Get(w.ctx, w.key(), fs)
	w.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err != nil || !controllerutil.ContainsFinalizer(fs, v1alpha1.Finalizer)
}

func TestADeletedFileSystemHasNoGuardsAndTrapsNoNode(t *testing.T) {
	for name, options := range map[string][]client.DeleteOption{
		"with its daemons":    nil,
		"and leaves the rest": {client.PropagationPolicy(metav1.DeletePropagationOrphan)},
	} {
		t.Run(name, func(t *testing.T) {
			w := guardedWorld(t)
			w.cordons(w.nodes[1], true)
			w.goesOn()
			w.Expect(server.Client.Delete(w.ctx, w.get(), options...)).To(Succeed())
			for range 3 {
				_ = w.reconcile(server.Client)
			}
			w.Expect(w.guards()).To(BeEmpty())
			var budgets policyv1.PodDisruptionBudgetList
			w.Expect(server.Client.List(w.ctx, &budgets, w.ofGuards()...)).To(Succeed())
			w.Expect(budgets.Items).To(BeEmpty())
		})
	}
}

func TestGuardsFollowTaintsAndTheOperatorsImageAndLostOnesAreCreatedAgain(t *testing.T) {
	w := guardedWorld(t)
	node := w.nodes[1]
	w.changeNode(node, func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "storage", Value: "only", Effect: corev1.TaintEffectNoSchedule}}
	})
	w.goesOn()
	w.Expect(w.guards()[node].Spec.Template.Spec.Tolerations).To(HaveExactElements(
		corev1.Toleration{Key: "storage", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}))
	w.release("node:2")
	w.goesOn()
	for _, d := range w.guards() {
		w.Expect(d.Spec.Template.Spec.Containers[0].Image).To(Equal("node:2"))
	}
	lost := w.guards()[node]
	w.Expect(server.Client.Delete(w.ctx, &lost)).To(Succeed())
	w.Expect(server.Client.Delete(w.ctx, w.budget(w.nodes[2]))).To(Succeed())
	opened := w.budget(w.nodes[0])
	opened.Spec.MaxUnavailable = new(intstr.FromInt32(1))
	w.Expect(server.Client.Update(w.ctx, opened)).To(Succeed())
	w.goesOn()
	w.Expect(w.guards()).To(HaveLen(3))
	for _, n := range w.nodes {
		w.Expect(w.budget(n).Spec.MaxUnavailable.IntValue()).To(Equal(0), n)
	}
}

func TestAFilesystemThatGrowsHasNoGuards(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	for range 3 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.agents()
		w.runPods()
	}
	w.Expect(w.guards()).To(BeEmpty(), "its master has not answered yet")
	w.alive, w.lost = true, []string{w.nodes[1] + ":/data/ssd0"}
	w.settle()
	w.Expect(w.guards()).To(BeEmpty(), "a target has not come yet")
	w.lost = nil
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.guards()).To(BeEmpty())
	w.goesOn()
	w.Expect(w.guards()).To(HaveLen(3))
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty(), "and then nothing is written any more")
}
