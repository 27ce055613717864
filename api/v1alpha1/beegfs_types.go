package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BeeGFSSpec holds the fields that only BeeGFS has.
// +kubebuilder:validation:XValidation:rule="!has(self.rdmaResource) || !has(self.rdma) || self.rdma != 'Disabled'",message="spec.beegfs.rdmaResource gives devices to servers that don't use RDMA; remove it, or set spec.beegfs.rdma to Auto or Required"
// +kubebuilder:validation:XValidation:rule="has(self.basePort) == has(oldSelf.basePort) && (!has(self.basePort) || self.basePort == oldSelf.basePort)",message="spec.beegfs.basePort can't be changed, set or removed later: daemons and clients know each other by address and port; status.beegfs.basePort says which ports are used"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.mirrorMetadata) || !oldSelf.mirrorMetadata || (has(self.mirrorMetadata) && self.mirrorMetadata)",message="spec.beegfs.mirrorMetadata can't be turned off again: BeeGFS has no way back from mirrored metadata"
type BeeGFSSpec struct {
	// management describes the management service, the daemon with which all others register.
	// +required
	Management BeeGFSManagement `json:"management,omitzero"`

	// config holds raw options of the daemons and clients. An option that the operator sets itself, or that the daemon does not have, is
	// refused; the condition Stalled names it.
	// +optional
	Config BeeGFSConfig `json:"config,omitzero"`

	// basePort is the first of 64 ports, TCP and UDP, on the host network of the nodes. Clients use basePort+4 (UDP). The management service
	// uses basePort+8 and, for the gRPC of BeeGFS 8, basePort+10; the probe, basePort+9. Metadata servers use basePort+16 and up, one port for
	// each server of a node; storage servers, basePort+32 and up, one port for each storage pool. Without it, the operator takes the first
	// range from 8000 that no other FileSystem has, and records it in status.beegfs.basePort. It can't be set, changed or removed later,
	// because daemons and clients reach each other by address and port.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65472
	BasePort *int32 `json:"basePort,omitempty"`

	// targetChooser is how a metadata server picks the storage targets of a new file (tuneTargetChooser): Randomized,
	// RoundRobin (meant for benchmarks only), RandomRobin or RandomInterNode. Defaults to Randomized.
	// +optional
	// +kubebuilder:default=Randomized
	TargetChooser TargetChooser `json:"targetChooser,omitempty"`

	// rdma sets whether servers and clients use RDMA on those interfaces of spec.network that support it (connUseRDMA). With Auto, they use it
	// where they can, and TCP elsewhere; the pods of servers get the devices if one of their nodes has an adapter. With Required, the pods of
	// all metadata and storage servers get the devices, and no server starts on a node whose devices it can't open. With Disabled, all use
	// TCP. The condition TransportAsSpecified shows the transports that BeeGFS lists. Defaults to Auto.
	// +optional
	// +kubebuilder:default=Auto
	RDMA RDMAMode `json:"rdma,omitempty"`

	// rdmaResource is the resource of a device plugin that gives a container the RDMA devices of its node, such as rdma/hca_shared_devices_a.
	// The pods of all metadata and storage servers then request one, so that each of their nodes must have it. Without it, the containers that
	// get the devices are privileged: Kubernetes lets no other container open them.
	// +optional
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="a resource of a device plugin is a domain, a slash and a name, such as rdma/hca_shared_devices_a"
	RDMAResource string `json:"rdmaResource,omitempty"`

	// clientRDMAInterfaces are the interfaces by whose adapters the clients connect to servers with RDMA (connRDMAInterfacesFile). Of several,
	// a client uses one after the other, so that all adapters of its node carry data. The servers must be reachable from each of them. Without
	// it, a client uses the first interface that reaches a server.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	ClientRDMAInterfaces []InterfaceName `json:"clientRDMAInterfaces,omitempty"`

	// networks are the only networks to which metadata servers, storage servers and clients connect (connNetFilterFile), such as
	// 192.168.10.0/24. Without it, they connect to every address that a server announces.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Networks []Network `json:"networks,omitempty"`

	// tcpNetworks are networks to which metadata servers, storage servers and clients connect only by TCP, also where both sides have RDMA
	// (connTcpOnlyFilterFile).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	TCPNetworks []Network `json:"tcpNetworks,omitempty"`

	// mirrorMetadata mirrors all metadata: pairs of metadata servers on different nodes become buddy groups. It can be turned on only while
	// no client has mounted the filesystem, and can't be turned off again. BeeGFS 8 needs a license for it. Defaults to false.
	// +optional
	MirrorMetadata bool `json:"mirrorMetadata,omitempty"`

	// tls names a Secret of type kubernetes.io/tls with the certificate and the key of the management service. Without it, the gRPC of the
	// management service is not encrypted; it still requires the shared secret. BeeGFS 8 only.
	// +optional
	TLS *SecretReference `json:"tls,omitempty"`

	// license names a Secret whose key license.pem holds the license. Without a license, BeeGFS 8 makes no buddy groups, and no storage
	// pools besides the default one. BeeGFS 8 only.
	// +optional
	License *SecretReference `json:"license,omitempty"`

	// csiDriver writes the configuration of beegfs-csi-driver for this filesystem into a ConfigMap and a Secret. Both are named after this
	// object, with -beegfs-csi at the end. The driver's own deployment takes them. Defaults to false.
	// +optional
	CSIDriver bool `json:"csiDriver,omitempty"`

	// adopt lists the numeric ids that an earlier FileSystem gave to servers and targets in directories, whose data this one takes over, by
	// node. Directories are for evaluation only: it has room for 32 nodes, and for 128 servers and targets in all. Disks carry their own
	// ids and need no entry. The operator uses it only for servers and targets that have no id yet.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.map(n, size(n.members) + n.members.map(m, has(m.targets) ? size(m.targets) : 0).sum()).sum() <= 128",message="spec.beegfs.adopt has room for 128 servers and targets in all: it is for directories, which are for evaluation only; disks record their ids themselves"
	Adopt []GivenIDs `json:"adopt,omitempty"`
}

