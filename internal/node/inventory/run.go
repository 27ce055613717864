package inventory

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/process"
)

// limit bounds the time of a program on the node.
const limit = 10 * time.Second

// onNode runs programs of the node in its own root directory, in which they find their libraries. They have the agent's processes, network
// and mounts. Processes and network are those of the node.
func onNode(root string) devices.Runner {
	return func(ctx context.Context, argv ...string) (devices.Output, error) {
		ctx, stop := context.WithTimeout(ctx, limit)
		defer stop()
		var stdout, stderr process.Output
		command, err := host.Command(ctx, root, argv)
		if err != nil {
			return devices.Output{}, err
		}
		command.WaitDelay = time.Second
		command.Stdout, command.Stderr = &stdout, &stderr
		ended := make(chan error, 1)
		go func() { ended <- command.Run() }()
		select {
		case err = <-ended:
		case <-time.After(limit + 2*command.WaitDelay): // a program that is blocked in the kernel can't be killed
			return devices.Output{}, fmt.Errorf("%s waits in the kernel, and can't be ended", argv[0])
		}
		out := devices.Output{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
		var exit *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return out, fmt.Errorf("%s did not end within %s", argv[0], limit)
		case errors.Join(stdout.Err(), stderr.Err()) != nil:
			return devices.Output{}, fmt.Errorf("%s: %w", argv[0], errors.Join(stdout.Err(), stderr.Err()))
		case errors.As(err, &exit) && exit.Exited():
			out.Code = exit.ExitCode()
		case err != nil:
			return out, fmt.Errorf("can't run %s: %w", argv[0], err)
		}
		return out, nil
	}
}
