package filesystem

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/disruption"
)

// changes counts the events of objects of some kinds. The zero value counts nothing.
type changes struct {
	count   atomic.Int64
	watched atomic.Bool
}

// now returns the number of events so far. noted is true if each event is counted before it triggers a pass.
func (c *changes) now() (count int64, noted bool) { return c.count.Load(), c.watched.Load() }

// watch returns a handler that counts each event before another handler triggers a pass for it.
func (c *changes) watch(then handler.EventHandler) handler.EventHandler {
	c.watched.Store(true)
	return &counting{changes: c, then: then}
}

// watchNews is watch for a kind whose objects this operator changes as well. An update without news is not counted, and triggers no pass.
func (c *changes) watchNews(then handler.EventHandler, news func(event.UpdateEvent) bool) handler.EventHandler {
	c.watched.Store(true)
	return &counting{changes: c, then: then, news: news}
}

type (
	queue    = workqueue.TypedRateLimitingInterface[reconcile.Request]
	counting struct {
		changes *changes
		then    handler.EventHandler
		// news reports whether an update matters; nil counts all.
		news func(event.UpdateEvent) bool
	}
)

// Create implements handler.EventHandler.
func (c *counting) Create(ctx context.Context, e event.CreateEvent, q queue) {
	c.changes.count.Add(1)
	c.then.Create(ctx, e, q)
}

// Update implements handler.EventHandler.
func (c *counting) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if c.news != nil && !c.news(e) {
		return
	}
	c.changes.count.Add(1)
	c.then.Update(ctx, e, q)
}

// Delete implements handler.EventHandler.
func (c *counting) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	c.changes.count.Add(1)
	c.then.Delete(ctx, e, q)
}

// Generic implements handler.EventHandler.
func (c *counting) Generic(ctx context.Context, e event.GenericEvent, q queue) {
	c.changes.count.Add(1)
	c.then.Generic(ctx, e, q)
}

// newsOfTarget returns false if an update of a target changes only the used space that the filesystem reports. A pass wrote it, once for
// each twentieth of a disk, and no pass reads it. The cached targets stay valid except for the versions of these objects (conflict).
func newsOfTarget(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*v1alpha1.StorageTarget)
	after, ok2 := e.ObjectNew.(*v1alpha1.StorageTarget)
	if !ok || !ok2 || before.Status.Service == nil || after.Status.Service == nil || *before.Status.Service == *after.Status.Service {
		return true
	}
	was, is, service := *before, *after, *before.Status.Service
	service.UsedBytes = after.Status.Service.UsedBytes
	was.Status.Service, was.ResourceVersion, was.ManagedFields = &service, is.ResourceVersion, is.ManagedFields
	return !equality.Semantic.DeepEqual(&was, &is)
}

// conflict returns the error of a write that named the version of a StorageTarget. If the API server has another version, the next pass
// reads all targets again.
func (c *changes) conflict(err error) error {
	if apierrors.IsConflict(err) {
		c.count.Add(1)
	}
	return err
}

// known caches a value that a pass has made from objects that it has read. While none of them changes, which is most of the time, the next
// pass uses the same value. To list and sort 24,000 targets and 10,000 pods and nodes would take half of a pass, and make half of its
// garbage. The value is read-only.
type known[T any] struct {
	mutex sync.Mutex
	value T
	there bool
	// at is the number of events before the value was made.
	at int64
}

// get returns the cached value, or calls read if something has changed since.
func (k *known[T]) get(c *changes, read func() (T, error)) (T, error) {
	now, noted := c.now()
	k.mutex.Lock()
	value, same := k.value, k.there && noted && k.at == now
	k.mutex.Unlock()
	if same {
		return value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	k.mutex.Lock()
	defer k.mutex.Unlock()
	k.value, k.there, k.at = value, noted, now
	return value, nil
}

// memory is what passes over one FileSystem keep for the next pass. No two of them run at the same time.
type memory struct {
	uid types.UID
	// targets holds the targets from the list all.
	all     []v1alpha1.StorageTarget
	targets ownTargets
	daemons known[ownDaemons]
	// controllers holds the controllers of the FileSystem's pods, which the pods may outlive.
	controllers owned.Past
	guards      known[guards]
	// found is what the last Input has indexed of its lists.
	found backend.Input
	// leaseFree is when the lease was last observed to be free; zero if the FileSystem may hold it.
	leaseFree time.Time
	// planned holds when the operator restarted each server, by name. unsure is since when it is unknown whether the filesystem serves. Both
	// use the clock of State.Asked. A manager that has just started has neither.
	planned map[string]time.Time
	unsure  time.Time
	// round is the latest maintenances, which decide when a node may be away again.
	round disruption.Round
}

// remembered returns the memory of a FileSystem. One that was created again under its name has another memory.
func (r *Reconciler) remembered(name types.NamespacedName, uid types.UID) *memory {
	r.remembering.Lock()
	defer r.remembering.Unlock()
	m := r.memories[name]
	if m == nil || m.uid != uid {
		if r.memories == nil {
			r.memories = map[types.NamespacedName]*memory{}
		}
		m = &memory{uid: uid}
		r.memories[name] = m
	}
	return m
}

// forgetAll drops everything that passes over a FileSystem have kept, after it is gone.
func (r *Reconciler) forgetAll(name types.NamespacedName) {
	r.remembering.Lock()
	defer r.remembering.Unlock()
	delete(r.memories, name)
}
