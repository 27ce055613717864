package devices

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/plan"
)

// all returns the devices of the machine by kernel name.
func (m *machine) all() map[string]plan.Facts {
	m.Helper()
	found, problems := m.looker.All(m.Context())
	NewWithT(m).Expect(problems).To(BeEmpty())
	byName := map[string]plan.Facts{}
	for _, f := range found {
		byName[f.KernelName] = f
	}
	return byName
}

func TestAllListsWhatKeepsDataAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	found, problems := newMachine(t).looker.All(t.Context())
	g.Expect(problems).To(BeEmpty())
	var names []string
	for _, f := range found {
		names = append(names, f.KernelName)
		g.Expect(f.Found).To(BeTrue())
		g.Expect(f.Incomplete).To(BeEmpty())
	}
	g.Expect(names).To(Equal([]string{"dm-0", "dm-1", "md0", "nvme0n1", "nvme1n1", "sda", "sdb", "sdc", "sdd", "vda"}))
}

func TestTwoLooksAtTheSameNodeAreTheSame(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	first, _ := m.looker.All(t.Context())
	second, _ := m.looker.All(t.Context())
	g.Expect(second).To(Equal(first))
}

func TestTheIdentityOfADeviceIsThatOfTheKernel(t *testing.T) {
	g := NewWithT(t)
	all := newMachine(t).all()
	zero, one := int32(0), int32(1)
	for name, want := range map[string]v1alpha1.BlockDevice{
		"nvme0n1": {
			Type: "disk", WWN: "eui.0025385b71b0c4a1", Serial: "S4EWNX0R", Model: "SAMSUNG MZQL2960HCJR", Transport: "nvme",
			MediaType: v1alpha1.SSD, NUMANode: &one, SizeBytes: 1875385008 * 512,
			IDs: []string{"nvme-eui.0025385b71b0c4a1", "nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R"},
		},
		"nvme1n1": {
			Type: "disk", WWN: "uuid.0f2c1d9e-8a4b-4d0e-9d6c-1f2e3d4c5b6a", Serial: "S5A", Transport: "nvme",
			MediaType: v1alpha1.SSD, NUMANode: &zero, SizeBytes: 1 << 30,
		},
		"dm-0": {
			Type: "mpath", WWN: "0x600a0980383034614d2b4f6f31325a71", Serial: "SHJ0804a21", Model: "INF-01-00", Transport: "fc",
			MediaType: v1alpha1.HDD, NUMANode: &zero, SizeBytes: 1 << 30, IDs: []string{"wwn-0x600a0980383034614d2b4f6f31325a71"},
		},
		"sdc": {
			Type: "disk", WWN: "0x50014ee20aaaaaaa", Serial: "WD-sdc", Transport: "sata", MediaType: v1alpha1.HDD, NUMANode: &zero,
			SizeBytes: 1 << 30, IDs: []string{"wwn-0x50014ee20aaaaaaa", "ata-WDC_WD40EFRX_WD-sdc"},
			Partitions: []string{"sdc1"}, Holders: []string{"dm-1", "md0"},
		},
		"md0": {Type: "raid1", SizeBytes: 1 << 30, NUMANode: &zero, Holders: []string{"dm-1"}},
		"vda": {Type: "disk", Serial: "data-1", SizeBytes: 1 << 30},
	} {
		want.KernelName = name
		got := all[name].BlockDevice
		got.Unusable = nil
		g.Expect(got).To(Equal(want), name)
	}
	g.Expect(all["nvme0n1"].Unusable).To(BeEmpty())
	g.Expect(all["sda"].Unusable).To(ContainElement(ContainSubstring("dm-0 is made from it")))
}

func TestADeviceIsFoundByEachOfItsNames(t *testing.T) {
	for name, c := range map[string]struct{ id, kernelName string }{
		"by its link":                                 {"ata-WDC_WD40EFRX_WD-sdc", "sdc"},
		"by its WWN, as lsblk writes it":              {"0x50014ee20bbbbbbb", "sdd"},
		"by its WWN, as udev would write a link":      {"wwn-0x50014ee20bbbbbbb", "sdd"},
		"by its EUI, in capitals":                     {"eui.0025385B71B0C4A1", "nvme0n1"},
		"by its serial number":                        {"WD-sdd", "sdd"},
		"by the WWN of its paths: the multipath disk": {"0x600a0980383034614d2b4f6f31325a71", "dm-0"},
		"by the serial of its paths, the same":        {"SHJ0804a21", "dm-0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, err := newMachine(t).looker.ByID(t.Context(), v1alpha1.DeviceID(c.id))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.Found).To(BeTrue())
			g.Expect(f.KernelName).To(Equal(c.kernelName))
			g.Expect(f.Incomplete).To(BeEmpty())
			g.Expect(f.IDs).To(ContainElement(c.id), "what it was found by is a name of it")
		})
	}
}

