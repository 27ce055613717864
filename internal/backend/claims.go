package backend

import (
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
