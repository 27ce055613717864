package plan

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Found describes the disk of a target by its NodeInventory only, before any agent has looked at the disk for the target itself.
type Found string

// Every value of Found.
const (
	// NoDisk: the node has no such disk.
	NoDisk Found = "NoDisk"
	// BlankDisk: the disk is free and empty.
	BlankDisk Found = "BlankDisk"
	// OwnDisk: the label shows that the disk carries the target, from before the target was one of this FileSystem.
	OwnDisk Found = "OwnDisk"
	// OtherDisk: the disk holds something else, is in use, or could not be read.
	OtherDisk Found = "OtherDisk"
)

// DiskOf classifies the disk of a target by the inventory of its node.
func DiskOf(inventory v1alpha1.NodeInventoryStatus, t *v1alpha1.StorageTarget) Found {
	b := findDevice(inventory, string(t.Spec.Device.ID))
	switch {
	case b == nil:
		return NoDisk
	case isLabeled(*b, t.Namespace, t.Spec.FileSystem.Name, t.Name):
		return OwnDisk
	case len(b.Unusable) == 0:
		return BlankDisk
	default:
		return OtherDisk
	}
}

// ShownOn names the nodes of which an inventory shows the disk of a target: by its identity, or by the UUID or the label of its filesystem.
func ShownOn(inventories map[string]v1alpha1.NodeInventoryStatus, t *v1alpha1.StorageTarget) []string {
	var out []string
	for node, inventory := range inventories {
		if slices.ContainsFunc(inventory.BlockDevices, func(b v1alpha1.BlockDevice) bool { return isDiskOf(b, t) }) {
			out = append(out, node)
		}
	}
	slices.Sort(out)
	return out
}

// isDiskOf is true when a disk has the identity of that of a target, or carries the target.
func isDiskOf(b v1alpha1.BlockDevice, t *v1alpha1.StorageTarget) bool {
	uuid := ""
	if t.Status.Provisioned != nil {
		uuid = t.Status.Provisioned.UUID
	}
	return sameDevice(b, t.Spec.Device) || sameDevice(b, DeviceOf(t)) || isLabeled(b, t.Namespace, t.Spec.FileSystem.Name, t.Name) ||
		slices.ContainsFunc(b.Signatures, func(s v1alpha1.Signature) bool { return uuid != "" && s.UUID == uuid })
}

// isLabeled reports whether the label on a disk is that of the given target.
func isLabeled(b v1alpha1.BlockDevice, namespace, fileSystem, target string) bool {
	label := labelOf(namespace, fileSystem, target)
	return b.Target == namespace+"/"+target ||
		slices.ContainsFunc(b.Signatures, func(s v1alpha1.Signature) bool { return s.Device == b.KernelName && s.Label == label })
}

// carriedBy returns the id under which a disk became the target in this slot, of an earlier FileSystem of the same name; empty if the disk
// carries no such target. The name of a target contains the id that the disk had when it was chosen, and that id may not be the disk's
// first name now.
func (g group) carriedBy(fs *v1alpha1.FileSystem, slot int32, node string, b v1alpha1.BlockDevice) v1alpha1.DeviceID {
	names := stableNames(b)
	if b.SharedWWN != "" {
		bare := strings.TrimPrefix(b.SharedWWN, "0x")
		names = append(names, "wwn-"+b.SharedWWN, "nvme-"+b.SharedWWN, "scsi-3"+bare, b.SharedWWN)
	}
	for _, id := range names {
		if isLabeled(b, fs.Namespace, fs.Name, g.targetName(fs.Name, slot, node, v1alpha1.DeviceID(id))) && deviceID.MatchString(id) {
			return v1alpha1.DeviceID(id)
		}
	}
	return ""
}

// Holds reports whether a disk of a node carries metadata of this FileSystem, or the store of its management service, from before the node
// had any of its targets.
func Holds(fs *v1alpha1.FileSystem, role v1alpha1.Role, node string, inventory v1alpha1.NodeInventoryStatus) bool {
	for _, b := range inventory.BlockDevices {
		for i := range max(1, fs.Spec.MetadataServers.InstancesPerNode) {
			if (group{role: role}).carriedBy(fs, i, node, b) != "" {
				return true
			}
		}
	}
	return false
}

// findDevice returns the disk with an id, a WWN or a serial number; nil if there is none. An id takes precedence.
func findDevice(inventory v1alpha1.NodeInventoryStatus, id string) *v1alpha1.BlockDevice {
	for _, matches := range []func(v1alpha1.BlockDevice) bool{
		func(b v1alpha1.BlockDevice) bool { return slices.Contains(b.IDs, id) },
		func(b v1alpha1.BlockDevice) bool { return b.WWN == id },
		func(b v1alpha1.BlockDevice) bool { return b.Serial == id },
	} {
		if i := slices.IndexFunc(inventory.BlockDevices, matches); i >= 0 && id != "" {
			return &inventory.BlockDevices[i]
		}
	}
	return nil
}

// linkOfWWN matches udev's links that are made from the WWN, EUI or UUID of a disk. %s is the place of that value.
const linkOfWWN = `(?i)^(wwn-(0x)?|scsi-[0-9]?|nvme-(eui\.|uuid\.)?|dm-(uuid-mpath|name)-([0-9]|eui\.|uuid\.)?|0x|eui\.|uuid\.)` +
	`%s(-part[0-9]+)?$`

// IsLinkOfWWN reports whether a name in /dev/disk/by-id is made from a WWN, in the form in which a look writes it, and from nothing else.
func IsLinkOfWWN(link, wwn string) bool {
	bare := wwn
	for _, prefix := range []string{"0x", "eui.", "uuid."} {
		bare = strings.TrimPrefix(bare, prefix)
	}
	if bare == "" || !strings.Contains(strings.ToLower(link), bare) {
		return false
	}
	is, err := regexp.MatchString(fmt.Sprintf(linkOfWWN, regexp.QuoteMeta(bare)), link)
	return err == nil && is
}

// sameDevice reports whether a disk of a node has an identity.
func sameDevice(b v1alpha1.BlockDevice, id v1alpha1.DeviceIdentity) bool {
	if b.SharedWWN != "" && b.SharedWWN == id.WWN && b.Serial != "" && id.Serial != "" {
		return b.Serial == id.Serial
	}
	if id.WWN != "" && b.WWN != "" {
		return id.WWN == b.WWN
	}
	return slices.Contains(b.IDs, string(id.ID)) || string(id.ID) == b.WWN || string(id.ID) == b.Serial
}

// deviceID matches the ids that the API accepts.
var deviceID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:+=@-]{3,127}$`)

// identify returns the identity under which a disk is recorded: its first name, which is the most meaningful one, with serial number, WWN
// and size; or why the disk can't be a target.
func identify(b v1alpha1.BlockDevice) (v1alpha1.DeviceIdentity, string) {
	for _, name := range stableNames(b) {
		if deviceID.MatchString(name) && b.SizeBytes > 0 {
			return v1alpha1.DeviceIdentity{ID: v1alpha1.DeviceID(name), Serial: b.Serial, WWN: b.WWN, Model: b.Model, SizeBytes: b.SizeBytes}, ""
		}
	}
	if b.SizeBytes <= 0 {
		return v1alpha1.DeviceIdentity{}, b.KernelName + " has no size: there is no medium in it"
	}
	if why := HasStableID(Facts{BlockDevice: b}); why != "" {
		return v1alpha1.DeviceIdentity{}, why
	}
	return v1alpha1.DeviceIdentity{}, b.KernelName + " has no name that the API takes"
}
