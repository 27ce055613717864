package ldiskfs

import "strings"

// The filesystem types of a target's mount: the present one, and the one that Lustre still accepts.
const (
	MountType    = "lustre_tgt"
	oldMountType = "lustre"
)

// MountTypes returns the types of targets' mounts. A client's mount may have the second type too, but names no device.
func (Format) MountTypes() []string { return []string{MountType, oldMountType} }

// Mounted returns the name of the target that a mount serves, such as scratch-OST0000.
func (Format) Mounted(options string) string {
	for option := range strings.SplitSeq(options, ",") {
		if name, is := strings.CutPrefix(option, "svname="); is {
			return name
		}
	}
	return ""
}

// WithoutReplay returns the options of ext4. No code mounts a target with them.
func (Format) WithoutReplay() []string { return []string{"ro", "noload"} }

// SpansDevices is false.
func (Format) SpansDevices() bool { return false }
