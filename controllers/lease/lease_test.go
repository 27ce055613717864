package lease_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/lease"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func fileSystem(uid string) *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: types.UID(uid)}}
}

func run(name string) *v1alpha1.BenchmarkRun {
	return &v1alpha1.BenchmarkRun{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name, UID: types.UID(name + "-uid"), Finalizers: []string{v1alpha1.Finalizer}}}
}

func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(coordinationv1.AddToScheme(scheme)).To(Succeed())
	NewWithT(t).Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func live(t *testing.T, c client.Client) *coordinationv1.Lease {
	t.Helper()
	found := &coordinationv1.Lease{}
	NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "storage", Name: "pfs-scratch"}, found)).To(Succeed())
	return found
}

func TestAHolderIsWrittenAndReadInOneForm(t *testing.T) {
	g := NewWithT(t)
	holder := lease.OfRun(run("creates"))
	g.Expect(holder.String()).To(Equal("BenchmarkRun/creates/creates-uid"))
	read, err := lease.Parse(holder.String())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read).To(Equal(holder))
	for _, text := range []string{"", "me", "BenchmarkRun/creates", "BenchmarkRun//uid", "BenchmarkRun/creates/", "Pod/a/b", "BenchmarkRun/a/b/c"} {
		_, err := lease.Parse(text)
		g.Expect(err).To(HaveOccurred(), text)
	}
}

func TestWhichRequestGetsTheLeaseOfARun(t *testing.T) {
	ended := metav1.NewTime(now)
	suspended := []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonSuspended}}
	cases := map[string]struct {
		holder func(*v1alpha1.BenchmarkRun)
		// gone is true if the run does not exist. later is the time between the run's taking of the lease and the other request.
		gone  bool
		later time.Duration
		free  bool
	}{
		"a run that measures keeps it":                  {},
		"time takes it from nobody":                     {later: 30 * 24 * time.Hour},
		"a run that has ended does not keep it":         {holder: func(r *v1alpha1.BenchmarkRun) { r.Status.CompletionTime = &ended }, free: true},
		"a run that is gone does not keep it":           {gone: true, free: true},
		"another run of the same name does not keep it": {holder: func(r *v1alpha1.BenchmarkRun) { r.UID = "another" }, free: true},
		"a run that is being suspended keeps it":        {holder: func(r *v1alpha1.BenchmarkRun) { r.Spec.Suspend = true }},
		"a run that says that it is suspended does not keep it": {
			holder: func(r *v1alpha1.BenchmarkRun) { r.Spec.Suspend, r.Status.Conditions = true, suspended }, free: true,
		},
		"a run that goes on after it was suspended keeps it": {holder: func(r *v1alpha1.BenchmarkRun) { r.Status.Conditions = suspended }},
		"a run that is being deleted keeps it until its jobs have ended": {
			holder: func(r *v1alpha1.BenchmarkRun) { r.DeletionTimestamp = &ended },
		},
		"a run that only another finalizer keeps from being gone does not keep it": {
			holder: func(r *v1alpha1.BenchmarkRun) {
				r.DeletionTimestamp, r.Finalizers = &ended, []string{"example.org/mine"}
			}, free: true,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs, first := fileSystem("fs-uid"), run("first")
			k := cluster(t, fs)
			by, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfRun(first), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(by).To(BeEmpty())
			if c.holder != nil {
				c.holder(first)
			}
			if !c.gone {
				g.Expect(createIn(k, first)).To(Succeed())
			}
			for _, other := range []lease.Holder{lease.OfFileSystem(fs), lease.OfRun(run("second"))} {
				by, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), other, now.Add(c.later))
				g.Expect(err).NotTo(HaveOccurred())
				if !c.free {
					g.Expect(by).To(Equal("BenchmarkRun first"))
					g.Expect(*live(t, k).Spec.HolderIdentity).To(Equal(lease.OfRun(first).String()))
					continue
				}
				g.Expect(by).To(BeEmpty())
				g.Expect(*live(t, k).Spec.HolderIdentity).To(Equal(other.String()))
				return
			}
		})
	}
}

