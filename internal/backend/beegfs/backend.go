// Package beegfs runs BeeGFS 7.4 and 8: a management service, several metadata servers on each node, one storage server per
// node and pool, and kernel clients. Options, files and commands are those of beegfs-mgmtd, beegfs-meta, beegfs-storage,
// beegfs-client.conf and beegfs-ctl of 7.4.6, and of the same daemons and the tool beegfs of 8.3.1.
package beegfs

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// The components: values of v1alpha1.LabelComponent. The first three are also the names of the daemons' directories on a target.
const (
	componentManagement = "management"
	componentMeta       = "meta"
	componentStorage    = "storage"
	componentClient     = "client"
	componentConfigure  = "configure"
	componentDrain      = "drain"
	componentBackup     = "backup"
)

const (
	// maxSlots is the number of storage pools, and of metadata servers on a node: each has a port of its own.
	maxSlots = 16
	// dataSubdirectory of a target belongs to the daemon; the directory above it belongs to root and holds the marker.
	dataSubdirectory = "data"
	// rootUser runs the daemons: they set the owner and the attributes of what they store.
	rootUser = "root"
)

// The programs, where BeeGFS's packages install them.
const (
	programManagement = "/opt/beegfs/sbin/beegfs-mgmtd"
	programMeta       = "/opt/beegfs/sbin/beegfs-meta"
	programStorage    = "/opt/beegfs/sbin/beegfs-storage"
)

// Backend runs BeeGFS.
type Backend struct {
	// TellTime is how long it may take until a server that starts reads a changed configuration; see backend.DefaultTellTime.
	TellTime time.Duration
}

// The features that this backend has and not every backend has.
var (
	_ backend.Backend        = Backend{}
	_ backend.Prober         = Backend{}
	_ backend.SecretKeeper   = Backend{}
	_ backend.Certified      = Backend{}
	_ backend.Claimer        = Backend{}
	_ backend.Mounter        = Backend{}
	_ backend.Pinner         = Backend{}
	_ backend.Drainer        = Backend{}
	_ backend.Upgrader       = Backend{}
	_ backend.StoreRecoverer = Backend{}
	_ backend.Maintainer     = Backend{}
	_ backend.Checker        = Backend{}
	_ backend.FileFinder     = Backend{}
	_ backend.Adopter        = Backend{}
	_ backend.HostTuner      = Backend{}
	_ backend.ModuleUser     = Backend{}
	_ backend.Benchmarker    = Backend{}
)

// New returns the backend with the usual times.
func New() Backend { return Backend{TellTime: backend.DefaultTellTime} }

// Type is BeeGFS.
func (Backend) Type() v1alpha1.FileSystemType { return v1alpha1.BeeGFS }

// Versions lists the versions of the fixtures, which servers and tools of these versions wrote or accepted.
func (Backend) Versions() []string { return []string{"7.4.6", "8.3.1"} }

// withIPv6 is the first version with IPv6 (connDisableIPv6 and ipv6-disable are new in it).
const withIPv6 = "8.2"

// Families returns IPv4, and IPv6 if all daemons run a version that supports it: an upgrade restarts them one after the other.
func (Backend) Families(fs *v1alpha1.FileSystem) []corev1.IPFamily {
	if backend.CompareVersions(backend.Version(fs), withIPv6) < 0 {
		return []corev1.IPFamily{corev1.IPv4Protocol}
	}
	return nodefacts.AllFamilies()
}

// Order returns the order in which BeeGFS starts its daemons. Clients are not in it, because a restart of a mount breaks every program that
// has a file open.
func (Backend) Order() []string {
	return []string{componentManagement, componentMeta, componentStorage}
}

// Mount returns where client nodes mount the filesystem.
func (Backend) Mount(fs *v1alpha1.FileSystem) backend.Mount {
	if fs.Spec.Clients == nil {
		return backend.Mount{}
	}
	return backend.Mount{Path: string(fs.Spec.Clients.MountPath), FSType: mountType, Source: mountSource(fs)}
}

// mountType is the type of a mount in /proc/self/mountinfo.
const mountType = "beegfs"

// mountSource is the source of a mount in /proc/self/mountinfo. The kernel module ignores it (beegfs_nodev is only the custom), so it names
// the filesystem: another BeeGFS that is mounted at the same path is not mistaken for this one.
func mountSource(fs *v1alpha1.FileSystem) string {
	return fmt.Sprintf("beegfs_nodev:%s/%s", fs.Namespace, fs.Name)
}

// Questions queries the management service with beegfs-ctl, or with beegfs from version 8.
func (Backend) Questions(version, address string) backend.Questions {
	return cli.New(version, address)
}

