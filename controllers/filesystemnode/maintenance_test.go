package filesystemnode

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

func TestTheMessagesAndEventsOfMaintenanceAndReboots(t *testing.T) {
	may := &views.Maintenance{May: true, Problem: backend.Problem{Reason: v1alpha1.ReasonInMaintenance, Message: "it may be away"}}
	waits := &views.Maintenance{Problem: backend.Problem{Reason: v1alpha1.ReasonMaintenanceWaits, Message: "it waits"}}
	late := &views.Maintenance{Problem: backend.Problem{Reason: v1alpha1.ReasonMaintenanceTooLong, Message: "it takes too long"}}
	type looks = []views.Node
	seen := func(boot string, m *views.Maintenance) views.Node { return views.Node{BootID: boot, Maintenance: m} }
	for name, c := range map[string]struct {
		looks  looks
		reason string
		events []string
	}{
		"nothing is requested":                       {looks: looks{seen("1", nil), seen("1", nil)}},
		"a node that is seen for the first time":     {looks: looks{seen("", nil), seen("1", nil)}},
		"the boot id is not known for a moment":      {looks: looks{seen("1", nil), seen("", nil), seen("1", nil)}},
		"an unannounced reboot":                      {looks: looks{seen("1", nil), seen("2", nil), seen("2", nil)}, reason: v1alpha1.ReasonRebooted, events: []string{"Warning RebootedUnasked"}},
		"a reboot while the boot id was unknown":     {looks: looks{seen("1", nil), seen("", nil), seen("2", nil)}, reason: v1alpha1.ReasonRebooted, events: []string{"Warning RebootedUnasked"}},
		"a reboot of a node that had to wait":        {looks: looks{seen("1", waits), seen("2", nil)}, reason: v1alpha1.ReasonRebooted, events: []string{"Warning MaintenanceWaits", "Warning RebootedUnasked"}},
		"one that waits goes":                        {looks: looks{seen("1", waits), seen("1", may)}, reason: v1alpha1.ReasonInMaintenance, events: []string{"Warning MaintenanceWaits", "Normal InMaintenance"}},
		"a reboot in a maintenance":                  {looks: looks{seen("1", may), seen("2", may), seen("2", nil)}, events: []string{"Normal InMaintenance", "The maintenance of node oss1 is over"}},
		"a reboot that is noticed when it is over":   {looks: looks{seen("1", may), seen("2", nil), seen("2", nil)}, events: []string{"Normal InMaintenance", "The maintenance of node oss1 is over"}},
		"a reboot in a maintenance that is too long": {looks: looks{seen("1", may), seen("1", late), seen("2", late), seen("2", nil)}, events: []string{"Normal InMaintenance", "Warning MaintenanceTooLong"}},
		"a maintenance after an unannounced reboot": {
			looks:  looks{seen("1", nil), seen("2", nil), seen("2", may), seen("2", nil)},
			events: []string{"Warning RebootedUnasked", "Normal InMaintenance", "The maintenance of node oss1 is over"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			recorder := events.NewFakeRecorder(10)
			r := &Reconciler{Recorder: recorder}
			node := &v1alpha1.FileSystemNode{}
			node.Spec.Node = "oss1"
			for _, look := range c.looks {
				after := describe(node, look)
				r.announce(node, after)
				node.Status = after
			}
			is := meta.FindStatusCondition(node.Status.Conditions, v1alpha1.ConditionMaintenance)
			if c.reason == "" {
				g.Expect(is).To(BeNil())
			} else {
				g.Expect(is.Reason).To(Equal(c.reason))
				g.Expect(is.Status == metav1.ConditionTrue).To(Equal(c.reason == v1alpha1.ReasonInMaintenance))
			}
			close(recorder.Events)
			var said []string
			for e := range recorder.Events {
				said = append(said, e)
			}
			g.Expect(said).To(HaveLen(len(c.events)), "%v", said)
			for i := range said {
				g.Expect(said[i]).To(ContainSubstring(c.events[i]))
			}
		})
	}
}
