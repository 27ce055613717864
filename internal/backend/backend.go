// Package backend is the interface between the operator and the parallel filesystems that it runs. A backend is one folder that implements
// Backend with pure functions. Their input is the user's spec and the observed state; their output is records, objects and a status. They
// touch neither a cluster nor a disk.
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

// Backend runs one type of filesystem. It has the methods that every filesystem needs. A feature that only some filesystems have is a
// capability (Prober, Pinner, …), which a caller finds by a type assertion, so that no caller depends on the type of filesystem. Every
// method is a pure function of its arguments: no clock, no randomness, no I/O, and byte-identical results for equal arguments.
type Backend interface {
	// Type is the spec.type that this backend serves.
	Type() v1alpha1.FileSystemType

	// Versions lists the versions of the filesystem's own software that the backend is tested with, oldest first.
	Versions() []string

	// Families lists the address families that the daemons of a filesystem can use in their current versions. The preferred family, which all
	// versions support, comes first.
	Families(fs *v1alpha1.FileSystem) []corev1.IPFamily

	// Allocate decides everything that must survive a change of labels. That is the node of the metadata, the nodes and the slot of each pool,
	// and other permanent assignments, such as numbers (Numbers) and ports. It starts from the records in Input.FileSystem.Status and
	// Input.FileSystemNodes, and only adds to them. The caller writes the result, the status first, before anything that depends on it. An
	// *InvalidSpecError says what a person must change.
	Allocate(in Input) (Allocation, error)

	// DefaultFormat returns how a new target of a role is formatted and mounted where the spec leaves it out, according to the filesystem's
	// own guide.
	DefaultFormat(role v1alpha1.Role) v1alpha1.FormatSpec

	// Nodes returns the desired FileSystemNodes, by node: the records of Input.FileSystemNodes, and the configuration of the servers on each
	// node. Package backend's FileSystemNodes builds them.
	Nodes(in Input) []v1alpha1.FileSystemNode

	// Members returns the objects that run daemons and mount clients according to the recorded status, with their configuration. The objects
	// have names, labels and specs, no owner and no cluster state. Keep marks an object to be left as it is, Absent one to be removed. An
	// *InvalidSpecError says what a person must change.
	Members(in Input) ([]client.Object, error)

	// Order lists the components (v1alpha1.LabelComponent) whose pods the operator restarts to apply a change, in this order, one pod at a
	// time. They are stopped in the reverse order, after all others. The operator never restarts a component that is not listed.
	Order() []string

	// Observe turns the observed state into the parts of the status that describe the health of the filesystem.
	Observe(in Input) Observation
}

// Allocation is the result of Allocate, which must be recorded.
type Allocation struct {
	// Status is the new status of the FileSystem, including numbers that are used up. It shares no memory that changes with the status it was
	// made from.
	Status v1alpha1.FileSystemStatus
	// Nodes holds the FileSystemNodes whose records are added or change, by node, with the previous configuration of their servers.
	Nodes []v1alpha1.FileSystemNode
	// More is true if so many numbers were promised that the rest has to wait until these are written; see MostPromises.
	More bool
	// Joins names the servers that this adds to the records, such as "storage pool ssd is made", in a stable order.
	Joins []string
	// TargetNodes holds the nodes on which each role keeps data, for plan.Select.
	TargetNodes plan.TargetNodes
	// Waits is true while nothing is recorded because the disks may hold earlier records. Only the disks are chosen then.
	Waits bool
	// Unread is why something new has to wait for a disk to be read; empty if nothing has to.
	Unread string
}

// Keep returns a placeholder among the Members for an existing Job, which is neither changed nor removed.
func Keep(namespace, job string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job},
	}
}

// Absent returns a placeholder among the Members for a Secret that must be removed. Other children that are not desired are found by a
// list, and a list of Secrets would need the right to read every Secret.
func Absent(namespace, secret string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret, DeletionTimestamp: &metav1.Time{}},
	}
}

