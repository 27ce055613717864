//go:build envtest

package benchmarkrun

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/lease"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/backendtest"
)

// complete reads the complete results of the run with the name sweep.
func (s *setting) complete(g Gomega) results.Run {
	var cm corev1.ConfigMap
	g.Expect(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-results"}, &cm)).To(Succeed())
	g.Expect(cm.Labels).To(HaveKeyWithValue(v1alpha1.LabelBenchmarkRun, "sweep"))
	document, err := results.Decode(cm.BinaryData[results.FileJSON])
	g.Expect(err).NotTo(HaveOccurred())
	return document
}

// Admission accepts only the types of the product, so the example backend uses the type of the setting's FileSystem.
func TestARunMeasuresAFilesystemOfATypeThatNoControllerNames(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.operator.Backends = backend.SetOf(backendtest.Example{Kind: v1alpha1.MooseFS})
	key := s.makeRun("sweep")
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(run).Message)
	g.Expect(s.ran).To(Equal(once("sweep")))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
}

func TestADaemonThatIsRestartedMakesTheAttemptInvalid(t *testing.T) {
	t.Parallel()
	t.Run("and it is run again", func(t *testing.T) {
		g := NewWithT(t)
		s := newSetting(t, server)
		master := s.makeDaemon()
		s.before = func(job client.Object) {
			if job.GetName() == "sweep-p0-r2" {
				s.restart(master)
			}
		}
		key := s.makeRun("sweep")
		s.settle(key)
		run := s.run(key)
		g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(run).Message)
		want := once("sweep")
		want["sweep-p0-r2-a2"] = 1
		g.Expect(s.ran).To(Equal(want))
		p := run.Status.Points[0]
		g.Expect([]int32{p.Repetitions, p.Attempts}).To(Equal([]int32{2, 3}))
		g.Expect(p.Message).To(Equal(fmt.Sprintf("repetition 2, attempt 1: iozone was disturbed: pod master on node %s was restarted", s.nodeName(0))))
		g.Expect(value(p, "write")).To(Equal("1001.5 kB/s"))
		g.Expect(run.Status.Points[1].Attempts).To(BeZero(), "it is told only where there were more than repetitions")

		attempts := s.complete(g).Points[0].Attempts
		g.Expect(attempts).To(HaveLen(3))
		g.Expect(attempts[1].Invalid).To(ContainSubstring("pod master"))
		g.Expect(attempts[1].Samples).To(BeEmpty())
		var cm corev1.ConfigMap
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-p000"}, &cm)).To(Succeed())
		g.Expect(cm.Data).To(gstruct.MatchAllKeys(gstruct.Keys{
			"rep-1.json": Not(BeEmpty()), "rep-2.attempt-1.json": ContainSubstring(`"invalid"`), "rep-2.json": ContainSubstring(`"attempt":2`),
		}))
	})
	t.Run("until that has happened too often, and the other points go on", func(t *testing.T) {
		g := NewWithT(t)
		s := newSetting(t, server)
		master := s.makeDaemon()
		s.before = func(job client.Object) {
			if turn, _ := turns.TurnOf(job.GetName()); turn.Point == 0 {
				s.restart(master)
			}
		}
		key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) {
			r.Spec.Repetitions, r.Spec.Limits = 1, &v1alpha1.BenchmarkLimits{InvalidRetries: new(int32(1))}
		})
		s.settle(key)
		run := s.run(key)
		g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonPointsFailed))
		g.Expect(run.Status.Points[0].State).To(Equal(v1alpha1.PointInvalid))
		g.Expect(run.Status.Points[0].Message).To(ContainSubstring("iozone was disturbed: pod master"))
		g.Expect(run.Status.Points[1].State).To(Equal(v1alpha1.PointSucceeded))
		g.Expect(run.Status.FailedPoints).To(Equal(int32(1)))
		g.Expect(s.ran).To(HaveKeyWithValue("sweep-p0-r1-a2", 1))
		g.Expect(s.ran).NotTo(HaveKey("sweep-p0-r1-a3"))
		g.Expect(s.announced()).To(ContainElement(HavePrefix("Warning PointInvalid point 0: repetition 1: iozone was disturbed")))
	})
}

