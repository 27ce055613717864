package benchmarkrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// idle is a run of two points with two repetitions each that has its directory, and nothing else: the next step is the first job.
func idle() *world {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}}
	fs.Spec.StoragePools = []v1alpha1.StoragePoolSpec{{Name: "ssd"}}
	fs.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHealthy}}
	run := &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Name: "sweep", Namespace: "storage", UID: "uid"}}
	run.Spec = v1alpha1.BenchmarkRunSpec{
		Tool: v1alpha1.ToolIOzone, Repetitions: 2, Statistic: v1alpha1.StatisticMean, FileSystem: v1alpha1.BenchmarkTarget{Name: "scratch"},
	}
	run.Status.Directory = "/mnt/scratch/ssd/.parallelfs-benchmarks/uid"
	point := func(index int, size string) benchmarks.Point {
		return benchmarks.Point{
			Index:      index,
			Parameters: map[v1alpha1.SweepName]string{"iozone.recordSize": size}, Varied: []v1alpha1.SweepName{"iozone.recordSize"},
		}
	}
	return &world{
		poll: 3 * time.Second,
		run:  run, now: now, fileSystem: fs, image: "iozone:1", records: records{},
		mount:   backend.Mount{Path: "/mnt/scratch", FSType: "fuse"},
		mounted: []string{"n1", "n2", "n3"}, clients: clientNodes("n1", "n2"),
		points: []benchmarks.Point{point(0, "64k"), point(1, "1m")},
		plans:  []benchmarks.Plan{planOf(benchmarks.OnClient), planOf(benchmarks.OnClient)},
	}
}

// clientNodes are nodes of eight CPUs.
func clientNodes(names ...string) []placement.Node {
	var out []placement.Node
	for _, name := range names {
		out = append(out, placement.Node{Name: name, CPUs: 8})
	}
	return out
}

// planOf is one process, started in such a way, in one step; or in the named ones.
func planOf(launch benchmarks.Launch, steps ...string) benchmarks.Plan {
	p := benchmarks.Plan{Processes: 1, Demand: benchmarks.Demand{Bytes: 1 << 30, Inodes: 10}}
	if len(steps) == 0 {
		steps = []string{""}
	}
	for _, name := range steps {
		p.Steps = append(p.Steps, benchmarks.Step{Name: name, Command: benchmarks.Command{Launch: launch, Argv: []string{"iozone", "-r", "64k"}}})
	}
	return p
}

// done records a repetition that took ten seconds; a text makes it a failed one.
func (w *world) done(point, repetition int, failure string) {
	entry := record{Point: point, Repetition: repetition, Started: now, Finished: now.Add(10 * time.Second), Error: failure}
	if failure == "" {
		entry.Samples = []benchmarks.Sample{{Name: "write", Unit: "kB/s", Value: float64(repetition)}}
	}
	w.records.add(entry)
}

func (w *world) allDone() {
	for point := range 2 {
		for repetition := 1; repetition <= 2; repetition++ {
			w.done(point, repetition, "")
		}
	}
	w.published = w.toPublish(true)
}

// checked makes image and space looked at, with so much that is free.
func (w *world) checked(free int64) {
	w.checker = &child{name: "sweep-check", object: &batchv1.Job{ObjectMeta: metav1.ObjectMeta{UID: "look"}}, succeeded: true, created: now}
	w.provenance.CheckedBy, w.provenance.CheckedAt = "look", now
	w.provenance.Checked = spec.Checked{FreeBytes: free, FreeInodes: -1}
}

// settled makes the results that there are so far written.
func (w *world) settled() { w.published = w.toPublish(w.final()) }

// at is a first attempt.
func at(point, repetition int) turn { return turn{point: point, repetition: repetition, attempt: 1} }

// job adds a job that was made so long ago.
func (w *world) job(point, repetition int, age time.Duration) *child {
	w.children = append(w.children, child{
		object: &batchv1.Job{}, name: jobName("sweep", turn{point: point, repetition: repetition, attempt: 1}.suffix()),
		turn: turn{point: point, repetition: repetition, attempt: 1}, created: now.Add(-age), started: now.Add(-age),
	})
	return &w.children[len(w.children)-1]
}

