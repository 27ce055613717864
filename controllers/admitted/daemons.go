package admitted

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	// AnnotationAsked on the template of a daemon's pods, and so on the pods, says what was asked for of them.
	AnnotationAsked = "parallelfs.dev/asked"
	// annotationChanged stands on pods in the cache alone, in the place of AnnotationAsked: the changes, one a line.
	annotationChanged = "changed-by-admission"
)

// role is the only one of the pods of a daemon.
const role = "pod"

// Mark writes on a template what it asks for.
func Mark(template *corev1.PodTemplateSpec) {
	annotations := maps.Clone(template.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AnnotationAsked] = Encode(map[string]Asked{role: AskedOf(&template.Spec)})
	template.Annotations = annotations
}

// Shorten puts what of a pod was changed in the place of what was asked for, and gives its containers the images that were asked for: a
// registry's mirror makes no other version. The pod is then no longer one to compare, but to read with Changed.
func Shorten(pod *corev1.Pod) {
	asked, changes, known := compare(pod)
	if !known {
		return
	}
	annotations := maps.Clone(pod.Annotations)
	delete(annotations, AnnotationAsked)
	if len(changes) > 0 {
		annotations[annotationChanged] = strings.Join(changes, "\n")
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

// Changed says what of a daemon's pod is not as it was asked for, whether it is whole or from the cache. Of a pod that an earlier operator
// has made, nothing is known.
func Changed(pod *corev1.Pod) []string {
	if lines := pod.Annotations[annotationChanged]; lines != "" {
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
