package images_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/internal/images"
)

// manager is the pod of a manager, which names images in its arguments.
var manager = corev1.PodSpec{Containers: []corev1.Container{{
	Name: "manager", Image: "registry.example.com:5000/parallelfs/manager:0.1.0", Args: []string{
		"--leader-elect", "--node-image=registry.example.com:5000/parallelfs/node:0.1.0",
		"--daemon-image=moosefs-4.57.5=registry.example.com:5000/parallelfs/moosefs:4.57.5", "--daemon-image=beegfs-meta=ghcr.io/thinkparq/beegfs-meta",
		"--benchmark-image=fio=registry.example.com:5000/parallelfs/benchmarks:0.1.0",
		"--benchmark-image=iozone=registry.example.com:5000/parallelfs/benchmarks:0.1.0",
	},
}}}

func TestImagesAreThoseOfPodsAndOfTheManagersArguments(t *testing.T) {
	g := NewWithT(t)
	const digest = "sha256:aaaa"
	running := corev1.Pod{
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "master", Image: "registry.example.com:5000/parallelfs/moosefs:4.57.5"}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "master", ImageID: "registry.example.com:5000/parallelfs/moosefs@" + digest},
		}},
	}
	pinned := corev1.PodSpec{Containers: []corev1.Container{{Name: "custom", Image: "team/tool@sha256:bbbb"}}}
	const at = "registry.example.com:5000"
	g.Expect(images.Of([]corev1.PodSpec{manager, pinned}, []corev1.Pod{running}, []string{"7.4.6", "8.3.1"})).To(Equal([]images.Image{
		{Name: "ghcr.io/thinkparq/beegfs-meta:7.4.6", Registry: "ghcr.io", For: []string{"beegfs-meta"}},
		{Name: "ghcr.io/thinkparq/beegfs-meta:8.3.1", Registry: "ghcr.io", For: []string{"beegfs-meta"}},
		{Name: at + "/parallelfs/benchmarks:0.1.0", Registry: at, For: []string{"fio", "iozone"}},
		{Name: at + "/parallelfs/manager:0.1.0", Registry: at, For: []string{"manager"}},
		{Name: at + "/parallelfs/moosefs:4.57.5", Registry: at, Digest: digest, For: []string{"master", "moosefs-4.57.5"}},
		{Name: at + "/parallelfs/node:0.1.0", Registry: at, For: []string{"node"}},
		{Name: "team/tool@sha256:bbbb", Registry: "docker.io", Digest: "sha256:bbbb", For: []string{"custom"}},
	}))
}

func TestARepositoryOfNoKnownVersionStaysAsItIs(t *testing.T) {
	got := images.Of([]corev1.PodSpec{manager}, nil, nil)
	NewWithT(t).Expect(got[0].Name).To(Equal("ghcr.io/thinkparq/beegfs-meta"))
}

func TestAPinnedReferenceHasItsDigestOnce(t *testing.T) {
	g := NewWithT(t)
	g.Expect(images.Image{Name: "a.example/b:1", Digest: "sha256:c"}.Pinned()).To(Equal("a.example/b:1@sha256:c"))
	g.Expect(images.Image{Name: "a.example/b@sha256:c", Digest: "sha256:c"}.Pinned()).To(Equal("a.example/b@sha256:c"))
	g.Expect(images.Image{Name: "a.example/b:1"}.Pinned()).To(Equal("a.example/b:1"))
}
