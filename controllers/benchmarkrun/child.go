package benchmarkrun

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// child is one job of the run: a Job or an MPIJob.
type child struct {
	object client.Object
	name   string
	turn   turn
	// created is when it was made, started when it was let go: a queue may hold it for long.
	created, started time.Time
	deleting         bool
	// held is true while it waits in a queue. admitted is when it was seen to run, zero unless a queue has it.
	held     bool
	admitted time.Time
	// succeeded and failed are what the job says of itself; message is its own.
	succeeded, failed bool
	message           string
	// nodes are those that take part. The pods themselves may be gone when their job has ended.
	nodes []string
	pods  []corev1.Pod
	// quota says why no pods could be made, in the words of the API server; empty when they could.
	quota string
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

// mainPods are the pods whose output is the tool's: one, or one for each server, in their order.
func (c *child) mainPods() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range c.pods {
		if c.pods[i].Labels[labelRole] != roleWorker {
			out = append(out, &c.pods[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int { return cmp.Compare(completionIndex(a), completionIndex(b)) })
	return out
}

// completionIndex is the number of a pod among those of its Job, from 0.
func completionIndex(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return 0
	}
	return n
}

func (c *child) over() bool { return c.succeeded || c.failed || c.failedWorker() != nil }

// evicted is true for a job that ran, and was taken back into its queue.
func (c *child) evicted() bool { return c.held && !c.admitted.IsZero() }

// noPods is true for a job whose pods a quota has kept from being made: it did nothing, whatever it says of itself.
func (c *child) noPods() bool {
	return c.quota != "" && len(c.mainPods()) == 0 && c.failedWorker() == nil
}

func childOf(job client.Object) child {
	c := child{object: job, name: job.GetName(), created: job.GetCreationTimestamp().Time, deleting: !job.GetDeletionTimestamp().IsZero()}
	c.started = c.created
	if nodes := job.GetAnnotations()[annotationNodes]; nodes != "" {
		c.nodes = strings.Split(nodes, ",")
	}
	if at, err := time.Parse(time.RFC3339, job.GetAnnotations()[annotationAdmitted]); err == nil {
		c.admitted = at
	}
	return c
}

func childOfJob(job *batchv1.Job) child {
	c := childOf(job)
	c.held = job.Spec.Suspend != nil && *job.Spec.Suspend
	if job.Status.StartTime != nil {
		c.started = job.Status.StartTime.Time
	}
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
	c.held = job.Spec.RunPolicy.Suspend != nil && *job.Spec.RunPolicy.Suspend
	if job.Status.StartTime != nil {
		c.started = job.Status.StartTime.Time
	}
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

// quotaWords are in the refusal of a pod by a ResourceQuota (k8s.io/apiserver, plugin resourcequota).
const quotaWords = "exceeded quota"

// gatherQuota finds out whether a quota keeps the pods of a job from being made. Neither a Job nor an MPIJob says so in its status, so
// their events are read, and only while pods are missing.
func (r *Reconciler) gatherQuota(ctx context.Context, w *world, c *child) error {
	if c.deleting || c.held || c.succeeded || w.now.Sub(c.started) < quotaPatience || len(c.mainPods()) > 0 {
		return nil
	}
	// The launcher of an MPIJob is a Job of its own.
	for _, name := range []string{c.name, c.name + "-launcher"} {
		var events corev1.EventList
		of := client.MatchingFields{"involvedObject.name": name}
		if err := r.Reader.List(ctx, &events, client.InNamespace(w.run.Namespace), of); err != nil {
			return fmt.Errorf("list the events of %s: %w", name, err)
		}
		slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return lastSeen(&a).Compare(lastSeen(&b)) })
		for _, e := range events.Items {
			// An object of that name that was there before has its events still.
			old := lastSeen(&e).Before(c.created.Truncate(time.Second))
			if e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, quotaWords) && !old {
				c.quota = e.Message
			}
		}
	}
	return nil
}

func lastSeen(e *corev1.Event) time.Time {
	if e.Series != nil {
		return e.Series.LastObservedTime.Time
	}
	if !e.LastTimestamp.IsZero() {
		return e.LastTimestamp.Time
	}
	return cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
}
