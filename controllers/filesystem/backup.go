package filesystem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/conditions"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/node/spec"
)

// The annotations of a Job that makes a backup: its name, and its place.
const (
	annotationBackup          = "parallelfs.dev/backup"
	annotationBackupClaim     = "parallelfs.dev/backup-claim"
	annotationBackupStore     = "parallelfs.dev/backup-object-store"
	annotationBackupNode      = "parallelfs.dev/backup-node"
	annotationBackupDirectory = "parallelfs.dev/backup-directory"
)

// backUp starts backups whose time has come, and reports the results of others. It takes no lease, because a backup disturbs programs no
// more than another metalogger does. A backup that waited for the end of a benchmark could be missing when it is needed.
func (p *pass) backUp(ctx context.Context) error {
	status := &p.fs.Status
	backuper, ok := p.backend.(backend.Backuper)
	if !ok {
		status.Backups, status.BackupAsked = nil, nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionBackedUp)
		return nil
	}
	if !p.observed {
		return nil // some input is missing
	}
	jobs, err := p.backupJobs(ctx)
	if err != nil {
		return err
	}
	d := metadatajobs.DecideBackups(metadatajobs.BackupView{
		FileSystem: p.fs, Nodes: p.in.Nodes, Jobs: jobs, Recorded: p.read.Status.Backups, Asked: p.read.Status.UpgradeAsked,
		Requested: p.read.Status.BackupAsked,
		Serves:    p.in.State != nil && !isNew(p.fs), Now: p.Clock.Now(),
	})
	status.Backups, status.BackupAsked = d.Backups, metadatajobs.RequestedBackup(p.read, p.Clock.Now())
	conditions.Add(&status.Conditions, p.fs.Generation, v1alpha1.ConditionReady, v1alpha1.ConditionBackedUp, backedUp(d.Condition.Reason),
		d.Condition.Reason, d.Condition.Message)
	errs := []error{p.removeBackupJobs(ctx, jobs, d)}
	for _, request := range d.Start {
		errs = append(errs, p.startBackup(ctx, backuper, request))
	}
	return errors.Join(errs...)
}

// backedUp returns the status of the condition BackedUp.
func backedUp(reason string) metav1.ConditionStatus {
	switch reason {
	case v1alpha1.ReasonVerified:
		return metav1.ConditionTrue
	case v1alpha1.ReasonBackupPending:
		return metav1.ConditionUnknown
	default:
		return metav1.ConditionFalse
	}
}

// ofBackups selects the objects of the FileSystem's backups.
func (p *pass) ofBackups() []client.ListOption {
	return []client.ListOption{client.InNamespace(p.fs.Namespace), client.MatchingLabels{v1alpha1.LabelBackup: p.fs.Name}}
}

// backupJobs returns the facts of the Jobs that make backups, by name.
func (p *pass) backupJobs(ctx context.Context) ([]metadatajobs.BackupJobFacts, error) {
	jobs, pods, err := p.answeringJobs(ctx, p.ofBackups())
	if err != nil {
		return nil, err
	}
	var out []metadatajobs.BackupJobFacts
	for _, j := range jobs {
		of := j.Annotations
		facts := metadatajobs.BackupJobFacts{
			Name: j.Name, Backup: of[annotationBackup],
			Place: backend.BackupPlace{
				Claim: of[annotationBackupClaim], ObjectStore: of[annotationBackupStore], Node: of[annotationBackupNode],
				Directory: of[annotationBackupDirectory],
			},
		}
		facts.Ended, facts.Answer, facts.Message = lastAnswer(j, pods, func(printed string) (*spec.BackupAnswer, string) {
			if answer := metadatajobs.ReadBackupAnswer(printed); answer != nil {
				return answer, answer.Message
			}
			return nil, ""
		})
		out = append(out, facts)
	}
	return out, nil
}

