// Package moosefs runs MooseFS Community Edition: one master, metaloggers, one chunkserver process per storage pool and
// node, and FUSE clients. Options and commands are those of the man pages mfsmaster.cfg(5), mfschunkserver.cfg(5),
// mfshdd.cfg(5), mfsexports.cfg(5), mfsmetalogger.cfg(5), mfsmount(8), mfsscadmin(1) and mfscli(1) of 3.0.117 and 4.57.5.
package moosefs

import (
	"path"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/moosefs/cli"
)

// The components, which are values of v1alpha1.LabelComponent.
const (
	componentMaster         = "master"
	componentMetalogger     = "metalogger"
	componentChunkserver    = "chunkserver"
	componentClient         = "client"
	componentStorageClasses = "storageclasses"
)

// Backend runs MooseFS.
type Backend struct {
	// TellTime is how long a change may take until a server that starts reads it; see backend.DefaultTellTime.
	TellTime time.Duration
}

// The capabilities of the backend.
var (
	_ backend.Backend          = Backend{}
	_ backend.Prober           = Backend{}
	_ backend.SecretKeeper     = Backend{}
	_ backend.Claimer          = Backend{}
	_ backend.Mounter          = Backend{}
	_ backend.Pinner           = Backend{}
	_ backend.Drainer          = Backend{}
	_ backend.Backuper         = Backend{}
	_ backend.ProgramRecoverer = Backend{}
	_ backend.Follower         = Backend{}
	_ backend.Upgrader         = Backend{}
	_ backend.Maintainer       = Backend{}
	_ backend.Checker          = Backend{}
)

// New returns the backend with the usual times.
func New() Backend { return Backend{TellTime: backend.DefaultTellTime} }

// Type is MooseFS.
func (Backend) Type() v1alpha1.FileSystemType { return v1alpha1.MooseFS }

// Versions returns the versions of the fixtures, and of the servers in the end-to-end tests.
func (Backend) Versions() []string { return []string{"3.0.117", "4.57.5"} }

// Families returns IPv4 only: no version of MooseFS supports IPv6, because its protocol holds addresses of 32 bits.
func (Backend) Families(*v1alpha1.FileSystem) []corev1.IPFamily {
	return []corev1.IPFamily{corev1.IPv4Protocol}
}

// Order is MooseFS's own upgrade order (README of moosefs/moosefs): master, metaloggers, chunkservers. Clients are
// not in it, because a restart of a mount breaks every program that has a file open.
func (Backend) Order() []string {
	return []string{componentMaster, componentMetalogger, componentChunkserver}
}

// Mount returns where client nodes have the filesystem.
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

// Questions queries the master by mfscli.
func (Backend) Questions(version, address string) backend.Questions {
	return cli.New(version, address)
}

// ports holds the ports of a filesystem, from its base port; see v1alpha1.MooseFSSpec.BasePort.
type ports struct{ base int32 }

func portsOf(fs *v1alpha1.FileSystem) ports { return ports{fs.Spec.MooseFS.Ports()} }

// own returns the part of the spec that only MooseFS has.
func own(fs *v1alpha1.FileSystem) v1alpha1.MooseFSSpec {
	if fs.Spec.MooseFS == nil {
		return v1alpha1.MooseFSSpec{}
	}
	return *fs.Spec.MooseFS
}

func (p ports) metaloggers() int32           { return p.base }
func (p ports) chunkservers() int32          { return p.base + 1 }
func (p ports) clients() int32               { return p.base + 2 }
func (p ports) probe() int32                 { return p.base + 8 }
func (p ports) chunkserver(slot int32) int32 { return p.base + 16 + slot }

func label(slot int32) string               { return string('A' + slot) }
func dataDirectory(directory string) string { return path.Join(directory, dataSubdirectory) }

// dataSubdirectory of a target belongs to the daemon; the directory above it is root's and holds the marker. A
// subdirectory of the mount is what README.Debian of moosefs-chunkserver advises.
const dataSubdirectory = "data"

// stateDirectory belongs to one FileSystem object only. A later FileSystem of the same name may have other metadata. A chunkserver with the
// old identity could not connect to it, and a metalogger must not overwrite the last copy of the old metadata.
func stateDirectory(fs *v1alpha1.FileSystem, component string) string {
	return path.Join(backend.StateRoot(fs), string(fs.UID), component)
}

// major is the major version, "3" or "4".
func major(version string) string { return version[:1] }

// ProbeURL returns where the probe of a filesystem serves its state, empty while the master has no node.
func (Backend) ProbeURL(in backend.Input) string {
	node, ok := masterNode(in)
	if !ok {
		return ""
	}
	return "http://" + backend.Address(node.IP, portsOf(in.FileSystem).probe()) + "/state"
}

func masterNode(in backend.Input) (backend.Node, bool) {
	if in.FileSystem.Status.Metadata == nil {
		return backend.Node{}, false
	}
	return in.Node(in.FileSystem.Status.Metadata.Node)
}

// Selectors implements backend.Selecting.
func (Backend) Selectors(fs *v1alpha1.FileSystem) []backend.Selector {
	if own(fs).Metaloggers == nil {
		return nil
	}
	return []backend.Selector{{
		Field: "spec.moosefs.metaloggers.nodeSelector", Costs: "there is no second copy of the metadata",
		Labels: own(fs).Metaloggers.NodeSelector, Nodes: metaloggerNodes,
	}}
}
