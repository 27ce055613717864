package v1alpha1

// BenchmarkPodsSpec sets the parts of a BenchmarkRun's pods that a user may choose. The Job of a tool that the filesystem runs itself
// (storagebench) takes nothing from here.
type BenchmarkPodsSpec struct {
	// labels are added to the pods on clients. The pods of a tool that runs on servers are privileged, and get none. Names below
	// parallelfs.dev/ and app.kubernetes.io/ belong to the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="the name of a label is up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix: a DNS name of up to 253 characters and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('parallelfs.dev/') && !k.startsWith('app.kubernetes.io/'))",message="labels below parallelfs.dev/ and app.kubernetes.io/ belong to the operator"
	Labels map[string]LabelValue `json:"labels,omitempty"`

	// annotations are added to the pods on clients, as labels are. Names below parallelfs.dev/ belong to the operator.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$'))",message="the name of an annotation is up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix: a DNS name of up to 253 characters and a slash"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !k.startsWith('parallelfs.dev/'))",message="annotations below parallelfs.dev/ belong to the operator"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`

	// imagePullSecrets name Secrets in the namespace of the run. The kubelets pull the images of the run's pods with them.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=8
	ImagePullSecrets []SecretReference `json:"imagePullSecrets,omitempty"`

	// resources of each container of the run's pods. Without it, a tool requests 100m CPU and 64Mi and has no limits. A tool with a CPU limit
	// is throttled, and measures the throttle. It can't be changed, because results depend on it.
	// +optional
	Resources *ContainerResources `json:"resources,omitempty"`
}
