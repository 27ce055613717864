// Command node runs in the pods of a filesystem and of a benchmark. It starts daemons on proven directories, keeps filesystems mounted,
// queries them for their state, and runs benchmark tools. Its configuration is a file that the operator renders (package
// internal/node/spec).
package main

import (
	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/node/command"
)

// backends holds the same backends as the operator. The time that a kubelet takes does not matter here.
var backends = all.Backends(backend.DefaultTellTime)

func main() { command.Main(root()) }

func root() *cobra.Command {
	c := &cobra.Command{
		Use:   "node",
		Short: "What ParallelFS Operator runs in the pods of a filesystem and of a benchmark",
		Long: `node is what ParallelFS Operator runs in the pods of a filesystem and of a benchmark.

An init container copies it into the pod (install); the containers then call it as /parallelfs/node. Each verb reads what
to do from a JSON file that the operator renders into a ConfigMap or Secret. To see it:

  kubectl -n NAMESPACE exec POD -- cat /etc/parallelfs/FILE.json

When a verb can't or must not do what it is told, it changes nothing more, shows why in one sentence on stderr and in
the container's termination message (kubectl describe pod), and exits with 1.`,
	}
	c.AddCommand(installCommand(), runCommand(), mountCommand(), checkMountCommand(), callCommand(), reloadCommand(), configureCommand(),
		manageCommand(), awaitEmptyCommand(), probeCommand(), benchCommand(), exportCommand(), backupCommand(), recoverCommand(), checkCommand(),
		guardCommand(), serveCommand(), checkServedCommand(), onNodeCommand())
	return c
}
