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

// Backend runs one type of filesystem. Every method is a pure function of its arguments: no clock, no randomness, no
// I/O, and the same answer for the same question, byte for byte.
type Backend interface { //nolint:interfacebloat // each backend implements all of it, and the contract suite holds it to that
	// Type is the spec.type that this backend serves.
	Type() v1alpha1.FileSystemType

	// Record decides what must outlive a change of labels: which node holds the metadata, and which nodes and which
	// slot belong to a pool. It starts from what Input.FileSystem.Status has recorded, and only adds to it. The
	// caller writes it to the status before it applies any object. An *InvalidSpecError says what a person must change.
	Record(in Input) (Record, error)

	// Objects are the children that the filesystem should have, from the recorded status. They carry names, labels and specs, no owner and no
	// cluster state. One that only Keep names stays as it is, and one that Absent names goes. An *InvalidSpecError says what a person must
	// change.
	Objects(in Input) ([]client.Object, error)

	// Observe turns what was seen into the parts of the status that say how the filesystem is.
	Observe(in Input) Observation

	// RestartOrder lists the components (v1alpha1.LabelComponent) whose pods the operator restarts to apply a
	// change, in this order, one pod at a time. A component that is not named is never restarted by the operator.
	RestartOrder() []string

	// TargetNodes are the nodes on which each role keeps data, from what the status has recorded, for plan.Select.
	TargetNodes(fs *v1alpha1.FileSystem) plan.TargetNodes

	// FilesIn are the directories of targets that are drained in which files lie, relative to the target's mountpoint, by StorageTarget:
	// the agent of the target's node counts what is left there. None for a filesystem that says itself when a target is empty.
	FilesIn(in Input) map[string][]string

	// PinDaemons are the daemons that CPUs can be asked for, on the nodes that the status has recorded, for plan.Pin.
	PinDaemons(fs *v1alpha1.FileSystem) []plan.PinDaemon

	// Mount says how a pod on a client node finds the filesystem.
	Mount(fs *v1alpha1.FileSystem) Mount

	// SecretName names the Secret among Objects that holds Input.Password, and its key there. The controller makes the
	// password once and reads it back from that Secret.
	SecretName(fs *v1alpha1.FileSystem) (name, key string)

	// ProbeURL is where the filesystem's probe serves its State, empty while that is not known.
	ProbeURL(in Input) string

	// Prober says how the probe asks a filesystem that was started by this backend.
	Prober(version, address string) Prober
}

// Benchmarker is a Backend whose filesystem measures itself, by tools of its own that need neither clients nor a mount (what
// benchmarks calls OnManagement). Its methods are pure.
type Benchmarker interface {
	// BenchmarkJob is the Job that makes the calls of a benchmark, one after the other, where the management service can be reached, and is
	// never tried again. It is in the namespace of the FileSystem, and has no labels: the caller gives it, and its pod, those that it finds
	// its jobs by. The log of the container BenchmarkContainer is what the parser of the benchmark reads; exit code 124 says that the time was
	// over. Of Input it reads FileSystem with its status, Nodes and Images. An *InvalidSpecError says what a person must change.
	BenchmarkJob(in Input, request BenchmarkRequest) (*batchv1.Job, error)
}

// BenchmarkContainer is the name of the container in the pod of a BenchmarkJob.
const BenchmarkContainer = "benchmark"

// BenchmarkRequest says what a BenchmarkJob does.
type BenchmarkRequest struct {
	// Name of the Job.
	Name string
	// Calls in their order; see benchmarks.Call.
	Calls []BenchmarkCall
	// StoragePool whose targets are measured; empty for all.
	StoragePool string
	// Timeout ends the calls.
	Timeout time.Duration
}

// BenchmarkCall is a benchmarks.Call.
type BenchmarkCall struct {
	Verb      string
	Arguments map[string]string
}

// Keep stands among the Objects for a Job that is there: it is neither changed nor removed.
func Keep(namespace, job string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: job},
	}
}

// Absent stands among the Objects for a Secret that must not be there any more. Other children that are not wanted are found by a list,
// which would need the right to read every Secret there is.
func Absent(namespace, secret string) client.Object {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secret, DeletionTimestamp: &metav1.Time{}},
	}
}

// DefaultKubeletSync is how long a change of a ConfigMap may take until a daemon that starts reads it: the kubelet brings it to the node
// once in its sync period (syncFrequency, a minute unless a node says otherwise: KubeletConfiguration v1beta1).
const DefaultKubeletSync = time.Minute

// TemplateHashAnnotation on a pod template holds a hash of everything whose change needs a restart of the pod.
const TemplateHashAnnotation = "parallelfs.dev/template-hash"

