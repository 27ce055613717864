package benchmarkrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/internal/backend"
)

// world is all that decide may look at.
type world struct {
	run *v1alpha1.BenchmarkRun
	now time.Time
	// poll is Reconciler.PollInterval.
	poll time.Duration
	// fileSystem is nil while there is none of that name.
	fileSystem *v1alpha1.FileSystem
	mount      backend.Mount
	// management makes the jobs of tools that a management service runs, nil for a filesystem that has none.
	management backend.Benchmarker
	// mounted are the nodes that mount the filesystem, sorted; clients are those of them that the run selects.
	mounted []string
	clients []placement.Node
	// inventories are what the agents say, by node.
	inventories map[string]*v1alpha1.NodeInventory
	// kernels are those of the nodes, as Kubernetes has them.
	nodes map[string]*corev1.Node
	// invalid says what is wrong with the spec, whatever the cluster holds.
	invalid string
	// parameters are those of the tool, with the values of the spec.
	parameters []benchmarks.Parameter
	points     []benchmarks.Point
	plans      []benchmarks.Plan
	// image holds the tool, empty when nobody has named one.
	image   string
	records records
	// provenance is what was found before the first point, and published what the ConfigMap of results is about.
	provenance provenance
	published  string
	// children are the jobs that run turns; there is at most one, unless somebody else made more.
	children []child
	// cleaner removes the run's files, checker looks at image and space, exporter writes the results elsewhere.
	cleaner, checker, exporter *child
	// lingering names pods of removed jobs that have not ended.
	lingering []string
	// mpiMissing is true when the run needs MPIJobs and the cluster does not serve them.
	mpiMissing bool
	// active names another run that has a job on the filesystem; older names the run whose turn it is before this one.
	active, older string
	// daemons are the pods of the filesystem, and targets the StorageTargets of the namespace.
	daemons corev1.PodList
	targets []v1alpha1.StorageTarget
	// dropped is how far the dropping of caches for the next turn is.
	dropped drop
	// baseline is what the results are compared with, and baselineOf names it; baselineProblem says why there is none.
	baseline        *results.Run
	baselineOf      string
	baselineProblem string
}

