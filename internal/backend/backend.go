// Package backend is the seam between the operator and the parallel filesystems that it runs. A backend is one folder
// that implements Backend, all of it pure: what goes in are the user's intent and what was seen, what comes out are
// records, objects and a status. It touches neither a cluster nor a disk.
package backend

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Backend runs one type of filesystem. This is what every filesystem has; what only some have is a capability (Prober, Pinner, …), which a
// caller finds by a type assertion: it asks what a backend can do, never which one it is. Every method is a pure function of its arguments:
// no clock, no randomness, no I/O, and the same answer for the same question, byte for byte.
type Backend interface {
	// Type is the spec.type that this backend serves.
	Type() v1alpha1.FileSystemType

	// Versions are those of the filesystem's own software that the backend is tested with, oldest first.
	Versions() []string

	// Families are the families of addresses that the daemons of a filesystem can use, in the version that each of them runs; the preferred
	// one, which all versions have, comes first.
	Families(fs *v1alpha1.FileSystem) []corev1.IPFamily

	// Allocate decides what must outlive a change of labels: which node holds the metadata, which nodes and which slot belong to a pool, and
	// whatever else is given once and for ever, such as numbers (Numbers) and ports. It starts from what Input.FileSystem.Status and
	// Input.FileSystemNodes have recorded, and only adds to it. The caller writes it before anything that follows from it, the status first.
	// An *InvalidSpecError says what a person must change.
	Allocate(in Input) (Allocation, error)

	// DefaultFormat is how a new target of a role is made and mounted where the spec says nothing: as the filesystem's own guide says.
	DefaultFormat(role v1alpha1.Role) v1alpha1.FormatSpec

	// Nodes are the FileSystemNodes as they should be, by node: what is recorded in Input.FileSystemNodes, and what the servers of each node
	// are told. Package backend's FileSystemNodes makes them.
	Nodes(in Input) []v1alpha1.FileSystemNode

	// Members are the objects by which daemons run and clients mount where the recorded status says, with what these are told. They carry
	// names, labels and specs, no owner and no cluster state; one that only Keep names stays as it is, one that Absent names goes. An
	// *InvalidSpecError says what a person must change.
	Members(in Input) ([]client.Object, error)

	// Order lists the components (v1alpha1.LabelComponent) whose pods the operator restarts to apply a change, in this order, one pod at a
	// time; they are stopped in the reverse of it, after all others. A component that is not named is never restarted by the operator.
	Order() []string

	// Observe turns what was seen into the parts of the status that say how the filesystem is.
	Observe(in Input) Observation
}

// Allocation is what must be recorded.
type Allocation struct {
	// Status is that of the FileSystem, with what was used up. It shares nothing that anybody changes with the one that it was made from.
	Status v1alpha1.FileSystemStatus
	// Nodes are the FileSystemNodes whose records are added or change, by node, with what their servers are told as it was.
	Nodes []v1alpha1.FileSystemNode
	// More is true when so many numbers were promised that the rest has to wait until these are written; see MostPromises.
	More bool
	// Joins are the servers that this adds to what was recorded, such as "storage pool ssd is made", in an order that stays.
	Joins []string
	// TargetNodes are the nodes on which each role keeps data, for plan.Select.
	TargetNodes plan.TargetNodes
	// Waits is true when nothing is recorded yet, because the disks may say what was given before; only the disks are chosen then.
	Waits bool
	// Unread says why something new has to wait; empty when nothing has to.
	Unread string
}

// Keep stands among the Members for a Job that is there: it is neither changed nor removed.
func Keep(namespace, job string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job},
	}
}

// Absent stands among the Members for a Secret that must not be there any more. Other children that are not wanted are found by a list,
// which would need the right to read every Secret there is.
func Absent(namespace, secret string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret, DeletionTimestamp: &metav1.Time{}},
	}
}

// DefaultTellTime is how long it may take from a change, such as that a disk is proven, until the file of the node says it: a pass of the
// manager, and a write of the agent. A server that was started earlier than that after the change is taken not to know it; when it may be
// started anew, Input.Told says.
const DefaultTellTime = time.Minute

// TemplateHashAnnotation on a pod template holds a hash of everything whose change needs a restart of the pod.
const TemplateHashAnnotation = "parallelfs.dev/template-hash"

// RenderedHashAnnotation on a DaemonSet holds the hash that its template would have, where the template has kept the one of an earlier
// operator: they differ in what only that operator wrote otherwise.
const RenderedHashAnnotation = "parallelfs.dev/rendered-hash"

