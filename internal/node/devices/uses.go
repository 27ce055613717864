package devices

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
	"parallelfs.dev/operator/internal/node/procfs"
	"parallelfs.dev/operator/internal/plan"
)

func (v *view) use(name, where string) {
	if name != "" && !slices.Contains(v.uses[name], where) {
		v.uses[name] = append(v.uses[name], where)
	}
}

// numbers returns the kernel names of all devices by device number.
func (v *view) numbers() map[string]string {
	all := map[string]string{}
	for _, name := range v.allDevices() {
		all[v.number(name)] = name
	}
	return all
}

// processes returns the directories of all processes in procfs in ascending order.
func (v *view) processes() ([]string, error) {
	found, err := procfs.List(v.Proc)
	if err != nil {
		return nil, fmt.Errorf("can't list the processes of the node: %w", err)
	}
	var pids []int
	for _, entry := range found {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	all := make([]string, len(pids))
	for i, pid := range pids {
		all[i] = filepath.Join(v.Proc, strconv.Itoa(pid))
	}
	return all, nil
}

// gone is true if a process has ended during the scan. Open files of procfs return ESRCH. A zombie, which has no mounts, returns EINVAL.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL)
}

// mostForeign bounds the tables of all other user namespaces together: the node's own table may be as long.
const mostForeign = 16 << 20

// readMounts reads the mounts of every mount namespace through one process in it.
func (v *view) readMounts() {
	processes, err := v.processes()
	if err != nil {
		v.problem("%s; so it is unknown what is mounted", err)
		return
	}
	mounts := mountUses{numbers: v.numbers(), formats: registry.All(), shown: map[string][]string{}}
	v.remote = map[int]bool{}
	seen := map[string]bool{}
	foreign := int64(mostForeign)
	for _, process := range processes {
		// If a process has more rights than this one, its mounts can be read, but the name of its namespace can't.
		namespace, err := os.Readlink(filepath.Join(process, "ns/mnt"))
		if errors.Is(err, fs.ErrPermission) {
			namespace, err = process, nil
		}
		// A process in the node's own user namespace may have the same mounts. In that case its table counts.
		others := procfs.OthersUsers(v.Proc, process)
		if others {
			namespace += " of others"
		}
		if err == nil && seen[namespace] {
			continue
		}
		if err == nil {
			each := func(m *mountinfo.Info) { v.useMount(mounts, m, others) }
			if others {
				err = procfs.EachMountWithin(filepath.Join(process, "mountinfo"), &foreign, each)
			} else {
				err = procfs.EachMount(filepath.Join(process, "mountinfo"), each)
			}
		}
		switch {
		case others && errors.Is(err, procfs.ErrTooLong):
			// Its user decides how long it is. A disk that is mounted there alone is in sysfs (readMountedFilesystems), and its device is busy.
			seen[namespace] = true
		case err == nil:
			seen[namespace] = true
		case !gone(err):
			v.problem("can't read the mounts of process %s: %s; so it is unknown what is mounted", filepath.Base(process), err)
			return
		}
	}
	if len(seen) == 0 {
		v.problem("%s shows no process with mounts; the container needs the process ids of its node (hostPID)", v.Proc)
	}
	v.useListed()
	for _, f := range mounts.formats {
		if f.SpansDevices() {
			v.useMembers(string(f.Name()), mounts.shown)
		}
	}
}

// mountUses holds the data that mounts are compared with.
type mountUses struct {
	numbers map[string]string
	formats []format.Format
	// shown lists the mount points of filesystems that span devices, by the device in the mount's source.
	shown map[string][]string
}

