package plan

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The rules for targets whose disk two nodes reach: one node holds the target, and the other leaves it alone (docs/adr/0096).

// IsOfPair reports whether two nodes may serve a target.
func IsOfPair(t *v1alpha1.StorageTarget) bool { return t.Spec.SecondNode != "" }

// HolderOf returns the one node that may mount the target. It is spec.node until the target is handed over for the first time.
func HolderOf(t *v1alpha1.StorageTarget) v1alpha1.TargetHolder { return t.Holder() }

// WantedOn returns the node that should serve the target.
func WantedOn(t *v1alpha1.StorageTarget) string { return cmp.Or(t.Spec.ServeOn, t.Spec.Node) }

// IsAway reports whether the other node of a pair holds the target, and not its own.
func IsAway(t *v1alpha1.StorageTarget) bool { return HolderOf(t).Node != t.Spec.Node }

// OtherOf returns the node of the pair that is not this one.
func OtherOf(t *v1alpha1.StorageTarget, node string) string {
	if node == t.Spec.Node {
		return t.Spec.SecondNode
	}
	return t.Spec.Node
}

// IsTakenOver reports whether the holder has the target because a person confirmed that the other machine is off. The agent there has not
// handed the target over, so the disk does not show that it was unmounted.
func IsTakenOver(t *v1alpha1.StorageTarget) bool {
	holder := HolderOf(t)
	return holder.Number > 0 && holder.TakenOver == holder.Number
}

// Turn returns a value that changes whenever the agents of both nodes have to read a target again.
func Turn(t *v1alpha1.StorageTarget) string {
	if !IsOfPair(t) {
		return ""
	}
	return fmt.Sprintf("%s %d", WantedOn(t), HolderOf(t).Number)
}

// MayServe reports whether the server of a node may be configured with a target: the node holds it, has accepted it, and should serve it.
func MayServe(t *v1alpha1.StorageTarget, node string) bool {
	if !IsOfPair(t) {
		return t.Spec.Node == node
	}
	holder := HolderOf(t)
	return holder.Node == node && WantedOn(t) == node && (holder.Number == 0 || holder.TakenUp != nil)
}

// IsToBeGiven reports whether the agent of a node has to hand a target over. A deleted target stays on its node, which wipes it.
func IsToBeGiven(t *v1alpha1.StorageTarget, node string) bool {
	return IsOfPair(t) && HolderOf(t).Node == node && WantedOn(t) != node && (t.DeletionTimestamp.IsZero() || node != t.Spec.Node)
}

// IsToBeTakenUp reports whether the agent of a node has to check that the disk of a target shows no mount on another machine.
func IsToBeTakenUp(t *v1alpha1.StorageTarget, node string) bool {
	holder := HolderOf(t)
	return IsOfPair(t) && holder.Node == node && holder.Number > 0 && holder.TakenUp == nil && WantedOn(t) == node
}

// notShared returns why a disk that is new to its node can't be a target for a second node as well, in words that follow "and". The second
// node may not prove that it reaches the same disk, or may use the disk. It is empty if both nodes may share it.
func (s *selection) notShared(identity v1alpha1.DeviceIdentity, second string) string {
	inventory, ok := s.in.Inventories[second]
	switch {
	case s.in.GaveUp[second]:
		return "that node was decommissioned"
	case !ok:
		return noInventory(second)
	case identity.WWN == "" || identity.Serial == "":
		return fmt.Sprintf("the disk has no WWN or no serial number (%q, %q), so nothing proves that a disk there is the same one", identity.WWN, identity.Serial)
	}
	if paths := pathsTo(inventory, identity.WWN); paths > 1 {
		return fmt.Sprintf("that node shows %d disks with its WWN (%s); where these are several paths to it, set up multipath there", paths, identity.WWN)
	}
	b := findDevice(inventory, string(identity.ID))
	if b == nil {
		return fmt.Sprintf("that node shows no disk with this name; it has %s", namesOfDisks(inventory))
	}
	there := Facts{BlockDevice: *b, Found: true}
	why := sentences(HasIdentity(there, identity), IsWholeDisk(there), IsWritable(there), HasNoHolders(there), IsNotMounted(there),
		IsNoSwap(there))
	if len(why) > 0 {
		return "there, " + strings.Join(why, "; ")
	}
	return ""
}

// pathsTo is how many disks of a node have a WWN and are not a part of another device.
func pathsTo(inventory v1alpha1.NodeInventoryStatus, wwn string) int {
	paths := 0
	for i := range inventory.BlockDevices {
		if b := &inventory.BlockDevices[i]; wwn != "" && b.WWN == wwn && b.Type != "part" && len(b.Holders) == 0 {
			paths++
		}
	}
	return paths
}

// Unreached returns the reason why the inventory of a node does not prove that the node reaches the disk of a target. The proof is the WWN,
// serial number and size of the disk. A name alone proves nothing, because another disk may have it now. A disk that the last scan could
// not read completely proves nothing either: its entry may be from the scan before.
func Unreached(node string, inventories map[string]v1alpha1.NodeInventoryStatus, t *v1alpha1.StorageTarget) string {
	inventory, known := inventories[node]
	want := DeviceOf(t)
	if !known {
		return noInventory(node)
	}
	b := findDevice(inventory, string(want.ID))
	switch {
	case b == nil:
		return fmt.Sprintf("node %s does not show the disk %s", node, want.ID)
	case want.WWN == "" || want.Serial == "":
		return fmt.Sprintf("the disk %s was recorded without a WWN or a serial number, so nothing proves that node %s shows the same one", want.ID, node)
	}
	if why := unlooked(*b); why != "" {
		return fmt.Sprintf("on node %s, %s", node, why)
	}
	if paths := pathsTo(inventory, want.WWN); paths > 1 {
		return fmt.Sprintf("node %s shows %d disks with the WWN %s; where these are several paths to it, set up multipath there", node, paths, want.WWN)
	}
	if why := HasIdentityOrGrew(Facts{BlockDevice: *b, Found: true}, want); why != "" {
		return fmt.Sprintf("node %s shows another disk: %s", node, why)
	}
	return ""
}

// held decides on a target that the second node holds: this node leaves the disk alone.
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
