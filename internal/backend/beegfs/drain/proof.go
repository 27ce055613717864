package drain

import (
	"fmt"
	"path"
	"slices"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Directories returns the directories with the chunks of a target, below the data directory of its storage server: chunks, and buddymir for
// mirrored ones (StorageTk of 7.4.6 and 8.3.1).
func Directories(data string) []string {
	return []string{path.Join(data, "chunks"), path.Join(data, "buddymir")}
}

// Empty is true when a target holds no data, and since when. Two things prove it: the agent of its node found no file on it, after the
// present request, and every Job of the drain has succeeded. The Jobs alone prove nothing: a user who may create Jobs or pods in the
// namespace can forge them. If there are clients, the Job that moves files must have succeeded too: files whose stripes name the target,
// and that have written nothing to it yet, leave no trace on the disk.
func (t *Target) Empty(f Facts) (since time.Time, empty bool) {
	if !t.saysEmpty() {
		return time.Time{}, false
	}
	since = t.Disk.Status.Files.NoneSince.Time
	for _, name := range JobNames(f.FileSystem, t.ID) {
		job := f.Job(name)
		if job == nil || !job.Succeeded {
			return time.Time{}, false
		}
		if job.Ended.After(since) {
			since = job.Ended
		}
	}
	return since, true
}

// saysEmpty is true when the agent of the target's node has found no file on it. Only that agent and the operator can write it.
func (t *Target) saysEmpty() bool {
	if t.Disk == nil || t.Disk.Status.Files == nil {
		return false
	}
	files := t.Disk.Status.Files
	return files.Empty && files.Left == 0 && files.NoneSince != nil &&
		files.ObservedGeneration == t.Disk.Generation && slices.Equal(t.Disk.Spec.FilesIn, t.FilesIn)
}

// JobNames returns the names of the Jobs that empty a target.
func JobNames(fs *v1alpha1.FileSystem, id int32) []string {
	names := []string{AwaitEmptyName(fs, id)}
	if fs.Spec.Clients != nil {
		names = append(names, MigrateName(fs, id))
	}
	return names
}

// AwaitEmptyName is the name of the Job that waits, on the target's node, until no chunk is left.
func AwaitEmptyName(fs *v1alpha1.FileSystem, id int32) string {
	return backend.ChildName(fs, fmt.Sprintf("await-empty-%d", id))
}

// MigrateName is the name of the Job that moves the files, on a client.
func MigrateName(fs *v1alpha1.FileSystem, id int32) string {
	return backend.ChildName(fs, fmt.Sprintf("migrate-%d", id))
}

// MayMove is true when the files of a target may be moved: a person has confirmed that nothing writes, or no client has mounted the
// filesystem.
func (t *Target) MayMove(f Facts) bool { return t.Disk.Spec.WritersStopped || len(f.Mounted()) == 0 }
