package plan

import (
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// incomplete is the text with which IsLookComplete reports a device that could not be read completely.
const incomplete = " could not be looked at completely: "

// IsLookedAtCompletely is IsLookComplete for a device of a NodeInventory.
func IsLookedAtCompletely(b v1alpha1.BlockDevice) bool {
	for _, sentence := range b.Unusable {
		if strings.HasPrefix(sentence, b.KernelName+incomplete) {
			return false
		}
	}
	return true
}
