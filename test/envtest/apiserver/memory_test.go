//go:build envtest

package apiserver

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// counted returns a client with a memory, and the number of reads that reach the server behind it.
func counted() (c client.Client, reads *int) {
	reads = new(int)
	direct := fake.NewClientBuilder().Build()
	behind := interceptor.NewClient(direct, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			*reads++
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			*reads++
			return c.List(ctx, l, opts...)
		},
	})
	return newMemory().over(behind), reads
}

func TestAnAnswerIsKeptUntilAnObjectOfItsKindIsWritten(t *testing.T) {
	g := NewWithT(t)
	c, reads := counted()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "m"}}
	value := func() string {
		t.Helper()
		var got corev1.ConfigMap
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(m), &got)).To(Succeed())
		var list corev1.ConfigMapList
		g.Expect(c.List(t.Context(), &list, client.InNamespace("one"))).To(Succeed())
		g.Expect(list.Items).To(HaveLen(1))
		g.Expect(list.Items[0].Data["k"]).To(Equal(got.Data["k"]))
		got.Data = map[string]string{"k": "changed by the reader"} // the memory holds a copy
		return list.Items[0].Data["k"]
	}
	missing := func() error { return c.Get(t.Context(), client.ObjectKeyFromObject(m), &corev1.ConfigMap{}) }
	g.Expect(missing()).To(Satisfy(apierrors.IsNotFound))
	g.Expect(missing()).To(Satisfy(apierrors.IsNotFound))
	g.Expect(*reads).To(Equal(1))

	g.Expect(c.Create(t.Context(), m)).To(Succeed())
	for _, write := range []struct {
		value string
		do    func() error
	}{
		{"", func() error { return nil }},
		{"updated", func() error { m.Data = map[string]string{"k": "updated"}; return c.Update(t.Context(), m) }},
		{"patched", func() error {
			was := m.DeepCopy()
			m.Data = map[string]string{"k": "patched"}
			return c.Patch(t.Context(), m, client.MergeFrom(was))
		}},
	} {
		g.Expect(write.do()).To(Succeed())
		*reads = 0
		for range 3 {
			g.Expect(value()).To(Equal(write.value))
		}
		g.Expect(*reads).To(Equal(2), "one Get and one List reach the server after %q", write.value)
	}
	g.Expect(c.DeleteAllOf(t.Context(), &corev1.ConfigMap{}, client.InNamespace("one"))).To(Succeed())
	g.Expect(missing()).To(Satisfy(apierrors.IsNotFound))
}

func TestAWriteElsewhereLeavesAnAnswerInTheMemory(t *testing.T) {
	g := NewWithT(t)
	c, reads := counted()
	all := func(opts ...client.ListOption) int {
		t.Helper()
		var list corev1.ConfigMapList
		g.Expect(c.List(t.Context(), &list, opts...)).To(Succeed())
		return len(list.Items)
	}
	g.Expect(all(client.InNamespace("one"))).To(BeZero())
	g.Expect(all()).To(BeZero())
	g.Expect(c.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "two", Name: "m"}})).To(Succeed())
	g.Expect(c.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "one", Name: "s"}})).To(Succeed())
	*reads = 0
	g.Expect(all(client.InNamespace("one"))).To(BeZero())
	g.Expect(*reads).To(BeZero())
	g.Expect(all()).To(Equal(1), "a list of the whole cluster has what was written in any namespace")
}