// MetadataMirroredAnnotation on a pod says that it was made after it was on record that the metadata is mirrored. It is no part of the
// template's hash: it tells pods that were made before from those that were made since, without a clock.
const MetadataMirroredAnnotation = "parallelfs.dev/metadata-mirrored"

// Input is all that a backend may look at.
type Input struct {
	FileSystem *v1alpha1.FileSystem
	// Others are the other FileSystems of the cluster, by namespace and name, and Claims what those of them use that have a Claimer, in the
	// same order: for conflicts of ports and directories.
	Others []v1alpha1.FileSystem
	Claims []Claims
	// Nodes are all nodes of the cluster, sorted by name.
	Nodes []Node
	// Pods are the pods of this filesystem, sorted by component, pool, node, slot and name.
	Pods []Pod
	// Refused are the daemons whose pods the API server refuses to make.
	Refused []Refused
	// Jobs are the Jobs of this filesystem, sorted by name.
	Jobs []Job
	// Targets are the StorageTargets of this filesystem that are not being deleted, sorted by node and name.
	Targets []v1alpha1.StorageTarget
	// Chosen is true when the disks were chosen, and nothing was to be done: Targets are all that there are to be.
	Chosen bool
	// Since is when this manager first saw the condition Ready of a StorageTarget as it is now, by uid and by the clock of State.Asked.
	Since map[types.UID]time.Time
	// FileSystemNodes are those of this filesystem, sorted by node, and OthersNodes those of Others, by the uid of the FileSystem.
	FileSystemNodes []v1alpha1.FileSystemNode
	OthersNodes     map[types.UID][]v1alpha1.FileSystemNode
	// Told are the nodes whose agents have written what Nodes says that the servers there are told: a server that starts knows it.
	Told map[string]bool
	// Pinnings are where the daemons are to run, by node and daemon (spec.Run.Daemon); plan.Pin made them.
	Pinnings map[string]map[string]spec.Pinning
	// Inventories are what the agents found, by node; a node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Images are the container images to use.
	Images Images
	// Password is the secret that only the operator's own clients of the filesystem know.
	Password string
	// CertificateFault says why the user's certificate can't be used, and is empty while it can (Certified).
	CertificateFault string
	// ProbeKey is the secret that the probe signs its answers with.
	ProbeKey string
	// State is what the filesystem said when it was asked for this Input, nil when it did not answer; StateError says why not. Everything else
	// in this Input was read before it was asked.
	State      *State
	StateError string
	// Unanswered are the nodes of a NodeProber that did not answer, each with why, in a sentence. Nothing is known of what they serve.
	Unanswered map[string]string

	// index finds single things in the rest, nil for an Input that has none; see Indexed.
	index *index
}

// Node is what a backend may know of a node.
type Node struct {
	Name   string
	Labels map[string]string
	// InternalIPs are all that the node has, in the order of its kubelet.
	InternalIPs []string
	// IP is the InternalIP that the daemons of the filesystem use (AddressOf), empty while the node has none of a family that they can use.
	IP string
	// Ready is the node's condition Ready.
	Ready bool
	// Cordoned is true while no new pods come to the node (spec.unschedulable): somebody wants to take it away.
	Cordoned bool
	// OutOfService is true while the node has the taint by which people say that its machine is off (node.kubernetes.io/out-of-service).
	OutOfService bool
	// BootID tells one start of the node's kernel from another; empty while that is not known.
	BootID string
	// Taints are those that somebody has given the node, without those of Kubernetes itself.
	Taints []corev1.Taint
}

// Pod is what a backend may know of a daemon's pod.
type Pod struct {
	Name      types.NamespacedName
	Component string
	// StoragePool is empty for a pod that serves none.
	StoragePool string
	// Slot is the slot of a metadata server (v1alpha1.LabelSlot), empty for a pod that has none.
	Slot  string
	Node  string
	Ready bool
	// Outdated is true when the pod was made from an older template than its DaemonSet has now, in something that needs a restart.
	Outdated bool
	// Moved says that the node whose address the pod was told has another one now, as a sentence; empty where it has not, or nobody knows.
	Moved string
	// NodeImage is the node image that the pod was made with, empty where it has none.
	NodeImage string
	// Version is that of the filesystem's software that the pod was made with, empty where an earlier operator has made it.
	Version string
	// Terminating is true from the moment when the pod was deleted.
	Terminating bool
	// Started is when its containers were started last, by the clock of its node; zero while none runs. It is compared with other times of
	// that node only.
	Started time.Time
	// Seen is when this manager first saw that the pod is Ready, with the containers that run in it now, by the clock of State.Asked; zero
	// while it is not Ready. A manager that was just started has seen nothing before.
	Seen time.Time
	// MetadataMirrored is true when the pod was made after it was on record that the metadata is mirrored (MetadataMirroredAnnotation).
	MetadataMirrored bool
	// Message says why the pod is not ready, in the daemon's own words where it has any.
	Message string
	// Changed says what of the pod is not as the operator had asked for, because admission changed it.
	Changed []string
}

