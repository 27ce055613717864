package backend

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parallelfs.dev/operator/api/v1alpha1"
)

// BackupPlace is a place for backups of a filesystem: a claim, an object store, or a node.
type BackupPlace struct {
	Claim, Node string
	// ObjectStore is <endpoint>/<bucket>.
	ObjectStore string `json:",omitempty"`
	// Directory is the directory of the claim, relative to its root, or of the node, or the prefix of keys, as the user wrote it. The backups
	// are in a subdirectory of their FileSystem.
	Directory string
}

// String names a place in a sentence.
func (p BackupPlace) String() string {
	switch {
	case p.Node != "":
		return "node " + p.Node
	case p.ObjectStore != "":
		return "object store " + p.ObjectStore
	default:
		return "claim " + p.Claim
	}
}

// Is reports whether the place is the one that a status names.
func (p BackupPlace) Is(s v1alpha1.BackupStatus) bool {
	return p.Claim == s.PersistentVolumeClaim && p.ObjectStore == s.ObjectStore && p.Node == s.Node
}

// BackupRequest describes the backup that a BackupJob makes.
type BackupRequest struct {
	// Name of the Job, and of the backup.
	Job, Backup string
	Place       BackupPlace
	// Pieces is how many ConfigMaps hold the record; see BackupConfigMaps.
	Pieces int
}

// RecoverySource is a place that may hold copies of the metadata.
type RecoverySource struct {
	// Name of the source, which is also the name of its candidate. A place of backups has several candidates, each with a name of its own.
	Name string
	Kind v1alpha1.RecoveryKind
	// Node or Claim of the copy, and the directory there. For backups, it is BackupDirectory.
	Node, Claim, Directory string
	// ObjectStore of the copy, as <endpoint>/<bucket>.
	ObjectStore string `json:",omitempty"`
	// OnTarget is true for a directory on a disk of the filesystem, which need not be mounted.
	OnTarget bool `json:",omitempty"`
}

// RecoveryRequest describes the work of a RecoveryJob.
type RecoveryRequest struct {
	// Name of the Job.
	Job    string
	Source RecoverySource
	// Restore describes the restore, nil if the Job only inspects the source.
	Restore *RestoreRequest
	// Compare describes the comparison with a server, nil for none.
	Compare *CompareRequest
}

// CompareRequest names the backup to compare with a server, and the server's node.
type CompareRequest struct{ Backup, Node string }

// RestoreRequest describes which metadata is restored, and where.
type RestoreRequest struct {
	// Plan is the hash of the plan that a person has approved.
	Plan string
	// Backup is its name; empty for the copy that a daemon keeps.
	Backup  string
	Version int64
	ID, Has string
	// Node and Directory are the new place of the metadata. Target is the StorageTarget of the disk there; empty for a directory of the node.
	Node, Directory, Target string
}

// MetadataCopy is a copy of the metadata that a running server should keep.
type MetadataCopy struct {
	// Source is the place of the copy, and its node.
	Source RecoverySource
	// Follows identifies the starts of the servers since which the copy follows the metadata, so it changes when a server restarts. It is
	// empty while the server does not follow, according to the filesystem itself; Away is then the reason.
	Follows, Away string
	// Began is when the server of the running metadata started. All servers follow again after that, and none of them is at fault.
	Began time.Time
	// Leaves is true while a person wants to take the node away. No pod may start there, and the copy is read later.
	Leaves bool
	// Fetched is when the server should last have fetched all of the metadata, by its own timetable; zero if it has none.
	Fetched time.Time
	// Pod is the pod of the server. Outdated is true while the pod has to restart for a change.
	Pod      types.NamespacedName
	Outdated bool
}

// MetadataPlace is where a filesystem keeps its metadata, or the store of its management service.
type MetadataPlace struct {
	Role         v1alpha1.Role
	NodeSelector v1alpha1.NodeSelector
	Targets      v1alpha1.TargetsSpec
	// Component is the server, and the directory on its disk.
	Component string
	// Field is the field of the spec that decides it, and Noun names the data in a sentence.
	Field, Noun string
	// Stays is true for data that can't move to another node. Loses is what would be lost. Lacking is what happens to records that are missing
	// from a copy. Otherwise is what a person can do without a copy. Each text is the rest of a sentence, or empty.
	Stays                     bool
	Loses, Lacking, Otherwise string
	// Beware is what a person has to know before a recovery from a copy, because no copy shows it; empty for nothing.
	Beware string
}
