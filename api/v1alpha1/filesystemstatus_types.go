package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileSystemStatus is the observed state of a filesystem.
type FileSystemStatus struct {
	// certificate is the one in the user's Secret that servers start with, such as that of spec.beegfs.tls; absent without one.
	// +optional
	Certificate *CertificateStatus `json:"certificate,omitempty"`

	// observedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions describe the state of the filesystem in the vocabulary of kstatus. Ready is always there; Degraded, Reconciling and
	// Stalled only while they are true.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=24
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// summary holds the counts that kubectl get shows.
	// +optional
	Summary *FileSystemSummary `json:"summary,omitempty"`

	// mountPath records spec.clients.mountPath, which stays the same when spec.clients is removed and set again.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	MountPath string `json:"mountPath,omitempty"`

	// chosen holds the values that the operator has chosen because the spec has none. It stays.
	// +optional
	Chosen *ChosenStatus `json:"chosen,omitempty"`

	// management says where clients reach the filesystem.
	// +optional
	Management *ManagementStatus `json:"management,omitempty"`

	// metadata records where the filesystem's own state is kept, and that it was initialized. That state is the metadata of a MooseFS
	// master, the store of a BeeGFS management service, or the root directory of a Lustre (MDT0000). The record is written before anything is
	// initialized and is never removed, so that no empty directory is initialized twice.
	// +optional
	Metadata *MetadataRecord `json:"metadata,omitempty"`

	// version is the version that the filesystem runs. Its daemons are started with it. During an upgrade, those of the components in
	// status.upgrade are started with the new version instead. It becomes spec.version when an upgrade is over, or while nothing was started.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`

	// upgrade is the upgrade that is under way. It is recorded before a daemon is started with the new version.
	// +optional
	Upgrade *UpgradeStatus `json:"upgrade,omitempty"`

	// upgradeAsked is the upgrade that spec.version asks for and that has not begun. The operator first makes a backup at each place of
	// spec.backups, and the upgrade waits for it.
	// +optional
	UpgradeAsked *UpgradeAsked `json:"upgradeAsked,omitempty"`

	// backupAsked is the backup that the annotation parallelfs.dev/back-up asks for. The operator makes it at each place of spec.backups.
	// +optional
	BackupAsked *BackupAsked `json:"backupAsked,omitempty"`

	// check is the last look for damage that the annotation parallelfs.dev/check has asked for. Nothing is ever changed by it.
	// +optional
	Check *CheckStatus `json:"check,omitempty"`

	// given records the highest numbers that were given to servers, targets and pools, and those that are being given.
	// +optional
	Given *GivenNumbers `json:"given,omitempty"`

	// beegfs records the ports of a BeeGFS, and that its metadata is mirrored.
	// +optional
	BeeGFS *BeeGFSStatus `json:"beegfs,omitempty"`

	// lustre records the node, the disk and the NIDs of the management server of a Lustre.
	// +optional
	Lustre *LustreStatus `json:"lustre,omitempty"`

	// storagePools are the pools with their capacity. The FileSystemNodes say which nodes belong to a pool.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	StoragePools []StoragePoolStatus `json:"storagePools,omitempty"`

	// versions counts the servers by the version that they report.
	// +optional
	// +listType=map
	// +listMapKey=version
	// +kubebuilder:validation:MaxItems=16
	Versions []VersionCount `json:"versions,omitempty"`

	// missing lists servers, targets and mounts that are not online, and why. It has at most 32, servers first, and fewer where the status
	// would be larger than 64 KiB. The summary counts all. The state of a server is in the FileSystemNode of its node, and that of a disk in
	// its StorageTarget.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Missing []MissingMember `json:"missing,omitempty"`

	// backups are the newest backups of the metadata at the places of spec.backups, newest first: at most 8. Each place has its newest
	// attempt and its newest verified backup among them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Backups []BackupStatus `json:"backups,omitempty"`

	// metadataCopies are the copies of the metadata that running servers keep, such as the metaloggers of a MooseFS, by node: the first 4. The
	// operator has each of them read back.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=4
	MetadataCopies []MetadataCopyStatus `json:"metadataCopies,omitempty"`

	// maintenance are the nodes that are away for maintenance, or may be, by name. A node is in the list before it is released.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=64
	Maintenance []NodeMaintenance `json:"maintenance,omitempty"`

	// recovery is the recovery of lost metadata that the annotation parallelfs.dev/recover-metadata asks for: the candidates for the metadata,
	// and the plan to approve. It is removed when the recovery is over, or when it is no longer requested.
	// +optional
	Recovery *RecoveryStatus `json:"recovery,omitempty"`
}

