package v1alpha1

import "k8s.io/apimachinery/pkg/api/resource"

// TargetsSpec sets where the data of one role is kept on each of its nodes: on named devices, on devices that are selected by their
// properties, or, for evaluation, in directories.
// +kubebuilder:validation:XValidation:rule="(has(self.directories) ? 1 : 0) + (has(self.devices) ? 1 : 0) + (has(self.select) ? 1 : 0) == 1",message="set exactly one of directories, devices and select"
// +kubebuilder:validation:XValidation:rule="has(self.directories) == has(oldSelf.directories) && has(self.devices) == has(oldSelf.devices)",message="targets can't be moved between directories, devices and select: the data would be left behind"
// +kubebuilder:validation:XValidation:rule="!has(self.directories) || self.directories.all(d, self.directories.all(e, !d.startsWith(e + '/')))",message="one target's directory must not lie inside another's"
// +kubebuilder:validation:XValidation:rule="!has(self.directories) || (!has(self.format) && !has(self.queue))",message="format and queue belong to devices; a directory has neither"
type TargetsSpec struct {
	// directories are absolute paths on the node. They are created when they don't exist. They are for evaluation only, because nothing proves
	// that a directory is still on the same disk; the condition EvaluationOnly reports them.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Directories []DirectoryPath `json:"directories,omitempty"`

	// devices names whole disks, node by node. Each becomes one StorageTarget.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +listMapKey=id
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	Devices []DeviceReference `json:"devices,omitempty"`

	// select chooses whole disks on every node of the role. A disk that was chosen stays chosen.
	// +optional
	Select *DeviceSelector `json:"select,omitempty"`

	// format sets how the devices are formatted and mounted. Without it, new disks are made and mounted as the guide of the filesystem says
	// for the role: ldiskfs for Lustre, ext4 for the metadata of BeeGFS, and XFS for all others. Each field that is left out has the default
	// of the role, too, where fsType is that of the role. Existing targets keep their format.
	// +optional
	Format *FormatSpec `json:"format,omitempty"`

	// queue sets the block queue of each device, and of the disks below a multipath device. Settings without a value stay unchanged. requests
	// is at most 2048, which is the kernel's bound of a queue with a scheduler, and at most 10240 with scheduler none (MAX_SCHED_RQ and
	// BLK_MQ_MAX_DEPTH of block/blk-mq). A driver may take fewer.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests <= 2048 || (has(self.scheduler) && self.scheduler == 'none' && self.requests <= 10240)",message="the kernel takes at most 2048 requests in a queue with a scheduler, and at most 10240 with scheduler none"
	Queue *QueueSpec `json:"queue,omitempty"`
}

// DeviceID is a stable name of a disk: that of its link in /dev/disk/by-id, such as "wwn-0x5000c500a1b2c3d4" or
// "nvme-eui.0025385b71b0c4a1", its WWN, or its serial number.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.:+=@-]*$`
// +kubebuilder:validation:XValidation:rule="!self.matches('^((xv|[svh])d[a-z]+|nvme[0-9]+n|dm-|md|loop)[0-9p]*$')",message="a kernel name such as sda may mean another disk after the next boot; use the name of its link in /dev/disk/by-id (kubectl get nodeinventory <node> -o yaml lists them)"
type DeviceID string

// DeviceReference names a whole disk on a node.
type DeviceReference struct {
	// node is the name of the node that has the disk.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// id of the disk: the name of its link in /dev/disk/by-id, its WWN or its serial number. Never a kernel name.
	// +required
	ID DeviceID `json:"id,omitempty"`

	// logDevice is the id of the disk or partition that holds the external log of this disk's XFS.
	// +optional
	LogDevice DeviceID `json:"logDevice,omitempty"`
}

// MediaType is the storage medium of a disk.
// +kubebuilder:validation:Enum=SSD;HDD
type MediaType string

// The media types.
const (
	// SSD is a disk that does not rotate (queue/rotational is 0).
	SSD MediaType = "SSD"
	// HDD is a disk that rotates.
	HDD MediaType = "HDD"
)

// Sizes in a spec are Quantities, and in the schema texts of at most 32 characters. The default schema of a Quantity has no longest text,
// so the API server would refuse rules over it in a list of pools, because of their cost.