// DefaultTellTime is the longest time from a change, such as a proven disk, until the node file contains it: one pass of the manager and
// one write of the agent. A server that started less than this after the change is assumed to have started without it. Input.Configured
// shows when it may be restarted.
const DefaultTellTime = time.Minute

// TemplateHashAnnotation on a pod template holds a hash of everything whose change needs a restart of the pod.
const TemplateHashAnnotation = "parallelfs.dev/template-hash"

// RenderedHashAnnotation on a DaemonSet holds the hash of the current template, if the template itself has kept the hash of an earlier
// operator. The two templates differ only in how the earlier operator wrote them.
const RenderedHashAnnotation = "parallelfs.dev/rendered-hash"

// MetadataMirroredAnnotation on a pod shows that the pod was made after the mirroring of the metadata was recorded. It is not part of the
// template's hash. It separates earlier pods from later ones without a clock.
const MetadataMirroredAnnotation = "parallelfs.dev/metadata-mirrored"

// Input is everything that a backend may read.
type Input struct {
	FileSystem *v1alpha1.FileSystem
	// Others holds the other FileSystems of the cluster, by namespace and name. Claims holds what those of them use whose backend is a
	// Claimer, in the same order, for conflicts of ports and directories.
	Others []v1alpha1.FileSystem
	Claims []Claims
	// Nodes holds all nodes of the cluster, sorted by name.
	Nodes []Node
	// Pods holds the pods of this filesystem, sorted by component, pool, node, slot and name.
	Pods []Pod
	// Refused holds the daemons whose pods the API server refuses to create.
	Refused []Refused
	// Jobs holds the Jobs of this filesystem, sorted by name.
	Jobs []Job
	// Targets holds the StorageTargets of this filesystem that are not being deleted, sorted by node and name.
	Targets []v1alpha1.StorageTarget
	// Chosen is true if the choice of disks is complete and needed no change: Targets holds all desired targets.
	Chosen bool
	// Since is when this manager first saw the current condition Ready of a StorageTarget, by uid, on the clock of State.Asked.
	Since map[types.UID]time.Time
	// FileSystemNodes holds those of this filesystem, sorted by node, and OthersNodes those of Others, by the uid of the FileSystem.
	FileSystemNodes []v1alpha1.FileSystemNode
	OthersNodes     map[types.UID][]v1alpha1.FileSystemNode
	// Configured holds the nodes whose agents have written the configuration that Nodes returns, so that a server that starts there reads it.
	Configured map[string]bool
	// Pinnings holds the CPUs of the daemons, by node and daemon (spec.Run.Daemon), from plan.Pin.
	Pinnings map[string]map[string]spec.Pinning
	// Inventories holds what the agents found, by node. A node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Unconfirmed holds the nodes whose agent does not confirm its reports now, each with the reason as a sentence. An inventory, or a report
	// about a disk, of such a node may be outdated: it proves no protection.
	Unconfirmed map[string]string
	// Images holds the container images to use.
	Images Images
	// Password is the secret of the operator's own clients of the filesystem.
	Password string
	// CertificateFault is the reason why the user's certificate can't be used, and is empty while it can (Certified).
	CertificateFault string
	// ProbeKey is the key with which the probe signs its answers.
	ProbeKey string
	// State is the filesystem's answer for this Input, nil if it did not answer; StateError is then the reason. Everything else in this Input
	// was read before the question was sent.
	State      *State
	StateError string
	// Unanswered holds the nodes of a NodeProber that did not answer, each with the reason as a sentence. The state of what they serve is
	// unknown.
	Unanswered map[string]string

	// index finds single items of the lists in this Input; nil for an Input without one. See Indexed.
	index *index
}

