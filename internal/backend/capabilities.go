package backend

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Prober is a Backend whose filesystem is asked how it is, by a probe that runs beside one of its daemons. Observe of a Backend that is
// none has no Input.State.
type Prober interface {
	// ProbeURL is where the probe serves its State, empty while that is not known.
	ProbeURL(in Input) string

	// Questions are what the probe asks a filesystem that was started by this backend; the address is spec.Probe.Address.
	Questions(version, address string) Questions
}

// Questions ask a running filesystem for its state, through the filesystem's own tools. The methods are pure.
type Questions interface {
	// Commands are the command lines to run, without a shell.
	Commands() [][]string
	// Parse turns their standard outputs, in the same order, into a State. An error names the command and the line.
	Parse(outputs [][]byte) (State, error)
}

// TolerantQuestions can do without some of their answers, such as those of servers that may be away. The methods are pure.
type TolerantQuestions interface {
	Questions
	// Limit is how long a command may take, by its place among Commands; 0 for the usual time.
	Limit(command int) time.Duration
	// Tolerates says whether Parse can do with what a command had printed when it failed: with the exit code, which is -1 when it was
	// stopped because its time was over, and with its standard error.
	Tolerates(command, code int, stderr string) bool
}

// SecretKeeper is a Backend whose daemons share a secret (Input.Password) with each other, or with the operator's own clients.
type SecretKeeper interface {
	// SecretName names the Secret among Members that holds Input.Password, and its key there. The controller makes the password once and
	// reads it back from that Secret.
	SecretName(fs *v1alpha1.FileSystem) (name, key string)
}

// Claimer is a Backend whose daemons use ports or directories of their nodes that no other filesystem may use.
type Claimer interface {
	// Claims are those of a filesystem with these FileSystemNodes: what is recorded, and the ports that its spec asks for before any are.
	Claims(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) Claims
}

// Mounter is a Backend whose filesystem is mounted on nodes, where programs find it.
type Mounter interface {
	// Mount says how a pod on a client node finds the filesystem.
	Mount(fs *v1alpha1.FileSystem) Mount
}

// Pinner is a Backend whose daemons can be bound to CPUs.
type Pinner interface {
	// PinDaemons are the daemons that CPUs can be asked for, on the nodes that are recorded, for plan.Pin.
	PinDaemons(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) []plan.PinDaemon
}

// Drainer is a Backend whose filesystem can move data from one target to others.
type Drainer interface {
	// Removal says how what is on a target comes elsewhere, when a person asks for it (StorageTarget.spec.remove). The filesystem is mounted
	// on the nodes of that name.
	Removal(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, mounted []string) Removal
}

// Removal says how what is on a target comes elsewhere. Each is a part of a sentence.
type Removal struct {
	// Never says why it can't, empty when it can.
	Never string
	// Writers says what programs have to do before it begins, as whole sentences; empty when nothing, or when it was done.
	Writers string
	// Waits says what the filesystem was not told yet.
	Waits string
	// Moves says who moves it, with ": " or "; " at its end: how much is left follows.
	Moves string
}

// FileFinder is a Backend whose filesystem does not say itself when a target is empty.
type FileFinder interface {
	// FilesIn are the directories of targets that are drained in which files lie, relative to the target's mountpoint, by StorageTarget:
	// the agent of the target's node counts what is left there.
	FilesIn(in Input) map[string][]string
}

// Adopter is a Backend that can take over what an earlier filesystem has left on its disks.
type Adopter interface {
	// Adopts is the field of the spec that asks for it, such as "example.adopt", empty when none does.
	Adopts(spec *v1alpha1.FileSystemSpec) string
}

// HostTuner is a Backend whose filesystem's documentation says how the kernel of a server should be set.
type HostTuner interface {
	// HostSettings are what the agent compares the nodes with. Nothing is changed to meet them.
	HostSettings() []spec.HostSetting
}

// ModuleUser is a Backend whose servers or clients need modules that do not come with the kernel.
type ModuleUser interface {
	// Modules are what the agent looks for on each node, and how they come to be there.
	Modules() []spec.KernelModule
}

// Benchmarker is a Backend whose filesystem measures itself, by tools of its own that need neither clients nor a mount (what
// benchmarks calls OnManagement). Its methods are pure.
type Benchmarker interface {
	// BenchmarkJob is the Job that makes the calls of a benchmark, one after the other, where the management service can be reached, and is
	// never tried again. It is in the namespace of the FileSystem, and has no labels: the caller gives it, and its pod, those that it finds
	// its jobs by. The log of the container BenchmarkContainer is what the parser of the benchmark reads; exit code 124 says that the time was
	// over. Of Input it reads FileSystem with its status, FileSystemNodes, Nodes and Images. An *InvalidSpecError says what a person must
	// change.
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
	// Services is what the filesystem says of its targets.
	Services map[TargetKey]v1alpha1.TargetService
	// Timeout ends the calls.
	Timeout time.Duration
}

// TargetKey names a target that holds files.
type TargetKey struct {
	// Node that has it.
	Node string
	// Name of the StorageTarget, or the directory of the node.
	Name string
}

// BenchmarkCall is a benchmarks.Call.
type BenchmarkCall struct {
	Verb      string
	Arguments map[string]string
}
