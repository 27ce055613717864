package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// BackupsSpec sets when the filesystem's metadata is backed up, where to, and how long backups are kept. Each place gets a backup of its
// own, which is read back there by the filesystem's own tools.
//
// +kubebuilder:validation:XValidation:rule="has(self.persistentVolumeClaim) || has(self.objectStore) || has(self.nodes)",message="spec.backups needs persistentVolumeClaim, objectStore or nodes, or several of them"
type BackupsSpec struct {
	// schedule is when backups are made, such as "0 3 * * *". It has the five fields of cron (minute, hour, day of the month, month and day of
	// the week), or is @hourly, @daily, @weekly or @monthly. If there is no backup yet, the first one is made at once. Of several that were
	// missed, one is made.
	// +required
	// +kubebuilder:validation:MinLength=6
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(@(hourly|daily|weekly|monthly)|[0-9A-Za-z*,/-]+( [0-9A-Za-z*,/-]+){4})$`
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the name of the time zone of the schedule, such as Europe/Berlin. Defaults to UTC.
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){0,2}$`
	TimeZone string `json:"timeZone,omitempty"`

	// persistentVolumeClaim is a claim that backups are written to.
	// +optional
	PersistentVolumeClaim *BackupsClaim `json:"persistentVolumeClaim,omitempty"`

	// objectStore is a bucket, of a store that speaks S3, that backups are put to. They are in <prefix>/<namespace>.<name>-<start of the
	// uid>/.
	// +optional
	ObjectStore *ObjectStore `json:"objectStore,omitempty"`

	// nodes selects nodes of the cluster that keep backups in one of their directories.
	// +optional
	Nodes *BackupsNodes `json:"nodes,omitempty"`

	// keep sets which backups are kept at each place. The newest verified one is always kept. Defaults to {}, which is the newest 7.
	// +optional
	// +kubebuilder:default={}
	Keep BackupsKeep `json:"keep,omitzero"`

	// readAgainDays is after how many days a verified backup is read again, to check that it has not changed. Each new backup at a place has
	// one of them read, the one that was read the longest time ago. Defaults to 30.
	// +optional
	// +kubebuilder:default=30
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	ReadAgainDays int32 `json:"readAgainDays,omitempty"`
}

// BackupsClaim is a directory of a PersistentVolumeClaim that backups are written to.
type BackupsClaim struct {
	// name of a PersistentVolumeClaim in the namespace of the FileSystem. The claim must not be on this filesystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// path of a directory in the claim, relative to its root. The backups are in <path>/<namespace>.<name>-<start of the uid>/. Defaults to
	// the root.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$`
	Path string `json:"path,omitempty"`
}

// BackupsNodes are nodes that keep backups.
type BackupsNodes struct {
	// nodeSelector selects the nodes. The node that holds the metadata is never among them: a backup is there for the loss of that node.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// count is how many of the selected nodes keep backups: the first by name. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3
	Count int32 `json:"count,omitempty"`

	// directory of those nodes, which belongs to root and is made where it is missing. The backups are in
	// <directory>/<namespace>.<name>-<start of the uid>/. Defaults to /var/lib/parallelfs-backups.
	// +optional
	// +kubebuilder:default=/var/lib/parallelfs-backups
	Directory DirectoryPath `json:"directory,omitempty"`
}

// BackupsKeep sets which backups are kept at each place. Only verified ones count.
type BackupsKeep struct {
	// count is how many verified backups are kept. Defaults to 7.
	// +optional
	// +kubebuilder:default=7
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Count int32 `json:"count,omitempty"`

	// maxAgeDays is after how many days a backup is removed, although it is among the newest. Without it, age removes none.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3650
	MaxAgeDays int32 `json:"maxAgeDays,omitempty"`
}

// MaxBackups is how many backups a FileSystem's status lists.
const MaxBackups = 10

// BackupResult is the result of a backup.
// +kubebuilder:validation:Enum=Verified;Unverified;Failed
type BackupResult string

// The results of a backup.
const (
	// BackupVerified is a backup that the filesystem's own tools have read back.
	BackupVerified BackupResult = "Verified"
	// BackupUnverified is a backup that is at its place but was not verified, so it must not be relied on.
	BackupUnverified BackupResult = "Unverified"
	// BackupFailed is an attempt that has left no backup.
	BackupFailed BackupResult = "Failed"
)

// BackupStatus is one backup, or one attempt to make one.
type BackupStatus struct {
	// name of the backup, and of its directory: its scheduled time, such as 20261123-030000, in UTC.
	// +required
	// +kubebuilder:validation:MinLength=15
	// +kubebuilder:validation:MaxLength=15
	Name string `json:"name,omitempty"`

	// persistentVolumeClaim is the claim with the backup; empty if it is in another place.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PersistentVolumeClaim string `json:"persistentVolumeClaim,omitempty"`

	// objectStore is the bucket with the backup, as <endpoint>/<bucket>; empty if it is in another place.
	// +optional
	// +kubebuilder:validation:MaxLength=320
	ObjectStore string `json:"objectStore,omitempty"`

	// node is the node with the backup; empty if it is in another place.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// directory is the backup's directory: on the node, or in the claim, relative to its root; in a bucket, the prefix of its keys.
	// +optional
	// +kubebuilder:validation:MaxLength=640
	Directory string `json:"directory,omitempty"`

	// result is Verified, Unverified or Failed.
	// +required
	Result BackupResult `json:"result,omitempty"`

	// time of the metadata in the backup. Later changes are missing.
	// +optional
	Time *metav1.Time `json:"time,omitempty"`

	// version of the metadata, as the filesystem counts it: MooseFS counts each change. The difference to the version of a running
	// filesystem, or of another backup, is the number of changes in between.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Version int64 `json:"version,omitempty"`

	// id of the metadata, as the filesystem itself names it. Backups with another id are of another filesystem.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	ID string `json:"id,omitempty"`

	// sizeBytes is the size of all its files.
	// +optional
	SizeBytes int64 `json:"sizeBytes,omitempty"`

	// failures counts the attempts at this place without a verified backup since the newest verified one; only the newest backup has it.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Failures int32 `json:"failures,omitempty"`

	// retry is when another attempt is made at this place, unless the schedule or a person requests one before. Only the newest backup has it,
	// and none that is verified.
	// +optional
	Retry *metav1.Time `json:"retry,omitempty"`

	// message is the reason why it is not verified, and is empty for a verified one.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// KeepsWhatIsBackedUp is true for the nodes of the metadata and of the MGS: a backup there would be lost together with the original.
func (s *FileSystemStatus) KeepsWhatIsBackedUp(node string) bool {
	return s.Metadata != nil && s.Metadata.Node == node || s.Lustre != nil && s.Lustre.ManagementNode == node
}
