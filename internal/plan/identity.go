package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// The identity of a disk may change: new firmware changes the serial number, a move changes the names in a virtual machine, or the size
// changes. If the UUID and the marker prove that the disk carries the target, a person may accept the new identity (docs/adr/0107).

// DeviceOf returns the current identity of a target's disk: the last one that a person has accepted, or else the one that was recorded when
// the disk was chosen.
func DeviceOf(t *v1alpha1.StorageTarget) v1alpha1.DeviceIdentity {
	if p := t.Status.Provisioned; p != nil && p.Finished != nil && p.Device != nil {
		return *p.Device
	}
	return t.Spec.Device
}

// otherIdentity decides on a finished target whose disk has another identity and proves the target by everything else; nil for any other
// target. The argument reasons holds why the disk is not the recorded one.
func otherIdentity(t *v1alpha1.StorageTarget, l Look, reasons []string) *Decision {
	offered := newDevice(t, l)
	if offered == nil {
		return nil
	}
	if t.Annotations[v1alpha1.AnnotationAcceptDevice] == offered.Hash {
		d := working(t, Record, v1alpha1.ReasonProvisioning, "the new identity of its disk was accepted")
		d.Provisioned = t.Status.Provisioned.DeepCopy()
		d.Provisioned.Device = &offered.Device
		return &d
	}
	d := refused(t, v1alpha1.ReasonTargetMissing, fmt.Sprintf("%s carries this target by UUID and marker, and has another identity: %s. If it is the same disk, accept %s: "+
		"kubectl annotate --overwrite storagetarget %s -n %s %s=%s", l.Device.KernelName, strings.Join(reasons, "; "), describeIdentity(offered.Device),
		t.Name, t.Namespace, v1alpha1.AnnotationAcceptDevice, offered.Hash))
	d.NewDevice = offered
	return &d
}

// describeIdentity lists everything that identifies a disk.
func describeIdentity(d v1alpha1.DeviceIdentity) string {
	return fmt.Sprintf("%s (serial %q, WWN %q, %d bytes)", d.ID, d.Serial, d.WWN, d.SizeBytes)
}

// newDevice returns the identity of a disk that carries a finished target by its UUID and its marker and that is not smaller than recorded;
// nil for any other disk.
func newDevice(t *v1alpha1.StorageTarget, l Look) *v1alpha1.NewDevice {
	p, was, f := t.Status.Provisioned, DeviceOf(t), l.Device
	if !isFinished(t) || !f.Found || HasIdentityOrGrew(f, was) == "" || f.SizeBytes < max(was.SizeBytes, t.Spec.Device.SizeBytes) {
		return nil
	}
	m := marker(l)
	if m == nil || !sameTarget(*m, t) || m.UUID != p.UUID || isFromBefore(*m, t) || l.Mount.Mounted && l.Mount.KernelName != f.KernelName {
		return nil
	}
	// If the disk was found by its old name, that name is still among its names.
	device := f.BlockDevice
	if slices.Contains(device.IDs, string(was.ID)) {
		device.IDs = append([]string{string(was.ID)}, device.IDs...)
	}
	now, why := identify(device)
	if why != "" {
		return nil
	}
	if now.WWN == "" && now.Serial != "" {
		now.WWN = f.SharedWWN
	}
	// With that identity, no other reason may remain.
	as := t.DeepCopy()
	as.Status.Provisioned.Device = &now
	l.Device.Renamed = ""
	if len(notOurs(as, l, p.UUID)) > 0 {
		return nil
	}
	return &v1alpha1.NewDevice{Device: now, Hash: identityHash(t, was, now)}
}

// identityHash returns the sha256 of a target and of the old and new identity of its disk.
func identityHash(t *v1alpha1.StorageTarget, was, now v1alpha1.DeviceIdentity) string {
	// Encoding can't fail, because these are structs of strings and numbers. Their fields have a fixed order.
	encoded, err := json.Marshal(struct {
		Namespace, Name, UID, UUID string
		Was, Now                   v1alpha1.DeviceIdentity
	}{t.Namespace, t.Name, string(t.UID), t.Status.Provisioned.UUID, was, now})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(encoded)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// grown names the devices of a target that are larger than recorded, as the end of a sentence.
func grown(t *v1alpha1.StorageTarget, l Look) string {
	was := DeviceOf(t)
	if l.Device.SizeBytes <= was.SizeBytes {
		return ""
	}
	return fmt.Sprintf("; its disk was recorded with %d bytes and has %d now: the target goes on, and its %s has the size that it had",
		was.SizeBytes, l.Device.SizeBytes, registry.NameOf(t.Spec.Format))
}
