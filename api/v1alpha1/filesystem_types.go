package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FileSystemType names a parallel filesystem that the operator can run.
// +kubebuilder:validation:Enum=MooseFS;BeeGFS;Lustre
type FileSystemType string

// The types of filesystems.
const (
	// MooseFS is the fault-tolerant distributed filesystem of moosefs.com (Community Edition).
	MooseFS FileSystemType = "MooseFS"
	// BeeGFS is the parallel filesystem of beegfs.io.
	BeeGFS FileSystemType = "BeeGFS"
	// Lustre is the parallel filesystem of lustre.org, which is served by the kernels of its nodes.
	Lustre FileSystemType = "Lustre"
)

// FileSystemSpec is the desired state of one parallel filesystem.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || (has(self.moosefs) && has(self.moosefs.basePort) ? self.moosefs.basePort : 0) == (has(oldSelf.moosefs) && has(oldSelf.moosefs.basePort) ? oldSelf.moosefs.basePort : 0)",message="spec.moosefs.basePort can't be changed, set or removed later: chunkservers are known to the master by address and port; status.chosen.basePort says which ports are used where it is absent"
// +kubebuilder:validation:XValidation:rule="!has(self.defaultStoragePool) || self.storagePools.exists(p, p.name == self.defaultStoragePool)",message="spec.defaultStoragePool names a pool that spec.storagePools does not have"
// +kubebuilder:validation:XValidation:rule="has(self.nodes) || has(self.metadataServers.nodeSelector) && self.storagePools.all(p, has(p.nodeSelector)) && (!has(self.clients) || has(self.clients.nodeSelector)) && (!has(self.moosefs) || !has(self.moosefs.metaloggers) || has(self.moosefs.metaloggers.nodeSelector)) && (!has(self.beegfs) || has(self.beegfs.management.nodeSelector)) && (!has(self.lustre) || !has(self.lustre.management) || has(self.lustre.management.nodeSelector))",message="set spec.nodes, or a nodeSelector for the metadata, each storage pool, and the management service, the metaloggers and the clients where there are some"
// +kubebuilder:validation:XValidation:rule="self.type == 'MooseFS' || !has(self.moosefs)",message="spec.moosefs belongs to type MooseFS"
// +kubebuilder:validation:XValidation:rule="self.type == 'BeeGFS' ? has(self.beegfs) : !has(self.beegfs)",message="spec.beegfs belongs to type BeeGFS, which requires it: spec.beegfs.management says where the management service runs"
// +kubebuilder:validation:XValidation:rule="self.type == 'Lustre' ? has(self.lustre) : !has(self.lustre)",message="spec.lustre belongs to type Lustre, which requires it: spec.lustre.fsName is written on every disk"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || !has(self.network)",message="a MooseFS does not have spec.network yet, because its clients are known by the InternalIP of their nodes; it uses the interface that has that address"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || !has(self.metadataServers.nodeCount)",message="spec.metadataServers.nodeCount belongs to types BeeGFS and Lustre; a MooseFS has exactly one master"
// +kubebuilder:validation:XValidation:rule="self.type != 'BeeGFS' || !has(self.version) || self.version.matches('^(7[.]4|8[.][0-9]{1,3})[.][0-9]{1,3}$')",message="BeeGFS runs in version 7.4.x or 8.x.y; set spec.version to one such as 7.4.6 or 8.3.1"
// +kubebuilder:validation:XValidation:rule="self.type != 'BeeGFS' || !has(self.beegfs) || !has(self.version) || self.version.startsWith('8.') || (!has(self.beegfs.tls) && !has(self.beegfs.license))",message="spec.beegfs.tls and spec.beegfs.license belong to BeeGFS 8; BeeGFS 7 knows neither"
// +kubebuilder:validation:XValidation:rule="self.type != 'BeeGFS' || !has(self.metadataServers.targets.directories) || size(self.metadataServers.targets.directories) == self.metadataServers.instancesPerNode",message="every metadata server keeps its metadata in one directory of its own; give as many spec.metadataServers.targets.directories as spec.metadataServers.instancesPerNode"
// +kubebuilder:validation:XValidation:rule="self.type == 'MooseFS' || !has(self.metadataServers.targets.select) || !has(self.metadataServers.targets.select.countPerNode) || self.metadataServers.targets.select.countPerNode == self.metadataServers.instancesPerNode",message="every metadata server keeps its metadata on one disk of its own; spec.metadataServers.targets.select.countPerNode must equal spec.metadataServers.instancesPerNode, or be absent"
// +kubebuilder:validation:XValidation:rule="self.type != 'BeeGFS' || self.storagePools.all(p, !has(p.copies) || p.copies <= 2)",message="copies of a BeeGFS pool, which can't be changed later, are 1, or 2 by buddy mirroring, which needs two nodes and a license"
// +kubebuilder:validation:XValidation:rule="self.type == 'BeeGFS' || !has(self.metadataServers.beegfs) && self.storagePools.all(p, !has(p.beegfs))",message="spec.metadataServers.beegfs and spec.storagePools[].beegfs belong to type BeeGFS"
// +kubebuilder:validation:XValidation:rule="self.type != 'BeeGFS' || self.storagePools.all(p, p.name != 'draining')",message="a storage pool of a BeeGFS can't be named draining: targets that are being drained go to a pool of that name"
// +kubebuilder:validation:XValidation:rule="self.type != 'BeeGFS' || oldSelf.storagePools.all(o, self.storagePools.all(p, p.name != o.name || (has(p.copies) ? p.copies : 1) == (has(o.copies) ? o.copies : 1)))",message="copies of a BeeGFS pool can't be changed: its files keep the stripe pattern that they were made with"
// +kubebuilder:validation:XValidation:rule="self.type == 'MooseFS' || self.metadataServers.instancesPerNode >= oldSelf.metadataServers.instancesPerNode",message="metadata servers can't be taken away: their metadata can't be moved elsewhere"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || has(self.version) && self.version.matches('^2[.]1[5-7][.][0-9]{1,3}$')",message="Lustre runs in version 2.15.x to 2.17.x; set spec.version to the one of the modules on the nodes, such as 2.15.6"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || !has(self.metadataServers.nodeCount) || !has(oldSelf.metadataServers.nodeCount) || self.metadataServers.nodeCount >= oldSelf.metadataServers.nodeCount",message="spec.metadataServers.nodeCount of a Lustre can only grow: an MDT can't be taken away"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || self.storagePools.all(p, !has(p.copies) || p.copies == 1)",message="a storage pool of a Lustre has 1 in copies, because Lustre stores nothing twice"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || self.storagePools.all(p, size(p.name) <= 15 && !(p.name in ['none', 'ignore', 'inherit']))",message="the name of a storage pool of a Lustre has at most 15 characters, and is not none, ignore or inherit, which mean something else to Lustre"
// +kubebuilder:validation:XValidation:rule="self.type == 'Lustre' || self.storagePools.all(p, !has(p.lustre))",message="spec.storagePools[].lustre belongs to type Lustre"
// +kubebuilder:validation:XValidation:rule="self.storagePools.all(p, !has(p.lustre) || !has(p.lustre.pairs) || has(p.targets.devices))",message="a storage pool with pairs names its disks in targets.devices: each of them is chosen by a person, on the node that serves it"
// +kubebuilder:validation:XValidation:rule="self.type == 'Lustre' ? !has(self.metadataServers.targets.directories) && (!has(self.metadataServers.targets.format) || !has(self.metadataServers.targets.format.fsType) || self.metadataServers.targets.format.fsType == 'ldiskfs') && self.storagePools.all(p, !has(p.targets.directories) && (!has(p.targets.format) || !has(p.targets.format.fsType) || p.targets.format.fsType == 'ldiskfs')) : (!has(self.metadataServers.targets.format) || !has(self.metadataServers.targets.format.fsType) || self.metadataServers.targets.format.fsType != 'ldiskfs') && self.storagePools.all(p, !has(p.targets.format) || !has(p.targets.format.fsType) || p.targets.format.fsType != 'ldiskfs') && (!has(self.beegfs) || !has(self.beegfs.management.targets.format) || !has(self.beegfs.management.targets.format.fsType) || self.beegfs.management.targets.format.fsType != 'ldiskfs')",message="targets of a Lustre are disks with format.fsType: ldiskfs, or without fsType; ldiskfs belongs to no other type: others use ext4, xfs or btrfs"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || (!has(self.metadataServers.targets.format) || !has(self.metadataServers.targets.format.mountOptions) && !has(self.metadataServers.targets.format.logDevices)) && self.storagePools.all(p, !has(p.targets.format) || !has(p.targets.format.mountOptions) && !has(p.targets.format.logDevices))",message="Lustre mounts its targets with the options that mkfs.lustre wrote on them, and they have no log devices: remove mountOptions and logDevices from format"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || (!has(self.metadataServers.cpuPinning) || self.metadataServers.cpuPinning.mode != 'KubeletStatic') && self.storagePools.all(p, !has(p.cpuPinning) || p.cpuPinning.mode != 'KubeletStatic')",message="cpuPinning of a Lustre has the mode NUMANode, CPUSet or None: its threads belong to the kernel of the node, and the kubelet gives CPUs to pods only"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || (!has(self.metadataServers.cpuPinning) || !has(self.metadataServers.cpuPinning.memoryPolicy) || self.metadataServers.cpuPinning.memoryPolicy != 'Bind') && self.storagePools.all(p, !has(p.cpuPinning) || !has(p.cpuPinning.memoryPolicy) || p.cpuPinning.memoryPolicy != 'Bind')",message="cpuPinning of a Lustre has no memoryPolicy Bind: its threads belong to the kernel of the node, which takes memory from other NUMA nodes when theirs has none"
// +kubebuilder:validation:XValidation:rule="self.type != 'Lustre' || (!has(self.metadataServers.cpuPinning) || (!has(self.metadataServers.cpuPinning.numaNodes) || size(self.metadataServers.cpuPinning.numaNodes) == 1) && (!has(self.metadataServers.cpuPinning.cpuSets) || size(self.metadataServers.cpuPinning.cpuSets) == 1)) && self.storagePools.all(p, !has(p.cpuPinning) || (!has(p.cpuPinning.numaNodes) || size(p.cpuPinning.numaNodes) == 1) && (!has(p.cpuPinning.cpuSets) || size(p.cpuPinning.cpuSets) == 1))",message="cpuPinning of a Lustre has one entry in numaNodes or cpuSets: the same threads of the kernel serve all MDTs of a node, and the same ones all of its OSTs"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || !has(self.version) || self.version.matches('^(3[.]0[.]1(1[7-9]|[2-9][0-9])|4[.]5[7-9][.][0-9]{1,3})$')",message="MooseFS runs in version 3.0.117 to 3.0.x, or 4.57.x to 4.59.x; set spec.version to one such as 4.57.5"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || !has(self.metadataServers.instancesPerNode) || self.metadataServers.instancesPerNode == 1",message="MooseFS Community Edition has exactly one active master, so spec.metadataServers.instancesPerNode must be 1; several metadata servers per node need another type"
// +kubebuilder:validation:XValidation:rule="self.type != 'MooseFS' || (has(self.metadataServers.targets.directories) ? size(self.metadataServers.targets.directories) == 1 : has(self.metadataServers.targets.devices) ? size(self.metadataServers.targets.devices) == 1 : !has(self.metadataServers.targets.select.countPerNode) || self.metadataServers.targets.select.countPerNode == 1)",message="a MooseFS master keeps its metadata in one place; give exactly one of spec.metadataServers.targets.directories or devices, or a select with countPerNode 1 or none"
// +kubebuilder:validation:XValidation:rule="!has(self.metadataServers.targets.directories) || self.storagePools.all(p, !has(p.targets.directories) || p.targets.directories.all(d, self.metadataServers.targets.directories.all(m, d != m && !d.startsWith(m + '/') && !m.startsWith(d + '/'))))",message="a storage pool's directory must not equal, contain or lie in a metadata directory"
// +kubebuilder:validation:XValidation:rule="!has(self.beegfs) || !has(self.beegfs.management.targets.directories) || [self.beegfs.management.targets.directories[0]].all(m, (!has(self.metadataServers.targets.directories) || self.metadataServers.targets.directories.all(d, d != m && !d.startsWith(m + '/') && !m.startsWith(d + '/'))) && self.storagePools.all(p, !has(p.targets.directories) || p.targets.directories.all(d, d != m && !d.startsWith(m + '/') && !m.startsWith(d + '/'))))",message="the directory of spec.beegfs.management.targets must not equal, contain or lie in a metadata directory or a storage pool's directory"
// +kubebuilder:validation:XValidation:rule="self.storagePools.all(p, self.storagePools.all(q, p.name == q.name || !has(p.targets.directories) || !has(q.targets.directories) || p.targets.directories.all(d, !(d in q.targets.directories))))",message="two storage pools must not use the same directory"
// +kubebuilder:validation:XValidation:rule="self.storagePools.all(q, !has(q.targets.directories) || q.targets.directories.all(e, [e + '/'].all(prefix, self.storagePools.all(p, p.name == q.name || !has(p.targets.directories) || p.targets.directories.all(d, !d.startsWith(prefix))))))",message="a storage pool's directory must not lie inside another pool's"
// +kubebuilder:validation:XValidation:rule="(has(self.metadataServers.targets.devices) ? size(self.metadataServers.targets.devices) : 0) + self.storagePools.map(p, has(p.targets.devices) ? size(p.targets.devices) : 0).sum() <= 512",message="a FileSystem names at most 512 devices in its metadata and its pools together; use targets.select for more"
// +kubebuilder:validation:XValidation:rule="!has(self.clients) || !has(self.clients.mountPath) || ((has(self.metadataServers.targets.directories) ? self.metadataServers.targets.directories : []) + ['/var/lib/parallelfs']).all(d, d != self.clients.mountPath && !d.startsWith(self.clients.mountPath + '/') && !self.clients.mountPath.startsWith(d + '/'))",message="spec.clients.mountPath must not equal, contain or lie in the metadata directory or /var/lib/parallelfs, where daemons keep their state"
// +kubebuilder:validation:XValidation:rule="!has(self.clients) || !has(self.clients.mountPath) || !has(self.beegfs) || !has(self.beegfs.management.targets.directories) || self.beegfs.management.targets.directories.all(d, d != self.clients.mountPath && !d.startsWith(self.clients.mountPath + '/') && !self.clients.mountPath.startsWith(d + '/'))",message="spec.clients.mountPath must not equal, contain or lie in the directory of the management service"
// +kubebuilder:validation:XValidation:rule="!has(self.clients) || !has(self.clients.mountPath) || self.storagePools.all(p, !has(p.targets.directories) || p.targets.directories.all(d, d != self.clients.mountPath && !d.startsWith(self.clients.mountPath + '/') && !self.clients.mountPath.startsWith(d + '/')))",message="spec.clients.mountPath must not equal, contain or lie in a storage pool's directory"
// +kubebuilder:validation:XValidation:rule="!has(self.pods) || !has(self.pods.resources) || (self.type == 'MooseFS' ? !has(self.pods.resources.management) : !has(self.pods.resources.metadataBackup))",message="spec.pods.resources.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"
// +kubebuilder:validation:XValidation:rule="!has(self.pods) || !has(self.pods.tolerationsByRole) || (self.type == 'MooseFS' ? !has(self.pods.tolerationsByRole.management) : !has(self.pods.tolerationsByRole.metadataBackup))",message="spec.pods.tolerationsByRole.management belongs to types BeeGFS and Lustre, and metadataBackup to type MooseFS"
// +kubebuilder:validation:XValidation:rule="!has(self.pods) || !has(self.pods.resources) || (!has(self.pods.resources.metadata) || !has(self.metadataServers.cpuPinning) || self.metadataServers.cpuPinning.mode != 'KubeletStatic') && (!has(self.pods.resources.storage) || self.storagePools.all(p, !has(p.cpuPinning) || p.cpuPinning.mode != 'KubeletStatic'))",message="cpuPinning with mode KubeletStatic sets the requests and limits of a server; leave its role out of spec.pods.resources"
// +kubebuilder:validation:XValidation:rule="!has(self.backups) || !has(self.backups.nodes) || !has(self.clients) || !has(self.clients.mountPath) || (self.backups.nodes.directory != self.clients.mountPath && !self.backups.nodes.directory.startsWith(self.clients.mountPath + '/') && !self.clients.mountPath.startsWith(self.backups.nodes.directory + '/'))",message="spec.backups.nodes.directory must not equal, contain or lie in spec.clients.mountPath: a backup in the filesystem is lost with it"
// +kubebuilder:validation:XValidation:rule="!has(self.backups) || !has(self.backups.nodes) || ((has(self.metadataServers.targets.directories) ? self.metadataServers.targets.directories : []) + (has(self.beegfs) && has(self.beegfs.management.targets.directories) ? self.beegfs.management.targets.directories : []) + ['/var/lib/parallelfs']).all(d, d != self.backups.nodes.directory && !d.startsWith(self.backups.nodes.directory + '/') && !self.backups.nodes.directory.startsWith(d + '/'))",message="spec.backups.nodes.directory must not equal, contain or lie in a directory of the metadata or of the management service, or in /var/lib/parallelfs, where daemons keep their state"
// +kubebuilder:validation:XValidation:rule="!has(self.backups) || !has(self.backups.nodes) || self.storagePools.all(p, !has(p.targets.directories) || p.targets.directories.all(d, d != self.backups.nodes.directory && !d.startsWith(self.backups.nodes.directory + '/') && !self.backups.nodes.directory.startsWith(d + '/')))",message="spec.backups.nodes.directory must not equal, contain or lie in a storage pool's directory"
type FileSystemSpec struct {
	// type is the parallel filesystem to run. It can't be changed.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.type can't be changed; create another FileSystem"
	Type FileSystemType `json:"type,omitempty"`

	// version is the version of the filesystem's own software. A change upgrades it, along the paths that its vendor supports, one component
	// after the other; status.version is the version that runs meanwhile. No path leads back to an older version. The software of a Lustre is
	// that of the nodes themselves, and version says which one is expected there. A Lustre needs it. Without it, another filesystem gets the
	// newest version of which the operator has an image when it is made, and keeps it: status.chosen.version records it.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	Version string `json:"version,omitempty"`

	// nodes are the nodes of all roles that select none themselves: metadata, storage pools, management service, metaloggers and clients. If
	// it is set, all of its nodes mount the filesystem unless spec.clients selects others. A node that joins later gets targets and a mount,
	// and changes nothing else.
	// +optional
	Nodes *NodesSpec `json:"nodes,omitempty"`

	// network selects the network interfaces of daemons and clients, which all run on the host network. Without it, they use the interface
	// with the node's InternalIP. MooseFS does not have it yet.
	// +optional
	Network *NetworkSpec `json:"network,omitempty"`

	// metadataServers describes the metadata servers (MDS); for MooseFS, its master; for Lustre, its MDTs.
	// +required
	MetadataServers MetadataSpec `json:"metadataServers,omitzero"`

	// storagePools are groups of storage targets. Each pool has a directory of its name at the top of the filesystem; files in it are on the
	// targets of the pool. Files outside of these directories go to spec.defaultStoragePool.
	// +required
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=12
	StoragePools []StoragePoolSpec `json:"storagePools,omitempty"`

	// defaultStoragePool is the pool that takes the files outside of the directories of pools. Without it, it is the first one that the spec
	// had when the filesystem was made, which status.chosen.defaultStoragePool names; the order of the list has no meaning after that. It can
	// be changed: new files then go to the other pool.
	// +optional
	// +kubebuilder:validation:MaxLength=24
	DefaultStoragePool string `json:"defaultStoragePool,omitempty"`

	// clients describes the nodes on which the filesystem is mounted. Without it, those of spec.nodes mount it, and without that none.
	// +optional
	Clients *ClientsSpec `json:"clients,omitempty"`

	// moosefs holds the settings that only MooseFS has. Without it, each has its default.
	// +optional
	MooseFS *MooseFSSpec `json:"moosefs,omitempty"`

	// beegfs holds the settings that only BeeGFS has. Type BeeGFS requires it.
	// +optional
	BeeGFS *BeeGFSSpec `json:"beegfs,omitempty"`

	// lustre holds the settings that only Lustre has. Type Lustre requires it.
	// +optional
	Lustre *LustreSpec `json:"lustre,omitempty"`

	// pods sets tolerations, priority class, labels, annotations, pull secrets and resources of the pods of daemons, clients and jobs.
	// +optional
	Pods PodsSpec `json:"pods,omitzero"`

	// failureDomains says which nodes fail together, such as those of one rack. Without it, each node is a failure domain of its own.
	// +optional
	FailureDomains FailureDomainsSpec `json:"failureDomains,omitzero"`

	// updates says how changes reach running daemons.
	// +optional
	Updates UpdatesSpec `json:"updates,omitzero"`

	// backups says when and where the metadata is backed up. That is all metadata of a MooseFS, the store of the management service of a
	// BeeGFS, and the configuration logs of the MGT of a Lustre. Without it, there are no backups.
	// +optional
	Backups *BackupsSpec `json:"backups,omitempty"`

	// provisioning sets what the operator may do to disks. Defaults to {}, which is formatPolicy Approved.
	// +optional
	// +kubebuilder:default={}
	Provisioning ProvisioningSpec `json:"provisioning,omitzero"`

	// deletionPolicy sets what happens to the disks when the FileSystem is deleted. Retain unmounts them and keeps their data. Destroy wipes
	// those that carry its marker, and needs confirmDestroy. Defaults to Retain.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`

	// confirmDestroy confirms deletionPolicy Destroy. Its value is the uid of this object (kubectl get -o jsonpath={.metadata.uid}). A
	// copied manifest has another uid, so it destroys nothing. Without confirmDestroy, a deleted FileSystem with deletionPolicy Destroy
	// waits for it and wipes nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ConfirmDestroy string `json:"confirmDestroy,omitempty"`
}

