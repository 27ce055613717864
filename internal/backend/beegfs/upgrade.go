package beegfs

import (
	"fmt"
	"slices"

	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
)

// hardLinks is the first release of 7.4 whose metadata servers are incompatible with the releases before it.
const hardLinks = "7.4.3"

// Lines returns 7.4 and all of 8.
func (Backend) Lines() []string { return []string{"7.4", "8"} }

// UpgradePath is empty from one 7.4.x to a later one, and from one 8.x.y to a later one. BeeGFS documents no way back.
func (Backend) UpgradePath(from, to string) string {
	was, now := backend.VersionNumbers(from), backend.VersionNumbers(to)
	switch {
	case backend.CompareVersions(to, from) < 0:
		return fmt.Sprintf("BeeGFS documents no way back from %s to %s; set spec.version to %s or a newer one", from, to, from)
	case !cli.Is8(from) && cli.Is8(to):
		return fmt.Sprintf("the operator does not take a BeeGFS %s to %s: its upgrade guide stops the whole filesystem, imports the store of the management service "+
			"into a new one (beegfs-mgmtd --import-from-v7), and asks for a license for pools and mirrors; set spec.version to a 7.4.x", from, to)
	case !cli.Is8(from) && backend.CompareVersions(from, hardLinks) < 0 && backend.CompareVersions(to, hardLinks) >= 0:
		return fmt.Sprintf("the operator does not take a BeeGFS %s to %s: by its upgrade guide, metadata servers before %s don't understand those since, "+
			"and all must change at once; set spec.version to a 7.4.x before %s", from, to, hardLinks, hardLinks)
	case slices.Equal(was[:1], now[:1]):
		return ""
	default:
		return fmt.Sprintf("no upgrade is known from BeeGFS %s to %s; set spec.version to a newer %d.x", from, to, was[0])
	}
}

// UpgradeSkew is empty: UpgradePath refuses every combination that BeeGFS excludes.
func (Backend) UpgradeSkew(backend.Input, string) string { return "" }