// Node is the part of a node that a backend may use.
type Node struct {
	Name   string
	Labels map[string]string
	// InternalIPs lists all internal addresses of the node, in the order of its kubelet.
	InternalIPs []string
	// IP is the InternalIP that the daemons of the filesystem use (AddressOf), empty while the node has none of a supported family.
	IP string
	// Ready is the node's condition Ready.
	Ready bool
	// Cordoned is true while the node accepts no new pods (spec.unschedulable), because a person wants to take it away.
	Cordoned bool
	// OutOfService is true while the node has the taint that confirms that its machine is off (node.kubernetes.io/out-of-service).
	OutOfService bool
	// BootID identifies one start of the node's kernel; empty while it is unknown.
	BootID string
	// Taints holds the taints of the node, without those that Kubernetes itself sets.
	Taints []corev1.Taint
}

// Pod is the part of a daemon's pod that a backend may use.
type Pod struct {
	Name      types.NamespacedName
	Component string
	// StoragePool is the pool that the pod serves; empty for none.
	StoragePool string
	// Slot is the slot of a metadata server (v1alpha1.LabelSlot), empty for a pod that has none.
	Slot  string
	Node  string
	Ready bool
	// Outdated is true if the pod was made from an older template than the current one of its DaemonSet, and the difference needs a restart.
	Outdated bool
	// Moved is a sentence, set if the node whose address the pod was configured with has another address now; empty if the address is the same
	// or unknown.
	Moved string
	// Certificate is the SHA-256 of the certificate that the pod's server started with, empty for none (CertificateAnnotation).
	Certificate string
	// Recertified is true if its DaemonSet has another one now.
	Recertified bool
	// NodeImage is the node image of the pod, empty if it has none.
	NodeImage string
	// Version is the version of the filesystem's software in the pod, empty if an earlier operator made the pod.
	Version string
	// Terminating is true from the moment the pod was deleted.
	Terminating bool
	// Started is when its containers last started, by the clock of its node; zero while none runs. It is compared only with other times of
	// that node.
	Started time.Time
	// Seen is when this manager first saw the pod Ready with its current containers, by the clock of State.Asked; zero while it is not Ready.
	// A manager that has just started has no earlier times.
	Seen time.Time
	// MetadataMirrored is true if the pod was made after the mirroring of the metadata was recorded (MetadataMirroredAnnotation).
	MetadataMirrored bool
	// Message is why the pod is not ready, in the daemon's own words if there are any.
	Message string
	// Changed lists the fields of the pod that admission changed from what the operator had requested.
	Changed []string
}

// Server returns the name of the pod's server among Observation.Servers, such as "chunkserver-ssd.n1".
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

// Refused describes the pods of a daemon that the API server refuses, with the same fields as Pod. A Problem holds the reason
// (v1alpha1.ReasonPodsRefused).
type Refused struct {
	Component, StoragePool, Slot string
}

// Job is the part of a Job that its backend may use.
type Job struct {
	Name      string
	Component string
	// Succeeded and Failed show how the Job ended; both are false while it runs.
	Succeeded, Failed bool
	// Ended is when the Job ended.
	Ended time.Time
	// Message is the last line that a failed pod of the Job printed.
	Message string
	// Outlasting names a container that still runs although the Job's own containers have ended, so that Kubernetes never ends the Job; empty
	// for none.
	Outlasting string
}

// Images holds the container images that the operator was started with.
type Images struct {
	// Node is the image with the node binary.
	Node string
	// Daemons holds the images of the filesystems' own software, with lower-case keys. A key is "<type>-<version>"; with one image for each
	// role, "<type>-<role>-<version>"; or "<type>-<role>" for a repository whose tags are the versions.
	Daemons map[string]string
	// Benchmarks holds the images of the tools, by name, such as "iozone".
	Benchmarks map[string]string
	// PullPolicy of all of them, such as "IfNotPresent".
	PullPolicy string
	// Assumed stands in for the images of a cluster that can't be asked: each daemon has the image that is called as it is.
	Assumed bool
}

// Daemon returns the image of a name.
func (i Images) Daemon(name string) (string, bool) {
	if image, ok := i.Daemons[name]; ok || !i.Assumed {
		return image, ok
	}
	return name, true
}

