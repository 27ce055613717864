// Package results defines the form in which complete results are stored, exported, reported and compared: one document for a BenchmarkRun
// or BenchmarkSuite, as JSON and as CSV. It is created from a run's status and records, or from an output that was saved elsewhere.
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

// Format identifies this version of the documents. Readers refuse others.
const Format = "parallelfs.dev/results/v1"

// Suite is the document of a BenchmarkSuite.
type Suite struct {
	Format    string    `json:"format"`
	Name      string    `json:"name"`
	Namespace string    `json:"namespace"`
	UID       string    `json:"uid"`
	Variants  []Variant `json:"variants"`
}

// Variant holds a suite's results for one variant.
type Variant struct {
	Name  string `json:"name"`
	Scale int32  `json:"scale,omitempty"`
	// Runs are in the order of the suite, with their names there.
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
	// Spec is the spec of the run. For a saved output, it has the tool and the known parameters.
	Spec       v1alpha1.BenchmarkRunSpec `json:"spec"`
	Started    time.Time                 `json:"started,omitzero"`
	Ended      time.Time                 `json:"ended,omitzero"`
	Provenance Provenance                `json:"provenance,omitzero"`
	Points     []Point                   `json:"points"`
	// Comparison is the comparison with spec.baseline, or nil.
	Comparison *Comparison `json:"comparison,omitempty"`
}

// Comparison names the other side of a comparison, and describes how comparable the two are. The metrics contain the figures.
type Comparison struct {
	// Of names the other side: a run, or a published table.
	Of string `json:"of"`
	// Summary is a sentence without its period.
	Summary string `json:"summary"`
	// Refused lists differences that make the numbers incomparable. Unless they are allowed, nothing was compared.
	Refused []Difference `json:"refused,omitempty"`
	// Differs lists other differences: versions, configuration, clients, placement.
	Differs []Difference `json:"differs,omitempty"`
}

// Sentence returns the summary with all differences.
func (c Comparison) Sentence() string {
	parts := []string{c.Summary}
	for _, d := range slices.Concat(c.Refused, c.Differs) {
		parts = append(parts, d.String())
	}
	return strings.Join(parts, "; ")
}

// Difference is a property that differs between the two sides of a comparison.
type Difference struct {
	What string `json:"what"`
	// Here is its value for the run, and There for the other side.
	Here  string `json:"here"`
	There string `json:"there"`
}

// String describes it, such as "fio.directIO is true here and false there".
func (d Difference) String() string {
	return fmt.Sprintf("%s is %s here and %s there", d.What, d.Here, d.There)
}

// BestOf is the value of a published point's parameter if the source has only the best result over that parameter.
const BestOf = "best"

// Provenance describes the systems and software of the measurement.
type Provenance struct {
	v1alpha1.RunProvenance `json:",inline"`
	// FileSystemSpec is the spec of the FileSystem at the start of the run. Servers and Targets list what the run used, with versions, pinning
	// and devices: the servers and targets of its storage pools, and the servers that serve all pools. Each list has the first 128 by name.
	// The counts contain the totals.
	FileSystemSpec *v1alpha1.FileSystemSpec `json:"fileSystemSpec,omitempty"`
	Servers        []Server                 `json:"servers,omitempty"`
	Targets        []Target                 `json:"targets,omitempty"`
	// Operator is the version of the operator.
	Operator string `json:"operator,omitempty"`
}

// Server is one server as described by the filesystem and its FileSystemNode.
type Server struct {
	// Name is the name of the server in its filesystem: its member and its node, such as "meta-0.mds1".
	Name string        `json:"name,omitempty"`
	Role v1alpha1.Role `json:"role,omitempty"`
	Node string        `json:"node,omitempty"`
	// StoragePool is the pool of a storage server.
	StoragePool string `json:"storagePool,omitempty"`
	// Slot is the number of a metadata server on its node.
	Slot int32 `json:"slot,omitempty"`
	// ID is the filesystem's own number of the server, or 0 if there is none.
	ID int32 `json:"id,omitempty"`
	// Target is the target of a management service or metadata server: the StorageTarget, or the directory on the node.
	Target string `json:"target,omitempty"`
	// Address is the host and port of the server.
	Address string `json:"address,omitempty"`
	// Version is the version that the server reported.
	Version string `json:"version,omitempty"`
	// State is Online if the filesystem reported the server as serving, and Offline otherwise.
	State v1alpha1.ServiceState `json:"state,omitempty"`
	// Placement is the server's placement according to its node's kernel; absent on a node without an agent.
	Placement *v1alpha1.Placement `json:"placement,omitempty"`
	// Message describes what was wrong with the server; empty if nothing was.
	Message string `json:"message,omitempty"`
}

