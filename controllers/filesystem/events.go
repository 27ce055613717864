package filesystem

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/failures"
)

// announce emits an event if Ready or Degraded has changed its status or reason, if changes begin to wait, and for a new failure. It also
// emits one if backups begin or cease to be as requested, and for each step of a recovery. It is called after the status was written.
func (r *Reconciler) announce(before, after *v1alpha1.FileSystem) {
	of := func(fs *v1alpha1.FileSystem, kind string) *metav1.Condition {
		return meta.FindStatusCondition(fs.Status.Conditions, kind)
	}
	failures.Announce(r.Recorder, after, of(before, v1alpha1.ConditionReconciled), of(after, v1alpha1.ConditionReconciled))
	tell := func(kind, action string, is *metav1.Condition) {
		r.Recorder.Eventf(after, nil, kind, is.Reason, action, "%s", v1alpha1.Cut(is.Message, conditions.MaxNote))
	}
	if is := of(after, v1alpha1.ConditionChangesHeld); is != nil && of(before, is.Type) == nil {
		tell(corev1.EventTypeNormal, "Wait", is)
	}
	for _, kind := range []string{
		v1alpha1.ConditionPoolNearlyFull, v1alpha1.ConditionNodesSelected, v1alpha1.ConditionPodsAsAsked, v1alpha1.ConditionCopiesLast,
		v1alpha1.ConditionMountsShared, v1alpha1.ConditionPartnersProven, v1alpha1.ConditionCertificateLasts,
	} {
		if is := changed(before, after, kind); is != nil {
			tell(corev1.EventTypeWarning, "Observe", is)
		}
	}
	if is := changed(before, after, v1alpha1.ConditionBackedUp); is != nil {
		switch is.Reason {
		case v1alpha1.ReasonVerified:
			tell(corev1.EventTypeNormal, "BackUp", is)
		case v1alpha1.ReasonBackupFailed, v1alpha1.ReasonBackupTooOld, v1alpha1.ReasonBackupsInvalid:
			tell(corev1.EventTypeWarning, "BackUp", is)
		}
	}
	r.announceDamage(before, after)
	unproven := announceCopies(before, after, tell)
	if is := changed(before, after, v1alpha1.ConditionRecovering); is != nil {
		kind := corev1.EventTypeNormal
		if is.Reason == v1alpha1.ReasonRecoveryRefused || is.Reason == v1alpha1.ReasonRecoveryFailed {
			kind = corev1.EventTypeWarning
		}
		tell(kind, "Recover", is)
	}
	was := of(before, v1alpha1.ConditionReady)
	is, degraded := changed(before, after, v1alpha1.ConditionReady), changed(before, after, v1alpha1.ConditionDegraded)
	// One change emits one event. If programs continue although something is missing, it is that of Degraded; if they do not, that of Ready.
	serves := is == nil || is.Status == metav1.ConditionTrue
	if degraded != nil && serves && (!unproven || degraded.Reason != v1alpha1.ReasonCopiesUnproven) {
		tell(corev1.EventTypeWarning, "Observe", degraded)
	}
	if is == nil || degraded != nil && serves && is.Reason == v1alpha1.ReasonDegradedService {
		return
	}
	kind := corev1.EventTypeNormal
	if is.Status != metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionTrue ||
		meta.IsStatusConditionTrue(after.Status.Conditions, v1alpha1.ConditionStalled) {
		kind = corev1.EventTypeWarning
	}
	tell(kind, "Observe", is)
}

// announceDamage emits an event for each backup that was verified and is now damaged.
func (r *Reconciler) announceDamage(before, after *v1alpha1.FileSystem) {
	for i := range after.Status.Backups {
		if b := &after.Status.Backups[i]; wasVerified(before, b) && b.Result == v1alpha1.BackupUnverified {
			note := fmt.Sprintf("The backup %s in %s: %s", b.Name, cmp.Or(b.PersistentVolumeClaim, b.ObjectStore, b.Node), b.Message)
			note = v1alpha1.Cut(note, conditions.MaxNote)
			r.Recorder.Eventf(after, nil, corev1.EventTypeWarning, v1alpha1.ReasonBackupDamaged, "BackUp", "%s", note)
		}
	}
}

// announceCopies emits an event if copies of the metadata begin to be fewer than requested, and if all are proven again. It returns true in
// the first case.
func announceCopies(before, after *v1alpha1.FileSystem, tell func(kind, action string, is *metav1.Condition)) (unproven bool) {
	is := changed(before, after, v1alpha1.ConditionMetadataCopies)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionFalse:
		tell(corev1.EventTypeWarning, "ReadCopies", is)
		return true
	case is.Status == metav1.ConditionTrue && meta.IsStatusConditionFalse(before.Status.Conditions, is.Type):
		tell(corev1.EventTypeNormal, "ReadCopies", is)
	}
	return false
}

// wasVerified reports whether a backup counted as verified before.
func wasVerified(before *v1alpha1.FileSystem, b *v1alpha1.BackupStatus) bool {
	return slices.ContainsFunc(before.Status.Backups, func(was v1alpha1.BackupStatus) bool {
		return was.Name == b.Name && was.Directory == b.Directory && was.PersistentVolumeClaim == b.PersistentVolumeClaim &&
			was.ObjectStore == b.ObjectStore && was.Node == b.Node && was.Result == v1alpha1.BackupVerified
	})
}

// changed returns a condition whose status or reason has changed; nil if neither has, or if it is absent.
func changed(before, after *v1alpha1.FileSystem, kind string) *metav1.Condition {
	was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return nil
	}
	return is
}
