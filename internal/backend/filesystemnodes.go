package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// maxNodeInName is how much of a node's name stands in that of a FileSystemNode, in bytes.
const maxNodeInName = 32

// FileSystemNodeName is the name of the FileSystemNode of a filesystem on a node: the filesystem, the first part of the node's name, and 64
// bits of a hash of both, as plan.TargetName has them.
func FileSystemNodeName(fileSystem, node string) string {
	sum := sha256.Sum256([]byte(fileSystem + "/" + node))
	short, _, _ := strings.Cut(node, ".")
	short = strings.Trim(short[:min(len(short), maxNodeInName)], "-")
	return fmt.Sprintf("%s-%s-%s", fileSystem, short, hex.EncodeToString(sum[:nodeHash/2]))
}

// nodeHash is how many characters of the name of a FileSystemNode tell it from all others: it ends with them.
const nodeHash = 16

// Member is a server on a node that is named in its own pods by this name (spec.Run.Daemon).
func Member(role v1alpha1.Role, daemon string) v1alpha1.NodeMember {
	return v1alpha1.NodeMember{Name: spec.MemberName(daemon), Role: role}
}

// Bind gives a member the CPUs that were found for it. Where a role asks for some, its server waits until they are known.
func Bind(in Input, member *v1alpha1.NodeMember, node, daemon string, pinning *v1alpha1.CPUPinning) {
	if !Bound(pinning) {
		return
	}
	to, known := in.Pinnings[node][daemon]
	if !known {
		member.Waits = "the operator does not know yet which CPUs it gets on this node"
		return
	}
	member.Pinning = &v1alpha1.MemberPinning{CPUs: to.CPUs, MemoryNodes: to.MemoryNodes, MemoryPolicy: to.MemoryPolicy, Why: to.Why}
}

// NodeFile is the path of the file with what the servers of a filesystem are told of their node: spec.Run.NodeFile.
func NodeFile(fs *v1alpha1.FileSystem) string {
	return path.Join(spec.NodeDirectory(fs.Namespace, fs.Name), spec.NodeFileName)
}

const nodeVolume = "node"

// MountNodeFile gives a container the directory of NodeFile, which it can't write to. A single file would never change in a running pod.
func MountNodeFile(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec, c *corev1.Container) {
	HostDirectory(pod, c, nodeVolume, spec.NodeDirectory(fs.Namespace, fs.Name), nil)
	c.VolumeMounts[len(c.VolumeMounts)-1].ReadOnly = true
}

// MountTargets gives a container the disks of a filesystem that are mounted on the node, and those that the agent mounts later.
func MountTargets(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec, c *corev1.Container) {
	HostDirectory(pod, c, "targets", spec.TargetsDirectory(fs.Namespace, fs.Name), new(corev1.MountPropagationHostToContainer))
}
