//go:build vm && lustre

package vm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/ldiskfs"
)

const (
	// shared is the serial of the disk that both machines have, and sharedID its name on each.
	shared, sharedID = "PFSVM-S", "nvme-eui.525400a0000000f1"
	sharedPath       = "/dev/disk/by-id/" + sharedID
	sharedSize       = 1 << 30
	// there is where a target is mounted on either machine.
	there = "/mnt/target"
)

// paired is one of two machines.
type paired struct {
	*machine
	nid string
}

// pair starts two machines on one network, which both have the shared disk, and brings LNet up on each.
func pair(t *testing.T) (one, two paired) {
	t.Helper()
	directory := t.TempDir()
	disk := diskFile(directory, shared)
	sparse(t, disk, sharedSize)
	// The network is a multicast group that only this host receives, with a port that belongs to this run.
	group := fmt.Sprintf("socket,id=net,mcast=230.0.0.1:%d,localaddr=127.0.0.1", 20000+os.Getpid()%20000)
	start := func(number int) paired {
		h := lustreServer
		h.more = h.more[:1]
		h.devices = []string{
			"-netdev", group, "-device", fmt.Sprintf("virtio-net-pci,bus=pcie.0,netdev=net,mac=52:54:00:00:00:%02d", number),
			// The data that one machine writes must not be cached by the other.
			"-drive", "if=none,id=shared,format=raw,cache=none,file.locking=off,file=" + disk,
			"-device", "nvme,bus=pcie.0,id=nvmeshared,serial=" + shared, "-device", "nvme-ns,bus=nvmeshared,drive=shared,eui64=0x525400a0000000f1,share-rw=on",
		}
		own := filepath.Join(directory, fmt.Sprint(number))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		m := paired{h.boot(t, own), fmt.Sprintf("192.168.77.%d@tcp", number)}
		m.sh(t, fmt.Sprintf("hostname oss%d; ip link set lo up; modprobe virtio_net; udevadm settle; "+
			"i=$(basename $(dirname $(grep -lv 00:00:00:00 /sys/class/net/*/address))); ip addr add 192.168.77.%[1]d/24 dev $i; ip link set $i up; "+
			"mkdir -p /etc/modprobe.d %s; echo \"options lnet networks=tcp($i)\" > /etc/modprobe.d/lustre.conf; modprobe lustre", number, there))
		return m
	}
	return start(1), start(2)
}

// made formats a target with the operator's command, for two nodes that may serve it.
func (m paired) made(t *testing.T, device string, service ldiskfs.Service) {
	t.Helper()
	wanted := ldiskfs.New{Service: service, Mark: "pair", UUID: "4a9ee1e2-bd33-4b75-be9a-1a68b6ea9309", Device: device}
	NewWithT(t).Expect(wanted.Problems()).To(BeEmpty())
	m.run(t, wanted.Make()...)
}

// mount mounts the shared disk, and returns the exit code and the output.
func (m paired) mount(t *testing.T) (code int, said string) {
	t.Helper()
	code, stdout, stderr := m.try(t, "", "mount", "-t", "lustre_tgt", sharedPath, there)
	return code, stdout + stderr
}

// kill takes a machine's power away.
func (m paired) kill(t *testing.T) {
	t.Helper()
	if err := m.command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-m.ended
}

