package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/mounts"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

// versionLimit is the time that a tool may take to print its version.
const versionLimit = 10 * time.Second

// Check inspects the image and the mounted filesystem, changes nothing, and prints a spec.Checked as one line of JSON. Missing programs and
// users are part of the result, not an error.
func Check(ctx context.Context, b spec.Benchmark, passwd string, h Host) error {
	checked := spec.Checked{Version: version(ctx, b.VersionArgv, h)}
	for _, program := range b.Programs {
		if _, err := exec.LookPath(program); err != nil {
			checked.MissingPrograms = append(checked.MissingPrograms, program)
		}
	}
	known, err := users(passwd)
	if err != nil {
		return err
	}
	for _, user := range b.Users {
		if !known[user] {
			checked.MissingUsers = append(checked.MissingUsers, user)
		}
	}
	if err := inMount(ctx, b, h, func(mount *os.Root) error {
		free, err := askRoom(mount)
		checked.FreeBytes, checked.FreeInodes = free.bytes, free.inodes
		if err == nil && b.Mount.Volume {
			err = lookAtVolume(b, &checked)
		}
		return err
	}); err != nil {
		checked.FreeBytes, checked.FreeInodes, checked.Problem = 0, 0, err.Error()
	}
	line, err := json.Marshal(checked)
	if err != nil {
		return fmt.Errorf("can't encode what was found: %w", err)
	}
	if _, err := fmt.Fprintf(h.Stdout, "%s\n", line); err != nil {
		return fmt.Errorf("can't print what was found: %w", err)
	}
	return nil
}

// lookAtVolume finds out what a volume is, and whether this user may write to it.
func lookAtVolume(b spec.Benchmark, checked *spec.Checked) (err error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return fmt.Errorf("can't read the version of the kernel: %w", err)
	}
	checked.Kernel, checked.CPUs = unix.ByteSliceToString(name.Release[:]), runtime.NumCPU()
	if checked.Mounted, err = mounts.Describe(b.Mount.Path); err != nil {
		return err
	}
	// An earlier run may have made the directory that holds those of runs.
	directory := filepath.Dir(b.Root)
	if _, err := os.Stat(directory); errors.Is(err, fs.ErrNotExist) {
		directory = filepath.Dir(directory)
	}
	if err := unix.Access(directory, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("user %d can't write to %s of the volume (%w): allow it to its group %d, or to all", os.Getuid(), directory, err, os.Getgid())
	}
	return nil
}

// version is the first line with anything in it that the tool prints within its time, and empty when it fails.
func version(ctx context.Context, argv []string, h Host) string {
	if len(argv) == 0 {
		return ""
	}
	var said head
	child, err := process.Start(argv, process.Options{Directory: os.TempDir(), Environment: h.Environment, Stdout: &said, Stderr: &said})
	if err != nil {
		return ""
	}
	defer child.Kill()
	select {
	case <-child.Done():
	case <-time.After(versionLimit):
		return ""
	case <-ctx.Done():
		return ""
	}
	if child.Code() != 0 {
		return ""
	}
	for line := range strings.Lines(said.text.String()) {
		if line = strings.TrimSpace(line); line != "" {
			return strings.ToValidUTF8(line[:min(len(line), versionLength)], "")
		}
	}
	return ""
}

// versionLength bounds the version string of a tool, in bytes; real ones are far shorter.
const versionLength = 200

// head keeps the beginning of what is written.
type head struct{ text bytes.Buffer }

// Write never fails.
func (t *head) Write(p []byte) (int, error) {
	const most = 64 << 10
	t.text.Write(p[:min(len(p), max(0, most-t.text.Len()))])
	return len(p), nil
}

// mostUsers bounds the bytes of an image's passwd(5). Users beyond it count as missing.
const mostUsers = 1 << 20

// users reads the names of passwd(5).
func users(path string) (map[string]bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // an image without the file has no users
	}
	if err != nil {
		return nil, fmt.Errorf("can't read the users of the image: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, mostUsers))
	if err != nil {
		return nil, fmt.Errorf("can't read the users of the image: %w", err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, ":")
		known[name] = true
	}
	return known, nil
}
