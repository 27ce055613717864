package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageTargetSpec is one disk in one role on one node. The operator writes it, except for approvedPlan, remove and writersStopped, which
// people write.
// +kubebuilder:validation:XValidation:rule="self.node == oldSelf.node && self.role == oldSelf.role && self.fileSystem.name == oldSelf.fileSystem.name && self.device.id == oldSelf.device.id",message="the node, role, FileSystem and device of a StorageTarget can't be changed"
// +kubebuilder:validation:XValidation:rule="!(has(self.writersStopped) && self.writersStopped) || has(self.remove) && self.remove",message="writersStopped belongs to a removal: set it only together with remove, and set both back together"
// +kubebuilder:validation:XValidation:rule="!has(self.lustre) || has(self.format.fsType) && self.format.fsType == 'ldiskfs'",message="lustre belongs to targets with format.fsType ldiskfs"
// +kubebuilder:validation:XValidation:rule="!has(self.logDevice) || !has(self.format.fsType) || self.format.fsType != 'ldiskfs'",message="a target of Lustre has no log device"
// +kubebuilder:validation:XValidation:rule="!has(self.lustre) || self.role == {'MGT': 'Management', 'MDT': 'Metadata', 'OST': 'Storage'}[self.lustre.kind]",message="an MGT has the role Management, an MDT Metadata, and an OST Storage"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.lustre) || has(self.lustre) && self.lustre == oldSelf.lustre",message="what a target is to Lustre can't be changed: it is written on the disk"
// +kubebuilder:validation:XValidation:rule="has(self.secondNode) == has(oldSelf.secondNode) && (!has(self.secondNode) || self.secondNode == oldSelf.secondNode)",message="the second node of a StorageTarget can't be changed, added or removed: the disk names both"
// +kubebuilder:validation:XValidation:rule="!has(self.secondNode) || self.secondNode != self.node",message="secondNode is another node than node"
// +kubebuilder:validation:XValidation:rule="!has(self.secondNode) || has(self.format.fsType) && self.format.fsType == 'ldiskfs'",message="only a target of Lustre has a second node"
// +kubebuilder:validation:XValidation:rule="!has(self.lustre) || has(self.lustre.serviceNodes) == has(self.secondNode)",message="a target of two nodes has secondNode and lustre.serviceNodes, and any other has neither"
// +kubebuilder:validation:XValidation:rule="!has(self.serveOn) || has(self.secondNode) && self.serveOn in [self.node, self.secondNode]",message="serveOn is node or secondNode"
type StorageTargetSpec struct {
	// fileSystem is the FileSystem that the target belongs to.
	// +required
	FileSystem TargetOwner `json:"fileSystem,omitzero"`

	// cluster is the identity of this cluster: the uid of its namespace kube-system. The marker on the disk carries it, and a disk whose
	// marker names another cluster is left alone.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Cluster string `json:"cluster,omitempty"`

	// takeOver is a copy of spec.provisioning.takeOver of the FileSystem.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TakeOver string `json:"takeOver,omitempty"`

	// takeOverFrom is the former owner whose disk this target may take over with its data. It is a copy of status.formerOwner. The operator
	// sets it when spec.provisioning.takeOverFrom of the FileSystem names that owner and nothing in this cluster uses the disk as its own.
	// +optional
	TakeOverFrom *FormerTarget `json:"takeOverFrom,omitempty"`

	// node is the name of the node that has the disk.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// secondNode is the other node that reaches the disk, of a target that two nodes may serve, one at a time. node alone makes, marks and
	// wipes the disk.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	SecondNode string `json:"secondNode,omitempty"`

	// serveOn is the one of the two nodes that is to serve the target; without it, spec.node. The present holder then hands the target over
	// (status.holder).
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ServeOn string `json:"serveOn,omitempty"`

	// role of the daemon that uses the target: Management, Metadata or Storage.
	// +required
	Role Role `json:"role,omitempty"`

	// storagePool is the pool of a storage target.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`

	// slot is the number of the metadata server that uses this target, counted from 0 on each node.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Slot int32 `json:"slot"`

	// device is the disk.
	// +required
	Device DeviceIdentity `json:"device,omitzero"`

	// logDevice holds the external log of the target's XFS.
	// +optional
	LogDevice *DeviceIdentity `json:"logDevice,omitempty"`

	// format sets how the device is formatted and mounted; logDevices and raid are not used here. Without fsType, it is xfs.
	// +required
	Format FormatSpec `json:"format,omitzero"`

	// formatFrom lists which parts of format are the default for the role and the type of the filesystem, and which ones the FileSystem sets.
	// It is empty where an earlier operator has made the target.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	FormatFrom string `json:"formatFrom,omitempty"`

	// lustre is the configuration of the target in its Lustre. The disk of a Lustre is not touched before it is given; once given, it can't be
	// changed.
	// +optional
	Lustre *LustreTarget `json:"lustre,omitempty"`

	// queue sets the block queue of the device.
	// +optional
	Queue *QueueSpec `json:"queue,omitempty"`

	// formatPolicy is a copy of spec.provisioning.formatPolicy of the FileSystem.
	// +required
	FormatPolicy FormatPolicy `json:"formatPolicy,omitempty"`

	// conflict is the reason why the device must not be touched, such as that another FileSystem requests it too. The agent then does not
	// touch the device, unless the target was provisioned before.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Conflict string `json:"conflict,omitempty"`

	// approvedPlan is the hash of the plan that a person approves, from status.plan.hash. It approves only that plan, once: another plan
	// has another hash and needs another approval. Set by a person.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	// +kubebuilder:validation:Pattern=`^(sha256:[0-9a-f]{64})?$`
	ApprovedPlan string `json:"approvedPlan,omitempty"`

	// remove asks the filesystem to move the data of this target to others. The condition SafeToRemove shows when the disk may be taken out.
	// Set by a person.
	// +optional
	Remove bool `json:"remove,omitempty"`

	// writersStopped promises that nothing writes to the filesystem until SafeToRemove is true. BeeGFS copies files without locking them, so
	// writes to a file meanwhile may be lost. Set by a person, together with remove.
	// +optional
	WritersStopped bool `json:"writersStopped,omitempty"`

	// filesIn are the directories in which the agent counts the remaining files while the target is drained, relative to the mountpoint.
	// Set by the operator.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	FilesIn []string `json:"filesIn,omitempty"`

	// destroyFor is the uid of the deleted FileSystem whose data is to be wiped from the device. The marker on the disk must name the same
	// uid. Set by the operator, when deletionPolicy of the FileSystem is Destroy and was confirmed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	DestroyFor string `json:"destroyFor,omitempty"`
}

