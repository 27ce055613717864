package decision

import (
	"cmp"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// agent returns the inventory of a node with an agent.
func agent() *v1alpha1.NodeInventory { return &v1alpha1.NodeInventory{} }

// onServers is a filesystem whose servers one tool measures.
type onServers v1alpha1.BenchmarkTool

func (o onServers) MeasuresServers(tool v1alpha1.BenchmarkTool) bool {
	return tool == v1alpha1.BenchmarkTool(o)
}

func (onServers) MeasuredTargets(backend.Input, v1alpha1.Role) map[string][]string { return nil }

func TestARunNamesWhatItWaitsFor(t *testing.T) {
	queued := func(w *scope.Scope, age time.Duration) *children.Child {
		w.Run.Spec.QueueName = "lab"
		c := scopetest.Job(w, 0, 1, age)
		c.Object.SetLabels(map[string]string{children.LabelQueue: "lab"})
		return c
	}
	unbegun := func(w *scope.Scope) { w.Run.Status.Directory = "" }
	surveys := func(w *scope.Scope, each int64) {
		w.Run.Spec.Tool, w.Servers, w.Image = v1alpha1.ToolOBDFilterSurvey, onServers(v1alpha1.ToolOBDFilterSurvey), ""
		for i := range w.Plans {
			w.Plans[i] = scopetest.PlanOf(benchmarks.OnServers)
			w.Plans[i].Demand = benchmarks.Demand{EachTarget: each}
		}
	}
	for name, c := range map[string]struct {
		given  func(w *scope.Scope)
		action action
		reason string
		says   string
		// progress is Reconciling unless it is set or the run rests.
		progress conditions.Progress
		rests    bool
		check    func(g *WithT, d Decision)
	}{
		"image and space are looked at before the first point": {
			given: unbegun, action: Check, reason: v1alpha1.ReasonPreflight, says: "looking at the image iozone:1 and the space of FileSystem scratch",
			check: func(g *WithT, d Decision) { g.Expect(d.Lease).To(Equal(LeaseTake)) },
		},
		"what the look has found is recorded": {
			given:  func(w *scope.Scope) { unbegun(w); scopetest.Checked(w, 1<<40); w.Provenance = scope.Provenance{} },
			action: Inspect, reason: v1alpha1.ReasonPreflight,
		},
		"a survey of the servers that has no room on a target waits for a person": {
			given: func(w *scope.Scope) {
				unbegun(w)
				surveys(w, 10<<30)
				w.Members.Targets = []results.Target{
					{Name: "oss1:/ost0", StoragePool: "ssd", CapacityBytes: 200 << 30, UsedBytes: 181 << 30},
					{Name: "oss1:/ost1", StoragePool: "ssd", CapacityBytes: 200 << 30, UsedBytes: 180 << 30}, {Name: "oss2:/ost2", StoragePool: "ssd"},
				}
			},
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled,
			says: "writes 10GiB to each storage target, and 2 of them have less room: make room, or a smaller run. " +
				"One 20th of each stays free for programs. Room: oss1:/ost0 (9GiB), oss2:/ost2 (size unknown)",
		},
		"a survey of the servers that has room begins": {
			given: func(w *scope.Scope) {
				unbegun(w)
				surveys(w, 10<<30)
				w.Members.Targets = []results.Target{{Name: "oss1:/ost0", StoragePool: "ssd", CapacityBytes: 200 << 30, UsedBytes: 180 << 30}, {Name: "mds1:/mdt0"}}
			},
			action: Inspect, reason: v1alpha1.ReasonPreflight,
		},
		"an image without a program stalls the run": {
			given: func(w *scope.Scope) {
				unbegun(w)
				scopetest.Checked(w, 1<<40)
				w.Provenance.Checked.MissingPrograms, w.Provenance.Checked.MissingUsers = []string{"mpirun", "ssh"}, []string{"sshd"}
			},
			reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled,
			says: "the image iozone:1 lacks the program mpirun, the program ssh and the user sshd, which iozone needs; docs/benchmark-images.md says",
		},
		"an image that can't be pulled stalls the run": {
			given: func(w *scope.Scope) {
				unbegun(w)
				scopetest.Checked(w, 0)
				w.Provenance.CheckFailed = "its pod can't pull the image iozone:1"
			},
			reason: v1alpha1.ReasonImageRequired, progress: conditions.Stalled, says: "its pod can't pull the image iozone:1",
		},
		"too little space stalls the run, with both sizes": {
			given:  func(w *scope.Scope) { unbegun(w); w.Plans[1].Demand.Bytes = 3 << 30; scopetest.Checked(w, 2<<30) },
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled,
			says:  "iozone.recordSize=1m needs 3GiB, and FileSystem scratch has 2GiB free: make room",
			check: func(g *WithT, d Decision) { g.Expect(d.Lease).To(Equal(LeaseFree)) },
		},
		"too few inodes stall the run": {
			given: func(w *scope.Scope) {
				unbegun(w)
				w.Plans[1].Demand.Inodes = 30
				scopetest.Checked(w, 1<<40)
				w.Provenance.Checked.FreeInodes = 29
			},
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled, says: "needs 30 inodes, and FileSystem scratch has 29 free",
		},
		"a filesystem that counts no inodes has enough": {
			given:  func(w *scope.Scope) { unbegun(w); w.Plans[1].Demand.Inodes = 30; scopetest.Checked(w, 1<<40) },
			reason: v1alpha1.ReasonRunning, check: func(g *WithT, d Decision) { g.Expect(d.Intends).To(BeTrue()) },
		},
		"a point that is over needs no space": {
			given: func(w *scope.Scope) {
				unbegun(w)
				scopetest.Done(w, 0, 1, "")
				scopetest.Done(w, 0, 2, "")
				scopetest.Settled(w)
				w.Plans[0].Demand.Bytes = 1 << 50
				scopetest.Checked(w, 1<<40)
			},
			reason: v1alpha1.ReasonRunning, check: func(g *WithT, d Decision) { g.Expect(d.Intends).To(BeTrue()) },
		},
		"a run that failed its preflight looks again after a while": {
			given: func(w *scope.Scope) {
				unbegun(w)
				scopetest.Checked(w, 1)
				w.Provenance.CheckedAt = scopetest.Now.Add(-scope.CheckAgain)
			},
			action: Remove, reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled,
		},
		"the look is over when the run has begun": {
			given: func(w *scope.Scope) { scopetest.Checked(w, 1<<40) }, action: Remove, reason: v1alpha1.ReasonRunning,
		},
		"the files of a phase that were removed by a suspension make its repetition begin anew": {
			given: func(w *scope.Scope) {
				unbegun(w)
				w.Plans[0] = scopetest.PlanOf(benchmarks.OnClient, "write", "read")
				scopetest.Entry(w, scopetest.At(0, 1))
				scopetest.Checked(w, 1<<40)
			},
			action: GiveUp, reason: v1alpha1.ReasonRunning, check: func(g *WithT, d Decision) { g.Expect(d.Interrupted).NotTo(BeEmpty()) },
		},
		"a tool of the servers is refused where they can't be measured": {
			given: func(w *scope.Scope) {
				w.FileSystem.Spec.Type = v1alpha1.BeeGFS
				w.Plans[1] = scopetest.PlanOf(benchmarks.OnServers)
			},
			reason: v1alpha1.ReasonBackendUnsupported, progress: conditions.Stalled, says: "it can't measure those of this one; FileSystem scratch is a BeeGFS",
		},
		"a tool of other servers is refused": {
			given: func(w *scope.Scope) {
				w.Servers, w.Run.Spec.Tool = onServers(v1alpha1.ToolOBDFilterSurvey), v1alpha1.ToolMDSSurvey
				w.Plans[1] = scopetest.PlanOf(benchmarks.OnServers)
			},
			reason: v1alpha1.ReasonBackendUnsupported, progress: conditions.Stalled, says: "mdsSurvey measures servers on their own nodes",
		},
		"a user's image is refused where it would run with all rights on the servers": {
			given: func(w *scope.Scope) {
				w.Servers, w.Run.Spec.Tool, w.Run.Spec.Image = onServers(v1alpha1.ToolMDSSurvey), v1alpha1.ToolMDSSurvey, "example.com/mine:1"
				w.Plans[1] = scopetest.PlanOf(benchmarks.OnServers)
			},
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled,
			says: "spec.image can't be set for mdsSurvey: it would run privileged on the servers; make the run without it: the servers' own mdsSurvey runs",
		},
		"a tool of the servers needs no image": {
			given: func(w *scope.Scope) {
				w.Servers, w.Run.Spec.Tool, w.Image = onServers(v1alpha1.ToolMDSSurvey), v1alpha1.ToolMDSSurvey, ""
				unbegun(w)
				w.Plans = []benchmarks.Plan{scopetest.PlanOf(benchmarks.OnServers), scopetest.PlanOf(benchmarks.OnServers)}
			},
			action: Inspect, reason: v1alpha1.ReasonPreflight,
		},
		"a tool of the management is refused where there is none": {
			given: func(w *scope.Scope) {
				w.FileSystem.Spec.Type = v1alpha1.MooseFS
				w.Plans[1] = scopetest.PlanOf(benchmarks.OnManagement)
			},
			reason: v1alpha1.ReasonBackendUnsupported, progress: conditions.Stalled, says: "FileSystem scratch is a MooseFS: measure it from its clients",
		},
		"a swept pool that the FileSystem lacks stalls the run, with the point": {
			given:  func(w *scope.Scope) { w.Points[1].Parameters["storagePool"] = "tape" },
			reason: v1alpha1.ReasonInvalidSpec, progress: conditions.Stalled, says: `storagePool at the point iozone.recordSize=1m: FileSystem scratch has no pool "tape"`,
		},
		"nodes that can't drop caches are named before the run starts": {
			given: func(w *scope.Scope) {
				unbegun(w)
				w.Plans[1] = scopetest.PlanOf(benchmarks.OnProcesses)
				w.Plans[1].Processes, w.Run.Spec.Caches = 2, &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.Inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
			},
			reason: v1alpha1.ReasonPreflightFailed, progress: conditions.Stalled, says: "spec.caches: no agent runs on n2, which could drop their caches",
		},
		"caches are dropped before a repetition": {
			given: func(w *scope.Scope) {
				w.Run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.Inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
			},
			action: DropCaches, reason: v1alpha1.ReasonDroppingCaches, says: "dropping caches before iozone.recordSize=64k (repetition 1/2)",
			check: func(g *WithT, d Decision) { g.Expect(d.Request).To(Equal("uid-p0-r1/1795262400")) },
		},
		"agents that have not answered are waited for": {
			given: func(w *scope.Scope) {
				w.Run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.Inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
				w.Dropped = scope.Drop{Request: "uid-p0-r1/1", Asked: scopetest.Now.Add(-time.Minute), Everyone: true, Waiting: []string{"n1"}}
			},
			reason: v1alpha1.ReasonDroppingCaches,
		},
		"agents that do not answer within a minute fail the attempt, and are named": {
			given: func(w *scope.Scope) {
				w.Run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.Inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
				w.Dropped = scope.Drop{Request: "uid-p0-r1/1", Asked: scopetest.Now.Add(-time.Minute - time.Second), Everyone: true, Waiting: []string{"n1"}}
			},
			action: GiveUp, reason: v1alpha1.ReasonDroppingCaches,
			check: func(g *WithT, d Decision) {
				g.Expect(d.Verdict).To(ContainSubstring("the caches of n1 were not dropped within 1m0s"))
			},
		},
		"a repetition starts when all caches are dropped": {
			given: func(w *scope.Scope) {
				w.Run.Spec.Caches = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}
				w.Inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
				w.Dropped = scope.Drop{Request: "uid-p0-r1/1", Asked: scopetest.Now, Everyone: true}
			},
			action: Start, reason: v1alpha1.ReasonRunning,
		},
		"a pause follows each repetition": {
			given: func(w *scope.Scope) {
				scopetest.Done(w, 0, 1, "")
				w.Run.Spec.Pause = &metav1.Duration{Duration: 30 * time.Second}
			},
			reason: v1alpha1.ReasonPausing, says: "pausing for 30s (spec.pause) before iozone.recordSize=64k (repetition 2/2)",
			check: func(g *WithT, d Decision) { g.Expect(d.After).To(Equal(40 * time.Second)) },
		},
		"a repetition starts when the pause is over": {
			given: func(w *scope.Scope) {
				scopetest.Done(w, 0, 1, "")
				w.Now, w.Run.Spec.Pause = scopetest.Now.Add(40*time.Second), &metav1.Duration{Duration: 30 * time.Second}
			},
			action: Start, reason: v1alpha1.ReasonRunning,
		},
		"a job in a queue is waited for, however long": {
			given:  func(w *scope.Scope) { queued(w, 48*time.Hour).Held = true },
			reason: v1alpha1.ReasonQueued, says: "sweep-p0-r1 waits in the queue lab",
		},
		"a job that has left its queue is marked": {
			given: func(w *scope.Scope) { queued(w, time.Minute) }, action: Mark, reason: v1alpha1.ReasonRunning,
		},
		"a job that was taken back into its queue was disturbed": {
			given: func(w *scope.Scope) {
				c := queued(w, time.Minute)
				c.Held, c.Admitted = true, scopetest.Now.Add(-time.Minute)
			},
			action: Keep, reason: v1alpha1.ReasonRunning, check: func(g *WithT, d Decision) { g.Expect(d.Invalid).To(Equal("was evicted from its queue")) },
		},
		"a suspended run takes its job out of the queue": {
			given: func(w *scope.Scope) { queued(w, time.Minute).Held = true; w.Run.Spec.Suspend = true }, action: Remove, reason: v1alpha1.ReasonRunning,
		},
		"a job without pods, for want of quota, is waited for, however long": {
			given:  func(w *scope.Scope) { scopetest.Job(w, 0, 1, 48*time.Hour).Refused = "exceeded quota: small" },
			reason: v1alpha1.ReasonQuotaExceeded, says: "a quota of namespace storage keeps its pods from being made: exceeded quota: small",
		},
		"a job that ended without pods, for want of quota, is no attempt": {
			given: func(w *scope.Scope) {
				c := scopetest.Job(w, 0, 1, time.Hour)
				c.Refused, c.Failed = "exceeded quota: small", true
			},
			action: Remove, reason: v1alpha1.ReasonQuotaExceeded,
		},
		"a look at the image for whose pod there is no quota is waited for": {
			given: func(w *scope.Scope) {
				unbegun(w)
				scopetest.Checked(w, 1<<40)
				w.Checker.Succeeded, w.Checker.Refused, w.Checker.Created = false, "exceeded quota: small", scopetest.Now.Add(-time.Hour)
			},
			reason: v1alpha1.ReasonQuotaExceeded, says: "sweep-check waits: a quota of namespace storage",
		},
		"a clean-up for whose pod there is no quota is waited for": {
			given: func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Cleaner = &children.Child{Name: "sweep-clean", Created: scopetest.Now.Add(-time.Hour), Refused: "exceeded quota: small"}
			},
			reason: v1alpha1.ReasonCleaningUp, says: "sweep-clean waits: a quota of namespace storage",
		},
		"workers without a launcher, for want of quota, are waited for": {
			given: func(w *scope.Scope) {
				c := scopetest.Job(w, 0, 1, time.Hour)
				c.Refused, c.Pods = "exceeded quota: small", []corev1.Pod{scopetest.PodOf(children.RoleWorker, corev1.PodRunning)}
			},
			reason: v1alpha1.ReasonQuotaExceeded,
		},
		"a job whose pods the API server refuses waits for a person": {
			given: func(w *scope.Scope) {
				scopetest.Job(w, 0, 1, 48*time.Hour).Refused = `violates PodSecurity "restricted:latest": hostPath volumes`
			},
			reason: v1alpha1.ReasonPodsRefused, progress: conditions.Stalled, says: "the pods of Job sweep-p0-r1 are refused: run kubectl label --overwrite " +
				`namespace storage pod-security.kubernetes.io/enforce=privileged. The API server reported: violates PodSecurity "restricted:latest": hostPath volumes`,
		},
		"a look at the image whose pod the API server refuses does not blame the image": {
			given: func(w *scope.Scope) {
				unbegun(w)
				scopetest.Checked(w, 1<<40)
				w.Checker.Succeeded, w.Checker.Failed, w.Checker.Created = false, true, scopetest.Now.Add(-time.Hour)
				w.Checker.Refused = "failed quota: strict: must specify limits.cpu for: benchmark"
			},
			action: Remove, reason: v1alpha1.ReasonPodsRefused, progress: conditions.Stalled, says: "or set spec.pods.resources of a new run",
		},
		"the complete results are written when a point is over": {
			given:  func(w *scope.Scope) { scopetest.Done(w, 0, 1, ""); scopetest.Done(w, 0, 2, "") },
			action: Publish, reason: v1alpha1.ReasonRunning,
		},
		"the complete results are written at the end, before the run is over": {
			given: func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Published, w.Run.Status.Directory = "2 of 2 points", ""
			},
			action: Publish, reason: v1alpha1.ReasonCleaningUp,
		},
		"results that are wanted elsewhere are taken there": {
			given: func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Run.Status.Directory, w.Run.UID = "", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
				w.Run.Spec.Results = &v1alpha1.ResultsSpec{PersistentVolumeClaim: &v1alpha1.ResultsClaim{Name: "lab", Path: "a"}}
			},
			action: Export, reason: v1alpha1.ReasonCleaningUp, says: "PersistentVolumeClaim lab, directory a/sweep-1b4e28ba",
		},
		"results that could not be taken elsewhere do not fail the run": {
			given: func(w *scope.Scope) {
				scopetest.AllDone(w)
				w.Run.Status.Directory = ""
				w.Run.Spec.Results = &v1alpha1.ResultsSpec{ObjectStore: &v1alpha1.ObjectStore{Bucket: "lab"}}
				w.Exporter = &children.Child{Name: "sweep-export", Failed: true, Message: "no such bucket"}
			},
			reason: v1alpha1.ReasonAllPointsSucceeded, rests: true,
			check: func(g *WithT, d Decision) {
				g.Expect(d.Exported).To(Equal("could not be exported to s3://lab/sweep-uid: Job sweep-export: no such bucket"))
			},
		},
		"a point that was disturbed too often fails the run, with the cause": {
			given: func(w *scope.Scope) {
				scopetest.AllDone(w)
				scopetest.Tries(w, 0, 0)
				scopetest.Entry(w, scopetest.At(1, 2), scopetest.Disturbed)
				w.Run.Status.Directory = ""
				scopetest.Settled(w)
			},
			reason: v1alpha1.ReasonPointsFailed, rests: true,
			says: "1 of 2 points failed; the first is point 1 (iozone.recordSize=1m): iozone was disturbed: pod master on node n1 was restarted",
		},
		"a waiting run releases the lease": {
			given:  func(w *scope.Scope) { w.FileSystem.Status.Conditions[0].Status = metav1.ConditionFalse },
			reason: v1alpha1.ReasonWaitingForFileSystem, check: func(g *WithT, d Decision) { g.Expect(d.Lease).To(Equal(LeaseFree)) },
		},
		"a suspended run releases the lease": {
			given:  func(w *scope.Scope) { w.Run.Spec.Suspend, w.Run.Status.Directory = true, "" },
			reason: v1alpha1.ReasonSuspended, rests: true, check: func(g *WithT, d Decision) { g.Expect(d.Lease).To(Equal(LeaseFree)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := scopetest.Idle()
			c.given(w)
			d := Decide(w)
			g.Expect(d.Reason).To(Equal(c.reason), d.Message)
			g.Expect(d.Action).To(Equal(c.action))
			g.Expect(d.Message).To(ContainSubstring(c.says))
			if !c.rests {
				c.progress = cmp.Or(c.progress, conditions.Reconciling)
			}
			g.Expect(d.Progress).To(Equal(c.progress))
			if c.check != nil {
				c.check(g, d)
			}
		})
	}
}

func TestADisturbedTurnIsInvalidWithItsCause(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	w.Daemons = []corev1.Pod{{
		ObjectMeta: metav1.ObjectMeta{
			UID: "uid-1", Labels: map[string]string{v1alpha1.LabelComponent: "master"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}},
		},
		Spec:   corev1.PodSpec{NodeName: "mds1"},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "master"}}},
	}}
	c := scopetest.Job(w, 0, 1, time.Minute)
	c.Succeeded = true
	c.Object.SetAnnotations(map[string]string{children.AnnotationTrust: w.Trust(nil).Encode()})
	g.Expect(Decide(w).Invalid).To(BeEmpty())
	w.Daemons[0].Status.ContainerStatuses[0].RestartCount = 1
	d := Decide(w)
	g.Expect(d.Action).To(Equal(Keep))
	g.Expect(d.Invalid).To(Equal("was disturbed: pod master on node mds1 was restarted"))
	t.Run("a FileSystem that is not Ready is no reason by itself", func(t *testing.T) {
		w.Daemons[0].Status.ContainerStatuses[0].RestartCount = 0
		w.FileSystem.Status.Conditions[0].Status = metav1.ConditionFalse
		NewWithT(t).Expect(Decide(w).Invalid).To(BeEmpty())
	})
}
