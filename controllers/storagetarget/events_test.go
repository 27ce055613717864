package storagetarget

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestEachChangeOfATargetIsReportedOnceAndThoseOfOthersNot(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: "because"}
	}
	online := func(status metav1.ConditionStatus, reason string) metav1.Condition {
		return condition(v1alpha1.ConditionOnline, status, reason)
	}
	proven := condition(v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonProven)
	missing := condition(v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonTargetMissing)
	serves, away := online(metav1.ConditionTrue, v1alpha1.ReasonServing), online(metav1.ConditionFalse, v1alpha1.ReasonNotServing)
	silent := online(metav1.ConditionUnknown, v1alpha1.ReasonProbeUnreachable)
	for name, c := range map[string]struct {
		before []metav1.Condition
		is     metav1.Condition
		told   []string
	}{
		"a target that serves for the first time":              {[]metav1.Condition{proven, away}, serves, []string{"Normal Serving Online: because"}},
		"a target that the filesystem does not list any more":  {[]metav1.Condition{proven, serves}, away, []string{"Warning NotServing Online: because"}},
		"its agent has reported that the disk is missing":      {[]metav1.Condition{missing, serves}, away, nil},
		"a target that was just made serves nothing yet":       {nil, away, nil},
		"the whole filesystem does not answer":                 {[]metav1.Condition{proven, serves}, silent, nil},
		"the whole filesystem answers again":                   {[]metav1.Condition{proven, silent}, serves, nil},
		"a target is missing as the filesystem answers again":  {[]metav1.Condition{proven, silent}, away, []string{"Normal NotServing Online: because"}},
		"nothing has changed":                                  {[]metav1.Condition{proven, serves}, serves, nil},
		"nobody looks after the disk, and it does not serve":   {[]metav1.Condition{proven, serves}, online(metav1.ConditionUnknown, v1alpha1.ReasonAgentMissing), []string{"Warning AgentMissing Online: because"}},
		"a target that serves at the first look":               {[]metav1.Condition{proven}, serves, nil},
		"its data is moved, whatever the agent says of a disk": {[]metav1.Condition{missing}, condition(v1alpha1.ConditionSafeToRemove, metav1.ConditionFalse, v1alpha1.ReasonMovingData), []string{"Normal MovingData SafeToRemove: because"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(8)
			before := &v1alpha1.StorageTarget{}
			before.Status.Conditions = c.before
			(&Reconciler{Recorder: recorder}).announce(before, []metav1.Condition{c.is})
			close(recorder.Events)
			var told []string
			for text := range recorder.Events {
				told = append(told, text)
			}
			NewWithT(t).Expect(told).To(Equal(c.told))
		})
	}
}
