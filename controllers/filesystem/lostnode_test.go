//go:build envtest

package filesystem_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystemnode"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

// loses makes a node lose its power permanently: it is not Ready, and neither are its pods.
func (w *world) loses(node string) {
	w.t.Helper()
	w.dead[node], w.mute[node] = true, true
	w.nodeIs(node, corev1.ConditionUnknown)
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == node {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
			w.Expect(server.Client.Status().Update(w.ctx, &pod)).To(Succeed())
		}
	}
}

// comesBack returns the power to a node. Nothing is mounted after the start.
func (w *world) comesBack(node string) {
	w.t.Helper()
	delete(w.dead, node)
	delete(w.mute, node)
	for _, pod := range w.pods() {
		if pod.Spec.NodeName == node { // its DaemonSet creates the desired ones again
			w.Expect(server.Client.Delete(w.ctx, &pod, client.GracePeriodSeconds(0))).To(Succeed())
		}
	}
	for _, d := range w.disks {
		if d.at() == node {
			d.mounted = false
		}
	}
	w.nodeIs(node, corev1.ConditionTrue)
}

// annotate annotates the FileSystemNode of a node as a person does; an empty value removes the annotation.
func (w *world) annotate(node, annotation, value string) {
	w.t.Helper()
	n := w.fileSystemNodes()[node]
	before := n.DeepCopy()
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	if n.Annotations[annotation] = value; value == "" {
		delete(n.Annotations, annotation)
	}
	w.Expect(server.Client.Patch(w.ctx, &n, client.MergeFrom(before), client.FieldOwner("kubectl-annotate"))).To(Succeed())
}

// lives runs some passes of one operator, with agents and kubelets between them. It returns why it ended early.
func (w *world) lives(c client.Client, looks int) error {
	w.t.Helper()
	operator := w.operator(c)
	nodes := &filesystemnode.Reconciler{Client: c, Reader: c, Recorder: w.events, Views: w.board, Clock: clock.RealClock{}}
	for range looks {
		_, err := operator.Reconcile(w.ctx, ctrl.Request{NamespacedName: w.key()})
		err = errors.Join(err, w.reconcileTargets(c))
		for _, n := range w.fileSystemNodes() {
			_, wrong := nodes.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&n)})
			err = errors.Join(err, wrong)
		}
		w.agents()
		w.runPods()
		if w.hive != nil {
			w.workJobs()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// looks runs a few passes of one operator.
func (w *world) looks() {
	w.t.Helper()
	w.Expect(w.lives(server.Client, 8)).To(Succeed())
}

// givingUp returns the condition GivenUp of a node.
func (w *world) givingUp(node string) metav1.Condition {
	w.t.Helper()
	n := w.fileSystemNodes()[node]
	if c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionGivenUp); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) hasTargetOn(node string) bool {
	w.t.Helper()
	for _, t := range w.targets() {
		if t.Spec.Node == node {
			return true
		}
	}
	return false
}

// whole returns MooseFS's counts when all data has its copies.
func whole() *backend.DataHealth { return &backend.DataHealth{Known: true, Stable: 100, Fewest: 2} }

// lostNode creates a MooseFS on the disks of three nodes, of which the last has permanently lost its power.
func lostNode(t *testing.T) (w *world, data []*fakeDisk, lost string) {
	t.Helper()
	w = newWorld(t)
	metadata, data := w.threeDisks()
	w.alive, w.data = true, whole()
	w.fileSystem(w.onDisks(metadata, data...))
	w.settle()
	w.looks()
	w.Expect(w.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy))
	lost = w.nodes[2]
	w.loses(lost)
	w.looks()
	return w, data, lost
}

func TestANodeThatIsAwayIsNamedWithWhatAPersonDoes(t *testing.T) {
	w, _, lost := lostNode(t)
	w.Expect(w.ready().Reason).NotTo(Equal(v1alpha1.ReasonHealthy))
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Message", And(
		ContainSubstring("1 node is away: "+lost+" (not Ready); wait until they are back"),
		ContainSubstring(fmt.Sprintf("kubectl -n %s annotate filesystemnode %s parallelfs.dev/give-up=%s", w.namespace, w.fileSystemNodes()[lost].Name, lost))))))
	w.Expect(w.fileSystemNodes()[lost].Spec.GivenUp).To(BeNil(), "nobody has said so")
	w.Expect(w.get().Status.Summary).To(HaveValue(And(HaveField("Servers", "3/4"), HaveField("Targets", "2/3"))))

	w.loses(w.nodes[0])
	w.looks()
	w.Expect(w.condition(v1alpha1.ConditionDegraded).Message).NotTo(ContainSubstring("give-up="+w.nodes[0]), "it has the metadata")
}

