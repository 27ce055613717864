package filesystem

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// restartOutdated deletes one outdated pod, when one may be. It says what is going on, or nothing.
func (r *Reconciler) restartOutdated(ctx context.Context, b backend.Backend, in backend.Input, seen backend.Observation) (string, error) {
	pod, message := nextRestart(b.RestartOrder(), in.Pods, len(seen.Problems) == 0)
	if pod == nil {
		return message, nil
	}
	log.FromContext(ctx).Info("Restarting an outdated pod", "pod", pod.Name, "component", pod.Component, "node", pod.Node)
	err := r.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Name.Namespace, Name: pod.Name.Name}})
	if client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	r.Recorder.Eventf(in.FileSystem, nil, corev1.EventTypeNormal, v1alpha1.ReasonRestarting, "Restart",
		"Restarting %s on node %s to apply a changed configuration", pod.Component, pod.Node)
	return message, nil
}

// nextRestart picks the one outdated pod that may be restarted now. A pod that is down already may always be: it is
// never what keeps the restart that would repair it from happening. A running pod may only while the filesystem itself
// says that all is well, so that never more than one is missing.
func nextRestart(order []string, pods []backend.Pod, healthy bool) (*backend.Pod, string) {
	var outdated []*backend.Pod
	for _, component := range order {
		for i := range pods {
			if pods[i].Component == component && pods[i].Outdated {
				outdated = append(outdated, &pods[i])
			}
		}
	}
	if len(outdated) == 0 {
		return nil, ""
	}
	message := fmt.Sprintf("%d pods run an older configuration; restarting them one at a time, now %s on node %s",
		len(outdated), outdated[0].Component, outdated[0].Node)
	if i := slices.IndexFunc(outdated, func(p *backend.Pod) bool { return !p.Ready }); i >= 0 {
		return outdated[i], message
	}
	allReady := !slices.ContainsFunc(pods, func(p backend.Pod) bool { return slices.Contains(order, p.Component) && !p.Ready })
	if !healthy || !allReady {
		return nil, fmt.Sprintf("%d pods run an older configuration; they are restarted when the filesystem is healthy", len(outdated))
	}
	return outdated[0], message
}

// repeatUnseenJobs deletes finished Jobs whose effect the filesystem does not show, so that the next pass runs them again.
func (r *Reconciler) repeatUnseenJobs(ctx context.Context, in backend.Input, seen backend.Observation) error {
	if !slices.ContainsFunc(seen.Problems, func(p backend.Problem) bool { return p.Reason == v1alpha1.ReasonPoolsNotPlaced }) {
		return nil
	}
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, client.InNamespace(in.FileSystem.Namespace),
		client.MatchingLabels{v1alpha1.LabelFileSystem: in.FileSystem.Name}); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !metav1.IsControlledBy(job, in.FileSystem) || !finishedBefore(job, r.Clock.Now().Add(-2*pollInterval)) {
			continue
		}
		if err := r.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete job %s: %w", job.Name, err)
		}
	}
	return nil
}

// finishedBefore reports whether a Job ended, well or badly, before the time: its effect had time to show.
func finishedBefore(job *batchv1.Job, when time.Time) bool {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time.Before(when)
		}
	}
	return false
}
