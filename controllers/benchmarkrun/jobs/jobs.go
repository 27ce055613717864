// Package jobs builds the Jobs and MPIJobs of a run, as pure functions of its scope: those that measure, check, clean up and export.
package jobs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/placement"
	"parallelfs.dev/operator/controllers/benchmarkrun/children"
	"parallelfs.dev/operator/controllers/benchmarkrun/members"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	binaryDirectory = "/parallelfs"
	nodeBinary      = binaryDirectory + "/node"
	configDirectory = "/etc/parallelfs"
	configFile      = "benchmark.json"

	// yieldWhenIdle makes a waiting process of Open MPI release its CPU (ompi_info, mpi_yield_when_idle). By default it spins.
	yieldWhenIdle = "OMPI_MCA_mpi_yield_when_idle=1"

	// sshPort is the port of the workers' sshd, in the network of each pod.
	sshPort = 22
	// The user of the init container that brings the node binary.
	nobody int64 = 65534
	// deadlineMargin is how long a job may run beyond the point's timeout before Kubernetes ends it, for the case that no operator runs. It is
	// longer than scope.OverdueAfter, because the output is then lost.
	deadlineMargin = 3 * time.Minute
)

// Renderer builds the jobs of a run.
type Renderer struct {
	Scope  *scope.Scope
	Images backend.Images
}

// task describes the work of a job.
type task struct {
	name, role string
	// verb is the verb of `node bench`, in a container of the image, with more arguments.
	verb, image string
	arguments   []string
	// nodes is empty if the scheduler chooses clients of them.
	nodes     []string
	clients   int
	placement string
	config    spec.Benchmark
	// more holds the same work for other directories, done first.
	more     []spec.Benchmark
	deadline time.Duration
	retries  int32
	// turn is true for a job that a queue may hold.
	turn bool
}

func (r Renderer) mount() spec.Mount {
	return spec.Mount{
		Path: r.Scope.Mount.Path, FSType: r.Scope.Mount.FSType, Source: r.Scope.Mount.Source, Volume: r.Scope.Volume != nil,
	}
}

// Turn returns the job of a turn: a Job on one client or on servers, an MPIJob over several clients, or a Job of the backend.
func (r Renderer) Turn(t turns.Turn) (client.Object, error) {
	plan := r.Scope.Plans[t.Point]
	command := plan.Steps[t.Step].Command
	job := task{
		name: turns.JobName(r.Scope.Run.Name, t.Suffix()), image: r.Scope.Image, turn: true, deadline: r.Scope.PointTimeout() + deadlineMargin,
		config: spec.Benchmark{Argv: command.Argv, Env: command.Env, Stdin: command.Stdin, TimeoutSeconds: seconds(r.Scope.PointTimeout())},
	}
	for _, f := range command.Files {
		job.config.Files = append(job.config.Files, spec.BenchmarkFile(f))
	}
	switch command.Launch {
	case benchmarks.OnManagement:
		return r.managementJob(t, job)
	case benchmarks.OnServers:
		job.nodes = r.Scope.Members.NodesOf(command.Role)
		job.role, job.verb, job.arguments = children.RoleServer, "local", []string{"--rank", "$(JOB_COMPLETION_INDEX)"}
		job.config.Programs = append(slices.Clone(command.Argv[:1]), command.Programs...)
		job.config.ForEachTarget, job.config.Targets = command.ForEachTarget, r.Scope.Servers.MeasuredTargets(r.input(), command.Role)
		return r.serversJob(job, command.Role)
	case benchmarks.OnClient, benchmarks.OnLauncher, benchmarks.OnProcesses, benchmarks.OnEachProcess, benchmarks.OnEachClient:
	}
	placed, err := r.Scope.Place(t.Point, t.Step)
	if err != nil {
		return nil, err
	}
	root := r.Scope.Root(t.Point)
	job.clients, job.placement = len(placed), placement.Describe(placed)
	if r.Scope.Volume == nil {
		job.nodes = placement.Nodes(placed)
	}
	job.config.Mount, job.config.Root, job.config.Directory = r.mount(), root, path.Join(root, t.Directory())
	job.config.KeepBefore, job.config.KeepAfter = t.Step > 0, t.Step < len(plan.Steps)-1
	job.config.NeedBytes, job.config.NeedInodes = plan.Demand.Bytes, plan.Demand.Inodes
	if !scope.Distributed(command.Launch) {
		job.role, job.verb = children.RoleClient, "run"
		return r.job(job), nil
	}
	job.config.Placement = placement.Counts(placed)
	if command.Launch != benchmarks.OnLauncher {
		job.config.Ranks = &spec.Ranks{Each: command.Launch != benchmarks.OnProcesses}
		if r.Scope.Oversubscribed(placed) {
			// Open MPI does so itself if it has the number of CPUs, but here it gets only the number of processes.
			job.config.Env = append(slices.Clone(job.config.Env), yieldWhenIdle)
		}
	}
	return r.mpiJob(job, slices.Max(job.config.Placement)), nil
}

