package children

import (
	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	// Component is the value of v1alpha1.LabelComponent on all that a run makes.
	Component = "benchmark"
	// LabelChild names the job that a pod belongs to.
	LabelChild = "parallelfs.dev/benchmark-job"
	// LabelRole says what a pod does in its job.
	LabelRole = "parallelfs.dev/benchmark-role"
)

// What a pod does in its job: the values of LabelRole.
const (
	RoleClient   = "client"
	RoleWorker   = "worker"
	RoleLauncher = "launcher"
	RoleServer   = "server"
	RoleChecker  = "checker"
	RoleCleaner  = "cleaner"
	RoleExporter = "exporter"

	// AnnotationNodes on a job names the nodes that take part, with commas.
	AnnotationNodes = "parallelfs.dev/benchmark-nodes"
	// AnnotationPlacement on a job says how many processes run on how many clients.
	AnnotationPlacement = "parallelfs.dev/benchmark-placement"
	// AnnotationTrust on a job is the fingerprint of all that could disturb it, from before it was started.
	AnnotationTrust = "parallelfs.dev/benchmark-trust"
	// AnnotationAdmitted on a job is when it was seen to have left its queue.
	AnnotationAdmitted = "parallelfs.dev/benchmark-admitted"
	// AnnotationReading on a job names the processes of the operator that have begun to read its output, with blanks between them.
	AnnotationReading = "parallelfs.dev/benchmark-reading"
	// AnnotationAsked on a job says what was asked for of its pods, by role. What the API server made of them is compared with it.
	AnnotationAsked = "parallelfs.dev/benchmark-asked"
	// AnnotationRaw on the ConfigMap of a point is how many bytes of raw output it has: the cache keeps none of them.
	AnnotationRaw = "parallelfs.dev/benchmark-raw-bytes"
	// LabelQueue puts a job into a LocalQueue of Kueue (kueue.x-k8s.io, "Run a Job"), which then lets it go by spec.suspend.
	LabelQueue = "kueue.x-k8s.io/queue-name"
	// AnnotationTold on a pod is the JSON that tells the node binary what to do. The pod reads it as a file by the downward
	// API: it comes and goes with its job in one write, and can't be that of another repetition.
	AnnotationTold = "parallelfs.dev/benchmark"

	// ContainerName is the container that a job is about.
	ContainerName = "benchmark"
)

// Labels of all that a run makes. That of the FileSystem is left out: its controller takes pods with it for daemons.
func Labels(run *v1alpha1.BenchmarkRun) map[string]string {
	return map[string]string{
		v1alpha1.LabelBenchmarkRun: run.Name,
		v1alpha1.LabelComponent:    Component,
		v1alpha1.LabelManagedBy:    v1alpha1.ManagedBy,
	}
}
