package filesystem

import (
	"context"
	"errors"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
)

// readCopies starts Jobs that read back the copies of the metadata on running servers, and makes servers fetch copies again that can't be
// read. Its decision is written with the status of this pass, and carried out by the next pass. It takes no lease: a copy is read at low
// priority, and a copy that was never read could be unusable when it is needed.
func (p *pass) readCopies(ctx context.Context) error {
	if !p.observed {
		return nil // some input is missing
	}
	follower, can := p.backend.(backend.Follower)
	v := metadatajobs.CopyView{
		FileSystem: p.read, Recorded: p.read.Status.MetadataCopies, Serves: p.in.State != nil && !isNew(p.fs), Now: p.Clock.Now(),
	}
	if v.Serves {
		v.Version = p.in.State.MetadataVersion
	}
	if can {
		v.Copies = follower.MetadataCopies(p.in, p.observation, v.Now)
	}
	if len(v.Copies) == 0 && len(v.Recorded) == 0 {
		return nil
	}
	var err error
	if v.Jobs, err = p.recoveryJobs(ctx, p.labeled(v1alpha1.LabelCopies)); err != nil {
		return err
	}
	d := metadatajobs.DecideCopies(v)
	p.fs.Status.MetadataCopies = d.Copies
	if !equality.Semantic.DeepEqual(v.Recorded, d.Copies) {
		p.after = stopInterval // the next pass carries it out
	}
	if d.Condition.Reason != "" {
		p.observation.Copies = &d.Condition
	}
	p.observation.Restarts = append(p.observation.Restarts, d.Fetch...)
	var errs []error
	for _, name := range d.Remove {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.fs.Namespace, Name: name}}
		errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	for _, request := range d.Start {
		errs = append(errs, p.startRecovery(ctx, follower, request, v1alpha1.LabelCopies))
	}
	return errors.Join(errs...)
}

// describeCopies sets the condition MetadataCopies. An unreadable copy reduces the number of copies: programs can still read and write, and
// the filesystem is degraded.
func describeCopies(fs *v1alpha1.FileSystem, copies *backend.Problem, s *summary) {
	if copies == nil {
		meta.RemoveStatusCondition(&fs.Status.Conditions, v1alpha1.ConditionMetadataCopies)
		return
	}
	is := metav1.ConditionFalse
	switch copies.Reason {
	case v1alpha1.ReasonCopiesProven:
		is = metav1.ConditionTrue
	case v1alpha1.ReasonCopiesUnread:
		is = metav1.ConditionUnknown
	case v1alpha1.ReasonCopiesUnproven:
		missing := []backend.Problem{*copies}
		if s.missing != nil {
			missing = []backend.Problem{*s.missing, *copies}
		}
		s.missing = together(missing)
	}
	conditions.Add(&fs.Status.Conditions, fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionMetadataCopies, is,
		copies.Reason, copies.Message)
}
