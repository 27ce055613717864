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
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/disruption"
)

// chooseRestarts puts the pods that must restart into the queue of disruptions, selects those that may restart now, and reports the state.
// The restart of a running pod waits for the lease; the restart of a pod that is down does not.
func (p *pass) chooseRestarts(ctx context.Context) error {
	closed, err := disruption.Closed(p.fs.Spec.Updates.Windows, p.Clock.Now())
	if err != nil {
		p.problems = append(p.problems, backend.Problem{Reason: v1alpha1.ReasonInvalidSpec, Message: err.Error()})
	}
	look := circumstances{closed: closed, silent: p.silent(), maintained: backend.Maintained(p.fs)}
	pods, message, rests := nextRestarts(p.backend.Order(), p.in, p.observation, look)
	if runs(pods) {
		// The cache may not show an earlier restart yet, and still contain the pod that was deleted. If a pod has started meanwhile, this read is
		// later than the filesystem's answer.
		in := p.in
		if in.Pods, err = p.pods(ctx, p.Reader, p.fs); err != nil {
			return err
		}
		pods, message, rests = nextRestarts(p.backend.Order(), in.Remaining().Indexed(), p.observation, look)
	}
	if runs(pods) {
		changes := make([]string, len(pods))
		for i, pod := range pods {
			changes[i] = fmt.Sprintf("%s is to be restarted: %s", pod.Place, pod.Why)
		}
		if may, err := p.hold.may(ctx, changes...); err != nil || !may {
			return err
		}
	}
	p.restarts, p.rests = pods, rests
	if slices.ContainsFunc(pods, func(d pendingPod) bool { return d.Cost() != "" }) {
		p.observation.Serves, p.observation.Pending, p.observation.Unknown = false, false, false // programs wait for the pod that restarts
	}
	if message != "" {
		p.observation.Problems = append(p.observation.Problems, backend.Problem{Reason: v1alpha1.ReasonRestarting, Message: message})
	}
	return nil
}

// runs reports whether there are running pods. If several restart together, all of them run.
func runs(pods []pendingPod) bool { return len(pods) > 0 && !pods[0].Down }

// restart deletes a pod after the status names it.
func (p *pass) restart(ctx context.Context, pod *pendingPod) error {
	note := fmt.Sprintf("Restarting %s: %s%s", pod.Place, pod.Why, pod.Cost())
	p.Recorder.Eventf(p.fs, nil, corev1.EventTypeNormal, v1alpha1.ReasonRestarting, "Restart", "%s", v1alpha1.Cut(note, conditions.MaxNote))
	log.FromContext(ctx).Info("Restarting a pod", "pod", pod.pod, "component", pod.Component, "node", pod.Node, "why", pod.Why)
	p.plan(pod.pod)
	err := p.Client.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pod.pod.Namespace, Name: pod.pod.Name}})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete pod %s: %w", pod.pod, err)
	}
	return nil
}

// pendingPod is a pod that must restart. Its server is away meanwhile.
type pendingPod struct {
	disruption.Disruption
	pod types.NamespacedName
}

// circumstances holds the input of restarts besides the observed filesystem.
type circumstances struct {
	// closed is when the next window opens; empty while one is open.
	closed string
	// silent holds the pods with an older node image whose server was away for a while.
	silent map[types.NamespacedName]bool
	// maintained holds the nodes in maintenance, including those whose maintenance this pass has begun.
	maintained []string
}

// nextRestarts returns the pods that may restart now, and describes those that should: see disruption.Decide. It leaves out pods on a node
// that is not Ready, because nothing would stop them, and pods that are being stopped. A pod also waits until the agent of its node has
// written the server's configuration. Otherwise it would start with the old one, and the need for another restart would be lost. rests is
// true if all of them wait only for a person or a window.
func nextRestarts(
	order []string, in backend.Input, observation backend.Observation, now circumstances,
) (next []pendingPod, message string, rests bool) {
	all := pendingPods(order, in, observation, now)
	queue := make([]disruption.Disruption, len(all))
	for i := range all {
		queue[i] = all[i].Disruption
	}
	world := worldOf(order, in, now.maintained, observation, now.closed)
	decision := disruption.Decide(queue, world)
	for _, at := range decision.Now {
		next = append(next, all[at])
	}
	return next, decision.Sentence(queue, world), decision.Rests(world)
}

