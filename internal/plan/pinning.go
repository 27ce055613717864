package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// PinDaemon is one daemon of a FileSystem, on all of its nodes.
type PinDaemon struct {
	// Name is that of spec.Run.Daemon, such as "master" or "chunkserver/ssd".
	Name string
	// Index is the number of the instance on its node, from 0. It selects the entry of a list.
	Index int
	// Field is the field that asks for the pinning, such as "spec.storagePools[ssd].cpuPinning", for sentences.
	Field string
	// Pinning is the requested pinning; nil for none.
	Pinning *v1alpha1.CPUPinning
	// Nodes lists the nodes of the daemon.
	Nodes []string
	// Role and StoragePool are those of its StorageTargets. Each metadata server of a node has a Slot, which equals Index.
	Role        v1alpha1.Role
	StoragePool string
	// InDirectories is true if the daemon keeps its data in directories, so that its own disks are unknown.
	InDirectories bool
	// Kernel is true for threads of the node's kernel. Several of these may share CPUs, also between FileSystems.
	Kernel bool
}

// PinInput is the input of the choice of CPUs.
type PinInput struct {
	// FileSystem is namespace/name, for sentences.
	FileSystem string
	Daemons    []PinDaemon
	// Inventories holds the inventories by node. A node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Targets holds the StorageTargets of the FileSystem, for daemons that get the NUMA node of their own disks.
	Targets []v1alpha1.StorageTarget
	// Others holds the daemons of the other FileSystems, by FileSystem (namespace/name).
	Others map[string][]PinDaemon
}

// Pin returns the CPUs and memory of every daemon, by node and daemon, and a problem for each pinning that contradicts another one or the
// node. A daemon whose pinning has a problem gets none. The mode KubeletStatic pins nothing here, because the kubelet does it.
func Pin(in PinInput) (map[string]map[string]spec.Pinning, []Problem) {
	pinnings := map[string]map[string]spec.Pinning{}
	var problems []Problem
	problem := func(text string) {
		problems = append(problems, Problem{Reason: v1alpha1.ReasonPinningConflict, Message: text})
	}
	rivals := cpuSets(in)
	for _, d := range in.Daemons {
		if d.Pinning == nil || d.Pinning.Mode == v1alpha1.PinningNone || d.Pinning.Mode == "" {
			continue
		}
		for _, node := range slices.Compact(slices.Sorted(slices.Values(d.Nodes))) {
			inventory, ok := in.Inventories[node]
			if !ok {
				problem(fmt.Sprintf("%s asks for CPUs of node %s; %s", d.Field, node, noInventory(node)))
				continue
			}
			d, why := in.atItsDisks(d, node, inventory)
			if d.Pinning == nil {
				continue // it has no disk yet
			}
			var pinning *spec.Pinning
			if why == "" {
				pinning, why = pin(d, node, inventory.CPU)
			}
			if why == "" {
				why = overlap(in.FileSystem, d, node, rivals[node])
			}
			switch {
			case why != "":
				problem(why)
			case pinning != nil:
				if pinnings[node] == nil {
					pinnings[node] = map[string]spec.Pinning{}
				}
				pinnings[node][d.Name] = *pinning
			}
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Message, b.Message) })
	return pinnings, slices.Compact(problems)
}

// atItsDisks sets the NUMA node of a daemon that asks for none to the node of its own disks, or returns why that is unknown. Without a disk
// on the node the daemon has no pinning. Disks that are missing are ignored.
func (in PinInput) atItsDisks(d PinDaemon, node string, inventory v1alpha1.NodeInventoryStatus) (PinDaemon, string) {
	if d.Pinning.Mode != v1alpha1.PinningNUMANode || len(d.Pinning.NUMANodes) > 0 {
		return d, ""
	}
	if d.InDirectories {
		return d, d.Field + " names no numaNodes, and it is not known to which NUMA node the disks of directories are attached; set numaNodes, " +
			"or keep the data on disks"
	}
	var on []int32
	var unknown []string
	hasDisk := false
	for i := range in.Targets {
		t := &in.Targets[i]
		if t.Spec.Node != node || t.Spec.Role != d.Role || t.Spec.StoragePool != d.StoragePool ||
			d.Role == v1alpha1.RoleMetadata && !d.Kernel && int(t.Spec.Slot) != d.Index {
			continue
		}
		hasDisk = true
		switch b := findDevice(inventory, string(t.Spec.Device.ID)); {
		case b == nil:
		case b.NUMANode == nil || *b.NUMANode < 0:
			unknown = append(unknown, string(t.Spec.Device.ID))
		default:
			on = append(on, *b.NUMANode)
		}
	}
	slices.Sort(on)
	on = slices.Compact(on)
	pinning := *d.Pinning
	pinning.NUMANodes, d.Pinning = on, nil
	switch {
	case !hasDisk:
		return d, ""
	case len(on) == 1 && len(unknown) == 0:
		d.Pinning, d.Index = &pinning, 0
		return d, ""
	}
	d.Pinning = &pinning
	switch {
	case len(unknown) > 0:
		return d, fmt.Sprintf("%s names no numaNodes, and the kernel of node %s does not say to which NUMA node its disk %s is attached (%d in all); set numaNodes",
			d.Field, node, unknown[0], len(unknown))
	case len(on) == 0:
		return d, fmt.Sprintf("%s names no numaNodes, and none of its disks is there on node %s; bring them back, or set numaNodes", d.Field, node)
	default:
		return d, fmt.Sprintf("%s names no numaNodes, and its disks on node %s are attached to the NUMA nodes %s; set numaNodes, or give it disks of one of them",
			d.Field, node, listOf(on))
	}
}

