package plan

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	storagev1 "k8s.io/api/storage/v1"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Attachment is a volume that Kubernetes has attached to a node, or is about to attach or to detach (a VolumeAttachment).
type Attachment struct {
	// Volume is the name of the PersistentVolume, or of the VolumeAttachment if it has none.
	Volume string
	// Driver is the CSI driver that attaches it.
	Driver string
	// Names holds everything that may name the disk of the volume: its handle, and what its driver says about the attached volume.
	Names []string
}

// AttachmentOf returns the volume of a VolumeAttachment. The handle is that of its PersistentVolume, empty if there is none.
func AttachmentOf(of *storagev1.VolumeAttachment, handle string) Attachment {
	a := Attachment{Volume: of.Name, Driver: of.Spec.Attacher}
	for _, key := range slices.Sorted(maps.Keys(of.Status.AttachmentMetadata)) {
		a.Names = append(a.Names, of.Status.AttachmentMetadata[key])
	}
	if name := of.Spec.Source.PersistentVolumeName; name != nil {
		a.Volume, a.Names = *name, append(a.Names, *name)
		if handle != "" {
			a.Names = append(a.Names, handle)
		}
	}
	return a
}

// SortAttachments sorts the volumes of each node, so that the same volumes lead to the same messages.
func SortAttachments(byNode map[string][]Attachment) {
	for _, all := range byNode {
		slices.SortFunc(all, func(a, b Attachment) int {
			return cmp.Or(strings.Compare(a.Volume, b.Volume), strings.Compare(a.Driver, b.Driver))
		})
	}
}

// leastName is the length of a name that proves something about a disk. Shorter ones are numbers and paths, which are in many names.
const leastName = 8

// attached returns why a volume of Kubernetes keeps a selector from choosing a disk, and empty if none does. A driver is free to say
// nothing about the disk of a volume. Such a volume can be any disk that the node has through a network.
func (s *selection) attached(node string, inventory v1alpha1.NodeInventoryStatus, b v1alpha1.BlockDevice) string {
	all := s.in.Attachments[node]
	if why := attachedAs(all, b); why != "" {
		return why
	}
	if slices.Contains(v1alpha1.LocalTransports, v1alpha1.Transport(b.Transport)) {
		return ""
	}
	for _, a := range all {
		elsewhere := slices.ContainsFunc(inventory.BlockDevices, a.is)
		if !elsewhere {
			return fmt.Sprintf("it may be volume %s, which %s has attached to the node; if it is not, name the disk in devices", a.Volume, a.Driver)
		}
	}
	return ""
}

// attachedAs returns which volume of Kubernetes a disk is, as a reason not to use it. It is empty if no volume names the disk.
func attachedAs(all []Attachment, b v1alpha1.BlockDevice) string {
	if i := slices.IndexFunc(all, func(a Attachment) bool { return a.is(b) }); i >= 0 {
		return fmt.Sprintf("it is volume %s, which %s has attached to the node", all[i].Volume, all[i].Driver)
	}
	return ""
}

// is reports whether a name of the volume contains one of the disk, or is contained in it. Drivers write the same name in different ways.
func (a Attachment) is(b v1alpha1.BlockDevice) bool {
	disk := slices.Concat([]string{b.WWN, b.SharedWWN, b.Serial}, b.IDs)
	for _, prefix := range []string{"0x", "naa.", "eui.", "uuid."} {
		disk = append(disk, strings.TrimPrefix(b.WWN, prefix), strings.TrimPrefix(b.SharedWWN, prefix))
	}
	for _, name := range a.Names {
		for _, name := range []string{letters(name), letters(path.Base(name))} {
			for _, of := range disk {
				of = letters(of)
				if min(len(name), len(of)) >= leastName && (strings.Contains(name, of) || strings.Contains(of, name)) {
					return true
				}
			}
		}
	}
	return false
}

// letters returns the letters and digits of a name, in lower case.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(name))
}
