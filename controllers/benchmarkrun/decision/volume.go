package decision

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/conditions"
)

// decideVolume names what a turn on a volume still needs before it can start. The scheduler decides which nodes can use the volume.
func decideVolume(w *scope.Scope) (Decision, bool) {
	v, name := w.Volume, w.ClaimName()
	if v.Claim == nil && w.MakesClaim() {
		return decideClaim(w)
	}
	if v.Claim == nil {
		return waits(v1alpha1.ReasonWaitingForVolume, "there is no PersistentVolumeClaim %s in namespace %s: make it", name, w.Run.Namespace), true
	}
	if sentence := unusable(w); sentence != "" {
		return Stalled(v1alpha1.ReasonInvalidSpec, sentence), true
	}
	if d, lacks := withoutImage(w); lacks {
		return d, true
	}
	if d, behind := inLine(w); behind {
		return d, true
	}
	switch {
	case !v.Claim.DeletionTimestamp.IsZero():
		return waits(v1alpha1.ReasonWaitingForVolume, "PersistentVolumeClaim %s is being deleted", name), true
	case v.Claim.Status.Phase == corev1.ClaimLost:
		return waits(v1alpha1.ReasonWaitingForVolume, "PersistentVolumeClaim %s has lost its PersistentVolume %s: make another claim%s",
			name, v.Claim.Spec.VolumeName, because(v)), true
	case w.MakesClaim() && !v.Bound() && w.Now.Sub(v.Claim.CreationTimestamp.Time) > scope.BindTimeout:
		return neverBound(w), true
	case !v.Bound() && !v.BoundByPods():
		return waits(v1alpha1.ReasonWaitingForVolume, "PersistentVolumeClaim %s is not bound to a volume%s", name, because(v)), true
	case w.Active != "":
		return waits(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s is using PersistentVolumeClaim %s", w.Active, name), true
	}
	if d, missing := withoutMPI(w); missing {
		return d, true
	}
	return unplaced(w)
}

// decideClaim creates the claim of a run on a StorageClass when the run's turn comes. A deleted claim is not created again, because it was
// another volume.
func decideClaim(w *scope.Scope) (Decision, bool) {
	if begun(w) || w.Run.Status.StartTime != nil {
		return Stalled(v1alpha1.ReasonWaitingForVolume, fmt.Sprintf("PersistentVolumeClaim %s of the run is gone, and results on another volume can't be "+
			"compared with those so far: make another run", w.ClaimName())), true
	}
	if d, lacks := withoutImage(w); lacks {
		return d, true
	}
	if d, behind := inLine(w); behind {
		return d, true
	}
	if w.Active != "" {
		return waits(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s is using %s", w.Active, w.Run.Spec.Target.String()), true
	}
	if d, missing := withoutMPI(w); missing {
		return d, true
	}
	clients, mode := len(w.Places()), w.Run.Spec.Target.StorageClass.AccessMode
	if clients > 1 && mode != v1alpha1.VolumeAccessMode(corev1.ReadWriteMany) {
		return Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("the run asks for %d clients, and spec.target.storageClass.accessMode %s allows one node: "+
			"ask for 1 client, or for ReadWriteMany", clients, mode)), true
	}
	d := waits(v1alpha1.ReasonWaitingForVolume, "making PersistentVolumeClaim %s of %s", w.ClaimName(), w.Run.Spec.Target.String())
	d.Action, d.After = MakeClaim, scope.Soon
	return d, true
}

// neverBound ends a run whose own claim was not bound.
func neverBound(w *scope.Scope) Decision {
	d := Stalled(v1alpha1.ReasonVolumeNotBound, fmt.Sprintf("PersistentVolumeClaim %s of %s was not bound within %s%s",
		w.ClaimName(), w.Run.Spec.Target.String(), scope.BindTimeout, because(w.Volume)))
	d.Progress, d.Ended, d.Cleaned, d.After = conditions.Settled, true, true, scope.Soon
	return d
}

// because quotes the newest warning about the claim.
func because(v *scope.Volume) string {
	if v.Trouble == "" {
		return ""
	}
	return ": " + v.Trouble
}

// unusable returns why a run can't measure the volume at all, empty if it can.
func unusable(w *scope.Scope) string {
	v, name := w.Volume, w.ClaimName()
	modes := v.AccessModes()
	writable := slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany })
	clients := len(w.Places())
	switch {
	case !writable:
		return fmt.Sprintf("PersistentVolumeClaim %s can only be read (%s), and a benchmark writes: use a claim that can be written", name, words(modes))
	case clients > 1 && !v.Shared():
		return fmt.Sprintf("PersistentVolumeClaim %s can be used on one node only (%s), and the run asks for %d clients: ask for 1 client, or use a claim "+
			"with the access mode ReadWriteMany", name, words(modes), clients)
	case v.Block():
		return fmt.Sprintf("PersistentVolumeClaim %s is a raw device (volumeMode Block): use a claim with volumeMode Filesystem", name)
	}
	return ""
}

func words(modes []corev1.PersistentVolumeAccessMode) string {
	out := make([]string, len(modes))
	for i, m := range modes {
		out[i] = string(m)
	}
	return strings.Join(out, ", ")
}
