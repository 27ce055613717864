// Package command runs the programs of the images. It reports in one sentence why a program ended, to people and to Kubernetes.
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

// Asked marks a command (cobra.Command.Annotations) that runs beside the container's main process and must not write the container's
// termination message.
const Asked = "asked"

// Exit is an error with its own exit code. If said is true, the error was already printed.
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

// Run returns the exit code: 0, that of an Exit, or 1. Before it returns another code, it writes a sentence to stderr and, unless the
// command is Asked, to the container's termination message.
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
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", used.CommandPath(), err) // there is no other output to report to
	if used.Annotations[Asked] == "" {
		LeaveMessage(err.Error())
	}
	return code
}

// LeaveMessage passes the reason of the container's end to the kubelet (Kubernetes: terminationMessagePath), if that file exists.
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
	_, _ = file.WriteString(message) // stderr contains it too
}
