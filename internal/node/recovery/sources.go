package recovery

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/backup"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// backups returns the newest verified backups of this FileSystem, newest first, according to their manifests. Their files are read only
// when one is used.
func (o Options) backups(ctx context.Context) ([]spec.RecoveryFound, error) {
	found := []spec.RecoveryFound{}
	all, bad, err := o.manifests(ctx)
	if err != nil {
		return found, err
	}
	for _, m := range all {
		switch {
		case m.Verified == "" || m.Refused != "":
			bad++
		case len(found) == mostFound:
		case o.Store != nil:
			f, err := o.foundStore(ctx, m)
			switch {
			case ctx.Err() != nil:
				return nil, fmt.Errorf("it was stopped: %w", ctx.Err())
			case err == nil:
				found = append(found, f)
			case len(found) == 0: // report anything that is newer than all usable backups
				found = append(found, spec.RecoveryFound{Backup: m.Name, ID: m.ID, Time: m.Copied, Message: v1alpha1.Cut(err.Error(), mostWhy)})
			default:
				bad++
				_, _ = fmt.Fprintf(o.Output, "the backup %s can't be used: %s\n", m.Name, err)
			}
		default:
			found = append(found, spec.RecoveryFound{Backup: m.Name, Version: m.Version, ID: m.ID, Time: m.Copied})
		}
	}
	if len(found) == 0 {
		return found, fmt.Errorf("there is no verified backup of this FileSystem in it, and %d that can't be trusted", bad)
	}
	return found, nil
}

// manifests returns the manifests of this FileSystem's backups, newest first, and the number of those that can't be parsed.
func (o Options) manifests(ctx context.Context) (all []spec.BackupManifest, bad int, err error) {
	if o.Config.Source.ObjectStore != nil {
		vault, err := o.vault()
		if err != nil {
			return nil, 0, err
		}
		stored, err := vault.List(ctx)
		for _, b := range stored {
			all = append(all, b.BackupManifest)
		}
		return all, 0, err //nolint:wrapcheck // it names the store
	}
	entries, err := os.ReadDir(o.Config.Source.Backups)
	if err != nil {
		return nil, 0, fmt.Errorf("can't look at the backups: %w", err)
	}
	for _, e := range slices.Backward(entries) { // ReadDir sorts by name
		if _, err := time.Parse(spec.BackupNameLayout, e.Name()); err != nil || !e.IsDir() {
			continue
		}
		if m, err := o.manifest(e.Name()); err != nil {
			bad++
		} else {
			m.Name = e.Name() // even if the manifest has another name
			all = append(all, m)
		}
	}
	return all, bad, nil
}

// vault opens the object store that contains the backups.
func (o Options) vault() (*backup.Vault, error) {
	source := o.Config.Source
	return backup.OpenVault(*source.ObjectStore, source.Backups, o.Config.Owner) //nolint:wrapcheck // it says what is wrong with the place
}

// manifest reads the manifest of this FileSystem's backup in a directory.
func (o Options) manifest(name string) (spec.BackupManifest, error) {
	var m spec.BackupManifest
	content, err := os.ReadFile(filepath.Join(o.Config.Source.Backups, name, spec.BackupManifestFile))
	if err != nil {
		return m, fmt.Errorf("can't read what the backup %s says of itself: %w", name, err)
	}
	m, err = stored.BackupManifest(name, content)
	switch {
	case err != nil:
		return m, err
	case m.Owner != o.Config.Owner:
		return m, fmt.Errorf("%s is a backup of FileSystem %s/%s with the uid %s", name, m.Owner.Namespace, m.Owner.Name, m.Owner.UID)
	}
	return m, nil
}

