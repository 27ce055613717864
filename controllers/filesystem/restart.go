package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
)

// chooseRestarts picks the pods that run with an older configuration or with other disks than they should and may be restarted now, and
// says what is going on. The restart of a pod that runs waits for the lease; one that is down already does not.
func (p *pass) chooseRestarts(ctx context.Context) error {
	pods, message := nextRestarts(p.backend.Order(), p.in, p.seen)
	if runs(pods) {
		// The cache may lag behind the restart of before, and show the pod that was deleted then. A pod that has started meanwhile is seen
		// after the filesystem was asked.
		in := p.in
		var err error
		if in.Pods, err = p.pods(ctx, p.Reader, p.fs); err != nil {
			return err
		}
		pods, message = nextRestarts(p.backend.Order(), in.Indexed(), p.seen)
	}
	if runs(pods) {
		changes := make([]string, len(pods))
		for i, pod := range pods {
			changes[i] = fmt.Sprintf("%s on node %s is to be restarted: %s", pod.Component, pod.Node, pod.why)
		}
		if may, err := p.hold.may(ctx, changes...); err != nil || !may {
			return err
		}
	}
	p.restarts = pods
	if slices.ContainsFunc(pods, func(d due) bool { return d.Ready && d.sole != "" }) {
		p.seen.Serves = false // programs wait for one that is restarted
	}
	if message != "" {
		p.seen.Problems = append(p.seen.Problems, backend.Problem{Reason: v1alpha1.ReasonRestarting, Message: message})
	}
	return nil
}

// runs is true when there are pods that run; those that are restarted together all do.
func runs(pods []due) bool { return len(pods) > 0 && pods[0].Ready }

// restart deletes a pod, after the status has said so.
func (p *pass) restart(ctx context.Context, pod *due) error {
	note := fmt.Sprintf("Restarting %s on node %s: %s%s", pod.Component, pod.Node, pod.why, pod.cost())
	p.Recorder.Eventf(p.fs, nil, corev1.EventTypeNormal, v1alpha1.ReasonRestarting, "Restart", "%s", v1alpha1.Cut(note, conditions.MaxNote))
	log.FromContext(ctx).Info("Restarting a pod", "pod", pod.Name, "component", pod.Component, "node", pod.Node, "why", pod.why)
	err := p.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Name.Namespace, Name: pod.Name.Name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete pod %s: %w", pod.Name, err)
	}
	return nil
}

// due is a pod that has to start anew.
type due struct {
	*backend.Pod
	why string
	// safe is true when it may although the filesystem has problems.
	safe bool
	// sole says why programs wait meanwhile; empty when they go on.
	sole string
	// domain is the failure domain of its node; one that is not known is none.
	domain backend.Domain
}

// cost says what the restart means for programs, in words that follow others; empty when they go on.
func (d *due) cost() string {
	if d.sole == "" || !d.Ready {
		return ""
	}
	return "; programs wait until it is back, because " + d.sole
}

// nextRestarts picks the pods that may be restarted now: one, or several of one failure domain. A pod that is down already may always be:
// its restart may be the repair. Where nothing would stop it, on a node that is not Ready, it is left alone, and so is one that is being
// stopped. A pod that runs may be restarted only while every server has a pod that is Ready; while the filesystem was asked after the
// manager had seen the last of them run, and says that all is well, or that its problems are such that this restart mends; and while no
// server could be listed only because nobody has missed it yet. So never are servers of two failure domains missing, and a disk that
// waits to be taken up does not keep its server from taking it up. While restarts are paused, none that runs is restarted. None is
// restarted before the agent of its node has written what its server is told: it would start as it ran before, and nobody would know that
// it has to start once more.
func nextRestarts(order []string, in backend.Input, seen backend.Observation) ([]due, string) {
	updates := in.FileSystem.Spec.Updates
	all, servers, away := dueNow(order, in, seen)
	if len(all) == 0 {
		return nil, ""
	}
	// Every instance has a pod: one that was deleted and is not made yet is missing as well.
	complete := !updates.Paused && in.State != nil && len(away) == 0 && servers >= len(seen.Instances) && len(seen.Unconfirmed) == 0
	untold := "" // the first component of which a pod waits for the agent of its node: those behind it in the order wait too
	for i := range all {
		next := all[i]
		switch {
		case !in.Told[next.Node]:
			untold = cmp.Or(untold, next.Component)
		case untold != "" && next.Component != untold && next.Ready && !next.safe:
		case !next.Ready || complete && next.safe && len(seen.Problems) > 0:
			return all[i : i+1], say(all, all[i:i+1], updates)
		case complete && len(seen.Problems) == 0:
			with := together(all[i:], in, seen)
			return with, say(all, with, updates)
		}
	}
	when := "the filesystem is healthy"
	switch {
	case !in.Told[all[0].Node]:
		when = "the agent of its node has written what its server is told"
	case updates.Paused:
		when = "spec.updates.paused is false again"
	case len(away) == 1:
		when += ", and " + list(away) + " is back"
	case len(away) > 1:
		when += ", and " + list(away) + " are back"
	case len(seen.Unconfirmed) > 0:
		when = "it is certain that these are there: " + backend.List(seen.Unconfirmed)
	}
	return nil, fmt.Sprintf("%d pods are to be restarted when %s; first %s on node %s: %s",
		len(all), when, all[0].Component, all[0].Node, all[0].why)
}

