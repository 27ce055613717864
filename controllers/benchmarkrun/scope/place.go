package scope

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/controllers/benchmarkrun/members"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/spec"
)

// NodeReady reports whether the kubelet reports a node as Ready.
func NodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// Pools returns the storage pools that the run uses, in the order of the points.
func (w *Scope) Pools() ([]string, error) {
	var out []string
	for i := range w.Points {
		pool, err := w.Pool(i)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, pool) {
			out = append(out, pool)
		}
	}
	return out, nil
}

// Pool returns the storage pool of a point.
func (w *Scope) Pool(point int) (string, error) {
	if w.Volume != nil {
		return "", nil // a volume has none
	}
	var names []string
	for _, p := range w.FileSystem.Spec.StoragePools {
		names = append(names, p.Name)
	}
	field, wanted := "spec.target.fileSystem.storagePool", w.Run.Spec.Target.FileSystem.StoragePool
	if value := w.Points[point].Parameters[benchmarks.ParameterStoragePool]; value != wanted && value != "" {
		field, wanted = fmt.Sprintf("storagePool at the point %s", Describe(w.Points[point])), value
	}
	switch {
	case len(names) == 0:
		return "", errors.New("the FileSystem has no storage pool")
	case wanted == "":
		return names[max(0, slices.IndexFunc(names, w.FileSystem.Spec.TakesRest))], nil
	case slices.Contains(names, wanted):
		return wanted, nil
	default:
		return "", fmt.Errorf("%s: FileSystem %s has no pool %q; it has %s", field, w.FileSystem.Name, wanted, strings.Join(names, ", "))
	}
}

// Used returns the members that these points use: those of their storage pools or, for a tool that measures the servers without a given
// pool, all.
func (w *Scope) Used(points ...int) members.Members {
	var pools []string
	for _, i := range points {
		pool, err := w.Pool(i)
		if err != nil {
			continue // the run is refused elsewhere
		}
		asked := w.Run.Spec.Target.FileSystem.StoragePool != "" || w.Points[i].Parameters[benchmarks.ParameterStoragePool] != ""
		if !asked && !w.Any(OnClients) {
			return w.Members
		}
		pools = append(pools, pool)
	}
	return w.Members.Of(pools)
}

// Place returns how many processes of a point run on which client.
func (w *Scope) Place(point, step int) ([]placement.Placed, error) {
	plan, spec := w.Plans[point], w.Run.Spec.Clients
	return placement.Place(placement.Wanted{
		Processes: max(plan.Processes, 1), Clients: w.ClientsOf(point), EachClient: plan.Steps[step].Command.Launch == benchmarks.OnEachClient,
		Spread: spec.Spread, MaxPerNode: int(spec.MaxProcessesPerNode), Oversubscribe: spec.Oversubscribe,
	}, w.Clients)
}

// ClientsOf returns the number of clients that a point requests, 0 if it leaves it open. No point uses more clients than processes.
func (w *Scope) ClientsOf(point int) int {
	plan := w.Plans[point]
	wanted := cmp.Or(plan.Clients, int(w.Run.Spec.Clients.Count))
	single := true
	for _, step := range plan.Steps {
		single = single && step.Command.Launch == benchmarks.OnClient
	}
	if single || w.Volume != nil && wanted == 0 {
		return 1
	}
	return wanted
}

// Directory returns the run's own directory in the filesystem, inside the directory of its pool, in the form of the status. For several
// pools it is /mnt/scratch/{ssd,bulk}/….
func (w *Scope) Directory() string {
	pools, err := w.Pools()
	if err != nil {
		panic(err) // decideWaiting comes first, and refuses a run without a pool
	}
	pool := pools[0]
	if len(pools) > 1 {
		pool = "{" + strings.Join(pools, ",") + "}"
	}
	return path.Join(w.Mount.Path, pool, spec.BenchmarkHome, string(w.Run.UID))
}

// Roots returns the directories that such a name represents, one for each pool.
func (w *Scope) Roots(directory string) []string {
	before, rest, several := strings.Cut(directory, "{")
	pools, after, _ := strings.Cut(rest, "}")
	if !several {
		return []string{directory}
	}
	var out []string
	for pool := range strings.SplitSeq(pools, ",") {
		out = append(out, before+pool+after)
	}
	return out
}

// Root returns the one of them that a point works in.
func (w *Scope) Root(point int) string {
	pool, err := w.Pool(point)
	if err != nil {
		panic(err) // decideWaiting comes first, and refuses a run without a pool
	}
	return path.Join(w.Mount.Path, pool, spec.BenchmarkHome, string(w.Run.UID))
}

// Oversubscribed reports whether a client has more processes than CPUs.
func (w *Scope) Oversubscribed(placed []placement.Placed) bool {
	return slices.ContainsFunc(placed, func(p placement.Placed) bool {
		return slices.ContainsFunc(w.Clients, func(n placement.Node) bool { return n.Name == p.Node && n.CPUs > 0 && p.Processes > n.CPUs })
	})
}

// NodesOf returns the nodes that a turn runs on, which are clients, or servers of a role, sorted; none if the backend chooses.
func (w *Scope) NodesOf(t turns.Turn) ([]string, error) {
	switch command := w.Plans[t.Point].Steps[t.Step].Command; command.Launch {
	case benchmarks.OnManagement:
		return nil, nil
	case benchmarks.OnServers:
		return w.Members.NodesOf(command.Role), nil
	case benchmarks.OnClient, benchmarks.OnLauncher, benchmarks.OnProcesses, benchmarks.OnEachProcess, benchmarks.OnEachClient:
	}
	placed, err := w.Place(t.Point, t.Step)
	if w.Volume != nil {
		return nil, err // the scheduler chooses them
	}
	return placement.Nodes(placed), err
}

// TakingPart returns the clients that a point has processes on, in their order. For a volume they are not known in advance.
func (w *Scope) TakingPart() []placement.Node {
	if w.Volume != nil {
		return nil
	}
	used := map[string]bool{}
	for point := range w.Plans {
		for step := range w.Plans[point].Steps {
			placed, err := w.Place(point, step)
			if err != nil {
				continue // the point is refused elsewhere
			}
			for _, p := range placed {
				used[p.Node] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(w.Clients), func(n placement.Node) bool { return !used[n.Name] })
}
