package v1alpha1

// StoragebenchOperation is an operation that the storage servers measure.
// +kubebuilder:validation:Enum=Write;Read
type StoragebenchOperation string

// The values of StoragebenchOperation.
const (
	// StoragebenchWrite writes.
	StoragebenchWrite StoragebenchOperation = "Write"
	// StoragebenchRead reads the files of Write.
	StoragebenchRead StoragebenchOperation = "Read"
)

// StoragebenchSpec holds the parameters of the benchmark of BeeGFS's storage servers (beegfs-ctl --storagebench; beegfs benchmark of
// version 8), which measures the targets of the storage pool, or all, without clients.
type StoragebenchSpec struct {
	// operations lists the measured operations, always in the order Write, Read. Defaults to both.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=2
	Operations []StoragebenchOperation `json:"operations,omitempty"`

	// blockSize is the size of one read or write (--blocksize). Defaults to "128Ki". Sweepable.
	// +optional
	// +kubebuilder:default="128Ki"
	BlockSize BenchmarkSize `json:"blockSize,omitempty"`

	// fileSize is the size of each thread's file (--size). Defaults to "1Gi". Sweepable.
	// +optional
	// +kubebuilder:default="1Gi"
	FileSize BenchmarkSize `json:"fileSize,omitempty"`

	// threads is the number of threads for each target (--threads). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	Threads int32 `json:"threads,omitempty"`

	// directIO bypasses the cache of the storage servers (--odirect). Defaults to false.
	// +optional
	DirectIO bool `json:"directIO,omitempty"`
}
