package filesystem

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// check continues the check for damage that a person has requested. Its decision is written with the status of this pass, and carried out
// by the next pass.
func (p *pass) check(ctx context.Context) error {
	if _, asked := p.read.Annotations[v1alpha1.AnnotationCheck]; !p.observed || !asked && p.read.Status.Check == nil {
		return nil
	}
	jobs, err := p.checkJobs(ctx)
	if err != nil {
		return err
	}
	checker, can := p.backend.(backend.Checker)
	d := metadatajobs.DecideCheck(metadatajobs.CheckView{
		FileSystem: p.read, Recorded: p.read.Status.Check, Jobs: jobs, Can: can, Serves: p.in.State != nil && !isNew(p.fs), Now: p.Clock.Now(),
	})
	var errs []error
	for _, name := range d.Remove {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.fs.Namespace, Name: name}}
		errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	if d.Start != "" {
		err := p.startCheck(ctx, checker, d.Start)
		if invalid, is := errors.AsType[*backend.InvalidSpecError](err); is {
			d.Refuse(p.Clock.Now(), invalid.Error())
		} else {
			errs = append(errs, err)
		}
	}
	p.fs.Status.Check = d.Check
	return errors.Join(errs...)
}

// ofCheck selects the Jobs of the FileSystem's checks.
func (p *pass) ofCheck() []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{v1alpha1.LabelCheck: p.fs.Name}}
}

// checkJobs returns the facts of the Jobs of checks, by name.
func (p *pass) checkJobs(ctx context.Context) ([]metadatajobs.CheckJobFacts, error) {
	jobs, pods, err := p.answeringJobs(ctx, p.ofCheck())
	if err != nil {
		return nil, err
	}
	var out []metadatajobs.CheckJobFacts
	for _, j := range jobs {
		facts := metadatajobs.CheckJobFacts{Name: j.Name}
		facts.Ended, facts.Answer, facts.Message = lastAnswer(j, pods, func(printed string) (*spec.CheckAnswer, string) {
			if answer := metadatajobs.ReadCheckAnswer(printed); answer != nil {
				return answer, answer.Message
			}
			return nil, ""
		})
		out = append(out, facts)
	}
	return out, nil
}

// startCheck creates the Job of a check, unless it exists.
func (p *pass) startCheck(ctx context.Context, checker backend.Checker, name string) error {
	job, err := checker.CheckJob(p.in, name)
	if err != nil {
		return err //nolint:wrapcheck // the error of the backend is complete
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCheck: p.fs.Name}
	job.Labels, job.Spec.Template.Labels = labels, labels
	if err := controllerutil.SetControllerReference(p.fs, job, p.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", job.Name, err)
	}
	if err := p.Client.Create(ctx, job); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("make %s: %w", job.Name, err)
	}
	log.FromContext(ctx).Info("Started a check", "job", job.Name)
	return nil
}