// Server is the name of the pod's server among Observation.Servers, such as "chunkserver-ssd.n1".
func (p *Pod) Server() string {
	switch {
	case p.StoragePool != "":
		return p.Component + "-" + p.StoragePool + "." + p.Node
	case p.Slot != "":
		return p.Component + "-" + p.Slot + "." + p.Node
	default:
		return p.Component + "." + p.Node
	}
}

// Refused are the pods of a daemon that the API server refuses, as Pod has them. A Problem says why (v1alpha1.ReasonPodsRefused).
type Refused struct {
	Component, StoragePool, Slot string
}

// Job is what a backend may know of a Job that it made.
type Job struct {
	Name      string
	Component string
	// Succeeded and Failed say how it ended; neither is true while it goes on.
	Succeeded, Failed bool
	// Ended is when it did.
	Ended time.Time
	// Message is the last line of a pod of it that failed.
	Message string
	// Outlasting names a container that still runs although the Job's own have ended, so that Kubernetes never ends the Job; empty for none.
	Outlasting string
}

// Images are the container images that the operator was started with.
type Images struct {
	// Node holds the node binary.
	Node string
	// Daemons holds the filesystems' own software, by "<type>-<version>", or, where there is one image for each role, by
	// "<type>-<role>-<version>", or by "<type>-<role>" for a repository whose tags are the versions; all of it in small letters.
	Daemons map[string]string
	// Benchmarks holds the tools, by name such as "iozone".
	Benchmarks map[string]string
	// PullPolicy of all of them, such as "IfNotPresent".
	PullPolicy string
}

// PoolRecord is what is recorded of a storage pool; see Input.Pool.
type PoolRecord struct {
	Name  string
	Slot  int32
	Nodes []string
	// Waits is true for one that gets its slot when all disks were read.
	Waits bool
}

// Observation is the observed part of a FileSystemStatus, and what is wrong.
type Observation struct {
	Management   *v1alpha1.ManagementStatus
	Servers      []ServerStatus
	StoragePools []v1alpha1.StoragePoolStatus
	Targets      []TargetStatus
	Clients      []Client
	Summary      v1alpha1.FileSystemSummary
	// MetadataInitialized is true when the filesystem itself proves that its metadata directory was initialized.
	MetadataInitialized bool
	// Problems are what is missing or wrong, worst first. None means that everything takes part.
	Problems []Problem
	// Serves is true when programs can read and write all of their data in spite of the Problems, as the filesystem itself says: every piece
	// of data has a copy that is online, every pool takes new files, and some client has mounted it where any should.
	Serves bool
	// Pending is true when Serves is false only because the filesystem has not said yet what it says by itself soon, such as how many copies
	// its data has after a server came or went. All that it has said lets programs go on.
	Pending bool
	// Unknown is true when Serves is false only because a part of the filesystem can't be asked, such as a node that does not answer. All that
	// is known lets programs go on.
	Unknown bool
	// Licensed is the condition Licensed, nil when the spec asks for nothing that needs a license: ReasonLicenseValid is true.
	Licensed *Problem
	// NearlyFullMetadata names metadata targets that soon take no new files (NearlyFullMetadata).
	NearlyFullMetadata []string
	// Pinned is the condition Pinned, nil when no role asks for CPUs: ReasonAsAsked, ReasonDrifted, or another reason while
	// it is not known where a daemon runs. It does not stand in the way of Ready.
	Pinned *Problem
	// Transport is how servers and clients can reach each other, nil where nothing says so. It does not stand in the way of Ready.
	Transport *Transport
	// Spread is the condition Spread, nil without spec.failureDomains: ReasonAsAsked is true, ReasonDataUnknown unknown, another reason false.
	// It does not stand in the way of Ready.
	Spread *Problem
	// Copies is the condition MetadataCopies, nil where no server is asked to keep a copy of the metadata: ReasonCopiesProven is true,
	// ReasonCopiesUnread unknown, another reason false, and then the filesystem is degraded. It does not stand in the way of Ready.
	Copies *Problem
	// Partners is a false condition PartnersProven, nil when it is absent. It does not stand in the way of Ready.
	Partners *Problem
	// Restarts are the pods that have to start anew because their disks have changed, in the order of Input.Pods.
	Restarts []Restart
	// Unconfirmed are servers that the filesystem lists as online, although it could be their predecessors that it means; each in words that
	// a person can read. No daemon that runs is restarted meanwhile.
	Unconfirmed []string
	// Sole says, by the name of the pod, why programs wait while it is restarted: nothing else holds what it holds. The text follows "because
	// ".
	Sole map[string]string
	// Together says, by the name of the pod, how many pods of its component and failure domain may be restarted together, itself included:
	// whatever pods of that domain these are, the filesystem's answer proves that all that they hold has another copy, on a server that stays.
	// A pod that is not named is restarted alone.
	Together map[string]int
	// Repeat are the names of Jobs whose effect the filesystem does not show. One that ended a while ago is deleted, so that the next
	// pass makes it again.
	Repeat []string
}

