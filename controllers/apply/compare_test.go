package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
)

func configMap(name, says string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"}, Data: map[string]string{"says": says}}
}

// says returns the contents of the ConfigMaps in the cluster by name.
func says(t *testing.T, c client.Client) map[string]string {
	t.Helper()
	var all corev1.ConfigMapList
	NewWithT(t).Expect(c.List(t.Context(), &all)).To(Succeed())
	out := map[string]string{}
	for _, m := range all.Items {
		out[m.Name] = m.Data["says"]
	}
	return out
}

func TestHeldObjectsAreNeitherWrittenNorRemoved(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(kinds(g)).Build()
	a := &Applier{Client: c, Kinds: []client.ObjectList{&corev1.ConfigMapList{}, &batchv1.JobList{}}}
	labels := map[string]string{v1alpha1.LabelFileSystem: "scratch"}
	all := func(objects ...client.Object) *Comparison { return a.CompareAll(t.Context(), owner, labels, objects) }
	g.Expect(all(configMap("kept", "a"), configMap("changes", "a"), configMap("goes", "a")).Apply(t.Context())).To(Equal(Result{Applied: 3}))

	wanted := []client.Object{configMap("kept", "b"), configMap("new", "b"), configMap("changes", "b")}
	now := all(wanted...)
	differences := now.Differences()
	var names []string
	for _, d := range differences {
		names = append(names, d.Name)
	}
	g.Expect(names).To(Equal([]string{"kept", "new", "changes", "goes"}))
	now.Hold(differences[0], differences[1], differences[3])
	g.Expect(now.Apply(t.Context())).To(Equal(Result{Applied: 1}))
	g.Expect(says(t, c)).To(Equal(map[string]string{"kept": "a", "changes": "b", "goes": "a"}))
	g.Expect(all(wanted...).Apply(t.Context())).To(Equal(Result{Applied: 2, Deleted: 1}))
	g.Expect(says(t, c)).To(Equal(map[string]string{"kept": "b", "new": "b", "changes": "b"}))
}

func TestAChildIsComparedAgainAfterEachChangeOfTheChildOrTheDesiredState(t *testing.T) {
	g := NewWithT(t)
	c := fake.NewClientBuilder().WithScheme(kinds(g)).Build()
	a := &Applier{Client: c}
	compare := func(of client.Object, says string) *Comparison {
		return a.Compare(t.Context(), of, nil, []client.Object{configMap("one", says)})
	}
	g.Expect(compare(owner, "a").Apply(t.Context())).To(Equal(Result{Applied: 1}))
	for range 3 {
		g.Expect(compare(owner, "a").Differences()).To(BeEmpty())
	}
	g.Expect(compare(owner, "b").Differences()).To(HaveLen(1), "something else is wanted")
	g.Expect(compare(owner, "a").Differences()).To(BeEmpty())
	another := owner.DeepCopy()
	another.UID = "2"
	_, err := compare(another, "a").Apply(t.Context())
	g.Expect(err).To(MatchError(ContainSubstring("exists and does not belong to scratch")), "it is of another owner")

	live := &corev1.ConfigMap{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "one"}, live)).To(Succeed())
	live.Data["says"] = "somebody else's"
	g.Expect(c.Update(t.Context(), live)).To(Succeed())
	g.Expect(compare(owner, "a").Differences()).To(HaveLen(1), "somebody has changed it")
	g.Expect(c.Delete(t.Context(), live)).To(Succeed())
	g.Expect(compare(owner, "a").Differences()).To(HaveLen(1), "somebody has deleted it")
}
