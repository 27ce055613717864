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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/internal/backend"
)

// world is all that decide may look at.
type world struct {
	run *v1alpha1.BenchmarkRun
	now time.Time
	// fileSystem is nil while there is none of that name.
	fileSystem *v1alpha1.FileSystem
	mount      backend.Mount
	// mounted are the nodes that mount the filesystem, sorted; clients are those of them that the run selects.
	mounted, clients []string
	// invalid says what is wrong with the spec, whatever the cluster holds.
	invalid  string
	points   []benchmarks.Point
	commands []benchmarks.Command
	hasImage bool
	records  records
	// children are the jobs that run repetitions; there is at most one, unless somebody else made more.
	children []child
	cleaner  *child
	// lingering names pods of removed jobs that have not ended.
	lingering []string
	// mpiMissing is true when the run needs MPIJobs and the cluster does not serve them.
	mpiMissing bool
	// active names another run that has a job on the filesystem; older names the run whose turn it is before this one.
	active, older string
}

// child is one job of the run: a Job or an MPIJob.
type child struct {
	object            client.Object
	name              string
	point, repetition int
	created           time.Time
	deleting          bool
	// succeeded and failed are what the job says of itself; message is its own.
	succeeded, failed bool
	message           string
	// nodes are those that take part. The pods themselves may be gone when their job has ended.
	nodes []string
	pods  []corev1.Pod
}

// failedWorker returns a worker that ended before the launcher: the launcher then waits for ever.
func (c *child) failedWorker() *corev1.Pod {
	for i := range c.pods {
		if c.pods[i].Labels[labelRole] == roleWorker && c.pods[i].Status.Phase == corev1.PodFailed {
			return &c.pods[i]
		}
	}
	return nil
}

// mainPod is the pod whose output is the tool's.
func (c *child) mainPod() *corev1.Pod {
	for i := range c.pods {
		if c.pods[i].Labels[labelRole] != roleWorker {
			return &c.pods[i]
		}
	}
	return nil
}

func (c *child) over() bool { return c.succeeded || c.failed || c.failedWorker() != nil }

// gather reads all that decide may look at. Jobs and pods are read past the cache: what decide concludes from a job that
// is not there, such as that the repetition must be run, holds only if it is really not there.
func (r *Reconciler) gather(ctx context.Context, run *v1alpha1.BenchmarkRun) (*world, error) {
	w := &world{run: run, now: r.Clock.Now(), hasImage: r.Images.Benchmarks[string(run.Spec.Tool)] != ""}
	r.plan(w)
	for _, step := range []func(context.Context, *world) error{r.gatherFileSystem, r.gatherRecords, r.gatherChildren, r.gatherOthers} {
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
	points, err := sweep.Expand(tool, &w.run.Spec)
	if err != nil {
		w.invalid = err.Error()
		return
	}
	for _, point := range points {
		command, err := tool.Command(&w.run.Spec, point)
		if err != nil {
			w.invalid = fmt.Sprintf("%s: %v", describe(point), err)
			return
		}
		w.commands = append(w.commands, command)
	}
	w.points = points
}

func (w *world) distributed() bool {
	return slices.ContainsFunc(w.commands, func(c benchmarks.Command) bool { return c.Distributed })
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
	w.mount = b.Mount(fs)
	for _, c := range fs.Status.Clients {
		if c.Mounted {
			w.mounted = append(w.mounted, c.Node)
		}
	}
	slices.Sort(w.mounted)

	var nodes corev1.NodeList
	selector := client.MatchingLabels(w.run.Spec.Clients.NodeSelector)
	if err := r.Client.List(ctx, &nodes, selector); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, n := range nodes.Items {
		if slices.Contains(w.mounted, n.Name) {
			w.clients = append(w.clients, n.Name)
		}
	}
	slices.Sort(w.clients)
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
	w.records = found
	return err
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
		w.mpiMissing = w.distributed()
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
		if c.name == cleanName(w.run.Name) {
			cleaner := c
			w.cleaner = &cleaner
			continue
		}
		if _, err := fmt.Sscanf(strings.TrimPrefix(c.name, w.run.Name), "-p%d-r%d", &c.point, &c.repetition); err != nil {
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

func childOf(job client.Object) child {
	c := child{object: job, name: job.GetName(), created: job.GetCreationTimestamp().Time, deleting: !job.GetDeletionTimestamp().IsZero()}
	if nodes := job.GetAnnotations()[annotationNodes]; nodes != "" {
		c.nodes = strings.Split(nodes, ",")
	}
	return c
}

func childOfJob(job *batchv1.Job) child {
	c := childOf(job)
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			c.succeeded = true
		case batchv1.JobFailed:
			c.failed, c.message = true, condition.Message
		}
	}
	return c
}

func childOfMPIJob(job *mpiv2.MPIJob) child {
	c := childOf(job)
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case mpiv2.JobSucceeded:
			c.succeeded = true
		case mpiv2.JobFailed:
			c.failed, c.message = true, condition.Message
		}
	}
	return c
}

// pool returns the name of the storage pool that the run uses.
func (w *world) pool() (string, error) {
	var names []string
	for _, p := range w.fileSystem.Spec.StoragePools {
		names = append(names, p.Name)
	}
	switch wanted := w.run.Spec.FileSystem.StoragePool; {
	case len(names) == 0:
		return "", errors.New("the FileSystem has no storage pool")
	case wanted == "":
		return names[0], nil
	case slices.Contains(names, wanted):
		return wanted, nil
	default:
		return "", fmt.Errorf("spec.fileSystem.storagePool: FileSystem %s has no pool %q; it has %s",
			w.fileSystem.Name, wanted, strings.Join(names, ", "))
	}
}
