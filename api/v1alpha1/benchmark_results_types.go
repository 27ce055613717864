package v1alpha1

// ResultsSpec sets where the complete results are exported, as CSV and JSON.
//
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) || has(self.objectStore)",message="spec.results needs persistentVolumeClaim, objectStore, or both"
type ResultsSpec struct {
	// persistentVolumeClaim is the claim that they are written to.
	// +optional
	PersistentVolumeClaim *ResultsClaim `json:"persistentVolumeClaim,omitempty"`

	// objectStore is the bucket, of a store that speaks S3, that they are uploaded to. The objects' keys are
	// <prefix>/<name of the run>-<start of its uid>/results.json and the like.
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

	// path of a directory in the claim, relative to its root. The files are in <path>/<name of the run>-<start of its uid>/. Defaults to the
	// root.
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

	// bucket is the name of a bucket that exists.
	// +required
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*$`
	Bucket string `json:"bucket,omitempty"`

	// prefix is put in front of the objects' keys.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	Prefix string `json:"prefix,omitempty"`

	// region of the bucket, when the store has regions.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Region string `json:"region,omitempty"`

	// secretName names a Secret in the same namespace with the keys accessKey and secretKey. When no public authority signed the
	// store's certificate, its key ca.crt holds the certificates to trust, in PEM.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}
