// Package moosefs runs MooseFS Community Edition: one master, metaloggers, one chunkserver process per storage pool and
// node, and FUSE clients. Options and commands are those of the man pages mfsmaster.cfg(5), mfschunkserver.cfg(5),
// mfshdd.cfg(5), mfsexports.cfg(5), mfsmetalogger.cfg(5), mfsmount(8), mfsscadmin(1) and mfscli(1) of 3.0.117 and 4.57.5.
package moosefs

import (
	"fmt"
	"path"
	"strconv"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

// The components: values of v1alpha1.LabelComponent.
const (
	componentMaster         = "master"
	componentMetalogger     = "metalogger"
	componentChunkserver    = "chunkserver"
	componentClient         = "client"
	componentStorageClasses = "storageclasses"
)

// Backend runs MooseFS.
type Backend struct{}

var _ backend.Backend = Backend{}

// New returns the backend.
func New() Backend { return Backend{} }

// Type is MooseFS.
func (Backend) Type() v1alpha1.FileSystemType { return v1alpha1.MooseFS }

// RestartOrder is MooseFS's own upgrade order (README of moosefs/moosefs): master, metaloggers, chunkservers. Clients are
// not in it, because a restart of a mount breaks every program that has a file open.
func (Backend) RestartOrder() []string {
	return []string{componentMaster, componentMetalogger, componentChunkserver}
}

// Mount says where client nodes have the filesystem.
func (Backend) Mount(fs *v1alpha1.FileSystem) backend.Mount {
	if fs.Spec.Clients == nil {
		return backend.Mount{}
	}
	mount := backend.Mount{Path: string(fs.Spec.Clients.MountPath), FSType: mountType}
	if fs.Status.Management != nil {
		mount.Source = mountSource(fs.Status.Management.Address)
	}
	return mount
}

// Prober asks the master by mfscli.
func (Backend) Prober(version, address string) backend.Prober { return NewProber(version, address) }

// ports of a filesystem, from its base port; see v1alpha1.MooseFSSpec.BasePort.
type ports struct{ base int32 }

func portsOf(fs *v1alpha1.FileSystem) ports { return ports{fs.Spec.MooseFS.BasePort} }

func (p ports) metaloggers() int32           { return p.base }
func (p ports) chunkservers() int32          { return p.base + 1 }
func (p ports) clients() int32               { return p.base + 2 }
func (p ports) probe() int32                 { return p.base + 8 }
func (p ports) chunkserver(slot int32) int32 { return p.base + 16 + slot }
func (p ports) overlap(other ports) bool {
	return p.base < other.base+portRange && other.base < p.base+portRange
}
func address(host string, port int32) string                  { return host + ":" + strconv.Itoa(int(port)) }
func label(slot int32) string                                 { return string('A' + slot) }
func dataDirectory(directory string) string                   { return path.Join(directory, dataSubdirectory) }
func childName(fs *v1alpha1.FileSystem, suffix string) string { return fs.Name + "-" + suffix }

const (
	// portRange is the number of ports that a filesystem reserves from its base port.
	portRange = 32
	// dataSubdirectory of a target belongs to the daemon; the directory above it is root's and holds the marker. A
	// subdirectory of the mount is what README.Debian of moosefs-chunkserver advises.
	dataSubdirectory = "data"
)

// stateRoot is the directory on each node that holds what daemons need besides targets: identities and ledgers.
func stateRoot(fs *v1alpha1.FileSystem) string {
	return fmt.Sprintf("/var/lib/parallelfs/%s.%s", fs.Namespace, fs.Name)
}

// stateDirectory belongs to one FileSystem object alone: the next one of the same name may have other metadata, to which
// a chunkserver with the old identity could not connect, and a metalogger must not overwrite the last copy of the old one.
func stateDirectory(fs *v1alpha1.FileSystem, component string) string {
	return path.Join(stateRoot(fs), string(fs.UID), component)
}

// major is the major version, "3" or "4".
func major(version string) string { return version[:1] }

// ProbeURL is where the probe of a filesystem serves its state, empty while the master has no node.
func (Backend) ProbeURL(in backend.Input) string {
	node, ok := masterNode(in)
	if !ok {
		return ""
	}
	return "http://" + address(node.IP, portsOf(in.FileSystem).probe()) + "/state"
}

func masterNode(in backend.Input) (backend.Node, bool) {
	if in.FileSystem.Status.Metadata == nil {
		return backend.Node{}, false
	}
	return nodeNamed(in.Nodes, in.FileSystem.Status.Metadata.Node)
}

func nodeNamed(nodes []backend.Node, name string) (backend.Node, bool) {
	for _, n := range nodes {
		if n.Name == name {
			return n, n.IP != ""
		}
	}
	return backend.Node{}, false
}

func matching(nodes []backend.Node, selector v1alpha1.NodeSelector) []backend.Node {
	var out []backend.Node
	for _, n := range nodes {
		if matches(n, selector) {
			out = append(out, n)
		}
	}
	return out
}

func matches(n backend.Node, selector v1alpha1.NodeSelector) bool {
	for key, value := range selector {
		if have, ok := n.Labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}
