package plan

import (
	"time"

	"parallelfs.dev/operator/api/v1alpha1"
)

// Foresee returns what Decide would return for a target whose disk is as the inventory of its node shows it. An inventory holds less than
// the look of an agent: neither markers nor unknown data. So the result is a forecast for a person, and nothing is ever done with it.
func Foresee(t *v1alpha1.StorageTarget, inventory v1alpha1.NodeInventoryStatus, now time.Time) Decision {
	l := Look{Device: seenIn(inventory, t.Spec.Device)}
	if t.Spec.LogDevice != nil {
		log := seenIn(inventory, *t.Spec.LogDevice)
		l.Log = &log
	}
	return Decide(t, l, now, func() string { return "00000000-0000-0000-0000-000000000000" })
}

// seenIn returns what an inventory shows of a device.
func seenIn(inventory v1alpha1.NodeInventoryStatus, device v1alpha1.DeviceIdentity) Facts {
	b := findDevice(inventory, string(device.ID))
	if b == nil {
		return Facts{}
	}
	return Facts{Found: true, BlockDevice: *b}
}

// Shown returns the device of an inventory that has an id, nil if there is none.
func Shown(inventory v1alpha1.NodeInventoryStatus, id v1alpha1.DeviceID) *v1alpha1.BlockDevice {
	return findDevice(inventory, string(id))
}
