// Package views holds each filesystem's state of its targets and servers, as found in the last pass over the FileSystem. That pass writes
// it here. The controllers of StorageTargets and FileSystemNodes read it here, and are the only writers of it to the API server. Nothing
// survives the manager: the first pass after a start determines everything again.
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

// Target is a filesystem's state of one of its StorageTargets.
type Target struct {
	// Generation is the generation of the StorageTarget in that pass.
	Generation int64
	// Service is the reported state of the target, or of a server that uses only this target. It is nil if nothing is reported.
	Service *v1alpha1.TargetService
	// Silent is true if the target's state is unknown.
	Silent bool
	// Removal describes how its data is moved elsewhere. It is nil without a request for that.
	Removal *backend.Removal
	// Unconfirmed is the reason why the reports of its agent may be outdated, as a sentence; empty while the agent confirms them.
	Unconfirmed string
}

// Equal is true for the same state. Each pass may compare 24,000 of them, for which reflection alone would need 50 ms.
func (t Target) Equal(other Target) bool {
	return t.Generation == other.Generation && t.Silent == other.Silent && t.Unconfirmed == other.Unconfirmed &&
		same(t.Service, other.Service) && same(t.Removal, other.Removal)
}

func same[T comparable](a, b *T) bool { return a == b || a != nil && b != nil && *a == *b }

// Node is a filesystem's state of its servers on one node, sorted by name.
type Node struct {
	Members []v1alpha1.MemberStatus
	// Wanted counts the targets of these servers that hold files, and Online those of them that are online.
	Wanted, Online int
	// Troubled is true if something prevents a server or a disk from starting, so that waiting does not help.
	Troubled bool
	// Silent is true while the state of these servers is unknown.
	Silent bool
	// BootID identifies the current boot of the node; empty while unknown.
	BootID string
	// Maintenance describes the state of a request to take the node down. It is nil without a request.
	Maintenance *Maintenance
	// GivingUp describes the state of a person's decision to decommission the node. It is nil without one.
	GivingUp *backend.Problem
}

// Maintenance is the state of a request to take a node down.
type Maintenance struct {
	backend.Problem
	// May is true if the node may be taken down.
	May bool
}

// Equal is true for the same state.
func (n Node) Equal(other Node) bool { return reflect.DeepEqual(n, other) }

// FileSystem is a filesystem's whole state: StorageTargets by name, and nodes by the name of the FileSystemNode.
type FileSystem struct {
	Targets map[string]Target
	Nodes   map[string]Node
}

// Board holds the state of all FileSystems. The zero value is empty.
type Board struct {
	mutex sync.Mutex
	// of holds the state of each FileSystem, with its uid.
	of map[types.NamespacedName]entry
	// targets and nodes are the queues of the controllers that write the changes; nil until they have started.
	targets, nodes queue
}

type entry struct {
	uid  types.UID
	view FileSystem
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Show replaces the state of a FileSystem, and triggers the controllers for what has changed.
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

// Forget removes the state of a deleted FileSystem.
func (b *Board) Forget(name types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.of, name)
}

// Target returns the state of a StorageTarget, or false before the first pass over it.
func (b *Board) Target(fileSystem types.NamespacedName, uid types.UID, target string) (Target, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	e := b.of[fileSystem]
	view, ok := e.view.Targets[target]
	return view, ok && e.uid == uid
}

// Node returns the state of a FileSystemNode, or false before the first pass over it.
func (b *Board) Node(fileSystem types.NamespacedName, uid types.UID, node string) (Node, bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	e := b.of[fileSystem]
	view, ok := e.view.Nodes[node]
	return view, ok && e.uid == uid
}

// Targets returns the source of triggers for the controller of StorageTargets.
func (b *Board) Targets() source.Source { return b.source(&b.targets) }

// Nodes returns the source of triggers for the controller of FileSystemNodes.
func (b *Board) Nodes() source.Source { return b.source(&b.nodes) }

func (b *Board) source(to *queue) source.Source {
	return source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		*to = q // the controller reads everything earlier in its first pass over all objects
		return nil
	})
}

// wake adds the changed names. A queue never blocks, and contains each name once.
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
