package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/command"
	"parallelfs.dev/operator/internal/node/printed"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// said is the output of a run of the binary.
type said struct {
	code                    int
	stdout, stderr, message string
}

// node runs the binary with a termination log of its own.
func node(t *testing.T, args ...string) said {
	t.Helper()
	g := NewWithT(t)
	log := filepath.Join(t.TempDir(), "termination-log")
	g.Expect(os.WriteFile(log, nil, 0o600)).To(Succeed())
	t.Setenv("TERMINATION_LOG", log)
	var stdout, stderr bytes.Buffer
	code := command.Run(t.Context(), root(), args, &stdout, &stderr)
	message, err := os.ReadFile(log)
	g.Expect(err).NotTo(HaveOccurred())
	return said{code, stdout.String(), stderr.String(), string(message)}
}

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spec.json")
	NewWithT(t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
	return path
}

func encode(t *testing.T, v any) string {
	t.Helper()
	content, err := json.Marshal(v)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(content)
}

// verbs returns all commands that do something, by their words.
func verbs() map[string]*cobra.Command {
	found := map[string]*cobra.Command{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Runnable() {
			found[strings.TrimPrefix(c.CommandPath(), "node ")] = c
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root())
	return found
}

func TestEveryVerbIsThereAndTeaches(t *testing.T) {
	g := NewWithT(t)
	all := verbs()
	g.Expect(all).To(And(HaveLen(26), HaveKey("bench clock"), HaveKey("check"), HaveKey("guard"), HaveKey("serve"), HaveKey("check-served"), HaveKey("on-node"), HaveKey("reload"), HaveKey("export"), HaveKey("install"), HaveKey("run"), HaveKey("mount"), HaveKey("check-mount"), HaveKey("call"), HaveKey("await-empty"), HaveKey("configure"), HaveKey("manage"),
		HaveKey("probe"), HaveKey("bench run"), HaveKey("bench launch"), HaveKey("bench work"), HaveKey("bench rank"), HaveKey("bench local"), HaveKey("bench check"), HaveKey("bench clean")))
	top := node(t, "--help")
	g.Expect(top.code).To(BeZero())
	for name, c := range all {
		g.Expect(c.Short).NotTo(BeEmpty(), name)
		help := node(t, append(strings.Fields(name), "--help")...)
		g.Expect(help.code).To(BeZero())
		g.Expect(help.stdout).To(And(ContainSubstring("Usage:"), ContainSubstring("node "+name)))
		word, _, _ := strings.Cut(name, " ")
		g.Expect(top.stdout).To(ContainSubstring("\n  "+word), "the help of the whole lists %s", word)
	}
}

func TestEveryVerbRefusesASpecThatItCannotUnderstand(t *testing.T) {
	for name, c := range verbs() {
		if c.Flags().Lookup("spec") == nil {
			g := NewWithT(t)
			g.Expect(name).To(BeElementOf("bench clock", "call", "export", "guard", "install", "on-node", "reload"), "only these need no spec")
			continue
		}
		for what, content := range map[string]string{
			"a field that it does not know":   `{"color": "red"}`,
			"a text that is cut off":          `{"mount": {"pa`,
			"an empty file":                   ``,
			"more than one spec":              `{} {}`,
			"a number where a text should be": `{"path": 1, "owner": 1, "mount": 1, "backend": 1}`,
		} {
			t.Run(name+" refuses "+what, func(t *testing.T) {
				g := NewWithT(t)
				path := file(t, content)
				args := append(strings.Fields(name), "--spec", path)
				if name == "bench work" {
					args = append(args, "--", "true")
				}
				got := node(t, args...)
				g.Expect(got.code).To(Equal(1))
				g.Expect(got.stderr).To(HavePrefix("node " + name + ": can't understand the spec " + path))
				g.Expect(got.stderr).To(ContainSubstring("must be of the same version"))
				g.Expect(strings.Count(got.stderr, "\n")).To(Equal(1), "one sentence, and no usage")
			})
		}
	}
}

func TestASpecThatIsNotThereIsNamed(t *testing.T) {
	g := NewWithT(t)
	got := node(t, "run", "--spec", "/no-such/master.json")
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.stderr).To(And(ContainSubstring("/no-such/master.json"), ContainSubstring("the file that the operator rendered")))
	g.Expect(node(t, "run").stderr).To(ContainSubstring(`required flag(s) "spec" not set`))
	g.Expect(node(t, "destroy").stderr).To(ContainSubstring(`unknown command "destroy"`))
}

func TestAReasonGoesToTheTerminationMessage(t *testing.T) {
	g := NewWithT(t)
	got := node(t, "probe", "--spec", file(t, encode(t, spec.Probe{Backend: "Tape", IntervalSeconds: 5})))
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.message).To(ContainSubstring(`can't ask a filesystem of type "Tape", only BeeGFS, Lustre, MooseFS`))
	g.Expect(got.stderr).To(ContainSubstring(got.message))
}

func TestCheckMountReportsProblemsAndLeavesTheTerminationMessageAlone(t *testing.T) {
	g := NewWithT(t)
	got := node(t, "check-mount", "--spec", file(t, encode(t, spec.Mount{Path: t.TempDir(), FSType: "fuse"})))
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.stderr).To(ContainSubstring("is not mounted"))
	g.Expect(got.message).To(BeEmpty())
	g.Expect(node(t, "check-mount", "--spec", file(t, encode(t, spec.Mount{Path: "/proc", FSType: "proc"}))).code).To(BeZero())
}

