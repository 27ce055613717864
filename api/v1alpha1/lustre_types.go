package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LustreTargetKind is the kind of data that a target of Lustre keeps.
// +kubebuilder:validation:Enum=MGT;MDT;OST
type LustreTargetKind string

// The kinds of targets.
const (
	// LustreMGT has the configuration of the filesystem, and nothing else.
	LustreMGT LustreTargetKind = "MGT"
	// LustreMDT has metadata.
	LustreMDT LustreTargetKind = "MDT"
	// LustreOST has the data of files.
	LustreOST LustreTargetKind = "OST"
)

// LustreTarget is the configuration of a target in its Lustre. It is written on the disk when that is formatted, and proven before each
// mount.
// +kubebuilder:validation:XValidation:rule="has(self.fsName) == (self.kind != 'MGT') && has(self.index) == (self.kind != 'MGT')",message="an MDT and an OST have fsName and index, and an MGT has neither"
// +kubebuilder:validation:XValidation:rule="!has(self.withMGT) || !self.withMGT || self.kind == 'MDT' && self.index == 0",message="only the MDT with the index 0 can have the MGT on its disk"
// +kubebuilder:validation:XValidation:rule="has(self.managementNIDs) != (self.kind == 'MGT' || has(self.withMGT) && self.withMGT)",message="managementNIDs belong to every target that does not have the MGT on its own disk"
type LustreTarget struct {
	// kind is MGT, MDT or OST.
	// +required
	Kind LustreTargetKind `json:"kind,omitempty"`

	// fsName is the name of the filesystem in Lustre. An MGT has none.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
	FSName string `json:"fsName,omitempty"`

	// index is the number of the target among those of its kind, from 0. An MGT has none.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=65503
	Index *int32 `json:"index,omitempty"`

	// withMGT is true when the disk of the first MDT (MDT0000) is the MGT as well.
	// +optional
	WithMGT bool `json:"withMGT,omitempty"`

	// managementNIDs are the NIDs of the node of the MGS, such as "10.0.0.1@tcp".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z.:]+@[a-z][a-z0-9]*$`
	ManagementNIDs []string `json:"managementNIDs,omitempty"`

	// serviceNodes are the two nodes that may serve the target, one at a time, for a target of two nodes. Clients find both by them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=2
	ServiceNodes []LustreServiceNode `json:"serviceNodes,omitempty"`
}

// LustreServiceNode is a node that may serve a target.
type LustreServiceNode struct {
	// nids are the NIDs of the node, such as "10.0.0.1@tcp".
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:items:Pattern=`^[0-9A-Za-z.:]+@[a-z][a-z0-9]*$`
	NIDs []string `json:"nids,omitempty"`
}

