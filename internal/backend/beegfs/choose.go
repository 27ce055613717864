package beegfs

import (
	"regexp"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// runnable matches the versions that this package supports, and the API server accepts the same ones.
var runnable = regexp.MustCompile(`^(7[.]4|8[.][0-9]{1,3})[.][0-9]{1,3}$`)

// Choose chooses the version.
func (Backend) Choose(in backend.Input, asked *v1alpha1.FileSystemSpec, chosen *v1alpha1.ChosenStatus) error {
	if asked.Version != "" {
		return nil
	}
	var err error
	chosen.Version, err = backend.ChooseVersion(in, "beegfs-mgmtd-", runnable)
	return err //nolint:wrapcheck // it is a sentence for a person
}
