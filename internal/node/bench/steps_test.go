package bench_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/spec"
)

func TestAToolReadsItsStandardInputAndItsFiles(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script(`cat; cat "$0" "$1"`)
	b.Stdin = "set location $(DIRECTORY)\n"
	b.Argv = append(b.Argv, "$(HOSTS_FILE)", "$(DIRECTORY)/deep/jobs")
	b.Files = []spec.BenchmarkFile{
		{Text: "begin $(HOSTS_FILE)\n", PerHost: "$(HOST) has $(PROCESSES)\n", End: "end\n"},
		{Path: "$(DIRECTORY)/deep/jobs", Text: "directory=$(DIRECTORY)\n"},
	}
	b.Placement = []int{4}
	g.Expect(bench.Run(t.Context(), b, c.host())).To(Succeed())
	g.Expect(c.output.String()).To(Equal(fmt.Sprintf("set location %s\nbegin %s\nlocalhost has 4\nend\ndirectory=%s\n",
		b.Directory, filepath.Join(c.temporary, "hosts"), b.Directory)))
}

func TestAToolThatDoesNotReadItsStandardInputIsNotKeptByIt(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("exit 3")
	b.Stdin = strings.Repeat("quit\n", 1<<16)
	g.Expect(code(bench.Run(t.Context(), b, c.host()))).To(Equal(3))
}

func TestAFileIsNotWrittenThroughALink(t *testing.T) {
	for name, c := range map[string]struct {
		path   string
		make   func(g Gomega, at *client, b spec.Benchmark)
		reason string
	}{
		"that has its name, which is replaced": {
			path: "$(DIRECTORY)/jobs",
			make: func(g Gomega, at *client, b spec.Benchmark) {
				g.Expect(os.Symlink(at.path("home", "anna", "thesis.tex"), filepath.Join(b.Directory, "jobs"))).To(Succeed())
			},
		},
		"on the way to it": {
			path: "$(DIRECTORY)/link/thesis.tex", reason: "a symbolic link is not followed",
			make: func(g Gomega, at *client, b spec.Benchmark) {
				g.Expect(os.Symlink(at.path("home", "anna"), filepath.Join(b.Directory, "link"))).To(Succeed())
			},
		},
		"out of the directory for temporary files": {
			path: "TEMPORARY/link/passwd", reason: "can't write the tool's file",
			make: func(g Gomega, at *client, _ spec.Benchmark) {
				g.Expect(os.Symlink(at.outside, filepath.Join(at.temporary, "link"))).To(Succeed())
			},
		},
		"by ..": {
			path: "$(DIRECTORY)/../../../../home/anna/thesis.tex", reason: "it would lie neither",
			make: func(Gomega, *client, spec.Benchmark) {},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			b := at.script("true")
			// The directory belongs to an earlier step, so it may contain files.
			b.KeepBefore = true
			g.Expect(os.MkdirAll(b.Directory, 0o755)).To(Succeed())
			c.make(g, at, b)
			b.Files = []spec.BenchmarkFile{{Path: strings.ReplaceAll(c.path, "TEMPORARY", at.temporary), Text: "overwritten"}}
			err := bench.Run(t.Context(), b, at.host())
			if c.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
		})
	}
}

func TestStepsOfARepetitionShareADirectory(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	first := c.script("echo data > file")
	first.KeepAfter = true
	g.Expect(bench.Run(t.Context(), first, c.host())).To(Succeed())
	second := c.script("cat file")
	second.KeepBefore, second.KeepAfter = true, true
	g.Expect(bench.Run(t.Context(), second, c.host())).To(Succeed())
	g.Expect(c.output.String()).To(Equal("data\n"))
	g.Expect(bench.Work(t.Context(), second, []string{"true"}, c.host())).To(MatchError(ContainSubstring("became the command")), "a worker finds it too")
	g.Expect(filepath.Join(second.Directory, "file")).To(BeARegularFile())
	last := c.script("rm file")
	last.KeepBefore = true
	g.Expect(bench.Run(t.Context(), last, c.host())).To(Succeed())
	g.Expect(last.Directory).NotTo(BeADirectory())

	g.Expect(bench.Run(t.Context(), second, c.host())).To(MatchError(ContainSubstring("run the repetition again from its first step")))
	g.Expect(bench.Work(t.Context(), second, []string{"true"}, c.host())).To(MatchError(ContainSubstring("run the repetition again from its first step")))
	g.Expect(second.Directory).NotTo(BeADirectory())
}

func TestAStepThatFailsLeavesNothingForTheNext(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("echo data > file; exit 5")
	b.KeepAfter = true
	g.Expect(code(bench.Run(t.Context(), b, c.host()))).To(Equal(5))
	g.Expect(b.Directory).NotTo(BeADirectory())
}

