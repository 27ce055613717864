package devices

import (
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
)

func TestADiskWithoutItsLinkIsFoundByItsRecordedIdentity(t *testing.T) {
	recorded := v1alpha1.DeviceIdentity{ID: "nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R_1", Serial: "S4EWNX0R", WWN: "eui.0025385b71b0c4a1", SizeBytes: 1875385008 * 512}
	is := func(change func(*v1alpha1.DeviceIdentity)) v1alpha1.DeviceIdentity {
		want := recorded
		change(&want)
		return want
	}
	t.Run("by serial number, WWN and size", func(t *testing.T) {
		g := NewWithT(t)
		f, err := newMachine(t).looker.Recorded(t.Context(), recorded)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.KernelName).To(Equal("nvme0n1"))
		g.Expect(f.IDs).To(ContainElement(string(recorded.ID)))
		g.Expect(f.Renamed).To(ContainSubstring("no device has the name nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R_1"))
		g.Expect(f.Incomplete).To(BeEmpty())
	})
	t.Run("by serial number and size, when it has no WWN", func(t *testing.T) {
		g := NewWithT(t)
		f, err := newMachine(t).looker.Recorded(t.Context(), v1alpha1.DeviceIdentity{ID: "virtio-data-1", Serial: "data-1", SizeBytes: 1 << 30})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.KernelName).To(Equal("vda"))
	})
	t.Run("and one that still has its link is found by that", func(t *testing.T) {
		g := NewWithT(t)
		f, err := newMachine(t).looker.Recorded(t.Context(), is(func(d *v1alpha1.DeviceIdentity) { d.ID, d.Serial = "nvme-eui.0025385b71b0c4a1", "other" }))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.KernelName).To(Equal("nvme0n1"))
		g.Expect(f.Renamed).To(BeEmpty())
	})
	for name, change := range map[string]func(*v1alpha1.DeviceIdentity){
		"another serial number":  func(d *v1alpha1.DeviceIdentity) { d.Serial = "S4EWNX0S" },
		"another WWN":            func(d *v1alpha1.DeviceIdentity) { d.WWN = "eui.0025385b71b0c4a2" },
		"another size":           func(d *v1alpha1.DeviceIdentity) { d.SizeBytes += 512 },
		"no serial number":       func(d *v1alpha1.DeviceIdentity) { d.Serial = "" },
		"neither serial nor WWN": func(d *v1alpha1.DeviceIdentity) { d.Serial, d.WWN = "", "" },
	} {
		t.Run("but not when the record has "+name, func(t *testing.T) {
			g := NewWithT(t)
			f, err := newMachine(t).looker.Recorded(t.Context(), is(change))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.Found).To(BeFalse())
		})
	}
	t.Run("but not when two disks have all of it", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		m.file("sys/devices/pci0000:80/0000:80:02.0/nvme/nvme2/serial", "S4EWNX0R")
		m.block("nvme2n1", "pci0000:80/0000:80:02.0/nvme/nvme2", "259:4", map[string]string{
			"wwid": "eui.0025385B71B0C4A1", "nsid": "1", "device": "->../../nvme2", "size": "1875385008",
		})
		m.listed("nvme2n1", "disk", "tran", "nvme")
		f, err := m.looker.Recorded(t.Context(), recorded)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.Found).To(BeFalse())
	})
	t.Run("also when the name that was recorded is made of a WWN that another disk has got, too", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		m.enclosure("WD-WXsde", "WD-WXsdf")
		f, err := m.looker.Recorded(t.Context(), v1alpha1.DeviceIdentity{ID: "wwn-" + enclosureWWN, Serial: "WD-WXsde", WWN: enclosureWWN, SizeBytes: 1 << 30})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.KernelName).To(Equal("sde"))
		g.Expect(f.Incomplete).To(BeEmpty())
		g.Expect(f.Renamed).To(ContainSubstring("2 devices have"))
	})
	t.Run("also when its WWN was shared when it was chosen, and its link is gone", func(t *testing.T) {
		g := NewWithT(t)
		m := newMachine(t)
		m.enclosure("WD-WXsde", "WD-WXsdf")
		f, err := m.looker.Recorded(t.Context(), v1alpha1.DeviceIdentity{ID: "ata-WDC_OLD_NAME_WD-WXsde", Serial: "WD-WXsde", SizeBytes: 1 << 30})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(f.KernelName).To(Equal("sde"))
		g.Expect(f.Renamed).NotTo(BeEmpty())
	})
}

func TestADiskIsFoundByWhatItHolds(t *testing.T) {
	const uuid = "11111111-2222-4333-8444-555555555555"
	holds := Output{Stdout: []byte("TYPE=xfs\nUUID=" + uuid + "\nUSAGE=filesystem\n")}
	g := NewWithT(t)
	m := newMachine(t)
	f, err := m.looker.Holding(t.Context(), uuid, 1<<30)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Found).To(BeFalse())

	m.outputs["blkid vda"] = holds
	f, err = m.looker.Holding(t.Context(), uuid, 1<<30)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.KernelName).To(Equal("vda"))
	f, err = m.looker.Holding(t.Context(), uuid, 1<<30+512)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.Found).To(BeFalse(), "it is smaller than it was")

	m.outputs["blkid nvme0n1"] = holds
	_, err = m.looker.Holding(t.Context(), uuid, 1<<30)
	g.Expect(err).To(MatchError(ContainSubstring("several devices hold the UUID " + uuid + ": nvme0n1, vda")))

	m = newMachine(t)
	for _, path := range []string{"sda", "sdb", "dm-0"} {
		m.outputs["blkid "+path] = holds
	}
	f, err = m.looker.Holding(t.Context(), uuid, 1<<30)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.KernelName).To(Equal("dm-0"), "all paths to it hold what it holds")
}
