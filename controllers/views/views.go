// Package views keeps how each filesystem sees its targets and servers, as the last pass over its FileSystem has found it. That pass puts
// it here; the controllers of StorageTargets and FileSystemNodes take it from here, and are the only ones that write it. Nothing of it
// outlives the manager: the first pass after a start finds all of it again.
package views

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// Target is how a filesystem sees one of its StorageTargets.
type Target struct {
	// Generation is that of the StorageTarget that the pass has looked at.
	Generation int64
	// Service is what it says of the target, or of the server that uses the target alone; nil when it says nothing.
	Service *v1alpha1.TargetService
	// Silent is true when the filesystem did not say how it is.
	Silent bool
	// Removal says how the data comes elsewhere, nil while nobody asks for that.
	Removal *backend.Removal
}

// Equal is true for the same view. There may be 24,000 of them in each pass, which reflection alone would spend 50 ms on.
func (t Target) Equal(other Target) bool {
	return t.Generation == other.Generation && t.Silent == other.Silent && same(t.Service, other.Service) && same(t.Removal, other.Removal)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Node is how a filesystem sees its servers on one node, sorted by name.
type Node struct {
	Members []v1alpha1.MemberStatus
	// Wanted is the number of the targets of these servers that hold files, and Online how many of them take part.
	Wanted, Online int
	// Troubled is true when something keeps a server or a disk from starting: what is not online then does not just need its time.
	Troubled bool
	// Silent is true while nobody can be asked about these servers.
	Silent bool
	// BootID tells one start of the node from another; empty while that is not known.
	BootID string
	// Maintenance says what becomes of the node when somebody wants to take it away, nil when nobody does.
	Maintenance *Maintenance
	// GivingUp says what became of the word of a person that the node never comes back, nil when nobody said so.
	GivingUp *backend.Problem
}

// Maintenance is what becomes of a node that somebody wants to take away.
type Maintenance struct {
	backend.Problem
	// May is true when it may be away.
	May bool
}

// Equal is true for the same view.
func (n Node) Equal(other Node) bool { return reflect.DeepEqual(n, other) }

// FileSystem is how a filesystem sees itself: StorageTargets by name, and nodes by the name of the FileSystemNode.
type FileSystem struct {
	Targets map[string]Target
	Nodes   map[string]Node
}

// Board keeps the views of all FileSystems. The zero value is empty.
type Board struct {
	mutex sync.Mutex
	// of has the view of each FileSystem, with the uid of that FileSystem.
	of map[types.NamespacedName]entry
	// targets and nodes are the queues of the controllers that write what changes here; nil until they have started.
	targets, nodes queue
}

type entry struct {
	uid  types.UID
	view FileSystem
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Show replaces the view of a FileSystem, and wakes who writes what has changed.
func (b *Board) Show(name types.NamespacedName, uid types.UID, view FileSystem) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	before := b.of[name]
	if before.uid != uid {
		before = entry{}
	}
	if b.of == nil {
		b.of = map[types.NamespacedName]entry{}
	}
	b.of[name] = entry{uid: uid, view: view}
	wake(b.targets, name.Namespace, before.view.Targets, view.Targets)
	wake(b.nodes, name.Namespace, before.view.Nodes, view.Nodes)
}

// Forget drops the view of a FileSystem that is gone.
func (b *Board) Forget(name types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.of, name)
}

// Target is the view of a StorageTarget; false while no pass over its FileSystem has looked at it.
func (b *Board) Target(fileSystem types.NamespacedName, uid types.UID, target string) (Target, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	e := b.of[fileSystem]
	view, ok := e.view.Targets[target]
	return view, ok && e.uid == uid
}

// Node is the view of a FileSystemNode; false while no pass over its FileSystem has looked at it.
func (b *Board) Node(fileSystem types.NamespacedName, uid types.UID, node string) (Node, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	e := b.of[fileSystem]
	view, ok := e.view.Nodes[node]
	return view, ok && e.uid == uid
}

// Targets wakes the controller of StorageTargets, Nodes that of FileSystemNodes.
func (b *Board) Targets() source.Source { return b.source(&b.targets) }

// Nodes wakes the controller of FileSystemNodes.
func (b *Board) Nodes() source.Source { return b.source(&b.nodes) }

func (b *Board) source(to *queue) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		*to = q // what was shown before, the controller finds when it looks at all of its objects at its start
		return nil
	})
}

// wake adds what has changed. A queue never blocks, and holds each name once.
func wake[V interface{ Equal(V) bool }](q queue, namespace string, before, after map[string]V) {
	if q == nil {
		return
	}
	for name, view := range after {
		if was, ok := before[name]; !ok || !was.Equal(view) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		}
	}
}