// together are the first of the pods, and those behind it that may be restarted with it: of the same component and failure domain, as
// many as the spec allows, and as each of them says that may be away at once.
func together(all []due, in backend.Input, seen backend.Observation) []due {
	first := all[0]
	out, most := all[:1:1], min(int(in.FileSystem.Spec.Updates.MaxUnavailable), seen.Together[first.Name.Name])
	if first.domain == (backend.Domain{}) {
		return out
	}
	for _, next := range all[1:] {
		if len(out) >= most {
			break
		}
		fits := next.Ready && next.Component == first.Component && next.domain == first.domain && in.Told[next.Node]
		if limit := seen.Together[next.Name.Name]; fits && limit > len(out) {
			out, most = append(out, next), min(most, limit)
		}
	}
	return out
}

// say names the pods that are restarted now, of all that are to be.
func say(all, now []due, updates v1alpha1.UpdatesSpec) string {
	how := "one at a time"
	if updates.MaxUnavailable > 1 {
		how = fmt.Sprintf("at most %d of one failure domain at a time", updates.MaxUnavailable)
	}
	return fmt.Sprintf("%d pods are to be restarted, %s; now %s: %s%s", len(all), how, list(now), now[0].why, now[0].cost())
}

// list names pods, and the failure domain that they are in when all are in one that has a name.
func list(pods []due) string {
	names := make([]string, len(pods))
	one := true
	for i, p := range pods {
		names[i] = fmt.Sprintf("%s on node %s", p.Component, p.Node)
		one = one && p.domain == pods[0].domain
	}
	out := backend.List(names)
	if len(pods) > 1 {
		out = fmt.Sprintf("%d servers (%s)", len(pods), out)
	}
	if one && pods[0].domain.Labeled {
		out += " in " + pods[0].domain.String()
	}
	return out
}

// dueNow are the pods that have to start anew, in the order of their components, how many servers have a pod, and those whose pod is not
// there.
func dueNow(order []string, in backend.Input, seen backend.Observation) (all []due, servers int, away []due) {
	changed := map[types.NamespacedName]backend.Restart{}
	for _, r := range seen.Restarts {
		changed[r.Pod] = r
	}
	domains := backend.NewDomains(in)
	for _, component := range order {
		for i := range in.Pods {
			p := &in.Pods[i]
			if p.Component != component {
				continue
			}
			servers++
			domain, _ := domains.Of(p.Node)
			next := due{Pod: p, sole: seen.Sole[p.Name.Name], domain: domain}
			if !p.Ready || !in.AskedSince(*p) {
				away = append(away, next)
			}
			disks, hasChanged := changed[p.Name]
			node, _ := in.Node(p.Node)
			switch {
			case p.Terminating || !p.Ready && !node.Ready:
				continue
			case p.Outdated:
				// The same restart takes up the disk: with it missing, the filesystem never is healthy enough for the other reason.
				next.why, next.safe = "its configuration has changed", hasChanged && disks.Safe
			case hasChanged:
				next.why, next.safe = disks.Why, disks.Safe
			default:
				continue
			}
			all = append(all, next)
		}
	}
	return all, servers, away
}

// repeatUnseenJobs deletes finished Jobs whose effect the filesystem does not show, so that the next pass runs them again.
func (p *pass) repeatUnseenJobs(ctx context.Context) error {
	if len(p.seen.Repeat) == 0 {
		return nil
	}
	var jobs batchv1.JobList
	if err := p.Client.List(ctx, &jobs, p.mine()...); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !slices.Contains(p.seen.Repeat, job.Name) || !metav1.IsControlledBy(job, p.fs) {
			continue
		}
		if !finishedBefore(job, p.Clock.Now().Add(-2*p.PollInterval)) {
			continue
		}
		if err := p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground)); client.IgnoreNotFound(err) != nil {
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
