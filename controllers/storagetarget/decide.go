package storagetarget

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
)

// facts holds all facts for the decision about one StorageTarget.
type facts struct {
	target *v1alpha1.StorageTarget
	// fileSystem that it belongs to, nil when it is deleted.
	fileSystem *v1alpha1.FileSystem
	// observed is the target's state in the filesystem, nil until the operator has observed the filesystem since its own start.
	observed *views.Target
	// node is true when the target's node exists in the cluster, agent when an agent has published the node's inventory.
	node, agent bool
	// gaveUp is true when the filesystem continues without the target's node. It is set only for a deleted target.
	gaveUp bool
	// disk is the target's disk in the inventory of its node, nil while no inventory shows it.
	disk *v1alpha1.BlockDevice
	// namespaceEnds is true while the target's namespace is being deleted. It is set only if a wipe may depend on it.
	namespaceEnds bool
}

// noAgent is the remedy for a node without an agent.
func noAgent(node string) string {
	return fmt.Sprintf("no agent runs on node %s; label it: kubectl label node %s %s=", node, node, v1alpha1.LabelAgent)
}

// known is false until the filesystem was observed since the operator's start: the earlier conditions stay.
func known(f facts) bool {
	return f.observed != nil || f.fileSystem == nil || !f.fileSystem.DeletionTimestamp.IsZero()
}

// observe computes the operator's conditions: Online always, SafeToRemove while a person requests the removal, and DiskHealthy if the disk
// reports about itself.
func observe(f facts) []metav1.Condition {
	out := []metav1.Condition{online(f)}
	if c := safeToRemove(f); c != nil {
		out = append(out, *c)
	}
	if c := diskHealthy(f); c != nil {
		out = append(out, *c)
	}
	for i := range out {
		out[i].ObservedGeneration = f.target.Generation
	}
	return out
}

// online follows the state in the filesystem. A missing agent or disk matters only if that state is not good.
func online(f facts) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionOnline, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNotServing}
	serves, message := serving(f)
	switch {
	case f.fileSystem == nil:
		c.Message = fmt.Sprintf("FileSystem %s is gone", f.target.Spec.FileSystem.Name)
	case !f.fileSystem.DeletionTimestamp.IsZero():
		c.Message = fmt.Sprintf("FileSystem %s is being deleted", f.fileSystem.Name)
	case serves:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonServing, message
	case !f.agent:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonAgentMissing, noAgent(f.target.Spec.Node)
	case f.observed.Silent:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonProbeUnreachable
		c.Message = fmt.Sprintf("the state of FileSystem %s is unknown; its condition Ready shows why", f.fileSystem.Name)
	default:
		c.Message = message
	}
	return c
}

// serving returns whether the filesystem lists the target as online, and the filesystem's message about it.
func serving(f facts) (bool, string) {
	reported, server := service(f), server(f.target.Spec.Role)
	switch {
	case server != "" && reported == nil:
		return false, "no " + server + " runs on it yet"
	case server != "" && reported.State == v1alpha1.StateOnline:
		return true, "the " + server + " answers"
	case server != "":
		return false, "the " + server + " does not answer: " + reported.Message
	case reported == nil:
		return false, "the filesystem does not list it yet"
	case reported.State == v1alpha1.StateOnline:
		return true, "the filesystem lists it as online"
	default:
		return false, "the filesystem does not list it as online: " + reported.Message
	}
}

// server is the user of a target that holds no files, empty for one that does.
func server(role v1alpha1.Role) string {
	switch role {
	case v1alpha1.RoleManagement:
		return "management service"
	case v1alpha1.RoleMetadata:
		return "metadata server"
	default:
		return ""
	}
}

// service is the target's state in the filesystem, nil when it is unknown.
func service(f facts) *v1alpha1.TargetService {
	if f.fileSystem == nil || f.observed == nil {
		return nil
	}
	return f.observed.Service
}

