package spec

// Recovery tells `node recover` to look what metadata could be made from what lies at one place, or to make it.
type Recovery struct {
	Owner Owner `json:"owner"`
	// Backend is the FileSystem's type, whose backend knows how metadata is read; Version is that of its software.
	Backend string `json:"backend"`
	Version string `json:"version"`
	// Source is where the metadata comes from.
	Source RecoverySource `json:"source"`
	// Scratch is an empty directory for what is made only to be looked at.
	Scratch string `json:"scratch"`
	// Known is what the operator has on record of the filesystem, nil where nobody compares it with a copy.
	Known *Known `json:"known,omitempty"`
	// Restore says what is to be made, nil when the source is only looked at.
	Restore *Restore `json:"restore,omitempty"`
	// Compare says what a server that serves is compared with, nil when nothing is.
	Compare *Compare `json:"compare,omitempty"`
}

// Known are the numbers of a filesystem's servers and targets, by role, as lists such as "1-3,7".
type Known struct {
	Servers map[string]string `json:"servers,omitempty"`
	Targets map[string]string `json:"targets,omitempty"`
}

// Compare says which backup a store was put back from.
type Compare struct {
	Backup string `json:"backup"`
}

// RecoverySource is a mounted place. It is only read.
type RecoverySource struct {
	// Backups is the directory with the backups of the FileSystem, in ObjectStore where that is set; empty for a directory of a daemon.
	Backups     string       `json:"backups,omitempty"`
	ObjectStore *ObjectStore `json:"objectStore,omitempty"`
	// Directory is that of a daemon with its marker, Component the daemon, and Data the subdirectory with its files.
	Directory string `json:"directory,omitempty"`
	Component string `json:"component,omitempty"`
	Data      string `json:"data,omitempty"`
}

// Restore says which metadata is to be made, and where.
type Restore struct {
	// Plan is the hash of the plan that a person has approved.
	Plan string `json:"plan"`
	// Backup is the name of the backup; empty for a directory of a daemon.
	Backup string `json:"backup,omitempty"`
	// Version and ID are what the plan says: older metadata, or that of another filesystem, is refused.
	Version int64  `json:"version"`
	ID      string `json:"id"`
	// Has is what the plan says that is in it; empty where nobody has said that.
	Has string `json:"has,omitempty"`
	// Path is the directory that is filled, on behalf of the component. It has to be empty. Data is its subdirectory that the daemon owns.
	Path      string `json:"path"`
	Data      string `json:"data"`
	Component string `json:"component"`
	// Target is the disk that Path lies on, nil for a directory of the node itself. It is proven first. On a disk that only its own server
	// mounts (Target.Served), the store is written by programs of the node, and nobody mounts it.
	Target *Target `json:"target,omitempty"`
	// User is the daemon's, and Ledger the file with the directories that were initialized on this node.
	User   string `json:"user"`
	Ledger string `json:"ledger"`
}

// DiskRecoveryVersion is the version of the form of a DiskRecovery that this program writes; it reads all up to this one.
const DiskRecoveryVersion = 1

// DiskRecovery is the content of Restore.Ledger where a store is written on a disk that only its own server mounts: the disk shows no
// directory in which a marker could say so.
type DiskRecovery struct {
	// Version is that of the form of the file: DiskRecoveryVersion.
	Version int `json:"version"`
	// UUID of the filesystem on the disk, and Plan the hash of the plan that has begun to write on it.
	UUID string `json:"uuid"`
	Plan string `json:"plan"`
	// Done is true when all was there.
	Done bool `json:"done,omitempty"`
}

// RecoveryAnswer is what `node recover` prints, as one line of JSON, and leaves as the container's termination message.
type RecoveryAnswer struct {
	// Found is what could be used, newest first; or what was restored.
	Found []RecoveryFound `json:"found"`
	// Restored is true when the directory of a Restore has its metadata.
	Restored bool `json:"restored,omitempty"`
	// Compared is true when the server says what the backup of a Compare says.
	Compared bool `json:"compared,omitempty"`
	// Unread is true when nobody could look at what is there, as without memory for it: that says nothing of the source.
	Unread bool `json:"unread,omitempty"`
	// Message says why nothing was found, or not restored.
	Message string `json:"message,omitempty"`
}

// RecoveryFound is metadata that could be used.
type RecoveryFound struct {
	// Backup is its name; empty for a directory of a daemon.
	Backup string `json:"backup,omitempty"`
	// Version and ID are what the filesystem's own program makes of it.
	Version int64  `json:"version"`
	ID      string `json:"id"`
	// Time of its last change, or of the backup, as RFC 3339.
	Time string `json:"time"`
	// Lacks names what is known and not in it.
	Lacks string `json:"lacks,omitempty"`
	// Has says what is in it.
	Has string `json:"has,omitempty"`
	// Message says why it can't be used; empty for one that can.
	Message string `json:"message,omitempty"`
}
