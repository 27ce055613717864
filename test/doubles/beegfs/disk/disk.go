// Package disk manages the files in a server's directories: the owner of a directory, and the lock that restricts it to one server.
package disk

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/test/doubles/beegfs/option"
	"parallelfs.dev/operator/test/doubles/beegfs/wire"
)

// File names in the directories of servers (common/storage/StorageTk.h, 7.4.6).
const (
	FormatFile  = "format.conf"
	NodeIDFile  = "nodeID"
	NodeNumFile = "nodeNumID"
	TargetFile  = "targetNumID"
	PoolFile    = "storagePoolID"
	lockFile    = "lock.pid"
	originFile  = "originalNodeID"
	tokenFile   = "registrationToken"
)

// Prepared reports whether a directory was prepared, which means that it has a format file.
func Prepared(directory string) bool {
	_, err := os.Stat(filepath.Join(directory, FormatFile))
	return err == nil
}

// Lock takes the lock of a directory until the process ends. The error is nil, or that another process has the lock.
func Lock(directory string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(directory, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("lock %s: %w", directory, err)
	}
	return file, nil
}

// TellLocked prints the servers' message that another process has the lock of a directory.
func TellLocked(errors io.Writer, directory string) {
	fmt.Fprintf(errors, "Unable to lock PID file: %s (already locked).\nCheck if service is already running.\n"+
		"Unable to lock working directory. Check if the directory is already in use: %s\n", filepath.Join(directory, lockFile), directory)
}

// Format checks the version in the format file of a directory.
func Format(directory string, lowest, highest int) (map[string]string, error) {
	path := filepath.Join(directory, FormatFile)
	values, err := option.File(path)
	if err != nil {
		return nil, err
	}
	if len(values) == 0 {
		return nil, &option.Error{Text: "Storage format file is empty: " + path}
	}
	text, given := values["version"]
	if !given {
		return nil, &option.Error{Text: "Storage format file does not contain version info: " + path}
	}
	version, _ := strconv.Atoi(text)
	if version < lowest || version > highest {
		return nil, &option.Error{Text: fmt.Sprintf("Incompatible storage format: %d (required min: %d required max : %d)", version, lowest,
			highest)}
	}
	return values, nil
}

// Number reads a file that contains one number; 0 if the file does not exist.
func Number(directory, name string) (int, error) {
	content, err := os.ReadFile(filepath.Join(directory, name))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(content)))
}

// Alias returns the text id of a directory's server: from the file nodeID, or otherwise the machine's name. A directory that belonged to
// another name is refused.
func Alias(directory string) (string, error) {
	alias := ""
	if content, err := os.ReadFile(filepath.Join(directory, NodeIDFile)); err == nil {
		alias, _, _ = strings.Cut(strings.TrimSpace(string(content)), "\n")
	}
	if alias == "" {
		name, err := os.Hostname()
		if err != nil {
			return "", err
		}
		alias = name
	}
	return alias, nil
}

// Origin refuses a directory whose server had another text id, and records the id if there is none.
func Origin(directory, alias string) error {
	path := filepath.Join(directory, originFile)
	content, err := os.ReadFile(path)
	if err != nil {
		return os.WriteFile(path, []byte(alias+"\n"), 0o600)
	}
	before, _, _ := strings.Cut(string(content), "\n")
	if before = strings.TrimSpace(before); before != alias {
		return &option.Error{Text: fmt.Sprintf("NodeID has changed from '%s' to '%s'. Shutting down... (File: %s)", before, alias, path)}
	}
	return nil
}

// Token returns the proof, since 8.3, that a directory is the one that registered: created once, then kept.
func Token(directory string) (string, error) {
	path := filepath.Join(directory, tokenFile)
	if content, err := os.ReadFile(path); err == nil {
		return strings.TrimSpace(string(content)), nil
	}
	token := rand.Text()
	return token, os.WriteFile(path, []byte(token+"\n"), 0o600)
}

// Space returns the capacity of the filesystem of a directory.
func Space(directory string) (wire.Space, error) {
	var about unix.Statfs_t
	if err := unix.Statfs(directory, &about); err != nil {
		return wire.Space{}, err
	}
	block := uint64(about.Bsize)
	return wire.Space{Total: about.Blocks * block, Free: about.Bavail * block, Inodes: about.Files, FreeInodes: about.Ffree}, nil
}

// Load reads a JSON file; if the file does not exist, the value is unchanged.
func Load(path string, value any) error {
	content, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(content, value)
}

// Save writes a JSON file atomically.
func Save(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, append(content, '\n'))
}

// Replace writes a file beside the old one and renames it.
func Replace(path string, content []byte) error {
	if err := os.WriteFile(path+".tmp", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
