package v1alpha1

import "cmp"

// ChosenStatus is what the operator has chosen where the spec says nothing. It was chosen once, and stays as it is while the spec says
// nothing: neither another operator nor another node changes it.
type ChosenStatus struct {
	// copies is the number of copies in the storage pools that say none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Copies int32 `json:"copies,omitempty"`
}

// DefaultCopies is how many copies a storage pool of a new filesystem keeps that says none.
func (t FileSystemType) DefaultCopies() int32 {
	if t == MooseFS {
		return 2
	}
	return 1
}

// Complete sets in the spec what it leaves open, as it was chosen. An object with a complete spec is never written.
func (fs *FileSystem) Complete() {
	s, chosen := &fs.Spec, fs.Status.Chosen
	if chosen == nil {
		chosen = &ChosenStatus{}
	}
	for i := range s.StoragePools {
		s.StoragePools[i].Copies = cmp.Or(s.StoragePools[i].Copies, chosen.Copies, s.Type.DefaultCopies())
	}
}

// Completed is a FileSystem with a complete spec of its own, and the status of this one.
func (fs *FileSystem) Completed() FileSystem {
	out := *fs
	out.Spec = *fs.Spec.DeepCopy()
	out.Complete()
	return out
}
