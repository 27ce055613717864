package backend

import (
	"math"

	"parallelfs.dev/operator/api/v1alpha1"
)

// fullnessStep is in percent: a status is not written anew for each byte that programs write.
const fullnessStep = 5

// Fullness is how evenly data lies on the targets of a pool that are online and stay, nil for fewer than two of them.
func Fullness(targets []TargetStatus) *v1alpha1.PoolFullness {
	count := 0
	out := v1alpha1.PoolFullness{EmptiestPercent: 100}
	for i := range targets {
		t := &targets[i]
		if !t.Online || t.Removing || t.CapacityBytes <= 0 {
			continue
		}
		count++
		// UsedBytes may be Coarse: what is full says a little less.
		percent := int32(math.Round(min(1, max(0, float64(t.UsedBytes)/float64(t.CapacityBytes))) * 100))
		percent -= percent % fullnessStep
		out.EmptiestPercent, out.FullestPercent = min(out.EmptiestPercent, percent), max(out.FullestPercent, percent)
	}
	if count < 2 {
		return nil
	}
	return &out
}
