package backend

import (
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// AsMetadata is a FileSystem as if the metadata lay where another record says: that of a store which is recovered as metadata is.
func AsMetadata(fs *v1alpha1.FileSystem, record *v1alpha1.MetadataRecord) *v1alpha1.FileSystem {
	out := *fs
	out.Status.Metadata = record
	return &out
}

// BackupSource is the place of a backup by the name of its candidate, and the name that the backup has there; false where none of these
// sources has it.
func BackupSource(sources []RecoverySource, candidate string) (source RecoverySource, backup string, there bool) {
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
