// Package durable writes files and directories so that a crash at any moment leaves either the old state or the new one.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const temporaryPrefix, temporarySuffix = ".parallelfs-", ".tmp"

// temporaryOf is the name beside path under which it is written.
func temporaryOf(path string) string {
	return filepath.Join(filepath.Dir(path), temporaryPrefix+filepath.Base(path)+temporarySuffix)
}

// IsTemporary is true for the name of a file or directory that a killed Writer may leave behind. It means nothing.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix)
}

// Ownership is who owns a file and what its permission bits are.
type Ownership struct {
	UID, GID int
	Mode     fs.FileMode
}

// Writer changes the disk, one step after the other.
type Writer struct {
	// Chown is os.Chown, or a stand-in where files can't be given away.
	Chown func(path string, uid, gid int) error
	// Before, where set, is called before every step with the step's name; its error ends the work there, as a kill would.
	Before func(step string) error
}

func (w Writer) step(name string, do func() error) error {
	if w.Before != nil {
		if err := w.Before(name); err != nil {
			return err
		}
	}
	return do()
}

// File replaces the file at path as a whole. The directory must exist.
func (w Writer) File(path string, content []byte, own Ownership) error {
	directory, temporary := filepath.Dir(path), temporaryOf(path)
	if err := w.step("write "+temporary, func() error { return w.writeSynced(temporary, content, own) }); err != nil {
		return fmt.Errorf("can't write %s: %w", path, err)
	}
	if err := w.step("rename to "+path, func() error { return os.Rename(temporary, path) }); err != nil {
		return fmt.Errorf("can't write %s: %w", path, err)
	}
	return w.step("sync "+directory, func() error { return syncDirectory(directory) })
}

func (w Writer) writeSynced(path string, content []byte, own Ownership) (err error) {
	// A left-over of a killed run may have another owner or mode.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.Write(content); err != nil {
		return err
	}
	if err := w.Chown(path, own.UID, own.GID); err != nil {
		return err
	}
	// After the chown, which may clear bits, and without the umask.
	if err := file.Chmod(own.Mode); err != nil {
		return err
	}
	return file.Sync()
}

// overwriteLimit is the size up to which a file is overwritten: one block of a filesystem, which the file has already.
const overwriteLimit = 4096

// Overwrite replaces the content of a plain file that is there, in its place, where File finds no room for a second one. Only a crash of
// the node in the middle of it can leave a mixture of both; the file must be one whose readers notice that. A filesystem that never writes
// in place, such as btrfs, needs room for it all the same.
func Overwrite(path string, content []byte) (err error) {
	if len(content) > overwriteLimit {
		return fmt.Errorf("can't overwrite %s in its place: %d bytes are more than %d", path, len(content), overwriteLimit)
	}
	// The name is taken from an attempt of File that found no room.
	if err := os.Remove(temporaryOf(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("can't remove %s: %w", temporaryOf(path), err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("can't overwrite %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.WriteAt(content, 0); err != nil {
		return fmt.Errorf("can't overwrite %s: %w", path, err)
	}
	if err := file.Truncate(int64(len(content))); err != nil {
		return fmt.Errorf("can't overwrite %s: %w", path, err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("can't overwrite %s: %w", path, err)
	}
	return nil
}

// Making is what Made leaves to others.
type Making struct {
	// Make writes the file at path, whose directory is there, and nobody else's.
	Make func(path string) error
	// Commit is called with the path of the whole file before it gets its name.
	Commit func(path string) error
}

// Made replaces the file at path as a whole by one that another program writes, in a temporary directory beside, because such a
// program may keep files of its own beside the one that it writes. The directory of path must exist.
func (w Writer) Made(path string, own Ownership, making Making) error {
	directory, temporary := filepath.Dir(path), temporaryOf(path)
	made := filepath.Join(temporary, filepath.Base(path))
	// What a killed run has left is of no use: nobody knows how far it is.
	if err := w.Forget(path); err != nil {
		return err
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"make " + temporary, func() error { return os.Mkdir(temporary, 0o700) }},
		{"let make " + made, func() error { return making.Make(made) }},
		{"own " + made, func() error { return w.ownAlone(made, own) }},
		{"commit " + made, func() error { return making.Commit(made) }},
		{"rename to " + path, func() error { return os.Rename(made, path) }},
		{"sync " + directory, func() error { return syncDirectory(directory) }},
	} {
		if err := w.step(s.name, s.do); err != nil {
			return fmt.Errorf("can't make %s: %w", path, err)
		}
	}
	return w.Forget(path)
}

// Forget removes what a killed Made may have left beside path.
func (w Writer) Forget(path string) error {
	temporary := temporaryOf(path)
	err := w.step("clear "+temporary, func() error {
		if err := os.RemoveAll(temporary); err != nil {
			return err
		}
		return syncDirectory(filepath.Dir(path))
	})
	if err != nil {
		return fmt.Errorf("can't remove %s: %w", temporary, err)
	}
	return nil
}

// ownAlone syncs the file with its ownership. It must be whole: a plain file, and alone, because a file beside it, such as the
// journal of a database, would hold a part of it.
func (w Writer) ownAlone(path string, own Ownership) (err error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was not written", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return fmt.Errorf("%s is empty, or not a plain file", path)
	}
	for _, entry := range entries {
		if entry.Name() != filepath.Base(path) {
			return fmt.Errorf("%s was written too, which may hold a part of it", filepath.Join(filepath.Dir(path), entry.Name()))
		}
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := w.Chown(path, own.UID, own.GID); err != nil {
		return err
	}
	// After the chown, which may clear bits, and without the umask.
	if err := file.Chmod(own.Mode); err != nil {
		return err
	}
	return file.Sync()
}

// Directory makes the directory where it is missing, with its parents, and sets its ownership. Parents that it makes belong
// to whoever runs this, with mode 0755.
func (w Writer) Directory(path string, own Ownership) error {
	if err := w.make(path); err != nil {
		return fmt.Errorf("can't make the directory %s: %w", path, err)
	}
	err := w.step("own "+path, func() error {
		if err := w.Chown(path, own.UID, own.GID); err != nil {
			return err
		}
		// After the chown, which may clear bits, and without the umask.
		if err := os.Chmod(path, own.Mode); err != nil {
			return err
		}
		return syncDirectory(path)
	})
	if err != nil {
		return fmt.Errorf("can't prepare the directory %s: %w", path, err)
	}
	return nil
}

// make makes missing directories one by one and syncs the parent of each, or a power failure could take them away together
// with what was synced inside of them.
func (w Writer) make(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return nil
	case err == nil:
		return errors.New("there is something that is not a directory")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(path)
	if err := w.make(parent); err != nil {
		return err
	}
	return w.step("make "+path, func() error {
		if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return syncDirectory(parent)
	})
}

func syncDirectory(path string) (err error) {
	directory, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, directory.Close()) }()
	return directory.Sync()
}
