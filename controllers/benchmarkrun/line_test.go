package benchmarkrun

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"parallelfs.dev/operator/api/v1alpha1"
)

// inLine returns a waiting run that was created at the given second of a minute.
func inLine(name string, second int) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{
		Name: name, CreationTimestamp: metav1.Date(2026, 11, 24, 12, 0, second, 0, time.UTC),
	}}
}

func ended(run *v1alpha1.BenchmarkRun) *v1alpha1.BenchmarkRun {
	run.Status.CompletionTime = new(metav1.Now())
	return run
}

func TestARunThatGoesWakesTheNextOneAndTheFirst(t *testing.T) {
	line := func() (a, b, c, d *v1alpha1.BenchmarkRun) {
		return inLine("a", 1), inLine("b", 2), inLine("c", 3), inLine("d", 4)
	}
	names := func(runs []*v1alpha1.BenchmarkRun) (out []string) {
		for _, run := range runs {
			out = append(out, run.Name)
		}
		return out
	}
	t.Run("of those behind it, only the next one is woken", func(t *testing.T) {
		a, b, c, d := line()
		NewWithT(t).Expect(names(woken(ended(a), []*v1alpha1.BenchmarkRun{a, b, c, d}))).To(Equal([]string{"b"}))
	})
	t.Run("one that does not want to run is passed over", func(t *testing.T) {
		a, b, c, d := line()
		b.Spec.Suspend = true
		NewWithT(t).Expect(names(woken(ended(a), []*v1alpha1.BenchmarkRun{a, b, c, d}))).To(Equal([]string{"c"}))
	})
	t.Run("the first one waits until no other run measures, such as a younger one", func(t *testing.T) {
		a, b, c, d := line()
		NewWithT(t).Expect(names(woken(ended(c), []*v1alpha1.BenchmarkRun{a, b, c, d}))).To(Equal([]string{"a", "d"}))
	})
	t.Run("the last one wakes the first", func(t *testing.T) {
		a, b, c, d := line()
		NewWithT(t).Expect(names(woken(ended(d), []*v1alpha1.BenchmarkRun{a, b, c, d}))).To(Equal([]string{"a"}))
	})
}

func TestOnlyARunThatComesOrGoesMovesTheLine(t *testing.T) {
	update := func(change func(*v1alpha1.BenchmarkRun)) bool {
		after := inLine("a", 1)
		change(after)
		return movesLine().Update(event.UpdateEvent{ObjectOld: inLine("a", 1), ObjectNew: after})
	}
	t.Run("a point that has ended does not", func(t *testing.T) {
		NewWithT(t).Expect(update(func(r *v1alpha1.BenchmarkRun) { r.Status.Progress = "1/2" })).To(BeFalse())
	})
	for what, change := range map[string]func(*v1alpha1.BenchmarkRun){
		"its end":      func(r *v1alpha1.BenchmarkRun) { ended(r) },
		"its deletion": func(r *v1alpha1.BenchmarkRun) { r.DeletionTimestamp = new(metav1.Now()) },
		"a suspension": func(r *v1alpha1.BenchmarkRun) { r.Spec.Suspend = true },
		"a stall": func(r *v1alpha1.BenchmarkRun) {
			r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue}}
		},
	} {
		t.Run(what+" does", func(t *testing.T) { NewWithT(t).Expect(update(change)).To(BeTrue()) })
	}
}