func TestADecommissionedNodeLeavesTheFileSystemWhichIsHealthyAgain(t *testing.T) {
	w, data, lost := lostNode(t)
	disk, target := *data[2], w.target(data[2]).Name
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()

	n := w.fileSystemNodes()[lost]
	w.Expect(n.Spec.GivenUp).To(HaveValue(And(HaveField("Lost", BeEmpty()), HaveField("Address", w.ip(lost)))))
	w.Expect(w.forgotten).To(Equal(map[string]bool{w.ip(lost) + "/9435": true}), "no maintenance mode holds while the master lists it as away")
	w.Expect(n.Spec.Members).To(HaveExactElements(And(HaveField("Name", "chunkserver-ssd"), HaveField("Retired", true))), "it is kept as a record")
	w.Expect(w.givingUp(lost)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonNodeGivenUp)))
	w.Expect(w.hasTargetOn(lost)).To(BeFalse())
	w.Expect(*data[2]).To(Equal(disk), "nobody has touched it")
	w.Expect(w.messages()).To(ContainElements(ContainSubstring("goes on without node "+lost),
		And(ContainSubstring("Warning GaveUp"), ContainSubstring(target), ContainSubstring("neither unmounted nor wiped"))))
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)), w.ready().Message)
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(BeZero(), "the spec still names its disk, and nobody minds")
	w.Expect(w.get().Status.Summary).To(HaveValue(And(HaveField("Servers", "3/3"), HaveField("Targets", "2/2"), HaveField("Clients", "2/2"))))
	w.Expect(w.labelsOf(lost)).NotTo(HaveKey(ContainSubstring("chunkserver-ssd")), "no pod starts there when it is back")

	// Its pod stays Terminating, and blocks no restart of others.
	before := w.uids()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config.Storage = v1alpha1.Options{"WORKERS_MAX": "100"}
	})
	w.Expect(w.lives(server.Client, 25)).To(Succeed())
	for name, uid := range w.uids() {
		if strings.Contains(name, "chunkserver") && !strings.HasSuffix(name, lost) {
			w.Expect(before[name]).NotTo(Equal(uid), name+" was not restarted: "+w.condition(v1alpha1.ConditionReconciling).Message)
		}
	}
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))

	c := server.Killable(t, -1)
	w.Expect(w.lives(c, 3)).To(Succeed())
	w.Expect(c.Writes()).To(BeEmpty(), "nothing is left to do")
}

func TestAReplacementJoinsLikeAnyOtherNewNode(t *testing.T) {
	w, data, lost := lostNode(t)
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-n4", Labels: map[string]string{"storage-of": w.namespace}}}
	w.Expect(server.Client.Create(w.ctx, node)).To(Succeed())
	t.Cleanup(func() { _ = server.Client.Delete(context.Background(), node) })
	w.nodes = append(w.nodes, node.Name)
	w.nodeIs(node.Name, corev1.ConditionTrue)
	fresh := w.disk(node.Name, "data")
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].Targets.Devices = references(data[0], data[1], fresh)
	})
	w.looks()
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	w.Expect(w.get().Status.Summary).To(HaveValue(And(HaveField("Servers", "4/4"), HaveField("Targets", "3/3"))))
	w.Expect(fresh.formats).To(Equal(1))
}

