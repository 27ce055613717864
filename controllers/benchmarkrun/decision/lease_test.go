package decision_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision/decisiontest"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/lease"
)

// held sets the condition ChangesHeld of the FileSystem.
func held(w *scope.Scope, reason string) {
	meta.SetStatusCondition(&w.FileSystem.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionChangesHeld, Status: metav1.ConditionTrue, Reason: reason,
	})
}

func TestARunReleasesItsLeaseForChangesThatDoNotWait(t *testing.T) {
	const worlds = 2000
	for seed := range uint64(worlds) {
		g, random := NewWithT(t), rand.New(rand.NewPCG(seed, 39))
		w, reason := decisiontest.RandomRun(random), v1alpha1.ReasonBenchmarkRunning
		if random.IntN(2) == 0 {
			reason = v1alpha1.ReasonBenchmarkStopping
		}
		held(w, reason)
		ends := reason == v1alpha1.ReasonBenchmarkStopping || w.Run.Spec.Suspend || !w.Run.DeletionTimestamp.IsZero()
		ran := len(w.Children) > 0 && !w.Children[0].Over() && !w.Children[0].NoPods() && !w.Children[0].Deleting
		holds := true
		for range 8 {
			d := decisiontest.Decide(w)
			decisiontest.CarryOut(w, d)
			if holds = d.Lease != decision.LeaseFree && !lease.Stopped(w.Run); !holds {
				break
			}
			w.Now = w.Now.Add(scope.Soon)
		}
		if ends {
			g.Expect(holds).To(BeFalse(), "world %d: the changes wait for a run that has nothing to do", seed)
			for _, c := range w.Children {
				g.Expect(c.Kept).NotTo(BeEmpty(), "world %d: nothing runs beside the changes", seed)
			}
		}
		if ends && ran && !w.Run.Spec.Suspend && w.Run.DeletionTimestamp.IsZero() {
			g.Expect(w.Records.Of(0)).To(HaveExactElements(HaveField("Invalid", ContainSubstring("changes that do not wait for a benchmark"))), "world %d", seed)
		}
		kept := slices.ContainsFunc(w.Children, func(c children.Child) bool { return len(c.Kept) > 0 })
		if kept {
			g.Expect(holds).To(BeFalse(), "world %d: nothing of the run is left but what finalizers of others keep", seed)
		}
		if !holds && !kept && !w.Run.Spec.Suspend && w.Run.DeletionTimestamp.IsZero() {
			meta.RemoveStatusCondition(&w.FileSystem.Status.Conditions, v1alpha1.ConditionChangesHeld)
			if _, over := w.Next(); over {
				g.Expect(decision.Decide(w).Lease).To(Equal(decision.LeaseTake), "world %d: it goes on by itself", seed)
			}
		}
	}
}
