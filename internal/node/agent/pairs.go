package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/durable"
	"parallelfs.dev/operator/internal/node/mountlock"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// FieldOwnerHolder is the agents' name in managedFields for status.holder. Both agents of a pair write this field; a pass over the target
// does not.
const FieldOwnerHolder = "parallelfs-agent-holder"

// longestWhy is the limit of TargetHolder.message, in bytes.
const longestWhy = 1024

// lookAgain is the interval between reads of a target that the second node of its pair holds, because that node's agent does not have it in
// its cache.
const lookAgain = 30 * time.Second

// giveAgain is the time after which a failed handover or takeover of a target is retried.
const giveAgain = 3 * time.Second

// hasPairs is true if two nodes may serve one of the targets. The answer never changes.
func (s served) hasPairs() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s)), plan.IsOfPair)
}

// readPairs reads the targets of pairs directly from the API server again, because their holder must be current.
func (r *NodeFiles) readPairs(ctx context.Context, of served) error {
	for name, t := range of {
		if !plan.IsOfPair(t) {
			continue
		}
		live := &v1alpha1.StorageTarget{}
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(t), live); err != nil {
			return fmt.Errorf("read StorageTarget %s: %w", name, err)
		}
		of[name] = live
	}
	return nil
}

// lock takes the lock of a node file's directory. An agent holds it from before it reads the objects until the file is written.
func (r *NodeFiles) lock(n *v1alpha1.FileSystemNode) (*os.File, error) {
	directory, err := r.directory(n)
	if err != nil {
		return nil, err
	}
	if err := r.Writer.Directory(directory, durable.Ownership{Mode: 0o755}); err != nil {
		return nil, err
	}
	lock, err := mountlock.Take(directory)
	if err != nil {
		return nil, fmt.Errorf("another agent may be at work on this node: %w", err)
	}
	return lock, nil
}

// rewrite writes the file of a FileSystemNode from the object's current state at the API server.
func (r *NodeFiles) rewrite(ctx context.Context, n *v1alpha1.FileSystemNode) error {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := &v1alpha1.FileSystemNode{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(n), now); err != nil {
		return fmt.Errorf("read FileSystemNode %s: %w", n.Name, err)
	}
	_, _, err := r.update(ctx, now)
	return err
}

// Pairs hands targets of pairs over from this node to the other one, and takes up those that were handed over to this node. Each write is
// valid only for exactly the object that was read, and only the holder's agent hands a target over (docs/adr/0096).
type Pairs struct {
	// Client writes, and Live reads directly from the API server.
	Client   client.Client
	Live     client.Reader
	NodeName string
	Resync   time.Duration
	Files    *NodeFiles
	// ProveUnmounted ensures that no process on this node has a target mounted, as long as held is open. TakeUp checks a target that was
	// handed over to this node (provision.Provisioner). why names what is in the way.
	ProveUnmounted func(ctx context.Context, t *v1alpha1.StorageTarget) (held io.Closer, why string, err error)
	TakeUp         func(ctx context.Context, t *v1alpha1.StorageTarget) (why string, err error)
	Now            func() time.Time
	// devices holds the devices that the agent is working on.
	devices *inUse
}

func (r *Pairs) setup(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("pairs").
		For(&v1alpha1.FileSystemNode{},
			builder.WithPredicates(predicate.GenerationChangedPredicate{}, predicate.NewPredicateFuncs(r.Files.here))).
		WithOptions(controller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Complete(r)
}

// Reconcile takes one step for each target of a pair in a FileSystemNode.
func (r *Pairs) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	n := &v1alpha1.FileSystemNode{}
	if err := r.Live.Get(ctx, request.NamespacedName, n); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !r.Files.here(n) {
		return ctrl.Result{}, nil
	}
	of, err := r.Files.servedOf(ctx, n)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !of.hasPairs() {
		return ctrl.Result{}, nil
	}
	again := r.Resync
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if !plan.IsOfPair(of[name]) {
			continue
		}
		if plan.IsAway(of[name]) {
			again = min(again, lookAgain)
		}
		goesOn, err := r.step(ctx, n, name)
		if goesOn {
			again = min(again, giveAgain)
		}
		errs = append(errs, err)
	}
	return ctrl.Result{RequeueAfter: again}, errors.Join(errs...)
}

