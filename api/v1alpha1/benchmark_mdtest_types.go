package v1alpha1

// MdtestPhase is one of the phases of mdtest.
// +kubebuilder:validation:Enum=Create;Stat;Read;Remove
type MdtestPhase string

// The values of MdtestPhase.
const (
	// MdtestCreate is -C.
	MdtestCreate MdtestPhase = "Create"
	// MdtestStat is -T.
	MdtestStat MdtestPhase = "Stat"
	// MdtestRead is -E.
	MdtestRead MdtestPhase = "Read"
	// MdtestRemove is -r.
	MdtestRemove MdtestPhase = "Remove"
)

// MdtestSpec holds the parameters of mdtest (mdtest.1 of github.com/hpc/ior). A tree has treeDirectories(branch, depth) directories.
//
// +kubebuilder:validation:XValidation:rule="!has(self.phases) || 'Create' in self.phases",message="spec.mdtest.phases must hold Create, because the other phases use its items"
// +kubebuilder:validation:XValidation:rule="!(has(self.filesOnly) && self.filesOnly && has(self.directoriesOnly) && self.directoriesOnly)",message="filesOnly and directoriesOnly together leave nothing to measure"
type MdtestSpec struct {
	// items is the number of items of each process in each directory of the tree (-I). Set either it or itemsPerProcess. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Items int32 `json:"items,omitempty"`

	// itemsPerProcess is the number of items of each process in the whole tree (-n). It must be divisible by the number of directories that
	// hold items, because mdtest leaves out the rest. Set either it or items. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ItemsPerProcess int32 `json:"itemsPerProcess,omitempty"`

	// depth is the depth of the tree (-z); 0 is a single directory. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Depth int32 `json:"depth,omitempty"`

	// branch is the number of directories in each directory above the deepest ones (-b). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Branch int32 `json:"branch,omitempty"`

	// leafOnly puts items into the deepest directories only (-L). Defaults to false.
	// +optional
	LeafOnly bool `json:"leafOnly,omitempty"`

	// uniqueDirectories gives each process a tree of its own (-u). Defaults to false.
	// +optional
	UniqueDirectories bool `json:"uniqueDirectories,omitempty"`

	// filesOnly measures files and no directories (-F). Defaults to false.
	// +optional
	FilesOnly bool `json:"filesOnly,omitempty"`

	// directoriesOnly measures directories and no files (-D). Defaults to false.
	// +optional
	DirectoriesOnly bool `json:"directoriesOnly,omitempty"`

	// writeBytes is the number of bytes that are written to each new file (-w); 0 writes none. Sweepable.
	// +optional
	WriteBytes BenchmarkSize `json:"writeBytes,omitempty"`

	// readBytes is the number of bytes that are read from each file (-e), at most writeBytes; with 0, a file is only opened and closed.
	// Sweepable.
	// +optional
	ReadBytes BenchmarkSize `json:"readBytes,omitempty"`

	// syncWrites calls fsync after each write (-y). Defaults to false.
	// +optional
	SyncWrites bool `json:"syncWrites,omitempty"`

	// stride is the number of processes by which mdtest shifts the work from one phase to the next (-N). A process then finds nothing in its
	// own cache: it runs stat on the files of a second process, reads those of a third, and removes those of a fourth. When processes are
	// placed in blocks on several clients, mdtest 3.x and 4.x shift by that many clients instead. It needs a tree that all processes share, or
	// depth 0. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	Stride int32 `json:"stride,omitempty"`

	// iterations is the number of iterations that mdtest itself makes and averages (-i). The report then has one sample with mean, maximum,
	// minimum and standard deviation; in 3.x, these are over all processes of all iterations. Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Iterations int32 `json:"iterations,omitempty"`

	// phases are the phases to run, always in the order Create, Stat, Read, Remove. Create is required, because the others use its items.
	// Defaults to all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Phases []MdtestPhase `json:"phases,omitempty"`

	// args are added to the command line unchanged. Options that other fields or the operator set are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
