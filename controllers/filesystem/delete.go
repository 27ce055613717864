package filesystem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// stopInterval is how often a deletion checks whether the pods of a step are gone.
const stopInterval = 2 * time.Second

// A deletion stops a filesystem in the reverse of its restart order: clients first, so that they unmount while the servers are up, and the
// metadata server last. Then its disks are released. Directories are left as they are. The deletion does not wait for pods on a node that
// is missing or not Ready, because a finalizer must never block forever.

// tellLimit is how long a deletion waits until the filesystem shows that a maintenance has ended. The Job for it takes seconds.
const tellLimit = 2 * time.Minute

// endMaintenance ends the maintenance of nodes in a filesystem that is deleted. Otherwise the filesystem would keep the mode without any
// record of it. Over the same data, it would later make no copies of what such a node loses.
func (p *pass) endMaintenance(ctx context.Context) error {
	maintainer, can := p.backend.(backend.Maintainer)
	if !can || len(p.fs.Status.Maintenance) == 0 || !controllerutil.ContainsFinalizer(p.fs, v1alpha1.Finalizer) {
		return nil
	}
	var nodes []string
	for i := range p.fs.Status.Maintenance {
		m := &p.fs.Status.Maintenance[i]
		nodes = append(nodes, m.Node)
		if m.Ended == nil {
			m.Ended = new(metav1.NewTime(p.Clock.Now().UTC().Truncate(time.Second)))
		}
	}
	waits, err := p.tellMaintenance(ctx, maintainer, nodes)
	late := p.Clock.Now().After(p.fs.DeletionTimestamp.Add(tellLimit))
	switch {
	case err == nil && waits == "":
	case !late && err != nil:
		return err
	case !late:
		p.waitFor(conditions.Reconciling, v1alpha1.ReasonDeleting, fmt.Sprintf(
			"the maintenance of these nodes ends: %s; the daemons are stopped when %s, or %s after the deletion; %s", backend.List(nodes), waits, tellLimit, fate(p.fs)))
		return nil
	default:
		if err != nil {
			waits = "this succeeds: " + err.Error()
		}
		note := fmt.Sprintf("Deleted during the maintenance of these nodes: %s; the filesystem may go on to count them as in maintenance when it runs again. "+
			"It was not told within %s that this is over, which is so when %s", backend.List(nodes), tellLimit, waits)
		note = v1alpha1.Cut(note, conditions.MaxNote)
		p.Recorder.Eventf(p.fs, nil, corev1.EventTypeWarning, v1alpha1.ReasonInMaintenance, "Delete", "%s", note)
	}
	p.fs.Status.Maintenance = nil
	return nil
}

// tellMaintenance announces the recorded maintenance of these nodes to the filesystem, and returns what the filesystem does not show yet,
// in words that follow "when ".
func (p *pass) tellMaintenance(ctx context.Context, maintainer backend.Maintainer, nodes []string) (waits string, err error) {
	if err := p.look(ctx); err != nil {
		return "", err
	}
	p.observation = p.backend.Observe(p.in)
	for _, node := range nodes {
		waits = cmp.Or(waits, maintainer.Absence(p.in, p.observation, node).Waits)
	}
	if waits == "" {
		return "", nil
	}
	jobs, err := maintainer.TellMaintenance(p.in)
	if invalid, is := errors.AsType[*backend.InvalidSpecError](err); is {
		return waits + ", and " + invalid.Message, nil // it must not end the pass, because nobody edits the spec of a deleted FileSystem
	} else if err != nil {
		return waits, err //nolint:wrapcheck // the phase adds its name
	}
	mine := map[string]string{v1alpha1.LabelFileSystem: p.fs.Name}
	_, err = p.Applier.Compare(ctx, p.fs, mine, jobs).Apply(ctx)
	return waits, errors.Join(err, p.repeatUnseenJobs(ctx))
}

// lookBack finds the remaining objects of a deleted FileSystem. If the daemons are to be left (orphaned), there is nothing to do.
func (p *pass) lookBack(ctx context.Context) error {
	if p.gone = !controllerutil.ContainsFinalizer(p.fs, v1alpha1.Finalizer); p.gone {
		p.over = true
		return nil
	}
	var sets appsv1.DaemonSetList
	if err := p.Client.List(ctx, &sets, p.mine()...); err != nil {
		return fmt.Errorf("list DaemonSets: %w", err)
	}
	past := &p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID).controllers
	if orphaned(p.fs, sets.Items, past) {
		return p.endDeletion(ctx)
	}
	p.sets = ownSets(p.fs, sets.Items)
	var nodes corev1.NodeList
	if err := p.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	p.nodes = nodes.Items
	return nil
}

// mine selects the children of the FileSystem.
func (p *pass) mine() []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: p.fs.Name}}
}

