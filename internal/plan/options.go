package plan

import (
	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// RefusedMkfsOptions returns the refused mkfs options of a format, each as a sentence that names it.
func RefusedMkfsOptions(spec v1alpha1.FormatSpec) []string {
	f, err := registry.Of(spec)
	if err != nil {
		return []string{err.Error()}
	}
	return f.RefusedOptions(spec.MkfsOptions)
}
