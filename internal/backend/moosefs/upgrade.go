package moosefs

import (
	"fmt"
	"slices"
	"strings"

	"parallelfs.dev/operator/internal/backend"
)

// lines lists the release lines, oldest first. Within a line, each release can follow any earlier one.
var lines = []string{"3.0", "4.57", "4.58", "4.59"}

// steps maps a line to the lines that it may be upgraded to, besides itself. 3.0 goes to 4.57 first, because that step was tested.
var steps = map[string][]string{"3.0": {"4.57"}, "4.57": {"4.58", "4.59"}, "4.58": {"4.59"}}

// lineOf returns the line of a version: its first two numbers.
func lineOf(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// Lines returns the lines of MooseFS that have an upgrade path.
func (Backend) Lines() []string { return slices.Clone(lines) }

// UpgradePath returns an empty text for the paths of the table. MooseFS documents no way back: a newer master writes metadata that an older
// one can't read.
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

// UpgradeSkew reports what the vendor excludes: a chunkserver, a metalogger or a client that is newer than the master. The operator's own
// daemons never are.
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
	return fmt.Sprintf("MooseFS allows no server and no client newer than its master, which would run %s: %s; end these, or set spec.version to the newest of them",
		to, backend.List(newer))
}