func TestALinkToOnePathOfAMultipathDiskMeansTheDisk(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.byID("scsi-3600a0980383034614d2b4f6f31325a71", "sdb")
	f, err := m.looker.ByID(t.Context(), "scsi-3600a0980383034614d2b4f6f31325a71")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.KernelName).To(Equal("dm-0"))

	m.part("sdb", 1, "8:17")
	m.byID("scsi-3600a0980383034614d2b4f6f31325a71-part1", "sdb1")
	_, err = m.looker.ByID(t.Context(), "scsi-3600a0980383034614d2b4f6f31325a71-part1")
	g.Expect(err).To(MatchError(ContainSubstring("only one path to dm-0")), "the partition is not the whole disk")
}

func TestADeviceThatIsNotThereIsNotFound(t *testing.T) {
	for name, id := range map[string]v1alpha1.DeviceID{
		"a name that nothing has":                      "wwn-0x5000c500a1b2c3d4",
		"a link that leads nowhere, because of a pull": "ata-pulled",
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			f, err := newMachine(t).looker.ByID(t.Context(), id)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f).To(Equal(plan.Facts{}))
		})
	}
}

func TestAnIDThatCouldMeanTwoDisksIsRefusedWithTheNamesOfBoth(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *machine)
		id     v1alpha1.DeviceID
		says   []string
	}{
		"two disks with one serial": {func(m *machine) { m.file("sys/class/block/vda/serial", "WD-sdd") }, "WD-sdd",
			[]string{"2 devices have the serial number WD-sdd", "sdd (serial WD-sdd, WWN 0x50014ee20bbbbbbb)", "vda (serial WD-sdd)"}},
		"a link to one of two disks with one serial": {func(m *machine) { m.file("sys/class/block/vda/serial", "WD-sdc") }, "ata-WDC_WD40EFRX_WD-sdc",
			[]string{"2 devices have the link", "sdc (serial WD-sdc", "vda (serial WD-sdc)"}},
		"two disks with one WWN": {func(m *machine) { m.file("sys/class/block/vda/wwid", "naa.50014ee20bbbbbbb") }, "0x50014ee20bbbbbbb",
			[]string{"2 devices have the WWN 0x50014ee20bbbbbbb", "sdd (", "vda ("}},
		"a link to one of two disks with one WWN": {func(m *machine) { m.file("sys/class/block/vda/wwid", "naa.50014ee20aaaaaaa") }, "wwn-0x50014ee20aaaaaaa",
			[]string{"2 devices have the link", "sdc (", "vda ("}},
		"a link that udev's database gives to two": {func(m *machine) {
			m.file("run/udev/data/b254:0", "I:123\nS:disk/by-id/ata-WDC_WD40EFRX_WD-sdc\nE:ID_BUS=ata\n")
		}, "ata-WDC_WD40EFRX_WD-sdc", []string{"2 devices have the link", "sdc (", "vda ("}},
		"a link with the WWN of a disk that was pulled": {func(m *machine) { m.byID("wwn-0x50014ee20ccccccc", "sdd") }, "wwn-0x50014ee20ccccccc",
			[]string{"leads to sdd, which has the WWN 0x50014ee20bbbbbbb", "udevadm trigger"}},
		"a link that names what is on the disk": {func(*machine) {}, "lvm-pv-uuid-abcdef", []string{"names what is on a disk, and not the disk"}},
		"a path":                                {func(*machine) {}, "../sda", []string{"can't be the name of a device"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			c.change(m)
			f, err := m.looker.ByID(t.Context(), c.id)
			g.Expect(f.Found).To(BeFalse())
			for _, words := range c.says {
				g.Expect(err).To(MatchError(ContainSubstring(words)))
			}
		})
	}
}