// PoolRecord is the record of a storage pool; see Input.Pool.
type PoolRecord struct {
	Name  string
	Slot  int32
	Nodes []string
	// Waits is true for a pool that gets its slot after all disks were read.
	Waits bool
}

// Observation is the observed part of a FileSystemStatus, with everything that is wrong.
type Observation struct {
	Management   *v1alpha1.ManagementStatus
	Servers      []ServerStatus
	StoragePools []v1alpha1.StoragePoolStatus
	Targets      []TargetStatus
	Clients      []Client
	Summary      v1alpha1.FileSystemSummary
	// MetadataInitialized is true if the filesystem itself proves that its metadata directory was initialized.
	MetadataInitialized bool
	// Problems lists what is missing or wrong, worst first. It is empty if everything is online.
	Problems []Problem
	// Serves is true if programs can read and write all of their data in spite of the Problems, according to the filesystem itself. Every
	// piece of data has a copy online, every pool accepts new files, and some client has mounted the filesystem if any should.
	Serves bool
	// Pending is true if Serves is false only because the filesystem has not reported a value that it reports soon, such as the number of
	// copies after a server came or went. Everything that it has reported lets programs continue.
	Pending bool
	// Unknown is true if Serves is false only because a part of the filesystem can't be queried, such as a node that does not answer.
	// Everything that is known lets programs continue.
	Unknown bool
	// Licensed is the condition Licensed, nil if the spec uses nothing that needs a license. The condition is true with ReasonLicenseValid.
	Licensed *Problem
	// FullMetadata and NearlyFullMetadata name metadata targets that accept no new files, or soon will not (FullMetadata).
	FullMetadata, NearlyFullMetadata []string
	// Pinned is the condition Pinned, nil if no role asks for CPUs: ReasonAsAsked, ReasonDrifted, or another reason while the placement of a
	// daemon is unknown. It does not affect Ready.
	Pinned *Problem
	// Transport describes how servers and clients can reach each other, nil if nothing reports it. It does not affect Ready.
	Transport *Transport
	// Spread is the condition Spread, nil without spec.failureDomains. It is true with ReasonAsAsked, unknown with ReasonDataUnknown, and
	// false with any other reason. It does not affect Ready.
	Spread *Problem
	// Copies is the condition MetadataCopies, nil if no server should keep a copy of the metadata. It is true with ReasonCopiesProven, unknown
	// with ReasonCopiesUnread, and false with any other reason, in which case the filesystem is degraded. It does not affect Ready.
	Copies *Problem
	// Partners is a false condition PartnersProven, nil when it is absent. It does not stand in the way of Ready.
	Partners *Problem
	// Restarts holds the pods that must restart because their disks have changed, in the order of Input.Pods.
	Restarts []Restart
	// Unconfirmed lists servers that the filesystem shows as online, although the entry may be that of their predecessors, each in words for a
	// person. No running daemon is restarted meanwhile.
	Unconfirmed []string
	// Sole holds, by the name of the pod, why programs wait while it restarts: no other server holds the same data. The text follows "because
	// ".
	Sole map[string]string
	// Together holds, by the name of the pod, how many pods of its component and failure domain may restart at once, itself included. For any
	// such set of pods, the filesystem's answer proves that all their data has another copy on a server that stays. A pod without an entry
	// restarts alone.
	Together map[string]int
	// Repeat names Jobs whose effect the filesystem does not show. A Job that ended a while ago is deleted, so that the next pass makes it
	// again.
	Repeat []string
}

// ServerStatus is one server, as a backend has observed it.
type ServerStatus struct {
	// Name of the server in its filesystem: its member and its node, such as "chunkserver-ssd.n1".
	Name string
	Role v1alpha1.Role
	Node string
	// StoragePool of a storage server.
	StoragePool string
	// Slot is the number of a metadata server on its node.
	Slot int32
	// ID is the filesystem's own number of the server; 0 if the filesystem assigns none.
	ID int32
	// Target of a management service or metadata server: the StorageTarget, or the directory of the node.
	Target string
	// Address is the host and port of the server.
	Address string
	// Version is the version that the server reports.
	Version string
	// Online is true if the filesystem itself lists this server as serving.
	Online bool
	// Placement is where the server runs, according to the kernel of its node; nil on a node without an agent.
	Placement *v1alpha1.Placement
	// Message is what is wrong with the server, and empty if nothing is.
	Message string
}

