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
// +kubebuilder:validation:XValidation:rule="!(has(self.filesOnly) && self.filesOnly && has(self.directoriesOnly) && self.directoriesOnly)",message="filesOnly and directoriesOnly leave nothing to measure"
type MdtestSpec struct {
	// items is the number of items of each process in each directory of the tree (-I). Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	Items int32 `json:"items,omitempty"`

	// itemsPerProcess is the number of items of each process over the whole tree (-n). mdtest divides it by the number of the directories
	// that hold items and leaves out the rest, so a number that leaves one is refused. Either it or items is set. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ItemsPerProcess int32 `json:"itemsPerProcess,omitempty"`

	// depth of the tree (-z); 0 is one directory. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=64
	Depth int32 `json:"depth,omitempty"`

	// branch is the number of directories in each directory of the tree that has any (-b). Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	Branch int32 `json:"branch,omitempty"`

	// leafOnly puts items into the deepest directories only (-L).
	// +optional
	LeafOnly bool `json:"leafOnly,omitempty"`

	// uniqueDirectories gives each process a tree of its own (-u).
	// +optional
	UniqueDirectories bool `json:"uniqueDirectories,omitempty"`

	// filesOnly measures files and no directories (-F).
	// +optional
	FilesOnly bool `json:"filesOnly,omitempty"`

	// directoriesOnly measures directories and no files (-D).
	// +optional
	DirectoriesOnly bool `json:"directoriesOnly,omitempty"`

	// writeBytes are written to each file when it is made (-w); 0 for none. Sweepable.
	// +optional
	WriteBytes BenchmarkSize `json:"writeBytes,omitempty"`

	// readBytes are read from each file (-e), at most writeBytes; 0 for none: reading then is opening and closing. Sweepable.
	// +optional
	ReadBytes BenchmarkSize `json:"readBytes,omitempty"`

	// syncWrites calls fsync after each write (-y).
	// +optional
	SyncWrites bool `json:"syncWrites,omitempty"`

	// stride lets a process stat what another has made, read what a third and remove what a fourth has made (-N), so that its own cache does
	// not answer: with each phase it moves on by that many processes, or in 3.x and 4.x with processes placed in blocks on several clients,
	// by that many clients. It works with a tree that all share, or with a depth of 0. Sweepable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65536
	Stride int32 `json:"stride,omitempty"`

	// iterations that mdtest itself makes and averages (-i). Its report then holds one sample with their mean, maximum, minimum and
	// standard deviation; in 3.x those are over all processes of all iterations. Defaults to 1. Sweepable.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Iterations int32 `json:"iterations,omitempty"`

	// phases that are run, always in this order: Create, Stat, Read, Remove. Defaults to all.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=4
	Phases []MdtestPhase `json:"phases,omitempty"`

	// args are added to the command line as they stand. Options that other fields, or the operator itself, set are refused.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Args []BenchmarkArgument `json:"args,omitempty"`
}