func TestOneRepetitionIsRemovedAlone(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("")
	other := filepath.Join(b.Root, "p1-r1")
	for _, directory := range []string{filepath.Join(b.Directory, "deep"), other} {
		g.Expect(os.MkdirAll(directory, 0o755)).To(Succeed())
	}
	for range 2 {
		g.Expect(bench.CleanRepetition(t.Context(), b, c.host())).To(Succeed())
		g.Expect(b.Directory).NotTo(BeADirectory())
		g.Expect(other).To(BeADirectory())
	}
	b.Directory = b.Root
	g.Expect(bench.CleanRepetition(t.Context(), b, c.host())).To(MatchError(ContainSubstring("is not below the run's own")))
	g.Expect(other).To(BeADirectory())
}

func TestWithoutRoomNothingIsStarted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *spec.Benchmark)
		reason string
	}{
		"for the data":  {func(b *spec.Benchmark) { b.NeedBytes = math.MaxInt64 }, "the repetition needs 9223372036854775807 bytes, and "},
		"for the files": {func(b *spec.Benchmark) { b.NeedInodes = math.MaxInt64 }, "the repetition needs 9223372036854775807 inodes, and "},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			b := at.script("echo the tool ran")
			c.change(&b)
			before := tree(t, at.mount)
			for what, err := range map[string]error{
				"on a client": bench.Run(t.Context(), b, at.host()),
				"on a worker": bench.Work(t.Context(), b, []string{"true"}, at.host()),
			} {
				g.Expect(code(err)).To(Equal(28), what)
				g.Expect(err).To(MatchError(And(ContainSubstring(c.reason), ContainSubstring("free; make room"))), what)
			}
			g.Expect(at.output.String()).To(BeEmpty())
			g.Expect(at.execed).To(BeNil())
			g.Expect(tree(t, at.mount)).To(Equal(before))

			// A later step finds the data of the first.
			g.Expect(os.MkdirAll(b.Directory, 0o755)).To(Succeed())
			b.KeepBefore = true
			g.Expect(bench.Run(t.Context(), b, at.host())).To(Succeed())
		})
	}
	t.Run("but with room it is", func(t *testing.T) {
		g, at := NewWithT(t), newClient(t)
		b := at.script("echo the tool ran")
		b.NeedBytes, b.NeedInodes = 1, 1
		g.Expect(bench.Run(t.Context(), b, at.host())).To(Succeed())
		g.Expect(at.output.String()).To(Equal("the tool ran\n"))
	})
}

func TestACheckPrintsWhatItFound(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	passwd := filepath.Join(c.temporary, "passwd")
	g.Expect(os.WriteFile(passwd, []byte("root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"), 0o600)).To(Succeed())
	b := c.script("")
	b.Programs = []string{"sh", "/bin/sh", "no-such-program", "/no/such/program"}
	b.Users = []string{"root", "sshd", "examplefs"}
	b.VersionArgv = []string{"sh", "-c", `echo; echo "  tool 4.0.0  " >&2; echo more`}
	before := tree(t, c.mount)
	got := check(t, c, b, passwd)
	g.Expect(got.Version).To(Equal("tool 4.0.0"))
	g.Expect(got.MissingPrograms).To(Equal([]string{"no-such-program", "/no/such/program"}))
	g.Expect(got.MissingUsers).To(Equal([]string{"examplefs"}))
	g.Expect(got.FreeBytes).To(BeNumerically(">", 0))
	g.Expect(got.FreeInodes).NotTo(BeZero())
	g.Expect(got.Problem).To(BeEmpty())
	g.Expect(tree(t, c.mount)).To(Equal(before))
}

func TestACheckReportsWhatItCannotFindOut(t *testing.T) {
	for name, argv := range map[string][]string{
		"a tool that fails": {"sh", "-c", "echo 4.0.0; exit 1"}, "no tool": {"no-such-program"}, "a silent tool": {"true"}, "nothing": nil,
	} {
		t.Run("of the version, with "+name, func(t *testing.T) {
			g, c := NewWithT(t), newClient(t)
			b := c.script("")
			b.VersionArgv, b.Users = argv, []string{"root"}
			c.mounted = errors.New("/mnt/scratch is not mounted")
			got := check(t, c, b, "/no-such/passwd")
			g.Expect(got).To(Equal(spec.Checked{MissingUsers: []string{"root"}, Problem: "/mnt/scratch is not mounted"}))
		})
	}
}

// check expects one line of JSON.
func check(t *testing.T, c *client, b spec.Benchmark, passwd string) (got spec.Checked) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(bench.Check(t.Context(), b, passwd, c.host())).To(Succeed())
	g.Expect(strings.Count(c.output.String(), "\n")).To(Equal(1))
	g.Expect(json.Unmarshal([]byte(c.output.String()), &got)).To(Succeed())
	return got
}
