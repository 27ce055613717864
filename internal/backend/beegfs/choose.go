package beegfs

import (
	"regexp"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// runnable matches the versions that this package supports, and the API server accepts the same ones.
var runnable = regexp.MustCompile(`^(7[.]4|8[.][0-9]{1,3})[.][0-9]{1,3}$`)

// Choose chooses the version and the rule for the metadata servers' worker threads. A filesystem that was made before there was such a rule
// has none, and keeps its number.
func (Backend) Choose(in backend.Input, asked *v1alpha1.FileSystemSpec, chosen *v1alpha1.ChosenStatus) error {
	if before := in.FileSystem.Status.Chosen; before != nil {
		chosen.MetadataWorkersPerCore = before.MetadataWorkersPerCore
	}
	if in.FileSystem.Status.Metadata == nil {
		chosen.MetadataWorkersPerCore = workersPerCore
	}
	if own := asked.MetadataServers.BeeGFS; own != nil && own.WorkerThreads != nil {
		chosen.MetadataWorkersPerCore = 0
	}
	if asked.Version != "" {
		return nil
	}
	var err error
	chosen.Version, err = backend.ChooseVersion(in, "beegfs-mgmtd-", runnable)
	return err //nolint:wrapcheck // it is a sentence for a person
}
