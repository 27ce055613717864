//go:build scale

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// runController is the controller of BenchmarkRuns.
	runController = "benchmarkrun"
	// benchmarkTakes is how long the pod of a benchmark runs.
	benchmarkTakes = time.Second
	// recording is recorded output of IOzone for the points of these runs.
	recording = "benchmarks/iozone/testdata/single-1-process.txt"
	// logAddress is the kind of a node's address at which the API server asks for the logs of its pods.
	logAddress = corev1.NodeExternalIP
	// smallLimit is how long it may take until the small filesystems are Ready.
	smallLimit = 3 * time.Minute
)

// benchmarkRun is one of the measured runs: one point, one repetition, on one client of its filesystem.
func benchmarkRun(number int, fileSystem string) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("run-%04d", number)},
		Spec: v1alpha1.BenchmarkRunSpec{
			Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: fileSystem}}, Tool: v1alpha1.ToolIOzone,
			IOzone:  &v1alpha1.IOzoneSpec{RecordSize: "16k", FileSize: "4m", IncludeFlush: true},
			Clients: v1alpha1.BenchmarkClients{NodeSelector: v1alpha1.NodeSelector{labelClient: ""}}, Repetitions: 1,
		},
	}
}

// benchmarks makes BenchmarkRuns and measures until all have ended, or their time is over. A filesystem is measured by one run at a time,
// so there are nine small filesystems beside the large one.
func (r *run) benchmarks(ctx context.Context, background *sync.WaitGroup, runs int) error {
	if runs == 0 {
		return nil
	}
	if err := r.makeSmall(ctx, background); err != nil {
		return err
	}
	before, err := r.usage(ctx)
	if err != nil {
		return err
	}
	passes, err := r.cluster.passes(ctx, runController)
	if err != nil {
		return err
	}
	names := []string{fileSystemName}
	for i := range smallFileSystems {
		names = append(names, smallName(i))
	}
	for i := range runs {
		if err := r.person.Create(ctx, benchmarkRun(i, names[i%len(names)])); err != nil {
			return fmt.Errorf("make a BenchmarkRun: %w", err)
		}
	}
	said, left := time.Now(), runs
	err = r.until(ctx, math.MaxInt64, func() (why string, err error) {
		left, why, err = r.unfinished(ctx)
		if left > 0 && time.Since(said) > sayEvery {
			said = time.Now()
			r.say("%s", why)
		}
		if time.Since(before.at) > r.pace.runsFor {
			return "", err
		}
		return why, err
	})
	if err != nil {
		return err
	}
	used, seconds, written, err := r.since(ctx, before)
	if err != nil {
		return err
	}
	now, err := r.cluster.passes(ctx, runController)
	if err != nil {
		return err
	}
	// The objects of runs are deleted with them.
	if err := r.sizes(ctx); err != nil {
		return err
	}
	set, took := r.result.set, now.since(passes)
	set(runsSeconds, seconds)
	set(runsEnded, float64(runs-left))
	set(runsWrites, float64(count(written, all))/float64(runs-left))
	set(runsManager, used.manager.Seconds())
	set(runsAPIServer, used.apiServer.Seconds())
	set(runsP50, took.quantile(0.5)*1000)
	set(runsP99, took.quantile(0.99)*1000)
	r.result.OfRuns = writes(written)
	return r.removeRuns(ctx)
}

// removeRuns deletes all BenchmarkRuns and waits until they are gone.
func (r *run) removeRuns(ctx context.Context) error {
	if err := r.person.DeleteAllOf(ctx, &v1alpha1.BenchmarkRun{}, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("delete the BenchmarkRuns: %w", err)
	}
	return r.until(ctx, math.MaxInt64, func() (string, error) {
		var left v1alpha1.BenchmarkRunList
		if err := r.seen.List(ctx, &left, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return "", fmt.Errorf("list BenchmarkRuns: %w", err)
		}
		if len(left.Items) == 0 {
			return "", nil
		}
		return fmt.Sprintf("%d BenchmarkRuns are being deleted", len(left.Items)), nil
	})
}

