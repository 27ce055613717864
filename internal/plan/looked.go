package plan

import (
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// incomplete is the text with which IsLookComplete reports a device that could not be read completely.
const incomplete = " could not be looked at completely: "

// IsLookedAtCompletely is IsLookComplete for a device of a NodeInventory.
func IsLookedAtCompletely(b v1alpha1.BlockDevice) bool { return unlooked(b) == "" }

// unlooked is the sentence of a device of a NodeInventory that could not be read completely; empty for others.
func unlooked(b v1alpha1.BlockDevice) string {
	for _, sentence := range b.Unusable {
		if strings.HasPrefix(sentence, b.KernelName+incomplete) {
			return sentence
		}
	}
	return ""
}