// services returns what the filesystem reports about its targets.
func services(of members.Members) map[backend.TargetKey]v1alpha1.TargetService {
	out := make(map[backend.TargetKey]v1alpha1.TargetService, len(of.Targets))
	for i := range of.Targets {
		t := &of.Targets[i]
		out[backend.TargetKey{Node: t.Node, Name: cmp.Or(t.StorageTarget, t.Directory)}] = v1alpha1.TargetService{
			State: t.State, CapacityBytes: t.CapacityBytes, UsedBytes: t.UsedBytes, Removal: t.Removal,
		}
	}
	return out
}

// managementJob returns the Job that the backend makes, with the labels by which the run finds its jobs.
func (r Renderer) managementJob(t turns.Turn, job task) (client.Object, error) {
	request := backend.BenchmarkRequest{Name: job.name, Timeout: r.Scope.PointTimeout()}
	pool, err := r.Scope.Pool(t.Point)
	if err != nil {
		return nil, err
	}
	if r.Scope.Run.Spec.Target.FileSystem.StoragePool != "" || r.Scope.Points[t.Point].Parameters[benchmarks.ParameterStoragePool] != "" {
		request.StoragePool = pool
	}
	request.Services = services(r.Scope.Members)
	for _, call := range r.Scope.Plans[t.Point].Steps[t.Step].Command.Calls {
		request.Calls = append(request.Calls, backend.BenchmarkCall(call))
	}
	made, err := r.Scope.Management.BenchmarkJob(r.input(), request)
	if err != nil {
		return nil, fmt.Errorf("make the job %s: %w", job.name, err)
	}
	meta := r.meta(job)
	for _, to := range []*metav1.ObjectMeta{&made.ObjectMeta, &made.Spec.Template.ObjectMeta} {
		if to.Labels == nil {
			to.Labels = map[string]string{}
		}
		maps.Copy(to.Labels, children.Labels(r.Scope.Run))
	}
	made.Labels, made.Spec.Template.Labels[children.LabelChild] = meta.Labels, job.name
	made.Spec.Template.Labels[children.LabelRole] = children.RoleClient
	if made.Annotations == nil {
		made.Annotations = map[string]string{}
	}
	maps.Copy(made.Annotations, meta.Annotations)
	r.queue(job, &made.Spec.Suspend)
	made.Spec.Template.Spec.PriorityClassName = r.Scope.Run.Spec.PriorityClassName
	return made, nil
}

// input returns the part of the Input that a backend may use for a benchmark.
func (r Renderer) input() backend.Input {
	in := backend.Input{FileSystem: r.Scope.FileSystem, FileSystemNodes: r.Scope.Members.FileSystemNodes(), Images: r.Images}
	for _, name := range slices.Sorted(maps.Keys(r.Scope.Nodes)) {
		in.Nodes = append(in.Nodes, nodeFacts(r.Scope.Nodes[name]))
	}
	return in
}

