package filesystem

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/controllers/views"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/disruption"
)

func TestAPersonWhoHasAllowedAnAbsenceHasNotAllowedItWithoutAProvenCopy(t *testing.T) {
	g := NewWithT(t)
	n, node := &v1alpha1.FileSystemNode{ObjectMeta: metav1.ObjectMeta{UID: "1"}}, backend.Node{Name: "n1", BootID: "boot"}
	const proven, unproven = "", "a copy of the metadata is proven"
	g.Expect(allows(n, node, proven)).To(BeFalse())
	g.Expect(allows(n, node, unproven)).To(BeFalse())
	n.Annotations = map[string]string{v1alpha1.AnnotationAllowMaintenance: allowWord(n, node, proven)}
	g.Expect(allows(n, node, proven)).To(BeTrue())
	g.Expect(allows(n, node, unproven)).To(BeFalse())
	n.Annotations[v1alpha1.AnnotationAllowMaintenance] = allowWord(n, node, unproven)
	g.Expect(allows(n, node, unproven)).To(BeTrue())
	g.Expect(allows(n, node, proven)).To(BeTrue(), "who goes without a copy also goes with one")
	node.BootID = "another"
	g.Expect(allows(n, node, proven)).To(BeFalse(), "it is valid until the node restarts")
}

func TestANodeThatIsCordonedAgainAtOnceLeavesOthersATurn(t *testing.T) {
	g := NewWithT(t)
	since := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	clock := clocktesting.NewFakePassiveClock(since.Add(40 * time.Minute))
	fs := &v1alpha1.FileSystem{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch", UID: "1"}}
	ended := metav1.NewTime(clock.Now())
	fs.Status.Maintenance = []v1alpha1.NodeMaintenance{{Node: "n1", Since: metav1.NewTime(since), Ended: &ended}}
	node := func(name string) v1alpha1.FileSystemNode {
		return v1alpha1.FileSystemNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: "scratch-" + name},
			Spec:       v1alpha1.FileSystemNodeSpec{Node: name, Members: []v1alpha1.NodeMember{{Name: "storage"}}},
		}
	}
	p := &pass{
		Reconciler: &Reconciler{Clock: clock, Order: clock}, fs: fs, read: fs.DeepCopy(),
		in: backend.Input{
			FileSystem: fs, FileSystemNodes: []v1alpha1.FileSystemNode{node("n1"), node("n2")},
			Nodes: []backend.Node{{Name: "n1", IP: "10.0.0.1", Ready: true, Cordoned: true}, {Name: "n2", IP: "10.0.0.2", Ready: true, Cordoned: true}},
		},
	}
	p.in, p.vacant, p.maintained = p.in.Indexed(), map[string]bool{}, map[string]views.Maintenance{}
	p.goOnWithMaintenance()
	p.fs.Status.Maintenance = nil // the maintenance has ended
	candidates := p.candidates(p.in)
	g.Expect(candidates).To(HaveLen(2))
	g.Expect(candidates[0].Turn).To(Equal(since.Add(80 * time.Minute)))
	g.Expect(candidates[1].Turn).To(BeZero(), "it was not away")
	maintenance := candidates[0].sayWaits(disruption.Leaving([]disruption.Leave{candidates[0].Leave}, nil, disruption.World{Answered: true}, clock.Now())[0])
	g.Expect(maintenance.Message).To(And(ContainSubstring("it may be away when it is 2026-05-01T13:20:00Z: n1 has already been away"),
		ContainSubstring("kubectl -n storage annotate --overwrite filesystemnode scratch-n1 ")))
}
