//go:build envtest

package benchmarkrun

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/test/envtest/apiserver"
	"parallelfs.dev/operator/test/places"
)

func succeeded(run *v1alpha1.BenchmarkRun) metav1.Condition {
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func value(p v1alpha1.PointStatus, metric string) string {
	for _, m := range p.Metrics {
		if m.Name == metric {
			return m.Value + " " + m.Unit
		}
	}
	return ""
}

func (s *setting) jobs() []string {
	var jobs batchv1.JobList
	var mpiJobs mpiv2.MPIJobList
	s.list(&jobs)
	s.list(&mpiJobs)
	var names []string
	for _, j := range jobs.Items {
		names = append(names, j.Name)
	}
	for _, j := range mpiJobs.Items {
		names = append(names, j.Name)
	}
	return names
}

// once returns the expected counts if every repetition of the run ran once, and the files were removed once.
func once(run string) map[string]int {
	return map[string]int{
		run + "-check": 1, run + "-p0-r1": 1, run + "-p0-r2": 1, run + "-p1-r1": 1, run + "-p1-r2": 1, run + "-clean": 1,
	}
}

func TestARunMeasuresEveryPointAndLeavesNothingBehind(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep")
	s.settle(key)

	run := s.run(key)
	g.Expect(succeeded(run)).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Status": Equal(metav1.ConditionTrue), "Reason": Equal(v1alpha1.ReasonAllPointsSucceeded),
	}))
	g.Expect(run.Status.Conditions).To(HaveLen(1), "a run that has ended is neither reconciling nor stalled")
	g.Expect(run.Status.Progress).To(Equal("2/2"))
	g.Expect(run.Status.Current).To(BeEmpty())
	g.Expect(run.Status.ActiveSeconds).To(Equal(int64(40)))
	g.Expect(run.Status.Directory).To(BeEmpty())
	g.Expect(run.Status.StartTime).NotTo(BeNil())
	g.Expect(run.Status.CompletionTime).NotTo(BeNil())
	g.Expect(run.Status.ObservedGeneration).To(Equal(run.Generation))
	g.Expect(run.Status.Points).To(HaveLen(2))
	for i, write := range []string{"1001.5 kB/s", "2001.5 kB/s"} { // the repetitions print 1001 and 1002, 2001 and 2002
		p := run.Status.Points[i]
		g.Expect(p.State).To(Equal(v1alpha1.PointSucceeded))
		g.Expect(p.Repetitions).To(Equal(int32(2)))
		g.Expect(value(p, "write")).To(Equal(write))
		g.Expect(value(p, "read")).To(Equal("7 kB/s"))
		g.Expect(p.Output).To(Equal(fmt.Sprintf("sweep-p%03d", i)))
	}
	g.Expect(run.Status.Points[1].Parameters).To(Equal([]v1alpha1.PointParameter{{Name: "iozone.recordSize", Value: "1Mi"}}))
	g.Expect(s.ran).To(Equal(once("sweep")))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
	g.Expect(s.announced()).To(ConsistOf(
		HavePrefix("Normal Started 2 points, each run 2 times"), Equal("Normal AllPointsSucceeded all 2 points have a result")))

	t.Run("the raw output of a repetition is kept, compressed, and goes with the run", func(t *testing.T) {
		g := NewWithT(t)
		var cm corev1.ConfigMap
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-p001"}, &cm)).To(Succeed())
		g.Expect(metav1.IsControlledBy(&cm, run)).To(BeTrue())
		unpacked, err := gzip.NewReader(bytes.NewReader(cm.BinaryData["rep-2.txt.gz"]))
		g.Expect(err).NotTo(HaveOccurred())
		text, err := io.ReadAll(unpacked)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(text)).To(Equal("parallelfs: ready\nwrite 2002 kB/s\nread 7 kB/s\n"))
		var entry turns.Record
		g.Expect(json.Unmarshal([]byte(cm.Data["rep-2.json"]), &entry)).To(Succeed())
		g.Expect(entry.Nodes).To(Equal([]string{s.nodeName(0)}))
		g.Expect(entry.Command).To(Equal([]string{"words", "1Mi"}))
		g.Expect(entry.Duration()).To(Equal(10 * time.Second))
	})
	t.Run("a look at a run that has ended writes nothing", func(t *testing.T) {
		before := s.line.writes
		NewWithT(t).Expect(s.reconcile(key)).To(Succeed())
		NewWithT(t).Expect(s.line.writes - before).To(BeZero())
	})
}