func nodeFacts(n *corev1.Node) backend.Node {
	facts := backend.Node{Name: n.Name, Labels: n.Labels, Ready: scope.NodeReady(n)}
	facts.InternalIPs = nodefacts.InternalIPs(n)
	facts.IP = nodefacts.AddressOf(facts.InternalIPs, nodefacts.AllFamilies())
	return facts
}

// maxTargets is how many bytes the targets of a job may take. Kubernetes allows 262144 for all annotations of an object together.
const maxTargets = 192 << 10

// serverGraceSeconds is how long a pod on a server may take to end, because an interrupted tool reverts its settings in the kernel.
const serverGraceSeconds int64 = 60

// serversJob returns a Job with one pod on each node with servers of a role. The pod has all privileges, because a tool of the node loads
// modules of its kernel and talks to them. The image is the operator's own and contains no part of the tool, because the author of a run
// must not get access to the nodes.
func (r Renderer) serversJob(t task, role v1alpha1.Role) (client.Object, error) {
	if len(t.nodes) == 0 {
		return nil, fmt.Errorf("FileSystem %s has no servers of the role %s", r.Scope.FileSystem.Name, role)
	}
	if size := len(encode(t.config)); size > maxTargets {
		return nil, fmt.Errorf("the targets of the servers of FileSystem %s take %d bytes, and a job holds %d; measure it from its clients",
			r.Scope.FileSystem.Name, size, maxTargets)
	}
	t.image = r.Images.Node
	job := r.podJob(t)
	count := int32(len(t.nodes)) //nolint:gosec // nodes of one cluster
	job.Spec.CompletionMode = new(batchv1.IndexedCompletion)
	job.Spec.Completions, job.Spec.Parallelism = &count, &count
	pod := &job.Spec.Template.Spec
	pod.HostNetwork, pod.HostPID = true, true
	pod.TerminationGracePeriodSeconds = new(serverGraceSeconds)
	pod.Affinity.PodAntiAffinity = onePerNode(t.name, t.role)
	pod.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true), RunAsUser: new(int64(0))}
	pod.Containers[0].Env = append(pod.Containers[0].Env, corev1.EnvVar{Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}})
	return job, nil
}

// onePerNode places the pods of a job on different nodes.
func onePerNode(job, role string) *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{children.LabelChild: job, children.LabelRole: role}},
		}},
	}
}

// MaxCandidates is how many nodes a job lists that can run on any of them.
const MaxCandidates = 32

// anyOf chooses nodes for a job that can run on any of them: the nodes of the run first, and no more than are useful.
func anyOf(w *scope.Scope, nodes []string) []string {
	var out []string
	for _, c := range w.TakingPart() {
		if slices.Contains(nodes, c.Name) {
			out = append(out, c.Name)
		}
	}
	for _, node := range nodes {
		if len(out) >= MaxCandidates {
			break
		}
		if !slices.Contains(out, node) {
			out = append(out, node)
		}
	}
	out = slices.Clone(out[:min(len(out), MaxCandidates)])
	slices.Sort(out)
	return out
}

