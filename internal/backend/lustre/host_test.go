package lustre_test

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/lustre"
)

func TestAServerNeedsAllThatAClientNeedsOfTheKernel(t *testing.T) {
	g := NewWithT(t)
	s := lustre.HostSoftware()
	g.Expect(s.Server.Modules).To(ContainElements(s.Client.Modules))
	g.Expect(s.Server.Modules).To(ContainElements(s.OneVersion), "a version is compared of what is looked for")
	g.Expect(s.Server.Modules).To(ContainElement(s.NIDsOf))
	g.Expect(slices.Concat(s.Server.Programs, s.Client.Programs)).To(ContainElement(s.NIDs[0]))
}
