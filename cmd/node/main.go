// Command node runs in the pods of a filesystem and of a benchmark: it starts daemons on proven directories, keeps
// filesystems mounted, asks them for their state, and runs benchmark tools. What to do comes from a file that the
// operator renders (package internal/node/spec).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/backend/moosefs"
	"parallelfs.dev/operator/internal/node/bench"
)

// probers are the ways to ask a filesystem, by spec.Probe.Backend.
var probers = map[string]func(version, address string) backend.Prober{
	string(v1alpha1.BeeGFS):  beegfs.New().Prober,
	string(v1alpha1.MooseFS): moosefs.New().Prober,
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run returns the exit code: 0, that of a benchmark's tool, or, after a sentence on stderr, bench.NoRoom or 1.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	used, err := root.ExecuteContextC(ctx)
	var tool *bench.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &tool) && tool.Reason == "":
		return tool.Code
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", used.CommandPath(), err) // there is nobody else to tell
	if used.Annotations[asked] == "" {
		leaveMessage(err.Error())
	}
	if tool != nil {
		return tool.Code
	}
	return 1
}

// asked marks a command that is run beside the container's main process, whose termination message is not its to write.
const asked = "asked"

// leaveMessage tells the kubelet why the container ended (Kubernetes: terminationMessagePath), where there is such a file.
func leaveMessage(message string) {
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

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "node",
		Short: "What ParallelFS Operator runs in the pods of a filesystem and of a benchmark",
		Long: `node is what ParallelFS Operator runs in the pods of a filesystem and of a benchmark.

An init container copies it into the pod (install); the containers then call it as /parallelfs/node. Each verb reads what
to do from a JSON file that the operator renders into a ConfigMap or Secret. To see it:

  kubectl -n NAMESPACE exec POD -- cat /etc/parallelfs/FILE.json

When a verb can't or must not do what it is told, it changes nothing more, says why in one sentence on stderr and in
the container's termination message (kubectl describe pod), and exits with 1.`,
		SilenceUsage: true, SilenceErrors: true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
	}
	root.AddCommand(installCommand(), runCommand(), mountCommand(), checkMountCommand(), callCommand(), configureCommand(), manageCommand(),
		awaitEmptyCommand(), probeCommand(), benchCommand(), exportCommand(), inventoryCommand(), placementCommand(), agentCommand())
	return root
}
