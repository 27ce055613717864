//go:build disks

package provision_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/provision/provisiontest"
)

func TestADiskThatCameBackUnderAnotherNameAndLargerIsMountedWhenAPersonAcceptsIt(t *testing.T) {
	l := provisiontest.New(t)
	d := l.Disk("data", 64*provisiontest.Mebi)
	target := l.Target(d)
	l.Expect(l.Pass(target)).To(gomega.Succeed())
	l.ExpectProven(target, d)
	kept := filepath.Join(l.Mountpoint(target), "chunk")
	l.Expect(os.WriteFile(kept, []byte("data"), 0o600)).To(gomega.Succeed())
	l.Unmount(target)

	d.Detach()
	d.Link += "-moved"
	l.Expect(os.Truncate(d.File, 96*provisiontest.Mebi)).To(gomega.Succeed())
	d.Attach()
	l.Expect(l.Pass(target)).To(gomega.Succeed())
	ready := provisiontest.Ready(target)
	l.Expect(ready.Reason).To(gomega.Equal(v1alpha1.ReasonTargetMissing), ready.Message)
	l.Expect(target.Status.NewDevice).NotTo(gomega.BeNil(), ready.Message)
	l.Expect(target.Status.NewDevice.Device).To(gomega.Equal(v1alpha1.DeviceIdentity{ID: d.ID(), SizeBytes: 96 * provisiontest.Mebi}))

	metav1.SetMetaDataAnnotation(&target.ObjectMeta, v1alpha1.AnnotationAcceptDevice, target.Status.NewDevice.Hash)
	l.Expect(l.Pass(target)).To(gomega.Succeed())
	ready = provisiontest.Ready(target)
	l.Expect(ready.Status).To(gomega.Equal(metav1.ConditionTrue), ready.Message)
	l.Expect(target.Status.NewDevice).To(gomega.BeNil())
	l.Expect(target.Status.Provisioned.Device.ID).To(gomega.Equal(d.ID()))
	l.Expect(kept).To(gomega.BeARegularFile())
	l.Expect(l.Made).To(gomega.Equal(1), "it was formatted once")

	// With a copy of the disk beside it, the two can't be distinguished.
	l.Unmount(target)
	copied := l.Disk("copy", 96*provisiontest.Mebi)
	content, err := os.ReadFile(d.File)
	l.Expect(err).NotTo(gomega.HaveOccurred())
	copied.WriteAt(0, content)
	d.Detach()
	d.Link += "-again"
	d.Attach()
	l.Expect(l.Pass(target)).To(gomega.Succeed())
	l.Expect(provisiontest.Ready(target).Message).To(gomega.ContainSubstring("several devices hold the UUID"))
	l.Expect(target.Status.NewDevice).To(gomega.BeNil())
}
