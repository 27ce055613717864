package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkTool names a benchmark.
// +kubebuilder:validation:Enum=iozone
type BenchmarkTool string

// ToolIOzone is the IOzone filesystem benchmark (iozone.org).
const ToolIOzone BenchmarkTool = "iozone"

// Statistic says how the samples of a point's repetitions become its one value.
// +kubebuilder:validation:Enum=Mean;Median;Min;Max;TrimmedMean
type Statistic string

// The statistics.
const (
	// StatisticMean is the arithmetic mean.
	StatisticMean Statistic = "Mean"
	// StatisticMedian is the middle sample, or the mean of the two in the middle.
	StatisticMedian Statistic = "Median"
	// StatisticMin is the lowest sample.
	StatisticMin Statistic = "Min"
	// StatisticMax is the highest sample.
	StatisticMax Statistic = "Max"
	// StatisticTrimmedMean is the mean of what is left when the highest and the lowest sample are dropped.
	StatisticTrimmedMean Statistic = "TrimmedMean"
)

// BenchmarkRunSpec is one benchmark with a sweep over its parameters. Once made, only suspend and ttlAfterFinished can be changed.
//
// +kubebuilder:validation:XValidation:rule="self.tool != 'iozone' || has(self.iozone)",message="spec.iozone is required when spec.tool is iozone (it may be empty: {})"
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || self.tool != 'iozone' || self.sweep.all(s, s.name in ['processes', 'clients', 'iozone.recordSize', 'iozone.fileSize'])",message="a sweep of iozone varies processes, clients, iozone.recordSize or iozone.fileSize; no other name is known"
// +kubebuilder:validation:XValidation:rule="!has(self.derive) || self.tool != 'iozone' || self.derive.all(d, d.name in ['processes', 'clients', 'iozone.recordSize', 'iozone.fileSize'])",message="a derived value of iozone is processes, clients, iozone.recordSize or iozone.fileSize; no other name is known"
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || !has(self.derive) || self.derive.all(d, !self.sweep.exists(s, s.name == d.name))",message="a name can't be swept and derived at once"
// +kubebuilder:validation:XValidation:rule="self.statistic != 'TrimmedMean' || self.repetitions >= 3",message="TrimmedMean drops the highest and the lowest sample, so spec.repetitions must be at least 3"
// +kubebuilder:validation:XValidation:rule="self.tool != 'iozone' || !has(self.iozone) || self.iozone.mode != 'SingleClient' || !has(self.clients.count) || self.clients.count == 1",message="spec.clients.count must be 1 (or unset) when spec.iozone.mode is SingleClient"
// +kubebuilder:validation:XValidation:rule="self.tool != 'iozone' || !has(self.iozone) || self.iozone.mode != 'SingleClient' || ((!has(self.sweep) || !self.sweep.exists(s, s.name == 'clients')) && (!has(self.derive) || !self.derive.exists(d, d.name == 'clients')))",message="clients can't be swept or derived when spec.iozone.mode is SingleClient"
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem && self.tool == oldSelf.tool && has(self.iozone) == has(oldSelf.iozone) && (!has(self.iozone) || self.iozone == oldSelf.iozone) && self.clients == oldSelf.clients && self.processes == oldSelf.processes && has(self.sweep) == has(oldSelf.sweep) && (!has(self.sweep) || self.sweep == oldSelf.sweep) && has(self.derive) == has(oldSelf.derive) && (!has(self.derive) || self.derive == oldSelf.derive) && self.repetitions == oldSelf.repetitions && self.statistic == oldSelf.statistic && has(self.limits) == has(oldSelf.limits) && (!has(self.limits) || self.limits == oldSelf.limits)",message="only spec.suspend and spec.ttlAfterFinished of a BenchmarkRun can be changed, because its results belong to the rest; create another run"
type BenchmarkRunSpec struct {
	// fileSystem is what is measured.
	// +required
	FileSystem BenchmarkTarget `json:"fileSystem,omitzero"`

	// tool is the benchmark.
	// +required
	Tool BenchmarkTool `json:"tool,omitempty"`

	// iozone holds the parameters of iozone. It must be set, and may be empty, when tool is iozone.
	// +optional
	IOzone *IOzoneSpec `json:"iozone,omitempty"`

	// clients are the nodes that the benchmark runs on; each of them must mount the filesystem.
	// +required
	Clients BenchmarkClients `json:"clients,omitzero"`

	// processes is the number of processes (iozone -t), over all clients together. A sweep or derive can vary it. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Processes int32 `json:"processes,omitempty"`

	// sweep varies parameters: the run has one point for each combination of their values. The last name varies fastest.
	// All together make at most 256 points.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Sweep []SweepDimension `json:"sweep,omitempty"`

	// derive computes parameters from the swept ones, for each point.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Derive []DerivedParameter `json:"derive,omitempty"`

	// repetitions is how often each point is run. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Repetitions int32 `json:"repetitions,omitempty"`

	// statistic says how the samples of a point's repetitions become its one value. Defaults to Mean.
	// +optional
	// +kubebuilder:default=Mean
	Statistic Statistic `json:"statistic,omitempty"`

	// limits bound the time that the run takes.
	// +optional
	Limits *BenchmarkLimits `json:"limits,omitempty"`

	// suspend stops the run's pods and removes its files from the filesystem. Finished repetitions are kept; the run goes
	// on with the next one when suspend is false again.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlAfterFinished is how long the run is kept after its end; without it, until it is deleted. Such as "168h".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="spec.ttlAfterFinished must be at least 1s"
	TTLAfterFinished *metav1.Duration `json:"ttlAfterFinished,omitempty"`
}

