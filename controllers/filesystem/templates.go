package filesystem

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
)

// daemonSet is a desired DaemonSet and the existing one. live is read-only, and nil if there is none.
type daemonSet struct{ wanted, live *appsv1.DaemonSet }

// daemonSets returns the desired DaemonSets with the existing ones.
func (p *pass) daemonSets(ctx context.Context, objects []client.Object) ([]daemonSet, error) {
	var sets []daemonSet
	for _, o := range objects {
		wanted, isSet := o.(*appsv1.DaemonSet)
		if !isSet {
			continue
		}
		set := daemonSet{wanted: wanted, live: &appsv1.DaemonSet{}}
		switch err := p.Client.Get(ctx, client.ObjectKeyFromObject(wanted), set.live, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
			set.live = nil
		case err != nil:
			return nil, fmt.Errorf("read DaemonSet %s: %w", wanted.Name, err)
		}
		sets = append(sets, set)
	}
	return sets, nil
}

// keepTemplates prevents restarts of daemons by a release of the operator. If a DaemonSet differs from the existing one only because
// another operator wrote that, its template keeps the hash that marks pods as outdated. It returns the names of those DaemonSets, whose
// change disturbs no program.
func (p *pass) keepTemplates(sets []daemonSet) (kept map[string]bool) {
	kept = map[string]bool{}
	for _, set := range sets {
		if set.live != nil && keepTemplate(set.live, set.wanted, carriedOut(p.read)) {
			kept[set.wanted.Name] = true
		}
	}
	return kept
}

// keepTemplate gives the template the hash of the existing one if both have the same content, or differ only because another operator
// renders them. In the second case the node image differs, the whole spec was carried out, and the daemon's own image is the same. It
// returns whether another operator wrote the existing one.
func keepTemplate(live, wanted *appsv1.DaemonSet, carriedOut bool) (released bool) {
	const hash = backend.TemplateHashAnnotation
	was, now := live.Spec.Template.Annotations[hash], wanted.Spec.Template.Annotations[hash]
	rendered, kept := live.Annotations[backend.RenderedHashAnnotation]
	if !kept {
		rendered = was
	}
	before, after := &live.Spec.Template.Spec, &wanted.Spec.Template.Spec
	image := podspec.NodeImage(before)
	released = carriedOut && image != "" && image != podspec.NodeImage(after) &&
		len(before.Containers) > 0 && len(after.Containers) > 0 && before.Containers[0].Image == after.Containers[0].Image
	if was == "" || was == now || rendered != now && !released {
		return released
	}
	metav1.SetMetaDataAnnotation(&wanted.Spec.Template.ObjectMeta, hash, was)
	metav1.SetMetaDataAnnotation(&wanted.ObjectMeta, backend.RenderedHashAnnotation, now)
	return released
}

// carriedOut reports whether the last pass, of any operator, has carried out everything that the spec now asks for. A refused version
// changes nothing, and a disk or a license that waits for a person does not affect templates.
func carriedOut(fs *v1alpha1.FileSystem) bool {
	stalled := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionStalled)
	leaves := []string{
		v1alpha1.ReasonUpgradeRefused, v1alpha1.ReasonLicenseMissing, v1alpha1.ReasonTargetsNotReady, v1alpha1.ReasonRecordsUnread,
		v1alpha1.ReasonStarting, v1alpha1.ReasonMetadataOffline,
	}
	return fs.Status.ObservedGeneration == fs.Generation &&
		!meta.IsStatusConditionFalse(fs.Status.Conditions, v1alpha1.ConditionReconciled) &&
		(stalled == nil || stalled.Status != metav1.ConditionTrue || slices.Contains(leaves, stalled.Reason)) &&
		!meta.IsStatusConditionTrue(fs.Status.Conditions, v1alpha1.ConditionChangesHeld)
}
