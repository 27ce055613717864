package beegfs

import (
	"slices"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// limits are those of the capacity pools of a role: a target with less free than low gets new files when no other can, one with
// less than emergency when nothing else is left.
type limits struct{ spaceLow, spaceEmergency, inodesLow, inodesEmergency int64 }

const (
	gib = 1 << 30
	tib = 1 << 40
)

// shippedLimits are BeeGFS's own: of beegfs-mgmtd.conf of 7.4.6, and of mgmtd/src/config.rs of 8.3.1.
func shippedLimits(role v1alpha1.InstanceRole, version string) limits {
	inodesLow, inodesEmergency := int64(10<<20), int64(1<<20) // "10M" and "1M" in beegfs-mgmtd.conf
	if is8(version) {
		inodesLow, inodesEmergency = 10_000_000, 1_000_000
	}
	switch {
	case role == v1alpha1.RoleMetadata:
		return limits{10 * gib, 3 * gib, inodesLow, inodesEmergency}
	case is8(version):
		return limits{512 * gib, 10 * gib, inodesLow, inodesEmergency}
	default:
		return limits{tib, 20 * gib, inodesLow, inodesEmergency}
	}
}

// limitsFor are BeeGFS's own limits, or, where a target is so small that it would be below the limit when new, 10 % of the smallest
// target and 2 % of it in an emergency. The size of a directory is not known, so that it changes nothing.
func limitsFor(role v1alpha1.InstanceRole, version string, disks []v1alpha1.StorageTarget) limits {
	l := shippedLimits(role, version)
	for _, t := range disks {
		size, inodes := t.Spec.Device.SizeBytes, inodesOf(t.Spec)
		l.spaceLow, l.spaceEmergency = min(l.spaceLow, size/10), min(l.spaceEmergency, size/50)
		l.inodesLow, l.inodesEmergency = min(l.inodesLow, inodes/10), min(l.inodesEmergency, inodes/50)
	}
	return l
}

// variables are what the configuration of the management service calls the limits of a role.
func (l limits) variables(prefix string) map[string]string {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]string{
		prefix + "_SPACE_LOW": text(l.spaceLow), prefix + "_SPACE_EMERGENCY": text(l.spaceEmergency),
		prefix + "_INODES_LOW": text(l.inodesLow), prefix + "_INODES_EMERGENCY": text(l.inodesEmergency),
	}
}

// inodesOf is about the number of inodes that the filesystem on a target has from mkfs: of ext4 by its bytes per inode, of XFS by
// the share of the space that it lets inodes have. Btrfs has no number of inodes, and tells BeeGFS 0.
func inodesOf(t v1alpha1.StorageTargetSpec) int64 {
	size, options := t.Device.SizeBytes, t.Format.MkfsOptions
	switch t.Format.FSType {
	case v1alpha1.Ext4:
		if n := numberAfter(options, "-N"); n > 0 {
			return n
		}
		if ratio := numberAfter(options, "-i"); ratio > 0 {
			return size / ratio
		}
		return size / ext4Ratio(size)
	case v1alpha1.Btrfs:
		return 0
	default:
		percent, inode := int64(25), int64(512) // mkfs.xfs(8), -i maxpct and size
		switch {
		case size >= 50*tib:
			percent = 1
		case size >= tib:
			percent = 5
		}
		for i, o := range options {
			if o != "-i" || i+1 == len(options) {
				continue
			}
			for setting := range strings.SplitSeq(string(options[i+1]), ",") {
				name, value, _ := strings.Cut(setting, "=")
				n, err := strconv.ParseInt(value, 10, 64)
				switch {
				case err != nil || n < 0:
				case name == "maxpct" && n == 0:
					percent = 100
				case name == "maxpct":
					percent = n
				case name == "size" && n > 0:
					inode = n
				}
			}
		}
		return size / 100 * percent / inode
	}
}

// ext4Ratio is the number of bytes per inode that mke2fs takes for a size (mke2fs.conf of e2fsprogs 1.47: floppy, small, default,
// big and huge).
func ext4Ratio(size int64) int64 {
	switch {
	case size < 3<<20:
		return 8192
	case size < 512<<20:
		return 4096
	case size < 4*tib:
		return 16384
	case size < 16*tib:
		return 32768
	default:
		return 65536
	}
}

// numberAfter is the number that follows an option of mke2fs, or is written onto it, 0 when there is none.
func numberAfter(options []v1alpha1.MkfsOption, name string) int64 {
	i := slices.IndexFunc(options, func(o v1alpha1.MkfsOption) bool { return strings.HasPrefix(string(o), name) })
	if i < 0 {
		return 0
	}
	text := strings.TrimPrefix(string(options[i]), name)
	if text == "" && i+1 < len(options) {
		text = string(options[i+1])
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
