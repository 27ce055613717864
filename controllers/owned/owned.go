// Package owned decides which owner a pod belongs to. Labels prove nothing: every user who may create pods can set them, and so can the
// kubelet of any node by static pods. A pod belongs to a FileSystem or a run if its controller does. The controller is a DaemonSet or a Job
// with the UID in the pod, and it has the UID of the FileSystem or the run.
package owned

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long a wait counts pods whose controllers were deleted before this process started, because their owner can't be proven.
const Patience = 10 * time.Minute

// Controllers are the controllers of the pods of one owner.
type Controllers struct {
	// IDs holds the UIDs of the owner's controllers, existing and former ones.
	IDs map[types.UID]bool
	// Prefix is the name prefix of the owner's controllers.
	Prefix string
	// Began is the time of this process's first look at the owner, and Now the time of this one.
	Began, Now time.Time
}

// Of returns the UIDs of the objects that the owner controls.
func Of[T client.Object](owner metav1.Object, objects ...T) map[types.UID]bool {
	out := make(map[types.UID]bool, len(objects))
	for _, o := range objects {
		if metav1.IsControlledBy(o, owner) {
			out[o.GetUID()] = true
		}
	}
	return out
}

// Has is true for a pod whose controller is one of IDs. A mirror pod, which represents a static pod of a node, has no owner.
func (c Controllers) Has(pod *corev1.Pod) bool {
	owner := ControllerOf(pod)
	return owner != nil && c.IDs[owner.UID]
}

// MayHave is true for a pod whose end must be awaited: one of Has, and for some time one whose controller was deleted before this process
// started. Such a controller is recognized only by its name.
func (c Controllers) MayHave(pod *corev1.Pod) bool {
	if c.Has(pod) {
		return true
	}
	owner, until := ControllerOf(pod), c.Began
	if owner == nil || !pod.CreationTimestamp.Time.Before(c.Began) || !strings.HasPrefix(owner.Name, c.Prefix) {
		return false
	}
	switch owner.Kind {
	case "DaemonSet", "Job", "MPIJob":
	default:
		return false
	}
	if pod.DeletionTimestamp != nil && pod.DeletionTimestamp.After(until) {
		until = pod.DeletionTimestamp.Time
	}
	return c.Now.Before(until.Add(Patience))
}

// IsOf is true for a pod that this object controls.
func IsOf(pod *corev1.Pod, controller metav1.Object) bool {
	owner := ControllerOf(pod)
	return owner != nil && owner.UID == controller.GetUID()
}

// ControllerOf returns the controller of a pod, or nil for a mirror pod.
func ControllerOf(pod *corev1.Pod) *metav1.OwnerReference {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil
	}
	return metav1.GetControllerOf(pod)
}

// Past remembers the controllers of one owner between two passes. A deleted controller disappears before its pods.
type Past struct {
	began time.Time
	ids   map[types.UID]bool
	// any is true once a controller was seen.
	any bool
}

// Look adds the existing controllers to the former ones. It forgets former ones without remaining pods.
func (p *Past) Look(prefix string, there map[types.UID]bool, pods []corev1.Pod, now time.Time) Controllers {
	if p.began.IsZero() {
		p.began = now
	}
	ids := make(map[types.UID]bool, len(there))
	for id := range there {
		ids[id] = true
	}
	for i := range pods {
		if owner := ControllerOf(&pods[i]); owner != nil && p.ids[owner.UID] {
			ids[owner.UID] = true
		}
	}
	p.ids, p.any = ids, p.any || len(ids) > 0
	return Controllers{IDs: ids, Prefix: prefix, Began: p.began, Now: now}
}

// Known is true for a controller that was observed to be the owner's.
func (p *Past) Known(id types.UID) bool { return p.ids[id] }

// SawAny is true when this process has ever seen a controller of the owner.
func (p *Past) SawAny() bool { return p.any }