// Cleaner returns the Job that removes everything that the run wrote, on any node that mounts the filesystem.
func (r Renderer) Cleaner() client.Object {
	t := task{
		name: turns.CleanName(r.Scope.Run.Name), role: children.RoleCleaner, verb: "clean", image: r.Images.Node,
		nodes:    anyOf(r.Scope, r.Scope.Mounted),
		deadline: scope.CleanTimeout + deadlineMargin, retries: 3,
	}
	for i, root := range r.Scope.Roots(r.Scope.Run.Status.Directory) {
		config := spec.Benchmark{
			Mount: r.mount(), Root: root, Directory: path.Join(root, "none"), Argv: []string{}, TimeoutSeconds: seconds(scope.CleanTimeout),
		}
		if i == 0 {
			t.config = config
		} else {
			t.more = append(t.more, config)
		}
	}
	return r.job(t)
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func (r Renderer) meta(t task) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: r.Scope.Run.Namespace, Name: t.name, Labels: children.Labels(r.Scope.Run),
		Annotations: map[string]string{children.AnnotationNodes: strings.Join(t.nodes, ",")},
	}
	if t.placement != "" {
		out.Annotations[children.AnnotationPlacement] = t.placement
	}
	if !t.turn {
		return out
	}
	if r.Scope.Run.Spec.QueueName != "" {
		out.Labels[children.LabelQueue] = r.Scope.Run.Spec.QueueName
	} else {
		// A job that leaves a queue is fingerprinted at that time.
		out.Annotations[children.AnnotationTrust] = r.Scope.Trust(t.nodes).Encode()
	}
	return out
}

// queue suspends a job until its queue releases it.
func (r Renderer) queue(t task, suspend **bool) {
	if t.turn && r.Scope.Run.Spec.QueueName != "" {
		*suspend = new(true)
	}
}

// job returns a Job with one pod. A turn has no retries, because a failure is a result too, and a second try would not be the same.
func (r Renderer) job(t task) client.Object { return r.podJob(t) }

func (r Renderer) podJob(t task) *batchv1.Job {
	pod := r.pod(t.name, t.role, t.image, t.config)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	command := func(file string) []string {
		return append([]string{nodeBinary, "bench", t.verb, "--spec", configDirectory + "/" + file}, t.arguments...)
	}
	pod.Spec.Containers[0].Command = command(configFile)
	if t.config.Mount.Path != "" {
		r.mountTarget(pod)
	}
	for i, config := range t.more {
		name, annotation := fmt.Sprintf("benchmark-%d.json", i+1), fmt.Sprintf("%s-%d", children.AnnotationTold, i+1)
		pod.Annotations[annotation] = encode(config)
		volume := &pod.Spec.Volumes[slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "told" })]
		volume.DownwardAPI.Items = append(volume.DownwardAPI.Items, fileOf(name, annotation))
		c := pod.Spec.Containers[0].DeepCopy()
		c.Name, c.Command = fmt.Sprintf("%s-%d", children.ContainerName, i+1), command(name)
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, *c)
	}
	r.place(pod, t)
	r.besideServers(pod, t)
	job := &batchv1.Job{
		ObjectMeta: r.meta(t),
		Spec:       batchv1.JobSpec{BackoffLimit: &t.retries, ActiveDeadlineSeconds: new(seconds(t.deadline)), Template: *pod},
	}
	r.queue(t, &job.Spec.Suspend)
	return job
}

