package ldiskfs

import "strings"

// The types of a target's mount: the present one, and the one that Lustre still takes.
const (
	MountType    = "lustre_tgt"
	oldMountType = "lustre"
)

// MountTypes are those of targets. A client's mount has the second one, too; it names no device.
func (Format) MountTypes() []string { return []string{MountType, oldMountType} }

// Mounted is the name of the target that a mount serves, such as scratch-OST0000.
func (Format) Mounted(options string) string {
	for option := range strings.SplitSeq(options, ",") {
		if name, is := strings.CutPrefix(option, "svname="); is {
			return name
		}
	}
	return ""
}

// WithoutReplay is what ext4 has. Nothing mounts a target so.
func (Format) WithoutReplay() []string { return []string{"ro", "noload"} }

// SpansDevices is false.
func (Format) SpansDevices() bool { return false }
