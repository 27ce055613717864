package mounts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"parallelfs.dev/operator/internal/node/environment"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	period = 2 * time.Second
	// kernelPeriod is the interval for a kernel filesystem, where no program can end and each query costs a process.
	kernelPeriod = 5 * time.Second
	hungAfter    = 60 * time.Second
	shortestWait = 1 * time.Second
	longestWait  = 10 * time.Second
	// programGrace is the time that the mount program may take to end after its filesystem was unmounted.
	programGrace = 10 * time.Second
)

// Supervise keeps the filesystem mounted until ctx ends, then unmounts it and returns nil. An error is a sentence for a person, and is
// returned only if a restart of the mount program can't help.
func Supervise(ctx context.Context, m spec.Mount, lookup environment.Lookup, stdout, stderr io.Writer, log *slog.Logger) error {
	argv, err := commandOf(m, lookup)
	if err != nil {
		return err
	}
	evicted, err := evictionsOf(m)
	if err != nil {
		return err
	}
	if evicted != nil {
		go evicted.count(ctx, m.Path, evictionsEvery, log)
	}
	s := supervisor{kernel: thisKernel(m), mount: m, log: log, period: period, shortest: shortestWait, grace: programGrace}
	if m.Kernel {
		r := resident{kernel: s.kernel, mount: m, lookup: lookup, output: stderr, limit: mountLimit}
		s.try, s.period = r.try, kernelPeriod
		return s.run(ctx)
	}
	s.start = func() (child, error) {
		if err := writeFiles(m.Files, lookup); err != nil {
			return nil, err
		}
		return process.Start(argv, process.Options{Stdout: stdout, Stderr: stderr})
	}
	return s.run(ctx)
}

// commandOf returns the command line of the mount program.
func commandOf(m spec.Mount, lookup environment.Lookup) ([]string, error) {
	if err := understand(m); err != nil {
		return nil, err
	}
	if len(m.Command) == 0 {
		return nil, fmt.Errorf("the spec names no command that mounts %s", m.Path)
	}
	if m.Kernel {
		return nil, nil // it is determined for every try
	}
	return environment.ExpandAll(m.Command, lookup)
}

// child is the mount program.
type child interface {
	Done() <-chan struct{}
	Err() error
	Stop(grace time.Duration)
}

type supervisor struct {
	kernel kernel
	mount  spec.Mount
	log    *slog.Logger
	// start starts the mount program. try replaces it for a kernel filesystem (resident).
	start func() (child, error)
	try   func(ctx context.Context) error
	// period is the interval between two checks, shortest the wait before the first restart, and grace the same as programGrace.
	period, shortest, grace time.Duration
	saidNotImmutable        bool
}

