package lustre

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/plan"
)

// Partitions describes the CPU partitions (CPTs) of a node, and which of them serve metadata and data. Threads belong to a node and a
// service, and not to an MDT. The parameters of modules are read when the modules are loaded: a change requires that all mounts of Lustre
// on the node are unmounted.
type Partitions struct {
	// CPUs of each partition, by its number.
	CPUs []cpuset.CPUSet
	// Metadata and Storage are the partition of each role, -1 for a role without requested CPUs, which uses all.
	Metadata, Storage int
}

// PartitionsOf returns the partitions of a node with these CPUs. The CPUs that its MDTs request, and those of each pool with OSTs there,
// are arguments; an empty set requests none. If the modules can't do that, it returns the reason in a sentence.
func PartitionsOf(node string, all, metadata cpuset.CPUSet, pools []cpuset.CPUSet) (out Partitions, why string) {
	var storage cpuset.CPUSet
	for i, cpus := range pools {
		if i > 0 && !cpus.Equals(storage) {
			return Partitions{}, fmt.Sprintf("spec.storagePools[].cpuPinning asks for the CPUs %s for one of the pools with OSTs on node %s, and for %s for another. "+
				"The threads that serve OSTs belong to the node and serve all of them; give these pools the same CPUs", textOf(storage), node, textOf(cpus))
		}
		storage = cpus
	}
	shared := metadata.Intersection(storage)
	if !shared.IsEmpty() && !metadata.Equals(storage) {
		return Partitions{}, fmt.Sprintf("cpuPinning of the MDTs of node %s asks for the CPUs %s, and that of its OSTs for %s. Both have %s, and a CPU is in one "+
			"partition of Lustre only; give both the same CPUs, or none that both have", node, metadata, storage, shared)
	}
	out = Partitions{Metadata: -1, Storage: -1}
	if !storage.IsEmpty() {
		out.Storage, out.CPUs = len(out.CPUs), append(out.CPUs, storage)
	}
	switch {
	case metadata.IsEmpty():
	case metadata.Equals(storage):
		out.Metadata = out.Storage
	default:
		out.Metadata, out.CPUs = len(out.CPUs), append(out.CPUs, metadata)
	}
	if rest := all.Difference(metadata.Union(storage)); len(out.CPUs) > 0 && !rest.IsEmpty() {
		out.CPUs = append(out.CPUs, rest) // for the threads that belong to neither role
	}
	if len(listOf(out.CPUs)) > longestParameter {
		return Partitions{}, fmt.Sprintf("the CPUs that cpuPinning asks for on node %s, and those that are left there, are more ranges than the kernel takes in an "+
			"option of a module (%d characters); ask for CPUs whose numbers follow each other", node, longestParameter)
	}
	return out, ""
}

// longestParameter is the number of characters that the kernel accepts (param_set_charp in its kernel/params.c).
const longestParameter = 1024

func textOf(cpus cpuset.CPUSet) string { return cmp.Or(cpus.String(), "(none)") }

// option is one parameter with which a module is loaded.
type option struct{ module, name, value string }

// key is its name among backend.LoadedModules.Parameters.
func (o option) key() string { return o.module + "." + o.name }

// threads binds the threads of a role to its partition. The module of the OSTs is called ofd since 2.17, and ost before.
func (p Partitions) threads(role v1alpha1.Role, version string) (out []option) {
	module, names, at := "mdt", []string{"mds_num_cpts", "mds_rdpg_num_cpts"}, p.Metadata
	if role == v1alpha1.RoleStorage {
		module, names, at = "ofd", []string{"oss_cpts", "oss_io_cpts"}, p.Storage
		if backend.CompareVersions(version, "2.17") < 0 {
			module = "ost"
		}
	}
	for _, name := range names {
		if at >= 0 {
			out = append(out, option{module, name, fmt.Sprintf("[%d]", at)})
		}
	}
	return out
}