// NodeMaintenance is the maintenance of one node.
type NodeMaintenance struct {
	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// address is the node's address at the start. The operator uses it to end the maintenance in the filesystem, also when the node is gone.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Address string `json:"address,omitempty"`

	// since is when it began.
	// +required
	Since metav1.Time `json:"since,omitzero"`

	// allowed is true when a person has allowed it, whatever the filesystem says.
	// +optional
	Allowed bool `json:"allowed,omitempty"`

	// ended is when it ended: the node was back, or the limit was over. The filesystem gets this setting; then the entry is removed, or stays
	// until the node is uncordoned.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// limitPassed is true when it ended because it had lasted longer than spec.updates.maintenance.limit.
	// +optional
	LimitPassed bool `json:"limitPassed,omitempty"`
}

// UpgradeStatus is an upgrade that is under way.
type UpgradeStatus struct {
	// version is the one that the filesystem goes to.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`

	// components are the components whose daemons now start with the new version, such as master, in the order of the upgrade. The next one
	// follows when all daemons of these run that version, and the filesystem is well.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	Components []string `json:"components,omitempty"`
}

// BackupAsked is a backup that a person has asked for.
type BackupAsked struct {
	// request is the value of the annotation.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Request string `json:"request,omitempty"`

	// since is when the operator saw it. The backup has the name of this time, in UTC.
	// +required
	Since metav1.Time `json:"since,omitzero"`
}

// CheckResult is the result of a check.
// +kubebuilder:validation:Enum=Running;Clean;Damaged;Failed
type CheckResult string

// The results of a check.
const (
	// CheckRunning means that it was asked for and is not over.
	CheckRunning CheckResult = "Running"
	// CheckClean means that the filesystem's own tools found nothing wrong.
	CheckClean CheckResult = "Clean"
	// CheckDamaged means that they found something, which findings name.
	CheckDamaged CheckResult = "Damaged"
	// CheckFailed means that the check says nothing of the filesystem; message shows why.
	CheckFailed CheckResult = "Failed"
)