// BenchmarkTarget names what is measured.
type BenchmarkTarget struct {
	// name of a FileSystem in the namespace of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// storagePool that the files lie in: the run uses a fresh directory of that pool, and removes it afterwards.
	// Defaults to the filesystem's first pool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`
}

// BenchmarkClients selects the nodes that a benchmark runs on.
type BenchmarkClients struct {
	// nodeSelector selects the nodes; those that also mount the filesystem are taken in the order of their names.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// count is how many of those nodes take part. Without it, all do (one, for iozone in mode SingleClient). A sweep
	// or derive can vary it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Count int32 `json:"count,omitempty"`
}

// IOzoneMode says how iozone is spread over clients.
// +kubebuilder:validation:Enum=SingleClient;Distributed
type IOzoneMode string

// The modes of iozone.
const (
	// IOzoneSingleClient runs all processes on one client (iozone -t).
	IOzoneSingleClient IOzoneMode = "SingleClient"
	// IOzoneDistributed spreads the processes evenly over the clients (iozone -+m with a generated file).
	IOzoneDistributed IOzoneMode = "Distributed"
)

// IOzoneTest is one of iozone's tests, as of its option -i.
// +kubebuilder:validation:Enum=Write;Read;Random
type IOzoneTest string

// The tests of iozone.
const (
	// IOzoneWrite is -i0: write, and rewrite unless noRetest. The others need its files, so it is always run.
	IOzoneWrite IOzoneTest = "Write"
	// IOzoneRead is -i1: read, and re-read unless noRetest.
	IOzoneRead IOzoneTest = "Read"
	// IOzoneRandom is -i2: random read and random write.
	IOzoneRandom IOzoneTest = "Random"
)

// IOzoneSize is a size as iozone takes it: a number of kilobytes, or a number with k, m or g (powers of 1024).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=16
// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,11}[kmg]?$`
type IOzoneSize string

