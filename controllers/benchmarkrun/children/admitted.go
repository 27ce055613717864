package children

import (
	"fmt"
	"slices"
	"time"

	mpiv2 "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/controllers/admitted"
)

// outlastingPatience is how long a container that outlasts the tool may take to end on its own.
const outlastingPatience = 10 * time.Second

// templates returns the templates of a job's pods.
func templates(job client.Object) (out []corev1.PodTemplateSpec) {
	switch j := job.(type) {
	case *batchv1.Job:
		out = append(out, j.Spec.Template)
	case *mpiv2.MPIJob:
		for _, r := range j.Spec.MPIReplicaSpecs {
			if r != nil {
				out = append(out, r.Template)
			}
		}
	}
	return out
}

// AskedOf returns what a job requests for its pods, by role. A job that was not created yet has exactly what the operator requests.
func AskedOf(job client.Object) map[string]admitted.Asked {
	out := map[string]admitted.Asked{}
	for _, t := range templates(job) {
		out[t.Labels[LabelRole]] = admitted.AskedOf(&t.Spec)
	}
	return out
}

// asked returns what the operator requested for the job's pods. A webhook may have changed the job's own templates.
func (c *Child) asked() map[string]admitted.Asked {
	if text := c.Object.GetAnnotations()[AnnotationAsked]; text != "" {
		if out, err := admitted.Decode(text); err == nil {
			return out
		}
	}
	return AskedOf(c.Object)
}

// PodChanges lists how the pods that ran differ from the request, each change once.
func (c *Child) PodChanges() (out []string) {
	asked := c.asked()
	for i := range c.Pods {
		of, known := asked[c.Pods[i].Labels[LabelRole]]
		if !known {
			continue
		}
		for _, change := range of.Changes(&c.Pods[i].Spec) {
			if !slices.Contains(out, change) {
				out = append(out, change)
			}
		}
	}
	if c.Outlasting != "" {
		out = append(out, c.Outlasting+" still ran when the tool had ended, and was ended with its pod")
	}
	return out
}

// Settle checks whether all requested containers have ended while another one still runs. Kubernetes never ends such a job. After a while
// the job counts as ended, with the result of its own containers.
func (c *Child) Settle(now time.Time) {
	c.Outlasting = ""
	pods, wanted := c.MainPods(), completions(c.Object)
	if c.Succeeded || c.Failed || c.Deleting || c.Held || len(pods) < wanted {
		return
	}
	asked, good, last := c.asked(), 0, time.Time{}
	for _, pod := range pods {
		own := func(name string) bool {
			return name == ContainerName || slices.ContainsFunc(asked[pod.Labels[LabelRole]].Containers,
				func(o admitted.Container) bool { return o.Name == name && !o.Init })
		}
		outlasting := admitted.Outlasting(pod, own)
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !over && outlasting == "" {
			return
		}
		if outlasting != "" {
			c.Outlasting = fmt.Sprintf("container %s of pod %s", outlasting, pod.Name)
		}
		ended := Terminated(pod, ContainerName)
		if ended == nil {
			continue
		}
		if ended.ExitCode == 0 {
			good++
		}
		if ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	if c.Outlasting == "" || now.Sub(last) < outlastingPatience {
		return
	}
	c.Succeeded, c.Failed = good >= wanted, good < wanted
	if c.Failed {
		c.Message = fmt.Sprintf("the tool has failed, and %s still runs", c.Outlasting)
	}
}

// completions returns how many pods have to succeed.
func completions(job client.Object) int {
	if j, is := job.(*batchv1.Job); is && j.Spec.Completions != nil {
		return int(*j.Spec.Completions)
	}
	return 1
}
