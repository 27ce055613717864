package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Action is the one thing that the agent does next with a target. After every action but None it takes a fresh look and
// decides again.
type Action string

// The actions.
const (
	// None leaves everything as it is.
	None Action = "None"
	// Record writes Decision.Provisioned and Decision.Plan to the status, and nothing else. The intent stands there
	// before the first byte is written.
	Record Action = "Record"
	// Format carries out Decision.Steps in order. The intent was recorded before.
	Format Action = "Format"
	// Mark writes the marker on the mounted filesystem: its uuid, and the FileSystem's present uid.
	Mark Action = "Mark"
	// Mount carries out Decision.Steps: one mount. A failure is MountFailed.
	Mount Action = "Mount"
	// Adopt writes Decision.Provisioned, with finished, to the status: the disk is this target's already.
	Adopt Action = "Adopt"
	// Unmount unmounts the target's mountpoint, and removes it when the target is deleted.
	Unmount Action = "Unmount"
	// Wipe carries out Decision.Steps: wipes of a deleted target's disk.
	Wipe Action = "Wipe"
)

// Progress says whether somebody works on the target.
type Progress string

// The kinds of progress.
const (
	// Settled is neither: it is as it should be.
	Settled Progress = "Settled"
	// Reconciling means that the agent goes on.
	Reconciling Progress = "Reconciling"
	// Stalled means that nothing goes on until a person or a disk changes something.
	Stalled Progress = "Stalled"
)

// Outcome is one condition.
type Outcome struct {
	Status          metav1.ConditionStatus
	Reason, Message string
}

// Decision is what is to be done with a target now, and what its status says.
type Decision struct {
	Action Action
	// Steps of the actions Format, Mount and Wipe.
	Steps []Step
	// Plan is what status.plan is to be; nil for none.
	Plan *v1alpha1.TargetPlan
	// Provisioned is what status.provisioned is to be, written before the action is carried out; nil only when the target
	// was never provisioned.
	Provisioned *v1alpha1.TargetProvisioned
	// Ready is the condition Ready; Progress makes Reconciling or Stalled true, with the same reason and message.
	Ready    Outcome
	Progress Progress
	// Released and Destroyed are those conditions; nil leaves them out.
	Released, Destroyed *Outcome
}

// Decide says what to do next with one target, from a fresh look at its disk.
func Decide(t *v1alpha1.StorageTarget, l Look, now time.Time, newUUID func() string) Decision {
	return Decision{
		Action: None, Provisioned: t.Status.Provisioned, Progress: Reconciling,
		Ready: Outcome{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPlanning, Message: "not judged yet"},
	}
}
