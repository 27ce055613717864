package plan_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestAnInventoryShowsForEachDiskWhetherItsContentIsComplete(t *testing.T) {
	for incomplete, complete := range map[string]bool{"": true, "blkid gave no answer": false} {
		facts := plan.Facts{BlockDevice: v1alpha1.BlockDevice{KernelName: "sda"}, Incomplete: incomplete, Found: true}
		facts.Unusable = plan.Unusable(facts)
		NewWithT(t).Expect(plan.IsLookedAtCompletely(facts.BlockDevice)).To(Equal(complete), incomplete)
	}
}
