package v1alpha1

// IOzoneMode sets how iozone is spread over clients.
// +kubebuilder:validation:Enum=SingleClient;Distributed
type IOzoneMode string

// The modes of iozone.
const (
	// IOzoneSingleClient runs all processes on one client (iozone -t).
	IOzoneSingleClient IOzoneMode = "SingleClient"
	// IOzoneDistributed spreads the processes evenly over the clients (iozone -+m with a generated file).
	IOzoneDistributed IOzoneMode = "Distributed"
)

// IOzoneTest is one of iozone's tests, as of its option -i.
// +kubebuilder:validation:Enum=Write;Read;Random
type IOzoneTest string

// The tests of iozone.
const (
	// IOzoneWrite is -i0: write, and rewrite unless noRetest. The others need its files, so it is always run.
	IOzoneWrite IOzoneTest = "Write"
	// IOzoneRead is -i1: read, and re-read unless noRetest.
	IOzoneRead IOzoneTest = "Read"
	// IOzoneRandom is -i2: random read and random write.
	IOzoneRandom IOzoneTest = "Random"
)

// IOzoneSize is a number with Ki, Mi or Gi, as in a quantity of Kubernetes. A bare number is refused: it is kilobytes to iozone, and bytes
// to all other tools.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=14
// +kubebuilder:validation:Pattern=`^[1-9][0-9]{0,11}[KMG]i$`
// +kubebuilder:validation:XValidation:rule="self.matches('^[1-9][0-9]{0,11}[KMG]i$')",message="a size of iozone is a whole number with Ki, Mi or Gi, such as 64Mi"
type IOzoneSize string

// IOzoneSpec holds the parameters of iozone.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tests) || 'Write' in self.tests",message="spec.iozone.tests must hold Write, because the other tests use its files"
type IOzoneSpec struct {
	// mode sets how the processes are spread over clients. Defaults to SingleClient.
	// +optional
	// +kubebuilder:default=SingleClient
	Mode IOzoneMode `json:"mode,omitempty"`

	// tests are the tests to run, always in the order Write, Read, Random. Write is required, because the others use its files. Defaults to
	// all three.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Tests []IOzoneTest `json:"tests,omitempty"`

	// recordSize is the size of one read or write (-r), such as "64Ki". A sweep or derive can vary it. Defaults to "64Ki".
	// +optional
	// +kubebuilder:default="64Ki"
	RecordSize IOzoneSize `json:"recordSize,omitempty"`

	// fileSize is the size of each process's file (-s), such as "1Gi". A sweep or derive can vary it. Defaults to "1Gi".
	// +optional
	// +kubebuilder:default="1Gi"
	FileSize IOzoneSize `json:"fileSize,omitempty"`

	// directIO bypasses the client's cache (-I). Defaults to false.
	// +optional
	DirectIO bool `json:"directIO,omitempty"`

	// includeFlush counts fsync in the time of a write (-e). Defaults to false.
	// +optional
	IncludeFlush bool `json:"includeFlush,omitempty"`

	// includeClose counts close in the time of a write (-c). Defaults to false.
	// +optional
	IncludeClose bool `json:"includeClose,omitempty"`

	// useThreads uses POSIX threads instead of processes (-T). Defaults to false.
	// +optional
	UseThreads bool `json:"useThreads,omitempty"`

	// noRetest leaves out rewrite and re-read (-+n). Defaults to false.
	// +optional
	NoRetest bool `json:"noRetest,omitempty"`
}
