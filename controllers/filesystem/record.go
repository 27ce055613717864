package filesystem

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/apply"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/decisions"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
)

// allocate decides what must be recorded, and whether it may be: servers that would join a filesystem during a benchmark have to wait.
func (p *pass) allocate(ctx context.Context) (err error) {
	if problem := nodefacts.AddressProblem(p.in, p.backend.Families(p.fs)); problem != nil {
		p.problems = append(p.problems, *problem)
	}
	if p.allocation, err = decisions.AllocateReachable(p.backend, p.in); err != nil {
		return err //nolint:wrapcheck // the phase adds its name
	}
	if p.allocation.Waits {
		// A new filesystem reads its disks first. Disks that are not chosen yet have no agent that reads them.
		p.joins = true
		if err := p.chooseDisks(ctx); err != nil || !p.in.Chosen {
			return err
		}
		// The disks may hold values that were open.
		if err := p.chooseOpen(ctx); err != nil {
			return err
		}
		if p.allocation, err = decisions.AllocateReachable(p.backend, p.in); err != nil {
			return err //nolint:wrapcheck // the phase adds its name
		}
	}
	if why := p.allocation.Unread; why != "" {
		p.problems = append(p.problems, backend.Problem{Reason: v1alpha1.ReasonRecordsUnread, Message: why})
	}
	p.joins, err = p.hold.may(ctx, p.allocation.Joins...)
	return err
}

// record writes what the allocation adds, if it may be added. Used-up numbers go to the FileSystem first, in a write that fails if the
// FileSystem has changed since it was read. So no other process, such as a former leader, uses up the same numbers. Then they are assigned
// in unchanged FileSystemNodes; tell writes the remaining ones. An operator that is killed in between finds its decision recorded, and
// decides the same.
func (p *pass) record(ctx context.Context) error {
	p.recorded = p.in.FileSystemNodes
	defer func() { p.wanted = withoutNewPools(p.fs) }()
	for p.joins {
		p.fs.Status = p.allocation.Status
		if err := p.writeStatus(ctx); err != nil {
			return err
		}
		p.in.FileSystemNodes = assign.WithRecords(p.recorded, p.allocation.Nodes)
		if !p.allocation.More {
			return nil
		}
		var err error
		p.recorded, err = p.writeNodes(ctx, p.fs, p.recorded, p.in.FileSystemNodes)
		p.in.FileSystemNodes = p.recorded
		if err != nil {
			return err
		}
		if p.allocation, err = p.backend.Allocate(p.in); err != nil {
			return err //nolint:wrapcheck // the phase adds its name
		}
	}
	return nil
}

// tell writes the records of each server, and its current configuration. Afterwards, Input has everything as it was written.
func (p *pass) tell(ctx context.Context) error {
	in := p.in
	in.FileSystem = p.wanted
	wanted := p.backend.Nodes(in)
	keepWhileDisksAreMade(p.recorded, wanted, disksBeingMade(in, p.Order.Now()))
	written, err := p.writeNodes(ctx, p.fs, p.recorded, wanted)
	p.in.FileSystemNodes = written
	if err != nil {
		return err
	}
	p.in.Configured = configuredNodes(written)
	behind, err := p.unconfirmedNodes(ctx, p.in)
	p.problems = append(p.problems, behind...)
	return err
}

// withoutNewPools returns the FileSystem without the storage pools that are not recorded yet.
func withoutNewPools(fs *v1alpha1.FileSystem) *v1alpha1.FileSystem {
	isNew := func(pool v1alpha1.StoragePoolSpec) bool {
		return !slices.ContainsFunc(fs.Status.StoragePools, func(known v1alpha1.StoragePoolStatus) bool { return known.Name == pool.Name })
	}
	if !slices.ContainsFunc(fs.Spec.StoragePools, isNew) {
		return fs
	}
	out := fs.DeepCopy()
	out.Spec.StoragePools = slices.DeleteFunc(out.Spec.StoragePools, isNew)
	return out
}

