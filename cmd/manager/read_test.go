package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/benchmarks/registry"
	"parallelfs.dev/operator/benchmarks/sweep"
	"parallelfs.dev/operator/benchmarks/tooltest"
	"parallelfs.dev/operator/controllers/benchmarkrun/reading"
	"parallelfs.dev/operator/controllers/benchmarkrun/turns"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/test/places"
)

// says prints the answer of a reader.
func says(text string) { _, _ = os.Stdout.WriteString(text) }

// bad holds readers that misbehave. Each runs in a process of its own, with the limits of a reader.
var bad = map[string]func(){
	"eats": func() {
		for all := []byte{1}; ; {
			all = append(all, all...)
		}
	},
	"never-ends": func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) },
	"is-killed":  func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) },
	"fails":      func() { panic("index out of range") },
	"long":       func() { says(`{"verdict":"` + strings.Repeat("x", reading.MaxAnswer) + `"}`) },
	"garbage":    func() { says("1 MiB/s") },
	"two":        func() { says(`{"verdict":"x"}{"verdict":"y"}`) },
	"other":      func() { says(`{"verdict":"x","size":1}`) },
	"negative":   func() { says(`{"samples":[{"name":"write","unit":"MiB/s","value":-1}]}`) },
	"nothing":    func() {},
	"cpu": func() {
		for n := 0; ; n++ {
			runtime.KeepAlive(n)
		}
	},
}

// TestMain runs as a reader if the manager starts this program as one.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == readVerb {
		if err := serveReading(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "manager:", err)
			os.Exit(1)
		}
		noteMemory()
		return
	}
	if len(os.Args) == 3 && bad[os.Args[1]] != nil {
		if err := confine(readMemory, readTime); err != nil {
			panic(err)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // the content does not matter
		bad[os.Args[1]]()
		return
	}
	os.Exit(m.Run())
}

// noteMemory writes the peak memory of this process, in KiB, to the file where its parent looks for it.
func noteMemory() {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	had, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	_ = os.WriteFile(memoryOf(os.Getppid()), []byte(had), 0o600)
}

func memoryOf(parent int) string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("reader-of-%d", parent))
}

// request returns a request for a custom tool that prints "speed N".
func request() reading.Request {
	spec := &v1alpha1.BenchmarkRunSpec{Tool: v1alpha1.ToolCustom, Custom: &v1alpha1.CustomSpec{Metrics: []v1alpha1.CustomMetric{
		{Name: "speed", Unit: "MiB/s", Regex: "speed ([0-9]+)", Combine: v1alpha1.CustomSum},
	}}}
	return reading.Request{Spec: spec, Point: benchmarks.Point{Parameters: map[v1alpha1.SweepName]string{"processes": "1"}}}
}

// printing returns the outputs of pods, whose parts are stored as the manager stores them.
func printing(raw *turns.Raw, logs ...[]byte) reading.Outputs {
	return func(yield func(io.Reader, error) bool) {
		for _, log := range logs {
			if !yield(io.TeeReader(bytes.NewReader(log), raw), nil) {
				return
			}
		}
	}
}

func TestAReaderAnswersWithTheResult(t *testing.T) {
	g := NewWithT(t)
	answer, err := newReaders().read(t.Context(), request(), printing(&turns.Raw{}, printed.Log([]byte("parallelfs: ready\nspeed 812\n"))))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer).To(Equal(reading.Answer{Samples: []benchmarks.Sample{{Name: "speed", Unit: "MiB/s", Value: 812}}}))
	answer, err = newReaders().read(t.Context(), request(), printing(&turns.Raw{}, printed.Log([]byte("speed 812\n"))[2:]))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(answer.Verdict).To(HavePrefix("printed 10 bytes, and 8 of 10 are left"))
	g.Expect(answer.Tail).To(HavePrefix("eed 812\n"))
}

func TestTheEndOfAReaderIsReported(t *testing.T) {
	for verb, ends := range map[string]string{
		"eats":       "took more than 240 MiB of memory",
		"never-ends": "took more than 1s",
		"cpu":        "took more than 1s",
		"is-killed":  "took more than 240 MiB of memory",
		"fails":      "failed (exit status 2: panic: index out of range",
		"long":       "gave more than 256 KiB of results",
		"garbage":    "gave no document of results: it is no document of this form",
		"two":        "gave no document of results: something follows the document",
		"other":      `gave no document of results: it is no document of this form: json: unknown field "size"`,
		"negative":   "gave no document of results: write is -1, which is no measured value",
		"nothing":    "gave no document of results",
	} {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			g := NewWithT(t)
			r := newReaders()
			r.verb = verb
			if strings.HasSuffix(ends, " 1s") {
				r.time = time.Second
			}
			answer, err := r.read(t.Context(), request(), printing(&turns.Raw{}, printed.Log([]byte("speed 812\n"))))
			var ended *reading.EndedError
			g.Expect(errors.As(err, &ended)).To(BeTrue(), "%v", err)
			g.Expect(err).To(MatchError(HavePrefix(ends)))
			g.Expect(answer).To(Equal(reading.Answer{}))
			g.Expect(r.slots).To(BeEmpty(), "the next one can be read")
		})
	}
}

