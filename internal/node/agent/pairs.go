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

// FieldOwnerHolder is the agents' name in managedFields for status.holder: both agents of a pair write it, and a pass over the target does
// not.
const FieldOwnerHolder = "parallelfs-agent-holder"

// longestWhy is the limit of TargetHolder.message, in bytes.
const longestWhy = 1024

// lookAgain is the time between two looks at a target that the second one of its nodes holds, which no cache of its agent has.
const lookAgain = 30 * time.Second

// giveAgain is the time after which it is tried again to give a target away, or to take it up.
const giveAgain = 3 * time.Second

// hasPairs is true when two nodes may serve one of the targets. That can't change.
func (s served) hasPairs() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(s)), plan.IsOfPair)
}

// readPairs reads the targets of two nodes anew, from the API server itself: who holds one must not be of a moment ago.
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

// lock takes the lock of the directory of a file, which an agent has from before it reads what to write until it has written it.
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

// rewrite has the file of a FileSystemNode say what the API server says now.
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

// Pairs gives targets that two nodes may serve from this node to the other one, and takes up those that were given to this one. Each step
// holds for exactly the object that was read, and the agent of the holder alone takes one (docs/adr/0096).
type Pairs struct {
	// Client writes, and Live reads from the API server itself.
	Client   client.Client
	Live     client.Reader
	NodeName string
	Resync   time.Duration
	Files    *NodeFiles
	// LetGo sees that nobody on this node has a target mounted, and keeps that so while held is open; TakeUp sees that of a target that was
	// given to this node (provision.Provisioner). Why says what is not so.
	LetGo  func(ctx context.Context, t *v1alpha1.StorageTarget) (held io.Closer, why string, err error)
	TakeUp func(ctx context.Context, t *v1alpha1.StorageTarget) (why string, err error)
	Now    func() time.Time
	// Devices are those that the agent works on.
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

// Reconcile takes one step with each target of two nodes that a FileSystemNode names.
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

// step takes one step with a target. It goes on when another one follows.
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
		return true, nil // it is read anew
	}
	return true, err
}

// give gives a target to the other node. Why says what keeps it here.
func (r *Pairs) give(ctx context.Context, n *v1alpha1.FileSystemNode, t *v1alpha1.StorageTarget) (why string, err error) {
	// The server is told nothing of it any more, and unmounts it. Whoever tells it that again has read the object after a later change, with
	// which the write below fails.
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
	// A server that has read the file before has this lock until its mount has ended.
	lock, err := mountlock.Take(path)
	if err != nil {
		return err.Error(), nil
	}
	defer lock.Close()
	held, why, err := r.LetGo(ctx, t)
	if held == nil {
		return why, err
	}
	defer held.Close()
	before := plan.HolderOf(t)
	to := v1alpha1.TargetHolder{Node: plan.WantedOn(t), Number: before.Number + 1}
	if err := r.write(ctx, t, to); err != nil {
		return "", err
	}
	log.FromContext(ctx).Info("Gave a target to the other node of its pair", "target", t.Name, "node", to.Node, "number", to.Number)
	return "", nil
}

// takeUp takes up a target that was given to this node, and tells its server.
func (r *Pairs) takeUp(ctx context.Context, n *v1alpha1.FileSystemNode, t *v1alpha1.StorageTarget) (why string, err error) {
	if why, err := r.TakeUp(ctx, t); why != "" || err != nil {
		return why, err
	}
	holder := plan.HolderOf(t)
	holder.TakenUp, holder.Message = new(metav1.NewTime(r.Now().UTC().Truncate(time.Second))), ""
	if err := r.write(ctx, t, holder); err != nil {
		return "", err
	}
	log.FromContext(ctx).Info("Took up a target that the other node of its pair has given away", "target", t.Name, "number", holder.Number)
	return "", r.Files.rewrite(ctx, n)
}

// write writes who holds a target, when that differs. It holds for exactly the object that was read.
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
		return fmt.Errorf("write who holds %s: %w", t.Name, err)
	}
	return nil
}
