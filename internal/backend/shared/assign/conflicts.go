package assign

import (
	"path"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// FreePorts returns the first range of ports that no other filesystem has or requests.
func FreePorts(in backend.Input, first, last, count int32, field string) (int32, error) {
	for base := first; base <= last; base += count {
		free := true
		for _, theirs := range in.Claims {
			free = free && !backend.PortRange{First: base, Count: count}.Overlap(theirs.Ports)
		}
		if free {
			return base, nil
		}
	}
	return 0, backend.Invalid(v1alpha1.ReasonPortConflict,
		"no range of %d ports from %d is free: other FileSystems have them all; set %s to a range that is free on all nodes of this FileSystem", count, first, field)
}

// RefuseConflicts refuses a port or a directory that another filesystem, of any type, uses on the same node.
func RefuseConflicts(in backend.Input, mine backend.Claims) error {
	for _, theirs := range in.Claims {
		for _, node := range backend.SortedKeys(mine.Directories) {
			directories, sharesNode := theirs.Directories[node]
			if !sharesNode {
				continue
			}
			if mine.Ports.Overlap(theirs.Ports) {
				return backend.Invalid(v1alpha1.ReasonPortConflict,
					"FileSystem %s uses the ports %d to %d on node %s too; set %s at least %d away from %d",
					theirs.Of, theirs.Ports.First, theirs.Ports.First+theirs.Ports.Count-1, node,
					mine.Field, max(mine.Ports.Count, theirs.Ports.Count), theirs.Ports.First)
			}
			for _, d := range mine.Directories[node] {
				for _, e := range directories {
					if Nested(d, e) {
						return backend.Invalid(v1alpha1.ReasonDirectoryConflict,
							"FileSystem %s keeps data in %s on node %s, and this one asks for %s; give each its own directory", theirs.Of, e, node, d)
					}
				}
			}
		}
	}
	return nil
}

// Nested reports whether two directories are the same, or one is in the other.
func Nested(d, e string) bool {
	d, e = path.Clean(d), path.Clean(e)
	return d == e || strings.HasPrefix(d, e+"/") || strings.HasPrefix(e, d+"/")
}