// useMount records the devices that a mount uses. In other user namespaces and in FUSE mounts of users, type and source are the user's
// claims, so only the kernel's device number counts.
func (v *view) useMount(uses mountUses, m *mountinfo.Info, others bool) {
	if procfs.IsRemote(m.FSType) {
		v.remote[m.ID] = true
	}
	v.use(uses.numbers[fmt.Sprintf("%d:%d", m.Major, m.Minor)], m.Mountpoint)
	if others || procfs.IsOfUser(m) {
		return
	}
	if m.FSType == "devtmpfs" && m.Root != "/" && m.Mountpoint != "/dev"+m.Root {
		// This is a single device node, mounted over a file. A container that shows a device of its machine as its own has the node in its /dev.
		v.use(v.named(strings.TrimPrefix(m.Root, "/")), plan.BlockVolume(m.Mountpoint))
	}
	for _, f := range uses.formats {
		if f.SpansDevices() && m.FSType == string(f.Name()) {
			// Its mounts have a device number of their own, and one of its devices as source.
			source := v.deviceAt(m.Source)
			uses.shown[source] = append(uses.shown[source], m.Mountpoint)
		}
		if served, is := f.(format.Served); is && format.IsMount(served, m.FSType, m.Source) {
			// Its mounts have device numbers of their own, too.
			v.use(v.deviceAt(m.Source), m.Mountpoint)
		}
		for option := range strings.SplitSeq(m.VFSOptions, ",") {
			if path, ok := logDevice(f, option); ok {
				v.use(v.deviceAt(path), m.Mountpoint+" (external log)")
			}
		}
	}
}

// useListed records the mounts in the output of lsblk(8).
func (v *view) useListed() {
	for name, where := range v.listed {
		for _, mountpoint := range where.MountPoints {
			if mountpoint != nil && *mountpoint != "" {
				v.use(name, *mountpoint)
			}
		}
	}
}

// named returns the kernel name for the path of a device below /dev. It is empty for other paths.
func (v *view) named(path string) string {
	if name := strings.ReplaceAll(path, "/", "!"); v.number(name) != "" {
		return name
	}
	return ""
}

// blockVolumes lists the kubelet's paths of raw devices for pods (PersistentVolumes with volumeMode Block), which are links or device
// nodes: by volume, and by pod.
var blockVolumes = []string{
	"plugins/kubernetes.io/*/volumeDevices/*/*", "plugins/kubernetes.io/*/volumeDevices/*/*/*",
	"plugins/kubernetes.io/*/volumeDevices/*/*/*/*",
	"pods/*/volumeDevices/*/*",
}

// readBlockVolumes finds the raw devices that the kubelet passes to pods.
func (v *view) readBlockVolumes() {
	if v.Kubelet == "" {
		return
	}
	numbers := v.numbers()
	for _, pattern := range blockVolumes {
		found, err := filepath.Glob(filepath.Join(v.Kubelet, pattern))
		if err != nil {
			continue // The patterns are constant and valid.
		}
		for _, path := range found {
			var at unix.Stat_t
			if unix.Lstat(path, &at) != nil {
				continue
			}
			name := ""
			switch at.Mode & unix.S_IFMT {
			case unix.S_IFBLK:
				name = numbers[fmt.Sprintf("%d:%d", unix.Major(at.Rdev), unix.Minor(at.Rdev))]
			case unix.S_IFLNK:
				name = v.linkedOnNode(path)
			}
			relative, err := filepath.Rel(v.Kubelet, path)
			if err == nil && name != "" && !strings.Contains(strings.Join(v.uses[name], " "), relative) {
				v.use(name, plan.BlockVolume(filepath.Join("/var/lib/kubelet", relative)))
			}
		}
	}
}

// linkedOnNode returns the kernel name of the device that a link on the node leads to. Its target is a path on the node, even if this
// process is in a container.
func (v *view) linkedOnNode(path string) string {
	target, err := os.Readlink(path)
	if err != nil {
		return ""
	}
	relative, ok := strings.CutPrefix(target, "/dev/")
	if !ok {
		return ""
	}
	return firstOf(v.named(relative), v.follow(filepath.Join(v.Dev, relative)))
}

// logDevice returns the path of the log's device in a mount option.
func logDevice(f format.Format, option string) (path string, ok bool) {
	log := f.Log()
	if log == nil {
		return "", false
	}
	return strings.CutPrefix(option, log.MountOption+"=")
}

