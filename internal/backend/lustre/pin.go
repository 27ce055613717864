package lustre

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Partitions are the CPU partitions (CPTs) of a node, and which of them serve metadata and data. Threads belong to a node and a service,
// and not to an MDT. Parameters of the modules are read when these are loaded: a change needs everything of Lustre's on the node unmounted.
type Partitions struct {
	// CPUs of each partition, by its number.
	CPUs []cpuset.CPUSet
	// Metadata and Storage are the partition of each role, -1 for a role that asks for none and so uses all.
	Metadata, Storage int
}

// PartitionsOf are the partitions of a node with these CPUs, for the lists that its MDTs and its OSTs ask for, empty for those that ask for
// none. An *InvalidSpecError says what the modules can't do.
func PartitionsOf(node string, all cpuset.CPUSet, mdts, osts []string) (Partitions, error) {
	metadata, err := oneList("spec.metadata.cpuPinning", node, "MDTs", mdts)
	if err != nil {
		return Partitions{}, err
	}
	storage, err := oneList("spec.storagePools[].cpuPinning", node, "OSTs", osts)
	if err != nil {
		return Partitions{}, err
	}
	out, used := Partitions{Metadata: -1, Storage: -1}, cpuset.New()
	for _, role := range []struct {
		asked cpuset.CPUSet
		field string
		at    *int
	}{{storage, "spec.storagePools[].cpuPinning", &out.Storage}, {metadata, "spec.metadata.cpuPinning", &out.Metadata}} {
		same := slices.IndexFunc(out.CPUs, role.asked.Equals)
		switch {
		case role.asked.IsEmpty():
		case !role.asked.IsSubsetOf(all):
			return Partitions{}, backend.Invalid(v1alpha1.ReasonInvalidSpec,
				"%s: node %s has no CPUs %s", role.field, node, role.asked.Difference(all))
		case same >= 0:
			*role.at = same
		case !role.asked.Intersection(used).IsEmpty():
			return Partitions{}, backend.Invalid(v1alpha1.ReasonInvalidSpec, "%s: on node %s, MDTs and OSTs ask for lists that share the CPUs %s, and a CPU is in "+
				"one partition of Lustre only; give both the same list, or lists without a common CPU", role.field, node, role.asked.Intersection(used))
		default:
			*role.at = len(out.CPUs)
			out.CPUs, used = append(out.CPUs, role.asked), used.Union(role.asked)
		}
	}
	if rest := all.Difference(used); len(out.CPUs) > 0 && !rest.IsEmpty() {
		out.CPUs = append(out.CPUs, rest) // for all threads that no role binds
	}
	return out, nil
}

// oneList is the list that all targets of a role ask for on a node.
func oneList(field, node, what string, lists []string) (cpuset.CPUSet, error) {
	var out cpuset.CPUSet
	for i, text := range lists {
		list, err := cpuset.Parse(text)
		if err != nil {
			return out, backend.Invalid(v1alpha1.ReasonInvalidSpec, "%s: %q is no list of CPUs", field, text)
		}
		if i > 0 && !list.Equals(out) {
			return out, backend.Invalid(v1alpha1.ReasonInvalidSpec, "%s asks for other CPUs for one of the %s of node %s than for another (%s and %s). Threads of "+
				"Lustre belong to the node and serve all of them; give all of them the same CPUs", field, what, node, text, lists[0])
		}
		out = list
	}
	return out, nil
}

// ModuleOptions are the lines of a file in /etc/modprobe.d that make the partitions; empty when nobody asks for any. The module of the OSTs
// is called ofd since 2.17, and ost before.
func (p Partitions) ModuleOptions(version string) string {
	if len(p.CPUs) == 0 {
		return ""
	}
	pattern := make([]string, len(p.CPUs))
	for i, cpus := range p.CPUs {
		pattern[i] = fmt.Sprintf("%d[%s]", i, cpus)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "options libcfs cpu_pattern=\"%s\"\n", strings.Join(pattern, " "))
	if p.Metadata >= 0 {
		fmt.Fprintf(&b, "options mdt mds_num_cpts=[%d] mds_rdpg_num_cpts=[%d]\n", p.Metadata, p.Metadata)
	}
	if p.Storage >= 0 {
		fmt.Fprintf(&b, "options %s oss_cpts=[%d] oss_io_cpts=[%d]\n", ostModule(version), p.Storage, p.Storage)
	}
	return b.String()
}

func ostModule(version string) string {
	if backend.CompareVersions(version, "2.17") < 0 {
		return "ost"
	}
	return "ofd"
}

// Drift says how the partitions that the kernel has differ from these, as a part of a sentence; empty when they do not.
func (p Partitions) Drift(found [][]int) string {
	if len(p.CPUs) == 0 {
		return ""
	}
	have := make([]cpuset.CPUSet, len(found))
	for i := range found {
		have[i] = cpuset.New(found[i]...)
	}
	if slices.EqualFunc(have, p.CPUs, cpuset.CPUSet.Equals) {
		return ""
	}
	return fmt.Sprintf("its partitions of CPUs are %s, and %s are asked for; the modules read that when they are loaded: unmount everything of Lustre's on "+
		"the node, unload the modules (lustre_rmmod), and mount it again", listOf(have), listOf(p.CPUs))
}

func listOf(sets []cpuset.CPUSet) string {
	out := make([]string, len(sets))
	for i, s := range sets {
		out[i] = fmt.Sprintf("%d[%s]", i, s)
	}
	return strings.Join(out, " ")
}
