package spec

import (
	"path"
	"strings"
)

// TargetsRoot is the directory on every node below which the disks of all filesystems are mounted.
const TargetsRoot = "/var/lib/parallelfs/targets"

// TargetsDirectory holds the mountpoints of one FileSystem's targets on a node. Its pods get no other.
func TargetsDirectory(namespace, fileSystem string) string {
	return TargetsRoot + "/" + namespace + "." + fileSystem
}

// TargetPath is the mountpoint of a StorageTarget on its node. It is made of names, which have nothing to clean, at once: path.Join would
// spend 20 ms on 24,000 of them.
func TargetPath(namespace, fileSystem, target string) string {
	return TargetsRoot + "/" + namespace + "." + fileSystem + "/" + target
}

// MountsDirectory holds one FileSystem's mount on a node and nothing else. The pods of benchmarks get it in place of the directory that
// holds the users' mount point, where other filesystems may be mounted too.
func MountsDirectory(namespace, fileSystem string) string {
	return path.Join("/var/lib/parallelfs/mounts", namespace+"."+fileSystem)
}

// TargetMarkerFile is the name of the marker at the top of a target's own filesystem: root-owned, mode 0600, written and
// synced after mkfs and before the target is recorded as provisioned.
const TargetMarkerFile = ".parallelfs-target.json"

// TargetMarkerVersion is the version of the form of a TargetMarker that this program writes; it reads all up to this one.
const TargetMarkerVersion = 1

// TargetMarker is the content of TargetMarkerFile: whose the disk is. The FileSystem is known by its namespace and name,
// so that one that is made again finds its disks; the UID is that of the last one that used the disk.
type TargetMarker struct {
	// Version is that of the form: TargetMarkerVersion.
	Version int   `json:"version"`
	Owner   Owner `json:"owner"`
	// Cluster is the identity of the owner's cluster: the uid of its namespace kube-system. Two clusters may see one disk.
	Cluster string `json:"cluster"`
	// Target is the name of the StorageTarget.
	Target      string `json:"target"`
	Role        string `json:"role"`
	StoragePool string `json:"storagePool,omitempty"`
	Slot        int32  `json:"slot"`
	// UUID of the filesystem that the marker lies in. A marker that was copied to another disk tells by it.
	UUID string `json:"uuid"`
	// DeviceID, Serial and WWN of the disk that was formatted. A mark that is no file has no room for them.
	DeviceID string `json:"deviceID,omitempty"`
	Serial   string `json:"serial,omitempty"`
	WWN      string `json:"wwn,omitempty"`
	// Time is when it was written (RFC 3339); empty in a mark that is no file.
	Time string `json:"time,omitempty"`
}

// TargetRecordFile is the name of the record beside the data, at the top of a target's own filesystem: root-owned, mode 0600.
const TargetRecordFile = ".parallelfs-record.json"

// TargetRecordVersion is the version of the form of a TargetRecord that this program writes; it reads all up to this one.
const TargetRecordVersion = 1

// TargetRecord is the content of TargetRecordFile: what the filesystem, the server and the disk were given for ever. A cluster that has
// lost its objects is rebuilt from these. It names no versions and no settings.
type TargetRecord struct {
	// Version is that of the form of the file: TargetRecordVersion.
	Version int `json:"version"`
	// FileSystem that the disk belongs to, and Node that has it.
	FileSystem Owner  `json:"fileSystem"`
	Node       string `json:"node"`
	// Type of the filesystem, the node and the StorageTarget that hold its metadata, and the first port of its servers.
	Type           string `json:"type"`
	MetadataNode   string `json:"metadataNode"`
	MetadataTarget string `json:"metadataTarget,omitempty"`
	BasePort       int32  `json:"basePort,omitempty"`
	// Member is the server that keeps data on the disk.
	Member RecordedMember `json:"member"`
	// Target is the name of the StorageTarget, TargetID its number in the filesystem.
	Target   string `json:"target"`
	TargetID int32  `json:"targetID,omitempty"`
	// Initialized is when the filesystem first listed the disk (RFC 3339); empty before.
	Initialized string `json:"initialized,omitempty"`
}

// RecordedMember is a server in a TargetRecord.
type RecordedMember struct {
	Name        string `json:"name"`
	Role        string `json:"role"`
	StoragePool string `json:"storagePool,omitempty"`
	Slot        int32  `json:"slot"`
	ID          int32  `json:"id,omitempty"`
}

// NodesRoot is the directory on every node below which the agent keeps what the servers of the node are told.
const NodesRoot = "/var/lib/parallelfs/nodes"

