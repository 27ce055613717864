package directory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/spec"
)

// LedgerVersion is the version of the Ledger's format that this program writes. It reads all versions up to this one.
const LedgerVersion = 1

// Ledger is the content of the file spec.Run.Ledger, which lists the directories that were initialized on this node.
type Ledger struct {
	// Version is the version of the format: LedgerVersion.
	Version int `json:"version"`
	// Directories are the entries by path.
	Directories map[string]LedgerEntry `json:"directories"`
}

// LedgerEntry records the owner and the time (RFC 3339) of a directory's initialization.
type LedgerEntry struct {
	Owner spec.Owner `json:"owner"`
	Time  string     `json:"time"`
}

// Prover proves the directories of one component.
type Prover struct {
	Owner     spec.Owner
	Component string
	// Ledger is the path of the ledger.
	Ledger string
	// UID and GID belong to the daemon's user.
	UID, GID int
	// RootUID and RootGID own the files that the daemon must not change. They are 0, except where files can't change their owner.
	RootUID, RootGID int
	Writer           durable.Writer
	Now              func() time.Time
	// CommandLimit is how long the command of an initialization may run.
	CommandLimit time.Duration
}

// Prove inspects the directory, decides, and makes it usable. lookup resolves the variables of its initialization. The error of a refusal
// is a sentence for a person, and in that case nothing was changed. It may be interrupted at any moment: the next call continues to the
// same result.
func (p Prover) Prove(ctx context.Context, d spec.Directory, lookup environment.Lookup) (Action, error) {
	if err := understand(d, p.Ledger); err != nil {
		return Refuse, err
	}
	d, err := expand(d, lookup)
	if err != nil {
		return Refuse, err
	}
	ledger, err := p.readLedger()
	if err != nil {
		return Refuse, err
	}
	facts, err := look(d)
	if err != nil {
		return Refuse, err
	}
	_, facts.Recorded = ledger.Directories[d.Path]
	decision := Decide(d, p.Owner, p.Component, p.Ledger, facts)
	switch decision.Action {
	case Refuse:
		return Refuse, errors.New(decision.Reason)
	case Initialize, Resume:
		err = p.initialize(ctx, d, lookup, facts, ledger)
	case Adopt:
		marker := *facts.Marker
		marker.Owner = p.Owner
		if err = p.writeMarker(d, marker); err == nil {
			err = p.use(d, ledger)
		}
	case Use:
		err = p.use(d, ledger)
	}
	return decision.Action, err
}

// initialize writes the marker first, so that later findings are known to be the operator's own. It sets the state Initialized last, when
// everything is on the disk.
func (p Prover) initialize(ctx context.Context, d spec.Directory, lookup environment.Lookup, facts Facts, ledger Ledger) error {
	marker := spec.Marker{Owner: p.Owner, Component: p.Component, State: spec.MarkerPreparing, Time: p.now(), Made: facts.Made}
	if err := p.writeMarker(d, marker); err != nil {
		return err
	}
	data := filepath.Join(d.Path, d.Data)
	if err := p.Writer.Directory(data, p.user(0o750)); err != nil {
		return err
	}
	if i := d.Initialize; i != nil {
		for _, name := range i.Directories {
			if err := p.Writer.Directory(filepath.Join(data, name), p.user(0o750)); err != nil {
				return err
			}
		}
		for _, f := range i.Files {
			if err := p.Writer.File(filepath.Join(data, f.Name), []byte(f.Content), p.user(0o640)); err != nil {
				return err
			}
		}
		if err := p.command(ctx, d, lookup, marker); err != nil {
			return err
		}
	}
	if err := p.record(d, ledger); err != nil {
		return err
	}
	marker.State, marker.Time, marker.Made = spec.MarkerInitialized, p.now(), ""
	return p.writeMarker(d, marker)
}

func (p Prover) use(d spec.Directory, ledger Ledger) error {
	if err := p.Writer.Directory(filepath.Join(d.Path, d.Data), p.user(0o750)); err != nil {
		return err
	}
	return p.record(d, ledger)
}

func (p Prover) record(d spec.Directory, ledger Ledger) error {
	if entry, ok := ledger.Directories[d.Path]; ok && entry.Owner == p.Owner {
		return nil
	}
	if ledger.Directories == nil {
		ledger.Directories = map[string]LedgerEntry{}
	}
	ledger.Version = LedgerVersion
	ledger.Directories[d.Path] = LedgerEntry{Owner: p.Owner, Time: p.now()}
	if err := p.Writer.Directory(filepath.Dir(p.Ledger), p.root(0o755)); err != nil {
		return err
	}
	return p.writeJSON(p.Ledger, ledger)
}

func (p Prover) writeMarker(d spec.Directory, marker spec.Marker) error {
	// root keeps the ownership of the directory: the daemon's user must not be able to replace the marker or to write beside its data.
	if err := p.Writer.Directory(d.Path, p.root(0o755)); err != nil {
		return err
	}
	marker.Version = spec.MarkerVersion
	return p.writeJSON(filepath.Join(d.Path, spec.MarkerFile), marker)
}

func (p Prover) writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("can't encode %s: %w", path, err)
	}
	return p.Writer.Text(path, append(content, '\n'), p.root(0o600))
}

func (p Prover) readLedger() (Ledger, error) {
	var ledger Ledger
	if _, err := readJSON(p.Ledger, LedgerVersion, &ledger); err != nil {
		return Ledger{}, err
	}
	return ledger, nil
}

func (p Prover) now() string { return p.Now().UTC().Format(time.RFC3339) }

func (p Prover) root(mode fs.FileMode) durable.Ownership {
	return durable.Ownership{UID: p.RootUID, GID: p.RootGID, Mode: mode}
}

func (p Prover) user(mode fs.FileMode) durable.Ownership {
	return durable.Ownership{UID: p.UID, GID: p.GID, Mode: mode}
}
