package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/process"
)

// endGrace is the time that a program may take to end after SIGTERM.
const endGrace = 5 * time.Second

// Run runs a program on the node. A program that is blocked in the kernel can't be killed, and is left behind when ctx ends.
func Run(ctx context.Context, argv []string) (format.Answer, error) {
	return RunKeeping(ctx, argv)
}

// RunKeeping is Run for a program that inherits open files. A lock on them lasts as long as the program, even if the program is left behind
// or this process is killed.
func RunKeeping(ctx context.Context, argv []string, keep ...*os.File) (format.Answer, error) {
	return answerOf(ctx, OnNode(argv), filepath.Base(argv[0]), keep...)
}

func answerOf(ctx context.Context, argv []string, name string, keep ...*os.File) (format.Answer, error) {
	var stdout, stderr process.Output
	child, err := process.Start(argv, process.Options{Stdout: &stdout, Stderr: &stderr, Files: keep})
	if err != nil {
		return format.Answer{}, err //nolint:wrapcheck // it names the program
	}
	select {
	case <-child.Done():
	case <-ctx.Done():
		child.Stop(endGrace)
		if err := child.Err(); errors.Is(err, process.ErrLeftBehind) {
			return format.Answer{}, fmt.Errorf("%s: %w", name, err)
		}
		return format.Answer{}, fmt.Errorf("%s was ended before it was done: %w", name, ctx.Err())
	}
	if err := stdout.Err(); err != nil {
		return format.Answer{}, fmt.Errorf("%s: %w", name, err)
	}
	return format.Answer{
		Code: child.Code(), Stdout: stdout.String(), Said: v1alpha1.Cut(strings.Join(strings.Fields(stderr.String()), " "), 1024),
	}, nil
}
