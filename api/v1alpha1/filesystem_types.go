package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileSystemType names a parallel filesystem that the operator can run.
// +kubebuilder:validation:Enum=MooseFS
type FileSystemType string

// MooseFS is the fault-tolerant distributed filesystem of moosefs.com (Community Edition).
const MooseFS FileSystemType = "MooseFS"

// FileSystemSpec is what the user wants of one parallel filesystem.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || has(self.moosefs)",message="spec.moosefs is required when spec.type is MooseFS (it may be empty: {})"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || self.version in ['3.0.117', '4.57.5']",message="MooseFS runs in version 3.0.117 or 4.57.5; set spec.version to one of them"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || !has(self.metadata.instancesPerNode) || self.metadata.instancesPerNode == 1",message="MooseFS Community Edition has exactly one active master, so spec.metadata.instancesPerNode must be 1; several metadata servers per node need another type"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || (has(self.metadata.targets.directories) ? size(self.metadata.targets.directories) == 1 : has(self.metadata.targets.devices) ? size(self.metadata.targets.devices) == 1 : self.metadata.targets.select.countPerNode == 1)",message="a MooseFS master keeps its metadata in one place; give exactly one of spec.metadata.targets.directories or devices, or select.countPerNode: 1"
// +kubebuilder:validation:XValidation:rule="!has(self.metadata.targets.directories) || self.storagePools.all(p, !has(p.targets.directories) || p.targets.directories.all(d, self.metadata.targets.directories.all(m, d != m && !d.startsWith(m + '/') && !m.startsWith(d + '/'))))",message="a storage pool's directory and the metadata directory must not be the same or lie in one another"
// +kubebuilder:validation:XValidation:rule="self.storagePools.all(p, self.storagePools.all(q, p.name == q.name || !has(p.targets.directories) || !has(q.targets.directories) || p.targets.directories.all(d, !(d in q.targets.directories))))",message="two storage pools must not use the same directory"
// +kubebuilder:validation:XValidation:rule="self.storagePools.all(q, !has(q.targets.directories) || q.targets.directories.all(e, [e + '/'].all(prefix, self.storagePools.all(p, p.name == q.name || !has(p.targets.directories) || p.targets.directories.all(d, !d.startsWith(prefix))))))",message="a storage pool's directory must not lie inside another pool's"
// +kubebuilder:validation:XValidation:rule="oldSelf.storagePools.all(p, self.storagePools.exists(q, q.name == p.name))",message="a storage pool can't be removed: its targets hold data, and draining a pool is not built yet"
// +kubebuilder:validation:XValidation:rule="!has(self.clients) || ((has(self.metadata.targets.directories) ? self.metadata.targets.directories : []) + ['/var/lib/parallelfs']).all(d, d != self.clients.mountPath && !d.startsWith(self.clients.mountPath + '/') && !self.clients.mountPath.startsWith(d + '/'))",message="spec.clients.mountPath must not be, hold or lie in the metadata directory or /var/lib/parallelfs, where daemons keep their state"
// +kubebuilder:validation:XValidation:rule="!has(self.clients) || self.storagePools.all(p, !has(p.targets.directories) || p.targets.directories.all(d, d != self.clients.mountPath && !d.startsWith(self.clients.mountPath + '/') && !self.clients.mountPath.startsWith(d + '/')))",message="spec.clients.mountPath must not be, hold or lie in a storage pool's directory"
type FileSystemSpec struct {
	// type is the parallel filesystem to run. It can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.type can't be changed; create another FileSystem"
	Type FileSystemType `json:"type,omitempty"`

	// version is the version of the filesystem's own software. It can't be changed yet: upgrades in place are not built.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.version can't be changed: upgrades in place are not built yet"
	Version string `json:"version,omitempty"`

	// moosefs holds what only MooseFS has. It must be set, and may be empty, when type is MooseFS.
	// +optional
	MooseFS *MooseFSSpec `json:"moosefs,omitempty"`

	// metadata describes the metadata servers (MDS); for MooseFS, its master.
	// +required
	Metadata MetadataSpec `json:"metadata,omitzero"`

	// storagePools are the groups of storage targets that data is placed on. Every pool appears as a directory of its
	// name at the top of the filesystem. The first pool also takes the files that lie outside of those directories.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	StoragePools []StoragePoolSpec `json:"storagePools,omitempty"`

	// clients describes the nodes on which the filesystem is mounted. Without it, no node mounts it.
	// +optional
	Clients *ClientsSpec `json:"clients,omitempty"`

	// config holds raw options of the daemons. An option that the operator itself sets, and one that the daemon does
	// not know, is refused by name in the condition Stalled.
	// +optional
	Config *ConfigSpec `json:"config,omitempty"`

	// provisioning says what the operator may do to disks. Defaults to {}, which is format IfBlank.
	// +optional
	// +kubebuilder:default={}
	Provisioning ProvisioningSpec `json:"provisioning,omitzero"`

	// deletionPolicy says what becomes of the disks when the FileSystem is deleted: Retain unmounts them and keeps what is
	// on them; Destroy wipes those that carry its marker, and needs confirmDestroy. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// confirmDestroy confirms deletionPolicy Destroy: the uid of this object (kubectl get -o jsonpath={.metadata.uid}). A
	// copied manifest has another, so it destroys nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfirmDestroy string `json:"confirmDestroy,omitempty"`
}

