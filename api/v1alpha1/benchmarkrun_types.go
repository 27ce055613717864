package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkTool names a benchmark.
// +kubebuilder:validation:Enum=iozone;mdtest;ior;fio;postmark;vdbench;netmist;mds-survey;obdfilter-survey;storagebench;custom
type BenchmarkTool string

// The benchmarks.
const (
	// ToolIOzone is the IOzone filesystem benchmark (iozone.org).
	ToolIOzone BenchmarkTool = "iozone"
	// ToolMdtest measures metadata with MPI (github.com/hpc/ior).
	ToolMdtest BenchmarkTool = "mdtest"
	// ToolIOR measures bandwidth with MPI (github.com/hpc/ior).
	ToolIOR BenchmarkTool = "ior"
	// ToolFio is the flexible I/O tester (github.com/axboe/fio).
	ToolFio BenchmarkTool = "fio"
	// ToolPostmark does what a mail server does to small files (NetApp TR-3022).
	ToolPostmark BenchmarkTool = "postmark"
	// ToolVdbench is Oracle's Vdbench, in its filesystem mode.
	ToolVdbench BenchmarkTool = "vdbench"
	// ToolNetmist is the load generator of SPEC SFS 2014.
	ToolNetmist BenchmarkTool = "netmist"
	// ToolMDSSurvey measures a Lustre metadata server without clients (lustre-iokit).
	ToolMDSSurvey BenchmarkTool = "mds-survey"
	// ToolOBDFilterSurvey measures Lustre's object storage targets without clients (lustre-iokit).
	ToolOBDFilterSurvey BenchmarkTool = "obdfilter-survey"
	// ToolStoragebench is the benchmark of BeeGFS's own storage servers, without clients.
	ToolStoragebench BenchmarkTool = "storagebench"
	// ToolCustom is any program of any image.
	ToolCustom BenchmarkTool = "custom"
)

// Statistic says how the samples of a point's repetitions become its one value.
// +kubebuilder:validation:Enum=Mean;Median;Min;Max;TrimmedMean;Worst
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
	// StatisticWorst is the sample that is worst: of a rate the lowest, of a time the highest. Of a metric that is neither good nor bad it is
	// the mean.
	StatisticWorst Statistic = "Worst"
)

// Better says which values of a metric are the better ones.
// +kubebuilder:validation:Enum=Higher;Lower;Neither
type Better string

// The directions of a metric.
const (
	// BetterHigher is a metric of which more is better, such as a rate.
	BetterHigher Better = "Higher"
	// BetterLower is a metric of which less is better, such as a time, a rate of errors or a power.
	BetterLower Better = "Lower"
	// BetterNeither is a metric that is neither good nor bad, such as the number of items.
	BetterNeither Better = "Neither"
)

