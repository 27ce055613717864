// Package probe asks a running filesystem for its state when somebody asks the probe, and serves the signed answer over HTTP. For metrics
// it also asks by itself, again and again.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/limited"
	"parallelfs.dev/operator/internal/node/spec"
)

// commandLimit is how long one command of the filesystem's own tools may take, where the backend does not say.
const commandLimit = 10 * time.Second

const (
	// breath is the least pause between two questions to the filesystem. One is asked at a time, and all who wait share the next one. So
	// whoever asks the probe, and however often, the filesystem is asked at most twice a second, and less often by the time that it takes.
	breath = 500 * time.Millisecond
	// mostSigned is how many signed questions may wait for an answer at once: the manager's, of which one leads.
	mostSigned = 16
	// mostUnsigned is how many others may wait: those of people. They take no place of the manager's.
	mostUnsigned = 4
)

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

// round is one run of the filesystem's commands, and those who wait for it.
type round struct {
	// signed and unsigned count those who wait for the answer.
	signed, unsigned int
	// done is closed when state or err is there.
	done  chan struct{}
	state backend.State
	err   error
}

// Probe asks a filesystem, and keeps its last answer.
type Probe struct {
	told   spec.Probe
	prober backend.Questions
	ask    func(ctx context.Context, argv []string, limit time.Duration) ([]byte, error)
	now    func() time.Time
	log    *slog.Logger

	// handsOut is held while the store is handed out: that takes memory. database is what the store is, nil for plain files, and work is a
	// directory in memory where a copy of it is made.
	handsOut sync.Mutex
	database *backend.StoreDatabase
	work     string

	mutex sync.RWMutex
	last  answer
	// next has not begun: its answer was asked after everything that happens before it begins.
	next *round
	// wanted holds something when somebody waits for next.
	wanted chan struct{}
}

// New makes a probe that asks with the commands of prober. What it hands out is a database, or plain files where that is nil.
func New(told spec.Probe, prober backend.Questions, database *backend.StoreDatabase, log *slog.Logger) (*Probe, error) {
	if told.IntervalSeconds < 1 {
		return nil, fmt.Errorf("intervalSeconds is %d; it must be at least 1", told.IntervalSeconds)
	}
	if told.KeyFile == "" {
		return nil, errors.New("keyFile is empty; without a key no answer can be signed")
	}
	p := &Probe{
		told: told, prober: prober, ask: output, now: time.Now, log: log,
		next: &round{done: make(chan struct{})}, wanted: make(chan struct{}, 1), database: database, work: backend.RunDirectory,
	}
	if told.Host {
		p.ask = outputOnNode
	}
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
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: p.writeLimit(), IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
		// Who waits for an answer is sent away at a stop, and not waited for: the next pod of the server beside the probe is made when this
		// one is gone.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: limited.Context,
	}
	go p.loop(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(limited.New(listener)) }()
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
		case <-time.After(breath):
		}
		select {
		case <-ctx.Done():
		case <-p.wanted:
		case <-time.After(p.interval() - breath):
		}
	}
}

// askAnew waits for an answer of the filesystem to a question that began after this call. signed is true for a question of who has the
// filesystem's key. The error says why there is no answer.
func (p *Probe) askAnew(ctx context.Context, signed bool) (backend.State, error) {
	p.mutex.Lock()
	mine := p.next
	waiting, most := &mine.unsigned, mostUnsigned
	if signed {
		waiting, most = &mine.signed, mostSigned
	}
	if *waiting >= most {
		p.mutex.Unlock()
		return backend.State{}, errTooMany
	}
	*waiting++
	select {
	case p.wanted <- struct{}{}:
	default: // it is known already that somebody waits
	}
	p.mutex.Unlock()
	select {
	case <-ctx.Done():
		return backend.State{}, ctx.Err()
	case <-mine.done:
		return mine.state, mine.err
	}
}

// errTooMany means that too many ask.
var errTooMany = fmt.Errorf("%d signed or %d unsigned questions wait for an answer already", mostSigned, mostUnsigned)

// begin takes the next round: who asks from now on waits for the one after it.
func (p *Probe) begin() *round {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	mine := p.next
	p.next = &round{done: make(chan struct{})}
	select {
	case <-p.wanted:
	default:
	}
	return mine
}

// turn asks once, answers those who wait, and keeps the answer. A failed question keeps the last state, which grows old.
func (p *Probe) turn(ctx context.Context) {
	mine, began := p.begin(), p.now()
	state, err := p.question(ctx)
	mine.state, mine.err = state, err
	defer close(mine.done)
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
		p.last.state, p.last.at = &state, p.last.turned
	}
}

func (p *Probe) question(ctx context.Context) (backend.State, error) {
	commands := p.prober.Commands()
	tolerant, _ := p.prober.(backend.TolerantQuestions)
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

// outputOnNode is output of a program of the node.
func outputOnNode(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
	if len(argv) == 0 {
		return output(ctx, argv, limit)
	}
	out, err := output(ctx, host.OnNode(argv), limit)
	if failed, ended := errors.AsType[*failure](err); ended {
		failed.program = argv[0]
	}
	return out, err
}

func (p *Probe) interval() time.Duration { return time.Duration(p.told.IntervalSeconds) * time.Second }

// writeLimit is how long an answer may take: the question that is under way, the pause, and the one that begins after it.
func (p *Probe) writeLimit() time.Duration {
	return 2*time.Duration(len(p.prober.Commands()))*commandLimit + breath + commandLimit
}

// key is what answers are signed with. It is read for each: the kubelet changes the file when the Secret was made anew.
func (p *Probe) key() ([]byte, error) {
	key, err := os.ReadFile(p.told.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key that answers are signed with: %w", err)
	}
	return key, nil
}

// freshness is how old the state that metrics show may be: a slow command and two failed turns are forgiven.
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
