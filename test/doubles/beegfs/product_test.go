package beegfs_test

import (
	"os"
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
	questions := beegfs.New().Questions(c.version, c.fill("{ADDRESS}:{PORT+10}"))
	var outputs [][]byte
	for _, argv := range questions.Commands() {
		line := ctl + strings.Join(argv[1:len(argv)-1], " ") // the last says where the filesystem is
		if strings.HasPrefix(c.version, "8") {
			line = "beegfs " + strings.ReplaceAll(strings.Join(argv[1:], " "), "--auth-file=/etc/parallelfs-auth/conn.auth", "--auth-file={DIR}/auth")
		}
		output, _, _ := c.runApart(line, "")
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
	read, err := beegfs.New().ReadStore(c.version, backend.StoreContent{Files: files}, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())

	said.Pools[1].Targets = append(said.Pools[1].Targets, 101)
	read, err = beegfs.New().ReadStore(c.version, backend.StoreContent{Files: files}, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(Equal([]string{"storage pool 2 (bulk) with its targets"}))
}

// The service writes each report of each server, so its files never lie still.
func TestTheDatabaseOfEightIsCopiedAsTheOperatorBacksItUpWhileItsServiceWrites(t *testing.T) {
	g := NewWithT(t)
	c := cluster8(t)
	c.daemons["mgmtd"].end(t)
	c.write("license.pem", "-----BEGIN CERTIFICATE-----\nQkVFR0ZTLURPVUJMRS1MSUNFTlNF\n-----END CERTIFICATE-----\n")
	c.start("mgmtd-licensed", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	for _, line := range []string{"pool create ssd --num-id=2", "mirror create one --node-type=storage --primary=s:101 --secondary=s:102"} {
		g.Eventually(func() string { said, _ := c.run(cli + line); return said }).WithTimeout(long).ShouldNot(ContainSubstring("Error"), line)
	}
	database := beegfs.New().StoreDatabase(c.version)
	stored := func() (map[string][]byte, backend.StoreContent) {
		files, err := store.Copy(t.Context(), c.path("store"), t.TempDir(), database, nil)
		g.Expect(err).NotTo(HaveOccurred())
		content, err := store.Content(t.Context(), files, t.TempDir(), database)
		g.Expect(err).NotTo(HaveOccurred())
		return files, content
	}
	said := c.said()
	g.Expect(said).To(And(HaveField("Targets", HaveLen(3)), HaveField("Pools", HaveLen(2)), HaveField("Mirrors", HaveLen(1)), HaveField("RootID", int32(1))))
	g.Expect(c.path("store", "mgmtd.sqlite-wal")).To(BeAnExistingFile())
	files, content := stored()
	read, err := beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())
	g.Expect(read.ID).To(MatchRegexp("^[0-9a-f]{32}$"))

	// What joins after the copy is not in it, and is in the next one.
	c.prepareTarget("target-103", 103, 1)
	g.Expect(c.daemons["storage"].end(t)).To(Equal(0))
	c.start("storage-more", storage8("target-101", "target-102", "target-103"))
	g.Eventually(func() int {
		said, _ := c.run(cli + "target list --state --output ndjson --columns reachability")
		return strings.Count(said, `{"reachability":"Online"}`)
	}).WithTimeout(long).Should(Equal(4))
	said = c.said()
	read, err = beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(ContainElement("storage target 103 of server 1"))
	_, content = stored()
	read, err = beegfs.New().ReadStore(c.version, content, said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read.Lacks).To(BeEmpty())

	// A service starts with a copy, and knows what was in it.
	c.daemons["mgmtd-licensed"].kill()
	g.Expect(os.RemoveAll(c.path("store"))).To(Succeed())
	g.Expect(os.Mkdir(c.path("store"), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(c.path("store", "mgmtd.sqlite"), files["mgmtd.sqlite"], 0o600)).To(Succeed())
	c.start("mgmtd-restored", "beegfs-mgmtd --config-file {DIR}/beegfs-mgmtd.toml")
	g.Eventually(func() string { said, _ := c.run(cli + "pool list"); return said }).WithTimeout(long).Should(ContainSubstring("s:101,s:102"))
}
