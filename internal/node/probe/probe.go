// Package probe queries a running filesystem for its state on request, and serves the signed answer over HTTP. For metrics it also queries
// periodically.
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
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/limited"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

// commandLimit is the time limit of one command of the filesystem's own tools, unless the backend has another one.
const commandLimit = 10 * time.Second

const (
	// breath is the shortest pause between two queries of the filesystem. Only one query runs at a time, and all waiting requests share the
	// next one. Therefore any number of requests causes at most two queries per second, and fewer if a query takes long.
	breath = 500 * time.Millisecond
	// mostSigned limits the signed requests that wait at once. They come from the manager, of which one instance leads.
	mostSigned = 16
	// mostUnsigned limits the other requests that wait, which come from people. They are counted separately from the manager's.
	mostUnsigned = 4
)

// answer is the result of the last query.
type answer struct {
	// state is the last good one, or nil. at is its time.
	state *backend.State
	at    time.Time
	// err is the reason why the last query failed, or nil.
	err error
	// turned is the end of the last turn, successful or not; took is its duration.
	turned time.Time
	took   time.Duration
}

// round is one run of the filesystem's commands, shared by the requests that wait for it.
type round struct {
	// signed and unsigned count the waiting requests.
	signed, unsigned int
	// done is closed when state or err is set.
	done  chan struct{}
	state backend.State
	err   error
}

// Probe queries a filesystem and keeps the last answer.
type Probe struct {
	config spec.Probe
	prober backend.Questions
	ask    func(ctx context.Context, argv []string, limit time.Duration) ([]byte, error)
	now    func() time.Time
	log    *slog.Logger

	// handsOut is held while the store is served, which takes memory. database is the store's database, or nil for plain files. work is a
	// directory in memory for a copy of it.
	handsOut sync.Mutex
	database *backend.StoreDatabase
	work     string

	mutex sync.RWMutex
	last  answer
	// next has not started: requests that join before its start get an answer that is newer than the request.
	next *round
	// wanted contains a value if a request waits for next.
	wanted chan struct{}
}

// New makes a probe that runs the commands of prober. It serves the store as a database, or as plain files if database is nil.
func New(config spec.Probe, prober backend.Questions, database *backend.StoreDatabase, log *slog.Logger) (*Probe, error) {
	if config.IntervalSeconds < 1 {
		return nil, fmt.Errorf("intervalSeconds is %d; it must be at least 1", config.IntervalSeconds)
	}
	if config.KeyFile == "" {
		return nil, errors.New("keyFile is empty; without a key no answer can be signed")
	}
	p := &Probe{
		config: config, prober: prober, ask: output, now: time.Now, log: log,
		next: &round{done: make(chan struct{})}, wanted: make(chan struct{}, 1), database: database, work: podspec.RunDirectory,
	}
	if config.Host {
		p.ask = outputOnNode
	}
	p.last.turned = p.now()
	return p, nil
}

// Run queries and serves until ctx ends.
func (p *Probe) Run(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.config.Listen)
	if err != nil {
		return fmt.Errorf("can't serve on %s: %w", p.config.Listen, err)
	}
	server := &http.Server{
		Handler:           p.Handler(),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: p.writeLimit(), IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
		// Waiting requests are canceled at a stop. The next pod of the server beside the probe is created only after this one has ended.
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: limited.Context, ConnState: limited.State,
	}
	go p.loop(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(limited.New(listener)) }()
	p.log.Info("serving", "address", listener.Addr().String(), "backend", p.config.Backend, "asks", p.config.Address)
	select {
	case err := <-served:
		return fmt.Errorf("the HTTP server on %s ended: %w", p.config.Listen, err)
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(closing); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("the HTTP server on %s did not close: %w", p.config.Listen, err)
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

// askAnew waits for the filesystem's answer to a query that starts after this call. signed is true for a request from a holder of the
// filesystem's key. The error is the reason why there is no answer.
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
	default: // a wakeup is already pending
	}
	p.mutex.Unlock()
	select {
	case <-ctx.Done():
		return backend.State{}, ctx.Err()
	case <-mine.done:
		return mine.state, mine.err
	}
}

