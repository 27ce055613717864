package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// PodsSpec sets the parts of the pods of daemons, clients and jobs that an administrator may choose. Running daemons take up a change at
// their next restart. Only changed resources restart them. Pods of benchmarks take nothing from here: they tolerate every taint, and a
// BenchmarkRun has a spec.pods of its own.
type PodsSpec struct {
	// tolerations of all pods. Without it, or with an empty list, they tolerate every taint, because a daemon must run where its data is. Jobs
	// that can run on any node then tolerate none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Tolerations []Toleration `json:"tolerations,omitempty"`

	// tolerationsByRole are the tolerations of the pods of one role, instead of those in tolerations. Guards tolerate the taints of their
	// node. Jobs, and the pods that bring images, tolerate what is in tolerations and what any role tolerates.
	// +optional
	TolerationsByRole RoleTolerations `json:"tolerationsByRole,omitzero"`

	// serviceAccountName is the ServiceAccount of all pods, in the namespace of the FileSystem. Without it, it is default. A cluster may grant
	// rights by it, such as the privileged SCC of OpenShift. The pods get no token of it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`

	// priorityClassName is the priority class of all pods. Defaults to system-node-critical, because a preempted storage daemon hangs every
	// program that uses the filesystem.
	// +optional
	// +kubebuilder:default=system-node-critical
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// labels are added to all pods. Names below parallelfs.dev/ and app.kubernetes.io/ belong to the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="the name of a label is up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix: a DNS name of up to 253 characters and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('parallelfs.dev/') && !k.startsWith('app.kubernetes.io/'))",message="labels below parallelfs.dev/ and app.kubernetes.io/ belong to the operator"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are added to all pods. Names below parallelfs.dev/ belong to the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="the name of an annotation is up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix: a DNS name of up to 253 characters and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('parallelfs.dev/'))",message="annotations below parallelfs.dev/ belong to the operator"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// imagePullSecrets name Secrets in the namespace of the FileSystem. The kubelets pull the images of all pods with them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`

	// resources of the pods, by role. A role that is absent requests 50m CPU and 64Mi and has no limits, because a throttled or killed
	// daemon hangs every program that uses the filesystem. They are for the container of the daemon alone: the containers beside it, guards,
	// jobs (such as those of configuration, backups, checks and recoveries) and pods of benchmarks have the operator's own.
	// +optional
	Resources PodResources `json:"resources,omitzero"`
}

// RoleTolerations has tolerations by role. An absent or empty list leaves the role with those in tolerations.
type RoleTolerations struct {
	// management is for the management service of BeeGFS, and the pod that mounts the MGT of a Lustre.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Management []Toleration `json:"management,omitempty"`

	// metadata is for each metadata server: the MooseFS master, a beegfs-meta, or the pod that mounts an MDT.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Metadata []Toleration `json:"metadata,omitempty"`

	// metadataBackup is for each MooseFS metalogger.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MetadataBackup []Toleration `json:"metadataBackup,omitempty"`

	// storage is for each storage server: a MooseFS chunkserver, a beegfs-storage, or the pod that mounts the OSTs of a pool.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Storage []Toleration `json:"storage,omitempty"`

	// client is for the pod that mounts the filesystem on a node, such as one with the taint of GPUs.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Client []Toleration `json:"client,omitempty"`
}

// LabelValue is the value of a label.
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$`
type LabelValue string

// AnnotationValue is the value of an annotation.
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// Toleration lets pods run on nodes with the taints that match it, as in a pod.
// +kubebuilder:validation:XValidation:rule="has(self.operator) && self.operator == 'Exists' ? !has(self.value) : has(self.key)",message="a toleration with operator Exists has no value; any other needs a key, whose taint has the value"
// +kubebuilder:validation:XValidation:rule="!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')",message="tolerationSeconds needs effect NoExecute"
type Toleration struct {
	// key of the taints that it tolerates. Without it, operator must be Exists, which tolerates every key.
	// +optional
	Key LabelKey `json:"key,omitempty"`

	// operator sets which values of a taint match: Equal to value, or any (Exists). Without it, it is Equal.
	// +optional
	// +kubebuilder:validation:Enum=Exists;Equal
	Operator corev1.TolerationOperator `json:"operator,omitempty"`

	// value of the taints that it tolerates, with operator Equal. Without it, the taints' value is empty.
	// +optional
	// +kubebuilder:validation:MinLength=1
	Value LabelValue `json:"value,omitempty"`

	// effect of the taints that it tolerates: NoSchedule, PreferNoSchedule or NoExecute. Without it, all effects.
	// +optional
	// +kubebuilder:validation:Enum=NoSchedule;PreferNoSchedule;NoExecute
	Effect corev1.TaintEffect `json:"effect,omitempty"`

	// tolerationSeconds is how long a taint with effect NoExecute is tolerated. Without it, the taint is tolerated forever; with 0 or less,
	// the pods are evicted at once.
	// +optional
	TolerationSeconds *int64 `json:"tolerationSeconds,omitempty"`
}

// PodResources has the requests and limits of pods, by role.
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

// ContainerResources has the requests and limits of a container, as in a pod.
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || !has(self.limits) || self.requests.all(k, !(k in self.limits) || quantity(self.requests[k]).compareTo(quantity(self.limits[k])) <= 0)",message="a request must not be greater than its limit"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || self.requests.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || (has(self.limits) && k in self.limits && quantity(self.requests[k]).compareTo(quantity(self.limits[k])) == 0))",message="a request of huge pages or devices needs a limit of the same amount"
// +kubebuilder:validation:XValidation:rule="!has(self.limits) || !self.limits.exists(k, k.startsWith('hugepages-')) || 'cpu' in self.limits || 'memory' in self.limits || (has(self.requests) && ('cpu' in self.requests || 'memory' in self.requests))",message="huge pages need cpu or memory beside them"
type ContainerResources struct {
	// requests are reserved for it on its node, such as {cpu: "4", memory: 16Gi}. Without a request, a limit is the request as well.
	// +optional
	Requests ResourceAmounts `json:"requests,omitempty"`

	// limits are the most that it may use. The kernel throttles it at its CPU limit, and kills it at its memory limit.
	// +optional
	Limits ResourceAmounts `json:"limits,omitempty"`
}

// ResourceAmounts are amounts by the names of resources. The amounts have a type of their own, and are strings, because rules over
// unbounded values cost more than the API server allows.
// +kubebuilder:validation:MaxProperties=8
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^(cpu|memory|ephemeral-storage|hugepages-[1-9][0-9]*[KMG]i|[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)$') && !k.matches('^(requests[.].*|(.*[.])?kubernetes[.]io)/'))",message="a resource is cpu, memory, ephemeral-storage, huge pages such as hugepages-2Mi, or what a device plugin offers, such as example.com/nic"
// +kubebuilder:validation:XValidation:rule="self.all(k, k in ['cpu', 'memory', 'ephemeral-storage'] || quantity(self[k]).isInteger())",message="the amount of huge pages or devices is a whole number"
type ResourceAmounts map[corev1.ResourceName]ResourceAmount

// ResourceAmount is a quantity of Kubernetes that is not negative, such as "4", 500m or 16Gi.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$`
type ResourceAmount string

// Quantities are the amounts as a pod has them.
func (a ResourceAmounts) Quantities() corev1.ResourceList {
	if a == nil {
		return nil
	}
	out := corev1.ResourceList{}
	for name, amount := range a {
		// The pattern accepts only quantities.
		if quantity, err := resource.ParseQuantity(string(amount)); err == nil {
			out[name] = quantity
		}
	}
	return out
}
