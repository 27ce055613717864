package v1alpha1

// FioMode is what fio does (rw).
// +kubebuilder:validation:Enum=read;write;randread;randwrite;readwrite;randrw
type FioMode string

// The values of FioMode.
const (
	// FioRead reads one after the other.
	FioRead FioMode = "read"
	// FioWrite writes one after the other.
	FioWrite FioMode = "write"
	// FioRandomRead reads at random places.
	FioRandomRead FioMode = "randread"
	// FioRandomWrite writes at random places.
	FioRandomWrite FioMode = "randwrite"
	// FioReadWrite does both, one after the other.
	FioReadWrite FioMode = "readwrite"
	// FioRandomReadWrite does both, at random places.
	FioRandomReadWrite FioMode = "randrw"
)

// FioSpec holds the parameters of fio (fio.readthedocs.io). Each client runs one fio, with as many jobs as it has processes; all have as
// many, so the number of clients has to be given where there is more than one process.
type FioSpec struct {
	// mode is how the files are accessed (rw). Defaults to read. Sweepable.
	// +optional
	// +kubebuilder:default=read
	Mode FioMode `json:"mode,omitempty"`

	// readPercent is the share of reads in a mixed mode (rwmixread). Defaults to 50. Sweepable.
	// +optional
	// +kubebuilder:default=50
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=99
	ReadPercent int32 `json:"readPercent,omitempty"`

	// blockSize is the size of one read or write (bs). Defaults to "4Ki". Sweepable.
	// +optional
	// +kubebuilder:default="4Ki"
	BlockSize BenchmarkSize `json:"blockSize,omitempty"`

	// fileSize is the size of the file of each job (size). Defaults to "1Gi". Sweepable.
	// +optional
	// +kubebuilder:default="1Gi"
	FileSize BenchmarkSize `json:"fileSize,omitempty"`

	// engine is the way in which reads and writes are made (ioengine). Defaults to psync.
	// +optional
	// +kubebuilder:default=psync
	// +kubebuilder:validation:Enum=sync;psync;libaio;io_uring;mmap
	// +kubebuilder:validation:MaxLength=16
	Engine string `json:"engine,omitempty"`

	// queueDepth is the number of reads and writes of a job that are under way at once (iodepth). Only the engines libaio and io_uring have
	// more than one. Defaults to 1. Sweepable for those engines.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	QueueDepth int32 `json:"queueDepth,omitempty"`

	// directIO bypasses the client's cache (direct). Defaults to false.
	// +optional
	DirectIO bool `json:"directIO,omitempty"`

	// fsyncOnClose calls fsync after a file was written (end_fsync). Defaults to false.
	// +optional
	FsyncOnClose bool `json:"fsyncOnClose,omitempty"`

	// runtimeSeconds is how long fio measures, in seconds, whatever the size of the files (time_based, runtime). Without it, each file is
	// read or written once. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	RuntimeSeconds int32 `json:"runtimeSeconds,omitempty"`

	// rampSeconds is the time at the start that does not count, in seconds (ramp_time). It needs runtimeSeconds.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=86400
	RampSeconds int32 `json:"rampSeconds,omitempty"`

	// args are added to the command line unchanged, each option with its value in one argument, such as "--thinktime=1000". Options that
	// other fields or the operator set are refused, and so are options that change what is done or printed.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
