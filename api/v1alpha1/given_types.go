package v1alpha1

// NumberKind is the kind of object that a number is assigned to. Each kind has numbers of its own, from 1.
// +kubebuilder:validation:Enum=MetadataServer;StorageServer;MetadataTarget;StorageTarget;StoragePool
type NumberKind string

// The kinds of numbers.
const (
	// NumberOfMetadataServer is the id of a metadata server, and of its only target.
	NumberOfMetadataServer NumberKind = "MetadataServer"
	// NumberOfStorageServer is the id of a storage server.
	NumberOfStorageServer NumberKind = "StorageServer"
	// NumberOfMetadataTarget is that of a target with metadata, where it is not its server's: one more than the index of an MDT of Lustre.
	NumberOfMetadataTarget NumberKind = "MetadataTarget"
	// NumberOfStorageTarget is the id of a storage target, or one more than the index of an OST of Lustre.
	NumberOfStorageTarget NumberKind = "StorageTarget"
	// NumberOfStoragePool is one more than the slot of a storage pool.
	NumberOfStoragePool NumberKind = "StoragePool"
)

// GivenNumbers holds the numbers that a filesystem has permanently used up. They are written before any number is assigned. The
// FileSystemNodes have the number of each server and target, and status.storagePools has the slots of pools.
type GivenNumbers struct {
	// highest has the highest number of each kind that was ever given. It never decreases, and no number up to it is given again.
	// +optional
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=8
	Highest []HighestNumber `json:"highest,omitempty"`

	// promised lists numbers that are used up for servers and targets that the FileSystemNodes do not record yet, by node. An operator that
	// continues after an interruption gives each number to the same server or target. At most 256 numbers are promised at a time. It is
	// empty when nothing is being added.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=256
	Promised []PromisedNumbers `json:"promised,omitempty"`
}

// HighestOf is the highest number of a kind that was ever given, 0 for none.
func (g *GivenNumbers) HighestOf(kind NumberKind) int32 {
	if g == nil {
		return 0
	}
	for _, h := range g.Highest {
		if h.Kind == kind {
			return h.Number
		}
	}
	return 0
}

// HighestNumber is the highest number of one kind.
type HighestNumber struct {
	// kind of object that the number is assigned to: a MetadataServer, a StorageServer, a MetadataTarget, a StorageTarget or a StoragePool.
	// +required
	Kind NumberKind `json:"kind,omitempty"`

	// number is the highest that was ever given. Numbers count from 1: a slot, and an index of Lustre, is one less.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number int32 `json:"number,omitempty"`
}

// PromisedNumbers are the numbers that are promised to servers and targets of one node.
type PromisedNumbers struct {
	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// numbers are promised to the servers of the node and to their targets.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	Numbers []PromisedNumber `json:"numbers,omitempty"`
}

// PromisedNumber is the number of one server or target.
type PromisedNumber struct {
	// kind of object that the number is promised to: a MetadataServer, a StorageServer, a MetadataTarget or a StorageTarget.
	// +required
	Kind NumberKind `json:"kind,omitempty"`

	// member is the name of the member of the FileSystemNode, such as "meta-0".
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Member string `json:"member,omitempty"`

	// target is the StorageTarget, or the directory of the node, that the number is promised to. It is absent for the number of the member
	// itself.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`

	// number is the one that is promised. Numbers count from 1: an index of Lustre is one less.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Number int32 `json:"number,omitempty"`
}