// errTooMany means that too many requests are waiting.
var errTooMany = fmt.Errorf("%d signed or %d unsigned questions wait for an answer already", mostSigned, mostUnsigned)

// begin takes the next round. Later requests join the round after it.
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

// turn queries once, answers the waiting requests, and keeps the answer. A failed query keeps the last state, which becomes older.
func (p *Probe) turn(ctx context.Context) {
	mine, began := p.begin(), p.now()
	state, err := p.question(ctx)
	mine.state, mine.err = state, err
	defer close(mine.done)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	// Log a line only if the answer changes between good and bad, or if the error changes.
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
	state, err := p.prober.Parse(outputs)
	if later, is := p.prober.(backend.LaterQuestions); is && err == nil {
		later.Later(&state, func(argv []string, limit time.Duration) ([]byte, error) { return p.ask(ctx, argv, limit) })
	}
	return state, err //nolint:wrapcheck // it names the command and the line
}

// failure is the error of a command that ran and failed.
type failure struct {
	program string
	// code is its exit code, or -1 if a signal ended it.
	code   int
	stderr string
	// limit is its time limit if that was exceeded.
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

// mostAnswer bounds an answer of a filesystem in bytes: a thousand servers with many disks each have about a quarter of it.
const mostAnswer = 64 << 20

// output runs a command and returns its standard output, even if the command fails with a *failure.
func output(ctx context.Context, argv []string, limit time.Duration) ([]byte, error) {
	if len(argv) == 0 {
		return nil, errors.New("the prober has an empty command")
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	command := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the backend says what to run
	command.WaitDelay = time.Second
	stdout, stderr := process.Output{Most: mostAnswer}, process.Output{}
	command.Stdout, command.Stderr = &stdout, &stderr
	err := command.Run()
	out := stdout.Bytes()
	if tooMuch := errors.Join(stdout.Err(), stderr.Err()); tooMuch != nil {
		return nil, fmt.Errorf("%s: %w", argv[0], tooMuch)
	}
	switch exited, ended := errors.AsType[*exec.ExitError](err); {
	case err == nil:
		return out, nil
	case ctx.Err() != nil:
		return out, &failure{program: argv[0], code: -1, limit: limit}
	case ended:
		return out, &failure{program: argv[0], code: exited.ExitCode(), stderr: stderr.String()}
	}
	return nil, fmt.Errorf("can't run %s: %w", argv[0], err)
}

// outputOnNode is output for a program of the node.
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

func (p *Probe) interval() time.Duration {
	return time.Duration(p.config.IntervalSeconds) * time.Second
}

// writeLimit is the time limit of a response: the running query, the pause, and the query after it.
func (p *Probe) writeLimit() time.Duration {
	return 2*time.Duration(len(p.prober.Commands()))*commandLimit + breath + commandLimit
}

// key returns the key that signs answers. It is read for each answer, because the kubelet changes the file when the Secret was recreated.
func (p *Probe) key() ([]byte, error) {
	key, err := os.ReadFile(p.config.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read the key that answers are signed with: %w", err)
	}
	return key, nil
}

// freshness is the maximum age of the state in metrics, which tolerates a slow command and two failed turns.
func (p *Probe) freshness() time.Duration { return 3*p.interval() + commandLimit }

func (p *Probe) snapshot() answer {
	p.mutex.RLock()
	defer p.mutex.RUnlock()
	return p.last
}

// fresh returns the state, or a sentence that explains why there is no recent one.
func (p *Probe) fresh(a answer) (*backend.State, string) {
	switch {
	case a.state != nil && p.now().Sub(a.at) <= p.freshness():
		return a.state, ""
	case a.err != nil:
		return nil, fmt.Sprintf("the filesystem at %s does not answer: %s", p.config.Address, a.err)
	default:
		return nil, fmt.Sprintf("the filesystem at %s has not answered yet", p.config.Address)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
