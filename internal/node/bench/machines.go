package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"parallelfs.dev/operator/internal/node/measured"
)

const (
	// questions is the number of clock readings in one session, of which the fastest answer counts.
	questions = 5
	// askLimit bounds the time of one machine's answers. A repetition is not lost because a machine does not answer.
	askLimit = 15 * time.Second
	// atOnce limits the number of machines that are asked concurrently.
	atOnce = 16
)

// Session is a connection to a machine. A line written to Send is a request; the response comes from Answer.
type Session struct {
	Send   io.Writer
	Answer *bufio.Reader
	// Close ends the session and returns the other side's error output.
	Close func() error
}

// inspection is the result of one inspection of a machine.
type inspection struct {
	clock   *measured.Clock
	stat    *measured.Throttling
	problem string
}

// watch is a clock that starts with this machine's time and is monotonic from then on.
type watch struct{ base time.Time }

func (w watch) nanos(t time.Time) int64 { return w.base.UnixNano() + t.Sub(w.base).Nanoseconds() }

// around inspects the machines before and after a tool runs on them, and prints the results if the tool succeeded.
func around(
	ctx context.Context, h Host, hosts []string, look func(ctx context.Context, w watch, host string) inspection, run func() error,
) error {
	w := watch{base: time.Now()}
	all := func() []inspection {
		out := make([]inspection, len(hosts))
		slots := make(chan struct{}, atOnce)
		var waits sync.WaitGroup
		for i, host := range hosts {
			slots <- struct{}{}
			waits.Go(func() {
				defer func() { <-slots }()
				out[i] = look(ctx, w, host)
			})
		}
		waits.Wait()
		return out
	}
	before := all()
	started := time.Now()
	if err := run(); err != nil {
		return err
	}
	elapsed := time.Since(started)
	after := all()
	for i, host := range hosts {
		name, _, _ := strings.Cut(host, ".")
		problem := before[i].problem
		if problem == "" {
			problem = after[i].problem
		}
		h.say("%s", measured.Machine{
			Name: name, Elapsed: elapsed, Before: before[i].clock, After: after[i].clock,
			Throttled: after[i].stat.Since(before[i].stat), Problem: problem,
		}.Line())
	}
	return nil
}

// aroundHere is around for a tool that runs on this machine alone.
func aroundHere(ctx context.Context, h Host, run func() error) error {
	if h.Look == nil {
		return run()
	}
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	return around(ctx, h, []string{name}, func(_ context.Context, w watch, _ string) inspection {
		answer, now := h.Look()
		return inspection{clock: &measured.Clock{Offset: time.Duration(answer.Now - w.nanos(now))}, stat: answer.Stat}
	}, run)
}

// aroundWorkers is around for a tool whose processes run on the hosts of an MPIJob.
func aroundWorkers(ctx context.Context, h Host, hosts []string, placement []int, port int, run func() error) error {
	if h.Ask == nil {
		return run()
	}
	var used []string
	for i, host := range hosts {
		if placement[i] > 0 {
			used = append(used, host)
		}
	}
	return around(ctx, h, used, func(ctx context.Context, w watch, host string) inspection {
		ctx, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		s, err := ask(ctx, h, w, host, port)
		if err != nil {
			const longest = 200
			s.problem = err.Error()[:min(len(err.Error()), longest)]
		}
		return s
	}, run)
}

// ask reads the clock of another machine a few times in one session. The clock was read at some time between the request and the response.
func ask(ctx context.Context, h Host, w watch, host string, port int) (out inspection, err error) {
	session, err := h.Ask(ctx, h.Self, host, port)
	if err != nil {
		return out, err
	}
	for range questions {
		asked := time.Now()
		if _, err := io.WriteString(session.Send, "\n"); err != nil {
			return inspection{}, errors.Join(session.Close(), fmt.Errorf("can't ask: %w", err))
		}
		line, err := session.Answer.ReadBytes('\n')
		answered := time.Now()
		var answer measured.Answer
		if err == nil {
			err = json.Unmarshal(line, &answer)
		}
		if err != nil {
			return inspection{}, errors.Join(session.Close(), fmt.Errorf("gave no answer: %w", err))
		}
		half := answered.Sub(asked) / 2
		c := measured.Clock{Offset: time.Duration(answer.Now - w.nanos(asked.Add(half))), Within: half}
		if out.clock == nil || c.Within < out.clock.Within {
			out.clock = &c
		}
		out.stat = answer.Stat
	}
	_ = session.Close() // all answers have been read
	return out, nil
}

// look reads this machine's clock and the kernel's throttling statistics of this container. now is the same moment with a monotonic
// reading.
func look() (answer measured.Answer, now time.Time) {
	var stat *measured.Throttling
	for _, path := range []string{"/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat", "/sys/fs/cgroup/cpu,cpuacct/cpu.stat"} {
		if content, err := os.ReadFile(path); err == nil {
			stat = measured.ParseStat(string(content))
			break
		}
	}
	now = time.Now()
	return measured.Answer{Now: now.UnixNano(), Stat: stat}, now
}

// Clock answers each line of in with this machine's clock and this container's throttling, until in ends.
func Clock(in io.Reader, out io.Writer) error {
	questions := bufio.NewScanner(in)
	for questions.Scan() {
		answer, _ := look()
		raw, err := json.Marshal(answer)
		if err == nil {
			_, err = out.Write(append(raw, '\n'))
		}
		if err != nil {
			return fmt.Errorf("can't answer: %w", err)
		}
	}
	return nil // the other side is gone
}

// bySSH opens a session with this program on a worker by the same way as mpirun.
func bySSH(ctx context.Context, self, host string, port int) (Session, error) {
	argv := []string{"-x", "-o", "BatchMode=yes", "-p", strconv.Itoa(port), host, self + " bench clock"}
	command := exec.CommandContext(ctx, "ssh", argv...) //nolint:gosec // the host is of the MPI operator's host file
	command.WaitDelay = time.Second
	var complaint bytes.Buffer
	command.Stderr = &complaint
	send, err := command.StdinPipe()
	if err != nil {
		return Session{}, fmt.Errorf("can't start ssh: %w", err)
	}
	answer, err := command.StdoutPipe()
	if err != nil {
		return Session{}, fmt.Errorf("can't start ssh: %w", err)
	}
	if err := command.Start(); err != nil {
		return Session{}, fmt.Errorf("can't start ssh: %w", err)
	}
	return Session{Send: send, Answer: bufio.NewReader(answer), Close: func() error {
		_ = send.Close() // it ends the other side
		if err := command.Wait(); err != nil {
			return fmt.Errorf("ssh %s: %w: %s", host, err, strings.TrimSpace(complaint.String()))
		}
		return nil
	}}, nil
}