func TestADistributedRunIsAnMPIJobOverItsClients(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	var seen []mpiv2.MPIJob
	s.result = func(int, int) outcome {
		var jobs mpiv2.MPIJobList
		s.list(&jobs)
		seen = append(seen, jobs.Items...)
		return outcome{}
	}
	key := s.makeRun("wide", func(r *v1alpha1.BenchmarkRun) {
		r.Spec.IOzone.Mode, r.Spec.Clients.Count, r.Spec.Processes = v1alpha1.IOzoneDistributed, 2, 4
	})
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded), succeeded(run).Message)
	g.Expect(value(run.Status.Points[1], "write")).To(Equal("2001.5 kB/s"))
	g.Expect(s.ran).To(Equal(once("wide")))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
	g.Expect(seen).To(HaveLen(4), "one MPIJob at a time")
	g.Expect(run.Status.Points[0].Placement).To(Equal("4 on 2 clients (2 each)"))
	job := seen[0]
	g.Expect(*job.Spec.SlotsPerWorker).To(Equal(int32(2)))
	g.Expect(*job.Spec.RunPolicy.BackoffLimit).To(BeZero())
	for _, r := range job.Spec.MPIReplicaSpecs {
		g.Expect(r.RestartPolicy).To(Equal(mpiv2.RestartPolicyNever))
		g.Expect(r.Template.Labels).To(HaveKeyWithValue(v1alpha1.LabelManagedBy, v1alpha1.ManagedBy), "the cache of the manager holds only such pods")
		g.Expect(r.Template.Labels).To(HaveKeyWithValue(v1alpha1.LabelBenchmarkRun, "wide"))
	}
	var cm corev1.ConfigMap
	g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "wide-p000"}, &cm)).To(Succeed())
	var entry turns.Record
	g.Expect(json.Unmarshal([]byte(cm.Data["rep-1.json"]), &entry)).To(Succeed())
	g.Expect(entry.Nodes).To(Equal([]string{s.nodeName(0), s.nodeName(1)}))
}