func TestAFailureIsTriedAgainAsOftenAsAsked(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.result = func(point, repetition int) outcome {
		if point == 0 && repetition == 1 && s.ran["sweep-p0-r1-a2"] == 0 {
			return outcome{output: "write: Input/output error\n", code: 5}
		}
		return outcome{}
	}
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.Limits = &v1alpha1.BenchmarkLimits{Retries: 1} })
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(run.Status.Points[0].Message).To(Equal("repetition 1, attempt 1: iozone ended with exit code 5"))
	g.Expect(s.ran).To(HaveKeyWithValue("sweep-p0-r1-a2", 1))
}

func TestARunWithPhasesDropsCachesBeforeEach(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.makeAgents()
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) {
		r.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients, Before: v1alpha1.CachesBeforePhases}
		r.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpEach, Repetitions: 1}
	})
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(run).Message)
	g.Expect(s.ran).To(HaveLen(14), "two points with a warm-up and two repetitions of two phases, a check and a clean-up")
	g.Expect(s.ran).To(HaveEach(1))
	g.Expect(s.ran).To(HaveKey("sweep-p1-w1-s1"))
	g.Expect(s.drops).To(Equal(map[string]int{s.nodeName(0): 12}), "before each phase, on the client alone")
	p := run.Status.Points[0]
	g.Expect([]string{value(p, "write"), value(p, "scan")}).To(Equal([]string{"1001.5 kB/s", "1.5 kB/s"}), "the warm-up does not count")
	g.Expect(p.Attempts).To(BeZero())
	g.Expect(p.Command).To(Equal("words 64Ki ; words 64Ki"))
}

func TestNodesWithoutAnAgentAreNamedBeforeTheRunStarts(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients} })
	s.settle(key)
	g.Expect(succeeded(s.run(key))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Reason": Equal(v1alpha1.ReasonPreflightFailed), "Message": ContainSubstring("no agent runs on " + s.nodeName(0)),
	}))
	g.Expect(s.ran).To(BeEmpty())
}

func TestAnImageThatLacksAProgramIsFoundBeforeTheFirstPoint(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.missing = []string{"words"}
	key := s.makeRun("sweep")
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run)).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Status": Equal(metav1.ConditionFalse), "Reason": Equal(v1alpha1.ReasonImageRequired),
		"Message": ContainSubstring("the image iozone:1 lacks the program words, which iozone needs"),
	}))
	g.Expect(meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
	g.Expect(s.ran).To(Equal(map[string]int{"sweep-check": 1}))
	g.Expect(run.Status.Directory).To(BeEmpty(), "nothing was written")

	t.Run("and looked at again after a while", func(t *testing.T) {
		g := NewWithT(t)
		s.missing = nil
		s.clock.SetTime(s.clock.Now().Add(2 * scope.CheckAgain))
		s.settle(key)
		g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	})
}

func TestARunWaitsForTheLeaseOfItsFileSystem(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	fs := &v1alpha1.FileSystem{}
	g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: fileSystemName}, fs)).To(Succeed())
	by, err := lease.Acquire(t.Context(), s.client, s.client, lease.Of(fs), lease.OfFileSystem(fs), s.clock.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(by).To(BeEmpty())
	key := s.makeRun("sweep")
	s.settle(key)
	g.Expect(succeeded(s.run(key))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Reason": Equal(v1alpha1.ReasonFileSystemInUse), "Message": ContainSubstring("FileSystem scratch has the lease"),
	}))
	g.Expect(s.ran).To(BeEmpty())

	g.Expect(lease.Release(t.Context(), s.client, s.client, lease.Of(fs).Key, lease.OfFileSystem(fs))).To(Succeed())
	s.before = func(client.Object) {
		by, err := lease.Acquire(t.Context(), s.client, s.client, lease.Of(fs), lease.OfFileSystem(fs), s.clock.Now())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(by).To(Equal("BenchmarkRun sweep"), "a change of the filesystem waits while it is measured")
	}
	s.settle(key)
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	by, err = lease.Acquire(t.Context(), s.client, s.client, lease.Of(fs), lease.OfFileSystem(fs), s.clock.Now())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(by).To(BeEmpty(), "the lease is free when the run is over")
}