// TargetOwner names the FileSystem of a target.
type TargetOwner struct {
	// name of the FileSystem, in the target's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	Name string `json:"name,omitempty"`

	// uid of the FileSystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
}

// DeviceIdentity has the facts that identify a disk. All that is set must still hold whenever the disk is touched.
type DeviceIdentity struct {
	// id is the stable name of the disk: the name of its link in /dev/disk/by-id by which it was chosen.
	// +required
	ID DeviceID `json:"id,omitempty"`

	// serial is the serial number, empty when the disk has none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Serial string `json:"serial,omitempty"`

	// wwn is the World Wide Name, or the EUI of an NVMe namespace, empty when the disk has none.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	WWN string `json:"wwn,omitempty"`

	// model of the disk.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Model string `json:"model,omitempty"`

	// sizeBytes is the size of the disk in bytes, at most a pebibyte.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1125899906842624
	SizeBytes int64 `json:"sizeBytes,omitempty"`
}

// StorageTargetStatus is the observed state and the work of the node's agent. The operator writes the conditions Online and SafeToRemove,
// and service, from the filesystem's own state.
type StorageTargetStatus struct {
	// observedGeneration is the generation of the spec that the agent's part of this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, Reconciling and Stalled in the vocabulary of kstatus, and Online, SafeToRemove, Released and Destroyed.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// kernelName is the kernel's present name of the disk, such as "nvme0n1". It may change at each boot.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	KernelName string `json:"kernelName,omitempty"`

	// plan has the steps by which the agent would make the device a target; absent once it is one.
	// +optional
	Plan *TargetPlan `json:"plan,omitempty"`

	// newDevice is the disk that carries the target although it looks like another one. Its UUID and marker are right, and its serial number,
	// WWN, size or name differs from the record. It is absent while there is no such one.
	// +optional
	NewDevice *NewDevice `json:"newDevice,omitempty"`

	// formerOwner is the other target that the disk carries by its marker and its record. It stays when the disk was taken over. It is absent
	// for every other disk.
	// +optional
	FormerOwner *FormerTarget `json:"formerOwner,omitempty"`

	// provisioned records how the device was made a target, which happens once. It is written before the first byte, and never removed: a
	// disk without this UUID is not this target.
	// +optional
	Provisioned *TargetProvisioned `json:"provisioned,omitempty"`

	// record is the record of the server that is on the disk. The agent reads it when it takes a disk over. It is absent until then, and for a
	// disk that the agent has formatted.
	// +optional
	Record *TargetRecord `json:"record,omitempty"`

	// registration is the name with which the target's server registers the target: the content of BeeGFS's file targetID. The agent reads it
	// from the mounted disk. It stays when the disk is lost, because a disk that replaces it needs it. Absent for other filesystems.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Registration string `json:"registration,omitempty"`

	// mountPath is where the target is mounted on its node.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	MountPath string `json:"mountPath,omitempty"`

	// capacityBytes is the size of the mounted filesystem in bytes (statfs(2)).
	// +optional
	CapacityBytes int64 `json:"capacityBytes,omitempty"`

	// capacity is capacityBytes in a form for people, such as "3.6TiB".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Capacity string `json:"capacity,omitempty"`

	// usedInodesPerMille is the used part of the inodes of the mounted filesystem in thousandths, rounded down. It is absent if nothing is
	// used, or if that filesystem has no limit of inodes.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	UsedInodesPerMille int32 `json:"usedInodesPerMille,omitempty"`

	// queue is the block queue as the kernel shows it.
	// +optional
	Queue *QueueStatus `json:"queue,omitempty"`

	// holder is the one node that may mount a target of two nodes; absent while that is spec.node, which has it first. The agent of the holder
	// hands it over, once it has seen that it is no longer mounted on its node.
	// +optional
	Holder *TargetHolder `json:"holder,omitempty"`

	// service is the target's state according to the filesystem itself; absent while that is unknown. Written by the operator.
	// +optional
	Service *TargetService `json:"service,omitempty"`

	// files is the agent's count of the files in spec.filesIn.
	// +optional
	Files *TargetFiles `json:"files,omitempty"`
}

