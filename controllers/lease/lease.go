// Package lease restricts a FileSystem to one disturbance or measurement at a time: a BenchmarkRun, or a change of the FileSystem itself.
// The holder is recorded in a Lease (coordination.k8s.io) in the FileSystem's namespace. The lease ends when it is released, or when its
// holder is deleted or has stopped. It never expires: an operator that was down for hours must not start a drain in the middle of a
// measured point.
package lease

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"parallelfs.dev/operator/api/v1alpha1"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;create;update

// The kinds of holders.
const (
	// KindBenchmarkRun is a holder that measures.
	KindBenchmarkRun = "BenchmarkRun"
	// KindFileSystem is a FileSystem that changes.
	KindFileSystem = "FileSystem"
)

// renewEvery is the age at which renewTime is written again. Nothing depends on it; it shows people that the holder is alive.
const renewEvery = time.Minute

// Holder identifies the holder of a FileSystem's lease: an object in the FileSystem's namespace.
type Holder struct {
	// Kind is KindBenchmarkRun or KindFileSystem.
	Kind string
	Name string
	UID  types.UID
}

// OfRun returns a BenchmarkRun as a holder.
func OfRun(run *v1alpha1.BenchmarkRun) Holder {
	return Holder{Kind: KindBenchmarkRun, Name: run.Name, UID: run.UID}
}

// OfFileSystem returns a FileSystem as the holder of its own lease.
func OfFileSystem(fs *v1alpha1.FileSystem) Holder {
	return Holder{Kind: KindFileSystem, Name: fs.Name, UID: fs.UID}
}

// String returns the format of a Lease's spec.holderIdentity: "Kind/name/uid".
func (h Holder) String() string { return h.Kind + "/" + h.Name + "/" + string(h.UID) }

// Parse parses the format of String.
func Parse(identity string) (Holder, error) {
	parts := strings.Split(identity, "/")
	if len(parts) != 3 || parts[1] == "" || parts[2] == "" || parts[0] != KindBenchmarkRun && parts[0] != KindFileSystem {
		return Holder{}, fmt.Errorf("%q is no holder of a lease: it is not %s/name/uid or %s/name/uid", identity, KindBenchmarkRun, KindFileSystem)
	}
	return Holder{Kind: parts[0], Name: parts[1], UID: types.UID(parts[2])}, nil
}

// Name is the name of the Lease of a FileSystem, in its namespace.
func Name(fileSystem string) string { return "pfs-" + fileSystem }

// Subject is the object of a lease: a FileSystem or a PersistentVolumeClaim.
type Subject struct {
	// Key is the key of the Lease.
	Key    client.ObjectKey
	labels map[string]string
	// owner is the object with which the Lease is deleted.
	owner metav1.OwnerReference
}

// Of returns a FileSystem as a subject.
func Of(fs *v1alpha1.FileSystem) Subject {
	return Subject{
		Key:    client.ObjectKey{Namespace: fs.Namespace, Name: Name(fs.Name)},
		labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelFileSystem: fs.Name},
		owner:  metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: KindFileSystem, Name: fs.Name, UID: fs.UID},
	}
}

// OfClaim returns a PersistentVolumeClaim as a subject, by its uid. No FileSystem has a Lease of that name.
func OfClaim(claim *corev1.PersistentVolumeClaim) Subject {
	return Subject{
		Key:    client.ObjectKey{Namespace: claim.Namespace, Name: "parallelfs-claim-" + string(claim.UID)},
		labels: map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy},
		owner:  metav1.OwnerReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: claim.Name, UID: claim.UID},
	}
}

// Stopped is true for a BenchmarkRun that no longer measures, or not now: it has ended, or it is suspended and reports that it has stopped.
// A run that is being deleted has stopped when the operator's finalizer is removed, which ends its jobs first; a foreign finalizer does not
// count.
func Stopped(run *v1alpha1.BenchmarkRun) bool {
	if run.Status.CompletionTime != nil || !run.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(run, v1alpha1.Finalizer) {
		return true
	}
	succeeded := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	return run.Spec.Suspend && succeeded != nil && succeeded.Reason == v1alpha1.ReasonSuspended
}