// startBackup creates the ConfigMaps of a backup, and then its Job, unless the Job exists. An operator that is killed in between leaves
// ConfigMaps without a Job, and the next one reuses those with the same content.
func (p *pass) startBackup(ctx context.Context, backuper backend.Backuper, request backend.BackupRequest) error {
	err := p.Reader.Get(ctx, client.ObjectKey{Namespace: p.fs.Namespace, Name: request.Job}, &batchv1.Job{})
	if err == nil || !apierrors.IsNotFound(err) {
		return err //nolint:wrapcheck // the phase adds its name
	}
	// The FileSystem as it was read stays the same until something is written. The pass changes times in its own copy.
	record, err := metadatajobs.BackupRecord(p.read, p.in.FileSystemNodes, p.in.Targets)
	if err != nil {
		return err //nolint:wrapcheck // the error describes the request
	}
	request.Pieces = len(record)
	job, config, err := backuper.BackupJob(p.in, request)
	if err != nil {
		return err //nolint:wrapcheck // the error of the backend is complete
	}
	toTell := metadatajobs.BackupConfigMaps(p.fs, request.Job, config, record)
	for i := range toTell {
		there, err := p.isThere(ctx, &toTell[i])
		if err == nil && !there {
			err = p.makeOfBackup(ctx, &toTell[i])
		}
		if err != nil {
			return err
		}
	}
	labels := map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelBackup: p.fs.Name}
	job.Spec.Template.Labels = labels
	job.Annotations = map[string]string{
		annotationBackup: request.Backup, annotationBackupClaim: request.Place.Claim, annotationBackupNode: request.Place.Node,
		annotationBackupDirectory: request.Place.Directory,
	}
	if request.Place.ObjectStore != "" {
		job.Annotations[annotationBackupStore] = request.Place.ObjectStore
	}
	if err := p.makeOfBackup(ctx, job); err != nil {
		return err
	}
	log.FromContext(ctx).Info("Started a backup", "backup", request.Backup, "place", request.Place.String())
	return nil
}

// makeOfBackup creates an object of a backup. It replaces a leftover object of the same name.
func (p *pass) makeOfBackup(ctx context.Context, object client.Object) error {
	object.SetLabels(map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelBackup: p.fs.Name})
	if err := controllerutil.SetControllerReference(p.fs, object, p.Client.Scheme()); err != nil {
		return fmt.Errorf("set the owner of %s: %w", object.GetName(), err)
	}
	err := p.Client.Create(ctx, object)
	if apierrors.IsAlreadyExists(err) {
		if err := client.IgnoreNotFound(p.Client.Delete(ctx, object)); err != nil {
			return fmt.Errorf("remove %s, which is left over: %w", object.GetName(), err)
		}
		object.SetResourceVersion("")
		err = p.Client.Create(ctx, object)
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", object.GetName(), err)
	}
	return nil
}

// isThere reports whether a ConfigMap of the FileSystem exists with the same content, so that each pass makes progress even if the operator
// is killed after every write.
func (p *pass) isThere(ctx context.Context, wanted *corev1.ConfigMap) (bool, error) {
	var there corev1.ConfigMap
	switch err := p.Reader.Get(ctx, client.ObjectKeyFromObject(wanted), &there); {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", wanted.Name, err)
	}
	same := maps.Equal(there.Data, wanted.Data) && maps.EqualFunc(there.BinaryData, wanted.BinaryData, bytes.Equal)
	return same && metav1.IsControlledBy(&there, p.fs), nil
}

// removeBackupJobs removes Jobs with their ConfigMaps, and the ConfigMaps of Jobs that neither exist nor will be made.
func (p *pass) removeBackupJobs(ctx context.Context, jobs []metadatajobs.BackupJobFacts, d metadatajobs.BackupDecision) error {
	var errs []error
	for _, name := range d.Remove {
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: p.fs.Namespace, Name: name}}
		errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, job, client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	var configMaps corev1.ConfigMapList
	if err := p.Client.List(ctx, &configMaps, p.ofBackups()...); err != nil {
		return errors.Join(append(errs, fmt.Errorf("list ConfigMaps: %w", err))...)
	}
	for i := range configMaps.Items {
		m := &configMaps.Items[i]
		job := m.Name[:max(0, strings.LastIndex(m.Name, "-"))]
		if slices.ContainsFunc(jobs, func(j metadatajobs.BackupJobFacts) bool { return j.Name == job }) ||
			slices.ContainsFunc(d.Start, func(r backend.BackupRequest) bool { return r.Job == job }) || !metav1.IsControlledBy(m, p.fs) {
			continue
		}
		// The list of Jobs may be older than the list of ConfigMaps.
		if err := p.Reader.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: job}, &batchv1.Job{}); !apierrors.IsNotFound(err) {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, client.IgnoreNotFound(p.Client.Delete(ctx, m)))
	}
	return errors.Join(errs...)
}
