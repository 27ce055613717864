package filesystem

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// stopInterval is how often a deletion looks whether the pods of a step have gone.
const stopInterval = 2 * time.Second

// reconcileDelete stops a filesystem in the reverse of its restart order: clients first, so that they unmount while the
// servers are there, the metadata server last; then its disks are released. Directories are left as they are. A pod on a
// node that is not there or not Ready is not waited for: a finalizer must never trap.
func (r *Reconciler) reconcileDelete(ctx context.Context, b backend.Backend, fs *v1alpha1.FileSystem) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(fs, v1alpha1.Finalizer) {
		return ctrl.Result{}, nil
	}
	mine := []client.ListOption{client.InNamespace(fs.Namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: fs.Name}}
	var sets appsv1.DaemonSetList
	if err := r.Client.List(ctx, &sets, mine...); err != nil {
		return ctrl.Result{}, fmt.Errorf("list daemonsets: %w", err)
	}
	if orphaned(fs, sets.Items) {
		return ctrl.Result{}, r.letGo(ctx, fs)
	}
	// The pods of a Job stay after their end, and would be waited for.
	if err := r.deleteJobs(ctx, fs, mine); err != nil {
		return ctrl.Result{}, err
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes); err != nil {
		return ctrl.Result{}, fmt.Errorf("list nodes: %w", err)
	}
	pods, err := r.pods(ctx, r.Client, fs)
	if err != nil {
		return ctrl.Result{}, err
	}

	step, waiting := stopStep(b.Order(), components(sets.Items), pods, nodes.Items)
	if step != "" {
		if err := r.deleteSets(ctx, fs, sets.Items, step); err != nil {
			return ctrl.Result{}, err
		}
		before := fs.DeepCopy()
		conditions.Set(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, metav1.ConditionFalse, conditions.Reconciling,
			v1alpha1.ReasonDeleting, fmt.Sprintf("stopping %s; %d pods are left: %s; %s", step, len(waiting), strings.Join(waiting, ", "), fate(fs)))
		if err := r.writeStatus(ctx, before, fs); err != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{RequeueAfter: stopInterval}, nil
	}

	rest, err := r.releaseTargets(ctx, fs, nodes.Items)
	if err != nil {
		return ctrl.Result{}, err
	}
	if rest.reason != "" {
		if err := r.sayWhatIsLeft(ctx, fs, rest); err != nil {
			return ctrl.Result{}, err
		}
		if rest.stalled {
			return ctrl.Result{RequeueAfter: r.PollInterval}, nil
		}
		return ctrl.Result{RequeueAfter: stopInterval}, nil
	}

	if err := r.unlabelNodes(ctx, fs, nodes.Items); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.letGo(ctx, fs)
}

// orphaned is true for a deletion that leaves the children (kubectl delete --cascade=orphan): the garbage collector has still to make them
// nobody's, or has done so with one of them already. Daemons and data are left as they are then.
func orphaned(fs *v1alpha1.FileSystem, sets []appsv1.DaemonSet) bool {
	return controllerutil.ContainsFinalizer(fs, metav1.FinalizerOrphanDependents) ||
		slices.ContainsFunc(sets, func(s appsv1.DaemonSet) bool {
			return s.DeletionTimestamp.IsZero() && metav1.GetControllerOf(&s) == nil
		})
}

// letGo ends the deletion.
func (r *Reconciler) letGo(ctx context.Context, fs *v1alpha1.FileSystem) error {
	before := fs.DeepCopy()
	controllerutil.RemoveFinalizer(fs, v1alpha1.Finalizer)
	if err := r.Client.Patch(ctx, fs, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("remove the finalizer: %w", err))
	}
	return nil
}

// fate is what becomes of the data.
func fate(fs *v1alpha1.FileSystem) string {
	if fs.Spec.DeletionPolicy == v1alpha1.DeletionDestroy && fs.Spec.ConfirmDestroy == string(fs.UID) && usesDevices(fs) {
		return "its disks are wiped when all have stopped"
	}
	return "data is kept"
}

// stopStep decides which component is stopped now, and which of its pods are waited for (pod and node). An empty step
// means that all have stopped.
func stopStep(restartOrder []string, running map[string]bool, pods []backend.Pod, nodes []corev1.Node) (step string, waiting []string) {
	up := map[string]bool{}
	for i := range nodes {
		up[nodes[i].Name] = nodeFacts(&nodes[i]).Ready
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

// components of the DaemonSets that are there, the terminating ones too.
func components(sets []appsv1.DaemonSet) map[string]bool {
	out := map[string]bool{}
	for i := range sets {
		out[sets[i].Labels[v1alpha1.LabelComponent]] = true
	}
	return out
}

func (r *Reconciler) deleteJobs(ctx context.Context, fs *v1alpha1.FileSystem, mine []client.ListOption) error {
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, mine...); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	var errs []error
	for i := range jobs.Items {
		if job := &jobs.Items[i]; job.DeletionTimestamp.IsZero() && metav1.IsControlledBy(job, fs) {
			errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
		}
	}
	return errors.Join(errs...)
}

func (r *Reconciler) deleteSets(ctx context.Context, fs *v1alpha1.FileSystem, sets []appsv1.DaemonSet, component string) error {
	var errs []error
	for i := range sets {
		set := &sets[i]
		if set.Labels[v1alpha1.LabelComponent] != component || !set.DeletionTimestamp.IsZero() || !metav1.IsControlledBy(set, fs) {
			continue
		}
		errs = append(errs, client.IgnoreNotFound(r.Client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	return errors.Join(errs...)
}