// outcomeOf returns the part of the status that must be the same however often the operator was killed.
func outcomeOf(run *v1alpha1.BenchmarkRun) v1alpha1.BenchmarkRunStatus {
	status := *run.Status.DeepCopy()
	status.StartTime, status.CompletionTime = nil, nil
	for i := range status.Conditions {
		status.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	for i := range status.Points {
		status.Points[i].StartTime, status.Points[i].CompletionTime = nil, nil
	}
	if status.Provenance != nil {
		status.Provenance.FileSystem, status.Provenance.Clients = "", nil // each test has a FileSystem of its own
	}
	return status
}

func TestAnOperatorThatIsKilledAfterAnyWriteEndsInTheSameState(t *testing.T) {
	t.Parallel()
	for name, asked := range map[string]func(*v1alpha1.BenchmarkRun){
		"with an MPIJob for each of two points": func(r *v1alpha1.BenchmarkRun) {
			r.Spec.IOzone.Mode, r.Spec.Clients.Count, r.Spec.Repetitions = v1alpha1.IOzoneDistributed, 2, 1
		},
		"with a warm-up and two phases, before each of which caches are dropped": func(r *v1alpha1.BenchmarkRun) {
			r.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients, Before: v1alpha1.CachesBeforePhases}
			r.Spec.WarmUp = &v1alpha1.WarmUpSpec{Of: v1alpha1.WarmUpFirst, Repetitions: 1}
			r.Spec.Sweep, r.Spec.Repetitions = nil, 1
		},
	} {
		t.Run(name, func(t *testing.T) {
			whole := newSetting(t, server)
			whole.makeAgents()
			key := whole.makeRun("sweep", asked)
			whole.settle(key)
			want := outcomeOf(whole.run(key))
			NewWithT(t).Expect(succeeded(whole.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
			for _, n := range places.Kills.Of(t, whole.line.writes) {
				t.Run(fmt.Sprintf("killed after %d writes", n), func(t *testing.T) {
					g := NewWithT(t)
					s := newSetting(t, server)
					s.makeAgents()
					key := s.makeRun("sweep", asked)
					s.line.limit = n
					for s.reconcile(key) == nil {
						s.play()
					}
					s.play()
					s.line.limit = -1
					s.settle(key)
					g.Expect(outcomeOf(s.run(key))).To(Equal(want))
					g.Expect(s.ran).To(Equal(whole.ran))
					g.Expect(s.ran).To(HaveEach(1))
					g.Expect(s.directories).To(BeEmpty())
					g.Expect(s.jobs()).To(BeEmpty())
				})
			}
		})
	}
}

func TestAFailedPointHasAReasonAndTheOthersGoOn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		done outcome
		says []string
	}{
		"a tool that fails shows its exit code and its last lines": {
			outcome{output: "opening\nwrite: No space left on device\n", code: 3},
			[]string{"repetition 2: iozone ended with exit code 3", "write: No space left on device"},
		},
		"a tool that was ended after pointTimeout is reported so": {
			outcome{output: "begun\nparallelfs: the tool was ended after 30m0s (pointTimeout)\n", code: timeoutExitCode},
			[]string{"repetition 2: iozone did not end within 30m0s (spec.limits.pointTimeout)", "begun"},
		},
		"an output that can't be read is quoted": {
			outcome{output: "write 12 kB/s\nSegmentation fault\n"},
			[]string{"printed something that can't be read as its result", `"Segmentation fault" is no result`},
		},
		"an output that is empty is no result": {outcome{output: "\n"}, []string{"can't be read as its result"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSetting(t, server)
			s.result = func(point, repetition int) outcome {
				if point == 0 && repetition == 2 {
					return c.done
				}
				return outcome{}
			}
			key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.Repetitions = 3 })
			s.settle(key)
			run := s.run(key)
			g.Expect(succeeded(run)).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
				"Status": Equal(metav1.ConditionFalse), "Reason": Equal(v1alpha1.ReasonPointsFailed),
				"Message": HavePrefix("1 of 2 points failed; the first is point 0 (iozone.recordSize=64Ki)"),
			}))
			g.Expect(run.Status.FailedPoints).To(Equal(int32(1)))
			g.Expect(run.Status.Progress).To(Equal("2/2"))
			failed := run.Status.Points[0]
			g.Expect(failed.State).To(Equal(v1alpha1.PointFailed))
			g.Expect(failed.Metrics).To(BeEmpty())
			for _, text := range c.says {
				g.Expect(failed.Message).To(ContainSubstring(text))
			}
			g.Expect(run.Status.Points[1].State).To(Equal(v1alpha1.PointSucceeded))
			g.Expect(s.ran).NotTo(HaveKey("sweep-p0-r3"), "the rest of a failed point is not run")
			g.Expect(s.ran).To(HaveKeyWithValue("sweep-p1-r3", 1))
			g.Expect(s.directories).To(BeEmpty())
			g.Expect(s.announced()).To(ContainElement(HavePrefix("Warning PointFailed point 0: repetition 2: iozone ")))
		})
	}
}

func TestAPodThatHangsIsEndedByTheOperator(t *testing.T) {
	t.Parallel()
	for name, mode := range map[string]v1alpha1.IOzoneMode{"Job": v1alpha1.IOzoneSingleClient, "MPIJob": v1alpha1.IOzoneDistributed} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := newSetting(t, server)
			s.result = func(point, _ int) outcome {
				return outcome{hangs: point == 0, output: map[bool]string{true: "still at it\n", false: "write 5 kB/s\n"}[point == 0]}
			}
			key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) {
				if r.Spec.IOzone.Mode = mode; mode == v1alpha1.IOzoneDistributed {
					r.Spec.Clients.Count = 2
				}
				r.Spec.Limits = &v1alpha1.BenchmarkLimits{PointTimeout: &metav1.Duration{Duration: 10 * time.Minute}}
			})
			s.settle(key)
			g.Expect(s.run(key).Status.Current).To(Equal("iozone.recordSize=64Ki (repetition 1/2)"))
			g.Expect(s.running()).NotTo(BeEmpty())

			before := s.line.writes
			g.Expect(s.reconcile(key)).To(Succeed())
			g.Expect(s.line.writes-before).To(BeZero(), "a look at a run under way writes nothing")

			now := s.clock.Now()
			s.clock.SetTime(now.Add(12 * time.Minute))
			g.Expect(s.reconcile(key)).To(Succeed())
			s.clock.SetTime(now)
			s.settle(key)
			run := s.run(key)
			g.Expect(run.Status.Points[0].State).To(Equal(v1alpha1.PointFailed))
			g.Expect(run.Status.Points[0].Message).To(Equal(
				"repetition 1: iozone did not end within 10m0s (spec.limits.pointTimeout)\nstill at it"))
			g.Expect(value(run.Status.Points[1], "write")).To(Equal("5 kB/s"))
			g.Expect(s.running()).To(BeEmpty())
			g.Expect(s.directories).To(BeEmpty())
		})
	}
}

