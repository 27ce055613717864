package backend

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestPortsOfAFileSystem(t *testing.T) {
	cases := map[string]struct {
		fs   v1alpha1.FileSystem
		want PortRange
	}{
		"a MooseFS has 32 from its base port": {
			fs:   v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: v1alpha1.MooseFS, MooseFS: &v1alpha1.MooseFSSpec{BasePort: 9419}}},
			want: PortRange{9419, 32},
		},
		"a BeeGFS has the 64 that were given to it": {
			fs: v1alpha1.FileSystem{
				Spec:   v1alpha1.FileSystemSpec{BeeGFS: &v1alpha1.BeeGFSSpec{}},
				Status: v1alpha1.FileSystemStatus{BeeGFS: &v1alpha1.BeeGFSStatus{BasePort: 8064}},
			},
			want: PortRange{8064, 64},
		},
		"a BeeGFS asks for some before they are given to it": {
			fs:   v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{BeeGFS: &v1alpha1.BeeGFSSpec{BasePort: new(int32(9000))}}},
			want: PortRange{9000, 64},
		},
		"a BeeGFS that asks for none has none yet": {
			fs: v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{BeeGFS: &v1alpha1.BeeGFSSpec{}}},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(PortsOf(&c.fs)).To(Equal(c.want))
		})
	}
}

func TestRangesOverlapWhenAPortIsInBoth(t *testing.T) {
	g := NewWithT(t)
	g.Expect(PortRange{8000, 64}.Overlap(PortRange{8063, 32})).To(BeTrue())
	g.Expect(PortRange{8063, 32}.Overlap(PortRange{8000, 64})).To(BeTrue())
	g.Expect(PortRange{8000, 64}.Overlap(PortRange{8064, 32})).To(BeFalse())
	g.Expect(PortRange{8000, 64}.Overlap(PortRange{})).To(BeFalse(), "a filesystem without ports is in nobody's way")
}

func TestDirectoriesAreNestedByTheirElements(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Nested("/data/a", "/data/a/")).To(BeTrue())
	g.Expect(Nested("/data/a/b", "/data/a")).To(BeTrue())
	g.Expect(Nested("/data/a", "/data/a/b")).To(BeTrue())
	g.Expect(Nested("/data/a", "/data/ab")).To(BeFalse())
}

// mooseOn is a MooseFS with its master on a node, and a pool on others.
func mooseOn(name, master, directory string, port int32, pool ...string) v1alpha1.FileSystem {
	return v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, MooseFS: &v1alpha1.MooseFSSpec{BasePort: port},
			StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd", Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/" + v1alpha1.DirectoryPath(name)}}}},
		},
		Status: v1alpha1.FileSystemStatus{
			Metadata:     &v1alpha1.MetadataRecord{Node: master, Directory: directory},
			StoragePools: []v1alpha1.StoragePoolStatus{{Name: "ssd", Nodes: pool}},
		},
	}
}

func TestConflictsAreThoseOfOneNode(t *testing.T) {
	mine := mooseOn("mine", "n1", "/meta/mine", 9419, "n2")
	cases := map[string]struct {
		other v1alpha1.FileSystem
		says  string
	}{
		"nothing in common":                          {other: mooseOn("other", "n3", "/meta/mine", 9419, "n4")},
		"the same ports on the master's node":        {other: mooseOn("other", "n1", "/meta/other", 9419, "n4"), says: "uses the ports 9419 to 9450 on node n1 too"},
		"the same ports on a node of both pools":     {other: mooseOn("other", "n3", "/meta/other", 9400, "n2"), says: "uses the ports 9400 to 9431 on node n2 too; set spec.moosefs.basePort at least 32 away from 9400"},
		"a directory inside of another's on a node":  {other: mooseOn("other", "n2", "/data/mine/below", 9500, "n4"), says: "keeps data in /data/mine/below on node n2"},
		"the same directory on different nodes only": {other: mooseOn("other", "n3", "/data/mine", 9500, "n4")},
		"a filesystem that has claimed nothing yet":  {other: v1alpha1.FileSystem{Spec: mine.Spec}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := RefuseConflicts(Input{FileSystem: &mine, Others: []v1alpha1.FileSystem{c.other}}, recordedBy(&mine))
			if c.says == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
	t.Run("a BeeGFS needs 64 ports, so a MooseFS has to be that far away", func(t *testing.T) {
		g := NewWithT(t)
		record := recordedBy(&mine)
		record.BeeGFS = &v1alpha1.BeeGFSStatus{BasePort: 9400}
		other := mooseOn("other", "n1", "/meta/other", 9460)
		err := RefuseConflicts(Input{FileSystem: &mine, Others: []v1alpha1.FileSystem{other}}, record)
		g.Expect(err).To(MatchError(ContainSubstring("set spec.beegfs.basePort at least 64 away from 9460")))
	})
}
