package backend

import (
	"path"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
)

// PortRange is Count ports, beginning with First. Count is 0 for a filesystem that has none yet.
type PortRange struct{ First, Count int32 }

// Overlap reports whether a port is in both ranges.
func (p PortRange) Overlap(other PortRange) bool {
	return p.First < other.First+other.Count && other.First < p.First+p.Count
}

// Claims holds what a filesystem uses on nodes, so that no other may use it there.
type Claims struct {
	// Of is the FileSystem, as "namespace/name".
	Of string
	// Ports that it has, or requests, on every node with its servers. Field of the spec sets them, such as "spec.example.basePort".
	Ports PortRange
	Field string
	// Directories holds the directories that it uses on each node with its servers. It leaves out directories on the filesystem's own disks,
	// because two claims to one disk are refused where the disk is chosen. It includes nodes without directories, because of the ports. It is
	// nil for a filesystem that has recorded nothing yet; that filesystem checks the claims of others when it records something.
	Directories map[string][]string
}

// NewClaims returns the claims of a filesystem on no node yet.
func NewClaims(fs *v1alpha1.FileSystem, ports PortRange, field string) Claims {
	return Claims{Of: fs.Namespace + "/" + fs.Name, Ports: ports, Field: field}
}

// Use adds directories of a node, or only the node.
func (c *Claims) Use(node string, directories ...string) {
	if c.Directories == nil {
		c.Directories = map[string][]string{}
	}
	c.Directories[node] = append(c.Directories[node], directories...)
}

// UseMetadata adds the recorded node of the metadata, and its directory if that is not on a disk of its own.
func (c *Claims) UseMetadata(record v1alpha1.MetadataRecord) {
	if record.Target == "" && record.Directory != "" {
		c.Use(record.Node, record.Directory)
		return
	}
	c.Use(record.Node)
}

// UsePools adds the nodes with servers of the pools in the spec, and the pools' directories there.
func (c *Claims) UsePools(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) {
	directories := map[string][]string{}
	for _, pool := range fs.Spec.StoragePools {
		directories[pool.Name] = []string{}
		for _, d := range pool.Targets.Directories {
			directories[pool.Name] = append(directories[pool.Name], string(d))
		}
	}
	for _, server := range GivenOn(nodes) {
		if its, there := directories[server.StoragePool]; there {
			c.Use(server.Node, its...)
		}
	}
}

// FreePorts returns the first range of ports that no other filesystem has or requests.
func FreePorts(in Input, first, last, count int32, field string) (int32, error) {
	for base := first; base <= last; base += count {
		free := true
		for _, theirs := range in.Claims {
			free = free && !PortRange{First: base, Count: count}.Overlap(theirs.Ports)
		}
		if free {
			return base, nil
		}
	}
	return 0, Invalid(v1alpha1.ReasonPortConflict,
		"no range of %d ports from %d is free: other FileSystems have them all; set %s to a range that is free on all nodes of this FileSystem", count, first, field)
}

// RefuseConflicts refuses a port or a directory that another filesystem, of any type, uses on the same node.
func RefuseConflicts(in Input, mine Claims) error {
	for _, theirs := range in.Claims {
		for _, node := range SortedKeys(mine.Directories) {
			directories, sharesNode := theirs.Directories[node]
			if !sharesNode {
				continue
			}
			if mine.Ports.Overlap(theirs.Ports) {
				return Invalid(v1alpha1.ReasonPortConflict,
					"FileSystem %s uses the ports %d to %d on node %s too; set %s at least %d away from %d",
					theirs.Of, theirs.Ports.First, theirs.Ports.First+theirs.Ports.Count-1, node,
					mine.Field, max(mine.Ports.Count, theirs.Ports.Count), theirs.Ports.First)
			}
			for _, d := range mine.Directories[node] {
				for _, e := range directories {
					if Nested(d, e) {
						return Invalid(v1alpha1.ReasonDirectoryConflict,
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
