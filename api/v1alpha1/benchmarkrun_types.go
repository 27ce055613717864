package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Statistic sets how the samples of a point's repetitions become its one value.
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
	// StatisticTrimmedMean is the mean without the highest and the lowest sample.
	StatisticTrimmedMean Statistic = "TrimmedMean"
	// StatisticWorst is the sample that is worst: of a rate the lowest, of a time the highest. Of a metric that is neither good nor bad it is
	// the mean.
	StatisticWorst Statistic = "Worst"
)

// Better is whether higher or lower values of a metric are better.
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

// BenchmarkRunSpec is one benchmark with a sweep over its parameters. Once made, only suspend, ttlSecondsAfterFinished, rawOutputTTL,
// queueName, priorityClassName, pods (without its resources), baseline, expect and results can be changed.
//
// +kubebuilder:validation:XValidation:rule="[has(self.iozone), has(self.mdtest), has(self.ior), has(self.fio), has(self.postmark), has(self.vdbench), has(self.netmist), has(self.mdsSurvey), has(self.obdfilterSurvey), has(self.storagebench), has(self.custom)].filter(x, x).size() == 1",message="set exactly one of spec.iozone, mdtest, ior, fio, postmark, vdbench, netmist, mdsSurvey, obdfilterSurvey, storagebench and custom: its name is the tool, and it may be empty ({}), but for custom"
// +kubebuilder:validation:XValidation:rule="!has(self.tool) || self.tool == (has(self.iozone) ? 'iozone' : has(self.mdtest) ? 'mdtest' : has(self.ior) ? 'ior' : has(self.fio) ? 'fio' : has(self.postmark) ? 'postmark' : has(self.vdbench) ? 'vdbench' : has(self.netmist) ? 'netmist' : has(self.mdsSurvey) ? 'mdsSurvey' : has(self.obdfilterSurvey) ? 'obdfilterSurvey' : has(self.storagebench) ? 'storagebench' : 'custom')",message="spec.tool names another tool than the member that is set; leave spec.tool out"
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || [has(self.iozone) ? 'iozone' : has(self.mdtest) ? 'mdtest' : has(self.ior) ? 'ior' : has(self.fio) ? 'fio' : has(self.postmark) ? 'postmark' : has(self.vdbench) ? 'vdbench' : has(self.netmist) ? 'netmist' : has(self.mdsSurvey) ? 'mdsSurvey' : has(self.obdfilterSurvey) ? 'obdfilterSurvey' : has(self.storagebench) ? 'storagebench' : 'custom'].all(tool, self.sweep.all(s, s.name in ['processes', 'clients', 'storagePool'] || s.name.startsWith(tool + '.')))",message="a sweep varies processes, clients, storagePool, or a parameter of the run's tool, such as mdtest.items for mdtest"
// +kubebuilder:validation:XValidation:rule="!has(self.derive) || [has(self.iozone) ? 'iozone' : has(self.mdtest) ? 'mdtest' : has(self.ior) ? 'ior' : has(self.fio) ? 'fio' : has(self.postmark) ? 'postmark' : has(self.vdbench) ? 'vdbench' : has(self.netmist) ? 'netmist' : has(self.mdsSurvey) ? 'mdsSurvey' : has(self.obdfilterSurvey) ? 'obdfilterSurvey' : has(self.storagebench) ? 'storagebench' : 'custom'].all(tool, self.derive.all(s, s.name in ['processes', 'clients', 'storagePool'] || s.name.startsWith(tool + '.')))",message="a derived value is processes, clients, storagePool, or a parameter of the run's tool, such as mdtest.items for mdtest"
// +kubebuilder:validation:XValidation:rule="!has(self.sweep) || !has(self.derive) || self.derive.all(d, !self.sweep.exists(s, s.name == d.name))",message="a name can't be swept and derived at once"
// +kubebuilder:validation:XValidation:rule="self.statistic != 'TrimmedMean' || self.repetitions >= 3",message="TrimmedMean drops the highest and the lowest sample, so spec.repetitions must be at least 3"
// +kubebuilder:validation:XValidation:rule="!has(self.until) || self.until.maxRepetitions >= self.repetitions",message="spec.until.maxRepetitions must be at least spec.repetitions"
// +kubebuilder:validation:XValidation:rule="!has(self.seed) || self.order == 'Shuffled'",message="spec.seed requires spec.order Shuffled"
// +kubebuilder:validation:XValidation:rule="!has(self.iozone) || self.iozone.mode != 'SingleClient' || !has(self.clients.count) || self.clients.count == 1",message="spec.clients.count must be 1 (or unset) when spec.iozone.mode is SingleClient"
// +kubebuilder:validation:XValidation:rule="!has(self.iozone) || self.iozone.mode != 'SingleClient' || ((!has(self.sweep) || !self.sweep.exists(s, s.name == 'clients')) && (!has(self.derive) || !self.derive.exists(d, d.name == 'clients')))",message="clients can't be swept or derived when spec.iozone.mode is SingleClient"
// +kubebuilder:validation:XValidation:rule="self.target == oldSelf.target && self.clients == oldSelf.clients && self.processes == oldSelf.processes && self.repetitions == oldSelf.repetitions && self.statistic == oldSelf.statistic && self.sweepMode == oldSelf.sweepMode && self.order == oldSelf.order",message="only spec.suspend, ttlSecondsAfterFinished, rawOutputTTL, queueName, priorityClassName, pods (without its resources), baseline, expect and results of a BenchmarkRun can be changed, because its results depend on all other fields; create another run"
// +kubebuilder:validation:XValidation:rule="has(self.iozone) == has(oldSelf.iozone) && (!has(self.iozone) || self.iozone == oldSelf.iozone) && has(self.mdtest) == has(oldSelf.mdtest) && (!has(self.mdtest) || self.mdtest == oldSelf.mdtest) && has(self.ior) == has(oldSelf.ior) && (!has(self.ior) || self.ior == oldSelf.ior) && has(self.fio) == has(oldSelf.fio) && (!has(self.fio) || self.fio == oldSelf.fio) && has(self.postmark) == has(oldSelf.postmark) && (!has(self.postmark) || self.postmark == oldSelf.postmark) && has(self.vdbench) == has(oldSelf.vdbench) && (!has(self.vdbench) || self.vdbench == oldSelf.vdbench) && has(self.netmist) == has(oldSelf.netmist) && (!has(self.netmist) || self.netmist == oldSelf.netmist) && has(self.mdsSurvey) == has(oldSelf.mdsSurvey) && (!has(self.mdsSurvey) || self.mdsSurvey == oldSelf.mdsSurvey) && has(self.obdfilterSurvey) == has(oldSelf.obdfilterSurvey) && (!has(self.obdfilterSurvey) || self.obdfilterSurvey == oldSelf.obdfilterSurvey) && has(self.storagebench) == has(oldSelf.storagebench) && (!has(self.storagebench) || self.storagebench == oldSelf.storagebench) && has(self.custom) == has(oldSelf.custom) && (!has(self.custom) || self.custom == oldSelf.custom)",message="only spec.suspend, ttlSecondsAfterFinished, rawOutputTTL, queueName, priorityClassName, pods (without its resources), baseline, expect and results of a BenchmarkRun can be changed, because its results depend on all other fields; create another run"
// +kubebuilder:validation:XValidation:rule="has(self.image) == has(oldSelf.image) && (!has(self.image) || self.image == oldSelf.image) && has(self.sweep) == has(oldSelf.sweep) && (!has(self.sweep) || self.sweep == oldSelf.sweep) && has(self.derive) == has(oldSelf.derive) && (!has(self.derive) || self.derive == oldSelf.derive) && has(self.seed) == has(oldSelf.seed) && (!has(self.seed) || self.seed == oldSelf.seed) && has(self.warmUp) == has(oldSelf.warmUp) && (!has(self.warmUp) || self.warmUp == oldSelf.warmUp) && has(self.caches) == has(oldSelf.caches) && (!has(self.caches) || self.caches == oldSelf.caches) && has(self.pause) == has(oldSelf.pause) && (!has(self.pause) || self.pause == oldSelf.pause) && has(self.until) == has(oldSelf.until) && (!has(self.until) || self.until == oldSelf.until) && has(self.along) == has(oldSelf.along) && (!has(self.along) || self.along == oldSelf.along) && has(self.limits) == has(oldSelf.limits) && (!has(self.limits) || self.limits == oldSelf.limits) && (has(self.pods) && has(self.pods.resources)) == (has(oldSelf.pods) && has(oldSelf.pods.resources)) && (!has(self.pods) || !has(self.pods.resources) || self.pods.resources == oldSelf.pods.resources)",message="only spec.suspend, ttlSecondsAfterFinished, rawOutputTTL, queueName, priorityClassName, pods (without its resources), baseline, expect and results of a BenchmarkRun can be changed, because its results depend on all other fields; create another run"
// +kubebuilder:validation:XValidation:rule="has(self.target.fileSystem) || !has(self.caches)",message="spec.caches needs the agents of a FileSystem's nodes; for another target leave it out, and use direct I/O or files twice as large as the memory of a client"
// +kubebuilder:validation:XValidation:rule="has(self.target.fileSystem) || !(has(self.mdsSurvey) || has(self.obdfilterSurvey) || has(self.storagebench))",message="mdsSurvey, obdfilterSurvey and storagebench measure the servers of a FileSystem, so they require spec.target.fileSystem"
// +kubebuilder:validation:XValidation:rule="has(self.target.fileSystem) || (!has(self.sweep) || self.sweep.all(s, s.name != 'storagePool')) && (!has(self.derive) || self.derive.all(d, d.name != 'storagePool'))",message="only a FileSystem has storage pools, so a sweep or derive over storagePool requires spec.target.fileSystem"
type BenchmarkRunSpec struct {
	// target is the object that is measured: set exactly one of its members.
	// +required
	Target BenchmarkTarget `json:"target,omitzero"`

	// tool is the benchmark. It can be left out: the one member with the name of a tool, such as mdtest, says which tool runs.
	// status.tool shows it.
	// +optional
	Tool BenchmarkTool `json:"tool,omitempty"`

	// iozone holds the parameters of iozone. It may be empty ({}).
	// +optional
	IOzone *IOzoneSpec `json:"iozone,omitempty"`

	// mdtest holds the parameters of mdtest. It may be empty ({}). A tree has treeDirectories(branch,
	// depth) directories.
	// +optional
	Mdtest *MdtestSpec `json:"mdtest,omitempty"`

	// ior holds the parameters of IOR. It may be empty ({}). Each process writes one block in each
	// segment.
	// +optional
	IOR *IORSpec `json:"ior,omitempty"`

	// fio holds the parameters of fio. It may be empty ({}). Each client runs one fio, with as many jobs
	// as it has processes. All clients must have the same number, so clients.count is required for more than one process.
	// +optional
	Fio *FioSpec `json:"fio,omitempty"`

	// postmark holds the parameters of postmark. It may be empty ({}). Each process runs one
	// postmark in a directory of its own. postmark counts whole seconds, so make it run for some minutes. It does not notice that a disk is
	// full.
	// +optional
	Postmark *PostmarkSpec `json:"postmark,omitempty"`

	// vdbench holds the parameters of vdbench in its filesystem mode. It may be empty ({}). Only
	// Oracle gives vdbench out, so image must name an image with it in /opt/vdbench. Each client has a tree of its own, and one process
	// with threads. The number of clients is clients.count, or else processes.
	// +optional
	Vdbench *VdbenchSpec `json:"vdbench,omitempty"`

	// netmist holds the parameters of netmist, the load generator of SPEC SFS 2014. It may be empty ({}). Only licensees have netmist, so
	// image must name an image with it. Each client runs processes / clients copies. The options are those of a talk at LUG 2014, because
	// there is no public description of them; their defaults are the values of that talk.
	// +optional
	Netmist *NetmistSpec `json:"netmist,omitempty"`

	// mdsSurvey holds the parameters of mds-survey, which measures the metadata server of a Lustre on its own node, without clients. It may
	// be empty ({}).
	// +optional
	MDSSurvey *MDSSurveySpec `json:"mdsSurvey,omitempty"`

	// obdfilterSurvey holds the parameters of obdfilter-survey, which measures the object storage targets of a Lustre on their own nodes,
	// without clients. It may be empty ({}). It makes objects of its own, and never writes
	// to a device.
	// +optional
	OBDFilterSurvey *OBDFilterSurveySpec `json:"obdfilterSurvey,omitempty"`

	// storagebench holds the parameters of the benchmark of BeeGFS's storage servers (beegfs-ctl --storagebench; beegfs benchmark of
	// version 8). It measures, without clients, the targets of the storage pool that the run names, or all targets. It may be
	// empty ({}).
	// +optional
	Storagebench *StoragebenchSpec `json:"storagebench,omitempty"`

	// custom holds the parameters of any program of any image, which is run in a fresh directory of the filesystem.
	// +optional
	Custom *CustomSpec `json:"custom,omitempty"`

	// image is the container image with the tool. Without it, the run uses the image that the operator has for the tool (images.benchmarks of
	// the chart). The operator checks the content of the image before the run starts. It is refused for tools that run on servers, because
	// they are privileged there.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`

	// clients selects the nodes that run the benchmark, of those that mount the filesystem. Defaults to {}, which is all of them. On another
	// target, Kubernetes' scheduler chooses count (or 1) of the nodes that have the labels.
	// +optional
	// +kubebuilder:default={}
	Clients BenchmarkClients `json:"clients,omitzero"`

	// processes is the number of processes on all clients together. A sweep or derive can vary it. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Processes int32 `json:"processes,omitempty"`

	// sweep varies parameters. All its dimensions together make at most 256 points.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Sweep []SweepDimension `json:"sweep,omitempty"`

	// sweepMode sets how several dimensions combine. Cartesian makes a point for each combination of their values; the last dimension varies
	// fastest. Zipped makes the first point of all first values, the second point of all second values, and so on; all dimensions must have
	// the same number of values. Defaults to Cartesian.
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

	// order is the order in which repetitions are run. AsWritten runs all repetitions of a point before the next point. Shuffled runs one
	// repetition of every point in random order, then the next repetition of every point in another random order. A drift of the system
	// then does not look like an effect of a parameter. Defaults to AsWritten.
	// +optional
	// +kubebuilder:default=AsWritten
	Order RunOrder `json:"order,omitempty"`

	// seed is the seed of the order Shuffled. Without it, the operator makes one from the run's uid. status.seed shows the seed in use.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9007199254740991
	Seed *int64 `json:"seed,omitempty"`

	// warmUp runs repetitions that don't count before those that do. Without it, all count.
	// +optional
	WarmUp *WarmUpSpec `json:"warmUp,omitempty"`

	// caches drops the kernels' caches before measurements. Other users of those nodes notice it. Without it, no caches are dropped.
	// +optional
	Caches *CachesSpec `json:"caches,omitempty"`

	// pause is the time between the end of a repetition and the start of the next, such as "30s". Without it, there is none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) <= duration('24h')",message="spec.pause must be at most 24h"
	Pause *metav1.Duration `json:"pause,omitempty"`

	// repetitions is the number of times that each point is run. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Repetitions int32 `json:"repetitions,omitempty"`

	// until repeats each point beyond repetitions, until its result is certain enough.
	// +optional
	Until *StopRule `json:"until,omitempty"`

	// statistic sets how the samples of a point's repetitions become its one value. Defaults to Mean.
	// +optional
	// +kubebuilder:default=Mean
	Statistic Statistic `json:"statistic,omitempty"`

	// along is the swept parameter along which speed-up and efficiency are computed, such as processes. The first point with its smallest
	// value counts as 1. Without it, neither is computed.
	// +optional
	Along SweepName `json:"along,omitempty"`

	// baseline has the results to compare with.
	// +optional
	Baseline *BaselineSpec `json:"baseline,omitempty"`

	// expect lists bounds that the results must keep, such as those of a procurement. status.expectations has the verdict on each, and the
	// condition Accepted that on all of them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Expect []Expectation `json:"expect,omitempty"`

	// limits bounds the time and the attempts of the run.
	// +optional
	Limits *BenchmarkLimits `json:"limits,omitempty"`

	// results sets where the complete results are exported, in addition to the ConfigMaps of the run.
	// +optional
	Results *ResultsSpec `json:"results,omitempty"`

	// queueName is a LocalQueue of Kueue (kueue.x-k8s.io/queue-name). Each job of the run waits in it until it is admitted. Without it,
	// jobs start at once.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	QueueName string `json:"queueName,omitempty"`

	// priorityClassName is the PriorityClass of the run's pods.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// pods sets labels, annotations, pull secrets and resources of the run's pods. Without it, they have none of the first three, and
	// a limit of memory on nodes with servers.
	// +optional
	Pods *BenchmarkPodsSpec `json:"pods,omitempty"`

	// suspend stops the run's pods and removes its files from the filesystem. Finished repetitions are kept. When suspend is false again,
	// the run continues with the next repetition.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished is how many seconds the run is kept after its end, as in a Job. 604800 is a week, and 0 is at once. Without it,
	// the run is kept until a person or program deletes it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// rawOutputTTL is how long the raw output of the tool is kept after the end of the run, from 1m to 8760h (a year). Raw output is most
	// of what a run stores in etcd. Samples, results and status stay as long as the run. Defaults to 720h (30 days).
	// +optional
	// +kubebuilder:default="720h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="spec.rawOutputTTL must be from 1m to 8760h"
	RawOutputTTL *metav1.Duration `json:"rawOutputTTL,omitempty"`
}