// TargetStatus is one storage target, as a backend has observed it.
type TargetStatus struct {
	Node string
	// StoragePool that the target belongs to.
	StoragePool string
	// Directory of the target on its node.
	Directory string
	// ID is the filesystem's own number of the target; 0 if the filesystem assigns none.
	ID int32
	// StorageTarget is the one whose disk that directory is on; empty if it is a directory of the node itself.
	StorageTarget string
	// Removing is true if the filesystem is configured to move the data of this target elsewhere.
	Removing bool
	// Removable is true if the filesystem reports that the target may be taken out.
	Removable bool
	// Online is true if the filesystem itself reports that the target serves data.
	Online bool
	// CapacityBytes is the size of the target, UsedBytes its used space.
	CapacityBytes, UsedBytes int64
	// Inodes is how many files its disk can hold, UsedInodes how many it holds; 0 if the filesystem reports neither.
	Inodes, UsedInodes int64
	// Message is what is wrong with the target, and empty if nothing is.
	Message string
}

// Name identifies a target in its filesystem: its node and directory. It is built only where a sentence needs it, because most of up to
// 24,000 targets need none.
func (t *TargetStatus) Name() string { return t.Node + ":" + t.Directory }

// Client is one node on which the filesystem is, or should be, mounted.
type Client struct {
	Node string
	// Mounted is true if the node's mount responds and the filesystem lists the session.
	Mounted bool
	// Message is what is wrong with the mount, and empty if nothing is.
	Message string
	// Kernel is what the kernel of the node showed about the mount when the agent last read it, nil if that is unknown.
	Kernel *v1alpha1.HostClient
}

// Transport counts the servers and clients for which the filesystem reports a transport, and those of them that offer RDMA.
type Transport struct {
	Servers, ServersRDMA int
	Clients, ClientsRDMA int
	// Problem is the condition TransportAsSpecified: ReasonAsAsked is true, ReasonTransportUnknown unknown, another reason false.
	Problem Problem
}

// Restart is a pod that must restart to start or stop using a disk.
type Restart struct {
	// Pod runs without the change.
	Pod types.NamespacedName
	// Why is a sentence, such as "the disk scratch-ssd-1a2b3c4d is proven and not used yet".
	Why string
	// Safe is true if the pod may restart although the filesystem has problems, because the restart fixes them or can't make them worse. A
	// filesystem without one of its disks is not Ready, so waiting for Ready would never end.
	Safe bool
}

// Problem is a reason of a condition, mostly of Ready or Degraded, and a sentence that a person can act on.
type Problem struct {
	Reason, Message string
}

// Mount is how a pod on a client node reaches the filesystem.
type Mount struct {
	// Path on the node, empty if the filesystem has no clients.
	Path string
	// FSType and Source are the values in /proc/self/mountinfo, as in spec.Mount.
	FSType, Source string
}