// ServerStatus is one server, as a backend has seen it.
type ServerStatus struct {
	// Name of the server in its filesystem: its member and its node, such as "chunkserver-ssd.n1".
	Name string
	Role v1alpha1.Role
	Node string
	// StoragePool of a storage server.
	StoragePool string
	// Slot is the number of a metadata server on its node.
	Slot int32
	// ID is the filesystem's own number of the server; 0 where it gives none.
	ID int32
	// Target of a management service or metadata server: the StorageTarget, or the directory of the node.
	Target string
	// Address is the host and port of the server.
	Address string
	// Version is what the server reports of itself.
	Version string
	// Online is true when the filesystem itself says that this server takes part.
	Online bool
	// Placement is where the server runs, as the kernel of its node says; nil on a node without an agent.
	Placement *v1alpha1.Placement
	// Message says what is wrong with the server, and is empty when nothing is.
	Message string
}

// TargetStatus is one storage target, as a backend has seen it.
type TargetStatus struct {
	Node string
	// StoragePool that the target belongs to.
	StoragePool string
	// Directory of the target on its node.
	Directory string
	// ID is the filesystem's own number of the target; 0 where it gives none.
	ID int32
	// StorageTarget is the one whose disk that directory lies on; empty when it is a directory of the node itself.
	StorageTarget string
	// Removing is true when the filesystem was told to move the data of this target elsewhere.
	Removing bool
	// Removable is true when the filesystem says that the target may be taken out.
	Removable bool
	// Online is true when the filesystem itself says that the target serves data.
	Online bool
	// CapacityBytes is the size of the target, and UsedBytes the used space of it.
	CapacityBytes, UsedBytes int64
	// Inodes is how many files its disk can hold, and UsedInodes how many it holds; 0 where the filesystem does not say.
	Inodes, UsedInodes int64
	// Message says what is wrong with the target, and is empty when nothing is.
	Message string
}

// Name tells a target from all others of its filesystem: its node and directory. It is put together where a sentence needs it, of 24,000
// for few.
func (t *TargetStatus) Name() string { return t.Node + ":" + t.Directory }

// Client is one node on which the filesystem is, or should be, mounted.
type Client struct {
	Node string
	// Mounted is true when the node's mount answers and the filesystem lists the session.
	Mounted bool
	// Message says what is wrong with the mount, and is empty when nothing is.
	Message string
	// Kernel is what the kernel of the node said of it when the agent looked last, nil where nothing is known of that.
	Kernel *v1alpha1.HostClient
}

// Transport counts the servers and clients of which the filesystem says how they can be reached, and those of them that offer RDMA.
type Transport struct {
	Servers, ServersRDMA int
	Clients, ClientsRDMA int
	// Problem is the condition TransportAsSpecified: ReasonAsAsked is true, ReasonTransportUnknown unknown, another reason false.
	Problem Problem
}

// Restart is a pod that has to start anew to take up a disk, or to let go of one.
type Restart struct {
	// Pod that runs without the change.
	Pod types.NamespacedName
	// Why is a sentence, such as "the disk scratch-ssd-1a2b3c4d is proven and not used yet".
	Why string
	// Safe is true when the pod may be restarted although the filesystem has problems: they are only such that this restart
	// mends, or that it can't make worse. A filesystem without one of its disks is not Ready, and waiting until it is would be for ever.
	Safe bool
}

