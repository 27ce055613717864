package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

var (
	errBroken = errors.New("the API server is broken")
	ours      = *metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("FileSystem"))
	selected  = map[string]string{v1alpha1.LabelFileSystem: "scratch"}
)

// in returns the metadata of an object in the owner's namespace, with the labels that CompareAll looks for.
func in(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: "storage", UID: "u", Labels: selected, OwnerReferences: owners}
}

func jobOf(image string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: "storage"}}
	job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "c", Image: image}}
	return job
}

func TestOnlyAJobThatCannotBeChangedIsDeletedToBeMadeAgain(t *testing.T) {
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "one", nil)
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, "one")
	old, wanted := client.Object(jobOf("a")), client.Object(jobOf("b"))
	for name, c := range map[string]struct {
		old, wanted                client.Object
		applying, reading, deleted error
		says                       string
		left                       int
	}{
		"a Job whose change is invalid is deleted":       {old: old, wanted: wanted, applying: invalid},
		"a Job whose change fails otherwise stays":       {old: old, wanted: wanted, applying: errBroken, says: "apply Job storage/one: the API", left: 1},
		"a new Job that is invalid is an error":          {wanted: wanted, applying: invalid, says: `apply Job storage/one: Job "one" is invalid`},
		"another kind whose change is invalid stays":     {old: configMap("one", "a"), wanted: configMap("one", "b"), applying: invalid, says: "apply ConfigMap storage/one: Job", left: 1},
		"a Job that can't be read is an error":           {old: old, wanted: wanted, applying: invalid, reading: errBroken, says: "read Job storage/one: the API", left: 1},
		"a Job that is gone when it is read is no error": {old: old, wanted: wanted, applying: invalid, reading: gone, left: 1},
		"a Job that can't be deleted is an error": {
			old: old, wanted: wanted, applying: invalid, deleted: errBroken, says: "delete Job storage/one, which can't be changed to what it should be: the API", left: 1},
		"a Job that is gone when it is deleted is no error": {old: old, wanted: wanted, applying: invalid, deleted: gone, left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := fake.NewClientBuilder().WithScheme(kinds(g)).Build()
			if c.old != nil {
				g.Expect((&Applier{Client: store}).Compare(t.Context(), owner, nil, []client.Object{c.old}).Apply(t.Context())).To(Equal(Result{Applied: 1}))
			}
			compared := false
			a := &Applier{Client: interceptor.NewClient(store, interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return c.applying
				},
				Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if compared && c.reading != nil {
						return c.reading
					}
					return w.Get(ctx, key, o, options...)
				},
				Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					if c.deleted != nil {
						return c.deleted
					}
					return w.Delete(ctx, o, options...)
				},
			})}
			now := a.Compare(t.Context(), owner, nil, []client.Object{c.wanted})
			compared = true
			_, err := now.Apply(t.Context())
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(HavePrefix(c.says)))
			}
			var jobs batchv1.JobList
			g.Expect(store.List(t.Context(), &jobs)).To(Succeed())
			g.Expect(len(jobs.Items) + len(says(t, store))).To(Equal(c.left))
		})
	}
}

