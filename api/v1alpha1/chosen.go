package v1alpha1

import "cmp"

// ChosenStatus holds the values that the operator has chosen because the spec has none. A value is chosen once, and stays while the spec
// has none: neither another operator nor another node changes it.
type ChosenStatus struct {
	// copies is the number of copies in the storage pools without a number in the spec.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Copies int32 `json:"copies,omitempty"`

	// version is chosen where spec.version is absent. It is the newest one of which the operator had an image or, for a filesystem whose
	// spec had a version before, the one that it ran.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`

	// basePort is the first port of a MooseFS whose spec names none.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65504
	BasePort int32 `json:"basePort,omitempty"`

	// defaultStoragePool is the pool that takes the files outside of the directories of pools, where the spec names none.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	DefaultStoragePool string `json:"defaultStoragePool,omitempty"`

	// metaloggers are the nodes that keep a running copy of the metadata of a MooseFS, where spec.moosefs.metaloggers selects none. One of
	// them is replaced when it leaves spec.nodes, or becomes the node of the master.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MaxLength=253
	Metaloggers []string `json:"metaloggers,omitempty"`

	// metadataWorkersPerCore is how many worker threads a metadata server of a BeeGFS has for each of its cores. A filesystem that was made
	// before there was this field has none, and keeps 16 threads for each server.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	MetadataWorkersPerCore int32 `json:"metadataWorkersPerCore,omitempty"`
}

// DefaultCopies is the number of copies in a storage pool of a new filesystem without a number in the spec.
func (t FileSystemType) DefaultCopies() int32 {
	if t == MooseFS {
		return 2
	}
	return 1
}

// Complete sets the open fields of the spec to the chosen values. An object with a complete spec is never written.
func (fs *FileSystem) Complete() {
	s, chosen := &fs.Spec, fs.Status.Chosen
	if chosen == nil {
		chosen = &ChosenStatus{}
	}
	s.Version = cmp.Or(s.Version, chosen.Version)
	s.DefaultStoragePool = cmp.Or(s.DefaultStoragePool, chosen.DefaultStoragePool)
	if chosen.BasePort != 0 && s.MooseFS == nil {
		s.MooseFS = &MooseFSSpec{}
	}
	if s.MooseFS != nil {
		s.MooseFS.BasePort = cmp.Or(s.MooseFS.BasePort, chosen.BasePort)
	}
	if s.Nodes != nil && s.Clients == nil {
		s.Clients = &ClientsSpec{}
	}
	if s.Clients != nil {
		s.Clients.MountPath = cmp.Or(s.Clients.MountPath, DirectoryPath(fs.Status.MountPath), DirectoryPath("/mnt/"+fs.Name))
	}
	if s.Type == MooseFS && s.Nodes != nil {
		if s.MooseFS == nil {
			s.MooseFS = &MooseFSSpec{}
		}
		if s.MooseFS.Metaloggers == nil {
			s.MooseFS.Metaloggers = &MetaloggersSpec{}
		}
	}
	for i := range s.StoragePools {
		s.StoragePools[i].Copies = cmp.Or(s.StoragePools[i].Copies, chosen.Copies, s.Type.DefaultCopies())
	}
}

// TakesRest is true for the storage pool that takes the files outside of the directories of pools.
func (s *FileSystemSpec) TakesRest(pool string) bool {
	if s.DefaultStoragePool == "" && len(s.StoragePools) > 0 {
		return s.StoragePools[0].Name == pool // nothing is chosen yet
	}
	return s.DefaultStoragePool == pool
}

// Completed is a FileSystem with a complete spec of its own, and the status of this one.
func (fs *FileSystem) Completed() FileSystem {
	out := *fs
	out.Spec = *fs.Spec.DeepCopy()
	out.Complete()
	return out
}
