package members

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/benchmarks/results"
	"parallelfs.dev/operator/controllers/cached"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "storage", Name: name, Labels: map[string]string{v1alpha1.LabelFileSystem: "scratch"}}
}

func TestTheMembersAreThoseOfTheNodesAndDisksOfTheFileSystem(t *testing.T) {
	g := NewWithT(t)
	owner := v1alpha1.TargetOwner{Name: "scratch", UID: "1"}
	node := func(name, uid string) *v1alpha1.FileSystemNode {
		return &v1alpha1.FileSystemNode{
			ObjectMeta: named("scratch-" + name + uid),
			Spec: v1alpha1.FileSystemNodeSpec{
				FileSystem: v1alpha1.TargetOwner{Name: "scratch", UID: uid}, Node: name, Members: []v1alpha1.NodeMember{
					{Name: "server-ssd", Role: v1alpha1.RoleStorage, StoragePool: "ssd", ID: 7, Targets: []v1alpha1.MemberTarget{
						{Name: "scratch-ssd-1", ID: 70}, {Name: "/data/ssd", ID: 71, Directory: true},
					}},
					{Name: "meta-2", Role: v1alpha1.RoleMetadata, Slot: 2, ID: 3, Targets: []v1alpha1.MemberTarget{{Name: "scratch-m-1", ID: 3}}},
					{Name: "server-old", Role: v1alpha1.RoleStorage, StoragePool: "old", Retired: true},
				},
			},
			Status: v1alpha1.FileSystemNodeStatus{Members: []v1alpha1.MemberStatus{{
				Name: "server-ssd", State: v1alpha1.StateOnline, Version: "1.0", Address: "10.0.0.1:1", Directories: []v1alpha1.DirectoryStatus{
					{Name: "/data/ssd", TargetService: v1alpha1.TargetService{State: v1alpha1.StateOnline, CapacityBytes: 5}},
				},
			}}},
		}
	}
	disk := func(name string, role v1alpha1.Role, uid string, service *v1alpha1.TargetService) *v1alpha1.StorageTarget {
		of := owner
		of.UID = uid
		return &v1alpha1.StorageTarget{
			ObjectMeta: named(name), Spec: v1alpha1.StorageTargetSpec{FileSystem: of, Node: "oss1", Role: role, StoragePool: "ssd"},
			Status: v1alpha1.StorageTargetStatus{Service: service, MountPath: "/targets/" + name},
		}
	}
	scheme := runtime.NewScheme()
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	unlabeled := disk("scratch-ssd-2", v1alpha1.RoleStorage, "1", nil)
	unlabeled.Labels = nil
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, i := range cached.Indexes() {
		builder = builder.WithIndex(i.Object, i.Field, i.Values)
	}
	c := builder.WithObjects(node("oss1", "1"), node("oss1", "2"),
		disk("scratch-ssd-1", v1alpha1.RoleStorage, "1", &v1alpha1.TargetService{State: v1alpha1.StateOnline, CapacityBytes: 9, UsedBytes: 4}),
		unlabeled, disk("scratch-m-1", v1alpha1.RoleMetadata, "1", nil),
		disk("scratch-ssd-3", v1alpha1.RoleStorage, "2", nil)).Build()
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1"}}
	got, err := Read(t.Context(), c, fs)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Servers).To(Equal([]results.Server{
		{Name: "meta-2.oss1", Role: v1alpha1.RoleMetadata, Node: "oss1", Slot: 2, ID: 3, Target: "scratch-m-1", State: v1alpha1.StateOffline},
		{Name: "server-ssd.oss1", Role: v1alpha1.RoleStorage, Node: "oss1", StoragePool: "ssd", ID: 7, State: v1alpha1.StateOnline, Version: "1.0", Address: "10.0.0.1:1"},
	}), "none of a retired server, and none of an earlier FileSystem of the same name")
	target := func(name, directory string) results.Target {
		return results.Target{Name: "oss1:" + directory, Node: "oss1", StoragePool: "ssd", Directory: directory, StorageTarget: name, State: v1alpha1.StateOffline}
	}
	served, directory := target("scratch-ssd-1", "/targets/scratch-ssd-1"), target("", "/data/ssd")
	served.ID, served.State, served.CapacityBytes, served.UsedBytes = 70, v1alpha1.StateOnline, 9, 4
	directory.ID, directory.State, directory.CapacityBytes = 71, v1alpha1.StateOnline, 5
	g.Expect(got.Targets).To(Equal([]results.Target{directory, served, target("scratch-ssd-2", "/targets/scratch-ssd-2")}))
}
