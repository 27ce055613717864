//go:build disks

package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/benchmarks"
	"parallelfs.dev/operator/internal/node/bench"
	"parallelfs.dev/operator/internal/node/measured"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/test/patience"
)

// waitLimit is far longer than any operation here takes.
var waitLimit = patience.Bound(time.Minute)

// seconds is the time limit of a tool that must not end before its processes have started, however busy the machine is.
func seconds(d time.Duration) int64 { return int64(patience.Bound(d).Seconds()) }

// nodeProgram is the path of this project's program for pods, which TestMain makes.
var nodeProgram string

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "bench")
	if err != nil {
		panic(err)
	}
	nodeProgram = filepath.Join(directory, "node")
	if out, err := exec.Command("go", "build", "-ldflags", "-s", "-o", nodeProgram, "parallelfs.dev/operator/cmd/node").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("can't build the program for pods: %s", out))
	}
	code := m.Run()
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

// cluster is a filesystem and some workers, all on this machine. The ssh program that mpirun finds runs the command here, and sets
// FAKE_HOST to the host's name. mpirun, its daemons and processes are real.
type cluster struct {
	*client
	launcher bench.Launcher
	host     bench.Host
	b        spec.Benchmark
}

func newCluster(t *testing.T, placement ...int) *cluster {
	t.Helper()
	g := NewWithT(t)
	c := &cluster{client: newClient(t)}
	g.Expect(exec.Command("mount", "-t", "tmpfs", "parallelfs-test", c.mount).Run()).To(Succeed())
	t.Cleanup(func() { g.Expect(exec.Command("umount", c.mount).Run()).To(Succeed()) })
	for _, directory := range []string{"home/anna", "ssd"} {
		g.Expect(os.MkdirAll(c.path(directory), 0o755)).To(Succeed())
	}
	g.Expect(os.WriteFile(c.path("home", "anna", "thesis.tex"), []byte("precious"), 0o600)).To(Succeed())
	t.Cleanup(func() { g.Expect(os.ReadFile(c.path("home", "anna", "thesis.tex"))).To(BeEquivalentTo("precious")) })

	// Workers have separate temporary directories, as pods have. The path of a socket in one is limited to 107 bytes.
	programs, err := os.MkdirTemp("", "w") //nolint:usetesting // t.TempDir has long names
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(os.RemoveAll(programs)).To(Succeed()) })
	ssh := "#!/bin/sh\n# ssh [-x] [-o X] [-p N] HOST COMMAND...\n" +
		"while :; do case $1 in -o | -p) echo \"$1 $2\" >> " + programs + "/ssh-options; shift 2 ;; -*) shift ;; *) break ;; esac; done\n" +
		"host=$1; shift\nmkdir -p " + programs + "/$host\nexec env FAKE_HOST=\"$host\" TMPDIR=" + programs + "/$host sh -c \"$*\"\n"
	g.Expect(os.WriteFile(filepath.Join(programs, "ssh"), []byte(ssh), 0o755)).To(Succeed())
	path := programs + ":" + os.Getenv("PATH")
	t.Setenv("PATH", path)

	c.b = c.script("")
	c.b.Mount.FSType, c.b.Placement, c.b.TimeoutSeconds = "tmpfs", placement, seconds(2*time.Minute)
	var hosts strings.Builder
	for i := range placement {
		// The MPI operator writes the same number of slots for all hosts.
		fmt.Fprintf(&hosts, "w-%d.run.storage.svc slots=%d\n", i, slices.Max(placement))
	}
	c.launcher = bench.Launcher{HostFile: filepath.Join(c.outside, "hostfile"), SSHPort: 2222, Spec: filepath.Join(c.outside, "spec.json")}
	g.Expect(os.WriteFile(c.launcher.HostFile, []byte(hosts.String()), 0o600)).To(Succeed())
	c.host = c.client.host()
	c.host.Self = nodeProgram
	// The MPI operator sets these variables in the launcher (0.7.0, ompiEnvVars).
	c.host.Environment = append(os.Environ(), "OMPI_MCA_orte_keep_fqdn_hostnames=true", "OMPI_MCA_orte_default_hostfile="+c.launcher.HostFile,
		"OMPI_MCA_plm_rsh_args=-o ConnectionAttempts=10", fmt.Sprintf("OMPI_MCA_orte_set_default_slots=%d", slices.Max(placement)))
	return c
}

// launch runs the workers, then the launcher.
func (c *cluster) launch(t *testing.T) error {
	t.Helper()
	g := NewWithT(t)
	content, err := json.Marshal(c.b)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(c.launcher.Spec, content, 0o600)).To(Succeed())
	g.Expect(bench.Work(t.Context(), c.b, []string{"true"}, c.client.host())).To(MatchError(ContainSubstring("became the command")))
	return bench.Launch(t.Context(), c.b, c.launcher, c.host)
}

