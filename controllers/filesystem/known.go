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
)

// changes counts what happens to the objects of some kinds. The zero value notes nothing.
type changes struct {
	count   atomic.Int64
	watched atomic.Bool
}

// now is how many changes there were, and noted is true when each is counted before a pass is asked for because of it.
func (c *changes) now() (count int64, noted bool) { return c.count.Load(), c.watched.Load() }

// watch returns a handler that counts each change before another one asks for a pass because of it.
func (c *changes) watch(then handler.EventHandler) handler.EventHandler {
	c.watched.Store(true)
	return &counting{changes: c, then: then}
}

// watchNews is watch for a kind whose objects this operator changes as well: a change that says nothing new is not counted, and wakes
// nobody.
func (c *changes) watchNews(then handler.EventHandler, news func(event.UpdateEvent) bool) handler.EventHandler {
	c.watched.Store(true)
	return &counting{changes: c, then: then, news: news}
}

type (
	queue    = workqueue.TypedRateLimitingInterface[reconcile.Request]
	counting struct {
		changes *changes
		then    handler.EventHandler
		// news is true for an update that matters; nil for all.
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

// newsOfTarget is false for a target of which only the space in use has changed, as the filesystem says: a pass has found that, and it is
// written whenever programs have filled another twentieth of a disk. No pass looks at it. What is known of targets stays as it is, but for
// the versions of these objects (conflict).
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

// conflict returns an error of a write that named the version of a StorageTarget. Where the API server has another version, the next pass
// reads all of them anew.
func (c *changes) conflict(err error) error {
	if apierrors.IsConflict(err) {
		c.count.Add(1)
	}
	return err
}

// known is what a pass has made of objects that it has read. While none of them changes, which is most of the time, the next pass takes the
// same: to list and to sort 24,000 targets and 10,000 pods and nodes would be half of a pass, and of its garbage. What is known is only to
// be read.
type known[T any] struct {
	mutex sync.Mutex
	value T
	there bool
	// at is how many changes there had been before the value was made.
	at int64
}

// get is what was made last, or what read makes anew when something has changed since.
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

// memory is what passes over one FileSystem keep for the next one. No two of them run at the same time.
type memory struct {
	uid types.UID
	// targets are those of the list all.
	all     []v1alpha1.StorageTarget
	targets ownTargets
	daemons known[ownDaemons]
	// controllers are those of the FileSystem's pods, which may outlive them.
	controllers owned.Past
	guards      known[guards]
	// found is what the last Input has found in its lists.
	found backend.Input
	// letGo is when the FileSystem was last seen not to have its lease; zero when it may have it.
	letGo time.Time
	// planned are the servers that the operator has restarted, by name, with when it did, and unsure since when it is not known whether the
	// filesystem serves; both by the clock of State.Asked. A manager that was just started has planned nothing.
	planned map[string]time.Time
	// turns are when nodes that were away for maintenance may be away again.
	turns  map[string]time.Time
	unsure time.Time
}

// remembered is the memory of a FileSystem. One that was made anew under its name has another.
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

// forgetAll forgets what passes over a FileSystem that is gone have kept.
func (r *Reconciler) forgetAll(name types.NamespacedName) {
	r.remembering.Lock()
	defer r.remembering.Unlock()
	delete(r.memories, name)
}
