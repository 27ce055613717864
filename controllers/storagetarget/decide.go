package storagetarget

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// facts are all that is looked at to decide on one StorageTarget.
type facts struct {
	target *v1alpha1.StorageTarget
	// fileSystem that it belongs to, nil when it is gone.
	fileSystem *v1alpha1.FileSystem
	// drainer says how its data comes elsewhere, nil when the filesystem can't move any.
	drainer backend.Drainer
	// node is true when the cluster has the target's node, agent when an agent has published what that node has.
	node, agent bool
	// namespaceEnds is true while the target's namespace is being deleted. It is looked at where a wipe may depend on it.
	namespaceEnds bool
}

// noAgent is what a person does about a node without an agent.
func noAgent(node string) string {
	return fmt.Sprintf("no agent runs on node %s; label it: kubectl label node %s %s=", node, node, v1alpha1.LabelAgent)
}

// observe decides the conditions that are the operator's: Online always, SafeToRemove while a person asks for the removal.
func observe(f facts) []metav1.Condition {
	out := []metav1.Condition{online(f)}
	if c := safeToRemove(f); c != nil {
		out = append(out, *c)
	}
	for i := range out {
		out[i].ObservedGeneration = f.target.Generation
	}
	return out
}

// online says what the filesystem itself says. Only where it says nothing good does it matter that nobody looks after the disk.
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
	case meta.IsStatusConditionPresentAndEqual(f.fileSystem.Status.Conditions, v1alpha1.ConditionReady, metav1.ConditionUnknown):
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonProbeUnreachable
		c.Message = fmt.Sprintf("FileSystem %s does not say how it is: its condition Ready says why", f.fileSystem.Name)
	default:
		c.Message = message
	}
	return c
}

// serving reports whether the filesystem lists the target as taking part, and what it says of it.
func serving(f facts) (bool, string) {
	if f.fileSystem == nil {
		return false, ""
	}
	if server := server(f.target.Spec.Role); server != "" {
		for _, i := range f.fileSystem.Status.Instances {
			if i.Role == f.target.Spec.Role && i.Node == f.target.Spec.Node && i.Slot == f.target.Spec.Instance {
				if i.Online {
					return true, "the " + server + " answers"
				}
				return false, "the " + server + " does not answer: " + i.Message
			}
		}
		return false, "no " + server + " runs on it yet"
	}
	seen := listed(f)
	switch {
	case seen == nil:
		return false, "the filesystem does not list it yet"
	case seen.Online:
		return true, "the filesystem lists it as taking part"
	default:
		return false, "the filesystem does not list it as taking part: " + seen.Message
	}
}

// server is what uses a target that holds no files, empty for one that does.
func server(role v1alpha1.InstanceRole) string {
	switch role {
	case v1alpha1.RoleManagement:
		return "management service"
	case v1alpha1.RoleMetadata:
		return "metadata server"
	default:
		return ""
	}
}

// listed is what the FileSystem's status says of the target, nil when it says nothing.
func listed(f facts) *v1alpha1.TargetStatus {
	if f.fileSystem == nil {
		return nil
	}
	i := slices.IndexFunc(f.fileSystem.Status.Targets, func(t v1alpha1.TargetStatus) bool { return t.StorageTarget == f.target.Name })
	if i < 0 {
		return nil
	}
	return &f.fileSystem.Status.Targets[i]
}

// safeToRemove is nil while nobody asks. It is true only in the filesystem's own words, about a removal that it was told of.
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
	seen := listed(f)
	switch {
	case seen == nil && takenOut(f.target):
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDataMoved
		c.Message = "nothing on this target is needed any more; it is unmounted when its server has let go of it"
	case seen == nil:
		c.Message = "the filesystem does not list this target, so nobody knows what is on it; its data is moved when it is online"
	case !seen.Removing && removal.Writers != "":
		c.Reason, c.Message = v1alpha1.ReasonClientsMounted, removal.Writers
	case !seen.Removing:
		c.Message = with(removal.Waits, seen.Message)
	case !seen.Removable && !seen.Online:
		c.Message = fmt.Sprintf("%s of data are to be moved, and the target is not online: %s", v1alpha1.Bytes(seen.UsedBytes), seen.Message)
	case !seen.Removable:
		left := fmt.Sprintf("%s of %s are left on this target", v1alpha1.Bytes(seen.UsedBytes), v1alpha1.Bytes(seen.CapacityBytes))
		c.Message = with(removal.Moves+left, seen.Message)
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDataMoved
		c.Message = "the filesystem says that nothing on this target is needed any more; take it out of the FileSystem's spec, and it is unmounted"
	}
	return c
}

// takenOut is true for a target that is deleted, and was safe to remove before: it is not among the filesystem's targets any more,
// and nothing new came to it.
func takenOut(t *v1alpha1.StorageTarget) bool {
	return !t.DeletionTimestamp.IsZero() && meta.IsStatusConditionTrue(t.Status.Conditions, v1alpha1.ConditionSafeToRemove)
}

// removalOf says how what is on a target comes elsewhere.
func removalOf(f facts) backend.Removal {
	switch {
	case f.fileSystem == nil && f.target.Spec.Role != v1alpha1.RoleStorage:
		return backend.Removal{Never: fmt.Sprintf("FileSystem %s is gone, so nobody can say whether what this target holds is needed", f.target.Spec.FileSystem.Name)}
	case f.fileSystem == nil:
		return backend.Removal{} // nobody lists it, and nothing more is said of it
	case f.drainer == nil:
		return backend.Removal{Never: fmt.Sprintf("a filesystem of type %s can't move what is on one target to others", f.fileSystem.Spec.Type)}
	default:
		return f.drainer.Removal(f.fileSystem, f.target)
	}
}

// with adds what the filesystem says, if it says anything.
func with(message, said string) string {
	if said == "" {
		return message
	}
	return message + "; " + said
}
