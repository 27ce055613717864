package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/spec"
)

// OnNode returns the command line that runs another one on the node with this binary's own verb. Therefore it works in every image, even an
// empty one. The process group, standard files, signals and the exit code belong to the program.
func OnNode(argv []string) []string {
	return append([]string{"/proc/self/exe", spec.OnNode}, argv...)
}

// namespace is the mount namespace of the node's first process, for a process with the node's process ids.
const namespace = "/proc/1/ns/mnt"

// Become replaces this process by a program of the node, whose first argument is a name or a path on the node. The program has the node's
// mounts and root directory, and keeps the network and the process ids of this process. It returns only on an error.
func Become(argv []string) error {
	if len(argv) == 0 {
		return errors.New("there is no program to run on the node")
	}
	// A thread can change its own mounts only if it shares its working directory with no other thread (setns(2)). The thread is never
	// unlocked: execve(2) makes it the process.
	runtime.LockOSThread()
	if err := enter(namespace); err != nil {
		return fmt.Errorf("can't enter the mounts of the node: %w; the pod needs its process ids (hostPID) and must be privileged", err)
	}
	path := argv[0]
	if !filepath.IsAbs(path) {
		if path = Program("/", argv[0]); path == "" {
			return &MissingError{argv[0]}
		}
	}
	// Paths in the container's variables mean nothing on the node.
	environment := []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root"}
	if err := unix.Exec(path, argv, environment); err != nil {
		return fmt.Errorf("can't run %s on the node: %w", path, err)
	}
	return nil
}

func enter(namespace string) error {
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	mounts, err := unix.Open(namespace, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: namespace, Err: err}
	}
	defer unix.Close(mounts)
	return os.NewSyscallError("setns", unix.Setns(mounts, unix.CLONE_NEWNS))
}
