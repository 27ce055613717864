package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/devices"
	"parallelfs.dev/operator/internal/plan"
)

// completed fills the gaps of an incomplete scan from the scan before. A disk that was not read still exists, and a signature that was not
// read is not absent. A disk filled in like this is not usable. complete is false for such a scan. It is an error if the devices could not
// be listed and no earlier scan listed any, because then the node's disks are unknown.
func completed(found, last v1alpha1.NodeInventoryStatus) (out v1alpha1.NodeInventoryStatus, complete bool, err error) {
	if i := slices.IndexFunc(found.Problems, func(p string) bool { return strings.HasPrefix(p, devices.Unlisted) }); i >= 0 {
		if len(last.BlockDevices) == 0 {
			return found, false, errors.New(found.Problems[i])
		}
		return unlisted(found, last, found.Problems[i]), false, nil
	}
	complete = true
	found.BlockDevices = slices.Clone(found.BlockDevices)
	for i := range found.BlockDevices {
		now := &found.BlockDevices[i]
		if plan.IsLookedAtCompletely(*now) {
			continue
		}
		complete = false
		if was := slices.IndexFunc(last.BlockDevices, func(b v1alpha1.BlockDevice) bool { return isSame(b, *now) }); was >= 0 {
			keep(now, last.BlockDevices[was])
		}
	}
	return found, complete, nil
}

// unlisted returns the disks of the scan before, all of them marked unusable.
func unlisted(found, last v1alpha1.NodeInventoryStatus, why string) v1alpha1.NodeInventoryStatus {
	found.BlockDevices = slices.Clone(last.BlockDevices)
	for i := range found.BlockDevices {
		b := &found.BlockDevices[i]
		if plan.IsLookedAtCompletely(*b) {
			sentence := v1alpha1.Cut(plan.IsLookComplete(plan.Facts{BlockDevice: *b, Incomplete: why}), maxUnusable)
			b.Unusable = append([]string{sentence}, b.Unusable[:min(len(b.Unusable), mostUnusable-1)]...)
		}
	}
	found.Summary.Disks, found.Summary.Usable, found.Summary.UsableCapacity = last.Summary.Disks, 0, v1alpha1.Bytes(0)
	return found
}

// The limits of the API (BlockDevice.unusable).
const mostUnusable, maxUnusable = 32, 512

// isSame is true for a device that has the same kernel name, size and at least one lasting name.
func isSame(a, b v1alpha1.BlockDevice) bool {
	return a.KernelName == b.KernelName && a.SizeBytes == b.SizeBytes && (a.WWN != "" && a.WWN == b.WWN ||
		a.Serial != "" && a.Serial == b.Serial || slices.ContainsFunc(a.IDs, func(id string) bool { return slices.Contains(b.IDs, id) }))
}

// keep fills in the fields of a device that could not be read.
func keep(now *v1alpha1.BlockDevice, was v1alpha1.BlockDevice) {
	if len(now.Signatures) == 0 {
		now.Signatures = was.Signatures
	}
	for _, list := range []struct {
		now *[]string
		was []string
	}{{&now.Partitions, was.Partitions}, {&now.Holders, was.Holders}, {&now.Mounts, was.Mounts}} {
		if len(*list.now) == 0 {
			*list.now = list.was
		}
	}
}

// unlooked describes the disks that could not be read completely, three of them by name.
func unlooked(found v1alpha1.NodeInventoryStatus) string {
	var names []string
	for _, b := range found.BlockDevices {
		if !plan.IsLookedAtCompletely(b) {
			names = append(names, b.KernelName)
		}
	}
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
