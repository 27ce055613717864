// Package conditions sets the conditions of the operator's kinds, so that all of them follow kstatus: a positive
// condition (Ready or Succeeded) that is always there, and Reconciling or Stalled while they are true.
package conditions

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// maxMessage is the limit of metav1.Condition's message that we keep, in bytes; the API's own is 32768.
const maxMessage = 4096

// MaxNote bounds an event's note, in bytes; the API's own limit is 1024.
const MaxNote = 1000

// Progress says what happens next.
type Progress int

// The kinds of progress.
const (
	// Settled means that nothing is under way.
	Settled Progress = iota
	// Reconciling means that the operator works on it, or waits for something that comes by itself.
	Reconciling
	// Stalled means that nothing goes on until a person changes something.
	Stalled
)

// Set writes the positive condition, and Reconciling or Stalled with the same reason and message as progress says.
func Set(list *[]metav1.Condition, generation int64, positive string, status metav1.ConditionStatus, progress Progress,
	reason, message string) {
	Add(list, generation, positive, positive, status, reason, message)
	SetProgress(list, generation, positive, progress, reason, message)
}

// SetProgress writes Reconciling or Stalled, as progress says, and removes the one that is not true.
func SetProgress(list *[]metav1.Condition, generation int64, positive string, progress Progress, reason, message string) {
	for kind, want := range map[string]Progress{v1alpha1.ConditionReconciling: Reconciling, v1alpha1.ConditionStalled: Stalled} {
		if progress == want {
			Add(list, generation, positive, kind, metav1.ConditionTrue, reason, message)
		} else {
			meta.RemoveStatusCondition(list, kind)
		}
	}
}

// Sort puts the positive condition first and the others in alphabetical order, so that a status reads the same each time.
func Sort(list []metav1.Condition, positive string) {
	slices.SortFunc(list, func(a, b metav1.Condition) int {
		switch {
		case a.Type == b.Type:
			return 0
		case a.Type == positive:
			return -1
		case b.Type == positive || a.Type > b.Type:
			return 1
		default:
			return -1
		}
	})
}

// Add writes one more condition.
func Add(list *[]metav1.Condition, generation int64, positive, kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(list, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: v1alpha1.Cut(message, maxMessage), ObservedGeneration: generation,
	})
	Sort(*list, positive)
}
