package children

import (
	"parallelfs.dev/operator/api/v1alpha1"
)

const (
	// Component is the value of v1alpha1.LabelComponent on everything that a run creates.
	Component = "benchmark"
	// LabelChild names the job that a pod belongs to.
	LabelChild = "parallelfs.dev/benchmark-job"
	// LabelRole is the role of a pod in its job.
	LabelRole = "parallelfs.dev/benchmark-role"
)

// The roles of a pod in its job, which are the values of LabelRole.
const (
	RoleClient   = "client"
	RoleWorker   = "worker"
	RoleLauncher = "launcher"
	RoleServer   = "server"
	RoleChecker  = "checker"
	RoleCleaner  = "cleaner"
	RoleExporter = "exporter"

	// AnnotationNodes on a job lists its nodes, separated by commas.
	AnnotationNodes = "parallelfs.dev/benchmark-nodes"
	// AnnotationPlacement on a job is how many processes run on how many clients.
	AnnotationPlacement = "parallelfs.dev/benchmark-placement"
	// AnnotationTrust on a job is the fingerprint of everything that could disturb it, taken before it started.
	AnnotationTrust = "parallelfs.dev/benchmark-trust"
	// AnnotationAdmitted on a job is when it was seen to have left its queue.
	AnnotationAdmitted = "parallelfs.dev/benchmark-admitted"
	// AnnotationReading on a job names the processes of the operator that have begun to read its output, separated by blanks.
	AnnotationReading = "parallelfs.dev/benchmark-reading"
	// AnnotationAsked on a job is what the operator requested for its pods, by role. The actual pods are compared with it.
	AnnotationAsked = "parallelfs.dev/benchmark-asked"
	// AnnotationRaw on the ConfigMap of a point is its size of raw output in bytes, because the cache holds none of the output.
	AnnotationRaw = "parallelfs.dev/benchmark-raw-bytes"
	// LabelQueue puts a job into a LocalQueue of Kueue (kueue.x-k8s.io, "Run a Job"), which releases the job by spec.suspend.
	LabelQueue = "kueue.x-k8s.io/queue-name"
	// AnnotationTold on a pod is the JSON configuration of the node binary. The pod reads it as a file by the downward API. It is written and
	// deleted together with its job, so it can't belong to another repetition.
	AnnotationTold = "parallelfs.dev/benchmark"

	// ContainerName is the main container of a job.
	ContainerName = "benchmark"
)

// Labels returns the labels of everything that a run creates. The label of the FileSystem is left out, because its controller treats pods
// with it as daemons.
func Labels(run *v1alpha1.BenchmarkRun) map[string]string {
	return map[string]string{
		v1alpha1.LabelBenchmarkRun: run.Name,
		v1alpha1.LabelComponent:    Component,
		v1alpha1.LabelManagedBy:    v1alpha1.ManagedBy,
	}
}