// State is what a filesystem reports about itself, in one form for all backends. The probe sends it in an Answer.
type State struct {
	// Asked is when the manager sent the question, on the manager's own monotonic clock. The filesystem was queried after that, so the answer
	// shows nothing later than the query.
	Asked time.Time `json:"-"`
	// Version of the metadata server.
	Version string `json:"version"`
	// MetadataVersion is the version of the running metadata, for a filesystem that counts its changes; 0 if it is unknown.
	MetadataVersion int64 `json:"metadataVersion,omitempty"`
	// Servers lists the daemons that the filesystem has registered, whether they run or not.
	Servers []Server `json:"servers,omitempty"`
	// Targets lists the storage targets of those servers.
	Targets []Target `json:"targets,omitempty"`
	// Sessions lists the mounts; nil for a filesystem that does not list them.
	Sessions []Session `json:"sessions,omitempty"`
	// StorageClasses maps the names of the placement rules to the rules, such as "ssd": "2A".
	StorageClasses map[string]string `json:"storageClasses,omitempty"`
	// ClassesInUse lists the rules that files use, sorted.
	ClassesInUse []string `json:"classesInUse,omitempty"`
	// Data counts the pieces of data by how safe they are.
	Data DataHealth `json:"data"`
	// Pools lists the storage pools, for a filesystem that has them.
	Pools []Pool `json:"pools,omitempty"`
	// Mirrors lists the pairs that hold the same data.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	// MetadataMirrored is true if the metadata is mirrored. While RootID is 0 this is unknown, and the value is false.
	MetadataMirrored bool `json:"metadataMirrored,omitempty"`
	// RootID is the number of the metadata server that owns the root directory, or of its mirror if the metadata is mirrored; 0 if it is
	// unknown.
	RootID int32 `json:"rootID,omitempty"`
	// License is nil for a filesystem that needs none.
	License *License `json:"license,omitempty"`
	// Links lists the connections from metadata targets to storage targets that accept no new data, or are closed.
	Links []Link `json:"links,omitempty"`
	// Modules holds the values with which the kernel modules of this one node were loaded, as far as the kernel shows them; nil if unknown. It
	// is set by a node that reports for itself.
	Modules *LoadedModules `json:"modules,omitempty"`
}

