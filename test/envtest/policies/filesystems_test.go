//go:build envtest

package policies_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAFileSystemThatIsMountedOrToBeWipedIsDeletedByWhoConfirmsIt(t *testing.T) {
	const (
		mounted     = "is mounted on 3 nodes, and programs there would lose it. To delete it all the same: kubectl -n default annotate filesystem "
		unconfirmed = "has deletionPolicy Destroy, and nobody has confirmed it. To have its disks wiped, set spec.confirmDestroy to "
	)
	for name, c := range map[string]struct {
		who, clients string
		change       func(fs *v1alpha1.FileSystem)
		says         string
	}{
		"one without a status":                               {},
		"one that no node has mounted":                       {clients: "0/3"},
		"one that is mounted":                                {clients: "3/3", says: mounted},
		"one that is mounted on some nodes":                  {clients: "3/12", says: mounted},
		"one that is mounted, by who may all of filesystems": {who: "an administrator of filesystems", clients: "3/3", says: mounted},
		"one that is mounted, and whose deletion is confirmed": {clients: "3/3", change: func(fs *v1alpha1.FileSystem) {
			fs.Name, fs.Annotations = "confirmed", map[string]string{v1alpha1.AnnotationConfirmDelete: "confirmed"}
		}},
		"one that is mounted, with the confirmation of another one": {clients: "3/3", says: mounted, change: func(fs *v1alpha1.FileSystem) {
			fs.Annotations = map[string]string{v1alpha1.AnnotationConfirmDelete: "other"}
		}},
		"one whose disks are to be wiped without a confirmation": {says: unconfirmed, change: func(fs *v1alpha1.FileSystem) {
			fs.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
		}},
		"one whose disks are to be wiped, with a copied confirmation": {says: unconfirmed, change: func(fs *v1alpha1.FileSystem) {
			fs.Spec.DeletionPolicy, fs.Spec.ConfirmDestroy = v1alpha1.DeletionDestroy, "11111111-2222-3333-4444-555555555555"
		}},
		"one of a suite, by the manager":                {who: "the manager", clients: "3/3"},
		"one of a suite that is gone":                   {who: "the garbage collector", clients: "3/3"},
		"one in a namespace that is being deleted":      {who: "the namespace controller", clients: "3/3"},
		"one for all controllers of Kubernetes at once": {who: "the one user of all controllers", clients: "3/3"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			fs := mountedFileSystem()
			if c.change != nil {
				c.change(fs)
			}
			g.Expect(server.Client.Create(t.Context(), fs)).To(Succeed())
			if c.clients != "" {
				before := fs.DeepCopy()
				fs.Status.Summary = &v1alpha1.FileSystemSummary{Clients: c.clients}
				g.Expect(server.Client.Status().Patch(t.Context(), fs, client.MergeFrom(before))).To(Succeed())
			}
			who := c.who
			if who == "" {
				who = "an administrator of the cluster"
			}
			// A dry run also checks the roles, which these two don't get from the chart.
			err := user(t, who).Delete(t.Context(), fs, client.DryRunAll)
			if c.says == "" {
				if err != nil && !says(err, "cannot delete resource") {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			refused(t, err, c.says)
		})
	}
}

func TestAConfirmedWipingIsNotRefused(t *testing.T) {
	g := NewWithT(t)
	fs := mountedFileSystem()
	fs.Spec.DeletionPolicy = v1alpha1.DeletionDestroy
	g.Expect(server.Client.Create(t.Context(), fs)).To(Succeed())
	fs.Spec.ConfirmDestroy = string(fs.UID)
	g.Expect(server.Client.Update(t.Context(), fs)).To(Succeed())
	g.Expect(user(t, "an administrator of the cluster").Delete(t.Context(), fs, client.DryRunAll)).To(Succeed())
}

func mountedFileSystem() *v1alpha1.FileSystem {
	directories := func(directory v1alpha1.DirectoryPath) v1alpha1.TargetsSpec {
		return v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{directory}}
	}
	return &v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", GenerateName: "mounted-"},
		Spec: v1alpha1.FileSystemSpec{
			Type: v1alpha1.MooseFS, Version: "4.57.5",
			MetadataServers: v1alpha1.MetadataSpec{NodeSelector: v1alpha1.NodeSelector{"m": ""}, Targets: directories("/data/metadata")},
			StoragePools:    []v1alpha1.StoragePoolSpec{{Name: "ssd", NodeSelector: v1alpha1.NodeSelector{"s": ""}, Targets: directories("/data/ssd")}},
		},
	}
}
