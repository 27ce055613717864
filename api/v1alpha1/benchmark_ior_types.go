package v1alpha1

// IORInterface is the interface that IOR writes and reads by (-a).
// +kubebuilder:validation:Enum=POSIX;MPIIO
type IORInterface string

// The values of IORInterface.
const (
	// IORPosix is read(2) and write(2).
	IORPosix IORInterface = "POSIX"
	// IORMPIIO is MPI-IO.
	IORMPIIO IORInterface = "MPIIO"
)

// IOROperation is what IOR measures.
// +kubebuilder:validation:Enum=Write;Read
type IOROperation string

// The values of IOROperation.
const (
	// IORWrite is -w.
	IORWrite IOROperation = "Write"
	// IORRead is -r; it reads what Write has written.
	IORRead IOROperation = "Read"
)

// IORSpec holds the parameters of IOR (ior.readthedocs.io). Each process writes segments blocks.
//
// +kubebuilder:validation:XValidation:rule="!has(self.operations) || 'Write' in self.operations",message="spec.ior.operations must hold Write, because Read uses its files"
type IORSpec struct {
	// interface that IOR writes and reads by (-a). Defaults to POSIX.
	// +optional
	// +kubebuilder:default=POSIX
	Interface IORInterface `json:"interface,omitempty"`

	// blockSize is what each process writes in one piece of the file, before the next process's (-b). Defaults to "1m". Sweepable.
	// +optional
	// +kubebuilder:default="1m"
	BlockSize BenchmarkSize `json:"blockSize,omitempty"`

	// transferSize is the size of one read or write (-t). Defaults to "256k". Sweepable.
	// +optional
	// +kubebuilder:default="256k"
	TransferSize BenchmarkSize `json:"transferSize,omitempty"`

	// segments is the number of blocks of each process (-s). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Segments int32 `json:"segments,omitempty"`

	// filePerProcess gives each process a file of its own (-F).
	// +optional
	FilePerProcess bool `json:"filePerProcess,omitempty"`

	// collective uses collective calls of MPI-IO (-c). MPIIO only.
	// +optional
	Collective bool `json:"collective,omitempty"`

	// reorderTasks lets another client read than has written (-C), so that its cache does not answer.
	// +optional
	ReorderTasks bool `json:"reorderTasks,omitempty"`

	// fsync counts fsync at the end of writing (-e).
	// +optional
	Fsync bool `json:"fsync,omitempty"`

	// directIO bypasses the client's cache: --posix.odirect of 3.3 and 4.x. IOR 3.2 and older end with "invalid option". POSIX only.
	// +optional
	DirectIO bool `json:"directIO,omitempty"`

	// randomOffset accesses the transfers of each block in random order (-z).
	// +optional
	RandomOffset bool `json:"randomOffset,omitempty"`

	// operations that are measured, always in the order Write, Read. Defaults to both. Read alone has nothing to read.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Operations []IOROperation `json:"operations,omitempty"`

	// iterations that IOR itself makes and averages (-i). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Iterations int32 `json:"iterations,omitempty"`

	// args are added to the command line as they stand. Options that other fields, or the operator itself, set are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