// BenchmarkRunSpec is one benchmark with a sweep over its parameters. Once made, only suspend, ttlAfterFinished, rawOutputTTL,
// queueName, priorityClassName, baseline and results can be changed.
//
// +kubebuilder:validation:XValidation:rule="(self.tool == 'iozone') == has(self.iozone)",message="spec.iozone is required when spec.tool is iozone (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'mdtest') == has(self.mdtest)",message="spec.mdtest is required when spec.tool is mdtest (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'ior') == has(self.ior)",message="spec.ior is required when spec.tool is ior (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'fio') == has(self.fio)",message="spec.fio is required when spec.tool is fio (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'postmark') == has(self.postmark)",message="spec.postmark is required when spec.tool is postmark (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'vdbench') == has(self.vdbench)",message="spec.vdbench is required when spec.tool is vdbench (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'netmist') == has(self.netmist)",message="spec.netmist is required when spec.tool is netmist (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'mds-survey') == has(self.mdsSurvey)",message="spec.mdsSurvey is required when spec.tool is mds-survey (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'obdfilter-survey') == has(self.obdfilterSurvey)",message="spec.obdfilterSurvey is required when spec.tool is obdfilter-survey (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'storagebench') == has(self.storagebench)",message="spec.storagebench is required when spec.tool is storagebench (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="(self.tool == 'custom') == has(self.custom)",message="spec.custom is required when spec.tool is custom (it may be empty: {}), and refused otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || self.sweep.all(s, s.name in ['processes', 'clients', 'storagePool'] || (self.tool == 'iozone' && s.name.startsWith('iozone.')) || (self.tool == 'mdtest' && s.name.startsWith('mdtest.')) || (self.tool == 'ior' && s.name.startsWith('ior.')) || (self.tool == 'fio' && s.name.startsWith('fio.')) || (self.tool == 'postmark' && s.name.startsWith('postmark.')) || (self.tool == 'vdbench' && s.name.startsWith('vdbench.')) || (self.tool == 'netmist' && s.name.startsWith('netmist.')) || (self.tool == 'mds-survey' && s.name.startsWith('mdsSurvey.')) || (self.tool == 'obdfilter-survey' && s.name.startsWith('obdfilterSurvey.')) || (self.tool == 'storagebench' && s.name.startsWith('storagebench.')) || (self.tool == 'custom' && s.name.startsWith('custom.')))",message="a sweep varies processes, clients, storagePool, or a parameter of spec.tool, such as mdtest.items for mdtest"
// +kubebuilder:validation:XValidation:rule="!has(self.derive) || self.derive.all(s, s.name in ['processes', 'clients', 'storagePool'] || (self.tool == 'iozone' && s.name.startsWith('iozone.')) || (self.tool == 'mdtest' && s.name.startsWith('mdtest.')) || (self.tool == 'ior' && s.name.startsWith('ior.')) || (self.tool == 'fio' && s.name.startsWith('fio.')) || (self.tool == 'postmark' && s.name.startsWith('postmark.')) || (self.tool == 'vdbench' && s.name.startsWith('vdbench.')) || (self.tool == 'netmist' && s.name.startsWith('netmist.')) || (self.tool == 'mds-survey' && s.name.startsWith('mdsSurvey.')) || (self.tool == 'obdfilter-survey' && s.name.startsWith('obdfilterSurvey.')) || (self.tool == 'storagebench' && s.name.startsWith('storagebench.')) || (self.tool == 'custom' && s.name.startsWith('custom.')))",message="a derived value is processes, clients, storagePool, or a parameter of spec.tool, such as mdtest.items for mdtest"
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || !has(self.derive) || self.derive.all(d, !self.sweep.exists(s, s.name == d.name))",message="a name can't be swept and derived at once"
// +kubebuilder:validation:XValidation:rule="self.statistic != 'TrimmedMean' || self.repetitions >= 3",message="TrimmedMean drops the highest and the lowest sample, so spec.repetitions must be at least 3"
// +kubebuilder:validation:XValidation:rule="!has(self.until) || self.until.maxRepetitions >= self.repetitions",message="spec.until.maxRepetitions must be at least spec.repetitions"
// +kubebuilder:validation:XValidation:rule="!has(self.until) || self.repetitions >= 2",message="spec.until needs a deviation, so spec.repetitions must be at least 2"
// +kubebuilder:validation:XValidation:rule="!has(self.seed) || self.order == 'Shuffled'",message="spec.seed is for spec.order Shuffled"
// +kubebuilder:validation:XValidation:rule="self.tool != 'iozone' || !has(self.iozone) || self.iozone.mode != 'SingleClient' || !has(self.clients.count) || self.clients.count == 1",message="spec.clients.count must be 1 (or unset) when spec.iozone.mode is SingleClient"
// +kubebuilder:validation:XValidation:rule="self.tool != 'iozone' || !has(self.iozone) || self.iozone.mode != 'SingleClient' || ((!has(self.sweep) || !self.sweep.exists(s, s.name == 'clients')) && (!has(self.derive) || !self.derive.exists(d, d.name == 'clients')))",message="clients can't be swept or derived when spec.iozone.mode is SingleClient"
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem && self.tool == oldSelf.tool && self.clients == oldSelf.clients && self.processes == oldSelf.processes && self.repetitions == oldSelf.repetitions && self.statistic == oldSelf.statistic && self.sweepMode == oldSelf.sweepMode && self.order == oldSelf.order && has(self.iozone) == has(oldSelf.iozone) && (!has(self.iozone) || self.iozone == oldSelf.iozone) && has(self.mdtest) == has(oldSelf.mdtest) && (!has(self.mdtest) || self.mdtest == oldSelf.mdtest) && has(self.ior) == has(oldSelf.ior) && (!has(self.ior) || self.ior == oldSelf.ior) && has(self.fio) == has(oldSelf.fio) && (!has(self.fio) || self.fio == oldSelf.fio) && has(self.postmark) == has(oldSelf.postmark) && (!has(self.postmark) || self.postmark == oldSelf.postmark) && has(self.vdbench) == has(oldSelf.vdbench) && (!has(self.vdbench) || self.vdbench == oldSelf.vdbench) && has(self.netmist) == has(oldSelf.netmist) && (!has(self.netmist) || self.netmist == oldSelf.netmist) && has(self.mdsSurvey) == has(oldSelf.mdsSurvey) && (!has(self.mdsSurvey) || self.mdsSurvey == oldSelf.mdsSurvey) && has(self.obdfilterSurvey) == has(oldSelf.obdfilterSurvey) && (!has(self.obdfilterSurvey) || self.obdfilterSurvey == oldSelf.obdfilterSurvey) && has(self.storagebench) == has(oldSelf.storagebench) && (!has(self.storagebench) || self.storagebench == oldSelf.storagebench) && has(self.custom) == has(oldSelf.custom) && (!has(self.custom) || self.custom == oldSelf.custom) && has(self.image) == has(oldSelf.image) && (!has(self.image) || self.image == oldSelf.image) && has(self.sweep) == has(oldSelf.sweep) && (!has(self.sweep) || self.sweep == oldSelf.sweep) && has(self.derive) == has(oldSelf.derive) && (!has(self.derive) || self.derive == oldSelf.derive) && has(self.seed) == has(oldSelf.seed) && (!has(self.seed) || self.seed == oldSelf.seed) && has(self.warmUp) == has(oldSelf.warmUp) && (!has(self.warmUp) || self.warmUp == oldSelf.warmUp) && has(self.caches) == has(oldSelf.caches) && (!has(self.caches) || self.caches == oldSelf.caches) && has(self.pause) == has(oldSelf.pause) && (!has(self.pause) || self.pause == oldSelf.pause) && has(self.until) == has(oldSelf.until) && (!has(self.until) || self.until == oldSelf.until) && has(self.along) == has(oldSelf.along) && (!has(self.along) || self.along == oldSelf.along) && has(self.limits) == has(oldSelf.limits) && (!has(self.limits) || self.limits == oldSelf.limits)",message="only spec.suspend, ttlAfterFinished, rawOutputTTL, queueName, priorityClassName, baseline and results of a BenchmarkRun can be changed, because its results belong to the rest; create another run"
type BenchmarkRunSpec struct {
	// fileSystem is what is measured.
	// +required
	FileSystem BenchmarkTarget `json:"fileSystem,omitzero"`

	// tool is the benchmark. The member of the same name holds its parameters.
	// +required
	Tool BenchmarkTool `json:"tool,omitempty"`

	// iozone holds the parameters of iozone. It must be set, and may be empty, when tool is iozone.
	// +optional
	IOzone *IOzoneSpec `json:"iozone,omitempty"`

	// mdtest holds the parameters of mdtest. It must be set, and may be empty, when tool is mdtest.
	// +optional
	Mdtest *MdtestSpec `json:"mdtest,omitempty"`

	// ior holds the parameters of ior. It must be set, and may be empty, when tool is ior.
	// +optional
	IOR *IORSpec `json:"ior,omitempty"`

	// fio holds the parameters of fio. It must be set, and may be empty, when tool is fio.
	// +optional
	Fio *FioSpec `json:"fio,omitempty"`

	// postmark holds the parameters of postmark. It must be set, and may be empty, when tool is postmark.
	// +optional
	Postmark *PostmarkSpec `json:"postmark,omitempty"`

	// vdbench holds the parameters of vdbench. It must be set, and may be empty, when tool is vdbench.
	// +optional
	Vdbench *VdbenchSpec `json:"vdbench,omitempty"`

	// netmist holds the parameters of netmist. It must be set, and may be empty, when tool is netmist.
	// +optional
	Netmist *NetmistSpec `json:"netmist,omitempty"`

	// mdsSurvey holds the parameters of mds-survey. It must be set, and may be empty, when tool is mds-survey.
	// +optional
	MDSSurvey *MDSSurveySpec `json:"mdsSurvey,omitempty"`

	// obdfilterSurvey holds the parameters of obdfilter-survey. It must be set, and may be empty, when tool is obdfilter-survey.
	// +optional
	OBDFilterSurvey *OBDFilterSurveySpec `json:"obdfilterSurvey,omitempty"`

	// storagebench holds the parameters of storagebench. It must be set, and may be empty, when tool is storagebench.
	// +optional
	Storagebench *StoragebenchSpec `json:"storagebench,omitempty"`

	// custom holds the parameters of custom. It must be set, and may be empty, when tool is custom.
	// +optional
	Custom *CustomSpec `json:"custom,omitempty"`

	// image is the container image with the tool, in the place of the one that the operator was started with. What must be in it
	// is checked before the run starts. It is refused for tools that run on servers, where they are privileged.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// clients are the nodes that the benchmark runs on; each of them must mount the filesystem.
	// +required
	Clients BenchmarkClients `json:"clients,omitzero"`

	// processes is the number of processes over all clients together. A sweep or derive can vary it. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Processes int32 `json:"processes,omitempty"`

	// sweep varies parameters. All together make at most 256 points.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Sweep []SweepDimension `json:"sweep,omitempty"`

	// sweepMode says how several names combine: Cartesian makes a point for each combination of their values, the last name
	// varying fastest; Zipped takes the first values of all for the first point, the second values for the second, and so
	// on, so all must have as many. Defaults to Cartesian.
	// +optional
	// +kubebuilder:default=Cartesian
	SweepMode SweepMode `json:"sweepMode,omitempty"`

	// derive computes parameters from the others, for each point.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	Derive []DerivedParameter `json:"derive,omitempty"`

	// order in which repetitions are run. AsWritten runs all of a point before the next point. Shuffled runs one repetition of
	// every point in random order, then the next of every point in another, so that a drift of the system does not
	// look like an effect of a parameter. Defaults to AsWritten.
	// +optional
	// +kubebuilder:default=AsWritten
	Order RunOrder `json:"order,omitempty"`

	// seed of the order Shuffled. Without it, one is made from the run's uid. status.seed shows the one that is used.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`

	// warmUp runs repetitions first that don't count.
	// +optional
	WarmUp *WarmUpSpec `json:"warmUp,omitempty"`

	// caches says whether caches are dropped before what is measured. Other users of those nodes notice it.
	// +optional
	Caches *CachesSpec `json:"caches,omitempty"`

	// pause between the end of a repetition and the start of the next, such as "30s".
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) <= duration('24h')",message="spec.pause must be at most 24h"
	Pause *metav1.Duration `json:"pause,omitempty"`

	// repetitions is how often each point is run. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Repetitions int32 `json:"repetitions,omitempty"`

	// until repeats a point beyond repetitions, until its result is as certain as asked for.
	// +optional
	Until *StopRule `json:"until,omitempty"`

	// statistic says how the samples of a point's repetitions become its one value. Defaults to Mean.
	// +optional
	// +kubebuilder:default=Mean
	Statistic Statistic `json:"statistic,omitempty"`

	// along is the swept parameter along which speed-up and efficiency are computed, such as processes; the first point
	// with the smallest value of it counts as 1. Without it, neither is computed.
	// +optional
	Along SweepName `json:"along,omitempty"`

	// baseline is what the results are compared with.
	// +optional
	Baseline *BaselineSpec `json:"baseline,omitempty"`

	// limits bound the time and the attempts that the run takes.
	// +optional
	Limits *BenchmarkLimits `json:"limits,omitempty"`

	// results says where the complete results go, besides the ConfigMaps of the run.
	// +optional
	Results *ResultsSpec `json:"results,omitempty"`

	// queueName is a LocalQueue of Kueue (kueue.x-k8s.io/queue-name): each job of the run waits in it until it is admitted.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	QueueName string `json:"queueName,omitempty"`

	// priorityClassName is the PriorityClass of the run's pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

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

	// rawOutputTTL is how long the raw output of the tool is kept after the end of the run: it is most of what a run takes of etcd. Samples,
	// results and status stay as long as the run. From 1m to 8760h (a year). Defaults to 720h (30 days).
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="spec.rawOutputTTL must be from 1m to 8760h"
	RawOutputTTL *metav1.Duration `json:"rawOutputTTL,omitempty"`
}

