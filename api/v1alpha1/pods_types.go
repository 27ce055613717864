package v1alpha1

import corev1 "k8s.io/api/core/v1"

// PodsSpec says what the pods of a filesystem's daemons, clients and jobs have besides what they need. Daemons that run take up a changed
// one at their next restart; only changed resources restart them, one at a time.
type PodsSpec struct {
	// tolerations replace the default, which tolerates every taint, because a daemon belongs where its data is.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// priorityClassName of all pods. Defaults to system-node-critical: a storage daemon that is preempted hangs every program that uses it.
	// +optional
	// +kubebuilder:default=system-node-critical
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// labels of all pods, beside the operator's own.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63 && !k.startsWith('parallelfs.dev/') && !k.startsWith('app.kubernetes.io/'))",message="label names have at most 317 characters, their values at most 63, and parallelfs.dev/ and app.kubernetes.io/ belong to the operator"
	Labels map[string]string `json:"labels,omitempty"`

	// annotations of all pods.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 4096 && !k.startsWith('parallelfs.dev/'))",message="annotation names have at most 317 characters, their values at most 4096, and parallelfs.dev/ belongs to the operator"
	Annotations map[string]string `json:"annotations,omitempty"`

	// imagePullSecrets are Secrets of the FileSystem's namespace with which the kubelets pull the images.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// resources of the pods, by role. A role that is left out requests a little and has no limit: a daemon that is throttled, or killed for
	// its memory, hangs every program that uses it.
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

	// client is for what mounts the filesystem on a node.
	// +optional
	Client *ContainerResources `json:"client,omitempty"`
}

// ContainerResources are what a container requests and may use, as in a pod.
type ContainerResources struct {
	// requests are set aside for it on its node, such as {cpu: "4", memory: 16Gi}.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Requests corev1.ResourceList `json:"requests,omitempty"`

	// limits end or slow it down when it uses more.
	// +optional
	// +kubebuilder:validation:MaxProperties=8
	Limits corev1.ResourceList `json:"limits,omitempty"`
}
