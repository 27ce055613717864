package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileSystemNodeSpec records the servers of a FileSystem on one node, with their permanent ids, ports and targets, and their configuration.
// The operator writes it. It is a record: a member that was given an id stays, even after it has retired.
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node && self.fileSystem.name == oldSelf.fileSystem.name",message="the node and FileSystem of a FileSystemNode can't be changed"
type FileSystemNodeSpec struct {
	// fileSystem is the FileSystem that has servers on the node.
	// +required
	FileSystem TargetOwner `json:"fileSystem,omitzero"`

	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// facts are permanent facts of the whole filesystem. They lie here too because the agent writes them beside the data.
	// +optional
	Facts *FileSystemFacts `json:"facts,omitempty"`

	// members are the servers on the node.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Members []NodeMember `json:"members,omitempty"`

	// moduleOptions has the parameters with which modules of the node's kernel are to be loaded for the filesystem.
	// +optional
	ModuleOptions *ModuleOptions `json:"moduleOptions,omitempty"`

	// givenUp says that the filesystem goes on without the node, because a person said that it never comes back. All of its members have
	// retired then; the data on its disks stays there.
	// +optional
	GivenUp *NodeGivenUp `json:"givenUp,omitempty"`
}

// ModuleOptions has the parameters with which modules of a kernel are to be loaded. They belong to the whole node.
type ModuleOptions struct {
	// lines are those of a file in /etc/modprobe.d, such as "options ofd oss_cpts=[0] oss_io_cpts=[0]" (modprobe.d(5)).
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=2048
	// +kubebuilder:validation:items:Pattern=`^options [a-z0-9_]+( [a-z0-9_]+=("[^"\n]*"|[^" \n]+))+$`
	Lines []string `json:"lines,omitempty"`

	// write is true when the agent of the node writes them to such a file. Otherwise that is a person's work.
	// +optional
	Write bool `json:"write,omitempty"`
}

// NodeGivenUp records when a node was given up, and what was lost with it.
type NodeGivenUp struct {
	// time is when it was given up.
	// +required
	Time metav1.Time `json:"time,omitzero"`

	// lost describes the data without another copy, or with too few, that was accepted as lost.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Lost string `json:"lost,omitempty"`

	// address is the IP address that its servers had; empty if it was no longer known. With that address, the servers are removed from the
	// filesystem.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`
}

// FileSystemFacts are the permanent facts of a filesystem other than those of its servers.
type FileSystemFacts struct {
	// type is the type of the filesystem.
	// +required
	Type FileSystemType `json:"type,omitempty"`

	// metadataNode is the node that holds the metadata, or the store of the management service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	MetadataNode string `json:"metadataNode,omitempty"`

	// metadataTarget is the StorageTarget on that node with the metadata. It is empty when the metadata is in a directory of the node, or its
	// disk is not chosen yet.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	MetadataTarget string `json:"metadataTarget,omitempty"`

	// basePort is the first port of the filesystem's servers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	BasePort int32 `json:"basePort,omitempty"`
}

// NodeMember is one server of a FileSystem on a node.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || oldSelf.id == 0 || (has(self.id) && self.id == oldSelf.id)",message="the id of a server can't be changed or removed once it is given"
type NodeMember struct {
	// name of the member on its node: its component, with the storage pool or the slot, such as "meta-0" or "chunkserver-ssd".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role of the server.
	// +required
	Role Role `json:"role,omitempty"`

	// storagePool is the pool of a storage server.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`

	// slot is the number of a metadata server on its node, or of a storage server's pool.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Slot int32 `json:"slot"`

	// id is the filesystem's own number of the server; 0 when it has none. It is given once, and never to another server.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	ID int32 `json:"id,omitempty"`

	// targets are the disks and directories that the server keeps data on.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Targets []MemberTarget `json:"targets,omitempty"`

	// pinning binds the server to CPUs and memory.
	// +optional
	Pinning *MemberPinning `json:"pinning,omitempty"`

	// variables are the values of $(NAME) in the server's files and commands.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Variables map[string]VariableValue `json:"variables,omitempty"`

	// waits shows why the server can't start yet; empty when it can.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Waits string `json:"waits,omitempty"`

	// retired is true when the server has left the filesystem: all its targets were drained and taken out, or its node was given up. It is not
	// started again, and no other server gets its id.
	// +optional
	Retired bool `json:"retired,omitempty"`
}

// VariableValue is the value of a variable.
// +kubebuilder:validation:MaxLength=1024
type VariableValue string

