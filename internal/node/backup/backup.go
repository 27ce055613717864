// Package backup makes one backup of a filesystem's metadata at one place. It copies while the filesystem runs, reads the copy back,
// removes outdated backups, and reports the backups at the place. The filesystem's own programs copy and read; the backend chooses them. It
// can be killed at any step: unfinished work has a name that is never taken for a backup, and the next run continues.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Options are the inputs of Run.
type Options struct {
	Config spec.Backup
	// Method describes how programs copy and read the metadata. It is nil if Store is set, which reads the store that a probe serves.
	Method backend.BackupMethod
	Store  backend.StoreBackuper
	// Work is a directory in memory for the configuration of programs, and Output gets their output.
	Work   string
	Output io.Writer
	Now    func() time.Time
	// Memory returns the free memory of the node in bytes.
	Memory func() (int64, error)
	// FetchAgain is the time between two requests for a store; 0 means the default.
	FetchAgain time.Duration
	// Before, if set, is called with the name of each step before it. Its error ends the work there, as a kill would.
	Before func(step string) error
}

// Name prefixes of directories that are not backups: a copy in progress, a removal in progress, and the directory in which a program reads
// a backup back. Leftovers of an earlier run with these names are removed.
const (
	makingPrefix   = ".making-"
	removingPrefix = ".removing-"
	checkingName   = ".checking"
	lockName       = ".lock"
)

// Run makes the backup unless a verified one exists. It returns the backups at the place, or nil if they could not be read. The error is
// the reason why no verified backup of this name exists. Run is idempotent.
func Run(ctx context.Context, o Options) (*spec.BackupAnswer, error) {
	p := place{Options: o, home: filepath.Join(o.Config.Place, o.Config.Directory)}
	if err := p.check(); err != nil {
		return nil, err
	}
	var at keeper = p
	if o.Config.ObjectStore != nil {
		in, err := OpenVault(*o.Config.ObjectStore, o.Config.Directory, o.Config.Owner)
		if err != nil {
			return nil, err
		}
		at = vaultPlace{place: p, in: in}
	}
	unlock, err := p.open()
	if err != nil {
		return nil, err
	}
	defer unlock()
	failed := at.make(ctx)
	if failed == nil {
		failed = at.prune(ctx)
	}
	if failed == nil {
		failed = readOld(ctx, at, o.Config, o.Now()) // after the removal of outdated backups, so that a damaged one is reported
	}
	found, err := at.list(ctx)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	return answer(o.Config.Name, found, failed), failed
}

// keeper stores backups.
type keeper interface {
	// make makes the requested backup unless a verified one exists, and reads it back.
	make(ctx context.Context) error
	// prune removes outdated backups.
	prune(ctx context.Context) error
	// list returns the manifests of all backups of this filesystem, newest first. An unreadable backup counts as not verified.
	list(ctx context.Context) ([]spec.BackupManifest, error)
	// sums reads all files of a backup, and refuses a backup whose files differ from its manifest.
	sums(ctx context.Context, m spec.BackupManifest) error
	// say replaces the manifest of a backup.
	say(ctx context.Context, m spec.BackupManifest) error
}

// place is the directory with the backups of one filesystem.
type place struct {
	Options
	home string
}

func (p place) check() error {
	t := p.Config
	if _, err := time.Parse(spec.BackupNameLayout, t.Name); err != nil {
		return fmt.Errorf("%q is no name of a backup; it is a time such as 20261123-030000", t.Name)
	}
	if !filepath.IsAbs(t.Place) || !filepath.IsLocal(t.Directory) || t.Directory == "." {
		return fmt.Errorf("place %q has to be absolute, and directory %q in it", t.Place, t.Directory)
	}
	if t.Keep < 1 || t.MaxAgeDays < 0 || t.CopySeconds < 1 {
		return fmt.Errorf("keep is %d, maxAgeDays %d and copySeconds %d; one backup at least is kept, and a copy takes time", t.Keep, t.MaxAgeDays, t.CopySeconds)
	}
	return nil
}

// step runs one step, before which a test can kill the run.
func (p place) step(name string, do func() error) error {
	if p.Before != nil {
		if err := p.Before(name); err != nil {
			return err
		}
	}
	return do()
}

// open makes the directory, locks it, and removes the leftovers of a killed run.
func (p place) open() (unlock func(), err error) {
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		return nil, fmt.Errorf("can't make the directory of the backups; it has to be one that %s may write to: %w", who(), err)
	}
	lock, err := os.OpenFile(filepath.Join(p.home, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("can't write to the directory of the backups; it has to be one that %s may write to: %w", who(), err)
	}
	unlock = func() {
		// A child that is being started also has the file open, so closing it here would not release the lock.
		_ = errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_UN), lock.Close())
	}
	switch err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		unlock()
		return nil, fmt.Errorf("another pod makes a backup in %s; it is waited for by trying again", p.home)
	case err != nil:
		unlock()
		return nil, fmt.Errorf("can't lock the directory of the backups against other pods: %w", err)
	}
	entries, err := os.ReadDir(p.home)
	if err != nil {
		unlock()
		return nil, fmt.Errorf("can't look at the backups: %w", err)
	}
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, makingPrefix) && !strings.HasPrefix(name, removingPrefix) &&
			!strings.HasPrefix(name, workingPrefix) && name != checkingName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(p.home, name)); err != nil {
			unlock()
			return nil, fmt.Errorf("can't remove what an earlier run has left: %w", err)
		}
	}
	return unlock, nil
}

// who names the user of this process in a sentence.
func who() string {
	if os.Getuid() == 0 {
		return "root (without any capability)"
	}
	return fmt.Sprintf("the user %d or the group %d", os.Getuid(), os.Getgid())
}

