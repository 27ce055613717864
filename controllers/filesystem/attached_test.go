package filesystem

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

func TestAttachedVolumesAreReadWithWhatNamesTheirDisks(t *testing.T) {
	g := NewWithT(t)
	attachment := func(name, node, volume string, metadata map[string]string) *storagev1.VolumeAttachment {
		out := &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "csi.example.com", NodeName: node},
			Status:     storagev1.VolumeAttachmentStatus{AttachmentMetadata: metadata},
		}
		if volume != "" {
			out.Spec.Source.PersistentVolumeName = &volume
		}
		return out
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	volume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.com", VolumeHandle: "vol-0abc1234"}
	reads, refuses := 0, false
	c := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(volume,
		attachment("of-a-volume", "n1", "pvc-1", map[string]string{"wwn": "6000c29f", "devicePath": "/dev/sdb"}),
		attachment("of-a-volume-that-is-gone", "n1", "pvc-0", nil), attachment("inline", "n2", "", nil),
		attachment("elsewhere", "n3", "pvc-9", nil),
	).WithInterceptorFuncs(interceptor.Funcs{Get: func(
		ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption,
	) error {
		reads++
		g.Expect(key.Name).NotTo(Equal("pvc-9"), "no disk of that node can be chosen")
		if refuses {
			return errors.New("the API server does not answer")
		}
		return c.Get(ctx, key, into, options...)
	}}).Build()
	r := &Reconciler{Client: c, Reader: c}
	nodes := map[string]bool{"n1": true, "n2": true}
	want := map[string][]plan.Attachment{
		"n1": {
			{Volume: "pvc-0", Driver: "csi.example.com", Names: []string{"pvc-0"}},
			{Volume: "pvc-1", Driver: "csi.example.com", Names: []string{"/dev/sdb", "6000c29f", "pvc-1", "vol-0abc1234"}},
		},
		"n2": {{Volume: "inline", Driver: "csi.example.com"}},
	}
	g.Expect(r.attachments(t.Context(), nodes)).To(Equal(want))
	before := reads
	g.Expect(r.attachments(t.Context(), nodes)).To(Equal(want))
	g.Expect(reads).To(Equal(before+1), "only the volume that is gone is looked for again")
	refuses = true
	_, err := r.attachments(t.Context(), nodes)
	g.Expect(err).To(MatchError(ContainSubstring("read PersistentVolume pvc-0: the API server does not answer")), "no disk is chosen")
}

func TestDisksCanBeChosenOnNodesOfRolesAndOnNamedOnes(t *testing.T) {
	fs := &v1alpha1.FileSystem{}
	fs.Spec.StoragePools = []v1alpha1.StoragePoolSpec{{Targets: v1alpha1.TargetsSpec{Devices: []v1alpha1.DeviceReference{{Node: "n4"}}}}}
	NewWithT(t).Expect(nodesOf(fs, plan.TargetNodes{Management: []string{"n1"}, Metadata: []string{"n2"}, Pools: map[string][]string{"a": {"n3"}, "b": {"n1"}}})).
		To(Equal(map[string]bool{"n1": true, "n2": true, "n3": true, "n4": true}))
}
