package mounts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"time"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	mountLimit   = 60 * time.Second
	betweenTries = 2 * time.Second
	// commandLimit is the limit of a command without one of its own.
	commandLimit = 60 * time.Second
	// proofLines is the number of lines in which a proof is looked for.
	proofLines = 50
	// lastLines is the number of lines of a failed command's output that its error quotes.
	lastLines = 5
)

// Configure mounts the filesystem at a private path, runs the commands in order, and unmounts it. Every command can be repeated, so an
// interrupted Configure is simply run again. Only program names are logged, never arguments. The commands' output goes to output.
func Configure(ctx context.Context, c spec.Configure, lookup environment.Lookup, output io.Writer, log *slog.Logger) (err error) {
	var q *quiet
	if c.Quiet != nil {
		// The clients at this moment don't include the client that is mounted below.
		if q, err = newQuiet(ctx, *c.Quiet); err != nil {
			return err
		}
		if err := q.look(ctx, false); err != nil {
			return fmt.Errorf("nothing is done: %w", err)
		}
	}
	if c.Mount != nil {
		unmount, err := mountForCommands(ctx, *c.Mount, lookup, output, log)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, unmount()) }()
	}
	for i, command := range c.Commands {
		if err := runCommand(ctx, i, command, c.Host, q, output, log); err != nil {
			return err
		}
	}
	return nil
}

// mountForCommands mounts the filesystem and returns the function that unmounts it.
func mountForCommands(
	ctx context.Context, m spec.Mount, lookup environment.Lookup, output io.Writer, log *slog.Logger,
) (unmount func() error, err error) {
	argv, err := commandOf(m, lookup)
	if err != nil {
		return nil, err
	}
	k := thisKernel(m)
	there, err := k.clear(m, log)
	if err != nil {
		return nil, err
	}
	if there {
		return func() error { return k.unmountAll(m, log) }, nil
	}
	if err := os.MkdirAll(m.Path, 0o755); err != nil {
		return nil, fmt.Errorf("can't make the mount point %s: %w", m.Path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, mountLimit)
	defer cancel()
	try := func() (func() error, error) {
		if err := writeFiles(m.Files, lookup); err != nil {
			return nil, err
		}
		return mountByProgram(ctx, k, m, argv, output, log)
	}
	if m.Kernel {
		r := resident{kernel: k, mount: m, lookup: lookup, output: output, limit: mountLimit}
		try = func() (func() error, error) {
			if err := r.try(ctx); err != nil {
				return nil, errors.Join(err, k.unmountAll(m, log))
			}
			return func() error { return k.unmountAll(m, log) }, nil
		}
	}
	if unmount, err = patiently(ctx, try, log); err != nil {
		return nil, err
	}
	log.Info("mounted", "path", m.Path)
	return unmount, nil
}

// patiently retries until ctx ends, because the filesystem's servers may still be starting.
func patiently(ctx context.Context, try func() (unmount func() error, err error), log *slog.Logger) (unmount func() error, err error) {
	for {
		unmount, mountErr := try()
		if mountErr == nil {
			return unmount, nil
		}
		if _, final := errors.AsType[finalError](mountErr); final {
			return nil, mountErr
		}
		select {
		case <-ctx.Done():
			return nil, mountErr
		case <-time.After(betweenTries):
			log.Info("the filesystem can't be mounted yet and is tried again", "reason", mountErr)
		}
	}
}

// mountByProgram starts a program that serves the filesystem as long as it is mounted.
func mountByProgram(
	ctx context.Context, k kernel, m spec.Mount, argv []string, output io.Writer, log *slog.Logger,
) (unmount func() error, err error) {
	tail := &process.Tail{}
	both := io.MultiWriter(output, tail)
	program, err := process.Start(argv, process.Options{Stdout: both, Stderr: both})
	if err != nil {
		return nil, finalError{err.Error()}
	}
	unmount = func() error {
		err := k.unmountAll(m, log)
		select {
		case <-program.Done():
		case <-time.After(programGrace):
		}
		program.Stop(programGrace)
		return errors.Join(err, k.unmountAll(m, log))
	}
	if err := awaitMount(ctx, m, program, tail); err != nil {
		return nil, errors.Join(err, unmount())
	}
	return unmount, nil
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
			if Check(ctx, m, answerLimit) == nil {
				return nil
			}
		}
	}
}

func runCommand(
	ctx context.Context, index int, command spec.Command, onNode bool, q *quiet, output io.Writer, log *slog.Logger,
) error {
	argv := command.Argv
	if onNode {
		argv = host.OnNode(argv)
	}
	watching, enough := context.WithCancel(ctx)
	defer enough()
	tail := &process.Tail{}
	both := io.MultiWriter(output, tail)
	child, err := process.Start(argv, process.Options{Stdout: both, Stderr: both})
	if err != nil {
		return err
	}
	name := command.Argv[0]
	limit := commandLimit
	var over <-chan time.Time
	if command.TimeoutSeconds > 0 {
		limit = time.Duration(command.TimeoutSeconds) * time.Second
	}
	if command.TimeoutSeconds >= 0 {
		over = time.After(limit)
	}
	select {
	case <-child.Done():
	case why := <-q.watch(watching):
		log.Info("a command is asked to end", "number", index+1, "program", name, "reason", why)
		endInPeace(ctx, child)
		return fmt.Errorf("command %d, %s, was ended before it was done: %w", index+1, name, why)
	case <-over:
		child.Kill()
		return fmt.Errorf("command %d, %s, was ended after %s: %s", index+1, name, limit, tail.Lines(lastLines))
	case <-ctx.Done():
		child.Stop(programGrace)
		return fmt.Errorf("stopped while command %d, %s, was running", index+1, name)
	}
	code := child.Code()
	log.Info("ran a command", "number", index+1, "program", name, "exitCode", code, "mayFail", command.MayFail)
	if command.Proof != "" {
		return proven(index, command, code, tail)
	}
	if code != 0 && !command.MayFail {
		return fmt.Errorf("command %d, %s, failed with exit code %d: %s", index+1, name, code, tail.Lines(lastLines))
	}
	return nil
}

// proven returns nil if a command with a proof says that it has done its work.
func proven(index int, command spec.Command, code int, tail *process.Tail) error {
	proof, err := regexp.Compile(command.Proof)
	switch said := tail.Lines(proofLines); {
	case err != nil:
		return fmt.Errorf("the proof of command %d, %s: %w", index+1, command.Argv[0], err)
	case !proof.MatchString(said):
		return fmt.Errorf("command %d, %s, ended with exit code %d and did not say that it was done: %s", index+1, command.Argv[0], code, tail.Lines(lastLines))
	}
	return nil
}
