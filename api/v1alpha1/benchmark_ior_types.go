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

// IOROperation is an operation that IOR measures.
// +kubebuilder:validation:Enum=Write;Read
type IOROperation string

// The values of IOROperation.
const (
	// IORWrite is -w.
	IORWrite IOROperation = "Write"
	// IORRead is -r; it reads the files of Write.
	IORRead IOROperation = "Read"
)

// IORSpec holds the parameters of IOR (ior.readthedocs.io). Each process writes segments blocks.
//
// +kubebuilder:validation:XValidation:rule="!has(self.operations) || 'Write' in self.operations",message="spec.ior.operations must hold Write, because Read uses its files"
type IORSpec struct {
	// interface is the interface that IOR writes and reads with (-a). Defaults to POSIX.
	// +optional
	// +kubebuilder:default=POSIX
	Interface IORInterface `json:"interface,omitempty"`

	// blockSize is the size of the contiguous piece of the file that each process writes before the piece of the next process begins (-b).
	// Defaults to "1Mi". Sweepable.
	// +optional
	// +kubebuilder:default="1Mi"
	BlockSize BenchmarkSize `json:"blockSize,omitempty"`

	// transferSize is the size of one read or write (-t). Defaults to "256Ki". Sweepable.
	// +optional
	// +kubebuilder:default="256Ki"
	TransferSize BenchmarkSize `json:"transferSize,omitempty"`

	// segments is the number of blocks of each process (-s). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Segments int32 `json:"segments,omitempty"`

	// filePerProcess gives each process a file of its own (-F). Defaults to false.
	// +optional
	FilePerProcess bool `json:"filePerProcess,omitempty"`

	// collective uses collective calls of MPI-IO (-c). Interface MPIIO only. Defaults to false.
	// +optional
	Collective bool `json:"collective,omitempty"`

	// reorderTasks makes each process read the file of a process on another client (-C), so that its client's cache can't answer. Defaults to
	// false.
	// +optional
	ReorderTasks bool `json:"reorderTasks,omitempty"`

	// fsync counts fsync at the end of writing (-e). Defaults to false.
	// +optional
	Fsync bool `json:"fsync,omitempty"`

	// directIO bypasses the client's cache (--posix.odirect). It needs IOR 3.3 or later; older versions end with "invalid option".
	// Interface POSIX only. Defaults to false.
	// +optional
	DirectIO bool `json:"directIO,omitempty"`

	// randomOffset accesses the transfers of each block in random order (-z). Defaults to false.
	// +optional
	RandomOffset bool `json:"randomOffset,omitempty"`

	// operations lists the measured operations, always in the order Write, Read. Write is required, because Read uses its files. Defaults to
	// both.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Operations []IOROperation `json:"operations,omitempty"`

	// iterations is the number of iterations that IOR itself makes and averages (-i). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Iterations int32 `json:"iterations,omitempty"`

	// args are added to the command line unchanged. Options that other fields or the operator set are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
