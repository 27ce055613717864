package bench_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/spec"
)

// ranks runs all processes of a launch, as mpirun does, and returns their errors.
func ranks(t *testing.T, c *client, b spec.Benchmark, count int) []error {
	t.Helper()
	b.Placement = []int{count}
	errs := make([]error, count)
	var all sync.WaitGroup
	for number := range count {
		all.Go(func() {
			h := c.host()
			h.Environment = append(os.Environ(), "PARALLELFS_LAUNCH="+t.Name()[:4], fmt.Sprintf("PMIX_RANK=%d", number))
			errs[number] = bench.Rank(t.Context(), b, h)
		})
	}
	all.Wait()
	return errs
}

func TestProcessesRunInDirectoriesOfTheirOwn(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script(`cat; echo "$0 $1"; pwd; ls; touch done; printf end; [ $0 != 1 ] || exec echo warning >&2`)
	b.Argv = append(b.Argv, "$(RANK)", "$(DIRECTORY)")
	b.Stdin = "rank $(RANK)\n"
	// This is a leftover of an earlier attempt.
	g.Expect(os.MkdirAll(filepath.Join(b.Directory, "rank-1", "old"), 0o755)).To(Succeed())
	for _, err := range ranks(t, c, b, 3) {
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(c.output.String()).To(BeEmpty(), "standard output would be a terminal under mpirun")
	parts, err := benchmarks.SplitRanks([]byte(c.said.String()), 3)
	g.Expect(err).NotTo(HaveOccurred())
	for number, part := range parts {
		own := fmt.Sprintf("%s/rank-%d", b.Directory, number)
		if number == 1 {
			g.Expect(string(part)).To(ContainSubstring("warning\n"), "at some place: standard error is another pipe")
			part = bytes.Replace(part, []byte("warning\n"), nil, 1)
		}
		g.Expect(string(part)).To(Equal(fmt.Sprintf("rank %d\n%d %s\n%s\nend\n", number, number, own, own)))
		g.Expect(filepath.Join(own, "done")).To(BeARegularFile(), "the launcher's run is over when all have ended; Clean removes it")
	}
}

func TestAProcessOfALaterStepFindsItsDirectory(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b := c.script("cat file")
	b.KeepBefore = true
	own := filepath.Join(b.Directory, "rank-0")
	g.Expect(os.MkdirAll(own, 0o755)).To(Succeed())
	g.Expect(os.WriteFile(filepath.Join(own, "file"), []byte("data\n"), 0o600)).To(Succeed())
	g.Expect(ranks(t, c, b, 1)).To(Equal([]error{nil}))
	g.Expect(c.said.String()).To(Equal("[rank 0] data\n[rank 0 ended with exit code 0]\n"))
}

func TestAProcessReportsHowItEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(at *client, b *spec.Benchmark)
		code   int
		said   string
	}{
		"with the exit code of the tool": {
			func(_ *client, b *spec.Benchmark) { b.Argv[2] = "echo out; exit 7" }, 7,
			"[rank 0] out\n[rank 0 ended with exit code 7]\n",
		},
		"when its line is too long": {
			func(_ *client, b *spec.Benchmark) {
				b.Argv[2] = "echo before; head -c 5000 /dev/zero | tr '\\0' x; echo; echo after"
			}, 1,
			"[rank 0] before\n[rank 0] after\nparallelfs: process 0 can't be measured: it printed a line of more than 4000 bytes, " +
				"which can't be kept apart from those of other processes; have it print shorter lines, or run it in one process\n[rank 0 ended with exit code 1]\n",
		},
		"when its last line is too long": {
			func(_ *client, b *spec.Benchmark) { b.Argv[2] = "head -c 4001 /dev/zero | tr '\\0' x" }, 1,
			"parallelfs: process 0 can't be measured: it printed a line of more than 4000 bytes, " +
				"which can't be kept apart from those of other processes; have it print shorter lines, or run it in one process\n[rank 0 ended with exit code 1]\n",
		},
		"when there is no room": {
			func(_ *client, b *spec.Benchmark) { b.NeedInodes = 1 << 60 }, 28, "[rank 0 ended with exit code 28]\n",
		},
		"when the filesystem is not mounted": {
			func(at *client, _ *spec.Benchmark) { at.mounted = fmt.Errorf("/mnt/scratch is not mounted") }, 1,
			"parallelfs: process 0: /mnt/scratch is not mounted\n[rank 0 ended with exit code 1]\n",
		},
		"when its time is over": {
			func(_ *client, b *spec.Benchmark) { b.Argv[2], b.TimeoutSeconds = "echo half a table; sleep 600", 1 }, 124,
			"[rank 0] half a table\n[rank 0 ended with exit code 124]\n",
		},
		"when the directory is elsewhere": {
			func(at *client, b *spec.Benchmark) { b.Directory = at.path("home", "anna") }, 1, "[rank 0 ended with exit code 1]\n",
		},
		"when its own directory is a link": {
			func(at *client, b *spec.Benchmark) {
				b.KeepBefore = true
				_ = os.MkdirAll(b.Directory, 0o755)
				_ = os.Symlink(at.path("home", "anna"), filepath.Join(b.Directory, "rank-0"))
			}, 1, "[rank 0 ended with exit code 1]\n",
		},
		"when an earlier step left no directory for it": {
			func(_ *client, b *spec.Benchmark) { b.KeepBefore = true }, 1, "[rank 0 ended with exit code 1]\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			b := at.script("echo the tool ran")
			c.change(at, &b)
			g.Expect(code(ranks(t, at, b, 1)[0])).To(Equal(c.code))
			said := at.said.String()
			if strings.HasPrefix(c.said, "[rank 0 ended") {
				g.Expect(said).To(HavePrefix("parallelfs: process 0: "))
				g.Expect(said).NotTo(ContainSubstring("the tool ran"))
			} else {
				said = strings.ReplaceAll(said, "parallelfs: the tool is ended after 1s (pointTimeout)\n", "")
			}
			g.Expect(said).To(HaveSuffix(c.said))
			_, err := benchmarks.SplitRanks([]byte(said), 1)
			g.Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("ended with exit code %d", c.code))))
		})
	}
}

