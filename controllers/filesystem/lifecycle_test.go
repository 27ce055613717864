//go:build envtest

package filesystem_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

func TestAFileSystemIsReadyOnlyWhenTheFilesystemItselfReportsIt(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.settle()
	w.Expect(w.pods()).To(HaveLen(8), "one master, three chunkservers, three clients, all of them Ready, and the job's")
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonStarting)))
	w.Expect(w.condition(v1alpha1.ConditionReconciling).Status).To(Equal(metav1.ConditionTrue))

	w.alive = true
	w.settle()
	fs := w.get()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonHealthy)))
	w.Expect(w.condition(v1alpha1.ConditionReconciling)).To(BeZero())
	w.Expect(w.condition(v1alpha1.ConditionEvaluationOnly).Status).To(Equal(metav1.ConditionTrue))
	w.Expect(fs.Status.ObservedGeneration).To(Equal(fs.Generation))
	w.Expect(*fs.Status.Summary).To(Equal(v1alpha1.FileSystemSummary{Servers: "4/4", Targets: "3/3", Clients: "3/3", Capacity: "3TiB", Used: "0B"}))
	w.Expect(fs.Status.Metadata.Node).To(Equal(w.nodes[0]))
	w.Expect(fs.Status.Management.Address).To(Equal("10.9.0.1:9421"))
}

func TestANoOpReconcileWritesNothing(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	c := server.Killable(t, -1)
	for range 5 {
		w.Expect(w.reconcile(c)).To(Succeed())
	}
	t.Logf("API writes of 5 no-op reconciles: %d", len(c.Writes()))
	w.Expect(c.Writes()).To(BeEmpty())
}

func TestAnOperatorThatIsKilledAfterAnyWriteEndsInTheSameState(t *testing.T) {
	t.Parallel()
	undisturbed := anotherWorld(t)
	undisturbed.fileSystem(nil)
	undisturbed.alive = true
	undisturbed.settle()
	want := undisturbed.children()
	undisturbed.forget()

	for _, each := range inEach {
		t.Run(fmt.Sprintf("after each %d", each), func(t *testing.T) {
			w := newWorld(t)
			w.fileSystem(nil)
			w.alive = true
			w.Expect(w.settleByDying(each, nil)).To(BeNumerically(">", 5))
			w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
			w.Expect(w.children()).To(Equal(want))
			w.forget()
		})
	}
}

func TestThePermissionToInitializeIsGrantedOnce(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.settle()
	w.Expect(w.masterMayInitialize()).To(BeTrue(), "nothing was initialized yet")
	w.Expect(w.get().Status.Metadata.Initialized).To(BeNil())

	w.alive = true
	w.settle()
	w.Expect(w.get().Status.Metadata.Initialized).NotTo(BeNil(), "a master that answers has its metadata, and that is recorded")
	w.Expect(w.masterMayInitialize()).To(BeFalse())

	w.alive = false
	w.settle()
	w.Expect(w.masterMayInitialize()).To(BeFalse(), "a master that is gone is no reason to initialize again")
	w.Expect(w.ready().Reason).NotTo(Equal(v1alpha1.ReasonStarting))
}

func TestALostTargetIsNamedAndItsReturnIsNoticed(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	lost := w.nodes[1] + ":/data/ssd0"
	w.lost = []string{lost}
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonDegradedService)),
		"every chunk has a copy on another target, as MooseFS says")
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", v1alpha1.ReasonTargetsMissing),
		HaveField("Message", And(ContainSubstring("1 of 3 targets"), ContainSubstring(lost)))))
	w.Expect(w.get().Status.Summary.Targets).To(Equal("2/3"))

	w.lost = nil
	w.settle()
	w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonHealthy))
	w.Expect(w.condition(v1alpha1.ConditionDegraded)).To(BeZero())
}

