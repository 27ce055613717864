package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/spec"
)

func benchCommand() *cobra.Command {
	parent := &cobra.Command{
		Use:   "bench",
		Short: "Run one repetition of a benchmark",
		Long: `Run one repetition of a benchmark in a mounted filesystem.

Nothing is written unless the filesystem is mounted and answers, and nothing outside of the run's own directory is ever
written or removed. Lines of this program begin with "parallelfs: "; all others are the tool's. run and launch print a line of JSON for
each machine when the tool has ended well: its clock before and after, and how often its CPU quota held it back. run, launch and local
print on standard output alone; when they have ended well, their last line says how many bytes they printed before it and what their
checksum is.`,
	}
	parent.AddCommand(benchRunCommand(), benchLaunchCommand(), benchWorkCommand(), benchRankCommand(), benchLocalCommand())
	parent.AddCommand(benchCheckCommand(), benchCleanCommand(), benchClockCommand())
	return parent
}

func benchRunCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:   "run --spec FILE",
		Short: "Run the tool on this client, in a fresh directory that is removed afterwards",
		Long: fmt.Sprintf(`Run the tool on this client, in a fresh directory that is removed afterwards. Of a repetition of several steps,
the first makes the directory, the others find it, and the last removes it; a step that fails removes it too.

The exit code is the tool's; %d when it was ended because its time was over; %d, with a sentence, when the filesystem has less room
than the repetition needs, and 1, with a sentence, when the tool did not run for another reason.`, bench.TimedOut, bench.NoRoom),
		Args: cobra.NoArgs,
	}, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return counted(h, func(h bench.Host) error { return bench.Run(ctx, b, h) })
	})
}

func benchLaunchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "launch --spec FILE",
		Short: "Run the tool in the launcher of an MPIJob, once all workers can be reached",
		Long: `Run the tool in the launcher of an MPIJob, once all workers can be reached by ssh. The exit codes are those of bench run.

A tool that reaches the workers itself is started as it is; the files that name them are made from the host file of the MPI operator.
Others are started by mpirun of Open MPI 4 or 5, on each worker as many processes as the spec places there, numbered worker by worker
and bound to no CPU. To see the command line: kubectl exec into the launcher's pod, and look at /proc/*/cmdline.

In the tool's arguments and files, $(DIRECTORY) is the repetition's directory, $(HOSTS_FILE) the path of the first file, and
$(LAUNCHER_IP) this pod's address (POD_IP where that is set).`,
		Args: cobra.NoArgs,
	}
	var l bench.Launcher
	c.Flags().StringVar(&l.HostFile, "hostfile", "/etc/mpi/hostfile", "`FILE` of the MPI operator that names the workers")
	c.Flags().IntVar(&l.SSHPort, "ssh-port", 22, "`PORT` that the workers' sshd listens on")
	return benchVerb(c, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		l.Spec = c.Flag("spec").Value.String()
		return counted(h, func(h bench.Host) error { return bench.Launch(ctx, b, l, h) })
	})
}

func benchWorkCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:   "work --spec FILE -- COMMAND...",
		Short: "Prepare the directory in a worker of an MPIJob and become the command",
		Long: fmt.Sprintf(`Make the directory in a worker of an MPIJob, or find the one that an earlier step has made, and become the command.

The exit code is %d, with a sentence, when the filesystem has less room than the repetition needs; nothing is made then.`, bench.NoRoom),
		Example: "  node bench work --spec /etc/parallelfs/benchmark.json -- /usr/sbin/sshd -De",
		Args:    cobra.MinimumNArgs(1),
	}, bench.Work)
}

func benchRankCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:   "rank --spec FILE",
		Short: "Run the tool as one of several processes, which mpirun starts",
		Long: `Run the tool as one of several processes, which mpirun starts: OMPI_COMM_WORLD_RANK, PMIX_RANK or PMI_RANK is its number N. It runs
in a directory of its own, rank-N, and all processes begin together: each makes a file in a common directory, and waits, 2 min at
most, until there are as many as processes.

Everything is printed on standard error, whole lines at a time: each line of the tool, which may have 4000 bytes, begins with
"[rank N] ", and "[rank N ended with exit code C]" is the last one. The exit code is C, as of bench run.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return bench.Rank(ctx, b, h)
	})
}

func benchLocalCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "local --spec FILE --rank N",
		Short: "Run a tool of the node on a server, in no filesystem",
		Long: `Run a tool of the node itself on a server, in no filesystem, once, or once for each target of the server, all at once. A spec
that names a filesystem is refused, and so is a node (NODE_NAME) whose targets the spec does not name, or that lacks a program.

In the tool's arguments and environment, $(TARGETS) are the names of the targets, and $(DIRECTORY) is a temporary directory. The lines
of the tool begin with "[rank N] ", or with "[rank N] [target NAME] ", and the last one is "[rank N ended with exit code C]", on
standard output.`,
		Args: cobra.NoArgs,
	}
	number := c.Flags().Int("rank", 0, "number `N` of the server, from 0")
	return benchVerb(c, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return counted(h, func(h bench.Host) error { return bench.Local(ctx, b, *number, h) })
	})
}

func benchClockCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "clock",
		Short: "Answer each line with the clock of this machine",
		Long: `Print one line of JSON for each line of standard input, until it ends: the clock, and how often the CPU quota has held this
container back. A launcher asks its workers by ssh, before and after the tool runs.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return bench.Clock(c.InOrStdin(), c.OutOrStdout()) },
	}
}

func benchCheckCommand() *cobra.Command {
	return benchVerb(&cobra.Command{
		Use:   "check --spec FILE",
		Short: "Look whether the image and the filesystem can take a benchmark",
		Long: `Print one line of JSON: the version of the tool, the programs and users that the image lacks, the free space and inodes of the
mounted filesystem, and why that can't be asked. Nothing is changed. What is missing is no error: the exit code is 0.`,
		Args: cobra.NoArgs,
	}, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		return bench.Check(ctx, b, "/etc/passwd", h)
	})
}

func benchCleanCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "clean --spec FILE",
		Short: "Remove all that a run wrote to the filesystem",
		Long:  "Remove the run's own directory, which lies in a directory " + bench.Home + ", with all that is in it. Can be run again.",
		Args:  cobra.NoArgs,
	}
	repetition := c.Flags().Bool("repetition", false, "remove the directory of the repetition alone, which a killed or failed one has left")
	return benchVerb(c, func(ctx context.Context, b spec.Benchmark, _ []string, h bench.Host) error {
		if *repetition {
			return bench.CleanRepetition(ctx, b, h)
		}
		return bench.Clean(ctx, b, h)
	})
}

// counted runs a tool whose output the operator reads. The output of the tool and of this program go to the same file, so that their order
// is kept. A last line proves that the output is complete.
func counted(h bench.Host, do func(h bench.Host) error) error {
	out := printed.New(h.Stdout)
	h.Stdout, h.Stderr = out, out
	if err := do(h); err != nil {
		return err
	}
	return out.Close()
}

func benchVerb(c *cobra.Command, do func(ctx context.Context, b spec.Benchmark, args []string, h bench.Host) error) *cobra.Command {
	path := specFlag(c, "Benchmark")
	c.RunE = func(c *cobra.Command, args []string) error {
		config, err := load[spec.Benchmark](*path)
		if err != nil {
			return err
		}
		config.Mount.Modules = backends.Modules()
		return do(c.Context(), config, args, bench.ThisHost())
	}
	return c
}
