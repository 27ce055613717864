package mounts

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/process"
)

// CallVerb is the subcommand of this binary that calls Call with its arguments.
const CallVerb = "call"

// Names of the system calls.
const (
	callUnmount = "umount2"
	callStatfs  = "statfs"
	callBind    = "bind"
)

// Call calls umount2(2) with a path and flags, statfs(2) with a path, or mount(2) with two paths for a bind mount. It writes the error
// number, or 0, to answer. It may never return, and then only the filesystem's servers can end it. Run it in a separate process that can be
// left behind.
func Call(words []string, answer io.Writer) error {
	var err error
	switch {
	case len(words) == 3 && words[0] == callUnmount:
		flags, notNumber := strconv.Atoi(words[2])
		if notNumber != nil {
			return fmt.Errorf("%q are no flags of umount2(2): give the number", words[2])
		}
		err = unix.Unmount(words[1], flags)
	case len(words) == 2 && words[0] == callStatfs:
		err = unix.Statfs(words[1], &unix.Statfs_t{})
	case len(words) == 3 && words[0] == callBind:
		err = bindMount(words[1], words[2])
	default:
		return fmt.Errorf("%q is no call: give umount2 PATH FLAGS, statfs PATH, or bind PATH VIEW", words)
	}
	var number unix.Errno
	if err != nil && !errors.As(err, &number) {
		return err
	}
	_, err = fmt.Fprintln(answer, int(number))
	return err
}

// bindMount calls mount(2) with MS_BIND for a filesystem that is mounted at path, and returns EINVAL if none is. The filesystem may have
// been unmounted since the last check, and the node's own directory must not take its place.
func bindMount(path, view string) error {
	// The open directory belongs to the currently mounted filesystem. If it is unmounted now, mount(2) refuses it.
	directory, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(directory)
	var here, above unix.Stat_t
	if err := unix.Fstat(directory, &here); err != nil {
		return err
	}
	if err := unix.Stat(filepath.Dir(path), &above); err != nil {
		return err
	}
	if here.Dev == above.Dev {
		return unix.EINVAL
	}
	return unix.Mount("/proc/self/fd/"+strconv.Itoa(directory), view, "", unix.MS_BIND, "")
}

// call is a system call in a process of its own. A call that is blocked in the kernel can't be killed. A process with such a thread does
// not end, nor does its container, so this process must not make the call itself.
type call struct {
	child        *process.Child
	answer, said process.Tail
}

func startCall(words ...string) (*call, error) {
	c := &call{}
	child, err := process.Start(append([]string{"/proc/self/exe", CallVerb}, words...), process.Options{Stdout: &c.answer, Stderr: &c.said})
	c.child = child
	return c, err
}

// result waits for the call.
func (c *call) result() error {
	if code := c.child.Code(); code != 0 {
		return fmt.Errorf("the process that calls the kernel ended with exit code %d: %s", code, c.said.Lines(lastLines))
	}
	number, err := strconv.Atoi(strings.TrimSpace(c.answer.Lines(1)))
	switch {
	case err != nil:
		return fmt.Errorf("the process that calls the kernel gave no answer: %w", err)
	case number != 0:
		return unix.Errno(number)
	}
	return nil
}

// unmountInChild is umount2(2) in a process of its own.
func unmountInChild(path string, flags int) error {
	c, err := startCall(callUnmount, path, strconv.Itoa(flags))
	if err != nil {
		return err
	}
	return c.result()
}

// askInChild is ask in a process of its own. stop ends it, because an open query keeps the filesystem from being unmounted.
func askInChild(path string) (answer <-chan error, stop func()) {
	answered := make(chan error, 1)
	c, err := startCall(callStatfs, path)
	if err != nil {
		answered <- err
		return answered, func() {}
	}
	go func() { answered <- c.result() }()
	return answered, c.child.Kill
}