// LoadedModules holds the values with which modules of a node's kernel were loaded.
type LoadedModules struct {
	// Partitions holds the CPUs of each partition in which the kernel's threads run.
	Partitions [][]int `json:"partitions,omitempty"`
	// Parameters holds the module parameters that the kernel shows, by module and name, such as "mdt.mds_num_cpts".
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Link is the connection from a metadata target to a storage target, by their numbers.
type Link struct {
	From int32 `json:"from"`
	To   int32 `json:"to"`
	// Closed is true if the connection carries nothing. Otherwise it carries no new data.
	Closed bool `json:"closed,omitempty"`
}

// Pool is one storage pool as the filesystem lists it.
type Pool struct {
	ID   int32  `json:"id"`
	Name string `json:"name"`
	// Targets and Mirrors hold the numbers of its targets and mirrors, sorted.
	Targets []int32 `json:"targets,omitempty"`
	Mirrors []int32 `json:"mirrors,omitempty"`
}

// Mirror is a pair with the same data: two storage targets, or two metadata servers.
type Mirror struct {
	Role      v1alpha1.Role `json:"role"`
	ID        int32         `json:"id"`
	Primary   int32         `json:"primary"`
	Secondary int32         `json:"secondary"`
}

// License is what the filesystem reports about its license.
type License struct {
	// Valid is true if the filesystem has a valid license.
	Valid bool `json:"valid"`
	// Features lists the licensed features, in the filesystem's own words, sorted.
	Features []string `json:"features,omitempty"`
	// Message is the filesystem's own message about the license.
	Message string `json:"message,omitempty"`
}

// Server is one daemon as the filesystem lists it.
type Server struct {
	Role v1alpha1.Role `json:"role"`
	// ID is the filesystem's own number of the server, unique in its role, and Name its own name; empty if it has none.
	ID   int32  `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	IP   string `json:"ip"`
	Port int32  `json:"port"`
	// Online is true if the server is connected.
	Online  bool   `json:"online"`
	Version string `json:"version,omitempty"`
	// Transport is TransportRDMA if the server offers RDMA, and TransportTCP if it offers TCP only; empty if the filesystem does not report
	// it.
	Transport string `json:"transport,omitempty"`
	// Labels holds the filesystem's own labels, such as "A".
	Labels []string `json:"labels,omitempty"`
	// Maintained is true while the filesystem is set to expect that the server is away for a while.
	Maintained bool `json:"maintained,omitempty"`
	// UsedBytes and CapacityBytes of all its targets.
	UsedBytes     int64 `json:"usedBytes"`
	CapacityBytes int64 `json:"capacityBytes"`
	// Modules holds the values of its node.
	Modules *LoadedModules `json:"modules,omitempty"`
}

// Target is one storage target as the filesystem lists it.
type Target struct {
	// Role is Storage if it is empty.
	Role v1alpha1.Role `json:"role,omitempty"`
	// ID, ServerID and PoolID are the filesystem's own numbers of the target, its server and its pool; 0 if there is none. Such a target has
	// neither address nor path.
	ID       int32 `json:"id,omitempty"`
	ServerID int32 `json:"serverID,omitempty"`
	PoolID   int32 `json:"poolID,omitempty"`
	// Consistency and CapacityPool are in the filesystem's own words, such as "Good" and "Emergency".
	Consistency  string `json:"consistency,omitempty"`
	CapacityPool string `json:"capacityPool,omitempty"`
	IP           string `json:"ip"`
	Port         int32  `json:"port"`
	Path         string `json:"path"`
	// Online is true if the target serves; Status is the filesystem's own word for its state.
	Online        bool   `json:"online"`
	Status        string `json:"status"`
	UsedBytes     int64  `json:"usedBytes"`
	CapacityBytes int64  `json:"capacityBytes"`
	// Inodes and UsedInodes are those of its disk; 0 if the filesystem does not report them.
	Inodes     int64 `json:"inodes,omitempty"`
	UsedInodes int64 `json:"usedInodes,omitempty"`
	// Contacted is true if its server itself answered the probe. It excludes the old entry of a server that has stopped.
	Contacted bool `json:"contacted,omitempty"`
	// Chunks counts the pieces of data on it.
	Chunks int64 `json:"chunks"`
	// Removing is true if it is marked for removal, Removable if the filesystem reports that nothing on it is needed.
	Removing  bool `json:"removing,omitempty"`
	Removable bool `json:"removable,omitempty"`
}

// Every transport of a Server and a Session.
const (
	TransportRDMA = "RDMA"
	TransportTCP  = "TCP"
)

// Session is one mount as the filesystem lists it.
type Session struct {
	IP   string `json:"ip"`
	Path string `json:"path"`
	// Connected is false for a session that the filesystem keeps although it is gone.
	Connected bool `json:"connected"`
	// Admin is true when the session may change the filesystem's own settings.
	Admin bool `json:"admin"`
	// Transport is that of the mount, with the same values as for a Server.
	Transport string `json:"transport,omitempty"`
	Version   string `json:"version,omitempty"`
}

// DataHealth counts pieces of data (chunks) by how safe they are.
type DataHealth struct {
	// Known is false while the filesystem has not finished counting, for example after a start. The counts then mean nothing.
	Known bool `json:"known"`
	// Missing counts pieces without a copy, Endangered those with one copy that should have more, Undergoal those with fewer copies than they
	// should have.
	Missing    int64 `json:"missing"`
	Endangered int64 `json:"endangered"`
	Undergoal  int64 `json:"undergoal"`
	Stable     int64 `json:"stable"`
	// Fewest is the number of copies of the piece of data with the fewest copies, 0 while that is unknown, or while there is no data.
	Fewest int64 `json:"fewest,omitempty"`
}

// Whole reports whether the filesystem has finished counting and every piece of data has all its copies.
func (d DataHealth) Whole() bool {
	return d.Known && d.Missing == 0 && d.Endangered == 0 && d.Undergoal == 0
}

// InvalidSpecError means that the operator can't continue until a person changes something.
type InvalidSpecError struct {
	// Reason is one of the reasons of the condition Stalled.
	Reason string
	// Message names the field, what is wrong with it, and what to do.
	Message string
}

// Error returns the message.
func (e *InvalidSpecError) Error() string { return e.Message }

// Invalid returns an InvalidSpecError.
func Invalid(reason, format string, args ...any) *InvalidSpecError {
	return &InvalidSpecError{Reason: reason, Message: fmt.Sprintf(format, args...)}
}
