package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// Every safety rule for a disk is a predicate. It returns an empty string if the rule holds, and otherwise a sentence that a person can act
// on. All of them except Exists expect a device that was found.

// LabelPrefix begins the label of every target's filesystem.
const LabelPrefix = "pfs-"

// signatureAmbivalent is the type of the signature for a device on which blkid(8) found several things and could not decide between them.
const signatureAmbivalent = "ambivalent"

// kernelName matches the names that the kernel gives to disks in the order in which it finds them.
var kernelName = regexp.MustCompile(
	`^(sd[a-z]+|vd[a-z]+|xvd[a-z]+|hd[a-z]+|nvme[0-9]+n[0-9]+|mmcblk[0-9]+|pmem[0-9]+|dm-[0-9]+|md[0-9]+|loop[0-9]+)(p?[0-9]+)?$`)

// Label returns the label with which the filesystem on a target's disk is made: 12 characters, which fit every format, or the label that
// the target's own server reads.
func Label(t *v1alpha1.StorageTarget) string { return Labels(t)[0] }

// Labels returns all labels that the filesystem of a target may have, first the one that it is made with.
func Labels(t *v1alpha1.StorageTarget) []string {
	if f, is := registry.Served(t.Spec.Format); is && format.GivenTo(t) != nil {
		return f.Labels(*format.GivenTo(t))
	}
	labels := []string{labelOf(t.Namespace, t.Spec.FileSystem.Name, t.Name)}
	if t.Status.FormerOwner != nil && isFinished(t) && !slices.Contains(labels, t.Status.Provisioned.Label) {
		labels = append(labels, t.Status.Provisioned.Label) // a disk that was taken over keeps the label that it was made with
	}
	return labels
}

// isTargetLabel reports whether a label marks a target that the agent mounts itself, this target or another.
func isTargetLabel(s v1alpha1.Signature) bool {
	_, served := registry.ByLabel(s.Type, s.Label)
	return !served && strings.HasPrefix(s.Label, LabelPrefix)
}

func labelOf(namespace, fileSystem, target string) string {
	sum := sha256.Sum256([]byte(namespace + "/" + fileSystem + "/" + target))
	return LabelPrefix + hex.EncodeToString(sum[:4])
}

// Exists holds for a device that was found. It is checked first, because blkid(8) and wipefs(8) return the same for a missing path as for a
// blank device.
func Exists(f Facts) string {
	switch {
	case f.Found:
		return ""
	case f.Incomplete != "":
		return "the device can't be found: " + f.Incomplete
	}
	return "the device is not there: look at its cable, its slot and its controller, or name another one"
}

// HasIdentity holds if the device is the recorded one: its id is among its names, and size, serial number and WWN are as recorded. Values
// that were recorded as empty are not compared, because the disk has none.
func HasIdentity(f Facts, want v1alpha1.DeviceIdentity) string {
	if why := isOther(f, want); why != "" {
		return why
	}
	id := want.ID
	switch {
	case f.SizeBytes < want.SizeBytes:
		return fmt.Sprintf("shrunk disk: %s was recorded with %d bytes and has %d now; give it back its size, or make a new target of it",
			id, want.SizeBytes, f.SizeBytes)
	case f.SizeBytes > want.SizeBytes:
		return fmt.Sprintf("grown disk: %s was recorded with %d bytes and has %d now; give it back its size, or make a new target of it",
			id, want.SizeBytes, f.SizeBytes)
	}
	return ""
}

// HasIdentityOrGrew is HasIdentity for a disk that carries a finished target. A larger disk counts as the same disk if its serial number or
// WWN was recorded and agrees.
func HasIdentityOrGrew(f Facts, want v1alpha1.DeviceIdentity) string {
	if f.SizeBytes > want.SizeBytes && (want.Serial != "" || want.WWN != "") {
		return isOther(f, want)
	}
	return HasIdentity(f, want)
}

// isOther returns why a device is not the recorded one, whatever its size.
func isOther(f Facts, want v1alpha1.DeviceIdentity) string {
	id := string(want.ID)
	if !slices.Contains(f.IDs, id) && id != f.WWN && id != f.Serial {
		return fmt.Sprintf("%s is not %s: its names are %s", f.KernelName, id, strings.Join(stableNames(f.BlockDevice), ", "))
	}
	if want.Serial != "" && want.Serial != f.Serial {
		return fmt.Sprintf("wrong serial: %s was recorded with serial %q and has %q now, so that it is another disk", id, want.Serial, f.Serial)
	}
	// A WWN that another disk shares does not identify a disk. The serial number does.
	isShared := want.Serial != "" && want.WWN == f.SharedWWN
	if want.WWN != "" && want.WWN != f.WWN && !isShared {
		return fmt.Sprintf("wrong WWN: %s was recorded with WWN %q and has %q now, so that it is another disk", id, want.WWN, f.WWN)
	}
	return ""
}