// ModuleOptions returns the lines of a file in /etc/modprobe.d that make the partitions; none when no CPUs are requested.
func (p Partitions) ModuleOptions(version string) []string {
	if len(p.CPUs) == 0 {
		return nil
	}
	lines := []string{fmt.Sprintf("options libcfs cpu_pattern=%q", listOf(p.CPUs))}
	for _, role := range []v1alpha1.Role{v1alpha1.RoleMetadata, v1alpha1.RoleStorage} {
		var line strings.Builder
		for _, o := range p.threads(role, version) {
			if line.Len() == 0 {
				line.WriteString("options " + o.module)
			}
			line.WriteString(" " + o.name + "=" + o.value)
		}
		if line.Len() > 0 {
			lines = append(lines, line.String())
		}
	}
	return lines
}

// Drift describes how the loaded parameters of a node's modules differ from these partitions, for the threads of a role, as a part of a
// sentence; empty when they do not. Parameters that the node has not reported do not differ.
func (p Partitions) Drift(role v1alpha1.Role, version string, loaded backend.LoadedModules) string {
	if found := setsOf(loaded.Partitions); len(found) > 0 && !slices.EqualFunc(found, p.CPUs, cpuset.CPUSet.Equals) {
		return fmt.Sprintf("the partitions of CPUs are %s, and %s are asked for", listOf(found), listOf(p.CPUs))
	}
	for _, o := range p.threads(role, version) {
		if value, said := loaded.Parameters[o.key()]; said && value != o.value {
			return fmt.Sprintf("the module %s was loaded with %s=%s, and %s is asked for", o.module, o.name, value, o.value)
		}
	}
	return ""
}

// oneOf is the value of a parameter that names one partition.
var oneOf = regexp.MustCompile(`^\[?([0-9]{1,4})\]?$`)

// runsOn returns the CPUs on which the threads of a role run, empty while they are unknown.
func (p Partitions) runsOn(role v1alpha1.Role, version string, loaded backend.LoadedModules) string {
	threads, all := p.threads(role, version), setsOf(loaded.Partitions)
	if len(threads) == 0 {
		return ""
	}
	value, said := loaded.Parameters[threads[0].key()]
	if found := oneOf.FindStringSubmatch(value); found != nil {
		at, _ := strconv.Atoi(found[1]) // the pattern has only digits
		if at < len(all) {
			return all[at].String()
		}
	}
	if said && (value == "" || value == unsetParameter) {
		return cpuset.New().Union(all...).String()
	}
	return ""
}

// unsetParameter is printed by the kernel for a text parameter that was never set (param_get_charp).
const unsetParameter = "(null)"

func setsOf(partitions [][]int) []cpuset.CPUSet {
	out := make([]cpuset.CPUSet, len(partitions))
	for i := range partitions {
		out[i] = cpuset.New(partitions[i]...)
	}
	return out
}

// listOf formats sets in the form of cpu_pattern.
func listOf(sets []cpuset.CPUSet) string {
	out := make([]string, len(sets))
	for i, s := range sets {
		out[i] = fmt.Sprintf("%d[%s]", i, s)
	}
	return strings.Join(out, " ")
}

// PinDaemons returns the MDTs, which have one list of CPUs on each node, and the OSTs of each pool.
func (Backend) PinDaemons(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) []plan.PinDaemon {
	on := map[string][]string{}
	for _, g := range backend.GivenOn(nodes) {
		if !g.Retired && !g.GivenUp {
			on[pinDaemon(g)] = append(on[pinDaemon(g)], g.Node)
		}
	}
	out := []plan.PinDaemon{{
		Name: componentMDT, Field: "spec.metadataServers.cpuPinning", Pinning: fs.Spec.MetadataServers.CPUPinning, Nodes: on[componentMDT],
		Kernel: true,
		Role:   v1alpha1.RoleMetadata,
	}}
	for _, pool := range fs.Spec.StoragePools {
		out = append(out, plan.PinDaemon{
			Name: ostDaemon(pool.Name), Field: "spec.storagePools[" + pool.Name + "].cpuPinning", Pinning: pool.CPUPinning,
			Nodes: on[ostDaemon(pool.Name)], Kernel: true, Role: v1alpha1.RoleStorage, StoragePool: pool.Name,
		})
	}
	return out
}

