package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package.
var GroupVersion = schema.GroupVersion{Group: "parallelfs.dev", Version: "v1alpha1"}

// SchemeBuilder collects the functions that register this package's kinds.
var SchemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&FileSystem{}, &FileSystemList{},
		&BenchmarkRun{}, &BenchmarkRunList{},
		&BenchmarkSuite{}, &BenchmarkSuiteList{},
		&StorageTarget{}, &StorageTargetList{},
		&NodeInventory{}, &NodeInventoryList{},
		&FileSystemNode{}, &FileSystemNodeList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
})

// AddToScheme registers this package's kinds with a scheme.
var AddToScheme = SchemeBuilder.AddToScheme
