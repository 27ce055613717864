package trust

import (
	"encoding/json"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
)

// daemon returns a pod of a filesystem.
func daemon(component, node string, uid types.UID, restarts int32) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			UID: uid, Labels: map[string]string{v1alpha1.LabelComponent: component},
			OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node},
		Status: corev1.PodStatus{
			ContainerStatuses: []corev1.ContainerStatus{{Name: component, RestartCount: restarts}, {Name: probeContainer, RestartCount: 7}},
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

func disk(name string, ready metav1.ConditionStatus) v1alpha1.StorageTarget {
	t := v1alpha1.StorageTarget{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "disk-uid"}}
	t.Spec.FileSystem.Name, t.Spec.Node, t.Spec.Device.ID = "scratch", "oss1", "wwn-1"
	t.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: ready}}
	return t
}

// disks returns 24 targets on each of the given number of nodes.
func disks(nodes int) []v1alpha1.StorageTarget {
	var out []v1alpha1.StorageTarget
	for i := range 24 * nodes {
		t := disk(fmt.Sprintf("scratch-ssd-%05d", i), metav1.ConditionTrue)
		t.Spec.Node = fmt.Sprintf("oss%04d.example.org", i/24)
		out = append(out, t)
	}
	return out
}

func TestAFingerprintIsBoundedWhateverTheSizeOfTheFilesystem(t *testing.T) {
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", UID: "fs-uid"}}
	for name, c := range map[string]struct {
		nodes int
		says  string
	}{
		"of 10 nodes with 24 disks, the disk is named":             {10, "StorageTarget scratch-ssd-00007 on node oss0000.example.org has changed"},
		"of 1000 nodes with 24 disks, the node is named":           {1000, "something on node oss0000.example.org has changed"},
		"of 4000 nodes with 24 disks, a change is detected at all": {4000, "has changed; which one is unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			targets := disks(c.nodes)
			text := TakeFingerprint(fs, nil, targets, nil).Encode()
			t.Logf("%d targets: %d bytes", len(targets), len(text))
			g.Expect(len(text)).To(BeNumerically("<=", maxFingerprint))
			var kept Fingerprint
			g.Expect(json.Unmarshal([]byte(text), &kept)).To(Succeed())
			g.Expect(TakeFingerprint(fs, nil, targets, nil).DiffersFrom(kept)).To(BeEmpty())
			targets[7].Status.Conditions[0].Status = metav1.ConditionFalse
			g.Expect(TakeFingerprint(fs, nil, targets, nil).DiffersFrom(kept)).To(ContainSubstring(c.says))
		})
	}
}

// lost makes the FileSystem report that a node has lost its mount.
func lost(fs *v1alpha1.FileSystem, node string) {
	fs.Status.Missing = append(fs.Status.Missing, v1alpha1.MissingMember{Kind: v1alpha1.ClientMember, Node: node})
}

func TestDisturbancesOfAMeasurement(t *testing.T) {
	type cluster struct {
		fs      *v1alpha1.FileSystem
		pods    []corev1.Pod
		targets []v1alpha1.StorageTarget
	}
	whole := func() *cluster {
		fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", UID: "fs-uid"}}
		return &cluster{fs, []corev1.Pod{
			daemon("master", "mds1", "uid-1", 0), daemon("chunkserver", "oss1", "uid-2", 1), daemon(ComponentClient, "n1", "uid-3", 0),
			daemon(ComponentClient, "n9", "uid-4", 0),
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
		"a client that remounts":           {func(c *cluster) { c.pods[2] = daemon(ComponentClient, "n1", "uid-3", 1) }, "pod client on node n1 was restarted"},
		"a client that has lost its mount": {func(c *cluster) { lost(c.fs, "n1") }, "mount on node n1 has changed"},
		"a client whose pod says that its mount does not answer": {func(c *cluster) { c.pods[2].Status.Conditions[0].Status = corev1.ConditionFalse },
			"mount on node n1 has changed"},
		"a client without processes does not count": {func(c *cluster) {
			c.pods[3] = daemon(ComponentClient, "n9", "uid-4", 5)
			lost(c.fs, "n9")
		}, ""},
		"a probe that was restarted is nothing": {func(c *cluster) { c.pods[0].Status.ContainerStatuses[1].RestartCount++ }, ""},
		"a Job that changes the filesystem's settings is nothing": {func(c *cluster) {
			p := daemon("configure", "mds1", "uid-9", 0)
			p.OwnerReferences[0].Kind = "Job"
			c.pods = append(c.pods, p)
		}, ""},
		"another filesystem of that name": {func(c *cluster) { c.fs.UID = "other" }, "FileSystem scratch is another one of that name"},
		"all at once": {func(c *cluster) { c.pods, c.targets = nil, nil },
			"StorageTarget scratch-ssd-1 on node oss1 is gone, mount on node n1 is gone, pod chunkserver on node oss1 is gone and 2 more"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			before, after := whole(), whole()
			c.change(after)
			was := TakeFingerprint(before.fs, before.pods, before.targets, []string{"n1"})
			is := TakeFingerprint(after.fs, after.pods, after.targets, []string{"n1"})
			g.Expect(is.DiffersFrom(was)).To(Equal(c.says))
		})
	}
}
