package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestOneNewsOfAFileSystemIsOneEvent(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because"}
	}
	ready := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return condition(v1alpha1.ConditionReady, status, reason)
	}
	degraded := func(reason string) metav1.Condition {
		return condition(v1alpha1.ConditionDegraded, metav1.ConditionTrue, reason)
	}
	whole, less := ready(metav1.ConditionTrue, v1alpha1.ReasonHealthy), ready(metav1.ConditionTrue, v1alpha1.ReasonDegradedService)
	down := ready(metav1.ConditionFalse, v1alpha1.ReasonTargetsMissing)
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		told          []string
	}{
		"a disk dies, and programs go on": {
			[]metav1.Condition{whole}, []metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []string{"Warning TargetsMissing because"},
		},
		"then a server ends": {
			[]metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{less, degraded(v1alpha1.ReasonServersMissing)},
			[]string{"Warning ServersMissing because"},
		},
		"programs stop as something goes": {
			[]metav1.Condition{whole}, []metav1.Condition{down, degraded(v1alpha1.ReasonTargetsMissing)}, []string{"Warning TargetsMissing because"},
		},
		"programs go on again, and not everything is there": {
			[]metav1.Condition{down, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)},
			[]string{"Normal DegradedService because"},
		},
		"everything is there again": {
			[]metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{whole}, []string{"Normal Healthy because"},
		},
		"nothing is new": {[]metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, []metav1.Condition{less, degraded(v1alpha1.ReasonTargetsMissing)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(8)
			before, after := &v1alpha1.FileSystem{}, &v1alpha1.FileSystem{}
			before.Status.Conditions, after.Status.Conditions = c.before, c.after
			(&Reconciler{Recorder: recorder}).announce(before, after)
			close(recorder.Events)
			var told []string
			for text := range recorder.Events {
				told = append(told, text)
			}
			NewWithT(t).Expect(told).To(Equal(c.told))
		})
	}
}
