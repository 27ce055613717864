package apply

import (
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// kinds returns the scheme of these tests.
func kinds(g Gomega) *runtime.Scheme {
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	return scheme
}

var owner = &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "1"}}

func TestASecretThatIsNoLongerNeededIsRemovedUnlessItHasAnotherOwner(t *testing.T) {
	g := NewWithT(t)
	secret := func(name string, owners ...metav1.OwnerReference) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage", OwnerReferences: owners}}
	}
	mine := secret("mine", *metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("FileSystem")))
	c := fake.NewClientBuilder().WithScheme(kinds(g)).WithObjects(mine, secret("another")).Build()
	a := &Applier{Client: c}
	gone := []client.Object{backend.Absent("storage", "mine"), backend.Absent("storage", "another"), backend.Absent("storage", "no-such")}
	for _, deleted := range []int{1, 0} {
		g.Expect(a.Compare(t.Context(), owner, nil, gone).Apply(t.Context())).To(Equal(Result{Deleted: deleted}))
	}
	var left corev1.SecretList
	g.Expect(c.List(t.Context(), &left)).To(Succeed())
	g.Expect(left.Items).To(ConsistOf(HaveField("Name", "another")))
}

func TestAKeptChildStaysUnchanged(t *testing.T) {
	g := NewWithT(t)
	labels := map[string]string{v1alpha1.LabelFileSystem: "scratch"}
	job := func(name string) *batchv1.Job {
		return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "storage", Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("FileSystem"))},
		}}
	}
	c := fake.NewClientBuilder().WithScheme(kinds(g)).WithObjects(job("runs"), job("is-over")).Build()
	before := &batchv1.Job{}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(job("runs")), before)).To(Succeed())

	a := &Applier{Client: c, Kinds: []client.ObjectList{&batchv1.JobList{}}}
	result, err := a.CompareAll(t.Context(), owner, labels, []client.Object{&metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "runs"},
	}, configMap("next", "a")}).Apply(t.Context())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result).To(Equal(Result{Applied: 1, Deleted: 1}))
	g.Expect(says(t, c)).To(HaveKey("next"))
	var left batchv1.JobList
	g.Expect(c.List(t.Context(), &left)).To(Succeed())
	g.Expect(left.Items).To(HaveExactElements(*before))
}
