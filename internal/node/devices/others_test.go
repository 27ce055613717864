package devices

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestADeviceThatAPodHasAsABlockVolumeIsInUse(t *testing.T) {
	const volume = "plugins/kubernetes.io/csi/volumeDevices/publish/pvc-1/0b9c"
	for name, change := range map[string]func(m *machine){
		"its node is mounted over a file of the kubelet": func(m *machine) {
			m.file("proc/1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/root rw\n30 22 0:6 /vda /var/lib/kubelet/"+volume+" rw shared:2 - devtmpfs udev rw\n")
		},
		"the kubelet has a link to it by its kernel name": func(m *machine) {
			m.symlink("kubelet/plugins/kubernetes.io/csi/volumeDevices/pvc-1/dev/0b9c", "/dev/vda")
		},
		"a pod's directory has a link to it by its id": func(m *machine) {
			m.byID("virtio-data-1", "vda")
			m.symlink("kubelet/pods/0b9c/volumeDevices/kubernetes.io~csi/pvc-1", "/dev/disk/by-id/virtio-data-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.looker.Kubelet = m.root + "/kubelet"
			change(m)
			NewWithT(t).Expect(m.all()["vda"].Unusable).To(ConsistOf(And(ContainSubstring("vda is in use: a pod has it at /var/lib/kubelet/"), ContainSubstring("0b9c"))))
		})
	}
}

func TestANodeOfNoDiskOverAFileIsNoUse(t *testing.T) {
	m := newMachine(t)
	m.file("proc/1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/root rw\n30 22 0:6 /null /run/x rw - devtmpfs udev rw\n31 22 0:6 / /dev rw - devtmpfs udev rw\n32 22 0:6 /vda /dev/vda rw - devtmpfs udev rw\n")
	NewWithT(t).Expect(m.all()["vda"].Unusable).To(BeEmpty())
}

func TestADiskShowsByWhichNetworkItIsReached(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.file("sys/devices/virtual/nvme-fabrics/ctl/nvme5/transport", "tcp\n")
	m.block("nvme5n1", "virtual/nvme-fabrics/ctl/nvme5", "259:9", map[string]string{"wwid": "eui.0025385B71B0C4A9", "device": "->../../nvme5"})
	m.listed("nvme5n1", "disk", "tran", "nvme")
	m.file("sys/devices/pci0000:00/0000:00:02.0/nvme/nvme1/transport", "rdma\n")
	m.file("sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0/transport", "pcie\n")
	m.block("nbd0", "virtual", "43:0", nil)
	m.listed("nbd0", "disk")
	m.block("dm-9", "virtual", "252:9", map[string]string{"slaves/nvme5n1": "", "slaves/nvme0n1": ""})
	m.listed("dm-9", "lvm")
	all := m.all()
	for name, transport := range map[string]string{
		"nvme0n1": "nvme", "nvme5n1": "nvme-tcp", "nvme1n1": "nvme-rdma", "nbd0": "nbd", "dm-9": "nvme-tcp", "dm-0": "fc", "sdc": "sata", "md0": "",
	} {
		g.Expect(all[name].Transport).To(Equal(transport), name)
	}
}
