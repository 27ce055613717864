package filesystem

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/admitted"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/plan"
)

// look reads the current state.
func (p *pass) look(ctx context.Context) error {
	in, d, waited, err := p.gather(ctx, p.backend, p.fs)
	if err != nil {
		return err
	}
	p.in, p.disks, p.waited = in, d, waited
	return nil
}

// gather reads the backend's whole input, and the StorageTargets of all FileSystems. Lists are the cache's own and read-only. The
// filesystem is queried after everything else was read, so that its answer is newer. While it answers, the rest is sorted. The result
// waited is how long the pass only waited for the answer.
func (r *Reconciler) gather(
	ctx context.Context, b backend.Backend, fs *v1alpha1.FileSystem,
) (in backend.Input, d disks, waited time.Duration, err error) {
	in = backend.Input{FileSystem: fs, Images: r.Images}
	var all v1alpha1.FileSystemList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return in, d, 0, fmt.Errorf("list FileSystems: %w", err)
	}
	for _, other := range all.Items {
		if other.UID != fs.UID {
			in.Others = append(in.Others, other.Completed())
		}
	}
	slices.SortFunc(in.Others, func(a, b v1alpha1.FileSystem) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	if in.Nodes, err = r.nodes(ctx); err != nil {
		return in, d, 0, err
	}
	in.Nodes = nodefacts.WithAddresses(in.Nodes, b.Families(fs))
	targets, err := r.targets(ctx)
	if err != nil {
		return in, d, 0, err
	}
	if in.FileSystemNodes, in.OthersNodes, err = r.fileSystemNodes(ctx, fs); err != nil {
		return in, d, 0, err
	}
	agents, err := r.inventories(ctx)
	if err != nil {
		return in, d, 0, err
	}
	in.Inventories, d.versions = agents.found, agents.versions
	if in.Unconfirmed, err = r.unconfirmedReports(ctx, in.Inventories); err != nil {
		return in, d, 0, err
	}
	m := r.remembered(client.ObjectKeyFromObject(fs), fs.UID)
	own, err := m.daemons.get(&r.podChanges, func() (ownDaemons, error) { return r.daemonsOf(ctx, r.Client, fs) })
	if err != nil {
		return in, d, 0, err
	}
	in.Pods = own.facts
	if in.Jobs, err = r.jobs(ctx, fs, own.jobPods); err != nil {
		return in, d, 0, err
	}
	if keeper, ok := b.(backend.SecretKeeper); ok {
		name, key := keeper.SecretName(fs)
		if in.Password, _, err = r.secret(ctx, fs, name, key); err != nil {
			return in, d, 0, err
		}
	}
	if in.CertificateFault, err = r.certificate(ctx, b, in); err != nil {
		return in, d, 0, err
	}

	// Everything was read before this moment, and every answer is newer.
	readAt, answer := r.Order.Now(), func() {}
	if asker, ok := b.(backend.Asker); ok {
		if answer, err = r.ask(ctx, asker, &in); err != nil {
			return in, d, 0, err
		}
	}
	those := r.targetsOf(fs, m, targets, readAt)
	d.own, d.others, in.Targets, in.Since = those.own, those.others, those.remaining, those.since
	in.Claims = r.Backends.Claims(in.Others, in.OthersNodes)
	in = in.IndexedWith(m.found)
	m.found = in.Found()
	began := time.Now()
	answer()
	waited = time.Since(began)
	return in.Indexed(), d, waited, nil
}

// remaining returns the targets that are not being deleted. In most passes these are all targets, and then they are not copied. A target
// that the second node holds remains until that node has handed it back, because nothing happens to its disk before.
func remaining(own []v1alpha1.StorageTarget) []v1alpha1.StorageTarget {
	goes := func(t v1alpha1.StorageTarget) bool { return !t.DeletionTimestamp.IsZero() && !plan.IsAway(&t) }
	if !slices.ContainsFunc(own, goes) {
		return slices.Clip(own)
	}
	return slices.DeleteFunc(slices.Clone(own), goes)
}