func TestNoProcessBeginsBeforeTheOthersAreThere(t *testing.T) {
	t.Parallel()
	g, c := NewWithT(t), newClient(t)
	b := c.script("echo the tool ran")
	b.Placement, b.TimeoutSeconds = []int{1, 1}, 1
	h := c.host()
	h.Environment = append(os.Environ(), "PARALLELFS_LAUNCH=now", "OMPI_COMM_WORLD_RANK=1")
	// Leftovers of another launch don't count.
	g.Expect(os.MkdirAll(filepath.Join(b.Directory, ".start-before", "0"), 0o755)).To(Succeed())
	g.Expect(code(bench.Rank(t.Context(), b, h))).To(Equal(1))
	g.Expect(c.said.String()).To(Equal("parallelfs: process 1: 1 of 2 processes have begun after 1s ([1]); look at the workers' pods\n[rank 1 ended with exit code 1]\n"))
}

func TestAProcessWithoutANumberDoesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		environment []string
		reason      string
	}{
		"when nobody gave it one":    {nil, "says which of several processes this is"},
		"when it is none":            {[]string{"PMI_RANK=first"}, `PMI_RANK is "first"`},
		"when it is less than none":  {[]string{"PMIX_RANK=-1"}, `PMIX_RANK is "-1"`},
		"when it is greater than it": {[]string{"PMIX_RANK=2"}, ""},
		"when the launch has none":   {[]string{"PMIX_RANK=0"}, ""},
		"when the launch is a path":  {[]string{"PMIX_RANK=0", "PARALLELFS_LAUNCH=../x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newClient(t)
			b, h := at.script("echo the tool ran"), at.host()
			b.Placement, h.Environment = []int{1, 1}, c.environment
			err := bench.Rank(t.Context(), b, h)
			if c.reason != "" {
				g.Expect(err).To(MatchError(ContainSubstring(c.reason)))
			} else {
				g.Expect(code(err)).To(Equal(1))
				g.Expect(at.said.String()).To(ContainSubstring("parallelfs: process "))
			}
			g.Expect(at.said.String()).NotTo(ContainSubstring("the tool ran"))
		})
	}
}

// server is a node with these targets.
func (c *client) server(targets ...string) (spec.Benchmark, bench.Host) {
	h := c.host()
	h.Environment = append(h.Environment, "NODE_NAME=oss-1")
	return spec.Benchmark{TimeoutSeconds: 60, Targets: map[string][]string{"oss-1": targets, "oss-2": {"x-OST0009"}}}, h
}