// DeviceSelector selects disks by their properties. A disk must have all properties that are set. Only blank disks, and disks that were
// chosen before, are chosen, in the order of their ids.
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || !has(self.maxSize) || quantity(self.minSize).compareTo(quantity(self.maxSize)) <= 0",message="minSize must not be larger than maxSize"
type DeviceSelector struct {
	// mediaType is SSD or HDD. Without it, either is chosen.
	// +optional
	MediaType MediaType `json:"mediaType,omitempty"`

	// minSize is the smallest size of a disk, such as "200Gi". Without it, there is none.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="a size is a number of bytes above 0, such as 512Mi or 2T"
	MinSize resource.Quantity `json:"minSize,omitzero"`

	// maxSize is the largest size of a disk, such as "8Ti". Without it, there is none.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="a size is a number of bytes above 0, such as 512Mi or 2T"
	MaxSize resource.Quantity `json:"maxSize,omitzero"`

	// models are patterns of the disk's model, as path.Match of Go reads them, such as "SAMSUNG*". At least one must match.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Models []Glob `json:"models,omitempty"`

	// idGlobs are patterns of the disk's names in /dev/disk/by-id, such as "nvme-*". At least one must match at least one name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	IDGlobs []Glob `json:"idGlobs,omitempty"`

	// numaNodes are the NUMA nodes that the disk may be attached to.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	NUMANodes []int32 `json:"numaNodes,omitempty"`

	// transports lists the ways in which the disk may be attached, as the NodeInventory has them. Without it, only disks that are attached to
	// the node itself are chosen: nvme, sata, sas, ata, spi, virtio, mmc, or not known. A disk that is reached through a network may belong to
	// another storage system although it looks free. A disk that can be unplugged at any time is not selected either.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Transports []Transport `json:"transports,omitempty"`

	// excludeIDGlobs are patterns of names in /dev/disk/by-id, such as "*-part*" or "nvme-eui.0025385b71b0c4a0". A disk with a name that
	// matches one of them is not selected. A disk that was selected before stays.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ExcludeIDGlobs []Glob `json:"excludeIDGlobs,omitempty"`

	// countPerNode is the number of disks to choose on each node. When a node has fewer, the FileSystem names the node and why its other disks
	// don't match (reason NoDevices). It can grow. Without it, a storage pool has all disks that match, including those that are plugged in
	// later; provisioning.formatPolicy sets whether each of them waits for a person. The metadata has as many disks as there are metadata
	// servers on a node, and a management service has one.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=128
	CountPerNode int32 `json:"countPerNode,omitempty"`
}

// Transport is how a disk is attached, as lsblk(8) has it, and the kernel for NVMe over fabrics (nvme-tcp) and network block devices.
// +kubebuilder:validation:Enum=nvme;sata;sas;ata;spi;virtio;mmc;usb;iscsi;fc;fcoe;nvme-tcp;nvme-rdma;nvme-fc;nvme-loop;nbd;rbd;drbd
type Transport string

// LocalTransports are those of disks that are attached to the node itself.
var LocalTransports = []Transport{"nvme", "sata", "sas", "ata", "spi", "virtio", "mmc"}

// Glob is a pattern as path.Match has it: * is any number of characters, ? is one, [a-z] is one of a range.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9*?\[\]_.:+ -]+$`
type Glob string

// FSType is the local filesystem of a target.
// +kubebuilder:validation:Enum=ext4;xfs;btrfs;ldiskfs;zfs
type FSType string

// The local filesystems.
const (
	Ext4  FSType = "ext4"
	XFS   FSType = "xfs"
	Btrfs FSType = "btrfs"
	// Ldiskfs is that of Lustre's targets.
	Ldiskfs FSType = "ldiskfs"
	// ZFS is Lustre's other one. No real one was run yet, and it is refused.
	ZFS FSType = "zfs"
)