// SecretName is the Secret with the shared secret of all daemons and clients, and its key. A user may create that Secret first to choose
// the secret.
func (Backend) SecretName(fs *v1alpha1.FileSystem) (name, key string) {
	return secretName(fs), cli.AuthKey
}

// ProbeURL is where the probe of a filesystem serves its state, empty while the management service has no node or no port.
func (Backend) ProbeURL(in backend.Input) string {
	node, ok := managementNode(in)
	if !ok || in.FileSystem.Status.BeeGFS == nil {
		return ""
	}
	return "http://" + backend.Address(node.IP, portsOf(in.FileSystem).probe()) + "/state"
}

// The names of the objects.
func configMapName(fs *v1alpha1.FileSystem) string { return backend.ChildName(fs, "beegfs") }
func secretName(fs *v1alpha1.FileSystem) string    { return backend.ChildName(fs, "beegfs") }

// ports computes the ports of a filesystem from its base port; see v1alpha1.BeeGFSSpec.BasePort. Each port number is used for TCP and for
// UDP.
type ports struct{ base int32 }

// portsOf returns the recorded ports.
func portsOf(fs *v1alpha1.FileSystem) ports {
	if fs.Status.BeeGFS == nil {
		return ports{}
	}
	return ports{fs.Status.BeeGFS.BasePort}
}

func (p ports) client() int32            { return p.base + 4 }
func (p ports) management() int32        { return p.base + 8 }
func (p ports) probe() int32             { return p.base + 9 }
func (p ports) grpc() int32              { return p.base + 10 }
func (p ports) meta(slot int32) int32    { return p.base + 16 + slot }
func (p ports) storage(slot int32) int32 { return p.base + 32 + slot }

// poolID is BeeGFS's own number of the pool in a slot: the first pool is the default one.
func poolID(slot int32) int32 { return cli.DefaultPoolID + slot }

// The names of the daemons among those of their node: spec.Run.Daemon.
func metaDaemon(slot int32) string     { return fmt.Sprintf("%s/%d", componentMeta, slot) }
func storageDaemon(pool string) string { return componentStorage + "/" + pool }

// The names of the members of a FileSystemNode.
func metaMemberName(slot int32) string     { return spec.MemberName(metaDaemon(slot)) }
func storageMemberName(pool string) string { return spec.MemberName(storageDaemon(pool)) }

// The names of the daemons in the status.
func managementName(node string) string    { return componentManagement + "." + node }
func storageName(pool, node string) string { return storageMemberName(pool) + "." + node }

func metaSlots(fs *v1alpha1.FileSystem) int32 {
	return max(1, fs.Spec.MetadataServers.InstancesPerNode)
}
func managementNode(in backend.Input) (backend.Node, bool) {
	if in.FileSystem.Status.Metadata == nil {
		return backend.Node{}, false
	}
	return in.Node(in.FileSystem.Status.Metadata.Node)
}

// image returns the image for a role: "mgmtd", "meta", "storage", or "tools", which has beegfs-ctl of BeeGFS 7 or beegfs of BeeGFS 8. It
// has the version of the component that it runs for.
func image(in backend.Input, role, component string) (string, error) {
	version := backend.VersionOf(in.FileSystem, component)
	if i, ok := in.Images.Daemon("beegfs-" + role + "-" + version); ok {
		return i, nil
	}
	if repository, ok := in.Images.Daemons["beegfs-"+role]; ok {
		return repository + ":" + version, nil
	}
	return "", backend.Invalid(v1alpha1.ReasonInvalidSpec,
		"the operator has no image beegfs-%s for BeeGFS %s; start it with --daemon-image=beegfs-%s-%s=<image> (chart value images.daemons)",
		role, version, role, version)
}

// pods makes the pods of a filesystem. The daemons run as root.
func pods(in backend.Input) podspec.Pods {
	management, _ := managementNode(in)
	return podspec.Pods{
		FileSystem: in.FileSystem, Images: in.Images, Software: "beegfs", Management: podspec.ManagementAt(management),
	}
}

// own returns the part of the spec that only a BeeGFS has.
func own(fs *v1alpha1.FileSystem) v1alpha1.BeeGFSSpec {
	if fs.Spec.BeeGFS == nil {
		return v1alpha1.BeeGFSSpec{}
	}
	return *fs.Spec.BeeGFS
}

// ownPool returns the part of a pool's spec that only a BeeGFS has.
func ownPool(pool v1alpha1.StoragePoolSpec) v1alpha1.BeeGFSPool {
	if pool.BeeGFS == nil {
		return v1alpha1.BeeGFSPool{}
	}
	return *pool.BeeGFS
}
