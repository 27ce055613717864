package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/owned"
)

// answeringJobs returns those Jobs of the FileSystem, by name, whose pods print an answer before they end, and the pods.
func (p *pass) answeringJobs(ctx context.Context, which []client.ListOption) (own []*batchv1.Job, pods []corev1.Pod, err error) {
	var jobs batchv1.JobList
	if err := p.Client.List(ctx, &jobs, which...); err != nil {
		return nil, nil, fmt.Errorf("list jobs: %w", err)
	}
	if len(jobs.Items) == 0 {
		return nil, nil, nil
	}
	var list corev1.PodList
	if err := p.Client.List(ctx, &list, append(slices.Clone(which), client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, nil, fmt.Errorf("list pods: %w", err)
	}
	for i := range jobs.Items {
		if j := &jobs.Items[i]; metav1.IsControlledBy(j, p.fs) && j.DeletionTimestamp.IsZero() {
			own = append(own, j)
		}
	}
	slices.SortFunc(own, func(a, b *batchv1.Job) int { return strings.Compare(a.Name, b.Name) })
	return own, list.Items, nil
}

// lastAnswer returns whether a Job is over, what its last pod printed (nil if that is no answer), and what it waits for or why it failed.
// The function read finds an answer in a termination message, and the message in that answer.
func lastAnswer[A any](
	j *batchv1.Job, pods []corev1.Pod, read func(printed string) (answer *A, text string),
) (ended bool, last *A, message string) {
	facts := jobFacts(j, pods)
	ended, message = facts.Succeeded || facts.Failed, facts.Message
	var own []*corev1.Pod
	for i := range pods {
		if owned.IsOf(&pods[i], j) {
			own = append(own, &pods[i])
		}
	}
	slices.SortFunc(own, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for _, pod := range own {
		answer, text := answerOf(pod, read)
		if answer != nil {
			last, message = answer, text
		} else if waits := podFacts(pod, nil).Message; !ended && waits != "" {
			message = waits
		}
	}
	if c := failure(j); c != nil && message == "" {
		message = v1alpha1.Cut(c.Message, maxSaid)
	}
	return ended, last, message
}

// answerOf returns the first answer that a container of a pod printed before it ended, nil if there is none.
func answerOf[A any](pod *corev1.Pod, read func(printed string) (*A, string)) (answer *A, text string) {
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			if answer, text = read(t.Message); answer != nil {
				return answer, text
			}
		}
	}
	return nil, ""
}

// failure returns the condition with which a Job has failed, nil if it has not.
func failure(j *batchv1.Job) *batchv1.JobCondition {
	i := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobFailed && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &j.Status.Conditions[i]
}
