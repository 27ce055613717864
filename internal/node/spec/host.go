package spec

import "time"

// HostSetting is a kernel setting of a server that a filesystem's documentation asks for.
type HostSetting struct {
	// Name is TransparentHugePages, CStates, CPUGovernor, SMT, or the name of a kernel parameter in the form of sysctl(8), such as
	// "vm.dirty_ratio".
	Name string
	// FileSystem is the type of the filesystem, and Roles are those of its servers on a node that asks for it.
	FileSystem string
	Roles      []string
	// Expected is the expected value, and Source the document that asks for it.
	Expected, Source string
}

// The names of settings that are no kernel parameters.
const (
	// TransparentHugePages is the kernel's /sys/kernel/mm/transparent_hugepage/enabled.
	TransparentHugePages = "transparentHugePages"
	// CStates is the deepest idle state that any CPU may enter, CPUGovernor the governors of all CPUs, and SMT is on or off.
	CStates     = "cStates"
	CPUGovernor = "cpuGovernor"
	SMT         = "smt"
)

// KernelModule is a module that a filesystem needs on a node, with the ways to build it from its sources.
type KernelModule struct {
	Name string
	// DKMS is the package that builds it for each kernel. Sources is a pattern of paths that the package leaves on the node, relative to its
	// root directory.
	DKMS, Sources string
	// ByHand is the same kind of pattern for the package that is built by hand, and Rebuild the command that builds it.
	ByHand, Rebuild string
}

// HostSoftware is the software that a filesystem needs on the node itself because its servers and clients are part of the kernel: modules,
// and their programs. Images can't contain it.
type HostSoftware struct {
	// Name is the name of the filesystem in sentences.
	Name string
	// Server and Client are the needs of a node in each role.
	Server, Client HostNeed
	// OneVersion lists the modules with the same version as all programs.
	OneVersion []string
	// NIDs is the command line of a program that prints the node's names in the kernel's network, one per line. NIDsOf is the module that must
	// be loaded before the program is run, because a query must not load modules.
	NIDs   []string
	NIDsOf string
	// Clients is the command line of a program that prints the connections of the node's mounts to their servers, and ReadClients parses its
	// output. The program fails if nothing is mounted, so only its output counts.
	Clients     []string
	ReadClients func(output string) []HostClient
	// StandIn is a program that exists only on a node where another program serves the filesystem instead of the kernel, by FUSE. An example
	// is "umount.fuse.example" (mount(8), FILESYSTEM SUBTYPES). Such a node needs no modules. It is empty if there is no such program.
	StandIn string
}

// HostClient is a filesystem that the node has mounted.
type HostClient struct {
	Name string
	// Disconnected lists the targets without a connection, with the state of each.
	Disconnected []string
	// Evicted holds the times at which servers evicted the node, as far as its kernel remembers, by a text that is unique for each eviction.
	Evicted map[string]time.Time
}

// HostNeed lists the needs of a node for one purpose.
type HostNeed struct {
	Modules, Programs []string
	// Install names the packages that provide them, for a sentence.
	Install string
}
