// Package check runs a filesystem's own tools that search for damage.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// most limits the output of a tool that is kept: one line for each kind of damage is far less.
	most = 16 << 20
	// grace is the time that a tool may take to end when the pod is stopped.
	grace = 20 * time.Second
	// lastLines is the number of lines of a tool's output that its error quotes.
	lastLines = 5
)

// Run runs the tools, copies their output to output, and returns the result of read. With an error, the answer contains the reason why the
// check has no result.
func Run(
	ctx context.Context, config spec.Check, read func(version string, outputs [][]byte) (spec.CheckAnswer, error), output io.Writer,
) (spec.CheckAnswer, error) {
	if len(config.Commands) == 0 {
		return failed(errors.New("the spec of this Job names no tool to run"))
	}
	var outputs [][]byte
	for _, argv := range config.Commands {
		printed, err := once(ctx, argv, config.Host, output)
		if err != nil {
			return failed(err)
		}
		outputs = append(outputs, printed)
	}
	answer, err := read(config.Version, outputs)
	if err != nil {
		return failed(err)
	}
	if !answer.Done {
		return answer, errors.New(answer.Message)
	}
	return answer, nil
}

func failed(err error) (spec.CheckAnswer, error) { return spec.CheckAnswer{Message: err.Error()}, err }

// once runs a tool to its end.
func once(ctx context.Context, argv []string, onNode bool, output io.Writer) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("the spec of this Job has a tool without a name")
	}
	start := argv
	if onNode {
		start = host.OnNode(argv)
	}
	printed, tail := &keeper{}, &process.Tail{}
	child, err := process.Start(start, process.Options{Stdout: io.MultiWriter(output, tail, printed), Stderr: io.MultiWriter(output, tail)})
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the program
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		child.Stop(grace)
		return nil, fmt.Errorf("stopped while %s was looking", argv[0])
	}
	if code := child.Code(); code != 0 {
		return nil, fmt.Errorf("%s ended with exit code %d: %s", argv[0], code, tail.Lines(lastLines))
	}
	if printed.cut {
		return nil, fmt.Errorf("%s printed more than %d MiB, which is more than is read: look at the log of the pod", argv[0], most>>20)
	}
	return printed.text, nil
}

// keeper stores up to most bytes of its input.
type keeper struct {
	text []byte
	cut  bool
}

// Write accepts everything.
func (k *keeper) Write(p []byte) (int, error) {
	fits := min(len(p), most-len(k.text))
	k.text, k.cut = append(k.text, p[:fits]...), k.cut || fits < len(p)
	return len(p), nil
}
