package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeInventoryStatus is the hardware and software of a node, as its agent found it. Nothing in it changes while the node does not.
type NodeInventoryStatus struct {
	// kernel of the node.
	// +optional
	Kernel KernelStatus `json:"kernel,omitzero"`

	// cpu describes the node's processors and NUMA nodes.
	// +optional
	CPU CPUStatus `json:"cpu,omitzero"`

	// blockDevices are the whole disks of the node, and the devices that are made from them, by kernel name.
	// +optional
	// +listType=map
	// +listMapKey=kernelName
	// +kubebuilder:validation:MaxItems=1024
	BlockDevices []BlockDevice `json:"blockDevices,omitempty"`

	// software lists the software of filesystems whose servers and clients are a part of the kernel, such as Lustre: no image contains that.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	Software []HostSoftware `json:"software,omitempty"`

	// networkInterfaces are the node's own, without those of pods.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	NetworkInterfaces []NetworkInterface `json:"networkInterfaces,omitempty"`

	// rdmaDevices are the node's InfiniBand and RoCE devices.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	RDMADevices []RDMADevice `json:"rdmaDevices,omitempty"`

	// settings are the settings of the host that storage servers depend on, each as found and as expected.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Settings []HostSetting `json:"settings,omitempty"`

	// daemons are the filesystems' daemons on this node, with the CPUs and memory that the kernel gives each.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Daemons []DaemonPlacement `json:"daemons,omitempty"`

	// droppedCaches is the last request to drop the node's caches that the agent has carried out.
	// +optional
	DroppedCaches *DroppedCaches `json:"droppedCaches,omitempty"`

	// volatileState is the filesystem that /var/lib/parallelfs is on when a restart of the node mostly loses it: tmpfs, ramfs or overlay. It
	// is absent otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	VolatileState string `json:"volatileState,omitempty"`

	// unsharedState is the mount point that /var/lib/parallelfs is on when this mount is not shared: then servers do not see disks that the
	// agent mounts. It is absent otherwise.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	UnsharedState string `json:"unsharedState,omitempty"`

	// summary holds the counts that kubectl get shows.
	// +optional
	Summary InventorySummary `json:"summary,omitzero"`

	// problems lists the facts that the agent could not find, and why, and faults of the node that keep servers from working.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	Problems []string `json:"problems,omitempty"`
}

// AnnotationDropCaches on a NodeInventory asks the agent of the node to drop the kernel's page cache, dentries and inodes once. Its value
// is any new text of at most 128 characters; status.droppedCaches.request repeats it when this was done.
const AnnotationDropCaches = "parallelfs.dev/drop-caches"

// DroppedCaches is a request to drop a node's caches that was carried out.
type DroppedCaches struct {
	// request is the value of the annotation parallelfs.dev/drop-caches.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Request string `json:"request,omitempty"`

	// time when it was done.
	// +required
	Time metav1.Time `json:"time,omitzero"`

	// error is the reason why it could not be done; empty when it was.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Error string `json:"error,omitempty"`
}

// InventorySummary has the counts of the printer columns.
type InventorySummary struct {
	// disks is the number of whole disks.
	// +optional
	Disks int32 `json:"disks"`
	// usable is the number of disks that can become targets: blank and free.
	// +optional
	Usable int32 `json:"usable"`
	// usableCapacity is the size of the usable disks together, such as "12.5TiB".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	UsableCapacity string `json:"usableCapacity,omitempty"`
	// settings is the number of host settings that are as expected, and of all, as "7/9".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Settings string `json:"settings,omitempty"`
}

// KernelStatus is the running kernel.
type KernelStatus struct {
	// release is that of uname(2), such as "6.12.48+deb13-amd64".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Release string `json:"release,omitempty"`

	// modules are the kernel modules that clients or servers of a filesystem need: fuse, xfs, ext4, btrfs, beegfs, lnet, lustre, ldiskfs and
	// osd_ldiskfs.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Modules []KernelModule `json:"modules,omitempty"`
}

