package v1alpha1

// SweepName names a parameter: that of the run itself (processes, clients, storagePool), or that of its tool (iozone.recordSize).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z]*(\.[a-z][A-Za-z0-9]*)?$`
type SweepName string

// SweepValue is one value of a parameter: a number, a size with its unit, or a word, such as 4, 64Ki and flat. A number may stand in
// quotes.
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:+-]*$`
type SweepValue string

// UnmarshalJSON reads a number or a text. It refuses nothing else: the API server does, and an object that was stored can always be read. A
// number is written with quotes, as in all documents of results so far.
func (v *SweepValue) UnmarshalJSON(raw []byte) error {
	text, err := textOf(raw)
	*v = SweepValue(text)
	return err
}

// PointValue is the value of a parameter of a point: a number, a size with its unit, or a word.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9._:+-]*$`
type PointValue string

// SweepDimension is one parameter and the values that it takes.
//
// +kubebuilder:validation:XValidation:rule="[has(self.values), has(self.range), has(self.powersOfTwo)].filter(x, x).size() == 1",message="set exactly one of values, range and powersOfTwo"
// +kubebuilder:validation:XValidation:rule="!(self.name in ['processes', 'clients']) || !has(self.values) || self.values.all(v, type(v) == int || int(v) > 0)",message="the values of processes and clients are numbers without a unit"
type SweepDimension struct {
	// name of the parameter: processes, clients, storagePool, or one of the tool, such as iozone.recordSize.
	// +required
	Name SweepName `json:"name,omitempty"`

	// values that the parameter takes, in this order, each once.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Values []SweepValue `json:"values,omitempty"`

	// range is evenly spaced numbers or sizes.
	// +optional
	Range *SweepRange `json:"range,omitempty"`

	// powersOfTwo are numbers or sizes that double: from 4Ki to 32Ki, they are 4Ki, 8Ki, 16Ki and 32Ki.
	// +optional
	PowersOfTwo *SweepPowers `json:"powersOfTwo,omitempty"`
}

// SweepRange is the numbers from, from + step, from + 2 step and so on that are not greater than to. At most 64.
type SweepRange struct {
	// from is the first value.
	// +required
	From SweepValue `json:"from,omitempty"`
	// to is the bound that no value exceeds.
	// +required
	To SweepValue `json:"to,omitempty"`
	// step is the difference between two values. Sizes require it. Defaults to 1 for numbers.
	// +optional
	Step SweepValue `json:"step,omitempty"`
}

// SweepPowers are numbers that double. At most 64.
type SweepPowers struct {
	// from is the first value. For a number, it must be a power of two.
	// +required
	From SweepValue `json:"from,omitempty"`
	// to is the bound that no value exceeds.
	// +required
	To SweepValue `json:"to,omitempty"`
}

// DerivedParameter is one parameter that is computed for each point.
type DerivedParameter struct {
	// name of the parameter that is computed.
	// +required
	Name SweepName `json:"name,omitempty"`

	// cel is an expression in the Common Expression Language over the other parameters of the point, such as "4 * clients". Sizes are in
	// bytes, in the expression and in its result; a size for iozone must be a multiple of 1024. A result that is not a whole number, or
	// that is too small for the parameter, is refused before anything starts. So is a division that leaves a remainder. The
	// function treeDirectories(branch, depth) is the number of all directories of a tree of mdtest, 1 + branch + ... + branch^depth. The
	// function treeLeaves(branch, depth) is the number of its deepest ones, branch^depth.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CEL string `json:"cel,omitempty"`
}