// ask queries the filesystem, and returns a function that waits for the answer and puts it into the Input.
func (r *Reconciler) ask(ctx context.Context, asker backend.Asker, in *backend.Input) (answer func(), err error) {
	answer = func() {}
	fs, name := in.FileSystem, exchange.ProbeSecretName(in.FileSystem)
	key, there, err := r.secret(ctx, fs, name, exchange.ProbeKey)
	if err != nil {
		return answer, err
	}
	in.ProbeKey = key
	q, urls := Question{FileSystemUID: string(fs.UID), Key: key, Secret: name}, map[string]string{}
	nodes, asksNodes := asker.(backend.NodeProber)
	if asksNodes {
		urls = nodes.ProbeURLs(*in)
	} else if one, ok := asker.(backend.Prober); ok {
		q.URL = one.ProbeURL(*in)
	}
	switch {
	case q.URL == "" && len(urls) == 0:
		in.StateError = "it has no node yet"
		return answer, nil
	case !there:
		in.StateError = fmt.Sprintf("there is no Secret %s with what the probe signs its answers with; it is made now, and reaches the probe within a minute", name)
		return answer, nil
	case asksNodes:
		return r.askNodes(ctx, nodes, urls, in, q), nil
	}
	var state *backend.State
	asked, answered := r.Order.Now(), make(chan error, 1)
	go func() {
		var err error
		state, err = r.States.State(ctx, q)
		answered <- err
	}()
	return func() {
		if err := <-answered; err != nil {
			if r.secrets != nil {
				r.secrets.forget() // the key may have changed
			}
			in.StateError = v1alpha1.Cut(err.Error(), maxSaid)
			return
		}
		state.Asked = asked
		in.State = state
	}, nil
}

// sinceWhen returns, by uid, when this manager first saw the current condition Ready of each target. The argument at is when the targets
// were read.
func (r *Reconciler) sinceWhen(fs *v1alpha1.FileSystem, targets []v1alpha1.StorageTarget, at time.Time) map[types.UID]time.Time {
	return r.observations.see(observedGroup{client.ObjectKeyFromObject(fs), "targets"}, func(yield func(types.UID, how) bool) {
		for i := range targets {
			var as how
			if ready := assign.Condition(&targets[i], v1alpha1.ConditionReady); ready != nil {
				as = how{string(ready.Status), ready.LastTransitionTime.Unix()}
			}
			if !yield(targets[i].UID, as) {
				return
			}
		}
	}, at)
}

// maxSaid bounds the texts of others in a status, in bytes: those of the kubelet, the API server, and a probe.
const maxSaid = 512

// nodes returns the facts of all nodes, sorted by name.
func (r *Reconciler) nodes(ctx context.Context) ([]backend.Node, error) {
	return r.allNodes.get(&r.nodeChanges, func() ([]backend.Node, error) {
		var nodes corev1.NodeList
		if err := r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		return nodefacts.NodeFacts(nodes.Items), nil
	})
}

// pods returns the facts of the filesystem's pods as the given reader returns them now.
func (r *Reconciler) pods(ctx context.Context, c client.Reader, fs *v1alpha1.FileSystem) ([]backend.Pod, error) {
	own, err := r.daemonsOf(ctx, c, fs)
	return own.facts, err
}

// ownDaemons holds the facts of all pods of a FileSystem, and the pods of its Jobs, read-only. Of the other pods, which are thousands with
// a kilobyte each, only the facts are needed.
type ownDaemons struct {
	facts   []backend.Pod
	jobPods []corev1.Pod
	// askers holds the DaemonSets that wait for pods.
	askers []asker
}

// daemonsOf reads the DaemonSets and the pods of the filesystem. Labels find them; owner references prove that they belong to the
// filesystem.
func (r *Reconciler) daemonsOf(ctx context.Context, c client.Reader, fs *v1alpha1.FileSystem) (ownDaemons, error) {
	mine := []client.ListOption{
		client.InNamespace(fs.Namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: fs.Name}, client.UnsafeDisableDeepCopy,
	}
	var sets appsv1.DaemonSetList
	if err := c.List(ctx, &sets, mine...); err != nil {
		return ownDaemons{}, fmt.Errorf("list DaemonSets: %w", err)
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, mine...); err != nil {
		return ownDaemons{}, fmt.Errorf("list pods: %w", err)
	}
	var jobs batchv1.JobList
	if err := c.List(ctx, &jobs, mine...); err != nil {
		return ownDaemons{}, fmt.Errorf("list jobs: %w", err)
	}
	ours := ownSets(fs, sets.Items)
	ids := owned.Of(fs, pointers(ours)...)
	maps.Copy(ids, owned.Of(fs, pointers(jobs.Items)...))
	past := &r.remembered(client.ObjectKeyFromObject(fs), fs.UID).controllers
	controllers := past.Look(fs.Name+"-", ids, pods.Items, r.Clock.Now())
	is := controllers.Has
	if !fs.DeletionTimestamp.IsZero() {
		is = controllers.MayHave
	}
	items := slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !is(&p) })
	own := ownDaemons{facts: r.podsFacts(fs, ours, items, r.Order.Now()), askers: withoutPods(ours, items)}
	for i := range items {
		if owner := owned.ControllerOf(&items[i]); owner.Kind == "Job" {
			own.jobPods = append(own.jobPods, items[i])
		}
	}
	return own, nil
}

// ownSets returns those DaemonSets that the FileSystem controls.
func ownSets(fs *v1alpha1.FileSystem, sets []appsv1.DaemonSet) []appsv1.DaemonSet {
	return slices.DeleteFunc(sets, func(s appsv1.DaemonSet) bool { return !metav1.IsControlledBy(&s, fs) })
}

