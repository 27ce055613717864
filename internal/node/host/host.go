// Package host runs programs of the node itself in the node's own root directory: tools that belong to the node's kernel come with it and
// not with an image, and find their own libraries there.
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

// Root is the root directory of the node, for a process that has its process ids.
const Root = "/proc/1/root"

// Program is the path of a program on the node, below its root directory, empty when it has none. A link is not followed: it is meant from
// that directory.
func Program(root, name string) string {
	for _, directory := range []string{"/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"} {
		if _, err := os.Lstat(filepath.Join(root, directory, name)); err == nil {
			return filepath.Join(directory, name)
		}
	}
	return ""
}

// MissingError means that the node has no such program.
type MissingError struct{ Name string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("the node has no %s; its NodeInventory (status.software) says what to install", e.Name)
}

// Command is a program of the node with its arguments, to be run without a shell. Its first argument is a name, or a path below the root
// directory. It sees the processes and the network of this process, and its mounts.
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

// BootID tells this start of the node from others (spec.BootIDFile).
func BootID() (string, error) {
	content, err := os.ReadFile(spec.BootIDFile)
	return strings.TrimSpace(string(content)), err
}
