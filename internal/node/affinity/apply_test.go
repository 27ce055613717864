package affinity_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/affinity"
	"parallelfs.dev/operator/internal/node/spec"
)

// The test's own program is the daemon, in a process of its own.
const (
	// envPin makes the program act as `node run`: it binds itself to the CPUs and to the memory of NUMA node 0, and executes itself.
	envPin = "AFFINITY_TEST_PIN"
	// envDaemon makes it a daemon of several threads that reports when it runs, and ends when its input ends. One thread binds itself to the
	// CPUs in the variable.
	envDaemon = "AFFINITY_TEST_DAEMON"
)

func TestMain(m *testing.M) {
	if cpus, pin := os.LookupEnv(envPin); pin {
		_, err := affinity.Apply(spec.Pinning{CPUs: cpus, MemoryNodes: memoryNodes(), MemoryPolicy: "Bind"})
		if err == nil {
			_ = os.Unsetenv(envPin)
			err = syscall.Exec(os.Args[0], os.Args, os.Environ())
		}
		panic(err)
	}
	if cpus, daemon := os.LookupEnv(envDaemon); daemon {
		runAsDaemon(cpus)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// memoryNodes is empty if the kernel has no NUMA support.
func memoryNodes() string {
	if _, err := os.Stat("/proc/self/numa_maps"); err != nil {
		return ""
	}
	return "0"
}

func runAsDaemon(stray string) {
	ready := make(chan struct{})
	for range 3 {
		go func() { runtime.LockOSThread(); ready <- struct{}{}; select {} }()
	}
	go func() {
		runtime.LockOSThread()
		if set, err := cpuset.Parse(stray); err == nil && !set.IsEmpty() {
			var mask unix.CPUSet
			for _, cpu := range set.List() {
				mask.Set(cpu)
			}
			if err := unix.SchedSetaffinity(0, &mask); err != nil {
				panic(err)
			}
		}
		ready <- struct{}{}
		select {}
	}()
	for range 4 {
		<-ready
	}
	_, _ = os.Stdout.WriteString("ready\n")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// daemon starts one, and returns its process id when all of its threads run.
func daemon(t *testing.T, environment ...string) int {
	t.Helper()
	g := NewWithT(t)
	command := exec.Command(os.Args[0])
	command.Env, command.Stderr = append(os.Environ(), environment...), os.Stderr
	input, err := command.StdinPipe()
	g.Expect(err).NotTo(HaveOccurred())
	output, err := command.StdoutPipe()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(command.Start()).To(Succeed())
	t.Cleanup(func() { input.Close(); _ = command.Wait() })
	g.Expect(bufio.NewReader(output).ReadString('\n')).To(Equal("ready\n"))
	return command.Process.Pid
}

// allowed returns the CPUs that this test may use. A daemon is bound to the last one.
func allowed(t *testing.T) (all cpuset.CPUSet, last string) {
	t.Helper()
	var mask unix.CPUSet
	NewWithT(t).Expect(unix.SchedGetaffinity(0, &mask)).To(Succeed())
	var cpus []int
	for cpu := range 1024 {
		if mask.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpuset.New(cpus...), strconv.Itoa(cpus[len(cpus)-1])
}

func realNode(t *testing.T) affinity.Node {
	t.Helper()
	node := affinity.ThisNode()
	NewWithT(t).Expect(node).To(Equal(affinity.Node{Proc: "/proc", Sys: "/sys", State: "/var/lib/parallelfs"}))
	node.State = t.TempDir()
	NewWithT(t).Expect(os.Mkdir(filepath.Join(node.State, "storage.scratch"), 0o755)).To(Succeed())
	return node
}

func TestABoundDaemonKeepsAllItsThreadsOnItsCPUsAndItsMemoryThroughTheStart(t *testing.T) {
	g, node := NewWithT(t), realNode(t)
	_, last := allowed(t)
	pid := daemon(t, "PARALLELFS_DAEMON="+ssd, envPin+"="+last, envDaemon+"=")
	tasks, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(tasks)).To(BeNumerically(">", 4))
	placements, err := node.Placements()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(placements).To(HaveLen(1))
	g.Expect(placements[0]).To(Equal(v1alpha1.DaemonPlacement{
		Name: ssd, Program: filepath.Base(os.Args[0]), CPUs: last, NUMANodes: nodesOf(t, last), MemoryPolicy: expectedPolicy("bind:0"),
	}))
}

func expectedPolicy(policy string) string {
	if memoryNodes() == "" {
		return "default"
	}
	return policy
}

// nodesOf reads the NUMA node with lscpu(1), independently of the code under test.
func nodesOf(t *testing.T, cpu string) string {
	t.Helper()
	output, err := exec.Command("lscpu", "-p=CPU,NODE").Output()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(output)) {
		if node, found := strings.CutPrefix(strings.TrimSpace(line), cpu+","); found {
			return node
		}
	}
	return ""
}

func TestAThreadThatADaemonBindsElsewhereIsDetected(t *testing.T) {
	g, node := NewWithT(t), realNode(t)
	all, last := allowed(t)
	g.Expect(all.Size()).To(BeNumerically(">", 1), "this test needs a machine with two CPUs")
	first := strconv.Itoa(all.List()[0])
	daemon(t, "PARALLELFS_DAEMON="+ssd, envPin+"="+last, envDaemon+"="+first)
	placements, err := node.Placements()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(placements).To(HaveLen(1))
	// A thread started by the stray thread is a stray as well.
	g.Expect(placements[0].StrayThreads).To(BeNumerically(">=", 1))
	g.Expect(placements[0].CPUs).To(Equal(cpuset.New(all.List()[0], all.List()[all.Size()-1]).String()))
}

func TestADaemonThatIsNotBoundShowsWhatItMayUse(t *testing.T) {
	g, node := NewWithT(t), realNode(t)
	all, _ := allowed(t)
	daemon(t, "PARALLELFS_DAEMON="+ssd, envDaemon+"=")
	placements, err := node.Placements()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(placements).To(HaveLen(1))
	g.Expect(placements[0].CPUs).To(Equal(all.String()))
	g.Expect(placements[0].StrayThreads).To(BeZero())
	g.Expect(placements[0].MemoryPolicy).To(Equal("default"))
}

// apply binds a thread that ends afterwards, as nothing else may run on it.
func apply(p spec.Pinning) (effective affinity.Effective, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		effective, err = affinity.Apply(p)
	}()
	<-done
	return effective, err
}

func TestApplyReadsTheKernelsStateBack(t *testing.T) {
	_, last := allowed(t)
	for policy, shown := range map[string]string{"Bind": "bind:0", "Preferred": "prefer:0", "": "prefer:0"} {
		t.Run("with the memory policy "+policy, func(t *testing.T) {
			g := NewWithT(t)
			effective, err := apply(spec.Pinning{CPUs: last, MemoryNodes: "0", MemoryPolicy: policy, Why: "spec.metadataServers.cpuPinning"})
			if memoryNodes() == "" {
				g.Expect(err).To(MatchError(ContainSubstring("this kernel knows no NUMA")))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(effective).To(Equal(affinity.Effective{CPUs: last, MemoryPolicy: shown}))
		})
	}
	g := NewWithT(t)
	effective, err := apply(spec.Pinning{CPUs: last})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(effective.CPUs).To(Equal(last))
	g.Expect(effective.MemoryPolicy).To(BeElementOf("", "default"))
}

func TestAPinningIsRefusedWhen(t *testing.T) {
	all, last := allowed(t)
	why := "spec.metadataServers.cpuPinning: CPUSet"
	for name, c := range map[string]struct {
		pinning spec.Pinning
		reasons []string
	}{
		"it names a CPU that the container may not use": {
			spec.Pinning{CPUs: last + ",1023", Why: why},
			[]string{"to the CPUs " + last + ",1023 (" + why + ")", "may only use " + all.String(), "so 1023 is missing"},
		},
		"it names a CPU that no kernel has":          {spec.Pinning{CPUs: "99999", Why: why}, []string{"to the CPUs 99999", "may only use " + all.String()}},
		"it names no CPU":                            {spec.Pinning{Why: why}, []string{`the CPUs ""`, why, "no list of CPUs"}},
		"the CPUs are no list":                       {spec.Pinning{CPUs: "two", Why: why}, []string{`the CPUs "two"`, "no list of CPUs"}},
		"the NUMA nodes are no list":                 {spec.Pinning{CPUs: last, MemoryNodes: "x", Why: why}, []string{`the NUMA nodes "x"`, "no list"}},
		"it names a NUMA node that is not there":     {spec.Pinning{CPUs: last, MemoryNodes: "0,1000", Why: why}, []string{"NUMA nodes 0,1000", why, "so 1000 is missing"}},
		"it names a memory policy that is not known": {spec.Pinning{CPUs: last, MemoryNodes: "0", MemoryPolicy: "Interleave", Why: why}, []string{`"Interleave"`, "neither Bind nor Preferred"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := apply(c.pinning)
			for _, reason := range c.reasons {
				g.Expect(err).To(MatchError(ContainSubstring(reason)))
			}
		})
	}
}
