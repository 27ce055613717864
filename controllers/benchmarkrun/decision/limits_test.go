package decision

import (
	"strings"
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
)

// Each limit is a world at the limit, and one step beyond it.
func TestALimitIsExceededOnlyBeyondIt(t *testing.T) {
	unbegun := func(w *scope.Scope) { w.Run.Status.Directory = "" }
	checker := func(w *scope.Scope) {
		unbegun(w)
		scopetest.Checked(w, 1<<40)
		w.Checker.Succeeded, w.Provenance = false, scope.Provenance{}
	}
	for name, c := range map[string]struct {
		// given makes the world that is step beyond the limit.
		given func(w *scope.Scope, step int64)
		// at and beyond are parts of the message, or of why files stay, in the two worlds.
		at, beyond string
	}{
		"the free space": {func(w *scope.Scope, step int64) {
			unbegun(w)
			w.Plans[1].Demand.Bytes = 2<<30 + step
			scopetest.Checked(w, 2<<30)
		}, "running", "make room"},
		"the free inodes": {func(w *scope.Scope, step int64) {
			unbegun(w)
			w.Plans[1].Demand.Inodes = 30 + step
			scopetest.Checked(w, 1<<40)
			w.Provenance.Checked.FreeInodes = 30
		}, "running", "needs 31 inodes"},
		"no free inode at all": {func(w *scope.Scope, step int64) {
			unbegun(w)
			w.Plans[0].Demand.Inodes, w.Plans[1].Demand.Inodes = step, 0
			scopetest.Checked(w, 1<<40)
			w.Provenance.Checked.FreeInodes = 0
		}, "running", "needs 1 inodes, and FileSystem scratch has 0 free"},
		"the clients that are there": {func(w *scope.Scope, step int64) {
			for i := range w.Plans {
				w.Plans[i] = scopetest.PlanOf(benchmarks.OnLauncher)
				w.Plans[i].Clients = int(2 + step)
			}
		}, "running", "the run needs 3 nodes"},
		"the room on each target": {func(w *scope.Scope, step int64) {
			unbegun(w)
			w.Run.Spec.Tool, w.Servers, w.Image = v1alpha1.ToolOBDFilterSurvey, onServers(v1alpha1.ToolOBDFilterSurvey), ""
			for i := range w.Plans {
				w.Plans[i] = scopetest.PlanOf(benchmarks.OnServers)
				w.Plans[i].Demand = benchmarks.Demand{EachTarget: 10<<30 + step}
			}
			w.Members.Targets = append(w.Members.Targets,
				results.Target{Name: "ost0", StoragePool: "ssd", CapacityBytes: 200 << 30, UsedBytes: 180 << 30},
				results.Target{Name: "ost1", StoragePool: "ssd", CapacityBytes: 400 << 30})
		}, "looking at", "1 of them have less room"},
		"the check of the image": {func(w *scope.Scope, step int64) {
			checker(w)
			w.Checker.Created = scopetest.Now.Add(-scope.CheckTimeout - time.Duration(step))
		}, "Nothing: looking at", "Inspect: looking at"},
		"the removal of the files": {func(w *scope.Scope, step int64) {
			scopetest.AllDone(w)
			w.Cleaner = &children.Child{Name: "c", Created: scopetest.Now.Add(-scope.CleanTimeout - time.Duration(step))}
		}, "removing /mnt", "Job c did not end within 2m0s"},
		"the export of the results": {func(w *scope.Scope, step int64) {
			scopetest.AllDone(w)
			w.Run.Status.Directory = ""
			w.Run.Spec.Results = &v1alpha1.ResultsSpec{ObjectStore: &v1alpha1.ObjectStore{Bucket: "lab"}}
			w.Exporter = &children.Child{Name: "e", Message: "it still runs", Created: scopetest.Now.Add(-scope.ExportTimeout - time.Duration(step))}
		}, "exporting the complete results", "could not be exported to s3://lab/sweep-uid: Job e: it still runs"},
		"the bind of the run's own claim": {func(w *scope.Scope, step int64) {
			v := onClass(w)
			v.Claim.Status.Phase = corev1.ClaimPending
			v.Claim.CreationTimestamp = metav1.Time{Time: scopetest.Now.Add(-scope.BindTimeout - time.Duration(step))}
			unbegun(w)
		}, "is not bound to a volume", "was not bound within 15m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			for step, says := range []string{c.at, c.beyond} {
				w := scopetest.Idle()
				c.given(w, int64(step))
				d := Decide(w)
				action := map[action]string{Nothing: "Nothing", Inspect: "Inspect"}[d.Action]
				NewWithT(t).Expect(strings.Join([]string{action + ": " + d.Message, d.LeftBehind, d.Exported}, "; ")).To(ContainSubstring(says), "%d beyond", step)
			}
		})
	}
	run := scopetest.Idle().Run
	run.DeletionTimestamp = &metav1.Time{Time: scopetest.Now.Add(-scope.DeleteTimeout)}
	NewWithT(t).Expect(Expired(run, scopetest.Now)).To(BeFalse())
	NewWithT(t).Expect(Expired(run, scopetest.Now.Add(1))).To(BeTrue())
}

