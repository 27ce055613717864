package scope

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"parallelfs.dev/operator/benchmarks/placement"
)

// VolumePath is where the pods of a run mount the volume that they measure.
const VolumePath = "/mnt/volume"

// Volume is a volume that Kubernetes mounts into the pods of a run. The scheduler chooses their nodes.
type Volume struct {
	// Claim is nil while there is none.
	Claim *corev1.PersistentVolumeClaim
	// PersistentVolume and Class are nil while they are unknown.
	PersistentVolume *corev1.PersistentVolume
	Class            *storagev1.StorageClass
	// Trouble is the newest warning about the claim, in the words of its provisioner or of Kubernetes.
	Trouble string
}

// ClaimName returns the name of the claim that is measured: an existing one, or the run's own claim on a StorageClass.
func (w *Scope) ClaimName() string {
	if w.MakesClaim() {
		return w.Run.Name + "-volume"
	}
	return w.Run.Spec.Target.PersistentVolumeClaim.ClaimName
}

// MakesClaim reports whether a run creates the claim that it measures, and deletes it.
func (w *Scope) MakesClaim() bool { return w.Run.Spec.Target.StorageClass.Name != "" }

// BindTimeout is how long the run's own claim may take until it is bound. CheckTimeout of that is for a pod that uses it.
const BindTimeout = CheckTimeout + 5*time.Minute

// Bound reports whether a claim exists and is bound.
func (v *Volume) Bound() bool { return v.Claim != nil && v.Claim.Status.Phase == corev1.ClaimBound }

// BoundByPods reports whether a claim is bound when the first pod that uses it is scheduled.
func (v *Volume) BoundByPods() bool {
	return v.Class != nil && v.Class.VolumeBindingMode != nil && *v.Class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// AccessModes returns those of the volume or, while the claim is not bound, those that the claim requests.
func (v *Volume) AccessModes() []corev1.PersistentVolumeAccessMode {
	if v.Claim == nil {
		return nil
	}
	if modes := v.Claim.Status.AccessModes; len(modes) > 0 {
		return modes
	}
	return v.Claim.Spec.AccessModes
}

// Shared reports whether several nodes can write to a volume.
func (v *Volume) Shared() bool { return slices.Contains(v.AccessModes(), corev1.ReadWriteMany) }

// Block reports whether a volume is a raw device.
func (v *Volume) Block() bool {
	return v.Claim != nil && v.Claim.Spec.VolumeMode != nil && *v.Claim.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// Places returns as many clients without a node as the largest point requests. Their nodes are known only when their pods run. Their CPUs
// are unknown, so they limit nothing.
func (w *Scope) Places() []placement.Node {
	most := 1
	for i := range w.Plans {
		most = max(most, w.ClientsOf(i))
	}
	out := make([]placement.Node, most)
	for i := range out {
		out[i].Name = fmt.Sprintf("client-%d", i+1)
	}
	return out
}

// EarlierNodes returns the nodes on which pods of the run have measured, sorted. A repetition on another node is less comparable.
func (w *Scope) EarlierNodes() []string {
	var out []string
	for _, c := range w.Provenance.Clients {
		out = append(out, c.Node)
	}
	for i := range w.Points {
		for _, entry := range w.Records.Of(i) {
			out = append(out, entry.Nodes...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
