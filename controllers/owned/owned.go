// Package owned decides whose a pod is. Labels prove nothing: everyone who may create pods writes them as he likes, and so does the kubelet
// of any node, by static pods. A pod belongs to a FileSystem or a run if its controller does: a DaemonSet or a Job whose UID the pod names,
// and which names the UID of the FileSystem or the run.
package owned

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patience is how long a wait believes pods of controllers that were gone before this process began: it has no proof of these.
const Patience = 10 * time.Minute

// Controllers are the controllers of the pods of one owner.
type Controllers struct {
	// IDs are the UIDs of the owner's controllers, those that are there and those that were.
	IDs map[types.UID]bool
	// Prefix begins the names of the owner's controllers.
	Prefix string
	// Began is when this process has first looked at the owner, and Now is the time of this look.
	Began, Now time.Time
}

// Of are the UIDs of those objects that the owner controls.
func Of[T client.Object](owner metav1.Object, objects ...T) map[types.UID]bool {
	out := make(map[types.UID]bool, len(objects))
	for _, o := range objects {
		if metav1.IsControlledBy(o, owner) {
			out[o.GetUID()] = true
		}
	}
	return out
}

// Has is true for a pod whose controller is one of these. A mirror pod, which shows a static pod of a node, is nobody's.
func (c Controllers) Has(pod *corev1.Pod) bool {
	owner := controllerOf(pod)
	return owner != nil && c.IDs[owner.UID]
}

// MayHave is true for a pod whose end has to be waited for: one of Has, and for a while one whose controller was gone before this process
// began. Its name is all that is left of that controller.
func (c Controllers) MayHave(pod *corev1.Pod) bool {
	if c.Has(pod) {
		return true
	}
	owner, until := controllerOf(pod), c.Began
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

// controllerOf is the controller of a pod, nil for a mirror pod.
func controllerOf(pod *corev1.Pod) *metav1.OwnerReference {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return nil
	}
	return metav1.GetControllerOf(pod)
}

// Past is what a look at one owner keeps for the next one: the controllers that were there. A controller that is deleted is gone before its
// pods are.
type Past struct {
	began time.Time
	ids   map[types.UID]bool
	// any is true once a controller was seen.
	any bool
}

// Look adds the controllers that are there to those that were. It forgets those of which no pod is left.
func (p *Past) Look(prefix string, there map[types.UID]bool, pods []corev1.Pod, now time.Time) Controllers {
	if p.began.IsZero() {
		p.began = now
	}
	ids := make(map[types.UID]bool, len(there))
	for id := range there {
		ids[id] = true
	}
	for i := range pods {
		if owner := controllerOf(&pods[i]); owner != nil && p.ids[owner.UID] {
			ids[owner.UID] = true
		}
	}
	p.ids, p.any = ids, p.any || len(ids) > 0
	return Controllers{IDs: ids, Prefix: prefix, Began: p.began, Now: now}
}

// Known is true for a controller that was seen to be the owner's.
func (p *Past) Known(id types.UID) bool { return p.ids[id] }

// SawAny is true when this process has ever seen a controller of the owner.
func (p *Past) SawAny() bool { return p.any }
