// Package children describes the jobs of a run: their labels and annotations, and the states of the jobs and their pods.
package children

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/controllers/benchmarkrun/text"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
)

// Child is one job of the run: a Job or an MPIJob.
type Child struct {
	Object client.Object
	Name   string
	Turn   turns.Turn
	// Created is when it was created. Started is when it was released; a queue may hold it for long.
	Created, Started time.Time
	Deleting         bool
	// Kept names the finalizers of a child that was deleted a while ago, has no running pod, and is still there. The program or
	// the person that has set them has to remove them.
	Kept []string
	// Held is true while it waits in a queue. Admitted is when it was seen to run, zero unless it has a queue.
	Held     bool
	Admitted time.Time
	// Succeeded and Failed are the states that the job reports, with its own Message.
	Succeeded, Failed bool
	Message           string
	// Nodes lists the nodes of the job. The pods themselves may be gone when their job has ended.
	Nodes []string
	Pods  []corev1.Pod
	// Refused is why no pods could be created, in the words of the API server; empty if they could.
	Refused string
	// Outlasting names a container that the operator did not request and that still runs although the tool has ended, with its pod; empty if
	// there is none.
	Outlasting string
}

// FailedWorker returns a worker that ended before the launcher. The launcher then waits forever.
func (c *Child) FailedWorker() *corev1.Pod {
	for i := range c.Pods {
		ended := Terminated(&c.Pods[i], ContainerName)
		failed := c.Pods[i].Status.Phase == corev1.PodFailed || ended != nil && ended.ExitCode != 0
		if failed && c.Pods[i].Labels[LabelRole] == RoleWorker {
			return &c.Pods[i]
		}
	}
	return nil
}

// MainPods returns the pods with the tool's output: one, or one for each server, in their order.
func (c *Child) MainPods() []*corev1.Pod {
	var out []*corev1.Pod
	for i := range c.Pods {
		if c.Pods[i].Labels[LabelRole] != RoleWorker {
			out = append(out, &c.Pods[i])
		}
	}
	slices.SortStableFunc(out, func(a, b *corev1.Pod) int { return cmp.Compare(completionIndex(a), completionIndex(b)) })
	return out
}

// ClientNodes returns the nodes of a job's clients, sorted.
func (c *Child) ClientNodes() []string {
	var out []string
	for i := range c.Pods {
		role := c.Pods[i].Labels[LabelRole]
		if node := c.Pods[i].Spec.NodeName; node != "" && role != RoleLauncher && !slices.Contains(out, node) {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}

// completionIndex returns the number of a pod among those of its Job, from 0.
func completionIndex(pod *corev1.Pod) int {
	n, err := strconv.Atoi(pod.Annotations[batchv1.JobCompletionIndexAnnotation])
	if err != nil {
		return 0
	}
	return n
}

// Over reports whether a job does nothing more.
func (c *Child) Over() bool { return c.Succeeded || c.Failed || c.FailedWorker() != nil }

// Evicted reports whether a job ran and was taken back into its queue.
func (c *Child) Evicted() bool { return c.Held && !c.Admitted.IsZero() }

// NoPods reports whether the API server has refused the pods of a job, so that it did nothing, whatever its status says.
func (c *Child) NoPods() bool {
	return c.Refused != "" && len(c.MainPods()) == 0 && c.FailedWorker() == nil
}

// quotaWords is part of the refusal of a pod for which a ResourceQuota has no room left (k8s.io/apiserver, plugin resourcequota).
const quotaWords = "exceeded quota"

// WaitsForQuota reports whether the pods of a job will be created without help once others in the namespace have ended.
func (c *Child) WaitsForQuota() bool { return strings.Contains(c.Refused, quotaWords) }

// keptAfter is how long after its deletion a child without running pods may still be there. The controllers of Kubernetes need seconds.
const keptAfter = time.Minute

// Keep sets Kept.
func (c *Child) Keep(now time.Time) {
	deleted := c.Object.GetDeletionTimestamp()
	running := slices.ContainsFunc(c.Pods, func(p corev1.Pod) bool {
		return p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	})
	if deleted != nil && !running && now.Sub(deleted.Time) > keptAfter {
		c.Kept = c.Object.GetFinalizers()
	}
}

func childOf(job client.Object) Child {
	c := Child{Object: job, Name: job.GetName(), Created: job.GetCreationTimestamp().Time, Deleting: !job.GetDeletionTimestamp().IsZero()}
	c.Started = c.Created
	if nodes := job.GetAnnotations()[AnnotationNodes]; nodes != "" {
		c.Nodes = strings.Split(nodes, ",")
	}
	if at, err := time.Parse(time.RFC3339, job.GetAnnotations()[AnnotationAdmitted]); err == nil {
		c.Admitted = at
	}
	return c
}

// ChildOfJob returns the state of a Job, without its pods.
func ChildOfJob(job *batchv1.Job) Child {
	c := childOf(job)
	c.Held = job.Spec.Suspend != nil && *job.Spec.Suspend
	if job.Status.StartTime != nil {
		c.Started = job.Status.StartTime.Time
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			c.Succeeded = true
		case batchv1.JobFailed:
			c.Failed, c.Message = true, condition.Message
		}
	}
	return c
}

// ChildOfMPIJob returns the state of an MPIJob, without its pods.
func ChildOfMPIJob(job *mpiv2.MPIJob) Child {
	c := childOf(job)
	c.Held = job.Spec.RunPolicy.Suspend != nil && *job.Spec.RunPolicy.Suspend
	if job.Status.StartTime != nil {
		c.Started = job.Status.StartTime.Time
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case mpiv2.JobSucceeded:
			c.Succeeded = true
		case mpiv2.JobFailed:
			c.Failed, c.Message = true, condition.Message
		}
	}
	return c
}

// Why returns what keeps the pods of a job from running, and is empty if nothing does.
func Why(c *Child) string {
	for i := range c.Pods {
		if message := PodTrouble(&c.Pods[i]); message != "" {
			return fmt.Sprintf("; its pod %s", message)
		}
	}
	return ""
}

// Terminated returns how a container of a pod ended, nil while it has not.
func Terminated(pod *corev1.Pod, container string) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == container {
			return c.State.Terminated
		}
	}
	return nil
}

// PodTrouble returns what keeps a pod from running; empty while the pod runs or has just started. It leaves out texts that change between
// passes, such as the time of the next try.
func PodTrouble(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("can't be scheduled: %s", c.Message)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch waiting, ended := c.State.Waiting, c.State.Terminated; {
		case waiting != nil && (waiting.Reason == "ErrImagePull" || waiting.Reason == "ImagePullBackOff"):
			return fmt.Sprintf("can't pull the image %s", c.Image)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing":
			return fmt.Sprintf("waits: %s: %s", waiting.Reason, waiting.Message)
		case ended != nil && ended.ExitCode != 0:
			return fmt.Sprintf("has its container %s ended with exit code %d: %s",
				c.Name, ended.ExitCode, text.LastLines([]byte(ended.Message), 2, 300))
		}
	}
	return ""
}