// MemberTarget is a disk or a directory that a server keeps data on.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.id) || oldSelf.id == 0 || (has(self.id) && self.id == oldSelf.id)",message="the id of a target can't be changed or removed once it is given"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.initialized) || has(self.initialized)",message="initialized can't be removed once it is set: an empty target would be initialized again"
type MemberTarget struct {
	// name of the StorageTarget, or the directory of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// id is the filesystem's own number of the target; 0 when it has none. It is given once, and never to another target.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	ID int32 `json:"id,omitempty"`

	// directory is true when the target is a directory of the node, which is for evaluation only.
	// +optional
	Directory bool `json:"directory,omitempty"`

	// path is the directory, or the mountpoint of the disk; empty when the target was taken out.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`

	// uuid is the UUID of the local filesystem on the disk. The disk is not used until it is recorded.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	UUID string `json:"uuid,omitempty"`

	// remove is true when the server is to move the data of the target elsewhere.
	// +optional
	Remove bool `json:"remove,omitempty"`

	// granted permits the server to initialize the target. It is true only until the initialization is recorded.
	// +optional
	Granted bool `json:"granted,omitempty"`

	// expected is true when the filesystem remembers data on the target. An empty target is then lost data, and is not initialized.
	// +optional
	Expected bool `json:"expected,omitempty"`

	// turn of a target of two nodes has the node that is to serve it, and how often it was handed over. It changes whenever the agents of the
	// two nodes have to look, and means nothing else: who may mount the target, its StorageTarget says.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	Turn string `json:"turn,omitempty"`

	// variables are the values of $(NAME) in the commands that initialize the target.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Variables map[string]VariableValue `json:"variables,omitempty"`

	// initialized is when the filesystem first listed the target. Before that, an empty target may be initialized; after that, never again.
	// +optional
	Initialized *metav1.Time `json:"initialized,omitempty"`

	// drained is when the target was proven, on the disk itself, to hold no data, after its removal was asked for.
	// +optional
	Drained *metav1.Time `json:"drained,omitempty"`

	// replaces is the StorageTarget of the lost disk whose number, and place in a buddy group, this disk got after a person had approved it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Replaces string `json:"replaces,omitempty"`

	// files are written into the target's data directory when it is initialized, beside those of every target: name and content. Only a disk
	// that replaces another one has some.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	Files map[string]VariableValue `json:"files,omitempty"`

	// fullResync is when the filesystem accepted the order to copy everything to the disk that replaces another one. The disk is not used
	// before that.
	// +optional
	FullResync *metav1.Time `json:"fullResync,omitempty"`

	// takenOut is when the StorageTarget of the drained target was gone. The server then restarts, to release the disk.
	// +optional
	TakenOut *metav1.Time `json:"takenOut,omitempty"`
}

// MemberPinning binds a server to CPUs and memory.
type MemberPinning struct {
	// cpus are the CPUs in list format, such as "0-7,16-23" (cpuset(7)).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	CPUs string `json:"cpus,omitempty"`

	// memoryNodes are NUMA nodes in list format; empty leaves the memory policy as it is.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	MemoryNodes string `json:"memoryNodes,omitempty"`

	// memoryPolicy is Bind or Preferred; empty leaves it as it is.
	// +optional
	// +kubebuilder:validation:Enum=Bind;Preferred
	MemoryPolicy string `json:"memoryPolicy,omitempty"`

	// why names the field that asks for it, such as "spec.metadataServers.cpuPinning: NUMA node 1".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Why string `json:"why,omitempty"`
}

// FileSystemNodeStatus has two parts with two authors: agent is written by the node's agent, everything else by the operator.
type FileSystemNodeStatus struct {
	// observedGeneration is the generation of the spec that the operator's part of this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions shows whether all members are online, in the vocabulary of kstatus: Ready, and Reconciling or Stalled while they are true.
	// Written by the operator.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// members are the servers as the filesystem itself sees them. Written by the operator.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Members []MemberStatus `json:"members,omitempty"`

	// summary holds the counts that kubectl get shows. Written by the operator.
	// +optional
	Summary FileSystemNodeSummary `json:"summary,omitzero"`

	// bootID is the boot ID of the node's kernel when the operator last read it: it distinguishes the starts of the node. Written by the
	// operator.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	BootID string `json:"bootID,omitempty"`

	// agent is the work of the node's agent. Written by the agent.
	// +optional
	Agent *NodeAgentStatus `json:"agent,omitempty"`
}

// FileSystemNodeSummary holds the counts that kubectl get shows, each as "3/4": found and wanted.
type FileSystemNodeSummary struct {
	// servers counts the members that are online.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Servers string `json:"servers,omitempty"`

	// targets counts the targets that are online.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Targets string `json:"targets,omitempty"`
}

