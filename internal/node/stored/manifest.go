package stored

import (
	"encoding/json"
	"fmt"

	"parallelfs.dev/operator/internal/node/spec"
)

// BackupManifest parses the manifest of the backup with this name. For an unknown format version, the result has only the Format.
func BackupManifest(name string, content []byte) (spec.BackupManifest, error) {
	var form struct {
		Format int `json:"format"`
	}
	if err := json.Unmarshal(content, &form); err != nil {
		return spec.BackupManifest{}, fmt.Errorf("can't understand %s of the backup %s: %w", spec.BackupManifestFile, name, err)
	}
	if err := Known("format", form.Format, spec.BackupFormat); err != nil {
		return spec.BackupManifest{Format: form.Format}, fmt.Errorf("%s of the backup %s %w", spec.BackupManifestFile, name, err)
	}
	var m spec.BackupManifest
	if err := json.Unmarshal(content, &m); err != nil {
		return spec.BackupManifest{}, fmt.Errorf("can't understand %s of the backup %s: %w", spec.BackupManifestFile, name, err)
	}
	return m, nil
}
