package main

import (
	"context"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/spec"
)

func benchCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "bench",
		Short: "Run one repetition of a benchmark",
		Long: `Run one repetition of a benchmark in a mounted filesystem.

Nothing is written unless the filesystem is mounted and answers, and nothing outside of the run's own directory is ever
written or removed. Lines of this program begin with "parallelfs: "; all others are the tool's.`,
	}
	parent.AddCommand(benchRunCommand(), benchLaunchCommand(), benchWorkCommand(), benchCleanCommand())
	return parent
}

func benchRunCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:   "run --spec FILE",
		Short: "Run the tool on this client, in a fresh directory that is removed afterwards",
		Long: `Run the tool on this client, in a fresh directory that is removed afterwards.

The exit code is the tool's; 124 when it was ended because its time was over; 1 with a sentence when it did not run.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return bench.Run(ctx, b, h)
	})
}

func benchLaunchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "launch --spec FILE",
		Short: "Run the tool in the launcher of an MPIJob, once all workers can be reached",
		Long: `Run the tool in the launcher of an MPIJob, once all workers can be reached by ssh. The exit codes are those of bench run.

The tool's host file is made from that of the MPI operator. In the tool's arguments, $(HOSTS_FILE) is its path and
$(LAUNCHER_IP) this pod's address (POD_IP where that is set).`,
		Args: cobra.NoArgs,
	}
	hostFile := c.Flags().String("hostfile", "/etc/mpi/hostfile", "`FILE` of the MPI operator that names the workers")
	sshPort := c.Flags().Int("ssh-port", 22, "`PORT` that the workers' sshd listens on")
	return benchVerb(c, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return bench.Launch(ctx, b, *hostFile, *sshPort, h)
	})
}

func benchWorkCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:     "work --spec FILE -- COMMAND...",
		Short:   "Prepare the directory in a worker of an MPIJob and become the command",
		Example: "  node bench work --spec /etc/parallelfs/benchmark.json -- /usr/sbin/sshd -De",
		Args:    cobra.MinimumNArgs(1),
	}, bench.Work)
}

func benchCleanCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:   "clean --spec FILE",
		Short: "Remove all that a run wrote to the filesystem",
		Long:  "Remove the run's own directory, which lies in a directory " + bench.Home + ", with all that is in it. Can be run again.",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return bench.Clean(ctx, b, h)
	})
}

func benchVerb(c *cobra.Command, do func(ctx context.Context, b spec.Benchmark, args []string, h bench.Host) error) *cobra.Command {
	path := specFlag(c, "Benchmark")
	c.RunE = func(c *cobra.Command, args []string) error {
		told, err := load[spec.Benchmark](*path)
		if err != nil {
			return err
		}
		return do(c.Context(), told, args, bench.ThisHost())
	}
	return c
}