func TestTheNamespacesOfOneNVMeDiskAreNotTheSameDisk(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.remove("sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0/nvme0n1/wwid")
	m.block("nvme0n2", "pci0000:80/0000:80:01.0/nvme/nvme0", "259:2", map[string]string{"nsid": "2", "device": "->../../nvme0"})
	m.listed("nvme0n2", "disk")
	f, err := m.looker.ByID(t.Context(), "nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.KernelName).To(Equal("nvme0n1"))
	_, err = m.looker.ByID(t.Context(), "S4EWNX0R")
	g.Expect(err).To(MatchError(ContainSubstring("2 devices have the serial number")))
}

func TestAnUnfinishedScanIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *machine)
		says   string
	}{
		"blkid fails":              {func(m *machine) { m.outputs["blkid vda"] = Output{Code: 4, Stderr: []byte("usage\n")} }, "can't probe vda: blkid ended with exit code 4: usage"},
		"blkid is killed":          {func(m *machine) { m.outputs["blkid vda"] = Output{Code: -1} }, "can't probe vda: signal: killed"},
		"blkid can't open it":      {func(m *machine) { m.outputs["blkid vda"] = Output{Code: 2, Stderr: []byte("error: vda: I/O error")} }, "I/O error"},
		"wipefs fails":             {func(m *machine) { m.outputs["wipefs vda"] = Output{Code: 1, Stderr: []byte("probing failed")} }, "wipefs ended with exit code 1: probing failed"},
		"wipefs complains":         {func(m *machine) { m.outputs["wipefs vda"] = Output{Stderr: []byte("warning")} }, "warning"},
		"wipefs is killed":         {func(m *machine) { m.outputs["wipefs vda"] = Output{Code: -1} }, "signal: killed"},
		"wipefs writes no JSON":    {func(m *machine) { m.outputs["wipefs vda"] = Output{Stdout: []byte("DEVICE OFFSET")} }, "wrote what is no JSON"},
		"no mounts can be read":    {func(m *machine) { m.remove("proc/1/mountinfo") }, "shows no process with mounts"},
		"a table that is no table": {func(m *machine) { m.file("proc/1/mountinfo", "nonsense\n") }, "can't read the mounts of process 1"},
		"there is no procfs":       {func(m *machine) { m.remove("proc") }, "can't list the processes of the node"},
		"swaps can't be read": {func(m *machine) {
			m.remove("proc/swaps")
			m.file("proc/swaps/x", "")
		}, "can't read which devices are swap space"},
		"the disk can't be opened": {func(m *machine) {
			m.looker.Claim = func(path, _ string) (string, error) { return "", fmt.Errorf("can't open %s", filepath.Base(path)) }
		}, "can't open vda"},
		"another disk took its name meanwhile": {func(m *machine) {
			m.looker.Claim = func(string, string) (string, error) {
				m.file("sys/class/block/vda/diskseq", "8\n")
				return "", nil
			}
		}, "vda was exchanged for another device"},
		"another disk took its id meanwhile": {func(m *machine) {
			m.looker.Claim = func(string, string) (string, error) {
				m.file("sys/class/block/vda/serial", "other")
				return "", nil
			}
		}, "vda had the id data-1 before the look, and no device has it now"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			c.change(m)
			f, err := m.looker.ByID(t.Context(), "data-1")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(f.Found).To(BeTrue())
			g.Expect(f.Incomplete).To(ContainSubstring(c.says))
			g.Expect(f.Unusable).To(ContainElement(ContainSubstring("could not be looked at completely")))
		})
	}
}

func TestWithoutAListOfDevicesThereIsNoAnswer(t *testing.T) {
	for name, out := range map[string]Output{
		"lsblk fails":          {Code: 1, Stderr: []byte("lsblk: unknown column: MOUNTPOINTS")},
		"lsblk writes no JSON": {Stdout: []byte("NAME")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			m.outputs["lsblk"] = out
			found, problems := m.looker.All(t.Context())
			g.Expect(found).To(BeEmpty())
			g.Expect(problems).To(ConsistOf(HavePrefix(Unlisted + ": ")))
			_, err := m.looker.ByID(t.Context(), "data-1")
			g.Expect(err).To(MatchError(ContainSubstring("can't list the block devices: ")))
		})
	}
	t.Run("there is no sysfs", func(t *testing.T) {
		m := newMachine(t)
		m.remove("sys")
		_, problems := m.looker.All(t.Context())
		NewWithT(t).Expect(problems).To(ConsistOf(HavePrefix(Unlisted + ": ")))
		_, err := m.looker.ByID(t.Context(), "data-1")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("needs the /sys of its node")))
	})
}

