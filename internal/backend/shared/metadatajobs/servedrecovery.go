package metadatajobs

import (
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// AsMetadata returns a FileSystem whose metadata is at the place in another record: that of a store which is recovered in the same way as
// metadata.
func AsMetadata(fs *v1alpha1.FileSystem, record *v1alpha1.MetadataRecord) *v1alpha1.FileSystem {
	out := *fs
	out.Status.Metadata = record
	return &out
}

// BackupSource returns the place of a backup by the name of its candidate, and the name of the backup there; false if none of these sources
// has it.
func BackupSource(sources []backend.RecoverySource, candidate string) (source backend.RecoverySource, backup string, there bool) {
	at := len(candidate) - len(spec.BackupNameLayout)
	if at < 1 {
		return source, "", false
	}
	for _, s := range sources {
		if s.Kind == v1alpha1.RecoveryBackup && s.Name == strings.TrimSuffix(candidate[:at], "-") {
			return s, candidate[at:], true
		}
	}
	return source, "", false
}
