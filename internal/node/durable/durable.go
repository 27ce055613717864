// Package durable writes files and directories so that a crash at any moment leaves either the old state or the new one.
package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const temporaryPrefix, temporarySuffix = ".parallelfs-", ".tmp"

// temporaryOf returns the temporary name beside path.
func temporaryOf(path string) string {
	return filepath.Join(filepath.Dir(path), temporaryPrefix+filepath.Base(path)+temporarySuffix)
}

// IsTemporary is true for the name of a file or directory that a killed Writer may leave behind. Such a file can be ignored.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, temporaryPrefix) && strings.HasSuffix(name, temporarySuffix)
}

// Ownership holds the owner and the permission bits of a file.
type Ownership struct {
	UID, GID int
	Mode     fs.FileMode
}

// Writer changes the disk step by step.
type Writer struct {
	// Chown is os.Chown, or a substitute where files can't change their owner.
	Chown func(path string, uid, gid int) error
	// Before, if set, is called with the name of each step before it. Its error ends the work there, as a kill would.
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
	// The leftover of a killed run may have another owner or mode.
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
	// chmod runs last: chown may clear mode bits, and the umask must not apply.
	if err := file.Chmod(own.Mode); err != nil {
		return err
	}
	return file.Sync()
}

// overwriteLimit is the size up to which a file is overwritten in place: one block of a filesystem, which the file already has.
const overwriteLimit = 4096

// Text replaces the file at path like File. The content must be text that may end in white space, such as JSON. A full filesystem has no
// room for a second file. In that case the new content is written into the block of the existing file. If the file does not exist yet, the
// error is that of File.
func (w Writer) Text(path string, content []byte, own Ownership) error {
	err := w.File(path, content, own)
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	// The temporary name of the failed attempt is removed.
	if gone := os.Remove(temporaryOf(path)); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		return errors.Join(err, gone)
	}
	if in := w.overwrite(path, content); in != nil {
		return fmt.Errorf("%w; and not in the place of what is there either: %w", err, in)
	}
	return nil
}

// overwrite replaces the content of a regular file in place. A kill at any moment leaves the old or the new content, followed by white
// space: one call writes everything into one page, padded to the longer of the two lengths. A crash of the node also leaves one of them if
// the disk writes whole blocks, because the file gets its new length on the disk before the new content. A filesystem that never writes in
// place, such as btrfs, needs free space even so.
func (w Writer) overwrite(path string, content []byte) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	old, size := int(info.Size()), max(int(info.Size()), len(content))
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a plain file", path)
	case old == 0 || size > overwriteLimit:
		return fmt.Errorf("%s has %d bytes and is to have %d, and only what has a block, and fits into it, is overwritten", path, old, len(content))
	}
	blank := func(n int) []byte { return bytes.Repeat([]byte{'\n'}, n) }
	write := func(text []byte, at int) func() error {
		return func() error {
			if _, err := file.WriteAt(text, int64(at)); err != nil {
				return err
			}
			return file.Sync()
		}
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"lengthen " + path, write(blank(size-old), old)},
		{"overwrite " + path, write(append(bytes.Clone(content), blank(size-len(content))...), 0)},
		{"shorten " + path, func() error { return errors.Join(file.Truncate(int64(len(content))), file.Sync()) }},
	} {
		if err := w.step(s.name, s.do); err != nil {
			return err
		}
	}
	return nil
}

// Making holds the steps of Made that the caller supplies.
type Making struct {
	// Make writes the file at path. Its directory exists and is used by no other program.
	Make func(path string) error
	// Commit is called with the path of the complete file before it gets its name.
	Commit func(path string) error
}

// Made replaces the file at path as a whole by one that another program writes. The program works in a temporary directory beside it,
// because it may keep files of its own beside its output. The directory of path must exist.
func (w Writer) Made(path string, own Ownership, making Making) error {
	directory, temporary := filepath.Dir(path), temporaryOf(path)
	made := filepath.Join(temporary, filepath.Base(path))
	// Leftovers of a killed run are useless, because their progress is unknown.
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

// Forget removes the leftovers of a killed Made beside path.
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

// ownAlone sets the ownership of the file and syncs it. The file must be regular and the only one: another file beside it, such as a
// database's journal, would hold a part of the data.
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
	// chmod runs last: chown may clear mode bits, and the umask must not apply.
	if err := file.Chmod(own.Mode); err != nil {
		return err
	}
	return file.Sync()
}

// Directory creates the directory and its parents if missing, and sets its ownership. New parents belong to the user of this process, with
// mode 0755.
func (w Writer) Directory(path string, own Ownership) error {
	if err := w.make(path); err != nil {
		return fmt.Errorf("can't make the directory %s: %w", path, err)
	}
	err := w.step("own "+path, func() error {
		if err := w.Chown(path, own.UID, own.GID); err != nil {
			return err
		}
		// chmod runs last: chown may clear mode bits, and the umask must not apply.
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

// make creates missing directories one by one and syncs the parent of each. Otherwise a power failure could remove them together with
// synced files inside.
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
