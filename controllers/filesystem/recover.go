package filesystem

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/disruption"
	"parallelfs.dev/operator/internal/node/spec"
)

// recoverMetadata continues the recovery that a person has requested. Its decision is written with the status of this pass, and carried out
// by the next pass. Before that is recorded, no Job starts, and no server gets another address.
func (p *pass) recoverMetadata(ctx context.Context) error {
	recoverer, can := p.backend.(backend.Recoverer)
	if !p.observed {
		return nil // some input is missing
	}
	status := &p.fs.Status
	if !can {
		status.Recovery = nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRecovering)
		return nil
	}
	place := recoverer.MetadataPlace(p.read)
	jobs, err := p.recoveryJobs(ctx, p.ofRecovery())
	if err != nil {
		return err
	}
	fs, serves := p.read, p.metadataServes(place.Component)
	served, apart := p.backend.(backend.ServedRecoverer)
	var compare []backend.RecoveryRequest
	if apart {
		fs, serves = metadatajobs.AsMetadata(p.read, served.StoreRecord(p.read)), served.StoreStays(p.in)
		compare, jobs = p.compareStore(served, jobs)
	}
	var sources []backend.RecoverySource
	if _, asked := p.read.Annotations[v1alpha1.AnnotationRecoverMetadata]; asked {
		sources = recoverer.RecoverySources(p.in)
	}
	d := metadatajobs.DecideRecovery(metadatajobs.RecoveryView{
		FileSystem: fs, Recorded: p.read.Status.Recovery, Sources: sources, Nodes: p.in.Nodes, Jobs: jobs,
		Targets: p.in.Targets, Place: place,
		Expected: assign.MetadataExpected(p.in),
		Serves:   serves, Conflict: p.metadataConflict, Now: p.Clock.Now(),
	})
	status.Recovery = d.Recovery
	switch {
	case d.Metadata != nil && apart:
		served.RecordStore(p.fs, *d.Metadata)
	case d.Metadata != nil:
		status.Metadata = d.Metadata
	}
	if apart && d.Condition.Reason == v1alpha1.ReasonMetadataRecovered {
		d.Condition.Message += "; " + served.ComparisonSays(p.fs)
	}
	if d.Condition.Reason == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionRecovering)
	} else {
		is := metav1.ConditionFalse
		if d.Condition.Reason == v1alpha1.ReasonRestoring {
			is = metav1.ConditionTrue
		}
		conditions.Add(&status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionRecovering, is,
			d.Condition.Reason, d.Condition.Message)
	}
	p.reconnects = p.reconnect(place)
	var errs []error
	for _, name := range d.Remove {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.fs.Namespace, Name: name}}
		errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	for _, request := range slices.Concat(d.Start, compare) {
		errs = append(errs, p.startRecovery(ctx, recoverer, request, v1alpha1.LabelRecovery))
	}
	return errors.Join(errs...)
}

// compareStore compares the server's content with what was restored, once the server serves, and records the result. It returns the Job to
// start, and those of the given jobs that belong to others.
func (p *pass) compareStore(served backend.ServedRecoverer, jobs []metadatajobs.RecoveryJobFacts) (
	start []backend.RecoveryRequest, others []metadatajobs.RecoveryJobFacts,
) {
	request, impossible := served.Comparison(p.in)
	now := metav1.NewTime(p.Clock.Now()).Rfc3339Copy()
	switch {
	case impossible != "":
		served.RecordComparison(p.fs, impossible, now)
		return nil, jobs
	case request == nil:
		return nil, jobs
	}
	i := slices.IndexFunc(jobs, func(j metadatajobs.RecoveryJobFacts) bool { return j.Name == request.Job })
	if i < 0 {
		return []backend.RecoveryRequest{*request}, jobs
	}
	if job := jobs[i]; job.Ended {
		differs := ""
		if job.Answer == nil || !job.Answer.Compared {
			differs = cmp.Or(job.Message, "its Job has ended and left no answer")
		}
		served.RecordComparison(p.fs, differs, now)
	}
	return nil, slices.Delete(slices.Clone(jobs), i, i+1)
}

// metadataServes returns why the metadata is not lost; empty if it may be lost.
func (p *pass) metadataServes(component string) string {
	if p.in.State != nil {
		return fmt.Sprintf("the %s answers, so that nothing is lost", component)
	}
	for i := range p.in.Pods {
		if pod := &p.in.Pods[i]; pod.Component == component && pod.Ready {
			return fmt.Sprintf("the %s on node %s runs (pod %s is Ready), although the operator can't reach it: find out why, or stop it", component, pod.Node, pod.Name.Name)
		}
	}
	return ""
}

