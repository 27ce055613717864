package benchmarkrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	klabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/members"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/trust"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
)

// gather reads the input of decide. Jobs and pods are read from the API server: conclusions from a missing job, such as that the repetition
// must be run, are valid only if it is really missing. For a run that has not begun and waits for another one, nothing else is read.
func (r *Reconciler) gather(ctx context.Context, run *v1alpha1.BenchmarkRun) (*scope.Scope, error) {
	w := &scope.Scope{
		Run: run, Now: r.Clock.Now(), Poll: r.PollInterval, Image: cmp.Or(run.Spec.Image, r.Images.Benchmarks[string(run.Spec.ToolName())]),
	}
	r.plan(w)
	if w.Any(func(l benchmarks.Launch) bool { return l == benchmarks.OnServers }) {
		// The tool belongs to the node, and the operator's own program runs it. A user's image is refused.
		w.Image = r.Images.Node
	}
	line := []func(context.Context, *scope.Scope) error{r.gatherTarget, r.gatherLine, r.gatherBaseline, r.gatherPriority}
	rest := []func(context.Context, *scope.Scope) error{
		r.gatherMembers, r.gatherMounts, r.gatherNodes, r.gatherRecords, r.gatherChildren, r.gatherDrop, r.gatherTrust, r.gatherRaw,
	}
	for i, step := range slices.Concat(line, rest) {
		if i == len(line) && w.OnlyWaits() {
			break
		}
		if err := step(ctx, w); err != nil {
			return nil, err
		}
	}
	return w, nil
}

// plan expands the sweep.
func (r *Reconciler) plan(w *scope.Scope) {
	tool, ok := r.Tools[w.Run.Spec.ToolName()]
	if !ok {
		w.Invalid = fmt.Sprintf("spec.tool: this operator has no tool %q", w.Run.Spec.ToolName())
		return
	}
	w.Parameters = tool.Parameters(&w.Run.Spec)
	points, err := sweep.Expand(tool, &w.Run.Spec)
	if err != nil {
		w.Invalid = err.Error()
		return
	}
	for _, point := range points {
		plan, err := tool.Plan(&w.Run.Spec, point)
		if err != nil {
			w.Invalid = fmt.Sprintf("%s: %v", scope.Describe(point), err)
			return
		}
		w.Plans = append(w.Plans, plan)
	}
	w.Points = points
}

func (r *Reconciler) gatherTarget(ctx context.Context, w *scope.Scope) error {
	switch target := &w.Run.Spec.Target; {
	case target.IsFileSystem() && r.NoFileSystems:
		w.Invalid = "spec.target.fileSystem: this operator is installed without filesystems (the Helm chart's value fileSystems.enabled); " +
			"set persistentVolumeClaim or storageClass"
		return nil
	case target.IsFileSystem():
		return r.gatherFileSystem(ctx, w)
	}
	return r.gatherVolume(ctx, w)
}

func (r *Reconciler) gatherFileSystem(ctx context.Context, w *scope.Scope) error {
	fs := &v1alpha1.FileSystem{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: w.Run.Namespace, Name: w.Run.Spec.Target.FileSystem.Name}, fs)
	if apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read FileSystem %s: %w", w.Run.Spec.Target.FileSystem.Name, err)
	}
	fs.Complete()
	w.FileSystem = fs
	b, ok := r.Backends[fs.Spec.Type]
	if !ok {
		return fmt.Errorf("no backend serves type %q of FileSystem %s", fs.Spec.Type, fs.Name)
	}
	if mounter, ok := b.(backend.Mounter); ok {
		w.Mount = mounter.Mount(fs)
	}
	w.Management, _ = b.(backend.Benchmarker)
	w.Servers, _ = b.(backend.ServerMeasurer)
	return nil
}

// gatherPriority refuses a PriorityClass that is too high for a run, because its pods would preempt others, including servers of
// filesystems. The API server refuses the pods if the class does not exist.
func (r *Reconciler) gatherPriority(ctx context.Context, w *scope.Scope) error {
	name := w.Run.Spec.PriorityClassName
	if name == "" || w.Invalid != "" || w.Run.Status.CompletionTime != nil {
		return nil
	}
	class := &schedulingv1.PriorityClass{}
	err := r.Reader.Get(ctx, client.ObjectKey{Name: name}, class)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return fmt.Errorf("read PriorityClass %s: %w", name, err)
	case class.Value > r.MaxPriority:
		w.Invalid = fmt.Sprintf("spec.priorityClassName: PriorityClass %s has the value %d, and runs may have %d at most; name a lower one, or none. "+
			"The Helm chart's value runs.maxPriority is that limit", name, class.Value, r.MaxPriority)
	}
	return nil
}

func (r *Reconciler) gatherMembers(ctx context.Context, w *scope.Scope) (err error) {
	if w.FileSystem != nil {
		w.Members, err = members.Read(ctx, r.Client, w.FileSystem)
	}
	return err
}

