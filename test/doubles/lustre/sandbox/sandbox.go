// Package sandbox runs tests where the doubles of Lustre can take the place of the machine's own programs, and leave nothing behind.
package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// Run runs this program again, with all that it was told, in namespaces of its own for mounts, networks and processes, and returns its exit
// code. The variable tells the program there that it is the one in the sandbox, and its value what it needs to know.
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
