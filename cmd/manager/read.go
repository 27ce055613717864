package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
)

// readVerb makes this program a reader of outputs: it reads one stream of package reading, whose boundary is the next argument, and prints
// the answer.
const readVerb = "read-output"

const (
	// readMemory bounds the memory of a reader, in bytes. The kernel refuses more. Go's runtime allocates 64 MiB at a time.
	readMemory = 240 << 20
	// readGarbage is the amount of memory from which a reader collects all garbage.
	readGarbage = 160 << 20
	// readTime bounds the time of a reader, from the end of the outputs, and also its CPU time.
	readTime = time.Minute
	// maxReaders is how many readers may run at once.
	maxReaders = 2
	// maxStderr bounds the stored part of a reader's standard error.
	maxStderr = 4 << 10
)

// serveReading is the main function of a reader.
func serveReading(args []string) error {
	if err := confine(readMemory, readTime); err != nil {
		return err
	}
	if len(args) != 1 {
		return errors.New("the boundary of the stream is missing: only the manager starts readers")
	}
	return reading.Serve(registry.Tools(), os.Stdin, args[0], os.Stdout)
}

// confine limits this process before it reads a byte.
func confine(memory uint64, cpu time.Duration) error {
	debug.SetMemoryLimit(readGarbage)
	for what, limit := range map[int]uint64{unix.RLIMIT_DATA: memory, unix.RLIMIT_CPU: uint64(cpu.Seconds()), unix.RLIMIT_CORE: 0} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
			return fmt.Errorf("limit what the reader may use: %w", err)
		}
	}
	// If memory is short, the kernel kills this process and not the manager. This is only a preference, so it may fail.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0o600)
	return nil
}

// readers starts the processes that read outputs.
type readers struct {
	// verb is the argument that makes this program a reader.
	verb  string
	time  time.Duration
	slots chan struct{}
}

func newReaders() *readers {
	return &readers{verb: readVerb, time: readTime, slots: make(chan struct{}, maxReaders)}
}

// read is a reading.Reader that uses a limited process of this program.
func (r *readers) read(ctx context.Context, request reading.Request, outputs reading.Outputs) (reading.Answer, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return reading.Answer{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, problem := &atMost{most: reading.MaxAnswer}, &atMost{most: maxStderr, drops: true}
	// The file of this program may have been replaced since. /proc/self/exe is the running one.
	child := exec.CommandContext(ctx, "/proc/self/exe")
	child.Stdout, child.Stderr, child.Env, child.WaitDelay = answer, problem, []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}, time.Second
	stdin, err := child.StdinPipe()
	if err != nil {
		return reading.Answer{}, fmt.Errorf("start a reader of outputs: %w", err)
	}
	stream := multipart.NewWriter(stdin)
	child.Args = []string{"manager", r.verb, stream.Boundary()}
	if err := child.Start(); err != nil {
		return reading.Answer{}, fmt.Errorf("start a reader of outputs: %w", err)
	}
	sent := reading.Send(stream, request, outputs)
	timer := time.AfterFunc(r.time, cancel)
	_ = stdin.Close() // it may have ended already
	if sent != nil && !endedEarly(sent) {
		cancel()
	}
	ended := child.Wait()
	late := !timer.Stop()
	switch {
	case sent != nil && !endedEarly(sent):
		return reading.Answer{}, sent
	case ctx.Err() != nil && !late:
		return reading.Answer{}, context.Cause(ctx)
	case answer.over:
		return reading.Answer{}, &reading.EndedError{Reason: fmt.Sprintf("gave more than %d KiB of results", reading.MaxAnswer>>10)}
	case ended != nil:
		return reading.Answer{}, &reading.EndedError{Reason: r.whyEnded(child.ProcessState, late, problem.text.String())}
	}
	found, err := reading.Decode(answer.text.Bytes())
	if err != nil {
		return reading.Answer{}, &reading.EndedError{Reason: fmt.Sprintf("gave no document of results: %v", err)}
	}
	return found, nil
}

// endedEarly reports whether an error of a stream means that the reader ended before it had read everything.
func endedEarly(err error) bool { return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) }

// whyEnded returns why a reader gave no answer, as the rest of a sentence about that reader.
func (r *readers) whyEnded(state *os.ProcessState, late bool, stderr string) string {
	signaled := false
	if status, is := state.Sys().(syscall.WaitStatus); is {
		signaled = status.Signaled()
	}
	switch {
	case late || signaled && state.UserTime()+state.SystemTime() >= r.time:
		return fmt.Sprintf("took more than %s", r.time)
	case signaled || strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory"):
		return fmt.Sprintf("took more than %d MiB of memory", readMemory>>20)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(stderr), "\n")
	return fmt.Sprintf("failed (%s: %s)", state, benchmarks.Short(first))
}

// atMost keeps the first bytes that are written to it. More than most bytes are an error, or are dropped.
type atMost struct {
	text        bytes.Buffer
	most        int
	drops, over bool
}

// Write keeps as much as fits.
func (w *atMost) Write(p []byte) (int, error) {
	room := w.most - w.text.Len()
	if len(p) <= room {
		return w.text.Write(p)
	}
	w.over = true
	_, _ = w.text.Write(p[:room])
	if w.drops {
		return len(p), nil
	}
	return room, io.ErrShortWrite
}
