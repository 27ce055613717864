package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestAPoolWithoutANumberOfCopiesHasThatOfItsTypeOrTheChosenOne(t *testing.T) {
	for kind, copies := range map[v1alpha1.FileSystemType]int32{v1alpha1.MooseFS: 2, v1alpha1.BeeGFS: 1, v1alpha1.Lustre: 1} {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			fs := &v1alpha1.FileSystem{Spec: v1alpha1.FileSystemSpec{Type: kind, StoragePools: []v1alpha1.StoragePoolSpec{{Name: "a"}, {Name: "b", Copies: 7}}}}
			complete := fs.Completed()
			g.Expect(complete.Spec.StoragePools).To(HaveExactElements(HaveField("Copies", copies), HaveField("Copies", int32(7))))
			g.Expect(fs.Spec.StoragePools[0].Copies).To(BeZero(), "the object itself stays as it was written")
			fs.Status.Chosen = &v1alpha1.ChosenStatus{Copies: 3}
			complete = fs.Completed()
			g.Expect(complete.Spec.StoragePools[0].Copies).To(Equal(int32(3)), "another default changes nothing that was chosen")
		})
	}
}
