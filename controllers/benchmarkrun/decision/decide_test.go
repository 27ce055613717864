package decision

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/conditions"
)

func TestDecide(t *testing.T) {
	type want struct {
		action   action
		turn     turns.Turn
		child    string
		reason   string
		says     string
		progress conditions.Progress
		check    func(g *WithT, d Decision)
	}
	running, cleaning := v1alpha1.ReasonRunning, v1alpha1.ReasonCleaningUp
	for name, c := range map[string]struct {
		given func(w *scope.Scope)
		want  want
	}{
		"the first repetition of the first point comes first": {
			func(*scope.Scope) {}, want{action: Start, turn: scopetest.At(0, 1), reason: running, says: "running iozone.recordSize=64k (repetition 1/2)", progress: conditions.Reconciling},
		},
		"the directory is in the status before anything can write to it": {
			func(w *scope.Scope) { w.Run.Status.Directory = ""; scopetest.Checked(w, 1<<40) },
			want{action: Nothing, turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling,
				check: func(g *WithT, d Decision) { g.Expect(d.Intends).To(BeTrue()) }},
		},
		"the next repetition is the first without a record": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, "") }, want{action: Start, turn: scopetest.At(0, 2), reason: running, progress: conditions.Reconciling},
		},
		"the next point follows when all repetitions have a record": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, ""); scopetest.Done(w, 0, 2, ""); scopetest.Settled(w) }, want{action: Start, turn: scopetest.At(1, 1), reason: running, progress: conditions.Reconciling},
		},
		"the rest of a failed point is left out": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, "broke"); scopetest.Settled(w) }, want{action: Start, turn: scopetest.At(1, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that runs is left alone": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, "broke"); scopetest.Job(w, 1, 2, time.Minute) }, want{action: Nothing, turn: scopetest.At(1, 2), reason: running, progress: conditions.Reconciling},
		},
		"a job that has ended is recorded before it is removed": {
			func(w *scope.Scope) { scopetest.Job(w, 0, 1, time.Minute).Succeeded = true },
			want{action: Keep, child: "sweep-p0-r1", turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that has a record is removed": {
			func(w *scope.Scope) {
				scopetest.Job(w, 0, 1, time.Minute).Succeeded = true
				scopetest.Done(w, 0, 1, "")
			},
			want{action: Remove, child: "sweep-p0-r1", turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"nothing starts before the job of the last repetition has gone": {
			func(w *scope.Scope) { scopetest.Job(w, 0, 1, time.Minute).Deleting = true; scopetest.Done(w, 0, 1, "") },
			want{action: Nothing, turn: scopetest.At(0, 1), reason: running, says: "waiting until sweep-p0-r1 has gone", progress: conditions.Reconciling},
		},
		"nothing starts before the pods of the last repetition have ended": {
			func(w *scope.Scope) { scopetest.Done(w, 0, 1, ""); w.Lingering = []string{"sweep-p0-r1-abcde"} },
			want{action: Nothing, reason: running, says: "sweep-p0-r1-abcde", progress: conditions.Reconciling},
		},
		"a worker that has ended ends the repetition, because the launcher would wait for it": {
			func(w *scope.Scope) {
				scopetest.Job(w, 0, 1, time.Minute).Pods = []corev1.Pod{scopetest.PodOf(children.RoleWorker, corev1.PodFailed), scopetest.PodOf(children.RoleLauncher, corev1.PodRunning)}
			},
			want{action: Keep, child: "sweep-p0-r1", turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that should have ended itself gets a minute more than pointTimeout": {
			func(w *scope.Scope) {
				scopetest.Limit(w, 5*time.Minute, time.Hour)
				scopetest.Job(w, 0, 1, 6*time.Minute)
			},
			want{action: Nothing, turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that does not end is ended, and the point fails": {
			func(w *scope.Scope) {
				scopetest.Limit(w, 5*time.Minute, time.Hour)
				scopetest.Job(w, 0, 1, 6*time.Minute+time.Second)
			},
			want{action: Keep, child: "sweep-p0-r1", turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling,
				check: func(g *WithT, d Decision) {
					g.Expect(d.Verdict).To(Equal("did not end within 5m0s (spec.limits.pointTimeout)"))
				}},
		},
		"what keeps a pod from running is in the message": {
			func(w *scope.Scope) {
				p := scopetest.PodOf(children.RoleClient, corev1.PodPending)
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
				scopetest.Job(w, 0, 1, time.Minute).Pods = []corev1.Pod{p}
			},
			want{action: Nothing, turn: scopetest.At(0, 1), reason: running, says: "its pod can't be scheduled: 0/3 nodes are available", progress: conditions.Reconciling},
		},
		"a container that outlasts the tool is in the message": {
			func(w *scope.Scope) {
				scopetest.Job(w, 0, 1, time.Minute).Outlasting = "container istio-proxy of pod sweep-p0-r1-x7k2p"
			},
			want{action: Nothing, turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling,
				says: "its tool has ended, and container istio-proxy of pod sweep-p0-r1-x7k2p, which was not asked for, still runs"},
		},
		"the time of the whole run ends the repetition that runs": {
			func(w *scope.Scope) {
				scopetest.Limit(w, time.Hour, 100*time.Second)
				scopetest.Done(w, 0, 1, "")
				scopetest.Job(w, 0, 2, 90*time.Second)
			},
			want{action: Keep, child: "sweep-p0-r2", turn: scopetest.At(0, 2), reason: running, progress: conditions.Reconciling,
				check: func(g *WithT, d Decision) {
					g.Expect(d.Verdict).To(Equal("stopped because spec.limits.timeout (1m40s) was reached"))
				}},
		},
		"a run whose time is over cleans up": {
			func(w *scope.Scope) { scopetest.Limit(w, time.Hour, 10*time.Second); scopetest.Done(w, 0, 1, "") },
			want{action: Clean, reason: cleaning, progress: conditions.Reconciling},
		},
		"a run whose time is over reports how much was not run": {
			func(w *scope.Scope) {
				scopetest.Limit(w, time.Hour, 10*time.Second)
				scopetest.Done(w, 0, 1, "")
				w.Cleaner = &children.Child{Succeeded: true}
				scopetest.Settled(w)
			},
			want{action: Nothing, reason: v1alpha1.ReasonTimedOut, says: "all 2 points were not run to the end", progress: conditions.Settled,
				check: func(g *WithT, d Decision) { g.Expect(d.Ended && d.Cleaned).To(BeTrue()) }},
		},
		"the files are removed when all points have ended": {
			func(w *scope.Scope) { scopetest.AllDone(w) }, want{action: Clean, reason: cleaning, says: "removing /mnt/scratch/ssd/.parallelfs-benchmarks/uid", progress: conditions.Reconciling},
		},
		"the removal is waited for": {
			func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Cleaner = &children.Child{Name: "sweep-clean", Created: scopetest.Now}
			},
			want{action: Nothing, reason: cleaning, progress: conditions.Reconciling},
		},
		"the run ends when its files are removed": {
			func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Cleaner = &children.Child{Name: "sweep-clean", Created: scopetest.Now, Succeeded: true}
			},
			want{action: Nothing, reason: v1alpha1.ReasonAllPointsSucceeded, says: "all 2 points have a result", progress: conditions.Settled,
				check: func(g *WithT, d Decision) {
					g.Expect(d.Ended && d.Cleaned).To(BeTrue())
					g.Expect(d.Status).To(Equal(metav1.ConditionTrue))
				}},
		},
		"files that can't be removed don't hold up the end, which names them": {
			func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Cleaner = &children.Child{Name: "sweep-clean", Created: scopetest.Now.Add(-scope.CleanTimeout - time.Second)}
			},
			want{action: Nothing, reason: v1alpha1.ReasonAllPointsSucceeded, progress: conditions.Settled,
				says: "all 2 points have a result; its files are still in /mnt/scratch/ssd/.parallelfs-benchmarks/uid: Job sweep-clean did not end within 2m0s",
				check: func(g *WithT, d Decision) {
					g.Expect(d.Cleaned).To(BeFalse())
					g.Expect(d.Ended).To(BeTrue())
				}},
		},
		"without a node that mounts the filesystem the removal waits": {
			func(w *scope.Scope) { scopetest.AllDone(w); w.Mounted, w.Clients = nil, nil },
			want{action: Nothing, reason: cleaning, says: "no node has mounted FileSystem scratch", progress: conditions.Reconciling},
		},
		"failed points make a failed run that names the first": {
			func(w *scope.Scope) {
				scopetest.AllDone(w)
				scopetest.Done(w, 1, 1, "iozone ended with exit code 1")
				w.Run.Status.Directory = ""
				scopetest.Settled(w)
			},
			want{action: Nothing, reason: v1alpha1.ReasonPointsFailed, progress: conditions.Settled,
				says:  "1 of 2 points failed; the first is point 1 (iozone.recordSize=1m): iozone ended with exit code 1",
				check: func(g *WithT, d Decision) { g.Expect(d.Status).To(Equal(metav1.ConditionFalse)) }},
		},
		"suspend stops what runs": {
			func(w *scope.Scope) { w.Run.Spec.Suspend = true; scopetest.Job(w, 0, 1, time.Minute) },
			want{action: Remove, child: "sweep-p0-r1", turn: scopetest.At(0, 1), reason: running, says: "stopping sweep-p0-r1", progress: conditions.Reconciling},
		},
		"suspend keeps a result that is there already": {
			func(w *scope.Scope) { w.Run.Spec.Suspend = true; scopetest.Job(w, 0, 1, time.Minute).Succeeded = true },
			want{action: Keep, child: "sweep-p0-r1", turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"suspend removes the files when nothing runs": {
			func(w *scope.Scope) { w.Run.Spec.Suspend = true }, want{action: Clean, reason: cleaning, progress: conditions.Reconciling},
		},
		"a suspended run without files rests": {
			func(w *scope.Scope) { w.Run.Spec.Suspend = true; w.Run.Status.Directory = "" },
			want{action: Nothing, reason: v1alpha1.ReasonSuspended, progress: conditions.Settled,
				check: func(g *WithT, d Decision) { g.Expect(d.After).To(BeZero()) }},
		},
		"a run that goes on removes the old cleaning job first, which would remove the new files": {
			func(w *scope.Scope) { w.Cleaner = &children.Child{Name: "sweep-clean", Succeeded: true} },
			want{action: Remove, child: "sweep-clean", turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a FileSystem that is not there is waited for": {
			func(w *scope.Scope) { w.FileSystem = nil },
			want{action: Nothing, reason: v1alpha1.ReasonWaitingForFileSystem, says: "there is no FileSystem scratch", progress: conditions.Reconciling},
		},
		"a FileSystem that is not Ready is waited for": {
			func(w *scope.Scope) {
				w.FileSystem.Status.Conditions[0].Status, w.FileSystem.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonTargetsMissing
			},
			want{action: Nothing, reason: v1alpha1.ReasonWaitingForFileSystem, says: "not Ready (TargetsMissing)", progress: conditions.Reconciling},
		},
		"a pool that the FileSystem lacks stalls the run": {
			func(w *scope.Scope) { w.Run.Spec.Target.FileSystem.StoragePool = "tape" },
			want{action: Nothing, reason: v1alpha1.ReasonInvalidSpec, says: `has no pool "tape"; it has ssd`, progress: conditions.Stalled},
		},
		"too few clients are waited for, and counted": {
			func(w *scope.Scope) { w.Plans[1] = scopetest.PlanOf(benchmarks.OnLauncher); w.Plans[1].Clients = 3 },
			want{action: Nothing, reason: v1alpha1.ReasonNoClients, says: "the run needs 3 nodes", progress: conditions.Reconciling},
		},
		"processes that find no CPU stall the run, with what to set": {
			func(w *scope.Scope) { w.Plans[1] = scopetest.PlanOf(benchmarks.OnProcesses); w.Plans[1].Processes = 20 },
			want{action: Nothing, reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled,
				says: "iozone.recordSize=1m: 10 of 20 processes may run on node n1, which has 8 CPUs"},
		},
		"another run's job on the filesystem is waited for": {
			func(w *scope.Scope) { w.Active = "other" },
			want{action: Nothing, reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun other is using", progress: conditions.Reconciling},
		},
		"an older run goes first, and wakes this one when it goes": {
			func(w *scope.Scope) { w.Before = "elder" },
			want{action: Nothing, reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun elder, which is older", progress: conditions.Reconciling,
				check: func(g *WithT, d Decision) { g.Expect(d.After).To(BeZero()) }},
		},
		"the run before it is named whatever else there is to wait for, which may be another thing by then": {
			func(w *scope.Scope) { w.Before, w.Active, w.FileSystem.Status.Conditions = "elder", "other", nil },
			want{action: Nothing, reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun elder, which is older", progress: conditions.Reconciling},
		},
		"a spec that the FileSystem can't serve is refused before the run waits for another one": {
			func(w *scope.Scope) { w.Before, w.Run.Spec.Target.FileSystem.StoragePool = "elder", "tape" },
			want{action: Nothing, reason: v1alpha1.ReasonInvalidSpec, says: `has no pool "tape"`, progress: conditions.Stalled},
		},
		"a cluster without MPIJobs stalls a distributed run": {
			func(w *scope.Scope) { w.MPIMissing = true },
			want{action: Nothing, reason: v1alpha1.ReasonMPIOperatorMissing, says: "install the MPI operator", progress: conditions.Stalled},
		},
		"a tool without an image stalls the run, with what to set": {
			func(w *scope.Scope) { w.Image = "" },
			want{action: Nothing, reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled,
				says: "no image has iozone: set spec.image, or the Helm chart's value images.benchmarks.iozone"},
		},
		"a spec that can't be run stalls the run": {
			func(w *scope.Scope) { w.Invalid = "spec.derive: division by zero" },
			want{action: Nothing, reason: v1alpha1.ReasonInvalidSpec, says: "division by zero", progress: conditions.Stalled},
		},
		"a run that has ended removes the job that is left": {
			func(w *scope.Scope) {
				w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now}
				w.Cleaner = &children.Child{Name: "sweep-clean"}
			},
			want{action: Remove, child: "sweep-clean", progress: conditions.Settled},
		},
		"a run that has ended rests until its time to live is over": {
			func(w *scope.Scope) {
				w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now.Add(-time.Minute)}
				w.Run.Spec.TTLSecondsAfterFinished = new(int32(3600))
			},
			want{action: Nothing, progress: conditions.Settled, check: func(g *WithT, d Decision) { g.Expect(d.After).To(Equal(59 * time.Minute)) }},
		},
		"a run that has ended rests until the time of its raw output is over": {
			func(w *scope.Scope) { w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now.Add(-time.Hour)} },
			want{action: Nothing, progress: conditions.Settled, check: func(g *WithT, d Decision) { g.Expect(d.After).To(Equal(719 * time.Hour)) }},
		},
		"raw output whose time is over is removed": {
			func(w *scope.Scope) {
				w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now.Add(-time.Hour)}
				w.Run.Spec.RawOutputTTL = &metav1.Duration{Duration: time.Hour}
				w.Run.Spec.TTLSecondsAfterFinished = new(int32(7200))
			},
			want{action: Forget, progress: conditions.Settled, check: func(g *WithT, d Decision) { g.Expect(d.Forgotten).To(BeTrue()) }},
		},
		"raw output is removed once": {
			func(w *scope.Scope) {
				w.Run.Status.CompletionTime, w.Run.Status.RawOutputRemoved = &metav1.Time{Time: scopetest.Now.Add(-2000 * time.Hour)}, &metav1.Time{Time: scopetest.Now}
			},
			want{action: Nothing, progress: conditions.Settled, check: func(g *WithT, d Decision) { g.Expect(d.After).To(BeZero()) }},
		},
		"raw output of a run that goes on is kept": {
			func(w *scope.Scope) { w.Run.Spec.RawOutputTTL = &metav1.Duration{Duration: time.Minute} },
			want{action: Start, turn: scopetest.At(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a run whose time to live is over is deleted": {
			func(w *scope.Scope) {
				w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now.Add(-time.Hour)}
				w.Run.Spec.TTLSecondsAfterFinished = new(int32(3600))
			},
			want{action: Expire, progress: conditions.Settled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			c.given(w)
			d := Decide(w)
			g.Expect(d.Action).To(Equal(c.want.action))
			g.Expect(d.Turn).To(Equal(c.want.turn))
			g.Expect(d.Reason).To(Equal(c.want.reason))
			g.Expect(d.Message).To(ContainSubstring(c.want.says))
			g.Expect(d.Progress).To(Equal(c.want.progress))
			if c.want.child == "" {
				g.Expect(d.Child).To(BeNil())
			} else {
				g.Expect(d.Child.Name).To(Equal(c.want.child))
			}
			if c.want.check != nil {
				c.want.check(g, d)
			}
		})
	}
}

func TestDecideDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		given    func(w *scope.Scope)
		action   action
		finished bool
		leaves   string
	}{
		"what runs is stopped first":                        {func(w *scope.Scope) { scopetest.Job(w, 0, 1, time.Minute) }, Remove, false, ""},
		"pods that have not ended are waited for":           {func(w *scope.Scope) { w.Lingering = []string{"p"} }, Nothing, false, ""},
		"the files are removed when nothing runs":           {func(*scope.Scope) {}, Clean, false, ""},
		"the removal is waited for":                         {func(w *scope.Scope) { w.Cleaner = &children.Child{Created: scopetest.Now} }, Nothing, false, ""},
		"it is released when the files are removed":         {func(w *scope.Scope) { w.Cleaner = &children.Child{Succeeded: true} }, Nothing, true, ""},
		"it is released when there never were files":        {func(w *scope.Scope) { w.Run.Status.Directory = "" }, Nothing, true, ""},
		"it is released when the FileSystem is gone":        {func(w *scope.Scope) { w.FileSystem = nil }, Nothing, true, "FileSystem scratch is gone"},
		"it is released when no node mounts the filesystem": {func(w *scope.Scope) { w.Mounted = nil }, Nothing, true, "no node has mounted"},
		"it is released when the files can't be removed":    {func(w *scope.Scope) { w.Cleaner = &children.Child{Name: "c", Failed: true, Message: "no"} }, Nothing, true, "Job c failed (no)"},
		"it is released after some minutes, whatever happens": {func(w *scope.Scope) {
			scopetest.Job(w, 0, 1, time.Minute)
			w.Run.DeletionTimestamp = &metav1.Time{Time: scopetest.Now.Add(-scope.DeleteTimeout - time.Second)}
		}, Nothing, true, "the deletion took longer than 4m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			w.Run.DeletionTimestamp = &metav1.Time{Time: scopetest.Now}
			c.given(w)
			d, finished := DecideDeleted(w)
			g.Expect(d.Action).To(Equal(c.action))
			g.Expect(finished).To(Equal(c.finished))
			g.Expect(d.LeftBehind).To(ContainSubstring(c.leaves))
			g.Expect(d.LeftBehind == "").To(Equal(c.leaves == ""))
		})
	}
}
