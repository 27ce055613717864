package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"parallelfs.dev/operator/internal/node/spec"
)

// Local runs a tool on a server, beside the daemons: in no filesystem, in an empty temporary directory that is removed afterwards. The
// output is that of Rank, on Stdout. number is that of the server, from 0.
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
		// Tools of a filesystem in the kernel find there what they ask it for.
		if err := h.ShowDebug(); err != nil {
			h.say("%s can't be mounted, and is empty: %s", debug, err)
		}
		directory, err := os.MkdirTemp("", "parallelfs-")
		if err != nil {
			return fmt.Errorf("can't make a temporary directory: %w", err)
		}
		defer func() { _ = os.RemoveAll(directory) }() // it goes with the container anyway
		v := values{directory: directory, rank: strconv.Itoa(number), hostsFile: hostsFile(b, h)}
		if err := writeFiles(nil, b, []int{1}, []string{"localhost"}, v, h); err != nil {
			return err
		}
		t.argv, t.directory, t.stdin, t.env = v.arguments(b.Argv), directory, v.replacer().Replace(b.Stdin), b.Env
		return runTool(ctx, b, t, h)
	})
}
