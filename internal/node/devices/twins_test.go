package devices

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

// enclosureWWN is the WWN that an enclosure gives to each of its disks.
const enclosureWWN = "0x5000000000000001"

// enclosure adds two blank disks with one WWN: sde and sdf. All disks of the enclosure claim the same links, and udev makes them for the
// last one.
func (m *machine) enclosure(serialE, serialF string) {
	m.Helper()
	for name, c := range map[string]struct{ number, serial string }{"sde": {"8:64", serialE}, "sdf": {"8:80", serialF}} {
		m.scsi(name, c.number, "naa.5000000000000001", "\x00\x80\x00"+string(rune(len(c.serial)))+c.serial)
		m.listed(name, "disk", "tran", "sas", "model", "WDC WD20EFPX")
		if c.serial == "WD-WX"+name {
			m.byID("ata-WDC_WD20EFPX-68C4TN0_"+c.serial, name)
		}
		m.file("run/udev/data/b"+c.number, "S:disk/by-id/wwn-"+enclosureWWN+"\nS:disk/by-id/scsi-35000000000000001\n")
	}
	m.byID("wwn-"+enclosureWWN, "sdf")
	m.byID("scsi-35000000000000001", "sdf")
}

func TestDisksWithOneWWNAndTwoSerialNumbersAreTwoDisks(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.enclosure("WD-WXsde", "WD-WXsdf")
	all := m.all()
	for name, other := range map[string]string{"sde": "sdf", "sdf": "sde"} {
		link := v1alpha1.DeviceID("ata-WDC_WD20EFPX-68C4TN0_WD-WX" + name)
		g.Expect(all[name].BlockDevice).To(And(HaveField("WWN", ""), HaveField("SharedWWN", enclosureWWN), HaveField("Serial", "WD-WX"+name),
			HaveField("IDs", []string{string(link)}), HaveField("Unusable", BeEmpty()),
			HaveField("Remarks", ConsistOf("its WWN "+enclosureWWN+" is that of "+other+" too, which has another serial number, so it is not used as a name"))))
		for _, id := range []v1alpha1.DeviceID{link, v1alpha1.DeviceID("WD-WX" + name)} {
			f, err := m.looker.ByID(t.Context(), id)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.KernelName).To(Equal(name))
			g.Expect(f.Unusable).To(BeEmpty())
		}
	}
	for _, id := range []v1alpha1.DeviceID{enclosureWWN, "wwn-" + enclosureWWN, "scsi-35000000000000001"} {
		_, err := m.looker.ByID(t.Context(), id)
		g.Expect(err).To(MatchError(And(ContainSubstring("2 devices have "), ContainSubstring("the WWN 0x5000000000000001: sde ("))), string(id))
		g.Expect(err).To(MatchError(ContainSubstring("Use an id that only one of them has")), string(id))
	}
}

func TestDisksWithOneEUIAndTwoSerialNumbersAreTwoDisks(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.file("sys/devices/pci0000:80/0000:80:02.0/nvme/nvme2/serial", "S4EWNX0S")
	m.block("nvme2n1", "pci0000:80/0000:80:02.0/nvme/nvme2", "259:4", map[string]string{
		"wwid": "eui.0025385B71B0C4A1", "nsid": "1", "device": "->../../nvme2",
	})
	m.listed("nvme2n1", "disk", "tran", "nvme")
	g.Expect(m.all()["nvme0n1"].IDs).To(Equal([]string{"nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R"}))
	f, err := m.looker.ByID(t.Context(), "nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.KernelName).To(Equal("nvme0n1"))
}

func TestAPlaceholderIsNoNameEvenOfTheOnlyDiskThatHasIt(t *testing.T) {
	for wwid, wwn := range map[string]string{
		"naa.0000000000000000": "0x0000000000000000", "naa.FFFFFFFFFFFFFFFF": "0xffffffffffffffff", "naa.5000000000000000": "0x5000000000000000",
		"eui.00000000000000000000000000000000": "eui.00000000000000000000000000000000", "eui.ffffffffffffffff": "eui.ffffffffffffffff",
	} {
		t.Run(wwid, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			m.scsi("sde", "8:64", wwid, "\x00\x80\x00\x04SN-E")
			m.listed("sde", "disk", "tran", "sas", "model", "WDC")
			m.byID("ata-WDC_SN-E", "sde")
			if strings.HasPrefix(wwn, "0x") {
				m.byID("wwn-"+wwn, "sde")
			} else {
				m.byID("nvme-"+wwn, "sde")
			}
			g.Expect(m.all()["sde"].BlockDevice).To(And(HaveField("WWN", ""), HaveField("SharedWWN", wwn), HaveField("Serial", "SN-E"),
				HaveField("IDs", ConsistOf("ata-WDC_SN-E")), HaveField("Unusable", BeEmpty()),
				HaveField("Remarks", ConsistOf("its WWN "+wwn+" is a placeholder, which any disk may have, so it is not used as a name"))))

			// A second disk without a serial number is not taken for the first one.
			m.scsi("sdf", "8:80", wwid, "")
			m.listed("sdf", "disk", "tran", "sas", "model", "WDC")
			f, err := m.looker.ByID(t.Context(), "ata-WDC_SN-E")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.KernelName).To(Equal("sde"))
		})
	}
}

func TestDisksWithOneWWNAreOneDiskWhileTheirSerialNumbersDoNotDiffer(t *testing.T) {
	for name, serials := range map[string][2]string{
		"they have one serial number": {"WD-WXsde", "WD-WXsde"},
		"one of them says none":       {"WD-WXsde", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			m.enclosure(serials[0], serials[1])
			g.Expect(m.all()["sde"].BlockDevice).To(And(HaveField("WWN", enclosureWWN), HaveField("SharedWWN", "")))
			_, err := m.looker.ByID(t.Context(), "ata-WDC_WD20EFPX-68C4TN0_WD-WXsde")
			g.Expect(err).To(MatchError(ContainSubstring("2 devices have")))
		})
	}
}

func TestALinkThatSeveralDisksClaimNamesNone(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.byID("nvme-SAMSUNG_MZQL2960HCJR", "nvme0n1")
	m.file("run/udev/data/b259:1", "S:disk/by-id/nvme-SAMSUNG_MZQL2960HCJR\n")
	g.Expect(m.all()["nvme0n1"].IDs).To(Equal([]string{"nvme-eui.0025385b71b0c4a1", "nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R"}))

	// All paths to a multipath disk claim its links.
	for _, number := range []string{"8:0", "8:16"} {
		m.file("run/udev/data/b"+number, "S:disk/by-id/wwn-0x600a0980383034614d2b4f6f31325a71\n")
	}
	g.Expect(m.all()["dm-0"].IDs).To(Equal([]string{"wwn-0x600a0980383034614d2b4f6f31325a71"}))
}