// pinDaemon is the name of a member among PinDaemons.
func pinDaemon(g backend.Given) string {
	if g.Role == v1alpha1.RoleMetadata {
		return componentMDT
	}
	return ostDaemon(g.StoragePool)
}

// pinningOf is the requested pinning of a member.
func pinningOf(fs *v1alpha1.FileSystem, g backend.Given) *v1alpha1.CPUPinning {
	if g.Role == v1alpha1.RoleMetadata {
		return fs.Spec.MetadataServers.CPUPinning
	}
	for i := range fs.Spec.StoragePools {
		if pool := &fs.Spec.StoragePools[i]; pool.Name == g.StoragePool {
			return pool.CPUPinning
		}
	}
	return nil
}

// pin holds the desired parameters of the modules of a node.
type pin struct {
	Partitions
	// lines has the options; it is empty while they are unknown, or impossible.
	lines []string
	// why is the reason why the request is impossible, in a sentence. plan.Pin reports a lack of CPUs.
	why string
}

// pinsOf returns the pins of the nodes with requested CPUs.
func pinsOf(in backend.Input) map[string]pin {
	asks := func(p v1alpha1.StoragePoolSpec) bool { return podspec.Bound(p.CPUPinning) }
	if !podspec.Bound(in.FileSystem.Spec.MetadataServers.CPUPinning) && !slices.ContainsFunc(in.FileSystem.Spec.StoragePools, asks) {
		return nil
	}
	type asked struct {
		metadata cpuset.CPUSet
		pools    []cpuset.CPUSet
		// some is true when a member requests CPUs, and unknown when the CPUs of a member are unknown.
		some, unknown bool
	}
	of := map[string]*asked{}
	for _, g := range in.Given() {
		if g.Retired || g.GivenUp {
			continue
		}
		a := of[g.Node]
		if a == nil {
			a = &asked{}
			of[g.Node] = a
		}
		var cpus cpuset.CPUSet
		if podspec.Bound(pinningOf(in.FileSystem, g)) {
			var err error
			wanted, known := in.Pinnings[g.Node][pinDaemon(g)]
			cpus, err = cpuset.Parse(wanted.CPUs)
			a.some, a.unknown = true, a.unknown || !known || err != nil
		}
		if g.Role == v1alpha1.RoleMetadata {
			a.metadata = cpus
		} else {
			a.pools = append(a.pools, cpus)
		}
	}
	out := map[string]pin{}
	for node, a := range of {
		var p pin
		if !a.some {
			continue
		}
		if all := cpusOf(in.Inventories[node]); !a.unknown && !all.IsEmpty() {
			p.Partitions, p.why = PartitionsOf(node, all, a.metadata, a.pools)
			lines := p.ModuleOptions(backend.VersionOf(in.FileSystem, componentOST))
			if p.why = cmp.Or(p.why, rival(in, node, lines)); p.why == "" {
				p.lines = lines
			}
		}
		out[node] = p
	}
	return out
}

// cpusOf returns the CPUs of a node.
func cpusOf(found v1alpha1.NodeInventoryStatus) cpuset.CPUSet {
	all := cpuset.New()
	for _, n := range found.CPU.NUMANodes {
		cpus, err := cpuset.Parse(n.CPUs)
		if err != nil {
			return cpuset.New()
		}
		all = all.Union(cpus)
	}
	return all
}

