package main

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func running() *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Name: "creates", Namespace: "storage"},
		Status: v1alpha1.BenchmarkRunStatus{
			Progress: "1/3", Current: "processes=2 (repetition 1/5)", TimeLeft: "12m",
			Conditions: []metav1.Condition{{Type: "Succeeded", Status: "Unknown", Reason: "Running"}},
			Points: []v1alpha1.PointStatus{{
				Index: 0, State: "Succeeded", Parameters: []v1alpha1.PointParameter{{Name: "processes", Value: "1"}},
				Metrics: []v1alpha1.MetricResult{{Name: "File creation", Unit: "ops/s", Value: "1000", Samples: 5}},
			}, {Index: 1, State: "Running"}},
		},
	}
}

// change changes the run between two polls.
func change(t *testing.T, how func(*v1alpha1.BenchmarkRun)) func(client.Client) {
	return func(c client.Client) {
		run := &v1alpha1.BenchmarkRun{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "creates"}, run); err != nil {
			t.Error(err)
		}
		how(run)
		if err := c.Update(t.Context(), run); err != nil {
			t.Error(err)
		}
	}
}

func ends(status metav1.ConditionStatus, reason, message string) func(*v1alpha1.BenchmarkRun) {
	return func(run *v1alpha1.BenchmarkRun) {
		run.Status.Conditions[0] = metav1.Condition{Type: "Succeeded", Status: status, Reason: reason, Message: message}
	}
}

func TestWatchEndsWithTheRun(t *testing.T) {
	t.Run("with 0 when it has succeeded, after a line for each point", func(t *testing.T) {
		g := NewWithT(t)
		pfs := on(t, []client.Object{running()}, func(client.Client) {}, change(t, func(run *v1alpha1.BenchmarkRun) {
			run.Status.Progress = "2/3"
			run.Status.Points[1] = v1alpha1.PointStatus{
				Index: 1, State: "Failed", Parameters: []v1alpha1.PointParameter{{Name: "processes", Value: "2"}}, Message: "no space\nmore",
			}
		}), change(t, ends("True", "AllPointsSucceeded", "3 points")))
		got := pfs("bench", "watch", "creates")
		g.Expect(got.code).To(Equal(exitGood), got.stderr)
		g.Expect(got.stdout).To(Equal(`processes=1: File creation 1000 ops/s
1/3  processes=2 (repetition 1/5)
processes=2: Failed: no space
2/3  processes=2 (repetition 1/5)
2/3  Succeeded  processes=2 (repetition 1/5)
Succeeded: 3 points
`))
	})
	t.Run("with 1 when points failed", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, []client.Object{running()}, change(t, ends("False", "PointsFailed", "1 of 3 points failed")))("bench", "watch", "creates")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stdout).To(ContainSubstring("PointsFailed: 1 of 3 points failed"))
	})
	t.Run("with 1 when it has succeeded and its results are not accepted", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, []client.Object{running()}, change(t, func(run *v1alpha1.BenchmarkRun) {
			ends("True", "AllPointsSucceeded", "3 points")(run)
			run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{
				Type: "Accepted", Status: "Unknown", Reason: "ExpectationsUndecided", Message: "1 of 2 expectations is undecided: write",
			})
		}))("bench", "watch", "creates")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stdout).To(HaveSuffix("Succeeded: 3 points\nExpectationsUndecided: 1 of 2 expectations is undecided: write\n"))
	})
	t.Run("with 1 when it was deleted", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, []client.Object{running()}, func(c client.Client) {
			if err := c.Delete(t.Context(), running()); err != nil {
				t.Error(err)
			}
		})("bench", "watch", "creates")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stderr).To(ContainSubstring("the BenchmarkRun creates was deleted"))
	})
	t.Run("with 1 at once when there is none", func(t *testing.T) {
		g := NewWithT(t)
		got := on(t, nil)("bench", "watch", "creates")
		g.Expect(got.code).To(Equal(exitFailed))
		g.Expect(got.stderr).To(ContainSubstring("there is no BenchmarkRun or BenchmarkSuite creates"))
	})
}

func TestATerminalHasOneLineThatChanges(t *testing.T) {
	g := NewWithT(t)
	v := viewOfRun(running())
	g.Expect(status(v, true)).To(Equal("[######..............]  1/3  processes=2 (repetition 1/5)  12m left"))
	g.Expect(status(v, false)).To(Equal("1/3  processes=2 (repetition 1/5)"))
	g.Expect(bar("3/3")).To(Equal("[####################]"))
	for _, text := range []string{"", "x", "1/0", "1/x", "-1/3"} {
		g.Expect(bar(text)).To(BeEmpty(), text)
	}
	v.current = string(make([]rune, 300))
	g.Expect([]rune(status(v, true))).To(HaveLen(widest))
}

func TestASuiteIsWatchedByItsVariants(t *testing.T) {
	g := NewWithT(t)
	got := on(t, []client.Object{&v1alpha1.BenchmarkSuite{
		ObjectMeta: metav1.ObjectMeta{Name: "backends", Namespace: "storage"},
		Status: v1alpha1.BenchmarkSuiteStatus{
			Progress: "2/2", Conditions: []metav1.Condition{{Type: "Succeeded", Status: "True", Reason: "Done", Message: "2 variants"}},
			Variants: []v1alpha1.SuiteVariantStatus{{Name: "xfs", State: "Done"}, {Name: "ext4", State: "Failed", Message: "no disk"}},
			Table:    []v1alpha1.SuiteFigure{{Variant: "xfs", Run: "creates", Metric: "File creation", Unit: "ops/s", Value: "1200"}},
		},
	}})("bench", "watch", "backends")
	g.Expect(got.code).To(Equal(exitGood))
	g.Expect(got.stdout).To(And(
		ContainSubstring("xfs: Done; creates File creation 1200 ops/s\n"), ContainSubstring("ext4: Failed: no disk\n"), ContainSubstring("Succeeded: 2 variants\n")))
}