// makeSmall makes the small filesystems, and waits until all are Ready.
func (r *run) makeSmall(ctx context.Context, background *sync.WaitGroup) error {
	for i := range smallFileSystems {
		if err := r.serveProbe(ctx, background, smallName(i)); err != nil {
			return err
		}
		if err := r.person.Create(ctx, smallFileSystem(smallName(i), r.basePort)); err != nil {
			return fmt.Errorf("make a small FileSystem: %w", err)
		}
		r.fileSystems++
	}
	err := r.until(ctx, smallLimit, func() (string, error) {
		for i := range smallFileSystems {
			if why, err := r.unwell(ctx, smallName(i)); why != "" || err != nil {
				return smallName(i) + ": " + why, err
			}
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	return r.quiet(ctx)
}

// unfinished returns how many BenchmarkRuns have not ended, with a sentence; empty when all have. A failed run is an error.
func (r *run) unfinished(ctx context.Context) (left int, why string, err error) {
	var all v1alpha1.BenchmarkRunList
	if err := r.seen.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return 0, "", fmt.Errorf("list BenchmarkRuns: %w", err)
	}
	left = r.result.Runs - len(all.Items) // not seen yet
	example := ""
	for i := range all.Items {
		one := &all.Items[i]
		succeeded := meta.FindStatusCondition(one.Status.Conditions, v1alpha1.ConditionSucceeded)
		switch {
		case succeeded != nil && succeeded.Status == metav1.ConditionTrue:
		case one.Status.CompletionTime != nil:
			return 0, "", fmt.Errorf("BenchmarkRun %s has failed: %+v", one.Name, one.Status.Conditions)
		default:
			left++
			if succeeded != nil && example == "" {
				example = fmt.Sprintf(", such as %s: %s", one.Name, succeeded.Message)
			}
		}
	}
	if left == 0 {
		return 0, "", nil
	}
	return left, fmt.Sprintf("%d of %d BenchmarkRuns have not ended%s", left, r.result.Runs, example), nil
}

// benchmark plays the controller of Jobs and a kubelet for a job of a BenchmarkRun. Its pod runs for a while on the first of the nodes
// where it may run, and succeeds.
func (k *kubelets) benchmark(ctx context.Context, job *batchv1.Job) (reconcile.Result, error) {
	key := client.ObjectKeyFromObject(job)
	before, now := job.DeepCopy(), metav1.Now()
	if job.Status.StartTime == nil {
		if err := k.makeBenchmarkPod(ctx, job); err != nil {
			return reconcile.Result{}, err
		}
		job.Status.StartTime, job.Status.Active = &now, 1
		if err := k.Status().Patch(ctx, job, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("write the status of a job: %w", err)
		}
		return reconcile.Result{RequeueAfter: benchmarkTakes}, nil
	}
	if left := benchmarkTakes - time.Since(job.Status.StartTime.Time); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	k.mutex.Lock()
	name := k.benchmarks[key]
	k.mutex.Unlock()
	var pod corev1.Pod
	if err := k.Get(ctx, name, &pod); err != nil {
		return reconcile.Result{}, fmt.Errorf("read the pod of a benchmark: %w", err)
	}
	was := pod.DeepCopy()
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: children.ContainerName, Image: pod.Spec.Containers[0].Image, ImageID: "sha256:" + strings.Repeat("0123456789abcdef", 4),
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: *job.Status.StartTime, FinishedAt: now}},
	}}
	if err := k.Status().Patch(ctx, &pod, client.MergeFrom(was)); err != nil {
		return reconcile.Result{}, fmt.Errorf("write the status of the pod of a benchmark: %w", err)
	}
	return reconcile.Result{}, k.completeJob(ctx, job)
}

// makeBenchmarkPod makes the pod of a job of a BenchmarkRun.
func (k *kubelets) makeBenchmarkPod(ctx context.Context, job *batchv1.Job) error {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = job.Namespace, job.Name+"-"+string(job.UID[:5])
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod.Spec.NodeName, _, _ = strings.Cut(job.Annotations[children.AnnotationNodes], ",")
	k.mutex.Lock()
	k.benchmarks[client.ObjectKeyFromObject(job)] = client.ObjectKeyFromObject(pod)
	k.mutex.Unlock()
	if err := k.Create(ctx, pod); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make the pod of a benchmark: %w", err)
	}
	return nil
}

// collect plays the garbage collector: the pod of a benchmark is deleted with its job.
func (k *kubelets) collect(ctx context.Context, job types.NamespacedName) error {
	k.mutex.Lock()
	name, there := k.benchmarks[job]
	k.mutex.Unlock()
	if !there {
		return nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	if err := k.Delete(ctx, pod, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("collect the pod of a benchmark: %w", err)
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	if k.benchmarks[job] == name {
		delete(k.benchmarks, job)
	}
	return nil
}

// serveLogs plays the kubelets of all nodes for `kubectl logs`, until ctx ends. The API server accepts any certificate of a kubelet if it
// has no CA to check it with.
func serveLogs(ctx context.Context, background *sync.WaitGroup, listener net.Listener, pods client.Reader) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", func(w http.ResponseWriter, request *http.Request) {
		var pod corev1.Pod
		key := client.ObjectKey{Namespace: request.PathValue("namespace"), Name: request.PathValue("pod")}
		if err := pods.Get(request.Context(), key, &pod); err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		printed, err := output(&pod)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(printed)
	})
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: mux, ReadHeaderTimeout: startLimit}}
	server.StartTLS()
	background.Go(func() { <-ctx.Done(); server.Close() })
}

// output is the output of a benchmark's pod.
func output(pod *corev1.Pod) ([]byte, error) {
	switch pod.Labels[children.LabelRole] {
	case children.RoleChecker:
		answer, err := json.Marshal(spec.Checked{FreeBytes: diskBytes, FreeInodes: -1})
		return append(answer, '\n'), err
	case children.RoleClient:
		recorded, err := os.ReadFile(recording)
		return printed.Log(recorded), err
	default:
		return nil, nil
	}
}
