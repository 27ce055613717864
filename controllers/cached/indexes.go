package cached

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// The fields by which the cache finds objects without reading all of them. The API server has the same ones as selectable fields, so that a
// list by one of them is the same for a client of the API server.
const (
	// ByFileSystem finds the objects of a FileSystem by its name. A FileSystem that was created again under that name has another uid: compare
	// that.
	ByFileSystem = "spec.fileSystem.name"
	// ByMeasured, ByMeasuredClaim and ByMeasuredClass find the BenchmarkRuns of a FileSystem, a PersistentVolumeClaim or a StorageClass, by
	// its name.
	ByMeasured      = "spec.target.fileSystem.name"
	ByMeasuredClaim = "spec.target.persistentVolumeClaim.claimName"
	ByMeasuredClass = "spec.target.storageClass.name"
	// ByNode finds the objects of a node.
	ByNode = "spec.node"
)

// Index is a field of one kind.
type Index struct {
	Object client.Object
	Field  string
	Values client.IndexerFunc
}

// Indexes has all fields that the controllers search by.
func Indexes() []Index {
	return []Index{
		index(&v1alpha1.StorageTarget{}, ByFileSystem, func(t *v1alpha1.StorageTarget) string { return t.Spec.FileSystem.Name }),
		index(&v1alpha1.StorageTarget{}, ByNode, func(t *v1alpha1.StorageTarget) string { return t.Spec.Node }),
		index(&v1alpha1.FileSystemNode{}, ByFileSystem, func(n *v1alpha1.FileSystemNode) string { return n.Spec.FileSystem.Name }),
		index(&v1alpha1.BenchmarkRun{}, ByMeasured, func(r *v1alpha1.BenchmarkRun) string { return r.Spec.Target.FileSystem.Name }),
		index(&v1alpha1.BenchmarkRun{}, ByMeasuredClaim, func(r *v1alpha1.BenchmarkRun) string {
			return r.Spec.Target.PersistentVolumeClaim.ClaimName
		}),
		index(&v1alpha1.BenchmarkRun{}, ByMeasuredClass, func(r *v1alpha1.BenchmarkRun) string { return r.Spec.Target.StorageClass.Name }),
	}
}

// RunsOf finds the BenchmarkRuns of a namespace that measure the same.
func RunsOf(target *v1alpha1.BenchmarkTarget) client.MatchingFields {
	switch {
	case target.IsFileSystem():
		return client.MatchingFields{ByMeasured: target.FileSystem.Name}
	case target.StorageClass.Name != "":
		return client.MatchingFields{ByMeasuredClass: target.StorageClass.Name}
	default:
		return client.MatchingFields{ByMeasuredClaim: target.PersistentVolumeClaim.ClaimName}
	}
}

func index[T client.Object](of T, field string, value func(T) string) Index {
	return Index{Object: of, Field: field, Values: func(o client.Object) []string {
		if t, is := o.(T); is {
			return []string{value(t)}
		}
		return nil
	}}
}

// IndexAll makes all Indexes in a manager's cache, before its controllers are set up; without filesystems, those of BenchmarkRuns alone,
// because the API server serves no other kind.
func IndexAll(ctx context.Context, indexer client.FieldIndexer, fileSystems bool) error {
	for _, i := range Indexes() {
		if _, run := i.Object.(*v1alpha1.BenchmarkRun); !run && !fileSystems {
			continue
		}
		if err := indexer.IndexField(ctx, i.Object, i.Field, i.Values); err != nil {
			return fmt.Errorf("index %T by %s: %w", i.Object, i.Field, err)
		}
	}
	return nil
}