// gather reads all that decide may look at. Jobs and pods are read past the cache: what decide concludes from a job that
// is not there, such as that the repetition must be run, holds only if it is really not there.
func (r *Reconciler) gather(ctx context.Context, run *v1alpha1.BenchmarkRun) (*world, error) {
	w := &world{run: run, now: r.Clock.Now(), poll: r.PollInterval, image: cmp.Or(run.Spec.Image, r.Images.Benchmarks[string(run.Spec.Tool)])}
	r.plan(w)
	for _, step := range []func(context.Context, *world) error{
		r.gatherFileSystem, r.gatherNodes, r.gatherRecords, r.gatherChildren, r.gatherOthers, r.gatherTrust, r.gatherDrop, r.gatherBaseline,
	} {
		if err := step(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// plan expands the sweep.
func (r *Reconciler) plan(w *world) {
	tool, ok := r.Tools[w.run.Spec.Tool]
	if !ok {
		w.invalid = fmt.Sprintf("spec.tool: this operator does not know %q", w.run.Spec.Tool)
		return
	}
	w.parameters = tool.Parameters(&w.run.Spec)
	points, err := sweep.Expand(tool, &w.run.Spec)
	if err != nil {
		w.invalid = err.Error()
		return
	}
	for _, point := range points {
		plan, err := tool.Plan(&w.run.Spec, point)
		if err != nil {
			w.invalid = fmt.Sprintf("%s: %v", describe(point), err)
			return
		}
		w.plans = append(w.plans, plan)
	}
	w.points = points
}

// distributed is true when a command needs an MPIJob.
func distributed(launch benchmarks.Launch) bool {
	switch launch {
	case benchmarks.OnLauncher, benchmarks.OnProcesses, benchmarks.OnEachProcess, benchmarks.OnEachClient:
		return true
	case benchmarks.OnClient, benchmarks.OnServers, benchmarks.OnManagement:
	}
	return false
}

// any is true when a step of a point is started in such a way.
func (w *world) any(is func(benchmarks.Launch) bool) bool {
	return slices.ContainsFunc(w.plans, func(p benchmarks.Plan) bool {
		return slices.ContainsFunc(p.Steps, func(s benchmarks.Step) bool { return is(s.Command.Launch) })
	})
}

// onClients is true when a run works in the mounted filesystem.
func onClients(launch benchmarks.Launch) bool {
	return launch != benchmarks.OnServers && launch != benchmarks.OnManagement
}

func (r *Reconciler) gatherFileSystem(ctx context.Context, w *world) error {
	fs := &v1alpha1.FileSystem{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: w.run.Namespace, Name: w.run.Spec.FileSystem.Name}, fs)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read FileSystem %s: %w", w.run.Spec.FileSystem.Name, err)
	}
	w.fileSystem = fs
	b, ok := r.Backends[fs.Spec.Type]
	if !ok {
		return fmt.Errorf("no backend serves type %q of FileSystem %s", fs.Spec.Type, fs.Name)
	}
	if mounter, ok := b.(backend.Mounter); ok {
		w.mount = mounter.Mount(fs)
	}
	w.management, _ = b.(backend.Benchmarker)
	for _, c := range fs.Status.Clients {
		if c.Mounted {
			w.mounted = append(w.mounted, c.Node)
		}
	}
	slices.Sort(w.mounted)
	return nil
}

// gatherNodes finds the clients, and what the agents say of nodes.
func (r *Reconciler) gatherNodes(ctx context.Context, w *world) error {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	selector := klabels.SelectorFromSet(klabels.Set(w.run.Spec.Clients.NodeSelector))
	w.nodes = map[string]*corev1.Node{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		w.nodes[n.Name] = n
		if selector.Matches(klabels.Set(n.Labels)) && slices.Contains(w.mounted, n.Name) {
			w.clients = append(w.clients, placement.Node{Name: n.Name, CPUs: int(n.Status.Capacity.Cpu().Value())})
		}
	}
	slices.SortFunc(w.clients, func(a, b placement.Node) int { return strings.Compare(a.Name, b.Name) })
	var inventories v1alpha1.NodeInventoryList
	if err := r.Client.List(ctx, &inventories); err != nil {
		return fmt.Errorf("list NodeInventories: %w", err)
	}
	w.inventories = map[string]*v1alpha1.NodeInventory{}
	for i := range inventories.Items {
		w.inventories[inventories.Items[i].Name] = &inventories.Items[i]
	}
	return nil
}

// ofRun selects what carries the run's label.
func (w *world) ofRun() []client.ListOption {
	return []client.ListOption{client.InNamespace(w.run.Namespace), client.MatchingLabels{v1alpha1.LabelBenchmarkRun: w.run.Name}}
}

func (r *Reconciler) gatherRecords(ctx context.Context, w *world) error {
	var list corev1.ConfigMapList
	if err := r.Client.List(ctx, &list, w.ofRun()...); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	found, err := decodeRecords(list.Items, w.run)
	if err != nil {
		return err
	}
	w.records = found
	for i := range list.Items {
		cm := &list.Items[i]
		if !metav1.IsControlledBy(cm, w.run) {
			continue
		}
		switch cm.Name {
		case provenanceName(w.run.Name):
			if w.provenance, err = decodeProvenance(cm); err != nil {
				return err
			}
		case results.ConfigMapOfRun(w.run.Name):
			w.published = cm.Annotations[annotationPublished]
		}
	}
	return nil
}

// gatherChildren reads the run's jobs and pods, and whether another run has jobs on the same filesystem.
func (r *Reconciler) gatherChildren(ctx context.Context, w *world) error {
	ours := []client.ListOption{client.InNamespace(w.run.Namespace), client.MatchingLabels{v1alpha1.LabelComponent: component}}
	var jobs batchv1.JobList
	if err := r.Reader.List(ctx, &jobs, ours...); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	var mpiJobs mpiv2.MPIJobList
	switch err := r.Reader.List(ctx, &mpiJobs, ours...); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		w.mpiMissing = w.any(distributed)
	case err != nil:
		return fmt.Errorf("list MPIJobs: %w", err)
	}
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, w.ofRun()...); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })

	var found []child
	for i := range jobs.Items {
		found = append(found, childOfJob(&jobs.Items[i]))
	}
	for i := range mpiJobs.Items {
		found = append(found, childOfMPIJob(&mpiJobs.Items[i]))
	}
	slices.SortFunc(found, func(a, b child) int { return cmp.Compare(a.name, b.name) })
	names := map[string]bool{}
	var others []string
	for _, c := range found {
		if !metav1.IsControlledBy(c.object, w.run) {
			others = append(others, c.object.GetLabels()[v1alpha1.LabelBenchmarkRun])
			continue
		}
		names[c.name] = true
		for _, p := range pods.Items {
			if p.Labels[labelChild] == c.name {
				c.pods = append(c.pods, p)
			}
		}
		if err := r.gatherQuota(ctx, w, &c); err != nil {
			return err
		}
		var known bool
		switch c.name {
		case cleanName(w.run.Name):
			w.cleaner = &c
			continue
		case checkName(w.run.Name):
			w.checker = &c
			continue
		case exportName(w.run.Name):
			w.exporter = &c
			continue
		}
		if c.turn, known = turnOf(c.name); !known {
			return fmt.Errorf("the job %s has a name that this operator does not give; delete it", c.name)
		}
		w.children = append(w.children, c)
	}
	w.active = strings.Join(others, ",")
	return r.gatherLingering(ctx, w, pods.Items, names)
}

