//go:build scale

// Command scale measures the cost of the operator by the size of a filesystem: writes, CPU, memory, the size of objects and the time until
// a change is visible. The API server, etcd and the manager are real and processes of their own; this process plays the nodes, the agents'
// disks, the kubelets and the filesystem. docs/adr/0050-scale-is-measured.md lists the real and the simulated parts.
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

// options has the flags besides the sizes.
type options struct {
	// runs is the number of BenchmarkRuns for each size; negative for the default of its pace.
	runs int
	// manager is the measured program, and reports the directory for the results.
	manager, reports string
	// profile asks for a profile of the manager.
	profile bool
}

func start(ctx context.Context, arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet("scale", flag.ContinueOnError)
	var o options
	sizes := flags.String("nodes", "125 250", "`NUMBERS` of storage nodes to measure, one after the other")
	flags.IntVar(&o.runs, "runs", -1, fmt.Sprintf("`NUMBER` of BenchmarkRuns for each of them, of which 10 run at a time; 0 leaves them out, "+
		"and a negative one is %d up to %d nodes, %d for more", paceOf(quickNodes).runs, quickNodes, paceOf(usualNodes).runs))
	flags.StringVar(&o.manager, "manager", "bin/manager", "`PATH` of the manager")
	flags.StringVar(&o.reports, "reports", "dist/tests", "`DIRECTORY` for scale.json and the manager's logs")
	flags.BoolVar(&o.profile, "profile", false, "save profiles of what the manager computes and keeps in memory while it is idle and while programs write, beside its log")
	limit := flags.Duration("limit", 0, fmt.Sprintf("`TIME` for all sizes; what was not measured then counts as missed. "+
		"0 is by the sizes: %s for up to %d nodes, %s for up to %d", paceOf(quickNodes).limit, quickNodes, paceOf(usualNodes).limit, usualNodes))
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), `scale measures what the operator costs for filesystems of 24 disks on each of N nodes, with 5 N clients.
Run it in the project's folder, with KUBEBUILDER_ASSETS set: test/scale/run.sh does.

`)
		flags.PrintDefaults()
	}
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// The simulation of the cluster logs only errors.
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: it names the directory with kube-apiserver and etcd. Run `make scale`, which makes them and sets it")
	}
	var numbers []int
	for _, word := range strings.FieldsFunc(*sizes, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < copies || n > 2000 {
			return fmt.Errorf("--nodes: %q is not a number of nodes from %d, on which copies lie, to 2000", word, copies)
		}
		numbers = append(numbers, n)
	}
	if o.runs > 2000 {
		return fmt.Errorf("--runs: %d is not a number of runs from 0 to 2000", o.runs)
	}
	if *limit == 0 {
		*limit = limitOf(numbers)
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, *limit-ending)
	defer cancel()
	err := measureAll(ctx, out, numbers, o)
	fmt.Fprintf(out, "It took %s, and may take %s.\n", time.Since(begun).Round(time.Second), *limit)
	return err
}

// measureAll measures all sizes, then prints and writes the results. If the operator can't continue, that is a result, and a missed goal;
// other errors are those of the measurement. All of them are returned.
func measureAll(ctx context.Context, out io.Writer, sizes []int, o options) error {
	const shared = 0o755
	if err := os.MkdirAll(o.reports, shared); err != nil {
		return fmt.Errorf("make the directory for the results: %w", err)
	}
	var results []*Result
	var failed error
	report := filepath.Join(o.reports, "scale.json")
	for _, nodes := range sizes {
		if ctx.Err() != nil {
			results = append(results, cutOff(nodes))
			continue
		}
		result, err := measure(ctx, out, nodes, o)
		switch {
		case result == nil && ctx.Err() != nil:
			result = cutOff(nodes)
		case err != nil:
			failed = fmt.Errorf("%d nodes: %w", nodes, err)
		}
		if result != nil {
			results = append(results, result)
		}
		if failed != nil {
			break
		}
		// A size takes up to an hour, and the next one may be interrupted.
		if err := newDocument(results).write(report); err != nil {
			return err
		}
	}
	d := newDocument(results)
	fmt.Fprintln(out)
	return errors.Join(failed, d.print(out), d.write(report), d.judge())
}

// cutOff is the result of a size that did not fit into the time.
func cutOff(nodes int) *Result {
	r := newResult(nodes)
	r.Stopped = "the time of the whole run was over"
	return r
}
