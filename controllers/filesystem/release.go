package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/plan"
)

// patience is how long an agent may take to respond to a deleted target before a person is asked to look.
const patience = 2 * time.Minute

// remains describes what is left of a deleted FileSystem on its disks. The zero value means nothing.
type remains struct {
	reason, message string
	// stalled is true if nothing goes on until a person does something.
	stalled bool
}

// releaseDisks releases the disks, and waits until their agents have done so.
func (p *pass) releaseDisks(ctx context.Context) error {
	rest, err := p.releaseTargets(ctx, p.fs, p.nodes)
	if err != nil || rest.reason == "" {
		return err
	}
	progress := conditions.Reconciling
	if rest.stalled {
		progress = conditions.Stalled
	}
	p.waitFor(progress, rest.reason, rest.message)
	return nil
}

// releaseTargets deletes the StorageTargets of a FileSystem whose daemons have stopped, so that their agents unmount the disks, and returns
// what is left. Disks are wiped only if the policy says so and the FileSystem's own uid confirms it.
func (r *Reconciler) releaseTargets(ctx context.Context, fs *v1alpha1.FileSystem, nodes []corev1.Node) (remains, error) {
	all, err := r.targets(ctx)
	if err != nil {
		return remains{}, err
	}
	own, _ := all.split(fs)
	if len(own) == 0 {
		return remains{}, nil
	}
	targets := make([]v1alpha1.StorageTarget, len(own))
	for i := range own {
		own[i].DeepCopyInto(&targets[i])
	}
	destroy := fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy
	if destroy && fs.Spec.ConfirmDestroy != string(fs.UID) {
		return unconfirmed(fs, targets), nil
	}
	known, err := r.inventories(ctx)
	if err != nil {
		return remains{}, err
	}
	var errs []error
	for i := range targets {
		errs = append(errs, r.releaseTarget(ctx, fs, &targets[i], destroy))
	}
	ready := map[string]bool{}
	for i := range nodes {
		ready[nodes[i].Name] = nodefacts.FactsOfNode(&nodes[i]).Ready
	}
	return left(targets, r.Clock.Now(), func(node string) string {
		_, agent := known.found[node]
		isReady, there := ready[node]
		switch {
		case !there:
			return "the node is not in the cluster"
		case !isReady:
			return "the node is not Ready"
		case !agent:
			return fmt.Sprintf("no agent runs on the node; label it: kubectl label node %s %s=", node, v1alpha1.LabelAgent)
		default:
			return ""
		}
	}), errors.Join(errs...)
}

// releaseTarget deletes one StorageTarget, after its spec says whether its data is to be wiped. Only a disk that carries the marker of this
// FileSystem can be wiped. A disk that was never made a target is only released.
func (r *Reconciler) releaseTarget(ctx context.Context, fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, destroy bool) error {
	want := ""
	if destroy && target.Status.Provisioned != nil && target.Status.Provisioned.Finished != nil {
		want = string(fs.UID)
	}
	if target.Spec.DestroyFor != want || target.Spec.ServeOn != "" {
		before := target.DeepCopy()
		// A target that the second node holds is handed back first.
		target.Spec.DestroyFor, target.Spec.ServeOn = want, ""
		lock := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		if err := r.targetChanges.conflict(r.Client.Patch(ctx, target, lock)); err != nil {
			return client.IgnoreNotFound(fmt.Errorf("record whether %s is to be wiped: %w", target.Name, err))
		}
	}
	if !target.DeletionTimestamp.IsZero() {
		return nil
	}
	// The version is a precondition too, so that the record of an agent that makes the disk a target meanwhile is not overlooked.
	now := client.Preconditions{UID: &target.UID, ResourceVersion: &target.ResourceVersion}
	if err := r.targetChanges.conflict(r.Client.Delete(ctx, target, now)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete StorageTarget %s: %w", target.Name, err)
	}
	return nil
}

// unconfirmed describes the way out of a deletion that would destroy data and was not confirmed.
func unconfirmed(fs *v1alpha1.FileSystem, targets []v1alpha1.StorageTarget) remains {
	return remains{reason: v1alpha1.ReasonDestroyUnconfirmed, stalled: true, message: fmt.Sprintf(
		"the daemons are stopped, but nothing was unmounted or wiped, because spec.deletionPolicy is Destroy and spec.confirmDestroy is %q instead of "+
			"this object's uid. To wipe %s, set spec.confirmDestroy to %q; to keep what is on them, set spec.deletionPolicy to %s",
		fs.Spec.ConfirmDestroy, v1alpha1.Count(len(targets), "disk", "disks"), fs.UID, v1alpha1.DeletionRetain)}
}

