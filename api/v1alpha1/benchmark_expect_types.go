package v1alpha1

// Number is a decimal number, such as 40000 or "0.5".
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:MaxLength=24
// +kubebuilder:validation:Pattern=`^(0|[1-9][0-9]*)(\.[0-9]+)?$`
type Number string

// UnmarshalJSON reads a number or a text.
func (n *Number) UnmarshalJSON(raw []byte) error {
	text, err := textOf(raw)
	*n = Number(text)
	return err
}

// Expectation is a bound that the results of a run must keep, such as a write rate of at least 40000 MiB/s with 32 clients.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != (has(self.atLeast) || has(self.atMost))",message="set atLeast, atMost or both, or value with tolerancePercent"
// +kubebuilder:validation:XValidation:rule="has(self.value) == has(self.tolerancePercent)",message="value and tolerancePercent are set together"
// +kubebuilder:validation:XValidation:rule="!has(self.atLeast) || !has(self.atMost) || double(self.atLeast) <= double(self.atMost)",message="atLeast must not be above atMost, because no value would be accepted"
type Expectation struct {
	// name of the expectation, such as write-32-clients.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// metric is the name of a metric as the results have it, such as write.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Metric string `json:"metric,omitempty"`

	// unit is the unit of the bounds, as the results have it, such as MiB/s. It is required if the tool measures the metric in several units.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// where selects the points that must keep the bound, by values of their parameters. Without it, every point must.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Where []ParameterValue `json:"where,omitempty"`

	// atLeast is the lowest value that is accepted.
	// +optional
	AtLeast Number `json:"atLeast,omitempty"`

	// atMost is the highest value that is accepted.
	// +optional
	AtMost Number `json:"atMost,omitempty"`

	// value is the middle of the accepted values, with tolerancePercent on both sides.
	// +optional
	Value Number `json:"value,omitempty"`

	// tolerancePercent is the largest accepted difference from value, in percent of value.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 0 && self <= 99)",message="tolerancePercent is from 0 to 99.999"
	TolerancePercent Percent `json:"tolerancePercent,omitempty"`
}

// ParameterValue is one value of a parameter, such as 32 of processes.
type ParameterValue struct {
	// name of the parameter: processes, clients, storagePool, or one of the tool, such as iozone.recordSize.
	// +required
	Name SweepName `json:"name,omitempty"`

	// value of the parameter.
	// +required
	Value SweepValue `json:"value,omitempty"`
}

// ExpectationState is the state of an expectation.
// +kubebuilder:validation:Enum=Pending;Met;NotMet;Undecided
type ExpectationState string

// The states of an expectation.
const (
	// ExpectationPending waits for a point that has not ended.
	ExpectationPending ExpectationState = "Pending"
	// ExpectationMet has every selected point within the bounds.
	ExpectationMet ExpectationState = "Met"
	// ExpectationNotMet has a selected point beyond a bound.
	ExpectationNotMet ExpectationState = "NotMet"
	// ExpectationUndecided has a selected point without a result, or one whose confidence interval contains a bound.
	ExpectationUndecided ExpectationState = "Undecided"
)

// ExpectationStatus is what the results say about an expectation.
type ExpectationStatus struct {
	// name of the expectation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// state of the expectation.
	// +required
	State ExpectationState `json:"state,omitempty"`

	// message names the point that decides, its value and the bound.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}
