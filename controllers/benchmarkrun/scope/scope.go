// Package scope is all that one pass over a BenchmarkRun knows, and what follows from it: which turns there are and which comes next, on
// which nodes and in which directories. Nothing in it reads or writes.
package scope

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/members"
	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
)

// Jobs are all that the run has.
func (w *Scope) Jobs() []*children.Child {
	var out []*children.Child
	for i := range w.Children {
		out = append(out, &w.Children[i])
	}
	for _, c := range []*children.Child{w.Cleaner, w.Checker, w.Exporter} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

// Scope is all that decide may look at.
type Scope struct {
	Run *v1alpha1.BenchmarkRun
	Now time.Time
	// Poll is Reconciler.PollInterval.
	Poll time.Duration
	// FileSystem is nil while there is none of that name, and for a run on a volume.
	FileSystem *v1alpha1.FileSystem
	// Volume is what a run measures that is no FileSystem; nil for a FileSystem.
	Volume *Volume
	Mount  backend.Mount
	// Management makes the jobs of tools that a management service runs, nil for a filesystem that has none.
	Management backend.Benchmarker
	// Servers says which tools measure the servers on their own nodes, nil for a filesystem of which none does.
	Servers backend.ServerMeasurer
	// Mounted are the nodes that mount the filesystem, sorted; clients are those of them that the run selects.
	Mounted []string
	Clients []placement.Node
	// Sets are the DaemonSets of the filesystem, which prove that pods are its own.
	Sets owned.Controllers
	// Mounters are the pods that mount the filesystem, by node.
	Mounters map[string]*corev1.Pod
	// Members are the filesystem's servers and targets.
	Members members.Members
	// Inventories are what the agents say, by node.
	Inventories map[string]*v1alpha1.NodeInventory
	// kernels are those of the nodes, as Kubernetes has them.
	Nodes map[string]*corev1.Node
	// Invalid says what is wrong with the spec, whatever the cluster holds.
	Invalid string
	// Parameters are those of the tool, with the values of the spec.
	Parameters []benchmarks.Parameter
	Points     []benchmarks.Point
	Plans      []benchmarks.Plan
	// Image holds the tool, empty when nobody has named one.
	Image   string
	Records turns.Records
	// Outputs are the ConfigMaps with the records and the raw output of points.
	Outputs []corev1.ConfigMap
	// RawExceeds is true for a run that has ended whose raw output goes, because the runs of its namespace have too much.
	RawExceeds bool
	// Provenance is what was found before the first point, and published what the ConfigMap of results is about.
	Provenance Provenance
	Published  string
	// Children are the jobs that run turns; there is at most one, unless somebody else made more.
	Children []children.Child
	// Cleaner removes the run's files, checker looks at image and space, exporter writes the results elsewhere.
	Cleaner, Checker, Exporter *children.Child
	// Lingering names pods of removed jobs that have not ended.
	Lingering []string
	// MPIMissing is true when the run needs MPIJobs and the cluster does not serve them.
	MPIMissing bool
	// Others are the other runs of the filesystem, in their turn. Active names the first of them that has a job, and before the last of
	// them whose turn comes before this one's.
	Others         []Other
	Active, Before string
	// Daemons are the pods of the filesystem's servers and of the run's clients, and targets its StorageTargets. They are read only for a
	// pass that takes a fingerprint.
	Daemons []corev1.Pod
	Targets []v1alpha1.StorageTarget
	// Dropped is how far the dropping of caches for the next turn is.
	Dropped Drop
	// Baseline is what the results are compared with, and baselineOf names it; baselineProblem says why there is none.
	Baseline        *results.Run
	BaselineOf      string
	BaselineProblem string
}

// Other is another run.
type Other struct {
	Name string
	UID  types.UID
}

// OnlyWaits is true for a run that has nothing yet, and waits for the one before it: there is nothing to look at but the line.
func (w *Scope) OnlyWaits() bool {
	s := &w.Run.Status
	begun := s.StartTime != nil || s.CompletionTime != nil || s.Directory != "" || s.Provenance != nil
	return w.Before != "" && !begun && !w.Run.Spec.Suspend && w.Run.DeletionTimestamp.IsZero()
}

// Distributed is true when a command needs an MPIJob.
func Distributed(launch benchmarks.Launch) bool {
	switch launch {
	case benchmarks.OnLauncher, benchmarks.OnProcesses, benchmarks.OnEachProcess, benchmarks.OnEachClient:
		return true
	case benchmarks.OnClient, benchmarks.OnServers, benchmarks.OnManagement:
	}
	return false
}

// Any is true when a step of a point is started in such a way.
func (w *Scope) Any(is func(benchmarks.Launch) bool) bool {
	return slices.ContainsFunc(w.Plans, func(p benchmarks.Plan) bool {
		return slices.ContainsFunc(p.Steps, func(s benchmarks.Step) bool { return is(s.Command.Launch) })
	})
}

// OnClients is true when a run works in the mounted filesystem.
func OnClients(launch benchmarks.Launch) bool {
	return launch != benchmarks.OnServers && launch != benchmarks.OnManagement
}

// OfRun selects what carries the run's label.
func (w *Scope) OfRun() []client.ListOption {
	return []client.ListOption{client.InNamespace(w.Run.Namespace), client.MatchingLabels{v1alpha1.LabelBenchmarkRun: w.Run.Name}}
}

// Trust is the fingerprint of now, for a turn on these nodes.
func (w *Scope) Trust(nodes []string) trust.Fingerprint {
	if w.Volume != nil {
		return trust.OfClaim(w.ClaimName(), w.Volume.Claim)
	}
	return trust.TakeFingerprint(w.FileSystem, w.Daemons, w.Targets, nodes)
}
