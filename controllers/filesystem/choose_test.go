package filesystem

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/moosefs"
)

// passOver returns a pass over a FileSystem as stored in the API server.
func passOver(fs *v1alpha1.FileSystem) *pass {
	p := &pass{fs: fs, backend: moosefs.New()}
	p.complete()
	p.in = backend.Input{FileSystem: p.fs, Images: backend.Images{Daemons: map[string]string{"moosefs-4.57.5": "a"}}}
	return p
}

func TestOpenFieldsOfTheSpecAreChosenOnceAndWrittenToNoSpec(t *testing.T) {
	g := NewWithT(t)
	pool := func(name string) v1alpha1.StoragePoolSpec {
		return v1alpha1.StoragePoolSpec{Name: name, Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{v1alpha1.DirectoryPath("/data/" + name)}}}
	}
	fs := &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage"},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Nodes: &v1alpha1.NodesSpec{Names: []string{"n1"}}, StoragePools: []v1alpha1.StoragePoolSpec{pool("ssd"), pool("hdd")},
			MetadataServers: v1alpha1.MetadataSpec{Targets: pool("metadata").Targets},
		},
	}
	p := passOver(fs)
	g.Expect(p.chooseOpen(t.Context())).To(Succeed())
	g.Expect(p.fs.Status.Chosen).To(HaveValue(Equal(v1alpha1.ChosenStatus{Copies: 2, Version: "4.57.5", BasePort: 9419, DefaultStoragePool: "ssd"})))
	g.Expect(p.fs.Spec.Clients.MountPath).To(Equal(v1alpha1.DirectoryPath("/mnt/scratch")))
	g.Expect(p.read.Spec).To(Equal(p.fs.Spec), "a patch from what was read to what is written has nothing of the spec")

	// The next pass reads what a person has changed meanwhile.
	next := &v1alpha1.FileSystem{ObjectMeta: fs.ObjectMeta, Status: *p.fs.Status.DeepCopy(), Spec: *p.asked.DeepCopy()}
	next.Spec.Version, next.Spec.StoragePools = "4.58.1", []v1alpha1.StoragePoolSpec{pool("new"), pool("ssd"), pool("hdd")}
	p = passOver(next)
	g.Expect(p.chooseOpen(t.Context())).To(Succeed())
	g.Expect(p.fs.Status.Chosen).To(HaveValue(Equal(v1alpha1.ChosenStatus{Copies: 2, BasePort: 9419, DefaultStoragePool: "ssd"})),
		"what the spec says is not chosen, and the order of pools has no meaning")
	g.Expect(p.fs.Spec.Version).To(Equal("4.58.1"))

	whole := &v1alpha1.FileSystem{ObjectMeta: fs.ObjectMeta, Spec: v1alpha1.FileSystemSpec{
		Type: v1alpha1.MooseFS, Version: "4.57.5", DefaultStoragePool: "ssd", MooseFS: &v1alpha1.MooseFSSpec{BasePort: 9500},
		StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd", Copies: 1}},
	}}
	p = passOver(whole)
	g.Expect(p.chooseOpen(t.Context())).To(Succeed())
	g.Expect(p.fs.Status.Chosen).To(BeNil())
}

func TestDataIsNotAtTheDefaultMountpoint(t *testing.T) {
	g := NewWithT(t)
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch"}, Spec: v1alpha1.FileSystemSpec{
		Type: v1alpha1.MooseFS, Nodes: &v1alpha1.NodesSpec{Names: []string{"n1"}},
		StoragePools: []v1alpha1.StoragePoolSpec{{Name: "ssd", Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/mnt/scratch/ssd"}}}},
	}}
	p := passOver(fs)
	g.Expect(p.chooseOpen(t.Context())).To(MatchError(ContainSubstring("the filesystem is mounted at /mnt/scratch, and the spec has /mnt/scratch/ssd for data")))
	fs.Status.MountPath = "/mnt/other"
	p = passOver(&v1alpha1.FileSystem{ObjectMeta: fs.ObjectMeta, Spec: p.asked, Status: fs.Status})
	g.Expect(p.chooseOpen(t.Context())).To(Succeed())
	g.Expect(p.fs.Spec.Clients.MountPath).To(Equal(v1alpha1.DirectoryPath("/mnt/other")), "the path that is on record")
}
