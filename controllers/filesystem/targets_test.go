package filesystem

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestEachItemIsPutWhereItBelongs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		from := random.Perm(random.IntN(10))
		items, want := make([]int, len(from)), make([]int, len(from))
		for i := range items {
			items[i] = i
		}
		copy(want, from)
		arrange(items, from)
		NewWithT(t).Expect(items).To(Equal(want))
	}
}

func TestTheTargetsOfEachFileSystemLieSideBySideAndAreNotCopied(t *testing.T) {
	g := NewWithT(t)
	var names []string
	for _, fs := range []string{"u1", "u2", "u3"} {
		for _, node := range []string{"n1", "n2"} {
			for _, disk := range []string{"a", "b"} {
				names = append(names, fs+"/"+node+"/"+disk)
			}
		}
	}
	list := &ofFileSystems{names: slices.Clone(names)}
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(list.names), func(i, j int) { list.names[i], list.names[j] = list.names[j], list.names[i] })
	all, err := (&Reconciler{Client: list}).targets(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	read := func(targets []v1alpha1.StorageTarget) (out []string) {
		for i := range targets {
			out = append(out, targets[i].Spec.FileSystem.UID+"/"+targets[i].Spec.Node+"/"+targets[i].Name)
		}
		return out
	}
	for n, uid := range []string{"u1", "u2", "u3"} {
		own, others := all.split(&v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", UID: types.UID(uid)}})
		g.Expect(read(own)).To(Equal(names[4*n : 4*n+4]))
		g.Expect(&own[0]).To(BeIdenticalTo(&all.items[4*n]))
		g.Expect(read(slices.Concat(others...))).To(Equal(slices.Concat(names[:4*n], names[4*n+4:])))
	}
	own, others := all.split(&v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", UID: "u1"}})
	g.Expect(own).To(BeEmpty())
	g.Expect(read(slices.Concat(others...))).To(Equal(names))
}

// ofFileSystems returns a cache with StorageTargets of several FileSystems, each named uid/node/name.
type ofFileSystems struct {
	client.Client
	names []string
}

func (l *ofFileSystems) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, _ := into.(*v1alpha1.StorageTargetList)
	for _, name := range l.names {
		parts := strings.Split(name, "/")
		t := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: parts[2]}}
		t.Spec.FileSystem.UID, t.Spec.Node = parts[0], parts[1]
		list.Items = append(list.Items, t)
	}
	return nil
}
