//go:build envtest

package benchmarkrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/envtest/apiserver"
)

var server *apiserver.Server

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	apiserver.Run(m, &server, apiserver.WithMPIJob())
}

// outcome is the result of a repetition.
type outcome struct {
	output string
	code   int32
	hangs  bool
}

// cluster simulates what a test's API server lacks: the controllers of Jobs and MPIJobs, the kubelet with its tools and the filesystem that
// they write to, and the garbage collector.
type cluster struct {
	t         *testing.T
	client    client.Client
	namespace string
	// result returns the outcome of a repetition. Without it, a tool prints a number that differs for each repetition.
	result func(point, repetition int) outcome
	// before is called when a tool starts.
	before func(job client.Object)
	// free is the free space that the filesystem reports; missing lists the programs that the image lacks.
	free    int64
	missing []string
	// holds keeps a queued job suspended; drops counts how often caches were dropped, by node.
	holds bool
	drops map[string]int
	// ran counts the tool's starts by the name of the job; directories holds the runs' directories in the filesystem.
	ran         map[string]int
	directories map[string]bool
	// kept is the directory that the last step has left for the next one.
	kept    string
	mutex   sync.Mutex
	outputs map[string]string
}

// Logs implements LogReader.
func (c *cluster) Logs(_ context.Context, pod types.NamespacedName, container string, _ int64) (io.ReadCloser, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	output, ok := c.outputs[pod.Name]
	if !ok || container != children.ContainerName {
		return nil, fmt.Errorf("pod %s has no container %s", pod.Name, container)
	}
	return io.NopCloser(strings.NewReader(output)), nil
}

func (c *cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) list(list client.ObjectList) {
	c.t.Helper()
	err := c.client.List(c.t.Context(), list, client.InNamespace(c.namespace))
	if !meta.IsNoMatchError(err) {
		c.must(err)
	}
}

// play simulates one round, and returns whether there was anything to do.
func (c *cluster) play() (busy bool) {
	var jobs batchv1.JobList
	var mpiJobs mpiv2.MPIJobList
	var pods corev1.PodList
	c.list(&jobs)
	c.list(&mpiJobs)
	c.list(&pods)
	pods.Items = slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Labels[v1alpha1.LabelBenchmarkRun] == "" })
	owners, started := map[types.UID]bool{}, map[types.UID]bool{}
	busy = c.dropCaches()
	for _, p := range pods.Items {
		started[p.OwnerReferences[0].UID] = true
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		owners[job.UID] = true
		if !started[job.UID] && !c.queued(job, &job.Spec.Suspend) {
			c.runJob(job)
			busy = true
		}
	}
	for i := range mpiJobs.Items {
		job := &mpiJobs.Items[i]
		owners[job.UID] = true
		if !started[job.UID] && !c.queued(job, &job.Spec.RunPolicy.Suspend) {
			c.runMPIJob(job)
			busy = true
		}
	}
	for i := range pods.Items {
		if !owners[pods.Items[i].OwnerReferences[0].UID] {
			c.must(client.IgnoreNotFound(c.client.Delete(c.t.Context(), &pods.Items[i], client.GracePeriodSeconds(0))))
			busy = true
		}
	}
	return busy
}

// queued reports whether its queue holds a job back; otherwise the queue releases it.
func (c *cluster) queued(job client.Object, suspend **bool) bool {
	if *suspend == nil || !**suspend {
		return false
	}
	if c.holds {
		return true
	}
	NewWithT(c.t).Expect(job.GetLabels()).To(HaveKey(children.LabelQueue))
	*suspend = new(false)
	c.must(c.client.Update(c.t.Context(), job))
	return false
}

// dropCaches simulates the agents of nodes.
func (c *cluster) dropCaches() (busy bool) {
	var all v1alpha1.NodeInventoryList
	c.must(c.client.List(c.t.Context(), &all, client.MatchingLabels{"client": c.namespace}))
	for i := range all.Items {
		node := &all.Items[i]
		request := node.Annotations[v1alpha1.AnnotationDropCaches]
		if done := node.Status.DroppedCaches; request == "" || done != nil && done.Request == request {
			continue
		}
		c.drops[node.Name]++
		node.Status.DroppedCaches = &v1alpha1.DroppedCaches{Request: request, Time: metav1.Now()}
		c.must(c.client.Status().Update(c.t.Context(), node))
		busy = true
	}
	return busy
}