// Target is one storage target as described by the filesystem and its StorageTarget or FileSystemNode.
type Target struct {
	// Name is the name of the target: node and directory.
	Name string `json:"name,omitempty"`
	Node string `json:"node,omitempty"`
	// StoragePool is the pool of the target.
	StoragePool string `json:"storagePool,omitempty"`
	// Directory is the target's directory on its node.
	Directory string `json:"directory,omitempty"`
	// ID is the filesystem's own number of the target, or 0 if there is none.
	ID int32 `json:"id,omitempty"`
	// StorageTarget is the StorageTarget whose disk contains that directory; empty for a directory on the node.
	StorageTarget string `json:"storageTarget,omitempty"`
	// State is Online if the filesystem reported the target as serving data, and Offline otherwise.
	State v1alpha1.ServiceState `json:"state,omitempty"`
	// Removal is the progress of moving this target's data elsewhere; absent if that was not requested.
	Removal v1alpha1.RemovalState `json:"removal,omitempty"`
	// CapacityBytes is the size of the target, and UsedBytes the used part of it.
	CapacityBytes int64 `json:"capacityBytes,omitempty"`
	UsedBytes     int64 `json:"usedBytes,omitempty"`
	// Message describes what was wrong with the target; empty if nothing was.
	Message string `json:"message,omitempty"`
}

// Point is one point of a run.
type Point struct {
	Index int `json:"index"`
	// Parameters lists all parameters with a value at the point, the swept and derived ones first (see Values). A document made from a status
	// has only those.
	Parameters []Value             `json:"parameters,omitempty"`
	State      v1alpha1.PointState `json:"state"`
	Message    string              `json:"message,omitempty"`
	Command    []string            `json:"command,omitempty"`
	// Options lists the options on a saved output's command line that have no field in a spec, as the tool printed them.
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

// Metric is one measured quantity of a point. All numbers are in Unit; NaN is left out.
type Metric struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	// Better is the direction in which values are better.
	Better v1alpha1.Better `json:"better,omitempty"`
	// Value is computed by the run's statistic.
	Value float64 `json:"value"`
	Mean  float64 `json:"mean"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// Median, StdDev (n-1) and Confidence (half of the 95 % interval of the mean) are absent if there are too few samples.
	Median     *float64 `json:"median,omitempty"`
	StdDev     *float64 `json:"stdDev,omitempty"`
	Confidence *float64 `json:"confidence,omitempty"`
	// Outliers lists the repetitions, from 1, that are far from the others.
	Outliers []int32 `json:"outliers,omitempty"`
	// Samples counts the samples; it is 0 for a figure that was published without their number.
	Samples int `json:"samples"`
	// Speedup and Efficiency (1 is perfect) are computed along spec.along, and absent without it.
	Speedup    *float64 `json:"speedup,omitempty"`
	Efficiency *float64 `json:"efficiency,omitempty"`
	// Baseline is the value of spec.baseline at this point, or nil.
	Baseline *Baseline `json:"baseline,omitempty"`
}

// Baseline is another value of the same metric at the same parameters.
type Baseline struct {
	// Of names its source: a run, or a published table.
	Of    string  `json:"of"`
	Value float64 `json:"value"`
	// Change is the relative difference: 0.03 is 3 % more than the baseline.
	Change float64 `json:"change"`
	// Verdict rates the difference as better, worse, or neither.
	Verdict Verdict `json:"verdict"`
}

// Verdict is the meaning of a difference.
type Verdict string

// The verdicts.
const (
	// Better means that chance does not explain the difference, among all that were compared together, and that it is at least the tolerance.
	Better Verdict = "better"
	// Worse is the opposite of Better.
	Worse Verdict = "worse"
	// WithinNoise means that the variation between repetitions explains the difference.
	WithinNoise Verdict = "within the noise"
	// Small means that the difference is beyond the noise, but below the tolerance.
	Small Verdict = "below the tolerance"
	// Unrated means that the metric is neither good nor bad.
	Unrated Verdict = "neither good nor bad"
	// Unknown means that the difference can't be rated, because neither side was repeated.
	Unknown Verdict = "not known: no repetitions"
	// UnknownBest means that the best of several points is compared with a published best.
	UnknownBest Verdict = "not known: the best of several points"
)

// Attempt is one run of a repetition.
type Attempt struct {
	// Repetition counts from 1; warm-ups are counted separately, also from 1. Attempt counts from 1.
	Repetition int  `json:"repetition"`
	Attempt    int  `json:"attempt"`
	WarmUp     bool `json:"warmUp,omitempty"`
	// Step is the phase; empty if there is only one.
	Step     string    `json:"step,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	ExitCode *int32    `json:"exitCode,omitempty"`
	// Error is the reason why there is no result, and Invalid describes the disturbance.
	Error   string              `json:"error,omitempty"`
	Invalid string              `json:"invalid,omitempty"`
	Samples []benchmarks.Sample `json:"samples,omitempty"`
	// Telemetry is the activity of the servers during the attempt.
	Telemetry []telemetry.Summary `json:"telemetry,omitempty"`
}