// SweepMode says how the swept parameters combine.
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
	// of says which points are warmed up: the First that is run, or Each. Defaults to First.
	// +optional
	// +kubebuilder:default=First
	Of WarmUpPoints `json:"of,omitempty"`

	// repetitions that don't count, before those that do. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Repetitions int32 `json:"repetitions,omitempty"`
}

// WarmUpPoints says which points are warmed up.
// +kubebuilder:validation:Enum=First;Each
type WarmUpPoints string

// The points that are warmed up.
const (
	// WarmUpFirst warms up the first point that is run.
	WarmUpFirst WarmUpPoints = "First"
	// WarmUpEach warms up every point.
	WarmUpEach WarmUpPoints = "Each"
)

// CachesSpec says which caches are dropped, and when: the page cache, dentries and inodes of a node's kernel
// (/proc/sys/vm/drop_caches, 3), by the agent of the node.
type CachesSpec struct {
	// drop says whose caches are dropped: those of the Clients, of the Servers, or All.
	// +required
	Drop CacheNodes `json:"drop,omitempty"`

	// before says when: before each of the Repetitions, or before each of the Phases of a repetition, such as the reading of
	// what was written. A tool that has no phases is run as with Repetitions. Defaults to Repetitions.
	// +optional
	// +kubebuilder:default=Repetitions
	Before CacheMoment `json:"before,omitempty"`
}