func TestTheFirstOfTwoEqualDemandsIsNamedAndPointsThatAreOverAreNot(t *testing.T) {
	g, w := NewWithT(t), scopetest.Idle()
	w.Run.Status.Directory = ""
	w.Plans[0].Demand.Bytes, w.Plans[1].Demand.Bytes = 3<<30, 3<<30
	scopetest.Checked(w, 1)
	g.Expect(Decide(w).Message).To(ContainSubstring("iozone.recordSize=64k needs 3GiB"))
	scopetest.Done(w, 0, 1, "")
	scopetest.Done(w, 0, 2, "")
	g.Expect(Decide(w).Message).To(ContainSubstring("iozone.recordSize=1m needs 3GiB"))

	w = scopetest.Idle()
	w.Plans[0].Clients, w.Plans[0].Steps[0].Command.Launch = 3, benchmarks.OnLauncher
	g.Expect(Decide(w).Message).To(ContainSubstring("the run needs 3 nodes"))
	scopetest.Done(w, 0, 1, "")
	scopetest.Done(w, 0, 2, "")
	scopetest.Settled(w)
	g.Expect(Decide(w).Action).To(Equal(Start), "a point that is over needs no client: %s", Decide(w).Message)
	w.Run.Spec.Caches, w.Plans[1].Clients = &v1alpha1.CachesSpec{Drop: v1alpha1.CachesOfClients}, 1
	w.Plans[0].Clients, w.Plans[0].Processes, w.Plans[1].Steps[0].Command.Launch = 2, 2, benchmarks.OnLauncher
	w.Inventories = map[string]*v1alpha1.NodeInventory{"n1": agent()}
	g.Expect(Decide(w).Action).To(Equal(DropCaches), "a point that is over needs no agent: %s", Decide(w).Message)

	w = scopetest.Idle()
	w.Plans[1].Steps = append(w.Plans[1].Steps, scopetest.PlanOf(benchmarks.OnProcesses).Steps...)
	w.Plans[1].Steps[0].Command.Launch, w.Plans[1].Processes = benchmarks.OnServers, 20
	w.Servers = onServers(w.Run.Spec.Tool)
	g.Expect(Decide(w).Message).To(ContainSubstring("20 processes"), "a step on the servers hides no step on the clients")
}