// FormatSpec sets how a device is formatted and mounted.
// +kubebuilder:validation:XValidation:rule="!has(self.logDevices) || !has(self.fsType) || self.fsType == 'xfs'",message="only XFS has external log devices"
// +kubebuilder:validation:XValidation:rule="!has(self.mountOptions) || !has(self.fsType) || self.fsType != 'ldiskfs'",message="Lustre mounts a target of ldiskfs with the options that mkfs.lustre wrote on it: remove mountOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.raid) || !has(self.fsType) || self.fsType != 'btrfs'",message="btrfs takes no geometry of a RAID below it; remove raid"
// +kubebuilder:validation:XValidation:rule="!has(self.raid) || !has(self.mkfsOptions) || !self.mkfsOptions.exists(o, o.matches('(su|sw|sunit|swidth|stride|stripe.width)=') || !(has(self.fsType) && self.fsType == 'xfs') && o.startsWith('-b'))",message="raid sets the stripe of the filesystem; remove su, sw, sunit, swidth, stride, stripe_width and, unless fsType is xfs, -b from mkfsOptions"
// +kubebuilder:validation:XValidation:rule="!has(self.fsType) || self.fsType != 'zfs'",message="Lustre's targets of zfs are refused until they were run for real; use ldiskfs"
type FormatSpec struct {
	// fsType is the local filesystem. Without it, the type of the FileSystem and the role decide. It is ldiskfs for Lustre, ext4 for the
	// metadata of BeeGFS, and xfs for all others and for targets with a log device. ldiskfs is for targets of Lustre only; zfs is refused
	// until it was run for real.
	// +optional
	FSType FSType `json:"fsType,omitempty"`

	// mkfsOptions are the arguments of mkfs, one list item for each, such as ["-i", "size=512"]. Arguments that the operator sets itself
	// are refused: label, UUID, log device, force and the device.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	MkfsOptions []MkfsOption `json:"mkfsOptions,omitempty"`

	// raid is the geometry of the RAID that each device is, such as a volume of a hardware controller. mkfs gets its stripe (su and sw of
	// mkfs.xfs, stride and stripe_width of mke2fs), so that full stripes are written. Without it, mkfs takes the geometry that the kernel
	// shows for the device, as md and some controllers report it.
	// +optional
	RAID *RAIDGeometry `json:"raid,omitempty"`

	// mountOptions are the options of mount(8), one list item for each, such as ["noatime", "inode64"]. The agent tries them on the node's
	// kernel before it formats the device.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	MountOptions []LocalMountOption `json:"mountOptions,omitempty"`

	// logDevices chooses the devices for the external logs of XFS, one for each target whose entry in devices names none.
	// +optional
	LogDevices *DeviceSelector `json:"logDevices,omitempty"`
}

// RAIDGeometry describes a RAID.
// +kubebuilder:validation:XValidation:rule="self.level == 10 || self.data >= 2",message="a RAID of level 0, 5 or 6 has at least two disks with data"
type RAIDGeometry struct {
	// level of the RAID: 0, 5, 6 or 10.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +kubebuilder:validation:XValidation:rule="self in [0, 5, 6, 10]",message="the level of a RAID is 0, 5, 6 or 10"
	Level *int32 `json:"level,omitempty"`

	// data is the number of disks that hold data in each stripe. Of ten disks, a RAID 6 has 8, and a RAID 10 has 5.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Data int32 `json:"data,omitempty"`

	// chunk is how much of a stripe is on one disk: a multiple of 4Ki, to 64Mi.
	// +required
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isInteger() && quantity(self).asInteger() > 0 && quantity(self).asInteger() <= 67108864 && quantity(self).asInteger() % 4096 == 0",message="the chunk of a RAID is a multiple of 4Ki, to 64Mi, such as 128Ki"
	Chunk resource.Quantity `json:"chunk,omitzero"`
}

// MkfsOption is one argument of mkfs.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9^_,.=:+-]+$`
type MkfsOption string

// LocalMountOption is one option of mount(8): a name, or name=value.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_-]*(=[A-Za-z0-9_./:+-]+)?$`
// +kubebuilder:validation:XValidation:rule="!(self in ['ro', 'remount', 'bind', 'rbind', 'loop', 'nouuid', 'norecovery', 'noload', 'user', 'users', 'owner', 'group', 'nofail', '_netdev']) && !self.startsWith('logdev=') && !self.startsWith('device=') && !self.startsWith('subvol') && !self.startsWith('x-')",message="ro, remount, bind, loop, nouuid, norecovery, noload, user, nofail, logdev, device and subvol are refused for targets: the operator mounts each whole device for writing, by its own UUID"
type LocalMountOption string

