package directory

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
)

// Ledger is the content of the file spec.Run.Ledger: which directories were initialised on this node.
type Ledger struct {
	// Directories are the entries by path.
	Directories map[string]LedgerEntry `json:"directories"`
}

// LedgerEntry says for whom and when (RFC 3339) a directory was initialised.
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
	// UID and GID are those of the daemon's user.
	UID, GID int
	// RootUID and RootGID own what the daemon must not change: 0, except where files can't be given away.
	RootUID, RootGID int
	Writer           durable.Writer
	Now              func() time.Time
}

// Prove looks at the directory, decides, and makes it usable. The error of a refusal is a sentence for a person, and nothing
// was changed then. It may be cut off between any two steps: the next call goes on to the same end.
func (p Prover) Prove(d spec.Directory) (Action, error) {
	if err := understand(d, p.Ledger); err != nil {
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
	case Initialise, Resume:
		err = p.initialise(d, ledger)
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

// initialise writes the marker first, so that whatever is found later is known to be ours, and the state Initialised
// last, when all is on the disk.
func (p Prover) initialise(d spec.Directory, ledger Ledger) error {
	marker := spec.Marker{Owner: p.Owner, Component: p.Component, State: spec.MarkerPreparing, Time: p.now()}
	if err := p.writeMarker(d, marker); err != nil {
		return err
	}
	data := filepath.Join(d.Path, d.Data)
	if err := p.Writer.Directory(data, p.user(0o750)); err != nil {
		return err
	}
	if i := d.Initialise; i != nil {
		for _, f := range i.Files {
			if err := p.Writer.File(filepath.Join(data, f.Name), []byte(f.Content), p.user(0o640)); err != nil {
				return err
			}
		}
	}
	if err := p.record(d, ledger); err != nil {
		return err
	}
	marker.State, marker.Time = spec.MarkerInitialised, p.now()
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
	ledger.Directories[d.Path] = LedgerEntry{Owner: p.Owner, Time: p.now()}
	if err := p.Writer.Directory(filepath.Dir(p.Ledger), p.root(0o755)); err != nil {
		return err
	}
	return p.writeJSON(p.Ledger, ledger)
}

func (p Prover) writeMarker(d spec.Directory, marker spec.Marker) error {
	// The directory stays root's: the daemon's user must not be able to replace the marker or to write beside its data.
	if err := p.Writer.Directory(d.Path, p.root(0o755)); err != nil {
		return err
	}
	return p.writeJSON(filepath.Join(d.Path, spec.MarkerFile), marker)
}

func (p Prover) writeJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("can't encode %s: %w", path, err)
	}
	return p.Writer.File(path, append(content, '\n'), p.root(0o600))
}

func (p Prover) readLedger() (Ledger, error) {
	var ledger Ledger
	if _, err := readJSON(p.Ledger, &ledger); err != nil {
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

// readJSON reports whether the file exists. Only a plain file is read: a symbolic link could lead to another directory's
// file, and a pipe would never end.
func readJSON(path string, value any) (bool, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("can't look at %s: %w", path, err)
	case !info.Mode().IsRegular():
		return false, fmt.Errorf("%s is not a plain file, so it is not trusted and nothing is changed; move it away", path)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("can't read %s: %w", path, err)
	}
	if err := json.Unmarshal(content, value); err != nil {
		return false, fmt.Errorf("%s is damaged (%w); restore it, nothing is changed until then", path, err)
	}
	return true, nil
}

// look finds the facts. A directory that is not there is an empty one.
func look(d spec.Directory) (Facts, error) {
	if exists, err := isDirectory(d.Path); err != nil || !exists {
		return Facts{DataGone: true}, err
	}
	facts := Facts{DataGone: true}
	var marker spec.Marker
	found, err := readJSON(filepath.Join(d.Path, spec.MarkerFile), &marker)
	if err != nil {
		return Facts{}, err
	}
	if found {
		facts.Marker = &marker
	}
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return Facts{}, fmt.Errorf("can't list %s: %w", d.Path, err)
	}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case name == spec.MarkerFile, name == "lost+found", durable.IsTemporary(name):
		case name == d.Data:
			facts.DataGone = false
			if facts.Data, err = names(filepath.Join(d.Path, name)); err != nil {
				return Facts{}, err
			}
			if facts.DataElsewhere, err = otherDevice(d.Path, filepath.Join(d.Path, name)); err != nil {
				return Facts{}, err
			}
		default:
			facts.Strangers = append(facts.Strangers, name)
		}
	}
	if d.Initialise != nil {
		first := d.Initialise.Files[0]
		facts.Content, err = contentOf(filepath.Join(d.Path, d.Data, first.Name), len(first.Content))
	}
	return facts, err
}

// isDirectory refuses everything else that has the name, symbolic links too: what they lead to may be another's.
func isDirectory(path string) (exists bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("can't look at %s: %w", path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return false, fmt.Errorf("%s is a symbolic link, which is not followed; name the directory itself in the FileSystem", path)
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a directory; move it away, or point the FileSystem elsewhere", path)
	}
	return true, nil
}

func otherDevice(a, b string) (bool, error) {
	var first, second unix.Stat_t
	if err := errors.Join(unix.Lstat(a, &first), unix.Lstat(b, &second)); err != nil {
		return false, fmt.Errorf("can't look at %s and %s: %w", a, b, err)
	}
	return first.Dev != second.Dev, nil
}

func names(path string) ([]string, error) {
	if _, err := isDirectory(path); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("can't list %s: %w", path, err)
	}
	var found []string
	for _, entry := range entries {
		if !durable.IsTemporary(entry.Name()) {
			found = append(found, entry.Name())
		}
	}
	return found, nil
}

// contentOf reads a plain file of at most limit bytes; of anything else it returns nil. Real metadata is far larger, and
// need not be read to know that it is not the content of an empty filesystem.
func contentOf(path string, limit int) (*string, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("can't look at %s: %w", path, err)
	case !info.Mode().IsRegular(), info.Size() > int64(limit):
		return nil, nil
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("can't read %s: %w", path, err)
	}
	return new(string(content)), nil
}