// listOf formats numbers as a list in a sentence.
func listOf(numbers []int32) string {
	out := make([]string, len(numbers))
	for i, n := range numbers {
		out[i] = strconv.Itoa(int(n))
	}
	return strings.Join(out, ", ")
}

// pin returns the pinning of one daemon on one node, or why it can't be had.
func pin(d PinDaemon, node string, cpu v1alpha1.CPUStatus) (*spec.Pinning, string) {
	switch d.Pinning.Mode {
	case v1alpha1.PinningNUMANode:
		return pinToNode(d, node, cpu)
	case v1alpha1.PinningCPUSet:
		return pinToSet(d, node, cpu)
	case v1alpha1.PinningKubeletStatic:
		if cpu.KubeletCPUManagerPolicy != "static" {
			return nil, fmt.Sprintf("%s asks for exclusive CPUs of the kubelet, and the CPU manager policy of node %s is %s; set cpuManagerPolicy: static there, or use another mode",
				d.Field, node, cmp.Or(cpu.KubeletCPUManagerPolicy, "not known"))
		}
		return nil, ""
	}
	return nil, fmt.Sprintf("%s: the mode %q is unknown", d.Field, d.Pinning.Mode)
}

// pinToNode gives a daemon all CPUs of one NUMA node.
func pinToNode(d PinDaemon, node string, cpu v1alpha1.CPUStatus) (*spec.Pinning, string) {
	want := d.Pinning.NUMANodes[d.Index%len(d.Pinning.NUMANodes)]
	there := make([]string, 0, len(cpu.NUMANodes))
	for _, n := range cpu.NUMANodes {
		if n.ID != want {
			there = append(there, strconv.Itoa(int(n.ID)))
			continue
		}
		cpus, err := cpuset.Parse(n.CPUs)
		if err != nil || cpus.IsEmpty() {
			return nil, fmt.Sprintf("%s asks for NUMA node %d, which on node %s has only memory and no CPUs (%q); choose another one", d.Field, want, node, n.CPUs)
		}
		id := strconv.Itoa(int(want))
		return pinning(d, cpus, id, "NUMA node "+id), ""
	}
	return nil, fmt.Sprintf("%s asks for NUMA node %d, and node %s has the NUMA nodes %s", d.Field, want, node, cmp.Or(strings.Join(there, ", "), "(none known)"))
}

// pinToSet gives a daemon the CPUs that are named, and the memory of their NUMA nodes.
func pinToSet(d PinDaemon, node string, cpu v1alpha1.CPUStatus) (*spec.Pinning, string) {
	cpus, why := cpuSetOf(d)
	if why != "" {
		return nil, why
	}
	there := cpuset.New()
	var memory []int
	for _, n := range cpu.NUMANodes {
		of, err := cpuset.Parse(n.CPUs)
		if err != nil {
			return nil, fmt.Sprintf("the inventory of node %s has CPUs %q for NUMA node %d, which is no list of CPUs", node, n.CPUs, n.ID)
		}
		there = there.Union(of)
		if !of.Intersection(cpus).IsEmpty() {
			memory = append(memory, int(n.ID))
		}
	}
	if missing := cpus.Difference(there); !missing.IsEmpty() {
		return nil, fmt.Sprintf("%s asks for the CPUs %s, and node %s has %s: %s is not there", d.Field, cpus, node, cmp.Or(there.String(), "none"), missing)
	}
	return pinning(d, cpus, cpuset.New(memory...).String(), "CPUs "+cpus.String()), ""
}

// pinning builds the result for one daemon.
func pinning(d PinDaemon, cpus cpuset.CPUSet, memory, what string) *spec.Pinning {
	return &spec.Pinning{
		CPUs: cpus.String(), MemoryNodes: memory, MemoryPolicy: string(cmp.Or(d.Pinning.MemoryPolicy, v1alpha1.MemoryPreferred)),
		Why: d.Field + ": " + what,
	}
}

