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

// A disk may get another identity: a serial number from new firmware, other names in a virtual machine that was moved, another size. When
// its UUID and its marker prove that it carries the target, a person may accept that (docs/adr/0107).

// DeviceOf is what the disk of a target is known by: what a person has accepted last, or else what was recorded when it was chosen.
func DeviceOf(t *v1alpha1.StorageTarget) v1alpha1.DeviceIdentity {
	if p := t.Status.Provisioned; p != nil && p.Finished != nil && p.Device != nil {
		return *p.Device
	}
	return t.Spec.Device
}

// otherIdentity decides on a finished target whose disk has another identity and carries the target by all else; nil for any other. Reasons
// are why the disk is not the target's.
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

// describeIdentity names a disk by all that it is known by.
func describeIdentity(d v1alpha1.DeviceIdentity) string {
	return fmt.Sprintf("%s (serial %q, WWN %q, %d bytes)", d.ID, d.Serial, d.WWN, d.SizeBytes)
}

// newDevice is the identity of a disk that carries a finished target by its UUID and its marker, and that is not smaller than the one that
// was recorded; nil for any other disk.
func newDevice(t *v1alpha1.StorageTarget, l Look) *v1alpha1.NewDevice {
	p, was, f := t.Status.Provisioned, DeviceOf(t), l.Device
	if f.SizeBytes < max(was.SizeBytes, t.Spec.Device.SizeBytes) {
		return nil
	}
	m := marker(l)
	if m == nil || !sameTarget(*m, t) || m.UUID != p.UUID || isFromBefore(*m, t) {
		return nil
	}
	// The old name is among its names when it was found by it.
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
	// With that identity, nothing else may be against it.
	as := t.DeepCopy()
	as.Status.Provisioned.Device = &now
	l.Device.Renamed = ""
	if len(notOurs(as, l, p.UUID)) > 0 {
		return nil
	}
	return &v1alpha1.NewDevice{Device: now, Hash: identityHash(t, was, now)}
}

// identityHash is the sha256 of a target and of the identity that its disk had and has.
func identityHash(t *v1alpha1.StorageTarget, was, now v1alpha1.DeviceIdentity) string {
	// Structs of strings and numbers can't fail to encode; their fields have one order.
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

// grown says which devices of a target are larger than they were recorded, as the end of a sentence.
func grown(t *v1alpha1.StorageTarget, l Look) string {
	was := DeviceOf(t)
	if l.Device.SizeBytes <= was.SizeBytes {
		return ""
	}
	return fmt.Sprintf("; its disk was recorded with %d bytes and has %d now: the target goes on, and its %s has the size that it had",
		was.SizeBytes, l.Device.SizeBytes, registry.NameOf(t.Spec.Format))
}