func TestANodeThatLosesItsLabelKeepsItsData(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	for _, name := range w.nodes {
		var node corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
		delete(node.Labels, "master-of")
		if name == w.nodes[2] {
			delete(node.Labels, "storage-of")
			delete(node.Labels, podspec.NodeLabel(w.get(), "chunkserver-ssd"))
		}
		w.Expect(server.Client.Update(w.ctx, &node)).To(Succeed())
	}
	w.settle()
	w.Expect(w.poolNodes("ssd")).To(Equal(w.nodes), "data is there still")
	w.Expect(w.get().Status.Summary.Servers).To(Equal("4/4"))
	w.Expect(w.get().Status.Summary.Clients).To(Equal("2/2"), "a client holds nothing: it goes with its label")
	w.Expect(w.labelsOf(w.nodes[2])).To(HaveKey(podspec.NodeLabel(w.get(), "chunkserver-ssd")), "the operator's own label came back")
}

func (w *world) labelsOf(name string) map[string]string {
	var node corev1.Node
	w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: name}, &node)).To(Succeed())
	return node.Labels
}

func TestBadInputStopsNothingThatRuns(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		change  func(w *world, fs *v1alpha1.FileSystem)
		reason  string
		message string
	}{
		"an option that the operator owns": {
			change: func(_ *world, fs *v1alpha1.FileSystem) {
				fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Metadata: v1alpha1.Options{"DATA_PATH": "/elsewhere"}}
			},
			reason: v1alpha1.ReasonOptionRefused, message: "spec.moosefs.config.metadata.DATA_PATH is set by the operator itself",
		},
		"an option that MooseFS does not have": {
			change: func(_ *world, fs *v1alpha1.FileSystem) {
				fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"HDD_TEST_FREQENCY": "1"}}
			},
			reason: v1alpha1.ReasonOptionRefused, message: "spec.moosefs.config.storage.HDD_TEST_FREQENCY is no option of mfschunkserver",
		},
		"more copies than nodes": {
			change: func(_ *world, fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Copies = 4 },
			reason: v1alpha1.ReasonInvalidSpec, message: "wants 4 copies",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fileSystem(nil)
			w.alive = true
			w.settle()
			before := w.children()
			w.change(func(fs *v1alpha1.FileSystem) { c.change(w, fs) })
			w.settle()
			w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "it serves, and Ready is about service")
			w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Status", metav1.ConditionTrue), HaveField("Reason", c.reason), HaveField("Message", ContainSubstring(c.message))))
			w.Expect(w.children()).To(Equal(before))
			w.Expect(w.get().Status.Summary.Targets).To(Equal("3/3"), "what runs is still observed")
		})
	}
}

func TestAMistypedPoolCanBeRemovedUntilItHasASlot(t *testing.T) {
	w := newWorld(t)
	w.alive = true
	w.fileSystem(nil)
	w.settle()
	before := w.children()
	add := func(selector v1alpha1.NodeSelector) {
		w.change(func(fs *v1alpha1.FileSystem) {
			pool := *fs.Spec.StoragePools[0].DeepCopy()
			pool.Name, pool.NodeSelector, pool.Targets.Directories = "tape", selector, []v1alpha1.DirectoryPath{"/data/tape0"}
			fs.Spec.StoragePools = append(fs.Spec.StoragePools, pool)
		})
		w.settle()
	}
	remove := func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools = fs.Spec.StoragePools[:1] }
	add(v1alpha1.NodeSelector{"strage-of": w.namespace})
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue), "it serves, and Ready is about service")
	w.Expect(w.condition(v1alpha1.ConditionStalled)).To(And(HaveField("Reason", v1alpha1.ReasonNoNodes),
		HaveField("Message", ContainSubstring(`storage pool "tape"`))))
	w.Expect(w.children()).To(Equal(before))
	w.Expect(w.get().Status.Summary.Targets).To(Equal("3/3"), "what runs is still observed")
	w.change(remove)
	w.settle()
	w.Expect(w.condition(v1alpha1.ConditionStalled).Status).NotTo(Equal(metav1.ConditionTrue))
	w.Expect(w.get().Status.StoragePools).To(ConsistOf(HaveField("Name", "ssd")))

	add(v1alpha1.NodeSelector{"storage-of": w.namespace})
	w.Expect(w.get().Status.StoragePools).To(ContainElement(And(HaveField("Name", "tape"), HaveField("Slot", int32(1)))),
		"the mistyped pool has used no slot up")
	fs := w.get()
	remove(fs)
	w.Expect(server.Client.Update(w.ctx, fs)).To(MatchError(ContainSubstring("a storage pool can't be removed once it has a slot")))
}

