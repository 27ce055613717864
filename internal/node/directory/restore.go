package directory

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"parallelfs.dev/operator/internal/node/spec"
)

// Restore calls fill to recreate lost data in the data subdirectory of d, which must be empty. The plan's name is first written to the
// marker, so that leftovers of an interrupted attempt are known to be the operator's own. Only such leftovers are ever cleared. A directory
// that was already filled by this plan stays as it is. The error of a refusal is a sentence for a person, and in that case nothing was
// changed.
func (p Prover) Restore(d spec.Directory, plan string, fill func(data string) error) error {
	if err := understand(d, p.Ledger); err != nil {
		return err
	}
	ledger, err := p.readLedger()
	if err != nil {
		return err
	}
	facts, err := look(d)
	if err != nil {
		return err
	}
	if why := keepsFromRestoring(d, p.Owner, p.Component, plan, facts); why != "" {
		return errors.New(why)
	}
	marker := spec.Marker{Owner: p.Owner, Component: p.Component, State: spec.MarkerInitialized, Restored: plan, Time: p.now()}
	if facts.Marker != nil && facts.Marker.State == spec.MarkerInitialized {
		return p.record(d, ledger)
	}
	marker.State = spec.MarkerPreparing
	if err := p.writeMarker(d, marker); err != nil {
		return err
	}
	data := filepath.Join(d.Path, d.Data)
	if err := os.RemoveAll(data); err != nil {
		return fmt.Errorf("can't remove what an attempt that was cut off has left: %w", err)
	}
	if err := p.Writer.Directory(data, p.user(0o750)); err != nil {
		return err
	}
	if err := fill(data); err != nil {
		return err
	}
	if err := p.record(d, ledger); err != nil {
		return err
	}
	marker.State, marker.Time = spec.MarkerInitialized, p.now()
	return p.writeMarker(d, marker)
}

// keepsFromRestoring explains why nothing may be restored into a directory. It is empty if restoring is allowed.
func keepsFromRestoring(d spec.Directory, owner spec.Owner, component, plan string, f Facts) string {
	m := f.Marker
	switch {
	case f.DataElsewhere:
		return fmt.Sprintf("%s is a disk of its own; mount the disk on %s", filepath.Join(d.Path, d.Data), d.Path)
	case len(f.Strangers) > 0:
		return fmt.Sprintf("%s is not empty (%s), and nothing is restored over what is there; move it away", d.Path, some(f.Strangers))
	case m == nil && len(f.Data) > 0:
		return fmt.Sprintf("%s is not empty (%s), and nothing is restored over what is there; move it away", d.Path, foreigner(d, f))
	case m == nil:
		return ""
	case m.Owner != owner || m.Component != component:
		return fmt.Sprintf("%s belongs to the %s of the FileSystem %s/%s with the uid %s (see %s), and nothing is restored over it; move it away",
			d.Path, m.Component, m.Owner.Namespace, m.Owner.Name, m.Owner.UID, spec.MarkerFile)
	case m.State == spec.MarkerPreparing && m.Restored != "":
		return ""
	case m.State == spec.MarkerInitialized && m.Restored == plan:
		if f.DataGone || len(f.Data) == 0 {
			return fmt.Sprintf("%s was restored by this plan, and is empty now; find out what has removed it, and move %s away to begin again",
				filepath.Join(d.Path, d.Data), filepath.Join(d.Path, spec.MarkerFile))
		}
		return ""
	default:
		return fmt.Sprintf("%s has the metadata of this FileSystem already, or had (see %s), and nothing is restored over it; where it can be read, "+
			"it may be newer than all copies. To restore here all the same, move it away", d.Path, spec.MarkerFile)
	}
}
