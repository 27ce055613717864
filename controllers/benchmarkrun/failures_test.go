package benchmarkrun

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAFailedPassIsInTheStatusOfTheRunUntilOneSucceeds(t *testing.T) {
	g := NewWithT(t)
	r, run := many(t, 1)
	fails := true
	direct, is := r.Client.(client.WithWatch)
	g.Expect(is).To(BeTrue())
	r.Client = interceptor.NewClient(direct, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.NodeList); is && fails {
				return errors.New("the API server is away")
			}
			return c.List(ctx, list, options...)
		},
	})
	recorder := events.NewFakeRecorder(16)
	r.Recorder = recorder
	reconciled := func() *metav1.Condition {
		_, _ = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(run)})
		now := &v1alpha1.BenchmarkRun{}
		g.Expect(direct.Get(t.Context(), client.ObjectKeyFromObject(run), now)).To(Succeed())
		return meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReconciled)
	}
	g.Expect(reconciled()).To(HaveValue(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonPassFailed),
		HaveField("Message", "read the state: list nodes: the API server is away"))))
	g.Expect(recorder.Events).To(Receive(HavePrefix("Warning PassFailed read the state")))
	reconciled()
	g.Expect(recorder.Events).NotTo(Receive(HavePrefix("Warning PassFailed")), "it was told")
	fails = false
	g.Expect(reconciled()).To(BeNil())
}