// BaselineSpec has the results to compare with: points with the same parameters, metrics with the same name and unit.
//
// +kubebuilder:validation:XValidation:rule="has(self.run) != has(self.published)",message="set exactly one of spec.baseline.run and spec.baseline.published"
// +kubebuilder:validation:XValidation:rule="!has(self.variant) || has(self.published)",message="spec.baseline.variant names a variant of a published table, so it requires spec.baseline.published"
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

	// variant names one variant of a published table that has several, such as lustre2 of lustre-2014-mdtest-low. In the runs of a
	// BenchmarkSuite, it is the name of the suite's variant.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Variant string `json:"variant,omitempty"`

	// tolerancePercent is the smallest difference that counts as better or worse, in percent of the baseline. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:XValidation:rule="type(self) != int || (self >= 0 && self <= 99)",message="tolerancePercent is from 0 to 99.999"
	TolerancePercent Percent `json:"tolerancePercent,omitempty"`

	// metrics are the names of the metrics that are judged, such as File creation. Each metric may differ by chance, so that the fewer are
	// judged, the smaller a loss can be and still be found. The others are shown with their change, unrated. Without it, all are judged.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	Metrics []string `json:"metrics,omitempty"`

	// allowDifferences compares even when the two did not measure the same: another tool, statistic or unit, other options of the tool, other
	// caches. status.baseline lists the differences. Defaults to false.
	// +optional
	AllowDifferences bool `json:"allowDifferences,omitempty"`
}