// step takes one step for a target. goesOn is true if another step follows.
func (r *Pairs) step(ctx context.Context, n *v1alpha1.FileSystemNode, name string) (goesOn bool, err error) {
	t := &v1alpha1.StorageTarget{}
	if err := r.Live.Get(ctx, client.ObjectKey{Namespace: n.Namespace, Name: name}, t); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	gives, takes := plan.IsToBeGiven(t, r.NodeName), plan.IsToBeTakenUp(t, r.NodeName)
	if !gives && !takes {
		return false, nil
	}
	release, free := r.devices.take(ids(t))
	if !free {
		return true, nil
	}
	defer release()
	var why string
	if gives {
		why, err = r.give(ctx, n, t)
	} else {
		why, err = r.takeUp(ctx, n, t)
	}
	if why != "" && err == nil {
		holder := plan.HolderOf(t)
		holder.Message = v1alpha1.Cut(why, longestWhy)
		err = r.write(ctx, t, holder)
	}
	if apierrors.IsConflict(err) {
		return true, nil // it is read again
	}
	return true, err
}

// give hands a target over to the other node. why names what keeps it on this node.
func (r *Pairs) give(ctx context.Context, n *v1alpha1.FileSystemNode, t *v1alpha1.StorageTarget) (why string, err error) {
	// The server's configuration no longer contains the target, so the server unmounts it. An agent that adds the target again has read the
	// object after a later change, and then the write below fails.
	if err := r.Files.rewrite(ctx, n); err != nil {
		return "", err
	}
	directory, err := r.Files.directory(n)
	if err != nil {
		return "", err
	}
	path := spec.MountLock(filepath.Join(directory, spec.NodeFileName), t.Name)
	if err := mountlock.Make(path); err != nil {
		return "", err
	}
	// A server that read the file before holds this lock until its mount has ended.
	lock, err := mountlock.Take(path)
	if err != nil {
		return err.Error(), nil
	}
	defer lock.Close()
	held, why, err := r.ProveUnmounted(ctx, t)
	if held == nil {
		return why, err
	}
	defer held.Close()
	before := plan.HolderOf(t)
	to := v1alpha1.TargetHolder{Node: plan.WantedOn(t), Number: before.Number + 1}
	if err := r.write(ctx, t, to); err != nil {
		return "", err
	}
	log.FromContext(ctx).Info("Handed a target over to the other node of its pair", "target", t.Name, "node", to.Node, "number", to.Number)
	return "", nil
}

// takeUp takes up a target that was handed over to this node, and adds it to its server's configuration.
func (r *Pairs) takeUp(ctx context.Context, n *v1alpha1.FileSystemNode, t *v1alpha1.StorageTarget) (why string, err error) {
	if why, err := r.TakeUp(ctx, t); why != "" || err != nil {
		return why, err
	}
	holder := plan.HolderOf(t)
	holder.TakenUp, holder.Message = new(metav1.NewTime(r.Now().UTC().Truncate(time.Second))), ""
	if err := r.write(ctx, t, holder); err != nil {
		return "", err
	}
	log.FromContext(ctx).Info("Took up a target that the other node of its pair has handed over", "target", t.Name, "number", holder.Number)
	return "", r.Files.rewrite(ctx, n)
}

// write writes the holder of a target if it differs. The write is valid only for exactly the object that was read.
func (r *Pairs) write(ctx context.Context, t *v1alpha1.StorageTarget, holder v1alpha1.TargetHolder) error {
	if t.Status.Holder != nil && holder.Node == t.Status.Holder.Node && holder.Number == t.Status.Holder.Number &&
		holder.TakenUp.Equal(t.Status.Holder.TakenUp) && holder.TakenOver == t.Status.Holder.TakenOver &&
		holder.Message == t.Status.Holder.Message {
		return nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&holder)
	if err != nil {
		return fmt.Errorf("encode the holder of %s: %w", t.Name, err)
	}
	intent := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": t.Name, "namespace": t.Namespace, "uid": string(t.UID), "resourceVersion": t.ResourceVersion},
		"status":   map[string]any{"holder": content},
	}}
	intent.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("StorageTarget"))
	apply := client.ApplyConfigurationFromUnstructured(intent)
	err = r.Client.Status().Apply(ctx, apply, client.ForceOwnership, client.FieldOwner(FieldOwnerHolder))
	if err != nil {
		return fmt.Errorf("write the holder of %s: %w", t.Name, err)
	}
	return nil
}
