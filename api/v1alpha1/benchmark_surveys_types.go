package v1alpha1

// MDSSurveyTest is one of the tests of mds-survey.
// +kubebuilder:validation:Enum=create;lookup;md_getattr;setxattr;destroy
type MDSSurveyTest string

// The values of MDSSurveyTest.
const (
	// MDSSurveyCreate makes files.
	MDSSurveyCreate MDSSurveyTest = "create"
	// MDSSurveyLookup looks them up.
	MDSSurveyLookup MDSSurveyTest = "lookup"
	// MDSSurveyGetAttr reads their attributes.
	MDSSurveyGetAttr MDSSurveyTest = "md_getattr"
	// MDSSurveySetXAttr sets an extended attribute.
	MDSSurveySetXAttr MDSSurveyTest = "setxattr"
	// MDSSurveyDestroy removes them.
	MDSSurveyDestroy MDSSurveyTest = "destroy"
)

// MDSSurveySpec holds the parameters of mds-survey (Lustre Operations Manual, chapter "Benchmarking Lustre File System Performance"), which
// measures the metadata server on its own node, without clients.
type MDSSurveySpec struct {
	// threadsLow is the first number of threads (thrlo). It doubles up to threadsHigh. It must be at least dirCount, because mds-survey
	// skips smaller numbers. Defaults to 4. Sweepable.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	ThreadsLow int32 `json:"threadsLow,omitempty"`

	// threadsHigh is the last number of threads (thrhi). Defaults to 64. Sweepable.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	ThreadsHigh int32 `json:"threadsHigh,omitempty"`

	// fileCount is the number of files of all threads together (file_count). Defaults to 200000. Sweepable.
	// +optional
	// +kubebuilder:default=200000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	FileCount int32 `json:"fileCount,omitempty"`

	// dirCount is the number of directories (dir_count). Defaults to 4. Sweepable.
	// +optional
	// +kubebuilder:default=4
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	DirCount int32 `json:"dirCount,omitempty"`

	// stripeCount is the number of objects of each file (stripe_count); 0 makes files without objects. Defaults to 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2000
	StripeCount int32 `json:"stripeCount,omitempty"`

	// tests are the tests to run, always in the order create, lookup, md_getattr, setxattr, destroy (tests_str). create and destroy are
	// required. Defaults to all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	Tests []MDSSurveyTest `json:"tests,omitempty"`
}

// OBDFilterTest is one of the tests of obdfilter-survey.
// +kubebuilder:validation:Enum=write;rewrite;read
type OBDFilterTest string

// The values of OBDFilterTest.
const (
	// OBDFilterWrite writes objects.
	OBDFilterWrite OBDFilterTest = "write"
	// OBDFilterRewrite writes them again.
	OBDFilterRewrite OBDFilterTest = "rewrite"
	// OBDFilterRead reads them.
	OBDFilterRead OBDFilterTest = "read"
)

// OBDFilterSurveySpec holds the parameters of obdfilter-survey (same chapter), which measures object storage targets on their own node,
// without clients (case=disk). It makes objects of its own, and never writes to a device.
type OBDFilterSurveySpec struct {
	// threadsLow is the first number of threads (thrlo). It doubles up to threadsHigh. Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	ThreadsLow int32 `json:"threadsLow,omitempty"`

	// threadsHigh is the last number of threads (thrhi). Defaults to 16. Sweepable.
	// +optional
	// +kubebuilder:default=16
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	ThreadsHigh int32 `json:"threadsHigh,omitempty"`

	// objectsLow is the first number of objects (nobjlo). It doubles up to objectsHigh. Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	ObjectsLow int32 `json:"objectsLow,omitempty"`

	// objectsHigh is the last number of objects (nobjhi). Defaults to 2. Sweepable.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65536
	ObjectsHigh int32 `json:"objectsHigh,omitempty"`

	// sizeMiB is the amount of data written to each target, in MiB (size). It must be divisible among all threads in whole records.
	// Defaults to 1024. Sweepable.
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	SizeMiB int32 `json:"sizeMiB,omitempty"`

	// recordKiB is the size of one read or write (rszlo and rszhi), in KiB. Defaults to 1024. Sweepable.
	// +optional
	// +kubebuilder:default=1024
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1048576
	RecordKiB int32 `json:"recordKiB,omitempty"`

	// tests are the tests to run, always in the order write, rewrite, read (tests_str). write is required. Defaults to write and read.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	Tests []OBDFilterTest `json:"tests,omitempty"`
}