func (w *world) limit(point, whole time.Duration) {
	w.run.Spec.Limits = &v1alpha1.BenchmarkLimits{PointTimeout: &metav1.Duration{Duration: point}, Timeout: &metav1.Duration{Duration: whole}}
}

func podOf(role string, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelRole: role}}, Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestDecide(t *testing.T) {
	type want struct {
		action   action
		turn     turn
		child    string
		reason   string
		says     string
		progress conditions.Progress
		check    func(g *WithT, d decision)
	}
	running, cleaning := v1alpha1.ReasonRunning, v1alpha1.ReasonCleaningUp
	for name, c := range map[string]struct {
		given func(w *world)
		want  want
	}{
		"the first repetition of the first point comes first": {
			func(*world) {}, want{action: start, turn: at(0, 1), reason: running, says: "running iozone.recordSize=64k (repetition 1/2)", progress: conditions.Reconciling},
		},
		"the directory is in the status before anything can write to it": {
			func(w *world) { w.run.Status.Directory = ""; w.checked(1 << 40) },
			want{action: nothing, turn: at(0, 1), reason: running, progress: conditions.Reconciling,
				check: func(g *WithT, d decision) { g.Expect(d.intends).To(BeTrue()) }},
		},
		"the next repetition is the first without a record": {
			func(w *world) { w.done(0, 1, "") }, want{action: start, turn: at(0, 2), reason: running, progress: conditions.Reconciling},
		},
		"the next point follows when all repetitions have a record": {
			func(w *world) { w.done(0, 1, ""); w.done(0, 2, ""); w.settled() }, want{action: start, turn: at(1, 1), reason: running, progress: conditions.Reconciling},
		},
		"the rest of a failed point is left out": {
			func(w *world) { w.done(0, 1, "broke"); w.settled() }, want{action: start, turn: at(1, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that runs is left alone": {
			func(w *world) { w.done(0, 1, "broke"); w.job(1, 2, time.Minute) }, want{action: nothing, turn: at(1, 2), reason: running, progress: conditions.Reconciling},
		},
		"a job that has ended is recorded before it is removed": {
			func(w *world) { w.job(0, 1, time.Minute).succeeded = true },
			want{action: keep, child: "sweep-p0-r1", turn: at(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that has a record is removed": {
			func(w *world) { w.job(0, 1, time.Minute).succeeded = true; w.done(0, 1, "") },
			want{action: remove, child: "sweep-p0-r1", turn: at(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"nothing starts before the job of the last repetition has gone": {
			func(w *world) { w.job(0, 1, time.Minute).deleting = true; w.done(0, 1, "") },
			want{action: nothing, turn: at(0, 1), reason: running, says: "waiting until sweep-p0-r1 has gone", progress: conditions.Reconciling},
		},
		"nothing starts before the pods of the last repetition have ended": {
			func(w *world) { w.done(0, 1, ""); w.lingering = []string{"sweep-p0-r1-abcde"} },
			want{action: nothing, reason: running, says: "sweep-p0-r1-abcde", progress: conditions.Reconciling},
		},
		"a worker that has ended ends the repetition, because the launcher would wait for it": {
			func(w *world) {
				w.job(0, 1, time.Minute).pods = []corev1.Pod{podOf(roleWorker, corev1.PodFailed), podOf(roleLauncher, corev1.PodRunning)}
			},
			want{action: keep, child: "sweep-p0-r1", turn: at(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that should have ended itself gets a minute more than pointTimeout": {
			func(w *world) { w.limit(5*time.Minute, time.Hour); w.job(0, 1, 6*time.Minute) },
			want{action: nothing, turn: at(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a job that does not end is ended, and the point fails": {
			func(w *world) { w.limit(5*time.Minute, time.Hour); w.job(0, 1, 6*time.Minute+time.Second) },
			want{action: keep, child: "sweep-p0-r1", turn: at(0, 1), reason: running, progress: conditions.Reconciling,
				check: func(g *WithT, d decision) {
					g.Expect(d.verdict).To(Equal("did not end within 5m0s (spec.limits.pointTimeout)"))
				}},
		},
		"what keeps a pod from running is in the message": {
			func(w *world) {
				p := podOf(roleClient, corev1.PodPending)
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}
				w.job(0, 1, time.Minute).pods = []corev1.Pod{p}
			},
			want{action: nothing, turn: at(0, 1), reason: running, says: "its pod can't be scheduled: 0/3 nodes are available", progress: conditions.Reconciling},
		},
		"the time of the whole run ends the repetition that runs": {
			func(w *world) { w.limit(time.Hour, 100*time.Second); w.done(0, 1, ""); w.job(0, 2, 90*time.Second) },
			want{action: keep, child: "sweep-p0-r2", turn: at(0, 2), reason: running, progress: conditions.Reconciling,
				check: func(g *WithT, d decision) {
					g.Expect(d.verdict).To(Equal("stopped because spec.limits.timeout (1m40s) was reached"))
				}},
		},
		"a run whose time is over cleans up": {
			func(w *world) { w.limit(time.Hour, 10*time.Second); w.done(0, 1, "") },
			want{action: clean, reason: cleaning, progress: conditions.Reconciling},
		},
		"a run whose time is over says how much was not run": {
			func(w *world) {
				w.limit(time.Hour, 10*time.Second)
				w.done(0, 1, "")
				w.cleaner = &child{succeeded: true}
				w.settled()
			},
			want{action: nothing, reason: v1alpha1.ReasonTimedOut, says: "2 of 2 points were not run to their end", progress: conditions.Settled,
				check: func(g *WithT, d decision) { g.Expect(d.ended && d.cleaned).To(BeTrue()) }},
		},
		"the files are removed when all points have ended": {
			func(w *world) { w.allDone() }, want{action: clean, reason: cleaning, says: "removing /mnt/scratch/ssd/.parallelfs-benchmarks/uid", progress: conditions.Reconciling},
		},
		"the removal is waited for": {
			func(w *world) { w.allDone(); w.cleaner = &child{name: "sweep-clean", created: now} },
			want{action: nothing, reason: cleaning, progress: conditions.Reconciling},
		},
		"the run ends when its files are removed": {
			func(w *world) { w.allDone(); w.cleaner = &child{name: "sweep-clean", created: now, succeeded: true} },
			want{action: nothing, reason: v1alpha1.ReasonAllPointsSucceeded, says: "2 points have a result", progress: conditions.Settled,
				check: func(g *WithT, d decision) {
					g.Expect(d.ended && d.cleaned).To(BeTrue())
					g.Expect(d.status).To(Equal(metav1.ConditionTrue))
				}},
		},
		"files that can't be removed don't hold up the end, which names them": {
			func(w *world) {
				w.allDone()
				w.cleaner = &child{name: "sweep-clean", created: now.Add(-cleanTimeout - time.Second)}
			},
			want{action: nothing, reason: v1alpha1.ReasonAllPointsSucceeded, progress: conditions.Settled,
				says: "2 points have a result; its files are still in /mnt/scratch/ssd/.parallelfs-benchmarks/uid: Job sweep-clean did not end within 2m0s",
				check: func(g *WithT, d decision) {
					g.Expect(d.cleaned).To(BeFalse())
					g.Expect(d.ended).To(BeTrue())
				}},
		},
		"without a node that mounts the filesystem the removal waits": {
			func(w *world) { w.allDone(); w.mounted, w.clients = nil, nil },
			want{action: nothing, reason: cleaning, says: "no node has mounted FileSystem scratch", progress: conditions.Reconciling},
		},
		"failed points make a failed run that names the first": {
			func(w *world) {
				w.allDone()
				w.done(1, 1, "iozone ended with exit code 1")
				w.run.Status.Directory = ""
				w.settled()
			},
			want{action: nothing, reason: v1alpha1.ReasonPointsFailed, progress: conditions.Settled,
				says:  "1 of 2 points failed; the first is point 1 (iozone.recordSize=1m): iozone ended with exit code 1",
				check: func(g *WithT, d decision) { g.Expect(d.status).To(Equal(metav1.ConditionFalse)) }},
		},
		"suspend stops what runs": {
			func(w *world) { w.run.Spec.Suspend = true; w.job(0, 1, time.Minute) },
			want{action: remove, child: "sweep-p0-r1", turn: at(0, 1), reason: running, says: "stopping sweep-p0-r1", progress: conditions.Reconciling},
		},
		"suspend keeps a result that is there already": {
			func(w *world) { w.run.Spec.Suspend = true; w.job(0, 1, time.Minute).succeeded = true },
			want{action: keep, child: "sweep-p0-r1", turn: at(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"suspend removes the files when nothing runs": {
			func(w *world) { w.run.Spec.Suspend = true }, want{action: clean, reason: cleaning, progress: conditions.Reconciling},
		},
		"a suspended run without files rests": {
			func(w *world) { w.run.Spec.Suspend = true; w.run.Status.Directory = "" },
			want{action: nothing, reason: v1alpha1.ReasonSuspended, progress: conditions.Settled,
				check: func(g *WithT, d decision) { g.Expect(d.after).To(BeZero()) }},
		},
		"a run that goes on removes the old cleaning job first, which would remove the new files": {
			func(w *world) { w.cleaner = &child{name: "sweep-clean", succeeded: true} },
			want{action: remove, child: "sweep-clean", turn: at(0, 1), reason: running, progress: conditions.Reconciling},
		},
		"a FileSystem that is not there is waited for": {
			func(w *world) { w.fileSystem = nil },
			want{action: nothing, reason: v1alpha1.ReasonWaitingForFileSystem, says: "there is no FileSystem scratch", progress: conditions.Reconciling},
		},
		"a FileSystem that is not Ready is waited for": {
			func(w *world) {
				w.fileSystem.Status.Conditions[0].Status, w.fileSystem.Status.Conditions[0].Reason = metav1.ConditionFalse, v1alpha1.ReasonTargetsMissing
			},
			want{action: nothing, reason: v1alpha1.ReasonWaitingForFileSystem, says: "not Ready (TargetsMissing)", progress: conditions.Reconciling},
		},
		"a pool that the FileSystem lacks stalls the run": {
			func(w *world) { w.run.Spec.FileSystem.StoragePool = "tape" },
			want{action: nothing, reason: v1alpha1.ReasonInvalidSpec, says: `has no pool "tape"; it has ssd`, progress: conditions.Stalled},
		},
		"too few clients are waited for, and counted": {
			func(w *world) { w.plans[1] = planOf(benchmarks.OnLauncher); w.plans[1].Clients = 3 },
			want{action: nothing, reason: v1alpha1.ReasonNoClients, says: "3 nodes are needed", progress: conditions.Reconciling},
		},
		"processes that find no CPU stall the run, with what to set": {
			func(w *world) { w.plans[1] = planOf(benchmarks.OnProcesses); w.plans[1].Processes = 20 },
			want{action: nothing, reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled,
				says: "iozone.recordSize=1m: 10 of 20 processes may run on node n1, which has 8 CPUs"},
		},
		"another run's job on the filesystem is waited for": {
			func(w *world) { w.active = "other" },
			want{action: nothing, reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun other is using", progress: conditions.Reconciling},
		},
		"an older run goes first": {
			func(w *world) { w.older = "elder" },
			want{action: nothing, reason: v1alpha1.ReasonWaitingForRun, says: "BenchmarkRun elder, which is older", progress: conditions.Reconciling},
		},
		"a cluster without MPIJobs stalls a distributed run": {
			func(w *world) { w.mpiMissing = true },
			want{action: nothing, reason: v1alpha1.ReasonMPIOperatorMissing, says: "install the MPI operator", progress: conditions.Stalled},
		},
		"a tool without an image stalls the run, with what to set": {
			func(w *world) { w.image = "" },
			want{action: nothing, reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled,
				says: "no image has iozone: set spec.image, or the Helm chart's value images.benchmarks.iozone"},
		},
		"a spec that can't be run stalls the run": {
			func(w *world) { w.invalid = "spec.derive: division by zero" },
			want{action: nothing, reason: v1alpha1.ReasonInvalidSpec, says: "division by zero", progress: conditions.Stalled},
		},
		"a run that has ended removes the job that is left": {
			func(w *world) {
				w.run.Status.CompletionTime = &metav1.Time{Time: now}
				w.cleaner = &child{name: "sweep-clean"}
			},
			want{action: remove, child: "sweep-clean", progress: conditions.Settled},
		},
		"a run that has ended rests until its time to live is over": {
			func(w *world) {
				w.run.Status.CompletionTime = &metav1.Time{Time: now.Add(-time.Minute)}
				w.run.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Hour}
			},
			want{action: nothing, progress: conditions.Settled, check: func(g *WithT, d decision) { g.Expect(d.after).To(Equal(59 * time.Minute)) }},
		},
		"a run whose time to live is over is deleted": {
			func(w *world) {
				w.run.Status.CompletionTime = &metav1.Time{Time: now.Add(-time.Hour)}
				w.run.Spec.TTLAfterFinished = &metav1.Duration{Duration: time.Hour}
			},
			want{action: expire, progress: conditions.Settled},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			c.given(w)
			d := decide(w)
			g.Expect(d.action).To(Equal(c.want.action))
			g.Expect(d.turn).To(Equal(c.want.turn))
			g.Expect(d.reason).To(Equal(c.want.reason))
			g.Expect(d.message).To(ContainSubstring(c.want.says))
			g.Expect(d.progress).To(Equal(c.want.progress))
			if c.want.child == "" {
				g.Expect(d.child).To(BeNil())
			} else {
				g.Expect(d.child.name).To(Equal(c.want.child))
			}
			if c.want.check != nil {
				c.want.check(g, d)
			}
		})
	}
}

func TestDecideDeleted(t *testing.T) {
	for name, c := range map[string]struct {
		given    func(w *world)
		action   action
		finished bool
		leaves   string
	}{
		"what runs is stopped first":                      {func(w *world) { w.job(0, 1, time.Minute) }, remove, false, ""},
		"pods that have not ended are waited for":         {func(w *world) { w.lingering = []string{"p"} }, nothing, false, ""},
		"the files are removed when nothing runs":         {func(*world) {}, clean, false, ""},
		"the removal is waited for":                       {func(w *world) { w.cleaner = &child{created: now} }, nothing, false, ""},
		"it is let go when the files are removed":         {func(w *world) { w.cleaner = &child{succeeded: true} }, nothing, true, ""},
		"it is let go when there never were files":        {func(w *world) { w.run.Status.Directory = "" }, nothing, true, ""},
		"it is let go when the FileSystem is gone":        {func(w *world) { w.fileSystem = nil }, nothing, true, "FileSystem scratch is gone"},
		"it is let go when no node mounts the filesystem": {func(w *world) { w.mounted = nil }, nothing, true, "no node has mounted"},
		"it is let go when the files can't be removed":    {func(w *world) { w.cleaner = &child{name: "c", failed: true, message: "no"} }, nothing, true, "Job c failed (no)"},
		"it is let go after some minutes, whatever happens": {func(w *world) {
			w.job(0, 1, time.Minute)
			w.run.DeletionTimestamp = &metav1.Time{Time: now.Add(-deleteTimeout - time.Second)}
		}, nothing, true, "the deletion took longer than 4m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			w.run.DeletionTimestamp = &metav1.Time{Time: now}
			c.given(w)
			d, finished := decideDeleted(w)
			g.Expect(d.action).To(Equal(c.action))
			g.Expect(finished).To(Equal(c.finished))
			g.Expect(d.leftBehind).To(ContainSubstring(c.leaves))
			g.Expect(d.leftBehind == "").To(Equal(c.leaves == ""))
		})
	}
}
