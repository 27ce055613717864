package experiments

import "regexp"

var (
	// address matches an IPv4 address, which differs between clusters.
	address = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	// disk matches the part of a target's name that depends on its node and its disk.
	disk = regexp.MustCompile(`(/var/lib/parallelfs/targets/[^/]+/[a-z0-9.-]+)-[0-9a-f]{16}\b`)
	// limit matches a limit that depends on the sizes of the disks.
	limit = regexp.MustCompile(`(?m)^(tune(?:Storage|Meta)(?:Space|Inodes)(?:Low|Emergency)Limit *= *)[0-9]+$`)
)

// Normalize makes a daemon's configuration comparable between clusters. It replaces the addresses of nodes, the names of disks, and the
// limits that depend on disk sizes with ADDRESS, DISK and SIZE.
func Normalize(configuration string) string {
	configuration = address.ReplaceAllString(configuration, "ADDRESS")
	configuration = disk.ReplaceAllString(configuration, "$1-DISK")
	return limit.ReplaceAllString(configuration, "${1}SIZE")
}
