package filesystem

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/controllers/refusals"
	"parallelfs.dev/operator/internal/backend"
)

// mostRefusals is the number of objects whose events are read in one pass. The reason for one refusal mostly applies to all.
const mostRefusals = 16

// asker is an object of a FileSystem whose controller has not created all its pods.
type asker struct {
	refusals.Owner
	uid                   types.UID
	component, pool, slot string
	// words is the API server's message, if the object's own status contains it.
	words string
}

// withoutPods returns the DaemonSets that have fewer pods than they should.
func withoutPods(sets []appsv1.DaemonSet, pods []corev1.Pod) (out []asker) {
	made, newest := map[types.UID]int32{}, map[types.UID]time.Time{}
	for i := range pods {
		if owner := owned.ControllerOf(&pods[i]); owner != nil {
			made[owner.UID]++
			if at := pods[i].CreationTimestamp.Time; at.After(newest[owner.UID]) {
				newest[owner.UID] = at
			}
		}
	}
	for i := range sets {
		set := &sets[i]
		if set.Status.DesiredNumberScheduled <= max(made[set.UID], 0) || !set.DeletionTimestamp.IsZero() {
			continue
		}
		a := askerOf("DaemonSet", set)
		// A pod that was created later proves that the refusal is over.
		if at := newest[set.UID]; at.After(a.Since) {
			a.Since = at
		}
		out = append(out, a)
	}
	return out
}

func askerOf(kind string, o client.Object) asker {
	of := o.GetLabels()
	return asker{
		Owner: refusals.Owner{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Since: o.GetCreationTimestamp().Time}, uid: o.GetUID(),
		component: of[v1alpha1.LabelComponent], pool: of[v1alpha1.LabelStoragePool], slot: of[v1alpha1.LabelSlot],
	}
}

// jobsWithoutPods returns the Jobs of a FileSystem, for any purpose, that were started and have never had a pod.
func jobsWithoutPods(fs *v1alpha1.FileSystem, jobs []batchv1.Job) (out []asker) {
	for i := range jobs {
		job := &jobs[i]
		ended := slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
			return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue
		})
		started := job.Status.Active+job.Status.Succeeded+job.Status.Failed > 0
		held := job.Spec.Suspend != nil && *job.Spec.Suspend
		if metav1.IsControlledBy(job, fs) && !ended && !started && !held && job.DeletionTimestamp.IsZero() {
			out = append(out, askerOf("Job", job))
		}
	}
	return out
}

// guardsWithoutPods returns the guards whose pods are refused, according to the status of their Deployments.
func guardsWithoutPods(fs *v1alpha1.FileSystem, deployments map[string]*appsv1.Deployment) (out []asker) {
	for _, name := range slices.Sorted(maps.Keys(deployments)) {
		d := deployments[name]
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && metav1.IsControlledBy(d, fs) {
				a := askerOf("Deployment", d)
				a.words = refusals.Words(c.Message)
				out = append(out, a)
			}
		}
	}
	return out
}

// lookForRefusals checks whether the API server refuses pods of the FileSystem.
func (p *pass) lookForRefusals(ctx context.Context) error {
	if p.in.FileSystem == nil {
		return nil
	}
	all, err := p.askers(ctx)
	if err != nil {
		return err
	}
	as := map[types.UID]how{}
	for i := range all {
		as[all[i].uid] = how{}
	}
	now := p.Order.Now()
	since := p.observations.see(observedGroup{client.ObjectKeyFromObject(p.fs), "askers"}, maps.All(as), now)
	var refused []asker
	asked := 0
	for i := range all {
		a := all[i]
		if now.Sub(since[a.uid]) < refusals.Patience {
			continue
		}
		if a.words == "" && asked < mostRefusals {
			asked++
			if a.words, err = refusals.Of(ctx, p.Reader, a.Owner); err != nil {
				return err //nolint:wrapcheck // the error describes the request
			}
		}
		if a.words != "" {
			refused = append(refused, a)
		}
	}
	for _, a := range refused {
		p.in.Refused = append(p.in.Refused, backend.Refused{Component: a.component, StoragePool: a.pool, Slot: a.slot})
	}
	p.problems = append(refusedProblems(refused, p.fs.Spec.Pods.ServiceAccountName), p.problems...)
	return nil
}

