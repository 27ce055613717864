package drain

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Progress describes the progress of a drain whose target does not wait; empty while BeeGFS does not have it in Pool.
func (t *Target) Progress(f Facts) string {
	if t.Now != Pool {
		return ""
	}
	var says []string
	if f.FileSystem.Spec.Clients != nil {
		says = append(says, t.moving(f)...)
	}
	if t.Disk != nil && t.Disk.Status.Files != nil && t.Disk.Status.Files.Message != "" {
		says = append(says, "the agent of node "+t.Node+" can't count the files that are left: "+t.Disk.Status.Files.Message)
	}
	if job := f.Job(AwaitEmptyName(f.FileSystem, t.ID)); job != nil && job.Message != "" {
		says = append(says, job.Message)
	}
	return strings.Join(says, "; ")
}

// moving describes the progress of the Job that moves the files.
func (t *Target) moving(f Facts) []string {
	job := f.Job(MigrateName(f.FileSystem, t.ID))
	switch {
	case job == nil && len(f.Movers()) == 0:
		return []string{"no client node can mount the filesystem to move its files: status.missing of the FileSystem shows why"}
	case job == nil && !t.MayMove(f):
		return []string{"its files are moved when spec.writersStopped is true: the filesystem is mounted by " + strings.Join(f.Mounted(), ", ")}
	case job == nil:
		return []string{"the job that moves its files begins"}
	case job.Succeeded:
		return []string{"all files that a client finds were moved"}
	}
	says := []string{fmt.Sprintf("files are moved by job %s, while no client has a file open", job.Name)}
	if job.Message != "" {
		says = append(says, "its last try: "+job.Message)
	}
	return says
}

// Removal describes how the files of a target are moved to other targets: a client moves them, and nothing keeps other programs from
// writing meanwhile. So a person has to confirm that nothing writes, or no client may have mounted the filesystem; the Job checks again
// whether that holds.
func Removal(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, mounted []string) backend.Removal {
	switch pool := target.Spec.StoragePool; {
	case target.Spec.Role == v1alpha1.RoleManagement:
		return backend.Removal{Never: "the management service can't be moved to another disk: without its store BeeGFS forgets ids, pools and mirrors"}
	case target.Spec.Role == v1alpha1.RoleMetadata:
		return backend.Removal{Never: "BeeGFS can't move metadata to another server: what this one holds would be lost, and all files below its directories with it"}
	case slices.ContainsFunc(fs.Spec.StoragePools, func(p v1alpha1.StoragePoolSpec) bool { return p.Name == pool && p.Copies > 1 }):
		return backend.Removal{Never: fmt.Sprintf("storage pool %s is mirrored, and BeeGFS can't take a target out of a buddy group that holds data", pool)}
	}
	removal := backend.Removal{
		Waits: "waiting until the target is in BeeGFS's pool draining, which gets no new files",
		Moves: "the filesystem moves the data elsewhere: ",
	}
	if fs.Spec.Clients == nil {
		removal.Moves = "BeeGFS places no new files on it, but only a client can move those that are there: set spec.clients of the FileSystem, " +
			"or migrate or delete the files yourself; "
	}
	if len(mounted) > 0 && !target.Spec.WritersStopped {
		removal.Writers = fmt.Sprintf("the filesystem is mounted on %s, and BeeGFS moves files without locking them: what is written to a file meanwhile may be lost. "+
			"Stop what writes, then set spec.writersStopped to true", backend.List(mounted))
	}
	return removal
}
