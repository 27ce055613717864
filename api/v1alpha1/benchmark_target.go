package v1alpha1

// BenchmarkTarget names the object that is measured.
//
// +kubebuilder:validation:XValidation:rule="[has(self.fileSystem), has(self.persistentVolumeClaim), has(self.storageClass)].filter(x, x).size() == 1",message="set exactly one of spec.target.fileSystem, persistentVolumeClaim and storageClass"
type BenchmarkTarget struct {
	// fileSystem is a FileSystem of this operator.
	// +optional
	FileSystem FileSystemTarget `json:"fileSystem,omitzero"`

	// persistentVolumeClaim is a claim in the namespace of the run, of any driver. The run's pods are unprivileged, and have no access to
	// their nodes.
	// +optional
	PersistentVolumeClaim ClaimTarget `json:"persistentVolumeClaim,omitzero"`

	// storageClass is the StorageClass of a claim that the run makes. The claim is deleted with its data when the run ends.
	// +optional
	StorageClass StorageClassTarget `json:"storageClass,omitzero"`
}

// ClaimTarget names a PersistentVolumeClaim. The run makes a directory of its own on the volume and removes it afterwards. Several clients
// require the access mode ReadWriteMany.
type ClaimTarget struct {
	// claimName is the name of the claim.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ClaimName string `json:"claimName,omitempty"`
}

// StorageClassTarget describes the claim that a run makes.
type StorageClassTarget struct {
	// name of the StorageClass.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// size of the claim, such as "100Gi". It must hold the files of the largest point.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="spec.target.storageClass.size is an amount of storage, such as 100Gi"
	Size string `json:"size,omitempty"`

	// accessMode of the claim. Several clients require ReadWriteMany. Defaults to ReadWriteOnce.
	// +optional
	// +kubebuilder:default=ReadWriteOnce
	AccessMode VolumeAccessMode `json:"accessMode,omitempty"`
}

// VolumeAccessMode is an access mode of a PersistentVolumeClaim that can be written.
// +kubebuilder:validation:Enum=ReadWriteOnce;ReadWriteOncePod;ReadWriteMany
type VolumeAccessMode string

// FileSystemTarget names a FileSystem and one of its storage pools.
type FileSystemTarget struct {
	// name of a FileSystem in the namespace of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// storagePool is the pool that holds the run's files. The run makes a directory of its own in that pool and removes it afterwards.
	// Defaults to the filesystem's defaultStoragePool. A sweep can vary it, as storagePool.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`
}

// String names the target as status and messages do, such as "FileSystem scratch".
func (t *BenchmarkTarget) String() string {
	switch {
	case t.FileSystem.Name != "":
		return "FileSystem " + t.FileSystem.Name
	case t.PersistentVolumeClaim.ClaimName != "":
		return "PersistentVolumeClaim " + t.PersistentVolumeClaim.ClaimName
	case t.StorageClass.Name != "":
		return "StorageClass " + t.StorageClass.Name
	default:
		return ""
	}
}

// IsFileSystem is true for a FileSystem of this operator, and false for a volume that Kubernetes mounts.
func (t *BenchmarkTarget) IsFileSystem() bool { return t.FileSystem.Name != "" }
