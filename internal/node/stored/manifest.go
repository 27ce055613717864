package stored

import (
	"encoding/json"
	"fmt"

	"parallelfs.dev/operator/internal/node/spec"
)

// BackupManifest reads what the backup of a name says of itself. Of a form that this program does not know, the result has the Format only.
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
