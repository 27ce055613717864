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

// ChildName is the name of an object of a filesystem.
func ChildName(fs *v1alpha1.FileSystem, suffix string) string { return fs.Name + "-" + suffix }

// maxLabel is how long the value of a label may be.
const maxLabel = 63

// ClusterName is a name of a filesystem that no other one of the cluster has, and that fits into a label: "storage.scratch", or, where that
// is too long, the first part of it, and 64 bits of a hash, as FileSystemNodeName has them.
func ClusterName(fs *v1alpha1.FileSystem) string {
	name := fs.Namespace + "." + fs.Name
	if len(name) <= maxLabel {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:maxLabel-nodeHash-1], "-.") + "-" + hex.EncodeToString(sum[:nodeHash/2])
}

// Address joins a host and a port, with brackets around the colons of an IPv6 address.
func Address(host string, port int32) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }

// Owner is who the directories of a filesystem belong to.
func Owner(fs *v1alpha1.FileSystem) spec.Owner {
	return spec.Owner{Namespace: fs.Namespace, Name: fs.Name, UID: string(fs.UID)}
}

// StateRoot is the directory on each node that holds what daemons need besides targets: identities and ledgers.
func StateRoot(fs *v1alpha1.FileSystem) string {
	return fmt.Sprintf("/var/lib/parallelfs/%s.%s", fs.Namespace, fs.Name)
}

// Ledger is the file of a daemon on each node that records which directories were initialized there.
func Ledger(fs *v1alpha1.FileSystem, component string) string {
	return path.Join(StateRoot(fs), "ledger-"+component+".json")
}

// Encode writes what the node binary is told.
func Encode(v any) []byte {
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		panic(err) // the types of package spec hold strings, numbers and lists only
	}
	return raw
}

// Text is the form in which a ConfigMap takes files.
func Text(files map[string][]byte) map[string]string {
	out := make(map[string]string, len(files))
	for name, content := range files {
		out[name] = string(content)
	}
	return out
}

// Hash is a short name of what the parts say; another part makes another.
func Hash(parts ...any) string {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(Encode(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:4])
}
