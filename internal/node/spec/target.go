package spec

import (
	"path"
	"strings"
)

// TargetsRoot is the directory on every node below which the disks of all filesystems are mounted.
const TargetsRoot = "/var/lib/parallelfs/targets"

// TargetsDirectory holds the mountpoints of one FileSystem's targets on a node. Its pods get no other directory of this kind.
func TargetsDirectory(namespace, fileSystem string) string {
	return TargetsRoot + "/" + namespace + "." + fileSystem
}

// TargetPath is the mountpoint of a StorageTarget on its node. The names need no cleaning, so they are concatenated: path.Join would need
// 20 ms for 24,000 of them.
func TargetPath(namespace, fileSystem, target string) string {
	return TargetsRoot + "/" + namespace + "." + fileSystem + "/" + target
}

// MountsDirectory contains one FileSystem's mount on a node and nothing else. Benchmark pods get it instead of the directory with the
// users' mount point, in which other filesystems may be mounted too.
func MountsDirectory(namespace, fileSystem string) string {
	return path.Join("/var/lib/parallelfs/mounts", namespace+"."+fileSystem)
}

// TargetMarkerFile is the name of the marker in the top directory of a target's filesystem: owned by root, mode 0600. It is written and
// synced after mkfs and before the target is recorded as provisioned.
const TargetMarkerFile = ".parallelfs-target.json"

// TargetMarkerVersion is the format version of a TargetMarker that this program writes. It reads all versions up to this one.
const TargetMarkerVersion = 1

// TargetMarker is the content of TargetMarkerFile, which identifies the disk's owner. The FileSystem is identified by namespace and name,
// so that a recreated one finds its disks. The UID is that of the last one that used the disk.
type TargetMarker struct {
	// Version is the format version: TargetMarkerVersion.
	Version int   `json:"version"`
	Owner   Owner `json:"owner"`
	// Cluster is the identity of the owner's cluster: the uid of its namespace kube-system. Two clusters may see one disk.
	Cluster string `json:"cluster"`
	// Target is the name of the StorageTarget.
	Target      string `json:"target"`
	Role        string `json:"role"`
	StoragePool string `json:"storagePool,omitempty"`
	Slot        int32  `json:"slot"`
	// UUID is the UUID of the filesystem that contains the marker. It exposes a marker that was copied to another disk.
	UUID string `json:"uuid"`
	// DeviceID, Serial and WWN identify the disk that was formatted. A mark that is not a file has no room for them.
	DeviceID string `json:"deviceID,omitempty"`
	Serial   string `json:"serial,omitempty"`
	WWN      string `json:"wwn,omitempty"`
	// Time is the time at which it was written (RFC 3339); empty in a mark that is not a file.
	Time string `json:"time,omitempty"`
}

// TargetRecordFile is the name of the record beside the data, in the top directory of a target's filesystem: owned by root, mode 0600.
const TargetRecordFile = ".parallelfs-record.json"

// TargetRecordVersion is the format version of a TargetRecord that this program writes. It reads all versions up to this one.
const TargetRecordVersion = 1