// writeNodes writes those FileSystemNodes that differ from what was read, and returns all current ones, by node. A failed write does not
// affect the others.
func (r *Reconciler) writeNodes(
	ctx context.Context, fs *v1alpha1.FileSystem, read, wanted []v1alpha1.FileSystemNode,
) ([]v1alpha1.FileSystemNode, error) {
	live := make(map[string]*v1alpha1.FileSystemNode, len(read))
	for i := range read {
		live[read[i].Name] = &read[i]
	}
	now := make([]*v1alpha1.FileSystemNode, len(wanted))
	err := apply.Together(len(wanted), func(i int) (err error) {
		now[i], err = r.writeNode(ctx, fs, live[wanted[i].Name], &wanted[i])
		return err
	})
	out := make([]v1alpha1.FileSystemNode, 0, len(wanted))
	for _, n := range now {
		if n != nil {
			out = append(out, *n)
		}
	}
	return out, err //nolint:wrapcheck // writeNode has wrapped it
}

// writeNode creates a FileSystemNode, or changes one that has not changed since it was read. It returns the current object, nil if there is
// none. It keeps fields that others have added.
func (r *Reconciler) writeNode(
	ctx context.Context, fs *v1alpha1.FileSystem, live, wanted *v1alpha1.FileSystemNode,
) (*v1alpha1.FileSystemNode, error) {
	if live != nil && same(fs, live, wanted) {
		return live, nil
	}
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
	err := r.Client.Patch(ctx, n, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		n, err = r.writeOverStatus(ctx, live, wanted)
	}
	if err != nil {
		return live, fmt.Errorf("change the record in FileSystemNode %s: %w", wanted.Name, err)
	}
	return n, nil
}

// writeOverStatus changes a FileSystemNode of which only the status has changed since it was read, which agents do all the time. The record
// is in the spec, and an unchanged generation proves that the record is unchanged.
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

// same reports whether a FileSystemNode equals the desired one.
func same(fs *v1alpha1.FileSystem, live, wanted *v1alpha1.FileSystemNode) bool {
	kept := controllerutil.ContainsFinalizer(live, v1alpha1.Finalizer) || !live.DeletionTimestamp.IsZero()
	return kept && metav1.IsControlledBy(live, fs) && maps.Equal(live.Labels, wanted.Labels) &&
		(sameSpec(&live.Spec, &wanted.Spec) || equality.Semantic.DeepEqual(live.Spec, wanted.Spec))
}

// sameSpec compares the targets of members by their fields, and everything else by reflection. Reflection alone would take a tenth of a
// pass for 24,000 targets. It distinguishes empty from missing values, so "different" may rarely be wrong.
func sameSpec(a, b *v1alpha1.FileSystemNodeSpec) bool {
	if len(a.Members) != len(b.Members) {
		return false
	}
	for i := range a.Members {
		x, y := a.Members[i], b.Members[i]
		if !slices.EqualFunc(x.Targets, y.Targets, sameTarget) {
			return false
		}
		x.Targets, y.Targets = nil, nil
		if !reflect.DeepEqual(&x, &y) {
			return false
		}
	}
	x, y := *a, *b
	x.Members, y.Members = nil, nil
	return reflect.DeepEqual(&x, &y)
}

// sameTarget compares all fields of a target.
func sameTarget(a, b v1alpha1.MemberTarget) bool {
	return a.Name == b.Name && a.ID == b.ID && a.Directory == b.Directory && a.Path == b.Path && a.UUID == b.UUID &&
		a.Remove == b.Remove && a.Granted == b.Granted && a.Expected == b.Expected && a.Turn == b.Turn && maps.Equal(a.Variables, b.Variables) &&
		a.Initialized.Equal(b.Initialized) && a.Drained.Equal(b.Drained) && a.TakenOut.Equal(b.TakenOut) &&
		a.Replaces == b.Replaces && maps.Equal(a.Files, b.Files) && a.FullResync.Equal(b.FullResync)
}
