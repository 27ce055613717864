package assign

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

func TestConflictsAreThoseOfOneNode(t *testing.T) {
	mine := claimsOf("mine", "n1", "/meta/mine", backend.PortRange{First: 9419, Count: 32}, "n2")
	cases := map[string]struct {
		theirs  backend.Claims
		message string
	}{
		"nothing in common":                          {theirs: claimsOf("other", "n3", "/meta/mine", backend.PortRange{First: 9419, Count: 32}, "n4")},
		"the same ports on the metadata's node":      {theirs: claimsOf("other", "n1", "/meta/other", backend.PortRange{First: 9419, Count: 32}, "n4"), message: "FileSystem storage/other uses the ports 9419 to 9450 on node n1 too"},
		"the same ports on a node of both pools":     {theirs: claimsOf("other", "n3", "/meta/other", backend.PortRange{First: 9400, Count: 32}, "n2"), message: "uses the ports 9400 to 9431 on node n2 too; set spec.mine.basePort at least 32 away from 9400"},
		"ports of one that reserves more":            {theirs: claimsOf("other", "n1", "/meta/other", backend.PortRange{First: 9360, Count: 64}), message: "set spec.mine.basePort at least 64 away from 9360"},
		"a directory inside of another's on a node":  {theirs: claimsOf("other", "n2", "/data/mine/below", backend.PortRange{First: 9500, Count: 32}, "n4"), message: "keeps data in /data/mine/below on node n2"},
		"the same directory on different nodes only": {theirs: claimsOf("other", "n3", "/data/mine", backend.PortRange{First: 9500, Count: 32}, "n4")},
		"a filesystem that has claimed nothing yet":  {theirs: backend.NewClaims(&v1alpha1.FileSystem{}, backend.PortRange{First: 9419, Count: 32}, "")},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := RefuseConflicts(backend.Input{Claims: []backend.Claims{c.theirs}}, mine)
			if c.message == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(c.message)))
			}
		})
	}
}

func TestDirectoriesAreNestedByTheirElements(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Nested("/data/a", "/data/a/")).To(BeTrue())
	g.Expect(Nested("/data/a/b", "/data/a")).To(BeTrue())
	g.Expect(Nested("/data/a", "/data/a/b")).To(BeTrue())
	g.Expect(Nested("/data/a", "/data/ab")).To(BeFalse())
}

// claimsOf returns the claims of a filesystem with metadata on a node, and a pool on others.
func claimsOf(name, metadata, directory string, ports backend.PortRange, pool ...string) backend.Claims {
	fs := v1alpha1.FileSystem{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "storage"},
		Spec: v1alpha1.FileSystemSpec{StoragePools: []v1alpha1.StoragePoolSpec{
			{Name: "ssd", Targets: v1alpha1.TargetsSpec{Directories: []v1alpha1.DirectoryPath{"/data/" + v1alpha1.DirectoryPath(name)}}},
		}},
	}
	claims := backend.NewClaims(&fs, ports, "spec."+name+".basePort")
	claims.UseMetadata(v1alpha1.MetadataRecord{Node: metadata, Directory: directory})
	claims.UsePools(&fs, append(onNodes("ssd", pool...), onNodes("removed", "n1")...))
	return claims
}