// TestLustrePair shows how a target that two machines reach behaves: the disk records which of them has it mounted, and the other one
// refuses to mount it. test/vmnode shows that the operator moves a target between two nodes (docs/adr/0096).
func TestLustrePair(t *testing.T) {
	one, two := pair(t)
	g := NewWithT(t)
	two.made(t, "/dev/disk/by-id/virtio-disk1", ldiskfs.Service{MGS: true, Kind: ldiskfs.MDT, FSName: "pfs"})
	two.sh(t, "mkdir -p /mnt/mdt /mnt/client; mount -t lustre_tgt /dev/disk/by-id/virtio-disk1 /mnt/mdt")
	one.made(t, sharedPath, ldiskfs.Service{
		Kind: ldiskfs.OST, FSName: "pfs", MGSNodes: []ldiskfs.Node{ldiskfs.Node(two.nid)},
		ServiceNodes: []ldiskfs.Node{ldiskfs.Node(one.nid), ldiskfs.Node(two.nid)},
	})
	g.Expect(one.run(t, "dumpe2fs", "-h", sharedPath)).To(MatchRegexp(`features:.* mmp`))
	g.Expect(bySerial(t, inventory(t, two.machine), shared).Unusable).NotTo(ContainElement(ContainSubstring("the machine")), "nobody has mounted it yet")

	code, said := one.mount(t)
	g.Expect(code).To(BeZero(), said)
	two.sh(t, "mount -t lustre "+two.nid+":/pfs /mnt/client; echo thesis > /mnt/client/thesis.tex; sync")

	t.Run("the inventory of the other node shows who has it mounted", func(t *testing.T) {
		device := bySerial(t, inventory(t, two.machine), shared)
		g := NewWithT(t)
		g.Expect(device.Mounts).To(BeEmpty(), "nothing else on this machine shows it")
		g.Expect(device.Unusable).To(ContainElement(ContainSubstring(`the machine "oss1" has it mounted`)))
	})
	t.Run("the other makes no target of it, also when a person approves that", func(t *testing.T) {
		g := NewWithT(t)
		target := named(t, inventory(t, two.machine), shared, v1alpha1.FormatApproved)
		result := two.pass(t, target)
		for range 2 {
			g.Expect(result.Error).To(BeEmpty())
			g.Expect(result.ready()).To(HaveField("Reason", v1alpha1.ReasonDeviceRefused), result.ready().Message)
			g.Expect(result.ready().Message).To(ContainSubstring(`the machine "oss1" has it mounted`))
			target = result.Target
			target.Spec.ApprovedPlan = target.Status.Plan.Hash
			result = two.pass(t, target)
		}
	})
	t.Run("the kernel of the other refuses to mount it", func(t *testing.T) {
		g := NewWithT(t)
		code, said := two.mount(t)
		t.Logf("exit code %d: %s", code, said)
		g.Expect(code).NotTo(BeZero())
		g.Expect(two.sh(t, "dmesg")).To(ContainSubstring("last update node: oss1"))
		g.Expect(one.sh(t, "grep "+there+" /proc/mounts")).NotTo(BeEmpty())
	})
	t.Run("a file is there when it was unmounted on the one and mounted on the other", func(t *testing.T) {
		g := NewWithT(t)
		one.run(t, "umount", there)
		g.Expect(bySerial(t, inventory(t, two.machine), shared).Unusable).NotTo(ContainElement(ContainSubstring("the machine")))
		code, said := two.mount(t)
		g.Expect(code).To(BeZero(), said)
		g.Expect(two.sh(t, "echo 3 > /proc/sys/vm/drop_caches; cat /mnt/client/thesis.tex")).To(Equal("thesis\n"))
		g.Expect(bySerial(t, inventory(t, one.machine), shared).Unusable).To(ContainElement(ContainSubstring(`the machine "oss2" has it mounted`)))
	})
	t.Run("it is mounted where its machine has lost its power, when nothing is written there any more", func(t *testing.T) {
		g := NewWithT(t)
		two.run(t, "umount", there)
		code, said := one.mount(t)
		g.Expect(code).To(BeZero(), said)
		one.kill(t)
		g.Expect(bySerial(t, inventory(t, two.machine), shared).Unusable).To(ContainElement(ContainSubstring(`the machine "oss1" has it mounted, as`)),
			"the disk can't tell a machine that is off from one that is slow")
		code, said = two.mount(t)
		g.Expect(code).To(BeZero(), said)
		g.Expect(two.sh(t, "cat /mnt/client/thesis.tex")).To(Equal("thesis\n"))
	})
}
