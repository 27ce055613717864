package lustre_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre"
)

func TestToolsOfLustreRunOnTheNodeOfAServer(t *testing.T) {
	NewWithT(t).Expect(lustre.Backend{}.RunTool(&v1alpha1.FileSystem{}, "", []string{"lctl", "dl"})).To(Equal(backend.ToolCall{
		Components: []string{"mgs", "mdt", "ost"}, Container: "probe", Argv: []string{"/parallelfs/node", "on-node", "lctl", "dl"},
	}))
}