// gatherLingering finds pods that go on although their job has gone. Those on a node that is not there or not Ready are
// not waited for: nobody can tell when they end.
func (r *Reconciler) gatherLingering(ctx context.Context, w *world, pods []corev1.Pod, jobs map[string]bool) error {
	for _, p := range pods {
		if jobs[p.Labels[labelChild]] || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if p.Spec.NodeName != "" {
			var node corev1.Node
			err := r.Client.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, &node)
			if apierrors.IsNotFound(err) || (err == nil && !nodeReady(&node)) {
				continue
			} else if err != nil {
				return fmt.Errorf("read node %s: %w", p.Spec.NodeName, err)
			}
		}
		w.lingering = append(w.lingering, p.Name)
	}
	return nil
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// gatherOthers finds out whose turn it is: one run at a time measures a filesystem.
func (r *Reconciler) gatherOthers(ctx context.Context, w *world) error {
	var runs v1alpha1.BenchmarkRunList
	if err := r.Client.List(ctx, &runs, client.InNamespace(w.run.Namespace)); err != nil {
		return fmt.Errorf("list BenchmarkRuns: %w", err)
	}
	busy := strings.Split(w.active, ",")
	w.active = ""
	slices.SortFunc(runs.Items, inTurn)
	for i := range runs.Items {
		other := &runs.Items[i]
		if other.UID == w.run.UID || other.Spec.FileSystem.Name != w.run.Spec.FileSystem.Name {
			continue
		}
		if w.active == "" && slices.Contains(busy, other.Name) {
			w.active = other.Name
		}
		if w.older == "" && wantsToRun(other) && inTurn(*other, *w.run) < 0 {
			w.older = other.Name
		}
	}
	return nil
}

// inTurn orders runs by age, then by name.
func inTurn(a, b v1alpha1.BenchmarkRun) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
}

// wantsToRun is false for a run that has ended or can't run as things stand, so that it does not hold up the next one.
func wantsToRun(run *v1alpha1.BenchmarkRun) bool {
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return run.Status.CompletionTime == nil && !run.Spec.Suspend && run.DeletionTimestamp.IsZero() &&
		!meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionStalled) &&
		(succeeded == nil || succeeded.Reason != v1alpha1.ReasonNoClients)
}

// pools returns the storage pools that the run uses, in the order of the points.
func (w *world) pools() ([]string, error) {
	var out []string
	for i := range w.points {
		pool, err := w.pool(i)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, pool) {
			out = append(out, pool)
		}
	}
	return out, nil
}

// pool returns the storage pool of a point.
func (w *world) pool(point int) (string, error) {
	var names []string
	for _, p := range w.fileSystem.Spec.StoragePools {
		names = append(names, p.Name)
	}
	field, wanted := "spec.fileSystem.storagePool", w.run.Spec.FileSystem.StoragePool
	if value := w.points[point].Parameters[benchmarks.ParameterStoragePool]; value != wanted && value != "" {
		field, wanted = fmt.Sprintf("storagePool at the point %s", describe(w.points[point])), value
	}
	switch {
	case len(names) == 0:
		return "", errors.New("the FileSystem has no storage pool")
	case wanted == "":
		return names[0], nil
	case slices.Contains(names, wanted):
		return wanted, nil
	default:
		return "", fmt.Errorf("%s: FileSystem %s has no pool %q; it has %s", field, w.fileSystem.Name, wanted, strings.Join(names, ", "))
	}
}

// place says how many processes of a point run on which client.
func (w *world) place(point, step int) ([]placement.Placed, error) {
	plan, spec := w.plans[point], w.run.Spec.Clients
	return placement.Place(placement.Wanted{
		Processes: max(plan.Processes, 1), Clients: w.clientsOf(point), EachClient: plan.Steps[step].Command.Launch == benchmarks.OnEachClient,
		Spread: spec.Spread, MaxPerNode: int(spec.MaxProcessesPerNode), Oversubscribe: spec.Oversubscribe,
	}, w.clients)
}

// clientsOf is the number of clients that a point asks for, 0 when it leaves it open. No point uses more than it has processes.
func (w *world) clientsOf(point int) int {
	plan := w.plans[point]
	wanted := cmp.Or(plan.Clients, int(w.run.Spec.Clients.Count))
	single := true
	for _, step := range plan.Steps {
		single = single && step.Command.Launch == benchmarks.OnClient
	}
	if single {
		return 1
	}
	return wanted
}