func TestMpirunStartsOnEachWorkerAsManyAsPlaced(t *testing.T) {
	for name, c := range map[string]struct {
		placement []int
		want      []string
	}{
		"evenly":                          {[]int{2, 2}, []string{"0 w-0", "1 w-0", "2 w-1", "3 w-1"}},
		"unevenly":                        {[]int{1, 4}, []string{"0 w-0", "1 w-1", "2 w-1", "3 w-1", "4 w-1"}},
		"on a part of the workers":        {[]int{0, 3, 0}, []string{"0 w-1", "1 w-1", "2 w-1"}},
		"one":                             {[]int{1}, []string{"0 w-0"}},
		"more than this machine has CPUs": {[]int{8}, []string{"0 w-0", "1 w-0", "2 w-0", "3 w-0", "4 w-0", "5 w-0", "6 w-0", "7 w-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newCluster(t, c.placement...)
			at.b.Ranks = &spec.Ranks{}
			at.b.Env = []string{"COLOR=dark red", "OMPI_MCA_mpi_yield_when_idle=1"}
			at.b.Argv = []string{"sh", "-c",
				`echo "$OMPI_COMM_WORLD_RANK ${FAKE_HOST%%.*} $(pwd) $COLOR $OMPI_MCA_mpi_yield_when_idle $(sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status) $0"`, "$(DIRECTORY)"}
			g.Expect(at.launch(t)).To(Succeed(), at.said.String())
			own, err := exec.Command("sed", "-n", `s/^Cpus_allowed_list:.//p`, "/proc/self/status").Output()
			g.Expect(err).NotTo(HaveOccurred())
			var want []string
			for _, line := range c.want {
				want = append(want, fmt.Sprintf("%s %s dark red 1 %s %s", line, at.b.Directory, strings.TrimSpace(string(own)), at.b.Directory))
			}
			got := strings.Split(strings.TrimSuffix(at.output.String(), "\n"), "\n")
			slices.Sort(got)
			g.Expect(got).To(Equal(want))
			said := lateParent.ReplaceAllString(at.said.String(), "")
			g.Expect(said).To(Equal(fmt.Sprintf("parallelfs: %d workers are ready\n", len(c.placement))), "mpirun has nothing to warn of")
		})
	}
}

// lateParent matches a harmless warning of mpirun 4.1 on a busy machine. It appears if a child has started its program before its parent
// could put it into a process group (orte/mca/plm/rsh/plm_rsh_module.c), and the group is not needed.
var lateParent = regexp.MustCompile(`(?m)^\S+ plm:rsh: Warning: setpgid\(\d+,\d+\) failed in parent with errno=Permission denied\(13\)\n`)