// rival reports that an earlier FileSystem needs other module options on the node.
func rival(in backend.Input, node string, lines []string) string {
	if mine := in.FileSystemNodeOn(node); mine != nil && mine.Spec.ModuleOptions != nil && slices.Equal(mine.Spec.ModuleOptions.Lines, lines) {
		return ""
	}
	for i := range in.Others {
		other := &in.Others[i]
		theirs := backend.Input{FileSystemNodes: in.OthersNodes[other.UID]}.FileSystemNodeOn(node)
		if theirs != nil && theirs.Spec.ModuleOptions != nil && !slices.Equal(theirs.Spec.ModuleOptions.Lines, lines) {
			return fmt.Sprintf("cpuPinning asks for other CPUs on node %s than FileSystem %s/%s does, and the modules of a node are loaded once, with one set of options; "+
				"ask for the same in both, or in one of them only, or use other nodes", node, other.Namespace, other.Name)
		}
	}
	return ""
}

// unpinned returns why a member does not serve for the first time yet: its modules would be loaded with other options than it requests. A
// member that has served before is not delayed.
func (p pin) unpinned(g backend.Given) string {
	served := slices.ContainsFunc(g.Targets, func(t v1alpha1.MemberTarget) bool { return t.Initialized != nil })
	if len(p.lines) > 0 || served {
		return ""
	}
	return backend.Shorten(cmp.Or(p.why, "its CPUs on this node are not decided yet"))
}

// place describes on which CPUs the threads of a member run, if CPUs are requested for it.
func (o *observer) place(s *backend.ServerStatus, g backend.Given, disks []*v1alpha1.StorageTarget) {
	if !podspec.Bound(pinningOf(o.fs, g)) {
		return
	}
	p, found := o.pins[s.Node], v1alpha1.Placement{WantedCPUs: o.in.Pinnings[s.Node][pinDaemon(g)].CPUs}
	unknown := func(reason, why string) {
		s.Placement = o.placements.OfKernel(s.Name, found, disks, &backend.Problem{Reason: reason, Message: why})
	}
	if len(p.lines) == 0 {
		unknown(v1alpha1.ReasonPinningConflict, "its desired CPUs are unknown")
		return
	}
	var loaded *backend.LoadedModules
	if node, there := o.in.Node(s.Node); there && o.in.State != nil {
		for answer := range o.in.ServersAt(node.IP) {
			loaded = answer.Modules
		}
	}
	if loaded == nil {
		unknown(v1alpha1.ReasonStarting, "its node does not say which partitions of CPUs there are")
		return
	}
	version := backend.VersionOf(o.fs, componentOST)
	found.CPUs = p.runsOn(s.Role, version, *loaded)
	if found.Drift = p.Drift(s.Role, version, *loaded); found.Drift != "" {
		found.Drift = backend.Shorten(found.Drift + o.remedy(s.Node))
	}
	s.Placement = o.placements.OfKernel(s.Name, found, disks, nil)
}

// remedy describes how a node gets the requested options.
func (o *observer) remedy(node string) string {
	write, said := "", ""
	n := o.in.FileSystemNodeOn(node)
	if n != nil && own(o.fs).ModuleOptions != v1alpha1.ModuleOptionsWrite {
		write = fmt.Sprintf("put the lines of spec.moduleOptions of FileSystemNode %s into a file in /etc/modprobe.d there, then ", n.Name)
	}
	if n != nil && n.Status.Agent != nil && n.Status.Agent.Message != "" {
		said = "; its agent reports: " + n.Status.Agent.Message
	}
	return "; modules read that when they are loaded: " + write + "restart the node, or unmount everything of Lustre's there and unload the modules (lustre_rmmod)" + said
}

// diagnosePinning lists the nodes that can't have the requested CPUs.
func (o *observer) diagnosePinning(say func(reason, format string, args ...any)) {
	var refused []string
	for _, node := range backend.SortedKeys(o.pins) {
		if why := o.pins[node].why; why != "" {
			refused = append(refused, why)
		}
	}
	if len(refused) > 0 {
		say(v1alpha1.ReasonPinningConflict, "%s", backend.List(refused))
	}
}