func TestADecommissionedNodeThatReturnsIsLeftAloneUntilAPersonWithdrawsTheRequest(t *testing.T) {
	w, data, lost := lostNode(t)
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()
	w.comesBack(lost)
	w.inventory(lost)
	disk := *data[2]
	w.looks()
	w.Expect(w.hasTargetOn(lost)).To(BeFalse())
	w.Expect(*data[2]).To(Equal(disk), "nobody touches it")
	for _, pod := range w.pods() {
		w.Expect(component(&pod) == "chunkserver" && pod.Spec.NodeName == lost).To(BeFalse(), "no server comes to it")
	}
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	w.Expect(w.givingUp(lost).Message).To(And(ContainSubstring("it is back, and none of its servers is started"),
		ContainSubstring("Its disks are left as they are"), ContainSubstring(data[2].id), ContainSubstring("parallelfs.dev/give-up-")))

	w.annotate(lost, v1alpha1.AnnotationGiveUp, "")
	w.looks()
	n := w.fileSystemNodes()[lost]
	w.Expect(n.Spec.GivenUp).To(BeNil())
	w.Expect(n.Spec.Members).To(HaveEach(HaveField("Retired", false)))
	w.Expect(w.givingUp(lost)).To(BeZero())
	disk.mounted = true
	w.Expect(*data[2]).To(Equal(disk), "it serves what it had")
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	w.Expect(w.get().Status.Summary).To(HaveValue(HaveField("Targets", "3/3")))
}

func TestNoNodeIsDecommissionedWhileTheStateOfTheDataIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		how     func(w *world, lost string)
		message string
	}{
		"the master does not answer":              {func(w *world, _ string) { w.alive = false }, "the master does not answer"},
		"an old answer is repeated":               {func(w *world, _ string) { w.replays = true }, "the master does not answer"},
		"another program answers":                 {func(w *world, _ string) { w.forges = true }, "the master does not answer"},
		"MooseFS has not counted":                 {func(w *world, _ string) { w.data = &backend.DataHealth{} }, "has not counted yet"},
		"the operator has just seen that it went": {func(w *world, _ string) {}, "once the node has been away for 5m0s"},
		"it is still online": {func(w *world, lost string) {
			delete(w.dead, lost)
		}, "its chunkserver is online"},
		"it is Ready; to take out a node": {func(w *world, lost string) { w.nodeIs(lost, corev1.ConditionTrue) }, "it is Ready"},
		"another node was meant":          {func(w *world, lost string) { w.annotate(lost, v1alpha1.AnnotationGiveUp, w.nodes[1]) }, "set it to the name of the node"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, lost := lostNode(t)
			w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
			c.how(w, lost)
			looks := 6
			if strings.Contains(c.message, "5m0s") {
				looks = 1
			}
			w.Expect(w.lives(server.Client, looks)).To(Succeed())
			w.Expect(w.fileSystemNodes()[lost].Spec.GivenUp).To(BeNil())
			w.Expect(w.hasTargetOn(lost)).To(BeTrue())
			w.Expect(w.givingUp(lost)).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring(c.message))))
			if !w.dead[lost] {
				return // everything is online
			}
			w.Expect(w.ready().Reason).NotTo(Equal(v1alpha1.ReasonHealthy))
		})
	}
}

func TestTheNodeOfTheMetadataIsNeverDecommissioned(t *testing.T) {
	w, _, _ := lostNode(t)
	w.loses(w.nodes[0])
	w.annotate(w.nodes[0], v1alpha1.AnnotationGiveUp, w.nodes[0])
	w.looks()
	w.Expect(w.fileSystemNodes()[w.nodes[0]].Spec.GivenUp).To(BeNil())
	w.Expect(w.givingUp(w.nodes[0])).To(And(HaveField("Reason", v1alpha1.ReasonGiveUpRefused), HaveField("Message", ContainSubstring("the metadata of the MooseFS master"))))
}

func TestDataWithNoOtherCopyIsNamedAndLostOnlyAfterASecondConfirmation(t *testing.T) {
	w, _, lost := lostNode(t)
	w.data = &backend.DataHealth{Known: true, Missing: 12, Stable: 100, Fewest: 1}
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()
	asks := w.givingUp(lost)
	w.Expect(asks).To(And(HaveField("Reason", v1alpha1.ReasonLossNotAccepted), HaveField("Message", ContainSubstring("12 chunks have no copy left"))))
	w.Expect(w.condition(v1alpha1.ConditionDegraded).Message).To(ContainSubstring("12 chunks have no copy left"))
	_, word, _ := strings.Cut(asks.Message, v1alpha1.AnnotationAcceptLoss+"=")

	w.annotate(lost, v1alpha1.AnnotationAcceptLoss, "yes")
	w.looks()
	w.Expect(w.hasTargetOn(lost)).To(BeTrue(), "a word that was not asked for")
	w.data.Missing = 13
	w.annotate(lost, v1alpha1.AnnotationAcceptLoss, word)
	w.looks()
	w.Expect(w.hasTargetOn(lost)).To(BeTrue(), "more is lost than was accepted")
	w.Expect(w.givingUp(lost).Reason).To(Equal(v1alpha1.ReasonLossNotAccepted))

	w.data.Missing = 12
	w.looks()
	w.Expect(w.fileSystemNodes()[lost].Spec.GivenUp).To(HaveValue(HaveField("Lost", HavePrefix("12 chunks"))))
	w.Expect(w.hasTargetOn(lost)).To(BeFalse())
	w.Expect(w.givingUp(lost).Message).To(ContainSubstring("lost, as was accepted: 12 chunks"))
	w.Expect(w.messages()).To(ContainElement(ContainSubstring("Lost, as was accepted: 12 chunks")))
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionFalse), "files are broken, and the status goes on to say so")
}

