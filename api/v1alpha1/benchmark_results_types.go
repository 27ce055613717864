package v1alpha1

// ResultsSpec says where the complete results go, as CSV and JSON.
//
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) || has(self.objectStore)",message="spec.results needs persistentVolumeClaim, objectStore, or both"
type ResultsSpec struct {
	// persistentVolumeClaim that they are written to.
	// +optional
	PersistentVolumeClaim *ResultsClaim `json:"persistentVolumeClaim,omitempty"`

	// objectStore that they are put to, which speaks S3.
	// +optional
	ObjectStore *ObjectStore `json:"objectStore,omitempty"`
}

// ResultsClaim is a directory of a PersistentVolumeClaim.
type ResultsClaim struct {
	// name of a PersistentVolumeClaim in the namespace of the run.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// path of a directory in it, relative; the files lie in <path>/<name of the run>-<start of its uid>/. Defaults to its root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	Path string `json:"path,omitempty"`
}

// ObjectStore is a bucket of a store that speaks S3.
type ObjectStore struct {
	// endpoint of the store, such as https://s3.example.org:9000.
	// +required
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?$`
	Endpoint string `json:"endpoint,omitempty"`

	// bucket, which must exist.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*$`
	Bucket string `json:"bucket,omitempty"`

	// prefix of the objects' keys; they are <prefix>/<name of the run>-<start of its uid>/results.json and the like.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	Prefix string `json:"prefix,omitempty"`

	// region of the bucket, where the store has any.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// secretName is a Secret in the namespace of the run with the keys accessKey and secretKey, and ca.crt, certificates in PEM, where the
	// store's own is of an authority that the world does not know.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}
