// Package lustre runs Lustre: an MGS, several MDTs on each node, OSTs by pool and node, and clients, all of them mounts of the kernels of
// their nodes (docs/adr/0071). Its programs and modules are the nodes' own. Commands and options follow the man pages lctl(8), lfs(1),
// lnetctl(8) and mount.lustre(8), and the output of 2.17.57 (cli/testdata).
package lustre

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// The components: values of v1alpha1.LabelComponent, and the first part of the names of members.
const (
	componentMGS    = "mgs"
	componentMDT    = "mdt"
	componentOST    = "ost"
	componentClient = "client"
)

// Backend runs Lustre.
type Backend struct {
	// TellTime is how long it may take until a server that starts reads a changed configuration; see backend.DefaultTellTime.
	TellTime time.Duration
}

// The features that this backend has and not every backend has.
var (
	_ backend.Backend         = Backend{}
	_ backend.NodeProber      = Backend{}
	_ backend.TargetTeller    = Backend{}
	_ backend.Claimer         = Backend{}
	_ backend.Mounter         = Backend{}
	_ backend.Upgrader        = Backend{}
	_ backend.Maintainer      = Backend{}
	_ backend.Drainer         = Backend{}
	_ backend.SecretKeeper    = Backend{}
	_ backend.StoreBackuper   = Backend{}
	_ backend.ServedRecoverer = Backend{}
	_ backend.Survivor        = Backend{}
	_ backend.ServerMeasurer  = Backend{}
	_ backend.Pairer          = Backend{}
	_ backend.Pinner          = Backend{}
)

// New returns the backend with the usual times.
func New() Backend { return Backend{TellTime: backend.DefaultTellTime} }

// Type is Lustre.
func (Backend) Type() v1alpha1.FileSystemType { return v1alpha1.Lustre }

// Versions lists the version of the recorded answers, and that of the packages that sites run, whose commands are the same according to its
// sources.
func (Backend) Versions() []string { return []string{"2.15.6", "2.17.57"} }

// Families is IPv4: NIDs with IPv6 were not tested. Where spec.network names the interfaces of LNet, only the probes use the node's
// InternalIP, which may be of any family.
func (Backend) Families(fs *v1alpha1.FileSystem) []corev1.IPFamily {
	if fs.Spec.Network != nil && len(fs.Spec.Network.Interfaces) > 0 {
		return nodefacts.AllFamilies()
	}
	return []corev1.IPFamily{corev1.IPv4Protocol}
}

// Order returns the order in which the manual stops a filesystem, reversed: MDTs, OSTs, and an MGS of its own last.
func (Backend) Order() []string { return []string{componentMGS, componentOST, componentMDT} }

// Mount returns where client nodes mount the filesystem.
func (Backend) Mount(fs *v1alpha1.FileSystem) backend.Mount {
	if fs.Spec.Clients == nil {
		return backend.Mount{}
	}
	mount := backend.Mount{Path: string(fs.Spec.Clients.MountPath), FSType: mountType}
	if nids := given(fs).ManagementNIDs; len(nids) > 0 {
		mount.Source = sourceOf(nids, own(fs).FSName)
	}
	return mount
}

// Questions queries the node on which the probe runs.
func (Backend) Questions(_, address string) backend.Questions {
	_, fsName, _ := strings.Cut(address, ":/")
	return questions{cli.Commands{FSName: fsName}}
}

// own returns the part of the spec that only a Lustre has, and given its permanent facts.
func own(fs *v1alpha1.FileSystem) v1alpha1.LustreSpec {
	if fs.Spec.Lustre == nil {
		return v1alpha1.LustreSpec{}
	}
	return *fs.Spec.Lustre
}

func given(fs *v1alpha1.FileSystem) v1alpha1.LustreStatus {
	if fs.Status.Lustre == nil {
		return v1alpha1.LustreStatus{}
	}
	return *fs.Status.Lustre
}

// hasMGT is true when the MGT has a disk of its own.
func hasMGT(fs *v1alpha1.FileSystem) bool { return own(fs).Management != nil }

// The names of members among those of their node: spec.Serve.Daemon.
func mdtDaemon(slot int32) string  { return fmt.Sprintf("%s/%d", componentMDT, slot) }
func ostDaemon(pool string) string { return componentOST + "/" + pool }

// daemonOf is the member of a node that mounts a target.
func daemonOf(t *v1alpha1.StorageTargetSpec) string {
	switch t.Role {
	case v1alpha1.RoleManagement:
		return componentMGS
	case v1alpha1.RoleMetadata:
		return mdtDaemon(t.Slot)
	default:
		return ostDaemon(t.StoragePool)
	}
}

// Member is the name of the member of a node that mounts a target.
func Member(t *v1alpha1.StorageTargetSpec) string { return spec.MemberName(daemonOf(t)) }

// maxSlots is how many pools, and how many MDTs of a node, have a port of their own.
const maxSlots = 16

// ports of a filesystem, from its base port; see v1alpha1.LustreSpec.BasePort. The probe of a node answers at the port of any of its
// members.
type ports struct{ base int32 }

func portsOf(fs *v1alpha1.FileSystem) ports {
	if base := own(fs).BasePort; base != 0 {
		return ports{base}
	}
	return ports{defaultPort}
}

// defaultPort is that of the API.
const defaultPort = 9700

func (p ports) mgs() int32           { return p.base }
func (p ports) mdt(slot int32) int32 { return p.base + 1 + slot }
func (p ports) ost(slot int32) int32 { return p.base + 32 + slot }

// reservedPorts is how many ports a filesystem reserves from its base port; see v1alpha1.LustreSpec.BasePort.
const reservedPorts = 64

// TargetOf returns the target with a number. Numbers in records count from 1, because 0 means that none is assigned, and Lustre's indices
// count from 0.
func TargetOf(fsName string, role v1alpha1.Role, id int32) cli.Target {
	switch role {
	case v1alpha1.RoleManagement:
		return cli.Target{Kind: cli.MGT}
	case v1alpha1.RoleMetadata:
		return cli.Target{FSName: fsName, Kind: cli.MDT, Index: id - 1}
	default:
		return cli.Target{FSName: fsName, Kind: cli.OST, Index: id - 1}
	}
}

// pods makes the pods of a filesystem. They run as root.
func pods(in backend.Input) podspec.Pods {
	management, _ := in.Node(given(in.FileSystem).ManagementNode)
	return podspec.Pods{
		FileSystem: in.FileSystem, Images: in.Images, Software: "lustre", Management: podspec.ManagementAt(management),
	}
}