// MooseFSSpec holds what only MooseFS has.
type MooseFSSpec struct {
	// basePort is the first of the 32 TCP ports that this filesystem's daemons listen on, on the host network of their
	// nodes: basePort+0 for metaloggers, basePort+1 for chunkservers and basePort+2 for clients of the master; basePort+8
	// for the probe; from basePort+16, one per storage pool, the chunkservers' own. Two filesystems that share a node
	// need ranges that don't overlap. Defaults to 9419, MooseFS's own.
	// It can't be changed, because the chunkservers are known to the master by address and port.
	// +optional
	// +kubebuilder:default=9419
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65504
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.moosefs.basePort can't be changed: chunkservers are known to the master by address and port"
	BasePort int32 `json:"basePort,omitempty"`

	// metaloggers describes the nodes that keep a running copy of the master's metadata. Without it, there is no such
	// copy, and the loss of the master's disk is the loss of the filesystem.
	// +optional
	Metaloggers *MetaloggersSpec `json:"metaloggers,omitempty"`
}

// MetaloggersSpec describes the nodes that keep a running copy of the MooseFS master's metadata.
type MetaloggersSpec struct {
	// nodeSelector selects the nodes by their labels; each runs one metalogger.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// config holds raw options of mfsmetalogger.cfg.
	// +optional
	Config Options `json:"config,omitempty"`
}

// NodeSelector selects nodes: a node matches when it has every one of these labels.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="label names have at most 317 characters, their values at most 63"
type NodeSelector map[string]string

// Options are raw options of a daemon: name to value, as they stand in its configuration file. The values have a type of
// their own because a rule over a map of unbounded strings costs more than the API server allows.
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z][A-Za-z0-9_]{0,63}$'))",message="an option's name is a letter, then up to 63 letters, digits and underscores"
type Options map[string]OptionValue

// OptionValue is one line of at most 1024 characters.
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.contains('\\n') && !self.contains('\\r')",message="an option's value is one line"
type OptionValue string

// MetadataSpec describes the metadata servers.
type MetadataSpec struct {
	// nodeSelector selects the nodes that run metadata servers. For MooseFS it must match exactly one node when the
	// filesystem is made; the master then stays on that node, where its metadata is.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// instancesPerNode is the number of metadata servers on each of those nodes. MooseFS has exactly one. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	InstancesPerNode int32 `json:"instancesPerNode,omitempty"`

	// targets is where the metadata is kept. It can't be changed: metadata that a server does not find is lost metadata.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.metadata.targets can't be changed: the metadata would be left behind"
	Targets TargetsSpec `json:"targets,omitzero"`

	// cpuPinning binds the metadata servers to CPUs and memory. Defaults to mode None.
	// +optional
	CPUPinning *CPUPinning `json:"cpuPinning,omitempty"`
}