func TestAQueueDecidesWhenAJobRuns(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.holds = true
	s.result = func(_, repetition int) outcome {
		return outcome{hangs: repetition == 1 && s.ran["sweep-p0-r1"] == 1 && s.ran["sweep-p0-r1-a2"] == 0, output: "write 5 kB/s\n"}
	}
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.QueueName, r.Spec.Sweep = "lab", nil })
	s.settle(key)
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonQueued))

	s.clock.SetTime(s.clock.Now().Add(24 * time.Hour))
	s.settle(key)
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonQueued), "the time in a queue does not count")
	s.clock.SetTime(time.Now())

	s.holds = false
	s.settle(key)
	g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonRunning))

	var job batchv1.Job
	g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-p0-r1"}, &job)).To(Succeed())
	g.Expect(job.Annotations).To(HaveKey(children.AnnotationAdmitted))
	job.Spec.Suspend = new(true)
	g.Expect(s.client.Update(t.Context(), &job)).To(Succeed())
	s.holds = true
	g.Expect(s.reconcile(key)).To(Succeed())
	s.holds = false
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(run).Message)
	g.Expect(run.Status.Points[0].Message).To(Equal("repetition 1, attempt 1: iozone was evicted from its queue"))
	g.Expect(s.ran).To(HaveKeyWithValue("sweep-p0-r1-a2", 1))
}

func TestAQuotaThatKeepsPodsFromBeingMadeIsNoFailure(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep")
	for range 6 { // until the first job exists; the cluster creates no pod for it
		g.Expect(s.reconcile(key)).To(Succeed())
		if len(s.jobs()) > 0 && s.jobs()[0] != "sweep-check" {
			break
		}
		s.play()
	}
	for s.jobs()[0] == "sweep-check" || len(s.jobs()) == 0 {
		g.Expect(s.reconcile(key)).To(Succeed())
	}
	g.Expect(s.jobs()).To(Equal([]string{"sweep-p0-r1"}))
	g.Expect(s.client.Create(t.Context(), &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: s.namespace, Name: "sweep-p0-r1.1"},
		InvolvedObject: corev1.ObjectReference{Kind: "Job", Namespace: s.namespace, Name: "sweep-p0-r1"},
		Type:           corev1.EventTypeWarning, Reason: "FailedCreate", LastTimestamp: metav1.NewTime(time.Now().Add(time.Minute)),
		Message: `pods "sweep-p0-r1-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`,
	})).To(Succeed())
	now := s.clock.Now()
	s.clock.SetTime(now.Add(time.Hour))
	g.Expect(s.reconcile(key)).To(Succeed())
	g.Expect(succeeded(s.run(key))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Reason": Equal(v1alpha1.ReasonQuotaExceeded), "Message": ContainSubstring("exceeded quota: small"),
	}))
	s.clock.SetTime(now)
	s.settle(key) // the quota has room again
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(run.Status.Points[0].Attempts).To(BeZero(), "no attempt is lost")
}