// MetadataMirroredAnnotation on a pod says that it was made after it was on record that the metadata is mirrored. It is no part of the
// template's hash: it tells pods that were made before from those that were made since, without a clock.
const MetadataMirroredAnnotation = "parallelfs.dev/metadata-mirrored"

// Prober asks a running filesystem for its state, through the filesystem's own tools. Its methods are pure.
type Prober interface {
	// Commands are the command lines to run, without a shell.
	Commands() [][]string
	// Parse turns their standard outputs, in the same order, into a State. An error names the command and the line.
	Parse(outputs [][]byte) (State, error)
}

// TolerantProber is a Prober that can do without some of its answers, such as those of servers that may be away. Its methods are pure.
type TolerantProber interface {
	Prober
	// Limit is how long a command may take, by its place among Commands; 0 for the usual time.
	Limit(command int) time.Duration
	// Tolerates says whether Parse can do with what a command had printed when it failed: with the exit code, which is -1 when it was
	// stopped because its time was over, and with its standard error.
	Tolerates(command, code int, stderr string) bool
}

// Input is all that a backend may look at.
type Input struct {
	FileSystem *v1alpha1.FileSystem
	// Others are the other FileSystems of the cluster, for conflicts of ports and directories.
	Others []v1alpha1.FileSystem
	// Nodes are all nodes of the cluster, sorted by name.
	Nodes []Node
	// Pods are the pods of this filesystem, sorted by component, pool, node, instance and name.
	Pods []Pod
	// Jobs are the Jobs of this filesystem, sorted by name.
	Jobs []Job
	// Targets are the StorageTargets of this filesystem that are not being deleted, sorted by node and name.
	Targets []v1alpha1.StorageTarget
	// Since is when this manager first saw the condition Ready of a StorageTarget as it is now, by name and by the clock of State.Asked.
	Since map[string]time.Time
	// Pinnings are where the daemons are to run, by node and instance (spec.Run.Instance); plan.Pin made them.
	Pinnings map[string]map[string]spec.Pinning
	// Inventories are what the agents found, by node; a node without an agent has none.
	Inventories map[string]v1alpha1.NodeInventoryStatus
	// Images are the container images to use.
	Images Images
	// Password is the secret that only the operator's own clients of the filesystem know.
	Password string
	// ProbeKey is the secret that the probe signs its answers with.
	ProbeKey string
	// State is what the filesystem said when it was asked for this Input, nil when it did not answer; StateError says why not. Everything else
	// in this Input was read before it was asked.
	State      *State
	StateError string
}

// Node is what a backend may know of a node.
type Node struct {
	Name   string
	Labels map[string]string
	// IP is the node's InternalIP.
	IP string
	// Ready is the node's condition Ready.
	Ready bool
}

// Pod is what a backend may know of a daemon's pod.
type Pod struct {
	Name      types.NamespacedName
	Component string
	// StoragePool is empty for a pod that serves none.
	StoragePool string
	// Instance is the slot of a metadata server (v1alpha1.LabelInstance), empty for a pod that has none.
	Instance string
	Node     string
	Ready    bool
	// Outdated is true when the pod was made from an older template than its DaemonSet has now.
	Outdated bool
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
}

// Images are the container images that the operator was started with.
type Images struct {
	// Node holds the node binary.
	Node string
	// Daemons holds the filesystem's own software, by "<type>-<version>" such as "moosefs-4.57.5", or, where there is one image
	// for each role, by "beegfs-<role>-<version>", or by "beegfs-<role>" for a repository whose tags are the versions.
	Daemons map[string]string
	// Benchmarks holds the tools, by name such as "iozone".
	Benchmarks map[string]string
	// PullPolicy of all of them, such as "IfNotPresent".
	PullPolicy string
}

// Record is what must outlive a change of labels.
type Record struct {
	Metadata     v1alpha1.MetadataRecord
	StoragePools []PoolRecord
	// BeeGFS is nil for another type.
	BeeGFS *v1alpha1.BeeGFSStatus
}

// PoolRecord is the recorded part of a v1alpha1.StoragePoolStatus.
type PoolRecord struct {
	Name  string
	Slot  int32
	Nodes []string
}