func TestSignaturesOfBothProgramsAreOneList(t *testing.T) {
	for name, c := range map[string]struct {
		wipefs string
		blkid  Output
		want   []v1alpha1.Signature
	}{
		"both find records of a log, which is one; blkid knows its UUID": {
			`[{"offset":"0x0","type":"xfs_external_log"},{"offset":"0x200","type":"xfs_external_log"},{"offset":"0x600","type":"xfs_external_log"}]`, Output{Stdout: []byte("DEVNAME=/dev/vda\nLOGUUID=aa-bb\nTYPE=xfs_external_log\nUSAGE=other\n")},
			[]v1alpha1.Signature{{Device: "vda", Type: "xfs_external_log", UUID: "aa-bb"}},
		},
		"only blkid finds something": {
			`[]`, Output{Stdout: []byte("TYPE=bcache\nUUID=aa\nLABEL=b\n")}, []v1alpha1.Signature{{Device: "vda", Type: "bcache", UUID: "aa", Label: "b"}},
		},
		"blkid finds what has no type": {`[]`, Output{Stdout: []byte("USAGE=crypto\n")}, []v1alpha1.Signature{{Device: "vda", Type: "crypto"}}},
		"blkid can't tell": {
			`[{"offset":"0x438","type":"ext4","uuid":"aa","label":"x"}]`, Output{Code: 8, Stderr: []byte("ambivalent result")},
			[]v1alpha1.Signature{{Device: "vda", Type: "ext4", Offset: "0x438", UUID: "aa", Label: "x"}, {Device: "vda", Type: Ambivalent}},
		},
		"a partition table alone": {
			`[]`, Output{Stdout: []byte("PTUUID=cc\nPTTYPE=gpt\n")}, []v1alpha1.Signature{{Device: "vda", Type: "gpt", UUID: "cc"}},
		},
		"an entry in a table is nothing on a partition": {`[]`, Output{Stdout: []byte("PART_ENTRY_SCHEME=gpt\nPART_ENTRY_NUMBER=1\n")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			m.outputs["wipefs vda"] = Output{Stdout: []byte(`{"signatures":` + c.wipefs + `}`)}
			m.outputs["blkid vda"] = c.blkid
			g.Expect(m.all()["vda"].Signatures).To(Equal(c.want))
		})
	}
}

func TestALongListOfSignaturesIsCutAndStaysOne(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	var same, other []string
	for i := range 100 {
		same = append(same, fmt.Sprintf(`{"offset":"%#x","type":"zfs_member","uuid":"1"}`, i))
		other = append(other, fmt.Sprintf(`{"offset":"0x0","type":"ext4","uuid":"%d","label":%q}`, i, strings.Repeat("é", 200)))
	}
	m.outputs["wipefs vda"] = Output{Stdout: []byte(`{"signatures":[` + strings.Join(same, ",") + `]}`)}
	m.outputs["wipefs nvme0n1"] = Output{Stdout: []byte(`{"signatures":[` + strings.Join(other, ",") + `]}`)}
	all := m.all()
	g.Expect(all["vda"].Signatures).To(HaveLen(repeats))
	g.Expect(all["nvme0n1"].Signatures).To(HaveLen(maxItems))
	g.Expect(all["nvme0n1"].Signatures[maxItems-1].Type).To(Equal("37 more signatures"))
	g.Expect(len(all["nvme0n1"].Signatures[0].Label)).To(BeNumerically("<=", 256))
	for _, sentence := range all["nvme0n1"].Unusable {
		g.Expect(len(sentence)).To(BeNumerically("<=", 512))
	}
}