// Network is a network in the form of its first address, a slash and the length of its prefix.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=43
// +kubebuilder:validation:Pattern=`^[0-9A-Fa-f.:]+/[0-9]{1,3}$`
type Network string

// BeeGFSManagement describes the management service.
type BeeGFSManagement struct {
	// nodeSelector selects the node that runs the management service. It must match exactly one node when the filesystem is made. The
	// service then stays on that node, because its store is there. Without it, it is the first node of spec.nodes by name, or the
	// one whose disk has it already.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// targets sets where the management service keeps its store: in one directory, or on one disk. It can't be changed, because a management
	// service without its store forgets ids, pools and mirrors.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.beegfs.management.targets can't be changed: the store would be left behind"
	// +kubebuilder:validation:XValidation:rule="has(self.directories) ? size(self.directories) == 1 : has(self.devices) ? size(self.devices) == 1 : !has(self.select.countPerNode) || self.select.countPerNode == 1",message="the management service keeps its store in one place; give exactly one of spec.beegfs.management.targets.directories or devices, or a select with countPerNode 1 or none"
	Targets TargetsSpec `json:"targets,omitzero"`
}

// BeeGFSMetadata holds the fields that only the metadata servers of a BeeGFS have.
type BeeGFSMetadata struct {
	// workerThreads is the number of worker threads of each metadata server (tuneNumWorkers). BeeGFS is never left to choose, because it
	// counts all CPUs of the node for each server. Without this field, a new filesystem has four for each core of the server, and 16 at
	// least: the cores of cpuPinning, or the server's part of the node's cores. status.chosen.metadataWorkersPerCore shows that; a filesystem
	// without it has 16.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	WorkerThreads *int32 `json:"workerThreads,omitempty"`
}

// BeeGFSPool holds the fields that only a storage pool of a BeeGFS has.
type BeeGFSPool struct {
	// workerThreads is the number of worker threads that a storage server of the pool has for each of its targets (tuneNumWorkers).
	// Defaults to 12.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	WorkerThreads *int32 `json:"workerThreads,omitempty"`

	// striping sets how new files in the pool's directory are striped. Defaults to chunks of 512Ki on 4 targets.
	// +optional
	Striping *StripingSpec `json:"striping,omitempty"`
}

