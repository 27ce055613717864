package v1alpha1

// CustomLaunch says how a custom program is started.
// +kubebuilder:validation:Enum=Single;MPI;PerProcess
type CustomLaunch string

// The values of CustomLaunch.
const (
	// CustomSingle starts it once, on one client.
	CustomSingle CustomLaunch = "Single"
	// CustomMPI starts it as an MPI program, on every process.
	CustomMPI CustomLaunch = "MPI"
	// CustomPerProcess starts it on every process, each in a directory of its own, though it is no MPI program; combine
	// says how the metrics of all become one.
	CustomPerProcess CustomLaunch = "PerProcess"
)

// CustomCombine says how one metric of several processes, or several matches of one output, become one.
// +kubebuilder:validation:Enum=Only;Sum;Mean;Max;Min
type CustomCombine string

// The values of CustomCombine.
const (
	// CustomOnly refuses more than one.
	CustomOnly CustomCombine = "Only"
	// CustomSum adds them up.
	CustomSum CustomCombine = "Sum"
	// CustomMean averages them.
	CustomMean CustomCombine = "Mean"
	// CustomMax takes the highest.
	CustomMax CustomCombine = "Max"
	// CustomMin takes the lowest.
	CustomMin CustomCombine = "Min"
)

// CustomMetric describes where a number is in the output.
// +kubebuilder:validation:XValidation:rule="has(self.regex) != has(self.jsonPath)",message="set exactly one of regex and jsonPath"
type CustomMetric struct {
	// name is the name of the metric.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// unit is the unit of the number, such as "MiB/s".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// regex is a regular expression of RE2 with one group, which holds the number. It is tried on each line.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Regex string `json:"regex,omitempty"`

	// jsonPath is the path of the number, in kubectl's syntax, such as "{.jobs[0].read.bw}". The output must be one JSON document of at
	// most 1 MiB.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	JSONPath string `json:"jsonPath,omitempty"`

	// better sets which values are better: Higher, Lower or Neither. Without it, the unit and the name decide: Lower for a time or a power and
	// for what is named after errors or latency, Higher for a rate, Neither for all else.
	// +optional
	Better Better `json:"better,omitempty"`

	// combine says how several values of the metric, of several matches or several processes, become one. Only refuses more than one.
	// Defaults to Only.
	// +optional
	// +kubebuilder:default=Only
	Combine CustomCombine `json:"combine,omitempty"`
}

// CustomParameter is a parameter that a sweep can vary, as custom.<name>.
type CustomParameter struct {
	// name is the name of the parameter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z][A-Za-z0-9]*$`
	Name string `json:"name,omitempty"`

	// value is the value of the parameter when no sweep sets it.
	// +required
	Value SweepValue `json:"value,omitempty"`
}

// CustomSpec is any program of any image (spec.image). It is run in a fresh directory of the filesystem.
type CustomSpec struct {
	// command is the program and its arguments; no shell reads them. $(processes), $(clients), $(directory) and $(<parameter>) are replaced
	// in each of them.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Command []BenchmarkArgument `json:"command,omitempty"`

	// launch says how the program is started. Single starts it once, on one client. MPI starts it as an MPI program on every process.
	// PerProcess starts it on every process, each in a directory of its own. Defaults to Single.
	// +optional
	// +kubebuilder:default=Single
	Launch CustomLaunch `json:"launch,omitempty"`

	// parameters are values that the command uses and a sweep can vary.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Parameters []CustomParameter `json:"parameters,omitempty"`

	// metrics are the numbers that are read from the output of the program. Each of them must be found.
	// +required
	// +listType=map
	// +listMapKey=name
	// +listMapKey=unit
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Metrics []CustomMetric `json:"metrics,omitempty"`

	// versionCommand prints the version of the program on its first line. It is run once, before the run.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	VersionCommand []BenchmarkArgument `json:"versionCommand,omitempty"`

	// spaceBytes is the most that one repetition writes, in bytes. The space is checked before the run; 0 means that it is not known.
	// +optional
	SpaceBytes BenchmarkSize `json:"spaceBytes,omitempty"`
}
