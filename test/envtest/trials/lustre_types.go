// Package trials has kinds that no cluster is given. Each shows types of the API to the API server of the tests before a served kind has
// them, so that their rules and bounds are held by the same tests as all others. A trial goes when its types are served.
//
// +groupName=trials.parallelfs.dev
// +versionName=v1alpha1
package trials

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// LustreTrialSpec has what a FileSystem is to have, at the same path.
type LustreTrialSpec struct {
	// lustre holds the settings that only Lustre has.
	// +required
	Lustre v1alpha1.LustreSpec `json:"lustre,omitzero"`
}

// LustreTrialStatus has what the status of a FileSystem is to have, at the same path.
type LustreTrialStatus struct {
	// lustre is what a Lustre was given for ever.
	// +optional
	Lustre *v1alpha1.LustreStatus `json:"lustre,omitempty"`
}

// LustreTrial shows the types of Lustre to an API server.
// +kubebuilder:object:root=true
type LustreTrial struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what a person writes.
	// +required
	Spec LustreTrialSpec `json:"spec,omitzero"`

	// status is what the operator has found.
	// +optional
	Status LustreTrialStatus `json:"status,omitzero"`
}
