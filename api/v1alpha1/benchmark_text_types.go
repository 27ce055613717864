package v1alpha1

// BenchmarkArgument is one argument of a tool, as it stands: no shell reads it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type BenchmarkArgument string

// BenchmarkSize is a number of bytes, or a number with k, m, g or t (powers of 1024). 0 is a size where the field says so.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,14}[kmgt]?)$`
type BenchmarkSize string