func TestAMessageBeginsWithWhatTheRunDoesAndEndsWithWhatItWaitsFor(t *testing.T) {
	pending := scopetest.PodOf(children.RoleClient, corev1.PodPending)
	pending.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "no node"}}
	for name, c := range map[string]struct {
		given func(w *scope.Scope)
		says  string
	}{
		"a job": {func(w *scope.Scope) {
			j := scopetest.Job(w, 0, 1, time.Minute)
			j.Pods, j.Outlasting = []corev1.Pod{pending}, "container c of pod p"
		}, "running iozone.recordSize=64k (repetition 1/2); its pod can't be scheduled: no node; its tool has ended, and container c of pod p, which " +
			"was not asked for, still runs"},
		"the check of image and space": {func(w *scope.Scope) {
			w.Run.Status.Directory = ""
			scopetest.Checked(w, 1<<40)
			w.Checker.Pods, w.Checker.Succeeded, w.Provenance = []corev1.Pod{pending}, false, scope.Provenance{}
		}, "looking at the image iozone:1 and the space of FileSystem scratch; its pod can't be scheduled: no node"},
		"the removal of the files, without a node": {func(w *scope.Scope) { scopetest.AllDone(w); w.Mounted = nil },
			"removing /mnt/scratch/ssd/.parallelfs-benchmarks/uid; waiting because no node has mounted FileSystem scratch"},
		"the removal of the files, without quota": {func(w *scope.Scope) {
			scopetest.AllDone(w)
			w.Cleaner = &children.Child{Name: "c", Refused: "exceeded quota: small"}
		}, "removing /mnt/scratch/ssd/.parallelfs-benchmarks/uid; c waits: a quota of namespace storage keeps its pods from being made: exceeded quota: small"},
	} {
		w := scopetest.Idle()
		c.given(w)
		NewWithT(t).Expect(Decide(w).Message).To(Equal(c.says), name)
	}
}

func TestARunThatHasEndedWritesAgainOnlyWhatItsChangedSpecAsksFor(t *testing.T) {
	elsewhere := &v1alpha1.ResultsSpec{ObjectStore: &v1alpha1.ObjectStore{Bucket: "lab"}}
	for name, c := range map[string]struct {
		published, exported string
		changed             bool
		results             *v1alpha1.ResultsSpec
		action              action
	}{
		"nothing, if nothing has changed":                       {action: Nothing},
		"nothing, if another version of it published otherwise": {published: "x", action: Nothing},
		"nothing, if it was never exported":                     {results: elsewhere, action: Nothing},
		"the results, if they are out of date":                  {published: "x", changed: true, action: Publish},
		"the export, if it has another destination":             {changed: true, results: elsewhere, exported: "s3://old/sweep-uid", action: Export},
		"nothing, if that export is done":                       {changed: true, results: elsewhere, exported: "s3://lab/sweep-uid", action: Nothing},
		"nothing, if the change concerns neither":               {changed: true, action: Nothing},
	} {
		t.Run(name, func(t *testing.T) {
			g, w := NewWithT(t), scopetest.Idle()
			scopetest.AllDone(w)
			w.Run.Status.CompletionTime, w.Run.Status.Results = &metav1.Time{Time: scopetest.Now}, "sweep-results"
			w.Run.Spec.Results, w.Run.Status.Exported = c.results, c.exported
			if c.published != "" {
				w.Published = c.published
			}
			if c.changed {
				w.Run.Generation = 2
			}
			d := Decide(w)
			g.Expect(d.Action).To(Equal(c.action))
			g.Expect(d.Unobserved).To(Equal(c.action == Export), "the status describes the former spec until the export is done")
		})
	}
	t.Run("and a run that ends exports only once", func(t *testing.T) {
		g, w := NewWithT(t), scopetest.Idle()
		scopetest.AllDone(w)
		w.Run.Status.Directory, w.Run.Spec.Results, w.Run.Status.Exported = "", elsewhere, "s3://lab/sweep-uid"
		d := Decide(w)
		g.Expect(d.Ended).To(BeTrue())
		g.Expect(d.Exported).To(Equal("s3://lab/sweep-uid"))
	})
	t.Run("and a claim that a person has made stays", func(t *testing.T) {
		g, w := NewWithT(t), scopetest.Idle()
		scopetest.OnVolume(w, corev1.ReadWriteOnce)
		scopetest.AllDone(w)
		w.Run.Status.CompletionTime = &metav1.Time{Time: scopetest.Now}
		g.Expect(Decide(w).Action).To(Equal(Nothing))
	})
	t.Run("and a job that is recorded and leaves does not run", func(t *testing.T) {
		g, w := NewWithT(t), scopetest.Idle()
		scopetest.Job(w, 0, 1, time.Minute).Deleting = true
		g.Expect(Decide(w).Running).To(BeTrue())
		scopetest.Done(w, 0, 1, "")
		g.Expect(Decide(w).Running).To(BeFalse())
	})
}
