package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/filesystem/derive"
	"parallelfs.dev/operator/internal/backend"
)

func TestAFileSystemWithAFullPoolIsNotReady(t *testing.T) {
	const size = int64(10 << 40)
	target := func(node string, used int64) backend.TargetStatus {
		return backend.TargetStatus{StoragePool: "ssd", Node: node, Online: true, CapacityBytes: size, UsedBytes: used}
	}
	files := func(node string, used int64) backend.TargetStatus {
		t := target(node, size/2)
		t.Inodes, t.UsedInodes = 1000, used
		return t
	}
	for name, c := range map[string]struct {
		targets []backend.TargetStatus
		ready   metav1.ConditionStatus
		reason  string
		nearly  string // the reason of PoolNearlyFull
	}{
		"half of it is free":                  {[]backend.TargetStatus{target("n1", size/2), target("n2", size/2)}, metav1.ConditionTrue, v1alpha1.ReasonHealthy, ""},
		"a tenth of it is free":               {[]backend.TargetStatus{target("n1", size*9/10), target("n2", size*9/10)}, metav1.ConditionTrue, v1alpha1.ReasonHealthy, v1alpha1.ReasonPoolNearlyFull},
		"nothing of it is free":               {[]backend.TargetStatus{target("n1", size), target("n2", size)}, metav1.ConditionFalse, v1alpha1.ReasonPoolFull, v1alpha1.ReasonPoolFull},
		"one copy finds room, and two do not": {[]backend.TargetStatus{target("n1", size), target("n2", size/2)}, metav1.ConditionFalse, v1alpha1.ReasonPoolFull, v1alpha1.ReasonPoolFull},
		"two other nodes have room": {
			[]backend.TargetStatus{target("n1", size), target("n2", size/2), target("n3", size/2)}, metav1.ConditionTrue, v1alpha1.ReasonHealthy, "",
		},
		"a tenth of its inodes is free": {
			[]backend.TargetStatus{files("n1", 900), files("n2", 950)}, metav1.ConditionTrue, v1alpha1.ReasonHealthy, v1alpha1.ReasonPoolNearlyFull,
		},
		"no inode of it is free": {
			[]backend.TargetStatus{files("n1", 1000), files("n2", 1000)}, metav1.ConditionFalse, v1alpha1.ReasonPoolFull, v1alpha1.ReasonPoolFull,
		},
		"its size is unknown": {[]backend.TargetStatus{{StoragePool: "ssd", Online: true}}, metav1.ConditionTrue, v1alpha1.ReasonHealthy, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd", Copies: 2}}}}
			describe(fs, backend.Observation{Targets: c.targets, Serves: true}, nil, nil, false, false, time.Now())
			g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)).To(And(
				HaveField("Status", c.ready), HaveField("Reason", c.reason)))
			stalled := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionStalled)
			if c.ready == metav1.ConditionFalse {
				g.Expect(stalled).To(HaveField("Message", ContainSubstring("take no new data: ssd (")))
			} else {
				g.Expect(stalled).To(BeNil())
			}
			nearly := meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPoolNearlyFull)
			if c.nearly == "" {
				g.Expect(nearly).To(BeNil())
			} else {
				g.Expect(nearly).To(HaveField("Reason", c.nearly))
			}
		})
	}
}

func TestASelectorThatMatchesNoNodeIsReported(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{
		Clients: &v1alpha1.ClientsSpec{NodeSelector: v1alpha1.NodeSelector{"client": "2"}},
	}}
	in := backend.Input{FileSystem: fs, Nodes: []backend.Node{{Name: "n1", Labels: map[string]string{"client": ""}}}}
	derive.Unmatched(nil, fs, in)
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionNodesSelected)).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.ReasonUnmatched), HaveField("Message",
			"spec.clients.nodeSelector matches no node, so no node mounts the filesystem (kubectl label node NODE client=2)")))
	in.Nodes[0].Labels["client"] = "2"
	derive.Unmatched(nil, fs, in)
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionNodesSelected)).To(BeNil())
}

func TestMetadataThatHasFewInodesLeftIsNearlyFullAndWithoutAnyTakesNoFiles(t *testing.T) {
	g := NewWithT(t)
	state := &backend.State{Targets: []backend.Target{
		{Role: v1alpha1.RoleMetadata, ID: 1, Online: true, CapacityBytes: 100, UsedBytes: 20, Inodes: 1000, UsedInodes: 960},
		{Role: v1alpha1.RoleMetadata, ID: 2, Online: true, CapacityBytes: 100, UsedBytes: 20, Inodes: 1000, UsedInodes: 100},
		{Role: v1alpha1.RoleMetadata, ID: 3, CapacityBytes: 100, UsedBytes: 99},
		{ID: 4, Online: true, CapacityBytes: 100, UsedBytes: 99},
	}}
	fs := &v1alpha1.FileSystem{}
	look := func() {
		seen := backend.Observation{Serves: true}
		seen.FullMetadata, seen.NearlyFullMetadata = backend.FullMetadata(state)
		describe(fs, seen, nil, nil, false, false, time.Now())
	}
	look()
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue))
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPoolNearlyFull).Message).To(Equal(
		"nearly full: metadata target 1 (20% of space, 96% of inodes in use); remove files, or give the pool more disks or nodes"))

	state.Targets[0].UsedInodes = 1000
	look()
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady).Status).To(Equal(metav1.ConditionTrue), "the other one has room")
	state.Targets[1].UsedInodes = 1000
	look()
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionReady)).To(And(HaveField("Status", metav1.ConditionFalse),
		HaveField("Reason", v1alpha1.ReasonPoolFull)))
	g.Expect(meta.FindStatusCondition(fs.Status.Conditions, v1alpha1.ConditionPoolNearlyFull).Message).To(HavePrefix(
		"full: metadata target 1 (20% of space, 100% of inodes in use), metadata target 2 ("))
}
