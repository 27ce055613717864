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

// Asker is a Backend whose filesystem is asked how it is, by probes that run beside its daemons. It is a Prober or a NodeProber. Observe of
// a Backend that is none has no Input.State.
type Asker interface {
	// Questions are what a probe asks a filesystem that was started by this backend; the address is spec.Probe.Address.
	Questions(version, address string) Questions
}

// Prober is an Asker one of whose daemons knows all others: it is asked.
type Prober interface {
	Asker
	// ProbeURL is where the probe serves its State, empty while that is not known.
	ProbeURL(in Input) string
}

// NodeProber is an Asker whose servers don't know of each other: each node is asked what it serves itself.
type NodeProber interface {
	Asker
	// ProbeURLs are where the probes serve their States, by node. A node that has servers and whose probe is not known is not among them.
	ProbeURLs(in Input) map[string]string
	// Together is what the nodes that have answered say of the filesystem, which are one at least. A node without an answer says nothing of
	// the others. An error, in a sentence, says how they contradict each other.
	Together(in Input, said map[string]*State) (State, error)
}

// TargetTeller is a Backend whose targets are told what they are to their filesystem: that is written on their disks when these are
// formatted, and so it must be on record before.
type TargetTeller interface {
	// Untold is true when a target was not told yet what is on record.
	Untold(in Input) bool
	// TellTargets adds it to the targets as they are to be, where it is on record. One that was told before keeps it.
	TellTargets(in Input, targets []v1alpha1.StorageTarget)
}

// Pairer is a Backend with targets that two nodes may serve, one at a time (StorageTarget.spec.secondNode).
type Pairer interface {
	// Moves are the targets that are to be served by the other one of their nodes, by name.
	Moves(in Input) []Move
}

