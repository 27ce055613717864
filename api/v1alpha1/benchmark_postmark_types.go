package v1alpha1

// PostmarkSpec holds the parameters of postmark. Each process runs one postmark in a directory of its own; benchmarks/README.md describes
// how their results are combined. postmark counts whole seconds, so make it run for some minutes; and it does not notice that a disk is
// full.
type PostmarkSpec struct {
	// files is the number of files that each process starts with (set number). Defaults to 500. Sweepable.
	// +optional
	// +kubebuilder:default=500
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Files int32 `json:"files,omitempty"`

	// transactions is the number of transactions of each process (set transactions). Defaults to 500. Sweepable.
	// +optional
	// +kubebuilder:default=500
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Transactions int32 `json:"transactions,omitempty"`

	// subdirectories is the number of subdirectories that the files of a process are spread over (set subdirectories). Defaults to 0.
	// Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Subdirectories int32 `json:"subdirectories,omitempty"`

	// sizeLow is the size of the smallest file in bytes (set size). Defaults to "500". Sweepable.
	// +optional
	// +kubebuilder:default="500"
	SizeLow BenchmarkSize `json:"sizeLow,omitempty"`

	// sizeHigh is the size of the largest file in bytes (set size). Defaults to "9770". Sweepable.
	// +optional
	// +kubebuilder:default="9770"
	SizeHigh BenchmarkSize `json:"sizeHigh,omitempty"`

	// readSize is the size of one read in bytes (set read). Defaults to "512". Sweepable.
	// +optional
	// +kubebuilder:default="512"
	ReadSize BenchmarkSize `json:"readSize,omitempty"`

	// writeSize is the size of one write in bytes (set write). Defaults to "512". Sweepable.
	// +optional
	// +kubebuilder:default="512"
	WriteSize BenchmarkSize `json:"writeSize,omitempty"`

	// biasRead is how many of ten transactions that read or append are reads (set bias read). Defaults to 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	BiasRead *int32 `json:"biasRead,omitempty"`

	// biasCreate is how many of ten transactions that create or delete are creations (set bias create). Defaults to 5.
	// +optional
	// +kubebuilder:default=5
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	BiasCreate *int32 `json:"biasCreate,omitempty"`

	// buffered uses the C library's buffers (set buffering true). Defaults to false.
	// +optional
	Buffered bool `json:"buffered,omitempty"`

	// seed is the seed of the random numbers of all processes, each of which has its own files (set seed). Defaults to 42.
	// +optional
	// +kubebuilder:default=42
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Seed *int32 `json:"seed,omitempty"`
}
