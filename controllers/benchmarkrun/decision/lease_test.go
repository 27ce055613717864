package decision

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/lease"
)

// held sets the condition ChangesHeld of the FileSystem.
func held(w *scope.Scope, reason string) {
	meta.SetStatusCondition(&w.FileSystem.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionChangesHeld, Status: metav1.ConditionTrue, Reason: reason,
	})
}

// worldOfARun returns a run that has the lease of its FileSystem, in a random state of its job, while changes of the FileSystem wait.
func worldOfARun(random *rand.Rand) *scope.Scope {
	w := scopetest.Idle()
	w.Run.Finalizers = []string{v1alpha1.Finalizer, "example.com/keeps"}
	w.Run.Spec.Suspend = random.IntN(4) == 0
	reason := v1alpha1.ReasonBenchmarkRunning
	if random.IntN(2) == 0 {
		reason = v1alpha1.ReasonBenchmarkStopping
	}
	held(w, reason)
	if random.IntN(4) == 0 {
		w.Run.DeletionTimestamp = new(metav1.NewTime(scopetest.Now))
	}
	if random.IntN(8) == 0 {
		return w // its jobs are gone
	}
	c := scopetest.Job(w, 0, 1, time.Duration(random.IntN(40))*time.Minute)
	c.Pods = []corev1.Pod{scopetest.PodOf(children.RoleClient, corev1.PodRunning)}
	switch random.IntN(6) {
	case 0:
		c.Succeeded = true
	case 1:
		c.Failed = true
	case 2:
		c.Refused, c.Pods = "exceeded quota", nil
	case 3:
		c.Held, c.Pods = true, nil
	case 4:
		c.Deleting = true
	}
	return w
}

// pass carries out a decision, and simulates the cluster's reaction. It returns whether the run may still have the lease.
func pass(w *scope.Scope, d Decision) (holds bool) {
	switch {
	case d.Action == Keep:
		entry := turns.Record{Point: d.Child.Turn.Point, Repetition: d.Child.Turn.Repetition, Attempt: d.Child.Turn.Attempt, Started: w.Now, Finished: w.Now}
		entry.Invalid, entry.Error = d.Invalid, d.Verdict
		w.Records.Add(entry)
	case d.Action == Remove && d.Child == w.Cleaner:
		w.Cleaner = nil
	case d.Action == Remove:
		w.Children = nil
	case d.Action == Clean:
		w.Cleaner = &children.Child{Name: "sweep-clean", Succeeded: true}
	case d.Cleaned:
		w.Run.Status.Directory = ""
	case len(w.Children) > 0 && w.Children[0].Deleting:
		w.Children = nil
	}
	if d.Status != "" {
		w.Run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: d.Status, Reason: d.Reason}}
	}
	return d.Lease != LeaseFree && !lease.Stopped(w.Run)
}

func TestARunGivesItsLeaseUpForWhatDoesNotWait(t *testing.T) {
	const worlds = 2000
	for seed := range uint64(worlds) {
		g, w := NewWithT(t), worldOfARun(rand.New(rand.NewPCG(seed, 39)))
		ends := meta.FindStatusCondition(w.FileSystem.Status.Conditions, v1alpha1.ConditionChangesHeld).Reason == v1alpha1.ReasonBenchmarkStopping ||
			w.Run.Spec.Suspend || !w.Run.DeletionTimestamp.IsZero()
		ran := len(w.Children) > 0 && !w.Children[0].Over() && !w.Children[0].NoPods() && !w.Children[0].Deleting
		holds := true
		for range 8 {
			var d Decision
			if w.Run.DeletionTimestamp.IsZero() {
				d = Decide(w)
			} else {
				var gone bool
				if d, gone = DecideDeleted(w); gone {
					controllerutil.RemoveFinalizer(w.Run, v1alpha1.Finalizer)
				}
			}
			if holds = pass(w, d); !holds {
				break
			}
			w.Now = w.Now.Add(scope.Soon)
		}
		if ends {
			g.Expect(holds).To(BeFalse(), "world %d: the changes wait for a run that has nothing to do", seed)
			g.Expect(w.Children).To(BeEmpty(), "world %d: nothing runs beside the changes", seed)
		}
		if ends && ran && !w.Run.Spec.Suspend && w.Run.DeletionTimestamp.IsZero() {
			g.Expect(w.Records.Of(0)).To(HaveExactElements(HaveField("Invalid", ContainSubstring("changes that do not wait for a benchmark"))), "world %d", seed)
		}
		if !holds && !w.Run.Spec.Suspend && w.Run.DeletionTimestamp.IsZero() {
			meta.RemoveStatusCondition(&w.FileSystem.Status.Conditions, v1alpha1.ConditionChangesHeld)
			if _, over := w.Next(); over {
				g.Expect(Decide(w).Lease).To(Equal(LeaseTake), "world %d: it goes on by itself", seed)
			}
		}
	}
}
