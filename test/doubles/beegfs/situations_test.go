package beegfs_test

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/test/patience"
)

// Each test here runs on the doubles and, with BEEGFS_REAL_BIN, on the real programs. It covers what can't be compared literally.

// long is enough for a server to be considered offline with an offline timeout of 30 seconds.
var long = patience.Bound(90 * time.Second)

func storageOne(c *cluster) string {
	return c.fill("beegfs-storage " + options + management +
		" storeStorageDirectory={DIR}/target-101 connStoragePortTCP={PORT+31} connStoragePortUDP={PORT+31}")
}

func targetIs(c *cluster, state string) func(g Gomega) {
	return func(g Gomega) {
		said, _ := c.run(ctl + "--listtargets --state --nodetype=storage")
		g.Expect(strings.Fields(said)).To(ContainElement(state), said)
	}
}

func TestAStorageServerThatIsKilledGoesOfflineAndComesBack(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	g := NewWithT(t)
	server := c.start("storage", storageOne(c))
	g.Eventually(targetIs(c, "Online")).WithTimeout(long).Should(Succeed())
	g.Expect(server.says()).To(ContainSubstring("0 sessions restored"))

	server.kill()
	g.Eventually(targetIs(c, "Probably-offline")).WithTimeout(long).Should(Succeed())
	g.Eventually(targetIs(c, "Offline")).WithTimeout(long).Should(Succeed())
	said, complaints, code := c.runApart(ctl+"--listtargets --nodetype=storage --spaceinfo", "")
	g.Expect(said).To(MatchRegexp(`\n +101 +0\.0GiB +0\.0GiB +0% +0\.0M +0\.0M +0% +1 *\n`))
	g.Expect(complaints).To(ContainSubstring("[ERROR from beegfs-storage "))
	g.Expect(code).To(Equal(3))

	server = c.start("storage-again", storageOne(c))
	g.Eventually(targetIs(c, "Online")).WithTimeout(long).Should(Succeed())
	g.Expect(server.end(t)).To(Equal(0))
	g.Expect(server.says()).To(ContainSubstring("All components stopped. Exiting now!"))
}

func TestASecondServerOnADirectoryIsRefused(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	c.start("storage", storageOne(c))
	g := NewWithT(t)
	g.Eventually(targetIs(c, "Online")).WithTimeout(long).Should(Succeed())
	said, code := c.run(strings.ReplaceAll(storageOne(c), c.fill("{PORT+31}"), c.fill("{PORT+33}")))
	g.Expect(code).To(Equal(1))
	g.Expect(said).To(ContainSubstring("Invalid storage directory: locking failed"))
}

func TestAPortInUseEndsTheServer(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	g := NewWithT(t)
	port, _ := strconv.Atoi(c.fill("{PORT+31}"))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf(":%d", port))
	g.Expect(err).NotTo(HaveOccurred())
	defer listener.Close()
	said, code := c.run(storageOne(c))
	g.Expect(code).To(Equal(2), said)
	g.Expect(said).To(ContainSubstring(fmt.Sprintf("TCP socket: Unable to bind to port: %d. SysErr: Address already in use", port)))
}

func TestAUDPPortInUseEndsTheServer(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	g := NewWithT(t)
	datagrams, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", c.fill(":{PORT+31}"))
	g.Expect(err).NotTo(HaveOccurred())
	defer datagrams.Close()
	said, code := c.run(storageOne(c))
	g.Expect(said).To(ContainSubstring(c.fill("UDP socket: Unable to bind to port: {PORT+31}. SysErr: Address already in use")))
	g.Expect(code).To(Equal(3))
}

func TestAServerWithAnotherSecretTriesForEver(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	g := NewWithT(t)
	server := c.start("storage", strings.Replace(storageOne(c), "/auth ", "/auth-other ", 1))
	g.Eventually(c.daemons["mgmtd-daemon"].says).WithTimeout(long).Should(ContainSubstring("Peer sent wrong authentication"))
	g.Eventually(func() int {
		return strings.Count(server.says(), "Soft disconnect") + strings.Count(server.says(), "soft disconnect")
	}).
		WithTimeout(long).Should(BeNumerically(">", 2))
	g.Expect(server.done).NotTo(BeClosed())
	said, _ := c.run(ctl + "--listtargets --nodetype=storage")
	g.Expect(said).NotTo(ContainSubstring("101"))
	g.Expect(server.end(t)).NotTo(Equal(0))
}

