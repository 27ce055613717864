package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/backend/lustre/cli"
)

// printed is the recorded output of a command of Lustre 2.17.57.
func printed(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "2.17.57", name+".txt"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return text
}

func mdt(index int32) cli.Target { return cli.Target{FSName: "pfs", Kind: cli.MDT, Index: index} }
func ost(index int32) cli.Target { return cli.Target{FSName: "pfs", Kind: cli.OST, Index: index} }

func TestANameIdentifiesItsTarget(t *testing.T) {
	for name, want := range map[string]cli.Target{
		"pfs-MDT0000": mdt(0), "pfs-OST00ff": ost(255), "my-fs_01-MDTffdf": {FSName: "my-fs_01", Kind: cli.MDT, Index: 65503}, "MGS": {Kind: cli.MGT},
	} {
		g := NewWithT(t)
		target, is := cli.ParseTarget(name)
		g.Expect(is).To(BeTrue(), name)
		g.Expect(target).To(Equal(want))
		g.Expect(target.String()).To(Equal(name))
	}
	for _, name := range []string{
		"", "root", "pfs", "pfs-OST", "pfs-OST1", "pfs-OST00001", "pfs-OST000G", "pfs-OST00FF", "pfs-OSTffff", "pfs:OST0000", "pfs=OST0000", "pfs-MGS0000",
		"toolongname-OST0000", "-OST0000", "pfs OST0000", "pfs-OST0000\n", "MGS1",
	} {
		_, is := cli.ParseTarget(name)
		NewWithT(t).Expect(is).To(BeFalse(), "%q", name)
	}
}

func TestParametersHaveValuesOfOneLineAndOfSeveral(t *testing.T) {
	g := NewWithT(t)
	params, err := cli.ParseParams(printed(t, "params-osp"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(params).To(HaveLen(14))
	g.Expect(params[2]).To(Equal(cli.Param{Name: "osp.pfs-OST0000-osc-MDT0000.active", Value: "1"}))
	g.Expect(params[2].Device()).To(Equal("pfs-OST0000-osc-MDT0000"))

	params, err = cli.ParseParams(printed(t, "params-live"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(params).To(HaveLen(1))
	g.Expect(params[0].Name).To(Equal("mgs.MGS.live.pfs"))
	g.Expect(params[0].Value).To(HavePrefix("fsname: pfs\nflags: 0x20     gen: 32\npfs-MDT0000\n"))
}

func TestColorsOfATerminalAreNoPartOfAValue(t *testing.T) {
	g := NewWithT(t)
	params, err := cli.ParseParams(printed(t, "params-colors"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(params).To(Equal([]cli.Param{{Name: "version", Value: "2.17.57"}, {Name: "cpu_partition_table", Value: "0\t: 0 1"}}))
	g.Expect(params[0].Device()).To(BeEmpty())
}

func TestHealthIsTheKernelsStateOfAllTargets(t *testing.T) {
	g := NewWithT(t)
	params, err := cli.ParseParams(printed(t, "params-health"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(params[1].Name).To(Equal("health_check"))
	for value, want := range map[string]cli.Health{
		params[1].Value: {Healthy: true},
		"device pfs-OST0001 reported unhealthy\nNOT HEALTHY\n": {Unhealthy: []string{"pfs-OST0001"}},
		"device pfs-OST0001 reported unhealthy\nhealthy\n":     {Unhealthy: []string{"pfs-OST0001"}},
		"LBUG\n": {Broken: true},
	} {
		health, err := cli.ParseHealth(value)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(health).To(Equal(want), value)
	}
	for _, value := range []string{"", "fine", "device pfs-OST0001 reported unhealthy"} {
		_, err := cli.ParseHealth(value)
		g.Expect(err).To(HaveOccurred(), value)
	}
}

func TestRecoveryIsOverWhenAllOfItWasOrNothingWasToBe(t *testing.T) {
	for name, want := range map[string]map[string]cli.Recovery{
		"recovery-inactive": {
			"pfs-MDT0000": {Status: "INACTIVE"}, "pfs-MDT0001": {Status: "INACTIVE"}, "pfs-OST0000": {Status: "INACTIVE"}, "pfs-OST0001": {Status: "INACTIVE"},
		},
		"recovery-waiting": {
			"pfs-MDT0000": {Status: "WAITING", NotReady: "0001"}, "pfs-MDT0001": {Status: "WAITING", NotReady: "0000"},
			"pfs-OST0000": {Status: "WAITING_FOR_CLIENTS"}, "pfs-OST0002": {Status: "WAITING_FOR_CLIENTS"},
		},
		"recovery-complete": {
			"pfs-MDT0000": {Status: "COMPLETE", Clients: 1, Expected: 1}, "pfs-MDT0001": {Status: "COMPLETE", Clients: 1, Expected: 1},
			"pfs-OST0000": {Status: "COMPLETE", Clients: 2, Expected: 2}, "pfs-OST0002": {Status: "COMPLETE", Clients: 2, Expected: 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			params, err := cli.ParseParams(printed(t, name))
			g.Expect(err).NotTo(HaveOccurred())
			found := map[string]cli.Recovery{}
			for _, p := range params {
				recovery, err := cli.ParseRecovery(p.Value)
				g.Expect(err).NotTo(HaveOccurred(), p.Name)
				g.Expect(recovery.Over()).To(Equal(name != "recovery-waiting"), p.Name)
				found[p.Device()] = recovery
			}
			g.Expect(found).To(Equal(want))
		})
	}
}

func TestARecoveryThatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, value := range []string{"", "status: DONE", "recovery_start: 1", "status COMPLETE", "status: COMPLETE\ncompleted_clients: 1", "status: COMPLETE\ncompleted_clients: x/2"} {
		_, err := cli.ParseRecovery(value)
		NewWithT(t).Expect(err).To(HaveOccurred(), value)
	}
}

func TestCPUsOfThePartitionsAreReadBack(t *testing.T) {
	g := NewWithT(t)
	params, err := cli.ParseParams(printed(t, "params-partitions"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(params[0].Name).To(Equal("cpu_partition_table"))
	g.Expect(cli.ParsePartitions(params[0].Value)).To(Equal([][]int{{0, 1}, {2, 3}}))
	for _, value := range []string{"", "1 : 2", "0 : a", "0 : 1\n0 : 2"} {
		_, err := cli.ParsePartitions(value)
		g.Expect(err).To(HaveOccurred(), value)
	}
}

func TestTheListOfDevicesShowsWhichTargetsANodeServes(t *testing.T) {
	for name, count := range map[string]int{"dl": 24, "dl-client": 35} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			devices, err := cli.ParseDevices(printed(t, name))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(devices).To(HaveLen(count))
			var serves []cli.Target
			for _, d := range devices {
				if target, is := d.Serves(); is {
					g.Expect(d.State).To(Equal("UP"))
					serves = append(serves, target)
				}
			}
			g.Expect(serves).To(ConsistOf(cli.Target{Kind: cli.MGT}, mdt(0), mdt(1), ost(0), ost(1)))
		})
	}
	g := NewWithT(t)
	g.Expect(cli.ParseDevices(nil)).To(BeEmpty(), "no module of Lustre has a device")
	g.Expect(cli.ParseDevices([]byte("  3 -- mdt pfs-MDT0000 pfs-MDT0000_UUID 1\n"))).To(ConsistOf(HaveField("State", "--")))
	_, err := cli.ParseDevices([]byte("opening /dev/obd failed: No such file or directory\n"))
	g.Expect(err).To(HaveOccurred())
}
