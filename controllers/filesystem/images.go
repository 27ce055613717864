package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
)

// unpulled says which nodes of these pods of components have no image yet that the members run, and why; empty when all have theirs. From
// now on the images are brought to the nodes.
func (p *pass) unpulled(ctx context.Context, members []client.Object, components []string, pods []backend.Pod) (string, error) {
	p.pulls = backend.Pods{FileSystem: p.fs, Images: p.in.Images}.Pulls(members, components)
	var list corev1.PodList
	if err := p.Client.List(ctx, &list, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
		return "", fmt.Errorf("list the pods that bring images to nodes: %w", err)
	}
	var sets appsv1.DaemonSetList
	if err := p.Client.List(ctx, &sets, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
		return "", fmt.Errorf("list the DaemonSets that bring images to nodes: %w", err)
	}
	ours := owned.Controllers{IDs: owned.Of(p.fs, pointers(sets.Items)...)}
	have := make([]backend.PullPod, 0, len(list.Items))
	for i := range list.Items {
		if pod := &list.Items[i]; ours.Has(pod) && len(pod.Spec.Containers) > 0 {
			have = append(have, pullFacts(pod))
		}
	}
	return backend.Unpulled(p.pulls, pods, have), nil
}

func (p *pass) ofImages() []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{v1alpha1.LabelImages: p.fs.Name}}
}

// pullFacts reads a pod that brings an image to its node.
func pullFacts(pod *corev1.Pod) backend.PullPod {
	facts := podFacts(pod, nil)
	return backend.PullPod{
		Image: pod.Spec.Containers[0].Image, Node: cmp.Or(facts.Node, meantFor(pod)), Ready: facts.Ready,
		Problem: pullProblem(pod, facts.Message),
	}
}

// meantFor is the node that the controller of DaemonSets has made a pod for, which has not come there: it names the node in the pod's
// affinity (k8s.io/kubernetes/pkg/controller/daemon/util).
func meantFor(pod *corev1.Pod) string {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, term := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, field := range term.MatchFields {
			if field.Key == metav1.ObjectNameField && len(field.Values) == 1 {
				return field.Values[0]
			}
		}
	}
	return ""
}

// pullProblem says why a pod has not its image. The kubelet tries again and again, and says each time first that it failed, and then that
// it waits: for a person this is one and the same.
func pullProblem(pod *corev1.Pod, message string) string {
	const failed, waits, most = "ErrImagePull", "ImagePullBackOff", 200
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && (w.Reason == failed || w.Reason == waits) {
			_, why, found := strings.Cut(w.Message, failed+": ")
			if !found && w.Reason == failed {
				why = w.Message
			}
			return v1alpha1.Cut(strings.TrimSuffix(failed+": "+why, ": "), most)
		}
	}
	return v1alpha1.Cut(message, most)
}

// pullImages brings the images to the nodes that an upgrade waits for, and leaves them in use until it is over: a kubelet removes those
// that nothing uses. Then what has brought them goes.
func (p *pass) pullImages(ctx context.Context) error {
	if p.fs.Status.Upgrade != nil && p.fs.DeletionTimestamp.IsZero() {
		return nil
	}
	var sets appsv1.DaemonSetList
	if err := p.Client.List(ctx, &sets, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list the DaemonSets that bring images to nodes: %w", err)
	}
	wanted := make([]client.Object, len(p.pulls))
	for i := range p.pulls {
		wanted[i] = p.pulls[i].Set
	}
	if len(wanted) > 0 {
		labels := map[string]string{v1alpha1.LabelImages: p.fs.Name}
		if _, err := p.Applier.Compare(ctx, p.fs, labels, wanted).Apply(ctx); err != nil {
			return err //nolint:wrapcheck // the phase has a name
		}
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		mine := metav1.IsControlledBy(set, p.fs) || !p.fs.DeletionTimestamp.IsZero() && metav1.GetControllerOf(set) == nil
		stays := slices.ContainsFunc(wanted, func(o client.Object) bool { return o.GetName() == set.Name })
		if !mine || stays || !set.DeletionTimestamp.IsZero() {
			continue
		}
		gone := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: set.Namespace, Name: set.Name}}
		err := p.Client.Delete(ctx, gone, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &set.UID})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete DaemonSet %s, which has brought an image to nodes: %w", set.Name, err)
		}
	}
	return nil
}
