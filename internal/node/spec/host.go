package spec

import "time"

// HostSetting is how a filesystem's documentation says that the kernel of a server should be set.
type HostSetting struct {
	// Name is TransparentHugePages, or that of a parameter of the kernel in the form of sysctl(8), such as "vm.dirty_ratio".
	Name string
	// Expected is what it should be, and Source where that is written.
	Expected, Source string
}

// TransparentHugePages is the name of the HostSetting with the kernel's /sys/kernel/mm/transparent_hugepage/enabled.
const TransparentHugePages = "transparentHugePages"

// KernelModule is a module that a filesystem needs on a node, and how it is built there from its sources.
type KernelModule struct {
	Name string
	// DKMS is the package that builds it for each kernel, and Sources what that package leaves on the node: a pattern of paths, relative to
	// the node's root directory.
	DKMS, Sources string
	// ByHand is what the package that is built by hand leaves on the node, a pattern too, and Rebuild the command that builds it.
	ByHand, Rebuild string
}

// HostSoftware is what a filesystem needs on the node itself, because its servers and clients are a part of the kernel: modules, and the
// programs that belong to them. No image can bring these.
type HostSoftware struct {
	// Name of the filesystem in sentences.
	Name string
	// Server and Client are what a node needs to be one.
	Server, Client HostNeed
	// OneVersion are the modules that carry the version of all programs.
	OneVersion []string
	// NIDs are the arguments of a program that prints the node's names in the kernel's network, one in a line, and NIDsOf the module without
	// which it is not asked: a question must load nothing.
	NIDs   []string
	NIDsOf string
	// Clients are the arguments of a program that prints how the node's mounts of the filesystem are connected with its servers, and
	// ReadClients reads that. The program fails where nothing is mounted: what it has printed counts.
	Clients     []string
	ReadClients func(output string) []HostClient
	// StandIn is a program that a node only has when another program serves the filesystem in the kernel's place, by FUSE, such as
	// "umount.fuse.example" (mount(8), FILESYSTEM SUBTYPES): it needs no modules then. Empty where there is none.
	StandIn string
}

// HostClient is a filesystem that the node has mounted.
type HostClient struct {
	Name string
	// Disconnected are the targets that it has no connection with, and its state.
	Disconnected []string
	// Evicted are the moments at which servers have given the node up, as far as its kernel remembers, by texts of which each is of one of
	// them.
	Evicted map[string]time.Time
}

// HostNeed is what a node needs for one purpose.
type HostNeed struct {
	Modules, Programs []string
	// Install names what brings them, in a sentence.
	Install string
}