func TestTwoNodesForTheOneMasterAreRefused(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MetadataServers.NodeSelector = v1alpha1.NodeSelector{"storage-of": w.namespace}
	})
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Reason", v1alpha1.ReasonTooManyNodes), HaveField("Message", ContainSubstring("exactly one active master"))))
	w.Expect(w.sets()).To(BeEmpty())
	w.Expect(w.get().Status.Metadata).To(BeNil(), "nothing was recorded, so the next spec may choose any node")
}

func TestANodeWithAddressesThatTheFilesystemCantUseJoinsNothing(t *testing.T) {
	w := newWorld(t)
	addresses := func(node string, all ...string) {
		t.Helper()
		var n corev1.Node
		w.Expect(server.Client.Get(w.ctx, client.ObjectKey{Name: node}, &n)).To(Succeed())
		n.Status.Addresses = nil
		for _, a := range all {
			n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a})
		}
		w.Expect(server.Client.Status().Update(w.ctx, &n)).To(Succeed())
	}
	addresses(w.nodes[0], "fd00::1", w.ip(w.nodes[0]))
	addresses(w.nodes[2], "fd00::3")
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonNoAddress),
		HaveField("Message", HavePrefix("node "+w.nodes[2]+" has no IPv4 InternalIP, only fd00::3, and MooseFS 4.57.5 has no other addresses"))))
	w.Expect(w.sets()).To(BeEmpty())
	w.Expect(w.get().Status.Metadata).To(BeNil(), "nothing is recorded")

	addresses(w.nodes[2], "fd00::3", w.ip(w.nodes[2]))
	w.settle()
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue), w.ready().Message)
	w.Expect(w.get().Status.Management.Address).To(HavePrefix(w.ip(w.nodes[0])+":"), "the IPv4 address, although it is the second")
}

func TestAChildOfAnotherOwnerIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "scratch-moosefs"}, Data: map[string]string{"mine": "yes"}}
	w.Expect(server.Client.Create(w.ctx, foreign)).To(Succeed())
	w.fileSystem(nil)
	w.Expect(w.reconcile(server.Client)).To(MatchError(ContainSubstring("scratch-moosefs exists and does not belong to scratch")))
	w.Expect(server.Client.Get(w.ctx, client.ObjectKeyFromObject(foreign), foreign)).To(Succeed())
	w.Expect(foreign.Data).To(Equal(map[string]string{"mine": "yes"}))
}

func TestAChangedOptionRestartsOnePodAtATime(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	uids := func() map[string]string {
		out := map[string]string{}
		for _, p := range w.pods() {
			out[p.Name] = string(p.UID)
		}
		return out
	}
	before := uids()
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
	})
	restarted := map[string]bool{}
	for range 10 {
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		w.Expect(len(before)-len(w.pods())).To(BeNumerically("<=", 1), "never more than one pod is missing")
		w.runPods()
		for name, uid := range uids() {
			if uid != before[name] {
				restarted[name] = true
			}
		}
	}
	for name := range before {
		w.Expect(restarted[name]).To(Equal(regexp.MustCompile(`^scratch-chunkserver-ssd\.`).MatchString(name)), name)
	}
	w.Expect(w.ready().Status).To(Equal(metav1.ConditionTrue))
}

