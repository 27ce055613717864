package filesystem

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// record writes what an allocation adds, when it may be added, and what all servers are told now, as fs says. What is used up goes to the
// FileSystem first, in a write that fails when the FileSystem is not as it was read: so nobody else, such as an operator that led before,
// uses up the same. Then it is given, in FileSystemNodes that are as they were read. Afterwards, Input has all as it was written. The
// problems are about CPUs, which servers are told as well.
func (r *Reconciler) record(
	ctx context.Context, b backend.Backend, in *backend.Input, fs *v1alpha1.FileSystem, allocation backend.Allocation, may bool,
) ([]backend.Problem, error) {
	read := in.FileSystemNodes
	for may {
		before := in.FileSystem.DeepCopy()
		in.FileSystem.Status = allocation.Status
		if err := r.writeStatus(ctx, before, in.FileSystem); err != nil {
			return nil, err
		}
		in.FileSystemNodes = backend.WithRecords(read, allocation.Nodes)
		if !allocation.More {
			break
		}
		var err error
		if read, err = r.writeNodes(ctx, in.FileSystem, read, in.FileSystemNodes); err != nil {
			in.FileSystemNodes = read
			return nil, err
		}
		in.FileSystemNodes = read
		if allocation, err = b.Allocate(*in); err != nil {
			return nil, fmt.Errorf("decide what else to record: %w", err)
		}
	}
	problems := r.pin(b, in)
	wanted := *in
	wanted.FileSystem = fs
	written, err := r.writeNodes(ctx, in.FileSystem, read, b.Nodes(wanted))
	in.FileSystemNodes = written
	return problems, err
}

// writeNodes writes those FileSystemNodes that are not as they were read, and returns all as they are now, by node. One that can't be
// written holds up no other.
func (r *Reconciler) writeNodes(
	ctx context.Context, fs *v1alpha1.FileSystem, read, wanted []v1alpha1.FileSystemNode,
) ([]v1alpha1.FileSystemNode, error) {
	live := make(map[string]*v1alpha1.FileSystemNode, len(read))
	for i := range read {
		live[read[i].Name] = &read[i]
	}
	out := make([]v1alpha1.FileSystemNode, 0, len(wanted))
	var errs []error
	for i := range wanted {
		now, err := r.writeNode(ctx, fs, live[wanted[i].Name], &wanted[i])
		errs = append(errs, err)
		if now != nil {
			out = append(out, *now)
		}
	}
	return out, errors.Join(errs...)
}

// writeNode makes a FileSystemNode, or changes one that is as it was read. It returns the object as it is now, nil when there is none. What
// others have added to it stays.
func (r *Reconciler) writeNode(
	ctx context.Context, fs *v1alpha1.FileSystem, live, wanted *v1alpha1.FileSystemNode,
) (*v1alpha1.FileSystemNode, error) {
	n := wanted.DeepCopy()
	if n.DeletionTimestamp.IsZero() {
		controllerutil.AddFinalizer(n, v1alpha1.Finalizer)
	}
	if err := controllerutil.SetControllerReference(fs, n, r.Client.Scheme()); err != nil {
		return live, fmt.Errorf("set the owner of FileSystemNode %s: %w", n.Name, err)
	}
	if live == nil {
		err := r.Client.Create(ctx, n)
		switch {
		case apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("make FileSystemNode %s: this pass did not see the one that is there; the next one looks again. When this goes on, "+
				"it is left over from another FileSystem of that name: delete it by hand (kubectl -n %s delete filesystemnode %s): %w", n.Name, n.Namespace, n.Name, err)
		case err != nil:
			return nil, fmt.Errorf("make FileSystemNode %s: %w", n.Name, err)
		}
		return n, nil
	}
	if same(live, n) {
		return live, nil
	}
	err := r.Client.Patch(ctx, n, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		n, err = r.writeOverStatus(ctx, live, wanted)
	}
	if err != nil {
		return live, fmt.Errorf("change what FileSystemNode %s records and tells: %w", wanted.Name, err)
	}
	return n, nil
}

// writeOverStatus changes a FileSystemNode of which only the status has changed since it was read, as agents do all the time. The record
// is in the spec, and its generation says that it is as it was.
func (r *Reconciler) writeOverStatus(ctx context.Context, live, wanted *v1alpha1.FileSystemNode) (*v1alpha1.FileSystemNode, error) {
	now := &v1alpha1.FileSystemNode{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(live), now); err != nil {
		return nil, fmt.Errorf("read it again: %w", err)
	}
	if now.UID != live.UID || now.Generation != live.Generation {
		return nil, fmt.Errorf("it has changed since it was read; the next pass looks again (generation %d, and %d was read)", now.Generation, live.Generation)
	}
	n := now.DeepCopy()
	n.Spec = *wanted.Spec.DeepCopy()
	return n, r.Client.Patch(ctx, n, client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{}))
}

// same is true when a FileSystemNode is as it should be.
func same(live, wanted *v1alpha1.FileSystemNode) bool {
	return equality.Semantic.DeepEqual(live.Spec, wanted.Spec) && equality.Semantic.DeepEqual(live.Labels, wanted.Labels) &&
		equality.Semantic.DeepEqual(live.Finalizers, wanted.Finalizers) &&
		equality.Semantic.DeepEqual(live.OwnerReferences, wanted.OwnerReferences)
}
