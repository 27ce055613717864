package backend

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestADecommissionedNodeIsLeftOutUntilItReturnsAndItsServersStayLeftOut(t *testing.T) {
	g := NewWithT(t)
	in := Input{
		FileSystem: filesystem(), FileSystemNodes: onNodes("ssd", "n1", "n2"), Nodes: []Node{{Name: "n1", IP: "10.0.0.1", Ready: true}, {Name: "n2", IP: "10.0.0.2"}},
		Pods: []Pod{{Node: "n1", StoragePool: "ssd"}, {Node: "n2", StoragePool: "ssd"}, {Node: "n2", Component: "client"}},
	}
	in.FileSystem.Status.StoragePools = []v1alpha1.StoragePoolStatus{{Name: "ssd"}}
	g.Expect(in.Remaining()).To(Equal(in), "nothing was given up")
	in.FileSystemNodes[1].Spec.GivenUp = &v1alpha1.NodeGivenUp{}
	Retire(&in.FileSystemNodes[1], true)
	g.Expect(in.GaveUp("n2")).To(BeTrue())
	g.Expect(in.GaveUp("n1")).To(BeFalse())
	g.Expect(in.Given()).To(HaveExactElements(HaveField("GivenUp", false), And(HaveField("GivenUp", true), HaveField("Retired", true))))
	pool, _ := in.Pool("ssd")
	g.Expect(pool.Nodes).To(HaveExactElements("n1"))
	left := in.Remaining()
	g.Expect(left.Nodes).To(HaveExactElements(HaveField("Name", "n1")))
	g.Expect(left.Pods).To(HaveExactElements(HaveField("Node", "n1")))
	_, there := left.Node("n2")
	g.Expect(there).To(BeFalse())

	in.Nodes = []Node{{Name: "n1", IP: "10.0.0.1", Ready: true}, {Name: "n2", IP: "10.0.0.2", Ready: true}}
	back := in.Remaining()
	g.Expect(back.Nodes).To(HaveLen(2), "its client mounts again")
	g.Expect(back.Pods).To(HaveExactElements(HaveField("Node", "n1"), HaveField("Component", "client")))
}