func TestCompleteResultsSayWhatTheyWereMeasuredOnAndWith(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep")
	s.settle(key)
	run := s.run(key)
	document := s.complete(g)
	g.Expect(run.Status.Results).To(Equal("sweep-results"))
	g.Expect(document.Points).To(HaveLen(2))
	for i, p := range document.Points {
		g.Expect(p.State).To(Equal(v1alpha1.PointSucceeded))
		g.Expect(p.Attempts).To(HaveLen(2))
		g.Expect(p.Metrics[0].Value).To(Equal(float64(i+1)*1000 + 1.5))
		g.Expect(p.Command).To(Equal([]string{"words", []string{"64Ki", "1Mi"}[i]}))
		g.Expect(p.Placement).To(Equal("1 on 1 client"))
	}
	g.Expect(document.Ended).NotTo(BeZero())
	found := run.Status.Provenance
	g.Expect(found.FileSystem).To(HavePrefix("MooseFS 4.57.5, "))
	g.Expect(found.Image).To(Equal("iozone:1"))
	g.Expect(found.ImageID).To(Equal("sha256:1234"))
	g.Expect(found.ToolVersion).To(Equal("words 1.0"))
	g.Expect(found.Clients).To(HaveLen(1), "of two clients, one process takes part on one")
	g.Expect(found.Clients[0].CPUs).To(Equal(int32(8)))
	text, err := json.Marshal(document.Provenance.FileSystemSpec.Type)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(text)).To(Equal(`"MooseFS"`))
	g.Expect(run.Status.Best).To(ContainElement(v1alpha1.BestPoint{Name: "write", Unit: "kB/s", Value: "2001.5", Index: 1}))

	t.Run("and are compared with those of an earlier run", func(t *testing.T) {
		g := NewWithT(t)
		s.result = func(point, repetition int) outcome {
			return outcome{output: fmt.Sprintf("write %d00%d kB/s\nread 7 kB/s\n", 2*(point+1), repetition)}
		}
		again := s.makeRun("again", func(r *v1alpha1.BenchmarkRun) { r.Spec.Baseline = &v1alpha1.BaselineSpec{Run: "sweep"} })
		s.settle(again)
		run := s.run(again)
		g.Expect(run.Status.Baseline).To(ContainSubstring("2 better"))
		g.Expect(run.Status.Points[0].Metrics[0].Baseline).To(ContainSubstring("1001.5"))

		s.change(again, func(r *v1alpha1.BenchmarkRun) { r.Spec.Baseline.Run = "nothing" })
		s.settle(again)
		g.Expect(s.run(again).Status.Baseline).To(ContainSubstring("BenchmarkRun nothing has no results"), "a baseline may be changed after the end")
		g.Expect(s.run(again).Status.Points[0].Metrics[0].Baseline).To(BeEmpty())
		g.Expect(s.run(again).Status.CompletionTime).To(Equal(run.Status.CompletionTime))
	})
	t.Run("and taken elsewhere when that is asked for, even later", func(t *testing.T) {
		g := NewWithT(t)
		s.change(key, func(r *v1alpha1.BenchmarkRun) {
			r.Spec.Results = &v1alpha1.ResultsSpec{PersistentVolumeClaim: &v1alpha1.ResultsClaim{Name: "lab"}}
		})
		s.settle(key)
		g.Expect(s.ran).To(HaveKeyWithValue("sweep-export", 1))
		g.Expect(s.run(key).Status.Exported).To(Equal("PersistentVolumeClaim lab, directory sweep-" + string(run.UID[:8])))
		g.Expect(s.jobs()).To(BeEmpty())
	})
}

func TestOnlyTheBaselinesThatWereReadLastAreKept(t *testing.T) {
	g, s := NewWithT(t), newSetting(t, server)
	packed, err := results.Encode(results.Run{Name: "before"})
	g.Expect(err).NotTo(HaveOccurred())
	for i := range baselinesKept + 1 {
		name := fmt.Sprintf("before-%d", i)
		g.Expect(s.client.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: results.ConfigMapOfRun(name)},
			BinaryData: map[string][]byte{results.FileJSON: packed},
		})).To(Succeed())
		w := &scope.Scope{Run: &v1alpha1.BenchmarkRun{
			ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace}, Spec: v1alpha1.BenchmarkRunSpec{Baseline: &v1alpha1.BaselineSpec{Run: name}},
		}}
		g.Expect(s.operator.gatherBaseline(t.Context(), w)).To(Succeed())
		g.Expect(w.Baseline).To(HaveField("Name", "before"), w.BaselineProblem)
	}
	g.Expect(s.operator.baselines.Len()).To(Equal(baselinesKept))
}
