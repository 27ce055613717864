package benchmarkrun

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/decision"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
	"parallelfs.dev/operator/controllers/cached"
)

// pageSize is how many objects are read at once from the API server.
const pageSize = 500

// gatherTrust reads from the API server and not from the cache, because a disturbance that the cache does not show yet would make a wrong
// number look right. It reads only for a pass that takes a fingerprint, at the start and at the end of a turn: all servers and targets, and
// the clients of the turn.
func (r *Reconciler) gatherTrust(ctx context.Context, w *scope.Scope) error {
	if w.FileSystem == nil || w.Run.Status.CompletionTime != nil || !w.Run.DeletionTimestamp.IsZero() {
		return nil
	}
	nodes, takes := fingerprinted(w, decision.Decide(w))
	if !takes {
		return nil
	}
	servers, err := klabels.NewRequirement(v1alpha1.LabelComponent, selection.NotIn, []string{trust.ComponentClient})
	if err != nil {
		return fmt.Errorf("select the servers of FileSystem %s: %w", w.FileSystem.Name, err)
	}
	selector := klabels.SelectorFromSet(klabels.Set{v1alpha1.LabelFileSystem: w.FileSystem.Name}).Add(*servers)
	pods := &corev1.PodList{}
	if err := r.pages(ctx, w, pods, func() {
		own := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !w.Sets.Has(&p) })
		w.Daemons, pods.Items = append(w.Daemons, own...), nil
	}, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return fmt.Errorf("list the pods of FileSystem %s: %w", w.FileSystem.Name, err)
	}
	for _, node := range nodes {
		pod, err := r.mounterNow(ctx, w, node)
		if err != nil {
			return err
		}
		if pod != nil {
			w.Daemons = append(w.Daemons, *pod)
		}
	}
	targets := &v1alpha1.StorageTargetList{}
	if err := r.pages(ctx, w, targets, func() {
		for i := range targets.Items {
			w.Targets = append(w.Targets, essence(&targets.Items[i]))
		}
		targets.Items = nil
	}, client.MatchingFields{cached.ByFileSystem: w.FileSystem.Name}); err != nil {
		return fmt.Errorf("list the StorageTargets of FileSystem %s: %w", w.FileSystem.Name, err)
	}
	return nil
}

// mounterNow reads the pod that mounts the filesystem on a node from the API server; nil if it is gone, or if another pod has its name now.
func (r *Reconciler) mounterNow(ctx context.Context, w *scope.Scope, node string) (*corev1.Pod, error) {
	known := w.Mounters[node]
	if known == nil {
		return nil, nil //nolint:nilnil // nothing mounts it there
	}
	pod := &corev1.Pod{}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(known), pod)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("read pod %s: %w", known.Name, err)
	case apierrors.IsNotFound(err), !w.Sets.Has(pod):
		return nil, nil //nolint:nilnil // it is gone
	}
	return pod, nil
}

// fingerprinted returns the nodes of the turn, and whether the decision takes or compares a fingerprint.
func fingerprinted(w *scope.Scope, d decision.Decision) (nodes []string, takes bool) {
	switch d.Action {
	case decision.Start:
		nodes, err := w.NodesOf(d.Turn)
		return nodes, err == nil
	case decision.Keep, decision.Mark:
		return d.Child.Nodes, true
	case decision.Inspect:
		for _, c := range w.TakingPart() {
			nodes = append(nodes, c.Name)
		}
		return nodes, true
	default:
		return nil, false
	}
}

// pages reads a list from the API server page by page. Each page is read into the same list, and take must copy what it needs.
func (r *Reconciler) pages(ctx context.Context, w *scope.Scope, list client.ObjectList, take func(), options ...client.ListOption) error {
	for {
		next := list.GetContinue()
		list.SetContinue("")
		all := slices.Concat(options, []client.ListOption{client.InNamespace(w.Run.Namespace), client.Limit(pageSize), client.Continue(next)})
		if err := r.Reader.List(ctx, list, all...); err != nil {
			return err //nolint:wrapcheck // the caller adds what was read
		}
		take()
		if list.GetContinue() == "" {
			return nil
		}
	}
}

// essence returns only the fields of a StorageTarget that go into a fingerprint, because there may be tens of thousands.
func essence(t *v1alpha1.StorageTarget) v1alpha1.StorageTarget {
	out := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: t.Name, UID: t.UID, DeletionTimestamp: t.DeletionTimestamp}}
	out.Spec.FileSystem, out.Spec.Node, out.Spec.Device.ID = t.Spec.FileSystem, t.Spec.Node, t.Spec.Device.ID
	if c := meta.FindStatusCondition(t.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		out.Status.Conditions = []metav1.Condition{{Type: c.Type, Status: c.Status}}
	}
	return out
}