// KernelModule is one module of the kernel.
type KernelModule struct {
	// name of the module.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// state is Loaded, BuiltIn, Available (it can be loaded) or Missing.
	// +required
	// +kubebuilder:validation:Enum=Loaded;BuiltIn;Available;Missing
	State string `json:"state,omitempty"`
	// version that the module says it has; empty when it says none, as those do that come with the kernel.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
	// message names what is missing, and what to install or run; empty when nothing is missing, or the cause is unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// HostSoftware is the node's software of one filesystem whose servers and clients are a part of the kernel.
type HostSoftware struct {
	// name of the filesystem, such as Lustre.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// programs of the filesystem that the node has; one that it has not is not listed.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Programs []HostProgram `json:"programs,omitempty"`

	// nids are the node's names in LNet, the network in the kernel, such as "192.168.77.1@tcp", in LNet's order; none while it is not loaded.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	NIDs []string `json:"nids,omitempty"`

	// missingForServers names what the node needs before servers of the filesystem can run on it, as one sentence; empty when it needs
	// nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	MissingForServers string `json:"missingForServers,omitempty"`

	// missingForClients is the same for clients.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	MissingForClients string `json:"missingForClients,omitempty"`

	// clients are the filesystems of this type that the node has mounted, and how its kernel is connected with their servers.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Clients []HostClient `json:"clients,omitempty"`
}

// HostClient is one filesystem that the node has mounted, as its kernel sees it.
type HostClient struct {
	// name by which the filesystem calls itself, such as spec.lustre.fsName of a FileSystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`

	// disconnected are the targets that the node has no connection with, and its state, such as "pfs-OST0001 DISCONN". Connections that are no
	// longer used are left out.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	Disconnected []string `json:"disconnected,omitempty"`

	// evictions is how often servers have given the node up since its agent has started, and before that as far as its kernel remembers.
	// Unsynced writes of programs may have been lost each time.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Evictions int32 `json:"evictions,omitempty"`

	// lastEvicted is when that was last.
	// +optional
	LastEvicted *metav1.Time `json:"lastEvicted,omitempty"`
}

// HostProgram is one program that is installed on the node.
type HostProgram struct {
	// name such as mkfs.lustre.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// version that it prints; empty when it prints none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// CPUStatus is the node's processors.
type CPUStatus struct {
	// model of the processors.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`

	// sockets is the number of processor sockets.
	// +optional
	Sockets int32 `json:"sockets,omitempty"`
	// cores is the number of cores of all sockets.
	// +optional
	Cores int32 `json:"cores,omitempty"`
	// threads is the number of online CPUs.
	// +optional
	Threads int32 `json:"threads,omitempty"`

	// numaNodes are the NUMA nodes; several may share a socket.
	// +optional
	// +listType=map
	// +listMapKey=id
	// +kubebuilder:validation:MaxItems=1024
	NUMANodes []NUMANode `json:"numaNodes,omitempty"`

	// siblings are the CPUs that share a core, such as "0,32", one entry for each core; empty without SMT.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4096
	// +kubebuilder:validation:items:MaxLength=64
	Siblings []string `json:"siblings,omitempty"`

	// kubeletCPUManagerPolicy is "none" or "static", from the kubelet's own state file; empty when it could not be read.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	KubeletCPUManagerPolicy string `json:"kubeletCPUManagerPolicy,omitempty"`
}

// NUMANode is one NUMA node.
type NUMANode struct {
	// id is the number that the kernel gives it.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	ID int32 `json:"id"`
	// cpus in the kernel's list format, such as "0-15,32-47".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	CPUs string `json:"cpus,omitempty"`
	// memoryBytes of the NUMA node.
	// +optional
	MemoryBytes int64 `json:"memoryBytes,omitempty"`
}

// BlockDevice is one whole disk, or a device that is made from disks (multipath, LVM, RAID).
type BlockDevice struct {
	// kernelName is the kernel's present name of it, such as "sda". It may change at each boot.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	KernelName string `json:"kernelName,omitempty"`

	// type as lsblk(8) has it: disk, loop, mpath, raid1, lvm, crypt.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Type string `json:"type,omitempty"`

	// ids are the names of its links in /dev/disk/by-id, the most reliable first: wwn-, nvme-eui., then others.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=255
	IDs []string `json:"ids,omitempty"`

	// wwn is the World Wide Name, or the EUI of an NVMe namespace.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	WWN string `json:"wwn,omitempty"`

	// sharedWWN is the disk's WWN or EUI if it is not used as a name. Another disk of the node with another serial number has it too, or it is
	// a placeholder, such as all zeros. Then wwn is empty, and ids has no link that is made of it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	SharedWWN string `json:"sharedWWN,omitempty"`

	// serial number.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Serial string `json:"serial,omitempty"`

	// model of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`

	// sizeBytes is the size in bytes.
	// +optional
	SizeBytes int64 `json:"sizeBytes"`

	// mediaType is SSD or HDD.
	// +optional
	MediaType MediaType `json:"mediaType,omitempty"`

	// transport as lsblk(8) has it: nvme, sas, sata, fc, iscsi, usb. Beside these, it is nvme-tcp, nvme-rdma, nvme-fc or nvme-loop for NVMe
	// over fabrics, and nbd, rbd or drbd. A device that is made of disks of which one is reached through a network has the transport of that
	// one.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Transport string `json:"transport,omitempty"`

	// numaNode that the disk's controller is attached to; absent when the kernel has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	NUMANode *int32 `json:"numaNode,omitempty"`

	// readOnly is true for a device that the kernel refuses to write to.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// partitions by kernel name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=64
	Partitions []string `json:"partitions,omitempty"`

	// holders are the devices that are made from this one or its partitions, by kernel name.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	Holders []string `json:"holders,omitempty"`

	// mounts are where it or a partition of it is mounted, in any mount namespace of the node; "[SWAP]" is swap space.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=512
	Mounts []string `json:"mounts,omitempty"`

	// signatures lists the signatures on it (wipefs(8)): filesystems, partition tables, members of RAID or LVM.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Signatures []Signature `json:"signatures,omitempty"`

	// target is the StorageTarget that it carries, as namespace/name; set when the label on it is that of a target of this cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Target string `json:"target,omitempty"`

	// unusable lists the reasons why it can't become a target; empty for a blank, free disk.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=512
	Unusable []string `json:"unusable,omitempty"`

	// health is the disk's report about itself (SMART, NVMe health log). It is absent if the disk reports nothing, or was not read yet.
	// +optional
	Health *DiskHealth `json:"health,omitempty"`

	// remarks lists facts for a person, such as a WWN that another disk has too. They do not keep it from becoming a target.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=512
	Remarks []string `json:"remarks,omitempty"`
}

// Signature is something that was found on a device.
type Signature struct {
	// device is the kernel name of the disk or of its partition.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Device string `json:"device,omitempty"`
	// type such as xfs, gpt, LVM2_member, linux_raid_member, or "ambivalent" when the probe could not tell.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Type string `json:"type,omitempty"`
	// offset in bytes, such as "0x218".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Offset string `json:"offset,omitempty"`
	// uuid in the signature.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UUID string `json:"uuid,omitempty"`
	// label in the signature.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Label string `json:"label,omitempty"`
}

// NetworkInterface is one network interface of the node.
type NetworkInterface struct {
	// name such as "ib0".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// addresses with their prefix, such as "10.1.0.5/16".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=64
	Addresses []string `json:"addresses,omitempty"`
	// speedMbps is the speed of the link in Mbit/s, 0 when unknown or down.
	// +optional
	SpeedMbps int64 `json:"speedMbps"`
	// mtu in bytes.
	// +optional
	MTU int32 `json:"mtu"`
	// state as the kernel has it: up, down, unknown.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	State string `json:"state,omitempty"`
	// numaNode that the adapter is attached to; absent when the kernel has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	NUMANode *int32 `json:"numaNode,omitempty"`
}

// RDMADevice is one InfiniBand or RoCE device.
type RDMADevice struct {
	// name such as "mlx5_0".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// state of its first port, such as "ACTIVE".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	State string `json:"state,omitempty"`
	// rate of its first port, such as "100 Gb/sec (4X EDR)".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Rate string `json:"rate,omitempty"`
	// linkLayer is InfiniBand or Ethernet.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	LinkLayer string `json:"linkLayer,omitempty"`
	// numaNode that the adapter is attached to; absent when the kernel has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1023
	NUMANode *int32 `json:"numaNode,omitempty"`
}

// HostSetting is one setting of the host.
type HostSetting struct {
	// name such as "transparentHugePages", "cStates", "smt" or "vm.dirty_ratio".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Name string `json:"name,omitempty"`
	// found is the value in force; "unknown" when the kernel does not show it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Found string `json:"found,omitempty"`
	// expected is the value that a published setup recommends.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Expected string `json:"expected,omitempty"`
	// asExpected is true when found and expected agree.
	// +optional
	AsExpected bool `json:"asExpected"`
	// source of the expectation, such as "NetApp TR-4782, host configuration".
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Source string `json:"source,omitempty"`
}

// DaemonPlacement is the CPUs and the memory that the kernel gives one daemon.
type DaemonPlacement struct {
	// name of the daemon: namespace, FileSystem, component, and pool or slot, with slashes.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	Name string `json:"name,omitempty"`
	// program that runs.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Program string `json:"program,omitempty"`
	// cpus are the CPUs that its threads may run on, all threads together, in list format (Cpus_allowed_list of /proc/<pid>/task/*/status).
	// +optional
	// +kubebuilder:validation:MaxLength=512
	CPUs string `json:"cpus,omitempty"`
	// strayThreads counts the threads that may run on other CPUs than the first thread.
	// +optional
	StrayThreads int32 `json:"strayThreads"`
	// numaNodes are the NUMA nodes of those CPUs, in list format.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	NUMANodes string `json:"numaNodes,omitempty"`
	// memoryPolicy as /proc/<pid>/numa_maps shows it, such as "default", "bind:0" or "prefer:1".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MemoryPolicy string `json:"memoryPolicy,omitempty"`
}

// NodeInventory is the description of a node: its disks with their stable names, processors, networks and settings. The agent on the node
// writes it; its name is the node's.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pfsinv
// +kubebuilder:printcolumn:name="Disks",type=integer,JSONPath=`.status.summary.disks`
// +kubebuilder:printcolumn:name="Usable",type=integer,JSONPath=`.status.summary.usable`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.summary.usableCapacity`
// +kubebuilder:printcolumn:name="Sockets",type=integer,JSONPath=`.status.cpu.sockets`
// +kubebuilder:printcolumn:name="CPUs",type=integer,JSONPath=`.status.cpu.threads`
// +kubebuilder:printcolumn:name="Settings",type=string,JSONPath=`.status.summary.settings`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Kernel",type=string,priority=1,JSONPath=`.status.kernel.release`
// +kubebuilder:printcolumn:name="CPUModel",type=string,priority=1,JSONPath=`.status.cpu.model`
type NodeInventory struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what the agent has found on the node.
	// +optional
	Status NodeInventoryStatus `json:"status,omitzero"`
}

// NodeInventoryList is a list of NodeInventories.
// +kubebuilder:object:root=true
type NodeInventoryList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the NodeInventories.
	Items []NodeInventory `json:"items"`
}