// stopDaemons stops one component after the other. Jobs are deleted at once, because their pods stay after their end and would block the
// deletion.
func (p *pass) stopDaemons(ctx context.Context) error {
	if err := p.deleteJobs(ctx); err != nil {
		return err
	}
	pods, err := p.pods(ctx, p.Client, p.fs)
	if err != nil {
		return err
	}
	step, waiting := stopStep(p.backend.Order(), components(p.sets), pods, p.nodes)
	if step == "" {
		return nil
	}
	p.waitFor(conditions.Reconciling, v1alpha1.ReasonDeleting,
		fmt.Sprintf("stopping %s; %s left: %s; %s", step, v1alpha1.Count(len(waiting), "pod is", "pods are"), backend.List(waiting), fate(p.fs)))
	return p.deleteSets(ctx, step)
}

// waitFor ends this pass over a deletion with a status that says what it waits for.
func (p *pass) waitFor(progress conditions.Progress, reason, message string) {
	conditions.Set(&p.fs.Status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, metav1.ConditionFalse, progress, reason, message)
	p.over, p.after = true, stopInterval
	if progress == conditions.Stalled {
		p.after = p.PollInterval
	}
}

// orphaned reports whether a deletion leaves the children (kubectl delete --cascade=orphan): the garbage collector will remove the
// children's owner references, or has done so. Daemons and data are then left as they are. A DaemonSet with the labels of the filesystem
// and without a controller counts as a former child if this process has seen it as one. A process that has never seen it decides by its
// age.
func orphaned(fs *v1alpha1.FileSystem, sets []appsv1.DaemonSet, past *owned.Past) bool {
	if controllerutil.ContainsFinalizer(fs, metav1.FinalizerOrphanDependents) {
		return true
	}
	controlled := func(s appsv1.DaemonSet) bool { return metav1.IsControlledBy(&s, fs) }
	unseen := !past.SawAny() && !slices.ContainsFunc(sets, controlled)
	return slices.ContainsFunc(sets, func(s appsv1.DaemonSet) bool {
		was := past.Known(s.UID) || unseen && s.CreationTimestamp.Before(fs.DeletionTimestamp)
		return was && s.DeletionTimestamp.IsZero() && metav1.GetControllerOf(&s) == nil
	})
}

// endDeletion ends the deletion.
func (p *pass) endDeletion(ctx context.Context) error {
	controllerutil.RemoveFinalizer(p.fs, v1alpha1.Finalizer)
	err := p.Client.Patch(ctx, p.fs, client.MergeFromWithOptions(p.read, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		p.fs = p.read.DeepCopy()
		return fmt.Errorf("remove the finalizer: %w", err)
	}
	p.gone, p.over = true, true
	return nil
}

// fate describes what happens to the data.
func fate(fs *v1alpha1.FileSystem) string {
	if fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy && fs.Spec.ConfirmDestroy == string(fs.UID) && usesDevices(fs) {
		return "its disks are wiped when all have stopped"
	}
	return "data is kept"
}

// stopStep decides which component stops now, and which of its pods to wait for (pod and node). An empty step means that all have stopped.
func stopStep(restartOrder []string, running map[string]bool, pods []backend.Pod, nodes []corev1.Node) (step string, waiting []string) {
	up := map[string]bool{}
	for i := range nodes {
		up[nodes[i].Name] = nodefacts.FactsOfNode(&nodes[i]).Ready
	}
	left := map[string][]string{}
	for _, p := range pods {
		if up[p.Node] {
			left[p.Component] = append(left[p.Component], fmt.Sprintf("%s on %s", p.Name.Name, p.Node))
		}
	}
	var order []string
	for component := range running {
		if !slices.Contains(restartOrder, component) {
			order = append(order, component)
		}
	}
	for component := range left {
		if !slices.Contains(restartOrder, component) && !slices.Contains(order, component) {
			order = append(order, component)
		}
	}
	slices.Sort(order)
	backwards := slices.Clone(restartOrder)
	slices.Reverse(backwards)
	for _, component := range append(order, backwards...) {
		if running[component] || len(left[component]) > 0 {
			return component, left[component]
		}
	}
	return "", nil
}

// components returns the components of the existing DaemonSets, including terminating ones.
func components(sets []appsv1.DaemonSet) map[string]bool {
	out := map[string]bool{}
	for i := range sets {
		out[sets[i].Labels[v1alpha1.LabelComponent]] = true
	}
	return out
}

func (p *pass) deleteJobs(ctx context.Context) error {
	var jobs batchv1.JobList
	if err := p.Client.List(ctx, &jobs, p.mine()...); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	var errs []error
	for i := range jobs.Items {
		if job := &jobs.Items[i]; job.DeletionTimestamp.IsZero() && metav1.IsControlledBy(job, p.fs) {
			errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
		}
	}
	return errors.Join(errs...)
}

func (p *pass) deleteSets(ctx context.Context, component string) error {
	var errs []error
	for i := range p.sets {
		set := &p.sets[i]
		if set.Labels[v1alpha1.LabelComponent] != component || !set.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(set, p.fs) {
			continue
		}
		errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	return errors.Join(errs...)
}
