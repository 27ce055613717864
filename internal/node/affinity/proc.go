package affinity

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/internal/node/procfs"
)

// status holds the fields of proc_pid_status(5) for a thread.
type status struct {
	parent            int
	cpus, memoryNodes cpuset.CPUSet
}

func readStatus(path string) (status, error) {
	content, err := procfs.Read(path)
	if err != nil {
		return status{}, err
	}
	found, err := parseStatus(string(content))
	if err != nil {
		return status{}, fmt.Errorf("can't understand %s: %w", path, err)
	}
	return found, nil
}

func parseStatus(content string) (found status, err error) {
	for line := range strings.Lines(content) {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch name {
		case "PPid":
			found.parent, err = strconv.Atoi(value)
		case "Cpus_allowed_list":
			found.cpus, err = cpuset.Parse(value)
		case "Mems_allowed_list":
			found.memoryNodes, err = cpuset.Parse(value)
		}
		if err != nil {
			return status{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	if found.cpus.IsEmpty() {
		return status{}, fmt.Errorf("there is no Cpus_allowed_list")
	}
	return found, nil
}

// policies counts the mappings of each memory policy.
type policies map[string]int

// most returns the most frequent policy. Ties are broken by name, and without mappings it is "default".
func (p policies) most() string {
	if len(p) == 0 {
		return "default"
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(p)), func(a, b string) int { return cmp.Compare(p[b], p[a]) })
}

func readPolicies(path string) (policies, error) {
	content, err := procfs.Read(path)
	if err != nil {
		return nil, err
	}
	return parsePolicies(content), nil
}

// parsePolicies counts the policies of a process's own memory: anonymous mappings, heap and stack, as proc_pid_numa_maps(5) shows them.
// File mappings are left out, because their pages are in the page cache, which other processes share.
func parsePolicies(content []byte) policies {
	found := policies{}
	for line := range bytes.Lines(content) {
		_, rest, _ := strings.Cut(strings.TrimSpace(string(line)), " ")
		fields := strings.Fields(rest)
		own := func(field string) bool {
			return field == "heap" || field == "stack" || strings.HasPrefix(field, "anon=")
		}
		ofFile := func(field string) bool { return strings.HasPrefix(field, "file=") }
		if !slices.ContainsFunc(fields, own) || slices.ContainsFunc(fields, ofFile) {
			continue
		}
		// Two policies are two words, see policy_modes in the kernel's mm/mempolicy.c: "prefer (many)" and "weighted interleave".
		policy := fields[0]
		if (policy == "prefer" || policy == "weighted") && len(fields) > 1 {
			policy += " " + fields[1]
		}
		found[policy]++
	}
	return found
}
