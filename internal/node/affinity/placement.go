package affinity

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/node/spec"
)

// Node locates the processes and CPUs of a node.
type Node struct {
	// Proc and Sys are the node's /proc and /sys.
	Proc, Sys string
	// State is the node's /var/lib/parallelfs.
	State string
}

// ThisNode is the node of a process that sees all processes (hostPID, where it runs in a pod) and has /var/lib/parallelfs of
// the node at the same path.
func ThisNode() Node { return Node{Proc: "/proc", Sys: "/sys", State: filepath.Dir(spec.TargetsRoot)} }

// Placements reads from the kernel where the daemons of this node run, ordered by name. All processes with the same name in spec.EnvDaemon
// are one daemon, for example after a fork.
//
// Any process can set the variable. A process therefore counts only if it sees its FileSystem's directory of the node
// (State/<namespace>.<name>, or the one in State/targets) at the same path. It must be the same directory, not another one with the same
// name. Daemons mount it from the node. A pod that may not mount directories of the node can't have it. A pod that may mount them can fake
// a line here, but only the status display depends on it.
//
// Processes that end during the scan are left out, and so are processes that this one may not read. Placements reads numa_maps, for which
// the kernel walks all pages of a daemon, so call it at most a few times per minute.
func (n Node) Placements() ([]v1alpha1.DaemonPlacement, error) {
	ids, err := n.Processes()
	if err != nil {
		return nil, err
	}
	nodes, err := n.numaNodes()
	if err != nil {
		return nil, err
	}
	daemons := map[string][]process{}
	for name, pids := range ids {
		for _, pid := range pids {
			found, err := n.read(pid)
			switch {
			case gone(err):
			case err != nil:
				return nil, fmt.Errorf("can't see where %s (process %d) runs: %w", name, pid, err)
			default:
				daemons[name] = append(daemons[name], found)
			}
		}
	}
	placements := make([]v1alpha1.DaemonPlacement, 0, len(daemons))
	for name, processes := range daemons {
		placements = append(placements, place(name, processes, nodes))
	}
	slices.SortFunc(placements, func(a, b v1alpha1.DaemonPlacement) int { return cmp.Compare(a.Name, b.Name) })
	return placements, nil
}

// Processes returns the process ids of each daemon of this node, ascending, by the daemon's name. It accepts the same processes as
// Placements at a lower cost: it opens one file per process of the node.
func (n Node) Processes() (map[string][]int, error) {
	entries, err := procfs.List(n.Proc)
	if err != nil {
		return nil, fmt.Errorf("can't list the processes of this node: %w", err)
	}
	daemons := map[string][]int{}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if name := n.daemonOf(entry.Name()); name != "" {
			daemons[name] = append(daemons[name], pid)
		}
	}
	for _, pids := range daemons {
		slices.Sort(pids)
	}
	return daemons, nil
}

// process is one process of a daemon.
type process struct {
	pid, parent int
	program     string
	// threads holds the CPUs of each thread, starting with the main thread.
	threads  []cpuset.CPUSet
	policies policies
}

// place sums up the processes of one daemon.
func place(name string, processes []process, nodes map[int]cpuset.CPUSet) v1alpha1.DaemonPlacement {
	slices.SortFunc(processes, func(a, b process) int { return cmp.Compare(a.pid, b.pid) })
	// The first process is the one that the others were forked from. The lowest pid may be another one, because pids wrap around.
	forked := func(p process) bool {
		return slices.ContainsFunc(processes, func(other process) bool { return other.pid == p.parent })
	}
	first := max(0, slices.IndexFunc(processes, func(p process) bool { return !forked(p) }))
	reference := processes[first].threads[0]
	all, sum := cpuset.New(), policies{}
	var stray int32
	for _, p := range processes {
		for _, thread := range p.threads {
			all = all.Union(thread)
			if !thread.IsSubsetOf(reference) {
				stray++
			}
		}
		for policy, count := range p.policies {
			sum[policy] += count
		}
	}
	var on []int
	for node, cpus := range nodes {
		if !cpus.Intersection(all).IsEmpty() {
			on = append(on, node)
		}
	}
	return v1alpha1.DaemonPlacement{
		Name: name, Program: processes[first].program, CPUs: all.String(), StrayThreads: stray,
		NUMANodes: cpuset.New(on...).String(), MemoryPolicy: sum.most(),
	}
}

