//go:build scale

// Command scale measures what the operator costs, by the size of a filesystem: writes, CPU, memory, the size of objects and the time
// until something shows. The API server, etcd and the manager are real and processes of their own; this process plays the nodes, the
// agents' disks, the kubelets and the filesystem. docs/adr/0050-scale-is-measured.md says what is real and what is not.
//
//	test/scale/run.sh      or: make scale SCALE_NODES="10 25"
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	ctx, done := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := start(ctx, os.Args[1:], os.Stdout)
	done()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// options are what a person asks for, besides the sizes.
type options struct {
	// runs is how many BenchmarkRuns are made for each size.
	runs int
	// manager is the program that is measured, and reports the directory for what comes of it.
	manager, reports string
	// profile asks for a profile of the manager.
	profile bool
}

func start(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	var o options
	sizes := flags.String("nodes", "125 250", "`NUMBERS` of storage nodes to measure, one after the other")
	flags.IntVar(&o.runs, "runs", 200, "`NUMBER` of BenchmarkRuns for each of them, of which 10 run at a time; 0 leaves them out")
	flags.StringVar(&o.manager, "manager", "bin/manager", "`PATH` of the manager")
	flags.StringVar(&o.reports, "reports", "dist/tests", "`DIRECTORY` for scale.json and the manager's logs")
	flags.BoolVar(&o.profile, "profile", false, "save profiles of what the manager computes in the idle minute and keeps in memory, beside its log")
	limit := flags.Duration("limit", 29*time.Minute, "`TIME` for all sizes; what was not measured then is left out")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), `scale measures what the operator costs for filesystems of 24 disks on each of N nodes, with 5 N clients.
Run it in the project's folder, with KUBEBUILDER_ASSETS set: test/scale/run.sh does.

`)
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// What plays the cluster says only what goes wrong.
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: it names the directory with kube-apiserver and etcd. Run `make scale`, which makes them and sets it")
	}
	var numbers []int
	for _, word := range strings.FieldsFunc(*sizes, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > 2000 {
			return fmt.Errorf("--nodes: %q is not a number of nodes from 1 to 2000", word)
		}
		numbers = append(numbers, n)
	}
	if o.runs < 0 || o.runs > 2000 {
		return fmt.Errorf("--runs: %d is not a number of runs from 0 to 2000", o.runs)
	}
	ctx, cancel := context.WithTimeout(ctx, *limit)
	defer cancel()
	return measureAll(ctx, out, numbers, o)
}

// measureAll measures all sizes, then prints and writes what came of it. Where the operator can't go on, that is a result; an error is
// one of the measurement.
func measureAll(ctx context.Context, out io.Writer, sizes []int, o options) error {
	const shared = 0o755
	if err := os.MkdirAll(o.reports, shared); err != nil {
		return fmt.Errorf("make the directory for the results: %w", err)
	}
	var results []*Result
	var failed error
	report := filepath.Join(o.reports, "scale.json")
	for _, nodes := range sizes {
		result, err := measure(ctx, out, nodes, o)
		if result != nil {
			results = append(results, result)
		}
		if err != nil {
			if ctx.Err() != nil && result == nil {
				result = newResult(nodes)
				result.Stopped = "the time of the whole run was over"
				results = append(results, result)
				break
			}
			failed = fmt.Errorf("%d nodes: %w", nodes, err)
			break
		}
		// A size takes up to half an hour, and the next one may be ended.
		if err := newDocument(results).write(report); err != nil {
			return err
		}
	}
	d := newDocument(results)
	fmt.Fprintln(out)
	return errors.Join(failed, d.print(out), d.write(report))
}