// safeToRemove is nil without a request. It is true only if the filesystem itself reports it, for a removal that has reached it.
func safeToRemove(f facts) *metav1.Condition {
	if !f.target.Spec.Remove {
		return nil
	}
	c := &metav1.Condition{Type: v1alpha1.ConditionSafeToRemove, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonMovingData}
	removal := removalOf(f)
	if removal.Never != "" {
		c.Reason, c.Message = v1alpha1.ReasonNotRemovable, removal.Never+"; set spec.remove to false"
		return c
	}
	reported := service(f)
	asked := f.observed == nil || f.observed.Generation == f.target.Generation && f.observed.Removal != nil
	if !asked {
		reported = nil // it belongs to an earlier request
	}
	switch {
	case reported == nil && takenOut(f.target):
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDataMoved
		c.Message = "nothing on this target is needed any longer; it is unmounted when its server has released it"
	case !asked:
		c.Message = "waiting until the operator has asked the filesystem about this removal"
	case reported == nil:
		c.Message = "the filesystem does not list this target, so its content is unknown; its data is moved when it is online"
	case reported.Removal == "" && removal.Writers != "":
		c.Reason, c.Message = v1alpha1.ReasonClientsMounted, removal.Writers
	case reported.Removal == "":
		c.Message = with(removal.Waits, reported.Message)
	case reported.Removal != v1alpha1.RemovalDataMoved && reported.State != v1alpha1.StateOnline:
		c.Message = fmt.Sprintf("%s of data are to be moved, and the target is not online: %s", v1alpha1.Bytes(reported.UsedBytes), reported.Message)
	case reported.Removal != v1alpha1.RemovalDataMoved:
		left := fmt.Sprintf("%s of %s are left on this target", v1alpha1.Bytes(reported.UsedBytes), v1alpha1.Bytes(reported.CapacityBytes))
		c.Message = with(removal.Moves+left, reported.Message)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDataMoved
		c.Message = "the filesystem reports that nothing on this target is needed any more; take it out of the FileSystem's spec, and it is unmounted"
	}
	return c
}

// diskHealthy repeats the report of the target's disk about itself. It is nil while there is none.
func diskHealthy(f facts) *metav1.Condition {
	if f.disk == nil || f.disk.Health == nil {
		return nil
	}
	c := &metav1.Condition{Type: v1alpha1.ConditionDiskHealthy, Status: metav1.ConditionFalse}
	where := fmt.Sprintf("disk %s (serial %s) of node %s", f.disk.KernelName, cmp.Or(f.disk.Serial, "unknown"), f.target.Spec.Node)
	reasons := strings.Join(f.disk.Health.Reasons, "; ")
	switch f.disk.Health.State {
	case v1alpha1.DiskFailing:
		c.Reason, c.Message = v1alpha1.ReasonDiskFailing, fmt.Sprintf("%s reports its own failure: %s. Replace it while it still answers: set spec.remove", where, reasons)
	case v1alpha1.DiskSuspect:
		c.Reason, c.Message = v1alpha1.ReasonDiskSuspect, fmt.Sprintf("%s reports problems: %s. Plan its replacement", where, reasons)
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonNoProblems, where+" reports no problem"
		if f.observed != nil && f.observed.Unconfirmed != "" {
			c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonAgentMissing
			c.Message = where + " reported no problem, but " + f.observed.Unconfirmed
		}
	}
	return c
}

// takenOut is true for a deleted target that was safe to remove before: it is no longer among the filesystem's targets, and got no new
// data.
func takenOut(t *v1alpha1.StorageTarget) bool {
	return !t.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
}

// removalOf describes how the data of a target is moved to others.
func removalOf(f facts) backend.Removal {
	switch {
	case f.fileSystem == nil && f.target.Spec.Role != v1alpha1.RoleStorage:
		return backend.Removal{Never: fmt.Sprintf("FileSystem %s is gone, so it is unknown whether the data on this target is still needed", f.target.Spec.FileSystem.Name)}
	case f.fileSystem == nil || f.observed == nil || f.observed.Removal == nil:
		return backend.Removal{} // the filesystem does not list it, and has no further message
	default:
		return *f.observed.Removal
	}
}

// with adds the filesystem's message, if there is one.
func with(message, detail string) string {
	if detail == "" {
		return message
	}
	return message + "; " + detail
}
