// Package affinity binds a daemon to CPUs and memory before it starts, and reads from the kernel where the daemons of a node
// run in fact.
package affinity

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// Effective is the placement of a thread as the kernel reports it.
type Effective struct {
	// CPUs in list format, such as "0-7,16-23".
	CPUs string
	// MemoryPolicy in the form of numa_maps, such as "default" or "bind:0". It is empty if the kernel has no NUMA support.
	MemoryPolicy string
}

// Apply binds the calling thread and locks the goroutine to it. A program that replaces it (execve(2)) keeps both bindings, and so do its
// threads and children (sched_setaffinity(2), set_mempolicy(2)). The result was read back from the kernel. The error is a sentence for a
// person. After an error the thread may be partly bound, and must not be used for anything else.
func Apply(p spec.Pinning) (Effective, error) {
	runtime.LockOSThread()
	cpus, err := cpuset.Parse(p.CPUs)
	if err != nil || cpus.IsEmpty() {
		return Effective{}, fmt.Errorf("can't bind the daemon to the CPUs %q (%s): that is no list of CPUs such as 0-7,16-23", p.CPUs, p.Why)
	}
	nodes, err := cpuset.Parse(p.MemoryNodes)
	if err != nil {
		return Effective{}, fmt.Errorf("can't bind the daemon's memory to the NUMA nodes %q (%s): that is no list such as 0 or 0-1", p.MemoryNodes, p.Why)
	}
	if err := applyCPUs(p, cpus); err != nil {
		return Effective{}, err
	}
	if !nodes.IsEmpty() {
		if err := applyMemory(p, nodes); err != nil {
			return Effective{}, err
		}
	}
	return readBack(p, cpus, nodes)
}

// mostCPUs is the largest number of CPUs that a kernel can be built for (NR_CPUS of arch/x86/Kconfig).
const mostCPUs = 8192

func applyCPUs(p spec.Pinning, wanted cpuset.CPUSet) error {
	allowed, err := ownCPUs()
	if err != nil {
		return err
	}
	if !wanted.IsSubsetOf(allowed) {
		return fmt.Errorf("can't bind the daemon to the CPUs %s (%s): this container may only use %s, so %s is missing; "+
			"correct the pinning, or look what takes the CPUs away (the kubelet's CPU manager, a cpuset of the container runtime, CPUs that are offline)",
			wanted, p.Why, allowed, wanted.Difference(allowed))
	}
	mask := unix.NewCPUSet(mostCPUs)
	for _, cpu := range wanted.UnsortedList() {
		mask.Set(cpu)
	}
	if err := unix.SchedSetaffinityDynamic(0, mask); err != nil {
		return fmt.Errorf("can't bind the daemon to the CPUs %s (%s): sched_setaffinity: %w", wanted, p.Why, err)
	}
	return nil
}

func ownCPUs() (cpuset.CPUSet, error) {
	mask := unix.NewCPUSet(mostCPUs)
	if err := unix.SchedGetaffinityDynamic(0, mask); err != nil {
		return cpuset.CPUSet{}, fmt.Errorf("can't ask the kernel which CPUs this container may use: sched_getaffinity: %w", err)
	}
	var cpus []int
	for cpu := range mostCPUs {
		if mask.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpuset.New(cpus...), nil
}

func applyMemory(p spec.Pinning, wanted cpuset.CPUSet) error {
	status, err := readStatus("/proc/thread-self/status")
	if err != nil {
		return fmt.Errorf("can't see which NUMA nodes this container may use: %w", err)
	}
	if !wanted.IsSubsetOf(status.memoryNodes) {
		return fmt.Errorf("can't bind the daemon's memory to the NUMA nodes %s (%s): this container may only use %s, so %s is missing; correct the pinning",
			wanted, p.Why, status.memoryNodes, wanted.Difference(status.memoryNodes))
	}
	list := wanted.List()
	switch v1alpha1.MemoryPolicy(p.MemoryPolicy) {
	case v1alpha1.MemoryBind:
		err = setPolicy(unix.MPOL_BIND, list)
	case v1alpha1.MemoryPreferred, "":
		err = unix.EINVAL
		if len(list) > 1 {
			err = setPolicy(unix.MPOL_PREFERRED_MANY, list)
		}
		// EINVAL: the kernel is older than 5.15 and can prefer only one node.
		if errors.Is(err, unix.EINVAL) {
			err = setPolicy(unix.MPOL_PREFERRED, list[:1])
		}
	default:
		return fmt.Errorf("can't set the memory policy %q (%s): it is neither Bind nor Preferred", p.MemoryPolicy, p.Why)
	}
	switch {
	case errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("can't bind the daemon's memory to the NUMA nodes %s (%s): this kernel knows no NUMA; leave the memory policy out", wanted, p.Why)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("can't bind the daemon's memory to the NUMA nodes %s (%s): the container may not call set_mempolicy; give it the capability SYS_NICE",
			wanted, p.Why)
	case err != nil:
		return fmt.Errorf("can't bind the daemon's memory to the NUMA nodes %s (%s): set_mempolicy: %w", wanted, p.Why, err)
	}
	return nil
}

func setPolicy(mode int, nodes []int) error {
	var mask unix.CPUSet
	for _, node := range nodes {
		mask.Set(node)
	}
	return unix.SetMemPolicy(mode, &mask)
}

// readBack reads the placement from the kernel and compares it with p.
func readBack(p spec.Pinning, cpus, nodes cpuset.CPUSet) (Effective, error) {
	got, err := ownCPUs()
	if err != nil {
		return Effective{}, err
	}
	if !got.Equals(cpus) {
		return Effective{}, fmt.Errorf("the daemon was to be bound to the CPUs %s (%s), but the kernel binds it to %s; look what else sets the CPUs of this container",
			cpus, p.Why, got)
	}
	effective := Effective{CPUs: got.String()}
	policies, err := readPolicies("/proc/thread-self/numa_maps")
	switch {
	case errors.Is(err, os.ErrNotExist) && nodes.IsEmpty():
		return effective, nil
	case err != nil:
		return Effective{}, fmt.Errorf("can't read the memory policy back: %w", err)
	}
	effective.MemoryPolicy = policies.most()
	if nodes.IsEmpty() {
		return effective, nil
	}
	mode, where, _ := strings.Cut(effective.MemoryPolicy, ":")
	binds := strings.HasPrefix(mode, "bind")
	set, err := cpuset.Parse(where)
	one := strings.HasPrefix(mode, "prefer") && set.Size() == 1 && nodes.Contains(set.List()[0])
	if err != nil || binds != (p.MemoryPolicy == string(v1alpha1.MemoryBind)) || !set.Equals(nodes) && !one {
		return Effective{}, fmt.Errorf("the daemon's memory was to be bound to the NUMA nodes %s (%s), but the kernel says %q; look what else sets the memory policy",
			nodes, p.Why, effective.MemoryPolicy)
	}
	return effective, nil
}