// FailureDomainsSpec says which nodes fail together: those with the same value of a label. New copies of data, and new buddy groups, are in
// different failure domains if the filesystem can do that.
type FailureDomainsSpec struct {
	// label is the key of the label whose value names a node's failure domain, such as topology.kubernetes.io/rack. A node without this
	// label, or with an empty value, is a failure domain of its own; the condition Spread names such nodes. The label can be changed: a
	// MooseFS then moves copies; a BeeGFS keeps its buddy groups.
	// +required
	Label LabelKey `json:"label,omitempty"`
}

// LabelKey is the key of a label: a name of up to 63 letters, digits, dashes, underscores and dots, optionally after a prefix, which is a
// DNS name and a slash.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=317
// +kubebuilder:validation:Pattern=`^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?([.][a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$`
// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253",message="the prefix of a label's key has at most 253 characters"
type LabelKey string

// UpdatesSpec says how changes reach running daemons. Daemons restart one failure domain at a time, and only while the filesystem can do
// without them.
type UpdatesSpec struct {
	// maxUnavailable is how many servers of one failure domain may restart at the same time. More than one restart together only while the
	// filesystem itself proves that all their data has another copy on a server that stays. Servers of two failure domains never restart
	// together. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	MaxUnavailable int32 `json:"maxUnavailable,omitempty"`

	// paused means that running daemons aren't restarted, nodes aren't released for maintenance, and upgrades neither start nor continue.
	// Daemons that are down are started nevertheless, with the changed configuration. Defaults to false.
	// +optional
	Paused bool `json:"paused,omitempty"`

	// windows are the times when programs may be made to wait for a restart. Programs wait for a daemon whose data has no other copy: the
	// master, the management service, or a server of a pool with one copy. Such a daemon restarts while any of the windows is open; the status
	// says when the next one opens. Daemons behind it in the order of restarts wait with it; all others restart at any time. A daemon that
	// programs wait for already is restarted at once. Without windows, daemons restart at any time.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Windows []UpdateWindow `json:"windows,omitempty"`

	// upgradeWithoutBackup permits an upgrade without a verified backup of the data that can't be made again. Its value is the version that
	// the upgrade goes to, so that it means no later one. A lost upgrade may then lose the filesystem. While it is spec.version, the server of
	// the metadata is also restarted without a proven copy of the metadata.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	UpgradeWithoutBackup string `json:"upgradeWithoutBackup,omitempty"`

	// clients says when clients follow an upgrade, after all servers. Defaults to Manual: a person deletes the pods of clients. Now remounts
	// all clients, a few at a time and in the windows; each program that has a file open there fails.
	// +optional
	// +kubebuilder:default=Manual
	Clients ClientUpdates `json:"clients,omitempty"`

	// maintenance sets how long a cordoned node may be away. Defaults to {}.
	// +optional
	// +kubebuilder:default={}
	Maintenance MaintenanceSpec `json:"maintenance,omitzero"`
}

