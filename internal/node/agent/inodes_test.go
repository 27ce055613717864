package agent

import (
	"testing"
	"testing/synctest"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestInodesOfDirectoriesAreReadAndOneThatHangsIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		released, asked := make(chan struct{}), map[string]int{}
		d := &directoryInodes{}
		d.read = func(path string) int32 {
			d.mutex.Lock()
			asked[path]++
			d.mutex.Unlock()
			switch path {
			case "/data/hangs":
				<-released
				return 10
			case "/data/unlimited":
				return 0
			}
			return 940
		}
		directories := func(names ...string) (member v1alpha1.MemberStatus) {
			for _, name := range names {
				member.Directories = append(member.Directories, v1alpha1.DirectoryStatus{Name: name})
			}
			return member
		}
		n := &v1alpha1.FileSystemNode{}
		n.Status.Members = []v1alpha1.MemberStatus{directories("/data/hangs", "/data/two"), directories("/data/one", "/data/unlimited", "/data/two")}
		for range 3 {
			g.Expect(d.of(n)).To(Equal([]v1alpha1.DirectoryInodes{
				{Name: "/data/one", UsedInodesPerMille: 940}, {Name: "/data/two", UsedInodesPerMille: 940},
			}))
		}
		g.Expect(asked).To(And(HaveKeyWithValue("/data/hangs", 1), HaveKeyWithValue("/data/one", 3)))
		close(released)
		synctest.Wait()
		g.Expect(d.of(n)).To(ContainElement(v1alpha1.DirectoryInodes{Name: "/data/hangs", UsedInodesPerMille: 10}))
	})
}
