package filesystem

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// secretReader caches the Secrets that passes read. Each is read from the API server separately, because a watch would need the right to
// read every Secret of the cluster. Each pass needs the same few Secrets. After a write of this client, the Secrets are read again. Changes
// by others become visible when the time is over.
type secretReader struct {
	client.Client
	// keep is how long a Secret is cached; 0 caches none.
	keep time.Duration

	mutex sync.Mutex
	read  map[client.ObjectKey]readSecret
}

type readSecret struct {
	secret *corev1.Secret
	when   time.Time
}

// Get implements client.Client.
func (r *secretReader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	secret, ok := into.(*corev1.Secret)
	if !ok || r.keep == 0 {
		return r.Client.Get(ctx, key, into, options...) //nolint:wrapcheck // it replaces the client
	}
	r.mutex.Lock()
	known, there := r.read[key]
	r.mutex.Unlock()
	now := time.Now()
	if there && now.Sub(known.when) < r.keep {
		known.secret.DeepCopyInto(secret)
		return nil
	}
	if err := r.Client.Get(ctx, key, secret, options...); err != nil {
		return err //nolint:wrapcheck // as above
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.read == nil {
		r.read = map[client.ObjectKey]readSecret{}
	}
	r.read[key] = readSecret{secret.DeepCopy(), now}
	return nil
}

// forget drops all Secrets.
func (r *secretReader) forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	clear(r.read)
}

// Apply implements client.Client.
func (r *secretReader) Apply(ctx context.Context, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
	defer r.forget()                               // for any object: without changes nothing is applied
	return r.Client.Apply(ctx, object, options...) //nolint:wrapcheck // it replaces the client
}

// Delete implements client.Client.
func (r *secretReader) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	defer r.forget()
	return r.Client.Delete(ctx, object, options...) //nolint:wrapcheck // it replaces the client
}
