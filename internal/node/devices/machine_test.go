package devices

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"parallelfs.dev/operator/internal/node/format"
)

// machine is a node with two sockets made of files: its sysfs, procfs, /dev and udev's database, and the output of programs.
type machine struct {
	*testing.T
	root   string
	looker Looker
	lsblk  []map[string]any
	// outputs holds the output of blkid and wipefs by program and device, such as "blkid sda". A device without an entry is blank.
	outputs map[string]Output
	// busy holds the results of opening a device exclusively.
	busy map[string]string
	// elsewhere names the other node that has a device mounted.
	elsewhere map[string]string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{T: t, root: t.TempDir(), outputs: map[string]Output{}, busy: map[string]string{}, elsewhere: map[string]string{}}
	m.looker = Looker{
		Dev: m.root + "/dev", Sys: m.root + "/sys", Proc: m.root + "/proc", Udev: m.root + "/run/udev",
		Run: m.run, Claim: m.claim, Sample: func(string) (string, error) { return "", nil }, Limit: time.Minute,
		Elsewhere: func(path string, _ format.Guarded) (string, error) { return m.elsewhere[filepath.Base(path)], nil },
	}
	m.file("proc/1/mountinfo", "22 1 8:1 / / rw - ext4 /dev/root rw\n")
	m.symlink("proc/1/ns/mnt", "mnt:[4026531841]")
	m.file("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n")

	// An NVMe controller on the second socket.
	m.file("sys/devices/pci0000:80/0000:80:01.0/numa_node", "1\n")
	m.file("sys/devices/pci0000:80/0000:80:01.0/nvme/nvme0/serial", "S4EWNX0R      \n")
	m.block("nvme0n1", "pci0000:80/0000:80:01.0/nvme/nvme0", "259:0", map[string]string{
		"wwid": "eui.0025385B71B0C4A1", "nsid": "1", "queue/rotational": "0", "device": "->../../nvme0", "size": "1875385008",
	})
	m.listed("nvme0n1", "disk", "tran", "nvme", "model", "SAMSUNG MZQL2960HCJR")
	// A disk with two controllers, which NVMe combines by itself.
	m.file("sys/devices/pci0000:00/0000:00:02.0/numa_node", "0\n")
	m.file("sys/devices/pci0000:00/0000:00:02.0/nvme/nvme1/serial", "S5A")
	m.file("sys/devices/virtual/nvme-subsystem/nvme-subsys1/serial", "S5A")
	m.symlink("sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1", "../../../pci0000:00/0000:00:02.0/nvme/nvme1")
	m.block("nvme1n1", "virtual/nvme-subsystem/nvme-subsys1", "259:1", map[string]string{
		"wwid": "uuid.0f2c1d9e-8a4b-4d0e-9d6c-1f2e3d4c5b6a", "nsid": "1", "queue/rotational": "0", "device": "->../../nvme-subsys1",
	})
	m.block("nvme1c1n1", "pci0000:00/0000:00:02.0/nvme/nvme1", "0:0", map[string]string{"hidden": "1"})
	m.listed("nvme1n1", "disk", "tran", "nvme")
	// A SAS controller on the first socket, with two paths to one disk and multipath over them.
	m.file("sys/devices/pci0000:00/0000:00:03.0/numa_node", "0\n")
	for name, number := range map[string]string{"sda": "8:0", "sdb": "8:16"} {
		m.scsi(name, number, "naa.600A0980383034614D2B4F6F31325A71", "\x00\x80\x00\x0cSHJ0804a21  ")
		m.file("sys/class/block/"+name+"/holders/dm-0", "")
		m.listed(name, "disk", "tran", "fc", "model", "INF-01-00")
	}
	m.block("dm-0", "virtual", "252:0", map[string]string{"dm/uuid": "mpath-3600a0980", "slaves/sda": "", "slaves/sdb": "", "queue/rotational": "1"})
	m.listed("dm-0", "mpath")
	// Two SATA disks with a RAID on partitions, and LVM on top of it.
	for name, number := range map[string]string{"sdc": "8:32", "sdd": "8:48"} {
		m.scsi(name, number, "t10.ATA     WDC WD40EFRX", "\x00\x80\x00\x10     WD-"+name)
		m.part(name, 1, "8:"+map[string]string{"sdc": "33", "sdd": "49"}[name])
		m.file("sys/class/block/"+name+"/"+name+"1/holders/md0", "")
		m.listed(name, "disk", "wwn", "0x50014ee20"+map[string]string{"sdc": "aaaaaaa", "sdd": "bbbbbbb"}[name], "tran", "sata")
		m.listed(name+"1", "part")
	}
	m.block("md0", "virtual", "9:0", map[string]string{"slaves/sdc1": "", "slaves/sdd1": "", "holders/dm-1": ""})
	m.listed("md0", "raid1")
	m.block("dm-1", "virtual", "252:1", map[string]string{"dm/uuid": "LVM-1", "slaves/md0": ""})
	m.listed("dm-1", "lvm")
	// A virtual disk, and devices that are no disks.
	m.block("vda", "pci0000:00/0000:00:09.0/virtio1/block", "254:0", map[string]string{"serial": "data-1", "device": "->../../../virtio1"})
	m.listed("vda", "disk")
	for name, size := range map[string]string{"loop0": "0", "ram0": "8192", "zram0": "8192", "sr0": "2097151", "sdz": "0"} {
		m.block(name, "virtual", "1:"+fmt.Sprint(len(name)), map[string]string{"size": size})
		m.listed(name, map[string]string{"sr0": "rom"}[name])
	}
	m.byID("wwn-0x600a0980383034614d2b4f6f31325a71", "dm-0")
	m.byID("nvme-SAMSUNG_MZQL2960HCJR_S4EWNX0R", "nvme0n1")
	m.byID("nvme-eui.0025385b71b0c4a1", "nvme0n1")
	m.byID("ata-WDC_WD40EFRX_WD-sdc", "sdc")
	m.byID("wwn-0x50014ee20aaaaaaa", "sdc")
	m.byID("wwn-0x50014ee20aaaaaaa-part1", "sdc1")
	m.byID("lvm-pv-uuid-abcdef", "md0")
	m.byID("ata-pulled", "sdy")
	return m
}