// Acquire takes the lease of a subject, or keeps it. An empty answer means that the holder has it now; else it is the present holder, such
// as "BenchmarkRun creates". The reader must read from the API server, past every cache. A conflict is an error of the API's kind: another
// holder was quicker, and the caller tries again.
func Acquire(
	ctx context.Context, c client.Client, reader client.Reader, of Subject, holder Holder, now time.Time,
) (by string, err error) {
	key := of.Key
	found := &coordinationv1.Lease{}
	if err := reader.Get(ctx, key, found); apierrors.IsNotFound(err) {
		found.Namespace, found.Name = key.Namespace, key.Name
		found.Labels = of.labels
		write(found, of, holder, now)
		if err := c.Create(ctx, found); err != nil {
			return "", fmt.Errorf("make the Lease %s: %w", key, err)
		}
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("read the Lease %s: %w", key, err)
	}
	identity := ""
	if found.Spec.HolderIdentity != nil {
		identity = *found.Spec.HolderIdentity
	}
	if identity == holder.String() && found.Spec.RenewTime != nil && now.Sub(found.Spec.RenewTime.Time) < renewEvery && ownedBy(found, of) {
		return "", nil
	}
	if identity != "" && identity != holder.String() {
		other, err := Parse(identity)
		if err != nil {
			return "", fmt.Errorf("the Lease %s has another holder: %w; if nothing measures or changes the FileSystem, delete it: "+
				"kubectl delete lease -n %s %s", key, err, key.Namespace, key.Name)
		}
		held, err := holds(ctx, reader, key.Namespace, other)
		if err != nil {
			return "", err
		}
		if held {
			return other.Kind + " " + other.Name, nil
		}
	}
	write(found, of, holder, now)
	// The write requires the version that was read: if another holder takes it meanwhile, it fails with a conflict.
	if err := c.Update(ctx, found); err != nil {
		return "", fmt.Errorf("take the Lease %s: %w", key, err)
	}
	return "", nil
}

// Release deletes the Lease of that key when the holder has it, and does nothing else. The reader is that of Acquire.
func Release(ctx context.Context, c client.Client, reader client.Reader, key types.NamespacedName, holder Holder) error {
	found := &coordinationv1.Lease{}
	if err := reader.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("read the Lease %s: %w", key, err)
	}
	if found.Spec.HolderIdentity == nil || *found.Spec.HolderIdentity != holder.String() {
		return nil
	}
	found.Spec.HolderIdentity = nil
	if err := c.Update(ctx, found); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release the Lease %s: %w", key, err)
	}
	return nil
}

// holds is true while the holder exists, is the same object, and has not stopped. A FileSystem releases the lease itself when its change is
// over, also after a restart of the operator.
func holds(ctx context.Context, reader client.Reader, namespace string, h Holder) (bool, error) {
	key := client.ObjectKey{Namespace: namespace, Name: h.Name}
	if h.Kind == KindFileSystem {
		fs := &v1alpha1.FileSystem{}
		if err := reader.Get(ctx, key, fs); err != nil {
			return false, ignoreNotFound(err, h)
		}
		return fs.UID == h.UID, nil
	}
	run := &v1alpha1.BenchmarkRun{}
	if err := reader.Get(ctx, key, run); err != nil {
		return false, ignoreNotFound(err, h)
	}
	return run.UID == h.UID && !Stopped(run), nil
}

func ignoreNotFound(err error, h Holder) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("read the %s %s that holds the lease: %w", h.Kind, h.Name, err)
}

func ownedBy(l *coordinationv1.Lease, of Subject) bool {
	return equality.Semantic.DeepEqual(l.OwnerReferences, []metav1.OwnerReference{of.owner})
}

func write(l *coordinationv1.Lease, of Subject, holder Holder, now time.Time) {
	identity, at := holder.String(), metav1.NewMicroTime(now.UTC())
	if l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity != identity {
		l.Spec.AcquireTime = &at
		transitions := int32(0)
		if l.Spec.LeaseTransitions != nil {
			transitions = *l.Spec.LeaseTransitions + 1
		}
		l.Spec.LeaseTransitions = &transitions
	}
	l.Spec.HolderIdentity, l.Spec.RenewTime = &identity, &at
	l.OwnerReferences = []metav1.OwnerReference{of.owner}
}