// ClientUpdates says when clients follow an upgrade.
// +kubebuilder:validation:Enum=Manual;Now
type ClientUpdates string

// When clients follow an upgrade.
const (
	// ClientsManual leaves mounts to a person.
	ClientsManual ClientUpdates = "Manual"
	// ClientsNow remounts all clients, even if programs use the filesystem.
	ClientsNow ClientUpdates = "Now"
)

// MaintenanceSpec says how long nodes may be away for maintenance.
type MaintenanceSpec struct {
	// limit is how long the maintenance of a node may last, from "5m" to "168h". It counts from the moment when the filesystem releases the
	// node until it is uncordoned and its servers are online again. Longer maintenance is reported, and the filesystem stops waiting for the
	// node: a MooseFS then makes new copies of the chunks on it. Defaults to "2h".
	// +optional
	// +kubebuilder:default="2h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('5m') && duration(self) <= duration('168h')",message="spec.updates.maintenance.limit must be from 5m to 168h"
	Limit metav1.Duration `json:"limit,omitzero"`
}

// UpdateWindow is a time that comes again and again.
type UpdateWindow struct {
	// schedule is when the window opens, such as "0 2 * * 6" for two o'clock on each Saturday. As in a CronJob, its fields are minute,
	// hour, day of the month, month and day of the week.
	// +required
	// +kubebuilder:validation:MinLength=9
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[0-9A-Za-z*,/?-]+( +[0-9A-Za-z*,/?-]+){4}$`
	Schedule string `json:"schedule,omitempty"`

	// duration is how long the window stays open, from "5m" to "168h". A restart begins within it and may end behind it.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$')",message="a duration is numbers with h, m, s or ms, such as 30m or 1h30m; a day is 24h"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]+([.][0-9]+)?(ms|s|m|h))+$') || duration(self) >= duration('5m') && duration(self) <= duration('168h')",message="spec.updates.windows.duration must be from 5m to 168h"
	Duration metav1.Duration `json:"duration,omitzero"`

	// timeZone is the name of the time zone of the schedule in the IANA database, such as "Europe/Berlin". Defaults to "UTC".
	// +optional
	// +kubebuilder:default=UTC
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_+/-]+$`
	TimeZone string `json:"timeZone,omitempty"`
}

