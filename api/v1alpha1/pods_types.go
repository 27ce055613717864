package v1alpha1

import corev1 "k8s.io/api/core/v1"

// PodsSpec sets what an administrator may choose of the pods of daemons, clients and jobs. Running daemons take up a change at their next
// restart. Only changed resources restart them.
type PodsSpec struct {
	// tolerations of all pods. Without it, they tolerate every taint, because a daemon must run where its data is.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// priorityClassName is the priority class of all pods. Defaults to system-node-critical, because a preempted storage daemon hangs every
	// program that uses the filesystem.
	// +optional
	// +kubebuilder:default=system-node-critical
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// labels are added to all pods. Names below parallelfs.dev/ and app.kubernetes.io/ belong to the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63 && !k.startsWith('parallelfs.dev/') && !k.startsWith('app.kubernetes.io/'))",message="label names have at most 317 characters, their values at most 63, and parallelfs.dev/ and app.kubernetes.io/ belong to the operator"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are added to all pods. Names below parallelfs.dev/ belong to the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 4096 && !k.startsWith('parallelfs.dev/'))",message="annotation names have at most 317 characters, their values at most 4096, and parallelfs.dev/ belongs to the operator"
	Annotations map[string]string `json:"annotations,omitempty"`

	// imagePullSecrets name Secrets in the namespace of the FileSystem. The kubelets pull the images of all pods with them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// resources of the pods, by role. A role that is absent requests 50m CPU and 64Mi and has no limits, because a throttled or killed
	// daemon hangs every program that uses the filesystem.
	// +optional
	Resources PodResources `json:"resources,omitzero"`
}

// PodResources are what pods request and may use, by role.
type PodResources struct {
	// management is for the management service of BeeGFS.
	// +optional
	Management *ContainerResources `json:"management,omitempty"`

	// metadata is for each metadata server: the MooseFS master, or a beegfs-meta.
	// +optional
	Metadata *ContainerResources `json:"metadata,omitempty"`

	// metadataBackup is for each MooseFS metalogger.
	// +optional
	MetadataBackup *ContainerResources `json:"metadataBackup,omitempty"`

	// storage is for each storage server: a MooseFS chunkserver, or a beegfs-storage.
	// +optional
	Storage *ContainerResources `json:"storage,omitempty"`

	// client is for the pod that mounts the filesystem on a node.
	// +optional
	Client *ContainerResources `json:"client,omitempty"`
}

// ContainerResources are what a container requests and may use, as in a pod.
type ContainerResources struct {
	// requests are reserved for it on its node, such as {cpu: "4", memory: 16Gi}.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits are the most that it may use. The kernel throttles it at its CPU limit, and kills it at its memory limit.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