// QueueSpec sets the block queue of a device: the files of /sys/block/<device>/queue, by their own names (kernel
// Documentation/ABI/stable/sysfs-block). Settings without a value stay unchanged.
// +kubebuilder:validation:MinProperties=1
type QueueSpec struct {
	// scheduler is the I/O scheduler, one that the kernel offers, such as "none" or "mq-deadline".
	// +optional
	// +kubebuilder:validation:Enum=none;mq-deadline;kyber;bfq
	Scheduler string `json:"scheduler,omitempty"`

	// readAheadKB is the read-ahead in KiB (read_ahead_kb).
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1048576
	ReadAheadKB *int32 `json:"readAheadKB,omitempty"`

	// maxSectorsKB is the largest request in KiB (max_sectors_kb), at most what the device can do (max_hw_sectors_kb).
	// +optional
	// +kubebuilder:validation:Minimum=4
	// +kubebuilder:validation:Maximum=1048576
	MaxSectorsKB *int32 `json:"maxSectorsKB,omitempty"`

	// requests is the number of requests that the queue holds (nr_requests).
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	Requests *int32 `json:"requests,omitempty"`
}

// PinningMode sets how daemons are bound to CPUs.
// +kubebuilder:validation:Enum=None;NUMANode;CPUSet;KubeletStatic
type PinningMode string

// The pinning modes.
const (
	// PinningNone leaves the daemons to the scheduler.
	PinningNone PinningMode = "None"
	// PinningNUMANode gives a daemon all CPUs and the memory of one NUMA node.
	PinningNUMANode PinningMode = "NUMANode"
	// PinningCPUSet gives a daemon the CPUs that are named.
	PinningCPUSet PinningMode = "CPUSet"
	// PinningKubeletStatic asks the kubelet's static CPU manager for exclusive CPUs.
	PinningKubeletStatic PinningMode = "KubeletStatic"
)

// CPUPinning binds the daemons of a role to CPUs and memory. Status shows the CPUs according to the kernel.
//
// A Lustre has no daemons. The threads that serve belong to the kernel of the node: the same ones for all of its MDTs, and the same ones
// for all of its OSTs, of all pools and FileSystems. So all pools with OSTs on a node ask for the same CPUs, and MDTs and OSTs for the same
// or for ones that do not overlap. The threads are bound by options of the kernel's modules, see spec.lustre.moduleOptions.
// +kubebuilder:validation:XValidation:rule="!has(self.numaNodes) || self.mode == 'NUMANode'",message="numaNodes belongs to the mode NUMANode"
// +kubebuilder:validation:XValidation:rule="has(self.cpuSets) == (self.mode == 'CPUSet')",message="mode CPUSet requires cpuSets, and no other mode takes it"
// +kubebuilder:validation:XValidation:rule="has(self.cpus) == (self.mode == 'KubeletStatic') && has(self.memory) == (self.mode == 'KubeletStatic')",message="mode KubeletStatic requires cpus and memory, and no other mode takes them"
// +kubebuilder:validation:XValidation:rule="!has(self.memoryPolicy) || self.mode == 'NUMANode' || self.mode == 'CPUSet'",message="memoryPolicy belongs to the modes NUMANode and CPUSet"
type CPUPinning struct {
	// mode sets how daemons are bound. None leaves them to the scheduler. NUMANode gives a daemon all CPUs and the memory of one NUMA node.
	// CPUSet gives it the CPUs in cpuSets. KubeletStatic asks the kubelet's static CPU manager for exclusive CPUs.
	// +required
	Mode PinningMode `json:"mode,omitempty"`

	// numaNodes are the NUMA nodes for the instances on a node. Instance i gets entry i, and the list is repeated as often as needed: [0,
	// 1] puts every other instance on each of two NUMA nodes. A Lustre has one entry, for all. Without it, mode NUMANode gives each server the
	// NUMA node that its own disks are attached to, as the NodeInventory has it; targets in directories need it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=1023
	NUMANodes []int32 `json:"numaNodes,omitempty"`

	// cpuSets are the CPUs for the instances on a node, such as "0-7,16-23". Instance i gets entry i. Two instances on one node must not
	// share a CPU. A Lustre has one entry, for all. Mode CPUSet requires it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	CPUSets []CPUList `json:"cpuSets,omitempty"`

	// memoryPolicy sets where memory comes from: with Bind only from the NUMA nodes of the CPUs, with Preferred from them first
	// (set_mempolicy(2)). It belongs to the modes NUMANode and CPUSet, and Bind to daemons only. Defaults to Preferred.
	// +optional
	MemoryPolicy MemoryPolicy `json:"memoryPolicy,omitempty"`

	// cpus is the number of exclusive CPUs of each instance. Mode KubeletStatic requires it.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	CPUs *int32 `json:"cpus,omitempty"`

	// memory is the memory of each instance, request and limit in one, such as "16Gi". A daemon that needs more is killed. Mode
	// KubeletStatic requires it.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="a size is a number of bytes above 0, such as 512Mi or 2T"
	Memory resource.Quantity `json:"memory,omitzero"`
}