// NodeDirectory holds the NodeFile of one FileSystem on a node, and nothing else. The pods of its servers get no other.
func NodeDirectory(namespace, fileSystem string) string {
	return path.Join(NodesRoot, namespace+"."+fileSystem)
}

// ModprobeDirectory is the directory of a node whose files say what modules of the kernel are loaded with (modprobe.d(5)).
const ModprobeDirectory = "/etc/modprobe.d"

// ModuleOptionsFile is the name of the file there that the agent writes for a FileSystem. It begins with ModuleOptionsHeading, or it is
// somebody else's.
func ModuleOptionsFile(namespace, fileSystem string) string {
	return "parallelfs-" + namespace + "." + fileSystem + ".conf"
}

// ModuleOptionsHeading is what it begins with.
const ModuleOptionsHeading = "# Written by ParallelFS Operator "

// NodeFileName is the name of a NodeFile in its NodeDirectory.
const NodeFileName = "node.json"

// NodeFileVersion is the version of the form of a NodeFile that this program writes; it reads all up to this one.
const NodeFileVersion = 1

// NodeFile is what the servers of one FileSystem on one node are told of it. The node's agent writes it from the FileSystemNode; it
// changes without a restart of a pod, and a server reads it when it starts.
type NodeFile struct {
	// Version is that of the form of the file: NodeFileVersion.
	Version int `json:"version"`
	// FileSystem that the servers belong to.
	FileSystem Owner `json:"fileSystem"`
	// Node is the name of the node in the cluster.
	Node string `json:"node"`
	// Generation of the FileSystemNode.
	Generation int64 `json:"generation"`
	// Members are the servers on the node.
	Members []Member `json:"members"`
}

// Member is what one server is told of its own node.
type Member struct {
	// Name is the MemberName of Run.Daemon.
	Name string `json:"name"`
	// Waits says what the operator does not know yet without which the server does not start; empty when there is nothing.
	Waits string `json:"waits,omitempty"`
	// Targets are the disks and directories that it uses, in the order of their names.
	Targets []Target `json:"targets,omitempty"`
	// Elsewhere are the targets of two nodes that this server may mount at other times: the other node has them now.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// Pinning binds it to CPUs and memory.
	Pinning *Pinning `json:"pinning,omitempty"`
	// Variables are what Files, Command and Initialize call $(NAME), such as NODE_ID. They stand before those of the environment.
	Variables map[string]string `json:"variables,omitempty"`
}

// MemberName is the name of a server in a FileSystemNode: "chunkserver-ssd" for Run.Daemon "chunkserver/ssd".
func MemberName(daemon string) string { return strings.ReplaceAll(daemon, "/", "-") }

// Target is a disk that a daemon uses: mounted at Path by the agent, or not yet.
type Target struct {
	// Name of the StorageTarget.
	Name string `json:"name"`
	// Path is the mountpoint, the same in the container as on the node.
	Path string `json:"path"`
	// UUID of the filesystem, empty until it is recorded; the target is not used before.
	UUID string `json:"uuid,omitempty"`
	// Remove is true when the daemon is to move what is on it elsewhere.
	Remove bool `json:"remove,omitempty"`
	// Directory is true for a directory of the node itself, for evaluation: Path is no mountpoint, its marker is that of a
	// spec.Directory, and the data lies in Path/Data.
	Directory bool `json:"directory,omitempty"`
	// Granted is the permission to initialize this target: true only until it is recorded that it was.
	Granted bool `json:"granted,omitempty"`
	// Expected is Initialize.Expected of this target.
	Expected bool `json:"expected,omitempty"`
	// Variables are what Initialize calls $(NAME) for this target, such as TARGET_ID.
	Variables map[string]string `json:"variables,omitempty"`
	// Served is set for a disk that only its own server mounts (format.Served): the agent proves it, and `node serve` mounts it.
	Served *ServedTarget `json:"served,omitempty"`
}

// Pinning binds a daemon to CPUs and memory.
type Pinning struct {
	// CPUs in list format, such as "0-7,16-23" (cpuset(7)).
	CPUs string `json:"cpus"`
	// MemoryNodes are NUMA nodes in list format; empty leaves the memory policy as it is.
	MemoryNodes string `json:"memoryNodes,omitempty"`
	// MemoryPolicy is Bind or Preferred.
	MemoryPolicy string `json:"memoryPolicy,omitempty"`
	// Why says who asks for it, such as "spec.metadata.cpuPinning: NUMA node 1", for sentences.
	Why string `json:"why"`
}

// The environment variables that `node run` gives to a daemon, by which the agent of the node finds its processes. They
// are not secret.
const (
	// EnvDaemon is the name of api's DaemonPlacement: namespace/fileSystem/component, and /pool or /slot.
	EnvDaemon = "PARALLELFS_DAEMON"
)