// Problem is a reason of a condition, mostly of Ready or Degraded, and a sentence that a person can act on.
type Problem struct {
	Reason, Message string
}

// Mount is how a pod on a client node finds the filesystem.
type Mount struct {
	// Path on the node, empty when the filesystem has no clients.
	Path string
	// FSType and Source are what /proc/self/mountinfo shows, as in spec.Mount.
	FSType, Source string
}

// State is what a filesystem says of itself, in one form for all backends. It is what the probe sends as JSON, in an Answer.
type State struct {
	// Asked is when the manager sent the question, by the manager's own clock, which only goes on: the answer says nothing of what was done
	// later. The filesystem was asked after that.
	Asked time.Time `json:"-"`
	// Version of the metadata server.
	Version string `json:"version"`
	// Servers are the daemons that the filesystem knows, whether they are there or not.
	Servers []Server `json:"servers,omitempty"`
	// Targets are the storage targets of those servers.
	Targets []Target `json:"targets,omitempty"`
	// Sessions are the mounts; nil from a filesystem that does not list them.
	Sessions []Session `json:"sessions,omitempty"`
	// StorageClasses are the names of the placement rules with what they say, such as "ssd": "2A".
	StorageClasses map[string]string `json:"storageClasses,omitempty"`
	// ClassesInUse are those of them that files have, sorted.
	ClassesInUse []string `json:"classesInUse,omitempty"`
	// Data counts the pieces of data by how safe they are.
	Data DataHealth `json:"data"`
	// Pools are the storage pools, of a filesystem that has them as such.
	Pools []Pool `json:"pools,omitempty"`
	// Mirrors are the pairs that hold the same data.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	// MetadataMirrored is true when the metadata is mirrored. While RootID is 0 that is not known, and it is false.
	MetadataMirrored bool `json:"metadataMirrored,omitempty"`
	// RootID is the number of the metadata server that owns the root directory, or of its mirror when the metadata is
	// mirrored; 0 where it is not known.
	RootID int32 `json:"rootID,omitempty"`
	// License is nil for a filesystem that asks for none.
	License *License `json:"license,omitempty"`
	// Links are the ways from metadata targets to storage targets on which nothing new goes, or nothing at all.
	Links []Link `json:"links,omitempty"`
	// Modules are what the kernel of the one node was loaded with that answers for itself, as far as it says; nil where that is not known.
	Modules *LoadedModules `json:"modules,omitempty"`
}

// LoadedModules are what modules of a node's kernel were loaded with.
type LoadedModules struct {
	// Partitions have the CPUs of each of the partitions that the kernel's threads run in.
	Partitions [][]int `json:"partitions,omitempty"`
	// Parameters are those of modules that say them, by module and name, such as "mdt.mds_num_cpts".
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Link is the way from a metadata target to a storage target, by their numbers.
type Link struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// Closed is true when nothing goes that way. Else only nothing new does.
	Closed bool `json:"closed,omitempty"`
}

// Pool is one storage pool as the filesystem sees it.
type Pool struct {
	ID   int32  `json:"id"`
	Name string `json:"name"`
	// Targets and Mirrors are the numbers of its targets and mirrors, sorted.
	Targets []int32 `json:"targets,omitempty"`
	Mirrors []int32 `json:"mirrors,omitempty"`
}

// Mirror is two that hold the same data: storage targets, or metadata servers.
type Mirror struct {
	Role      v1alpha1.Role `json:"role"`
	ID        int32         `json:"id"`
	Primary   int32         `json:"primary"`
	Secondary int32         `json:"secondary"`
}

// License is what the filesystem says of its license.
type License struct {
	// Valid is true when it has one that is valid.
	Valid bool `json:"valid"`
	// Features are the licensed ones, in the filesystem's own words, sorted.
	Features []string `json:"features,omitempty"`
	// Message is what the filesystem says of it.
	Message string `json:"message,omitempty"`
}

