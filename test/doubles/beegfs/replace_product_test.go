package beegfs_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	tools "parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/test/patience"
)

// fast makes a storage server send its report and check its buddies every second.
const fast = " sysUpdateTargetStatesSecs=1"

// chunk writes a chunk of a mirrored file whose last change is that old.
func (c *cluster) chunk(target, name string, age time.Duration) {
	c.t.Helper()
	c.write(target+"/buddymir/u0/"+name, name)
	when := time.Now().Add(-age)
	NewWithT(c.t).Expect(os.Chtimes(c.path(target, "buddymir/u0", name), when, when)).To(Succeed())
}

// replaces prepares a disk as the replacement of a lost one, as the operator does: with the lost disk's numbers and registration.
func (c *cluster) replaces(target string, id, node int, registration string) {
	c.t.Helper()
	NewWithT(c.t).Expect(os.RemoveAll(c.path(target))).To(Succeed())
	c.write(target+"/targetID", registration)
	c.prepareTarget(target, id, node)
}

// orders requests a full resync by the operator's own command, and checks the proof that it prints.
func (c *cluster) orders(tool string, argv []string, proof string) {
	c.t.Helper()
	said, _ := c.run(tool + strings.Join(argv, " "))
	NewWithT(c.t).Expect(regexp.MustCompile(proof).MatchString(said)).To(BeTrue(), said)
}

// isGood waits until the operator's probe lists a target as Good and online.
func (c *cluster) isGood(id int32) {
	c.t.Helper()
	NewWithT(c.t).Eventually(func(g Gomega) {
		g.Expect(c.said().Targets).To(ContainElement(And(HaveField("ID", id), HaveField("Online", true), HaveField("Consistency", "Good"))))
	}).WithTimeout(patience.Bound(90 * time.Second)).WithPolling(300 * time.Millisecond).Should(Succeed())
}

func TestALostDiskOfABuddyGroupOfSevenIsReplacedByOneThatHasEverything(t *testing.T) {
	for name, order := range map[string]struct {
		order []string
		old   bool
	}{
		"by the operator's order":                        {nil, true},
		"not by the resync that BeeGFS starts by itself": {[]string{}, false},
		"not by the order that the manual of BeeGFS has": {[]string{"--startresync", "--nodetype=storage", "--targetid=201", "--timestamp=0"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, c := NewWithT(t), newCluster(t, "7.4.6")
			if c.real {
				t.Skip("the real BeeGFS does not count chunks that no metadata server has made")
			}
			c.startManagement()
			c.prepareTarget("target-101", 101, 1)
			c.prepareTarget("target-201", 201, 2)
			c.chunk("target-101", "old", 48*time.Hour)
			c.chunk("target-201", "old", 48*time.Hour)
			c.start("storage-1", storageOne(c)+fast)
			second := c.start("storage-2", c.storageTwo()+fast)
			g.Eventually(func() int { said, _ := c.run(ctl + "--listtargets --state"); return strings.Count(said, "Online") }).
				WithTimeout(long).Should(Equal(2))
			_, code := c.run(ctl + "--addmirrorgroup --nodetype=storage --primary=101 --secondary=201 --groupid=1")
			g.Expect(code).To(BeZero())
			g.Eventually(c.path("target-101", ".lastbuddycomm")).WithTimeout(long).Should(BeAnExistingFile(), "both sides are in touch")
			registration, err := os.ReadFile(c.path("target-201", "targetID"))
			g.Expect(err).NotTo(HaveOccurred())

			second.kill()
			c.replaces("target-201", 201, 2, "")
			said, code := c.run(c.storageTwo())
			g.Expect(code).To(Equal(1), "without the registration of the lost disk, the whole server does not start")
			g.Expect(said).To(ContainSubstring("Target pre-registration at management node failed"))

			c.chunk("target-101", "new", 0)
			if order.order == nil {
				argv, proof := tools.Bare(c.version).FullResync(201, 1)
				c.orders(ctl, argv, proof)
			} else if len(order.order) > 0 {
				_, _ = c.run(ctl + strings.Join(order.order, " "))
			}
			c.replaces("target-201", 201, 2, string(registration))
			c.start("storage-2-again", c.storageTwo()+fast)
			g.Eventually(c.path("target-201", "buddymir/u0/new")).WithTimeout(long).Should(BeAnExistingFile())
			c.isGood(201)
			said, _ = c.run(ctl + "--resyncstats --nodetype=storage --mirrorgroupid=1")
			g.Expect(said).To(ContainSubstring("Job state: Completed successfully\n"))
			if order.old {
				g.Expect(c.path("target-201", "buddymir/u0/old")).To(BeAnExistingFile())
			} else {
				g.Expect(c.path("target-201", "buddymir/u0/old")).NotTo(BeAnExistingFile(), "BeeGFS calls it Good, and a file is on one side only")
			}
		})
	}
}

func TestALostDiskOfABuddyGroupOfEightIsReplacedByOneThatHasEverything(t *testing.T) {
	t.Parallel()
	g, c := NewWithT(t), licensed8(t)
	c.chunk("target-101", "old", 48*time.Hour)
	registration, err := os.ReadFile(c.path("target-102", "targetID"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(c.daemons["storage"].end(t)).To(Equal(0))
	g.Expect(os.RemoveAll(c.path("target-102"))).To(Succeed())

	// The server continues without the lost disk, and accepts the request before another disk is there.
	without := c.start("storage-without", storage8("target-101")+fast)
	group := c.said().Mirrors[0].ID
	argv, proof := tools.Bare(c.version).FullResync(102, group)
	g.Eventually(func() bool {
		said, _ := c.run(cli + strings.Join(argv, " "))
		return regexp.MustCompile(proof).MatchString(said)
	}).WithTimeout(long).Should(BeTrue())
	g.Expect(c.said().Targets).To(ContainElement(And(HaveField("ID", int32(102)), HaveField("Consistency", "Needs-resync"))))
	g.Expect(without.end(t)).To(Equal(0))
	c.replaces("target-102", 102, 1, string(registration))
	c.start("storage-again", storage8("target-101", "target-102")+fast)
	c.isGood(102)
	stats, _ := c.run(cli + fmt.Sprintf("mirror resync stats s:%d", group))
	g.Expect(stats).To(ContainSubstring("Job State: Success\n"))
	g.Expect(c.path("target-102", "buddymir/u0/old")).To(BeAnExistingFile())
}
