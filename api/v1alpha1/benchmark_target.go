package v1alpha1

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