func TestASecretThatAUserHasMadeStaysIfItHasAllThatIsWanted(t *testing.T) {
	secret := func(data map[string][]byte, owners ...metav1.OwnerReference) client.Object {
		return &corev1.Secret{ObjectMeta: in("key", owners...), Data: data}
	}
	type data = map[string][]byte
	another := metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "p", Controller: new(true)}
	for name, c := range map[string]struct {
		live, wanted client.Object
		stays        bool
	}{
		"it has the same":                       {secret(data{"a": []byte("1")}), secret(data{"a": []byte("1")}), true},
		"it has more":                           {secret(data{"a": []byte("1"), "b": []byte("2")}), secret(data{"a": []byte("1")}), true},
		"it has another value":                  {secret(data{"a": []byte("2")}), secret(data{"a": []byte("1")}), false},
		"it lacks a key, which is wanted empty": {secret(data{"b": []byte("1")}), secret(data{"a": {}}), false},
		"one of two is the same":                {secret(data{"a": []byte("1")}), secret(data{"a": []byte("1"), "b": []byte("2")}), false},
		"nothing is wanted in it":               {secret(nil), secret(nil), false},
		"it belongs to something else":          {secret(data{"a": []byte("1")}, another), secret(data{"a": []byte("1")}), false},
		"it is no Secret":                       {&corev1.ConfigMap{ObjectMeta: in("key")}, &corev1.ConfigMap{ObjectMeta: in("key")}, false},
		"it belongs to the owner, but not as its controller": {
			secret(data{"a": []byte("2")}, metav1.OwnerReference{APIVersion: "v1", Kind: "FileSystem", Name: "scratch", UID: "1"}), secret(data{"a": []byte("1")}), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			a := &Applier{Client: fake.NewClientBuilder().WithScheme(kinds(g)).WithObjects(c.live).Build()}
			now := a.Compare(t.Context(), owner, nil, []client.Object{c.wanted})
			g.Expect(now.Differences()).To(BeEmpty())
			result, err := now.Apply(t.Context())
			g.Expect(result).To(Equal(Result{}))
			if c.stays {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring("key exists and does not belong to scratch; delete or rename it")))
			}
		})
	}
}

func TestOnlyUnwantedChildrenOfTheOwnerAreDeleted(t *testing.T) {
	g := NewWithT(t)
	another := ours
	another.UID = "2"
	leaving := in("leaving", ours)
	leaving.DeletionTimestamp, leaving.Finalizers = new(metav1.Now()), []string{"example.com/stays"}
	elsewhere, unlabeled := in("elsewhere", ours), in("unlabeled", ours)
	elsewhere.Namespace, unlabeled.Labels = "lab", nil
	store := fake.NewClientBuilder().WithScheme(kinds(g)).WithObjects(
		&batchv1.Job{ObjectMeta: in("a", ours)}, &batchv1.Job{ObjectMeta: in("b", ours)}, &batchv1.Job{ObjectMeta: in("of-another", another)},
		&batchv1.Job{ObjectMeta: in("of-none")}, &batchv1.Job{ObjectMeta: leaving}, &batchv1.Job{ObjectMeta: elsewhere},
		&batchv1.Job{ObjectMeta: unlabeled}, &corev1.ConfigMap{ObjectMeta: in("a", ours)}).Build()
	// The first kind cannot be listed, which hides no other.
	refusing := interceptor.NewClient(store, interceptor.Funcs{
		List: func(ctx context.Context, w client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, is := list.(*corev1.ConfigMapList); is {
				return errBroken
			}
			return w.List(ctx, list, options...)
		},
	})
	a := &Applier{Client: refusing, Kinds: []client.ObjectList{&corev1.ConfigMapList{}, &batchv1.JobList{}}}
	result, err := a.CompareAll(t.Context(), owner, selected, nil).Apply(t.Context())
	g.Expect(err).To(MatchError("list children: the API server is broken"))
	g.Expect(result).To(Equal(Result{Deleted: 2}))
	var left batchv1.JobList
	g.Expect(store.List(t.Context(), &left)).To(Succeed())
	g.Expect(left.Items).To(ConsistOf(HaveField("Name", "of-another"), HaveField("Name", "of-none"), HaveField("Name", "leaving"),
		HaveField("Name", "elsewhere"), HaveField("Name", "unlabeled")))
	g.Expect(says(t, store)).To(HaveKey("a"))
}