func TestTheNextRestartWaitsForAnAnswerAfterTheLastOneAndTheStatusIsNotHealthyMeanwhile(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	uids := func() map[types.UID]bool {
		out := map[types.UID]bool{}
		for _, p := range w.pods() {
			if component(&p) == "chunkserver" && p.DeletionTimestamp.IsZero() {
				out[p.UID] = true
			}
		}
		return out
	}
	before := uids()
	restarted := func() int {
		n := 0
		for uid := range before {
			if !uids()[uid] {
				n++
			}
		}
		return n
	}
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
	})
	// Another program repeats an answer of the filesystem from before any restart, with a valid signature, in which all servers are online.
	w.replays = true
	c := server.Killable(t, -1)
	for range 6 {
		w.Expect(w.reconcile(c)).To(Succeed())
		if restarted() > 0 {
			w.Expect(w.ready()).To(And(Not(HaveField("Reason", v1alpha1.ReasonHealthy)), Not(HaveField("Status", metav1.ConditionTrue))))
		}
		w.runPods()
	}
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(restarted()).To(Equal(0), "no answer was asked now")
	w.Expect(w.ready()).To(And(HaveField("Reason", v1alpha1.ReasonProbeUnreachable), HaveField("Message", ContainSubstring("was given to an earlier question"))))
	w.replays = false
	w.Expect(w.reconcile(c)).To(Succeed())
	w.Expect(restarted()).To(Equal(1))
	w.Expect(w.ready()).To(HaveField("Reason", v1alpha1.ReasonRestarting))
	w.runPods()
	w.replays = true
	for range 3 {
		w.Expect(w.reconcile(c)).To(Succeed())
		w.runPods()
	}
	w.Expect(restarted()).To(Equal(1), "what the filesystem said before is no proof that the first one is back")
	w.Expect(w.ready()).NotTo(HaveField("Status", metav1.ConditionTrue))
	w.Expect(w.get().Status.Summary.Servers).NotTo(Equal("4/4"))
	w.replays = false
	w.settle()
	w.Expect(restarted()).To(Equal(3))
	w.Expect(w.ready()).To(HaveField("Reason", v1alpha1.ReasonHealthy))
}

func TestAPodThatStartsDuringAQueryDelaysTheNextRestart(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.finishJobs()
	w.settle()
	chunkservers := func() []corev1.Pod {
		return slices.DeleteFunc(w.pods(), func(p corev1.Pod) bool { return component(&p) != "chunkserver" || p.DeletionTimestamp != nil })
	}
	w.change(func(fs *v1alpha1.FileSystem) {
		fs.Spec.MooseFS.Config = v1alpha1.MooseFSConfig{Storage: v1alpha1.Options{"WORKERS_MAX": "100"}}
	})
	last := chunkservers()[2]
	w.meanwhile = func() {
		// All are listed as online at the query; then the kubelet restarts one.
		last.Status.ContainerStatuses[0].RestartCount++
		w.Expect(server.Client.Status().Update(w.ctx, &last)).To(Succeed())
	}
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.meanwhile).To(BeNil(), "the filesystem was asked")
	w.Expect(chunkservers()).To(HaveLen(3), "nobody has said yet that the one that was started is back")
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(chunkservers()).To(HaveLen(2))
}

func TestAProgramOnTheProbesPortWithoutTheSecretIsNotBelieved(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.forges = true
	w.settle()
	w.Expect(w.get().Status.Metadata.Initialized).To(BeNil(), "nobody who may be believed has said so")
	w.Expect(w.ready()).NotTo(HaveField("Status", metav1.ConditionTrue))
	w.Expect(w.ready().Message).To(And(ContainSubstring("is not signed with this filesystem's secret"), ContainSubstring("ss -lntp 'sport = :9427'")))
	w.Expect(w.get().Status.Summary.Targets).To(HavePrefix("0/"))
	w.forges = false
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue))
	w.forges = true
	w.settle()
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonProbeUnreachable)))
	w.Expect(w.get().Status.Summary.Targets).To(HavePrefix("0/"))
}

func TestADeletedSecretOfTheProbeIsReportedAndCreatedAgain(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	name := client.ObjectKey{Namespace: w.namespace, Name: "scratch-probe"}
	var before, after corev1.Secret
	w.Expect(server.Client.Get(w.ctx, name, &before)).To(Succeed())
	w.Expect(len(before.Data["key"])).To(BeNumerically(">=", 26), "130 bits, as crypto/rand.Text makes them")
	pods := w.pods()
	w.Expect(server.Client.Delete(w.ctx, &before)).To(Succeed())
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.ready()).To(And(HaveField("Status", metav1.ConditionUnknown), HaveField("Reason", v1alpha1.ReasonProbeUnreachable),
		HaveField("Message", ContainSubstring("there is no Secret scratch-probe with what the probe signs its answers with; it is made now"))))
	w.Expect(server.Client.Get(w.ctx, name, &after)).To(Succeed())
	w.Expect(after.Data["key"]).NotTo(Equal(before.Data["key"]))
	w.Expect(w.ready().Message).NotTo(ContainSubstring(string(after.Data["key"])))
	w.settle()
	w.Expect(w.ready()).To(HaveField("Status", metav1.ConditionTrue))
	same := func(list []corev1.Pod) []types.UID {
		var out []types.UID
		for _, p := range list {
			out = append(out, p.UID)
		}
		return out
	}
	w.Expect(same(w.pods())).To(ConsistOf(same(pods)), "no daemon is restarted for it")
}

