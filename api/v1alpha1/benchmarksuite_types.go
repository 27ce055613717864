package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// BenchmarkSuiteSpec measures variants of a FileSystem, one after the other, each by the same runs. Once made, only suspend,
// ttlSecondsAfterFinished, confirmDestroy and results can be changed.
//
// +kubebuilder:validation:XValidation:rule="self.fileSystem == oldSelf.fileSystem && self.variants == oldSelf.variants && self.runs == oldSelf.runs && self.afterVariant == oldSelf.afterVariant && self.onFailure == oldSelf.onFailure && has(self.baseline) == has(oldSelf.baseline) && (!has(self.baseline) || self.baseline == oldSelf.baseline)",message="only spec.suspend, ttlSecondsAfterFinished, confirmDestroy and results of a BenchmarkSuite can be changed, because its results depend on all other fields; create another suite"
type BenchmarkSuiteSpec struct {
	// fileSystem is the spec of a FileSystem, which the variants change. The suite makes one FileSystem for each variant. It sets
	// deletionPolicy and confirmDestroy itself. It refuses formatPolicy Never, because it measures only filesystems that it has made.
	// `kubectl explain filesystem.spec` lists the fields.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	FileSystem runtime.RawExtension `json:"fileSystem,omitzero"`

	// variants are the variants of the FileSystem, measured in this order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Variants []SuiteVariant `json:"variants,omitempty"`

	// runs are the benchmarks that measure each variant, in this order.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Runs []SuiteRun `json:"runs,omitempty"`

	// afterVariant sets what happens to a variant's FileSystem after its runs. Keep leaves it running; the next variant then needs other
	// disks. Delete deletes it and keeps the data on its disks; the next variant then finds that data and refuses the disks. Destroy deletes
	// it and wipes the disks that it has formatted itself; it needs confirmDestroy. Defaults to Keep.
	// +optional
	// +kubebuilder:default=Keep
	AfterVariant AfterVariant `json:"afterVariant,omitempty"`

	// confirmDestroy confirms afterVariant Destroy: the uid of this object (kubectl get -o jsonpath={.metadata.uid}). Without it, the
	// suite waits before the first variant.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfirmDestroy string `json:"confirmDestroy,omitempty"`

	// onFailure sets how the suite continues after a run with failed points, or a FileSystem that did not become Ready in time. Continue goes
	// on with the next run or variant. Stop ends the suite. Defaults to Continue.
	// +optional
	// +kubebuilder:default=Continue
	OnFailure SuiteFailure `json:"onFailure,omitempty"`

	// readyTimeout is how long a variant's FileSystem may take to become Ready. Time that it waits for a person to approve plans of disks
	// does not count. Defaults to 30m.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('1s')",message="spec.readyTimeout must be at least 1s"
	ReadyTimeout *metav1.Duration `json:"readyTimeout,omitempty"`

	// baseline is a published table that the results are compared with.
	// +optional
	Baseline *SuiteBaseline `json:"baseline,omitempty"`

	// results sets where the complete results of each run are exported, in addition to the ConfigMaps of the run and of the suite.
	// +optional
	Results *ResultsSpec `json:"results,omitempty"`

	// suspend suspends the run that is under way, and starts nothing new. The FileSystem of the variant stays.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ttlSecondsAfterFinished is how many seconds the suite, its runs and their results are kept after its end, as in a Job. 604800 is a
	// week, and 0 is at once. Without it, they are kept until a person or program deletes the suite.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// AfterVariant sets what happens to a variant's FileSystem.
// +kubebuilder:validation:Enum=Keep;Delete;Destroy
type AfterVariant string

// The actions on a variant's FileSystem.
const (
	// AfterVariantKeep leaves it running.
	AfterVariantKeep AfterVariant = "Keep"
	// AfterVariantDelete deletes it and keeps the data on its disks.
	AfterVariantDelete AfterVariant = "Delete"
	// AfterVariantDestroy deletes it and wipes the disks that it formatted.
	AfterVariantDestroy AfterVariant = "Destroy"
)

// SuiteFailure sets how a suite continues after a failure.
// +kubebuilder:validation:Enum=Continue;Stop
type SuiteFailure string

// The ways to continue after a failure.
const (
	// SuiteContinue continues with the next run or variant.
	SuiteContinue SuiteFailure = "Continue"
	// SuiteStop ends the suite; the FileSystem stays as it is.
	SuiteStop SuiteFailure = "Stop"
)

// SuiteVariant is one variant of the FileSystem.
type SuiteVariant struct {
	// name of the variant, such as xfs-hdd. The FileSystem is named <suite>-<variant>, which has at most 40 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// fileSystem is a JSON merge patch (RFC 7386) of spec.fileSystem. `kubectl explain filesystem.spec` lists the fields.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	FileSystem *runtime.RawExtension `json:"fileSystem,omitempty"`

	// run is a JSON merge patch (RFC 7386) of the spec of every run, such as other numbers of processes.
	// `kubectl explain benchmarkrun.spec` lists the fields.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Run *runtime.RawExtension `json:"run,omitempty"`

	// scale is the size of this variant as a multiple of the smallest one, such as of its number of metadata servers. With it, the table
	// has speed-up and efficiency.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Scale int32 `json:"scale,omitempty"`
}

// SuiteRun is one run that measures each variant.
type SuiteRun struct {
	// name of the run, such as creates. The BenchmarkRun is named <suite>-<variant>-<run>, shortened when that is too long.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// spec is the spec of the BenchmarkRun. The suite sets target.fileSystem.name and suspend, and leaves out ttlSecondsAfterFinished. A run
	// without baseline or results gets those of the suite. `kubectl explain benchmarkrun.spec` lists the fields.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Spec runtime.RawExtension `json:"spec,omitzero"`
}

// SuiteBaseline is a published table.
type SuiteBaseline struct {
	// published is the name of a table, as in a BenchmarkRun's spec.baseline.published.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Published string `json:"published,omitempty"`
}

// BenchmarkSuiteStatus has the progress and the results of a suite.
type BenchmarkSuiteStatus struct {
	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe the state of the suite in the vocabulary of kstatus. Succeeded is always there; Reconciling and Stalled only
	// while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// startTime is when the first variant began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the last variant ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// progress is the number of runs that have ended, and of all runs, as "7/12".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// current names the variant and the run that are under way, such as "xfs-hdd: creates 12/30".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Current string `json:"current,omitempty"`

	// variants has the state of each variant, in the order of the spec.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Variants []SuiteVariantStatus `json:"variants,omitempty"`

	// table holds the best value of each metric of each run, for every variant that has one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=512
	Table []SuiteFigure `json:"table,omitempty"`

	// shortened describes the part that the table leaves out, because the status would have become too large. The complete results have it.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Shortened string `json:"shortened,omitempty"`

	// results names the ConfigMap that holds the complete results as JSON (gzip) and CSV.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Results string `json:"results,omitempty"`
}

// VariantState is the state of a variant.
// +kubebuilder:validation:Enum=Pending;Creating;Measuring;Removing;Done;Failed
type VariantState string

// The states of a variant.
const (
	// VariantPending has not been begun.
	VariantPending VariantState = "Pending"
	// VariantCreating waits until its FileSystem is Ready.
	VariantCreating VariantState = "Creating"
	// VariantMeasuring has its runs under way.
	VariantMeasuring VariantState = "Measuring"
	// VariantRemoving waits until its FileSystem is deleted.
	VariantRemoving VariantState = "Removing"
	// VariantDone is over, and each of its runs has all its results.
	VariantDone VariantState = "Done"
	// VariantFailed is over, and something of it has no result.
	VariantFailed VariantState = "Failed"
)

// SuiteVariantStatus is the state of a variant.
type SuiteVariantStatus struct {
	// name of the variant.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name,omitempty"`

	// state of the variant.
	// +required
	State VariantState `json:"state,omitempty"`

	// fileSystem is the name of its FileSystem, also after that is gone.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	FileSystem string `json:"fileSystem,omitempty"`

	// fileSystemUID is the uid of the FileSystem that the suite made. The suite deletes no other.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	FileSystemUID string `json:"fileSystemUID,omitempty"`

	// startTime is when the FileSystem was made.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// readyTime is when the FileSystem became Ready.
	// +optional
	ReadyTime *metav1.Time `json:"readyTime,omitempty"`

	// completionTime is when the variant ended.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// runs are the BenchmarkRuns that the suite has made for the variant, in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Runs []SuiteRunStatus `json:"runs,omitempty"`

	// failure is the reason why the variant ended before all its runs.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Failure string `json:"failure,omitempty"`

	// message is the reason why the variant waits.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// SuiteRunStatus is one run of a variant.
type SuiteRunStatus struct {
	// name of the run in the suite.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Name string `json:"name,omitempty"`

	// benchmarkRun is the name of the BenchmarkRun.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	BenchmarkRun string `json:"benchmarkRun,omitempty"`

	// succeeded is how the BenchmarkRun ended: True with all its results, False without. It is Unknown until then.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Succeeded string `json:"succeeded,omitempty"`

	// progress is the number of points of the BenchmarkRun that have ended, and of all, such as "7/30".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`

	// message is the reason why results of the run are missing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// SuiteFigure is the best value of one metric of one run of one variant. Its numbers are decimal strings.
type SuiteFigure struct {
	// variant that was measured.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Variant string `json:"variant,omitempty"`

	// run that measured it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=20
	Run string `json:"run,omitempty"`

	// metric is the name of the metric.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Metric string `json:"metric,omitempty"`

	// unit is the unit of the value.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`

	// value is the metric's value at the best point.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Value string `json:"value,omitempty"`

	// at names the best point by its parameters, such as "processes=64".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	At string `json:"at,omitempty"`

	// speedup is the value divided by that of the variant with the smallest scale, such as "15.64".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Speedup string `json:"speedup,omitempty"`

	// efficiency is the speed-up divided by the ratio of the two scales, in percent, such as "78.2".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Efficiency string `json:"efficiency,omitempty"`
}

// BenchmarkSuite is a measurement of several variants of a FileSystem, each by the same runs, with one table of the results.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pfssuite,categories={parallelfs}
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Current",type=string,JSONPath=`.status.current`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 32",message="metadata.name of a BenchmarkSuite has at most 32 characters, because the names of what it makes start with it"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z][a-z0-9-]*$')",message="metadata.name of a BenchmarkSuite starts with a letter and holds no dot, because the names of what it makes start with it"
type BenchmarkSuite struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the variants and the runs that the user wants.
	// +required
	Spec BenchmarkSuiteSpec `json:"spec,omitzero"`

	// status has the progress and the results of the suite.
	// +optional
	Status BenchmarkSuiteStatus `json:"status,omitzero"`
}

// BenchmarkSuiteList is a list of BenchmarkSuites.
// +kubebuilder:object:root=true
type BenchmarkSuiteList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the BenchmarkSuites.
	Items []BenchmarkSuite `json:"items"`
}
