package spec

import (
	"encoding/json"
	"path/filepath"
)

// Serve is the spec of `node serve`: the node's disks that it keeps mounted, for a filesystem whose servers are mounts in the kernel. The
// disks are in the node file, as for Run: each Target of the Member has Served. The pod is privileged, has the process ids and the network
// of the node, and NODE_NAME and NODE_IP in its environment. All programs are the node's own.
type Serve struct {
	Owner Owner `json:"owner"`
	// Backend is the FileSystem's type, which determines what a server needs on its node. Version is the expected version: the node's modules
	// must have the same minor version, as 2.15.6 and 2.15.5 do.
	Backend string `json:"backend"`
	Version string `json:"version"`
	// Daemon identifies this server among those of its filesystem on a node, such as "ost/ssd" or "mdt/0". NodeFile is the path of the node
	// file. Both are as in Run.
	Daemon   string `json:"daemon"`
	NodeFile string `json:"nodeFile"`
	// Network is the network between servers and clients.
	Network KernelNetwork `json:"network"`
	// GraceSeconds bounds the time of all unmounts when the pod is stopped for good. It is less than the pod's own grace period.
	GraceSeconds int64 `json:"graceSeconds"`
}

// KernelNetwork is a kernel network between servers and clients. It is added to a node that has none of this name; an existing network is
// never changed.
type KernelNetwork struct {
	// Name is the name of the network, such as "tcp" or "o2ib", which follows the @ in a NID.
	Name string `json:"name"`
	// Interfaces lists the interfaces that carry it together (multi-rail). $(NAME) is replaced as in File: "$(NODE_INTERFACE)" is the
	// interface with the node's own address. An interface that the node does not have, or without an IPv4 address, is left out as long as
	// another remains.
	Interfaces []string `json:"interfaces"`
	// NIDs lists NIDs that the node must have when its network is up, or nothing is mounted. All disks contain them as the NIDs of the
	// management server. It is empty for servers that are found through the management server.
	NIDs []string `json:"nids,omitempty"`
	// Start lists commands that load the network's modules and bring up an empty network; repeating them has no effect. List prints the NIDs
	// of the node, one per line. Add adds the network; $(INTERFACES) in it is the comma-separated list of existing Interfaces. Exit codes
	// don't count, only the output of List afterwards.
	Start [][]string `json:"start"`
	List  []string   `json:"list"`
	Add   []string   `json:"add"`
}

// OnNode is the verb that runs a program in the node's mount namespace, and so with the node's root directory. It needs the node's process
// ids, and root.
const OnNode = "on-node"

// ServedTarget is a disk that only its own server mounts: how to find it, and what it must contain before each mount.
type ServedTarget struct {
	// DeviceID is the stable name of the disk.
	DeviceID string `json:"deviceID"`
	// FSType is the format of the disk (format.fsType).
	FSType string `json:"fsType"`
	// Mark identifies the disk's owner in one line.
	Mark string `json:"mark"`
	// Given is what was assigned to the target for its server (format.Given).
	Given json.RawMessage `json:"given"`
	// BootID is set for a target of a pair. The entry is then valid only for this boot of the node (BootIDFile), and the target is mounted
	// under its MountLock. A node that comes back has an old file, and the other node may hold the target by then.
	BootID string `json:"bootID,omitempty"`
}

// MountLock is the path of a lock file beside the node file. Its lock (flock(2)) is held for each mount of a target of a pair, and for each
// handover to the other node. The file is made before the target is configured, and never removed.
func MountLock(nodeFile, target string) string {
	return filepath.Join(filepath.Dir(nodeFile), target+".lock")
}

// BootIDFile contains the kernel's id of the current boot (random(4)).
const BootIDFile = "/proc/sys/kernel/random/boot_id"
