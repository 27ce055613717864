package cli_test

import (
	"bytes"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// answers returns the recorded answers of a real node with the MGT, two MDTs and two OSTs.
func answers(t *testing.T) [][]byte {
	t.Helper()
	return [][]byte{printed(t, "dl"), printed(t, "params-health"), printed(t, "recovery-inactive"), printed(t, "params-osd"), nil, nil, nil, nil}
}

func TestANodeIsAskedForOneFilesystem(t *testing.T) {
	var asked []string
	for _, argv := range pfs.AskServer() {
		asked = append(asked, strings.Join(argv, " "))
	}
	NewWithT(t).Expect(asked).To(Equal([]string{
		"lctl dl", "lctl get_param version health_check", "lctl get_param mdt.pfs-*.recovery_status obdfilter.pfs-*.recovery_status",
		"lctl get_param osd-*.pfs-*.kbytestotal osd-*.pfs-*.kbytesfree osd-*.pfs-*.filestotal osd-*.pfs-*.filesfree", "lctl get_param lod.pfs-MDT0000-mdtlov.pools.*",
		"lctl get_param osp.pfs-OST*-osc-MDT*.max_create_count osp.pfs-OST*-osc-MDT*.active", "lctl get_param -n cpu_partition_table",
		"grep -sH  /sys/module/mdt/parameters/mds_num_cpts /sys/module/mdt/parameters/mds_rdpg_num_cpts /sys/module/ofd/parameters/oss_cpts " +
			"/sys/module/ofd/parameters/oss_io_cpts /sys/module/ost/parameters/oss_cpts /sys/module/ost/parameters/oss_io_cpts",
	}))
}

func TestANodeReportsWhatItServes(t *testing.T) {
	g := NewWithT(t)
	server, err := pfs.ParseServer(answers(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Version).To(Equal("2.17.57"))
	g.Expect(server.Health.Healthy).To(BeTrue())
	over := cli.Recovery{Status: "INACTIVE"}
	g.Expect(server.Targets).To(Equal(map[cli.Target]cli.Serving{
		{Kind: cli.MGT}: {Up: true, Healthy: true},
		mdt(0):          {Up: true, Healthy: true, Recovery: over, CapacityBytes: 1160264 << 10, UsedBytes: (1160264 - 1158392) << 10, Inodes: 838864, UsedInodes: 838864 - 838575},
		mdt(1):          {Up: true, Healthy: true, Recovery: over, CapacityBytes: 1160264 << 10, UsedBytes: (1160264 - 1158544) << 10, Inodes: 838864, UsedInodes: 838864 - 838599},
		ost(0):          {Up: true, Healthy: true, Recovery: over, CapacityBytes: 1908940 << 10, UsedBytes: (1908940 - 1895124) << 10, Inodes: 131072, UsedInodes: 131072 - 130703},
		ost(1):          {Up: true, Healthy: true, Recovery: over, CapacityBytes: 1908940 << 10, UsedBytes: (1908940 - 1891028) << 10, Inodes: 131072, UsedInodes: 131072 - 130703},
	}))
}

func TestTheNodeOfMDT0000ReportsTheOSTsOfPools(t *testing.T) {
	g := NewWithT(t)
	said := answers(t)
	said[4] = []byte("lod.pfs-MDT0000-mdtlov.pools.fast=\npfs-OST000a_UUID\npfs-OST0001_UUID\nlod.pfs-MDT0000-mdtlov.pools.none=\n")
	server, err := pfs.ParseServer(said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Pools).To(Equal(map[string][]int32{"fast": {1, 10}, "none": {}}))
	for _, wrong := range []string{"lod.pfs-MDT0001-mdtlov.pools.fast=\n", "lod.pfs-MDT0000-mdtlov.pools.fast=\nsomething\n"} {
		said[4] = []byte(wrong)
		_, err := pfs.ParseServer(said)
		g.Expect(err).To(HaveOccurred(), wrong)
	}
}

func TestANodeWithMDTsReportsOnWhichOSTsTheyCreateNoObjects(t *testing.T) {
	g := NewWithT(t)
	said := answers(t)
	said[5] = []byte("osp.pfs-OST0000-osc-MDT0000.max_create_count=20000\nosp.pfs-OST000a-osc-MDT0001.max_create_count=0\n" +
		"osp.pfs-OST0000-osc-MDT0000.active=1\nosp.pfs-OST000a-osc-MDT0001.active=1\nosp.pfs-OST000b-osc-MDT0001.active=0\n")
	server, err := pfs.ParseServer(said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Links).To(Equal(map[cli.Link]cli.State{{MDT: 1, OST: 10}: {NoObjects: true}, {MDT: 1, OST: 11}: {Closed: true}}))
	for _, wrong := range []string{"osp.pfs-MDT0000-osp-MDT0001.active=1\n", "osp.pfs-OST0000-osc-MDT0000.active=maybe\n"} {
		said[5] = []byte(wrong)
		_, err := pfs.ParseServer(said)
		g.Expect(err).To(HaveOccurred(), wrong)
	}
}

func TestTargetsOfAnotherFilesystemAreNotCounted(t *testing.T) {
	g := NewWithT(t)
	server, err := cli.Commands{FSName: "other"}.ParseServer(answers(t))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Targets).To(HaveLen(1), "the MGT serves all")
}

func TestANodeWithProblemsNamesTheTargetsThatHaveThem(t *testing.T) {
	change := func(question int, from, to string) [][]byte {
		all := answers(t)
		changed := bytes.Replace(all[question], []byte(from), []byte(to), 1)
		NewWithT(t).Expect(changed).NotTo(Equal(all[question]))
		all[question] = changed
		return all
	}
	g := NewWithT(t)
	server, err := pfs.ParseServer(change(1, "health_check=healthy", "health_check=\ndevice pfs-OST0001 reported unhealthy\nNOT HEALTHY"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Targets[ost(0)].Healthy).To(BeTrue())
	g.Expect(server.Targets[ost(1)].Healthy).To(BeFalse())

	for _, value := range []string{
		"NOT HEALTHY", "LBUG", "\nLBUG\nNOT HEALTHY", "\nLBUG\ndevice pfs-OST0001 reported unhealthy\nNOT HEALTHY",
	} {
		server, err = pfs.ParseServer(change(1, "health_check=healthy", "health_check="+value))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(server.Targets).To(HaveEach(HaveField("Healthy", false)), "which one is not healthy is not said: %q", value)
	}

	server, err = pfs.ParseServer(change(0, "UP obdfilter pfs-OST0001", "ST obdfilter pfs-OST0001"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Targets[ost(1)].Up).To(BeFalse())

	all := answers(t)
	all[2] = printed(t, "recovery-waiting") // also of an OST0002, which is being mounted meanwhile
	server, err = pfs.ParseServer(all)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Targets[mdt(0)].Recovery).To(Equal(cli.Recovery{Status: "WAITING", NotReady: "0001"}))
	g.Expect(server.Targets).NotTo(HaveKey(ost(2)))

	for name, broken := range map[string][][]byte{
		"devices that are not understood": change(0, "UP", "up"),
		"no health":                       change(1, "health_check=healthy", ""),
		"no version":                      change(1, "version=2.17.57", ""),
		"a health that is not known":      change(1, "healthy", "well"),
		"a recovery that is not known":    change(2, "INACTIVE", "RESTING"),
		"a size that is no number":        change(3, "filestotal=838864", "filestotal=many"),
	} {
		_, err := pfs.ParseServer(broken)
		g.Expect(err).To(HaveOccurred(), name)
	}
}

func TestANodeReportsTheParametersOfItsLoadedModules(t *testing.T) {
	g := NewWithT(t)
	said := answers(t)
	said[6] = []byte("0\t: 0 1\n1\t: 2 3\n")
	said[7] = []byte("/sys/module/mdt/parameters/mds_num_cpts:[1]\n/sys/module/ofd/parameters/oss_cpts:(null)\n")
	server, err := pfs.ParseServer(said)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.Partitions).To(Equal([][]int{{0, 1}, {2, 3}}))
	g.Expect(server.Modules).To(Equal(map[string]string{"mdt.mds_num_cpts": "[1]", "ofd.oss_cpts": "(null)"}))
	said[6], said[7] = []byte("something new\n"), nil
	server, err = pfs.ParseServer(said)
	g.Expect(err).NotTo(HaveOccurred(), "targets serve whatever is said of CPUs")
	g.Expect(server.Partitions).To(BeEmpty())
	g.Expect(server.Targets).NotTo(BeEmpty())
}
