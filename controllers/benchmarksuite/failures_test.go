package benchmarksuite

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAFailedPassIsInTheStatusOfTheSuite(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	suite := &v1alpha1.BenchmarkSuite{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "matrix", Finalizers: []string{v1alpha1.Finalizer}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(suite).WithStatusSubresource(suite).WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("the API server is away")
		},
	}).Build()
	recorder := events.NewFakeRecorder(4)
	r := &Reconciler{Client: c, Reader: c, Recorder: recorder, Clock: clock.RealClock{}}
	for range 2 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(suite)})
		g.Expect(err).To(HaveOccurred())
	}
	now := &v1alpha1.BenchmarkSuite{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(suite), now)).To(Succeed())
	g.Expect(meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReconciled)).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonPassFailed), HaveField("Message", "read the state: list FileSystems: the API server is away"))))
	g.Expect(recorder.Events).To(Receive(Equal("Warning PassFailed read the state: list FileSystems: the API server is away")))
	g.Expect(recorder.Events).NotTo(Receive(), "it was told")
}
