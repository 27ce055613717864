package storagetarget

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/cached"
)

func TestANodeOrAFileSystemWakesItsTargetsWithoutALookAtTheOthers(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	looked, copied := 0, false
	builder := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			with := (&client.ListOptions{}).ApplyOptions(options)
			looked += meta.LenList(list)
			copied = copied || with.UnsafeDisableDeepCopy == nil || !*with.UnsafeDisableDeepCopy
			return nil
		},
	})
	for _, i := range cached.Indexes() {
		builder = builder.WithIndex(i.Object, i.Field, i.Values)
	}
	for _, namespace := range []string{"storage", "other"} {
		for _, of := range []string{"scratch", "home"} {
			for n := range 3 {
				builder = builder.WithObjects(&v1alpha1.StorageTarget{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("%s-%d", of, n)},
					Spec:       v1alpha1.StorageTargetSpec{FileSystem: v1alpha1.TargetOwner{Name: of}, Node: fmt.Sprintf("n%d", n)},
				})
			}
		}
	}
	r := &Reconciler{Client: builder.Build()}
	for name, c := range map[string]struct {
		of     handler.MapFunc
		object client.Object
		woken  []string
	}{
		"a node": {r.onNode, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}},
			[]string{"storage/scratch-1", "storage/home-1", "other/scratch-1", "other/home-1"}},
		"a FileSystem": {r.ofFileSystem, &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch"}},
			[]string{"storage/scratch-0", "storage/scratch-1", "storage/scratch-2"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			looked, copied = 0, false
			var woken []string
			for _, request := range c.of(t.Context(), c.object) {
				woken = append(woken, request.String())
			}
			g.Expect(woken).To(ConsistOf(c.woken))
			g.Expect(looked).To(Equal(len(c.woken)), "targets that were looked at")
			g.Expect(copied).To(BeFalse(), "targets were copied only to be named")
		})
	}
}
