// Package scope holds the input of one pass over a BenchmarkRun, and what follows from it: the turns and the next one, its nodes and its
// directories. Nothing in it reads from or writes to the cluster.
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

// Jobs returns all jobs of the run.
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

// Scope is the input of decide.
type Scope struct {
	Run *v1alpha1.BenchmarkRun
	Now time.Time
	// Poll is Reconciler.PollInterval.
	Poll time.Duration
	// FileSystem is nil while there is none of that name, and for a run on a volume.
	FileSystem *v1alpha1.FileSystem
	// Volume is the volume that a run measures; nil for a FileSystem.
	Volume *Volume
	Mount  backend.Mount
	// Management builds the jobs of tools that a management service runs, nil for a filesystem without one.
	Management backend.Benchmarker
	// Servers decides which tools measure the servers on their own nodes, nil for a filesystem without such tools.
	Servers backend.ServerMeasurer
	// Mounted lists the nodes that mount the filesystem, sorted. Clients lists those of them that the run selects.
	Mounted []string
	Clients []placement.Node
	// Sets holds the DaemonSets of the filesystem, which prove that pods are its own.
	Sets owned.Controllers
	// Mounters holds the pods that mount the filesystem, by node.
	Mounters map[string]*corev1.Pod
	// Members holds the filesystem's servers and targets.
	Members members.Members
	// Inventories holds what the agents report, by node.
	Inventories map[string]*v1alpha1.NodeInventory
	// Nodes holds the nodes of the cluster, whose kernels are recorded.
	Nodes map[string]*corev1.Node
	// Invalid is what is wrong with the spec, whatever the cluster contains.
	Invalid string
	// Parameters holds those of the tool, with the values of the spec.
	Parameters []benchmarks.Parameter
	Points     []benchmarks.Point
	Plans      []benchmarks.Plan
	// Image is the image with the tool, empty if none is configured.
	Image   string
	Records turns.Records
	// Outputs holds the ConfigMaps with the records and the raw output of points.
	Outputs []corev1.ConfigMap
	// RawExceeds is true for a run that has ended and whose raw output must be removed, because the runs of its namespace have too much.
	RawExceeds bool
	// Provenance is what was found before the first point. Published is the state in the ConfigMap of results.
	Provenance Provenance
	Published  string
	// Children holds the jobs that run turns. There is at most one, unless another program created more.
	Children []children.Child
	// Cleaner removes the run's files, Checker checks image and space, Exporter copies the results elsewhere.
	Cleaner, Checker, Exporter *children.Child
	// Lingering names pods of removed jobs that have not ended.
	Lingering []string
	// MPIMissing is true if the run needs MPIJobs and the cluster does not serve them.
	MPIMissing bool
	// Others holds the other runs of the filesystem, in the order of the queue. Active names the first of them that has a job, and Before the
	// last of them that comes before this one.
	Others         []Other
	Active, Before string
	// Daemons holds the pods of the filesystem's servers and of the run's clients, and Targets its StorageTargets. They are read only for a
	// pass that takes a fingerprint.
	Daemons []corev1.Pod
	Targets []v1alpha1.StorageTarget
	// Dropped is the progress of dropping the caches for the next turn.
	Dropped Drop
	// Baseline holds the results to compare with, and BaselineOf names them. BaselineProblem is why there are none.
	Baseline        *results.Run
	BaselineOf      string
	BaselineProblem string
}

// Other is another run.
type Other struct {
	Name string
	UID  types.UID
}

// OnlyWaits reports whether a run has nothing yet and waits for the one before it, so that a pass reads only the queue.
func (w *Scope) OnlyWaits() bool {
	s := &w.Run.Status
	begun := s.StartTime != nil || s.CompletionTime != nil || s.Directory != "" || s.Provenance != nil
	return w.Before != "" && !begun && !w.Run.Spec.Suspend && w.Run.DeletionTimestamp.IsZero()
}

// Distributed reports whether a command needs an MPIJob.
func Distributed(launch benchmarks.Launch) bool {
	switch launch {
	case benchmarks.OnLauncher, benchmarks.OnProcesses, benchmarks.OnEachProcess, benchmarks.OnEachClient:
		return true
	case benchmarks.OnClient, benchmarks.OnServers, benchmarks.OnManagement:
	}
	return false
}

// Any reports whether a step of a point is started in such a way.
func (w *Scope) Any(is func(benchmarks.Launch) bool) bool {
	return slices.ContainsFunc(w.Plans, func(p benchmarks.Plan) bool {
		return slices.ContainsFunc(p.Steps, func(s benchmarks.Step) bool { return is(s.Command.Launch) })
	})
}

// OnClients reports whether a run works in the mounted filesystem.
func OnClients(launch benchmarks.Launch) bool {
	return launch != benchmarks.OnServers && launch != benchmarks.OnManagement
}

// OfRun selects the objects with the run's label.
func (w *Scope) OfRun() []client.ListOption {
	return []client.ListOption{client.InNamespace(w.Run.Namespace), client.MatchingLabels{v1alpha1.LabelBenchmarkRun: w.Run.Name}}
}

// Trust returns the present fingerprint for a turn on these nodes.
func (w *Scope) Trust(nodes []string) trust.Fingerprint {
	if w.Volume != nil {
		return trust.OfClaim(w.ClaimName(), w.Volume.Claim)
	}
	return trust.TakeFingerprint(w.FileSystem, w.Daemons, w.Targets, nodes)
}
