// Package command runs the programs that lie in images: one sentence says why a program ended, to people and to Kubernetes.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Asked marks a command (cobra.Command.Annotations) that is run beside the container's main process, whose termination message is not its
// to write.
const Asked = "asked"

// Exit is an error with an exit code of its own. When it was said already, nothing more is.
type Exit interface {
	error
	ExitCode() (code int, said bool)
}

// Main runs a program with the arguments of this process until it ends, or until SIGTERM or SIGINT ends it, and exits with its code.
func Main(root *cobra.Command) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := Run(ctx, root, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Run returns the exit code: 0, that of an Exit, or 1. Before it returns another one than 0, it writes a sentence to stderr and, unless the
// command was Asked, to the container's termination message.
func Run(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.CompletionOptions = cobra.CompletionOptions{DisableDefaultCmd: true}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	used, err := root.ExecuteContextC(ctx)
	if err == nil {
		return 0
	}
	code, said := 1, false
	if exit, ok := errors.AsType[Exit](err); ok {
		code, said = exit.ExitCode()
	}
	if said {
		return code
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", used.CommandPath(), err) // there is nobody else to tell
	if used.Annotations[Asked] == "" {
		LeaveMessage(err.Error())
	}
	return code
}

// LeaveMessage tells the kubelet why the container ended (Kubernetes: terminationMessagePath), where there is such a file.
func LeaveMessage(message string) {
	path := os.Getenv("TERMINATION_LOG")
	if path == "" {
		path = "/dev/termination-log"
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return
	}
	defer file.Close()
	_, _ = file.WriteString(message) // stderr has it too
}
