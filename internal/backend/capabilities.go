package backend

import (
	"math"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// Asker is a Backend whose filesystem is queried by probes that run beside its daemons. It is a Prober or a NodeProber. For any other
// Backend, Observe gets no Input.State.
type Asker interface {
	// Questions returns the queries of a probe for a filesystem that this backend started. The address is spec.Probe.Address.
	Questions(version, address string) Questions
}

// Prober is an Asker in which one daemon lists all others, so only that daemon is queried.
type Prober interface {
	Asker
	// ProbeURL is the URL of the probe's State, empty while it is unknown.
	ProbeURL(in Input) string
}

// NodeProber is an Asker whose servers do not list each other, so each node is queried about its own servers.
type NodeProber interface {
	Asker
	// ProbeURLs returns the URLs of the probes' States, by node. It leaves out nodes whose probe is unknown.
	ProbeURLs(in Input) map[string]string
	// Together combines the States of the nodes that have answered, at least one, into that of the filesystem. A node without an answer adds
	// nothing about the others. An error, as a sentence, describes how the States contradict each other.
	Together(in Input, answers map[string]*State) (State, error)
}

// TargetTeller is a Backend whose targets carry their assignment in the filesystem on their own disks. It is written when the disk is
// formatted, so it must be recorded before.
type TargetTeller interface {
	// Unassigned reports whether a target does not have its recorded assignment yet.
	Unassigned(in Input) bool
	// TellTargets adds the recorded assignments to the desired targets. A target that already has one keeps it.
	TellTargets(in Input, targets []v1alpha1.StorageTarget)
}

// Pairer is a Backend with targets that two nodes may serve, one at a time (StorageTarget.spec.secondNode).
type Pairer interface {
	// Moves returns the targets that should move to their other node, by name.
	Moves(in Input) []Move
}

// Move describes that the other node of a pair should serve a target.
type Move struct {
	// Target is the StorageTarget, and To the node that should serve it.
	Target, To string
	// Why is a part of a sentence: "to node oss2, because node oss1 is in maintenance".
	Why string
	// Waits is why the move can't happen yet, in words that follow "because "; empty if it can.
	Waits string
	// Back is true for a failback. Nothing is wrong at the present node, so the move waits until it disturbs no one.
	Back bool
	// Off is the holder whose machine is off, as a person has confirmed. That node can't hand the target over. It is nil in any other case.
	Off *v1alpha1.TargetHolder
}

// Questions query a running filesystem for its state through the filesystem's own tools. The methods are pure.
type Questions interface {
	// Commands returns the command lines, run without a shell.
	Commands() [][]string
	// Parse turns their standard outputs, in the same order, into a State. An error names the command and the line.
	Parse(outputs [][]byte) (State, error)
}

// TolerantQuestions can do without some of their answers, for example those of servers that may be away. The methods are pure.
type TolerantQuestions interface {
	Questions
	// Limit is how long a command may take, by its index in Commands; 0 for the default.
	Limit(command int) time.Duration
	// Tolerates reports whether Parse can use the output of a command that failed. The code is the exit code, or -1 if the command was stopped
	// at its time limit.
	Tolerates(command, code int, stderr string) bool
}

// LaterQuestions have further questions, which depend on the answers to the first ones. They keep what was answered from round to round.
type LaterQuestions interface {
	Questions
	// Later asks a few further questions and adds the answers to a State. It calls ask as often as all of them may take one time limit of a
	// command. A question without an answer leaves the State as it is.
	Later(state *State, ask func(argv []string, limit time.Duration) ([]byte, error))
}

// SecretKeeper is a Backend whose daemons share a secret (Input.Password) with each other, or with the operator's own clients.
type SecretKeeper interface {
	// SecretName names the Secret among Members that holds Input.Password, and the key in it. The controller generates the password once and
	// reads it back from that Secret.
	SecretName(fs *v1alpha1.FileSystem) (name, key string)
}

// Certified is a Backend with a server that uses the user's certificate.
type Certified interface {
	// CertificateSecret names the Secret of the type kubernetes.io/tls with the certificate; empty for none. The controller records it in
	// status.certificate.
	CertificateSecret(fs *v1alpha1.FileSystem) string
	// CertifiedHost returns the name or address by which the operator's own clients verify the server with this certificate. If the
	// certificate has no such name, lacks is the reason, in words that follow "the certificate". Both are empty while the server has no
	// address.
	CertifiedHost(in Input, c *v1alpha1.CertificateStatus) (host, lacks string)
}

// Claimer is a Backend whose daemons use ports or directories of their nodes that no other filesystem may use.
type Claimer interface {
	// Claims returns the claims of a filesystem with these FileSystemNodes: what is recorded, and the ports that its spec requests before any
	// are recorded.
	Claims(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) Claims
}

// Mounter is a Backend whose filesystem is mounted on nodes, where programs find it.
type Mounter interface {
	// Mount returns how a pod on a client node reaches the filesystem.
	Mount(fs *v1alpha1.FileSystem) Mount
}

// Pinner is a Backend whose daemons can be bound to CPUs.
type Pinner interface {
	// PinDaemons returns the daemons for which a spec can request CPUs, on their recorded nodes, for plan.Pin.
	PinDaemons(fs *v1alpha1.FileSystem, nodes []v1alpha1.FileSystemNode) []plan.PinDaemon
}

// Drainer is a Backend whose filesystem can move data from one target to others.
type Drainer interface {
	// Removal describes how the data of a target moves elsewhere when a person requests it (StorageTarget.spec.remove). The argument mounted
	// lists the nodes that have mounted the filesystem.
	Removal(fs *v1alpha1.FileSystem, target *v1alpha1.StorageTarget, mounted []string) Removal
}

// Removal describes how the data of a target moves elsewhere. Each field is a part of a sentence.
type Removal struct {
	// Never is why the data can't be moved, empty if it can.
	Never string
	// Writers says what the users of the filesystem have to do first, as whole sentences; empty if nothing, or if it was done.
	Writers string
	// Waits is the setting that the filesystem has not received yet.
	Waits string
	// Moves names the program or person that moves the data, and ends in ": " or "; ". The remaining amount follows.
	Moves string
}

// Survivor is a Backend whose filesystem can go on without a node that never comes back.
type Survivor interface {
	// Without describes the filesystem after a node is decommissioned, from the filesystem's own answer and the records. A decommissioned node
	// no longer belongs to any pool, and all of its servers have retired.
	Without(in Input, node *v1alpha1.FileSystemNode) Without
}

// Without describes a filesystem without one of its nodes. Each text is a part of a sentence.
type Without struct {
	// Never is why the filesystem can't go on without the node, empty if it can.
	Never string
	// Here names what is still online on the node, empty if nothing is.
	Here string
	// Waits is what has to be known or done first, empty if nothing has to.
	Waits string
	// Lost names the data that has no copy, or too few copies, elsewhere. A person has to accept the loss.
	Lost []string
	// Settles is how long the node must have been away before the filesystem's answer counts as one without it.
	Settles time.Duration
}

// Maintainer is a Backend whose filesystem reports whether it can do without a node for a while.
type Maintainer interface {
	// Absence describes the filesystem while a node is away, from its own answer and the observation made from it. The daemons and Jobs that
	// announce the maintenance to the filesystem are among the Members; Input.FileSystem.Status.Maintenance selects them.
	Absence(in Input, observation Observation, node string) Absence
	// TellMaintenance returns those Members, which are Jobs, that announce the nodes in maintenance to the filesystem, if it does not show
	// them yet.
	TellMaintenance(in Input) ([]client.Object, error)
}

// Absence describes a filesystem while one of its nodes is away. Each text is a part of a sentence.
type Absence struct {
	// Costs is why programs would wait, or not find their data, in words that follow "because "; empty if all data on the node is proven to
	// have an in-sync copy elsewhere.
	Costs string
	// Before is what the node waits for before it may be away, in words that follow "when "; empty if for nothing. The approval of a person
	// covers it only if the person has seen it.
	Before string
	// Together is how many nodes of its failure domain may be away at once, itself included, as the filesystem's answer proves; 0 means one.
	Together int
	// Waits is what the filesystem does not show yet of a maintenance that has begun or ended, in words that follow "when "; empty if it shows
	// all of it.
	Waits string
}

// Most is the value for a number without a limit.
const Most = math.MaxInt32

// Maintained returns the nodes of a filesystem that are away for maintenance, or may be.
func Maintained(fs *v1alpha1.FileSystem) []string {
	var out []string
	for i := range fs.Status.Maintenance {
		if m := &fs.Status.Maintenance[i]; m.Ended == nil {
			out = append(out, m.Node)
		}
	}
	return out
}

// Upgrader is a Backend whose filesystem keeps its data when its software changes to another version.
type Upgrader interface {
	// Lines lists the release lines that the operator runs, such as 4.57, oldest first. The rules of spec.version and the documents name the
	// same lines.
	Lines() []string
	// UpgradePath returns why a filesystem can't go from one version to another, as a sentence with the alternative; empty if it can.
	// Components get the new version in the sequence of Order, each after all daemons of the earlier ones run it.
	UpgradePath(from, to string) string
	// UpgradeSkew names a server or client, as the filesystem lists it, that must not be present once the master runs a version, as a sentence
	// with what to do; empty if there is none.
	UpgradeSkew(in Input, to string) string
}

// FileFinder is a Backend whose filesystem does not report that a target is empty.
type FileFinder interface {
	// FilesIn returns the directories with the files of drained targets, relative to the target's mountpoint, by StorageTarget. The agent of
	// the target's node counts the files that are left.
	FilesIn(in Input) map[string][]string
}

// Adopter is a Backend that can take over what an earlier filesystem has left on its disks.
type Adopter interface {
	// Adopts returns the field of the spec that requests it, such as "example.adopt", empty if none does.
	Adopts(spec *v1alpha1.FileSystemSpec) string
}

// Backuper is a Backend whose metadata can be copied, and read back, while the filesystem runs.
type Backuper interface {
	// BackupJob returns the Job that makes one backup by `node backup`, and its configuration (BackupConfigMaps). The Job is in the namespace
	// of the FileSystem and has no labels. The caller sets the labels by which it finds the Job and its pod. An *InvalidSpecError says what a
	// person must change.
	BackupJob(in Input, request BackupRequest) (*batchv1.Job, spec.Backup, error)
}

// ProgramBackuper is a Backuper whose filesystem's own programs copy the metadata and read it back.
type ProgramBackuper interface {
	Backuper
	// BackupMethod returns how `node backup` copies the metadata, and reads it back.
	BackupMethod(config spec.Backup) BackupMethod
}

// StoreBackuper is a Backuper whose metadata is the files of one directory, which the probe beside their daemon hands out (spec.Store). The
// probe reads that directory, or the node's programs copy it (StoreCopier).
type StoreBackuper interface {
	Backuper
	// StoreDatabase describes the database of the store, nil if the store is plain files.
	StoreDatabase(version string) *StoreDatabase
	// ReadStore reads a store as a server of that version does when it starts. An error describes the part that the server would not
	// understand.
	ReadStore(version string, content StoreContent, state State) (StoreRead, error)
}

// StoreDatabase describes a SQLite database that is the whole store. It is copied while its daemon writes to it.
type StoreDatabase struct {
	// File is its path in the directory of the store.
	File string
	// Queries holds the SQL queries to a copy, by name.
	Queries map[string]string
}

// StoreContent is the content of a store: its files, by their paths in its directory, or the rows of its database, by the name of the
// query.
type StoreContent struct {
	Files map[string][]byte
	Rows  map[string][][]string
}

// StoreRead is what a server would read from a store.
type StoreRead struct {
	// ID identifies the filesystem's metadata; empty if the store has no such value.
	ID string
	// Lacks names what the filesystem has reported about itself and the store does not contain.
	Lacks []string
	// Has summarizes the content in a few words; empty if there is nothing to report.
	Has string
}

// StoreCopier is implemented by Questions of a filesystem whose store is on a disk that shows no files while its server has it mounted. The
// node's own programs copy the store where the probe runs them.
type StoreCopier interface {
	Questions
	// CopyStore returns the files of the store from one moment, and what ReadStore needs besides. It may create the directory work on the
	// node, and removes it before it returns. Anything left there comes from an earlier run.
	CopyStore(run RunOnNode, work string) (map[string][]byte, error)
}

// RunOnNode runs a program of the node, without a shell, and returns its output. It returns an error if the exit code is not 0.
type RunOnNode func(argv ...string) ([]byte, error)

// BackupMethod is how programs of the filesystem copy the metadata of a running filesystem and read it back. Its methods are pure.
// Directories are absolute paths.
type BackupMethod interface {
	// Ask is the command that queries the running filesystem for the version of its metadata, and Answer reads its output.
	Ask() []string
	Answer(output []byte) (BackupVersion, error)
	// Copy is the program that copies the metadata into an empty directory until it is stopped. It keeps its other files in the directory
	// work.
	Copy(to, work string) BackupProgram
	// Copied returns the files of a complete copy: their names in the backup, by their current names. It is nil while the copy is incomplete.
	Copied(found []CopiedFile) map[string]string
	// Changes returns which files of a copy are change logs, and which of their lines are needed beside the saved metadata in the copy.
	Changes(found []CopiedFile) ChangeLogs
	// Check is the program that reads the files of a backup in a directory that holds nothing else and may be changed. It ends by itself and
	// makes the file Makes there. The beginning of that file, read by Made, shows the version of the metadata in all files together.
	Check(in, work string) BackupProgram
	Made(head []byte) (BackupVersion, error)
	// Memory is the memory that Check needs for files of this total size.
	Memory(size int64) int64
}

// Checker is a Backend whose filesystem has tools that find damage and change nothing.
type Checker interface {
	// CheckJob returns the Job that runs one check by `node check`. The Job is in the namespace of the FileSystem and has no labels. The
	// caller sets the labels by which it finds the Job and its pod. An *InvalidSpecError says what a person must change.
	CheckJob(in Input, name string) (*batchv1.Job, error)
	// ReadCheck reads the outputs of the Job's commands, in their order. An error shows why an output can't be used.
	ReadCheck(version string, outputs [][]byte) (spec.CheckAnswer, error)
}

// Recoverer is a Backend whose lost metadata can be restored from copies. It is a ProgramRecoverer or a StoreRecoverer.
type Recoverer interface {
	// RecoverySources returns the places that may hold copies of the metadata, in a stable order.
	RecoverySources(in Input) []RecoverySource
	// RecoveryJob returns the Job that inspects a source, or restores the metadata, by `node recover`. The Job is in the namespace of the
	// FileSystem, and has neither labels nor a file with its configuration. The caller adds both (RecoveryTold). An *InvalidSpecError says
	// what a person must change.
	RecoveryJob(in Input, request RecoveryRequest) (*batchv1.Job, spec.Recovery, error)
	// MetadataPlace returns where the spec has the metadata.
	MetadataPlace(fs *v1alpha1.FileSystem) MetadataPlace
}

// ProgramRecoverer is a Recoverer whose filesystem's own program makes metadata from copies.
type ProgramRecoverer interface {
	Recoverer
	// RecoveryMethod returns how `node recover` reads copies.
	RecoveryMethod() RecoveryMethod
}

// Follower is a Recoverer whose filesystem has servers that keep a copy of the metadata while it runs. RecoveryJob reads such a copy back.
type Follower interface {
	Recoverer
	// MetadataCopies returns the copies that servers should keep, as the filesystem itself reports them now.
	MetadataCopies(in Input, observation Observation, now time.Time) []MetadataCopy
}

// StoreRecoverer is a Recoverer whose metadata is a store, which is restored from a backup unchanged.
type StoreRecoverer interface {
	Recoverer
	StoreBackuper
}

// ServedRecoverer is a StoreRecoverer whose store is on a disk of its own that only its server mounts, and not at the place in
// status.metadata. After the recovery, the server is queried whether everything that was restored is in force.
type ServedRecoverer interface {
	StoreRecoverer
	StoreOnDisk
	// StoreRecord returns where the store is, in the form of status.metadata; nil while that is not recorded. RecordStore records the new
	// place.
	StoreRecord(fs *v1alpha1.FileSystem) *v1alpha1.MetadataRecord
	RecordStore(fs *v1alpha1.FileSystem, is v1alpha1.MetadataRecord)
	// StoreStays is why the store is not lost, or can't be restored, as a sentence; empty if it may be lost.
	StoreStays(in Input) string
	// Comparison returns the Job that compares the server's content with the restored files; nil if there is nothing to compare, or if
	// impossible is set to a reason. RecordComparison records the result, which lists the differences and is empty if there are none.
	// ComparisonSays formats the result as a sentence.
	Comparison(in Input) (request *RecoveryRequest, impossible string)
	RecordComparison(fs *v1alpha1.FileSystem, differs string, now metav1.Time)
	ComparisonSays(fs *v1alpha1.FileSystem) string
}

// StoreOnDisk reads and writes a store by programs of the node, on a disk that is not mounted.
type StoreOnDisk interface {
	// StoreStrangers names the content of the disk that a new disk which was never mounted does not have.
	StoreStrangers(run RunOnNode, device string) ([]string, error)
	// PutBackStore writes the files of a store, replaces whatever is there, and reads them back. It may create the directory work on the node,
	// and removes it before it returns. The argument place writes a file below it.
	PutBackStore(run RunOnNode, place func(path string, content []byte) error, device, work string, files map[string][]byte) error
	// CompareStore queries the server that serves the store on this node for the content of these files. An error lists the differences.
	CompareStore(run RunOnNode, files map[string][]byte) error
}

// RecoveryMethod is how a program of the filesystem makes metadata from the files of a copy. Its methods are pure.
type RecoveryMethod interface {
	// Usable returns the files of a daemon from which metadata is made, with the names that Check needs.
	Usable(found []CopiedFile) map[string]string
	// Changed returns the time of the last change that the end of such a file shows; zero if it shows none.
	Changed(name string, end []byte) time.Time
	// Changes, Check, Made and Memory are those of BackupMethod. The file that Check makes is the one that a server starts with.
	Changes(found []CopiedFile) ChangeLogs
	Check(in, work string) BackupProgram
	Made(head []byte) (BackupVersion, error)
	Memory(size int64) int64
}

// BackupProgram is a program with its configuration.
type BackupProgram struct {
	// Files holds the content of files to write first, by path.
	Files map[string]string
	Argv  []string
	// Makes is the name of the file that the program makes.
	Makes string
}

// CopiedFile is a file that a Copy has written so far.
type CopiedFile struct {
	Name string
	Size int64
	// Head holds the first bytes of the file and End the last ones, at most BackupHead each.
	Head, End []byte
}

// ChangeLogs describes files with one change in each line, the oldest first.
type ChangeLogs struct {
	Names []string
	// Needed is false for a line whose change is already in the saved metadata beside the logs, and true for a line that can't be understood.
	// It is nil if no metadata was ever saved, so that all changes are needed.
	Needed func(line []byte) bool
}

// BackupHead is how many bytes are read at the beginning and at the end of a file.
const BackupHead = 64

// BackupVersion is a state of the metadata, as the filesystem itself names it.
type BackupVersion struct {
	// Version counts the changes.
	Version int64
	// ID identifies the metadata of one filesystem; empty if the filesystem has no such value.
	ID string
}

// HostTuner is a Backend whose filesystem's documentation recommends settings for the kernel of a server.
type HostTuner interface {
	// HostSettings returns the settings with which the agent compares the nodes. The agent changes none of them.
	HostSettings() []spec.HostSetting
}

// ModuleUser is a Backend whose servers or clients need modules that do not come with the kernel.
type ModuleUser interface {
	// Modules returns the modules that the agent looks for on each node, and how they are installed.
	Modules() []spec.KernelModule
}

// Benchmarker is a Backend whose filesystem measures itself with its own tools, which need neither clients nor a mount (OnManagement in
// package benchmarks). Its methods are pure.
type Benchmarker interface {
	// BenchmarkJob returns the Job that runs the calls of a benchmark, one after the other, where the management service can be reached. The
	// Job is never retried. It is in the namespace of the FileSystem and has no labels; the caller sets the labels by which it finds the Job
	// and its pod. The parser of the benchmark reads the log of the container BenchmarkContainer. Exit code 124 means that the time limit was
	// reached. Of Input it reads FileSystem with its status, FileSystemNodes, Nodes and Images. An *InvalidSpecError says what a person must
	// change.
	BenchmarkJob(in Input, request BenchmarkRequest) (*batchv1.Job, error)
}

// ServerMeasurer is a Backend whose servers can be measured on their own nodes with tools of the nodes (OnServers in package benchmarks).
type ServerMeasurer interface {
	// MeasuresServers reports whether a tool measures these servers.
	MeasuresServers(tool v1alpha1.BenchmarkTool) bool
	// MeasuredTargets returns the targets of the servers of a role, by node, as the tools name them. They are always passed to the tool,
	// because it would otherwise measure the targets of other filesystems too. Of Input it reads FileSystem with its status, and
	// FileSystemNodes.
	MeasuredTargets(in Input, role v1alpha1.Role) map[string][]string
}

// BenchmarkContainer is the name of the container in the pod of a BenchmarkJob.
const BenchmarkContainer = "benchmark"

// BenchmarkRequest describes the Job of BenchmarkJob.
type BenchmarkRequest struct {
	// Name of the Job.
	Name string
	// Calls lists the calls in their order; see benchmarks.Call.
	Calls []BenchmarkCall
	// StoragePool whose targets are measured; empty for all.
	StoragePool string
	// Services holds what the filesystem reports about its targets.
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

// Selecting is a Backend with node selectors for optional parts.
type Selecting interface {
	// Selectors returns the selectors of the spec that may match no node. The part that they select nodes for is then missing.
	Selectors(fs *v1alpha1.FileSystem) []Selector
}

// Selector is a nodeSelector of a spec.
type Selector struct {
	// Field is the field of the spec. Costs names what is missing while the selector matches no node, in words that follow "so ".
	Field, Costs string
	Labels       v1alpha1.NodeSelector
	// Nodes returns the selected nodes if they differ from those that match Labels; nil if they do not.
	Nodes func(fs *v1alpha1.FileSystem, nodes []Node) []Node
}

// Of returns the nodes that the selector selects, in their order.
func (s Selector) Of(fs *v1alpha1.FileSystem, nodes []Node) []Node {
	if s.Nodes == nil {
		return Matching(nodes, s.Labels)
	}
	return s.Nodes(fs, nodes)
}

// Chooser is a Backend that chooses values that the spec of its type leaves open.
type Chooser interface {
	// Choose adds the open values to chosen. Input has the FileSystem with the earlier choices, and asked is the spec as a person wrote it.
	Choose(in Input, asked *v1alpha1.FileSystemSpec, chosen *v1alpha1.ChosenStatus) error
}

// ToolRunner is a Backend whose own tools a person may run in its pods, as with kubectl pfs exec.
type ToolRunner interface {
	// RunTool completes the command line of one of the filesystem's tools with its address and credentials. Other programs stay as they
	// are. management is the address of the node with the metadata or management service, empty if it is unknown. It returns an error if
	// the version has another tool, or if the address is needed and unknown.
	RunTool(fs *v1alpha1.FileSystem, management string, argv []string) (ToolCall, error)
}

// ToolCall is a command line and where it runs.
type ToolCall struct {
	// Components lists the components whose pods have the tool, the best one first.
	Components []string
	Container  string
	Argv       []string
}
