package moosefs

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/internal/backend"
)

// lines are the lines of releases, oldest first: within one, each release follows the ones before.
var lines = []string{"3.0", "4.57", "4.58", "4.59"}

// steps are the lines that a filesystem of a line may go to, besides its own. A 3.0 goes to 4.57 first, which is what was run.
var steps = map[string][]string{"3.0": {"4.57"}, "4.57": {"4.58", "4.59"}, "4.58": {"4.59"}}

// lineOf is the line that a version belongs to: its first two numbers.
func lineOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Lines are those of MooseFS that there are paths for.
func (Backend) Lines() []string { return slices.Clone(lines) }

// UpgradePath is empty for the paths of the table. MooseFS documents none that leads back: a newer master writes metadata that an older one
// does not read.
func (Backend) UpgradePath(from, to string) string {
	was, now := lineOf(from), lineOf(to)
	switch {
	case backend.CompareVersions(to, from) < 0:
		return fmt.Sprintf("MooseFS has no way back from %s to %s: an older master does not read what a newer one has written; set spec.version to %s or a newer one",
			from, to, from)
	case was == now && slices.Contains(lines, was), slices.Contains(steps[was], now):
		return ""
	case len(steps[was]) > 0:
		return fmt.Sprintf("no upgrade leads from MooseFS %s to %s in one step; set spec.version to a %s.x first", from, to, strings.Join(steps[was], ".x or a "))
	default:
		return fmt.Sprintf("no upgrade is known from MooseFS %s to %s; set spec.version to a newer %s.x", from, to, was)
	}
}

// UpgradeSkew is about what the vendor excludes: that a chunkserver, a metalogger or a client is newer than the master. Those that the
// operator runs never are.
func (Backend) UpgradeSkew(in backend.Input, to string) string {
	if in.State == nil {
		return ""
	}
	var newer []string
	for i := range in.State.Servers {
		if s := &in.State.Servers[i]; s.Online && backend.CompareVersions(s.Version, to) > 0 {
			newer = append(newer, fmt.Sprintf("the server at %s runs %s", s.IP, s.Version))
		}
	}
	for i := range in.State.Sessions {
		if s := &in.State.Sessions[i]; s.Connected && backend.CompareVersions(s.Version, to) > 0 {
			newer = append(newer, fmt.Sprintf("the client at %s runs %s", s.IP, s.Version))
		}
	}
	if len(newer) == 0 {
		return ""
	}
	return fmt.Sprintf("MooseFS wants no server and no client newer than its master, which would run %s: %s; end these, or set spec.version to the newest of them",
		to, backend.List(newer))
}
