package v1alpha1

// InstanceStatus is one server, as a backend has seen it, and as documents of results have it. No kind does: a FileSystemNode says what is
// known of its servers.
type InstanceStatus struct {
	// name of the instance: role, pool and node.
	Name string `json:"name,omitempty"`

	// role of the server.
	Role InstanceRole `json:"role,omitempty"`

	// node that the server runs on.
	Node string `json:"node,omitempty"`

	// storagePool of a storage server.
	StoragePool string `json:"storagePool,omitempty"`

	// slot is the number of a metadata server on its node.
	Slot int32 `json:"slot,omitempty"`

	// nodeID is the filesystem's own number of the server; 0 where it gives none.
	NodeID int32 `json:"nodeID,omitempty"`

	// target of a management service or metadata server: the StorageTarget, or the directory of the node.
	Target string `json:"target,omitempty"`

	// address is the host and port of the server.
	Address string `json:"address,omitempty"`

	// version is what the server reports of itself.
	Version string `json:"version,omitempty"`

	// online is true when the filesystem itself says that this server takes part.
	Online bool `json:"online"`

	// placement is where the server runs, as the kernel of its node says; absent on a node without an agent.
	Placement *InstancePlacement `json:"placement,omitempty"`

	// message says what is wrong with the server, and is empty when nothing is.
	Message string `json:"message,omitempty"`
}

// TargetStatus is one storage target, as a backend has seen it, and as documents of results have it. No kind does: its StorageTarget says
// what is known of it; of a directory, the FileSystemNode.
type TargetStatus struct {
	// name of the target: node and directory.
	Name string `json:"name,omitempty"`

	// node that holds the target.
	Node string `json:"node,omitempty"`

	// storagePool that the target belongs to.
	StoragePool string `json:"storagePool,omitempty"`

	// directory of the target on its node.
	Directory string `json:"directory,omitempty"`

	// id is the filesystem's own number of the target; 0 where it gives none.
	ID int32 `json:"id,omitempty"`

	// storageTarget is the StorageTarget whose disk that directory lies on; empty when it is a directory of the node itself.
	StorageTarget string `json:"storageTarget,omitempty"`

	// removing is true when the filesystem was told to move the data of this target elsewhere.
	Removing bool `json:"removing,omitempty"`

	// removable is true when the filesystem says that the target may be taken out.
	Removable bool `json:"removable,omitempty"`

	// online is true when the filesystem itself says that the target serves data.
	Online bool `json:"online"`

	// capacityBytes is the size of the target in bytes.
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// usedBytes is the used space of the target in bytes.
	UsedBytes int64 `json:"usedBytes,omitempty"`

	// message says what is wrong with the target, and is empty when nothing is.
	Message string `json:"message,omitempty"`
}
