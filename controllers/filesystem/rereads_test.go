package filesystem

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// reads is an API server that counts how often something is read from it.
type reads struct {
	client.Client
	count   int
	message string
}

func (r *reads) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.count++
	if secret, ok := into.(*corev1.Secret); ok {
		secret.Data = map[string][]byte{"key": []byte(r.message)}
	}
	return nil
}

func (r *reads) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	r.message = "applied"
	return nil
}

var errReadOnly = errors.New("nothing is written here")

func (*reads) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errReadOnly
}

func (r *reads) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	r.message = "deleted"
	return nil
}

func TestASecretIsReadAgainWhenItsTimeIsOverOrSomethingWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, server := NewWithT(t), &reads{message: "first"}
		reader := &secretReader{Client: server, keep: time.Minute}
		read := func() string {
			secret := &corev1.Secret{}
			g.Expect(reader.Get(t.Context(), client.ObjectKey{Name: "probe"}, secret)).To(Succeed())
			defer func() { secret.Data["key"][0] = 'x' }() // the caller may change the object that it read
			return string(secret.Data["key"])
		}
		g.Expect(read()).To(Equal("first"))
		server.message = "somebody else's"
		g.Expect(read()).To(Equal("first"))
		g.Expect(server.count).To(Equal(1))
		time.Sleep(time.Minute) //nolint:forbidigo // it is the time of a synctest
		g.Expect(read()).To(Equal("somebody else's"))
		g.Expect(reader.Apply(t.Context(), nil)).To(Succeed())
		g.Expect(read()).To(Equal("applied"))
		g.Expect(reader.Delete(t.Context(), &corev1.Secret{})).To(Succeed())
		g.Expect(read()).To(Equal("deleted"))
	})
}

func TestAReleasedLeaseIsReadAgainAfterAWhileAndOnceItWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, server := NewWithT(t), &reads{}
		h := &hold{fs: &v1alpha1.FileSystem{}, reconciler: &Reconciler{Client: server, Reader: server, Reread: time.Minute, Clock: clock.RealClock{}}}
		h.fs.Status.Metadata = &v1alpha1.MetadataRecord{Initialized: &metav1.Time{}}
		settle := func() int {
			server.count = 0
			h.needed = false
			g.Expect(h.settle(t.Context(), backend.Input{}, backend.Observation{})).To(Succeed())
			return server.count
		}
		g.Expect(settle()).To(Equal(1))
		g.Expect(settle()).To(BeZero())
		time.Sleep(time.Minute) //nolint:forbidigo // it is the time of a synctest
		g.Expect(settle()).To(Equal(1))
		g.Expect(h.take(t.Context())).To(MatchError(errReadOnly))
		g.Expect(settle()).To(Equal(1))
	})
}

func TestOtherObjectsAreReadWhenTheyAreAskedFor(t *testing.T) {
	g, server := NewWithT(t), &reads{}
	reader := &secretReader{Client: server, keep: time.Minute}
	for range 2 {
		g.Expect(reader.Get(t.Context(), client.ObjectKey{}, &corev1.ConfigMap{})).To(Succeed())
	}
	g.Expect(server.count).To(Equal(2))
}