// MooseFSSpec holds the fields that only MooseFS has.
type MooseFSSpec struct {
	// basePort is the first of 32 TCP ports on the host network of the nodes. The master listens on basePort+0 for metaloggers, basePort+1 for
	// chunkservers and basePort+2 for clients; the probe on basePort+8; chunkservers on basePort+16 and up, one port per storage pool. Two
	// filesystems that share a node need ranges that don't overlap. Without it, the operator takes the first range from 9419, MooseFS's own,
	// that no other FileSystem has, and records it in status.chosen.basePort. It can't be set, changed or removed later, because the master
	// identifies chunkservers by address and port.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65504
	BasePort int32 `json:"basePort,omitempty"`

	// metaloggers describes the nodes that keep a running copy of the master's metadata. Without it, the filesystem is lost with the
	// master's disk.
	// +optional
	Metaloggers *MetaloggersSpec `json:"metaloggers,omitempty"`

	// config holds raw options of the daemons. An option that the operator sets itself, or that the daemon does not have, is refused; the
	// condition Stalled names it.
	// +optional
	Config MooseFSConfig `json:"config,omitzero"`

	// exports sets which hosts may mount what, and with which rights (mfsexports.cfg). A host that no entry has can't mount; so the nodes of
	// spec.clients need one, too. Of all entries that have a host, the one with more rights counts. A change restarts the master. Without it,
	// every host may mount everything, and its root is the filesystem's root. Only the operator may administer.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Exports []MooseFSExport `json:"exports,omitempty"`
}

