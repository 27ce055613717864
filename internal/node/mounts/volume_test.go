package mounts

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/spec"
)

func TestAVolumeIsWhateverIsMounted(t *testing.T) {
	g := NewWithT(t)
	m := spec.Mount{Path: "/mnt/volume", Volume: true}
	g.Expect(understand(m)).To(Succeed())
	g.Expect(Assess(nil, m)).To(Equal(Absent))
	g.Expect(Assess([]Entry{{"ext4", "/dev/sda1"}}, m)).To(Equal(Ours))
	g.Expect(Describe("/proc")).To(HavePrefix("proc ("))
	g.Expect(Describe("/nothing/is/mounted/here")).To(BeEmpty())
}