func TestAToolOfAServerRunsInNoFileSystem(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b, h := c.server("x-OST0000", "x-OST0003")
	b.Argv, b.Env = []string{"sh", "-c", `echo "$0"; echo "$place"; pwd; ls; echo "$of"; touch file`, "$(RANK)"}, []string{"of=$(TARGETS)", "place=$(DIRECTORY)"}
	g.Expect(bench.Local(t.Context(), b, 2, h)).To(Succeed())
	parts := strings.Split(c.output.String(), "\n")
	g.Expect(parts).To(HaveLen(6))
	directory := strings.TrimPrefix(parts[1], "[rank 2] ")
	g.Expect(parts).To(Equal([]string{
		"[rank 2] 2", "[rank 2] " + directory, "[rank 2] " + directory, "[rank 2] x-OST0000 x-OST0003", "[rank 2 ended with exit code 0]", "",
	}))
	g.Expect(directory).To(MatchRegexp("^/.*/parallelfs-[0-9]+$"))
	g.Expect(directory).NotTo(BeADirectory())
}

func TestAToolOfAServerRunsForEachTargetAtOnce(t *testing.T) {
	g, c := NewWithT(t), newClient(t)
	b, h := c.server("x-MDT0000", "x-MDT0001")
	b.ForEachTarget = true
	// Each of the two waits for the other.
	b.Argv = []string{"sh", "-c", `touch "$0/$of"; until test -e "$0/x-MDT0000" && test -e "$0/x-MDT0001"; do sleep 0.01; done; pwd; echo "made $of"`, c.outside}
	b.Env = []string{"of=$(TARGETS)"}
	g.Expect(bench.Local(t.Context(), b, 0, h)).To(Succeed())
	ranks, err := benchmarks.SplitRanks([]byte(c.output.String()), 1)
	g.Expect(err).NotTo(HaveOccurred())
	targets := benchmarks.SplitTargets(ranks[0])
	g.Expect(targets).To(HaveLen(2))
	var places []string
	for i, said := range targets {
		place, rest, _ := strings.Cut(string(said), "\n")
		g.Expect(rest).To(Equal(fmt.Sprintf("made x-MDT%04d\n", i)))
		places = append(places, place)
	}
	g.Expect(places[0]).NotTo(Equal(places[1]), "each has a directory of its own")

	t.Run("and fails when one of them does", func(t *testing.T) {
		g, c := NewWithT(t), newClient(t)
		b, h := c.server("x-MDT0000", "x-MDT0001")
		b.ForEachTarget, b.Argv, b.Env = true, []string{"sh", "-c", `test "$of" = x-MDT0000 && echo fine || exit 3`}, []string{"of=$(TARGETS)"}
		g.Expect(code(bench.Local(t.Context(), b, 0, h))).To(Equal(3))
		g.Expect(c.output.String()).To(Equal("[rank 0] [target x-MDT0000] fine\n[rank 0 ended with exit code 3]\n"))
	})
}

func TestAToolOfAServerIsNotStarted(t *testing.T) {
	for name, test := range map[string]struct {
		given func(c *client, b *spec.Benchmark, h *bench.Host)
		says  string
	}{
		"when the spec names a filesystem": {
			func(c *client, b *spec.Benchmark, _ *bench.Host) { b.Mount = c.script("").Mount },
			"a tool on a server runs in no filesystem, and the spec names one; nothing is started (bench run uses a mount)",
		},
		"when the spec names no target of the node": {
			func(_ *client, _ *spec.Benchmark, h *bench.Host) {
				h.Environment = append(h.Environment, "NODE_NAME=oss-7")
			},
			`the spec names no target of node "oss-7"; nothing is started`,
		},
		"when the node lacks programs": {
			func(c *client, b *spec.Benchmark, _ *bench.Host) {
				b.Programs, c.lacks = []string{"gawk", "sh", "vmstat"}, []string{"gawk", "vmstat"}
			},
			"the node has no gawk, no vmstat; install it there, in the version of its modules, and nothing is started before",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g, c := NewWithT(t), newClient(t)
			b, h := c.server("x-OST0000")
			b.Argv = []string{"sh", "-c", "echo the tool ran"}
			test.given(c, &b, &h)
			before := tree(t, c.mount)
			g.Expect(code(bench.Local(t.Context(), b, 0, h))).To(Equal(1))
			g.Expect(c.output.String()).To(Equal("parallelfs: process 0: " + test.says + "\n[rank 0 ended with exit code 1]\n"))
			g.Expect(tree(t, c.mount)).To(Equal(before))
		})
	}
	g, c := NewWithT(t), newClient(t)
	g.Expect(bench.Run(t.Context(), spec.Benchmark{Argv: []string{"true"}, TimeoutSeconds: 1}, c.host())).To(MatchError(ContainSubstring("is not below the mount")))
	g.Expect(bench.Local(t.Context(), spec.Benchmark{}, -1, c.host())).To(MatchError(ContainSubstring("numbered from 0")))
}