// askers returns all objects of the FileSystem that wait for pods, by kind and name.
func (p *pass) askers(ctx context.Context) ([]asker, error) {
	m := p.remembered(client.ObjectKeyFromObject(p.fs), p.fs.UID)
	own, err := m.daemons.get(&p.podChanges, func() (ownDaemons, error) { return p.daemonsOf(ctx, p.Client, p.fs) })
	if err != nil {
		return nil, err
	}
	out := slices.Clone(own.askers)
	var jobs batchv1.JobList
	// The Jobs of backups, checks and recoveries have other labels.
	if err := p.Client.List(ctx, &jobs, client.InNamespace(p.fs.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	out = append(out, jobsWithoutPods(p.fs, jobs.Items)...)
	if p.fs.Status.Upgrade != nil {
		var sets appsv1.DaemonSetList
		if err := p.Client.List(ctx, &sets, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("list the DaemonSets that bring images to nodes: %w", err)
		}
		var pods corev1.PodList
		if err := p.Client.List(ctx, &pods, append(p.ofImages(), client.UnsafeDisableDeepCopy)...); err != nil {
			return nil, fmt.Errorf("list the pods that bring images to nodes: %w", err)
		}
		out = append(out, withoutPods(ownSets(p.fs, sets.Items), pods.Items)...)
	}
	guards, err := p.guardsNow(ctx)
	if err != nil {
		return nil, err
	}
	out = append(out, guardsWithoutPods(p.fs, guards.deployments)...)
	slices.SortFunc(out, func(a, b asker) int { return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name)) })
	return out, nil
}

// refusedProblems returns one problem for each cause of refusals, with the objects that it affects, in their order. account is
// spec.pods.serviceAccountName.
func refusedProblems(refused []asker, account string) []backend.Problem {
	ofFileSystem := refusals.Fields{PriorityClass: "spec.pods.priorityClassName", Resources: "spec.pods.resources", Account: account}
	var order []string
	by := map[string][]asker{}
	for _, a := range refused {
		mend := refusals.Mend(a.words, a.Owner, ofFileSystem)
		if len(by[mend]) == 0 {
			order = append(order, mend)
		}
		by[mend] = append(by[mend], a)
	}
	var out []backend.Problem
	for _, mend := range order {
		first := by[mend][0]
		out = append(out, backend.Problem{
			Reason: v1alpha1.ReasonPodsRefused, Message: refusals.Sentence(first.Owner, len(by[mend])-1, first.words, ofFileSystem),
		})
	}
	return out
}

// agentsRefused returns why the API server refuses the pods of agents; empty if it does not, or if the agents' DaemonSet is not configured.
// It is checked only while agents are silent.
func (r *Reconciler) agentsRefused(ctx context.Context) (string, error) {
	if r.Agents.Name == "" {
		return "", nil
	}
	var set appsv1.DaemonSet
	if err := r.Reader.Get(ctx, r.Agents, &set); err != nil {
		return "", client.IgnoreNotFound(err) //nolint:wrapcheck // the phase adds its name
	}
	if set.Status.DesiredNumberScheduled <= set.Status.CurrentNumberScheduled {
		return "", nil
	}
	owner := askerOf("DaemonSet", &set).Owner
	words, err := refusals.Of(ctx, r.Reader, owner)
	if err != nil || words == "" {
		return "", err //nolint:wrapcheck // the error describes the request
	}
	return refusals.Sentence(owner, 0, words, refusals.Fields{
		PriorityClass: "agent.priorityClassName of the chart", Resources: "agent.resources of the chart",
		Account: set.Spec.Template.Spec.ServiceAccountName,
	}), nil
}
