package directory

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/stored"
)

// readJSON reports whether the file exists. A format version above newest is refused. Only a regular file is read: a symbolic link could
// lead to another directory's file, and a pipe would never end.
func readJSON(path string, newest int, value any) (bool, error) {
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
	if err := stored.Check(content, newest); err != nil {
		return false, fmt.Errorf("%s %w", path, err)
	}
	if err := json.Unmarshal(content, value); err != nil {
		return false, fmt.Errorf("%s is damaged (%w); restore it, nothing is changed until then", path, err)
	}
	return true, nil
}

// look collects the facts. A missing directory counts as empty.
func look(d spec.Directory) (Facts, error) {
	if exists, err := isDirectory(d.Path); err != nil || !exists {
		return Facts{DataGone: true}, err
	}
	facts := Facts{DataGone: true}
	var marker spec.Marker
	found, err := readJSON(filepath.Join(d.Path, spec.MarkerFile), spec.MarkerVersion, &marker)
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
	if d.Initialize != nil && !facts.DataGone && !facts.DataElsewhere {
		err = lookInside(filepath.Join(d.Path, d.Data), *d.Initialize, &facts)
	}
	return facts, err
}

// lookInside collects the facts about the files that the initialization writes.
func lookInside(data string, i spec.Initialize, facts *Facts) error {
	facts.Contents = map[string]string{}
	for _, file := range i.Files {
		content, there, err := contentOf(filepath.Join(data, file.Name), max(longest, len(file.Content)))
		if err != nil {
			return err
		}
		if there {
			facts.Contents[file.Name] = content
		}
	}
	for _, name := range i.Directories {
		empty, err := isEmptyDirectory(data, name)
		if err != nil {
			return err
		}
		if empty {
			facts.EmptyDirectories = append(facts.EmptyDirectories, name)
		}
	}
	// A daemon's database can be large, and matters only before a daemon has run.
	if m := facts.Marker; i.Makes != "" && m != nil && m.State == spec.MarkerPreparing && m.Made != "" {
		var err error
		facts.Made, err = digest(filepath.Join(data, i.Makes))
		return err
	}
	return nil
}

// longest is the number of bytes that are read of an initial file: enough for an identity, and less than real data.
const longest = 4096

// isDirectory refuses everything else with this name, including symbolic links, because they may lead to another owner's data.
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

// isEmptyDirectory is true for an empty directory on the same disk as the data.
func isEmptyDirectory(data, name string) (bool, error) {
	path := filepath.Join(data, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("can't look at %s: %w", path, err)
	case !info.IsDir():
		return false, nil
	}
	if elsewhere, err := otherDevice(data, path); err != nil || elsewhere {
		return false, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return false, fmt.Errorf("can't list %s: %w", path, err)
	}
	return len(entries) == 0, nil
}

// contentOf reads a regular file of at most limit bytes; anything else counts as missing. Real data is far larger and can't be the content
// of an empty filesystem, so it need not be read.
func contentOf(path string, limit int) (content string, there bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("can't look at %s: %w", path, err)
	case !info.Mode().IsRegular(), info.Size() > int64(limit):
		return "", false, nil
	}
	read, err := os.ReadFile(path)
	if err != nil {
		return "", false, fmt.Errorf("can't read %s: %w", path, err)
	}
	return string(read), true, nil
}

// digest returns the SHA-256 of a regular file in hexadecimal. It is empty for anything else.
func digest(path string) (sum string, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("can't look at %s: %w", path, err)
	case !info.Mode().IsRegular():
		return "", nil
	}
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("can't read %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("can't read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