// Observation is the observed part of a FileSystemStatus, and what is wrong.
type Observation struct {
	Management   *v1alpha1.ManagementStatus
	Instances    []v1alpha1.InstanceStatus
	StoragePools []v1alpha1.StoragePoolStatus
	Targets      []v1alpha1.TargetStatus
	Clients      []v1alpha1.ClientStatus
	Summary      v1alpha1.FileSystemSummary
	// MetadataInitialized is true when the filesystem itself proves that its metadata directory was initialized.
	MetadataInitialized bool
	// Problems are what is missing or wrong, worst first. None means that everything takes part.
	Problems []Problem
	// Serves is true when programs can read and write all of their data in spite of the Problems, as the filesystem itself says: every piece
	// of data has a copy that is online, every pool takes new files, and some client has mounted it where any should.
	Serves bool
	// Licensed is the condition Licensed, nil when the spec asks for nothing that needs a license: ReasonLicenseValid is true.
	Licensed *Problem
	// Pinned is the condition Pinned, nil when no role asks for CPUs: ReasonAsAsked, ReasonDrifted, or another reason while
	// it is not known where a daemon runs. It does not stand in the way of Ready.
	Pinned *Problem
	// Restarts are the pods that have to start anew because their disks have changed, in the order of Input.Pods.
	Restarts []Restart
	// Unconfirmed are servers that the filesystem lists as online, although it could be their predecessors that it means; each in words that
	// a person can read. No daemon that runs is restarted meanwhile.
	Unconfirmed []string
	// Sole says, by the name of the pod, why programs wait while it is restarted: nothing else holds what it holds. The text follows "because
	// ".
	Sole map[string]string
	// Repeat are the names of Jobs whose effect the filesystem does not show. One that ended a while ago is deleted, so that the next
	// pass makes it again.
	Repeat []string
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
	// Sessions are the mounts.
	Sessions []Session `json:"sessions,omitempty"`
	// StorageClasses are the names of the placement rules with what they say, such as "ssd": "2A".
	StorageClasses map[string]string `json:"storageClasses,omitempty"`
	// Data counts the pieces of data by how safe they are.
	Data DataHealth `json:"data"`
	// Pools are the storage pools, of a filesystem that has them as such.
	Pools []Pool `json:"pools,omitempty"`
	// Mirrors are the buddy groups.
	Mirrors []Mirror `json:"mirrors,omitempty"`
	// MetadataMirrored is true when the metadata is mirrored. While RootID is 0 that is not known, and it is false.
	MetadataMirrored bool `json:"metadataMirrored,omitempty"`
	// RootID is the number of the metadata server that owns the root directory, or of its buddy group when the metadata is
	// mirrored; 0 where it is not known.
	RootID int32 `json:"rootID,omitempty"`
	// License is nil for a filesystem that asks for none.
	License *License `json:"license,omitempty"`
}

// Pool is one storage pool as the filesystem sees it.
type Pool struct {
	ID   int32  `json:"id"`
	Name string `json:"name"`
	// Targets and Mirrors are the numbers of its targets and buddy groups, sorted.
	Targets []int32 `json:"targets,omitempty"`
	Mirrors []int32 `json:"mirrors,omitempty"`
}

// Mirror is one buddy group: of storage targets, or of metadata servers.
type Mirror struct {
	Role      v1alpha1.InstanceRole `json:"role"`
	ID        int32                 `json:"id"`
	Primary   int32                 `json:"primary"`
	Secondary int32                 `json:"secondary"`
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
	Role v1alpha1.InstanceRole `json:"role"`
	// ID is the filesystem's own number of it, unique in its role, and Name its own name; empty where it has none.
	ID   int32  `json:"id,omitempty"`
	Name string `json:"name,omitempty"`
	IP   string `json:"ip"`
	Port int32  `json:"port"`
	// Online is true when it is connected.
	Online  bool   `json:"online"`
	Version string `json:"version,omitempty"`
	// Labels are the filesystem's own, such as "A".
	Labels []string `json:"labels,omitempty"`
	// UsedBytes and CapacityBytes of all its targets.
	UsedBytes     int64 `json:"usedBytes"`
	CapacityBytes int64 `json:"capacityBytes"`
}

// Target is one storage target as the filesystem sees it.
type Target struct {
	// Role is Storage where it is empty.
	Role v1alpha1.InstanceRole `json:"role,omitempty"`
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
	// Contacted is true when its server itself answered the probe's question: it is no entry of a server that has stopped since.
	Contacted bool `json:"contacted,omitempty"`
	// Chunks counts the pieces of data on it.
	Chunks int64 `json:"chunks"`
	// Removing is true when it is marked for removal, Removable when the filesystem says that nothing on it is needed.
	Removing  bool `json:"removing,omitempty"`
	Removable bool `json:"removable,omitempty"`
}

// Session is one mount as the filesystem sees it.
type Session struct {
	IP   string `json:"ip"`
	Path string `json:"path"`
	// Connected is false for a session that the filesystem only remembers.
	Connected bool `json:"connected"`
	// Admin is true when the session may change the filesystem's own settings.
	Admin   bool   `json:"admin"`
	Version string `json:"version,omitempty"`
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
