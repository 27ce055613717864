package main

import (
	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/backend/all"
	"parallelfs.dev/operator/internal/node/command"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/serve"
	"parallelfs.dev/operator/internal/node/spec"
)

func serveCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "serve --spec FILE",
		Short: "Keep disks mounted whose mounts are the server, until this process is told to end",
		Long: `Keep disks mounted whose mounts are the server: the kernel serves them, and no program runs. All programs are the node's own.

The node file names these disks, and is read again all the time: a disk that appears in it is mounted, and one that is
removed from it is unmounted, without a restart. A disk is waited for until the node's agent has proven it. Before each mount it is
looked for by its stable id and proven again: nobody uses it, and its UUID, its label, its mark and what it says of itself are what was
given. Nothing is mounted over anything, and one disk that hangs, or is refused, keeps no other.

Before anything is mounted, modules and programs must be of one version, of the minor version that is expected; what modules are loaded
with is written where that is allowed; and a network of the kernel is added where the node has none of its name. One that is up is never
changed.

Told to end (SIGTERM or SIGINT), as when its pod is deleted or the node is shut down, it unmounts its disks, and names those that stay.
What is killed takes no mount away: the mounts are the node's, the kernel goes on serving them, and the next start finds them.`,
		Args: cobra.NoArgs,
	}
	path := specFlag(c, "Serve")
	c.RunE = func(c *cobra.Command, _ []string) error {
		keeper, err := keeperOf(*path)
		if err != nil {
			return err
		}
		return keeper.Run(c.Context())
	}
	return c
}

func keeperOf(path string) (*serve.Keeper, error) {
	config, err := load[spec.Serve](path)
	if err != nil {
		return nil, err
	}
	return serve.New(config, all.HostSoftware(), environment.OfProcess, logger())
}

func checkServedCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "check-served --spec FILE",
		Short: "Exit with 0 when each disk of the server is mounted",
		Long: `Exit with 0 when each disk of the server is mounted at its place, by the table of mounts of the node; else say which is not and
exit with 1. A readiness probe. Whether the disks serve clients, the filesystem says, and not this.`,
		Args: cobra.NoArgs, Annotations: map[string]string{command.Asked: "true"},
	}
	path := specFlag(c, "Serve")
	c.RunE = func(*cobra.Command, []string) error {
		keeper, err := keeperOf(*path)
		if err != nil {
			return err
		}
		return keeper.Mounted()
	}
	return c
}

func onNodeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   spec.OnNode + " PROGRAM [ARGUMENT...]",
		Short: "Become a program of the node, which sees the node's mounts",
		Long: `Become a program of the node, which sees the node's mounts and its root directory. Tools of a filesystem in the kernel belong to
that kernel's modules, so no image has them. It needs the node's process ids (hostPID) and a privileged container. The exit code is
the program's.`,
		Args: cobra.MinimumNArgs(1), Annotations: map[string]string{command.Asked: "true"}, DisableFlagParsing: true,
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "--help" || args[0] == "-h" {
				return c.Help()
			}
			return host.Become(args)
		},
	}
}
