package disktest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// InSandbox runs this program again, with all that it was told, in namespaces of its own for mounts, networks and processes, and returns its
// exit code. The variable tells the program there that it is the one in the sandbox, and its value what it needs to know.
func InSandbox(variable, value string) int {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Env = append(os.Environ(), variable+"="+value)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID, Unshareflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL,
	}
	if err := command.Run(); command.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return command.ProcessState.ExitCode()
}
