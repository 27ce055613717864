package storagetarget

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"parallelfs.dev/operator/api/v1alpha1"
)

// reasonGaveUp and reasonReleased are the reasons of the events about the removal of a StorageTarget.
const (
	reasonGaveUp   = "GaveUp"
	reasonReleased = "Released"
)

// mayGo decides whether the finalizer of a deleted StorageTarget may be removed now, with the reason and the message of the event.
func mayGo(f facts) (reason, message string) {
	t := f.target
	released := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionReleased)
	destroyed := meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionDestroyed)
	switch {
	case released && t.Spec.DestroyFor == "" && !toBeDestroyed(f):
		return reasonReleased, fmt.Sprintf("%s is unmounted; what is on it was kept", describe(t))
	case released && destroyed:
		return reasonReleased, fmt.Sprintf("%s is unmounted, and its data was wiped", describe(t))
	case t.Annotations[v1alpha1.AnnotationGiveUp] == t.Spec.Node:
		return reasonGaveUp, lost(t, "of its annotation "+v1alpha1.AnnotationGiveUp)
	case f.gaveUp:
		return reasonGaveUp, lost(t, "node "+t.Spec.Node+" was decommissioned")
	case t.Status.Provisioned == nil && (!f.node || !f.agent):
		// Nothing is written to a disk before it is recorded in status.provisioned, and that record can no longer be made.
		return reasonReleased, fmt.Sprintf("%s was never provisioned: nothing was written to it", describe(t))
	default:
		return "", ""
	}
}

// toBeDestroyed is true while the wipe of a target is confirmed and not requested of its agent yet. Garbage collection deletes the targets
// of a FileSystem before the FileSystem in the foreground, and so may the deletion of a namespace. The FileSystem asks when its daemons
// have stopped (spec.destroyFor).
func toBeDestroyed(f facts) bool {
	fs, p := f.fileSystem, f.target.Status.Provisioned
	return fs != nil && p != nil && p.Finished != nil && confirmsDestroy(fs) && (!fs.DeletionTimestamp.IsZero() || f.namespaceEnds)
}

// confirmsDestroy is true for a FileSystem whose data is to be wiped when it is deleted.
func confirmsDestroy(fs *v1alpha1.FileSystem) bool {
	return fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy && fs.Spec.ConfirmDestroy == string(fs.UID)
}

// lost describes the data that is lost with a target that is given up, and why.
func lost(t *v1alpha1.StorageTarget, why string) string {
	what := "it was never provisioned, so nothing of this filesystem is on it"
	if p := t.Status.Provisioned; p != nil {
		size := t.Status.Capacity
		if size == "" {
			size = v1alpha1.Bytes(t.Spec.Device.SizeBytes)
		}
		what = fmt.Sprintf("FileSystem %s has lost what is on the %s of the %s (UUID %s); the disk was neither unmounted nor wiped, so the data is still on it",
			t.Spec.FileSystem.Name, size, part(t), p.UUID)
	}
	return fmt.Sprintf("decommissioned %s, because %s: %s", describe(t), why, what)
}

// describe names a target's disk so that a person can find it.
func describe(t *v1alpha1.StorageTarget) string {
	known := []string{"device " + string(t.Spec.Device.ID)}
	if t.Spec.Device.Serial != "" {
		known = append(known, "serial "+t.Spec.Device.Serial)
	}
	return fmt.Sprintf("%s on node %s (%s)", t.Name, t.Spec.Node, strings.Join(append(known, part(t)), ", "))
}

// part is the target's part in its filesystem.
func part(t *v1alpha1.StorageTarget) string {
	switch t.Spec.Role {
	case v1alpha1.RoleManagement:
		return "store of the management service"
	case v1alpha1.RoleMetadata:
		return "metadata"
	default:
		return "storage pool " + t.Spec.StoragePool
	}
}