// gatherMounts finds the nodes that mount the filesystem: those whose client pod is Ready, because its readiness probe checks the mount.
// The FileSystem's status lists only its worst clients, so it can't prove that a client is healthy.
func (r *Reconciler) gatherMounts(ctx context.Context, w *scope.Scope) error {
	if w.FileSystem == nil {
		return nil
	}
	var sets appsv1.DaemonSetList
	ofSets := client.MatchingLabels{v1alpha1.LabelFileSystem: w.FileSystem.Name}
	if err := r.Client.List(ctx, &sets, client.InNamespace(w.Run.Namespace), ofSets, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the DaemonSets of FileSystem %s: %w", w.FileSystem.Name, err)
	}
	w.Sets = owned.Controllers{IDs: owned.Of(w.FileSystem, pointers(sets.Items)...)}
	var pods corev1.PodList
	of := client.MatchingLabels{v1alpha1.LabelFileSystem: w.FileSystem.Name, v1alpha1.LabelComponent: trust.ComponentClient}
	// There may be thousands, so they are read in the cache without a copy, and never changed.
	if err := r.Client.List(ctx, &pods, client.InNamespace(w.Run.Namespace), of, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the clients of FileSystem %s: %w", w.FileSystem.Name, err)
	}
	bad := trust.BadClients(w.FileSystem)
	w.Mounters = make(map[string]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		p := &pods.Items[i]
		if !w.Sets.Has(p) || p.Spec.NodeName == "" {
			continue
		}
		if known := w.Mounters[p.Spec.NodeName]; known == nil || trust.Mounts(p) && !trust.Mounts(known) {
			w.Mounters[p.Spec.NodeName] = p
		}
	}
	for node, p := range w.Mounters {
		if trust.Mounts(p) && !bad[node] {
			w.Mounted = append(w.Mounted, node)
		}
	}
	slices.Sort(w.Mounted)
	return nil
}

// gatherNodes finds the clients, and what the agents report about nodes. Both lists grow with the cluster, so they are not copied.
func (r *Reconciler) gatherNodes(ctx context.Context, w *scope.Scope) error {
	if w.Volume != nil || r.NoFileSystems {
		return nil // the scheduler chooses the nodes, and the manager may not have the right to read them
	}
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	mounted := make(map[string]bool, len(w.Mounted))
	for _, node := range w.Mounted {
		mounted[node] = true
	}
	selector := klabels.SelectorFromSet(klabels.Set(w.Run.Spec.Clients.NodeSelector))
	w.Nodes = map[string]*corev1.Node{}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		w.Nodes[n.Name] = n
		if mounted[n.Name] && selector.Matches(klabels.Set(n.Labels)) {
			w.Clients = append(w.Clients, placement.Node{Name: n.Name, CPUs: int(n.Status.Capacity.Cpu().Value())})
		}
	}
	slices.SortFunc(w.Clients, func(a, b placement.Node) int { return strings.Compare(a.Name, b.Name) })
	var inventories v1alpha1.NodeInventoryList
	if err := r.Client.List(ctx, &inventories, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list NodeInventories: %w", err)
	}
	w.Inventories = map[string]*v1alpha1.NodeInventory{}
	for i := range inventories.Items {
		w.Inventories[inventories.Items[i].Name] = &inventories.Items[i]
	}
	return nil
}

func (r *Reconciler) gatherRecords(ctx context.Context, w *scope.Scope) error {
	var list corev1.ConfigMapList
	if err := r.Client.List(ctx, &list, w.OfRun()...); err != nil {
		return fmt.Errorf("list ConfigMaps: %w", err)
	}
	found, err := turns.DecodeRecords(list.Items, w.Run)
	if err != nil {
		return err
	}
	w.Records = found
	for i := range list.Items {
		cm := &list.Items[i]
		if !metav1.IsControlledBy(cm, w.Run) {
			continue
		}
		if turns.HoldsRecords(cm) {
			w.Outputs = append(w.Outputs, *cm)
		}
		switch cm.Name {
		case provenanceName(w.Run.Name):
			if w.Provenance, err = decodeProvenance(cm); err != nil {
				return err
			}
		case results.ConfigMapOfRun(w.Run.Name):
			w.Published = cm.Annotations[annotationPublished]
		}
	}
	return nil
}