// FormerTarget is the target of another FileSystem, or of another node, that a disk carries.
type FormerTarget struct {
	// owner is the FileSystem, the node and the cluster of it.
	// +required
	Owner FormerOwner `json:"owner,omitzero"`

	// fileSystemUID is the uid of the FileSystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	FileSystemUID string `json:"fileSystemUID,omitempty"`

	// type of the FileSystem.
	// +required
	Type FileSystemType `json:"type,omitempty"`

	// target is the name of the StorageTarget.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Target string `json:"target,omitempty"`

	// uuid of the local filesystem on the disk.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	UUID string `json:"uuid,omitempty"`

	// serverID is the filesystem's own number of the server; 0 when it has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	ServerID int32 `json:"serverID,omitempty"`

	// targetID is the filesystem's own number of the disk; 0 when it has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	TargetID int32 `json:"targetID,omitempty"`
}

// NewDevice is an identity that a person may accept for a target's disk, with the annotation parallelfs.dev/accept-device.
type NewDevice struct {
	// hash covers the target, the identity that was recorded and this one. The annotation must be equal to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=71
	Hash string `json:"hash,omitempty"`

	// device is the identity of the disk now.
	// +required
	Device DeviceIdentity `json:"device,omitzero"`
}

// TargetHolder is the node that may mount a target of two nodes.
type TargetHolder struct {
	// node is the name of the node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`

	// number counts how often the target was handed over; it only grows.
	// +required
	// +kubebuilder:validation:Minimum=0
	Number int64 `json:"number"`

	// takenUp is when the agent of the node has read from the disk that no node has it mounted. The server mounts the target from then on.
	// After the target was handed over, takenUp is absent until then.
	// +optional
	TakenUp *metav1.Time `json:"takenUp,omitempty"`

	// takenOver is the number with which the target was given to the node without the agent of the other one. A person has confirmed that the
	// machine of that node is off. Its disk then does not show that it was unmounted. It means nothing when it is not number.
	// +optional
	// +kubebuilder:validation:Minimum=1
	TakenOver int64 `json:"takenOver,omitempty"`

	// message is the reason why the target is not handed over, or not taken up, yet.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// TargetFiles is the number of files that are left in spec.filesIn.
type TargetFiles struct {
	// observedGeneration is the generation of the spec that the count is about. After a change of the spec, the agent counts again.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// left is the number of files that are left. The count ends at 10001.
	// +optional
	Left int32 `json:"left"`
	// noneSince is when the agent first found no file, with none found since; absent while a file is left.
	// +optional
	NoneSince *metav1.Time `json:"noneSince,omitempty"`
	// empty is true when two counts in a row, at least 10 seconds apart, found no file.
	// +optional
	Empty bool `json:"empty,omitempty"`
	// message is the reason why the files could not be counted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// TargetPlan has the steps that make a device a target.
type TargetPlan struct {
	// hash covers the whole plan, and the identity and the content of the device. approvedPlan must be equal to it.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=71
	Hash string `json:"hash,omitempty"`

	// uuid is the UUID that the new local filesystem will have.
	// +optional
	// +kubebuilder:validation:MaxLength=36
	UUID string `json:"uuid,omitempty"`

	// steps are the commands, one line each.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=2048
	Steps []string `json:"steps,omitempty"`

	// destroys lists everything that was found on the devices and would be lost. Empty for blank devices.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=512
	Destroys []string `json:"destroys,omitempty"`

	// refusals are the reasons why the plan can't be carried out, approved or not.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	Refusals []string `json:"refusals,omitempty"`
}

// TargetProvisioned records how a device became a target.
type TargetProvisioned struct {
	// planHash is the hash of the plan that was carried out; empty for a disk that was taken over as it was.
	// +optional
	// +kubebuilder:validation:MaxLength=71
	PlanHash string `json:"planHash,omitempty"`

	// uuid is the UUID of the local filesystem on the device.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=36
	UUID string `json:"uuid,omitempty"`

	// label is the label of the local filesystem on the device.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Label string `json:"label,omitempty"`

	// started is when provisioning began. From then on, the device may have been written to.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`

	// takenFrom is the identity of the other cluster that the marker on the disk still names, while the disk is being taken over.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TakenFrom string `json:"takenFrom,omitempty"`

	// formerOwner is the owner that the marker on the disk still names, while the disk is being taken over from it.
	// +optional
	FormerOwner *FormerTarget `json:"formerOwner,omitempty"`

	// device is the identity of the disk that a person has accepted in the place of spec.device; absent while that is its identity.
	// +optional
	Device *DeviceIdentity `json:"device,omitempty"`

	// finished is when the marker was on the disk. Before that, the agent carries the plan out again if the disk is blank; after that,
	// never again.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
}

// TargetRecord is the record on a disk of the filesystem that it belongs to. It is empty for a disk that was never in a server's
// configuration.
type TargetRecord struct {
	// facts has the permanent facts of the filesystem.
	// +optional
	Facts *FileSystemFacts `json:"facts,omitempty"`

	// member is the server that keeps data on the disk, with the ids of the server and the disk.
	// +optional
	Member *RecordedMember `json:"member,omitempty"`

	// lustre is the disk's own Lustre configuration, beside its mark. Such a disk has no other record: facts and member are absent. Unlike
	// those, it is there before the disk is taken over, because the operator has to say the same first (spec.lustre).
	// +optional
	Lustre *LustreTarget `json:"lustre,omitempty"`

	// message is the reason why the record could not be read; empty when it could.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// RecordedMember is a server as the record on one of its disks has it.
type RecordedMember struct {
	// name of the member on its node.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// role of the server.
	// +required
	Role Role `json:"role,omitempty"`

	// storagePool is the pool of a storage server.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	StoragePool string `json:"storagePool,omitempty"`

	// slot is the number of a metadata server on its node, or of a storage server's pool.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=15
	Slot int32 `json:"slot"`

	// id is the filesystem's own number of the server; 0 when it has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	ID int32 `json:"id,omitempty"`

	// targetID is the filesystem's own number of the disk; 0 when it has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65535
	TargetID int32 `json:"targetID,omitempty"`

	// initialized is when the filesystem first listed the disk. From then on, an empty disk is lost data.
	// +optional
	Initialized *metav1.Time `json:"initialized,omitempty"`
}

// QueueStatus is a block queue as the kernel shows it.
type QueueStatus struct {
	// scheduler is the I/O scheduler in use.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Scheduler string `json:"scheduler,omitempty"`
	// readAheadKB is the read-ahead in KiB (read_ahead_kb).
	// +optional
	ReadAheadKB int32 `json:"readAheadKB"`
	// maxSectorsKB is the largest request in KiB (max_sectors_kb).
	// +optional
	MaxSectorsKB int32 `json:"maxSectorsKB"`
	// requests is the number of requests that the queue holds (nr_requests).
	// +optional
	Requests int32 `json:"requests"`
}

// StorageTarget is one disk in one role on one node. The operator makes it from a FileSystem; the agent on its node
// plans, formats, mounts and proves the disk.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pfst
// +kubebuilder:selectablefield:JSONPath=`.spec.fileSystem.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.role`
// +kubebuilder:selectablefield:JSONPath=`.spec.storagePool`
// +kubebuilder:selectablefield:JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="FileSystem",type=string,JSONPath=`.spec.fileSystem.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Pool",type=string,JSONPath=`.spec.storagePool`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.node`
// +kubebuilder:printcolumn:name="Device",type=string,priority=1,JSONPath=`.spec.device.id`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Online",type=string,JSONPath=`.status.conditions[?(@.type=="Online")].status`
// +kubebuilder:printcolumn:name="Capacity",type=string,priority=1,JSONPath=`.status.capacity`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Plan",type=string,priority=1,JSONPath=`.status.plan.hash`
// +kubebuilder:printcolumn:name="UUID",type=string,priority=1,JSONPath=`.status.provisioned.uuid`
// +kubebuilder:printcolumn:name="Kernel",type=string,priority=1,JSONPath=`.status.kernelName`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.holder) || has(self.status) && has(self.status.holder) && (self.status.holder.number > oldSelf.status.holder.number || self.status.holder.number == oldSelf.status.holder.number && self.status.holder.node == oldSelf.status.holder.node)",message="the number of the holder grows with each change of its node, and the holder stays"
type StorageTarget struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the disk and its role.
	// +required
	Spec StorageTargetSpec `json:"spec,omitzero"`

	// status is the observed state.
	// +optional
	Status StorageTargetStatus `json:"status,omitzero"`
}

// StorageTargetList is a list of StorageTargets.
// +kubebuilder:object:root=true
type StorageTargetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the StorageTargets.
	Items []StorageTarget `json:"items"`
}