// daemonName is the form of spec.EnvDaemon: namespace, FileSystem, component, and perhaps pool or slot. The length is
// that of DaemonPlacement.
var daemonName = regexp.MustCompile(`^([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)/[a-z0-9][a-z0-9.-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$`)

const longestName = 320

// mostEnvironment limits the bytes that are read from the environment of a process. The variables of a daemon's pod have a few KiB.
const mostEnvironment = 256 << 10

// daemonOf returns the name of the daemon that a process belongs to, empty for none.
func (n Node) daemonOf(pid string) string {
	environment, err := procfs.Head(filepath.Join(n.Proc, pid, "environ"), mostEnvironment)
	if err != nil {
		return ""
	}
	for variable := range strings.SplitSeq(string(environment), "\x00") {
		name, found := strings.CutPrefix(variable, spec.EnvDaemon+"=")
		if !found {
			continue
		}
		parts := daemonName.FindStringSubmatch(name)
		if parts == nil || len(name) > longestName || !n.sees(pid, parts[1]+"."+parts[2]) {
			return ""
		}
		return name
	}
	return ""
}

// sees is true if the process has mounted the FileSystem's directory from the node.
func (n Node) sees(pid, fileSystem string) bool {
	// The root refuses paths that lead out of it, such as a symbolic link to the node's own directory.
	root, err := os.OpenRoot(filepath.Join(n.Proc, pid, "root"))
	if err != nil {
		return false
	}
	defer root.Close()
	ofDisks := filepath.Join(n.State, filepath.Base(spec.TargetsRoot), fileSystem)
	for _, directory := range []string{filepath.Join(n.State, fileSystem), ofDisks} {
		own, err := os.Stat(directory)
		if err != nil {
			continue
		}
		seen, err := root.Stat(strings.TrimPrefix(directory, "/"))
		if err == nil && os.SameFile(own, seen) {
			return true
		}
	}
	return false
}

func (n Node) read(pid int) (process, error) {
	directory := filepath.Join(n.Proc, strconv.Itoa(pid))
	program, err := os.Readlink(filepath.Join(directory, "exe"))
	if err != nil {
		return process{}, err
	}
	own, err := readStatus(filepath.Join(directory, "status"))
	if err != nil {
		return process{}, err
	}
	const longestProgram = 64
	program = filepath.Base(strings.TrimSuffix(program, " (deleted)"))
	found := process{pid: pid, parent: own.parent, program: program[:min(len(program), longestProgram)], threads: []cpuset.CPUSet{own.cpus}}
	tasks, err := procfs.List(filepath.Join(directory, "task"))
	if err != nil {
		return process{}, err
	}
	for _, task := range tasks {
		if task.Name() == strconv.Itoa(pid) {
			continue
		}
		thread, err := readStatus(filepath.Join(directory, "task", task.Name(), "status"))
		if gone(err) {
			continue
		}
		if err != nil {
			return process{}, err
		}
		found.threads = append(found.threads, thread.cpus)
	}
	// A kernel without NUMA has no such file.
	found.policies, err = readPolicies(filepath.Join(directory, "numa_maps"))
	if err != nil && !gone(err) {
		return process{}, err
	}
	return found, nil
}

// gone is true for the errors of a process that has ended.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// numaNodes returns the CPUs of each NUMA node, or nothing if the kernel has no NUMA support.
func (n Node) numaNodes() (map[int]cpuset.CPUSet, error) {
	paths, err := filepath.Glob(filepath.Join(n.Sys, "devices/system/node/node[0-9]*/cpulist"))
	if err != nil {
		return nil, fmt.Errorf("can't list the NUMA nodes: %w", err)
	}
	nodes := map[int]cpuset.CPUSet{}
	for _, path := range paths {
		number, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "node"))
		if err != nil {
			continue
		}
		content, err := procfs.Read(path)
		if err != nil {
			return nil, fmt.Errorf("can't read the CPUs of NUMA node %d: %w", number, err)
		}
		if nodes[number], err = cpuset.Parse(strings.TrimSpace(string(content))); err != nil {
			return nil, fmt.Errorf("can't understand %s: %w", path, err)
		}
	}
	return nodes, nil
}
