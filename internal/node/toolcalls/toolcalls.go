// Package toolcalls runs a benchmark that consists of calls of a filesystem's own tools, one after the other, and shows their output.
package toolcalls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/internal/node/spec"
)

const (
	// between is the pause before a call is repeated.
	between = 2 * time.Second
	// grace is the time that a program may take to end after SIGTERM.
	grace = 5 * time.Second
	// tidyLimit bounds the total time of the cleanup calls after a timeout or a stop. It is less than the pod's termination grace period.
	tidyLimit = 50 * time.Second
)

// Calls is a list of checked calls.
type Calls struct {
	calls []call
	limit time.Duration
	// pause is between, unless a test shortens it.
	pause time.Duration
}

type call struct {
	spec.ManageCall
	while, fails *regexp.Regexp
	// start is the command line that runs Argv.
	start []string
}

// Check parses the spec.
func Check(m spec.Manage) (Calls, error) {
	out := Calls{limit: time.Duration(m.TimeoutSeconds) * time.Second, pause: between}
	if m.TimeoutSeconds < 1 {
		return out, fmt.Errorf("timeoutSeconds is %d; it must be at least 1", m.TimeoutSeconds)
	}
	if len(m.Calls) == 0 {
		return out, errors.New("there are no calls to make")
	}
	for i, c := range m.Calls {
		if len(c.Argv) == 0 {
			return out, fmt.Errorf("call %d has no program", i+1)
		}
		checked := call{ManageCall: c, start: c.Argv}
		if m.Host {
			checked.start = host.OnNode(c.Argv)
		}
		for _, e := range []struct {
			text string
			into **regexp.Regexp
		}{{c.While, &checked.while}, {c.Fails, &checked.fails}} {
			if e.text == "" {
				continue
			}
			compiled, err := regexp.Compile(e.text)
			if err != nil {
				return out, fmt.Errorf("call %d: %w", i+1, err)
			}
			*e.into = compiled
		}
		out.calls = append(out.calls, checked)
	}
	return out, nil
}

// Run makes the calls. Their output goes to output. It returns a *bench.ExitError with bench.TimedOut after a timeout.
func Run(ctx context.Context, calls Calls, output io.Writer) error {
	timed, cancel := context.WithTimeout(ctx, calls.limit)
	defer cancel()
	var failed error
	var tidyUntil time.Time
	for _, c := range calls.calls {
		if failed != nil && !c.Always {
			continue
		}
		var err error
		if c.Always && (failed != nil || timed.Err() != nil) {
			if tidyUntil.IsZero() {
				tidyUntil = time.Now().Add(tidyLimit)
			}
			err = calls.tidy(ctx, tidyUntil, c, output)
		} else {
			err = calls.make(timed, c, output)
		}
		if err != nil && !c.MayFail {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// tidy makes a cleanup call. Whatever ended the earlier calls does not end it.
func (calls Calls) tidy(ctx context.Context, until time.Time, c call, output io.Writer) error {
	within, cancel := context.WithDeadline(context.WithoutCancel(ctx), until)
	defer cancel()
	return calls.make(within, c, output)
}

// make makes one call, and repeats it as long as While matches.
func (calls Calls) make(ctx context.Context, c call, output io.Writer) error {
	for {
		text, code, err := once(ctx, c.start)
		switch {
		case err != nil:
			return calls.failed(ctx, c, text, output, err)
		case code != 0:
			return calls.failed(ctx, c, text, output, fmt.Errorf("%s ended with exit code %d", c.Argv[0], code))
		case matches(c.fails, text):
			return calls.failed(ctx, c, text, output, fmt.Errorf("%s says that it failed", c.Argv[0]))
		case !matches(c.while, text):
			if c.Name != "" {
				show(output, text)
				say(output, "%s has ended", c.Name)
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return calls.failed(ctx, c, text, output, ctx.Err())
		case <-time.After(calls.pause):
		}
	}
}

// failed shows the output of a failed call and the reason why it ended.
func (calls Calls) failed(ctx context.Context, c call, text string, output io.Writer, err error) error {
	show(output, text)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		say(output, "the calls are ended after %s (pointTimeout)", calls.limit)
		return &bench.ExitError{Code: bench.TimedOut}
	case ctx.Err() != nil:
		say(output, "the calls are ended because their pod is being stopped")
	case c.MayFail:
		say(output, "%s; going on", err)
	default:
		say(output, "%s", err)
	}
	return err
}

// once runs a program and returns what it printed.
func once(ctx context.Context, argv []string) (text string, code int, err error) {
	if ctx.Err() != nil {
		return "", 0, ctx.Err()
	}
	printed := &buffer{}
	child, err := process.Start(argv, process.Options{Stdout: printed, Stderr: printed})
	if err != nil {
		return "", 0, err
	}
	defer child.Kill()
	select {
	case <-child.Done():
		return printed.String(), child.Code(), nil
	case <-ctx.Done():
		child.Stop(grace)
		return printed.String(), 0, ctx.Err()
	}
}

// most limits the output of one call that is kept, in bytes.
const most = 1 << 20

// buffer keeps its input and is safe for concurrent writes.
type buffer struct {
	lock sync.Mutex
	text strings.Builder
}

// Write keeps the beginning and discards the rest.
func (b *buffer) Write(p []byte) (int, error) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.text.Write(p[:min(len(p), max(0, most-b.text.Len()))])
	return len(p), nil
}

// String returns what was kept.
func (b *buffer) String() string {
	b.lock.Lock()
	defer b.lock.Unlock()
	return b.text.String()
}

// matches is true if a line matches.
func matches(expression *regexp.Regexp, text string) bool {
	if expression == nil {
		return false
	}
	for line := range strings.Lines(text) {
		if expression.MatchString(strings.TrimRight(line, "\r\n")) {
			return true
		}
	}
	return false
}

func show(output io.Writer, text string) {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, _ = io.WriteString(output, text) // an error of the output can't be reported anywhere
}

// say prints a line that a parser can distinguish from a tool's output.
func say(output io.Writer, format string, args ...any) {
	show(output, fmt.Sprintf("parallelfs: "+format+"\n", args...))
}