// make makes the backup of this name, or continues it.
func (p place) make(ctx context.Context) error {
	path := filepath.Join(p.home, p.Config.Name)
	m, err := readManifest(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("%s is there and has no %s: this was not made here; move it away", path, spec.BackupManifestFile)
		}
		if err := p.copy(ctx, path); err != nil {
			return err
		}
	case err != nil:
		return err
	case m.Owner != p.Config.Owner:
		return fmt.Errorf("%s is a backup of FileSystem %s/%s with the uid %s; move it away", path, m.Owner.Namespace, m.Owner.Name, m.Owner.UID)
	case m.Verified != "":
		return nil
	case m.Refused != "":
		// The backup can't be read back. Another copy may be readable.
		if err := p.remove(p.Config.Name); err != nil {
			return err
		}
		if err := p.copy(ctx, path); err != nil {
			return err
		}
	}
	return p.verify(ctx, path)
}

// remove removes a backup: it renames the directory first, then removes the files.
func (p place) remove(name string) error {
	path, removing := filepath.Join(p.home, name), filepath.Join(p.home, removingPrefix+name)
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"unname " + name, func() error { return os.Rename(path, removing) }},
		{"sync " + p.home, func() error { return syncPath(p.home) }},
		{"remove " + name, func() error { return os.RemoveAll(removing) }},
	} {
		if err := p.step(s.name, s.do); err != nil {
			return fmt.Errorf("can't remove the backup %s: %w", name, err)
		}
	}
	return nil
}

func (p place) prune(ctx context.Context) error {
	found, err := p.list(ctx)
	if err != nil {
		return err
	}
	for _, name := range outdated(found, p.Config.Keep, p.Config.MaxAgeDays, p.Now()) {
		if err := p.remove(name); err != nil {
			return err
		}
	}
	return nil
}

func (p place) list(context.Context) ([]spec.BackupManifest, error) {
	entries, err := os.ReadDir(p.home)
	if err != nil {
		return nil, fmt.Errorf("can't look at the backups: %w", err)
	}
	var out []spec.BackupManifest
	for _, e := range slices.Backward(entries) { // ReadDir sorts by name
		if _, err := time.Parse(spec.BackupNameLayout, e.Name()); err != nil || !e.IsDir() {
			continue
		}
		m, err := readManifest(filepath.Join(p.home, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // another owner's
		}
		if m = listed(e.Name(), m, err, p.Config.Owner); m.Owner == p.Config.Owner {
			out = append(out, m)
		}
	}
	return out, nil
}

// listed returns the manifest of a backup for a list, with its name. A backup that can't be understood belongs to this owner and counts as
// refused.
func listed(name string, m spec.BackupManifest, err error, owner spec.Owner) spec.BackupManifest {
	if err != nil {
		m = spec.BackupManifest{Format: m.Format, Owner: owner, Refused: err.Error()}
		if when, err := time.Parse(spec.BackupNameLayout, name); err == nil {
			m.Copied = when.Format(time.RFC3339)
		}
	}
	m.Name = name // even if the manifest has another name
	return m
}

const (
	// mostAnswered limits the number of backups in an answer, and mostSaid the length of its sentences in bytes: Kubernetes keeps 4096 bytes
	// of the answer.
	mostAnswered = 4
	mostSaid     = 400
)

// answer describes the backups at the place after an attempt to make the one with this name.
func answer(name string, found []spec.BackupManifest, failed error) *spec.BackupAnswer {
	out := &spec.BackupAnswer{Name: name, Backups: []spec.BackupSeen{}}
	if failed != nil {
		out.Message = cut(failed.Error())
	}
	// The answer always includes the newest verified backup and a damaged one.
	always := []int{slices.IndexFunc(found, verified), slices.IndexFunc(found, damaged)}
	for i, m := range found {
		always = slices.DeleteFunc(always, func(at int) bool { return at < i })
		if len(out.Backups)+len(always) >= mostAnswered && !slices.Contains(always, i) {
			continue
		}
		seen := spec.BackupSeen{
			Name: m.Name, Verified: verified(m), Time: m.Copied, Version: m.Version, ID: m.ID, SizeBytes: size(m), Message: cut(m.Refused),
		}
		if !seen.Verified && seen.Message == "" {
			seen.Message = "it was not read back yet"
		}
		out.Backups = append(out.Backups, seen)
	}
	return out
}

func verified(m spec.BackupManifest) bool { return m.Verified != "" && m.Refused == "" }

func size(m spec.BackupManifest) int64 {
	var sum int64
	for _, f := range m.Files {
		sum += f.Size
	}
	return sum
}

func cut(text string) string {
	if len(text) <= mostSaid {
		return text
	}
	return strings.ToValidUTF8(text[:mostSaid], "")
}

// outdated returns the names of the backups to remove; found is sorted, newest first. keep and maxAgeDays count verified backups only. The
// newest verified backup stays whatever its age is, and so does a backup in a format that is newer than this program. A backup that is not
// verified is removed if a newer verified one exists. Without one, the two newest stay for a person to examine.
func outdated(found []spec.BackupManifest, keep, maxAgeDays int, now time.Time) []string {
	const toLookAt = 2
	var out []string
	good, bad := 0, 0
	for _, m := range found {
		if m.Format > spec.BackupFormat {
			continue // a newer operator made it and decides on its removal
		}
		if !verified(m) {
			if bad++; good > 0 || bad > toLookAt {
				out = append(out, m.Name)
			}
			continue
		}
		good++
		copied, err := time.Parse(time.RFC3339, m.Copied)
		old := err == nil && maxAgeDays > 0 && now.Sub(copied) > time.Duration(maxAgeDays)*24*time.Hour
		if good > 1 && (good > keep || old) {
			out = append(out, m.Name)
		}
	}
	return out
}
