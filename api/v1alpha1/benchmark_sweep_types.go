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

// SweepMode sets how the swept parameters combine.
// +kubebuilder:validation:Enum=Cartesian;Zipped
type SweepMode string

// The modes of a sweep.
const (
	// SweepCartesian makes a point for each combination.
	SweepCartesian SweepMode = "Cartesian"
	// SweepZipped makes a point for each place in the lists.
	SweepZipped SweepMode = "Zipped"
)

// RunOrder is the order in which repetitions are run.
// +kubebuilder:validation:Enum=AsWritten;Shuffled
type RunOrder string

// The orders.
const (
	// OrderAsWritten runs all repetitions of a point, then those of the next.
	OrderAsWritten RunOrder = "AsWritten"
	// OrderShuffled runs a repetition of every point in random order, then the next.
	OrderShuffled RunOrder = "Shuffled"
)

// WarmUpSpec runs repetitions that don't count.
type WarmUpSpec struct {
	// of selects the points that are warmed up: the First that is run, or Each. Defaults to First.
	// +optional
	// +kubebuilder:default=First
	Of WarmUpPoints `json:"of,omitempty"`

	// repetitions is the number of repetitions that don't count, of each point that is warmed up. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Repetitions int32 `json:"repetitions,omitempty"`
}

// WarmUpPoints selects the points that are warmed up.
// +kubebuilder:validation:Enum=First;Each
type WarmUpPoints string

// The points that are warmed up.
const (
	// WarmUpFirst warms up the first point that is run.
	WarmUpFirst WarmUpPoints = "First"
	// WarmUpEach warms up every point.
	WarmUpEach WarmUpPoints = "Each"
)

// CachesSpec sets which caches are dropped, and when: the page cache, dentries and inodes of a node's kernel (/proc/sys/vm/drop_caches, 3),
// by the agent of the node.
type CachesSpec struct {
	// drop selects the nodes on which caches are dropped: Clients, Servers, or All of both.
	// +required
	Drop CacheNodes `json:"drop,omitempty"`

	// before sets when caches are dropped. Repetitions is before each repetition. Phases is before each phase of a repetition, such as the
	// reading of written files; for a tool without phases, it is the same as Repetitions. Defaults to Repetitions.
	// +optional
	// +kubebuilder:default=Repetitions
	Before CacheMoment `json:"before,omitempty"`
}

// CacheNodes selects the nodes whose caches are dropped.
// +kubebuilder:validation:Enum=Clients;Servers;All
type CacheNodes string

// The nodes whose caches are dropped.
const (
	// CachesOfClients are those of the nodes that the benchmark runs on.
	CachesOfClients CacheNodes = "Clients"
	// CachesOfServers are those of the nodes with servers of the filesystem.
	CachesOfServers CacheNodes = "Servers"
	// CachesOfAll are both.
	CachesOfAll CacheNodes = "All"
)

// CacheMoment sets when caches are dropped.
// +kubebuilder:validation:Enum=Repetitions;Phases
type CacheMoment string

// The moments.
const (
	// CachesBeforeRepetitions is before each repetition.
	CachesBeforeRepetitions CacheMoment = "Repetitions"
	// CachesBeforePhases is before each phase of each repetition.
	CachesBeforePhases CacheMoment = "Phases"
)

// StopRule repeats a point until its result is certain enough.
type StopRule struct {
	// confidencePercent is how certain a metric must be, such as 2. It is the largest half of the 95 % confidence interval of the mean, in
	// percent of the mean. Every metric in metrics must be. A point has at least five repetitions.
	// +required
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 99 : self != '0'",message="confidencePercent is from 0.001 to 99.999"
	ConfidencePercent Percent `json:"confidencePercent,omitempty"`

	// metrics are the names of the metrics that must be certain enough. Without it, all must be.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Metrics []string `json:"metrics,omitempty"`

	// maxRepetitions is the number of repetitions after which a point ends even if it is less certain. Defaults to 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=5
	// +kubebuilder:validation:Maximum=100
	MaxRepetitions int32 `json:"maxRepetitions,omitempty"`
}
