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
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// unpulled names the nodes of these pods that do not have an image of the members yet, with the reasons; empty if all have theirs. From now
// on, pods bring the images to the nodes.
func (p *pass) unpulled(ctx context.Context, members []client.Object, components []string, pods []backend.Pod) (string, error) {
	p.pulls = podspec.Pods{FileSystem: p.fs, Images: p.in.Images}.Pulls(members, components)
	var list corev1.PodList
	if err := p.Client.List(ctx, &list, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
		return "", fmt.Errorf("list the pods that bring images to nodes: %w", err)
	}
	var sets appsv1.DaemonSetList
	if err := p.Client.List(ctx, &sets, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
		return "", fmt.Errorf("list the DaemonSets that bring images to nodes: %w", err)
	}
	ours := owned.Controllers{IDs: owned.Of(p.fs, pointers(sets.Items)...)}
	have := make([]podspec.PullPod, 0, len(list.Items))
	for i := range list.Items {
		if pod := &list.Items[i]; ours.Has(pod) && len(pod.Spec.Containers) > 0 {
			have = append(have, pullFacts(pod))
		}
	}
	return podspec.Unpulled(p.pulls, pods, have), nil
}

func (p *pass) ofImages() []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{v1alpha1.LabelImages: p.fs.Name}}
}

// pullFacts returns the facts of a pod that brings an image to its node.
func pullFacts(pod *corev1.Pod) podspec.PullPod {
	facts := podFacts(pod, nil)
	return podspec.PullPod{
		Image: pod.Spec.Containers[0].Image, Node: cmp.Or(facts.Node, meantFor(pod)), Ready: facts.Ready,
		Problem: pullProblem(pod, facts.Message),
	}
}

// meantFor returns the node for which the controller of DaemonSets has made a pod that is not scheduled yet. The pod's affinity names the
// node (k8s.io/kubernetes/pkg/controller/daemon/util).
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

// pullProblem returns why a pod does not have its image. The kubelet retries, and alternates between the reasons "failed" and "waiting".
// For a person this is one state.
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

// pullImages brings the images of an upgrade to the nodes, and keeps them in use until the upgrade is over, because a kubelet removes
// unused images. Then it removes the pods that brought them.
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
			return err //nolint:wrapcheck // the phase adds its name
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
