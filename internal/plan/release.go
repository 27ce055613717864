package plan

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// release decides on a target that is being deleted. A target that was never provisioned is released at once, without a look at the device,
// because it has no data there. A disk that is not proven to be the target's own is never wiped, and never reported as wiped.
func release(t *v1alpha1.StorageTarget, l Look) Decision {
	p := t.Status.Provisioned
	if l.Mount.Mounted {
		return working(t, Unmount, v1alpha1.ReasonReleasing, "the target is deleted and is being unmounted")
	}
	d := refused(t, v1alpha1.ReasonReleasing, "the target is deleted")
	if l.Mount.Problem != "" {
		why := "it is not known whether the target is unmounted: " + l.Mount.Problem
		d.Released = &Outcome{metav1.ConditionFalse, v1alpha1.ReasonUnmountFailed, why}
		return d
	}
	d.Progress = Settled
	d.Released = &Outcome{metav1.ConditionTrue, v1alpha1.ReasonUnmounted, "nothing is mounted"}
	switch {
	case t.Spec.DestroyFor == "":
		return d
	case p == nil:
		d.Destroyed = &Outcome{metav1.ConditionTrue, v1alpha1.ReasonWiped, "the device was never made a target, so there is nothing to wipe; it was not touched"}
		return d
	case isBlank(l) && len(notThere(t, l)) == 0:
		d.Destroyed = &Outcome{metav1.ConditionTrue, v1alpha1.ReasonWiped, "the device was read after the wipe, and nothing is on it"}
		return d
	case isBlank(withoutUnknown(l)) && len(notThere(t, l)) == 0:
		d.Destroyed = &Outcome{metav1.ConditionTrue, v1alpha1.ReasonWiped, "the device was read after the wipe, and nothing that a probe knows is on it; " +
			"it is not blank, because the wipe was interrupted, or somebody has written to it since"}
		return d
	}
	if reasons := notToWipe(t, l); len(reasons) > 0 {
		d.Progress = Stalled
		d.Destroyed = &Outcome{metav1.ConditionFalse, v1alpha1.ReasonWipeFailed, "the device is not wiped: " + strings.Join(reasons, "; ")}
		return d
	}
	d = working(t, Wipe, v1alpha1.ReasonReleasing, "the target is unmounted and is being wiped")
	d.Released = &Outcome{metav1.ConditionTrue, v1alpha1.ReasonUnmounted, "nothing is mounted"}
	// The log is wiped first. While the disk has its marker, an interrupted wipe continues.
	if l.Log != nil {
		d.Steps = clearSteps(*l.Log)
	}
	d.Steps = append(d.Steps, clearSteps(l.Device)...)
	return d
}

// notToWipe returns why a deleted target's disk may not be wiped.
func notToWipe(t *v1alpha1.StorageTarget, l Look) []string {
	p, m := t.Status.Provisioned, l.Device.Marker
	var reasons []string
	if t.Spec.DestroyFor != t.Spec.FileSystem.UID {
		reasons = append(reasons, fmt.Sprintf("the wipe was asked for FileSystem uid %s, and the target belongs to uid %s", t.Spec.DestroyFor, t.Spec.FileSystem.UID))
	}
	recorded, now := t.Spec.Device, DeviceOf(t)
	if l.Device.Found && l.Device.SizeBytes != recorded.SizeBytes && now.Serial == "" && now.WWN == "" {
		// A person has accepted the size. That is enough to use the disk, and not enough to wipe it.
		reasons = append(reasons, fmt.Sprintf("it was recorded with %d bytes and has %d now, and no serial number or WWN proves that it is the same disk",
			recorded.SizeBytes, l.Device.SizeBytes))
	}
	reasons = append(reasons, atRest(l.Device)...)
	if l.Log != nil {
		reasons = append(reasons, atRest(*l.Log)...)
	}
	disk, rest := t, l
	if l.Log != nil && t.Spec.LogDevice != nil && len(bare(*l.Log)) == 0 && len(notThere(t, l)) == 0 {
		// The wipe was interrupted after the log and before the disk.
		disk, rest.Log = t.DeepCopy(), nil
		disk.Spec.LogDevice = nil
	}
	for _, r := range notOurs(disk, rest, p.UUID) {
		if !slices.Contains(reasons, r) {
			reasons = append(reasons, r)
		}
	}
	switch {
	case !l.Device.Found:
	case m == nil && l.Device.MarkerError != "":
		reasons = append(reasons, "its marker could not be read: "+l.Device.MarkerError)
	case m == nil:
		reasons = append(reasons, "it has no marker, so that nothing proves whose it is")
	case !sameTarget(*m, t) || m.UUID != p.UUID:
		reasons = append(reasons, fmt.Sprintf("its marker is that of StorageTarget %s/%s with uuid %s", m.Namespace, m.Target, m.UUID))
	case m.Cluster != t.Spec.Cluster:
		reasons = append(reasons, IsOfThisCluster(*m, t, ""))
	case m.FileSystemUID != t.Spec.DestroyFor:
		reasons = append(reasons, fmt.Sprintf("its marker names FileSystem uid %s, and the wipe was asked for uid %s", m.FileSystemUID, t.Spec.DestroyFor))
	}
	return reasons
}
