package devices

import (
	"testing"

	. "github.com/onsi/gomega"
)

// unit is the directory of a SCSI disk of the machine.
func unit(name string) string {
	return "sys/devices/pci0000:00/0000:00:03.0/host0/target0/" + name + "-unit/"
}

// Designators of the page "device identification" (SPC-4, 7.8.6): NAA for the logical unit, and one for the port that a path leads to.
const (
	naaOne   = "\x01\x03\x00\x08\x60\x0a\x09\x80\x38\x30\x34\x61"
	naaTwo   = "\x01\x03\x00\x08\x60\x0a\x09\x80\x38\x30\x34\x62"
	portOne  = "\x61\x94\x00\x04\x00\x00\x00\x01"
	portTwo  = "\x61\x94\x00\x04\x00\x00\x00\x02"
	vendorID = "\x02\x01\x00\x04ABCD"
)

// page83 is that page with some designators.
func page83(designators ...string) string {
	all := ""
	for _, d := range designators {
		all += d
	}
	return "\x00\x83\x00" + string(rune(len(all))) + all
}

func TestAMultipathDeviceOverTwoDisksIsRefusedWithTheNamesOfBoth(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *machine)
		says   []string
	}{
		"their serial numbers differ": {func(m *machine) { m.file(unit("sdb")+"vpd_pg80", "\x00\x80\x00\x0cSHJ0804a22  ") },
			[]string{`sda (serial "SHJ0804a21")`, `sdb (serial "SHJ0804a22")`}},
		"their sizes differ": {func(m *machine) { m.file("sys/class/block/sdb/size", "4194304\n") },
			[]string{"sda (1073741824 bytes)", "sdb (2147483648 bytes)"}},
		"their identification pages differ": {func(m *machine) {
			m.file(unit("sda")+"vpd_pg83", page83(vendorID, naaOne, portOne))
			m.file(unit("sdb")+"vpd_pg83", page83(vendorID, naaTwo, portTwo))
		}, []string{"sda (identification 41424344 600a098038303461)", "sdb (identification 41424344 600a098038303462)"}},
		"identification pages that can't be understood differ": {func(m *machine) {
			m.file(unit("sda")+"vpd_pg83", "\x00\x83\x00\x20short")
			m.file(unit("sdb")+"vpd_pg83", "\x00\x83\x00\x20other")
		}, []string{"sda (identification ", "sdb (identification "}},
		"the kernel has two WWNs": {func(m *machine) { m.file(unit("sdb")+"wwid", "naa.600A0980383034614D2B4F6F31325A72\n") },
			[]string{"sda (WWN 0x600a0980383034614d2b4f6f31325a71)", "sdb (WWN 0x600a0980383034614d2b4f6f31325a72)"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			c.change(m)
			f, err := m.looker.ByID(t.Context(), "wwn-0x600a0980383034614d2b4f6f31325a71")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.KernelName).To(Equal("dm-0"))
			for _, words := range append(c.says, "dm-0 is a multipath device over sda (", ": these are two disks; ") {
				g.Expect(f.Unusable).To(ContainElement(ContainSubstring(words)))
				g.Expect(m.all()["dm-0"].Unusable).To(ContainElement(ContainSubstring(words)), "the inventory says so, too")
			}
		})
	}
}

func TestPathsToOneDiskAreOneDisk(t *testing.T) {
	for name, change := range map[string]func(m *machine){
		"each page names the port of its path": func(m *machine) {
			m.file(unit("sda")+"vpd_pg83", page83(vendorID, naaOne, portOne))
			m.file(unit("sdb")+"vpd_pg83", page83(naaOne, portTwo, vendorID))
		},
		"a path that is down has no size, no serial number and no page": func(m *machine) {
			m.file(unit("sda")+"vpd_pg83", page83(naaOne))
			m.file("sys/class/block/sdb/size", "0\n")
			m.remove(unit("sdb") + "vpd_pg80")
			m.remove(unit("sdb") + "wwid")
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			change(m)
			dm := m.all()["dm-0"]
			NewWithT(t).Expect(dm.Unusable).NotTo(ContainElement(ContainSubstring("two disks")))
		})
	}
}

func TestADeviceOverAMultipathDeviceOfTwoDisksIsRefusedToo(t *testing.T) {
	m := newMachine(t)
	m.file(unit("sdb")+"vpd_pg80", "\x00\x80\x00\x0cSHJ0804a22  ")
	m.block("md1", "virtual", "9:1", map[string]string{"slaves/dm-0": "", "slaves/vda": ""})
	m.listed("md1", "raid0")
	NewWithT(t).Expect(m.all()["md1"].BlockDevice).To(HaveField("Unusable", ContainElement(ContainSubstring("dm-0 is a multipath device over sda ("))))
}
