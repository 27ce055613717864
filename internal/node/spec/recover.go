package spec

// Recovery is the spec of `node recover`, which finds candidates for a recovery of metadata at one place, or recovers it.
type Recovery struct {
	Owner Owner `json:"owner"`
	// Backend is the FileSystem's type, whose backend reads metadata. Version is its software version.
	Backend string `json:"backend"`
	Version string `json:"version"`
	// Source is the source of the metadata.
	Source RecoverySource `json:"source"`
	// Scratch is an empty directory for results that are only inspected.
	Scratch string `json:"scratch"`
	// Known is the operator's record of the filesystem. It is nil if no copy is compared with it.
	Known *Known `json:"known,omitempty"`
	// Restore describes what to restore. It is nil if the source is only inspected.
	Restore *Restore `json:"restore,omitempty"`
	// Compare describes what a running server is compared with. It is nil for no comparison.
	Compare *Compare `json:"compare,omitempty"`
}

// Known lists the ids of a filesystem's servers and targets by role, in the form "1-3,7".
type Known struct {
	Servers map[string]string `json:"servers,omitempty"`
	Targets map[string]string `json:"targets,omitempty"`
}

// Compare names the backup from which a store was put back.
type Compare struct {
	Backup string `json:"backup"`
}

// RecoverySource is a mounted source. It is only read.
type RecoverySource struct {
	// Backups is the directory with the backups of the FileSystem, in ObjectStore if that is set. It is empty for a directory of a daemon.
	Backups     string       `json:"backups,omitempty"`
	ObjectStore *ObjectStore `json:"objectStore,omitempty"`
	// Directory is a daemon's directory with its marker, Component the daemon, and Data the subdirectory with its files.
	Directory string `json:"directory,omitempty"`
	Component string `json:"component,omitempty"`
	Data      string `json:"data,omitempty"`
}

// Restore describes the metadata to restore and its destination.
type Restore struct {
	// Plan is the hash of the plan that a person has approved.
	Plan string `json:"plan"`
	// Backup is the name of the backup; empty for a directory of a daemon.
	Backup string `json:"backup,omitempty"`
	// Version and ID are the values in the plan: older metadata, or metadata of another filesystem, is refused.
	Version int64  `json:"version"`
	ID      string `json:"id"`
	// Has is the plan's description of the content, or empty if there is none.
	Has string `json:"has,omitempty"`
	// Path is the directory to fill for the component. It must be empty. Data is its subdirectory that the daemon owns.
	Path      string `json:"path"`
	Data      string `json:"data"`
	Component string `json:"component"`
	// Target is the disk of Path. It is nil for a directory on the node. It is proven first. On a disk that only its own server mounts
	// (Target.Served), programs of the node write the store, and the disk is not mounted.
	Target *Target `json:"target,omitempty"`
	// User is the daemon's user, and Ledger the file that lists the directories initialized on this node.
	User   string `json:"user"`
	Ledger string `json:"ledger"`
}

// DiskRecoveryVersion is the format version of a DiskRecovery that this program writes. It reads all versions up to this one.
const DiskRecoveryVersion = 1

// DiskRecovery is the content of Restore.Ledger if a store is written to a disk that only its own server mounts. Such a disk has no
// directory for a marker.
type DiskRecovery struct {
	// Version is the format version of the file: DiskRecoveryVersion.
	Version int `json:"version"`
	// UUID is the UUID of the filesystem on the disk, and Plan the hash of the plan that began to write to it.
	UUID string `json:"uuid"`
	Plan string `json:"plan"`
	// Done is true if everything was written.
	Done bool `json:"done,omitempty"`
}

// RecoveryAnswer is the result of `node recover`. It is printed as one line of JSON and is also the container's termination message.
type RecoveryAnswer struct {
	// Found lists the candidates, newest first, or what was restored.
	Found []RecoveryFound `json:"found"`
	// Restored is true if the directory of a Restore has its metadata.
	Restored bool `json:"restored,omitempty"`
	// Compared is true if the server reports the same as the backup of a Compare.
	Compared bool `json:"compared,omitempty"`
	// Unread is true if the source could not be read, for example for lack of memory. It does not count against the source.
	Unread bool `json:"unread,omitempty"`
	// Message explains why nothing was found or restored.
	Message string `json:"message,omitempty"`
}

// RecoveryFound is a candidate.
type RecoveryFound struct {
	// Backup is the backup's name; empty for a directory of a daemon.
	Backup string `json:"backup,omitempty"`
	// Version and ID are the results of the filesystem's own program.
	Version int64  `json:"version"`
	ID      string `json:"id"`
	// Time is the time of the last change, or of the backup (RFC 3339).
	Time string `json:"time"`
	// Lacks names what the operator's record has and the candidate lacks.
	Lacks string `json:"lacks,omitempty"`
	// Has describes its content.
	Has string `json:"has,omitempty"`
	// Message explains why it can't be used; empty for a usable one.
	Message string `json:"message,omitempty"`
}