// Move is that a target is to be served by the other one of its nodes.
type Move struct {
	// Target is the StorageTarget, and To the node that is to serve it.
	Target, To string
	// Why is a part of a sentence: "to node oss2, because node oss1 is in maintenance".
	Why string
	// Waits says why that can't be yet, in words that follow "because "; empty when it can.
	Waits string
	// Back is true when nothing is wrong where the target is: the move waits until nobody is disturbed.
	Back bool
	// Off is set when nobody gives the target away, because the machine of its holder is off, as a person has said: this is that holder.
	Off *v1alpha1.TargetHolder
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

// Certified is a Backend with a server that uses a certificate of the user's.
type Certified interface {
	// CertificateSecret names the Secret of the type kubernetes.io/tls with the certificate; empty for none. The controller records it in
	// status.certificate.
	CertificateSecret(fs *v1alpha1.FileSystem) string
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

// Survivor is a Backend whose filesystem can go on without a node that never comes back.
type Survivor interface {
	// Without says what becomes of the filesystem when it goes on without a node for good, from its own answer and what is recorded. A node
	// that was given up has no place in a pool any more, and all of its servers have retired.
	Without(in Input, node *v1alpha1.FileSystemNode) Without
}

// Without is what becomes of a filesystem without one of its nodes. Each text is a part of a sentence.
type Without struct {
	// Never says why it can't go on without the node, empty when it can.
	Never string
	// Here says what of the node takes part, empty when nothing does.
	Here string
	// Waits says what has to be known or done first, empty when nothing has to.
	Waits string
	// Lost names the data that has no copy elsewhere, or too few. A person has to accept that.
	Lost []string
	// Settles is how long the node must have been away before the filesystem's answer is trusted to be without it.
	Settles time.Duration
}

// Maintainer is a Backend whose filesystem says whether it can do without a node for a while.
type Maintainer interface {
	// Absence says what becomes of the filesystem while a node is away, from its own answer, and what was observed in that. Daemons and Jobs
	// that tell the filesystem of it are among the Members, by Input.FileSystem.Status.Maintenance.
	Absence(in Input, seen Observation, node string) Absence
	// TellMaintenance are those of the Members that tell the filesystem which of its nodes are in maintenance, when it does not know it: Jobs.
	TellMaintenance(in Input) ([]client.Object, error)
}

// Absence is what becomes of a filesystem while one of its nodes is away. Each text is a part of a sentence.
type Absence struct {
	// Costs says why programs would wait, or not find their data, in words that follow "because "; empty when all that the node holds is
	// proven to have an in-sync copy elsewhere.
	Costs string
	// Together is how many nodes of its failure domain may be away at once, itself included, as the filesystem's answer proves; 0 is one.
	Together int
	// Waits says what the filesystem was not told yet of a maintenance that has begun or ended, in words that follow "when "; empty when it
	// knows all of it.
	Waits string
}

// Most is for what has no limit of its own.
const Most = math.MaxInt32

// Maintained are the nodes of a filesystem that are away for maintenance, or may be.
func Maintained(fs *v1alpha1.FileSystem) []string {
	var out []string
	for i := range fs.Status.Maintenance {
		if m := &fs.Status.Maintenance[i]; m.Ended == nil {
			out = append(out, m.Node)
		}
	}
	return out
}

// Upgrader is a Backend whose filesystem keeps its data when its software is changed to another version.
type Upgrader interface {
	// Lines are the lines of releases that the operator runs, such as 4.57, oldest first. The rules of spec.version and the documents name the
	// same ones.
	Lines() []string
	// UpgradePath says why a filesystem does not go from one version to another, as a sentence with what to do instead; empty when it does.
	// The components get the new version in the order of Order, each when all daemons of those before it run it.
	UpgradePath(from, to string) string
	// UpgradeSkew says which server or client, as the filesystem names them, must not be there once its master runs a version, as a sentence
	// with what to do; empty when none.
	UpgradeSkew(in Input, to string) string
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

// Backuper is a Backend whose metadata can be copied, and read back, while the filesystem runs.
type Backuper interface {
	// BackupJob is the Job that makes one backup by `node backup`, and what that is told (BackupConfigMaps). It is in the namespace of the
	// FileSystem, and has no labels: the caller gives it, and its pod, those that it finds its jobs by. An *InvalidSpecError says what a
	// person must change.
	BackupJob(in Input, request BackupRequest) (*batchv1.Job, spec.Backup, error)
}

// ProgramBackuper is a Backuper whose filesystem's own programs copy the metadata, and read them back.
type ProgramBackuper interface {
	Backuper
	// BackupMethod says how `node backup` copies the metadata, and reads it back.
	BackupMethod(told spec.Backup) BackupMethod
}

// StoreBackuper is a Backuper whose metadata are files of one directory, which the probe beside their daemon hands out (spec.Store). It
// reads that directory, or has the node's programs copy it (StoreCopier).
type StoreBackuper interface {
	Backuper
	// StoreDatabase is the database that the store is, nil for one that is plain files.
	StoreDatabase(version string) *StoreDatabase
	// ReadStore reads a store as a server of that version does when it starts. An error says what it would not understand.
	ReadStore(version string, content StoreContent, said State) (StoreRead, error)
}

// StoreDatabase is a database of SQLite that is all of a store. It is copied while its daemon writes it.
type StoreDatabase struct {
	// File is its path in the directory of the store.
	File string
	// Queries are what is asked of a copy, in SQL, by name.
	Queries map[string]string
}

// StoreContent is what a store holds: its files, by their paths in its directory, or the rows that its database has answered, by the name
// of the query.
type StoreContent struct {
	Files map[string][]byte
	Rows  map[string][][]string
}

// StoreRead is what a server would make of a store.
type StoreRead struct {
	// ID tells the filesystem's metadata from that of others; empty where the store does not say.
	ID string
	// Lacks names what the filesystem had said of itself, and the store does not have.
	Lacks []string
	// Has says what is in it, in a few words; empty where nobody needs to know.
	Has string
}

// StoreCopier are Questions of a filesystem whose store lies on a disk that shows no files while its server has it mounted: the node's own
// programs copy it, where the probe runs them.
type StoreCopier interface {
	Questions
	// CopyStore returns the files of the store, as they lay there together, with what ReadStore needs to read them. Work is a directory of the
	// node that it may make, and that is not there when it ends. What was left there is of an earlier run.
	CopyStore(run RunOnNode, work string) (map[string][]byte, error)
}

// RunOnNode runs a program of the node, without a shell, and returns what it prints. It is an error when the program does not end with 0.
type RunOnNode func(argv ...string) ([]byte, error)

// BackupMethod is how the metadata of a running filesystem is copied and read back, by programs of the filesystem itself. Its methods are
// pure. Directories are absolute paths.
type BackupMethod interface {
	// Ask is the command that asks the running filesystem for the version of its metadata, and Answer reads what it prints.
	Ask() []string
	Answer(output []byte) (BackupVersion, error)
	// Copy is the program that copies the metadata into an empty directory, until it is stopped. Work is where its files are written.
	Copy(to, work string) BackupProgram
	// Copied says whether all that belongs to the copy is there: the files, and the names that they have in the backup, by the names that they
	// have now. It is nil until then.
	Copied(found []CopiedFile) map[string]string
	// Changes says which files of a copy are logs of changes, and what of them is of use beside the saved metadata that the copy has.
	Changes(found []CopiedFile) ChangeLogs
	// Check is the program that reads the files of a backup in a directory that holds nothing else and may be changed, ends by itself, and
	// makes the file Makes there. Its beginning says, by Made, which version of the metadata all the files together have.
	Check(in, work string) BackupProgram
	Made(head []byte) (BackupVersion, error)
	// Memory is how much memory Check needs for files of this size together.
	Memory(size int64) int64
}

// Checker is a Backend whose filesystem has tools that look for damage and change nothing.
type Checker interface {
	// CheckJob is the Job that looks by `node check`, once. It is in the namespace of the FileSystem, and has no labels: the caller gives it,
	// and its pod, those that it finds it by. An *InvalidSpecError says what a person must change.
	CheckJob(in Input, name string) (*batchv1.Job, error)
	// ReadCheck reads what the commands of the Job printed, in their order. An error says why that is no answer.
	ReadCheck(version string, outputs [][]byte) (spec.CheckAnswer, error)
}

// Recoverer is a Backend whose lost metadata can be made again from copies of it. It is a ProgramRecoverer or a StoreRecoverer.
type Recoverer interface {
	// RecoverySources are the places where copies of the metadata may lie, in an order that stays.
	RecoverySources(in Input) []RecoverySource
	// RecoveryJob is the Job that looks at a source, or makes the metadata again, by `node recover`. It is in the namespace of the FileSystem,
	// and has no labels and no file that says what it does: the caller gives it these (RecoveryTold). An *InvalidSpecError says what a person
	// must change.
	RecoveryJob(in Input, request RecoveryRequest) (*batchv1.Job, spec.Recovery, error)
	// MetadataPlace is where the spec has the metadata.
	MetadataPlace(fs *v1alpha1.FileSystem) MetadataPlace
}

// ProgramRecoverer is a Recoverer whose filesystem's own program makes metadata from copies.
type ProgramRecoverer interface {
	Recoverer
	// RecoveryMethod says how `node recover` reads copies.
	RecoveryMethod() RecoveryMethod
}

// Follower is a Recoverer whose filesystem has servers that keep a copy of the metadata while it runs. RecoveryJob reads such a copy back.
type Follower interface {
	Recoverer
	// MetadataCopies are the copies that servers are asked to keep, as the filesystem itself says now.
	MetadataCopies(in Input, seen Observation, now time.Time) []MetadataCopy
}

// StoreRecoverer is a Recoverer whose metadata is a store, which is put back from a backup as it is.
type StoreRecoverer interface {
	Recoverer
	StoreBackuper
}

// ServedRecoverer is a StoreRecoverer whose store lies on a disk of its own that only its server mounts, and not where status.metadata
// says. Its server is asked, once it serves again, whether all is in force that was put back.
type ServedRecoverer interface {
	StoreRecoverer
	StoreOnDisk
	// StoreRecord is where the store lies, in the form of status.metadata; nil while that is not on record. RecordStore records where it lies
	// from now on.
	StoreRecord(fs *v1alpha1.FileSystem) *v1alpha1.MetadataRecord
	RecordStore(fs *v1alpha1.FileSystem, is v1alpha1.MetadataRecord)
	// StoreStays says why the store is not lost, or can't be put back, as a sentence; empty when it may be.
	StoreStays(in Input) string
	// Comparison is the Job that compares what the server says with what was put back; nil while there is none to compare, or when nobody can,
	// which impossible says. RecordComparison records what came of it: what differs, empty when nothing does. ComparisonSays puts that into a
	// sentence.
	Comparison(in Input) (request *RecoveryRequest, impossible string)
	RecordComparison(fs *v1alpha1.FileSystem, differs string, now metav1.Time)
	ComparisonSays(fs *v1alpha1.FileSystem) string
}

// StoreOnDisk reads and writes a store by programs of the node, on a disk that is not mounted.
type StoreOnDisk interface {
	// StoreStrangers names what lies there that a disk which was made and never mounted does not have.
	StoreStrangers(run RunOnNode, device string) ([]string, error)
	// PutBackStore writes the files of a store, in place of whatever lies there, and reads them back. Work is a directory of the node that it
	// may make, and that is not there when it ends; place writes a file below it.
	PutBackStore(run RunOnNode, place func(path string, content []byte) error, device, work string, files map[string][]byte) error
	// CompareStore asks the server of the node, which serves the store, for what is in these files. An error says what differs.
	CompareStore(run RunOnNode, files map[string][]byte) error
}

// RecoveryMethod is how metadata is made from the files of a copy, by a program of the filesystem itself. Its methods are pure.
type RecoveryMethod interface {
	// Usable are those of the files of a daemon that metadata is made from, with the names that they need for Check.
	Usable(found []CopiedFile) map[string]string
	// Changed is when the last change was made that the end of such a file tells of; zero for a file that tells of none.
	Changed(name string, end []byte) time.Time
	// Changes, Check, Made and Memory are those of BackupMethod. What Check makes is what a server starts with.
	Changes(found []CopiedFile) ChangeLogs
	Check(in, work string) BackupProgram
	Made(head []byte) (BackupVersion, error)
	Memory(size int64) int64
}

// BackupProgram is a program with its configuration.
type BackupProgram struct {
	// Files are written before, by path.
	Files map[string]string
	Argv  []string
	// Makes is the name of the file that it makes.
	Makes string
}

// CopiedFile is a file that a Copy has written so far.
type CopiedFile struct {
	Name string
	Size int64
	// Head are the first bytes of it and End the last ones, at most BackupHead each.
	Head, End []byte
}

// ChangeLogs are files that have a change in each line, the oldest first.
type ChangeLogs struct {
	Names []string
	// Needed is false for a line with a change that the saved metadata beside the logs has already, and true for one that can't be understood.
	// It is nil where nothing was ever saved, so that all changes are needed.
	Needed func(line []byte) bool
}

// BackupHead is how many bytes of a file are looked at, at its beginning and at its end.
const BackupHead = 64

// BackupVersion is a state of the metadata, as the filesystem itself names it.
type BackupVersion struct {
	// Version counts the changes.
	Version int64
	// ID tells the metadata of one filesystem from that of others; empty where the filesystem does not say.
	ID string
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

// ServerMeasurer is a Backend whose servers can be measured on their own nodes, by tools of the nodes themselves (what benchmarks calls
// OnServers).
type ServerMeasurer interface {
	// MeasuresServers says whether a tool measures these servers.
	MeasuresServers(tool v1alpha1.BenchmarkTool) bool
	// MeasuredTargets are the targets of the servers of a role, by node, as the tools name them. A tool must be told them: it would measure
	// those of other filesystems as well. Of Input it reads FileSystem with its status, and FileSystemNodes.
	MeasuredTargets(in Input, role v1alpha1.Role) map[string][]string
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

// Selecting is a Backend that selects nodes for what it may do without.
type Selecting interface {
	// Selectors are those of the spec that may match no node, although what they are for is then not there.
	Selectors(fs *v1alpha1.FileSystem) []Selector
}

// Selector is a nodeSelector of a spec.
type Selector struct {
	// Field of the spec, and Costs, which says what is not there while it matches no node, in words that follow "so ".
	Field, Costs string
	Labels       v1alpha1.NodeSelector
	// Nodes are those that it selects, where others than those that match Labels; nil for these.
	Nodes func(fs *v1alpha1.FileSystem, nodes []Node) []Node
}

// Of are the nodes that the selector selects, in their order.
func (s Selector) Of(fs *v1alpha1.FileSystem, nodes []Node) []Node {
	if s.Nodes == nil {
		return Matching(nodes, s.Labels)
	}
	return s.Nodes(fs, nodes)
}

// Chooser is a Backend that chooses what the spec of its type leaves open.
type Chooser interface {
	// Choose adds to chosen what is open. Input has the FileSystem with what was chosen before, and asked is the spec as a person has
	// written it.
	Choose(in Input, asked *v1alpha1.FileSystemSpec, chosen *v1alpha1.ChosenStatus) error
}
