package mounts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	mountLimit   = 60 * time.Second
	betweenTries = 2 * time.Second
	commandLimit = 60 * time.Second
	// lastLines is how much of a failed command's output its error quotes.
	lastLines = 5
)

// Configure mounts the filesystem at a private path, runs the commands in order, and unmounts it. Every command can be
// run again, so a Configure that was cut off is simply repeated. Only program names are logged, never arguments. The
// commands' output goes to output.
func Configure(ctx context.Context, c spec.Configure, lookup environment.Lookup, output io.Writer, log *slog.Logger) (err error) {
	if c.Mount != nil {
		unmount, err := mountForCommands(ctx, *c.Mount, lookup, output, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unmount()) }()
	}
	for i, command := range c.Commands {
		if err := runCommand(ctx, i, command, output, log); err != nil {
			return err
		}
	}
	return nil
}

// mountForCommands mounts the filesystem and says how to unmount it.
func mountForCommands(ctx context.Context, m spec.Mount, lookup environment.Lookup, output io.Writer, log *slog.Logger) (func() error, error) {
	argv, err := commandOf(m, lookup)
	if err != nil {
		return nil, err
	}
	k := thisKernel()
	if err := k.clear(m, log); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.Path, 0o755); err != nil {
		return nil, fmt.Errorf("can't make the mount point %s: %w", m.Path, err)
	}
	unmount, err := mountPatiently(ctx, k, m, argv, output, log)
	if err != nil {
		return nil, err
	}
	log.Info("mounted", "path", m.Path)
	return unmount, nil
}

// mountPatiently tries until mountLimit has passed, because the filesystem's servers may be starting as well.
func mountPatiently(
	ctx context.Context, k kernel, m spec.Mount, argv []string, output io.Writer, log *slog.Logger,
) (unmount func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, mountLimit)
	defer cancel()
	for {
		tail := &process.Tail{}
		both := io.MultiWriter(output, tail)
		program, err := process.Start(argv, process.Options{Stdout: both, Stderr: both})
		if err != nil {
			return nil, err
		}
		unmount := func() error {
			err := k.unmountAll(m, log)
			select {
			case <-program.Done():
			case <-time.After(programGrace):
			}
			program.Stop(programGrace)
			return errors.Join(err, k.unmountAll(m, log))
		}
		mountErr := awaitMount(ctx, m, program, tail)
		if mountErr == nil {
			return unmount, nil
		}
		if err := unmount(); err != nil {
			return nil, errors.Join(mountErr, err)
		}
		select {
		case <-ctx.Done():
			return nil, mountErr
		case <-time.After(betweenTries):
			log.Info("the filesystem can't be mounted yet and is tried again", "reason", mountErr)
		}
	}
}

func awaitMount(ctx context.Context, m spec.Mount, program *process.Child, tail *process.Tail) error {
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s was not mounted within %s; look whether the filesystem's servers run: %s", m.Path, mountLimit, tail.Lines(lastLines))
		case <-program.Done():
			return fmt.Errorf("%s could not mount the filesystem (exit code %d): %s", m.Command[0], program.Code(), tail.Lines(lastLines))
		case <-ticker.C:
			if Check(ctx, m, patience) == nil {
				return nil
			}
		}
	}
}

func runCommand(ctx context.Context, index int, command spec.Command, output io.Writer, log *slog.Logger) error {
	tail := &process.Tail{}
	both := io.MultiWriter(output, tail)
	child, err := process.Start(command.Argv, process.Options{Stdout: both, Stderr: both})
	if err != nil {
		return err
	}
	name := command.Argv[0]
	select {
	case <-child.Done():
	case <-time.After(commandLimit):
		child.Kill()
		return fmt.Errorf("command %d, %s, was ended after %s: %s", index+1, name, commandLimit, tail.Lines(lastLines))
	case <-ctx.Done():
		child.Kill()
		return fmt.Errorf("stopped while command %d, %s, was running", index+1, name)
	}
	code := child.Code()
	log.Info("ran a command", "number", index+1, "program", name, "exitCode", code, "mayFail", command.MayFail)
	if code != 0 && !command.MayFail {
		return fmt.Errorf("command %d, %s, failed with exit code %d: %s", index+1, name, code, tail.Lines(lastLines))
	}
	return nil
}