// pendingPods returns the pods that must restart, in the order of their components.
func pendingPods(order []string, in backend.Input, observation backend.Observation, now circumstances) (all []pendingPod) {
	online := map[string]bool{}
	for i := range observation.Servers {
		online[observation.Servers[i].Name] = observation.Servers[i].Online
	}
	changed := map[types.NamespacedName]backend.Restart{}
	for _, r := range observation.Restarts {
		changed[r.Pod] = r
	}
	domains := nodefacts.NewDomains(in)
	for i := range in.Pods {
		p := &in.Pods[i]
		priority := slices.Index(order, p.Component)
		node, _ := in.Node(p.Node)
		if priority < 0 || p.Terminating || !p.Ready && !node.Ready {
			continue
		}
		next := pendingPod{pod: p.Name, Disruption: disruption.Disruption{
			Place: placeOf(p, domains), Priority: priority, Down: !p.Ready || node.Ready && (now.silent[p.Name] || lost(p, online)),
			Costs: observation.Sole[p.Name.Name], Together: observation.Together[p.Name.Name],
		}}
		disks, hasChanged := changed[p.Name]
		switch {
		case p.Outdated:
			// The same restart starts the use of the disk. Without the disk, the filesystem never becomes healthy enough for the other reason.
			next.Why, next.Mends = cmp.Or(p.Moved, recertified(p), "its configuration has changed"), hasChanged && disks.Safe
		case hasChanged:
			next.Why, next.Mends = disks.Why, disks.Safe
		case now.silent[p.Name]:
			next.Why = "its server is not online, and its node image is older than the operator and may not understand its configuration"
		case lags(p, in) && in.FileSystem.Annotations[v1alpha1.AnnotationTakeUpNodeImage] == in.Images.Node:
			next.Why = "the annotation " + v1alpha1.AnnotationTakeUpNodeImage + " asks for the operator's node image"
		default:
			continue
		}
		if !in.Configured[p.Node] {
			next.Waits = "the agent of its node has written its configuration"
		} else if priority == 0 && !next.Down {
			next.Waits = metadatajobs.WaitsForCopy(in.FileSystem, "") // the first component holds the metadata
		}
		all = append(all, next)
	}
	slices.SortStableFunc(all, func(a, b pendingPod) int { return cmp.Compare(a.Priority, b.Priority) })
	return all
}

// clientComponent is the component of the pods that mount a filesystem, in every backend.
const clientComponent = "client"

// lost reports whether a pod has an address in its configuration that no node has now, and the filesystem does not list it as online. Only
// a restart brings it back, whether the filesystem answers or not.
func lost(p *backend.Pod, online map[string]bool) bool {
	return p.Outdated && p.Moved != "" && !online[p.Server()]
}

// recertified is a sentence for a pod whose server is to start with another certificate; empty for others.
func recertified(p *backend.Pod) string {
	if p.Recertified && p.Certificate != "" {
		return "its certificate has changed"
	}
	return ""
}

// movedClients returns problems for mounts with an address that no node has now. Programs may use them, so the operator restarts none.
func movedClients(in backend.Input) []backend.Problem {
	var nodes []string
	var why string
	for i := range in.Pods {
		if p := &in.Pods[i]; p.Component == clientComponent && p.Moved != "" && !p.Terminating {
			nodes, why = append(nodes, p.Node), p.Moved
		}
	}
	if len(nodes) == 0 {
		return nil
	}
	fs := in.FileSystem
	return []backend.Problem{{Reason: v1alpha1.ReasonAddressChanged, Message: fmt.Sprintf(
		"%s; the mounts on %s ask for the old one: end the programs that use them, and run kubectl -n %s delete pods -l %s=%s,%s=%s",
		why, backend.List(nodes), fs.Namespace, v1alpha1.LabelFileSystem, fs.Name, v1alpha1.LabelComponent, clientComponent)}}
}

// worldOf returns the facts about the filesystem that restarts depend on. A server whose pod was deleted and not created yet counts as
// away.
func worldOf(order []string, in backend.Input, maintained []string, observation backend.Observation, closed string) disruption.World {
	w := disruption.World{
		Answered: in.State != nil, Problems: len(observation.Problems) > 0, Unconfirmed: observation.Unconfirmed, Closed: closed,
		Paused: in.FileSystem.Spec.Updates.Paused, Most: int(in.FileSystem.Spec.Updates.MaxUnavailable),
		Maintained: maintained,
	}
	if !observation.Serves || among(observation.Problems, v1alpha1.ReasonChunksEndangered) ||
		among(observation.Problems, v1alpha1.ReasonDataInconsistent) {
		w.Closed = "" // programs wait already, or their data has fewer copies
	}
	domains, there := nodefacts.NewDomains(in), map[string]bool{}
	for _, component := range order {
		for i := range in.Pods {
			p := &in.Pods[i]
			if p.Component != component {
				continue
			}
			there[p.Server()] = true
			if !p.Ready || !in.AskedSince(*p) {
				w.Away = append(w.Away, placeOf(p, domains))
			}
		}
	}
	for i := range observation.Servers {
		if name := observation.Servers[i].Name; !there[name] {
			w.Gone = append(w.Gone, name)
		}
	}
	return w
}

func placeOf(p *backend.Pod, domains nodefacts.Domains) disruption.Place {
	domain, _ := domains.Of(p.Node)
	return disruption.Place{Component: p.Component, Node: p.Node, Domain: domain}
}

// repeatUnseenJobs deletes finished Jobs whose effect the filesystem does not show, so that the next pass runs them again.
func (p *pass) repeatUnseenJobs(ctx context.Context) error {
	if len(p.observation.Repeat) == 0 {
		return nil
	}
	var jobs batchv1.JobList
	if err := p.Client.List(ctx, &jobs, p.mine()...); err != nil {
		return fmt.Errorf("list jobs: %w", err)
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !slices.Contains(p.observation.Repeat, job.Name) || !metav1.IsControlledBy(job, p.fs) {
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
