// Package failures writes into an object's status why a pass over it failed, because errors that are only in a log stay unnoticed.
package failures

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
)

// The pauses before a pass that failed is tried again: they double from the first to the longest.
const (
	firstRetry   = 200 * time.Millisecond
	longestRetry = time.Minute
)

// Limiter is the rate limiter of a controller: a failed pass is tried again within a minute.
func Limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry)
}

// In names the step of a pass in which an error occurred, such as "apply the children"; nil stays nil.
func In(step string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", step, err)
}

// Writer writes failures into objects of one kind.
type Writer[T client.Object] struct {
	// Client writes, and Reader reads past the cache.
	Client client.Client
	Reader client.Reader
	// Recorder makes an event of each new sentence.
	Recorder events.EventRecorder
	// Conditions returns the conditions of an object, and Positive is the condition that always exists, such as Ready.
	Conditions func(T) *[]metav1.Condition
	Positive   string
}

// Say writes an error of a pass as the condition Reconciled, which is False, and makes an event for a new message. A conflict is no
// failure: the next pass follows at once. Nothing is written for a deleted object. A failed write is logged.
func (w Writer[T]) Say(ctx context.Context, key client.ObjectKey, object T, failed error) {
	if failed == nil || apierrors.IsConflict(failed) || ctx.Err() != nil {
		return
	}
	if err := w.say(ctx, key, object, failed); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		log.FromContext(ctx).Error(err, "The failure can't be written to the status", "failure", failed.Error())
	}
}

func (w Writer[T]) say(ctx context.Context, key client.ObjectKey, object T, failed error) error {
	if err := w.Reader.Get(ctx, key, object); err != nil {
		return fmt.Errorf("read it again: %w", err)
	}
	before, ok := object.DeepCopyObject().(T)
	if !ok {
		return fmt.Errorf("%T is copied to another type", object)
	}
	was := meta.FindStatusCondition(*w.Conditions(before), v1alpha1.ConditionReconciled)
	Describe(w.Conditions(object), object.GetGeneration(), w.Positive, failed)
	is := meta.FindStatusCondition(*w.Conditions(object), v1alpha1.ConditionReconciled)
	if was != nil && *was == *is {
		return nil
	}
	if err := w.Client.Status().Patch(ctx, object, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("write the condition %s: %w", v1alpha1.ConditionReconciled, err)
	}
	Announce(w.Recorder, object, was, is)
	return nil
}

// Teller makes events of failures where the status has no room for them: it is written in parts by several authors. The zero value has made
// no events.
type Teller struct {
	mutex sync.Mutex
	told  map[client.ObjectKey]string
}

// Tell makes an event of an error of a pass over an object, if it is new since the last pass without an error. Errors that Describe ignores
// make no event, and neither does an object that was not read.
func (t *Teller) Tell(recorder events.EventRecorder, key client.ObjectKey, object client.Object, failed error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	switch {
	case failed == nil:
		delete(t.told, key)
		return
	case isNone(failed), object.GetUID() == "", t.told[key] == failed.Error():
		return
	}
	if t.told == nil {
		t.told = map[client.ObjectKey]string{}
	}
	t.told[key] = failed.Error()
	note := v1alpha1.Cut(failed.Error(), conditions.MaxNote)
	recorder.Eventf(object, nil, corev1.EventTypeWarning, v1alpha1.ReasonPassFailed, "Reconcile", "%s", note)
}

// isNone is true for an error that is no failure: a conflict, which the next pass resolves at once, or the end of the operator.
func isNone(err error) bool { return apierrors.IsConflict(err) || errors.Is(err, context.Canceled) }

// Describe writes an error of a pass as the condition Reconciled, which is False. A conflict is no failure: the next pass follows at once.
// Neither is the end of the operator.
func Describe(list *[]metav1.Condition, generation int64, positive string, failed error) {
	if failed == nil || isNone(failed) {
		return
	}
	conditions.Add(list, generation, positive, v1alpha1.ConditionReconciled, metav1.ConditionFalse, v1alpha1.ReasonPassFailed, failed.Error())
}

// Announce makes an event of the condition Reconciled when its message is new. It is called after the status was written.
func Announce(recorder events.EventRecorder, object client.Object, was, is *metav1.Condition) {
	if is == nil || was != nil && was.Message == is.Message {
		return
	}
	recorder.Eventf(object, nil, corev1.EventTypeWarning, is.Reason, "Reconcile", "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
}

// Clear removes the condition that Say and Describe write, after a pass without an error.
func Clear(list *[]metav1.Condition) {
	meta.RemoveStatusCondition(list, v1alpha1.ConditionReconciled)
}
