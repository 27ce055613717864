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
	// questions is how often a clock is read in one session: the fastest answer counts.
	questions = 5
	// askLimit bounds how long one machine may take to answer. A machine that does not is no reason to lose a repetition.
	askLimit = 15 * time.Second
	// atOnce is how many machines are asked at the same time.
	atOnce = 16
)

// Session asks a machine: it writes a line to send, and reads the answer from the reader.
type Session struct {
	Send   io.Writer
	Answer *bufio.Reader
	// Close ends the session and returns what the other side had to complain of.
	Close func() error
}

// sight is what one look at a machine has found.
type sight struct {
	clock   *measured.Clock
	stat    *measured.Throttling
	problem string
}

// watch has a time of its own: the clock of this machine as it was at the start, and monotonic since.
type watch struct{ base time.Time }

func (w watch) nanos(t time.Time) int64 { return w.base.UnixNano() + t.Sub(w.base).Nanoseconds() }

// around runs a tool between two looks at the machines that it runs on, and prints what they have found when the tool has ended well.
func around(
	ctx context.Context, h Host, hosts []string, look func(ctx context.Context, w watch, host string) sight, run func() error,
) error {
	w := watch{base: time.Now()}
	all := func() []sight {
		out := make([]sight, len(hosts))
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
	return around(ctx, h, []string{name}, func(_ context.Context, w watch, _ string) sight {
		answer, now := h.Look()
		return sight{clock: &measured.Clock{Offset: time.Duration(answer.Now - w.nanos(now))}, stat: answer.Stat}
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
	return around(ctx, h, used, func(ctx context.Context, w watch, host string) sight {
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

// ask reads the clock of another machine a few times in one session. The clock was read at some time between a question and its answer.
func ask(ctx context.Context, h Host, w watch, host string, port int) (out sight, err error) {
	session, err := h.Ask(ctx, h.Self, host, port)
	if err != nil {
		return out, err
	}
	for range questions {
		asked := time.Now()
		if _, err := io.WriteString(session.Send, "\n"); err != nil {
			return sight{}, errors.Join(session.Close(), fmt.Errorf("can't ask: %w", err))
		}
		line, err := session.Answer.ReadBytes('\n')
		answered := time.Now()
		var answer measured.Answer
		if err == nil {
			err = json.Unmarshal(line, &answer)
		}
		if err != nil {
			return sight{}, errors.Join(session.Close(), fmt.Errorf("gave no answer: %w", err))
		}
		half := answered.Sub(asked) / 2
		c := measured.Clock{Offset: time.Duration(answer.Now - w.nanos(asked.Add(half))), Within: half}
		if out.clock == nil || c.Within < out.clock.Within {
			out.clock = &c
		}
		out.stat = answer.Stat
	}
	_ = session.Close() // all answers are there
	return out, nil
}

// look reads this machine's clock, and what the kernel says of this container; now is the same moment with a monotonic reading.
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

// Clock answers each line of in with this machine's clock and what the kernel has done to this container, until in ends.
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
	return nil // whoever asked has gone
}

// bySSH opens a session with this program on a worker, as mpirun reaches it.
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