// mpiJob returns an MPIJob with a launcher, and one worker on each client. The launcher starts when the workers' sshd answer; it has no
// mount. The MPI operator copies the labels and annotations of the templates to the pods.
func (r Renderer) mpiJob(t task, slots int) client.Object {
	launcher := r.pod(t.name, children.RoleLauncher, t.image, t.config)
	c := &launcher.Spec.Containers[0]
	c.Command = []string{nodeBinary, "bench", "launch", "--spec", configDirectory + "/" + configFile, "--ssh-port", fmt.Sprint(sshPort)}
	// It runs beside a worker, where the image is present and the network reaches the others. With the tolerations alone it could run on a
	// control plane node.
	r.place(launcher, t)

	worker := r.pod(t.name, children.RoleWorker, t.image, t.config)
	c = &worker.Spec.Containers[0]
	c.Command = []string{nodeBinary, "bench", "work", "--spec", configDirectory + "/" + configFile, "--", sshd, "-De"}
	c.Ports = []corev1.ContainerPort{{Name: "ssh", ContainerPort: sshPort, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(sshPort)}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	// The capabilities with which sshd separates its privileges and opens a session (sshd(8), capabilities(7)): a child in chroot as the user
	// sshd, its port, and a record in the audit log of the kernel, without which it refuses a session.
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"AUDIT_WRITE", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"}
	r.mountTarget(worker)
	r.place(worker, t)
	r.besideServers(launcher, t)
	r.besideServers(worker, t)
	worker.Spec.Affinity.PodAntiAffinity = onePerNode(t.name, children.RoleWorker)

	job := &mpiv2.MPIJob{
		ObjectMeta: r.meta(t),
		Spec: mpiv2.MPIJobSpec{
			SlotsPerWorker:         new(int32(slots)), //nolint:gosec // at most spec.processes, an int32
			LauncherCreationPolicy: mpiv2.LauncherCreationPolicyWaitForWorkersReady,
			RunPolicy: mpiv2.RunPolicy{
				CleanPodPolicy: new(mpiv2.CleanPodPolicyRunning), BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(seconds(t.deadline)),
			},
			MPIReplicaSpecs: map[mpiv2.MPIReplicaType]*mpiv2.ReplicaSpec{
				// By default, a launcher is restarted in its pod, where no job counts it.
				mpiv2.MPIReplicaTypeLauncher: {Replicas: new(int32(1)), RestartPolicy: mpiv2.RestartPolicyNever, Template: *launcher},
				mpiv2.MPIReplicaTypeWorker: {
					Replicas:      new(int32(t.clients)), //nolint:gosec // nodes of one cluster
					RestartPolicy: mpiv2.RestartPolicyNever, Template: *worker,
				},
			},
		},
	}
	r.queue(t, &job.Spec.RunPolicy.Suspend)
	return job
}

// pod returns what all pods of a run share. They tolerate all taints, so that they can run wherever the clients are.
func (r Renderer) pod(job, role, image string, config spec.Benchmark) *corev1.PodTemplateSpec {
	podLabels := children.Labels(r.Scope.Run)
	podLabels[children.LabelChild], podLabels[children.LabelRole] = job, role
	install := corev1.Container{
		Name: "install", Image: r.Images.Node, ImagePullPolicy: corev1.PullPolicy(r.Images.PullPolicy),
		Command:         []string{"/node", "install", binaryDirectory},
		VolumeMounts:    []corev1.VolumeMount{{Name: "binary", MountPath: binaryDirectory}},
		SecurityContext: confined(nobody),
		Resources:       requests("10m", "16Mi"),
	}
	c := corev1.Container{
		Name: children.ContainerName, Image: image, ImagePullPolicy: corev1.PullPolicy(r.Images.PullPolicy),
		Env: []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "binary", MountPath: binaryDirectory, ReadOnly: true},
			{Name: "told", MountPath: configDirectory, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
		},
		// The pool's directory belongs to root. Without capabilities, root may do only that here.
		SecurityContext: confined(r.user()),
		// There is no CPU limit, unless the user sets one, because a throttled tool measures the throttle.
		Resources:                requests("100m", "64Mi"),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	pod := &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: map[string]string{children.AnnotationTold: encode(config)}},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			InitContainers: []corev1.Container{install},
			Containers:     []corev1.Container{c},
			Volumes: []corev1.Volume{
				{Name: "binary", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "told", VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
					Items: []corev1.DownwardAPIVolumeFile{fileOf(configFile, children.AnnotationTold)}}}},
			},
			PriorityClassName: r.Scope.Run.Spec.PriorityClassName,
		},
	}
	r.onVolume(&pod.Spec)
	r.asAsked(pod, role)
	return pod
}

// The maximum memory of a pod of a run on a node with servers, unless the user sets other limits. A tool of the servers works in the
// kernel. The memory of a tool on a client includes its buffers and the page cache of its files.
const (
	serverMemory = "1Gi"
	clientMemory = "8Gi"
	exportMemory = "256Mi"
)