func TestSuspendStopsAndCleansUpAndResumeGoesOn(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.result = func(point, _ int) outcome {
		return outcome{hangs: point == 1 && s.ran["sweep-p1-r1"] == 1, output: "write 5 kB/s\n"}
	}
	key := s.makeRun("sweep")
	s.settle(key)
	g.Expect(s.run(key).Status.Progress).To(Equal("1/2"))
	g.Expect(s.directories).To(HaveLen(1))

	s.change(key, func(r *v1alpha1.BenchmarkRun) { r.Spec.Suspend = true })
	s.settle(key)
	run := s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonSuspended))
	g.Expect(run.Status.Progress).To(Equal("1/2"))
	g.Expect(run.Status.Current).To(BeEmpty())
	g.Expect(run.Status.Points[0].State).To(Equal(v1alpha1.PointSucceeded))
	g.Expect(s.running()).To(BeEmpty())
	g.Expect(s.jobs()).To(BeEmpty())
	g.Expect(s.directories).To(BeEmpty())

	s.change(key, func(r *v1alpha1.BenchmarkRun) { r.Spec.Suspend = false })
	s.settle(key)
	run = s.run(key)
	g.Expect(succeeded(run).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(s.ran).To(Equal(map[string]int{
		"sweep-p0-r1": 1, "sweep-p0-r2": 1, "sweep-p1-r1": 2, "sweep-p1-r2": 1, "sweep-clean": 2, "sweep-check": 2,
	}), "only the repetition that was stopped is run again")
	g.Expect(run.Status.Points[1].Repetitions).To(Equal(int32(2)))
	g.Expect(s.directories).To(BeEmpty())
	g.Expect(s.announced()).To(ContainElement(HavePrefix("Normal Suspended")))
}

func TestADeletedRunIsStoppedAndCleanedUp(t *testing.T) {
	t.Parallel()
	hanging := func(t *testing.T) (*setting, types.NamespacedName) {
		s := newSetting(t, server)
		s.result = func(int, int) outcome { return outcome{hangs: true} }
		key := s.makeRun("sweep")
		s.settle(key)
		g := NewWithT(t)
		g.Expect(s.running()).To(HaveLen(1))
		g.Expect(s.directories).To(HaveLen(1))
		g.Expect(s.client.Delete(t.Context(), s.run(key))).To(Succeed())
		return s, key
	}
	gone := func(s *setting, key types.NamespacedName) bool {
		return apierrors.IsNotFound(s.client.Get(s.t.Context(), key, &v1alpha1.BenchmarkRun{}))
	}
	t.Run("its pods and its files go before it does", func(t *testing.T) {
		g := NewWithT(t)
		s, key := hanging(t)
		s.settle(key)
		g.Expect(gone(s, key)).To(BeTrue())
		g.Expect(s.running()).To(BeEmpty())
		g.Expect(s.directories).To(BeEmpty())
		g.Expect(s.ran).To(HaveKeyWithValue("sweep-clean", 1))
	})
	t.Run("without its FileSystem it is removed, and an event names what it leaves", func(t *testing.T) {
		g := NewWithT(t)
		s, key := hanging(t)
		g.Expect(s.client.Delete(t.Context(), &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fileSystemName}})).To(Succeed())
		s.settle(key)
		g.Expect(gone(s, key)).To(BeTrue())
		g.Expect(s.running()).To(BeEmpty())
		g.Expect(s.announced()).To(ContainElement(SatisfyAll(
			HavePrefix("Warning FilesLeftBehind files are still in /mnt/scratch/ssd/.parallelfs-benchmarks/"), ContainSubstring("FileSystem scratch is gone"))))
	})
	t.Run("a pod that never ends does not hold it for ever", func(t *testing.T) {
		g := NewWithT(t)
		s, key := hanging(t)
		for range 5 { // the cluster is not simulated, so the pod continues without its job
			g.Expect(s.reconcile(key)).To(Succeed())
		}
		g.Expect(gone(s, key)).To(BeFalse())
		s.clock.SetTime(s.clock.Now().Add(scope.DeleteTimeout + time.Minute))
		g.Expect(s.reconcile(key)).To(Succeed())
		g.Expect(gone(s, key)).To(BeTrue())
		g.Expect(s.announced()).To(ContainElement(ContainSubstring("the deletion took longer than 4m0s")))
	})
	t.Run("an operator that is killed after any write goes on", func(t *testing.T) {
		whole, key := hanging(t)
		before := whole.line.writes
		whole.settle(key)
		writes := whole.line.writes - before
		NewWithT(t).Expect(writes).To(BeNumerically(">", 4))
		for _, n := range places.Kills.Of(t, writes) {
			t.Run(fmt.Sprintf("killed after %d writes", n), func(t *testing.T) {
				g := NewWithT(t)
				s, key := hanging(t)
				s.line.limit = s.line.writes + n
				for s.reconcile(key) == nil && !gone(s, key) {
					s.play()
				}
				s.line.limit = -1
				s.settle(key)
				g.Expect(gone(s, key)).To(BeTrue())
				g.Expect(s.directories).To(BeEmpty())
			})
		}
	})
}