// LustreSpec holds the fields that only Lustre has.
// +kubebuilder:validation:XValidation:rule="(has(self.rdma) && self.rdma) == (has(oldSelf.rdma) && oldSelf.rdma)",message="spec.lustre.rdma can't be changed: the NIDs of the MGS are written on every disk"
// +kubebuilder:validation:XValidation:rule="self.basePort == oldSelf.basePort",message="spec.lustre.basePort can't be changed: what answers for the nodes listens there"
// +kubebuilder:validation:XValidation:rule="has(self.management) == has(oldSelf.management)",message="spec.lustre.management can't be added or removed: the MGT would be left behind"
type LustreSpec struct {
	// fsName is Lustre's own name of the filesystem, such as "scratch". It has up to 8 small letters, digits and underscores, of which the
	// first is a letter. Clients mount <NIDs of the MGS>:/<fsName>. Two filesystems that share a node need different ones. It can't be
	// changed, because it is written on every disk.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9_]*$`
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.lustre.fsName can't be changed: it is written on every disk"
	FSName string `json:"fsName,omitempty"`

	// basePort is the first of 64 TCP ports on the host network of the nodes with targets. At these ports the operator queries each node:
	// basePort for the MGS, basePort+1 and up for the MDTs of a node, basePort+32 and up for the storage pools. Lustre itself uses 988. Two
	// filesystems that share a node need ranges that don't overlap. Defaults to 9700. It can't be changed.
	// +optional
	// +kubebuilder:default=9700
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65472
	BasePort int32 `json:"basePort,omitempty"`

	// rdma makes the filesystem's network of LNet o2ib, for interfaces with RDMA, instead of tcp. Defaults to false. It can't be changed,
	// because NIDs are written on every disk.
	// +optional
	RDMA bool `json:"rdma,omitempty"`

	// management gives the management server (MGS) a disk of its own. Without it, the disk of the first MDT (MDT0000) is the MGT as well.
	// An MGS of its own is stopped after all others; one that stops before an OST keeps that OST's unmount waiting for 10 to 20 seconds.
	// It can't be added or removed later.
	// +optional
	Management *LustreManagement `json:"management,omitempty"`

	// directories sets how new directories are spread over the MDTs. Defaults to {}.
	// +optional
	// +kubebuilder:default={}
	Directories LustreDirectories `json:"directories,omitzero"`

	// parameters are parameters of Lustre that are set for the whole filesystem and for good (lctl set_param -P), such as
	// {"osc.*.max_dirty_mb": "512"}. A parameter that the operator sets itself, or that throws data or clients away, is refused; the
	// condition Stalled names it.
	// +optional
	Parameters LustreParameters `json:"parameters,omitempty"`

	// moduleOptions sets how the options of the kernel's modules are applied that carry out cpuPinning. With Compare, a person sets them on
	// the nodes: the FileSystemNode of each node has the lines, and the condition Pinned lists the nodes whose modules are loaded with others.
	// With Write, the agent of each node writes them to /etc/modprobe.d/parallelfs-<namespace>.<name>.conf, and removes that file when no CPUs
	// are requested any longer. Modules read their options when they are loaded: nothing changes on a node until it is restarted, or until
	// everything of Lustre's is unmounted there and its modules are unloaded. Defaults to Compare.
	// +optional
	ModuleOptions ModuleOptionsPolicy `json:"moduleOptions,omitempty"`

	// projects are directories with a limit each, by Lustre's quotas for projects. With the first one, the limits of users, groups and
	// projects are in force on all MDTs and OSTs. If an entry is removed, its limit stays as it was; without space and files, there is none.
	// +optional
	// +listType=map
	// +listMapKey=directory
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(q, q.id == p.id))",message="two projects have one id: their files would count together"
	Projects []LustreProject `json:"projects,omitempty"`
}

// ModuleOptionsPolicy sets how options of the kernel's modules are applied.
// +kubebuilder:validation:Enum=Compare;Write
type ModuleOptionsPolicy string

// The ways to apply options of modules.
const (
	// ModuleOptionsCompare compares them with those that modules are loaded with.
	ModuleOptionsCompare ModuleOptionsPolicy = "Compare"
	// ModuleOptionsWrite writes them to a file of the node as well.
	ModuleOptionsWrite ModuleOptionsPolicy = "Write"
)

