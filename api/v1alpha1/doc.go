// Package v1alpha1 holds the API of the operator, the group parallelfs.dev: FileSystem, FileSystemNode, StorageTarget, NodeInventory,
// BenchmarkRun and BenchmarkSuite.
//
// It imports the standard library, k8s.io/api and k8s.io/apimachinery only, so that a client can use it without the operator.
// +kubebuilder:object:generate=true
// +groupName=parallelfs.dev
package v1alpha1
