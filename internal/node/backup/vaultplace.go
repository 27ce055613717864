package backup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"parallelfs.dev/operator/internal/node/spec"
)

// vaultPlace makes backups in a vault. A backup is made in a directory of the pod, uploaded and removed. It is then downloaded again to be
// read back.
type vaultPlace struct {
	place
	in *Vault
}

// workingPrefix is the name prefix of the directory in which a backup is made and read back.
const workingPrefix = ".working-"

func (v vaultPlace) working() string { return filepath.Join(v.home, workingPrefix+v.Config.Name) }

func (v vaultPlace) make(ctx context.Context) error {
	all, _, err := v.in.look(ctx)
	if err != nil {
		return err
	}
	for _, b := range all { // the best comes first
		switch {
		case b.Name != v.Config.Name || b.Refused != "":
			// This one can't be read back. Another copy may be readable.
		case verified(b.BackupManifest):
			return nil
		default:
			return v.readAgain(ctx, b)
		}
	}
	b, err := v.upload(ctx)
	if err != nil {
		return err
	}
	return v.readAgain(ctx, b)
}

// upload makes a backup and uploads it.
func (v vaultPlace) upload(ctx context.Context) (b Stored, err error) {
	working := v.working()
	if err := os.RemoveAll(working); err != nil {
		return b, fmt.Errorf("can't remove what an earlier run has left: %w", err)
	}
	if err := v.copy(ctx, working); err != nil {
		return b, err
	}
	m, err := readManifest(working)
	if err != nil {
		return b, err
	}
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return b, fmt.Errorf("can't make up a name for the attempt: %w", err)
	}
	b = Stored{m, path.Join(v.in.home, v.Config.Name, hex.EncodeToString(id[:]))}
	for _, f := range m.Files {
		if err := v.step("put "+f.Name, func() error { return v.putFile(ctx, b, f) }); err != nil {
			return b, err
		}
	}
	if err := v.putManifest(ctx, b); err != nil {
		return b, err
	}
	return b, v.step("remove "+working, func() error { return os.RemoveAll(working) })
}

func (v vaultPlace) putFile(ctx context.Context, b Stored, f spec.BackupFile) (err error) {
	file, err := os.Open(filepath.Join(v.working(), f.Name))
	if err != nil {
		return fmt.Errorf("can't read what was copied: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return v.in.bucket.Put(ctx, path.Join(b.directory, f.Name), file, f.Size) //nolint:wrapcheck // it names the object and the store
}

// putManifest uploads the manifest of the working directory. The manifest completes the backup.
func (v vaultPlace) putManifest(ctx context.Context, b Stored) error {
	return v.step("put the manifest", func() error {
		content, err := os.ReadFile(filepath.Join(v.working(), spec.BackupManifestFile))
		if err != nil {
			return fmt.Errorf("can't read what the backup says of itself: %w", err)
		}
		return v.in.put(ctx, path.Join(b.directory, spec.BackupManifestFile), content)
	})
}

// readAgain downloads a backup, reads it back, and stores the result.
func (v vaultPlace) readAgain(ctx context.Context, b Stored) error {
	working := v.working()
	if err := errors.Join(os.RemoveAll(working), os.Mkdir(working, 0o700)); err != nil {
		return fmt.Errorf("can't make a directory to read the backup back in: %w", err)
	}
	for _, f := range b.Files {
		err := v.step("get "+f.Name, func() error { return v.getFile(ctx, b, f) })
		if errors.Is(err, fs.ErrNotExist) {
			continue // the comparison finds it, and it is an answer
		} else if err != nil {
			return fmt.Errorf("can't read the backup back: %w", err)
		}
	}
	if err := writeManifest(working, b.BackupManifest); err != nil {
		return fmt.Errorf("can't write what the backup says of itself: %w", err)
	}
	failed := v.verify(ctx, working)
	if m, err := readManifest(working); err == nil && (m.Verified != "" || m.Refused != "") {
		failed = errors.Join(failed, v.putManifest(ctx, b))
	}
	return errors.Join(failed, os.RemoveAll(working))
}

// getFile reads at most one byte more than the manifest's size of an object: the extra byte shows that the object is another one.
func (v vaultPlace) getFile(ctx context.Context, b Stored, f spec.BackupFile) (err error) {
	if !filepath.IsLocal(f.Name) || strings.ContainsRune(f.Name, filepath.Separator) {
		return fmt.Errorf("its manifest names a file %q, which is no name in its directory", f.Name)
	}
	reader, err := v.in.Open(ctx, b, f.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	file, err := os.OpenFile(filepath.Join(v.working(), f.Name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := io.Copy(file, io.LimitReader(reader, f.Size+1)); err != nil {
		return fmt.Errorf("can't get %s: %w", v.in.bucket.URL(path.Join(b.directory, f.Name)), err)
	}
	return nil
}

func (v vaultPlace) list(ctx context.Context) ([]spec.BackupManifest, error) {
	found, err := v.in.List(ctx)
	out := make([]spec.BackupManifest, len(found))
	for i, b := range found {
		out[i] = b.BackupManifest
	}
	return out, err
}

// prune also removes leftovers of interrupted attempts at earlier backups, and attempts that a better one replaces. Attempts at the current
// backup stay, because another pod may be working on them.
func (v vaultPlace) prune(ctx context.Context) error {
	all, objects, err := v.in.look(ctx)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	best := map[string]bool{}
	var found []spec.BackupManifest
	for _, b := range all {
		kept[b.directory] = !best[b.Name] || b.Format > spec.BackupFormat
		if !best[b.Name] {
			found = append(found, b.BackupManifest)
		}
		best[b.Name] = true
	}
	old := outdated(found, v.Config.Keep, v.Config.MaxAgeDays, v.Now())
	for _, b := range all {
		for _, name := range old {
			if b.Name == name && b.Format <= spec.BackupFormat {
				kept[b.directory] = false
			}
		}
	}
	return v.removeAll(ctx, objects, func(name, directory string) bool {
		keep, ours := kept[directory]
		_, whole := objects[path.Join(directory, spec.BackupManifestFile)]
		return name < v.Config.Name && (ours && !keep || !whole)
	})
}

// removeAll removes attempts. It removes the manifests first, so that no incomplete attempt is taken for a backup.
func (v vaultPlace) removeAll(ctx context.Context, objects map[string]int64, which func(name, directory string) bool) error {
	for _, manifests := range []bool{true, false} {
		for object := range objects {
			name, directory, _ := v.in.attempt(object)
			if (path.Base(object) == spec.BackupManifestFile) != manifests || !which(name, directory) {
				continue
			}
			if err := v.step("remove "+object, func() error { return v.in.bucket.Remove(ctx, object) }); err != nil {
				return fmt.Errorf("can't remove the backup %s: %w", name, err)
			}
		}
	}
	return nil
}