// IOzoneSpec holds the parameters of iozone.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tests) || 'Write' in self.tests",message="spec.iozone.tests must hold Write, because the other tests use its files"
type IOzoneSpec struct {
	// mode says how the processes are spread over clients. Defaults to SingleClient.
	// +optional
	// +kubebuilder:default=SingleClient
	Mode IOzoneMode `json:"mode,omitempty"`

	// tests are run in the order Write, Read, Random. Defaults to all three.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Tests []IOzoneTest `json:"tests,omitempty"`

	// recordSize is the size of one read or write (-r), such as "64k". A sweep or derive can vary it. Defaults to "64k".
	// +optional
	// +kubebuilder:default="64k"
	RecordSize IOzoneSize `json:"recordSize,omitempty"`

	// fileSize is the size of each process's file (-s), such as "1g". A sweep or derive can vary it. Defaults to "1g".
	// +optional
	// +kubebuilder:default="1g"
	FileSize IOzoneSize `json:"fileSize,omitempty"`

	// directIO bypasses the client's cache (-I).
	// +optional
	DirectIO bool `json:"directIO,omitempty"`

	// includeFlush counts fsync in the time of a write (-e).
	// +optional
	IncludeFlush bool `json:"includeFlush,omitempty"`

	// includeClose counts close in the time of a write (-c).
	// +optional
	IncludeClose bool `json:"includeClose,omitempty"`

	// useThreads uses POSIX threads instead of processes (-T).
	// +optional
	UseThreads bool `json:"useThreads,omitempty"`

	// noRetest leaves out rewrite and re-read (-+n).
	// +optional
	NoRetest bool `json:"noRetest,omitempty"`
}

// SweepName names a parameter: that of the run itself (processes), or that of its tool (iozone.recordSize).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[a-z]+(\.[a-z][A-Za-z]*)?$`
type SweepName string

// SweepDimension is one parameter and the values that it takes.
// +kubebuilder:validation:XValidation:rule="!(self.name in ['processes', 'clients']) || self.values.all(v, v.matches('^[0-9]*$'))",message="the values of processes and clients are numbers without a unit"
type SweepDimension struct {
	// name of the parameter: processes, clients, or one of the tool, such as iozone.recordSize.
	// +required
	Name SweepName `json:"name,omitempty"`

	// values that the parameter takes, in this order, each once.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.all(v, v.matches('^[1-9][0-9]{0,11}[kmg]?$'))",message="a sweep's values are whole numbers greater than 0, with k, m or g where the parameter is a size"
	Values []string `json:"values,omitempty"`
}

// DerivedParameter is one parameter that is computed for each point.
type DerivedParameter struct {
	// name of the parameter that is computed.
	// +required
	Name SweepName `json:"name,omitempty"`

	// cel is an expression in the Common Expression Language over the other parameters of the point, such as
	// "4 * clients". Sizes stand in it as their bytes. A result that is no whole number, or less than 1, is refused
	// before anything starts; a division that leaves a remainder is such a result. A size is computed in bytes, and
	// must be a multiple of 1024.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	CEL string `json:"cel,omitempty"`
}

// BenchmarkLimits bound the time that a run takes.
type BenchmarkLimits struct {
	// pointTimeout bounds each repetition of a point, from the start of its pods to its result. Such as "30m", the default.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="spec.limits.pointTimeout must be at least 1s"
	PointTimeout *metav1.Duration `json:"pointTimeout,omitempty"`

	// timeout bounds the whole run, time spent suspended not counted. Such as "12h"; without it, there is no bound.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s')",message="spec.limits.timeout must be at least 1s"
	Timeout *metav1.Duration `json:"timeout,omitempty"`
}