// start creates a pod from a template, on the first of its nodes.
func (c *cluster) start(owner client.Object, template corev1.PodTemplateSpec, suffix string, node int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Namespace, pod.Name = c.namespace, owner.GetName()+suffix
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Job", Name: owner.GetName(), UID: owner.GetUID(), Controller: new(true)}}
	nodes := strings.Split(owner.GetAnnotations()[children.AnnotationNodes], ",")
	pod.Spec.NodeName = nodes[node%len(nodes)]
	if pod.Spec.NodeName == "" { // the scheduler chooses
		pod.Spec.NodeName = fmt.Sprintf("%s-%d", c.namespace, node)
	}
	c.must(c.client.Create(c.t.Context(), pod))
	return pod
}

// end sets the state of a pod ten seconds after its job was created; a hanging pod keeps running.
func (c *cluster) end(pod *corev1.Pod, job client.Object, done outcome) {
	c.mutex.Lock()
	c.outputs[pod.Name] = done.output
	if done.code == 0 && !done.hangs {
		c.outputs[pod.Name] = string(printed.Log([]byte(done.output)))
	}
	c.mutex.Unlock()
	made := job.GetCreationTimestamp()
	status := corev1.ContainerStatus{Name: children.ContainerName, Image: pod.Spec.Containers[0].Image, ImageID: "sha256:1234"}
	switch {
	case done.hangs:
		pod.Status.Phase = corev1.PodRunning
		status.State.Running = &corev1.ContainerStateRunning{StartedAt: made}
	default:
		pod.Status.Phase = corev1.PodSucceeded
		if done.code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		status.State.Terminated = &corev1.ContainerStateTerminated{
			ExitCode: done.code, StartedAt: made, FinishedAt: metav1.NewTime(made.Add(10 * time.Second)),
		}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	c.must(c.client.Status().Update(c.t.Context(), pod))
}

// perform simulates a pod: it reads the configuration of the node binary, and returns the result.
func (c *cluster) perform(job client.Object, template corev1.PodTemplateSpec) outcome {
	g := NewWithT(c.t)
	var told spec.Benchmark
	if template.Labels[children.LabelRole] == children.RoleExporter {
		c.ran[job.GetName()]++
		return outcome{}
	}
	g.Expect(json.Unmarshal([]byte(template.Annotations[children.AnnotationTold]), &told)).To(Succeed())
	c.ran[job.GetName()]++
	if template.Labels[children.LabelRole] == children.RoleCleaner {
		g.Expect(c.running()).To(BeEmpty(), "nothing may run while the files are removed")
		delete(c.directories, told.Root)
		return outcome{}
	}
	if template.Labels[children.LabelRole] == children.RoleChecker {
		answer, err := json.Marshal(spec.Checked{FreeBytes: c.free, FreeInodes: -1, MissingPrograms: c.missing, Mounted: "nfs4 (rw)"})
		g.Expect(err).NotTo(HaveOccurred())
		return outcome{output: string(answer) + "\n"}
	}
	g.Expect(path.Dir(told.Directory)).To(Equal(told.Root))
	if told.KeepBefore {
		g.Expect(c.kept).To(Equal(told.Directory), "a later step finds what the one before has left")
	}
	c.kept = ""
	if told.KeepAfter {
		c.kept = told.Directory
	}
	c.directories[told.Root] = true
	t, is := turns.TurnOf(job.GetName())
	g.Expect(is).To(BeTrue())
	g.Expect(path.Base(told.Directory)).To(Equal(t.Directory()))
	if c.before != nil {
		c.before(job)
	}
	if c.result != nil && !t.WarmUp {
		if done := c.result(t.Point, t.Repetition); done != (outcome{}) {
			return done
		}
	}
	if t.Step > 0 {
		return outcome{output: fmt.Sprintf("scan %d kB/s\n", t.Repetition)}
	}
	return outcome{output: fmt.Sprintf("parallelfs: ready\nwrite %d00%d kB/s\nread 7 kB/s\n", t.Point+1, t.Repetition)}
}

// running returns the pods of tools that have not ended.
func (c *cluster) running() []string {
	var pods corev1.PodList
	c.list(&pods)
	var names []string
	for _, p := range pods.Items {
		if p.Labels[v1alpha1.LabelBenchmarkRun] != "" && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			names = append(names, p.Name)
		}
	}
	return names
}