// LustreProject is a directory whose files count together.
type LustreProject struct {
	// id is the project's number. Nothing else may use it.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ID int32 `json:"id,omitempty"`

	// directory is a path below the root of the filesystem, such as ssd/climate. It is made if it does not exist, with the mode 0755 and the
	// owner root. Files that are made in it later belong to the project; older ones do not (lfs project -p ID -s -r DIRECTORY).
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$`
	Directory string `json:"directory,omitempty"`

	// space is how much the files of the project may take on the OSTs, such as 10Ti: a multiple of 1Mi. Without it, there is no limit.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isInteger() && quantity(self).asInteger() > 0 && quantity(self).asInteger() % 1048576 == 0",message="the space of a project is a multiple of 1Mi, such as 512Gi or 10Ti"
	Space resource.Quantity `json:"space,omitzero"`

	// files is how many files and directories the project may have. Lustre hands it out to the MDTs in portions of at least 1024. Without it,
	// there is no limit.
	// +optional
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=1000000000000000
	Files int64 `json:"files,omitempty"`
}

// LustreManagement describes the management server (MGS).
type LustreManagement struct {
	// nodeSelector selects the node of the MGS. It must match exactly one node when the filesystem is made. The MGS then stays on that node,
	// because its NIDs are written on every disk. Without it, it is the first node of spec.nodes by name, or the
	// one whose disk has it already.
	// +optional
	NodeSelector NodeSelector `json:"nodeSelector,omitempty"`

	// targets sets which disk is the MGT. It can't be changed, because the MGT has the configuration of all targets of the filesystem.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec.lustre.management.targets can't be changed: the MGT would be left behind"
	// +kubebuilder:validation:XValidation:rule="!has(self.format) || !has(self.format.fsType) || self.format.fsType == 'ldiskfs'",message="the MGT is a disk with format.fsType: ldiskfs, or without fsType"
	// +kubebuilder:validation:XValidation:rule="!has(self.format) || !has(self.format.mountOptions) && !has(self.format.logDevices)",message="Lustre mounts its targets with the options that mkfs.lustre wrote on them, and they have no log devices: remove mountOptions and logDevices from format"
	// +kubebuilder:validation:XValidation:rule="has(self.devices) ? size(self.devices) == 1 : has(self.select) && (!has(self.select.countPerNode) || self.select.countPerNode == 1)",message="the MGT is one disk; give exactly one of spec.lustre.management.targets.devices, or a select with countPerNode 1 or none"
	Targets TargetsSpec `json:"targets,omitzero"`
}

// LustreDirectories sets how new directories are spread over the MDTs, by the default layout of the root directory (lfs setdirstripe -D).
type LustreDirectories struct {
	// mdtsPerDirectory is the number of MDTs that the entries of a new directory are spread over. More than 1 is for directories with very
	// many entries, and makes all others slower. Defaults to 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	MDTsPerDirectory int32 `json:"mdtsPerDirectory,omitempty"`

	// roundRobinDepth is how many levels of new directories, from the root, go to one MDT after the other, while all have about as much
	// space. Below that, a new directory stays on the MDT of its parent, unless others have much more space. Defaults to 3.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=250
	RoundRobinDepth *int32 `json:"roundRobinDepth,omitempty"`
}

// LustrePool holds the fields that only a storage pool of a Lustre has.
type LustrePool struct {
	// layout sets how new files in the pool's directory are laid out. It is a list of components, each for the part of a file from the end of
	// the one before it (a progressive file layout). A small file is then on one OST, or on its MDT, and a large one on many. Without it, each
	// file is on one OST.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.map(c, has(c.end)).indexOf(false) == size(self) - 1",message="every component of a layout needs an end, except the last, which goes to the end of the file"
	// +kubebuilder:validation:XValidation:rule="[1, 2, 3, 4, 5, 6].all(i, i >= size(self) || !has(self[i].end) || !has(self[i - 1].end) || quantity(self[i - 1].end).isLessThan(quantity(self[i].end)))",message="each component of a layout ends behind the one before it"
	// +kubebuilder:validation:XValidation:rule="self.map(c, has(c.place) && c.place == 'MDT').lastIndexOf(true) <= 0",message="only the first component of a layout can lie on the MDT"
	Layout []LustreComponent `json:"layout,omitempty"`

	// pairs are pairs of nodes that reach the same disks. Each disk that the pool names on one node of a pair is an OST that both may serve,
	// one at a time. Its own node serves it, and the other one while that is drained. Both nodes must show the disk, with the same WWN, serial
	// number and size. A pair stays as long as there is an OST of it. The disks name both nodes.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.map(p, p.nodes[0]).all(n, self.exists_one(p, p.nodes[0] == n) && !self.exists(p, p.nodes[1] == n)) && self.map(p, p.nodes[1]).all(n, self.exists_one(p, p.nodes[1] == n))",message="a node is in one pair of a pool only"
	Pairs []LustrePair `json:"pairs,omitempty"`
}

// LustrePair is two nodes that reach the same disks.
type LustrePair struct {
	// nodes are the names of the two. Which one comes first means nothing.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=2
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self[0] != self[1]",message="a pair is two different nodes"
	Nodes []string `json:"nodes,omitempty"`
}

// LustrePlace is where a part of each file is.
// +kubebuilder:validation:Enum=OSTs;AllOSTs;MDT
type LustrePlace string

// The places of a part of a file.
const (
	// OnOSTs stripes it over as many OSTs of the pool as osts has.
	OnOSTs LustrePlace = "OSTs"
	// OnAllOSTs stripes it over all OSTs of the pool.
	OnAllOSTs LustrePlace = "AllOSTs"
	// OnMDT keeps it on the MDT of the file (Data on MDT).
	OnMDT LustrePlace = "MDT"
)

// LustreComponent is the layout of a part of each file.
// +kubebuilder:validation:XValidation:rule="!has(self.place) || self.place != 'MDT' || (!has(self.osts) && !has(self.stripeSize))",message="a component with place MDT has neither osts nor stripeSize"
// +kubebuilder:validation:XValidation:rule="!has(self.place) || self.place != 'MDT' || (has(self.end) && quantity(self.end).compareTo(quantity('1Mi')) <= 0)",message="a component with place MDT needs an end of at most 1Mi, which is what an MDT takes of a file (dom_stripesize)"
// +kubebuilder:validation:XValidation:rule="!has(self.osts) || !has(self.place) || self.place != 'AllOSTs'",message="a component with place AllOSTs has no osts"
type LustreComponent struct {
	// end is where the component ends: a multiple of 64Ki, such as 64Ki or 256Mi. The last component has none, and extends to the end of the
	// file.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isInteger() && quantity(self).asInteger() > 0 && quantity(self).asInteger() % 65536 == 0",message="the end of a component is a multiple of 64Ki, such as 64Ki or 256Mi"
	End resource.Quantity `json:"end,omitzero"`

	// place sets where the component is: OSTs, AllOSTs or MDT. OSTs stripes it over as many OSTs of the pool as osts, and AllOSTs over all of
	// them. MDT keeps it on the MDT of the file (Data on MDT), so that a small file needs no OST. Only the first component can be there, and
	// it uses space of the MDT. Without it, it is OSTs.
	// +optional
	Place LustrePlace `json:"place,omitempty"`

	// osts is the number of OSTs of the pool that the component is striped over. Without it, it is 1.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2000
	OSTs int32 `json:"osts,omitempty"`

	// stripeSize is the size of one stripe, the part of a file that is on one OST: a multiple of 64Ki, below 4Gi. Without it, Lustre's own
	// default holds.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isInteger() && quantity(self).asInteger() > 0 && quantity(self).asInteger() < 4294967296 && quantity(self).asInteger() % 65536 == 0",message="a stripe size of Lustre is a multiple of 64Ki below 4Gi, such as 1Mi or 4Mi"
	StripeSize resource.Quantity `json:"stripeSize,omitzero"`
}

// LustreParameters are parameters of Lustre, as lctl list_param prints their names, and their values. A star matches any device, and the
// last part of a name has none.
// +kubebuilder:validation:MaxProperties=64
// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^([a-z][a-z0-9_-]{0,31}([.][A-Za-z0-9_*-]{1,64}){0,3}[.][a-z0-9_]{1,64}|at_(early_margin|extra|history|max|min)|(bulk_|ldlm_|dump_on_)?timeout|dump_on_eviction|jobid_(name|var)|max_dirty_mb|ping_interval)$'))",message="a parameter's name is as lctl list_param prints it, such as osc.*.max_dirty_mb or jobid_var, with stars for devices only"
type LustreParameters map[string]LustreParameter

// LustreParameter is the value of a parameter.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=128
// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.,:+%=*{}&@/-]+( [A-Za-z0-9_.,:+%=*{}&@/-]+)*$`
type LustreParameter string

// LustreStatus holds the permanent facts of a Lustre other than its numbers.
type LustreStatus struct {
	// managementNode is the node of the MGS. It never changes.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ManagementNode string `json:"managementNode,omitempty"`

	// managementTarget is the StorageTarget with the MGT: that of MDT0000 where the MGT has no disk of its own. It only changes when a lost
	// MGT is made again on another disk, as a person has approved.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ManagementTarget string `json:"managementTarget,omitempty"`

	// managementNIDs are the NIDs of the MGS, such as "10.0.0.1@tcp". They are written on every disk, and never change.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	ManagementNIDs []string `json:"managementNIDs,omitempty"`

	// recovered is the last recovery of a lost MGT. It is written before an MGS is started on its disk.
	// +optional
	Recovered *ManagementRecovered `json:"recovered,omitempty"`
}

// ManagementRecovered is a recovery of a lost MGT that was carried out: its logs are those of a backup.
type ManagementRecovered struct {
	// planHash is the hash of the plan that a person has approved.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	PlanHash string `json:"planHash,omitempty"`

	// from is the backup that was used.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=320
	From string `json:"from,omitempty"`

	// dataTime is the time of that backup.
	// +optional
	DataTime *metav1.Time `json:"dataTime,omitempty"`

	// time is when the logs were on the disk.
	// +required
	Time metav1.Time `json:"time,omitzero"`

	// previousTarget is the StorageTarget that had the MGT before. It is no longer mounted.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PreviousTarget string `json:"previousTarget,omitempty"`

	// compared is when the records of the new MGT were compared with the backup. The MGS that serves it was asked for each of them.
	// +optional
	Compared *metav1.Time `json:"compared,omitempty"`

	// differs names the record that differs, or the reason why they could not be compared; empty when each record of the backup is in force.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Differs string `json:"differs,omitempty"`
}