func TestAJobWithoutAVisibleEffectIsRunAgain(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.settle()
	first := w.jobs()[0]
	long := metav1.NewTime(time.Now().Add(-time.Hour))
	first.Status.StartTime, first.Status.CompletionTime, first.Status.Succeeded = &long, &long, 1
	first.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: long},
		{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: long},
	}
	w.Expect(server.Client.Status().Update(w.ctx, &first)).To(Succeed())
	w.settle()
	w.Expect(w.jobs()[0].UID).To(Equal(first.UID), "nobody knows what the classes are while the master does not answer")

	w.alive = true
	w.change(func(fs *v1alpha1.FileSystem) { fs.Spec.StoragePools[0].Copies = 1 })
	w.Expect(w.reconcile(server.Client)).To(Succeed())
	w.Expect(w.jobs()).To(HaveLen(1))
	w.Expect(w.jobs()[0].Name).NotTo(Equal(first.Name), "another placement is another job")
}

func TestDeletionStopsClientsFirstAndTheMasterLast(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())

	var order []string
	for range 20 {
		before := len(w.sets())
		w.Expect(w.reconcile(server.Client)).To(Succeed())
		if after := w.sets(); len(after) < before {
			var left []string
			for _, s := range after {
				left = append(left, s.Labels[v1alpha1.LabelComponent])
			}
			order = append(order, fmt.Sprint(left))
			// Pods end some time after their DaemonSet. Meanwhile nothing else is stopped.
			w.Expect(w.reconcile(server.Client)).To(Succeed())
			w.Expect(w.sets()).To(HaveLen(len(after)))
			w.Expect(w.ready().Reason).To(Equal(v1alpha1.ReasonDeleting))
			w.Expect(w.ready().Message).To(ContainSubstring("data is kept"))
			w.runPods()
		}
		if err := server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}); apierrors.IsNotFound(err) {
			w.Expect(order).To(Equal([]string{"[chunkserver master]", "[master]", "[]"}))
			for _, node := range w.nodes {
				w.Expect(w.labelsOf(node)).NotTo(HaveKey(ContainSubstring(podspec.NodeLabelDomain)), "nothing of it is left on the nodes")
			}
			return
		}
	}
	t.Fatal("the FileSystem is still there")
}

func TestANodeThatIsDownDoesNotTrapADeletion(t *testing.T) {
	w := newWorld(t)
	w.fileSystem(nil)
	w.alive = true
	w.settle()
	for _, name := range w.nodes {
		w.nodeIs(name, corev1.ConditionUnknown)
	}
	w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
	for range 10 {
		w.Expect(w.reconcile(server.Client)).To(Succeed()) // no pod ends, because no kubelet runs there
	}
	w.Expect(apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))).To(BeTrue())
}

func TestADeletionThatIsKilledAfterAnyWriteEndsAsWell(t *testing.T) {
	t.Parallel()
	for _, each := range inEach {
		t.Run(fmt.Sprintf("after each %d", each), func(t *testing.T) {
			w := newWorld(t)
			w.fileSystem(nil)
			w.alive = true
			w.settle()
			w.Expect(server.Client.Delete(w.ctx, w.get())).To(Succeed())
			dying, killed := server.Killable(t, each), 0
			for range 40 {
				if err := w.reconcile(dying); err != nil {
					w.Expect(errors.Is(err, apiserver.ErrKilled)).To(BeTrue(), err.Error())
					dying = server.Killable(t, each)
					killed++
				}
				w.runPods()
			}
			w.Expect(killed).To(BeNumerically(">", 1))
			w.Expect(apierrors.IsNotFound(server.Client.Get(w.ctx, w.key(), &v1alpha1.FileSystem{}))).To(BeTrue())
			w.Expect(w.pods()).To(BeEmpty())
		})
	}
}
