// Package v1alpha1 holds the API of the operator: the kinds FileSystem and BenchmarkRun of the group parallelfs.dev.
//
// It imports the standard library and k8s.io/apimachinery only, so that a client can use it without the operator.
// +kubebuilder:object:generate=true
// +groupName=parallelfs.dev
package v1alpha1
