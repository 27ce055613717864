package moosefs

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestAMooseFSHas32PortsFromItsBasePort(t *testing.T) {
	fs := v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{MooseFS: &v1alpha1.MooseFSSpec{BasePort: 9419}}}
	claims := New().Claims(&fs, nil)
	g := NewWithT(t)
	g.Expect(claims.Ports).To(Equal(backend.PortRange{First: 9419, Count: 32}))
	g.Expect(claims.Directories).To(BeNil(), "it has recorded nothing yet")
}
