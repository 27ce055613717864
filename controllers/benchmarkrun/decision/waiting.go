package decision

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend"
)

// decideWaiting names what the next turn still needs before it can start.
func decideWaiting(w *scope.Scope) (Decision, bool) {
	if w.Volume != nil {
		return decideVolume(w)
	}
	name := w.Run.Spec.Target.FileSystem.Name
	if w.FileSystem == nil {
		return waits(v1alpha1.ReasonWaitingForFileSystem, "there is no FileSystem %s in namespace %s", name, w.Run.Namespace), true
	}
	if d, refused := refused(w); refused {
		return d, true
	}
	if d, behind := inLine(w); behind {
		return d, true
	}
	if why := stopsFor(w); why != "" {
		return waits(v1alpha1.ReasonWaitingForFileSystem, "%s", why), true
	}
	ready := meta.FindStatusCondition(w.FileSystem.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !w.FileSystem.DeletionTimestamp.IsZero():
		return waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is being deleted", name), true
	case ready == nil:
		return waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is not Ready yet", name), true
	case ready.Status != metav1.ConditionTrue:
		return waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is not Ready (%s)", name, ready.Reason), true
	case meta.IsStatusConditionTrue(w.FileSystem.Status.Conditions, v1alpha1.ConditionDegraded):
		degraded := meta.FindStatusCondition(w.FileSystem.Status.Conditions, v1alpha1.ConditionDegraded)
		return waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is Degraded (%s): what would be measured is not what its spec asks for",
			name, degraded.Reason), true
	case meta.IsStatusConditionTrue(w.FileSystem.Status.Conditions, v1alpha1.ConditionStalled):
		stalled := meta.FindStatusCondition(w.FileSystem.Status.Conditions, v1alpha1.ConditionStalled)
		return waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is Stalled (%s): what runs is not what its spec asks for",
			name, stalled.Reason), true
	case w.Mount.Path == "" && w.Any(scope.OnClients):
		return waits(v1alpha1.ReasonNoClients, "FileSystem %s has no clients: set its spec.clients", name), true
	case w.Active != "":
		return waits(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s is using FileSystem %s", w.Active, name), true
	}
	if d, full := fullTargets(w); full {
		return d, true
	}
	if d, missing := withoutMPI(w); missing {
		return d, true
	}
	if need := clientsNeeded(w); len(w.Clients) < need {
		return waits(v1alpha1.ReasonNoClients, "the run needs %d nodes that match spec.clients.nodeSelector and have mounted "+
			"FileSystem %s; there are %d", need, name, len(w.Clients)), true
	}
	return unplaced(w)
}

// inLine waits if an older run comes first.
func inLine(w *scope.Scope) (Decision, bool) {
	if w.Before == "" {
		return Decision{}, false
	}
	// The end of that run triggers this one, and by then it may have to wait for something else.
	d := waits(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s, which is older, measures %s first", w.Before, w.Run.Spec.Target.String())
	d.After = 0
	return d, true
}

// withoutMPI stalls a run of several clients if the cluster serves no MPIJobs.
func withoutMPI(w *scope.Scope) (Decision, bool) {
	if !w.MPIMissing {
		return Decision{}, false
	}
	d := Stalled(v1alpha1.ReasonMPIOperatorMissing, "the cluster has no MPIJob (kubeflow.org/v2beta1), which a distributed run needs; "+
		"install the MPI operator: it is part of the Helm chart (value mpiOperator.enabled), or see https://github.com/kubeflow/mpi-operator")
	d.After = scope.MPIInterval
	return d, true
}

// withoutImage stalls a run if no image has the tool.
func withoutImage(w *scope.Scope) (Decision, bool) {
	if w.Image != "" || !needsImage(w) {
		return Decision{}, false
	}
	tool := w.Run.Spec.ToolName()
	return Stalled(v1alpha1.ReasonImageRequired, fmt.Sprintf("no image has %s: set spec.image, or the Helm chart's value "+
		"images.benchmarks.%s (--benchmark-image=%s=<image> of the manager); docs/benchmark-images.md lists what must be in it and "+
		"how to make one", tool, tool, tool)), true
}

// stopsFor names the changes of the FileSystem for which a run releases its lease at once; empty if there are none.
func stopsFor(w *scope.Scope) string {
	if w.FileSystem == nil {
		return ""
	}
	held := meta.FindStatusCondition(w.FileSystem.Status.Conditions, v1alpha1.ConditionChangesHeld)
	if held == nil || held.Status != metav1.ConditionTrue || held.Reason != v1alpha1.ReasonBenchmarkStopping {
		return ""
	}
	return fmt.Sprintf("FileSystem %s has changes that do not wait for a benchmark (its condition %s names them); it is measured after them",
		w.FileSystem.Name, v1alpha1.ConditionChangesHeld)
}

// waits is a decision to check again soon. It releases the lease, because the event that the run waits for may need the lease, for example
// the repair of a FileSystem.
func waits(reason, format string, args ...any) Decision {
	d := reconciling(reason, format, args...)
	d.After, d.Lease = scope.RetryInterval, LeaseFree
	return d
}

// refused returns a problem that no waiting will solve.
func refused(w *scope.Scope) (Decision, bool) {
	if _, err := w.Pools(); err != nil {
		return Stalled(v1alpha1.ReasonInvalidSpec, err.Error()), true
	}
	only := func(launch benchmarks.Launch) bool {
		return w.Any(func(l benchmarks.Launch) bool { return l == launch })
	}
	tool, kind := w.Run.Spec.ToolName(), w.FileSystem.Spec.Type
	switch {
	case only(benchmarks.OnServers) && w.Run.Spec.Image != "":
		return Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.image can't be set for %s: it would run privileged on the servers; "+
			"make the run without it: the servers' own %s runs", tool, tool)), true
	case only(benchmarks.OnServers) && (w.Servers == nil || !w.Servers.MeasuresServers(tool)):
		return Stalled(v1alpha1.ReasonBackendUnsupported, fmt.Sprintf("%s measures servers on their own nodes, and it can't measure those of this one; "+
			"FileSystem %s is a %s: measure it from its clients, with another tool", tool, w.FileSystem.Name, kind)), true
	case only(benchmarks.OnManagement) && w.Management == nil:
		return Stalled(v1alpha1.ReasonBackendUnsupported, fmt.Sprintf("%s is a benchmark that some filesystems run themselves, and this one does not; "+
			"FileSystem %s is a %s: measure it from its clients, with another tool", tool, w.FileSystem.Name, kind)), true
	}
	return withoutImage(w)
}

