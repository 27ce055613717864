// Package images lists the images that an installation needs, with their digests where pods report them.
package images

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Image is one image of an installation.
type Image struct {
	// Name is the reference that the pods have, such as "registry.example.com/parallelfs/node:0.1.0".
	Name string `json:"image"`
	// Registry is the host in the reference; docker.io if it names none.
	Registry string `json:"registry"`
	// Digest is the digest in the reference, or else the one that a container runtime reports; empty while no pod runs the image.
	Digest string `json:"digest,omitempty"`
	// For lists what the image is for, such as "manager", "moosefs-4.57.5" and "fio".
	For []string `json:"for"`
}

// Pinned is the reference with its digest, or the reference alone while the digest is unknown.
func (i Image) Pinned() string {
	if i.Digest == "" || strings.Contains(i.Name, "@") {
		return i.Name
	}
	return i.Name + "@" + i.Digest
}

// flags are the arguments of the manager that name images. The value of the second and the third begins with the name of the image.
var flags = []struct {
	name  string
	named bool
}{{"--node-image=", false}, {"--daemon-image=", true}, {"--benchmark-image=", true}}

// Of lists the images of pod templates and pods, sorted by name. The tags of BeeGFS's repositories are versions, so a repository without a
// tag gets an entry for each of the given versions. Without versions, it stays as it is.
func Of(templates []corev1.PodSpec, pods []corev1.Pod, versions []string) []Image {
	uses, digests := map[string]map[string]bool{}, map[string]string{}
	add := func(image, use string) {
		if image == "" {
			return
		}
		if uses[image] == nil {
			uses[image] = map[string]bool{}
		}
		uses[image][use] = true
	}
	for i := range templates {
		addSpec(&templates[i], versions, add)
	}
	for i := range pods {
		addSpec(&pods[i].Spec, versions, add)
		for _, is := range slices.Concat(pods[i].Status.InitContainerStatuses, pods[i].Status.ContainerStatuses) {
			if _, digest, found := strings.Cut(is.ImageID, "@"); found {
				for _, c := range slices.Concat(pods[i].Spec.InitContainers, pods[i].Spec.Containers) {
					if c.Name == is.Name {
						digests[c.Image] = digest
					}
				}
			}
		}
	}
	var out []Image
	for name, use := range uses {
		_, digest, _ := strings.Cut(name, "@")
		out = append(out, Image{name, registryOf(name), cmp.Or(digest, digests[name]), slices.Sorted(maps.Keys(use))})
	}
	slices.SortFunc(out, func(a, b Image) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// addSpec adds the images of a pod, and those in the arguments of a manager.
func addSpec(pod *corev1.PodSpec, versions []string, add func(image, use string)) {
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		add(c.Image, c.Name)
		for _, arg := range c.Args {
			for _, flag := range flags {
				value, is := strings.CutPrefix(arg, flag.name)
				if !is {
					continue
				}
				use, image := "node", value
				if flag.named {
					use, image, _ = strings.Cut(value, "=")
				}
				if hasTag(image) || len(versions) == 0 {
					add(image, use)
					continue
				}
				for _, version := range versions {
					add(image+":"+version, use)
				}
			}
		}
	}
}

// hasTag is true for a reference with a tag or a digest.
func hasTag(image string) bool {
	last := image[strings.LastIndex(image, "/")+1:]
	return strings.ContainsAny(last, ":@")
}

// registryOf returns the host of a reference, by the rule of container runtimes: it has a dot or a port, or is localhost.
func registryOf(image string) string {
	host, _, found := strings.Cut(image, "/")
	if found && (strings.ContainsAny(host, ".:") || host == "localhost") {
		return host
	}
	return "docker.io"
}