func TestOneRunAtATimeMeasuresAFileSystem(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	s.result = func(int, int) outcome {
		g.Expect(s.jobs()).To(HaveLen(1), "two jobs at once measure each other")
		return outcome{}
	}
	first := s.makeRun("a-first")
	s.must(s.reconcile(first))
	second := s.makeRun("b-second")
	s.must(s.reconcile(first))
	s.must(s.reconcile(second))
	g.Expect(succeeded(s.run(second))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Reason": Equal(v1alpha1.ReasonWaitingForRun), "Message": ContainSubstring("a-first"),
	}))
	s.settle(second, first)
	for _, key := range []types.NamespacedName{first, second} {
		g.Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	}
	g.Expect(s.run(second).Status.StartTime.Time).NotTo(BeTemporally("<", s.run(first).Status.CompletionTime.Time))
}

func TestARunThatWaitsNamesTheOneBeforeItAndWritesNothingUntilThatOneHasGone(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	first, second, third := s.makeRun("a-first"), s.makeRun("b-second"), s.makeRun("c-third")
	s.must(s.reconcile(first))
	waits := func(key types.NamespacedName, says string) {
		t.Helper()
		s.must(s.reconcile(key))
		g.Expect(succeeded(s.run(key))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Reason": Equal(v1alpha1.ReasonWaitingForRun), "Message": HavePrefix(says),
		}))
	}
	waits(second, "BenchmarkRun a-first, which is older,")
	waits(third, "BenchmarkRun b-second, which is older,")
	said := map[types.NamespacedName]string{second: s.run(second).ResourceVersion, third: s.run(third).ResourceVersion}
	s.result = func(int, int) outcome {
		for key, version := range said {
			asked := s.line.reads
			s.must(s.reconcile(key))
			g.Expect(s.line.reads-asked).To(BeNumerically("<=", 5), "itself, its FileSystem, the runs and the lease")
			g.Expect(s.run(key).ResourceVersion).To(Equal(version), "it has nothing new to say while another one goes on")
		}
		return outcome{}
	}
	s.settle(first)
	g.Expect(succeeded(s.run(first)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	s.result = nil

	s.must(s.reconcile(third))
	g.Expect(s.run(third).ResourceVersion).To(Equal(said[third]), "the one before it is still there")
	s.settle(second, third)
	g.Expect(succeeded(s.run(second)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	g.Expect(succeeded(s.run(third)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
}

func TestADistributedRunWithoutMPIOperatorNamesWhatToInstall(t *testing.T) {
	t.Parallel()
	bare, err := apiserver.Start()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { NewWithT(t).Expect(bare.Stop()).To(Succeed()) })
	t.Run("it stalls with the name of what is missing", func(t *testing.T) {
		g := NewWithT(t)
		s := newSetting(t, bare)
		key := s.makeRun("wide", func(r *v1alpha1.BenchmarkRun) {
			r.Spec.IOzone.Mode, r.Spec.Clients.Count = v1alpha1.IOzoneDistributed, 2
		})
		s.settle(key)
		g.Expect(succeeded(s.run(key))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
			"Status": Equal(metav1.ConditionFalse), "Reason": Equal(v1alpha1.ReasonMPIOperatorMissing), "Message": ContainSubstring("mpiOperator.enabled"),
		}))
		g.Expect(meta.IsStatusConditionTrue(s.run(key).Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())
		g.Expect(s.ran).To(BeEmpty())
	})
	t.Run("a run on one client does not need it", func(t *testing.T) {
		s := newSetting(t, bare)
		key := s.makeRun("sweep")
		s.settle(key)
		NewWithT(t).Expect(succeeded(s.run(key)).Reason).To(Equal(v1alpha1.ReasonAllPointsSucceeded))
	})
}

func TestARunThatHasEndedIsDeletedAfterItsTime(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.TTLSecondsAfterFinished = new(int32(3600)) })
	s.settle(key)
	g.Expect(s.run(key).Status.CompletionTime).NotTo(BeNil())
	s.clock.SetTime(s.clock.Now().Add(time.Hour + time.Second))
	s.settle(key)
	g.Expect(apierrors.IsNotFound(s.client.Get(t.Context(), key, &v1alpha1.BenchmarkRun{}))).To(BeTrue())
}

func TestRawOutputIsRemovedAfterItsTimeAndResultsStay(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.RawOutputTTL = &metav1.Duration{Duration: time.Hour} })
	s.settle(key)
	point := func() *corev1.ConfigMap {
		var cm corev1.ConfigMap
		g.Expect(s.client.Get(t.Context(), client.ObjectKey{Namespace: s.namespace, Name: "sweep-p001"}, &cm)).To(Succeed())
		return &cm
	}
	before, document := s.run(key), s.complete(g)
	g.Expect(point().BinaryData).To(HaveLen(2))
	s.change(key, func(r *v1alpha1.BenchmarkRun) { r.Spec.RawOutputTTL = &metav1.Duration{Duration: 2 * time.Hour} })
	s.clock.SetTime(s.clock.Now().Add(time.Hour + time.Second))
	s.settle(key)
	g.Expect(point().BinaryData).To(HaveLen(2), "the time can be changed while it runs")

	records := point().Data
	s.clock.SetTime(s.clock.Now().Add(time.Hour))
	s.settle(key)
	g.Expect(point().BinaryData).To(BeEmpty())
	g.Expect(point().Data).To(Equal(records))
	after := s.run(key)
	g.Expect(after.Status.RawOutputRemoved).NotTo(BeNil())
	g.Expect(after.Status.Points).To(Equal(before.Status.Points))
	g.Expect(s.complete(g)).To(Equal(document))

	t.Run("and a later look writes nothing", func(t *testing.T) {
		writes := s.line.writes
		NewWithT(t).Expect(s.reconcile(key)).To(Succeed())
		NewWithT(t).Expect(s.line.writes).To(Equal(writes))
	})
}