// needsImage returns false for a run whose tools come with the filesystem, or are those of its servers.
func needsImage(w *scope.Scope) bool {
	return w.Any(func(l benchmarks.Launch) bool { return l != benchmarks.OnManagement && l != benchmarks.OnServers })
}

// clientsNeeded returns the largest number of clients of a point that is not over, because a run that can't finish should not start.
func clientsNeeded(w *scope.Scope) int {
	if !w.Any(scope.OnClients) {
		return 0
	}
	need := 1
	for i := range w.Plans {
		if !w.State(i).Over {
			need = max(need, w.ClientsOf(i))
		}
	}
	return need
}

// reservedShare is the part of each storage target that a benchmark on the servers leaves free, as one of so many, so that programs that
// write meanwhile do not fail.
const reservedShare = 20

// fullTargets names the storage targets without room for what a benchmark on the servers writes to each.
func fullTargets(w *scope.Scope) (Decision, bool) {
	need := int64(0)
	for i := range w.Plans {
		if !w.State(i).Over {
			need = max(need, w.Plans[i].Demand.EachTarget)
		}
	}
	var full []string
	for i := range w.Members.Targets {
		t := &w.Members.Targets[i]
		free := max(0, t.CapacityBytes-t.CapacityBytes/reservedShare-t.UsedBytes)
		switch {
		case t.StoragePool == "" || need <= free:
		case t.CapacityBytes == 0:
			full = append(full, t.Name+" (size unknown)")
		default:
			full = append(full, fmt.Sprintf("%s (%s)", t.Name, v1alpha1.Bytes(free)))
		}
	}
	if need == 0 || len(full) == 0 {
		return Decision{}, false
	}
	d := Stalled(v1alpha1.ReasonPreflightFailed, fmt.Sprintf("%s writes %s to each storage target, and %d of them have less room: make room, or a smaller run. "+
		"One %dth of each stays free for programs. Room: %s", w.Run.Spec.Tool, v1alpha1.Bytes(need), len(full), reservedShare, backend.List(full)))
	d.After = scope.MPIInterval
	return d, true
}

// unplaced names the first point whose processes do not fit on the clients, and nodes that can't drop caches. A point that is over needs
// neither.
func unplaced(w *scope.Scope) (Decision, bool) {
	for i, plan := range w.Plans {
		for step := range plan.Steps {
			if w.State(i).Over || !scope.OnClients(plan.Steps[step].Command.Launch) {
				continue
			}
			if _, err := w.Place(i, step); err != nil {
				d := Stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %v", scope.Describe(w.Points[i]), err))
				d.After = scope.MPIInterval // another node, or a larger one, would solve it
				return d, true
			}
		}
	}
	if missing := withoutAgent(w); len(missing) > 0 {
		d := Stalled(v1alpha1.ReasonPreflightFailed, fmt.Sprintf("spec.caches: no agent runs on %s, which could drop their caches; "+
			"label them for the agent (value agent.nodeSelector of the Helm chart), or leave spec.caches out", text.SentenceList(missing)))
		d.After = scope.MPIInterval
		return d, true
	}
	return Decision{}, false
}

// withoutAgent returns the nodes whose caches must be dropped and that have no agent.
func withoutAgent(w *scope.Scope) []string {
	var out []string
	for i := range w.Plans {
		for _, node := range w.DropNodes(turns.Turn{Point: i}) {
			if !w.State(i).Over && w.Inventories[node] == nil && !slices.Contains(out, node) {
				out = append(out, node)
			}
		}
	}
	slices.Sort(out)
	return out
}