// CPUList is a list of CPUs as the kernel writes it, such as "0-7,16-23" (cpuset(7), list format).
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:Pattern=`^[0-9]{1,4}(-[0-9]{1,4})?(,[0-9]{1,4}(-[0-9]{1,4})?)*$`
type CPUList string

// MemoryPolicy sets where a daemon's memory comes from.
// +kubebuilder:validation:Enum=Bind;Preferred
type MemoryPolicy string

// The memory policies.
const (
	// MemoryBind is MPOL_BIND.
	MemoryBind MemoryPolicy = "Bind"
	// MemoryPreferred is MPOL_PREFERRED_MANY, or MPOL_PREFERRED for one NUMA node.
	MemoryPreferred MemoryPolicy = "Preferred"
)

// ProvisioningSpec sets what the operator may do to disks.
type ProvisioningSpec struct {
	// formatPolicy sets when a device is formatted. Never uses only devices that already carry this filesystem's targets. IfBlank also formats
	// a device on which nothing was found. Approved formats a device only after a person has set spec.approvedPlan of its StorageTarget to the
	// hash of the plan, which names all that would be lost. Defaults to Approved.
	// +optional
	// +kubebuilder:default=Approved
	FormatPolicy FormatPolicy `json:"formatPolicy,omitempty"`

	// takeOver is the identity of another cluster: the uid of its namespace kube-system. Disks that carry targets of this FileSystem from
	// that cluster are taken over, such as after the cluster was lost and built again. A StorageTarget with the reason OtherCluster names
	// the identity. Without it, such a disk is left alone, because the other cluster may be using it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z-]+$`
	TakeOver string `json:"takeOver,omitempty"`

	// takeOverFrom names former owners of disks: FileSystems of another name, namespace, node or cluster. A disk whose marker and record name
	// exactly such an owner is taken over with its data, after a person has approved the plan of its StorageTarget. Nothing is formatted.
	// status.formerOwner of a StorageTarget has the four names.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	TakeOverFrom []FormerOwner `json:"takeOverFrom,omitempty"`
}

// FormerOwner is the owner of a disk according to the disk itself.
type FormerOwner struct {
	// cluster is the identity of its cluster: the uid of the namespace kube-system.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Cluster string `json:"cluster,omitempty"`

	// namespace of the FileSystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`

	// fileSystem is the name of the FileSystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	FileSystem string `json:"fileSystem,omitempty"`

	// node is the name of the node that had the disk.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
}

// FormatPolicy sets when a device is formatted.
// +kubebuilder:validation:Enum=Never;IfBlank;Approved
type FormatPolicy string

// The format policies.
const (
	FormatNever    FormatPolicy = "Never"
	FormatIfBlank  FormatPolicy = "IfBlank"
	FormatApproved FormatPolicy = "Approved"
)

// DeletionPolicy sets what happens to the disks of a deleted FileSystem.
// +kubebuilder:validation:Enum=Retain;Destroy
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionRetain unmounts every disk and keeps its data.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionDestroy wipes every disk that carries the FileSystem's marker.
	DeletionDestroy DeletionPolicy = "Destroy"
)