// daemonFiles returns the files in the daemon's directory from which metadata is made, by path, with the names that the program expects.
// The time is that of the last change in the files, or of the last write if they contain no times.
func (o Options) daemonFiles() (files map[string]string, last time.Time, err error) {
	source := o.Config.Source
	content, err := os.ReadFile(filepath.Join(source.Directory, spec.MarkerFile))
	if err != nil {
		return nil, last, fmt.Errorf("can't read whose %s is: %w", source.Directory, err)
	}
	if err := stored.Check(content, spec.MarkerVersion); err != nil {
		return nil, last, fmt.Errorf("%s in %s %w", spec.MarkerFile, source.Directory, err)
	}
	var marker spec.Marker
	if err := json.Unmarshal(content, &marker); err != nil {
		return nil, last, fmt.Errorf("can't understand %s in %s: %w", spec.MarkerFile, source.Directory, err)
	}
	if marker.Owner != o.Config.Owner || marker.Component != source.Component || marker.State != spec.MarkerInitialized {
		return nil, last, fmt.Errorf("%s is that of the %s of FileSystem %s/%s with the uid %s, and its state is %s", source.Directory, marker.Component,
			marker.Owner.Namespace, marker.Owner.Name, marker.Owner.UID, marker.State)
	}
	data := filepath.Join(source.Directory, source.Data)
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil, last, fmt.Errorf("can't look at the files of the %s: %w", source.Component, err)
	}
	var found []backend.CopiedFile
	times := map[string]time.Time{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		head, info, err := headOf(filepath.Join(data, e.Name()))
		if err != nil {
			return nil, last, fmt.Errorf("can't read the files of the %s: %w", source.Component, err)
		}
		found = append(found, backend.CopiedFile{Name: e.Name(), Size: info.Size(), Head: head})
		times[e.Name()] = info.ModTime()
	}
	files = map[string]string{}
	var changed time.Time
	for name, as := range o.Method.Usable(found) {
		path := filepath.Join(data, name)
		files[path] = as
		end, err := endOf(path)
		if err != nil {
			return nil, last, fmt.Errorf("can't read the files of the %s: %w", source.Component, err)
		}
		if at := o.Method.Changed(name, end); at.After(changed) {
			changed = at
		}
		if times[name].After(last) {
			last = times[name]
		}
	}
	if !changed.IsZero() {
		last = changed // a daemon writes what it has received a second later
	}
	if len(files) == 0 {
		return nil, last, fmt.Errorf("%s has nothing that metadata could be made from", data)
	}
	return files, last, nil
}

// sourceFile is a file from which metadata is made.
type sourceFile struct {
	// as is its name for the program, and sum its SHA-256, or empty if unknown.
	as, sum string
	open    func() (io.ReadCloser, error)
}

// plain opens a regular file.
func plain(path string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0) }
}

// sources returns the files from which metadata is made.
func (o Options) sources(ctx context.Context) (out []sourceFile, err error) {
	r := o.Config.Restore
	if r.Backup == "" {
		files, _, err := o.daemonFiles()
		for _, path := range backend.SortedKeys(files) {
			out = append(out, sourceFile{as: files[path], open: plain(path)})
		}
		return out, err
	}
	_, out, err = o.verified(ctx, r.Backup)
	return out, err
}

// verified returns a verified backup by its name, and its files except the operator's record.
func (o Options) verified(ctx context.Context, name string) (m spec.BackupManifest, out []sourceFile, err error) {
	if _, err := time.Parse(spec.BackupNameLayout, name); err != nil {
		return m, nil, fmt.Errorf("%q is no name of a backup", name)
	}
	m, open, err := o.backup(ctx, name)
	switch {
	case err != nil:
		return m, nil, err
	case m.Verified == "" || m.Refused != "":
		return m, nil, fmt.Errorf("the backup %s is not verified: %s", name, cmp.Or(m.Refused, "it was not read back"))
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Name) || strings.ContainsRune(f.Name, filepath.Separator) {
			return m, nil, fmt.Errorf("the manifest of the backup %s names a file %q, which is no name in its directory", name, f.Name)
		}
		if f.Name != spec.BackupRecordFile {
			out = append(out, sourceFile{as: f.Name, sum: f.SHA256, open: open(f.Name)})
		}
	}
	return m, out, nil
}

// backup returns a backup by its name, and a function that opens its files.
func (o Options) backup(ctx context.Context, name string) (spec.BackupManifest, func(file string) func() (io.ReadCloser, error), error) {
	if o.Config.Source.ObjectStore == nil {
		m, err := o.manifest(name)
		return m, func(file string) func() (io.ReadCloser, error) {
			return plain(filepath.Join(o.Config.Source.Backups, name, file))
		}, err
	}
	vault, err := o.vault()
	if err != nil {
		return spec.BackupManifest{}, nil, err
	}
	all, err := vault.List(ctx)
	if err != nil {
		return spec.BackupManifest{}, nil, err //nolint:wrapcheck // it names the store
	}
	i := slices.IndexFunc(all, func(b backup.Stored) bool { return b.Name == name })
	if i < 0 {
		return spec.BackupManifest{}, nil, fmt.Errorf("the store has no backup %s of this FileSystem any more; ask for a new plan", name)
	}
	return all[i].BackupManifest, func(file string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return vault.Open(ctx, all[i], file) }
	}, nil
}

// copied copies a file to a new one and syncs that to the disk. A file of a backup must be the same as when the backup was verified.
func (f sourceFile) copied(to string) error {
	sum, err := f.summed(to)
	if err == nil && f.sum != "" && sum != f.sum {
		return fmt.Errorf("%s of the backup has changed since it was verified; choose another candidate", f.as)
	}
	return err
}

// summed copies a file, and returns its SHA-256.
func (f sourceFile) summed(to string) (sum string, err error) {
	in, err := f.open()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(io.MultiWriter(out, hash), in); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), out.Sync()
}
