package backend

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestServersThatAreAwayAreNamedWhereNothingElseIsWrong(t *testing.T) {
	g := NewWithT(t)
	observation := Observation{Servers: []ServerStatus{{Name: "a.n1", Online: true}, {Name: "b.n2", Message: "it is starting"}, {Name: "c.n3"}}}
	observation.NameAway(func(i ServerStatus) bool { return i.Name == "c.n3" })
	g.Expect(observation.Problems).To(Equal([]Problem{{Reason: v1alpha1.ReasonServersMissing, Message: "servers are not online: b.n2 (it is starting)"}}))
	observation.Problems = []Problem{{Reason: v1alpha1.ReasonTargetsMissing}}
	observation.NameAway(func(ServerStatus) bool { return false })
	g.Expect(observation.Problems).To(ConsistOf(HaveField("Reason", v1alpha1.ReasonTargetsMissing)), "the cause is said already")
}

func TestTheNamesOfFileSystemNodesDoNotCollide(t *testing.T) {
	g := NewWithT(t)
	names := map[string]string{}
	long := strings.Repeat("a", 60)
	for _, of := range [][2]string{
		{"scratch", "n1"}, {"scratch", "n1.example.com"}, {"scratch", "n1.example.org"}, {"scratch", long}, {"scratch", long + "b"},
		{"a", "b-n1"}, {"a-b", "n1"}, {"scratch", strings.Repeat("a", 31) + "-x"}, {strings.Repeat("f", 63), strings.Repeat("n", 253)},
	} {
		name := FileSystemNodeName(of[0], of[1])
		g.Expect(validation.IsDNS1123Subdomain(name)).To(BeEmpty(), name)
		g.Expect(name).To(MatchRegexp("^" + of[0] + "-[a-z0-9-]*[a-z0-9]-[0-9a-f]{16}$"))
		g.Expect(names).NotTo(HaveKey(name))
		names[name] = of[0] + " " + of[1]
	}
	g.Expect(FileSystemNodeName("scratch", "n1")).To(Equal("scratch-n1-331ac9316742474d"), "a name is for ever")
}

func TestSentencesStayReadable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(List(nil)).To(BeEmpty())
	g.Expect(List([]string{"a", "b"})).To(Equal("a, b"))
	g.Expect(List([]string{strings.Repeat("ä", 400), "b"})).To(Equal(strings.Repeat("ä", 400)+" and 1 more"), "the first item may say what to do")
	g.Expect(List([]string{strings.Repeat("ä", 190), strings.Repeat("b", 190), "c"})).To(Equal(strings.Repeat("ä", 190) + " and 2 more"))
	g.Expect(List(strings.Split("abcdefghij", ""))).To(Equal("a, b, c and 7 more"))
	g.Expect(Shorten(strings.Repeat("ä", 501))).To(Equal(strings.Repeat("ä", 500) + "..."))
	g.Expect(Coarse(1234567, 1000000)).To(BeEquivalentTo(1234000))
	g.Expect(Coarse(7, 100)).To(BeEquivalentTo(7))
	g.Expect(Ratio(3, 4)).To(Equal("3/4"))
}

// onNodes returns FileSystemNodes with a server of a pool each.
func onNodes(pool string, nodes ...string) []v1alpha1.FileSystemNode {
	var out []v1alpha1.FileSystemNode
	for _, node := range nodes {
		out = append(out, v1alpha1.FileSystemNode{Spec: v1alpha1.FileSystemNodeSpec{Node: node, Members: []v1alpha1.NodeMember{
			{Name: "storage-" + pool, Role: v1alpha1.RoleStorage, StoragePool: pool},
		}}})
	}
	return out
}

func filesystem() *v1alpha1.FileSystem {
	return &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Name: "scratch", Namespace: "storage", UID: "1-1"}}
}