// pointers returns pointers to the elements of a list.
func pointers[T any](list []T) []*T {
	out := make([]*T, len(list))
	for i := range list {
		out[i] = &list[i]
	}
	return out
}

// podsFacts returns the facts of pods that were read at a moment, sorted by component, pool, node and name.
func (r *Reconciler) podsFacts(fs *v1alpha1.FileSystem, sets []appsv1.DaemonSet, pods []corev1.Pod, at time.Time) []backend.Pod {
	wanted, management, certificate := map[types.UID]string{}, map[types.UID]string{}, map[types.UID]string{}
	for i := range sets {
		management[sets[i].UID] = sets[i].Spec.Template.Annotations[podspec.ManagementAnnotation]
		certificate[sets[i].UID] = sets[i].Spec.Template.Annotations[podspec.CertificateAnnotation]
		wanted[sets[i].UID] = sets[i].Spec.Template.Annotations[backend.TemplateHashAnnotation]
	}
	out := make([]backend.Pod, len(pods))
	for i := range pods {
		out[i] = podFacts(&pods[i], wanted)
		if owner := owned.ControllerOf(&pods[i]); owner != nil {
			out[i].Moved = podspec.Moved(pods[i].Annotations[podspec.ManagementAnnotation], management[owner.UID])
			out[i].Recertified = out[i].Certificate != certificate[owner.UID]
		}
	}
	since := r.observations.see(observedGroup{client.ObjectKeyFromObject(fs), "pods"}, func(yield func(types.UID, how) bool) {
		for i := range pods {
			if out[i].Ready && !yield(pods[i].UID, how{text: start(&pods[i])}) {
				return
			}
		}
	}, at)
	for i := range pods {
		out[i].Seen = since[pods[i].UID]
	}
	slices.SortFunc(out, func(a, b backend.Pod) int {
		return cmp.Or(strings.Compare(a.Component, b.Component), strings.Compare(a.StoragePool, b.StoragePool),
			strings.Compare(a.Node, b.Node), strings.Compare(a.Slot, b.Slot), strings.Compare(a.Name.Name, b.Name.Name))
	})
	return out
}

// jobs returns the facts of the filesystem's Jobs, sorted by name.
func (r *Reconciler) jobs(ctx context.Context, fs *v1alpha1.FileSystem, pods []corev1.Pod) ([]backend.Job, error) {
	mine := []client.ListOption{client.InNamespace(fs.Namespace), client.MatchingLabels{v1alpha1.LabelFileSystem: fs.Name}}
	var jobs batchv1.JobList
	if err := r.Client.List(ctx, &jobs, mine...); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	var out []backend.Job
	for i := range jobs.Items {
		if metav1.IsControlledBy(&jobs.Items[i], fs) {
			out = append(out, jobFacts(&jobs.Items[i], pods))
		}
	}
	slices.SortFunc(out, func(a, b backend.Job) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// jobFacts returns the facts of a Job, and why the last of its failed pods failed.
func jobFacts(j *batchv1.Job, pods []corev1.Pod) backend.Job {
	facts := backend.Job{Name: j.Name, Component: j.Labels[v1alpha1.LabelComponent]}
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete:
			facts.Succeeded, facts.Ended = true, c.LastTransitionTime.Time
		case batchv1.JobFailed:
			facts.Failed, facts.Ended = true, c.LastTransitionTime.Time
		}
	}
	var last time.Time
	for i := range pods {
		if !owned.IsOf(&pods[i], j) {
			continue
		}
		for _, c := range pods[i].Status.ContainerStatuses {
			t := c.State.Terminated
			if t == nil {
				t = c.LastTerminationState.Terminated
			}
			if t != nil && t.ExitCode != 0 && !t.FinishedAt.Time.Before(last) {
				last, facts.Message = t.FinishedAt.Time, v1alpha1.Cut(containerMessage(c), maxSaid)
			}
		}
		if !facts.Succeeded && !facts.Failed {
			settle(&facts, j, &pods[i])
		}
	}
	return facts
}