func TestMpirunReachesTheWorkersByTheirPort(t *testing.T) {
	g, at := NewWithT(t), newCluster(t, 1, 1)
	at.b.Ranks, at.b.Argv = &spec.Ranks{}, []string{"true"}
	g.Expect(at.launch(t)).To(Succeed(), at.said.String())
	programs, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	options, err := os.ReadFile(filepath.Join(programs, "ssh-options"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Split(strings.TrimSpace(string(options)), "\n")).To(
		ConsistOf("-o ConnectionAttempts=10", "-p 2222", "-o ConnectionAttempts=10", "-p 2222"))
}

func TestTheClocksOfWorkersAreReadBySSH(t *testing.T) {
	g, at := NewWithT(t), newCluster(t, 1, 1)
	at.b.Ranks, at.b.Argv = &spec.Ranks{}, []string{"true"}
	at.host.Ask = bench.ThisHost().Ask
	g.Expect(at.launch(t)).To(Succeed(), at.said.String())
	report := measured.Read([]byte(at.said.String()))
	g.Expect(report).To(HaveLen(2))
	for _, m := range report {
		g.Expect(m.Problem).To(BeEmpty())
		g.Expect(m.Before.Offset.Abs()).To(BeNumerically("<=", m.Before.Within+time.Millisecond), "all workers are this machine")
		g.Expect(m.After).NotTo(BeNil())
	}
	g.Expect(report.ClockTrouble()).To(BeEmpty())
}

func TestAnExitCodeComesThroughMpirun(t *testing.T) {
	for name, each := range map[string]bool{"of a program": false, "of a wrapped program": true} {
		t.Run(name, func(t *testing.T) {
			g, at := NewWithT(t), newCluster(t, 1, 1)
			at.b.Ranks = &spec.Ranks{Each: each}
			at.b.Argv = []string{"sh", "-c", `[ "$OMPI_COMM_WORLD_RANK" = 0 ] || exit 9; sleep 600`}
			g.Expect(code(at.launch(t))).To(Equal(9), at.said.String())
		})
	}
}

func TestAToolUnderMpirunEndsWithItsTime(t *testing.T) {
	g, at := NewWithT(t), newCluster(t, 1, 1)
	at.b.Ranks, at.b.TimeoutSeconds = &spec.Ranks{}, seconds(10*time.Second)
	pids := filepath.Join(at.outside, "pids")
	at.b.Argv = []string{"sh", "-c", "echo $$ >> " + pids + "; exec sleep 600"}
	g.Expect(code(at.launch(t))).To(Equal(bench.TimedOut), at.said.String())
	content, err := os.ReadFile(pids)
	g.Expect(err).NotTo(HaveOccurred(), "both processes have started within the time of the tool")
	g.Expect(strings.Fields(string(content))).To(HaveLen(2))
	for word := range strings.FieldsSeq(string(content)) {
		var pid int
		_, err := fmt.Sscan(word, &pid)
		g.Expect(err).NotTo(HaveOccurred())
		g.Eventually(running).WithArguments(pid).WithTimeout(waitLimit).Should(BeFalse())
	}
}

func TestTheOutputOfProcessesThatPrintALotIsTakenApart(t *testing.T) {
	g, at := NewWithT(t), newCluster(t, 3, 5)
	at.b.Ranks, at.b.Stdin = &spec.Ranks{Each: true}, "color of $(RANK)\n"
	// The lines have 1 to 3000 bytes, and come in odd pieces on both outputs without any pause.
	at.b.Argv = []string{"awk", "-v", "rank=$(RANK)", `{ print } END {
		for (i = 0; i < 400; i++) {
			line = sprintf("%s %d ", rank, i); n = (i * 7919 + rank * 104729) % 3000
			while (length(line) < n) line = line "abcdefghijklmnopqrstuvwxyz[rank 0] "
			if (i % 5) print line; else print line > "/dev/stderr"
			if (i % 7 == 0) fflush()
		}
		printf "end without a newline of %s", rank
	}`}
	g.Expect(at.launch(t)).To(Succeed(), at.said.String())
	output := at.output.String() + at.said.String()
	parts, err := benchmarks.SplitRanks([]byte(output), 8)
	g.Expect(err).NotTo(HaveOccurred())
	for rank, part := range parts {
		lines := strings.Split(string(part), "\n")
		g.Expect(lines).To(HaveLen(403))
		g.Expect(lines).To(ContainElement(fmt.Sprintf("color of %d", rank)))
		g.Expect(lines).To(ContainElement(fmt.Sprintf("end without a newline of %d", rank)))
		seen := map[int]bool{}
		for _, line := range lines {
			var of, i int
			if _, err := fmt.Sscanf(line, "%d %d ", &of, &i); err != nil {
				continue
			}
			want := fmt.Sprintf("%d %d ", rank, i)
			for n := (i*7919 + rank*104729) % 3000; len(want) < n; {
				want += "abcdefghijklmnopqrstuvwxyz[rank 0] "
			}
			g.Expect(line).To(Equal(want))
			seen[i] = true
		}
		g.Expect(seen).To(HaveLen(400))
	}
	g.Expect(os.ReadDir(at.b.Directory)).To(HaveLen(9), "a directory of each, and that of their meeting")
}

func TestWrappedProcessesBeginTogether(t *testing.T) {
	g, at := NewWithT(t), newCluster(t, 2, 2)
	at.b.Ranks = &spec.Ranks{Each: true}
	// A process sees the directories of all others at its start, however late mpirun starts them.
	at.b.Argv = []string{"sh", "-c", "ls -d ../rank-*"}
	g.Expect(at.launch(t)).To(Succeed(), at.said.String())
	parts, err := benchmarks.SplitRanks([]byte(at.said.String()), 4)
	g.Expect(err).NotTo(HaveOccurred())
	for _, part := range parts {
		g.Expect(string(part)).To(Equal("../rank-0\n../rank-1\n../rank-2\n../rank-3\n"))
	}
}

func TestALauncherThatIsStoppedStopsItsProcesses(t *testing.T) {
	g, at := NewWithT(t), newCluster(t, 2)
	at.b.Ranks = &spec.Ranks{Each: true}
	begun := filepath.Join(at.outside, "begun")
	at.b.Argv = []string{"sh", "-c", "touch " + begun + "; exec sleep 600"}
	content, err := json.Marshal(at.b)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(os.WriteFile(at.launcher.Spec, content, 0o600)).To(Succeed())
	g.Expect(bench.Work(t.Context(), at.b, []string{"true"}, at.client.host())).To(MatchError(ContainSubstring("became the command")))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- bench.Launch(ctx, at.b, at.launcher, at.host) }()
	g.Eventually(begun).WithTimeout(waitLimit).Should(BeAnExistingFile())
	cancel()
	g.Eventually(ended).WithTimeout(waitLimit).Should(Receive(Satisfy(func(err error) bool {
		var tool *bench.ExitError
		return errors.As(err, &tool) && tool.Code != 0
	})))
	g.Eventually(func() string {
		out, _ := exec.Command("sh", "-c", `grep -l "FAKE_HOST" /proc/[0-9]*/environ 2>/dev/null | wc -l`).Output()
		return strings.TrimSpace(string(out))
	}).WithTimeout(waitLimit).Should(Equal("0"))
}