// BeeGFSConfig holds raw options of the daemons and clients of a BeeGFS, by role.
type BeeGFSConfig struct {
	// management holds options of beegfs-mgmtd.conf (BeeGFS 7) or beegfs-mgmtd.toml (BeeGFS 8).
	// +optional
	Management Options `json:"management,omitempty"`

	// metadata holds options of beegfs-meta.conf.
	// +optional
	Metadata Options `json:"metadata,omitempty"`

	// storage holds options of beegfs-storage.conf, for the storage servers of every pool.
	// +optional
	Storage Options `json:"storage,omitempty"`

	// client holds options of beegfs-client.conf.
	// +optional
	Client Options `json:"client,omitempty"`
}

// RDMAMode sets whether RDMA is used.
// +kubebuilder:validation:Enum=Auto;Required;Disabled
type RDMAMode string

// The modes of RDMA. There is no Off: YAML 1.1 reads that word as false.
const (
	RDMAAuto     RDMAMode = "Auto"
	RDMARequired RDMAMode = "Required"
	RDMADisabled RDMAMode = "Disabled"
)

// TargetChooser is an algorithm of BeeGFS that picks the targets of a new file.
// +kubebuilder:validation:Enum=Randomized;RoundRobin;RandomRobin;RandomInterNode
type TargetChooser string

// The target choosers (beegfs-meta.conf, tuneTargetChooser).
const (
	ChooserRandomized      TargetChooser = "Randomized"
	ChooserRoundRobin      TargetChooser = "RoundRobin"
	ChooserRandomRobin     TargetChooser = "RandomRobin"
	ChooserRandomInterNode TargetChooser = "RandomInterNode"
)

// SecretReference names a Secret in the namespace of the FileSystem.
type SecretReference struct {
	// name of the Secret.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// StripingSpec sets how files of a pool's directory are striped over its targets.
type StripingSpec struct {
	// chunkSize is the size of one chunk, the part of a file that is on one target: a power of two from 64Ki to 2Gi. Defaults to 512Ki.
	// +optional
	// +kubebuilder:default="512Ki"
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isInteger() && quantity(self).asInteger() in [65536, 131072, 262144, 524288, 1048576, 2097152, 4194304, 8388608, 16777216, 33554432, 67108864, 134217728, 268435456, 536870912, 1073741824, 2147483648]",message="a chunk size of BeeGFS is a power of two from 64Ki to 2Gi, such as 512Ki or 1Mi"
	ChunkSize resource.Quantity `json:"chunkSize,omitzero"`

	// targetsPerFile is the number of targets, or of buddy groups, that a file is striped over. Defaults to 4.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=256
	TargetsPerFile int32 `json:"targetsPerFile,omitempty"`
}

// GivenIDs are the ids of the servers and targets of a node.
type GivenIDs struct {
	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// members are the metadata servers and storage servers on the node.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	Members []GivenServerID `json:"members,omitempty"`
}

// GivenServerID is the id of one server, with those of its targets.
type GivenServerID struct {
	// name of the member: "meta-<slot>" or "storage-<pool>".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// id is BeeGFS's numeric id of the server, unique among the servers of its role.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ID int32 `json:"id,omitempty"`

	// targets are the targets of the server. A metadata server has one, whose id is the server's.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Targets []GivenTargetID `json:"targets,omitempty"`
}

// GivenTargetID is the id of one target.
type GivenTargetID struct {
	// name is the directory of the node, such as "/data/ssd0".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Name string `json:"name,omitempty"`

	// id is BeeGFS's numeric id of the target.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	ID int32 `json:"id,omitempty"`
}

// BeeGFSStatus holds the permanent facts of a BeeGFS other than its numbers.
type BeeGFSStatus struct {
	// basePort is the first port of this filesystem; see spec.beegfs.basePort.
	// +optional
	BasePort int32 `json:"basePort,omitempty"`

	// metadataMirrored is when the operator first saw that the metadata is mirrored.
	// +optional
	MetadataMirrored *metav1.Time `json:"metadataMirrored,omitempty"`
}