// IsWholeDisk holds for disks, loop devices, multipath devices and RAID. Logical volumes and encrypted devices were made for a purpose of
// their own, and a partition shares its disk with others.
func IsWholeDisk(f Facts) string {
	switch {
	case f.Type == "disk", f.Type == "loop", f.Type == "mpath", f.Type == "md", strings.HasPrefix(f.Type, "raid"):
		return ""
	case f.Type == "part":
		return fmt.Sprintf("%s is a partition; name the whole disk", f.KernelName)
	}
	return fmt.Sprintf("%s is of type %q; only whole disks, multipath devices and RAID can be targets", f.KernelName, f.Type)
}

// IsWholeDiskOrPartition is IsWholeDisk for an external log, which may also be a partition.
func IsWholeDiskOrPartition(f Facts) string {
	if f.Type == "part" {
		return ""
	}
	return IsWholeDisk(f)
}

// IsWritable holds for a device that the kernel writes to.
func IsWritable(f Facts) string {
	if f.ReadOnly {
		return fmt.Sprintf("%s is read-only; clear its write protection (blockdev --setrw, or the disk's own)", f.KernelName)
	}
	return ""
}

// listed joins at most three names, and counts the rest.
func listed(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// HasNoPartitions holds for a device without partitions.
func HasNoPartitions(f Facts) string {
	if len(f.Partitions) > 0 {
		return fmt.Sprintf("%s has partitions: %s", f.KernelName, listed(f.Partitions))
	}
	return ""
}

// HasNoHolders holds if no other device is made from this one or its partitions: no RAID, LVM, multipath or encrypted device.
func HasNoHolders(f Facts) string {
	if len(f.Holders) > 0 {
		return fmt.Sprintf("%s is in use: %s is made from it; take that apart first (dmsetup, mdadm, vgchange), or name that device instead",
			f.KernelName, listed(f.Holders))
	}
	return ""
}

// swapMount is the mountpoint that lsblk(8) shows for swap space.
const swapMount = "[SWAP]"

// UnseenMount is the entry in Facts.Mounts for a mounted filesystem whose mount is visible to no process.
func UnseenMount(kind string) string { return "a place that no process sees (" + kind + ")" }

// podVolume ends the entry in Facts.Mounts for a device that a pod gets as a block device.
const podVolume = " (a block volume)"

// BlockVolume is the entry in Facts.Mounts for a device that is in use under another path, such as a PersistentVolume with volumeMode
// Block.
func BlockVolume(path string) string { return path + podVolume }

// IsNotMounted holds if neither the device nor a partition of it is mounted in any mount namespace of the node, or passed to a pod.
func IsNotMounted(f Facts) string {
	if i := slices.IndexFunc(f.Mounts, func(m string) bool { return strings.HasSuffix(m, podVolume) }); i >= 0 {
		return fmt.Sprintf("%s is in use: a pod has it at %s; look for the PersistentVolume that it is, and leave it alone", f.KernelName, f.Mounts[i])
	}
	mounts := slices.DeleteFunc(slices.Clone(f.Mounts), func(m string) bool { return m == swapMount })
	if len(mounts) > 0 {
		return fmt.Sprintf("%s is mounted at %s; unmount it there first", f.KernelName, listed(mounts))
	}
	return ""
}

// IsNoSwap holds if neither the device nor a partition of it is swap space in use.
func IsNoSwap(f Facts) string {
	if slices.Contains(f.Mounts, swapMount) {
		return fmt.Sprintf("%s is swap space in use; swapoff it first", f.KernelName)
	}
	return ""
}

// HasNoSignatures holds if the device and its partitions carry no signature.
func HasNoSignatures(f Facts) string {
	if len(f.Signatures) == 0 {
		return ""
	}
	found := make([]string, 0, len(f.Signatures))
	for _, s := range f.Signatures {
		found = append(found, describe(s))
	}
	slices.Sort(found)
	return fmt.Sprintf("%s is not blank: %s", f.KernelName, strings.Join(found, "; "))
}

// IsNotAmbivalent holds if the probe could determine the content of the device. The probe may report ambivalence beside signatures, or
// instead of them.
func IsNotAmbivalent(f Facts) string {
	for _, s := range f.Signatures {
		if s.Type == signatureAmbivalent {
			return fmt.Sprintf("%s holds several things at once, and the probe can't tell which of them counts; look at it with wipefs %s",
				s.Device, devicePath(s.Device))
		}
	}
	return ""
}

// HoldsNothingUnknown holds if the sample of the device is zero, or if its content is recognized. Data without a signature is data.
func HoldsNothingUnknown(f Facts) string {
	if f.Unknown == "" {
		return ""
	}
	return fmt.Sprintf("%s is not blank: %s", f.KernelName, unknownData(f))
}

// unknownData describes the data that HoldsNothingUnknown found.
func unknownData(f Facts) string {
	return fmt.Sprintf("data that no probe knows lies at %s, as on an encrypted disk without a header, a raw database, or a disk that lost its partition table", f.Unknown)
}

// IsLookComplete holds if all of the device could be read.
func IsLookComplete(f Facts) string {
	if f.Incomplete != "" {
		return f.KernelName + incomplete + f.Incomplete + "; such a device is left alone"
	}
	return ""
}

// HasItsName holds for a device that was found by its recorded name. A name that has disappeared may have been that of another disk.
func HasItsName(f Facts) string {
	if f.Renamed != "" {
		return f.Renamed + "; such a disk is never formatted: name it by a link that it has now"
	}
	return ""
}

// IsOneDisk holds unless a multipath device has paths to different disks, because a write would reach only one of them.
func IsOneDisk(f Facts) string { return f.TwoDisks }

// OpensExclusively holds if the device could be opened with O_EXCL, so that nothing uses it in any mount namespace.
func OpensExclusively(f Facts) string {
	if f.Busy != "" {
		return fmt.Sprintf("%s is in use: %s; find out by whom (lsof, dmsetup, mdadm, multipath) and stop it", f.KernelName, f.Busy)
	}
	return ""
}

// IsMountedNowhereElse holds if the device shows no mount on another machine. Nothing else on this node can show that.
func IsMountedNowhereElse(f Facts) string {
	if f.Elsewhere != "" {
		return fmt.Sprintf("%s is in use: %s", f.KernelName, f.Elsewhere)
	}
	return ""
}

// HasStableID holds if the device has at least one stable name: a link in /dev/disk/by-id, a WWN or a serial number.
func HasStableID(f Facts) string {
	if len(stableNames(f.BlockDevice)) == 0 {
		return fmt.Sprintf("%s has no stable name: no link in /dev/disk/by-id, no WWN and no serial number; after the next boot, nothing would tell it from other disks", f.KernelName)
	}
	return ""
}

// IsNamedStably holds for an id that is no kernel name. A kernel name may be that of another disk after the next boot.
func IsNamedStably(id v1alpha1.DeviceID) string {
	if id == "" || kernelName.MatchString(string(id)) {
		return fmt.Sprintf("%q is a kernel name, which may mean another disk after the next boot; use the name of its link in /dev/disk/by-id", id)
	}
	return ""
}

// IsNoOthersTarget holds if the device carries neither label nor marker of another target. No approval covers the destruction of a target:
// its own FileSystem wipes it, with deletionPolicy Destroy, or a person does.
func IsNoOthersTarget(f Facts, t *v1alpha1.StorageTarget) string {
	isOwn := f.Marker != nil && (sameTarget(*f.Marker, t) || isFormer(*f.Marker, t))
	if f.Marker != nil && !isOwn {
		return fmt.Sprintf("%s carries the data of StorageTarget %s/%s of FileSystem %s/%s; it is never formatted for another one: wipe it by hand if nobody needs it",
			f.KernelName, f.Marker.Namespace, f.Marker.Target, f.Marker.Namespace, f.Marker.FileSystem)
	}
	if f.Target != "" && f.Target != t.Namespace+"/"+t.Name {
		return fmt.Sprintf("%s carries the data of StorageTarget %s; it is never formatted for another one: wipe it by hand if nobody needs it",
			f.KernelName, f.Target)
	}
	for _, s := range f.Signatures {
		if isTargetLabel(s) && !isOwn && !slices.Contains(Labels(t), s.Label) {
			return fmt.Sprintf("%s carries the label %q of another target; it is never formatted for this one: wipe it by hand if nobody needs it",
				s.Device, s.Label)
		}
	}
	return ""
}

// IsMarkerRead holds unless the device has the label of a target and its marker could not be read. That happens if another program has the
// disk open for a moment, or if the disk is damaged. Neither may be offered for formatting.
func IsMarkerRead(f Facts) string {
	if f.MarkerError == "" {
		return ""
	}
	says := fmt.Sprintf("%s has the label of a target, but its marker could not be read; it may hold data of an earlier FileSystem: %s",
		f.KernelName, f.MarkerError)
	if f.InUse() {
		return says + "; the marker is read when nobody uses the device"
	}
	return says + ". The agent looks again; if that does not help, repair its filesystem (see dmesg), or wipe it by hand if nobody needs it"
}

// HoldsNoTarget holds if the device has no marker. A marker means that a daemon may have written data, so the disk is adopted by its own
// target or refused, and never formatted.
func HoldsNoTarget(f Facts) string {
	if f.Marker == nil {
		return ""
	}
	return fmt.Sprintf("%s carries the marker of StorageTarget %s/%s, so that there may be data on it; wipe it by hand if nobody needs it",
		f.KernelName, f.Marker.Namespace, f.Marker.Target)
}

// IsNoOthersLog holds if the device is not the external log of another target. mkfs overwrites a log device without checking it, and a
// filesystem without its log is lost.
func IsNoOthersLog(f Facts, t *v1alpha1.StorageTarget) string {
	if f.LogOf != nil && strings.HasPrefix(f.LogOf.Label, LabelPrefix) && f.LogOf.Label != Label(t) {
		return fmt.Sprintf("%s is the log of the target with the label %q on %s, which is lost without its log", f.KernelName, f.LogOf.Label, f.LogOf.Device)
	}
	return ""
}

// atRest returns why a device may not be touched, whatever its content: it is in use, or could not be read completely.
func atRest(f Facts) []string {
	if missing := Exists(f); missing != "" {
		return []string{missing}
	}
	return sentences(IsLookComplete(f), IsOneDisk(f), HasStableID(f), IsWritable(f), HasNoHolders(f), IsNotMounted(f), IsNoSwap(f),
		OpensExclusively(f),
		IsMountedNowhereElse(f))
}

// Blank returns all reasons why a device is not blank and free; empty if it is.
func Blank(f Facts) []string {
	if !f.Found {
		return atRest(f)
	}
	return append(bare(f), sentences(HoldsNothingUnknown(f))...)
}

// bare returns why a device is not free, or holds something that a probe recognizes. A target's own device is only bare, and not blank,
// after its signatures were wiped or its mkfs was interrupted.
func bare(f Facts) []string {
	reasons := atRest(f)
	if !f.Found {
		return reasons
	}
	return append(reasons, sentences(HasNoPartitions(f), IsNotAmbivalent(f), HasNoSignatures(f), HoldsNoTarget(f), hasNoTargetName(f))...)
}

// Unusable returns all reasons why a device can't become a target as it is; empty for a blank, free, whole disk with a stable name. The
// inventory shows them.
func Unusable(f Facts) []string {
	if !f.Found {
		return Blank(f)
	}
	return append(sentences(IsWholeDisk(f)), Blank(f)...)
}

// hasNoTargetName holds if the look assigns the device to no target.
func hasNoTargetName(f Facts) string {
	if f.Target != "" && f.Marker == nil {
		return fmt.Sprintf("%s carries StorageTarget %s", f.KernelName, f.Target)
	}
	return ""
}

// sameTarget reports whether a marker is that of this target, also under an earlier FileSystem of the same name.
func sameTarget(m Marker, t *v1alpha1.StorageTarget) bool {
	return m.Namespace == t.Namespace && m.FileSystem == t.Spec.FileSystem.Name && m.Target == t.Name &&
		m.Role == string(t.Spec.Role) && m.StoragePool == t.Spec.StoragePool
}

// IsOfThisCluster holds if this cluster wrote the marker of a target, or if a person allowed the takeover. Two clusters that reach one disk
// may use the same names for nodes, FileSystems and targets.
func IsOfThisCluster(m Marker, t *v1alpha1.StorageTarget, takenFrom string) string {
	if m.Cluster == t.Spec.Cluster || m.Cluster != "" && m.Cluster == takenFrom {
		return ""
	}
	return fmt.Sprintf("the disk carries this target of another cluster, %q (this one is %q), which may be using it: it is neither mounted nor changed",
		m.Cluster, t.Spec.Cluster)
}

// stableNames returns the stable names of a device.
func stableNames(d v1alpha1.BlockDevice) []string {
	names := slices.DeleteFunc(slices.Clone(d.IDs), func(id string) bool { return IsNamedStably(v1alpha1.DeviceID(id)) != "" })
	for _, name := range []string{d.WWN, d.Serial} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// devicePath returns the path of the device node of a kernel name. The kernel writes "!" for the slash of a device in a subdirectory of
// /dev.
func devicePath(kernelName string) string { return "/dev/" + strings.ReplaceAll(kernelName, "!", "/") }

// describe lists everything that identifies a signature. Labels are quoted, because anybody may have written them.
func describe(s v1alpha1.Signature) string {
	text := s.Device + ": " + s.Type
	if s.Offset != "" {
		text += " at " + s.Offset
	}
	if s.Label != "" {
		text += fmt.Sprintf(", label %q", s.Label)
	}
	if s.UUID != "" {
		text += ", uuid " + s.UUID
	}
	return text
}

// sentences returns the strings that are not empty.
func sentences(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}