// TargetRecord is the content of TargetRecordFile: what was permanently assigned to the filesystem, the server and the disk. A cluster that
// has lost its objects is rebuilt from these records. It contains no versions and no settings.
type TargetRecord struct {
	// Version is the format version of the file: TargetRecordVersion.
	Version int `json:"version"`
	// FileSystem is the filesystem that the disk belongs to, and Node the node with the disk.
	FileSystem Owner  `json:"fileSystem"`
	Node       string `json:"node"`
	// Type is the type of the filesystem. MetadataNode and MetadataTarget locate its metadata, and BasePort is the first port of its servers.
	Type           string `json:"type"`
	MetadataNode   string `json:"metadataNode"`
	MetadataTarget string `json:"metadataTarget,omitempty"`
	BasePort       int32  `json:"basePort,omitempty"`
	// Member is the server that keeps data on the disk.
	Member RecordedMember `json:"member"`
	// Target is the name of the StorageTarget, and TargetID its id in the filesystem.
	Target   string `json:"target"`
	TargetID int32  `json:"targetID,omitempty"`
	// Initialized is the time at which the filesystem first listed the disk (RFC 3339); empty before that.
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

// AgentLock is the file that the agent of a node has locked while it works.
const AgentLock = "/var/lib/parallelfs/agent.lock"

// NodesRoot is the directory on every node below which the agent keeps the node files.
const NodesRoot = "/var/lib/parallelfs/nodes"

// NodeDirectory contains the NodeFile of one FileSystem on a node, and nothing else. The pods of its servers get no other directory of this
// kind.
func NodeDirectory(namespace, fileSystem string) string {
	return path.Join(NodesRoot, namespace+"."+fileSystem)
}

// ModprobeDirectory is the directory of a node with the options of kernel modules (modprobe.d(5)).
const ModprobeDirectory = "/etc/modprobe.d"

// ModuleOptionsFile is the name of the agent's file for a FileSystem in ModprobeDirectory. A file that does not begin with
// ModuleOptionsHeading belongs to another program.
func ModuleOptionsFile(namespace, fileSystem string) string {
	return "parallelfs-" + namespace + "." + fileSystem + ".conf"
}

// ModuleOptionsHeading is the beginning of that file.
const ModuleOptionsHeading = "# Written by ParallelFS Operator "

// NodeFileName is the name of a NodeFile in its NodeDirectory.
const NodeFileName = "node.json"

// NodeFileVersion is the format version of a NodeFile that this program writes. It reads all versions up to this one.
const NodeFileVersion = 1

// NodeFile is the configuration of the servers of one FileSystem on one node. The node's agent writes it from the FileSystemNode. It
// changes without a restart of a pod, and a server reads it at its start.
type NodeFile struct {
	// Version is the format version of the file: NodeFileVersion.
	Version int `json:"version"`
	// FileSystem is the filesystem that the servers belong to.
	FileSystem Owner `json:"fileSystem"`
	// Node is the name of the node in the cluster.
	Node string `json:"node"`
	// Generation is the generation of the FileSystemNode.
	Generation int64 `json:"generation"`
	// Members are the servers on the node.
	Members []Member `json:"members"`
}

// Member is the configuration of one server on its node.
type Member struct {
	// Name is the MemberName of Run.Daemon.
	Name string `json:"name"`
	// Waits names information that the operator does not have yet and without which the server does not start. It is empty if nothing is
	// missing.
	Waits string `json:"waits,omitempty"`
	// Targets lists the disks and directories that it uses, sorted by name.
	Targets []Target `json:"targets,omitempty"`
	// Elsewhere lists targets of pairs that the other node holds now and that this server may mount at other times.
	Elsewhere []string `json:"elsewhere,omitempty"`
	// Pinning binds it to CPUs and memory.
	Pinning *Pinning `json:"pinning,omitempty"`
	// Variables holds the values of $(NAME) in Files, Command and Initialize, such as NODE_ID. They take precedence over the environment.
	Variables map[string]string `json:"variables,omitempty"`
}

// MemberName returns the name of a server in a FileSystemNode: "chunkserver-ssd" for Run.Daemon "chunkserver/ssd".
func MemberName(daemon string) string { return strings.ReplaceAll(daemon, "/", "-") }

// Target is a disk that a daemon uses: mounted at Path by the agent, or not yet.
type Target struct {
	// Name is the name of the StorageTarget.
	Name string `json:"name"`
	// Path is the mountpoint, the same in the container as on the node.
	Path string `json:"path"`
	// UUID is the UUID of the filesystem. It is empty until it is recorded, and the target is not used before that.
	UUID string `json:"uuid,omitempty"`
	// Remove is true if the daemon must move the target's data elsewhere.
	Remove bool `json:"remove,omitempty"`
	// Directory is true for a directory on the node, for evaluation: Path is no mountpoint, its marker is that of a spec.Directory, and the
	// data is in Path/Data.
	Directory bool `json:"directory,omitempty"`
	// Granted is the permission to initialize this target, which is true only until the initialization is recorded.
	Granted bool `json:"granted,omitempty"`
	// Expected is Initialize.Expected for this target.
	Expected bool `json:"expected,omitempty"`
	// Variables holds the values of $(NAME) in Initialize for this target, such as TARGET_ID.
	Variables map[string]string `json:"variables,omitempty"`
	// Files lists files that are written into the data directory when the target is initialized, beside those of Initialize: name and content.
	Files map[string]string `json:"files,omitempty"`
	// Served is set for a disk that only its own server mounts (format.Served): the agent proves it, and `node serve` mounts it.
	Served *ServedTarget `json:"served,omitempty"`
}

// Pinning binds a daemon to CPUs and memory.
type Pinning struct {
	// CPUs is in list format, such as "0-7,16-23" (cpuset(7)).
	CPUs string `json:"cpus"`
	// MemoryNodes lists NUMA nodes in list format; empty leaves the memory policy unchanged.
	MemoryNodes string `json:"memoryNodes,omitempty"`
	// MemoryPolicy is Bind or Preferred.
	MemoryPolicy string `json:"memoryPolicy,omitempty"`
	// Why names the origin of the setting for sentences, such as "spec.metadataServers.cpuPinning: NUMA node 1".
	Why string `json:"why"`
}

// Environment variables that `node run` sets for a daemon, by which the agent of the node finds its processes. They are not secret.
const (
	// EnvDaemon has the value of a DaemonPlacement's name: namespace/fileSystem/component, and /pool or /slot.
	EnvDaemon = "PARALLELFS_DAEMON"
)