// settle ends a Job whose own containers have all ended while another container, added by an injector, still runs. Kubernetes never ends
// such a Job.
func settle(facts *backend.Job, j *batchv1.Job, pod *corev1.Pod) {
	own := func(name string) bool {
		return slices.ContainsFunc(j.Spec.Template.Spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	}
	outlasting := admitted.Outlasting(pod, own)
	if outlasting == "" {
		return
	}
	facts.Outlasting, facts.Succeeded = outlasting, true
	for _, c := range pod.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil && own(c.Name) {
			facts.Succeeded = facts.Succeeded && t.ExitCode == 0
			facts.Ended = later(facts.Ended, t.FinishedAt.Time)
		}
	}
	if facts.Failed = !facts.Succeeded; facts.Failed {
		facts.Message = v1alpha1.Cut(fmt.Sprintf("%s; container %s of pod %s still runs, so that Kubernetes does not try again: exclude "+
			"the pods of the FileSystem from its injector", facts.Message, outlasting, pod.Name), maxSaid)
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// start returns a value that differs for each start of a pod's containers.
func start(p *corev1.Pod) string {
	var how strings.Builder
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil {
			how.WriteString(c.Name)
			how.WriteByte(' ')
			how.WriteString(strconv.Itoa(int(c.RestartCount)))
			how.WriteByte(' ')
			how.WriteString(strconv.FormatInt(c.State.Running.StartedAt.Unix(), 10))
			how.WriteByte(';')
		}
	}
	return how.String()
}

// podFacts returns the facts of a pod. The argument wanted holds the template hash of each DaemonSet.
func podFacts(p *corev1.Pod, wanted map[types.UID]string) backend.Pod {
	if _, whole := p.Annotations[admitted.AnnotationAsked]; whole {
		p = p.DeepCopy() // it is not from the cache, which shortens its own objects
		admitted.Shorten(p)
	}
	facts := backend.Pod{
		Name: client.ObjectKeyFromObject(p), Component: p.Labels[v1alpha1.LabelComponent],
		StoragePool: p.Labels[v1alpha1.LabelStoragePool], Slot: p.Labels[v1alpha1.LabelSlot], Node: p.Spec.NodeName,
		Terminating: p.DeletionTimestamp != nil, MetadataMirrored: p.Annotations[backend.MetadataMirroredAnnotation] != "",
		Changed:     admitted.Changed(p),
		Certificate: p.Annotations[podspec.CertificateAnnotation],
		NodeImage:   podspec.NodeImage(&p.Spec), Version: p.Annotations[backend.VersionAnnotation],
	}
	for _, owner := range p.OwnerReferences {
		if want, ok := wanted[owner.UID]; ok {
			facts.Outdated = p.Annotations[backend.TemplateHashAnnotation] != want
		}
	}
	// An answer that is older than the last start of its containers proves nothing about the pod.
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Running != nil && c.State.Running.StartedAt.After(facts.Started) {
			facts.Started = c.State.Running.StartedAt.Time
		}
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			facts.Ready = c.Status == corev1.ConditionTrue && p.DeletionTimestamp == nil
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse:
			facts.Message = v1alpha1.Cut(c.Message, maxSaid)
		}
	}
	if facts.Ready {
		return facts
	}
	for _, c := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses) {
		if c.Ready {
			continue
		}
		if message := containerMessage(c); message != "" {
			facts.Message = v1alpha1.Cut(c.Name+": "+message, maxSaid)
			break
		}
	}
	return facts
}

// signaled is added to the number of the signal that ended a program, which gives its exit code (bash(1), runc).
const signaled = 128

// containerMessage returns why a container does not run; empty while it starts.
func containerMessage(c corev1.ContainerStatus) string {
	for _, t := range []*corev1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
		if t != nil && t.ExitCode > signaled {
			// The last line of its output does not show why it was killed.
			return fmt.Sprintf("was killed by signal %d (%s)", t.ExitCode-signaled, t.Reason)
		}
		if t != nil && t.ExitCode != 0 {
			if message := lastLine(t.Message); message != "" {
				return message
			}
			return fmt.Sprintf("ended with exit code %d (%s)", t.ExitCode, t.Reason)
		}
	}
	if w := c.State.Waiting; w != nil && w.Reason == "CrashLoopBackOff" {
		return "ends soon after each start, with exit code 0; its log shows why" // the kubelet's own message changes all the time
	} else if w != nil && w.Reason != "ContainerCreating" && w.Reason != "PodInitializing" {
		return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
	}
	return ""
}

// lastLine returns the last line of a termination message, which is the sentence that a program ended with.
func lastLine(message string) string {
	lines := strings.Split(strings.TrimSpace(message), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	const most = 512
	if len(last) > most {
		last = last[:most]
	}
	return strings.ToValidUTF8(last, "")
}

// secret returns the value of a Secret of the filesystem under a key. If the Secret does not exist, it returns a random text, which the
// caller stores in that Secret.
func (r *Reconciler) secret(ctx context.Context, fs *v1alpha1.FileSystem, name, key string) (value string, there bool, err error) {
	var secret corev1.Secret
	err = r.Client.Get(ctx, client.ObjectKey{Namespace: fs.Namespace, Name: name}, &secret)
	if client.IgnoreNotFound(err) != nil {
		return "", false, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if have := string(secret.Data[key]); have != "" {
		return have, true, nil
	}
	return rand.Text(), false, nil
}
