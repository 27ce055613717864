package v1alpha1

// BenchmarkArgument is one argument of a tool, as it stands: no shell reads it.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
type BenchmarkArgument string

// BenchmarkSize is a number of bytes, or a number with Ki, Mi, Gi or Ti, as in a quantity of Kubernetes. 0 is a size where the field says
// so. Other units are refused: k is 1000 in a quantity, and 1024 to the tools.
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=17
// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]{0,14}([KMGT]i)?)$`
type BenchmarkSize string

// UnmarshalJSON reads a number or a text.
func (s *BenchmarkSize) UnmarshalJSON(raw []byte) error {
	text, err := textOf(raw)
	*s = BenchmarkSize(text)
	return err
}
