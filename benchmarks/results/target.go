package results

import (
	"cmp"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Fact is one property of what a run measured.
type Fact struct{ What, Value string }

// TargetFacts returns what identifies the target of a run, in the same order for every run, so that those of two runs can be compared. An
// empty value is unknown.
func TargetFacts(run Run) []Fact {
	volume, unknown := run.Provenance.Volume, ""
	if run.Spec.Target.String() != "" {
		unknown = cmp.Or(run.Provenance.Unknown, "nothing")
	}
	if volume == nil {
		volume = &v1alpha1.VolumeProvenance{}
	}
	return []Fact{
		{"spec.target", run.Spec.Target.String()},
		{"what is unknown of the target", unknown},
		{"the StorageClass", volume.StorageClass},
		{"the StorageClass's parameters", strings.Join(volume.Parameters, ", ")},
		{"the volume's driver", volume.Driver},
		{"the volume's attributes", strings.Join(volume.Attributes, ", ")},
		{"the volume's access modes", volume.AccessModes},
		{"the volume's capacity", volume.Capacity},
		{"the volume's mount", volume.Mount},
	}
}