func TestAPoolThatWouldHaveFewerNodesThanCopiesNeedsAnotherNodeFirst(t *testing.T) {
	w, _, lost := lostNode(t)
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Copies = 3 })
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()
	w.Expect(w.fileSystemNodes()[lost].Spec.GivenUp).To(BeNil())
	w.Expect(w.givingUp(lost).Message).To(ContainSubstring("storage pool ssd keeps 3 copies on as many nodes, and has 2 without this one"))
}

func TestOperatorsThatAreKilledAfterEveryWriteStillDecommissionANode(t *testing.T) {
	w, data, lost := lostNode(t)
	disk := *data[2]
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	killed := 0
	for {
		err := w.lives(server.Killable(t, 1), 6)
		if err == nil {
			break
		}
		w.Expect(errors.Is(err, apiserver.ErrKilled)).To(BeTrue(), err.Error())
		killed++
		w.Expect(killed).To(BeNumerically("<", 100), "they do not get on")
		if n := w.fileSystemNodes()[lost]; n.Spec.GivenUp == nil {
			w.Expect(w.hasTargetOn(lost)).To(BeTrue(), "nothing goes before it is on record")
		}
	}
	t.Logf("%d operators were killed", killed)
	w.Expect(killed).To(BeNumerically(">", 3))
	w.Expect(w.hasTargetOn(lost)).To(BeFalse())
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	w.Expect(w.get().Status.Summary).To(HaveValue(And(HaveField("Servers", "3/3"), HaveField("Targets", "2/2"))))
	w.Expect(*data[2]).To(Equal(disk), "nobody has touched it")
}

func TestABeeGFSForgetsTheTargetsAndServersOfADecommissionedNode(t *testing.T) {
	w := newWorld(t)
	lost := w.nodes[2]
	w.beeGFS(func(fs *v1alpha1.FileSystem) {
		fs.Spec.StoragePools[0].NodeSelector = v1alpha1.NodeSelector{"storage-of": w.namespace}
	})
	w.settle()
	w.looks()
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	w.loses(lost)
	w.annotate(lost, v1alpha1.AnnotationGiveUp, lost)
	w.looks()
	member := w.fileSystemNodes()[lost].Spec.Members[0]
	asks := w.givingUp(lost)
	w.Expect(asks).To(And(HaveField("Reason", v1alpha1.ReasonLossNotAccepted),
		HaveField("Message", ContainSubstring(fmt.Sprintf("all that is on target %d (/data/ssd0) of pool ssd", member.Targets[0].ID)))))
	w.Expect(w.hive.commands).NotTo(ContainElement(HavePrefix("--remove")))

	_, word, _ := strings.Cut(asks.Message, v1alpha1.AnnotationAcceptLoss+"=")
	w.annotate(lost, v1alpha1.AnnotationAcceptLoss, word)
	w.looks()
	w.Expect(w.hive.commands).To(ContainElements(fmt.Sprintf("--removetarget %d", member.Targets[0].ID),
		And(HavePrefix("--removenode"), HaveSuffix(fmt.Sprint(member.ID)))))
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy), w.ready().Message)
	w.Expect(w.get().Status.Summary).To(HaveValue(HaveField("Targets", "2/2")))
	kept := w.fileSystemNodes()[lost].Spec.Members
	w.Expect(kept).To(HaveExactElements(And(HaveField("ID", member.ID), HaveField("Retired", true), HaveField("Targets", HaveLen(1)))), "its ids are nobody else's")
}