// besideServers bounds the memory of a pod that may run on a node with servers. Without a limit, the kernel may kill a server instead of
// the pod. A pod that measures a volume may run on any node, and so may be beside servers of any filesystem.
func (r Renderer) besideServers(pod *corev1.PodTemplateSpec, t task) {
	servers := r.Scope.Members.Nodes()
	beside := slices.ContainsFunc(t.nodes, func(node string) bool { return slices.Contains(servers, node) })
	if !beside && r.Scope.Volume == nil {
		return
	}
	memory := clientMemory
	if t.role == children.RoleServer {
		memory = serverMemory
	}
	limitMemory(pod, memory)
}

// limitMemory limits the memory of all containers of a pod for which the user has set no limit. A request may be larger than the default.
func limitMemory(pod *corev1.PodTemplateSpec, memory string) {
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			of, limit := &containers[i].Resources, resource.MustParse(memory)
			if _, asked := of.Limits[corev1.ResourceMemory]; asked {
				continue
			}
			if request, asked := of.Requests[corev1.ResourceMemory]; asked && request.Cmp(limit) > 0 {
				limit = request
			}
			if of.Limits == nil {
				of.Limits = corev1.ResourceList{}
			}
			of.Limits[corev1.ResourceMemory] = limit
		}
	}
}

// asAsked sets the user's options for the run's pods. A privileged pod on a server gets neither labels nor annotations, because they could
// make an injector add a container. The author of a run must not get access to the nodes.
func (r Renderer) asAsked(pod *corev1.PodTemplateSpec, role string) {
	asked := r.Scope.Run.Spec.Pods
	if asked == nil {
		return
	}
	if role != children.RoleServer {
		for name, value := range asked.Labels {
			metav1.SetMetaDataLabel(&pod.ObjectMeta, name, string(value))
		}
		for name, value := range asked.Annotations {
			metav1.SetMetaDataAnnotation(&pod.ObjectMeta, name, string(value))
		}
	}
	for _, s := range asked.ImagePullSecrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: s.Name})
	}
	if asked.Resources == nil {
		return
	}
	// All containers get them, including init containers, because a ResourceQuota may require limits for each.
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			containers[i].Resources = corev1.ResourceRequirements{
				Requests: asked.Resources.Requests.Quantities(), Limits: asked.Resources.Limits.Quantities(),
			}
		}
	}
}

// fileOf returns an annotation of the pod as a file.
func fileOf(name, annotation string) corev1.DownwardAPIVolumeFile {
	return corev1.DownwardAPIVolumeFile{Path: name, FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.annotations['%s']", annotation)}}
}

// mountTarget gives the pod's container the target of the run.
func (r Renderer) mountTarget(pod *corev1.PodTemplateSpec) {
	if r.Scope.Volume != nil {
		r.mountVolume(pod)
		return
	}
	r.mountFileSystem(pod)
}

// mountFileSystem gives the pod's container the filesystem at its path on the node, by a directory that holds only this mount. Other mounts
// beside the users' mountpoint do not belong to the run. It mounts the directory and not the filesystem itself: a remount then appears in
// the pod too, and a mount whose servers are silent does not block the kubelet. Read-only applies to the directory, which is on the node's
// disk, and not to the filesystem in it (Kubernetes: recursiveReadOnly is off by default).
func (r Renderer) mountFileSystem(pod *corev1.PodTemplateSpec) {
	own := spec.MountsDirectory(r.Scope.Run.Namespace, r.Scope.Run.Spec.Target.FileSystem.Name)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "mounts", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: own, Type: new(corev1.HostPathDirectory)}}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
		Name: "mounts", MountPath: path.Dir(r.Scope.Mount.Path), ReadOnly: true, MountPropagation: new(corev1.MountPropagationHostToContainer)})
}

// confined returns a security context for a user without any capability.
func confined(user int64) *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: &user, RunAsGroup: &user, RunAsNonRoot: new(user != 0),
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func requests(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}}
}

func encode(config spec.Benchmark) string {
	raw, err := json.Marshal(config)
	if err != nil {
		panic(err) // the types of package spec hold strings, numbers and lists only
	}
	return string(raw)
}