func TestAChildThatCannotBeDeletedIsAnErrorUnlessItIsGone(t *testing.T) {
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "jobs"}, "one")
	for name, c := range map[string]struct {
		reading, deleting error
		want              Result
		says              string
	}{
		"both are deleted":                        {want: Result{Deleted: 2}},
		"both are gone meanwhile":                 {deleting: gone, want: Result{Deleted: 2}},
		"neither can be deleted":                  {deleting: errBroken, says: "remove Secret old, which is not needed any more: the API server is broken\ndelete Job storage/one: the API server is broken"},
		"the Secret can't be read, but the other": {reading: errBroken, want: Result{Deleted: 1}, says: "remove Secret old, which is not needed any more: the API server is broken"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			store := fake.NewClientBuilder().WithScheme(kinds(g)).WithObjects(
				&batchv1.Job{ObjectMeta: in("one", ours)}, &corev1.Secret{ObjectMeta: in("old", ours)}).Build()
			a := &Applier{Kinds: []client.ObjectList{&batchv1.JobList{}}, Client: interceptor.NewClient(store, interceptor.Funcs{
				Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if c.reading != nil {
						return c.reading
					}
					return w.Get(ctx, key, o, options...)
				},
				Delete: func(ctx context.Context, w client.WithWatch, o client.Object, options ...client.DeleteOption) error {
					if c.deleting != nil {
						return c.deleting
					}
					return w.Delete(ctx, o, options...)
				},
			})}
			result, err := a.CompareAll(t.Context(), owner, selected, []client.Object{backend.Absent("storage", "old")}).Apply(t.Context())
			g.Expect(result).To(Equal(c.want))
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(c.says))
			}
		})
	}
}

func TestOnlyTwoSecretsAreCompared(t *testing.T) {
	secret := &corev1.Secret{Data: map[string][]byte{"a": []byte("1")}}
	NewWithT(t).Expect(isSameSecret(secret, configMap("one", "a"))).To(BeFalse())
	NewWithT(t).Expect(isSameSecret(configMap("one", "a"), secret)).To(BeFalse())
}

// webhook is a client of an API server with an admission webhook that writes the contents of ConfigMaps in capital letters. asked counts
// the dry runs, which it refuses if refuses is set.
type webhook struct {
	client.Client
	asked   int
	refuses bool
}

func behindAWebhook(g Gomega) *webhook {
	w := &webhook{}
	store := fake.NewClientBuilder().WithScheme(kinds(g)).Build()
	w.Client = interceptor.NewClient(store, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, options ...client.ApplyOption) error {
			content := o.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
			text, _, _ := unstructured.NestedString(content, "data", "says")
			if err := unstructured.SetNestedField(content, strings.ToUpper(text), "data", "says"); err != nil {
				return err
			}
			var asked client.ApplyOptions
			asked.ApplyOptions(options)
			if len(asked.DryRun) == 0 {
				return c.Apply(ctx, o, options...)
			}
			w.asked++
			if w.refuses {
				return errBroken
			}
			// The fake client writes dry runs, so that this one gets a copy of the object.
			live := &corev1.ConfigMap{}
			g.Expect(c.Get(ctx, client.ObjectKey{Namespace: "storage", Name: "one"}, live)).To(Succeed())
			return fake.NewClientBuilder().WithScheme(kinds(g)).WithObjects(live).Build().Apply(ctx, o, options...)
		},
	})
	return w
}

func TestAChildThatAWebhookRewritesIsNotWrittenAgain(t *testing.T) {
	g := NewWithT(t)
	w := behindAWebhook(g)
	a := &Applier{Client: w}
	differences := func() []Difference {
		return a.Compare(t.Context(), owner, nil, []client.Object{configMap("one", "a")}).Differences()
	}
	g.Expect(a.Compare(t.Context(), owner, nil, []client.Object{configMap("one", "a")}).Apply(t.Context())).To(Equal(Result{Applied: 1}))
	g.Expect(says(t, w)).To(Equal(map[string]string{"one": "A"}))

	w.refuses = true
	g.Expect(differences()).To(ConsistOf(HaveField("Change", Changed)), "a dry run that is refused shows nothing")
	w.refuses, w.asked = false, 0
	for range 3 {
		g.Expect(differences()).To(BeEmpty())
	}
	g.Expect(w.asked).To(Equal(1), "the answer is remembered")

	live := &corev1.ConfigMap{}
	g.Expect(w.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "one"}, live)).To(Succeed())
	live.Data["says"] = "somebody else's"
	g.Expect(w.Update(t.Context(), live)).To(Succeed())
	for range 2 {
		g.Expect(differences()).To(ConsistOf(HaveField("Change", Changed)), "somebody has changed it")
	}
}

