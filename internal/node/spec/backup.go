package spec

// Backup tells `node backup` which filesystem's metadata to copy, and where to.
type Backup struct {
	Owner Owner `json:"owner"`
	// Backend is the FileSystem's type, whose backend knows how its metadata is copied and read back; Version is that of its software.
	Backend string `json:"backend"`
	Version string `json:"version"`
	// Asked is the address, host and port, that answers how the filesystem is, and Copied the one that hands out its metadata.
	Asked  string `json:"asked"`
	Copied string `json:"copied"`
	// SecretFile, where set, holds the secret of Probe.Store: Copied is then the address of that probe.
	SecretFile string `json:"secretFile,omitempty"`
	// Name of the backup, BackupNameLayout of the time at which it was due.
	Name string `json:"name"`
	// Place is a mounted directory that is there. The backups lie in its subdirectory Directory, which is made.
	Place     string `json:"place"`
	Directory string `json:"directory"`
	// ObjectStore, where set, is where the backups lie instead: below Directory there. Place then is only where one is made and read back.
	ObjectStore *ObjectStore `json:"objectStore,omitempty"`
	// Keep is how many verified backups are kept, and MaxAgeDays after how many days one goes; 0 for never.
	Keep       int `json:"keep"`
	MaxAgeDays int `json:"maxAgeDays,omitempty"`
	// ReadAgainDays is after how many days a backup is read again; 0 for never.
	ReadAgainDays int `json:"readAgainDays,omitempty"`
	// Record is the directory of the files with the operator's record, which are put together in the order of their names.
	Record string `json:"record"`
	// CopySeconds is how long the copy may take.
	CopySeconds int64 `json:"copySeconds"`
}

// ObjectStore is a place in an object store that speaks S3.
type ObjectStore struct {
	// Endpoint is its URL, Bucket one that exists, and Prefix and Region, which may be empty, are those of the keys and of the bucket.
	Endpoint string `json:"endpoint"`
	Bucket   string `json:"bucket"`
	Prefix   string `json:"prefix,omitempty"`
	Region   string `json:"region,omitempty"`
	// Credentials is the directory of the files accessKey and secretKey, and ca.crt where the world does not know the store's authority.
	Credentials string `json:"credentials"`
}

// BackupNameLayout is the name of a backup as package time has it. Names in their order are times in their order.
const BackupNameLayout = "20060102-150405"

// BackupAnswer is what `node backup` prints, as one line of JSON, and leaves as the container's termination message.
type BackupAnswer struct {
	// Name of the backup that was to be made.
	Name string `json:"name"`
	// Backups are the newest that lie at the place now, newest first: the newest verified one is among them.
	Backups []BackupSeen `json:"backups"`
	// Message says why the backup of that name is not among them, or not verified; empty when it is.
	Message string `json:"message,omitempty"`
}

// BackupSeen is one backup that lies at a place.
type BackupSeen struct {
	Name string `json:"name"`
	// Verified is true when it was read back.
	Verified bool `json:"verified"`
	// Time is when the metadata was as the backup has it, as RFC 3339.
	Time string `json:"time"`
	// Version and ID are the filesystem's own names of the state of its metadata.
	Version int64  `json:"version,omitempty"`
	ID      string `json:"id,omitempty"`
	// SizeBytes is the size of all its files.
	SizeBytes int64 `json:"sizeBytes"`
	// Message says why it is not verified.
	Message string `json:"message,omitempty"`
}

// BackupManifestFile lies in the directory of each backup, beside its files.
const BackupManifestFile = "manifest.json"

// BackupRecordFile is the operator's record in a backup: the FileSystem, its FileSystemNodes and its StorageTargets as a list of
// Kubernetes, in JSON.
const BackupRecordFile = "record.json.gz"

// BackupManifest says what a backup is. A recovery reads it to say what would be used, and what would be lost.
type BackupManifest struct {
	// Format is BackupFormat.
	Format int   `json:"format"`
	Owner  Owner `json:"owner"`
	// Backend and SoftwareVersion say what made it: an older version of the software may not be able to read it.
	Backend         string `json:"backend"`
	SoftwareVersion string `json:"softwareVersion"`
	Name            string `json:"name"`
	// Copied is when the copy was asked for, as RFC 3339: all that was changed before is in it. AtLeast is the version that the running
	// filesystem had then.
	Copied  string `json:"copied"`
	AtLeast int64  `json:"atLeast"`
	// Files are all files beside the manifest.
	Files []BackupFile `json:"files"`
	// Verified is when the backup was read back, as RFC 3339; Version and ID are what the filesystem's own tools made of it. Refused says why
	// it could not be read back; it is then never used.
	Verified string `json:"verified,omitempty"`
	Version  int64  `json:"version,omitempty"`
	ID       string `json:"id,omitempty"`
	Refused  string `json:"refused,omitempty"`
	// Checked is when its files were last read again and were what had been verified, as RFC 3339.
	Checked string `json:"checked,omitempty"`
}

// BackupFormat is the version of the form of a BackupManifest that this operator writes; it reads all up to this one.
const BackupFormat = 1

// BackupFile is one file of a backup.
type BackupFile struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}
