package affinity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/affinity"
)

// machine is a /proc and a /sys made of plain files.
type machine struct {
	affinity.Node
	t *testing.T
}

func newMachine(t *testing.T) machine {
	t.Helper()
	root := t.TempDir()
	m := machine{affinity.Node{Proc: filepath.Join(root, "proc"), Sys: filepath.Join(root, "sys"), State: filepath.Join(root, "state")}, t}
	m.write(m.Sys+"/devices/system/node/node0/cpulist", "0-7,16-23\n")
	m.write(m.Sys+"/devices/system/node/node1/cpulist", "8-15,24-31\n")
	m.write(m.Proc+"/meminfo", "MemTotal: 1 kB\n")
	m.directory(m.Proc)
	m.directory(m.State + "/storage.scratch")
	return m
}

func (m machine) directory(path string) {
	m.t.Helper()
	NewWithT(m.t).Expect(os.MkdirAll(path, 0o755)).To(Succeed())
}

func (m machine) write(path, content string) {
	m.t.Helper()
	m.directory(filepath.Dir(path))
	NewWithT(m.t).Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func (m machine) link(to, path string) {
	m.t.Helper()
	m.directory(filepath.Dir(path))
	NewWithT(m.t).Expect(os.Symlink(to, path)).To(Succeed())
}

// process adds a process with one thread for each list of CPUs. The first thread is the main thread.
func (m machine) process(pid, parent int, daemon, program, policy string, threads ...string) {
	m.t.Helper()
	directory := fmt.Sprintf("%s/%d", m.Proc, pid)
	m.write(directory+"/environ", "PATH=/bin\x00PARALLELFS_DAEMON="+daemon+"\x00HOME=/\x00")
	m.link("/usr/sbin/"+program, directory+"/exe")
	m.link("/", directory+"/root")
	m.write(directory+"/numa_maps", "55d0 default file=/usr/sbin/x mapped=3 N0=3\n55d1 "+policy+" heap anon=6 dirty=6 N0=6\n7ffe "+policy+" stack anon=3\n7fff "+policy+"\n")
	for i, cpus := range threads {
		status := fmt.Sprintf("Name:\tx\nPPid:\t%d\nCpus_allowed:\tff\nCpus_allowed_list:\t%s\nMems_allowed_list:\t0-1\n", parent, cpus)
		m.write(fmt.Sprintf("%s/task/%d/status", directory, pid+i), status)
		if i == 0 {
			m.write(directory+"/status", status)
		}
	}
}

func (m machine) placements() []v1alpha1.DaemonPlacement {
	m.t.Helper()
	placements, err := m.Placements()
	NewWithT(m.t).Expect(err).NotTo(HaveOccurred())
	return placements
}

const ssd = "storage/scratch/chunkserver/ssd"

func TestAStretchedEnvironmentCostsNoMemory(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	m.process(100, 1, ssd, "mfschunkserver", "default", "0-7")
	m.process(200, 1, ssd, "sleep", "default", "0-7")
	// The process has declared 2 GiB of its memory to be its environment (prctl(2), PR_SET_MM_MAP).
	g.Expect(os.Truncate(m.Proc+"/200/environ", 2<<30)).To(Succeed())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	processes, err := m.Processes()
	runtime.ReadMemStats(&after)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(processes[ssd]).To(ContainElement(100))
	g.Expect(after.TotalAlloc - before.TotalAlloc).To(BeNumerically("<", 8<<20))
}

func TestPlacementsAreThoseOfTheKernelInTheOrderOfTheirNames(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	m.process(100, 1, "storage/scratch/master", "mfsmaster", "bind:1", "8-15", "8-15")
	m.process(200, 1, ssd, "mfschunkserver (deleted)", "prefer (many):0-1", "0-31", "0-31", "0-31")
	m.process(300, 1, "storage/scratch/chunkserver/hdd", "mfschunkserver", "default", "0-3")
	g.Expect(m.placements()).To(Equal([]v1alpha1.DaemonPlacement{
		{Name: "storage/scratch/chunkserver/hdd", Program: "mfschunkserver", CPUs: "0-3", NUMANodes: "0", MemoryPolicy: "default"},
		{Name: ssd, Program: "mfschunkserver", CPUs: "0-31", NUMANodes: "0-1", MemoryPolicy: "prefer (many):0-1"},
		{Name: "storage/scratch/master", Program: "mfsmaster", CPUs: "8-15", NUMANodes: "1", MemoryPolicy: "bind:1"},
	}))
}

func TestAThreadThatMayRunElsewhereIsAStray(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	m.process(100, 1, ssd, "mfschunkserver", "bind:0", "0-7", "0-7", "0-15", "3", "24")
	g.Expect(m.placements()).To(ConsistOf(v1alpha1.DaemonPlacement{
		Name: ssd, Program: "mfschunkserver", CPUs: "0-15,24", StrayThreads: 2, NUMANodes: "0-1", MemoryPolicy: "bind:0",
	}), "CPU 3 is one of the first thread's, so a thread that keeps to it is none")
}

func TestAllProcessesOfADaemonAreOnePlacement(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	// The pids wrapped around between the two.
	m.process(50, 100, ssd, "writer", "default", "0-15")
	m.process(100, 1, ssd, "mfsmaster", "bind:0", "0-7", "0-7")
	m.process(110, 100, ssd, "writer", "bind:0", "0-7")
	g.Expect(m.placements()).To(ConsistOf(v1alpha1.DaemonPlacement{
		Name: ssd, Program: "mfsmaster", CPUs: "0-15", StrayThreads: 1, NUMANodes: "0-1", MemoryPolicy: "bind:0",
	}))
}

func TestAPlacementIsLeftOutWhen(t *testing.T) {
	for name, change := range map[string]func(m machine, directory string){
		"the variable is not set":             func(m machine, d string) { m.write(d+"/environ", "XPARALLELFS_DAEMON="+ssd+"\x00") },
		"the name has no component":           func(m machine, d string) { m.write(d+"/environ", "PARALLELFS_DAEMON=storage/scratch\x00") },
		"the name leads out of the directory": func(m machine, d string) { m.write(d+"/environ", "PARALLELFS_DAEMON=../storage.scratch/x/y\x00") },
		"the name is longer than any": func(m machine, d string) {
			m.write(d+"/environ", "PARALLELFS_DAEMON="+ssd+strings.Repeat("d", 300)+"\x00")
		},
		"there is no such FileSystem on the node":                    func(m machine, d string) { m.write(d+"/environ", "PARALLELFS_DAEMON=storage/home/master\x00") },
		"the process has ended meanwhile":                            func(m machine, d string) { NewWithT(m.t).Expect(os.Remove(d + "/status")).To(Succeed()) },
		"the process does not see the directory of the node":         func(m machine, d string) { m.root(d) },
		"the process sees another directory of that name":            func(m machine, d string) { m.directory(m.root(d) + m.State + "/storage.scratch") },
		"the process has a link to where the node has the directory": func(m machine, d string) { m.link(m.State+"/storage.scratch", m.root(d)+m.State+"/storage.scratch") },
	} {
		t.Run(name, func(t *testing.T) {
			g, m := NewWithT(t), newMachine(t)
			m.process(100, 1, ssd, "mfschunkserver", "default", "0-7")
			g.Expect(m.placements()).To(HaveLen(1), "it is there before the change")
			change(m, m.Proc+"/100")
			g.Expect(m.placements()).To(BeEmpty())
		})
	}
}

// root gives a process its own root directory.
func (m machine) root(directory string) string {
	m.t.Helper()
	own := m.t.TempDir()
	NewWithT(m.t).Expect(os.Remove(directory + "/root")).To(Succeed())
	m.link(own, directory+"/root")
	return own
}

func TestADaemonThatHasOnlyTheDirectoryOfTheDisksIsThere(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	g.Expect(os.Remove(m.State + "/storage.scratch")).To(Succeed())
	m.process(100, 1, ssd, "mfschunkserver", "default", "0-7")
	g.Expect(m.placements()).To(BeEmpty())
	m.directory(m.State + "/targets/storage.scratch")
	g.Expect(m.placements()).To(HaveLen(1))
}

func TestAKernelWithoutNUMAHasPlacementsToo(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	m.process(100, 1, ssd, "mfschunkserver", "default", "0-7")
	g.Expect(os.RemoveAll(m.Sys + "/devices/system/node")).To(Succeed())
	g.Expect(os.Remove(m.Proc + "/100/numa_maps")).To(Succeed())
	g.Expect(m.placements()).To(ConsistOf(v1alpha1.DaemonPlacement{Name: ssd, Program: "mfschunkserver", CPUs: "0-7", MemoryPolicy: "default"}))
}

func TestProcessesThatCannotBeListedAreAnError(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	m.Proc += "/no-such"
	_, err := m.Placements()
	g.Expect(err).To(MatchError(ContainSubstring("can't list the processes of this node")))
}