// DirectoryPath is an absolute, clean path: at least two levels deep, without "..", "." or empty elements, spaces or
// characters that mean something to a configuration file or a shell.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^(/[A-Za-z0-9_][A-Za-z0-9_.-]*){2,}$`
// +kubebuilder:validation:XValidation:rule="!self.matches('^/(bin|boot|dev|etc|lib[0-9x]*|parallelfs|proc|run|sbin|sys|tmp|usr)/')",message="a directory must not lie in one of the system's own (/bin, /boot, /dev, /etc, /lib, /proc, /run, /sbin, /sys, /tmp, /usr) nor in /parallelfs, which the operator's pods use"
type DirectoryPath string

// StoragePoolSpec describes one pool of storage targets.
type StoragePoolSpec struct {
	// name of the pool, and of its directory at the top of the filesystem.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// nodeSelector selects the nodes that hold targets of this pool. A node that once held targets of it keeps serving
	// them when its labels change: they hold data. The status names such a node.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// targets is where the data is kept on each of those nodes: every directory, and every device, is one target. Targets
	// can be added. A directory can't be taken away; a device can, when its StorageTarget says SafeToRemove.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.directories) || !has(self.directories) || oldSelf.directories.all(d, d in self.directories)",message="a target's directory can't be removed: it holds data, and only devices can be drained"
	Targets TargetsSpec `json:"targets,omitzero"`

	// copies is the number of nodes of the pool that hold a copy of every chunk of a file. 1 means that the loss of one
	// target is a loss of data. Defaults to 2.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Copies int32 `json:"copies,omitempty"`

	// cpuPinning binds the pool's storage servers to CPUs and memory. Defaults to mode None.
	// +optional
	CPUPinning *CPUPinning `json:"cpuPinning,omitempty"`
}

// ClientsSpec describes the nodes on which the filesystem is mounted.
type ClientsSpec struct {
	// nodeSelector selects the nodes.
	// +required
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// mountPath is where the filesystem is mounted on those nodes. The directory is made when it does not exist, and
	// is kept immutable and empty underneath, so that nothing can be written to the node's own disk while the
	// filesystem is not mounted. It can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.clients.mountPath can't be changed: programs that use the old path would lose their files"
	MountPath DirectoryPath `json:"mountPath,omitempty"`

	// mountOptions are options of the filesystem's own mount program, as after its -o (mfsmount(8) for MooseFS).
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	MountOptions []MountOption `json:"mountOptions,omitempty"`
}

// MountOption is one mount option: a name, or name=value.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_./:+-]+)?$`
type MountOption string

// ConfigSpec holds raw options of the daemons, by role.
type ConfigSpec struct {
	// metadata holds options of the metadata servers; for MooseFS, of mfsmaster.cfg.
	// +optional
	Metadata Options `json:"metadata,omitempty"`

	// storage holds options of the storage servers; for MooseFS, of mfschunkserver.cfg of every pool.
	// +optional
	Storage Options `json:"storage,omitempty"`
}

// FileSystem is one parallel filesystem: its servers on labelled bare-metal nodes, its storage pools and its clients.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pfs,categories={all,parallelfs}
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Servers",type=string,JSONPath=`.status.summary.servers`
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.status.summary.targets`
// +kubebuilder:printcolumn:name="Clients",type=string,JSONPath=`.status.summary.clients`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.summary.capacity`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.summary.used`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=`.status.management.address`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name of a FileSystem has at most 40 characters, because the names of its daemons start with it"
type FileSystem struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec FileSystemSpec `json:"spec,omitzero"`

	// status is what the operator has found.
	// +optional
	Status FileSystemStatus `json:"status,omitzero"`
}

// FileSystemList is a list of FileSystems.
// +kubebuilder:object:root=true
type FileSystemList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list's metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the FileSystems.
	Items []FileSystem `json:"items"`
}