// CheckStatus is a check for damage, and its result.
type CheckStatus struct {
	// request is the value of the annotation that has asked for it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Request string `json:"request,omitempty"`

	// started is when the operator saw the request.
	// +required
	Started metav1.Time `json:"started,omitzero"`

	// ended is when it was over.
	// +optional
	Ended *metav1.Time `json:"ended,omitempty"`

	// result is Running, Clean, Damaged or Failed.
	// +required
	Result CheckResult `json:"result,omitempty"`

	// findings counts the damage, by kind, in the words of the filesystem's own tool.
	// +optional
	// +listType=map
	// +listMapKey=what
	// +kubebuilder:validation:MaxItems=32
	Findings []CheckFinding `json:"findings,omitempty"`

	// message describes what was checked, what the check waits for, or why it failed; and the next step.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// CheckFinding is a kind of damage.
type CheckFinding struct {
	// what is the kind of the damage.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	What string `json:"what,omitempty"`

	// count is how often it was found.
	// +required
	// +kubebuilder:validation:Minimum=1
	Count int64 `json:"count,omitempty"`
}

// UpgradeAsked is an upgrade that has not begun.
type UpgradeAsked struct {
	// version is the one that spec.version asks for.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`

	// since is when the operator first saw that it asks for it.
	// +required
	Since metav1.Time `json:"since,omitzero"`
}

// VersionCount is how many servers report a version.
type VersionCount struct {
	// version is the version that the servers report.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// servers is the number of servers that report it.
	// +optional
	Servers int32 `json:"servers"`
}

// MemberKind is the kind of a member of a filesystem.
// +kubebuilder:validation:Enum=Server;Target;Client
type MemberKind string

// The kinds of members.
const (
	// ServerMember is a daemon that serves data or metadata, or keeps a copy of the metadata.
	ServerMember MemberKind = "Server"
	// TargetMember is a disk or a directory that a storage server keeps data on.
	TargetMember MemberKind = "Target"
	// ClientMember is the mount of a client node.
	ClientMember MemberKind = "Client"
)

// MissingMember is a member of a filesystem that is not online.
type MissingMember struct {
	// kind is Server, Target or Client.
	// +required
	Kind MemberKind `json:"kind,omitempty"`

	// name of the server in its FileSystemNode, of the StorageTarget, or of the directory on the node; empty for a client.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`

	// node is the name of its node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// message is the reason why it is not online.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Message string `json:"message,omitempty"`
}

// FileSystemSummary holds the counts that kubectl get shows, each as "3/4": found and wanted.
type FileSystemSummary struct {
	// servers counts the metadata servers, metaloggers and storage servers that are online.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Servers string `json:"servers,omitempty"`

	// targets counts the storage targets that are online.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Targets string `json:"targets,omitempty"`

	// clients counts the nodes that have mounted the filesystem.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Clients string `json:"clients,omitempty"`

	// capacity of all storage targets that are online, such as "12.5TiB".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Capacity string `json:"capacity,omitempty"`

	// used space of all storage targets that are online, such as "1.2TiB".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Used string `json:"used,omitempty"`

	// rdma counts the servers and clients of a BeeGFS that offer RDMA, such as "12/12, clients 31/32". It counts those of which the BeeGFS
	// says how they can be reached, the servers first. It is absent while RDMA is disabled, or nothing is known.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	RDMA string `json:"rdma,omitempty"`
}

// ManagementStatus is where clients reach the filesystem.
type ManagementStatus struct {
	// address is the host and port that clients mount from.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Address string `json:"address,omitempty"`

	// version is the version that the running master or management service reports.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`
}

// MetadataRecord records where the filesystem's own state is kept and that it was initialized.
type MetadataRecord struct {
	// node holds the metadata, or the store of the management service.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// directory holds it on that node; empty until its target is chosen.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	Directory string `json:"directory,omitempty"`

	// target is the StorageTarget with that directory; empty when it is a directory of the node itself.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`

	// initialized is when the operator first saw the server run on this directory. Before that, an empty directory may be initialized.
	// After that, an empty directory is lost metadata, and is never initialized.
	// +optional
	Initialized *metav1.Time `json:"initialized,omitempty"`

	// recovered is the last recovery that this directory was filled by. It is written before a server is started on it.
	// +optional
	Recovered *MetadataRecovered `json:"recovered,omitempty"`
}

// Role is the role of a daemon.
// +kubebuilder:validation:Enum=Management;Metadata;MetadataBackup;Storage
type Role string

// The roles of daemons.
const (
	// RoleManagement is a management service: of BeeGFS.
	RoleManagement Role = "Management"
	// RoleMetadata is a metadata server: the MooseFS master, or a beegfs-meta.
	RoleMetadata Role = "Metadata"
	// RoleMetadataBackup keeps a copy of the metadata: a MooseFS metalogger.
	RoleMetadataBackup Role = "MetadataBackup"
	// RoleStorage is a storage server: a MooseFS chunkserver, or a beegfs-storage.
	RoleStorage Role = "Storage"
)

// Placement is where a daemon runs, read from the kernel, beside the request in the manifest.
type Placement struct {
	// cpus are the CPUs that the threads of the daemon may run on, all threads together, in list format.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	CPUs string `json:"cpus,omitempty"`

	// wantedCPUs are the CPUs that the spec asks for; empty when it asks for none.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	WantedCPUs string `json:"wantedCPUs,omitempty"`

	// numaNodes are the NUMA nodes of those CPUs, in list format.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	NUMANodes string `json:"numaNodes,omitempty"`

	// memoryPolicy as the kernel shows it, such as "default", "bind:0" or "prefer:1".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	MemoryPolicy string `json:"memoryPolicy,omitempty"`

	// devices are the kernel names of the disks that the daemon's targets are on now.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=64
	Devices []string `json:"devices,omitempty"`

	// drift says how the placement differs from the spec; empty when it does not.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Drift string `json:"drift,omitempty"`
}

// StoragePoolStatus is one storage pool.
type StoragePoolStatus struct {
	// name of the pool.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	Name string `json:"name,omitempty"`

	// slot is the number of the pool. It is given once and never changes. The port of the pool's servers follows from it, and for MooseFS
	// its label letter.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Slot int32 `json:"slot"`

	// capacity of the targets that are online, such as "12.5TiB".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Capacity string `json:"capacity,omitempty"`

	// used space of the targets that are online, such as "1.2TiB".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Used string `json:"used,omitempty"`

	// capacityBytes is capacity in bytes.
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// usedBytes is used in bytes, in steps of a thousandth of the capacity.
	// +optional
	UsedBytes int64 `json:"usedBytes,omitempty"`

	// targets counts the targets of the pool: online and wanted, as "3/4".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Targets string `json:"targets,omitempty"`

	// fullness shows how evenly the data is spread over the targets that are online and stay. Absent for fewer than two.
	// +optional
	Fullness *PoolFullness `json:"fullness,omitempty"`
}

// PoolFullness is how full the targets of a pool are, in steps of 5 %.
type PoolFullness struct {
	// emptiestPercent is how full the emptiest target is.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	EmptiestPercent int32 `json:"emptiestPercent"`

	// fullestPercent is how full the fullest target is.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	FullestPercent int32 `json:"fullestPercent"`
}

// CertificateStatus has the public data of a certificate.
type CertificateStatus struct {
	// sha256 is that of the certificate with its chain, in hexadecimal. When it changes, the server that uses it restarts.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	SHA256 string `json:"sha256,omitempty"`

	// notAfter is when the first certificate of the chain expires.
	// +required
	NotAfter metav1.Time `json:"notAfter,omitzero"`

	// names are the DNS names and IP addresses for which the certificate is valid (its subject alternative names), at most 16 of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// trusted has the certificates that prove the server to the operator's own clients, in PEM. These are the authority that signed the
	// certificate (ca.crt in the Secret), or the certificate itself.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Trusted string `json:"trusted,omitempty"`

	// trustedBefore are those of earlier certificates, with which the server may still run; absent once it runs with this one.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	TrustedBefore string `json:"trustedBefore,omitempty"`
}
