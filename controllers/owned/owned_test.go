package owned_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/controllers/owned"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// controlledBy returns a pod that was created at noon, with this object as its controller.
func controlledBy(kind, name string, id types.UID) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: name + "-abc", CreationTimestamp: metav1.NewTime(noon),
		OwnerReferences: []metav1.OwnerReference{{Kind: kind, Name: name, UID: id, Controller: new(true)}},
	}}
}

func TestAPodBelongsToTheOwnerOfItsController(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *corev1.Pod)
		ours   bool
	}{
		"a pod of our DaemonSet":                            {func(*corev1.Pod) {}, true},
		"a pod without a controller is not ours":            {func(p *corev1.Pod) { p.OwnerReferences = nil }, false},
		"a pod whose owner does not control it is not ours": {func(p *corev1.Pod) { p.OwnerReferences[0].Controller = nil }, false},
		"a pod of a DaemonSet of our name with another UID is not ours": {func(p *corev1.Pod) {
			p.OwnerReferences[0].UID = "other"
		}, false},
		"a mirror pod is not ours, whatever controls it": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			owner := &metav1.ObjectMeta{UID: "fs"}
			set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{UID: "set", OwnerReferences: []metav1.OwnerReference{{UID: "fs", Controller: new(true)}}}}
			stranger := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{UID: "other"}}
			pod := controlledBy("DaemonSet", "scratch-master", "set")
			c.change(&pod)
			g.Expect(owned.Controllers{IDs: owned.Of(owner, set, stranger)}.Has(&pod)).To(Equal(c.ours))
			g.Expect(owned.IsOf(&pod, set)).To(Equal(c.ours))
		})
	}
}

func TestAPodOutlivesItsController(t *testing.T) {
	g := NewWithT(t)
	past, pods := &owned.Past{}, []corev1.Pod{controlledBy("Job", "scratch-configure", "job"), controlledBy("Job", "scratch-x", "stranger")}
	look := func(ids ...types.UID) owned.Controllers {
		there := map[types.UID]bool{}
		for _, id := range ids {
			there[id] = true
		}
		return past.Look("scratch-", there, pods, noon.Add(-time.Hour))
	}
	g.Expect(look("job").Has(&pods[0])).To(BeTrue())
	now := look()
	g.Expect(now.Has(&pods[0])).To(BeTrue(), "its Job was deleted a moment ago")
	g.Expect(now.Has(&pods[1])).To(BeFalse())
	g.Expect(past.Known("job")).To(BeTrue())
	gone := pods[0]
	pods = nil
	look()
	pods = append(pods, gone)
	g.Expect(look().Has(&gone)).To(BeFalse(), "the UID of a Job without pods is forgotten")
	g.Expect(past.SawAny()).To(BeTrue())
}

func TestAWaitCountsAPodWhoseControllerWasGoneBeforeTheProcessStartedForAWhile(t *testing.T) {
	began := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		kind, name string
		deleted    time.Duration
		made       time.Duration
		after      time.Duration
		waits      bool
	}{
		"a pod of a DaemonSet that is gone":                        {kind: "DaemonSet", name: "scratch-master", after: time.Minute, waits: true},
		"a pod of an MPIJob that is gone":                          {kind: "MPIJob", name: "scratch-p0", after: time.Minute, waits: true},
		"but no longer than that":                                  {kind: "DaemonSet", name: "scratch-master", after: owned.Patience},
		"a pod that ends later is waited for from then on":         {kind: "DaemonSet", name: "scratch-master", deleted: time.Hour, after: time.Hour, waits: true},
		"but no longer than that either":                           {kind: "DaemonSet", name: "scratch-master", deleted: time.Hour, after: time.Hour + owned.Patience},
		"a pod that was made since is proven by what was seen":     {kind: "DaemonSet", name: "scratch-master", made: time.Hour, after: time.Minute},
		"a pod of a DaemonSet of another name is not waited for":   {kind: "DaemonSet", name: "home-master", after: time.Minute},
		"a pod of a StatefulSet, of which we have none, is not it": {kind: "StatefulSet", name: "scratch-master", after: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := controlledBy(c.kind, c.name, "gone")
			pod.CreationTimestamp = metav1.NewTime(noon.Add(c.made))
			if c.deleted > 0 {
				pod.DeletionTimestamp = &metav1.Time{Time: began.Add(c.deleted)}
			}
			controllers := owned.Controllers{Prefix: "scratch-", Began: began, Now: began.Add(c.after)}
			g.Expect(controllers.MayHave(&pod)).To(Equal(c.waits))
			g.Expect(controllers.Has(&pod)).To(BeFalse(), "nothing is concluded from it")
		})
	}
}