// metadataConflict names another filesystem that uses the place of the metadata; empty if there is none.
func (p *pass) metadataConflict(at v1alpha1.MetadataRecord) string {
	claimer, ok := p.backend.(backend.Claimer)
	if !ok {
		return ""
	}
	fs := p.fs.DeepCopy()
	fs.Status.Metadata = &at
	if err := assign.RefuseConflicts(p.in, claimer.Claims(fs, p.in.FileSystemNodes)); err != nil {
		return err.Error()
	}
	return ""
}

// ofRecovery selects the objects of the FileSystem's recovery.
func (p *pass) ofRecovery() []client.ListOption {
	return p.labeled(v1alpha1.LabelRecovery)
}

// labeled selects the objects in the namespace that a label assigns to the FileSystem.
func (p *pass) labeled(label string) []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{label: p.fs.Name}}
}

// recoveryJobs returns the facts of the listed Jobs, which are those of a recovery or those that read copies back.
func (p *pass) recoveryJobs(ctx context.Context, listed []client.ListOption) ([]metadatajobs.RecoveryJobFacts, error) {
	jobs, pods, err := p.answeringJobs(ctx, listed)
	if err != nil {
		return nil, err
	}
	var out []metadatajobs.RecoveryJobFacts
	for _, j := range jobs {
		facts := metadatajobs.RecoveryJobFacts{Name: j.Name}
		facts.Ended, facts.Answer, facts.Message = lastAnswer(j, pods, func(printed string) (*spec.RecoveryAnswer, string) {
			if answer := metadatajobs.ReadRecoveryAnswer(printed); answer != nil {
				return answer, answer.Message
			}
			return nil, ""
		})
		out = append(out, facts)
	}
	return out, nil
}

// startRecovery creates a Job of a recovery, or one that reads a copy back, unless it exists. Its label shows which.
func (p *pass) startRecovery(ctx context.Context, recoverer backend.Recoverer, request backend.RecoveryRequest, label string) error {
	job, config, err := recoverer.RecoveryJob(p.in, request)
	if err != nil {
		return err //nolint:wrapcheck // the error of the backend is complete
	}
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode the configuration of %s: %w", job.Name, err)
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, label: p.fs.Name}
	job.Labels, job.Spec.Template.Labels = labels, labels
	job.Spec.Template.Annotations = map[string]string{podspec.RecoveryToldAnnotation: string(text)}
	if err := controllerutil.SetControllerReference(p.fs, job, p.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", job.Name, err)
	}
	if err := p.Client.Create(ctx, job); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache is not up to date
		}
		return fmt.Errorf("make %s: %w", job.Name, err)
	}
	log.FromContext(ctx).Info("Started a job that reads copies of the metadata",
		"job", job.Name, "source", request.Source.Name, "restores", request.Restore != nil)
	return nil
}

// reconnect restarts all servers and mounts that were started before the last recovery, with a former address of the metadata, and are not
// online. Each of them waits for a server that is gone, and no program loses anything by the restart. The queue of disruptions would wait
// for them forever. Pods that restart anyway are left out.
func (p *pass) reconnect(place backend.MetadataPlace) (pods []pendingPod) {
	m := p.fs.Status.Metadata
	outdated := func(pod backend.Pod) bool { return pod.Outdated }
	if m == nil || m.Recovered == nil || p.in.State == nil || !slices.ContainsFunc(p.in.Pods, outdated) {
		return nil
	}
	online := map[string]bool{}
	for i := range p.observation.Servers {
		online[p.observation.Servers[i].Name] = p.observation.Servers[i].Online
	}
	mounted := map[string]bool{}
	for i := range p.observation.Clients {
		mounted[p.observation.Clients[i].Node] = p.observation.Clients[i].Mounted
	}
	domains := nodefacts.NewDomains(p.in)
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		takesPart := online[pod.Server()]
		if !slices.Contains(p.backend.Order(), pod.Component) {
			// A mount that looks for the metadata at its former address may still respond.
			takesPart = mounted[pod.Node] && m.Recovered.PreviousNode == m.Node
		}
		node, _ := p.in.Node(pod.Node)
		chosen := slices.ContainsFunc(p.restarts, func(d pendingPod) bool { return d.pod == pod.Name })
		waits := pod.Outdated && !pod.Terminating && !takesPart && node.Ready && !pod.Started.After(m.Recovered.Time.Time)
		if pod.Component == place.Component || !waits || chosen {
			continue
		}
		pods = append(pods, pendingPod{pod: pod.Name, Disruption: disruption.Disruption{
			Place: placeOf(pod, domains), Down: true,
			Why: fmt.Sprintf("%s is on node %s since its recovery, and it does not know that", place.Noun, m.Node),
		}})
	}
	return pods
}
