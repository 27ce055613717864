package podspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Before daemons restart with other software, the new image must be on their nodes. Otherwise a stopped daemon whose new image can't be
// pulled stays away until a person fixes that. Only a running container proves that its image is there, and keeps it there, because a
// kubelet removes unused images.

// Pull brings an image to nodes: a DaemonSet with idle pods of that image.
type Pull struct {
	Image string
	// Components lists the components whose pods run the image. The Pull runs on their nodes.
	Components []string
	Set        *appsv1.DaemonSet
}

// Pulls returns the Pulls of the images that the pods of components run, by image, according to their DaemonSets among the Members.
func (p Pods) Pulls(members []client.Object, components []string) []Pull {
	sets := map[string][]*appsv1.DaemonSet{}
	for _, o := range members {
		set, is := o.(*appsv1.DaemonSet)
		if !is || !slices.Contains(components, set.Labels[v1alpha1.LabelComponent]) {
			continue
		}
		for _, image := range images(&set.Spec.Template.Spec) {
			if image != p.Images.Node {
				sets[image] = append(sets[image], set)
			}
		}
	}
	var out []Pull
	for _, image := range backend.SortedKeys(sets) {
		pull := Pull{Image: image, Set: p.pull(image, sets[image])}
		for _, set := range sets[image] {
			pull.Components = append(pull.Components, set.Labels[v1alpha1.LabelComponent])
		}
		slices.Sort(pull.Components)
		pull.Components = slices.Compact(pull.Components)
		out = append(out, pull)
	}
	return out
}

// images returns the images of a pod, each once.
func images(spec *corev1.PodSpec) []string {
	var out []string
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		out = append(out, c.Image)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pull returns the DaemonSet that brings an image to the nodes of everything that runs it.
func (p Pods) pull(image string, users []*appsv1.DaemonSet) *appsv1.DaemonSet {
	which := map[string]string{v1alpha1.LabelImages: p.FileSystem.Name, v1alpha1.LabelImage: backend.Hash(image)}
	pod := p.Template(Workload{})
	pod.Labels = labelsOf(p.FileSystem)
	maps.Copy(pod.Labels, which)
	pod.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	spec := &pod.Spec
	spec.HostNetwork, spec.DNSPolicy, spec.Affinity = false, corev1.DNSDefault, whereAny(users)
	spec.TerminationGracePeriodSeconds = new(int64(1))
	spec.PriorityClassName = "" // it must not preempt any other pod
	spec.SecurityContext.FSGroup = nil
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name != binaryVolume })
	spec.Containers = []corev1.Container{{
		Name: "image", Image: image, ImagePullPolicy: corev1.PullPolicy(p.Images.PullPolicy), Command: []string{NodeBinary, "guard"},
		VolumeMounts: []corev1.VolumeMount{{Name: binaryVolume, MountPath: binaryDirectory, ReadOnly: true}},
		Resources:    Requests("1m", "8Mi"), SecurityContext: p.Unprivileged(),
	}}
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: backend.ChildName(p.FileSystem, "image-"+backend.Hash(image)), Namespace: p.FileSystem.Namespace},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: which}, Template: *pod, RevisionHistoryLimit: new(int32(0)),
			// A pull secret that is added later takes effect on all nodes at once.
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{
				Type:          appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: new(intstr.FromString("100%"))},
			},
		},
	}
}

// whereAny returns an affinity for all nodes that any of the DaemonSets has, nil for every node.
func whereAny(sets []*appsv1.DaemonSet) *corev1.Affinity {
	var terms []corev1.NodeSelectorTerm
	seen := map[string]bool{}
	for _, set := range sets {
		for _, term := range whereIs(&set.Spec.Template.Spec) {
			if len(term.MatchExpressions)+len(term.MatchFields) == 0 {
				return nil
			}
			if key := backend.Hash(term); !seen[key] {
				seen[key], terms = true, append(terms, term)
			}
		}
	}
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}}}
}

// whereIs returns the nodes on which a pod may run, as terms of which one has to hold; an empty term matches every node.
func whereIs(spec *corev1.PodSpec) []corev1.NodeSelectorTerm {
	terms := []corev1.NodeSelectorTerm{{}}
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		terms = slices.Clone(a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms)
	}
	var labels []corev1.NodeSelectorRequirement
	for _, key := range backend.SortedKeys(spec.NodeSelector) {
		is := []string{spec.NodeSelector[key]}
		labels = append(labels, corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: is})
	}
	for i := range terms {
		terms[i].MatchExpressions = slices.Concat(terms[i].MatchExpressions, labels)
	}
	return terms
}

// PullPod is the state of a pod of a Pull.
type PullPod struct {
	Image, Node string
	// Ready is true if the image is on the node.
	Ready bool
	// Problem is why the image can't be pulled; empty while the pull goes on.
	Problem string
}

// Unpulled names the nodes of servers that have no image yet, with the reasons, in words that a person can act on; empty if all nodes have
// theirs. The nodes are those with pods of a component.
func Unpulled(pulls []Pull, servers []backend.Pod, have []PullPod) string {
	type place struct{ image, node string }
	there, why, all := map[place]bool{}, map[place]string{}, map[place]bool{}
	for i := range have {
		h := &have[i]
		at := place{h.Image, h.Node}
		there[at], why[at] = there[at] || h.Ready, cmp.Or(why[at], h.Problem)
	}
	var failed, goesOn []string
	for _, pull := range pulls {
		for i := range servers {
			at := place{pull.Image, servers[i].Node}
			if at.node == "" || all[at] || !slices.Contains(pull.Components, servers[i].Component) {
				continue
			}
			switch all[at] = true; {
			case there[at]:
			case why[at] != "":
				failed = append(failed, fmt.Sprintf("%s can't pull %s: %s", at.node, at.image, why[at]))
			default:
				goesOn = append(goesOn, fmt.Sprintf("%s pulls %s", at.node, at.image))
			}
		}
	}
	if len(failed)+len(goesOn) == 0 {
		return ""
	}
	slices.Sort(failed)
	slices.Sort(goesOn)
	// Failed nodes come first, because they need a person.
	return fmt.Sprintf("%d of %d are missing: %s", len(failed)+len(goesOn), len(all), backend.List(append(failed, goesOn...)))
}
