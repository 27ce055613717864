package devices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/procfs"
)

// class returns the directory of a block device, disk or partition, in sysfs (kernel Documentation/ABI/stable/sysfs-block). In kernel
// names, sysfs has an exclamation mark instead of the slash in the path of the device node.
func (l Looker) class(name string, path ...string) string {
	return filepath.Join(append([]string{l.Sys, "class/block", name}, path...)...)
}

// attribute returns the content of a file in sysfs without the line feed. It is empty if the file does not exist.
func (l Looker) attribute(name string, path ...string) string { return value(l.class(name, path...)) }

func value(path string) string {
	content, err := procfs.Read(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(content))
}

// entries returns the sorted names in a directory, or none if it does not exist.
func entries(directory string) []string {
	found, err := procfs.List(directory)
	if err != nil {
		return nil
	}
	names := make([]string, len(found))
	for i, e := range found {
		names[i] = e.Name()
	}
	return names
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// number returns the device number, "major:minor". It is empty if there is no such device.
func (l Looker) number(name string) string {
	if name == "" {
		return ""
	}
	return l.attribute(name, "dev")
}

// sequence returns a number that changes when another disk gets the name (diskseq, Linux 5.15 and later).
func (l Looker) sequence(name string) string {
	if parent := l.parent(name); parent != "" {
		name = parent
	}
	return l.attribute(name, "diskseq")
}

// nothing matches the kernel names of devices that never keep data (Documentation/admin-guide/devices.txt).
var nothing = regexp.MustCompile(`^(ram|zram|sr|fd|mtdblock)[0-9]+$`)

// wholeDevices returns the kernel names of the devices that All lists.
func (v *view) wholeDevices() ([]string, error) {
	directory := filepath.Join(v.Sys, "class/block")
	found, err := procfs.List(directory)
	if err != nil {
		return nil, fmt.Errorf("can't list the block devices: %w; the container needs the /sys of its node", err)
	}
	var whole []string
	for _, entry := range found {
		name := entry.Name()
		size, err := v.size(name)
		switch kind := v.listed[name].Type; {
		case nothing.MatchString(name), kind == "rom", v.parent(name) != "", v.attribute(name, "hidden") == "1":
			continue
		case err == nil && size == 0:
			continue
		case strings.HasPrefix(name, "loop") && !exists(v.node(name)):
			// In a cluster whose nodes are containers, each container has device nodes for its own loop devices only, but sysfs shows all.
			continue
		}
		whole = append(whole, name)
	}
	slices.SortFunc(whole, naturally)
	return whole, nil
}

// size returns the size in bytes. Sectors in sysfs have 512 bytes, whatever the disk's sector size is.
func (l Looker) size(name string) (int64, error) {
	sectors, err := strconv.ParseInt(l.attribute(name, "size"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("can't read the size of %s: %w", name, err)
	}
	return sectors * 512, nil
}

// parent returns the disk of a partition. It is empty for a whole device. kpartx(8) creates partitions of multipath devices as
// device-mapper devices.
func (l Looker) parent(name string) string {
	if strings.HasPrefix(l.attribute(name, "dm/uuid"), "part") {
		if below := entries(l.class(name, "slaves")); len(below) == 1 {
			return below[0]
		}
	}
	if !exists(l.class(name, "partition")) {
		return ""
	}
	path, err := filepath.EvalSymlinks(l.class(name))
	if err != nil {
		return ""
	}
	return filepath.Base(filepath.Dir(path))
}

// partitions returns the partitions registered in the kernel, whether or not the disk has a table for them. The kernel has seen tables
// where there was none (github.com/rook/rook#7940), and any registered partition may be in use.
func (l Looker) partitions(name string) []string {
	var found []string
	for _, entry := range entries(l.class(name)) {
		if exists(l.class(name, entry, "partition")) {
			found = append(found, entry)
		}
	}
	slices.SortFunc(found, naturally)
	return found
}

// holders returns the devices built on this one, directly or indirectly.
func (v *view) holders(name string) []string {
	var all []string
	var walk func(name string)
	walk = func(name string) {
		for _, holder := range slices.Concat(entries(v.class(name, "holders")), v.loopsOver(name)) {
			if !slices.Contains(all, holder) {
				all = append(all, holder)
				walk(holder)
			}
		}
	}
	walk(name)
	return all
}

// Lowest returns the kernel names of the disks at the bottom of a device-mapper or md device. For a disk it returns its own name.
func (l Looker) Lowest(name string) []string {
	below := entries(l.class(name, "slaves"))
	if len(below) == 0 {
		return []string{name}
	}
	var all []string
	for _, b := range below {
		if parent := l.parent(b); parent != "" {
			b = parent
		}
		all = append(all, l.Lowest(b)...)
	}
	slices.SortFunc(all, naturally)
	return slices.Compact(all)
}

// identity returns the properties of the device that need no read of it. A partition has those of its disk, except for name and size.
func (v *view) identity(name, disk string) v1alpha1.BlockDevice {
	d := v1alpha1.BlockDevice{
		KernelName: name, Type: text(v.listed[name].Type, 32),
		WWN: v.wwn(disk), Serial: v.serial(disk), Model: v.listed[disk].Model, Transport: text(v.listed[disk].Transport, 32),
		NUMANode: v.numaNode(disk), ReadOnly: v.attribute(name, "ro") != "0" || v.attribute(disk, "ro") != "0",
		IDs: v.links[name],
	}
	d.SizeBytes, _ = v.size(name) // 0 means unknown, because no disk has this size
	switch v.attribute(disk, "queue/rotational") {
	case "0":
		d.MediaType = v1alpha1.SSD
	case "1":
		d.MediaType = v1alpha1.HDD
	}
	if d.Type == "mpath" {
		// Paths to several disks may share these properties or not; such a device is refused (twoDisks).
		paths := v.Lowest(disk)
		d.WWN = firstOf(d.WWN, common(paths, v.wwn))
		d.Serial = firstOf(d.Serial, common(paths, v.serial))
		d.Model = firstOf(d.Model, common(paths, func(p string) string { return v.listed[p].Model }))
		d.Transport = firstOf(d.Transport, text(common(paths, func(p string) string { return v.listed[p].Transport }), 32))
	}
	if reached := v.reached(disk); reached != "" {
		d.Transport = reached
	}
	if v.shared[d.WWN] != nil {
		d.WWN, d.SharedWWN = "", d.WWN
	}
	return d
}

// networkBlock matches the kernel names of devices on other machines by the driver's name. lsblk(8) reports no transport for them.
var networkBlock = regexp.MustCompile(`^(nbd|rbd|drbd)[0-9]+$`)

// reached returns the transport of a disk that is reached through a network, or of the first such disk below a device. It is empty for
// local disks. lsblk(8) reports NVMe over fabrics as nvme, like a local disk.
func (v *view) reached(name string) string {
	for _, disk := range v.Lowest(name) {
		if match := networkBlock.FindStringSubmatch(disk); match != nil {
			return match[1]
		}
		if path, err := filepath.EvalSymlinks(v.class(disk, "device")); err == nil {
			for _, controller := range append(controllersOf(path), path) {
				if fabric := value(filepath.Join(controller, "transport")); fabric != "" && fabric != "pcie" && fabric != "apple-nvme" {
					return text("nvme-"+fabric, 32)
				}
			}
		}
		transport := v1alpha1.Transport(v.listed[disk].Transport)
		if disk != name && transport != "" && !slices.Contains(v1alpha1.LocalTransports, transport) {
			return text(string(transport), 32)
		}
	}
	return ""
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// common returns the value that all names have in common, or an empty one if they differ.
func common(names []string, of func(string) string) string {
	first := of(names[0])
	for _, name := range names[1:] {
		if of(name) != first {
			return ""
		}
	}
	return first
}

// serial returns the serial number that the kernel read from the disk. udev's database may still have that of a pulled disk.
func (v *view) serial(name string) string {
	return firstOf(v.kernelSerial(name), text(v.listed[name].Serial, 128))
}

// kernelSerial returns the serial number that the kernel read from the disk.
func (v *view) kernelSerial(name string) string {
	for _, path := range []string{"serial", "device/serial"} { // virtio and NVMe
		if s := text(v.attribute(name, path), 128); s != "" {
			return s
		}
	}
	// SCSI: the page "unit serial number", with a header of four bytes (SPC-4, 7.8.15).
	if page, err := procfs.Read(v.class(name, "device/vpd_pg80")); err == nil && len(page) > 4 {
		if s := text(strings.Trim(string(page[4:]), " \x00"), 128); s != "" {
			return s
		}
	}
	return ""
}

// wwn returns a WWN in the form "0x5000…" (NAA), "eui.…" or "uuid.…". Names that the kernel builds from vendor and serial number don't
// count.
func (v *view) wwn(name string) string {
	for _, s := range []string{v.attribute(name, "wwid"), v.attribute(name, "device/wwid"), v.listed[name].WWN} {
		if w := canonical(s); w != "" {
			return w
		}
	}
	return ""
}

// canonical returns the unique form of a WWN, which the kernel, udev and people write in several ways. It is empty for other text.
func canonical(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	for _, prefix := range []string{"wwn-", "nvme-"} {
		s = strings.TrimPrefix(s, prefix)
	}
	if rest, ok := strings.CutPrefix(s, "naa."); ok {
		s = "0x" + rest
	}
	if number.MatchString(s) {
		return s
	}
	return ""
}

var number = regexp.MustCompile(`^(0x[0-9a-f]{16,32}|eui\.[0-9a-f]{16,32}|uuid\.[0-9a-f-]{32,36})$`)

// numaNode returns the NUMA node of the device's controller, or nil if the kernel does not report it.
func (v *view) numaNode(name string) *int32 {
	if below := v.Lowest(name); len(below) > 1 || below[0] != name {
		node := common(below, func(b string) string { return printed(v.numaNode(b)) })
		return parsed(node)
	}
	path, err := filepath.EvalSymlinks(v.class(name, "device"))
	if err != nil {
		return nil
	}
	// With native NVMe multipath, the disk belongs to a subsystem, which has controllers.
	if controllers := controllersOf(path); len(controllers) > 0 {
		return parsed(common(controllers, func(c string) string { return printed(NUMANode(v.Sys, c)) }))
	}
	return NUMANode(v.Sys, path)
}

// controllersOf returns the directories of an NVMe subsystem's controllers.
func controllersOf(path string) []string {
	if !strings.HasPrefix(filepath.Base(path), "nvme-subsys") {
		return nil
	}
	var all []string
	for _, entry := range entries(path) {
		link := filepath.Join(path, entry)
		info, err := os.Lstat(link)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || !controller.MatchString(entry) {
			continue
		}
		if to, err := filepath.EvalSymlinks(link); err == nil {
			all = append(all, to)
		}
	}
	return all
}

var controller = regexp.MustCompile(`^nvme[0-9]+$`)

// NUMANode returns the NUMA node of a device by its directory in sysfs, which is mounted at sys: the first numa_node on the way up. It is
// nil if there is none or if it is -1, which means "unknown" (Documentation/ABI/testing/sysfs-bus-pci).
func NUMANode(sys, directory string) *int32 {
	directory, err := filepath.EvalSymlinks(directory)
	if err != nil {
		return nil
	}
	if target, err := filepath.EvalSymlinks(sys); err == nil {
		sys = target
	}
	for ; strings.HasPrefix(directory, filepath.Join(sys, "devices")+"/"); directory = filepath.Dir(directory) {
		content, err := procfs.Read(filepath.Join(directory, "numa_node"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		return parsed(strings.TrimSpace(string(content)))
	}
	return nil
}

func printed(node *int32) string {
	if node == nil {
		return ""
	}
	return strconv.Itoa(int(*node))
}

func parsed(node string) *int32 {
	n, err := strconv.ParseInt(node, 10, 32)
	if err != nil || n < 0 || n > 1023 {
		return nil
	}
	id := int32(n)
	return &id
}