func TestADeviceIsInUseIfAnySourceShowsIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *machine)
		device string
		want   []string
	}{
		"mounted in the namespace of the first process": {func(m *machine) {
			m.file("proc/1/mountinfo", "30 1 254:0 / /mnt/with\\040space rw - xfs /dev/vda rw\n")
		}, "vda", []string{"/mnt/with space"}},
		"mounted in another namespace only": {func(m *machine) {
			m.symlink("proc/77/ns/mnt", "mnt:[2]")
			m.file("proc/77/mountinfo", "30 1 254:0 / /mnt rw - xfs /dev/vda rw\n")
		}, "vda", []string{"/mnt"}},
		"a partition is mounted": {func(m *machine) {
			m.file("proc/1/mountinfo", "30 1 8:33 / /boot rw - ext4 /dev/root rw\n")
		}, "sdc", []string{"/boot"}},
		"it is the log of a mounted XFS, by a link": {func(m *machine) {
			m.file("proc/1/mountinfo", "30 1 254:0 / /mnt rw - xfs /dev/vda rw,logdev=/dev/disk/by-id/nvme-eui.0025385b71b0c4a1,noquota\n")
		}, "nvme0n1", []string{"/mnt (external log)"}},
		"it is swap space, by a name of LVM": {func(m *machine) {
			m.file("proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 1 0 -2\n/swapfile file 1 0 -3\n")
		}, "dm-1", []string{"[SWAP]"}},
		"a partition is swap space": {func(m *machine) {
			m.file("proc/swaps", "Filename Type Size Used Priority\n/dev/sdd1 partition 1 0 -2\n")
		}, "sdd", []string{"[SWAP]"}},
		"it is one of the devices of a btrfs": {func(m *machine) {
			m.file("proc/1/mountinfo", "30 1 0:50 / /data rw - btrfs /dev/nvme0n1 rw\n")
			m.file("sys/fs/btrfs/aa-bb/devices/nvme0n1", "")
			m.file("sys/fs/btrfs/aa-bb/devices/vda", "")
		}, "vda", []string{"/data"}},
		"it is one of the devices of a btrfs that nobody sees": {func(m *machine) {
			m.file("sys/fs/btrfs/aa-bb/devices/vda", "")
		}, "vda", []string{"a place that no process sees (btrfs aa-bb)"}},
		"the kernel has its XFS mounted, and nobody sees it": {func(m *machine) {
			m.file("sys/fs/xfs/vda/error/x", "")
		}, "vda", []string{"a place that no process sees (xfs)"}},
		"lsblk shows a mountpoint": {func(m *machine) {
			m.lsblk[len(m.lsblk)-1] = map[string]any{"kname": "vda", "type": "disk", "mountpoints": []any{nil, "/by/lsblk"}}
		}, "vda", []string{"/by/lsblk"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			m := newMachine(t)
			c.change(m)
			found, _ := m.looker.All(t.Context())
			g.Expect(found).To(ContainElement(And(HaveField("KernelName", c.device), HaveField("Mounts", c.want))))
		})
	}
}

func TestTextsOfAUserClaimNoDisk(t *testing.T) {
	const claim = "30 1 0:50 / /mnt rw - fuse.lustre_tgt /dev/vda rw,user_id=%s,group_id=0\n"
	for name, c := range map[string]struct {
		change func(m *machine)
		want   []string
	}{
		"a mount of root by FUSE is a server's": {func(m *machine) {
			m.file("proc/1/mountinfo", fmt.Sprintf(claim, "0"))
		}, []string{"/mnt"}},
		"a mount of a user by FUSE": {func(m *machine) {
			m.file("proc/1/mountinfo", fmt.Sprintf(claim, "1000"))
		}, nil},
		"a mount in a user namespace of others": {func(m *machine) {
			m.symlink("proc/1/ns/user", "user:[1]")
			m.symlink("proc/77/ns/user", "user:[2]")
			m.symlink("proc/77/ns/mnt", "mnt:[2]")
			m.file("proc/77/mountinfo", fmt.Sprintf(claim, "0"))
		}, nil},
		"the kernel's number of the disk in a user namespace of others": {func(m *machine) {
			m.symlink("proc/1/ns/user", "user:[1]")
			m.symlink("proc/77/ns/user", "user:[2]")
			m.symlink("proc/77/ns/mnt", "mnt:[2]")
			m.file("proc/77/mountinfo", "30 1 254:0 / /mnt rw - ext4 none rw\n")
		}, []string{"/mnt"}},
		"mounts that a process of the node shares with one of others": {func(m *machine) {
			m.symlink("proc/1/ns/user", "user:[1]")
			m.symlink("proc/77/ns/user", "user:[2]")
			m.symlink("proc/77/ns/mnt", "mnt:[2]")
			m.file("proc/77/mountinfo", fmt.Sprintf(claim, "0"))
			m.symlink("proc/78/ns/user", "user:[1]")
			m.symlink("proc/78/ns/mnt", "mnt:[2]")
			m.file("proc/78/mountinfo", fmt.Sprintf(claim, "0"))
		}, []string{"/mnt"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			c.change(m)
			NewWithT(t).Expect(m.all()["vda"].Mounts).To(Equal(c.want))
		})
	}
}

