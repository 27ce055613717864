// Package results is the form in which complete results are kept, exported, reported and compared: one document for a BenchmarkRun or
// BenchmarkSuite, as JSON and as CSV. It is made from a run's status and records, or from an output that was saved elsewhere.
package results

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/telemetry"
)

// Format names this form of the documents. A reader refuses any other.
const Format = "parallelfs.dev/results/v1"

// Suite is the document of a BenchmarkSuite.
type Suite struct {
	Format    string    `json:"format"`
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       string    `json:"uid"`
	Variants  []Variant `json:"variants"`
}

// Variant is what a suite has measured of one variant.
type Variant struct {
	Name  string `json:"name"`
	Scale int32  `json:"scale,omitempty"`
	// Runs by their names in the suite, in the order of the suite.
	Runs []SuiteRun `json:"runs"`
}

// SuiteRun is one run of a variant.
type SuiteRun struct {
	Name string `json:"name"`
	Run  Run    `json:"run"`
}

// Run is the document of a BenchmarkRun, or of an output that was saved elsewhere.
type Run struct {
	Format    string `json:"format"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	UID       string `json:"uid,omitempty"`
	// Spec of the run; of a saved output, the tool and what is known of its parameters.
	Spec       v1alpha1.BenchmarkRunSpec `json:"spec"`
	Started    time.Time                 `json:"started,omitzero"`
	Ended      time.Time                 `json:"ended,omitzero"`
	Provenance Provenance                `json:"provenance,omitzero"`
	Points     []Point                   `json:"points"`
	// Comparison is what was found beside spec.baseline, nil without one.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Comparison is what a run was compared with, and how far the two are comparable. The metrics hold the figures.
type Comparison struct {
	// Of names the other side: a run, or a published table.
	Of string `json:"of"`
	// Summary is a sentence without its full stop.
	Summary string `json:"summary"`
	// Refused is what makes the numbers of the two mean different things; unless that was allowed, nothing was compared.
	Refused []Difference `json:"refused,omitempty"`
	// Differs is what else is not the same: versions, configuration, clients, placement.
	Differs []Difference `json:"differs,omitempty"`
}

// Sentence is the summary with all that differs.
func (c Comparison) Sentence() string {
	parts := []string{c.Summary}
	for _, d := range slices.Concat(c.Refused, c.Differs) {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

// Difference is something that is not the same on both sides of a comparison.
type Difference struct {
	What string `json:"what"`
	// Here is that of the run, and There that of what it is compared with.
	Here  string `json:"here"`
	There string `json:"there"`
}

// String says it in words, such as "fio.directIO is true here and false there".
func (d Difference) String() string {
	return fmt.Sprintf("%s is %s here and %s there", d.What, d.Here, d.There)
}

// BestOf as the value of a parameter of a published point stands for the value at which the result was best.
const BestOf = "best"

// Provenance is what results were measured on and with.
type Provenance struct {
	v1alpha1.RunProvenance `json:",inline"`
	// FileSystemSpec is the spec of the FileSystem at the start of the run. Servers and Targets are the servers and targets that the run
	// used, with versions, pinning and devices: those of its storage pools, and the servers of all pools; the first 128 of each, by
	// name. The
	// counts tell how many there were.
	FileSystemSpec *v1alpha1.FileSystemSpec `json:"fileSystemSpec,omitempty"`
	Servers        []Server                 `json:"servers,omitempty"`
	Targets        []Target                 `json:"targets,omitempty"`
	// Operator is the version of the operator.
	Operator string `json:"operator,omitempty"`
}

// Server is one server, as the filesystem and its FileSystemNode described it.
type Server struct {
	// Name of the server in its filesystem: its member and its node, such as "meta-0.mds1".
	Name string        `json:"name,omitempty"`
	Role v1alpha1.Role `json:"role,omitempty"`
	Node string        `json:"node,omitempty"`
	// StoragePool of a storage server.
	StoragePool string `json:"storagePool,omitempty"`
	// Slot is the number of a metadata server on its node.
	Slot int32 `json:"slot,omitempty"`
	// ID is the filesystem's own number of the server; 0 where it gives none.
	ID int32 `json:"id,omitempty"`
	// Target of a management service or metadata server: the StorageTarget, or the directory of the node.
	Target string `json:"target,omitempty"`
	// Address is the host and port of the server.
	Address string `json:"address,omitempty"`
	// Version is what the server reported of itself.
	Version string `json:"version,omitempty"`
	// State is Online when the filesystem itself said that this server takes part, and Offline otherwise.
	State v1alpha1.ServiceState `json:"state,omitempty"`
	// Placement is where the server ran, as the kernel of its node said; absent on a node without an agent.
	Placement *v1alpha1.Placement `json:"placement,omitempty"`
	// Message says what was wrong with the server, and is empty when nothing was.
	Message string `json:"message,omitempty"`
}

// Target is one storage target, as the filesystem and its StorageTarget, or its FileSystemNode, described it.
type Target struct {
	// Name of the target: node and directory.
	Name string `json:"name,omitempty"`
	Node string `json:"node,omitempty"`
	// StoragePool that the target belongs to.
	StoragePool string `json:"storagePool,omitempty"`
	// Directory of the target on its node.
	Directory string `json:"directory,omitempty"`
	// ID is the filesystem's own number of the target; 0 where it gives none.
	ID int32 `json:"id,omitempty"`
	// StorageTarget is the one whose disk that directory lies on; empty when it is a directory of the node itself.
	StorageTarget string `json:"storageTarget,omitempty"`
	// State is Online when the filesystem itself said that the target serves data, and Offline otherwise.
	State v1alpha1.ServiceState `json:"state,omitempty"`
	// Removal is how far the filesystem had moved the data of this target elsewhere; absent when it was not told to.
	Removal v1alpha1.RemovalState `json:"removal,omitempty"`
	// CapacityBytes is the size of the target, and UsedBytes the used space of it.
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	UsedBytes     int64 `json:"usedBytes,omitempty"`
	// Message says what was wrong with the target, and is empty when nothing was.
	Message string `json:"message,omitempty"`
}

// Point is one point of a run.
type Point struct {
	Index int `json:"index"`
	// Parameters are all that have a value at the point, the swept and derived ones first (Values makes them); of a document made from a
	// status, only those.
	Parameters []Value             `json:"parameters,omitempty"`
	State      v1alpha1.PointState `json:"state"`
	Message    string              `json:"message,omitempty"`
	Command    []string            `json:"command,omitempty"`
	// Options are those of a saved output's command line that no field of a spec stands for, as the tool printed them.
	Options   []string  `json:"options,omitempty"`
	Placement string    `json:"placement,omitempty"`
	Metrics   []Metric  `json:"metrics,omitempty"`
	Attempts  []Attempt `json:"attempts,omitempty"`
}

// Value is the value of one parameter.
type Value struct {
	Name  v1alpha1.SweepName `json:"name"`
	Value string             `json:"value"`
}

// Metric is one measured quantity of a point. All numbers are in Unit; a NaN of Go is left out.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Better says which values are the better ones.
	Better v1alpha1.Better `json:"better,omitempty"`
	// Value by the run's statistic.
	Value float64 `json:"value"`
	Mean  float64 `json:"mean"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// Median, StdDev (n-1) and Confidence (half of the 95 % interval of the mean) are absent where there are too few samples.
	Median     *float64 `json:"median,omitempty"`
	StdDev     *float64 `json:"stdDev,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	// Outliers are the repetitions, from 1, that lie far from the others.
	Outliers []int32 `json:"outliers,omitempty"`
	// Samples counts the samples; it is 0 for a figure that was published without their number.
	Samples int `json:"samples"`
	// Speedup and Efficiency (1 is perfect) along spec.along, absent without it.
	Speedup    *float64 `json:"speedup,omitempty"`
	Efficiency *float64 `json:"efficiency,omitempty"`
	// Baseline is what spec.baseline has at this point, nil when it has nothing.
	Baseline *Baseline `json:"baseline,omitempty"`
}

// Baseline is another value of the same metric at the same parameters.
type Baseline struct {
	// Of names where it is from: a run, or a published table.
	Of    string  `json:"of"`
	Value float64 `json:"value"`
	// Change is the relative difference: 0.03 is 3 % more than the baseline.
	Change float64 `json:"change"`
	// Verdict says whether that is better, worse, or neither.
	Verdict Verdict `json:"verdict"`
}

// Verdict says what a difference means.
type Verdict string

// The verdicts.
const (
	// Better is a difference that chance does not explain, of all that was compared together, and of at least the tolerance.
	Better Verdict = "better"
	// Worse is the same the other way round.
	Worse Verdict = "worse"
	// WithinNoise is what repetitions alone could make.
	WithinNoise Verdict = "within the noise"
	// Small is beyond the noise, but less than the tolerance.
	Small Verdict = "below the tolerance"
	// Unrated is a difference of a metric that is neither good nor bad.
	Unrated Verdict = "neither good nor bad"
	// Unknown is a difference of which nobody can say, because no side was repeated.
	Unknown Verdict = "not known: no repetitions"
	// UnknownBest is one between the best of several points and a best that was published.
	UnknownBest Verdict = "not known: the best of several points"
)

// Attempt is one time that a repetition was run.
type Attempt struct {
	// Repetition from 1; of a warm-up, from 1 as well. Attempt from 1.
	Repetition int  `json:"repetition"`
	Attempt    int  `json:"attempt"`
	WarmUp     bool `json:"warmUp,omitempty"`
	// Step is the phase, empty when there is only one.
	Step     string    `json:"step,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	// Error says why there is no result; Invalid says what disturbed it.
	Error   string              `json:"error,omitempty"`
	Invalid string              `json:"invalid,omitempty"`
	Samples []benchmarks.Sample `json:"samples,omitempty"`
	// Telemetry is what the servers did meanwhile.
	Telemetry []telemetry.Summary `json:"telemetry,omitempty"`
}
