//go:build envtest

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// ErrKilled is the error of every request of a Killable after its last write.
var ErrKilled = errors.New("the operator was killed")

// Killable is a client that counts its writes and can be killed: after a number of writes it does nothing, like an operator that was killed
// at that moment.
type Killable struct {
	client.WithWatch

	mutex  sync.Mutex
	writes []string
	limit  int
}

// Killable returns a client that is killed after this number of writes; a negative number means never.
func (s *Server) Killable(t testing.TB, writes int) *Killable {
	t.Helper()
	direct, err := s.direct()
	if err != nil {
		t.Fatal(err)
	}
	k := &Killable{limit: writes}
	k.WithWatch = interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return k.read(func() error { return c.Get(ctx, key, o, opts...) })
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			return k.read(func() error { return c.List(ctx, l, opts...) })
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return k.write(fmt.Sprintf("create %T %s", o, o.GetName()), func() error { return c.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			return k.write(fmt.Sprintf("update %T %s", o, o.GetName()), func() error { return c.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return k.write(fmt.Sprintf("patch %T %s", o, o.GetName()), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			apply := func() error { return c.Apply(ctx, o, opts...) }
			if len((&client.ApplyOptions{}).ApplyOptions(opts).DryRun) > 0 {
				return k.read(apply) // it only reads
			}
			return k.write("apply", apply)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return k.write(fmt.Sprintf("delete %T %s", o, o.GetName()), func() error { return c.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteAllOfOption) error {
			return k.write(fmt.Sprintf("delete all %T", o), func() error { return c.DeleteAllOf(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			return k.write(fmt.Sprintf("update %T %s/%s", o, o.GetName(), sub), func() error {
				return c.SubResource(sub).Update(ctx, o, opts...)
			})
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch,
			opts ...client.SubResourcePatchOption) error {
			return k.write(fmt.Sprintf("patch %T %s/%s", o, o.GetName(), sub), func() error {
				return c.SubResource(sub).Patch(ctx, o, p, opts...)
			})
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration,
			opts ...client.SubResourceApplyOption) error {
			return k.write("apply "+sub, func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
	})
	return k
}

// Writes describes the writes so far.
func (k *Killable) Writes() []string {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	return append([]string{}, k.writes...)
}

func (k *Killable) dead() bool { return k.limit >= 0 && len(k.writes) >= k.limit }

func (k *Killable) read(do func() error) error {
	k.mutex.Lock()
	dead := k.dead()
	k.mutex.Unlock()
	if dead {
		return ErrKilled
	}
	return do()
}

func (k *Killable) write(what string, do func() error) error {
	k.mutex.Lock()
	if k.dead() {
		k.mutex.Unlock()
		return ErrKilled
	}
	k.writes = append(k.writes, what)
	k.mutex.Unlock()
	err := do()
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		// The API server has refused the write, which changes nothing: an operator killed at this point has done the same as one killed before
		// it.
		k.mutex.Lock()
		i := slices.Index(k.writes, what)
		k.writes = slices.Delete(k.writes, i, i+1)
		k.mutex.Unlock()
	}
	return err
}
