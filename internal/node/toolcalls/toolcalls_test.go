package toolcalls_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/node/toolcalls"
)

// TestMain implements the verb by which the node binary runs a program of the node.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == spec.OnNode {
		_, _ = fmt.Fprintln(os.Stdout, "on the node:", strings.Join(os.Args[2:], " "))
		os.Exit(len(os.Args) - 3)
	}
	os.Exit(m.Run())
}

// run makes calls with this time limit, and returns what they showed.
func run(ctx context.Context, t *testing.T, seconds int64, calls ...spec.ManageCall) (string, error) {
	t.Helper()
	checked, err := toolcalls.Check(spec.Manage{Calls: calls, TimeoutSeconds: seconds})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var output bytes.Buffer
	err = toolcalls.Run(ctx, checked, &output)
	return output.String(), err
}

func shell(name, script string, args ...string) spec.ManageCall {
	return spec.ManageCall{Name: name, Argv: append([]string{"sh", "-c", script, "sh"}, args...)}
}

func TestCallsAreMadeInOrderAndOnlyNamedOnesAreShown(t *testing.T) {
	g := NewWithT(t)
	text, err := run(t.Context(), t, 60, shell("write", "echo one; echo two >&2"), shell("", "echo three"), shell("read", "printf four"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal("one\ntwo\nparallelfs: write has ended\nfour\nparallelfs: read has ended\n"))
}

func TestACallIsRepeatedWhileItsOutputAsksForIt(t *testing.T) {
	g := NewWithT(t)
	count := filepath.Join(t.TempDir(), "count")
	c := shell("status", `echo x >> "$1"; if [ $(wc -l < "$1") -lt 2 ]; then echo "Running:  2"; else echo "Finished: 2"; fi`, count)
	c.While = "^Running: "
	text, err := run(t.Context(), t, 60, c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal("Finished: 2\nparallelfs: status has ended\n"), "only the last try is shown")
}

func TestCleanupsRunAfterAFailure(t *testing.T) {
	g := NewWithT(t)
	made := filepath.Join(t.TempDir(), "made")
	tidy := shell("clean", `echo clean > "$1"`, made)
	tidy.Always = true
	failing := shell("write", "echo 'Some errors occurred:'")
	failing.Fails = "^Some errors occurred:"
	text, err := run(t.Context(), t, 60, failing, shell("read", "echo never"), tidy)
	g.Expect(err).To(MatchError("sh says that it failed"))
	g.Expect(text).To(Equal("Some errors occurred:\nparallelfs: sh says that it failed\nparallelfs: clean has ended\n"))
	g.Expect(made).To(BeAnExistingFile())
}

func TestAnExitCodeIsAFailureUnlessItMay(t *testing.T) {
	g := NewWithT(t)
	may := shell("stop", "exit 3")
	may.MayFail = true
	text, err := run(t.Context(), t, 60, may, shell("go", "echo on"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(text).To(Equal("parallelfs: sh ended with exit code 3; going on\non\nparallelfs: go has ended\n"))
	_, err = run(t.Context(), t, 60, shell("x", "exit 3"))
	g.Expect(err).To(MatchError("sh ended with exit code 3"))
	_, err = run(t.Context(), t, 60, spec.ManageCall{Argv: []string{"/no-such-program"}})
	g.Expect(err).To(MatchError(ContainSubstring("can't start /no-such-program")))
}

func TestTheEndOfTheTimeIsAnExitCodeAndTidiesUp(t *testing.T) {
	g := NewWithT(t)
	made := filepath.Join(t.TempDir(), "made")
	tidy := shell("clean", `echo clean > "$1"`, made)
	tidy.Always = true
	text, err := run(t.Context(), t, 1, shell("write", "exec sleep 600"), tidy)
	var ended *bench.ExitError
	g.Expect(errors.As(err, &ended)).To(BeTrue())
	g.Expect(ended.Code).To(Equal(bench.TimedOut))
	g.Expect(text).To(And(ContainSubstring("parallelfs: the calls are ended after 1s (pointTimeout)\n"), HaveSuffix("parallelfs: clean has ended\n")))
	g.Expect(made).To(BeAnExistingFile())
}

func TestAPodThatIsStoppedTidiesUp(t *testing.T) {
	g := NewWithT(t)
	directory := t.TempDir()
	started, made := filepath.Join(directory, "started"), filepath.Join(directory, "made")
	tidy := shell("clean", `echo clean > "$1"`, made)
	tidy.Always = true
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		for {
			if _, err := os.Stat(started); err == nil {
				stop()
				return
			}
			<-time.After(time.Millisecond)
		}
	}()
	text, err := run(ctx, t, 600, shell("write", `echo > "$1"; exec sleep 600`, started), tidy)
	g.Expect(err).To(MatchError(context.Canceled))
	g.Expect(text).To(ContainSubstring("parallelfs: the calls are ended because their pod is being stopped\n"))
	g.Expect(made).To(BeAnExistingFile())
}

func TestInvalidCallsAreRefused(t *testing.T) {
	for says, m := range map[string]spec.Manage{
		"timeoutSeconds is 0":     {Calls: []spec.ManageCall{{Argv: []string{"true"}}}},
		"there are no calls":      {TimeoutSeconds: 1},
		"call 1 has no program":   {TimeoutSeconds: 1, Calls: []spec.ManageCall{{}}},
		"call 1: error parsing r": {TimeoutSeconds: 1, Calls: []spec.ManageCall{{Argv: []string{"true"}, While: "("}}},
	} {
		_, err := toolcalls.Check(m)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(says)))
	}
}

func TestCallsOfTheNodesOwnToolsAreMadeOnTheNode(t *testing.T) {
	g := NewWithT(t)
	calls, err := toolcalls.Check(spec.Manage{Host: true, TimeoutSeconds: 60, Calls: []spec.ManageCall{{Name: "list", Argv: []string{"lctl"}}, {Argv: []string{"lctl", "dl"}}}})
	g.Expect(err).NotTo(HaveOccurred())
	var output bytes.Buffer
	g.Expect(toolcalls.Run(t.Context(), calls, &output)).To(MatchError("lctl ended with exit code 1"))
	g.Expect(output.String()).To(And(ContainSubstring("on the node: lctl\nparallelfs: list has ended"), ContainSubstring("on the node: lctl dl\n")))
}
