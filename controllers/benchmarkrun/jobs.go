package benchmarkrun

import (
	"encoding/json"
	"fmt"
	"path"
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
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// component is the value of v1alpha1.LabelComponent on all that a run makes.
	component = "benchmark"
	// labelChild names the job that a pod belongs to, and labelRole what the pod does in it.
	labelChild = "parallelfs.dev/benchmark-job"
	labelRole  = "parallelfs.dev/benchmark-role"

	roleClient   = "client"
	roleWorker   = "worker"
	roleLauncher = "launcher"
	roleCleaner  = "cleaner"

	// annotationNodes on a job names the nodes that take part, with commas.
	annotationNodes = "parallelfs.dev/benchmark-nodes"
	// annotationTold on a pod is the JSON that tells the node binary what to do. The pod reads it as a file by the downward
	// API: it comes and goes with its job in one write, and can't be that of another repetition.
	annotationTold = "parallelfs.dev/benchmark"

	containerName   = "benchmark"
	binaryDirectory = "/parallelfs"
	nodeBinary      = binaryDirectory + "/node"
	toldDirectory   = "/etc/parallelfs"
	toldFile        = "benchmark.json"

	// sshPort is that of the workers' sshd, in the network of each pod.
	sshPort = 22
	// nobody runs the init container that brings the node binary.
	nobody int64 = 65534
	// deadlineMargin is what a job may take beyond the point's timeout before Kubernetes ends it, for the case that no
	// operator runs. It is longer than overdueAfter, because the output is lost then.
	deadlineMargin = 3 * time.Minute
)

// labels of all that a run makes. That of the FileSystem is left out: its controller takes pods with it for daemons.
func labels(run *v1alpha1.BenchmarkRun) map[string]string {
	return map[string]string{
		v1alpha1.LabelBenchmarkRun: run.Name,
		v1alpha1.LabelComponent:    component,
		v1alpha1.LabelManagedBy:    v1alpha1.ManagedBy,
	}
}

func jobName(run string, point, repetition int) string {
	return fmt.Sprintf("%s-p%d-r%d", run, point, repetition)
}

func cleanName(run string) string { return run + "-clean" }

// root is the run's own directory in the filesystem, inside of the directory of its pool.
func (w *world) root() string {
	pool, err := w.pool()
	if err != nil {
		panic(err) // decideWaiting comes first, and refuses a run without a pool
	}
	return path.Join(w.mount.Path, pool, spec.BenchmarkHome, string(w.run.UID))
}

// renderer makes the jobs of a run.
type renderer struct {
	w      *world
	images backend.Images
}

// task is what a job does.
type task struct {
	name, role string
	// verb of `node bench`, in a container of the image.
	verb, image string
	nodes       []string
	told        spec.Benchmark
	deadline    time.Duration
	retries     int32
}

// repetition is the job that runs one repetition of a point: a Job on one client, or an MPIJob over several.
func (r renderer) repetition(point, repetition int) client.Object {
	command := r.w.commands[point]
	clients := r.w.clients
	if command.Clients > 0 {
		clients = clients[:command.Clients]
	}
	directory := r.w.run.Status.Directory
	told := spec.Benchmark{
		Mount: spec.Mount{Path: r.w.mount.Path, FSType: r.w.mount.FSType, Source: r.w.mount.Source},
		Root:  directory, Directory: path.Join(directory, fmt.Sprintf("p%d-r%d", point, repetition)),
		Argv: command.Argv, Env: command.Env, TimeoutSeconds: seconds(r.w.pointTimeout()),
	}
	t := task{name: jobName(r.w.run.Name, point, repetition), nodes: clients, told: told, deadline: r.w.pointTimeout() + deadlineMargin}
	if !command.Distributed {
		t.role, t.verb, t.image = roleClient, "run", r.toolImage()
		return r.job(t)
	}
	if command.HostLine != "" {
		t.told.Hosts = &spec.Hosts{Processes: command.Processes, Line: command.HostLine}
	}
	return r.mpiJob(t, (command.Processes+len(clients)-1)/len(clients))
}

// cleaner is the Job that removes all that the run wrote, on any node that mounts the filesystem.
func (r renderer) cleaner() client.Object {
	directory := r.w.run.Status.Directory
	told := spec.Benchmark{
		Mount: spec.Mount{Path: r.w.mount.Path, FSType: r.w.mount.FSType, Source: r.w.mount.Source},
		Root:  directory, Directory: path.Join(directory, "none"), Argv: []string{}, TimeoutSeconds: seconds(cleanTimeout),
	}
	return r.job(task{
		name: cleanName(r.w.run.Name), role: roleCleaner, verb: "clean", image: r.images.Node, nodes: r.w.mounted, told: told,
		deadline: cleanTimeout + deadlineMargin, retries: 3,
	})
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func (r renderer) meta(t task) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: r.w.run.Namespace, Name: t.name, Labels: labels(r.w.run),
		Annotations: map[string]string{annotationNodes: strings.Join(t.nodes, ",")},
	}
}

// job runs one pod. A repetition has no retries: what failed is a result too, and a second try would not be the same.
func (r renderer) job(t task) client.Object {
	pod := r.pod(t.name, t.role, t.image, t.told)
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.Containers[0].Command = []string{nodeBinary, "bench", t.verb, "--spec", toldDirectory + "/" + toldFile}
	r.mountFileSystem(pod)
	pod.Spec.Affinity = backend.OnNodes(t.nodes...)
	return &batchv1.Job{
		ObjectMeta: r.meta(t),
		Spec:       batchv1.JobSpec{BackoffLimit: &t.retries, ActiveDeadlineSeconds: new(seconds(t.deadline)), Template: *pod},
	}
}

