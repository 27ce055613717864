package filesystemnode

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
)

func TestAPassThatFailsIsAnEventOfTheNode(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	node := &v1alpha1.FileSystemNode{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "storage", Name: "scratch-n1", UID: "1", DeletionTimestamp: new(metav1.Now()), Finalizers: []string{v1alpha1.Finalizer},
		},
		Spec: v1alpha1.FileSystemNodeSpec{FileSystem: v1alpha1.TargetOwner{Name: "scratch"}, Node: "n1", Members: []v1alpha1.NodeMember{{Name: "server"}}},
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if _, is := o.(*v1alpha1.FileSystem); is {
				return errors.New("no such kind")
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	recorder := events.NewFakeRecorder(2)
	r := &Reconciler{Client: c, Reader: c, Recorder: recorder, Views: &views.Board{}}
	for range 2 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(node)})
		g.Expect(err).To(MatchError(ContainSubstring("no such kind")))
	}
	g.Expect(recorder.Events).To(Receive(And(HavePrefix("Warning PassFailed "), HaveSuffix("no such kind"))))
	g.Expect(recorder.Events).NotTo(Receive(), "it was told")
}