func (c *cluster) runJob(job *batchv1.Job) {
	done := c.perform(job, job.Spec.Template)
	c.end(c.start(job, job.Spec.Template, "-"+string(job.UID[:5]), 0), job, done)
	made := job.CreationTimestamp
	job.Status.StartTime = &made
	yes := func(kinds ...batchv1.JobConditionType) {
		for _, kind := range kinds {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
				Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: made, Message: "Job has reached the specified backoff limit",
			})
		}
	}
	switch {
	case done.hangs:
		job.Status.Active = 1
	case done.code != 0:
		job.Status.Failed = 1
		yes(batchv1.JobFailureTarget, batchv1.JobFailed)
	default:
		job.Status.Succeeded = 1
		job.Status.CompletionTime = new(metav1.NewTime(made.Add(10 * time.Second)))
		yes(batchv1.JobSuccessCriteriaMet, batchv1.JobComplete)
	}
	c.must(c.client.Status().Update(c.t.Context(), job))
}

// runMPIJob simulates the MPI operator: workers first, then the launcher; the workers are removed after the launcher has ended.
func (c *cluster) runMPIJob(job *mpiv2.MPIJob) {
	worker, launcher := job.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeWorker], job.Spec.MPIReplicaSpecs[mpiv2.MPIReplicaTypeLauncher]
	done := c.perform(job, launcher.Template)
	for i := range int(*worker.Replicas) {
		pod := c.start(job, worker.Template, fmt.Sprintf("-worker-%d", i), i)
		c.end(pod, job, outcome{hangs: true})
		if !done.hangs {
			c.must(c.client.Delete(c.t.Context(), pod, client.GracePeriodSeconds(0)))
		}
	}
	c.end(c.start(job, launcher.Template, "-launcher-"+string(job.UID[:5]), 0), job, done)
	if !done.hangs {
		kind := mpiv2.JobSucceeded
		if done.code != 0 {
			kind = mpiv2.JobFailed
		}
		job.Status.Conditions = append(job.Status.Conditions, mpiv2.JobCondition{Type: kind, Status: corev1.ConditionTrue})
		c.must(c.client.Status().Update(c.t.Context(), job))
	}
}

// words is a tool whose output is "name value unit" per line.
type words struct{}

func (words) Name() v1alpha1.BenchmarkTool { return v1alpha1.ToolIOzone }

func (words) Parameters(s *v1alpha1.BenchmarkRunSpec) []benchmarks.Parameter {
	return []benchmarks.Parameter{
		{Name: "processes", Kind: benchmarks.Count, Value: fmt.Sprint(s.Processes)},
		{Name: "clients", Kind: benchmarks.Count, Value: fmt.Sprint(max(1, s.Clients.Count))},
		{Name: "iozone.recordSize", Kind: benchmarks.Size, Value: string(s.IOzone.RecordSize)},
		{Name: "iozone.fileSize", Kind: benchmarks.Size, Value: string(s.IOzone.FileSize)},
	}
}

func (words) Plan(s *v1alpha1.BenchmarkRunSpec, p benchmarks.Point) (benchmarks.Plan, error) {
	command := benchmarks.Command{Argv: []string{"words", p.Parameters["iozone.recordSize"]}}
	plan := benchmarks.Plan{Clients: 1, Processes: 1, Demand: benchmarks.Demand{Bytes: 1 << 30}}
	if s.IOzone.Mode == v1alpha1.IOzoneDistributed {
		command.Launch, plan.Clients, plan.Processes = benchmarks.OnLauncher, int(s.Clients.Count), 4
		command.Files = []benchmarks.File{{PerProcess: "$(HOST) $(DIRECTORY)\n"}}
	}
	plan.Steps = []benchmarks.Step{{Command: command}}
	if benchmarks.DropsBetweenPhases(s) {
		plan.Steps = []benchmarks.Step{{Name: "write", Command: command}, {Name: "scan", Command: command}}
	}
	return plan, nil
}

func (words) Parse(_ *v1alpha1.BenchmarkRunSpec, _ benchmarks.Point, _ int, output []byte) (benchmarks.Report, error) {
	samples, err := parseWords(output)
	return benchmarks.Report{Version: "words 1.0", Samples: samples}, err
}

