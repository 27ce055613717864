// Command kubectl-pfs is the plugin "kubectl pfs". It shows the filesystems of ParallelFS Operator and what they wait for, and sets the
// fields and annotations that only a person may set. It also reports, watches and compares benchmarks, in a cluster and from files.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/registry"
)

// The exit codes.
const (
	exitGood = 0
	// exitFailed is an error, or a run that did not succeed.
	exitFailed = 1
	// exitUsage is a command line that can't be understood.
	exitUsage = 2
	// exitRegression is a comparison with --fail-on-regression that found one.
	exitRegression = 3
)

// app holds the dependencies of the commands. Tests replace its parts.
type app struct {
	connect  func(clusterFlags) (connection, error)
	tools    map[v1alpha1.BenchmarkTool]benchmarks.Tool
	stdin    io.Reader
	terminal bool
	// execute runs a program with the terminal of this one, and returns its exit code.
	execute func(ctx context.Context, argv []string) (int, error)
	// wait waits for a duration; false when the context has ended first.
	wait func(context.Context, time.Duration) bool
	now  func() time.Time

	cluster clusterFlags
}

// exitError ends the program with its own exit code, after all messages were printed.
type exitError struct {
	code    int
	message string
}

// Error returns the message, which may be empty.
func (e *exitError) Error() string { return e.message }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	a := &app{
		connect: connect, tools: registry.Tools(), stdin: os.Stdin, terminal: isTerminal(os.Stdout),
		execute: execute, wait: wait, now: time.Now,
	}
	code := a.run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// wait waits, and is false when the context has ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// isTerminal is true for a file that a person looks at.
func isTerminal(file *os.File) bool {
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// run returns the exit code, after a sentence on stderr if it is not 0.
func (a *app) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	stdout, stderr = &plainWriter{to: stdout}, &plainWriter{to: stderr}
	root := a.command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	used, err := root.ExecuteContextC(ctx)
	var own *exitError
	switch {
	case err == nil:
		return exitGood
	case errors.As(err, &own):
		if own.message != "" {
			_, _ = fmt.Fprintf(stderr, "%s: %s\n", used.CommandPath(), own.message) // a failed write can't be reported
		}
		return own.code
	}
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", used.CommandPath(), err) // a failed write can't be reported
	return exitFailed
}

// usage marks an error as one of the command line.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err.Error() + "; see --help"}
}

// exactly requires so many arguments, and prints their names when the number differs.
func exactly(names ...string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return usage(fmt.Errorf("there are %d arguments instead of %d: %v", len(args), len(names), names))
		}
		return nil
	}
}

func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "kubectl-pfs",
		Short: "See and operate the filesystems of ParallelFS Operator, and report and compare benchmarks",
		Long: `kubectl pfs works with ParallelFS Operator. Lay it into your PATH as kubectl-pfs, and kubectl finds it.

status, health, disks, plan, events, top, why, images, bench and baseline only read. exec runs a tool of the filesystem. target, node,
recover, backup and upgrade show the effect first. If you ask for it, they set the fields and annotations that you would set by hand. No
command deletes anything. Only dump, and the others with --file, write a file.

Exit codes:
  0  done; of watch: the run succeeded
  1  an error, which is said in one sentence; of watch: the run ended without all its results
  2  the command line can't be understood
  3  compare --fail-on-regression has found something that is worse

health has codes of its own; see its help.`,
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl pfs"},
		SilenceUsage: true, SilenceErrors: true,
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage(err) })
	flags := root.PersistentFlags()
	flags.StringVar(&a.cluster.kubeconfig, "kubeconfig", "", "path of the kubeconfig (default: $KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&a.cluster.context, "context", "", "context of the kubeconfig")
	flags.StringVarP(&a.cluster.namespace, "namespace", "n", "", "namespace (default: that of the context)")
	bench := &cobra.Command{
		Use: "bench", Short: "Benchmarks: list, watch, report, compare, parse, tables",
		Long: "Benchmarks are BenchmarkRuns, which measure one filesystem at many points, and BenchmarkSuites, which do that with several variants of it.",
		RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	bench.AddCommand(a.listCommand(), a.watchCommand(), a.reportCommand(), a.compareCommand(), a.parseCommand(), tablesCommand("tables"))
	baseline := &cobra.Command{
		Use: "baseline", Short: "Published tables that results can be compared with", RunE: groupOnly, Args: cobra.ArbitraryArgs,
	}
	baseline.AddCommand(tablesCommand("list"))
	root.AddCommand(a.statusCommand(), a.healthCommand(), a.disksCommand(), a.targetCommand(), a.nodeCommand(), a.recoverCommand(),
		a.backupCommand(), a.upgradeCommand(), a.planCommand(), a.eventsCommand(), a.dumpCommand(), a.topCommand(), a.whyCommand(),
		a.execCommand(), a.imagesCommand(), bench, baseline)
	return root
}

// groupOnly is for commands that only have subcommands.
func groupOnly(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(fmt.Errorf("there is no command %q", args[0]))
	}
	return cmd.Help()
}
