package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
)

// FileSystemNodes are the objects that say what the servers of each node are told; members are those servers, by node. What they say
// belongs in no template's hash: a server reads it when it starts, and a changed disk is no reason to restart all. A node that has an
// object already keeps it, without members when none is left.
func FileSystemNodes(in Input, members map[string][]v1alpha1.NodeMember) []client.Object {
	fs, of := in.FileSystem, maps.Clone(members)
	for i := range in.FileSystemNodes {
		if node := in.FileSystemNodes[i].Spec.Node; of[node] == nil {
			if of == nil {
				of = map[string][]v1alpha1.NodeMember{}
			}
			of[node] = nil
		}
	}
	var out []client.Object
	for _, node := range slices.Sorted(maps.Keys(of)) {
		sorted := slices.SortedFunc(slices.Values(of[node]), func(a, b v1alpha1.NodeMember) int { return strings.Compare(a.Name, b.Name) })
		object := &v1alpha1.FileSystemNode{
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "FileSystemNode"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: fs.Namespace, Name: FileSystemNodeName(fs.Name, node), Labels: map[string]string{v1alpha1.LabelFileSystem: fs.Name},
			},
			Spec: v1alpha1.FileSystemNodeSpec{
				FileSystem: v1alpha1.TargetOwner{Name: fs.Name, UID: string(fs.UID)}, Node: node, Members: sorted,
			},
		}
		if len(validation.IsValidLabelValue(node)) == 0 {
			object.Labels[v1alpha1.LabelNode] = node
		}
		out = append(out, object)
	}
	return out
}

// maxNodeInName is how much of a node's name stands in that of a FileSystemNode, in bytes.
const maxNodeInName = 32

// FileSystemNodeName is the name of the FileSystemNode of a filesystem on a node: the filesystem, the first part of the node's name, and 64
// bits of a hash of both, as plan.TargetName has them.
func FileSystemNodeName(fileSystem, node string) string {
	sum := sha256.Sum256([]byte(fileSystem + "/" + node))
	short, _, _ := strings.Cut(node, ".")
	short = strings.Trim(short[:min(len(short), maxNodeInName)], "-")
	return fmt.Sprintf("%s-%s-%s", fileSystem, short, hex.EncodeToString(sum[:8]))
}

// Member is a server on a node that is named in its own pods by this instance (spec.Run.Instance).
func Member(role v1alpha1.InstanceRole, instance string) v1alpha1.NodeMember {
	return v1alpha1.NodeMember{Name: spec.MemberName(instance), Role: role}
}

// Bind gives a member the CPUs that were found for it. Where a role asks for some, its server waits until they are known.
func Bind(in Input, member *v1alpha1.NodeMember, node, instance string, pinning *v1alpha1.CPUPinning) {
	if !Bound(pinning) {
		return
	}
	to, known := in.Pinnings[node][instance]
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
