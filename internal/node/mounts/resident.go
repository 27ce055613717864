package mounts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// freePortVariable is the variable for the free port in Mount.Files and Mount.Command.
	freePortVariable = "FREE_PORT"
	// freePorts is the number of ports to try.
	freePorts = 4
	// commandGrace is the time that the mount command may take to end after SIGTERM.
	commandGrace = 5 * time.Second
)

// finalError ends the supervision, because another try would not help.
type finalError struct{ sentence string }

func (e finalError) Error() string { return e.sentence }

// resident mounts a kernel filesystem by a command that ends after the mount.
type resident struct {
	kernel kernel
	mount  spec.Mount
	lookup environment.Lookup
	// output gets the output of the command.
	output io.Writer
	// limit bounds the run time of the command.
	limit time.Duration
	// left is a command that could not be killed.
	left *process.Child
}

// try mounts once. After an error the filesystem may be mounted nevertheless, if the command could not be killed.
func (r *resident) try(ctx context.Context) error {
	if r.left != nil {
		select {
		case <-r.left.Gone():
			r.left = nil
		default:
			return fmt.Errorf("%s of an earlier try still waits inside of the kernel for the filesystem's servers, and can't be killed", r.mount.Command[0])
		}
	}
	if why, sure := r.kernel.cannot(r.mount.FSType); sure {
		return finalError{why}
	}
	if n := r.mount.Network; n != nil {
		if err := r.kernel.up(ctx, *n, r.lookup); err != nil {
			return err
		}
	}
	argv, err := r.prepare()
	if err != nil {
		return err
	}
	start := argv
	if r.mount.Host {
		start = host.OnNode(argv)
	}
	tail := &process.Tail{}
	both := io.MultiWriter(r.output, tail)
	command, err := process.Start(start, process.Options{Stdout: both, Stderr: both})
	if err != nil {
		return finalError{err.Error()}
	}
	if err := r.await(ctx, command); err != nil {
		return fmt.Errorf("%w: %s", err, tail.Lines(lastLines))
	}
	if code := command.Code(); code != 0 {
		// This is checked only after a try, because the mount makes the kernel load an available module.
		if why, _ := r.kernel.cannot(r.mount.FSType); why != "" {
			return finalError{fmt.Sprintf("%s (%s ended with exit code %d: %s)", why, argv[0], code, tail.Lines(lastLines))}
		}
		return fmt.Errorf("%s could not mount the filesystem (exit code %d; the kernel's log, dmesg, may say more): %s", argv[0], code, tail.Lines(lastLines))
	}
	entries, err := r.kernel.at(r.mount.Path)
	if err != nil {
		return err
	}
	switch state := Assess(entries, r.mount); state {
	case Ours:
		return nil
	case Absent:
		return fmt.Errorf("%s ended well, but %s: %s", argv[0], describe(state, entries, r.mount), tail.Lines(lastLines))
	default:
		return finalError{describe(state, entries, r.mount)}
	}
}

// await waits until the command has ended, and ends it when ctx ends or the limit is over.
func (r *resident) await(ctx context.Context, command *process.Child) (err error) {
	select {
	case <-command.Done():
		return nil
	case <-ctx.Done():
		err = fmt.Errorf("%s was ended before the filesystem was mounted", r.mount.Command[0])
	case <-time.After(r.limit):
		err = fmt.Errorf("%s did not mount the filesystem within %s and was ended; look whether the filesystem's servers run", r.mount.Command[0], r.limit)
	}
	command.Stop(commandGrace)
	if errors.Is(command.Err(), process.ErrLeftBehind) {
		r.left = command
		err = fmt.Errorf("%w; %w", err, process.ErrLeftBehind)
	}
	return err
}

// prepare writes the files and returns the command line.
func (r *resident) prepare() ([]string, error) {
	lookup := r.lookup
	if r.mount.FreePort != 0 {
		port, err := freePort(r.mount.FreePort)
		if err != nil {
			return nil, err
		}
		lookup = func(name string) (string, bool) {
			if name == freePortVariable {
				return strconv.Itoa(int(port)), true
			}
			return r.lookup(name)
		}
	}
	if err := writeFiles(r.mount.Files, lookup); err != nil {
		return nil, err
	}
	return environment.ExpandAll(r.mount.Command, lookup)
}

func writeFiles(files []spec.File, lookup environment.Lookup) error {
	writer := durable.Writer{Chown: os.Chown}
	for _, file := range files {
		content, err := environment.Expand(file.Content, lookup)
		if err != nil {
			return fmt.Errorf("can't write %s: %w", file.Path, err)
		}
		if err := os.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
			return fmt.Errorf("can't make the directory of %s: %w", file.Path, err)
		}
		own := durable.Ownership{UID: os.Getuid(), GID: os.Getgid(), Mode: fs.FileMode(file.Mode)}
		if err := writer.File(file.Path, []byte(content), own); err != nil {
			return err
		}
	}
	return nil
}

// freePort returns the first UDP port that is free in this network namespace, for any address. Another mount may take it before this one
// does; the next try finds the next port.
func freePort(first int32) (int32, error) {
	for port := first; port < first+freePorts; port++ {
		free, err := isFree(port)
		if err != nil {
			return 0, fmt.Errorf("can't find out whether the UDP port %d is free: %w", port, err)
		}
		if free {
			return port, nil
		}
	}
	return 0, fmt.Errorf("none of the UDP ports %d to %d is free on this node; ss -ulpn shows who has them; "+
		"every mount of the filesystem takes one, also one that is detached and still in use", first, first+freePorts-1)
}

func isFree(port int32) (bool, error) {
	for network, address := range map[string]string{"udp4": "0.0.0.0", "udp6": "::"} {
		socket, err := (&net.ListenConfig{}).ListenPacket(context.Background(), network, net.JoinHostPort(address, strconv.Itoa(int(port))))
		switch {
		case errors.Is(err, unix.EADDRINUSE):
			return false, nil
		case network == "udp6" && err != nil: // this node has no IPv6
		case err != nil:
			return false, err
		default:
			if err := socket.Close(); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// kernelOnce mounts the filesystem unless it is already mounted, watches until it is lost or ctx ends, and leaves nothing mounted.
func (s *supervisor) kernelOnce(ctx context.Context, there bool) (worked bool, err error) {
	if !there {
		if err := s.try(ctx); err != nil {
			if ctx.Err() != nil {
				s.log.Info("stopping", "path", s.mount.Path, "reason", err)
				return false, s.kernel.unmountAll(s.mount, s.log)
			}
			return false, err
		}
	}
	worked, lost := s.watch(ctx, nil)
	if _, final := errors.AsType[finalError](lost); final {
		return worked, lost
	}
	return worked, errors.Join(lost, s.kernel.unmountAll(s.mount, s.log))
}
