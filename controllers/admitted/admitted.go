// Package admitted compares running pods with the pods that the operator requested. LimitRanges, sidecar injectors and webhooks may change
// a pod at the API server without a notice.
package admitted

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Asked holds the requested properties of a pod that are compared. Its JSON is short enough for an annotation.
type Asked struct {
	Containers []Container `json:"containers"`
	// Volumes maps names to sources in text form, such as "hostPath /mnt".
	Volumes      map[string]string `json:"volumes,omitempty"`
	RuntimeClass string            `json:"runtimeClass,omitempty"`
}

// Container is one container of a pod.
type Container struct {
	Name  string `json:"name"`
	Image string `json:"image"`
	// Init is true for an init container, including a sidecar that runs beside the others.
	Init bool `json:"init,omitempty"`
	// Command is a hash of command and arguments.
	Command string            `json:"command,omitempty"`
	Limits  map[string]string `json:"limits,omitempty"`
}

// AskedOf returns the properties in the spec of a pod or of a template.
func AskedOf(spec *corev1.PodSpec) Asked {
	out := Asked{Volumes: make(map[string]string, len(spec.Volumes))}
	for _, c := range spec.InitContainers {
		out.Containers = append(out.Containers, containerOf(c, true))
	}
	for _, c := range spec.Containers {
		out.Containers = append(out.Containers, containerOf(c, false))
	}
	for _, v := range spec.Volumes {
		out.Volumes[v.Name] = sourceOf(v.VolumeSource)
	}
	if spec.RuntimeClassName != nil {
		out.RuntimeClass = *spec.RuntimeClassName
	}
	return out
}

func containerOf(c corev1.Container, init bool) Container {
	out := Container{Name: c.Name, Image: c.Image, Init: init, Limits: make(map[string]string, len(c.Resources.Limits))}
	const enough = 8 // length of a hash in bytes
	sum := sha256.Sum256([]byte(strings.Join(c.Command, "\x00") + "\x00\x00" + strings.Join(c.Args, "\x00")))
	out.Command = hex.EncodeToString(sum[:enough])
	for name, quantity := range c.Resources.Limits {
		out.Limits[string(name)] = quantity.String()
	}
	return out
}

// sourceOf describes the source of a volume. Fields that the API server fills in are ignored.
func sourceOf(s corev1.VolumeSource) string {
	switch {
	case s.HostPath != nil:
		return "hostPath " + s.HostPath.Path
	case s.PersistentVolumeClaim != nil:
		return "claim " + s.PersistentVolumeClaim.ClaimName
	case s.ConfigMap != nil:
		return "configMap " + s.ConfigMap.Name
	case s.Secret != nil:
		return "secret " + s.Secret.SecretName
	case s.EmptyDir != nil:
		return "emptyDir"
	case s.DownwardAPI != nil:
		return "downwardAPI"
	case s.Projected != nil:
		return "projected"
	default:
		return "another source"
	}
}

// ownVolumes lists name prefixes of volumes that Kubernetes adds to pods for a ServiceAccount's token, and the MPI operator (0.7.0) to
// launchers and workers.
var ownVolumes = []string{"kube-api-access-", "mpi-job-config", "ssh-auth"}

// Changes describes how a pod differs from the requested one, worst first: limits, containers, images, commands, volumes. Each is a clause.
func (a Asked) Changes(spec *corev1.PodSpec) []string {
	var limits, rest []string
	is := AskedOf(spec)
	for _, c := range is.Containers {
		i := slices.IndexFunc(a.Containers, func(o Container) bool { return o.Name == c.Name })
		if i < 0 {
			rest = append(rest, fmt.Sprintf("container %s (%s) was added", c.Name, c.Image))
			continue
		}
		asked := a.Containers[i]
		limits = append(limits, limitChanges(asked, c)...)
		if asked.Image != c.Image {
			rest = append(rest, fmt.Sprintf("container %s has the image %s instead of %s", c.Name, c.Image, asked.Image))
		}
		if asked.Command != c.Command {
			rest = append(rest, fmt.Sprintf("container %s runs another command", c.Name))
		}
	}
	for _, c := range a.Containers {
		if !slices.ContainsFunc(is.Containers, func(o Container) bool { return o.Name == c.Name }) {
			rest = append(rest, fmt.Sprintf("container %s was removed", c.Name))
		}
	}
	if a.RuntimeClass != is.RuntimeClass {
		rest = append(rest, fmt.Sprintf("the runtime class is %s instead of %s",
			cmp.Or(is.RuntimeClass, "the default"), cmp.Or(a.RuntimeClass, "the default")))
	}
	return slices.Concat(limits, rest, volumeChanges(a.Volumes, is.Volumes))
}

func limitChanges(asked, is Container) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(is.Limits)) {
		switch was, set := asked.Limits[name]; {
		case !set:
			out = append(out, fmt.Sprintf("the %s of container %s is limited to %s", name, is.Name, is.Limits[name]))
		case !same(was, is.Limits[name]):
			out = append(out, fmt.Sprintf("the %s of container %s is limited to %s instead of %s", name, is.Name, is.Limits[name], was))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked.Limits)) {
		if _, set := is.Limits[name]; !set {
			out = append(out, fmt.Sprintf("the %s of container %s has no limit instead of %s", name, is.Name, asked.Limits[name]))
		}
	}
	return out
}

// same is true for two notations of the same quantity.
func same(a, b string) bool {
	x, errX := resource.ParseQuantity(a)
	y, errY := resource.ParseQuantity(b)
	return errX == nil && errY == nil && x.Cmp(y) == 0
}

func volumeChanges(asked, is map[string]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(is)) {
		switch was, known := asked[name]; {
		case !known && slices.ContainsFunc(ownVolumes, func(own string) bool { return strings.HasPrefix(name, own) }):
		case !known:
			out = append(out, fmt.Sprintf("volume %s (%s) was added", name, is[name]))
		case was != is[name]:
			out = append(out, fmt.Sprintf("volume %s is %s instead of %s", name, is[name], was))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if _, there := is[name]; !there {
			out = append(out, fmt.Sprintf("volume %s was removed", name))
		}
	}
	return out
}

// LimitsCPU is true for a change that limits the CPUs of a container.
func LimitsCPU(change string) bool {
	return strings.HasPrefix(change, "the cpu of container ") && strings.Contains(change, " is limited to ")
}

// Encode writes the requested properties of several pods, by role, for an annotation.
func Encode(byRole map[string]Asked) string {
	raw, err := json.Marshal(byRole)
	if err != nil {
		panic(err) // it contains only texts
	}
	return string(raw)
}

// Decode reads what Encode wrote.
func Decode(text string) (map[string]Asked, error) {
	var out map[string]Asked
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("read what was asked for of pods: %w", err)
	}
	return out, nil
}

// Outlasting names a container that still runs although all of the pod's own containers have ended. It is empty if there is none, or if the
// kubelet ends it by itself, as for sidecars that are init containers.
func Outlasting(pod *corev1.Pod, own func(name string) bool) string {
	running, ended := "", false
	for _, c := range pod.Status.ContainerStatuses {
		switch {
		case own(c.Name) && c.State.Terminated == nil:
			return ""
		case own(c.Name):
			ended = true
		case c.State.Terminated == nil && running == "":
			running = c.Name
		}
	}
	if !ended {
		return ""
	}
	return running
}
