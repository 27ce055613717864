package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// targetPrefix has the form that benchmarks.SplitTargets reads.
	targetPrefix = "[target %s] "
	// serverGrace is the time that a tool on a server may take to end after SIGTERM, in which it reverts its settings in the kernel. It is
	// less than the grace period of its pod, and less than the operator waits beyond the time of a point.
	serverGrace = 45 * time.Second
)

// Local runs a tool on a server's node, beside the server's targets. It uses no filesystem, but an empty temporary directory of the pod,
// which is removed afterwards. With ForEachTarget it runs once for each target, all at the same time. The output is that of Rank, on
// Stdout; the output for each target is prefixed with its name. number is the number of the server, from 0.
func Local(ctx context.Context, b spec.Benchmark, number int, h Host) error {
	if number < 0 {
		return fmt.Errorf("--rank is %d; the servers are numbered from 0", number)
	}
	return numbered(number, h.Stdout, h, func(t tool, h Host) error {
		if err := limited(b); err != nil {
			return err
		}
		if b.Mount.Path != "" || b.Root != "" || b.Directory != "" {
			return errors.New("a tool on a server runs in no filesystem, and the spec names one; nothing is started (bench run uses a mount)")
		}
		node, _ := lookup(h.Environment, nodeVariable)
		targets := b.Targets[node]
		if len(targets) == 0 {
			return fmt.Errorf("the spec names no target of node %q; nothing is started", node)
		}
		if missing := slices.DeleteFunc(slices.Clone(b.Programs), h.OnNode.Has); len(missing) > 0 {
			return fmt.Errorf("the node has no %s; install it there, in the version of its modules, and nothing is started before",
				strings.Join(missing, ", no "))
		}
		if !b.ForEachTarget {
			return local(ctx, b, number, strings.Join(targets, " "), t, h)
		}
		var all sync.WaitGroup
		ended := make([]error, len(targets))
		for i, target := range targets {
			all.Go(func() {
				prefix := fmt.Sprintf(rankPrefix+targetPrefix, number, target)
				stdout, stderr := &lines{prefix: prefix, to: h.Stdout}, &lines{prefix: prefix, to: h.Stdout}
				err := errors.Join(local(ctx, b, number, target, tool{stdout: stdout, stderr: stderr}, h), stdout.Close(), stderr.Close())
				var exit *ExitError
				if err != nil && !errors.As(err, &exit) {
					h.say("process %d: target %s: %s", number, target, err)
					err = &ExitError{Code: 1}
				}
				ended[i] = err
			})
		}
		all.Wait()
		return errors.Join(ended...)
	})
}

// nodeVariable is the environment variable with the name of the pod's node.
const nodeVariable = "NODE_NAME"

// local runs the tool once, for one target or for several that are separated by blanks.
func local(ctx context.Context, b spec.Benchmark, number int, targets string, t tool, h Host) error {
	directory, err := os.MkdirTemp("", "parallelfs-")
	if err != nil {
		return fmt.Errorf("can't make a temporary directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(directory) }() // it disappears with the container anyway
	v := values{directory: h.OnNode.Path(directory), rank: strconv.Itoa(number), targets: targets}
	t.argv, t.directory, t.stdin = h.OnNode.Command(v.arguments(b.Argv), v.arguments(b.Env)), directory, v.replacer().Replace(b.Stdin)
	t.grace = serverGrace
	return runTool(ctx, b, t, h)
}