// left names the targets that still exist, where, why, and what to do. nodeProblem returns why nothing on a node responds, and empty if its
// agent does.
func left(targets []v1alpha1.StorageTarget, now time.Time, nodeProblem func(node string) string) remains {
	out := remains{reason: v1alpha1.ReasonReleasing}
	var lines, ways []string
	say := func(way string) {
		if !slices.Contains(ways, way) {
			ways = append(ways, way)
		}
	}
	for i := range targets {
		t := &targets[i]
		why := "being unmounted"
		released := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReleased)
		destroyed := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionDestroyed)
		problem := nodeProblem(t.Spec.Node)
		if holder := plan.HolderOf(t); problem == "" && plan.IsAway(t) {
			why = fmt.Sprintf("node %s gives it back first: %s", holder.Node, cmp.Or(holder.Message, "it unmounts it"))
			problem = nodeProblem(holder.Node)
		}
		switch {
		case problem != "":
			why = problem
			say("if the node is gone for good, decommission its disks, whose data stays there: " + giveUp(t))
		case t.Spec.DestroyFor != "" && destroyed != nil && destroyed.Status == metav1.ConditionFalse:
			why = "could not be wiped: " + destroyed.Message
			say("repair what failed; or keep what is on the disks that are left: set spec.deletionPolicy to Retain; or decommission them: " + giveUp(t))
		case released != nil && released.Status == metav1.ConditionFalse:
			why = "could not be unmounted: " + released.Message
			say("end what uses it; or decommission it, still mounted: " + giveUp(t))
		case released == nil && t.DeletionTimestamp != nil && t.DeletionTimestamp.Add(patience).Before(now):
			// Print the timestamp, not the age, so that the message stays the same between passes.
			why = "its agent has not answered since the deletion at " + t.DeletionTimestamp.UTC().Format(time.RFC3339)
			say("find out why the agent of that node does not work; if it is gone for good, decommission its disks: " + giveUp(t))
		case plan.IsAway(t):
		case t.Spec.DestroyFor != "":
			why = "being unmounted and wiped"
		}
		lines = append(lines, fmt.Sprintf("%s on %s (%s)", t.Name, t.Spec.Node, why))
	}
	out.stalled = len(ways) > 0
	disks := v1alpha1.Count(len(targets), "disk is", "disks are")
	out.message = fmt.Sprintf("the daemons are stopped; %s left: %s", disks, backend.List(lines))
	if len(ways) > 0 {
		out.message += ". " + backend.List(ways)
	}
	return out
}

// giveUp returns the command that gives up everything that a FileSystem has on a node.
func giveUp(t *v1alpha1.StorageTarget) string {
	which := fmt.Sprintf("-l %s=%s,%s=%s", v1alpha1.LabelFileSystem, t.Spec.FileSystem.Name, v1alpha1.LabelNode, t.Spec.Node)
	if len(validation.IsValidLabelValue(t.Spec.Node)) > 0 {
		which = t.Name
	}
	return fmt.Sprintf("kubectl annotate storagetargets -n %s %s %s=%s", t.Namespace, which, v1alpha1.AnnotationGiveUp, t.Spec.Node)
}

// inventories holds what the agents have found, and the versions of these objects, by node. They are the cache's own and read-only.
type inventories struct {
	found    map[string]v1alpha1.NodeInventoryStatus
	versions map[string]string
}

func (r *Reconciler) inventories(ctx context.Context) (inventories, error) {
	return r.allInventories.get(&r.inventoryChanges, func() (inventories, error) {
		var all v1alpha1.NodeInventoryList
		if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
			return inventories{}, fmt.Errorf("list NodeInventories: %w", err)
		}
		out := inventories{
			found: make(map[string]v1alpha1.NodeInventoryStatus, len(all.Items)), versions: make(map[string]string, len(all.Items)),
		}
		for i := range all.Items {
			n := &all.Items[i]
			out.found[n.Name], out.versions[n.Name] = n.Status, string(n.UID)+"/"+n.ResourceVersion
		}
		return out, nil
	})
}
