package moosefs

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestHowDataComesElsewhere(t *testing.T) {
	g := NewWithT(t)
	fs, target := &v1alpha1.FileSystem{}, &v1alpha1.StorageTarget{Spec: v1alpha1.StorageTargetSpec{Role: v1alpha1.RoleStorage}}
	g.Expect(New().Removal(fs, target, nil)).To(And(HaveField("Never", BeEmpty()), HaveField("Writers", BeEmpty()),
		HaveField("Waits", HavePrefix("waiting until")), HaveField("Moves", Equal("the filesystem moves the data elsewhere: "))))
	target.Spec.Role = v1alpha1.RoleMetadata
	g.Expect(New().Removal(fs, target, nil).Never).To(HavePrefix("MooseFS can't move the metadata of its master"))
}
