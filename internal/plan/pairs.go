package plan

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// What is particular to targets whose disk two nodes reach: one of them holds the target, and the other leaves it alone (docs/adr/0096).

// IsOfPair is true for a target that two nodes may serve.
func IsOfPair(t *v1alpha1.StorageTarget) bool { return t.Spec.SecondNode != "" }

// HolderOf is the one node that may have the target. It is spec.node until the target was given away for the first time.
func HolderOf(t *v1alpha1.StorageTarget) v1alpha1.TargetHolder {
	if h := t.Status.Holder; IsOfPair(t) && h != nil {
		return *h
	}
	return v1alpha1.TargetHolder{Node: t.Spec.Node}
}

// WantedOn is the node that is to serve the target.
func WantedOn(t *v1alpha1.StorageTarget) string { return cmp.Or(t.Spec.ServeOn, t.Spec.Node) }

// MayServe is true when the server of a node is to be told of a target: the node holds it, has taken it up, and is to serve it.
func MayServe(t *v1alpha1.StorageTarget, node string) bool {
	if !IsOfPair(t) {
		return t.Spec.Node == node
	}
	holder := HolderOf(t)
	return holder.Node == node && WantedOn(t) == node && (holder.Number == 0 || holder.TakenUp != nil)
}

// IsToBeGiven is true when the agent of a node has to give a target away. One that is deleted stays where it is made and wiped.
func IsToBeGiven(t *v1alpha1.StorageTarget, node string) bool {
	return IsOfPair(t) && HolderOf(t).Node == node && WantedOn(t) != node && (t.DeletionTimestamp.IsZero() || node != t.Spec.Node)
}

// IsToBeTakenUp is true when the agent of a node has to see whether the disk of a target shows that nobody has it mounted.
func IsToBeTakenUp(t *v1alpha1.StorageTarget, node string) bool {
	holder := HolderOf(t)
	return IsOfPair(t) && holder.Node == node && holder.Number > 0 && holder.TakenUp == nil && WantedOn(t) == node
}

// held decides on a target that the second node holds: nothing is done to its disk here.
func held(t *v1alpha1.StorageTarget, l Look) Decision {
	holder := HolderOf(t)
	if l.Mount.Mounted {
		return refused(t, v1alpha1.ReasonMountFailed, fmt.Sprintf("%s is mounted on node %s, although node %s holds the target: a disk that two nodes have mounted is "+
			"destroyed. Unmount it on %s at once", l.Device.KernelName, t.Spec.Node, holder.Node, t.Spec.Node))
	}
	if !t.DeletionTimestamp.IsZero() {
		d := refused(t, v1alpha1.ReasonReleasing, fmt.Sprintf("the target is deleted; node %s holds it, and gives it back first", holder.Node))
		d.Progress = Reconciling
		d.Released = &Outcome{metav1.ConditionFalse, v1alpha1.ReasonUnmountFailed, d.Ready.Message}
		return d
	}
	d := working(t, None, v1alpha1.ReasonProven, fmt.Sprintf("node %s holds the target, and this node leaves its disk alone", holder.Node))
	d.Progress, d.Ready.Status = Settled, metav1.ConditionTrue
	return d
}