func TestAnOutputThatDoesNotComeIsNoFaultOfItsReader(t *testing.T) {
	g := NewWithT(t)
	lost := errors.New("connection reset")
	_, err := newReaders().read(t.Context(), request(), func(yield func(io.Reader, error) bool) {
		_ = yield(strings.NewReader("speed 812\n"), nil) && yield(nil, lost)
	})
	g.Expect(err).To(MatchError(lost))
	_, err = newReaders().read(t.Context(), request(), printing(&turns.Raw{}, nil))
	g.Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = newReaders().read(ctx, request(), printing(&turns.Raw{}, nil))
	g.Expect(err).To(MatchError(context.Canceled))
}

// The total allocations of the manager while it reads an output, in MiB, and the peak memory of a reader.
const maxManager, maxReader = 8, 256

// sampleOf returns what a tool has printed in a good run.
func sampleOf(t *testing.T, tool string) []byte {
	t.Helper()
	files, err := filepath.Glob("../../benchmarks/" + strings.ToLower(tool) + "/testdata/*.*")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	files = slices.DeleteFunc(files, func(file string) bool { return strings.Contains(file, "error") })
	NewWithT(t).Expect(files).NotTo(BeEmpty(), tool)
	text, err := os.ReadFile(files[0])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

func TestReadingAHostileOutputCostsTheManagerLittle(t *testing.T) {
	g := NewWithT(t)
	t.Cleanup(func() { _ = os.Remove(memoryOf(os.Getpid())) })
	tools := slices.Sorted(maps.Keys(registry.Tools()))
	var cases []struct {
		tool, output string
		prints       func() []byte
	}
	for _, tool := range tools {
		hostile := tooltest.Hostile(sampleOf(t, string(tool)))
		for _, output := range slices.Sorted(maps.Keys(hostile)) {
			cases = append(cases, struct {
				tool, output string
				prints       func() []byte
			}{string(tool), output, hostile[output]})
		}
	}
	// A random output of each tool, or all of them. Times depend on the load of the machine, so they are printed and not limited here.
	var table strings.Builder
	for _, i := range places.Contracts.Some(t, len(cases), len(tools)) {
		of := cases[i]
		r := request()
		r.Spec.Tool = v1alpha1.BenchmarkTool(of.tool)
		if points, err := sweep.Expand(registry.Tools()[r.Spec.Tool], r.Spec); err == nil {
			r.Point = points[0]
		}
		output := of.prints()
		log := printed.Log(output[:min(len(output), benchmarks.MaxOutput-1<<10)])
		var raw turns.Raw
		var before, after runtime.MemStats
		var begun, ended syscall.Rusage
		runtime.ReadMemStats(&before)
		g.Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &begun)).To(Succeed())
		began := time.Now()
		answer, err := newReaders().read(t.Context(), r, printing(&raw, log))
		took := time.Since(began)
		g.Expect(syscall.Getrusage(syscall.RUSAGE_SELF, &ended)).To(Succeed())
		runtime.ReadMemStats(&after)
		g.Expect(err).NotTo(HaveOccurred(), "%s reads %s", of.tool, of.output)
		g.Expect(answer.Verdict).NotTo(BeEmpty(), "%s reads %s", of.tool, of.output)
		g.Expect(len(answer.Verdict)).To(BeNumerically("<=", 1<<10+100), "%s reads %s", of.tool, of.output)
		allocated := (after.TotalAlloc - before.TotalAlloc) / (1 << 20)
		g.Expect(allocated).To(BeNumerically("<=", maxManager), "MiB, as %s reads %s", of.tool, of.output)
		had, err := os.ReadFile(memoryOf(os.Getpid()))
		g.Expect(err).NotTo(HaveOccurred())
		memory, err := strconv.Atoi(string(had))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(memory>>10).To(BeNumerically("<=", maxReader), "MiB of the reader, as %s reads %s", of.tool, of.output)
		cpu := time.Duration(ended.Utime.Nano() + ended.Stime.Nano() - begun.Utime.Nano() - begun.Stime.Nano())
		fmt.Fprintf(&table, "%s, %.60s: manager %d MiB, %s of CPU; reader %d MiB; %s in all: %.80s\n", of.tool, of.output,
			allocated, cpu.Round(time.Millisecond), memory>>10, took.Round(time.Millisecond), answer.Verdict)
	}
	t.Log("\n" + table.String())
}