// mpiJob runs a launcher, and one worker on each client. The launcher starts when the workers' sshd answer; it holds no
// mount. The MPI operator copies the labels and annotations of the templates to the pods.
func (r renderer) mpiJob(t task, slots int) client.Object {
	launcher := r.pod(t.name, roleLauncher, r.toolImage(), t.told)
	c := &launcher.Spec.Containers[0]
	c.Command = []string{nodeBinary, "bench", "launch", "--spec", toldDirectory + "/" + toldFile, "--ssh-port", fmt.Sprint(sshPort)}

	worker := r.pod(t.name, roleWorker, r.toolImage(), t.told)
	c = &worker.Spec.Containers[0]
	c.Command = []string{nodeBinary, "bench", "work", "--spec", toldDirectory + "/" + toldFile, "--", "/usr/sbin/sshd", "-De"}
	c.Ports = []corev1.ContainerPort{{Name: "ssh", ContainerPort: sshPort, Protocol: corev1.ProtocolTCP}}
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(sshPort)}},
		PeriodSeconds: 1, FailureThreshold: 1,
	}
	// What sshd needs to separate its privileges and to open a session (sshd(8), capabilities(7)): a child in chroot as
	// the user sshd, its port, and a record to the audit log of the kernel, without which it refuses a session.
	c.SecurityContext.Capabilities.Add = []corev1.Capability{"AUDIT_WRITE", "NET_BIND_SERVICE", "SETGID", "SETUID", "SYS_CHROOT"}
	r.mountFileSystem(worker)
	worker.Spec.Affinity = backend.OnNodes(t.nodes...)
	worker.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{labelChild: t.name, labelRole: roleWorker}},
		}},
	}

	return &mpiv2.MPIJob{
		ObjectMeta: r.meta(t),
		Spec: mpiv2.MPIJobSpec{
			SlotsPerWorker:         new(int32(slots)), //nolint:gosec // at most spec.processes, an int32
			LauncherCreationPolicy: mpiv2.LauncherCreationPolicyWaitForWorkersReady,
			RunPolicy: mpiv2.RunPolicy{
				CleanPodPolicy: new(mpiv2.CleanPodPolicyRunning), BackoffLimit: new(int32(0)), ActiveDeadlineSeconds: new(seconds(t.deadline)),
			},
			MPIReplicaSpecs: map[mpiv2.MPIReplicaType]*mpiv2.ReplicaSpec{
				// The default of a launcher is to be restarted in its pod, where no job counts it.
				mpiv2.MPIReplicaTypeLauncher: {Replicas: new(int32(1)), RestartPolicy: mpiv2.RestartPolicyNever, Template: *launcher},
				mpiv2.MPIReplicaTypeWorker: {
					Replicas:      new(int32(len(t.nodes))), //nolint:gosec // nodes of one cluster
					RestartPolicy: mpiv2.RestartPolicyNever, Template: *worker,
				},
			},
		},
	}
}

func (r renderer) toolImage() string { return r.images.Benchmarks[string(r.w.run.Spec.Tool)] }

// pod is what all pods of a run share. They go wherever the clients are, whatever its taints.
func (r renderer) pod(job, role, image string, told spec.Benchmark) *corev1.PodTemplateSpec {
	podLabels := labels(r.w.run)
	podLabels[labelChild], podLabels[labelRole] = job, role
	install := corev1.Container{
		Name: "install", Image: r.images.Node, ImagePullPolicy: corev1.PullPolicy(r.images.PullPolicy),
		Command:         []string{"/node", "install", binaryDirectory},
		VolumeMounts:    []corev1.VolumeMount{{Name: "binary", MountPath: binaryDirectory}},
		SecurityContext: confined(nobody),
		Resources:       requests("10m", "16Mi"),
	}
	c := corev1.Container{
		Name: containerName, Image: image, ImagePullPolicy: corev1.PullPolicy(r.images.PullPolicy),
		Env: []corev1.EnvVar{{Name: "POD_IP", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"}}}},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "binary", MountPath: binaryDirectory, ReadOnly: true},
			{Name: "told", MountPath: toldDirectory, ReadOnly: true},
			{Name: "tmp", MountPath: "/tmp"},
		},
		// The pool's directory belongs to root. Without capabilities that is all that root may do here.
		SecurityContext: confined(0),
		// No limits: a tool that is throttled measures the throttle.
		Resources:                requests("100m", "64Mi"),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	return &corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: podLabels, Annotations: map[string]string{annotationTold: encode(told)}},
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
					Items: []corev1.DownwardAPIVolumeFile{{Path: toldFile, FieldRef: &corev1.ObjectFieldSelector{
						APIVersion: "v1", FieldPath: fmt.Sprintf("metadata.annotations['%s']", annotationTold)}}}}}},
			},
		},
	}
}

// mountFileSystem gives the pod's container the node's mount at the same path, by its parent directory: a mount that is
// made anew appears in the pod too. Read-only holds for the parent itself, which is the node's disk, and not for what is
// mounted below it (Kubernetes: recursiveReadOnly is off by default).
func (r renderer) mountFileSystem(pod *corev1.PodTemplateSpec) {
	parent := path.Dir(r.w.mount.Path)
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "mounts", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: parent, Type: new(corev1.HostPathDirectory)}}})
	c := &pod.Spec.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
		Name: "mounts", MountPath: parent, ReadOnly: true, MountPropagation: new(corev1.MountPropagationHostToContainer)})
}

// confined is a user without any capability.
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

func encode(told spec.Benchmark) string {
	raw, err := json.Marshal(told)
	if err != nil {
		panic(err) // the types of package spec hold strings, numbers and lists only
	}
	return string(raw)
}
