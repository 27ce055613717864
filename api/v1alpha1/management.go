package v1alpha1

// ManagementPlace is where a management service runs, and where it keeps its store.
// +kubebuilder:object:generate=false
type ManagementPlace struct {
	// Field is its path in a FileSystem, such as spec.beegfs.management.
	Field        string
	NodeSelector NodeSelector
	// Targets are those of the spec itself.
	Targets *TargetsSpec
}

// Management is the management service, nil where there is none, or where the metadata has it.
func (s *FileSystemSpec) Management() *ManagementPlace {
	switch {
	case s.BeeGFS != nil:
		m := &s.BeeGFS.Management
		return &ManagementPlace{"spec.beegfs.management", m.NodeSelector, &m.Targets}
	case s.Lustre != nil && s.Lustre.Management != nil:
		m := s.Lustre.Management
		return &ManagementPlace{"spec.lustre.management", m.NodeSelector, &m.Targets}
	default:
		return nil
	}
}
