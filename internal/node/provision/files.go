package provision

import (
	"context"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/drained"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// countLimit is how long one count of files may take.
	countLimit = 30 * time.Second
	// betweenCounts is the least time between two counts that find no file. A file that is being moved may be missed by one count both at its
	// old and at its new place.
	betweenCounts = 10 * time.Second
	// mostFilesMessage bounds a sentence about a count, in bytes.
	mostFilesMessage = 1024
)

// files counts the files that are left in spec.filesIn of a target that is mounted and proven; nil if there is nothing to count.
func (p *Provisioner) files(ctx context.Context, t *v1alpha1.StorageTarget, mountPath string) *v1alpha1.TargetFiles {
	if len(t.Spec.FilesIn) == 0 || mountPath == "" || t.Status.Provisioned == nil {
		return nil
	}
	told := spec.AwaitEmpty{
		Owner:  spec.Owner{Namespace: t.Namespace, Name: t.Spec.FileSystem.Name, UID: t.Spec.FileSystem.UID},
		Target: spec.Target{Name: t.Name, Path: mountPath, UUID: t.Status.Provisioned.UUID},
	}
	for _, directory := range t.Spec.FilesIn {
		told.Directories = append(told.Directories, filepath.Join(mountPath, directory))
	}
	limited, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()
	left, err := drained.Count(limited, told)
	return counted(t.Status.Files, t.Generation, left, err, p.Now())
}

// counted returns the result of a count in connection with the earlier ones: two counts in a row without a file, for the same spec, prove
// that the target is empty.
func counted(before *v1alpha1.TargetFiles, generation int64, left int, err error, now time.Time) *v1alpha1.TargetFiles {
	out := &v1alpha1.TargetFiles{ObservedGeneration: generation, Left: int32(left)} //nolint:gosec // at most 10001
	switch {
	case err != nil:
		out.Left, out.Message = 0, v1alpha1.Cut(err.Error(), mostFilesMessage)
	case left > 0:
	case before == nil || before.NoneSince == nil || before.ObservedGeneration != generation,
		before.Message != "", before.NoneSince.After(now):
		at := metav1.NewTime(now).Rfc3339Copy()
		out.NoneSince = &at
	default:
		out.NoneSince = before.NoneSince.DeepCopy()
		out.Empty = !now.Before(before.NoneSince.Add(betweenCounts))
	}
	return out
}
