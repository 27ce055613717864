package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BenchmarkRunStatus has the progress and the results of a run.
type BenchmarkRunStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe the state of the run in the vocabulary of kstatus. Succeeded is always there; Reconciling and Stalled only while
	// they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// tool is the benchmark that runs.
	// +optional
	Tool BenchmarkTool `json:"tool,omitempty"`

	// target is the measured object, such as "FileSystem scratch", "PersistentVolumeClaim data" or "StorageClass fast".
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Target string `json:"target,omitempty"`

	// startTime is when the first point was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last point ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// activeSeconds is the time that all repetitions so far took together, in seconds. limits.timeout bounds it.
	// +optional
	ActiveSeconds int64 `json:"activeSeconds,omitempty"`

	// progress is the number of points that have ended, and of all points, as "7/90".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// current is the point that is being run, such as "recordSize=64k processes=4 (repetition 2/5)".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Current string `json:"current,omitempty"`

	// timeLeft is the time that the rest will take, estimated from the repetitions so far, such as "1h12m".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	TimeLeft string `json:"timeLeft,omitempty"`

	// failedPoints counts the points without a result.
	// +optional
	FailedPoints int32 `json:"failedPoints,omitempty"`

	// seed is the seed of the order Shuffled; absent with the order AsWritten.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Seed *int64 `json:"seed,omitempty"`

	// best names, for each metric, the point with its best value.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=unit
	// +kubebuilder:validation:MaxItems=32
	Best []BestPoint `json:"best,omitempty"`

	// baseline sums up the comparison with spec.baseline, such as "9 results of 9 points compared with before: 2 better, 1 worse, 6 within the
	// noise". It lists other differences between the two: versions, configuration, clients. When nothing was compared, it has the reason.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Baseline string `json:"baseline,omitempty"`

	// expectations has the verdict on each expectation of spec.expect.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Expectations []ExpectationStatus `json:"expectations,omitempty"`

	// provenance describes the hardware, software and configuration behind the results.
	// +optional
	Provenance *RunProvenance `json:"provenance,omitempty"`

	// results names the ConfigMap that holds the complete results as JSON (gzip) and CSV.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Results string `json:"results,omitempty"`

	// exported is where the complete results were exported to (spec.results), or why they could not be.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Exported string `json:"exported,omitempty"`

	// shortened describes the part that was left out of points, because the status would have become too large. The complete results have it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Shortened string `json:"shortened,omitempty"`

	// rawOutputRemoved is when the raw output was removed from the ConfigMaps of the points (spec.rawOutputTTL). It is removed earlier
	// where the runs of the namespace had more than 256 MiB and this one had ended first. Samples and results stay.
	// +optional
	RawOutputRemoved *metav1.Time `json:"rawOutputRemoved,omitempty"`

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
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Invalid
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
	// PointInvalid has a repetition that was disturbed each time that it was run; its message names the cause.
	PointInvalid PointState = "Invalid"
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
	// +kubebuilder:validation:MaxItems=16
	Parameters []PointParameter `json:"parameters,omitempty"`

	// state of the point.
	// +required
	State PointState `json:"state,omitempty"`

	// repetitions counts the repetitions that have a result.
	// +optional
	Repetitions int32 `json:"repetitions,omitempty"`

	// attempts counts the repetitions that have ended, with or without a result. It is absent when it equals repetitions.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`

	// startTime is when the first repetition was started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last one ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// command is the exact command line of the tool. Arguments with blanks are in quotation marks.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Command string `json:"command,omitempty"`

	// placement says how many processes ran on how many clients, such as "32 on 4 clients (8 each)".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Placement string `json:"placement,omitempty"`

	// telemetry summarizes the load of the servers during the point, such as "busiest target scratch-ssd-1a2b 37 %" and "busiest daemon
	// meta-0.oss1 1.8 CPUs".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	Telemetry []string `json:"telemetry,omitempty"`

	// metrics has the values that the tool measured.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=unit
	// +kubebuilder:validation:MaxItems=32
	Metrics []MetricResult `json:"metrics,omitempty"`

	// message is the reason why a point failed, with the last lines of the tool's output, or why repetitions of it were invalid.
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
	Value PointValue `json:"value,omitempty"`
}

// MetricResult is one measured quantity of a point. All its numbers are decimal strings in the metric's unit.
type MetricResult struct {
	// name of the metric, such as "randomRead".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// unit as the tool prints it, such as "kB/s", or "IOPS" where it follows from the record size.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// value is the result, by the run's statistic.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// mean is the mean of the samples.
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

	// median is the median of the samples; absent when the tool itself averaged them and printed no median.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Median string `json:"median,omitempty"`

	// confidence is half the width of the 95 % confidence interval of the mean (Student's t); absent when there is only one sample.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Confidence string `json:"confidence,omitempty"`

	// outliers are the numbers of the repetitions, from 1, that lie far from the others by the generalized ESD test (Rosner, 1983). It
	// reports an outlier in about 1 of 100 clean results. The test needs at least 6 repetitions. Outliers count like all
	// others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Outliers []int32 `json:"outliers,omitempty"`

	// speedup is the value divided by that of the point that counts as 1 (spec.along), such as "15.64". Only rates have one.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Speedup string `json:"speedup,omitempty"`

	// efficiency is the speed-up divided by the ratio of the two values of spec.along, in percent, such as "78.2".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Efficiency string `json:"efficiency,omitempty"`

	// baseline compares with spec.baseline, such as "+3.1 % (41200 before, better beyond the noise)".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Baseline string `json:"baseline,omitempty"`

	// samples counts the samples.
	// +required
	// +kubebuilder:validation:Minimum=1
	Samples int32 `json:"samples,omitempty"`
}

