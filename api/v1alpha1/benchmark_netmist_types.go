package v1alpha1

// NetmistSpec holds the parameters of netmist, the load generator of SPEC SFS 2014, which only licensees have: spec.image must name an
// image with it. Every client runs processes / clients copies. The options are those of a talk at LUG 2014, because no public description
// exists; their defaults are the talk's values.
type NetmistSpec struct {
	// blockKiB is the value of -b, in KiB. Defaults to 128. Sweepable.
	// +optional
	// +kubebuilder:default=128
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	BlockKiB int32 `json:"blockKiB,omitempty"`

	// directoryCount is the value of -d. Defaults to 8. Sweepable.
	// +optional
	// +kubebuilder:default=8
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	DirectoryCount int32 `json:"directoryCount,omitempty"`

	// workload is the value of -B, which scales the data. In the talk, netmist prints for it "Adjustable aggregate data set value set to 1
	// GiBytes". Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Workload int32 `json:"workload,omitempty"`

	// runSeconds is the time that is measured, in seconds (-t). Defaults to 300. Sweepable.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	RunSeconds int32 `json:"runSeconds,omitempty"`

	// warmUpSeconds is the time before the measurement, in seconds (-w). Defaults to 300.
	// +optional
	// +kubebuilder:default=300
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	WarmUpSeconds int32 `json:"warmUpSeconds,omitempty"`

	// args are added to the command line unchanged. Options that other fields or the operator set are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