func (s *supervisor) run(ctx context.Context) error {
	wait := s.shortest
	for {
		there, err := s.ready()
		if err != nil {
			return err
		}
		once := s.once
		if s.mount.Kernel {
			once = func(ctx context.Context) (bool, error) { return s.kernelOnce(ctx, there) }
		}
		worked, err := once(ctx)
		if _, final := errors.AsType[finalError](err); final {
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		if worked {
			wait = s.shortest
		}
		s.log.Error("the filesystem is not mounted any more and is mounted again", "path", s.mount.Path, "reason", err, "wait", wait)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		wait = min(2*wait, longestWait)
	}
}

// ready clears and prepares the mount point, unless the filesystem is mounted and stays.
func (s *supervisor) ready() (there bool, err error) {
	if there, err := s.kernel.clear(s.mount, s.log); there || err != nil {
		return there, err
	}
	if err := s.kernel.clearView(s.mount, s.log); err != nil {
		return false, err
	}
	immutable, err := s.kernel.prepare(s.mount.Path)
	if err != nil {
		return false, err
	}
	if !immutable && !s.saidNotImmutable {
		s.saidNotImmutable = true
		s.log.Warn("the mount point can't be made immutable on this node's filesystem: while nothing is mounted, root can write to the node's own disk there",
			"path", s.mount.Path)
	}
	return false, nil
}

// once starts the mount program, watches until the mount is lost or ctx ends, and leaves nothing mounted. worked is true if the filesystem
// answered at least once.
func (s *supervisor) once(ctx context.Context) (worked bool, err error) {
	program, err := s.start()
	if err != nil {
		return false, err
	}
	worked, lost := s.watch(ctx, program)
	if _, final := errors.AsType[finalError](lost); final {
		program.Stop(s.grace)
		return worked, lost
	}
	unmountErr := s.kernel.unmountAll(s.mount, s.log)
	select {
	case <-program.Done():
	case <-time.After(s.grace):
	}
	program.Stop(s.grace)
	// The program may have mounted after the first check.
	return worked, errors.Join(lost, unmountErr, s.kernel.unmountAll(s.mount, s.log))
}

// reason is nil if ctx ended. program is nil for a kernel filesystem, which is already mounted.
func (s *supervisor) watch(ctx context.Context, program child) (worked bool, reason error) {
	ticker := time.NewTicker(s.period)
	defer ticker.Stop()
	w := watcher{supervisor: s, started: time.Now(), there: program == nil}
	defer func() {
		if w.answer != nil {
			w.stop()
		}
	}()
	var ended <-chan struct{}
	if program != nil {
		ended = program.Done()
	}
	for {
		select {
		case <-ctx.Done():
			s.log.Info("stopping", "path", s.mount.Path)
			return w.worked, nil
		case <-ended:
			if err := program.Err(); err != nil {
				return w.worked, fmt.Errorf("%s ended: %w", s.mount.Command[0], err)
			}
			return w.worked, fmt.Errorf("%s ended", s.mount.Command[0])
		case err := <-w.answer:
			if lost := w.answered(err); lost != nil {
				return w.worked, lost
			}
		case <-ticker.C:
			if lost := w.look(); lost != nil {
				return w.worked, lost
			}
		}
	}
}

// watcher holds the state of one run of the mount program.
type watcher struct {
	*supervisor
	started time.Time
	// answer is nil while no query is open. stop cancels the query, and asked is its start time.
	answer <-chan error
	stop   func()
	asked  time.Time
	// shown is the type of the queried mount.
	shown string
	// there is true once the mount was seen, and worked once the filesystem answered.
	there, worked bool
	// These prevent repeated log lines until the state changes.
	saidLate, saidHung    bool
	saidError, saidUnseen string
}

// answered handles an answer, and returns an error if the mount is lost.
func (w *watcher) answered(err error) error {
	w.answer = nil
	switch {
	case Dead(w.shown, err):
		return fmt.Errorf("the mount is dead: %w", err)
	case err != nil && err.Error() != w.saidError:
		w.saidError = err.Error()
		w.log.Warn("the filesystem answers with an error", "path", w.mount.Path, "error", err)
	case err == nil && (!w.worked || w.saidHung || w.saidError != ""):
		w.worked, w.saidError = true, ""
		w.log.Info("mounted, and the filesystem answers", "path", w.mount.Path)
	}
	w.saidHung = false
	if err == nil {
		w.show()
	}
	return nil
}

// show mounts the filesystem at its view. It is called after the filesystem has answered a query, so the mount does not block on the
// servers.
func (w *watcher) show() {
	said := ""
	if err := w.kernel.show(w.mount); err != nil {
		said = err.Error()
	}
	if said != "" && said != w.saidUnseen {
		w.log.Warn("pods of benchmarks don't see the filesystem: its second mount can't be made, and is tried again", "path", w.mount.View, "reason", said)
	}
	w.saidUnseen = said
}

// look returns an error if the mount is lost, and queries the filesystem if no query is open.
func (w *watcher) look() error {
	entries, err := w.kernel.at(w.mount.Path)
	if err != nil {
		return err
	}
	switch state := Assess(entries, w.mount); {
	case state == Foreign || state == Another:
		return finalError{describe(state, entries, w.mount)}
	case state == Absent && w.there:
		return errors.New("somebody unmounted it")
	case state == Absent:
		if !w.saidLate && time.Since(w.started) > hungAfter {
			w.saidLate = true
			w.log.Warn("still not mounted; look whether the filesystem's servers run and can be reached from this node", "path", w.mount.Path)
		}
	case w.answer == nil:
		w.there, w.asked, w.shown = true, time.Now(), entries[len(entries)-1].FSType
		w.answer, w.stop = w.kernel.ask(w.mount.Path)
	case !w.saidHung && time.Since(w.asked) > hungAfter:
		w.saidHung = true
		w.log.Warn("the filesystem has not answered for a minute; it stays mounted, look whether its servers run", "path", w.mount.Path)
	}
	return nil
}