// CacheNodes says whose caches are dropped.
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

// CacheMoment says when caches are dropped.
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
	// standardErrorPercent is the standard error of the mean, in percent of the mean, that every metric in metrics must reach.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(0\.[0-9]{1,3}|[1-9][0-9]?(\.[0-9]{1,3})?)$`
	StandardErrorPercent string `json:"standardErrorPercent,omitempty"`

	// metrics that must reach it, by their names; all of them when it is empty.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Metrics []string `json:"metrics,omitempty"`

	// maxRepetitions ends the point although it is not as certain. Defaults to 20.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=100
	MaxRepetitions int32 `json:"maxRepetitions,omitempty"`
}

// BaselineSpec is what results are compared with: points with the same parameters, metrics with the same name and unit.
//
// +kubebuilder:validation:XValidation:rule="has(self.run) != has(self.published)",message="set exactly one of spec.baseline.run and spec.baseline.published"
// +kubebuilder:validation:XValidation:rule="!has(self.variant) || has(self.published)",message="spec.baseline.variant is one of a published table, so it needs spec.baseline.published"
type BaselineSpec struct {
	// run is another BenchmarkRun in the same namespace.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Run string `json:"run,omitempty"`

	// published is a table of published figures that the operator holds, such as beegfs-2015-single-raid0; the tables are listed
	// in benchmarks/README.md.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Published string `json:"published,omitempty"`

	// variant is what the table was measured on, of a table with several, such as lustre2 of lustre-2014-mdtest-low. The runs of a
	// BenchmarkSuite have the name of their variant here.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Variant string `json:"variant,omitempty"`

	// tolerancePercent is the smallest difference that counts as better or worse, in percent of the baseline. Defaults to 3.
	// +optional
	// +kubebuilder:default="3"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^(0|0\.[0-9]{1,3}|[1-9][0-9]?(\.[0-9]{1,3})?)$`
	TolerancePercent string `json:"tolerancePercent,omitempty"`

	// allowDifferences compares although the two did not measure the same: another tool, statistic or unit, other options of the
	// tool, other caches. status.baseline names what differs.
	// +optional
	AllowDifferences bool `json:"allowDifferences,omitempty"`
}

