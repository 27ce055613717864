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
	good := condition(v1alpha1.ConditionDiskHealthy, metav1.ConditionTrue, v1alpha1.ReasonNoProblems)
	suspect := condition(v1alpha1.ConditionDiskHealthy, metav1.ConditionFalse, v1alpha1.ReasonDiskSuspect)
	for name, c := range map[string]struct {
		before    []metav1.Condition
		is        metav1.Condition
		published []string
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
		"the disk reports that it is good, for the first time": {[]metav1.Condition{proven}, good, nil},
		"the disk reports the same again":                      {[]metav1.Condition{proven, good}, good, nil},
		"the disk reports problems, for the first time":        {[]metav1.Condition{proven}, suspect, []string{"Warning DiskSuspect DiskHealthy: because"}},
		"the disk reports worse problems":                      {[]metav1.Condition{proven, suspect}, condition(v1alpha1.ConditionDiskHealthy, metav1.ConditionFalse, v1alpha1.ReasonDiskFailing), []string{"Warning DiskFailing DiskHealthy: because"}},
		"the disk reports problems under the same reason":      {[]metav1.Condition{proven, good}, condition(v1alpha1.ConditionDiskHealthy, metav1.ConditionFalse, good.Reason), []string{"Warning NoProblems DiskHealthy: because"}},
		"the disk reports that it is good again":               {[]metav1.Condition{proven, suspect}, good, []string{"Normal NoProblems DiskHealthy: because"}},
		"its data was moved and is needed again":               {[]metav1.Condition{condition(v1alpha1.ConditionSafeToRemove, metav1.ConditionTrue, v1alpha1.ReasonDataMoved)}, condition(v1alpha1.ConditionSafeToRemove, metav1.ConditionFalse, v1alpha1.ReasonMovingData), []string{"Warning MovingData SafeToRemove: because"}},
		"its data is moved, whatever the agent says of a disk": {[]metav1.Condition{missing}, condition(v1alpha1.ConditionSafeToRemove, metav1.ConditionFalse, v1alpha1.ReasonMovingData), []string{"Normal MovingData SafeToRemove: because"}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(8)
			before := &v1alpha1.StorageTarget{}
			before.Status.Conditions = c.before
			// What is no news hides no news that follow it.
			mine := []metav1.Condition{c.is}
			for _, none := range []metav1.Condition{silent, good} {
				if none.Type != c.is.Type {
					mine = append([]metav1.Condition{none}, mine...)
				}
			}
			(&Reconciler{Recorder: recorder}).announce(before, mine)
			close(recorder.Events)
			var published []string
			for text := range recorder.Events {
				published = append(published, text)
			}
			NewWithT(t).Expect(published).To(Equal(c.published))
		})
	}
}

func TestAnEventWithoutAFileSystemIsRelatedToNothing(t *testing.T) {
	g := NewWithT(t)
	g.Expect(related(nil) == nil).To(BeTrue(), "no nil pointer in an object")
	fs := &v1alpha1.FileSystem{}
	g.Expect(related(fs)).To(BeIdenticalTo(fs))
}
