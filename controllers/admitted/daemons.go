package admitted

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// AnnotationAsked holds the requested properties. It is on the template of a daemon's pods, and so on the pods.
	AnnotationAsked = "parallelfs.dev/asked"
	// AnnotationChanged replaces AnnotationAsked on pods in the cache only. It holds the changes, one per line.
	AnnotationChanged = "changed-by-admission"
)

// role is the only role in a daemon's annotation.
const role = "pod"

// Mark records a template's requested properties in its annotation.
func Mark(template *corev1.PodTemplateSpec) {
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationAsked] = Encode(map[string]Asked{role: AskedOf(&template.Spec)})
	template.Annotations = annotations
}

// Shorten replaces the requested properties of a pod by its changes, and sets the containers' images to the requested ones, because a
// registry mirror does not change the version. After that, use Changed instead of a comparison.
func Shorten(pod *corev1.Pod) {
	asked, changes, known := compare(pod)
	if !known {
		return
	}
	annotations := maps.Clone(pod.Annotations)
	delete(annotations, AnnotationAsked)
	if len(changes) > 0 {
		annotations[AnnotationChanged] = strings.Join(changes, "\n")
	}
	pod.Annotations = annotations
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			for _, c := range asked.Containers {
				if c.Name == containers[i].Name {
					containers[i].Image = c.Image
				}
			}
		}
	}
}

// Changed describes how a daemon's pod, complete or from the cache, differs from the requested one. For a pod made by an earlier operator
// it is unknown.
func Changed(pod *corev1.Pod) []string {
	if lines := pod.Annotations[AnnotationChanged]; lines != "" {
		return strings.Split(lines, "\n")
	}
	_, changes, _ := compare(pod)
	return changes
}

func compare(pod *corev1.Pod) (asked Asked, changes []string, known bool) {
	text := pod.Annotations[AnnotationAsked]
	if text == "" {
		return asked, nil, false
	}
	all, err := Decode(text)
	if err != nil {
		return asked, []string{"the annotation " + AnnotationAsked + " was changed"}, true
	}
	asked = all[role]
	return asked, asked.Changes(&pod.Spec), true
}