// BenchmarkTarget names what is measured.
type BenchmarkTarget struct {
	// name of a FileSystem in the namespace of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// storagePool that the files lie in: the run uses a fresh directory of that pool, and removes it afterwards.
	// Defaults to the filesystem's first pool. A sweep can vary it, as storagePool.
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

	// count is how many of those nodes take part. Without it, all do that there are processes for (one, for a tool that runs on a
	// single client). A sweep or derive can vary it, as clients.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	Count int32 `json:"count,omitempty"`

	// spread places the processes. Even gives each client as many as the others, or one less; Packed fills a client with
	// maxProcessesPerNode (or one for each of its CPUs) before it takes the next. Defaults to Even.
	// +optional
	// +kubebuilder:default=Even
	Spread ProcessSpread `json:"spread,omitempty"`

	// maxProcessesPerNode bounds the processes of one client. A point that needs more than all clients give is refused.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	MaxProcessesPerNode int32 `json:"maxProcessesPerNode,omitempty"`

	// oversubscribe allows more processes on a client than it has CPUs. Without it, such a point is refused: processes that
	// wait for a CPU measure the client.
	// +optional
	Oversubscribe bool `json:"oversubscribe,omitempty"`
}

// ProcessSpread says how processes are placed on clients.
// +kubebuilder:validation:Enum=Even;Packed
type ProcessSpread string

// The ways of placing processes.
const (
	// SpreadEven gives each client as many as the others, or one less.
	SpreadEven ProcessSpread = "Even"
	// SpreadPacked fills one client before the next.
	SpreadPacked ProcessSpread = "Packed"
)

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

	// retries is how often a repetition that failed is run again, in all attempts of that repetition together. Defaults to 0: a
	// failure is a result too.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Retries int32 `json:"retries,omitempty"`

	// invalidRetries is how often a repetition that was disturbed, as by the restart of a daemon, is run again. Defaults to 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	InvalidRetries *int32 `json:"invalidRetries,omitempty"`
}

// BenchmarkRun is one benchmark of a FileSystem: a tool, a sweep over its parameters, and the results.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=bench,categories={all,parallelfs}
// +kubebuilder:selectablefield:JSONPath=`.spec.fileSystem.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.tool`
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