func (m *machine) file(path, content string) {
	m.Helper()
	g := NewWithT(m)
	path = filepath.Join(m.root, path)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	g.Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func (m *machine) symlink(path, to string) {
	m.Helper()
	g := NewWithT(m)
	path = filepath.Join(m.root, path)
	g.Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	g.Expect(os.Symlink(to, path)).To(Succeed())
}

func (m *machine) remove(path string) {
	m.Helper()
	NewWithT(m).Expect(os.RemoveAll(filepath.Join(m.root, path))).To(Succeed())
}

// block makes a device below a directory of /sys/devices. A content of "->x" is a link to x.
func (m *machine) block(name, below, number string, files map[string]string) {
	m.Helper()
	directory := filepath.Join("devices", below, name)
	if below == "virtual" {
		directory = filepath.Join("devices/virtual/block", name)
	}
	for file, content := range map[string]string{"dev": number + "\n", "size": "2097152\n", "ro": "0\n", "diskseq": "7\n"} {
		if _, own := files[file]; !own {
			m.file(filepath.Join("sys", directory, file), content)
		}
	}
	for file, content := range files {
		if to, ok := strings.CutPrefix(content, "->"); ok {
			m.symlink(filepath.Join("sys", directory, file), to)
			continue
		}
		m.file(filepath.Join("sys", directory, file), content)
	}
	m.symlink("sys/class/block/"+name, "../../"+directory)
}

func (m *machine) scsi(name, number, wwid, page string) {
	m.Helper()
	m.block(name, "pci0000:00/0000:00:03.0/host0/target0/"+name+"-unit/block", number, map[string]string{
		"device": "->../../../" + name + "-unit", "queue/rotational": "1",
	})
	unit := "sys/devices/pci0000:00/0000:00:03.0/host0/target0/" + name + "-unit/"
	m.file(unit+"wwid", wwid+"\n")
	m.file(unit+"vpd_pg80", page)
}

// part makes a partition.
func (m *machine) part(disk string, n int, number string) {
	m.Helper()
	name := fmt.Sprintf("%s%d", disk, n)
	directory, err := filepath.EvalSymlinks(filepath.Join(m.root, "sys/class/block", disk))
	NewWithT(m).Expect(err).NotTo(HaveOccurred())
	relative, err := filepath.Rel(m.root, directory)
	NewWithT(m).Expect(err).NotTo(HaveOccurred())
	for file, content := range map[string]string{"partition": fmt.Sprint(n), "dev": number, "size": "204800", "ro": "0"} {
		m.file(filepath.Join(relative, name, file), content)
	}
	m.symlink("sys/class/block/"+name, "../../"+strings.TrimPrefix(relative, "sys/")+"/"+name)
}

func (m *machine) byID(link, name string) {
	m.Helper()
	m.symlink("dev/disk/by-id/"+link, "../../"+name)
}

// listed adds a device to the output of lsblk.
func (m *machine) listed(name, kind string, pairs ...string) {
	d := map[string]any{"kname": name, "type": kind, "serial": nil, "wwn": nil, "model": nil, "tran": nil, "mountpoints": []any{nil}}
	for i := 0; i < len(pairs); i += 2 {
		d[pairs[i]] = pairs[i+1]
	}
	m.lsblk = append(m.lsblk, d)
}

// run replaces the programs of util-linux.
func (m *machine) run(_ context.Context, argv ...string) (Output, error) {
	if argv[0] == "lsblk" {
		if out, ok := m.outputs["lsblk"]; ok {
			return out, nil
		}
		out, err := json.Marshal(map[string]any{"blockdevices": m.lsblk})
		return Output{Stdout: out}, err
	}
	out, ok := m.outputs[argv[0]+" "+filepath.Base(argv[len(argv)-1])]
	switch {
	case out.Code < 0:
		return out, errors.New("signal: killed")
	case ok:
		return out, nil
	case argv[0] == "blkid":
		return Output{Code: 2}, nil
	}
	return Output{Stdout: []byte(`{"signatures":[]}`)}, nil
}

func (m *machine) claim(path, number string) (string, error) {
	if number == "" {
		return "", errors.New("no number")
	}
	return m.busy[filepath.Base(path)], nil
}
