package outcomes

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/benchmarkrun/scope/scopetest"
)

func TestTheResultsDescribeAVolumeWithoutSecrets(t *testing.T) {
	g := NewWithT(t)
	w := scopetest.Idle()
	v := scopetest.OnVolume(w, corev1.ReadWriteMany)
	class := "fast"
	v.Claim.Spec.StorageClassName = &class
	v.Claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("100Gi")}
	v.Class = &storagev1.StorageClass{Parameters: map[string]string{
		"type": "ssd", "csi.storage.k8s.io/provisioner-secret-name": "admin", "adminPassword": "x", "url": "https://me:x@host/",
	}}
	v.PersistentVolume = &corev1.PersistentVolume{}
	v.PersistentVolume.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: "csi.example.org", FSType: "ext4", VolumeAttributes: map[string]string{
		"share": "a", "apiToken": "x", "storage.kubernetes.io/csiProvisionerIdentity": "1-2-x",
	}}
	found := Found(w, "1.0")
	found.Checked.Mounted, found.Checked.Kernel, found.Checked.CPUs = "ext4 (rw,relatime)", "6.12.41", 8
	AddSeen(&found, []string{"n1"})
	g.Expect(found.Unknown).To(Equal(UnknownOfVolume))
	g.Expect(found.Volume).To(Equal(&v1alpha1.VolumeProvenance{
		Claim: "data 0f0e0d0c-claim", StorageClass: "fast", Parameters: []string{"type=ssd", "url=(left out: it may hold a password)"},
		PersistentVolume: "pv-1", Driver: "csi.example.org", Attributes: []string{"fsType=ext4", "share=a"},
		AccessModes: "ReadWriteMany", Capacity: "100Gi", Mount: "ext4 (rw,relatime)",
	}))
	g.Expect(found.Clients).To(Equal([]v1alpha1.NodeProvenance{{Node: "n1", Kernel: "6.12.41", CPUs: 8}}))
}

func TestTheListsOfAVolumeAreBounded(t *testing.T) {
	g := NewWithT(t)
	many := map[string]string{"long": fmt.Sprintf("%0400d", 1)}
	for i := range 40 {
		many[fmt.Sprintf("name-%02d", i)] = "x"
	}
	g.Expect(pairs(many)).To(HaveLen(32))
	g.Expect(pairs(many)).To(HaveEach(Satisfy(func(text string) bool { return len(text) <= 256 })))
}