func TestAChildIsSentWithoutWhatTheOperatorDoesNotSet(t *testing.T) {
	type object = map[string]any
	sent := object{
		"null": nil, "resources": object{}, "strategy": object{"none": nil}, "updateStrategy": object{}, "emptyDir": object{},
		"containers": []any{object{"name": "a", "null": nil, "resources": object{"limits": object{"cpu": "1", "memory": nil}}}, "text", nil},
	}
	dropNulls(sent)
	NewWithT(t).Expect(sent).To(Equal(object{
		"emptyDir":   object{},
		"containers": []any{object{"name": "a", "resources": object{"limits": object{"cpu": "1"}}}, "text", nil},
	}))
}

func TestAChildKeepsItsOwnLabelsAndAnnotations(t *testing.T) {
	g := NewWithT(t)
	store := fake.NewClientBuilder().WithScheme(kinds(g)).Build()
	wanted := configMap("one", "a")
	wanted.Labels, wanted.Annotations = map[string]string{"its": "own"}, map[string]string{"its": "own"}
	a := &Applier{Client: store}
	g.Expect(a.Compare(t.Context(), owner, selected, []client.Object{wanted}).Apply(t.Context())).To(Equal(Result{Applied: 1}))
	live := &corev1.ConfigMap{}
	g.Expect(store.Get(t.Context(), client.ObjectKeyFromObject(wanted), live)).To(Succeed())
	g.Expect(live.Labels).To(Equal(map[string]string{"its": "own", v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelManagedBy: v1alpha1.ManagedBy}))
	g.Expect(live.Annotations).To(And(HaveKeyWithValue("its", "own"), HaveKey(HashAnnotation), HaveLen(2)))
	g.Expect(metav1.IsControlledBy(live, owner)).To(BeTrue())

	delete(wanted.Labels, "its")
	g.Expect(a.Compare(t.Context(), owner, selected, []client.Object{wanted}).Differences()).To(HaveLen(1), "a label is no longer wanted")
}

func TestAChildThatCannotBeComparedIsAnErrorAndHidesNoOther(t *testing.T) {
	g := NewWithT(t)
	store := fake.NewClientBuilder().WithScheme(kinds(g)).Build()
	a := &Applier{Client: interceptor.NewClient(store, interceptor.Funcs{
		Get: func(ctx context.Context, w client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == "unread" {
				return errBroken
			}
			return w.Get(ctx, key, o, options...)
		},
	})}
	unknown := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "unknown"}}
	stranger := configMap("elsewhere", "a")
	stranger.Namespace = "lab" // an owner in another namespace is refused
	now := a.Compare(t.Context(), owner, nil, []client.Object{configMap("unread", "a"), stranger, configMap("good", "a"), &kindless{FileSystem: unknown}})
	g.Expect(now.Differences()).To(ConsistOf(HaveField("Name", "good")))
	result, err := now.Apply(t.Context())
	g.Expect(result).To(Equal(Result{Applied: 1}))
	g.Expect(err).To(MatchError(And(ContainSubstring("read ConfigMap storage/unread: the API server is broken"),
		ContainSubstring("set the owner of ConfigMap elsewhere"), ContainSubstring(`find the kind of child "unknown"`))))
	g.Expect(says(t, store)).To(Equal(map[string]string{"good": "a"}))
}

// kindless is an object of no registered kind.
type kindless struct{ *v1alpha1.FileSystem }

func TestRememberedChildrenAreBounded(t *testing.T) {
	g := NewWithT(t)
	var k known
	key := func(n int) (key childKey) {
		key.name.Name = fmt.Sprint(n)
		return key
	}
	as := [32]byte{1}
	for n := range mostKnown {
		k.add(key(n), as)
	}
	g.Expect(k.as).To(HaveLen(mostKnown))
	g.Expect(k.has(key(0), as)).To(BeTrue())
	g.Expect(k.has(key(0), [32]byte{2})).To(BeFalse(), "it had another content")
	g.Expect(k.has(key(mostKnown), [32]byte{})).To(BeFalse(), "it is not remembered")
	k.add(key(mostKnown), as)
	g.Expect(len(k.as)).To(BeNumerically("<=", mostKnown))
	g.Expect(k.has(key(mostKnown), as)).To(BeTrue())
}