// BenchmarkLimits bound the time that a run takes.
type BenchmarkLimits struct {
	// pointTimeout is how long each repetition of a point may take, from the start of its pods to its result. It is from 1s to 24h:
	// restarts, upgrades and drains of the filesystem wait for it. Defaults to 30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="spec.limits.pointTimeout must be from 1s to 24h"
	PointTimeout *metav1.Duration `json:"pointTimeout,omitempty"`

	// timeout is how long all repetitions together may take, such as "12h", from 1s to 720h. Time that the run is suspended or waits does not
	// count. Defaults to 168h (a week): the run keeps its filesystem until then.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1s') && duration(self) <= duration('720h')",message="spec.limits.timeout must be from 1s to 720h"
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// retries is how many times a repetition that failed is run again. Defaults to 0: a failure is a result too.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	Retries int32 `json:"retries,omitempty"`

	// invalidRetries is how many times a repetition that was disturbed is run again, such as after the restart of a daemon. Defaults to 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	InvalidRetries *int32 `json:"invalidRetries,omitempty"`
}

// BenchmarkRun is one benchmark of a FileSystem or of another volume: a tool, a sweep over its parameters, and the results.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pfsbench,categories={parallelfs}
// +kubebuilder:selectablefield:JSONPath=`.spec.target.fileSystem.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.target.persistentVolumeClaim.claimName`
// +kubebuilder:selectablefield:JSONPath=`.spec.target.storageClass.name`
// +kubebuilder:selectablefield:JSONPath=`.status.tool`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Tool",type=string,JSONPath=`.status.tool`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Current",type=string,priority=1,JSONPath=`.status.current`
// +kubebuilder:printcolumn:name="Left",type=string,JSONPath=`.status.timeLeft`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failedPoints`
// +kubebuilder:printcolumn:name="Accepted",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name of a BenchmarkRun has at most 40 characters, because the names of its jobs start with it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z][a-z0-9-]*$')",message="metadata.name of a BenchmarkRun starts with a letter and holds no dot, because it becomes the name of hosts"
type BenchmarkRun struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the benchmark that the user wants.
	// +required
	Spec BenchmarkRunSpec `json:"spec,omitzero"`

	// status has the progress and the results of the run.
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