func TestTheTimeOfRawOutputHasBounds(t *testing.T) {
	s := newSetting(t, server)
	NewWithT(t).Expect(s.run(s.makeRun("given")).Spec.RawOutputTTL.Duration).To(Equal(decision.DefaultRawOutputTTL))
	for text, fits := range map[string]bool{"59s": false, "1m": true, "8760h": true, "8761h": false} {
		t.Run(text, func(t *testing.T) {
			run := s.run(client.ObjectKey{Namespace: s.namespace, Name: "given"})
			ttl, err := time.ParseDuration(text)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			run.Spec.RawOutputTTL = &metav1.Duration{Duration: ttl}
			err = s.client.Update(t.Context(), run)
			if fits {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.rawOutputTTL must be from 1m to 8760h")))
			}
		})
	}
}

func TestARunWaitsForAFileSystemThatIsNotThere(t *testing.T) {
	g := NewWithT(t)
	s := newSetting(t, server)
	key := s.makeRun("sweep", func(r *v1alpha1.BenchmarkRun) { r.Spec.Target.FileSystem.Name = "another" })
	s.settle(key)
	g.Expect(succeeded(s.run(key))).To(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{
		"Status": Equal(metav1.ConditionUnknown), "Reason": Equal(v1alpha1.ReasonWaitingForFileSystem), "Message": ContainSubstring("there is no FileSystem another"),
	}))
	g.Expect(strings.Join(s.jobs(), "")).To(BeEmpty())
}
