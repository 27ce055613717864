package inventory

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
)

// cpu reads the topology (kernel Documentation/ABI/stable/sysfs-devices-system-cpu and -node).
func (c Collector) cpu() (v1alpha1.CPUStatus, error) {
	var s v1alpha1.CPUStatus
	directory := filepath.Join(c.Sys, "devices/system/cpu")
	online, err := cpuset.Parse(value(directory, "online"))
	if err != nil || online.IsEmpty() {
		return s, fmt.Errorf("can't read the CPUs of the node from %s/online: %q", directory, value(directory, "online"))
	}
	s.Model = c.model()
	s.Threads = int32(online.Size()) //nolint:gosec // a count of CPUs
	sockets, cores := map[string]bool{}, map[string]bool{}
	for _, cpu := range online.List() {
		topology := filepath.Join(directory, "cpu"+strconv.Itoa(cpu), "topology")
		socket := value(topology, "physical_package_id")
		siblings := firstOf(value(topology, "core_cpus_list"), value(topology, "thread_siblings_list"))
		sockets[socket] = true
		if cores[siblings] {
			continue
		}
		cores[siblings] = true
		if set, err := cpuset.Parse(siblings); err == nil && set.Size() > 1 {
			s.Siblings = append(s.Siblings, text(siblings, 64))
		}
	}
	s.Sockets, s.Cores = int32(len(sockets)), int32(len(cores)) //nolint:gosec // counts of CPUs
	s.Siblings = s.Siblings[:min(len(s.Siblings), 4096)]
	s.NUMANodes = c.numaNodes()
	s.KubeletCPUManagerPolicy = c.kubeletPolicy()
	return s, nil
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// model returns the name of the first processor (proc_cpuinfo(5)). Arm has no name there.
func (c Collector) model() string {
	for line := range strings.Lines(value(c.Proc, "cpuinfo")) {
		if key, model, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return text(strings.TrimSpace(model), 128)
		}
	}
	return ""
}

func (c Collector) numaNodes() []v1alpha1.NUMANode {
	directory := filepath.Join(c.Sys, "devices/system/node")
	var all []v1alpha1.NUMANode
	for _, name := range names(directory) {
		number, ok := strings.CutPrefix(name, "node")
		id, err := strconv.ParseInt(number, 10, 32)
		if !ok || err != nil {
			continue
		}
		node := v1alpha1.NUMANode{ID: int32(id), CPUs: text(value(directory, name, "cpulist"), 256)}
		for line := range strings.Lines(value(directory, name, "meminfo")) {
			// "Node 0 MemTotal:       131896016 kB"
			if fields := strings.Fields(line); len(fields) >= 4 && fields[2] == "MemTotal:" {
				kibibytes, _ := strconv.ParseInt(fields[3], 10, 64) // the kernel wrote it
				node.MemoryBytes = kibibytes * 1024
			}
		}
		all = append(all, node)
	}
	slices.SortFunc(all, func(a, b v1alpha1.NUMANode) int { return int(a.ID - b.ID) })
	return all
}

// kubeletPolicy returns the CPU manager policy in the kubelet's state file
// (kubernetes.io/docs/tasks/administer-cluster/cpu-management-policies).
func (c Collector) kubeletPolicy() string {
	var state struct {
		PolicyName string `json:"policyName"`
	}
	if err := json.Unmarshal([]byte(value(c.Host, "var/lib/kubelet/cpu_manager_state")), &state); err != nil {
		return ""
	}
	return text(state.PolicyName, 32)
}
