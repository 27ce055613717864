package benchmarkrun

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/servers"
)

// decideWaiting names what must be there before a turn of a point can start.
func decideWaiting(w *world, point int) (decision, bool) {
	name := w.run.Spec.FileSystem.Name
	if w.fileSystem == nil {
		return w.waits(v1alpha1.ReasonWaitingForFileSystem, "there is no FileSystem %s in namespace %s", name, w.run.Namespace), true
	}
	if d, refused := w.refused(); refused {
		return d, true
	}
	ready := meta.FindStatusCondition(w.fileSystem.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !w.fileSystem.DeletionTimestamp.IsZero():
		return w.waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is being deleted", name), true
	case ready == nil:
		return w.waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is not Ready yet", name), true
	case ready.Status != metav1.ConditionTrue:
		return w.waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is not Ready (%s)", name, ready.Reason), true
	case meta.IsStatusConditionTrue(w.fileSystem.Status.Conditions, v1alpha1.ConditionDegraded):
		degraded := meta.FindStatusCondition(w.fileSystem.Status.Conditions, v1alpha1.ConditionDegraded)
		return w.waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is Degraded (%s): what would be measured is not what its spec asks for",
			name, degraded.Reason), true
	case meta.IsStatusConditionTrue(w.fileSystem.Status.Conditions, v1alpha1.ConditionStalled):
		stalled := meta.FindStatusCondition(w.fileSystem.Status.Conditions, v1alpha1.ConditionStalled)
		return w.waits(v1alpha1.ReasonWaitingForFileSystem, "FileSystem %s is Stalled (%s): what runs is not what its spec asks for",
			name, stalled.Reason), true
	case w.mount.Path == "" && w.any(onClients):
		return w.waits(v1alpha1.ReasonNoClients, "FileSystem %s has no clients: set its spec.clients", name), true
	case w.active != "":
		return w.waits(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s is using FileSystem %s", w.active, name), true
	case w.older != "":
		return w.waits(v1alpha1.ReasonWaitingForRun, "BenchmarkRun %s, which is older, measures FileSystem %s first", w.older, name), true
	}
	if w.mpiMissing {
		d := stalled(v1alpha1.ReasonMPIOperatorMissing, "the cluster has no MPIJob (kubeflow.org/v2beta1), which a distributed run needs; "+
			"install the MPI operator: it is part of the Helm chart (value mpiOperator.enabled), or see https://github.com/kubeflow/mpi-operator")
		d.after = mpiInterval
		return d, true
	}
	if need := w.clientsNeeded(point); len(w.clients) < need {
		return w.waits(v1alpha1.ReasonNoClients, "%d nodes are needed that match spec.clients.nodeSelector and have mounted "+
			"FileSystem %s; there are %d", need, name, len(w.clients)), true
	}
	return w.unplaced()
}

// waits is a decision that looks again soon. Whoever waits lets the lease go: what is waited for may itself need it, as the repair of
// a FileSystem does.
func (w *world) waits(reason, format string, args ...any) decision {
	d := w.reconciling(reason, format, args...)
	d.after, d.lease = retryInterval, leaseFree
	return d
}

// refused says what no waiting will mend.
func (w *world) refused() (decision, bool) {
	if _, err := w.pools(); err != nil {
		return stalled(v1alpha1.ReasonInvalidSpec, err.Error()), true
	}
	only := func(launch benchmarks.Launch) bool {
		return w.any(func(l benchmarks.Launch) bool { return l == launch })
	}
	tool, kind := w.run.Spec.Tool, w.fileSystem.Spec.Type
	switch {
	case only(benchmarks.OnServers) && w.run.Spec.Image != "":
		return stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("spec.image can't be set for %s: it would run privileged on the servers; "+
			"make the run without it: the image is that of the Helm chart's value images.benchmarks.%s", tool, tool)), true
	case only(benchmarks.OnServers) && kind != lustre:
		return stalled(v1alpha1.ReasonBackendUnsupported, fmt.Sprintf("%s measures the servers of a Lustre; FileSystem %s is a %s: "+
			"measure it from its clients, with another tool", tool, w.fileSystem.Name, kind)), true
	case only(benchmarks.OnManagement) && w.management == nil:
		return stalled(v1alpha1.ReasonBackendUnsupported, fmt.Sprintf("%s is a benchmark that some filesystems run themselves, and this one does not; "+
			"FileSystem %s is a %s: measure it from its clients, with another tool", tool, w.fileSystem.Name, kind)), true
	case w.image == "" && w.needsImage():
		users := "spec.image, or "
		if only(benchmarks.OnServers) {
			users = ""
		}
		return stalled(v1alpha1.ReasonImageRequired, fmt.Sprintf("no image has %s: set %sthe Helm chart's value "+
			"images.benchmarks.%s (--benchmark-image=%s=<image> of the manager); docs/benchmark-images.md says what must be in it and "+
			"how to make one", tool, users, tool, tool)), true
	}
	return decision{}, false
}

// lustre is the type of a FileSystem with servers that a tool can be started on.
const lustre v1alpha1.FileSystemType = "Lustre"

// needsImage is false for a run whose jobs are all made by the backend.
func (w *world) needsImage() bool {
	return w.any(func(l benchmarks.Launch) bool { return l != benchmarks.OnManagement })
}

// clientsNeeded is the largest number of clients of this point and those that follow: a run that can't end is better not started.
func (w *world) clientsNeeded(point int) int {
	if !w.any(onClients) {
		return 0
	}
	need := 1
	for i := range w.plans {
		if i == point || !w.state(i).over {
			need = max(need, w.clientsOf(i))
		}
	}
	return need
}

// unplaced names the first point whose processes find no room on the clients, and nodes that can't drop caches.
func (w *world) unplaced() (decision, bool) {
	for i, plan := range w.plans {
		for step := range plan.Steps {
			if !onClients(plan.Steps[step].Command.Launch) {
				continue
			}
			if _, err := w.place(i, step); err != nil {
				d := stalled(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s: %v", describe(w.points[i]), err))
				d.after = mpiInterval // another node, or a larger one, would mend it
				return d, true
			}
		}
	}
	if missing := w.withoutAgent(); len(missing) > 0 {
		d := stalled(v1alpha1.ReasonPreflightFailed, fmt.Sprintf("spec.caches: no agent runs on %s, which could drop their caches; "+
			"label them for the agent (value agent.nodeSelector of the Helm chart), or leave spec.caches out", sentenceList(missing)))
		d.after = mpiInterval
		return d, true
	}
	return decision{}, false
}

// withoutAgent are the nodes whose caches are to be dropped, and that no agent speaks for.
func (w *world) withoutAgent() []string {
	var out []string
	for i := range w.plans {
		for _, node := range w.dropNodes(turn{point: i}) {
			if w.inventories[node] == nil && !slices.Contains(out, node) {
				out = append(out, node)
			}
		}
	}
	slices.Sort(out)
	return out
}

// dropNodes are the nodes whose caches are dropped before a turn, sorted.
func (w *world) dropNodes(t turn) []string {
	caches := w.run.Spec.Caches
	if caches == nil || w.fileSystem == nil {
		return nil
	}
	var out []string
	if caches.Drop != v1alpha1.CachesOfServers && onClients(w.plans[t.point].Steps[t.step].Command.Launch) {
		placed, err := w.place(t.point, t.step)
		if err == nil {
			for _, p := range placed {
				out = append(out, p.Node)
			}
		}
	}
	if caches.Drop != v1alpha1.CachesOfClients {
		out = append(out, servers.Nodes(w.fileSystem)...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