func TestABenchmarkIsRefusedWhereNothingIsMounted(t *testing.T) {
	g, mount := NewWithT(t), t.TempDir()
	b := spec.Benchmark{
		Mount: spec.Mount{Path: mount, FSType: "fuse"}, Root: mount + "/.parallelfs-benchmarks/1", Directory: mount + "/.parallelfs-benchmarks/1/p0",
		Argv: []string{"true"}, TimeoutSeconds: 60,
	}
	for _, verb := range []string{"run", "clean"} {
		got := node(t, "bench", verb, "--spec", file(t, encode(t, b)))
		g.Expect(got.code).To(Equal(1))
		g.Expect(got.message).To(ContainSubstring("is not mounted"))
	}
	g.Expect(os.ReadDir(mount)).To(BeEmpty())
}

func TestABenchmarkWithoutRoomEndsWithACodeOfItsOwn(t *testing.T) {
	g := NewWithT(t)
	// The tool does not start, and /proc can't be written to: the request is refused before that.
	b := spec.Benchmark{
		Mount: spec.Mount{Path: "/proc", FSType: "proc"}, Root: "/proc/pool/.parallelfs-benchmarks/1", Directory: "/proc/pool/.parallelfs-benchmarks/1/p0",
		Argv: []string{"true"}, TimeoutSeconds: 60, NeedBytes: 1,
	}
	got := node(t, "bench", "run", "--spec", file(t, encode(t, b)))
	g.Expect(got.code).To(Equal(28))
	g.Expect(got.message).To(Equal("the repetition needs 1 bytes, and /proc has 0 free; make room, or make the benchmark smaller"))
	g.Expect(got.stderr).To(ContainSubstring(got.message))
}

func TestInstallCopiesTheBinary(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	for range 2 { // an init container may run again
		g.Expect(node(t, "install", directory).code).To(BeZero())
	}
	info, err := os.Stat(filepath.Join(directory, "node"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Mode()).To(BeEquivalentTo(0o755))
	own, err := os.Executable()
	g.Expect(err).NotTo(HaveOccurred())
	want, err := os.Stat(own)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(info.Size()).To(Equal(want.Size()))
	g.Expect(os.ReadDir(directory)).To(HaveLen(1))

	got := node(t, "install", "/no-such")
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.stderr).To(ContainSubstring("/no-such/node"))
}

func TestAGuardWaitsUntilItIsStopped(t *testing.T) {
	g := NewWithT(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int)
	go func() { ended <- command.Run(ctx, root(), []string{"guard"}, io.Discard, io.Discard) }()
	g.Consistently(ended, 50*time.Millisecond).ShouldNot(Receive())
	stop()
	g.Eventually(ended).WithTimeout(patience.Bound(time.Minute)).Should(Receive(Equal(0)))
}

func TestServeNamesWhatItCannotServe(t *testing.T) {
	g := NewWithT(t)
	t.Setenv("NODE_NAME", "n1")
	got := node(t, "serve", "--spec", file(t, encode(t, spec.Serve{Backend: "Tape", GraceSeconds: 60})))
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.message).To(ContainSubstring(`knows no filesystem of type "Tape" whose servers are mounts`))
	got = node(t, "check-served", "--spec", file(t, encode(t, spec.Serve{Backend: "Lustre", Daemon: "ost/ssd", NodeFile: "/no-such-file", GraceSeconds: 60})))
	g.Expect(got.code).To(Equal(1))
	g.Expect(got.stderr).To(ContainSubstring("/no-such-file is not there"))
	g.Expect(got.message).To(BeEmpty(), "the termination message is the server's")
	g.Expect(node(t, "on-node").stderr).To(ContainSubstring("requires at least 1 arg"))
}

func TestAProbeListensAtTheAddressOfItsNode(t *testing.T) {
	config := spec.Probe{Backend: "MooseFS", Version: "4.57.5", Address: "127.0.0.1:1", Listen: "$(NODE_IP):-1", KeyFile: "key", IntervalSeconds: 5}
	t.Setenv("NODE_IP", "127.0.0.7")
	g := NewWithT(t)
	g.Expect(node(t, "probe", "--spec", file(t, encode(t, config))).stderr).To(ContainSubstring("can't serve on 127.0.0.7:-1"))
	config.Listen = "$(NO_SUCH_VARIABLE):1"
	g.Expect(node(t, "probe", "--spec", file(t, encode(t, config))).stderr).To(ContainSubstring("NO_SUCH_VARIABLE is not set"))
}

func TestTheLastLineOfAnOutputHasTheLengthOfTheOutput(t *testing.T) {
	g := NewWithT(t)
	var out bytes.Buffer
	h := bench.Host{Stdout: &out, Stderr: io.Discard}
	g.Expect(counted(h, func(h bench.Host) error {
		_, _ = io.WriteString(h.Stdout, "1 MiB/s\n")
		_, _ = io.WriteString(h.Stderr, "warning\n")
		return nil
	})).To(Succeed())
	output, err := printed.Check(out.Bytes())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(output)).To(Equal("1 MiB/s\nwarning\n"), "both outputs in one order")

	out.Reset()
	g.Expect(counted(h, func(h bench.Host) error {
		_, _ = io.WriteString(h.Stdout, "begun\n")
		return &bench.ExitError{Code: 3}
	})).To(MatchError("the tool ended with exit code 3"))
	g.Expect(out.String()).To(Equal("begun\n"), "a tool that failed has no result to prove")
}
