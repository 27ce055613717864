package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RecoveryStatus is a recovery of lost metadata that a person has asked for.
type RecoveryStatus struct {
	// asked is when the operator began to search for candidates. All findings are from that time or later.
	// +required
	Asked metav1.Time `json:"asked,omitzero"`

	// looked is when all places had answered.
	// +optional
	Looked *metav1.Time `json:"looked,omitempty"`

	// node is where the metadata is to lie from now on: the one that spec.metadataServers.nodeSelector matches.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// directory is where the metadata is to be on that node. Nothing may be in it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Directory string `json:"directory,omitempty"`

	// target is the StorageTarget with that directory; empty when it is a directory of the node itself.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`

	// candidates are the copies from which the metadata can be rebuilt, newest first: at most ten, among them the one that is named.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=10
	Candidates []RecoveryCandidate `json:"candidates,omitempty"`

	// from is the name of the candidate that is used: the newest that can be, or the one that the annotation parallelfs.dev/recover-from
	// names.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	From string `json:"from,omitempty"`

	// planHash is the hash of the plan: of the candidates, of the one that is used, and of where to. A person approves this hash.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	PlanHash string `json:"planHash,omitempty"`

	// approved is the hash of the plan that a person has approved, and that is carried out.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Approved string `json:"approved,omitempty"`
}

// RecoveryKind is the kind of a candidate.
// +kubebuilder:validation:Enum=Follower;Backup;Server
type RecoveryKind string

const (
	// RecoveryFollower is the copy of a server that follows the metadata, such as a metalogger.
	RecoveryFollower RecoveryKind = "Follower"
	// RecoveryBackup is a verified backup.
	RecoveryBackup RecoveryKind = "Backup"
	// RecoveryServer is the directory of the metadata server itself.
	RecoveryServer RecoveryKind = "Server"
)

// RecoveryCandidate is a source for the recovery of the metadata, as its own place describes it.
type RecoveryCandidate struct {
	// name of the candidate, such as metalogger-n2 or backup-vault-20261123-030000.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	Name string `json:"name,omitempty"`

	// kind of the candidate.
	// +required
	Kind RecoveryKind `json:"kind,omitempty"`

	// node is the node with the candidate; empty if it is in another place.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// persistentVolumeClaim is the claim with the candidate; empty if it is in another place.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PersistentVolumeClaim string `json:"persistentVolumeClaim,omitempty"`

	// objectStore is the bucket with the candidate, as <endpoint>/<bucket>; empty if it is in another place.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	ObjectStore string `json:"objectStore,omitempty"`

	// directory is the candidate's directory: on the node, or in the claim, relative to its root; in a bucket, the prefix of its keys.
	// +optional
	// +kubebuilder:validation:MaxLength=640
	Directory string `json:"directory,omitempty"`

	// version of the metadata that can be made from it, as the filesystem counts it: MooseFS counts each change.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version,omitempty"`

	// id of the metadata, as the filesystem itself names it.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	ID string `json:"id,omitempty"`

	// time of its last change, or of the backup. Later changes are missing.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// lacks names servers and targets that the operator has on record and that are not in it, because they joined later. Only some filesystems
	// can report it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Lacks string `json:"lacks,omitempty"`

	// has describes its content, such as how many records of which logs. Only some filesystems can report it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Has string `json:"has,omitempty"`

	// message is the reason why it can't be used; empty if it can.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// MetadataRecovered is a recovery that was carried out.
type MetadataRecovered struct {
	// planHash is the hash of the plan that a person has approved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanHash string `json:"planHash,omitempty"`

	// from is the candidate that was used.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	From string `json:"from,omitempty"`

	// version and id of the metadata that was made from it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version,omitempty"`

	// id of that metadata.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	ID string `json:"id,omitempty"`

	// dataTime is the time of the last change that is in it, or of the backup.
	// +optional
	DataTime *metav1.Time `json:"dataTime,omitempty"`

	// time is when the metadata was there again.
	// +required
	Time metav1.Time `json:"time,omitzero"`

	// previousNode held the metadata before. A server there is no longer started.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PreviousNode string `json:"previousNode,omitempty"`
}
