// Package sandbox runs tests in an environment in which the doubles of Lustre replace the machine's own programs and leave nothing behind.
package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Run runs this program again with the same arguments, in its own mount, network and process namespaces, and returns its exit code. The
// variable marks the process in the sandbox, and its value contains its input.
func Run(variable, value string) int {
	command := exec.Command("/proc/self/exe", os.Args[1:]...) // #nosec G204 -- it is this program, told the same
	command.Env = append(os.Environ(), variable+"="+value)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:   syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if err := command.Run(); command.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return command.ProcessState.ExitCode()
}