// MooseFSExport is a line of mfsexports.cfg.
type MooseFSExport struct {
	// addresses are the hosts: * for all, an IPv4 address, a network such as 192.168.10.0/24, or a range such as 192.168.10.5-192.168.10.9.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=31
	// +kubebuilder:validation:Pattern=`^([*]|[0-9]{1,3}([.][0-9]{1,3}){3}([/][0-9]{1,2}|-[0-9]{1,3}([.][0-9]{1,3}){3})?)$`
	Addresses string `json:"addresses,omitempty"`

	// directory is what they may mount, with everything below it, such as /projects. Defaults to /.
	// +optional
	// +kubebuilder:default=/
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^(/|(/[A-Za-z0-9_][A-Za-z0-9._-]*)+)$`
	Directory string `json:"directory,omitempty"`

	// readOnly lets them read only. Defaults to false.
	// +optional
	ReadOnly bool `json:"readOnly,omitempty"`

	// rootAs is the user whose rights root of these hosts has (maproot). Without it, it is user 0 and group 0, the filesystem's root.
	// +optional
	RootAs *MooseFSUser `json:"rootAs,omitempty"`

	// allAs is the user whose rights all users but root of these hosts have (mapall). Without it, each user keeps its own.
	// +optional
	AllAs *MooseFSUser `json:"allAs,omitempty"`
}

// MooseFSUser is a user and a group of a MooseFS, by number.
type MooseFSUser struct {
	// user is the number of the user.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	User *int64 `json:"user,omitempty"`

	// group is the number of the group.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=4294967294
	Group *int64 `json:"group,omitempty"`
}

// MooseFSConfig holds raw options of the daemons of a MooseFS, by role.
type MooseFSConfig struct {
	// metadata holds options of mfsmaster.cfg.
	// +optional
	Metadata Options `json:"metadata,omitempty"`

	// storage holds options of mfschunkserver.cfg, for the chunkservers of every pool.
	// +optional
	Storage Options `json:"storage,omitempty"`
}

// Ports is the first port of a MooseFS whose spec is complete; the member may be nil.
func (s *MooseFSSpec) Ports() int32 {
	if s == nil || s.BasePort == 0 {
		return defaultMooseFSPort
	}
	return s.BasePort
}

// defaultMooseFSPort is that of metaloggers in mfsmaster.cfg(5), MATOML_LISTEN_PORT.
const defaultMooseFSPort = 9419

// MetaloggersSpec describes the nodes that keep a running copy of the MooseFS master's metadata.
type MetaloggersSpec struct {
	// nodeSelector selects the nodes. Each of them runs one metalogger. Without it, the operator chooses two nodes of spec.nodes except the
	// master's, and records them in status.chosen.metaloggers.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// config holds raw options of mfsmetalogger.cfg.
	// +optional
	Config Options `json:"config,omitempty"`
}

// NodesSpec says which nodes a filesystem has.
// +kubebuilder:validation:XValidation:rule="has(self.names) != has(self.selector)",message="set exactly one of names and selector in spec.nodes"
type NodesSpec struct {
	// names of the nodes, such as [n1, n2, n3].
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	// selector selects nodes by their labels, such as {matchLabels: {storage: ""}}.
	// +optional
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) || has(self.matchExpressions)",message="spec.nodes.selector selects nodes by matchLabels or matchExpressions"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// NodeSelector selects nodes: a node matches when it has every one of these labels.
// +kubebuilder:validation:MinProperties=1
// +kubebuilder:validation:MaxProperties=16
// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 317 && size(self[k]) <= 63)",message="label names have at most 317 characters, their values at most 63"
type NodeSelector map[string]string

// Options are raw options of a daemon: name to value, as in its configuration file. The values have a type of their own because a rule over
// a map of unbounded strings costs more than the API server allows.
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z][A-Za-z0-9_-]{0,63}$'))",message="an option's name is a letter, then up to 63 letters, digits, underscores and dashes"
type Options map[string]OptionValue

// OptionValue is one line of at most 1024 characters.
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="!self.contains('\\n') && !self.contains('\\r')",message="an option's value is one line"
type OptionValue string

// NetworkSpec says which of the nodes' networks are used.
type NetworkSpec struct {
	// interfaces are the names of the network interfaces that daemons and clients use, in order of preference (connInterfacesFile of
	// BeeGFS). Daemons announce no other address. Without it, they use the interface with the node's InternalIP.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	Interfaces []InterfaceName `json:"interfaces,omitempty"`
}

// InterfaceName is the kernel's name of a network interface, such as "ib0" or "eno1".
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=15
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.:-]*$`
type InterfaceName string

// MetadataSpec describes the metadata servers.
type MetadataSpec struct {
	// nodeSelector selects the nodes that run metadata servers. For MooseFS it must match exactly one node when the filesystem is made. The
	// master then stays on that node, because its metadata is there. Without it, those of spec.nodes do; for MooseFS, the first of them by
	// name, or the one whose disk has the metadata already.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// nodeCount is the number of selected nodes that run metadata servers: first those that already do, then others in the order of their
	// names. Without it, all selected nodes do. It can grow. It can't shrink below the nodes that have metadata servers, because their
	// metadata can't be moved. BeeGFS and Lustre only.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	NodeCount int32 `json:"nodeCount,omitempty"`

	// instancesPerNode is the number of metadata servers on each of those nodes. Each has its own target, port and CPUs. It can grow,
	// together with the targets, and can't shrink. MooseFS has exactly one. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	InstancesPerNode int32 `json:"instancesPerNode,omitempty"`

	// targets says where the metadata is kept. On each node of a BeeGFS or a Lustre, server i uses directory i, or disk i of that node.
	// Targets can be added at the end. None can be changed or removed, because its metadata would be left behind.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.directories) || !has(self.directories) || oldSelf.directories.all(d, self.directories.indexOf(d) == oldSelf.directories.indexOf(d))",message="a metadata directory can't be changed or taken away: the metadata would be left behind; add new ones at the end of the list"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.devices) || !has(self.devices) || oldSelf.devices.all(d, self.devices.indexOf(d) == oldSelf.devices.indexOf(d))",message="a metadata device can't be changed or taken away: the metadata would be left behind; add new ones at the end of the list"
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.select) || !has(self.select) || !has(self.select.countPerNode) || !has(oldSelf.select.countPerNode) || self.select.countPerNode >= oldSelf.select.countPerNode",message="select.countPerNode of the metadata can only grow: metadata can't be moved to fewer disks"
	Targets TargetsSpec `json:"targets,omitzero"`

	// cpuPinning binds the metadata servers to CPUs and memory. Defaults to mode None.
	// +optional
	CPUPinning *CPUPinning `json:"cpuPinning,omitempty"`

	// beegfs holds the settings of metadata servers that only BeeGFS has. Without it, each has its default.
	// +optional
	BeeGFS *BeeGFSMetadata `json:"beegfs,omitempty"`
}

