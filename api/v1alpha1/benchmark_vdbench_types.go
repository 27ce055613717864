package v1alpha1

// VdbenchOperation is an operation of vdbench on the files.
// +kubebuilder:validation:Enum=Create;Read;Write
type VdbenchOperation string

// The values of VdbenchOperation.
const (
	// VdbenchCreate makes and writes the files: rd format=only, for the fwd operation=create leaves them empty.
	VdbenchCreate VdbenchOperation = "Create"
	// VdbenchRead reads them.
	VdbenchRead VdbenchOperation = "Read"
	// VdbenchWrite writes them again.
	VdbenchWrite VdbenchOperation = "Write"
)

// VdbenchSpec holds the parameters of vdbench in its filesystem mode (Vdbench Users Guide 5.04.07), which only Oracle distributes:
// spec.image must name an image with it in /opt/vdbench. Each client has a tree of its own, and one process with threads;
// spec.clients.count says how many clients there are, or else spec.processes does.
type VdbenchSpec struct {
	// operations lists the measured operations, always in the order Create, Read, Write, each as a run of its own. Defaults to Create and
	// Read.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Operations []VdbenchOperation `json:"operations,omitempty"`

	// files is the number of files in each deepest directory of a client's tree (fsd files). Defaults to 100. Sweepable.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Files int32 `json:"files,omitempty"`

	// depth is the depth of the tree (fsd depth). Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Depth int32 `json:"depth,omitempty"`

	// width is the number of directories in each directory of the tree (fsd width). Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Width int32 `json:"width,omitempty"`

	// fileSize is the size of each file (fsd size). Defaults to "4Mi". Sweepable.
	// +optional
	// +kubebuilder:default="4Mi"
	FileSize BenchmarkSize `json:"fileSize,omitempty"`

	// transferSize is the size of one read or write (fwd xfersize). fileSize must be a multiple of it. Defaults to "1Mi". Sweepable.
	// +optional
	// +kubebuilder:default="1Mi"
	TransferSize BenchmarkSize `json:"transferSize,omitempty"`

	// threadsPerClient is the number of threads of each client (fwd threads), at most one for each of its files. Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=4096
	ThreadsPerClient int32 `json:"threadsPerClient,omitempty"`

	// syncWrites opens files with O_SYNC for the operation Write (fwd openflags=o_sync). Defaults to false.
	// +optional
	SyncWrites bool `json:"syncWrites,omitempty"`

	// directIO bypasses the clients' caches (fwd openflags=o_direct). Defaults to false.
	// +optional
	DirectIO bool `json:"directIO,omitempty"`

	// elapsedSeconds is the time of Read and of Write, in seconds, at least 2 (rd elapsed). Without it, each file is read or written once
	// (fwd fileselect=once). Create always writes each file once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=604800
	ElapsedSeconds int32 `json:"elapsedSeconds,omitempty"`

	// args are added to the command line of vdbench unchanged, each an option with its value, such as -m4. Options of the parameter file, and
	// those that other fields set, can't be changed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
