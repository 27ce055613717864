// Package host runs programs of the node in the node's own root directory. Tools for the node's kernel come with the node and not with an
// image, and find their libraries there.
package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"parallelfs.dev/operator/internal/node/spec"
)

// Root is the node's root directory, for a process with the node's process ids.
const Root = "/proc/1/root"

// Program returns the path of a program on the node, relative to its root directory. It is empty if the node does not have the program. A
// link is not followed, because its target is relative to that root directory.
func Program(root, name string) string {
	for _, directory := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"} {
		if _, err := os.Lstat(filepath.Join(root, directory, name)); err == nil {
			return filepath.Join(directory, name)
		}
	}
	return ""
}

// MissingError means that the node does not have the program.
type MissingError struct{ Name string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the node has no %s; its NodeInventory (status.software) says what to install", e.Name)
}

// Command returns a program of the node with its arguments, to be run without a shell. The first argument is a name or a path below the
// root directory. The program has the processes, the network and the mounts of this process.
func Command(ctx context.Context, root string, argv []string) (*exec.Cmd, error) {
	path := argv[0]
	if !filepath.IsAbs(path) {
		if path = Program(root, argv[0]); path == "" {
			return nil, &MissingError{argv[0]}
		}
	}
	command := exec.CommandContext(ctx, path, argv[1:]...) //nolint:gosec // no shell, and formats and backends name the programs
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
	command.Dir = "/"
	command.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	return command, nil
}

// BootID identifies the current boot of the node (spec.BootIDFile).
func BootID() (string, error) {
	content, err := os.ReadFile(spec.BootIDFile)
	return strings.TrimSpace(string(content)), err
}
