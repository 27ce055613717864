package storagetarget

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// facts are all that is looked at to decide on one StorageTarget.
type facts struct {
	target *v1alpha1.StorageTarget
	// fileSystem that it belongs to, nil when it is gone.
	fileSystem *v1alpha1.FileSystem
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
	if never := notRemovable(f); never != "" {
		c.Reason, c.Message = v1alpha1.ReasonNotRemovable, never+"; set spec.remove to false"
		return c
	}
	seen := listed(f)
	switch {
	case seen == nil && takenOut(f.target):
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDataMoved
		c.Message = "nothing on this target is needed any more; it is unmounted when its server has let go of it"
	case seen == nil:
		c.Message = "the filesystem does not list this target, so nobody knows what is on it; its data is moved when it is online"
	case !seen.Removing && len(mountedOn(f)) > 0 && !f.target.Spec.WritersStopped:
		c.Reason = v1alpha1.ReasonClientsMounted
		c.Message = fmt.Sprintf("the filesystem is mounted on %s, and BeeGFS moves files without locking them: what is written to a file meanwhile may be lost. "+
			"Stop what writes, then set spec.writersStopped to true", strings.Join(mountedOn(f), ", "))
	case !seen.Removing:
		c.Message = with(waits(f), seen.Message)
	case !seen.Removable && !seen.Online:
		c.Message = fmt.Sprintf("%s of data are to be moved, and the target is not online: %s", v1alpha1.Bytes(seen.UsedBytes), seen.Message)
	case !seen.Removable:
		c.Message = with(moves(f, seen), seen.Message)
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

// isBeeGFS is true for a target of a BeeGFS.
func isBeeGFS(f facts) bool { return f.fileSystem != nil && f.fileSystem.Spec.Type == v1alpha1.BeeGFS }

// notRemovable says why the filesystem can never move what is on a target elsewhere; empty when it can.
func notRemovable(f facts) string {
	spec := f.target.Spec
	switch {
	case spec.Role == v1alpha1.RoleManagement:
		return "the management service can't be moved to another disk: without its store BeeGFS forgets ids, pools and mirrors"
	case spec.Role == v1alpha1.RoleMetadata && isBeeGFS(f):
		return "BeeGFS can't move metadata to another server: what this one holds would be lost, and all files below its directories with it"
	case spec.Role == v1alpha1.RoleMetadata:
		return "MooseFS can't move the metadata of its master to another disk while it runs, so this target can't be removed"
	case isBeeGFS(f) && mirrored(f.fileSystem, spec.StoragePool):
		return fmt.Sprintf("storage pool %s is mirrored, and BeeGFS can't take a target out of a buddy group that holds data", spec.StoragePool)
	default:
		return ""
	}
}

// mirrored is true for a pool of a BeeGFS whose targets are in buddy groups.
func mirrored(fs *v1alpha1.FileSystem, pool string) bool {
	return slices.ContainsFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == pool && p.Copies > 1 })
}

// mountedOn are the nodes that have a BeeGFS mounted, at most eight and the number of the rest. None for other filesystems, which move data
// under writers.
func mountedOn(f facts) []string {
	if !isBeeGFS(f) {
		return nil
	}
	const most = 8
	var nodes []string
	for _, c := range f.fileSystem.Status.Clients {
		if c.Mounted {
			nodes = append(nodes, c.Node)
		}
	}
	if more := len(nodes) - most; more > 0 {
		nodes = append(nodes[:most], fmt.Sprintf("%d more nodes", more))
	}
	return nodes
}

// waits says what the filesystem is not told yet.
func waits(f facts) string {
	if isBeeGFS(f) {
		return "waiting until the target is in BeeGFS's pool draining, which gets no new files"
	}
	return "waiting until the filesystem is told to move the data; its server is restarted for that when all others are online"
}

// moves says how the data gets elsewhere, and how much is left.
func moves(f facts, seen *v1alpha1.TargetStatus) string {
	left := fmt.Sprintf("%s of %s are left on this target", v1alpha1.Bytes(seen.UsedBytes), v1alpha1.Bytes(seen.CapacityBytes))
	if isBeeGFS(f) && f.fileSystem.Spec.Clients == nil {
		return "BeeGFS places no new files on it, and moves those that are there only from a client: give the FileSystem spec.clients, " +
			"or migrate or delete the files yourself; " + left
	}
	return "the filesystem moves the data elsewhere: " + left
}

// with adds what the filesystem says, if it says anything.
func with(message, said string) string {
	if said == "" {
		return message
	}
	return message + "; " + said
}