// createIn creates an object, even one that is being deleted.
func createIn(c client.Client, object client.Object) error {
	deleted := object.GetDeletionTimestamp() != nil
	object.SetDeletionTimestamp(nil)
	if err := c.Create(context.Background(), object); err != nil || !deleted {
		return err
	}
	return c.Delete(context.Background(), object)
}

func TestAFileSystemKeepsTheLeaseUntilItReleasesIt(t *testing.T) {
	g := NewWithT(t)
	fs, r := fileSystem("fs-uid"), run("creates")
	k := cluster(t, fs, r)
	_, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfFileSystem(fs), now)
	g.Expect(err).NotTo(HaveOccurred())
	by, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfRun(r), now.Add(2*time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(by).To(Equal("FileSystem scratch"))

	g.Expect(lease.Release(t.Context(), k, k, lease.Of(fs).Key, lease.OfRun(r))).To(Succeed())
	g.Expect(*live(t, k).Spec.HolderIdentity).To(HavePrefix("FileSystem/"), "nobody lets go of what somebody else has")
	g.Expect(lease.Release(t.Context(), k, k, lease.Of(fs).Key, lease.OfFileSystem(fs))).To(Succeed())
	by, err = lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfRun(r), now.Add(2*time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(by).To(BeEmpty())
	g.Expect(*live(t, k).Spec.LeaseTransitions).To(BeEquivalentTo(1))
}

func TestKeepingItWritesOnceAMinute(t *testing.T) {
	g := NewWithT(t)
	fs := fileSystem("fs-uid")
	k := cluster(t, fs)
	versions := map[string]bool{}
	for seconds := range 181 {
		_, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfFileSystem(fs), now.Add(time.Duration(seconds)*time.Second))
		g.Expect(err).NotTo(HaveOccurred())
		versions[live(t, k).ResourceVersion] = true
	}
	g.Expect(versions).To(HaveLen(4), "at 0, 60, 120 and 180 seconds")
	g.Expect(live(t, k).Spec.AcquireTime.Time).To(BeTemporally("==", now))
}

func TestTheLeaseOfAFileSystemThatWasCreatedAgainBelongsToTheNewOne(t *testing.T) {
	g := NewWithT(t)
	r := run("creates")
	k := cluster(t, r)
	_, err := lease.Acquire(t.Context(), k, k, lease.Of(fileSystem("old")), lease.OfRun(r), now)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = lease.Acquire(t.Context(), k, k, lease.Of(fileSystem("new")), lease.OfRun(r), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(live(t, k).OwnerReferences).To(HaveExactElements(And(HaveField("Kind", "FileSystem"), HaveField("UID", types.UID("new")))))
}

func TestOneOfTwoConcurrentRequestsGetsTheLease(t *testing.T) {
	g := NewWithT(t)
	fs, r := fileSystem("fs-uid"), run("creates")
	k := cluster(t, fs, r)
	_, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfFileSystem(fs), now)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lease.Release(t.Context(), k, k, lease.Of(fs).Key, lease.OfFileSystem(fs))).To(Succeed())
	// Between the look and the write of the one, the other takes it.
	slow := interceptor.NewClient(k, interceptor.Funcs{
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			by, err := lease.Acquire(ctx, k, k, lease.Of(fs), lease.OfRun(r), now)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(by).To(BeEmpty())
			return c.Update(ctx, o, opts...)
		},
	})
	_, err = lease.Acquire(t.Context(), slow, k, lease.Of(fs), lease.OfFileSystem(fs), now)
	g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
	g.Expect(*live(t, k).Spec.HolderIdentity).To(Equal(lease.OfRun(r).String()))
}

func TestALeaseOfAnotherHolderIsNotTaken(t *testing.T) {
	g := NewWithT(t)
	fs := fileSystem("fs-uid")
	k := cluster(t, fs, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "pfs-scratch"}, Spec: coordinationv1.LeaseSpec{HolderIdentity: new("me")},
	})
	_, err := lease.Acquire(t.Context(), k, k, lease.Of(fs), lease.OfFileSystem(fs), now)
	g.Expect(err).To(MatchError(ContainSubstring("kubectl delete lease -n storage pfs-scratch")))
	g.Expect(*live(t, k).Spec.HolderIdentity).To(Equal("me"))
}