// gatherChildren reads the run's jobs and pods, and whether another run has jobs on the same filesystem.
func (r *Reconciler) gatherChildren(ctx context.Context, w *scope.Scope) error {
	ours := []client.ListOption{client.InNamespace(w.Run.Namespace), client.MatchingLabels{v1alpha1.LabelComponent: children.Component}}
	var jobs batchv1.JobList
	if err := r.Reader.List(ctx, &jobs, ours...); err != nil {
		return fmt.Errorf("list Jobs: %w", err)
	}
	var mpiJobs mpiv2.MPIJobList
	switch err := r.Reader.List(ctx, &mpiJobs, ours...); {
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		w.MPIMissing = w.Any(scope.Distributed)
	case err != nil:
		return fmt.Errorf("list MPIJobs: %w", err)
	}
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, w.OfRun()...); err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })

	launchers, err := r.launchers(ctx, mpiJobs.Items, w.Run)
	if err != nil {
		return err
	}
	ids := owned.Of(w.Run, pointers(jobs.Items)...)
	maps.Copy(ids, owned.Of(w.Run, pointers(mpiJobs.Items)...))
	for id := range launchers {
		ids[id] = true
	}
	// Names of jobs begin with the name of their run, cut if it is long.
	own := r.past(w.Run).Look(w.Run.Name[:min(len(w.Run.Name), shortest)], ids, pods.Items, w.Now)

	var found []children.Child
	for i := range jobs.Items {
		found = append(found, children.ChildOfJob(&jobs.Items[i]))
	}
	for i := range mpiJobs.Items {
		found = append(found, children.ChildOfMPIJob(&mpiJobs.Items[i]))
	}
	slices.SortFunc(found, func(a, b children.Child) int { return cmp.Compare(a.Name, b.Name) })
	there, busy := owned.Controllers{IDs: ids}, map[types.UID]bool{}
	for _, c := range found {
		if !metav1.IsControlledBy(c.Object, w.Run) {
			if owner := metav1.GetControllerOf(c.Object); owner != nil {
				busy[owner.UID] = true
			}
			continue
		}
		for _, p := range pods.Items {
			if owner := metav1.GetControllerOf(&p); there.Has(&p) && (owner.UID == c.Object.GetUID() || launchers[owner.UID] == c.Object.GetUID()) {
				c.Pods = append(c.Pods, p)
			}
		}
		if w.Volume != nil {
			c.Nodes = c.ClientNodes()
		}
		c.Settle(w.Now)
		c.Keep(w.Now)
		if err := r.gatherRefusal(ctx, w, &c); err != nil {
			return err
		}
		var known bool
		switch c.Name {
		case turns.CleanName(w.Run.Name):
			w.Cleaner = &c
			continue
		case turns.CheckName(w.Run.Name):
			w.Checker = &c
			continue
		case turns.ExportName(w.Run.Name):
			w.Exporter = &c
			continue
		}
		if c.Turn, known = turns.TurnOf(c.Name); !known {
			return fmt.Errorf("the job %s has a name that this operator does not give; delete it", c.Name)
		}
		w.Children = append(w.Children, c)
	}
	if i := slices.IndexFunc(w.Others, func(other scope.Other) bool { return busy[other.UID] }); i >= 0 {
		w.Active = w.Others[i].Name
	}
	return r.gatherLingering(ctx, w, slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return there.Has(&p) || !own.MayHave(&p) }))
}

// shortest is how much of a run's name is part of all names of its jobs; see turns.JobName.
const shortest = 20

// launchers returns the Jobs that the MPI operator has made for the MPIJobs of a run, with the MPIJob of each.
func (r *Reconciler) launchers(ctx context.Context, all []mpiv2.MPIJob, run *v1alpha1.BenchmarkRun) (map[types.UID]types.UID, error) {
	out := map[types.UID]types.UID{}
	for i := range all {
		if !metav1.IsControlledBy(&all[i], run) {
			continue
		}
		var job batchv1.Job
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: all[i].Name + launcherSuffix}, &job)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read the launcher of MPIJob %s: %w", all[i].Name, err)
		case metav1.IsControlledBy(&job, &all[i]):
			out[job.UID] = all[i].UID
		}
	}
	return out, nil
}

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// past returns what passes have found about the controllers of a run's pods so far.
func (r *Reconciler) past(run *v1alpha1.BenchmarkRun) *owned.Past {
	key := client.ObjectKeyFromObject(run)
	if known, _ := r.pasts.Load(key); known != nil {
		if past, is := known.(*pastOfRun); is && past.uid == run.UID {
			return &past.Past
		}
	}
	past := &pastOfRun{uid: run.UID}
	r.pasts.Store(key, past)
	return &past.Past
}

// pastOfRun is the past of one run. A run that is created again under its name has another past.
type pastOfRun struct {
	owned.Past
	uid types.UID
}

// gatherLingering finds the pods of removed jobs that still run. It skips pods on a node that is missing or not Ready, because their end
// can't be observed.
func (r *Reconciler) gatherLingering(ctx context.Context, w *scope.Scope, pods []corev1.Pod) error {
	for _, p := range pods {
		if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
			continue
		}
		if p.Spec.NodeName != "" && w.Volume == nil && !r.NoFileSystems {
			var node corev1.Node
			err := r.Client.Get(ctx, client.ObjectKey{Name: p.Spec.NodeName}, &node)
			if apierrors.IsNotFound(err) || (err == nil && !scope.NodeReady(&node)) {
				continue
			} else if err != nil {
				return fmt.Errorf("read node %s: %w", p.Spec.NodeName, err)
			}
		}
		w.Lingering = append(w.Lingering, p.Name)
	}
	return nil
}
