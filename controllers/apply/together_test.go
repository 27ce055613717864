package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
)

// slow is a client whose writes take a second each, and which refuses the ConfigMaps with these names. began returns the start time of each
// write, relative to the first.
func slow(g Gomega, refused ...string) (c client.Client, began func() map[string]time.Duration) {
	var mutex sync.Mutex
	var first time.Time
	at := map[string]time.Duration{}
	c = interceptor.NewClient(fake.NewClientBuilder().WithScheme(kinds(g)).Build(), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			name := o.(interface{ GetName() string }).GetName()
			mutex.Lock()
			if first.IsZero() {
				first = time.Now()
			}
			at[name] = time.Since(first)
			mutex.Unlock()
			<-time.After(time.Second)
			if slices.Contains(refused, name) {
				return errors.New("it is refused")
			}
			return c.Apply(ctx, o, options...)
		},
	})
	return c, func() map[string]time.Duration { return at }
}

func TestChildrenWithoutAnOrderAreWrittenSixteenAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, began := slow(g)
		var wanted []client.Object
		for i := range 40 {
			wanted = append(wanted, configMap(fmt.Sprintf("m%02d", i), "a"))
		}
		a := &Applier{Client: c, Kinds: []client.ObjectList{&corev1.ConfigMapList{}}}
		labels := map[string]string{v1alpha1.LabelFileSystem: "scratch"}
		g.Expect(a.CompareAll(t.Context(), owner, labels, wanted).ApplyTogether(t.Context())).To(Equal(Result{Applied: 40}))
		g.Expect(says(t, c)).To(HaveLen(40))
		starts := map[time.Duration]int{}
		for _, at := range began() {
			starts[at]++
		}
		g.Expect(starts).To(Equal(map[time.Duration]int{0: 16, time.Second: 16, 2 * time.Second: 8}))

		now := a.CompareAll(t.Context(), owner, labels, wanted[:30])
		differences := now.Differences()
		now.Hold(differences[:4]...)
		g.Expect(now.ApplyTogether(t.Context())).To(Equal(Result{Deleted: 6}))
		g.Expect(says(t, c)).To(HaveLen(34))
	})
}

func TestOneChildThatIsRefusedHidesNoOther(t *testing.T) {
	for name, apply := range map[string]func(*Comparison, context.Context) (Result, error){
		"one after the other": (*Comparison).Apply, "several at a time": (*Comparison).ApplyTogether,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := NewWithT(t)
				c, _ := slow(g, "b", "d")
				a := &Applier{Client: c}
				wanted := []client.Object{configMap("a", "x"), configMap("b", "x"), configMap("c", "x"), configMap("d", "x")}
				result, err := apply(a.Compare(t.Context(), owner, nil, wanted), t.Context())
				g.Expect(result).To(Equal(Result{Applied: 2}))
				g.Expect(err).To(MatchError("apply ConfigMap storage/b: it is refused\napply ConfigMap storage/d: it is refused"))
				g.Expect(says(t, c)).To(And(HaveLen(2), HaveKey("a"), HaveKey("c")))
			})
		})
	}
}

func TestChildrenInAnOrderAreWrittenOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		c, began := slow(g)
		wanted := []client.Object{configMap("first", "x"), configMap("second", "x"), configMap("third", "x")}
		g.Expect((&Applier{Client: c}).Compare(t.Context(), owner, nil, wanted).Apply(t.Context())).To(Equal(Result{Applied: 3}))
		g.Expect(began()).To(Equal(map[string]time.Duration{"first": 0, "second": time.Second, "third": 2 * time.Second}))
	})
}