func parseWords(output []byte) ([]benchmarks.Sample, error) {
	var out []benchmarks.Sample
	for line := range strings.Lines(string(output)) {
		var s benchmarks.Sample
		if _, err := fmt.Sscanf(line, "%s %f %s", &s.Name, &s.Value, &s.Unit); err != nil {
			return nil, fmt.Errorf("the line %q is no result", strings.TrimSpace(line))
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, errors.New("the output is empty")
	}
	return out, nil
}

var errKilled = errors.New("the operator was killed")

// line is the connection of an operator: it counts reads and writes, and fails after the given number of writes.
type line struct {
	next   http.RoundTripper
	mutex  sync.Mutex
	reads  int
	writes int
	limit  int // -1 for none
}

func (l *line) RoundTrip(request *http.Request) (*http.Response, error) {
	l.mutex.Lock()
	if l.limit >= 0 && l.writes >= l.limit {
		l.mutex.Unlock()
		return nil, errKilled
	}
	if request.Method != http.MethodGet {
		l.writes++
	} else {
		l.reads++
	}
	l.mutex.Unlock()
	return l.next.RoundTrip(request)
}

// setting is the world of a test: a namespace with a Ready FileSystem that two nodes mount, and an operator.
type setting struct {
	*cluster
	line     *line
	operator *Reconciler
	clock    *clocktesting.FakePassiveClock
	recorder *events.FakeRecorder
}

const fileSystemName = "scratch"

// newSetting creates a setting for a test, which then runs in parallel with others.
func newSetting(t *testing.T, s *apiserver.Server) *setting {
	t.Helper()
	t.Parallel()
	namespace := s.Namespace(t.Context(), t)
	l := &line{limit: -1}
	watched := rest.CopyConfig(s.Config)
	watched.Wrap(func(next http.RoundTripper) http.RoundTripper { l.next = next; return l })
	c, err := client.New(watched, client.Options{Scheme: s.Scheme, Mapper: s.Client.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	out := &setting{
		cluster: &cluster{
			t: t, client: s.Client, namespace: namespace, free: 1 << 40,
			ran: map[string]int{}, drops: map[string]int{}, directories: map[string]bool{}, outputs: map[string]string{},
		},
		line: l, clock: clocktesting.NewFakePassiveClock(time.Now()), recorder: events.NewFakeRecorder(1000),
	}
	out.operator = &Reconciler{
		Client: c, Reader: c, Clock: out.clock, PollInterval: 3 * time.Second, Logs: out.cluster, Recorder: out.recorder,
		Tools:    map[v1alpha1.BenchmarkTool]benchmarks.Tool{v1alpha1.ToolIOzone: words{}},
		Read:     reading.Here(map[v1alpha1.BenchmarkTool]benchmarks.Tool{v1alpha1.ToolIOzone: words{}}),
		Backends: all.Backends(backend.DefaultTellTime),
		Images:   backend.Images{Node: "node:1", Benchmarks: map[string]string{"iozone": "iozone:1"}, PullPolicy: "Never"},
	}
	out.makeNodes()
	out.makeFileSystem()
	return out
}

func (s *setting) nodeName(i int) string { return fmt.Sprintf("%s-%d", s.namespace, i) }

func (s *setting) makeNodes() {
	for i := range 2 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.nodeName(i), Labels: map[string]string{"client": s.namespace}}}
		s.must(s.client.Create(s.t.Context(), node))
		node.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8")}
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		s.must(s.client.Status().Update(s.t.Context(), node))
		s.t.Cleanup(func() { s.must(s.client.Delete(context.Background(), node)) })
	}
}

// makeAgents gives each node an agent.
func (s *setting) makeAgents() {
	for i := range 2 {
		inventory := &v1alpha1.NodeInventory{ObjectMeta: metav1.ObjectMeta{Name: s.nodeName(i), Labels: map[string]string{"client": s.namespace}}}
		s.must(s.client.Create(s.t.Context(), inventory))
		s.t.Cleanup(func() { s.must(s.client.Delete(context.Background(), inventory)) })
	}
}

// makeDaemon makes the pod of a daemon of the filesystem.
func (s *setting) makeDaemon() *corev1.Pod {
	set := s.makeSet("scratch-master")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: "scratch-master",
			Labels:          map[string]string{v1alpha1.LabelFileSystem: fileSystemName, v1alpha1.LabelComponent: "master"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))},
		},
		Spec: corev1.PodSpec{NodeName: s.nodeName(0), Containers: []corev1.Container{{Name: "master", Image: "moosefs:1"}}},
	}
	s.must(s.client.Create(s.t.Context(), pod))
	return pod
}

// makeSet makes a DaemonSet of the filesystem.
func (s *setting) makeSet(name string) *appsv1.DaemonSet {
	fs, labels := &v1alpha1.FileSystem{}, map[string]string{v1alpha1.LabelFileSystem: fileSystemName, v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}
	s.must(s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: fileSystemName}, fs))
	set := &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: name, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(fs, v1alpha1.GroupVersion.WithKind("FileSystem"))},
		},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "daemon", Image: "moosefs:1"}}},
		}},
	}
	s.must(s.client.Create(s.t.Context(), set))
	return set
}