// Server is one daemon as the filesystem sees it.
type Server struct {
	Role v1alpha1.Role `json:"role"`
	// ID is the filesystem's own number of it, unique in its role, and Name its own name; empty where it has none.
	ID   int32  `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	IP   string `json:"ip"`
	Port int32  `json:"port"`
	// Online is true when it is connected.
	Online  bool   `json:"online"`
	Version string `json:"version,omitempty"`
	// Transport is TransportRDMA when it offers RDMA, and TransportTCP when it offers TCP only; empty where the filesystem does not say.
	Transport string `json:"transport,omitempty"`
	// Labels are the filesystem's own, such as "A".
	Labels []string `json:"labels,omitempty"`
	// Maintained is true while the filesystem was told that the server may be away for a while.
	Maintained bool `json:"maintained,omitempty"`
	// UsedBytes and CapacityBytes of all its targets.
	UsedBytes     int64 `json:"usedBytes"`
	CapacityBytes int64 `json:"capacityBytes"`
	// Modules are those of its node.
	Modules *LoadedModules `json:"modules,omitempty"`
}

// Target is one storage target as the filesystem sees it.
type Target struct {
	// Role is Storage where it is empty.
	Role v1alpha1.Role `json:"role,omitempty"`
	// ID, ServerID and PoolID are the filesystem's own numbers of the target, its server and its pool; 0 where it has none. Such a
	// target has neither address nor path.
	ID       int32 `json:"id,omitempty"`
	ServerID int32 `json:"serverID,omitempty"`
	PoolID   int32 `json:"poolID,omitempty"`
	// Consistency and CapacityPool are in the filesystem's own words, such as "Good" and "Emergency".
	Consistency  string `json:"consistency,omitempty"`
	CapacityPool string `json:"capacityPool,omitempty"`
	IP           string `json:"ip"`
	Port         int32  `json:"port"`
	Path         string `json:"path"`
	// Online is true when it takes part; Status is the filesystem's own word for its state.
	Online        bool   `json:"online"`
	Status        string `json:"status"`
	UsedBytes     int64  `json:"usedBytes"`
	CapacityBytes int64  `json:"capacityBytes"`
	// Inodes and UsedInodes are those of its disk; 0 where the filesystem does not say.
	Inodes     int64 `json:"inodes,omitempty"`
	UsedInodes int64 `json:"usedInodes,omitempty"`
	// Contacted is true when its server itself answered the probe's question: it is no entry of a server that has stopped since.
	Contacted bool `json:"contacted,omitempty"`
	// Chunks counts the pieces of data on it.
	Chunks int64 `json:"chunks"`
	// Removing is true when it is marked for removal, Removable when the filesystem says that nothing on it is needed.
	Removing  bool `json:"removing,omitempty"`
	Removable bool `json:"removable,omitempty"`
}

// The transports of a Server and a Session.
const (
	TransportRDMA = "RDMA"
	TransportTCP  = "TCP"
)

// Session is one mount as the filesystem sees it.
type Session struct {
	IP   string `json:"ip"`
	Path string `json:"path"`
	// Connected is false for a session that the filesystem only remembers.
	Connected bool `json:"connected"`
	// Admin is true when the session may change the filesystem's own settings.
	Admin bool `json:"admin"`
	// Transport is that of the mount, as of a Server.
	Transport string `json:"transport,omitempty"`
	Version   string `json:"version,omitempty"`
}

// DataHealth counts pieces of data (chunks) by how safe they are.
type DataHealth struct {
	// Known is false while the filesystem has not counted yet, as after a start; the counts then mean nothing.
	Known bool `json:"known"`
	// Missing have no copy left; Endangered have one copy left and should have more; Undergoal have fewer than they should.
	Missing    int64 `json:"missing"`
	Endangered int64 `json:"endangered"`
	Undergoal  int64 `json:"undergoal"`
	Stable     int64 `json:"stable"`
	// Fewest is the number of copies of the piece of data that has the fewest, 0 while that is not known, or while there is no data.
	Fewest int64 `json:"fewest,omitempty"`
}

// Whole is true when the filesystem has counted, and every piece of data has all its copies.
func (d DataHealth) Whole() bool {
	return d.Known && d.Missing == 0 && d.Endangered == 0 && d.Undergoal == 0
}

// InvalidSpecError says that nothing goes on until a person changes something.
type InvalidSpecError struct {
	// Reason is one of the reasons of the condition Stalled.
	Reason string
	// Message names the field, what is wrong with it and what to do.
	Message string
}

// Error returns the message.
func (e *InvalidSpecError) Error() string { return e.Message }

// Invalid makes an InvalidSpecError.
func Invalid(reason, format string, args ...any) *InvalidSpecError {
	return &InvalidSpecError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
