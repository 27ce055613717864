package spec

// Backup is the spec of `node backup`: the filesystem whose metadata is copied, and the destination.
type Backup struct {
	Owner Owner `json:"owner"`
	// Backend is the FileSystem's type, whose backend copies its metadata and reads it back. Version is its software version.
	Backend string `json:"backend"`
	Version string `json:"version"`
	// Asked is the address, host and port, of the filesystem's state. Copied is the address of its metadata.
	Asked  string `json:"asked"`
	Copied string `json:"copied"`
	// SecretFile, if set, holds the secret of Probe.Store, and Copied is the address of that probe.
	SecretFile string `json:"secretFile,omitempty"`
	// Name is the name of the backup: its scheduled time in the BackupNameLayout.
	Name string `json:"name"`
	// Place is an existing mounted directory. The backups are in its subdirectory Directory, which is created.
	Place     string `json:"place"`
	Directory string `json:"directory"`
	// ObjectStore, if set, holds the backups instead, below Directory. Place is then used only to make backups and to read them back.
	ObjectStore *ObjectStore `json:"objectStore,omitempty"`
	// Keep is the number of verified backups to keep. MaxAgeDays is the age in days at which a backup is removed; 0 means never.
	Keep       int `json:"keep"`
	MaxAgeDays int `json:"maxAgeDays,omitempty"`
	// ReadAgainDays is the number of days after which a backup is read again; 0 means never.
	ReadAgainDays int `json:"readAgainDays,omitempty"`
	// Record is the directory of the files with the operator's record, which are concatenated in the order of their names.
	Record string `json:"record"`
	// CopySeconds is the time limit of the copy.
	CopySeconds int64 `json:"copySeconds"`
}

// ObjectStore is a location in an S3 object store.
type ObjectStore struct {
	// Endpoint is the store's URL, and Bucket an existing bucket. Prefix of the keys and Region of the bucket may be empty.
	Endpoint string `json:"endpoint"`
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Region   string `json:"region,omitempty"`
	// Credentials is the directory with the files accessKey and secretKey. It also holds ca.crt if a private authority issued the store's
	// certificate.
	Credentials string `json:"credentials"`
}

// BackupNameLayout is the layout of a backup's name for package time. The order of names is the order of times.
const BackupNameLayout = "20060102-150405"

// BackupAnswer is the result of `node backup`. It is printed as one line of JSON and is also the container's termination message.
type BackupAnswer struct {
	// Name is the name of the requested backup.
	Name string `json:"name"`
	// Backups lists the newest backups at the place, newest first, including the newest verified one.
	Backups []BackupSeen `json:"backups"`
	// Message explains why the backup of that name is missing or not verified. It is empty if it is verified.
	Message string `json:"message,omitempty"`
}

// BackupSeen is one backup at a place.
type BackupSeen struct {
	Name string `json:"name"`
	// Verified is true if the backup was read back.
	Verified bool `json:"verified"`
	// Time is the time of the backup's state of the metadata (RFC 3339).
	Time string `json:"time"`
	// Version and ID are the filesystem's own identification of the state of its metadata.
	Version int64  `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
	// SizeBytes is the size of all its files.
	SizeBytes int64 `json:"sizeBytes"`
	// Message explains why it is not verified.
	Message string `json:"message,omitempty"`
}

// BackupManifestFile is the file with the manifest in the directory of each backup.
const BackupManifestFile = "manifest.json"

// BackupRecordFile is the operator's record in a backup: the FileSystem, its FileSystemNodes and its StorageTargets as a Kubernetes list in
// JSON.
const BackupRecordFile = "record.json.gz"

// BackupManifest describes a backup. A recovery reads it to show what would be used and what would be lost.
type BackupManifest struct {
	// Format is BackupFormat.
	Format int   `json:"format"`
	Owner  Owner `json:"owner"`
	// Backend and SoftwareVersion identify the software that made the backup, because an older version may not be able to read it.
	Backend         string `json:"backend"`
	SoftwareVersion string `json:"softwareVersion"`
	Name            string `json:"name"`
	// Copied is the time at which the copy was requested (RFC 3339): all earlier changes are in it. AtLeast is the version of the running
	// filesystem at that time.
	Copied  string `json:"copied"`
	AtLeast int64  `json:"atLeast"`
	// Files lists all files beside the manifest.
	Files []BackupFile `json:"files"`
	// Verified is the time at which the backup was read back (RFC 3339). Version and ID are the results of the filesystem's own tools. Refused
	// explains why the backup could not be read back; such a backup is never used.
	Verified string `json:"verified,omitempty"`
	Version  int64  `json:"version,omitempty"`
	ID       string `json:"id,omitempty"`
	Refused  string `json:"refused,omitempty"`
	// Checked is the last time at which its files were read again and found unchanged (RFC 3339).
	Checked string `json:"checked,omitempty"`
}

// BackupFormat is the format version of a BackupManifest that this operator writes. It reads all versions up to this one.
const BackupFormat = 1

// BackupFile is one file of a backup.
type BackupFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}
