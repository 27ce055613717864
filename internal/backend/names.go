package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"path"
	"strconv"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// ChildName returns the name of an object of a filesystem.
func ChildName(fs *v1alpha1.FileSystem, suffix string) string { return fs.Name + "-" + suffix }

// maxLabel is the maximum length of a label value.
const maxLabel = 63

// ClusterName returns a name that is unique among the filesystems of the cluster and fits into a label: "storage.scratch". A name that is
// too long is cut and ends in 64 bits of a hash, as in FileSystemNodeName.
func ClusterName(fs *v1alpha1.FileSystem) string {
	name := fs.Namespace + "." + fs.Name
	if len(name) <= maxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:maxLabel-NodeHash-1], "-.") + "-" + hex.EncodeToString(sum[:NodeHash/2])
}

// Address joins a host and a port, with brackets around an IPv6 address.
func Address(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// Owner returns the owner of a filesystem's directories.
func Owner(fs *v1alpha1.FileSystem) spec.Owner {
	return spec.Owner{Namespace: fs.Namespace, Name: fs.Name, UID: string(fs.UID)}
}

// StateRoot returns the directory on each node that holds the daemons' data besides targets: identities and ledgers.
func StateRoot(fs *v1alpha1.FileSystem) string {
	return fmt.Sprintf("/var/lib/parallelfs/%s.%s", fs.Namespace, fs.Name)
}

// Ledger returns the file of a daemon on each node that records which directories were initialized there.
func Ledger(fs *v1alpha1.FileSystem, component string) string {
	return path.Join(StateRoot(fs), "ledger-"+component+".json")
}

// Encode returns the configuration of the node binary as JSON.
func Encode(v any) []byte {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // the types of package spec hold strings, numbers and lists only
	}
	return raw
}

// Text converts files to the form that a ConfigMap takes.
func Text(files map[string][]byte) map[string]string {
	out := make(map[string]string, len(files))
	for name, content := range files {
		out[name] = string(content)
	}
	return out
}

// Hash returns a short hash of the parts.
func Hash(parts ...any) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(Encode(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}

// BackupDirectory returns the subdirectory of a place that holds the backups of a FileSystem. A FileSystem that is created again under the
// same name gets another one.
func BackupDirectory(fs *v1alpha1.FileSystem) string {
	uid := string(fs.UID)
	return fmt.Sprintf("%s.%s-%s", fs.Namespace, fs.Name, uid[:min(len(uid), ShownUID)])
}

// ShownUID is how many characters of a FileSystem's uid are part of a label. A FileSystem that is created again under the same name has
// other labels, so orphaned daemons stay where they are.
const ShownUID = 8

// maxNodeInName is how many bytes of a node's name are part of the name of a FileSystemNode.
const maxNodeInName = 32

// FileSystemNodeName returns the name of the FileSystemNode of a filesystem on a node: the filesystem, the first part of the node's name,
// and 64 bits of a hash of both, as in plan.TargetName.
func FileSystemNodeName(fileSystem, node string) string {
	sum := sha256.Sum256([]byte(fileSystem + "/" + node))
	short, _, _ := strings.Cut(node, ".")
	short = strings.Trim(short[:min(len(short), maxNodeInName)], "-")
	return fmt.Sprintf("%s-%s-%s", fileSystem, short, hex.EncodeToString(sum[:NodeHash/2]))
}

// NodeHash is the number of characters at the end of a FileSystemNode's name that make it unique.
const NodeHash = 16

// Member returns a server whose name on its node is the name in its pods (spec.Run.Daemon).
func Member(role v1alpha1.Role, daemon string) v1alpha1.NodeMember {
	return v1alpha1.NodeMember{Name: spec.MemberName(daemon), Role: role}
}
