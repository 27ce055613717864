//go:build envtest

package filesystem_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// released returns a world whose filesystem is up, and whose operator has the node image node:2 from now on.
func released(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.release("node:2")
	return w
}

// release replaces the operator by one with another node image.
func (w *world) release(image string) {
	w.alter = func(operator *filesystem.Reconciler) { operator.Images.Node = image }
}

// slower changes an option of chunkservers.
func slower(fs *v1alpha1.FileSystem) {
	fs.Spec.MooseFS.Config.Storage = v1alpha1.Options{"WORKERS_MAX": "100"}
}

// images counts the node images of a component's pods.
func (w *world) images(which string) map[string]int {
	out := map[string]int{}
	for _, p := range w.pods() {
		if component(&p) == which {
			out[p.Spec.InitContainers[0].Image]++
		}
	}
	return out
}

// older replaces DaemonSets and pods by those of an earlier operator, which rendered the daemons differently.
func (w *world) older() {
	w.t.Helper()
	for _, set := range w.sets() {
		set.Spec.Template.Annotations[backend.TemplateHashAnnotation] = "0123456789abcdef"
		w.Expect(server.Client.Update(w.ctx, &set)).To(Succeed())
	}
	for _, pod := range w.pods() {
		if pod.Annotations[backend.TemplateHashAnnotation] != "" {
			pod.Annotations[backend.TemplateHashAnnotation] = "0123456789abcdef"
			w.Expect(server.Client.Update(w.ctx, &pod)).To(Succeed())
		}
	}
}

func TestAReleaseOfTheOperatorRestartsNoDaemonUntilSomethingElseOrAPersonAsks(t *testing.T) {
	w := released(t)
	before := w.uids()
	w.settle()
	w.Expect(w.uids()).To(Equal(before))
	for _, set := range w.sets() {
		w.Expect(set.Spec.Template.Spec.InitContainers[0].Image).To(Equal("node:2"), "a pod that is made now has the new image")
		w.Expect(set.Annotations).NotTo(HaveKey(backend.RenderedHashAnnotation), "the image is no part of the hash")
	}
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(BeZero())
	w.Expect(w.condition(v1alpha1.ConditionNodeImageWaits)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonOperatorUpdated),
		HaveField("Message", And(ContainSubstring("all 4 servers run with the node image of an earlier operator, such as node:1; each switches to node:2"),
			ContainSubstring("kubectl annotate filesystem scratch -n "+w.namespace+" --overwrite parallelfs.dev/take-up-node-image=node:2")))))

	w.change(slower)
	w.settle()
	w.Expect(w.images("chunkserver")).To(Equal(map[string]int{"node:2": 3}), "they were restarted for their option")
	w.Expect(w.images("master")).To(Equal(map[string]int{"node:1": 1}))
	w.Expect(w.condition(v1alpha1.ConditionNodeImageWaits).Message).To(HavePrefix("1 of 4 servers runs with the node image of an earlier operator"))

	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Annotations = map[string]string{v1alpha1.AnnotationTakeUpNodeImage: "node:2"}
	})
	w.settle()
	w.Expect(w.images("master")).To(Equal(map[string]int{"node:2": 1}), "a person has asked for it")
	w.Expect(w.condition(v1alpha1.ConditionNodeImageWaits)).To(BeZero())
	w.Expect(w.images("client")).To(Equal(map[string]int{"node:1": 3}), "no client is restarted")

	after := w.uids()
	w.release("node:3")
	w.settle()
	w.Expect(w.uids()).To(Equal(after), "the annotation asks for one image, and not for the next one")
}

func TestAReleaseThatRendersDaemonsOtherwiseRestartsNoneUntilTheSpecAsks(t *testing.T) {
	w := released(t)
	w.older()
	before := w.uids()
	for n := range 12 {
		_ = w.reconcile(server.Killable(t, n)) // the operator is killed after any write
	}
	w.settle()
	w.Expect(w.uids()).To(Equal(before))
	for _, set := range w.sets() {
		w.Expect(set.Spec.Template.Annotations).To(HaveKeyWithValue(backend.TemplateHashAnnotation, "0123456789abcdef"), set.Name)
		w.Expect(set.Annotations).To(HaveKey(backend.RenderedHashAnnotation), set.Name)
	}
	c := server.Killable(t, -1)
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty())

	w.change(slower)
	w.settle()
	w.Expect(w.images("chunkserver")).To(Equal(map[string]int{"node:2": 3}))
	w.Expect(w.images("master")).To(Equal(map[string]int{"node:1": 1}), "of others, the spec asks nothing new")
}

func TestAChangeOfTheSpecThatComesWithAReleaseIsCarriedOut(t *testing.T) {
	w := released(t)
	w.change(slower) // no operator runs meanwhile
	w.settle()
	w.Expect(w.images("chunkserver")).To(Equal(map[string]int{"node:2": 3}))
	w.Expect(w.images("master")).To(Equal(map[string]int{"node:1": 1}))
}

func TestAReleaseDoesNotWaitForABenchmarkAndDoesNotDisturbIt(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.finishJobs()
	w.settle()
	run := w.measures()
	before := w.uids()
	w.release("node:2")
	w.older()
	w.settle()
	w.Expect(w.uids()).To(Equal(before))
	for _, set := range w.sets() {
		w.Expect(set.Spec.Template.Spec.InitContainers[0].Image).To(Equal("node:2"), set.Name)
	}
	w.ends(run)
	w.settle()
	w.finishJobs()
	w.settle()
	after := w.uids()
	for name, uid := range before {
		if !strings.Contains(name, "classes") {
			w.Expect(after[name]).To(Equal(uid), "it runs on behind the run as well: %s", name)
		}
	}
}