// useMembers records all devices of each mounted filesystem of this type, which the kernel lists.
func (v *view) useMembers(kind string, shown map[string][]string) {
	for _, id := range entries(filepath.Join(v.Sys, "fs", kind)) {
		members := entries(filepath.Join(v.Sys, "fs", kind, id, "devices"))
		var where []string
		for _, member := range members {
			where = append(where, shown[member]...)
		}
		if len(where) == 0 {
			where = []string{plan.UnseenMount(kind + " " + id)}
		}
		for _, member := range members {
			for _, w := range where {
				v.use(member, w)
			}
		}
	}
}

// deviceAt returns the kernel name for the path of a device, which may be a link.
func (v *view) deviceAt(path string) string {
	path = unescape(path)
	relative, ok := strings.CutPrefix(path, "/dev/")
	if !ok {
		return filepath.Base(path)
	}
	return firstOf(v.follow(filepath.Join(v.Dev, relative)), filepath.Base(relative))
}

// unescape replaces the octal escapes in the tables of procfs (proc_pid_mountinfo(5)).
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// swapUse is the same text as in lsblk(8).
const swapUse = "[SWAP]"

func (v *view) readSwaps() {
	content, err := procfs.Read(filepath.Join(v.Proc, "swaps"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return // This kernel has no swap support.
	case err != nil:
		v.problem("can't read which devices are swap space: %s", err)
		return
	}
	for line := range strings.Lines(string(content)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == "partition" { // proc_swaps(5): or file
			v.use(v.deviceAt(fields[0]), swapUse)
		}
	}
}

// readMountedFilesystems finds filesystems that are mounted but visible to no process (umount -l, kept namespaces): sysfs has a directory
// for each active one.
func (v *view) readMountedFilesystems() {
	kinds := []string{"f2fs"} // people use it, but targets don't
	for _, f := range registry.All() {
		if !f.SpansDevices() {
			kinds = append(kinds, string(f.Name()))
		}
	}
	for _, kind := range kinds {
		for _, name := range entries(filepath.Join(v.Sys, "fs", kind)) {
			if v.number(name) != "" && len(v.uses[name]) == 0 {
				v.use(name, plan.UnseenMount(kind))
			}
		}
	}
}

// readLoops finds the loop devices on disks, which sysfs does not list as holders.
func (v *view) readLoops() {
	v.loops = map[string][]string{}
	for _, name := range entries(filepath.Join(v.Sys, "class/block")) {
		file := v.attribute(name, "loop/backing_file")
		if strings.HasPrefix(file, "/dev/") {
			below := v.deviceAt(strings.TrimSuffix(file, " (deleted)"))
			v.loops[below] = append(v.loops[below], name)
		}
	}
}

// loopsOver returns the loop devices whose backing file is the device.
func (v *view) loopsOver(name string) []string { return v.loops[name] }

// writers names a process that has one of the devices open for writing, such as a virtual machine or a database on the raw disk. The kernel
// does not count such processes as users (O_EXCL).
func (v *view) writers(names []string) string {
	nodes := map[uint64]string{}
	for _, name := range names {
		var major, minor uint32
		if _, err := fmt.Sscanf(v.number(name), "%d:%d", &major, &minor); err == nil {
			nodes[unix.Mkdev(major, minor)] = name
		}
	}
	processes, err := v.processes()
	if err != nil {
		return ""
	}
	for _, process := range processes {
		for _, descriptor := range entries(filepath.Join(process, "fd")) {
			path := filepath.Join(process, "fd", descriptor)
			link, err := os.Readlink(path)
			if err != nil || !strings.HasPrefix(link, "/") {
				continue
			}
			// A file on a filesystem that may not answer is skipped: device nodes are on filesystems of the node.
			file, err := procfs.FileOf(process, descriptor)
			if err != nil || !file.Writes || v.remote[file.Mount] {
				continue
			}
			if _, device, err := procfs.Device(path); err == nil && device != 0 && nodes[device] != "" {
				return fmt.Sprintf("process %s (%s) has %s open for writing", filepath.Base(process), value(filepath.Join(process, "comm")), nodes[device])
			}
		}
	}
	return ""
}
