//go:build scale

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	// parallel is how many requests of one kind the simulation of a whole cluster sends at once.
	parallel = 64
	// startAgain is how often a waiting daemon checks again.
	startAgain = 2 * time.Second
	// jobTakes is how long a job takes, stopTakes how long a daemon takes to end.
	jobTakes, stopTakes = 3 * time.Second, time.Second
	// statusEvery is the shortest time between two writes of a DaemonSet's status.
	statusEvery = time.Second
)

// kubelets plays the controllers of DaemonSets and Jobs, the scheduler, and the kubelets of all nodes.
type kubelets struct {
	client.Client               // writes directly
	cache         client.Reader // reads from the cache
	world         *world
	first         *first

	mutex sync.Mutex
	// pods has the pods by the uid of the DaemonSet, by node; ready the uids of those whose daemon runs.
	pods  map[types.UID]map[string]string
	ready map[types.UID]map[string]bool
	said  map[types.UID]time.Time
	// benchmarks has the pods of jobs of BenchmarkRuns.
	benchmarks map[types.NamespacedName]types.NamespacedName
}

// playKubelets plays Kubernetes itself, as far as the operator depends on it.
func playKubelets(c *cluster, w *world) (manager.Manager, error) {
	mgr, err := newManager(c, userKubelets)
	if err != nil {
		return nil, err
	}
	direct, err := c.client(userKubelets)
	if err != nil {
		return nil, err
	}
	k := &kubelets{
		Client: direct, cache: mgr.GetClient(), world: w, first: &first{of: map[types.UID]time.Time{}},
		pods: map[types.UID]map[string]string{}, ready: map[types.UID]map[string]bool{}, said: map[types.UID]time.Time{},
		benchmarks: map[types.NamespacedName]types.NamespacedName{},
	}
	add := func(name string, kind client.Object, workers int, do reconcile.Func) error {
		options := controller.Options{MaxConcurrentReconciles: workers}
		return ctrl.NewControllerManagedBy(mgr).Named(name).For(kind).WithOptions(options).Complete(do)
	}
	for _, err := range []error{
		add("daemonsets", &appsv1.DaemonSet{}, 8, k.daemonSet), add("pods", &corev1.Pod{}, parallel, k.pod),
		add("jobs", &batchv1.Job{}, 8, k.job),
	} {
		if err != nil {
			return nil, fmt.Errorf("set up the kubelets: %w", err)
		}
	}
	return mgr, nil
}

// daemonSet makes the missing pods of a DaemonSet, and writes its status.
func (k *kubelets) daemonSet(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var set appsv1.DaemonSet
	if err := k.cache.Get(ctx, r.NamespacedName, &set); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	var nodes corev1.NodeList
	if err := k.cache.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("list nodes: %w", err)
	}
	wanted, err := nodesOf(&set, nodes.Items)
	if err != nil {
		return reconcile.Result{}, err
	}
	k.mutex.Lock()
	if k.pods[set.UID] == nil {
		k.pods[set.UID], k.ready[set.UID] = map[string]string{}, map[string]bool{}
	}
	var missing []string
	for _, node := range wanted {
		if k.pods[set.UID][node] == "" {
			missing = append(missing, node)
		}
	}
	k.mutex.Unlock()
	var group errgroup.Group
	group.SetLimit(parallel)
	for _, node := range missing {
		group.Go(func() error { return k.makePod(ctx, &set, node) })
	}
	if err := group.Wait(); err != nil {
		return reconcile.Result{}, err
	}
	return k.sayHowMany(ctx, &set, len(wanted))
}

// makePod makes a pod of a DaemonSet, already bound to its node.
func (k *kubelets) makePod(ctx context.Context, set *appsv1.DaemonSet, node string) error {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: set.Name + "-" + rand.String(5), Namespace: set.Namespace,
			Labels: set.Spec.Template.Labels, Annotations: set.Spec.Template.Annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: *set.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = node
	// The controller of DaemonSets replaces the affinity of the template by one to the node (k8s.io/kubernetes/pkg/controller/daemon/util).
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
	if err := k.Create(ctx, pod); err != nil {
		return fmt.Errorf("make a pod: %w", err)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.pods[set.UID][node] = pod.Name
	return nil
}

// sayHowMany writes the status of a DaemonSet, at intervals.
func (k *kubelets) sayHowMany(ctx context.Context, set *appsv1.DaemonSet, wanted int) (reconcile.Result, error) {
	k.mutex.Lock()
	all, ready := int32(len(k.pods[set.UID])), int32(len(k.ready[set.UID]))
	wait := statusEvery - time.Since(k.said[set.UID])
	k.mutex.Unlock()
	status := appsv1.DaemonSetStatus{
		CurrentNumberScheduled: all, DesiredNumberScheduled: int32(wanted), UpdatedNumberScheduled: all,
		NumberReady: ready, NumberAvailable: ready, NumberUnavailable: int32(wanted) - ready, ObservedGeneration: set.Generation,
	}
	if status.CurrentNumberScheduled == set.Status.CurrentNumberScheduled && status.NumberReady == set.Status.NumberReady &&
		status.DesiredNumberScheduled == set.Status.DesiredNumberScheduled && status.ObservedGeneration == set.Status.ObservedGeneration {
		return reconcile.Result{RequeueAfter: statusEvery}, nil
	}
	if wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	before := set.DeepCopy()
	set.Status = status
	if err := k.Status().Patch(ctx, set, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write the status of a DaemonSet: %w", err))
	}
	k.mutex.Lock()
	k.said[set.UID] = time.Now()
	k.mutex.Unlock()
	return reconcile.Result{RequeueAfter: statusEvery}, nil
}

// pod starts the daemon of a pod, or ends it.
func (k *kubelets) pod(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := k.cache.Get(ctx, r.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	owner := metav1.GetControllerOf(&pod)
	if owner == nil || owner.Kind != "DaemonSet" {
		return reconcile.Result{}, nil
	}
	if pod.DeletionTimestamp != nil {
		return k.endPod(ctx, &pod, owner.UID)
	}
	if pod.Status.Phase == corev1.PodRunning {
		return reconcile.Result{}, nil
	}
	if !k.world.starts(k.first, &pod) {
		return reconcile.Result{RequeueAfter: startAgain}, nil
	}
	before, now := pod.DeepCopy(), metav1.Now()
	pod.Status.Phase, pod.Status.StartTime = corev1.PodRunning, &now
	for _, kind := range []corev1.PodConditionType{corev1.PodScheduled, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
		})
	}
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	if err := k.Status().Patch(ctx, &pod, client.MergeFrom(before)); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(fmt.Errorf("write the status of a pod: %w", err))
	}
	k.mutex.Lock()
	k.ready[owner.UID][pod.Spec.NodeName] = true
	k.mutex.Unlock()
	return reconcile.Result{}, nil
}