// makeClient makes the pod that mounts the filesystem on a node.
func (s *setting) makeClient(node string, set types.UID) {
	pod := clientPod(node, corev1.ConditionTrue)
	pod.OwnerReferences[0].UID = set
	pod.Namespace, pod.UID = s.namespace, ""
	pod.Labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	pod.Spec.Containers = []corev1.Container{{Name: "client", Image: "moosefs:1"}}
	status := pod.Status
	s.must(s.client.Create(s.t.Context(), pod))
	pod.Status = status
	s.must(s.client.Status().Update(s.t.Context(), pod))
}

// restart counts one more start of a daemon.
func (s *setting) restart(pod *corev1.Pod) {
	restarts := int32(0)
	if len(pod.Status.ContainerStatuses) > 0 {
		restarts = pod.Status.ContainerStatuses[0].RestartCount
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "master", Image: "moosefs:1", RestartCount: restarts + 1}}
	s.must(s.client.Status().Update(s.t.Context(), pod))
}

func (s *setting) makeFileSystem() {
	anywhere := v1alpha1.NodeSelector{"client": s.namespace}
	fs := &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fileSystemName},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: "4.57.5", MooseFS: &v1alpha1.MooseFSSpec{},
			MetadataServers: v1alpha1.MetadataSpec{NodeSelector: anywhere, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/meta"}}},
			StoragePools: []v1alpha1.StoragePoolSpec{{
				Name: "ssd", NodeSelector: anywhere, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/ssd"}},
			}},
			Clients: &v1alpha1.ClientsSpec{NodeSelector: anywhere, MountPath: "/mnt/scratch"},
		},
	}
	s.must(s.client.Create(s.t.Context(), fs))
	fs.Status.Management = &v1alpha1.ManagementStatus{Address: "10.0.0.1:9421"}
	clients := s.makeSet("scratch-client")
	for i := range 2 {
		s.makeClient(s.nodeName(i), clients.UID)
	}
	fs.Status.Conditions = []metav1.Condition{{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonHealthy, LastTransitionTime: metav1.Now(),
	}}
	s.must(s.client.Status().Update(s.t.Context(), fs))
}

// makeRun makes a run of two points with two repetitions each.
func (s *setting) makeRun(name string, change ...func(*v1alpha1.BenchmarkRun)) types.NamespacedName {
	run := &v1alpha1.BenchmarkRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec: v1alpha1.BenchmarkRunSpec{
			Target: v1alpha1.BenchmarkTarget{FileSystem: v1alpha1.FileSystemTarget{Name: fileSystemName}}, Tool: v1alpha1.ToolIOzone, IOzone: &v1alpha1.IOzoneSpec{},
			Clients:     v1alpha1.BenchmarkClients{NodeSelector: v1alpha1.NodeSelector{"client": s.namespace}},
			Sweep:       []v1alpha1.SweepDimension{{Name: "iozone.recordSize", Values: []v1alpha1.SweepValue{"64Ki", "1Mi"}}},
			Repetitions: 2,
		},
	}
	for _, c := range change {
		c(run)
	}
	s.must(s.client.Create(s.t.Context(), run))
	return client.ObjectKeyFromObject(run)
}

func (s *setting) run(key types.NamespacedName) *v1alpha1.BenchmarkRun {
	s.t.Helper()
	run := &v1alpha1.BenchmarkRun{}
	s.must(s.client.Get(s.t.Context(), key, run))
	return run
}

func (s *setting) change(key types.NamespacedName, change func(*v1alpha1.BenchmarkRun)) {
	s.t.Helper()
	run := s.run(key)
	change(run)
	s.must(s.client.Update(s.t.Context(), run))
}

func (s *setting) reconcile(key types.NamespacedName) error {
	_, err := s.operator.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: key})
	return err
}

// settle runs the operator and the cluster in turn until neither has anything to do.
func (s *setting) settle(keys ...types.NamespacedName) {
	s.t.Helper()
	const enough = 200
	for range enough {
		before := s.line.writes
		for _, key := range keys {
			s.must(s.reconcile(key))
		}
		if busy := s.play(); !busy && s.line.writes == before {
			return
		}
	}
	s.t.Fatalf("still not settled after %d rounds: %+v", enough, s.run(keys[0]).Status)
}

// announced returns the events so far, as "Warning PointFailed point 0: …".
func (s *setting) announced() []string {
	var out []string
	for {
		select {
		case text := <-s.recorder.Events:
			out = append(out, text)
		default:
			return out
		}
	}
}
