package beegfs

import (
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/node/format/registry"
)

// limits has the limits of the capacity pools of a role: a target with less free than low gets new files only when no other target can; one
// with less than emergency only when nothing else is left.
type limits struct{ spaceLow, spaceEmergency, inodesLow, inodesEmergency int64 }

const (
	gib = 1 << 30
	tib = 1 << 40
)

// shippedLimits returns BeeGFS's own limits: of beegfs-mgmtd.conf of 7.4.6, and of mgmtd/src/config.rs of 8.3.1.
func shippedLimits(role v1alpha1.Role, version string) limits {
	inodesLow, inodesEmergency := int64(10<<20), int64(1<<20) // "10M" and "1M" in beegfs-mgmtd.conf
	if cli.Is8(version) {
		inodesLow, inodesEmergency = 10_000_000, 1_000_000
	}
	switch {
	case role == v1alpha1.RoleMetadata:
		return limits{10 * gib, 3 * gib, inodesLow, inodesEmergency}
	case cli.Is8(version):
		return limits{512 * gib, 10 * gib, inodesLow, inodesEmergency}
	default:
		return limits{tib, 20 * gib, inodesLow, inodesEmergency}
	}
}

// limitsFor returns BeeGFS's own limits of a role. If a target is so small that it would be below a limit when new, the limits are 10 % of
// the smallest target, and 2 % for an emergency. The size of a directory is unknown and does not change the limits.
func limitsFor(role v1alpha1.Role, version string, targets []v1alpha1.StorageTarget) limits {
	l := shippedLimits(role, version)
	for i := range targets {
		t := &targets[i]
		if t.Spec.Role != role {
			continue
		}
		size, inodes := t.Spec.Device.SizeBytes, inodesOf(&t.Spec)
		l.spaceLow, l.spaceEmergency = min(l.spaceLow, size/10), min(l.spaceEmergency, size/50)
		l.inodesLow, l.inodesEmergency = min(l.inodesLow, inodes/10), min(l.inodesEmergency, inodes/50)
	}
	return l
}

// variables returns the limits of a role as variables of the management service's configuration.
func (l limits) variables(prefix string) map[string]string {
	text := func(n int64) string { return strconv.FormatInt(n, 10) }
	return map[string]string{
		prefix + "_SPACE_LOW": text(l.spaceLow), prefix + "_SPACE_EMERGENCY": text(l.spaceEmergency),
		prefix + "_INODES_LOW": text(l.inodesLow), prefix + "_INODES_EMERGENCY": text(l.inodesEmergency),
	}
}

// inodesOf estimates the number of inodes that mkfs makes on a target; 0 for a format without such a number, which reports 0 to BeeGFS too.
func inodesOf(t *v1alpha1.StorageTargetSpec) int64 {
	f, err := registry.Of(t.Format)
	if err != nil {
		return 0 // The agent refuses to make such a format.
	}
	return f.Inodes(t.Device.SizeBytes, t.Format.MkfsOptions)
}
