package experiments

import "regexp"

var (
	// address is an IPv4 address, of which every cluster has others.
	address = regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}\b`)
	// disk is the part of a target's name that follows from its node and its disk.
	disk = regexp.MustCompile(`(/var/lib/parallelfs/targets/[^/]+/[a-z0-9.-]+)-[0-9a-f]{16}\b`)
	// limit is what follows from the sizes of the disks.
	limit = regexp.MustCompile(`(?m)^(tune(?:Storage|Meta)(?:Space|Inodes)(?:Low|Emergency)Limit *= *)[0-9]+$`)
)

// Normalize writes a daemon's configuration so that it can be compared between clusters: ADDRESS, DISK and SIZE stand for what
// differs between them, the addresses of nodes, the names of disks and the limits that follow from their sizes.
func Normalize(configuration string) string {
	configuration = address.ReplaceAllString(configuration, "ADDRESS")
	configuration = disk.ReplaceAllString(configuration, "$1-DISK")
	return limit.ReplaceAllString(configuration, "${1}SIZE")
}
