package podspec

import (
	"path"

	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Bind sets the CPUs that were found for a member. If its role asks for CPUs, the server waits until they are known.
func Bind(in backend.Input, member *v1alpha1.NodeMember, node, daemon string, pinning *v1alpha1.CPUPinning) {
	if !Bound(pinning) {
		return
	}
	to, known := in.Pinnings[node][daemon]
	if !known {
		member.Waits = "its CPUs on this node are not decided yet"
		return
	}
	member.Pinning = &v1alpha1.MemberPinning{CPUs: to.CPUs, MemoryNodes: to.MemoryNodes, MemoryPolicy: to.MemoryPolicy, Why: to.Why}
}

// NodeFile returns the path of the node file of a filesystem (spec.Run.NodeFile).
func NodeFile(fs *v1alpha1.FileSystem) string {
	return path.Join(spec.NodeDirectory(fs.Namespace, fs.Name), spec.NodeFileName)
}

const nodeVolume = "node"

// MountNodeFile gives a container the directory of NodeFile, read-only. A mount of the file alone would never change in a running pod.
func MountNodeFile(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec, c *corev1.Container) {
	HostDirectory(pod, c, nodeVolume, spec.NodeDirectory(fs.Namespace, fs.Name), nil)
	c.VolumeMounts[len(c.VolumeMounts)-1].ReadOnly = true
}

// MountTargets gives a container the disks of a filesystem that are mounted on the node, including those that the agent mounts later.
func MountTargets(fs *v1alpha1.FileSystem, pod *corev1.PodTemplateSpec, c *corev1.Container) {
	HostDirectory(pod, c, "targets", spec.TargetsDirectory(fs.Namespace, fs.Name), new(corev1.MountPropagationHostToContainer))
}