// BenchmarkRunStatus is how far a run is and what it has found.
type BenchmarkRunStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are the state of the run in the vocabulary of kstatus: Succeeded, and Reconciling or Stalled while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// startTime is when the first point was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last point ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// activeSeconds is the time that the points run so far took, in seconds; limits.timeout bounds it.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`

	// progress counts the points that have ended, and all of them, as "7/90".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// current is the point that is being run, such as "recordSize=64k processes=4 (repetition 2/5)".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Current string `json:"current,omitempty"`

	// timeLeft is an estimate from the repetitions run so far, such as "1h12m".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TimeLeft string `json:"timeLeft,omitempty"`

	// failedPoints counts the points without a result.
	// +optional
	FailedPoints int32 `json:"failedPoints,omitempty"`

	// directory is where the run's files are, on every client, until they are removed.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Directory string `json:"directory,omitempty"`

	// points are the results, in the order of the sweep.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=256
	Points []PointStatus `json:"points,omitempty"`
}

// PointState is the state of one point.
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed
type PointState string

// The states of a point.
const (
	// PointPending has not been started.
	PointPending PointState = "Pending"
	// PointRunning has some repetitions run, or one running.
	PointRunning PointState = "Running"
	// PointSucceeded has all its repetitions.
	PointSucceeded PointState = "Succeeded"
	// PointFailed has a repetition without a result; its other repetitions are not run.
	PointFailed PointState = "Failed"
)

// PointStatus is one point of a sweep.
type PointStatus struct {
	// index of the point in the order of the sweep, from 0.
	// +required
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`

	// parameters of the point: the swept and the derived ones.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Parameters []PointParameter `json:"parameters,omitempty"`

	// state of the point.
	// +required
	State PointState `json:"state,omitempty"`

	// repetitions counts those that have a result.
	// +optional
	Repetitions int32 `json:"repetitions,omitempty"`

	// metrics are what the tool measured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=unit
	// +kubebuilder:validation:MaxItems=32
	Metrics []MetricResult `json:"metrics,omitempty"`

	// message says why a point failed, with the last lines of the tool's output.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// output names the ConfigMap that holds the raw output of every repetition (gzip) and all samples.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Output string `json:"output,omitempty"`
}

// PointParameter is one parameter of a point.
type PointParameter struct {
	// name of the parameter.
	// +required
	Name SweepName `json:"name,omitempty"`

	// value of the parameter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Value string `json:"value,omitempty"`
}

// MetricResult is one measured quantity of a point. All its numbers are decimal strings in the metric's unit.
type MetricResult struct {
	// name of what was measured, such as "randomRead".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// unit as the tool prints it, such as "kB/s", or "IOPS" where it follows from the record size.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// value by the run's statistic.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// mean of the samples.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Mean string `json:"mean,omitempty"`

	// min is the lowest sample.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Min string `json:"min,omitempty"`

	// max is the highest sample.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Max string `json:"max,omitempty"`

	// stdDev is the standard deviation of the samples (n-1), absent when there is only one.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	StdDev string `json:"stdDev,omitempty"`

	// samples counts the samples.
	// +required
	// +kubebuilder:validation:Minimum=1
	Samples int32 `json:"samples,omitempty"`
}

// BenchmarkRun is one benchmark of a FileSystem: a tool, a sweep over its parameters, and the results.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bench,categories={all,parallelfs}
// +kubebuilder:printcolumn:name="FileSystem",type=string,JSONPath=`.spec.fileSystem.name`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.spec.tool`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.current`
// +kubebuilder:printcolumn:name="Left",type=string,JSONPath=`.status.timeLeft`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failedPoints`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name of a BenchmarkRun has at most 40 characters, because the names of its jobs start with it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z][a-z0-9-]*$')",message="metadata.name of a BenchmarkRun starts with a letter and holds no dot, because it becomes the name of hosts"
type BenchmarkRun struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants to know.
	// +required
	Spec BenchmarkRunSpec `json:"spec,omitzero"`

	// status is how far the run is and what it has found.
	// +optional
	Status BenchmarkRunStatus `json:"status,omitzero"`
}

// BenchmarkRunList is a list of BenchmarkRuns.
// +kubebuilder:object:root=true
type BenchmarkRunList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the BenchmarkRuns.
	Items []BenchmarkRun `json:"items"`
}
