package spec

import (
	"encoding/json"
	"path/filepath"
)

// Serve tells `node serve` which disks of the node to keep mounted, for a filesystem whose servers are mounts of the kernel. Which disks
// these are stands in the file of the node, as for Run: each Target of the Member has Served. The pod is privileged, has the process ids
// and the network of the node, and NODE_NAME and NODE_IP in its environment; all programs are the node's own.
type Serve struct {
	Owner Owner `json:"owner"`
	// Backend names the FileSystem's type, by which this binary knows what a server needs on its node. Version is what is expected: the
	// node's modules must be of the same minor version, as 2.15.6 is of 2.15.5.
	Backend string `json:"backend"`
	Version string `json:"version"`
	// Daemon names this one among those of its filesystem on a node, such as "ost/ssd" or "mdt/0", and NodeFile the file of the node, both
	// as in Run.
	Daemon   string `json:"daemon"`
	NodeFile string `json:"nodeFile"`
	// Network is that between servers and clients.
	Network KernelNetwork `json:"network"`
	// GraceSeconds is how long all unmounts may take when the pod is stopped for good; it is less than the pod's own grace period.
	GraceSeconds int64 `json:"graceSeconds"`
}

// KernelNetwork is a network of the kernel between servers and clients. The node gets it where it has none of that name; one that is up is
// never changed.
type KernelNetwork struct {
	// Name of the network, such as "tcp" or "o2ib": what stands behind the @ of a NID.
	Name string `json:"name"`
	// Interfaces carry it, all together (multi-rail). $(NAME) is replaced as in File: "$(NODE_INTERFACE)" has the node's own address. One
	// that the node does not have, or that has no IPv4 address, is left out, as long as there is another.
	Interfaces []string `json:"interfaces"`
	// NIDs must be among those that the node has when its network is up, or nothing is mounted: all disks name these, as those of the
	// management server. Empty for servers that are found by it.
	NIDs []string `json:"nids,omitempty"`
	// Start are commands that load the network's modules and bring up a network of none, each without effect when that was done. List prints
	// the NIDs of the node, one in a line. Add adds the network; $(INTERFACES) in it are those of Interfaces that there are, with commas.
	// No exit code counts: only what List prints afterwards does.
	Start [][]string `json:"start"`
	List  []string   `json:"list"`
	Add   []string   `json:"add"`
}

// OnNode is the verb that runs a program in the mounts of the node, and so with the node's root directory. It needs the node's process ids
// and the rights of root.
const OnNode = "on-node"

// ServedTarget is a disk that only its own server mounts: what it is looked for by, and what must stand on it before each mount.
type ServedTarget struct {
	// DeviceID is the stable name of the disk.
	DeviceID string `json:"deviceID"`
	// FSType is the format of the disk (format.fsType).
	FSType string `json:"fsType"`
	// Mark is what the disk says of whose it is, in one line.
	Mark string `json:"mark"`
	// Given is what the target was given for its server (format.Given).
	Given json.RawMessage `json:"given"`
	// BootID is set for a target that another node may serve, too: all this holds for that start of the node alone (BootIDFile), and the
	// target is mounted under its MountLock. A node that comes back has an old file, and the other one may have the target since.
	BootID string `json:"bootID,omitempty"`
}

// MountLock is the path of the file whose lock (flock(2)) whoever mounts a target of two nodes holds, and whoever gives it to the other
// node: beside the file of the node. It is made before the target is told, and never removed.
func MountLock(nodeFile, target string) string {
	return filepath.Join(filepath.Dir(nodeFile), target+".lock")
}

// BootIDFile is where the kernel shows which start of the node this is (random(4)).
const BootIDFile = "/proc/sys/kernel/random/boot_id"