func TestATargetComesIntoThePoolOfItsFile(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	c.write("target-101/storagePoolID", "7\n")
	g := NewWithT(t)
	server := c.start("storage", storageOne(c))
	g.Eventually(server.says).WithTimeout(long).Should(ContainSubstring("Unknown storage pool"))
	g.Expect(server.done).NotTo(BeClosed())
	_, code := c.run(ctl + "--addstoragepool --id=7 --desc=seven")
	g.Expect(code).To(Equal(0))
	g.Eventually(func() string {
		said, _ := c.run(ctl + "--listtargets --nodetype=storage --storagepoolid=7")
		return said
	}).WithTimeout(long).Should(ContainSubstring("101"))
	g.Eventually(func() error { _, err := os.Stat(c.path("target-101/storagePoolID")); return err }).WithTimeout(long).
		Should(MatchError(os.ErrNotExist))
}

func TestANumberBelongsToOneDirectoryForEver(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	g := NewWithT(t)
	server := c.start("storage", storageOne(c))
	g.Eventually(targetIs(c, "Online")).WithTimeout(long).Should(Succeed())
	g.Expect(server.end(t)).To(Equal(0))

	// A disk that was prepared again with the number of the old one.
	c.prepareTarget("made-again", 101, 1)
	said, code := c.run(strings.ReplaceAll(storageOne(c), "target-101", "made-again"))
	g.Expect(code).To(Equal(1), said)
	g.Expect(said).To(ContainSubstring("Target pre-registration at management node failed"))
}

func TestTheCapacityPoolFollowsTheLimits(t *testing.T) {
	for pool, low := range map[string]string{"normal": "2k", "low": "900P"} {
		t.Run(pool, func(t *testing.T) {
			c := newCluster(t, "7.4.6")
			c.startManagementWith(strings.Replace(limits, "tuneStorageSpaceLowLimit=2k", "tuneStorageSpaceLowLimit="+low, 1))
			c.prepareTarget("target-101", 101, 1)
			c.start("storage", storageOne(c))
			NewWithT(t).Eventually(func() []string {
				said, _ := c.run(ctl + "--listtargets --pools --nodetype=storage")
				return strings.Fields(said)
			}).WithTimeout(long).Should(ContainElement(pool))
		})
	}
	t.Run("emergency", func(t *testing.T) {
		c := newCluster(t, "7.4.6")
		c.startManagementWith("tuneStorageDynamicPools=false tuneStorageSpaceLowLimit=900P tuneStorageSpaceEmergencyLimit=800P")
		c.prepareTarget("target-101", 101, 1)
		c.start("storage", storageOne(c))
		g := NewWithT(t)
		g.Eventually(targetIs(c, "Online")).WithTimeout(long).Should(Succeed())
		said, _ := c.run(ctl + "--listtargets --pools --nodetype=storage")
		g.Expect(strings.Fields(said)).To(ContainElement("emergency"))
	})
}

func TestANewServerIsRefusedIfTheConfigurationForbidsIt(t *testing.T) {
	c := newCluster(t, "7.4.6")
	c.startManagementWith(limits + " sysAllowNewServers=false")
	c.prepareTarget("target-101", 101, 1)
	g := NewWithT(t)
	server := c.start("storage", storageOne(c))
	g.Eventually(c.daemons["mgmtd-daemon"].says).WithTimeout(long).Should(ContainSubstring("Registration of new servers disabled"))
	g.Expect(server.done).NotTo(BeClosed())
	said, _ := c.run(ctl + "--listnodes --nodetype=storage")
	g.Expect(said).NotTo(ContainSubstring("stor-1"))
}

func TestABuddyGroupSwitchesOverWhenItsPrimaryIsOffline(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "7.4.6")
	c.startManagement()
	c.prepareTarget("target-101", 101, 1)
	c.prepareTarget("target-201", 201, 2)
	first := c.start("storage-1", storageOne(c))
	c.start("storage-2", c.storageTwo())
	g := NewWithT(t)
	targets := func() string {
		said, _ := c.run(ctl + "--listtargets --mirrorgroups --state --nodetype=storage")
		return said
	}
	g.Eventually(func() int { said, _ := c.run(ctl + "--listtargets --state"); return strings.Count(said, "Online") }).
		WithTimeout(long).Should(Equal(2))
	_, code := c.run(ctl + "--addmirrorgroup --nodetype=storage --primary=101 --secondary=201 --groupid=1")
	g.Expect(code).To(Equal(0))
	g.Expect(targets()).To(MatchRegexp(`primary +101 .*\n.*secondary +201`))

	first.kill()
	g.Eventually(targets).WithTimeout(long).Should(MatchRegexp(`primary +201 +Online +Good .*\n.*secondary +101 +Offline +Good`))
	c.start("storage-1-again", storageOne(c))
	g.Eventually(targets).WithTimeout(long).Should(MatchRegexp(`secondary +101 +Online +Good`))
}