// DirectoryPath is an absolute, clean path, such as /data/ssd0. It is at least two levels deep, without "..", "." or empty elements,
// spaces or characters that mean something to a configuration file or a shell.
// +kubebuilder:validation:MinLength=4
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^(/[A-Za-z0-9_][A-Za-z0-9_.-]*){2,}$`
// +kubebuilder:validation:XValidation:rule="!self.matches('^/(bin|boot|dev|etc|lib[0-9x]*|parallelfs|proc|run|sbin|sys|tmp|usr)/')",message="a directory must not lie in a directory of the system (/bin, /boot, /dev, /etc, /lib, /proc, /run, /sbin, /sys, /tmp, /usr) or in /parallelfs, which the operator's pods use"
type DirectoryPath string

// StoragePoolSpec describes one pool of storage targets.
type StoragePoolSpec struct {
	// name of the pool, and of its directory at the top of the filesystem. That of a Lustre has at most 15 characters.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([a-z0-9-]*[a-z0-9])?$')",message="the name of a storage pool has lower-case letters, digits and dashes, begins with a letter, and does not end with a dash"
	// +kubebuilder:validation:Pattern=`^[a-z]([a-z0-9-]*[a-z0-9])?$`
	Name string `json:"name,omitempty"`

	// nodeSelector selects the nodes that hold targets of this pool. A node that already has targets of the pool keeps serving them when
	// its labels change, because they hold data. Without it, the nodes of spec.nodes hold them.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// targets says where the data is kept on each of those nodes. Every directory and every device is one target. Targets can be added. A
	// directory can't be removed. A device can be removed once its StorageTarget has the condition SafeToRemove.
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(oldSelf.directories) || !has(self.directories) || oldSelf.directories.all(d, d in self.directories)",message="a target's directory can't be removed: it holds data, and only devices can be drained"
	Targets TargetsSpec `json:"targets,omitzero"`

	// copies is the number of nodes of the pool that hold a copy of each chunk of a file. With 1, the loss of a target is a loss of data.
	// Without it, a MooseFS keeps 2, a BeeGFS and a Lustre 1. A BeeGFS has at most 2, by buddy mirroring, which needs a license, and it can't
	// be changed there. A Lustre has 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	Copies int32 `json:"copies,omitempty"`

	// cpuPinning binds the pool's storage servers to CPUs and memory. Defaults to mode None.
	// +optional
	CPUPinning *CPUPinning `json:"cpuPinning,omitempty"`

	// beegfs holds the settings of the pool that only BeeGFS has. Without it, each has its default.
	// +optional
	BeeGFS *BeeGFSPool `json:"beegfs,omitempty"`

	// lustre holds the settings of the pool that only Lustre has. Without it, each file is on one OST, and each disk is reached by one node.
	// +optional
	Lustre *LustrePool `json:"lustre,omitempty"`
}

// ClientsSpec describes the nodes on which the filesystem is mounted.
type ClientsSpec struct {
	// nodeSelector selects the nodes that mount the filesystem. Without it, the nodes of spec.nodes do.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// mountPath is the directory on those nodes where the filesystem is mounted. It is created when it does not exist. It is kept immutable
	// and empty underneath, so that nothing is written to the node's own disk while the filesystem is not mounted. Pods of benchmarks see
	// nothing that is mounted beside it. It can't be changed, also not after clients was removed: status.mountPath records it. Without it, it
	// is /mnt and the name of the FileSystem, such as /mnt/scratch.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.clients.mountPath can't be changed: programs that use the old path would lose their files"
	MountPath DirectoryPath `json:"mountPath,omitempty"`

	// mountOptions are mount options, as after -o: those of mfsmount(8) for MooseFS, of mount(8) for BeeGFS, of mount.lustre(8) for Lustre.
	// Options of the BeeGFS client itself belong in spec.beegfs.config.client. Clients mount with nosuid and nodev, unless the list has suid
	// or dev (for MooseFS mfssuid or mfsdev).
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

// FileSystem is one parallel filesystem: its servers on labeled bare-metal nodes, its storage pools and its clients.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pfs,categories={parallelfs}
// +kubebuilder:selectablefield:JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Version",type=string,priority=1,JSONPath=`.status.version`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Stalled",type=string,JSONPath=`.status.conditions[?(@.type=="Stalled")].reason`
// +kubebuilder:printcolumn:name="Servers",type=string,JSONPath=`.status.summary.servers`
// +kubebuilder:printcolumn:name="Targets",type=string,JSONPath=`.status.summary.targets`
// +kubebuilder:printcolumn:name="Clients",type=string,JSONPath=`.status.summary.clients`
// +kubebuilder:printcolumn:name="Capacity",type=string,JSONPath=`.status.summary.capacity`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.summary.used`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Address",type=string,priority=1,JSONPath=`.status.management.address`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="metadata.name of a FileSystem has at most 40 characters, because the names of its daemons start with it"
// +kubebuilder:validation:XValidation:rule="oldSelf.spec.storagePools.all(p, self.spec.storagePools.exists(q, q.name == p.name) || (has(oldSelf.status) && has(oldSelf.status.observedGeneration) && (!has(oldSelf.status.storagePools) || !oldSelf.status.storagePools.exists(s, s.name == p.name))))",message="a storage pool can't be removed once it has a slot in status.storagePools: its targets hold data, and draining a pool is not built yet"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.clients) || !has(self.status) || !has(self.status.mountPath) || !has(self.spec.clients.mountPath) || self.spec.clients.mountPath == self.status.mountPath",message="spec.clients.mountPath can't be changed, also not by removing spec.clients: programs that use the old path, which status.mountPath records, would lose their files"
type FileSystem struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the filesystem that the user wants.
	// +required
	Spec FileSystemSpec `json:"spec,omitzero"`

	// status is the observed state.
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
