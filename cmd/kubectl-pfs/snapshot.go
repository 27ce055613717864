package main

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

// pageSize is how many objects one request lists. A cluster of 1000 nodes has 24,000 StorageTargets, which are 12 requests.
const pageSize = 2000

// pages lists all objects of a kind, one page at a time. Each page needs an empty list of its own, because decoding reuses the objects of a
// list.
func pages[L client.ObjectList](
	ctx context.Context, r client.Reader, kind string, empty func() L, take func(L), options ...client.ListOption,
) error {
	next := ""
	for {
		list := empty()
		if err := r.List(ctx, list, append(slices.Clone(options), client.Limit(pageSize), client.Continue(next))...); err != nil {
			return fmt.Errorf("list %s: %w", kind, err)
		}
		take(list)
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}

// snapshot holds the objects that were read from a cluster or from a support bundle.
type snapshot struct {
	fileSystems []v1alpha1.FileSystem
	targets     []v1alpha1.StorageTarget
	nodes       []v1alpha1.FileSystemNode
	inventories []v1alpha1.NodeInventory
	events      []corev1.Event
}

// ofFileSystem returns the options that select the objects of a FileSystem, or all of a namespace if the name is empty.
func ofFileSystem(namespace, name string) []client.ListOption {
	out := []client.ListOption{client.InNamespace(namespace)}
	if name != "" {
		out = append(out, client.MatchingLabels{v1alpha1.LabelFileSystem: name})
	}
	return out
}

// readFileSystems reads one FileSystem, or all of a namespace if the name is empty.
func (s *snapshot) readFileSystems(ctx context.Context, r client.Reader, namespace, name string) error {
	if name == "" {
		return pages(ctx, r, "FileSystems", func() *v1alpha1.FileSystemList { return &v1alpha1.FileSystemList{} },
			func(l *v1alpha1.FileSystemList) { s.fileSystems = append(s.fileSystems, l.Items...) }, client.InNamespace(namespace))
	}
	fs := v1alpha1.FileSystem{}
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &fs)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("there is no FileSystem %s in the namespace %s; name another with --namespace", name, namespace)
	}
	if err != nil {
		return fmt.Errorf("read the FileSystem %s/%s: %w", namespace, name, err)
	}
	s.fileSystems = append(s.fileSystems, fs)
	return nil
}

// readTargets reads the StorageTargets of a FileSystem, or of all.
func (s *snapshot) readTargets(ctx context.Context, r client.Reader, options ...client.ListOption) error {
	return pages(ctx, r, "StorageTargets", func() *v1alpha1.StorageTargetList { return &v1alpha1.StorageTargetList{} },
		func(l *v1alpha1.StorageTargetList) { s.targets = append(s.targets, l.Items...) }, options...)
}

// readNodes reads the FileSystemNodes of a FileSystem, or of all.
func (s *snapshot) readNodes(ctx context.Context, r client.Reader, options ...client.ListOption) error {
	return pages(ctx, r, "FileSystemNodes", func() *v1alpha1.FileSystemNodeList { return &v1alpha1.FileSystemNodeList{} },
		func(l *v1alpha1.FileSystemNodeList) { s.nodes = append(s.nodes, l.Items...) }, options...)
}

// readInventories reads the NodeInventory of a node, or all of them.
func (s *snapshot) readInventories(ctx context.Context, r client.Reader, node string) error {
	if node != "" {
		one := v1alpha1.NodeInventory{}
		err := r.Get(ctx, client.ObjectKey{Name: node}, &one)
		if apierrors.IsNotFound(err) {
			return fmt.Errorf("there is no NodeInventory of a node %q; an agent runs on nodes with the label %s", node, v1alpha1.LabelAgent)
		}
		if err != nil {
			return fmt.Errorf("read the NodeInventory %s: %w", node, err)
		}
		s.inventories = append(s.inventories, one)
		return nil
	}
	return pages(ctx, r, "NodeInventories", func() *v1alpha1.NodeInventoryList { return &v1alpha1.NodeInventoryList{} },
		func(l *v1alpha1.NodeInventoryList) { s.inventories = append(s.inventories, l.Items...) })
}

// readEvents reads the events of a namespace.
func (s *snapshot) readEvents(ctx context.Context, r client.Reader, namespace string) error {
	return pages(ctx, r, "events", func() *corev1.EventList { return &corev1.EventList{} },
		func(l *corev1.EventList) { s.events = append(s.events, l.Items...) }, client.InNamespace(namespace))
}

// readFileSystem reads a FileSystem with its StorageTargets and FileSystemNodes.
func (s *snapshot) readFileSystem(ctx context.Context, r client.Reader, namespace, name string) error {
	if err := s.readFileSystems(ctx, r, namespace, name); err != nil {
		return err
	}
	options := ofFileSystem(namespace, name)
	if err := s.readTargets(ctx, r, options...); err != nil {
		return err
	}
	return s.readNodes(ctx, r, options...)
}