// BestPoint is the point with the best value of one metric: the highest, or of a time the lowest.
type BestPoint struct {
	// name of the metric.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// unit of the metric.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// value of the metric there.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// index of the point.
	// +required
	// +kubebuilder:validation:Minimum=0
	Index int32 `json:"index"`
}

// RunProvenance describes the hardware, software and configuration behind the results, from the start of the run. It grows with the run,
// and not with the filesystem. The complete results describe the servers and targets that the run used, up to 128 of each.
type RunProvenance struct {
	// fileSystem is the type, the version, the uid and the generation, such as "BeeGFS 7.4.6, 1b4e28ba-…, generation 3".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	FileSystem string `json:"fileSystem,omitempty"`

	// configHash is a hash of all configuration that the servers and the run's clients were started with.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfigHash string `json:"configHash,omitempty"`

	// serverCounts counts all servers of the filesystem by role, storage pool and version; at most 64 combinations.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	ServerCounts []ServerCount `json:"serverCounts,omitempty"`

	// targetCounts counts all storage targets of the filesystem by storage pool.
	// +optional
	// +listType=map
	// +listMapKey=storagePool
	// +kubebuilder:validation:MaxItems=64
	TargetCounts []TargetCount `json:"targetCounts,omitempty"`

	// membersHash is a hash of all servers and targets with their nodes, disks, versions and CPUs. Two runs with the same hash were
	// measured on the same servers and targets.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MembersHash string `json:"membersHash,omitempty"`

	// image is the image with the tool.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Image string `json:"image,omitempty"`
	// imageID is the digest that the node resolved the image to.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	ImageID string `json:"imageID,omitempty"`

	// toolVersion is the version that the tool prints.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ToolVersion string `json:"toolVersion,omitempty"`

	// clients lists the nodes that were used, with their kernel and CPUs; at most 64.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=64
	Clients []NodeProvenance `json:"clients,omitempty"`

	// podChanges lists the changes that another component of the cluster, such as a LimitRange or a webhook, made to the run's pods. An entry
	// is such as "the cpu of container benchmark is limited to 500m". Numbers that were measured under a limit of the CPU are those of the
	// limit.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=256
	PodChanges []string `json:"podChanges,omitempty"`

	// throttled is how long a CPU quota held back a container of the repetition that was held back first; empty when none was.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Throttled string `json:"throttled,omitempty"`

	// clocks is how far the clocks of the clients of the last repetition were apart. A repetition whose clients' clocks differ by more than 1
	// % of its time is invalid.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Clocks string `json:"clocks,omitempty"`

	// pinning is whether daemons run on the CPUs that the spec requests: "AsAsked", "Drifted: …", or empty when none is pinned.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Pinning string `json:"pinning,omitempty"`

	// volume describes a target that is no FileSystem.
	// +optional
	Volume *VolumeProvenance `json:"volume,omitempty"`

	// unknown lists the facts about the target that can't be found; empty for a FileSystem.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Unknown string `json:"unknown,omitempty"`

	// transport is how many servers and clients of a BeeGFS offered RDMA, such as "12/12, clients 31/32". The reason of the condition
	// TransportAsSpecified stands behind it where that is not true. It is empty where nothing was known, and where RDMA is disabled.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Transport string `json:"transport,omitempty"`
}

// VolumeProvenance describes a volume as Kubernetes and the kernel of a client show it. Names and values that may be secrets are left out.
type VolumeProvenance struct {
	// claim is the name and the uid of the PersistentVolumeClaim.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Claim string `json:"claim,omitempty"`

	// storageClass is the name of its StorageClass.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	StorageClass string `json:"storageClass,omitempty"`

	// parameters of the StorageClass as name=value, sorted; at most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	Parameters []string `json:"parameters,omitempty"`

	// persistentVolume is the name of the PersistentVolume.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PersistentVolume string `json:"persistentVolume,omitempty"`

	// driver is the CSI driver of the PersistentVolume, or its type, such as "nfs".
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Driver string `json:"driver,omitempty"`

	// attributes of the PersistentVolume as name=value, sorted; at most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	Attributes []string `json:"attributes,omitempty"`

	// accessModes are those of the volume, such as "ReadWriteMany".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	AccessModes string `json:"accessModes,omitempty"`

	// capacity of the volume, such as "100Gi".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Capacity string `json:"capacity,omitempty"`

	// mount is the type and the options of the mount as a pod of the run sees them (/proc/self/mountinfo).
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Mount string `json:"mount,omitempty"`
}

// ServerCount counts the servers of one kind.
type ServerCount struct {
	// role of the servers.
	// +required
	Role Role `json:"role,omitempty"`

	// storagePool of storage servers.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`

	// version is the version that the servers report; empty when they had not reported one.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// count is the number of servers.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`
}

// TargetCount counts the targets of one storage pool.
type TargetCount struct {
	// storagePool of the targets.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`

	// count is the number of targets.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int32 `json:"count,omitempty"`

	// capacityBytes is the size of these targets together, in bytes.
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
}

// NodeProvenance describes a node of the run.
type NodeProvenance struct {
	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// kernel release.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Kernel string `json:"kernel,omitempty"`

	// cpuModel is the model of the processors; empty on a node without an agent.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	CPUModel string `json:"cpuModel,omitempty"`

	// cpus is the number of CPUs, as Kubernetes counts them.
	// +optional
	CPUs int32 `json:"cpus,omitempty"`
}