// endPod ends the daemon of a deleted pod.
func (k *kubelets) endPod(ctx context.Context, pod *corev1.Pod, set types.UID) (reconcile.Result, error) {
	asked := pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
	if left := stopTakes - time.Since(asked); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	k.world.end(placeOf(pod), pod.UID)
	err := k.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("let a pod go: %w", err)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.pods[set][pod.Spec.NodeName] == pod.Name {
		delete(k.pods[set], pod.Spec.NodeName)
		delete(k.ready[set], pod.Spec.NodeName)
	}
	return reconcile.Result{}, nil // the DaemonSet is reconciled again within a second
}

// job lets a job succeed.
func (k *kubelets) job(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var job batchv1.Job
	if err := k.cache.Get(ctx, r.NamespacedName, &job); apierrors.IsNotFound(err) {
		return reconcile.Result{}, k.collect(ctx, r.NamespacedName)
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("read a job: %w", err)
	}
	if job.DeletionTimestamp != nil || job.Status.CompletionTime != nil {
		return reconcile.Result{}, nil
	}
	if job.Labels[v1alpha1.LabelBenchmarkRun] != "" {
		return k.benchmark(ctx, &job)
	}
	fileSystem := job.Labels[v1alpha1.LabelFileSystem]
	before, now := job.DeepCopy(), metav1.Now()
	if job.Status.StartTime == nil {
		job.Status.StartTime, job.Status.Active = &now, 1
		return reconcile.Result{RequeueAfter: jobTakes}, k.Status().Patch(ctx, &job, client.MergeFrom(before))
	}
	if time.Since(job.Status.StartTime.Time) < jobTakes || !k.world.serves(fileSystem) {
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err := k.completeJob(ctx, &job); err != nil {
		return reconcile.Result{}, err
	}
	k.world.jobEnds(fileSystem, job.Labels[v1alpha1.LabelComponent])
	return reconcile.Result{}, nil
}

// completeJob writes that a job has succeeded.
func (k *kubelets) completeJob(ctx context.Context, job *batchv1.Job) error {
	before, now := job.DeepCopy(), metav1.Now()
	job.Status.Active, job.Status.Succeeded, job.Status.CompletionTime = 0, 1, &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastProbeTime: now, LastTransitionTime: now,
		})
	}
	if err := k.Status().Patch(ctx, job, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write the status of a job: %w", err)
	}
	return nil
}

// nodesOf returns the nodes on which the template of a DaemonSet may run.
func nodesOf(set *appsv1.DaemonSet, nodes []corev1.Node) ([]string, error) {
	var terms []func(*corev1.Node) bool
	if required := requiredBy(set); required != nil {
		named := map[string]bool{}
		terms = append(terms, func(n *corev1.Node) bool { return named[n.Name] })
		for _, term := range required.NodeSelectorTerms {
			if len(term.MatchExpressions) == 0 {
				for _, field := range term.MatchFields {
					for _, name := range field.Values {
						named[name] = true
					}
				}
				continue
			}
			selector := labels.NewSelector()
			for _, e := range term.MatchExpressions {
				requirement, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
				if err != nil {
					return nil, fmt.Errorf("the affinity of DaemonSet %s: %w", set.Name, err)
				}
				selector = selector.Add(*requirement)
			}
			terms = append(terms, func(n *corev1.Node) bool { return selector.Matches(labels.Set(n.Labels)) })
		}
	}
	chosen := labels.SelectorFromSet(set.Spec.Template.Spec.NodeSelector)
	var out []string
	for i := range nodes {
		n := &nodes[i]
		holds := terms == nil || slices.ContainsFunc(terms, func(term func(*corev1.Node) bool) bool { return term(n) })
		if holds && chosen.Matches(labels.Set(n.Labels)) {
			out = append(out, n.Name)
		}
	}
	return out, nil
}

// requiredBy is the required node affinity in the template of a DaemonSet; nil for none.
func requiredBy(set *appsv1.DaemonSet) *corev1.NodeSelector {
	if a := set.Spec.Template.Spec.Affinity; a != nil && a.NodeAffinity != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	return nil
}

// operators maps the operators of node selectors to those of label selectors.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist,
	corev1.NodeSelectorOpGt:           selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}
