// Package probe asks a running filesystem for its state, again and again, and serves the last answer over HTTP.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// commandLimit is how long one command of the filesystem's own tools may take, where the backend does not say.
const commandLimit = 10 * time.Second

// answer is what the last question led to.
type answer struct {
	// state is the last good one, nil while there is none; at is when it came.
	state *backend.State
	at    time.Time
	// err says why the last question failed, nil when it did not.
	err error
	// turned is when the loop last ended a turn, good or bad; took is how long the turn was.
	turned time.Time
	took   time.Duration
}

// Probe keeps the last answer of a filesystem.
type Probe struct {
	told   spec.Probe
	prober backend.Prober
	ask    func(ctx context.Context, argv []string, limit time.Duration) ([]byte, error)
	now    func() time.Time
	log    *slog.Logger

	mutex sync.RWMutex
	last  answer
}

// New makes a probe that asks with the commands of prober.
func New(told spec.Probe, prober backend.Prober, log *slog.Logger) (*Probe, error) {
	if told.IntervalSeconds < 1 {
		return nil, fmt.Errorf("intervalSeconds is %d; it must be at least 1", told.IntervalSeconds)
	}
	p := &Probe{told: told, prober: prober, ask: output, now: time.Now, log: log}
	p.last.turned = p.now()
	return p, nil
}

// Run asks and serves until ctx ends.
func (p *Probe) Run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.told.Listen)
	if err != nil {
		return fmt.Errorf("can't serve on %s: %w", p.told.Listen, err)
	}
	server := &http.Server{
		Handler:           p.Handler(),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	go p.loop(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	p.log.Info("serving", "address", listener.Addr().String(), "backend", p.told.Backend, "asks", p.told.Address)
	select {
	case err := <-served:
		return fmt.Errorf("the HTTP server on %s ended: %w", p.told.Listen, err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the HTTP server on %s did not close: %w", p.told.Listen, err)
	}
	return nil
}

func (p *Probe) loop(ctx context.Context) {
	for ctx.Err() == nil {
		p.turn(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(p.interval()):
		}
	}
}

// turn asks once and keeps the answer. A failed question keeps the last state, which grows old.
func (p *Probe) turn(ctx context.Context) {
	began := p.now()
	state, err := p.question(ctx)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// One line when the answer changes between good and bad, or in how it is bad; not one per question.
	if text(err) != text(p.last.err) {
		if err != nil {
			p.log.Warn("the filesystem does not answer", "error", err)
		} else {
			p.log.Info("the filesystem answers again")
		}
	}
	p.last.err, p.last.turned = err, p.now()
	p.last.took = p.last.turned.Sub(began)
	if err == nil {
		// What happened while it was asked may be missing from the answer.
		state.Time, state.FileSystemUID = began, p.told.FileSystem.UID
		p.last.state, p.last.at = &state, p.last.turned
	}
}

func (p *Probe) question(ctx context.Context) (backend.State, error) {
	commands := p.prober.Commands()
	tolerant, _ := p.prober.(backend.TolerantProber)
	outputs := make([][]byte, len(commands))
	for i, argv := range commands {
		limit := commandLimit
		if tolerant != nil {
			limit = cmp.Or(tolerant.Limit(i), commandLimit)
		}
		var err error
		outputs[i], err = p.ask(ctx, argv, limit)
		failed, ended := errors.AsType[*failure](err)
		if err == nil || ended && tolerant != nil && ctx.Err() == nil && tolerant.Tolerates(i, failed.code, failed.stderr) {
			continue
		}
		return backend.State{}, err
	}
	return p.prober.Parse(outputs)
}

// failure is a command that ran and did not end well.
type failure struct {
	program string
	// code is its exit code, -1 when a signal ended it.
	code   int
	stderr string
	// limit is how long it was given, when that was not enough.
	limit time.Duration
}

// Error quotes the first line of the standard error.
func (f *failure) Error() string {
	if f.limit != 0 {
		return fmt.Sprintf("%s did not answer within %s", f.program, f.limit)
	}
	line, _, _ := strings.Cut(strings.TrimSpace(f.stderr), "\n")
	return fmt.Sprintf("%s failed with exit code %d: %s", f.program, f.code, line)
}

// output runs a command and returns its standard output, even when it fails: the error is then a *failure.
func output(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("the prober has an empty command")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the backend says what to run
	command.WaitDelay = time.Second
	out, err := command.Output()
	switch exited, ended := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, &failure{program: argv[0], code: -1, limit: limit}
	case ended:
		return out, &failure{program: argv[0], code: exited.ExitCode(), stderr: string(exited.Stderr)}
	}
	return nil, fmt.Errorf("can't run %s: %w", argv[0], err)
}

func (p *Probe) interval() time.Duration { return time.Duration(p.told.IntervalSeconds) * time.Second }

// freshness is how old a state may be: a slow command and two failed turns are forgiven.
func (p *Probe) freshness() time.Duration { return 3*p.interval() + commandLimit }

func (p *Probe) snapshot() answer {
	p.mutex.RLock()
	defer p.mutex.RUnlock()
	return p.last
}

// fresh returns the state, or a sentence that says why there is none to trust.
func (p *Probe) fresh(a answer) (*backend.State, string) {
	switch {
	case a.state != nil && p.now().Sub(a.at) <= p.freshness():
		return a.state, ""
	case a.err != nil:
		return nil, fmt.Sprintf("the filesystem at %s does not answer: %s", p.told.Address, a.err)
	default:
		return nil, fmt.Sprintf("the filesystem at %s has not answered yet", p.told.Address)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