// NodeAgentStatus is the work of the node's agent for a FileSystem.
type NodeAgentStatus struct {
	// observedGeneration is the generation of the spec that the agent has written to the file of the node. Servers read that file when they
	// start.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// message shows why the agent could not write a newer generation, or not the options of modules; empty when it could.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// directories holds the used inodes of the members' directories. A directory is absent while they are unknown or unlimited.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Directories []DirectoryInodes `json:"directories,omitempty"`
}

// DirectoryInodes is how many inodes are used on the filesystem of the node that a directory is on.
type DirectoryInodes struct {
	// name is the path of the directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// usedInodesPerMille is the used part of the inodes of the directory's filesystem in thousandths, rounded down.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	UsedInodesPerMille int32 `json:"usedInodesPerMille,omitempty"`
}

// MemberStatus is one server as the filesystem itself sees it.
type MemberStatus struct {
	// name of the member.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// address is the host and port of the server.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Address string `json:"address,omitempty"`

	// version is the version that the server reports.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// state is Online if the filesystem itself lists this server as serving, and Offline otherwise.
	// +required
	State ServiceState `json:"state,omitempty"`

	// placement is where the server runs, as the kernel of its node says.
	// +optional
	Placement *Placement `json:"placement,omitempty"`

	// directories are the server's targets that are directories of the node. Targets that are disks have StorageTargets of their own.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Directories []DirectoryStatus `json:"directories,omitempty"`

	// message describes the problem of the server, and is empty without one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DirectoryStatus is a target that is a directory of the node, as the filesystem itself sees it.
type DirectoryStatus struct {
	// name is the path of the directory.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	TargetService `json:",inline"`
}

// ServiceState is the state of a server or a target according to the filesystem itself.
// +kubebuilder:validation:Enum=Online;Offline
type ServiceState string

// The states of servers and targets.
const (
	// StateOnline is the state of a server or target that the filesystem lists as serving.
	StateOnline ServiceState = "Online"
	// StateOffline is the state of any other server or target, including one whose state is unknown.
	StateOffline ServiceState = "Offline"
)

// StateOf returns the state of a server or target that is online, or is not.
func StateOf(online bool) ServiceState {
	if online {
		return StateOnline
	}
	return StateOffline
}

// RemovalState says how far the filesystem has moved the data of a target elsewhere.
// +kubebuilder:validation:Enum=MovingData;DataMoved
type RemovalState string

// The states of a removal.
const (
	// RemovalMovingData is one that goes on.
	RemovalMovingData RemovalState = "MovingData"
	// RemovalDataMoved is one of a target that may be taken out.
	RemovalDataMoved RemovalState = "DataMoved"
)

// RemovalOf is the progress of a removal: the filesystem moves the data, or reports that the target may be taken out. It is empty for a
// removal that has not reached the filesystem yet.
func RemovalOf(removing, removable bool) RemovalState {
	switch {
	case !removing:
		return ""
	case removable:
		return RemovalDataMoved
	default:
		return RemovalMovingData
	}
}

// TargetService is the state of a target according to the filesystem itself.
type TargetService struct {
	// state is Online when the filesystem itself says that the target serves data, and Offline otherwise.
	// +required
	State ServiceState `json:"state,omitempty"`

	// capacityBytes is the size of the target in bytes.
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// usedBytes is the used space of the target in bytes, in steps of 5 % of its capacity; finer while its data is moved away.
	// +optional
	UsedBytes int64 `json:"usedBytes,omitempty"`

	// removal is MovingData while the filesystem moves the data of this target elsewhere, and DataMoved when it says that the target may be
	// taken out. It is absent before the removal has reached the filesystem.
	// +optional
	Removal RemovalState `json:"removal,omitempty"`

	// message describes the problem of the target, and is empty without one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// FileSystemNode is the record of the servers and targets of a FileSystem on one node. The operator makes one for each node with servers.
// The agent of the node writes the configuration of the servers from it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pfsnode
// +kubebuilder:selectablefield:JSONPath=`.spec.fileSystem.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="FileSystem",type=string,JSONPath=`.spec.fileSystem.name`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Servers",type=string,JSONPath=`.status.summary.servers`
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.status.summary.targets`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type FileSystemNode struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec has the servers of the FileSystem on the node.
	// +required
	Spec FileSystemNodeSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status FileSystemNodeStatus `json:"status,omitzero"`
}

// FileSystemNodeList is a list of FileSystemNodes.
// +kubebuilder:object:root=true
type FileSystemNodeList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the FileSystemNodes.
	Items []FileSystemNode `json:"items"`
}
