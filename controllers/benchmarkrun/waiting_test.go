package benchmarkrun

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/conditions"
)

// agent is that of a node.
func agent() *v1alpha1.NodeInventory { return &v1alpha1.NodeInventory{} }

func TestWhatARunWaitsFor(t *testing.T) {
	queued := func(w *world, age time.Duration) *child {
		w.run.Spec.QueueName = "lab"
		c := w.job(0, 1, age)
		c.object.SetLabels(map[string]string{labelQueue: "lab"})
		return c
	}
	unbegun := func(w *world) { w.run.Status.Directory = "" }
	for name, c := range map[string]struct {
		given  func(w *world)
		action action
		reason string
		says   string
		// progress is Reconciling unless it is said or the run rests.
		progress conditions.Progress
		rests    bool
		check    func(g *WithT, d decision)
	}{
		"image and space are looked at before the first point": {
			given: unbegun, action: check, reason: v1alpha1.ReasonPreflight, says: "looking at the image iozone:1 and the space of FileSystem scratch",
			check: func(g *WithT, d decision) { g.Expect(d.lease).To(Equal(leaseTake)) },
		},
		"what the look has found is recorded": {
			given:  func(w *world) { unbegun(w); w.checked(1 << 40); w.provenance = provenance{} },
			action: inspect, reason: v1alpha1.ReasonPreflight,
		},
		"an image without a program stalls the run": {
			given: func(w *world) {
				unbegun(w)
				w.checked(1 << 40)
				w.provenance.Checked.MissingPrograms, w.provenance.Checked.MissingUsers = []string{"mpirun", "ssh"}, []string{"sshd"}
			},
			reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled,
			says: "the image iozone:1 lacks the program mpirun, the program ssh and the user sshd, which iozone needs; docs/benchmark-images.md says",
		},
		"an image that can't be pulled stalls the run": {
			given: func(w *world) {
				unbegun(w)
				w.checked(0)
				w.provenance.CheckFailed = "its pod can't pull the image iozone:1"
			},
			reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled, says: "its pod can't pull the image iozone:1",
		},
		"too little space stalls the run, with both sizes": {
			given:  func(w *world) { unbegun(w); w.plans[1].Demand.Bytes = 3 << 30; w.checked(2 << 30) },
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled,
			says:  "iozone.recordSize=1m needs 3GiB, and FileSystem scratch has 2GiB free: make room",
			check: func(g *WithT, d decision) { g.Expect(d.lease).To(Equal(leaseFree)) },
		},
		"too few inodes stall the run": {
			given: func(w *world) {
				unbegun(w)
				w.plans[1].Demand.Inodes = 30
				w.checked(1 << 40)
				w.provenance.Checked.FreeInodes = 29
			},
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled, says: "needs 30 inodes, and FileSystem scratch has 29 free",
		},
		"a filesystem that counts no inodes has enough": {
			given:  func(w *world) { unbegun(w); w.plans[1].Demand.Inodes = 30; w.checked(1 << 40) },
			reason: v1alpha1.ReasonRunning, check: func(g *WithT, d decision) { g.Expect(d.intends).To(BeTrue()) },
		},
		"a point that is over needs no space": {
			given: func(w *world) {
				unbegun(w)
				w.done(0, 1, "")
				w.done(0, 2, "")
				w.settled()
				w.plans[0].Demand.Bytes = 1 << 50
				w.checked(1 << 40)
			},
			reason: v1alpha1.ReasonRunning, check: func(g *WithT, d decision) { g.Expect(d.intends).To(BeTrue()) },
		},
		"a run that failed its preflight looks again after a while": {
			given:  func(w *world) { unbegun(w); w.checked(1); w.provenance.CheckedAt = now.Add(-checkAgain) },
			action: remove, reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled,
		},
		"the look is over when the run has begun": {
			given: func(w *world) { w.checked(1 << 40) }, action: remove, reason: v1alpha1.ReasonRunning,
		},
		"the files of a phase that were removed by a suspension make its repetition begin anew": {
			given: func(w *world) {
				unbegun(w)
				w.plans[0] = planOf(benchmarks.OnClient, "write", "read")
				w.entry(at(0, 1))
				w.checked(1 << 40)
			},
			action: giveUp, reason: v1alpha1.ReasonRunning, check: func(g *WithT, d decision) { g.Expect(d.interrupted).NotTo(BeEmpty()) },
		},
		"a tool of Lustre's servers is refused elsewhere": {
			given:  func(w *world) { w.fileSystem.Spec.Type = v1alpha1.BeeGFS; w.plans[1] = planOf(benchmarks.OnServers) },
			reason: v1alpha1.ReasonBackendUnsupported, progress: conditions.Stalled, says: "measures the servers of a Lustre; FileSystem scratch is a BeeGFS",
		},
		"a user's image is refused where it would run with all rights on the servers": {
			given: func(w *world) {
				w.fileSystem.Spec.Type, w.run.Spec.Tool, w.run.Spec.Image = lustre, v1alpha1.ToolMDSSurvey, "example.com/mine:1"
				w.plans[1] = planOf(benchmarks.OnServers)
			},
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled,
			says: "spec.image can't be set for mds-survey: it would run privileged on the servers",
		},
		"a tool of the servers without an image does not ask the user for one": {
			given: func(w *world) {
				w.fileSystem.Spec.Type, w.run.Spec.Tool, w.image = lustre, v1alpha1.ToolMDSSurvey, ""
				w.plans[1] = planOf(benchmarks.OnServers)
			},
			reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled,
			says: "no image has mds-survey: set the Helm chart's value images.benchmarks.mds-survey",
		},
		"a tool of the management is refused where there is none": {
			given: func(w *world) {
				w.fileSystem.Spec.Type = v1alpha1.MooseFS
				w.plans[1] = planOf(benchmarks.OnManagement)
			},
			reason: v1alpha1.ReasonBackendUnsupported, progress: conditions.Stalled, says: "FileSystem scratch is a MooseFS: measure it from its clients",
		},
		"a swept pool that the FileSystem lacks stalls the run, with the point": {
			given:  func(w *world) { w.points[1].Parameters["storagePool"] = "tape" },
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled, says: `storagePool at the point iozone.recordSize=1m: FileSystem scratch has no pool "tape"`,
		},
		"nodes that can't drop caches are named before the run starts": {
			given: func(w *world) {
				unbegun(w)
				w.plans[1] = planOf(benchmarks.OnProcesses)
				w.plans[1].Processes, w.run.Spec.Caches = 2, &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
			},
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled, says: "spec.caches: no agent runs on n2, which could drop their caches",
		},
		"caches are dropped before a repetition": {
			given: func(w *world) {
				w.run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
			},
			action: dropCaches, reason: v1alpha1.ReasonDroppingCaches, says: "dropping caches before iozone.recordSize=64k (repetition 1/2)",
			check: func(g *WithT, d decision) { g.Expect(d.request).To(Equal("uid-p0-r1/1795262400")) },
		},
		"agents that have not answered are waited for": {
			given: func(w *world) {
				w.run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
				w.dropped = drop{request: "uid-p0-r1/1", asked: now.Add(-time.Minute), everyone: true, waiting: []string{"n1"}}
			},
			reason: v1alpha1.ReasonDroppingCaches,
		},
		"agents that do not answer within a minute fail the attempt, and are named": {
			given: func(w *world) {
				w.run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
				w.dropped = drop{request: "uid-p0-r1/1", asked: now.Add(-time.Minute - time.Second), everyone: true, waiting: []string{"n1"}}
			},
			action: giveUp, reason: v1alpha1.ReasonDroppingCaches,
			check: func(g *WithT, d decision) {
				g.Expect(d.verdict).To(ContainSubstring("the caches of n1 were not dropped within 1m0s"))
			},
		},
		"a repetition starts when all caches are dropped": {
			given: func(w *world) {
				w.run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
				w.dropped = drop{request: "uid-p0-r1/1", asked: now, everyone: true}
			},
			action: start, reason: v1alpha1.ReasonRunning,
		},
		"a pause follows each repetition": {
			given: func(w *world) {
				w.done(0, 1, "")
				w.run.Spec.Pause = &metav1.Duration{Duration: 30 * time.Second}
			},
			reason: v1alpha1.ReasonPausing, says: "pausing for 30s (spec.pause) before iozone.recordSize=64k (repetition 2/2)",
			check: func(g *WithT, d decision) { g.Expect(d.after).To(Equal(40 * time.Second)) },
		},
		"a repetition starts when the pause is over": {
			given: func(w *world) {
				w.done(0, 1, "")
				w.now, w.run.Spec.Pause = now.Add(40*time.Second), &metav1.Duration{Duration: 30 * time.Second}
			},
			action: start, reason: v1alpha1.ReasonRunning,
		},
		"a job in a queue is waited for, however long": {
			given:  func(w *world) { queued(w, 48*time.Hour).held = true },
			reason: v1alpha1.ReasonQueued, says: "sweep-p0-r1 waits in the queue lab",
		},
		"a job that has left its queue is marked": {
			given: func(w *world) { queued(w, time.Minute) }, action: mark, reason: v1alpha1.ReasonRunning,
		},
		"a job that was taken back into its queue was disturbed": {
			given: func(w *world) {
				c := queued(w, time.Minute)
				c.held, c.admitted = true, now.Add(-time.Minute)
			},
			action: keep, reason: v1alpha1.ReasonRunning, check: func(g *WithT, d decision) { g.Expect(d.invalid).To(Equal("was evicted from its queue")) },
		},
		"a suspended run takes its job out of the queue": {
			given: func(w *world) { queued(w, time.Minute).held = true; w.run.Spec.Suspend = true }, action: remove, reason: v1alpha1.ReasonRunning,
		},
		"a job without pods, for want of quota, is waited for, however long": {
			given:  func(w *world) { w.job(0, 1, 48*time.Hour).quota = "exceeded quota: small" },
			reason: v1alpha1.ReasonQuotaExceeded, says: "a quota of namespace storage keeps its pods from being made: exceeded quota: small",
		},
		"a job that ended without pods, for want of quota, is no attempt": {
			given: func(w *world) {
				c := w.job(0, 1, time.Hour)
				c.quota, c.failed = "exceeded quota: small", true
			},
			action: remove, reason: v1alpha1.ReasonQuotaExceeded,
		},
		"a look at the image for whose pod there is no quota is waited for": {
			given: func(w *world) {
				unbegun(w)
				w.checked(1 << 40)
				w.checker.succeeded, w.checker.quota, w.checker.created = false, "exceeded quota: small", now.Add(-time.Hour)
			},
			reason: v1alpha1.ReasonQuotaExceeded, says: "sweep-check waits: a quota of namespace storage",
		},
		"a clean-up for whose pod there is no quota is waited for": {
			given: func(w *world) {
				w.allDone()
				w.cleaner = &child{name: "sweep-clean", created: now.Add(-time.Hour), quota: "exceeded quota: small"}
			},
			reason: v1alpha1.ReasonCleaningUp, says: "sweep-clean waits: a quota of namespace storage",
		},
		"workers without a launcher, for want of quota, are waited for": {
			given: func(w *world) {
				c := w.job(0, 1, time.Hour)
				c.quota, c.pods = "exceeded quota: small", []corev1.Pod{podOf(roleWorker, corev1.PodRunning)}
			},
			reason: v1alpha1.ReasonQuotaExceeded,
		},
		"the complete results are written when a point is over": {
			given:  func(w *world) { w.done(0, 1, ""); w.done(0, 2, "") },
			action: publish, reason: v1alpha1.ReasonRunning,
		},
		"the complete results are written at the end, before the run is over": {
			given: func(w *world) {
				w.allDone()
				w.published, w.run.Status.Directory = "2 of 2 points", ""
			},
			action: publish, reason: v1alpha1.ReasonCleaningUp,
		},
		"results that are wanted elsewhere are taken there": {
			given: func(w *world) {
				w.allDone()
				w.run.Status.Directory, w.run.UID = "", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
				w.run.Spec.Results = &v1alpha1.ResultsSpec{PersistentVolumeClaim: &v1alpha1.ResultsClaim{Name: "lab", Path: "a"}}
			},
			action: export, reason: v1alpha1.ReasonCleaningUp, says: "PersistentVolumeClaim lab, directory a/sweep-1b4e28ba",
		},
		"results that could not be taken elsewhere do not fail the run": {
			given: func(w *world) {
				w.allDone()
				w.run.Status.Directory = ""
				w.run.Spec.Results = &v1alpha1.ResultsSpec{ObjectStore: &v1alpha1.ObjectStore{Bucket: "lab"}}
				w.exporter = &child{name: "sweep-export", failed: true, message: "no such bucket"}
			},
			reason: v1alpha1.ReasonAllPointsSucceeded, rests: true,
			check: func(g *WithT, d decision) {
				g.Expect(d.exported).To(Equal("could not be taken to s3://lab/sweep-uid: Job sweep-export: no such bucket"))
			},
		},
		"a point that was disturbed too often fails the run, with the cause": {
			given: func(w *world) {
				w.allDone()
				w.tries(0, 0)
				w.entry(at(1, 2), disturbed)
				w.run.Status.Directory = ""
				w.settled()
			},
			reason: v1alpha1.ReasonPointsFailed, rests: true,
			says: "1 of 2 points failed; the first is point 1 (iozone.recordSize=1m): iozone was disturbed: pod master on node n1 was restarted",
		},
		"what waits lets the lease go": {
			given:  func(w *world) { w.fileSystem.Status.Conditions[0].Status = metav1.ConditionFalse },
			reason: v1alpha1.ReasonWaitingForFileSystem, check: func(g *WithT, d decision) { g.Expect(d.lease).To(Equal(leaseFree)) },
		},
		"a suspended run lets the lease go": {
			given:  func(w *world) { w.run.Spec.Suspend, w.run.Status.Directory = true, "" },
			reason: v1alpha1.ReasonSuspended, rests: true, check: func(g *WithT, d decision) { g.Expect(d.lease).To(Equal(leaseFree)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			c.given(w)
			d := decide(w)
			g.Expect(d.reason).To(Equal(c.reason), d.message)
			g.Expect(d.action).To(Equal(c.action))
			g.Expect(d.message).To(ContainSubstring(c.says))
			if !c.rests {
				c.progress = cmp.Or(c.progress, conditions.Reconciling)
			}
			g.Expect(d.progress).To(Equal(c.progress))
			if c.check != nil {
				c.check(g, d)
			}
		})
	}
}

func TestWhatTheImageMustHold(t *testing.T) {
	for name, c := range map[string]struct {
		launch          benchmarks.Launch
		programs, users []string
	}{
		"a tool on one client brings itself": {benchmarks.OnClient, []string{"iozone"}, nil},
		"a tool that starts its own processes needs ssh": {
			benchmarks.OnLauncher, []string{"/usr/sbin/sshd", "iozone", "ssh"}, []string{"root", "sshd"}},
		"an MPI program needs mpirun as well": {
			benchmarks.OnProcesses, []string{"/usr/sbin/sshd", "iozone", "mpirun", "ssh"}, []string{"root", "sshd"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := idle()
			w.plans = []benchmarks.Plan{planOf(c.launch), planOf(c.launch)}
			programs, users := w.contract()
			g.Expect(programs).To(Equal(c.programs))
			g.Expect(users).To(BeEquivalentTo(c.users))
		})
	}
}