func TestAServerWithAnOlderNodeImageThatDoesNotComeBackGetsANewPod(t *testing.T) {
	w := released(t)
	w.settle()
	for _, p := range w.pods() {
		if component(&p) == "chunkserver" && p.Spec.NodeName == w.nodes[1] {
			p.Status.Conditions[0].Status = corev1.ConditionFalse
			w.Expect(server.Client.Status().Update(w.ctx, &p)).To(Succeed())
		}
	}
	c := server.Killable(t, -1)
	operator := w.operator(c)
	pass := func() {
		_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
		w.Expect(err).NotTo(HaveOccurred())
	}
	pass()
	w.Expect(c.Writes()).NotTo(ContainElement(HavePrefix("delete ")), "it has just stopped, and its kubelet may start it")
	pass() // more than 20 minutes later
	w.Expect(c.Writes()).To(ContainElement("delete *v1.Pod scratch-chunkserver-ssd." + w.nodes[1]))
	w.runPods()
	w.settle()
	w.Expect(w.images("chunkserver")).To(Equal(map[string]int{"node:1": 2, "node:2": 1}))
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))
}

func TestServersThatProgramsWaitForRestartInAnAnnouncedWindow(t *testing.T) {
	w := newWorld(t)
	clock := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC))
	w.alter = func(operator *filesystem.Reconciler) { operator.Clock = clock }
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.Updates.Windows = []v1alpha1.UpdateWindow{{
			Schedule: "0 2 * * 6", Duration: metav1.Duration{Duration: 4 * time.Hour}, TimeZone: "Europe/Berlin",
		}}
	})
	w.alive = true
	w.settle()
	w.finishJobs()
	w.settle()
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), "making a filesystem waits for no window")
	before := w.uids()
	w.change(slower)
	w.settle()
	for name, uid := range before {
		if strings.Contains(name, "chunkserver") {
			w.Expect(w.uids()[name]).NotTo(Equal(uid), "each chunk has two copies: %s", name)
		}
	}
	master := func() string { return w.uids()["scratch-master."+w.nodes[0]] }
	was := master()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config.Metadata = v1alpha1.Options{"QUOTA_DEFAULT_GRACE_PERIOD": "7d"}
	})
	w.settle()
	w.Expect(master()).To(Equal(was))
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonRestarting), HaveField("Message", And(
		ContainSubstring("1 pod is to be restarted when the next window of spec.updates.windows opens at 2026-11-28 02:00 CET; first master on node "+w.nodes[0]),
		ContainSubstring("programs will wait while each of these restarts: master on node "+w.nodes[0]+" (there is one master)")))))

	run := w.measures() // the lease is free, because nothing runs until Saturday
	w.ends(run)

	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Windows[0].TimeZone = "Europe/Nowhere" })
	w.settle()
	w.Expect(master()).To(Equal(was))
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Reason", v1alpha1.ReasonInvalidSpec),
		HaveField("Message", ContainSubstring(`spec.updates.windows[0].timeZone "Europe/Nowhere" is no time zone`))))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), "it serves all the same")
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.Updates.Windows[0].TimeZone = "Europe/Berlin" })

	clock.SetTime(time.Date(2026, 11, 28, 1, 0, 0, 0, time.UTC))
	w.settle()
	w.Expect(master()).NotTo(Equal(was))
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))
}

func TestATerminatingPodOnADeadNodeDelaysNoRepairAndCountsAsAway(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	dead := "scratch-chunkserver-ssd." + w.nodes[2]
	pod := func(name string) *corev1.Pod {
		var p corev1.Pod
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &p)).To(Succeed())
		return &p
	}
	p := pod(dead)
	p.Finalizers = []string{"test/kubelet"} // no kubelet there ends it
	w.Expect(server.Client.Update(w.ctx, p)).To(Succeed())
	t.Cleanup(func() {
		free := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = server.Client.Patch(context.Background(), p, free)
	})
	w.Expect(server.Client.Delete(w.ctx, p)).To(Succeed())
	w.nodeIs(w.nodes[2], corev1.ConditionUnknown)
	w.change(slower)
	crashed := pod("scratch-chunkserver-ssd." + w.nodes[1])
	crashed.Status.Conditions[0].Status = corev1.ConditionFalse
	w.Expect(server.Client.Status().Update(w.ctx, crashed)).To(Succeed())
	for len(w.events.Events) > 0 {
		<-w.events.Events
	}

	c := server.Killable(t, -1)
	w.passes(c, 3)
	w.Expect(c.Writes()).To(ContainElement("delete *v1.Pod " + crashed.Name))
	w.Expect(c.Writes()).NotTo(ContainElement("delete *v1.Pod "+dead), "it ends already")
	var restarts []string
	for len(w.events.Events) > 0 {
		if e := <-w.events.Events; strings.Contains(e, "Restarting chunkserver") {
			restarts = append(restarts, e)
		}
	}
	w.Expect(restarts).To(HaveLen(1), "each restart is one event")
	w.Expect(pod(crashed.Name).UID).NotTo(Equal(crashed.UID), "it was repaired")
	w.Expect(c.Writes()).NotTo(ContainElement("delete *v1.Pod scratch-chunkserver-ssd."+w.nodes[0]), "one that runs waits for the dead node")
	w.Expect(w.ready()).NotTo(HaveField("Reason", v1alpha1.ReasonHealthy))
}

// passes runs passes of one operator, with agents and kubelets between them. Changes may continue forever.
func (w *world) passes(c *apiserver.Killable, n int) {
	w.t.Helper()
	for range n {
		w.Expect(w.reconcile(c)).To(Succeed())
		w.agents()
		w.runPods()
		w.Expect(w.reconcileTargets(c)).To(Succeed())
		w.Expect(w.reconcileNodes(c)).To(Succeed())
	}
}