func TestALongLineOfMountsHidesNoDisk(t *testing.T) {
	m := newMachine(t)
	m.file("proc/1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/root rw\n"+
		"23 22 0:40 / /merged rw - overlay overlay rw,"+strings.Repeat("lowerdir+=/layer,", 1<<16)+"xino=off\n"+
		"24 22 254:0 / /mnt rw - xfs /dev/vda rw\n")
	all := m.all()
	NewWithT(t).Expect(all["vda"].Mounts).To(Equal([]string{"/mnt"}))
	for name, device := range all {
		NewWithT(t).Expect(device.Unusable).NotTo(ContainElement(ContainSubstring("mounts of process")), name)
	}
}

func TestADiskThatAnotherMachineHasMountedIsInUse(t *testing.T) {
	m, g := newMachine(t), NewWithT(t)
	m.outputs["blkid vda"] = Output{Stdout: []byte("TYPE=ext4\nUUID=u\nUSAGE=filesystem\n")}
	m.outputs["blkid sdc1"] = m.outputs["blkid vda"]
	m.elsewhere["vda"], m.elsewhere["sdc1"], m.elsewhere["sdd"] = "oss2 has it:", "oss3 has it:", "nobody asks a blank disk"
	g.Expect(m.all()["vda"]).To(And(HaveField("Elsewhere", "oss2 has it: /dev/vda"),
		HaveField("Unusable", ContainElement("vda is in use: oss2 has it: /dev/vda"))))
	g.Expect(m.all()["sdc"].Elsewhere).To(BeEmpty(), "what is made from its partition is in use here")
	g.Expect(m.all()["sdd"].Elsewhere).To(BeEmpty())

	// While it is mounted on this node, the mark on the disk is this node's own.
	m.file("proc/1/mountinfo", "30 1 254:0 / /mnt rw - ext4 /dev/vda rw\n")
	g.Expect(m.all()["vda"].Elsewhere).To(BeEmpty())
}

func TestAProcessThatEndsDuringTheLookIsNoProblem(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	g.Expect(os.MkdirAll(filepath.Join(m.root, "proc/99"), 0o700)).To(Succeed())
	m.symlink("proc/100/ns/mnt", "mnt:[100]") // its mountinfo no longer exists
	g.Expect(m.all()).To(HaveKey("vda"))
}

func TestALoopDeviceOverADiskIsAmongItsHolders(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	m.file("sys/class/block/loop0/loop/backing_file", "/dev/disk/by-id/nvme-eui.0025385b71b0c4a1\n")
	g.Expect(os.WriteFile(filepath.Join(m.root, "dev/nvme0n1"), nil, 0o600)).To(Succeed())
	g.Expect(m.all()["nvme0n1"].Holders).To(Equal([]string{"loop0"}))
}

func TestTheDisksBelowADevice(t *testing.T) {
	g := NewWithT(t)
	m := newMachine(t)
	g.Expect(m.looker.Lowest("dm-0")).To(Equal([]string{"sda", "sdb"}))
	g.Expect(m.looker.Lowest("dm-1")).To(Equal([]string{"sdc", "sdd"}))
	g.Expect(m.looker.Lowest("vda")).To(Equal([]string{"vda"}))
}

func TestLongTablesOfOthersHideNoDiskAndAreReadOnceTogether(t *testing.T) {
	g, m := NewWithT(t), newMachine(t)
	m.file("proc/1/mountinfo", "24 22 254:0 / /mnt rw - xfs /dev/vda rw\n")
	m.symlink("proc/1/ns/user", "user:[1]")
	long := strings.Repeat("30 1 0:50 / /"+strings.Repeat("x", 4000)+" rw - tmpfs none rw\n", mostForeign/4000)
	for _, process := range []string{"77", "78"} {
		m.symlink("proc/"+process+"/ns/user", "user:["+process+"]")
		m.symlink("proc/"+process+"/ns/mnt", "mnt:["+process+"]")
		m.file("proc/"+process+"/mountinfo", long)
	}
	all := m.all()
	g.Expect(all["vda"].Mounts).To(Equal([]string{"/mnt"}))
	for name, device := range all {
		g.Expect(device.Unusable).NotTo(ContainElement(ContainSubstring("mounts of process")), name)
	}
}