// cpuSetOf returns the CPUs that are named for one daemon.
func cpuSetOf(d PinDaemon) (cpuset.CPUSet, string) {
	sets := d.Pinning.CPUSets
	if d.Index >= len(sets) {
		return cpuset.New(), fmt.Sprintf("%s has %d cpuSets, and instance %d (%s) needs one of its own; give one for each instance on a node", d.Field, len(sets), d.Index, d.Name)
	}
	cpus, err := cpuset.Parse(string(sets[d.Index]))
	if err != nil || cpus.IsEmpty() {
		return cpuset.New(), fmt.Sprintf("%s.cpuSets: %q is no list of CPUs such as 0-7,16-23", d.Field, sets[d.Index])
	}
	return cpus, ""
}

// namedSet is a set of CPUs with its owner.
type namedSet struct {
	fileSystem string
	daemon     PinDaemon
	cpus       cpuset.CPUSet
}

// cpuSets returns the CPUs that are named for daemons of all FileSystems, by node.
func cpuSets(in PinInput) map[string][]namedSet {
	all := map[string][]namedSet{}
	add := func(fileSystem string, daemons []PinDaemon) {
		for _, d := range daemons {
			if d.Pinning == nil || d.Pinning.Mode != v1alpha1.PinningCPUSet {
				continue
			}
			cpus, why := cpuSetOf(d)
			if why != "" {
				continue
			}
			for _, node := range slices.Compact(slices.Sorted(slices.Values(d.Nodes))) {
				all[node] = append(all[node], namedSet{fileSystem, d, cpus})
			}
		}
	}
	add(in.FileSystem, in.Daemons)
	for _, name := range slices.Sorted(maps.Keys(in.Others)) {
		add(name, in.Others[name])
	}
	return all
}

// overlap names another daemon on the node that has a CPU of this one; empty if there is none. Only named CPUs count, because several
// daemons may share a NUMA node.
func overlap(fileSystem string, d PinDaemon, node string, rivals []namedSet) string {
	if d.Pinning.Mode != v1alpha1.PinningCPUSet {
		return ""
	}
	mine, _ := cpuSetOf(d)
	for _, r := range rivals {
		if r.fileSystem == fileSystem && r.daemon.Name == d.Name || r.daemon.Kernel && d.Kernel {
			continue
		}
		if shared := mine.Intersection(r.cpus); !shared.IsEmpty() {
			return fmt.Sprintf("node %s: %s (%s of FileSystem %s) and %s (%s of FileSystem %s) share the CPUs %s; give each its own",
				node, d.Field, d.Name, fileSystem, r.daemon.Field, r.daemon.Name, r.fileSystem, shared)
		}
	}
	return ""
}

// Drift describes how the placement of a running daemon differs from the desired one; empty if they agree.
func Drift(wanted spec.Pinning, found v1alpha1.DaemonPlacement) string {
	want, err := cpuset.Parse(wanted.CPUs)
	if err != nil {
		return fmt.Sprintf("the CPUs %q that are asked for are no list of CPUs", wanted.CPUs)
	}
	var drift []string
	has, err := cpuset.Parse(found.CPUs)
	switch {
	case err != nil || has.IsEmpty():
		drift = append(drift, fmt.Sprintf("it is not known on which CPUs it may run (%q)", found.CPUs))
	case !has.Equals(want):
		drift = append(drift, fmt.Sprintf("it may run on the CPUs %s, and %s are asked for", has, want))
	}
	if found.StrayThreads > 0 {
		drift = append(drift, fmt.Sprintf("%d of its threads may run on other CPUs than the first", found.StrayThreads))
	}
	if wanted.MemoryNodes != "" && !slices.Contains(policies(wanted), found.MemoryPolicy) {
		drift = append(drift, fmt.Sprintf("its memory policy is %q, and %s is asked for", found.MemoryPolicy, policies(wanted)[0]))
	}
	if len(drift) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: %s (%s)", found.Name, strings.Join(drift, "; "), wanted.Why)
}

// policies returns the forms in which /proc/<pid>/numa_maps shows a memory policy (kernel mm/mempolicy.c, mpol_to_str). One preferred NUMA
// node has two such forms.
func policies(wanted spec.Pinning) []string {
	if wanted.MemoryPolicy == string(v1alpha1.MemoryBind) {
		return []string{"bind:" + wanted.MemoryNodes}
	}
	return []string{"prefer:" + wanted.MemoryNodes, "prefer (many):" + wanted.MemoryNodes}
}
