package benchmarkrun

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
)

// daemon is a pod of a filesystem.
func daemon(component, node string, uid types.UID, restarts int32) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: uid, Labels: map[string]string{v1alpha1.LabelComponent: component},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: component, RestartCount: restarts}, {Name: probeContainer, RestartCount: 7},
		}},
	}
}

func disk(name string, ready metav1.ConditionStatus) v1alpha1.StorageTarget {
	t := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "disk-uid"}}
	t.Spec.FileSystem.Name, t.Spec.Node, t.Spec.Device.ID = "scratch", "oss1", "wwn-1"
	t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
	return t
}

func TestAFingerprintThatIsTooLongForAnAnnotationIsKeptAsItsDigest(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", UID: "fs-uid"}}
	var targets []v1alpha1.StorageTarget
	for i := range 24 * 400 {
		targets = append(targets, disk(fmt.Sprintf("scratch-ssd-%05d", i), metav1.ConditionTrue))
	}
	before := takeFingerprint(fs, nil, targets, nil)
	text := before.encode()
	g.Expect(len(text)).To(BeNumerically("<", 256<<10), "the API server's limit of all annotations")
	var kept fingerprint
	g.Expect(json.Unmarshal([]byte(text), &kept)).To(Succeed())
	g.Expect(takeFingerprint(fs, nil, targets, nil).differsFrom(kept)).To(BeEmpty())
	targets[7] = disk("scratch-ssd-00007", metav1.ConditionFalse)
	g.Expect(takeFingerprint(fs, nil, targets, nil).differsFrom(kept)).To(ContainSubstring("has changed; which of them is not kept"))
}

func TestWhatDisturbsAMeasurement(t *testing.T) {
	type cluster struct {
		fs      *v1alpha1.FileSystem
		pods    []corev1.Pod
		targets []v1alpha1.StorageTarget
	}
	whole := func() *cluster {
		fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", UID: "fs-uid"}}
		fs.Status.Clients = []v1alpha1.ClientStatus{{Node: "n1", Mounted: true}, {Node: "n9", Mounted: true}}
		return &cluster{fs, []corev1.Pod{
			daemon("master", "mds1", "uid-1", 0), daemon("chunkserver", "oss1", "uid-2", 1), daemon(componentClient, "n1", "uid-3", 0),
			daemon(componentClient, "n9", "uid-4", 0),
		}, []v1alpha1.StorageTarget{disk("scratch-ssd-1", metav1.ConditionTrue)}}
	}
	for name, c := range map[string]struct {
		change func(c *cluster)
		says   string
	}{
		"nothing":                                {func(*cluster) {}, ""},
		"a daemon that was restarted in its pod": {func(c *cluster) { c.pods[1] = daemon("chunkserver", "oss1", "uid-2", 2) }, "pod chunkserver on node oss1 was restarted"},
		"a daemon whose pod is another one":      {func(c *cluster) { c.pods[0] = daemon("master", "mds1", "uid-9", 0) }, "pod master on node mds1 was restarted"},
		"a daemon that is gone":                  {func(c *cluster) { c.pods = c.pods[1:] }, "pod master on node mds1 is gone"},
		"a daemon that came":                     {func(c *cluster) { c.pods = append(c.pods, daemon("chunkserver", "oss2", "uid-9", 0)) }, "pod chunkserver on node oss2 is new"},
		"a target that is not Ready":             {func(c *cluster) { c.targets[0] = disk("scratch-ssd-1", metav1.ConditionFalse) }, "StorageTarget scratch-ssd-1 on node oss1 has changed"},
		"a target that came":                     {func(c *cluster) { c.targets = append(c.targets, disk("scratch-ssd-2", metav1.ConditionTrue)) }, "StorageTarget scratch-ssd-2 on node oss1 is new"},
		"a target of another filesystem is nothing": {func(c *cluster) {
			t := disk("x", metav1.ConditionTrue)
			t.Spec.FileSystem.Name = "home"
			c.targets = append(c.targets, t)
		}, ""},
		"a client that mounts anew":        {func(c *cluster) { c.pods[2] = daemon(componentClient, "n1", "uid-3", 1) }, "pod client on node n1 was restarted"},
		"a client that has lost its mount": {func(c *cluster) { c.fs.Status.Clients[0].Mounted = false }, "mount on node n1 has changed"},
		"a client that does not take part is nothing": {func(c *cluster) {
			c.pods[3] = daemon(componentClient, "n9", "uid-4", 5)
			c.fs.Status.Clients[1].Mounted = false
		}, ""},
		"a probe that was restarted is nothing": {func(c *cluster) { c.pods[0].Status.ContainerStatuses[1].RestartCount++ }, ""},
		"a Job that changes the filesystem's settings is nothing": {func(c *cluster) {
			p := daemon("configure", "mds1", "uid-9", 0)
			p.OwnerReferences[0].Kind = "Job"
			c.pods = append(c.pods, p)
		}, ""},
		"another filesystem of that name": {func(c *cluster) { c.fs.UID = "other" }, "FileSystem scratch is another one of that name"},
		"all at once": {func(c *cluster) { c.pods, c.targets = nil, nil },
			"StorageTarget scratch-ssd-1 on node oss1 is gone, pod chunkserver on node oss1 is gone, pod client on node n1 is gone and 1 more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := whole(), whole()
			c.change(after)
			was := takeFingerprint(before.fs, before.pods, before.targets, []string{"n1"})
			is := takeFingerprint(after.fs, after.pods, after.targets, []string{"n1"})
			g.Expect(is.differsFrom(was)).To(Equal(c.says))
		})
	}
}

func TestADisturbedTurnIsInvalidWithItsCause(t *testing.T) {
	g := NewWithT(t)
	w := idle()
	w.daemons.Items = []corev1.Pod{daemon("master", "mds1", "uid-1", 0)}
	c := w.job(0, 1, time.Minute)
	c.succeeded = true
	c.object.SetAnnotations(map[string]string{annotationTrust: w.trust(nil).encode()})
	g.Expect(decide(w).invalid).To(BeEmpty())
	w.daemons.Items[0].Status.ContainerStatuses[0].RestartCount = 1
	d := decide(w)
	g.Expect(d.action).To(Equal(keep))
	g.Expect(d.invalid).To(Equal("was disturbed: pod master on node mds1 was restarted"))
	t.Run("a FileSystem that is not Ready is no reason by itself", func(t *testing.T) {
		w.daemons.Items[0].Status.ContainerStatuses[0].RestartCount = 0
		w.fileSystem.Status.Conditions[0].Status = metav1.ConditionFalse
		NewWithT(t).Expect(decide(w).invalid).To(BeEmpty())
	})
}
