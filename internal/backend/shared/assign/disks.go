package assign

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// OnDevices reports whether the targets of a role are disks, and not directories.
func OnDevices(targets v1alpha1.TargetsSpec) bool { return len(targets.Directories) == 0 }

// TargetPath returns where the disk of a StorageTarget is mounted.
func TargetPath(fs *v1alpha1.FileSystem, target string) string {
	return spec.TargetPath(fs.Namespace, fs.Name, target)
}

// TargetsOf returns the disks of a role on a node, by name; for the role Storage, those of a pool. They are read-only.
func TargetsOf(in backend.Input, role v1alpha1.Role, pool, node string) []*v1alpha1.StorageTarget {
	return slices.Collect(in.TargetsOn(role, pool, node))
}

// Proven returns the time since which the agent reports the disk as proven, or why it does not, in words that follow "its disk: ".
func Proven(t *v1alpha1.StorageTarget) (since metav1.Time, why string) {
	ready := Condition(t, v1alpha1.ConditionReady)
	switch {
	case ready == nil:
		return metav1.Time{}, "no agent has looked at it yet; node " + t.Spec.Node + " needs the label " + v1alpha1.LabelAgent
	case ready.Status == metav1.ConditionTrue:
		return ready.LastTransitionTime, ""
	default:
		return ready.LastTransitionTime, ready.Reason + ": " + ready.Message
	}
}

// Finished reports whether a disk was ever made a target, so that it may hold data.
func Finished(t *v1alpha1.StorageTarget) bool {
	return t.Status.Provisioned != nil && t.Status.Provisioned.Finished != nil
}

// Condition returns a condition of a StorageTarget, nil if it has none of that name.
func Condition(t *v1alpha1.StorageTarget, name string) *metav1.Condition {
	return meta.FindStatusCondition(t.Status.Conditions, name)
}

// MemberTarget returns the configuration of a server for a disk. Only the data of a storage target can be moved elsewhere.
func MemberTarget(fs *v1alpha1.FileSystem, t *v1alpha1.StorageTarget) v1alpha1.MemberTarget {
	out := v1alpha1.MemberTarget{
		Name: t.Name, Path: TargetPath(fs, t.Name),
		Remove: t.Spec.Remove && t.Spec.Role == v1alpha1.RoleStorage,
	}
	if Finished(t) {
		out.UUID = t.Status.Provisioned.UUID
	}
	return out
}
