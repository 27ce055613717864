package v1alpha1

// String names the target as status and messages do, such as "FileSystem scratch".
func (t *BenchmarkTarget) String() string {
	if t.FileSystem.Name != "" {
		return "FileSystem " + t.FileSystem.Name
	}
	return ""
}
