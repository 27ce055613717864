package beegfs_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs"
	"parallelfs.dev/operator/internal/node/store"
)

// said is what the operator's probe asks a filesystem.
func (c *cluster) said() backend.State {
	c.t.Helper()
	questions := beegfs.New().Questions(c.version, c.fill("{ADDRESS}:{PORT+8}"))
	var outputs [][]byte
	for _, argv := range questions.Commands() {
		output, _, _ := c.runApart(ctl+strings.Join(argv[1:len(argv)-1], " "), "") // the last says where the filesystem is
		outputs = append(outputs, []byte(output))
	}
	state, err := questions.Parse(outputs)
	NewWithT(c.t).Expect(err).NotTo(HaveOccurred())
	return state
}

// A real service writes what it learns every 15 minutes, and at its end.
func TestTheStoreOfSevenIsReadAsTheOperatorBacksItUp(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startAll()
	_, code := c.run(ctl + "--addstoragepool --id=2 --desc=bulk --targets=201")
	g := NewWithT(t)
	g.Expect(code).To(Equal(0))
	_, code = c.run(ctl + "--addmirrorgroup --nodetype=storage --primary=101 --secondary=102 --groupid=3")
	g.Expect(code).To(Equal(0))
	said := c.said()
	g.Expect(said.Targets).NotTo(BeEmpty())
	g.Expect(said.Pools).To(ContainElement(And(HaveField("ID", int32(2)), HaveField("Targets", []int32{201}))))
	g.Expect(said.Mirrors).To(ConsistOf(HaveField("ID", int32(3))))
	if c.real {
		c.daemons["mgmtd-daemon"].end(t)
	} else {
		c.daemons["mgmtd-daemon"].kill() // with buddy groups, it takes long to end
	}
	files, err := store.Read(t.Context(), c.path("mgmtd"), []string{"*.tmp*"})
	g.Expect(err).NotTo(HaveOccurred())
	lacks, err := beegfs.New().ReadStore(c.version, files, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lacks).To(BeEmpty())

	said.Pools[1].Targets = append(said.Pools[1].Targets, 101)
	lacks, err = beegfs.New().ReadStore(c.version, files, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(lacks).To(ContainSubstring("storage pool 2 (bulk) with its targets"))
}
