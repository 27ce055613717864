package process_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/process"
	"parallelfs.dev/operator/test/patience"
)

func start(t *testing.T, o process.Options, script string) *process.Child {
	t.Helper()
	child, err := process.Start([]string{"sh", "-c", script}, o)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	t.Cleanup(child.Kill)
	return child
}

// pidIn waits for a script to write a process id into the file.
func pidIn(t *testing.T, path string) int {
	t.Helper()
	var pid int
	NewWithT(t).Eventually(func() (err error) {
		content, err := os.ReadFile(path)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(content)))
		}
		return err
	}).WithTimeout(patience.Bound(time.Minute)).Should(Succeed())
	return pid
}

// running is false for a process that has ended, even if its parent has not waited for it yet.
func running(pid int) bool {
	s := state(pid)
	return s != "" && s != "Z"
}

// state returns the state letter of proc_pid_stat(5). It is empty if the process does not exist.
func state(pid int) string {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(content), ") ")
	return rest[:1]
}

func TestCode(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   int
	}{
		"a program that ends well has code 0":               {"exit 0", 0},
		"a program's own code is kept":                      {"exit 7", 7},
		"a program that is killed has 128 and the signal":   {"kill -KILL $$", 137},
		"a child that keeps the output open does not count": {"sleep 600 & exit 3", 3},
	} {
		t.Run(name, func(t *testing.T) {
			g, output := NewWithT(t), &bytes.Buffer{}
			child := start(t, process.Options{Stdout: output}, c.script)
			g.Expect(child.Code()).To(Equal(c.code))
		})
	}
}

func TestStopEndsTheWholeGroup(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	// Both ignore SIGTERM, so that only the kill of the group ends them.
	child := start(t, process.Options{Directory: directory}, `trap "" TERM; sleep 600 & echo $! > grandchild; wait; sleep 600`)
	grandchild := pidIn(t, filepath.Join(directory, "grandchild"))
	child.Stop(time.Millisecond)
	g.Expect(child.Code()).To(Equal(128 + int(syscall.SIGKILL)))
	g.Eventually(running).WithArguments(grandchild).WithTimeout(patience.Bound(time.Minute)).Should(BeFalse())
}

func TestStopWaitsForAProgramToEnd(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	child := start(t, process.Options{Directory: directory}, `trap "echo bye > said; exit 5" TERM; echo $$ > own; while :; do sleep 0.01; done`)
	pidIn(t, filepath.Join(directory, "own"))
	child.Stop(time.Minute)
	g.Expect(child.Code()).To(Equal(5))
	g.Expect(os.ReadFile(filepath.Join(directory, "said"))).To(BeEquivalentTo("bye\n"))
}

func TestKillEndsWhatAProgramLeftRunning(t *testing.T) {
	g, directory := NewWithT(t), t.TempDir()
	child := start(t, process.Options{Directory: directory}, "sleep 600 & echo $! > grandchild")
	g.Expect(child.Code()).To(Equal(0))
	grandchild := pidIn(t, filepath.Join(directory, "grandchild"))
	g.Expect(running(grandchild)).To(BeTrue())
	child.Kill()
	g.Eventually(running).WithArguments(grandchild).WithTimeout(patience.Bound(time.Minute)).Should(BeFalse())
}

func TestAProgramThatIsNotThereIsAnErrorThatNamesIt(t *testing.T) {
	g := NewWithT(t)
	_, err := process.Start([]string{"no-such-program"}, process.Options{})
	g.Expect(err).To(MatchError(ContainSubstring("can't start no-such-program")))
	_, err = process.Start(nil, process.Options{})
	g.Expect(err).To(MatchError(ContainSubstring("no command")))
}

func TestTail(t *testing.T) {
	g, tail := NewWithT(t), &process.Tail{}
	for i := range 1000 {
		_, err := fmt.Fprintf(tail, "line %d\n\n  \n", i)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(tail.Lines(2)).To(Equal("line 998\nline 999"))
	g.Expect(strings.Count(tail.Lines(1000), "\n")).To(BeNumerically("<", 300), "only the end is kept")
	g.Expect((&process.Tail{}).Lines(3)).To(BeEmpty())

	_, err := tail.Write([]byte("\x1b[1;93mcan't connect\x1b(B\x1b[m\n\x1b(B\x1b[m\n"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(tail.Lines(1)).To(Equal("can't connect"), "without the colors of a terminal")
}

func TestAFileThatIsPassedToAChildStaysOpenInIt(t *testing.T) {
	g := NewWithT(t)
	file, err := os.CreateTemp(t.TempDir(), "lock")
	g.Expect(err).NotTo(HaveOccurred())
	var stdout bytes.Buffer
	child := start(t, process.Options{Stdout: &stdout, Files: []*os.File{file}}, "readlink /proc/self/fd/3")
	g.Expect(file.Close()).To(Succeed())
	g.Expect(child.Code()).To(BeZero())
	g.Expect(stdout.String()).To(Equal(file.Name() + "\n"))
}
