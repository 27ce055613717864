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
	"parallelfs.dev/operator/internal/disruption"
	"parallelfs.dev/operator/internal/node/spec"
)

// recoverMetadata goes on with the recovery that a person has asked for. What it decides is written with the status of this pass, and
// carried out by the next one: no Job is started, and no server is told of another place, before that is on record.
func (p *pass) recoverMetadata(ctx context.Context) error {
	recoverer, can := p.backend.(backend.Recoverer)
	if !p.observed {
		return nil // not all is known
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
		fs, serves = backend.AsMetadata(p.read, served.StoreRecord(p.read)), served.StoreStays(p.in)
		compare, jobs = p.compareStore(served, jobs)
	}
	var sources []backend.RecoverySource
	if _, asked := p.read.Annotations[v1alpha1.AnnotationRecoverMetadata]; asked {
		sources = recoverer.RecoverySources(p.in)
	}
	d := backend.DecideRecovery(backend.RecoveryView{
		FileSystem: fs, Recorded: p.read.Status.Recovery, Sources: sources, Nodes: p.in.Nodes, Jobs: jobs,
		Targets: p.in.Targets, Place: place,
		Expected: backend.MetadataExpected(p.in),
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
	p.reconnect(place)
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

// compareStore has what a server says compared with what was put back, once it serves, and records what came of it. It returns the Job to
// start, and those of jobs that are none of its own.
func (p *pass) compareStore(served backend.ServedRecoverer, jobs []backend.RecoveryJobFacts) (
	start []backend.RecoveryRequest, others []backend.RecoveryJobFacts,
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
	i := slices.IndexFunc(jobs, func(j backend.RecoveryJobFacts) bool { return j.Name == request.Job })
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

// metadataServes says why the metadata is not lost; empty when it may be.
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

// metadataConflict says which other filesystem stands in the way of metadata at a place; empty when none does.
func (p *pass) metadataConflict(at v1alpha1.MetadataRecord) string {
	claimer, ok := p.backend.(backend.Claimer)
	if !ok {
		return ""
	}
	fs := p.fs.DeepCopy()
	fs.Status.Metadata = &at
	if err := backend.RefuseConflicts(p.in, claimer.Claims(fs, p.in.FileSystemNodes)); err != nil {
		return err.Error()
	}
	return ""
}

// ofRecovery finds what belongs to a recovery of the FileSystem.
func (p *pass) ofRecovery() []client.ListOption {
	return p.labeled(v1alpha1.LabelRecovery)
}

// labeled finds the objects in the namespace that a label assigns to the FileSystem.
func (p *pass) labeled(label string) []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{label: p.fs.Name}}
}

// recoveryJobs returns the state of the listed Jobs, which are those of a recovery or those that read copies back.
func (p *pass) recoveryJobs(ctx context.Context, listed []client.ListOption) ([]backend.RecoveryJobFacts, error) {
	jobs, pods, err := p.answeringJobs(ctx, listed)
	if err != nil {
		return nil, err
	}
	var out []backend.RecoveryJobFacts
	for _, j := range jobs {
		facts := backend.RecoveryJobFacts{Name: j.Name}
		facts.Ended, facts.Answer, facts.Message = lastAnswer(j, pods, func(printed string) (*spec.RecoveryAnswer, string) {
			if answer := backend.ReadRecoveryAnswer(printed); answer != nil {
				return answer, answer.Message
			}
			return nil, ""
		})
		out = append(out, facts)
	}
	return out, nil
}

// startRecovery makes a Job of a recovery, or one that reads a copy back, unless it is there. Its label says which.
func (p *pass) startRecovery(ctx context.Context, recoverer backend.Recoverer, request backend.RecoveryRequest, label string) error {
	job, told, err := recoverer.RecoveryJob(p.in, request)
	if err != nil {
		return err //nolint:wrapcheck // the backend says what is wrong
	}
	text, err := json.Marshal(told)
	if err != nil {
		return fmt.Errorf("encode what %s is told: %w", job.Name, err)
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, label: p.fs.Name}
	job.Labels, job.Spec.Template.Labels = labels, labels
	job.Spec.Template.Annotations = map[string]string{backend.RecoveryToldAnnotation: string(text)}
	if err := controllerutil.SetControllerReference(p.fs, job, p.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", job.Name, err)
	}
	if err := p.Client.Create(ctx, job); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache lags behind
		}
		return fmt.Errorf("make %s: %w", job.Name, err)
	}
	log.FromContext(ctx).Info("Started a job that reads copies of the metadata",
		"job", job.Name, "source", request.Source.Name, "restores", request.Restore != nil)
	return nil
}

// reconnect restarts all servers and mounts that were started before the last recovery, with another address of the metadata than it has
// now, and do not take part: each of them waits for a server that is gone, and none is a loss to anybody. The queue of disruptions would
// wait for them for ever.
func (p *pass) reconnect(place backend.MetadataPlace) {
	m := p.fs.Status.Metadata
	outdated := func(pod backend.Pod) bool { return pod.Outdated }
	if m == nil || m.Recovered == nil || p.in.State == nil || !slices.ContainsFunc(p.in.Pods, outdated) {
		return
	}
	online := map[string]bool{}
	for i := range p.seen.Servers {
		online[p.seen.Servers[i].Name] = p.seen.Servers[i].Online
	}
	mounted := map[string]bool{}
	for i := range p.seen.Clients {
		mounted[p.seen.Clients[i].Node] = p.seen.Clients[i].Mounted
	}
	domains := backend.NewDomains(p.in)
	for i := range p.in.Pods {
		pod := &p.in.Pods[i]
		takesPart := online[pod.Server()]
		if !slices.Contains(p.backend.Order(), pod.Component) {
			// A mount may still answer that asks for the metadata at an address where it is no more.
			takesPart = mounted[pod.Node] && m.Recovered.PreviousNode == m.Node
		}
		node, _ := p.in.Node(pod.Node)
		chosen := slices.ContainsFunc(p.restarts, func(d due) bool { return d.pod == pod.Name })
		waits := pod.Outdated && !pod.Terminating && !takesPart && node.Ready && !pod.Started.After(m.Recovered.Time.Time)
		if pod.Component == place.Component || !waits || chosen {
			continue
		}
		p.restarts = append(p.restarts, due{pod: pod.Name, Disruption: disruption.Disruption{
			Place: placeOf(pod, domains), Down: true,
			Why: fmt.Sprintf("%s is on node %s since its recovery, and it does not know that", place.Noun, m.Node),
		}})
	}
}
