package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/owned"
	"parallelfs.dev/operator/internal/backend"
)

// withOurLabels returns an object with the labels of a master of scratch.
func withOurLabels(name string, owner ...metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "storage", Name: name, UID: types.UID(name), OwnerReferences: owner,
		Labels:      map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelFileSystem: "scratch", v1alpha1.LabelComponent: "master"},
		Annotations: map[string]string{backend.VersionAnnotation: "9.9.9"},
	}
}

func controlledBy(kind, uid string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "v1", Kind: kind, Name: uid, UID: types.UID(uid), Controller: new(true)}
}

// amongStrangers returns a FileSystem with a DaemonSet, a Job and a pod of each, in a namespace with foreign objects that have its labels.
func amongStrangers(t *testing.T) (*Reconciler, *v1alpha1.FileSystem) {
	t.Helper()
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "fs"}}
	mirror := withOurLabels("scratch-static-n1", controlledBy("Node", "n1"))
	mirror.Annotations[corev1.MirrorPodAnnotationKey] = "hash"
	forged := withOurLabels("scratch-forged-n1", controlledBy("DaemonSet", "scratch-master"))
	forged.Annotations[corev1.MirrorPodAnnotationKey] = "hash"
	pod := func(meta metav1.ObjectMeta) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		}}
	}
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		&appsv1.DaemonSet{ObjectMeta: withOurLabels("scratch-master", controlledBy("FileSystem", "fs"))},
		&batchv1.Job{ObjectMeta: withOurLabels("scratch-configure", controlledBy("FileSystem", "fs"))},
		pod(withOurLabels("scratch-master-1", controlledBy("DaemonSet", "scratch-master"))),
		pod(withOurLabels("scratch-configure-1", controlledBy("Job", "scratch-configure"))),

		&appsv1.DaemonSet{ObjectMeta: withOurLabels("strangers"), Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 5}},
		&batchv1.Job{ObjectMeta: withOurLabels("strangers")},
		pod(withOurLabels("bare")), pod(withOurLabels("of-strangers-set", controlledBy("DaemonSet", "strangers"))),
		pod(withOurLabels("of-strangers-job", controlledBy("Job", "strangers"))), pod(mirror), pod(forged),
	).Build()
	return &Reconciler{Client: c, Reader: c, Clock: clocktesting.NewFakePassiveClock(time.Now()), Order: clock.RealClock{}}, fs
}

func TestPodsOfStrangersWithOurLabelsAreNotOurs(t *testing.T) {
	for name, deleted := range map[string]bool{"of a FileSystem that serves": false, "of one that is deleted": true} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r, fs := amongStrangers(t)
			if deleted {
				fs.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			}
			own, err := r.daemonsOf(t.Context(), r.Client, fs)
			g.Expect(err).NotTo(HaveOccurred())
			var names []string
			for i := range own.facts {
				names = append(names, own.facts[i].Name.Name)
			}
			g.Expect(names).To(ConsistOf("scratch-master-1", "scratch-configure-1"))
			g.Expect(own.jobPods).To(HaveLen(1))
			g.Expect(own.askers).To(BeEmpty(), "nobody asks why pods of strangers are refused")
		})
	}
}

func TestADeletionWaitsForNoDaemonSetAndNoPodOfStrangers(t *testing.T) {
	g := NewWithT(t)
	r, fs := amongStrangers(t)
	fs.DeletionTimestamp, fs.Finalizers = &metav1.Time{Time: time.Now()}, []string{v1alpha1.Finalizer}
	p := &pass{Reconciler: r, fs: fs, read: fs.DeepCopy()}
	g.Expect(p.lookBack(t.Context())).To(Succeed())
	g.Expect(p.gone).To(BeFalse(), "a stranger's DaemonSet that nobody controls does not show that the daemons are to be left")
	g.Expect(p.sets).To(HaveExactElements(HaveField("Name", "scratch-master")))

	g.Expect(r.Client.Delete(t.Context(), &p.sets[0])).To(Succeed())
	pods, err := r.pods(t.Context(), r.Client, fs)
	g.Expect(err).NotTo(HaveOccurred())
	up := []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
	}}}}
	_, waiting := stopStep([]string{"master"}, nil, pods, up)
	g.Expect(waiting).To(ContainElement("scratch-master-1 on n1"), "its DaemonSet is gone, and it is not")
	for _, name := range []string{"scratch-master-1", "scratch-configure-1"} {
		g.Expect(r.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}})).To(Succeed())
	}
	pods, err = r.pods(t.Context(), r.Client, fs)
	g.Expect(err).NotTo(HaveOccurred())
	step, _ := stopStep([]string{"master"}, nil, pods, up)
	g.Expect(step).To(BeEmpty(), "all of ours have stopped")
	g.Expect(p.lookBack(t.Context())).To(Succeed())
	g.Expect(p.gone).To(BeFalse())
}

func TestDaemonsOrphanedByTheGarbageCollectorAreLeftAlone(t *testing.T) {
	deleted := metav1.NewTime(time.Now())
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{UID: "fs", DeletionTimestamp: &deleted}}
	set := func(uid types.UID, age time.Duration, owner ...metav1.OwnerReference) appsv1.DaemonSet {
		return appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{UID: uid, CreationTimestamp: metav1.NewTime(deleted.Add(-age)), OwnerReferences: owner}}
	}
	saw := func(ids ...types.UID) *owned.Past {
		past, there, pods := &owned.Past{}, map[types.UID]bool{}, []corev1.Pod(nil)
		for _, id := range ids {
			there[id] = true
		}
		past.Look("", there, pods, deleted.Time)
		return past
	}
	for name, c := range map[string]struct {
		sets     []appsv1.DaemonSet
		past     *owned.Past
		orphaned bool
	}{
		"one that was seen to be ours":                           {[]appsv1.DaemonSet{set("a", 0)}, saw("a"), true},
		"an old one, by a process that has seen none":            {[]appsv1.DaemonSet{set("a", time.Hour)}, saw(), true},
		"a stranger's beside one of ours shows nothing":          {[]appsv1.DaemonSet{set("x", time.Hour), set("a", time.Hour, controlledBy("FileSystem", "fs"))}, saw(), false},
		"a stranger's after ours have gone shows nothing":        {[]appsv1.DaemonSet{set("x", time.Hour)}, saw("a"), false},
		"one that was made since the deletion shows nothing":     {[]appsv1.DaemonSet{set("x", -time.Minute)}, saw(), false},
		"one of ours that is still ours is stopped and not left": {[]appsv1.DaemonSet{set("a", 0, controlledBy("FileSystem", "fs"))}, saw("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(orphaned(fs, c.sets, c.past)).To(Equal(c.orphaned))
		})
	}
}
