// Package spec is the contract between the operator and the node binary. It defines the tasks of a pod's container as a JSON file, which a
// backend renders into a ConfigMap or Secret and the node binary reads. It contains only types.
package spec

// Owner identifies the FileSystem that a directory belongs to.
type Owner struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Run is the spec of `node run`, which starts one daemon. The steps are: prove every directory, write the files, exec the command.
type Run struct {
	Owner Owner `json:"owner"`
	// Component is the daemon's role, such as "master" or "chunkserver".
	Component string `json:"component"`
	// User is the operating system user in the container's /etc/passwd that owns the daemon's data.
	User string `json:"user"`
	// Ledger is a root-owned file on the node that records the directories initialized there, such as
	// /var/lib/parallelfs/<ns>.<name>/ledger-<component>.json. A directory in the ledger that has no marker is refused: its disk is not
	// mounted, or was replaced.
	Ledger string `json:"ledger"`
	// Directories are proven in this order, and initialized if that is permitted.
	Directories []Directory `json:"directories"`
	// Daemon identifies this daemon among those of its filesystem on a node, such as "chunkserver/ssd" or "master".
	Daemon string `json:"daemon,omitempty"`
	// NodeFile is the path of a NodeFile, in which MemberName(Daemon) is the entry of this daemon. Without it, the daemon has the same
	// configuration on every node. The file may appear and change after the start of the pod, and the daemon waits for it.
	NodeFile string `json:"nodeFile,omitempty"`
	// OnTargets describes how the daemon uses the targets of its Member.
	OnTargets *OnTargets `json:"onTargets,omitempty"`
	// Files are written before the daemon starts.
	Files []File `json:"files"`
	// Command is the daemon with its arguments; the binary is searched for in PATH. $(NAME) is replaced as in File.
	Command []string `json:"command"`
	// Recover adds arguments to Command if a data file is missing, which indicates a crash instead of a clean stop.
	Recover *Recover `json:"recover,omitempty"`
	// Reload lists absolute paths of files that may change while the daemon runs, such as those of a mounted Secret. After a change the daemon
	// gets SIGHUP and reads its configuration again.
	Reload []string `json:"reload,omitempty"`
	// RDMA has the RDMA devices of the container opened before the daemon starts, which the log then says; nothing is opened where it is
	// empty. With RDMARequired, the daemon does not start without them.
	RDMA string `json:"rdma,omitempty"`
}

// The values of Run.RDMA.
const (
	RDMAAuto     = "Auto"
	RDMARequired = "Required"
)

// OnTargets says how a daemon uses its targets: each proven one gives a Directory, which is then treated like those of Run.
type OnTargets struct {
	// Directory is the subdirectory of a target's mountpoint that replaces Directory.Path, such as "chunkserver".
	Directory string `json:"directory"`
	// Data and Initialize are the fields of a Directory.
	Data       string      `json:"data"`
	Initialize *Initialize `json:"initialize,omitempty"`
	// All is true if the daemon must not start before every target is proven. Otherwise it starts with the proven ones, at least one.
	All bool `json:"all,omitempty"`
}

// Directory is one data directory of a daemon. Path itself stays owned by root and contains the marker file (MarkerFile). The data is in
// Path/Data, which belongs to the daemon's user.
type Directory struct {
	// Path is absolute, and the same in the container as on the node.
	Path string `json:"path"`
	// Data is the name of the subdirectory that the daemon uses, such as "data".
	Data string `json:"data"`
	// Initialize describes how an empty directory is made usable. Without it, an empty subdirectory is enough.
	Initialize *Initialize `json:"initialize,omitempty"`
}

// Initialize describes the one-time initialization of an empty directory.
type Initialize struct {
	// Granted is the operator's permission, which is true only until the initialization is recorded. Target.Granted is the same for one
	// target.
	Granted bool `json:"granted"`
	// Expected is true if the filesystem expects data here. Data of an earlier FileSystem of the same name may then be taken over, as with
	// Granted, and an empty directory means lost data. Target.Expected is the same for one target.
	Expected bool `json:"expected,omitempty"`
	// DataGlobs lists patterns (path.Match, inside Path/Data) of files that prove an earlier initialization.
	DataGlobs []string `json:"dataGlobs"`
	// Directories lists empty directories that are made inside Path/Data before the files.
	Directories []string `json:"directories,omitempty"`
	// Files lists the files that are written inside Path/Data, in this order.
	Files []InitialFile `json:"files,omitempty"`
	// Command, if set, makes the rest after the files, within 2 minutes and without a shell. It writes the file $(NEW) in a directory of its
	// own, and that file becomes Makes inside Path/Data. $(NAME) is replaced as in File.
	Command []string `json:"command,omitempty"`
	// Makes is the name of the file that Command makes.
	Makes string `json:"makes,omitempty"`
}

// InitialFile is a file of an empty filesystem. $(NAME) in Content is replaced as in File. On a target, Target.Variables come first.
type InitialFile struct {
	Name    string `json:"name"`
	Content string `json:"content"`
	// Identity is true for a file that identifies the directory. If this file of an initialized directory is missing or differs in more than
	// surrounding white space, the directory belongs to another daemon and is refused.
	Identity bool `json:"identity,omitempty"`
}

// Recover adds Arguments to a command, after the program's name, if File does not exist.
type Recover struct {
	// File is an absolute path, such as $(TARGET)/metadata.mfs. $(NAME) is replaced as in a File.
	File string `json:"file"`
	// Arguments are added; $(NAME) is replaced as in a File.
	Arguments []string `json:"arguments"`
}

// File is a file that is written with $(NAME) replaced by the value of NAME from Member.Variables or the environment, such as $(NODE_IP).
// An unset variable is an error. $(TARGET) is the data directory of a daemon's only target. $(TARGETS) lists the data directories of all
// proven targets in order, joined by commas. $(NODE_INTERFACE) is the name of the interface with the address $(NODE_IP).
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	// Line, if set, is added once for each proven target, in order, with $(TARGET) replaced by its data directory. For a target with Remove,
	// RemoveLine is used instead.
	Line       string `json:"line,omitempty"`
	RemoveLine string `json:"removeLine,omitempty"`
	// Mode holds the permission bits, such as 0o640. The file belongs to root and the group of the daemon's user.
	Mode uint32 `json:"mode"`
}

// MarkerFile is the name of the marker in a Directory's Path: root-owned, mode 0600, written before and after initialization.
const MarkerFile = ".parallelfs.json"

// MarkerVersion is the format version of a Marker that this program writes. It reads all versions up to this one.
const MarkerVersion = 1

// Marker is the content of MarkerFile.
type Marker struct {
	// Version is the format version: MarkerVersion.
	Version   int    `json:"version"`
	Owner     Owner  `json:"owner"`
	Component string `json:"component"`
	// State is Preparing from before the first write until the directory is initialized, then Initialized forever.
	State MarkerState `json:"state"`
	// Made is set while State is Preparing. It is the SHA-256, in hexadecimal, of the file that Initialize.Command made, and the only proof of
	// the file's identity.
	Made string `json:"made,omitempty"`
	// Restored is the hash of the plan by which lost metadata is being restored in this directory, or was.
	Restored string `json:"restored,omitempty"`
	// Time is the time at which the state was reached (RFC 3339).
	Time string `json:"time"`
}

// MarkerState is the progress of a directory's initialization.
type MarkerState string

// The states of a marker.
const (
	MarkerPreparing   MarkerState = "Preparing"
	MarkerInitialized MarkerState = "Initialized"
)

// Mount is the spec of `node mount`, which keeps a filesystem mounted. In `node configure` it describes a temporary mount.
type Mount struct {
	// Path is the mount point: absolute, and the same in the container as on the node.
	Path string `json:"path"`
	// View is the path of a second mount of the filesystem, by a bind mount: absolute, and the same in the container as on the node. Its
	// parent directory contains nothing else, so that a pod with this directory sees only this filesystem. It is empty if not needed.
	View string `json:"view,omitempty"`
	// FSType is the type in /proc/self/mountinfo, such as "fuse.mfs" or "fuse"; it matches the part before the first dot as a prefix.
	FSType string `json:"fsType"`
	// Source is a prefix of the mount source that identifies this filesystem, such as "mfs#10.0.0.1:9421". It is empty if the type has none.
	Source string `json:"source,omitempty"`
	// Command mounts in the foreground and ends when the filesystem is unmounted. $(NAME) is replaced as in File.
	Command []string `json:"command"`
	// Volume is true for a volume that Kubernetes has mounted, of any type and source.
	Volume bool `json:"volume,omitempty"`
	// Kernel is true when the filesystem is the kernel's own: Command then ends with exit code 0 as soon as it is mounted.
	Kernel bool `json:"kernel,omitempty"`
	// Files are written each time before Command runs. In them, $(FREE_PORT) is FreePort, or the first UDP port above it that is free on the
	// node. If servers call back a filesystem's clients, each mount needs a port of its own.
	Files []File `json:"files,omitempty"`
	// FreePort is the start of the search for $(FREE_PORT), which ends after 4 ports.
	FreePort int32 `json:"freePort,omitempty"`
	// Host runs Command on the node (OnNode), whose own program mounts. Path must then be a directory of the node whose mounts propagate.
	Host bool `json:"host,omitempty"`
	// Network, if set, is brought up before Command runs. It needs Host.
	Network *KernelNetwork `json:"network,omitempty"`
	// Evictions, if set, describes how to count the evictions of this client by servers. It needs Host.
	Evictions *Evictions `json:"evictions,omitempty"`
	// Modules holds this program's own information about kernel modules, to report missing ones. It is in no file.
	Modules []KernelModule `json:"-"`
}

// Evictions describes how to query a kernel filesystem for evictions of this client, which lose data that was not sent yet.
type Evictions struct {
	// Argv is run on the node. Each match of Pattern (RE2) in its output is one eviction; the text of the match contains the time, so that
	// none is counted twice.
	Argv    []string `json:"argv"`
	Pattern string   `json:"pattern"`
}

// Configure is the spec of `node configure`, which mounts a filesystem at a private path, runs commands in it and unmounts it.
type Configure struct {
	// Mount is nil for commands that need no mount.
	Mount *Mount `json:"mount,omitempty"`
	// Quiet is nil if the activity of clients does not matter.
	Quiet *Quiet `json:"quiet,omitempty"`
	// Commands are run in this order, without a shell.
	Commands []Command `json:"commands"`
	// Host runs Commands on the node (OnNode).
	Host bool `json:"host,omitempty"`
}

// Quiet restricts `node configure` to run commands only while no other client has files open on a server, and describes how to check this.
// The client that was mounted for the commands does not count.
type Quiet struct {
	// Server is the name of the queried server for people, such as "storage server 3".
	Server string `json:"server"`
	// Clients is the command that lists all clients. Each match of Client in its output is a client, with the groups id and name.
	Clients []string `json:"clients"`
	Client  string   `json:"client"`
	// Open is the command that lists the clients with open files on the server. Each match of Session in its output is a client, with the
	// groups id and files; files is the number of open files. Output without a match of Answered is no answer.
	Open     []string `json:"open"`
	Session  string   `json:"session"`
	Answered string   `json:"answered"`
	// Also lists more servers to query in the same way. A file that a client has opened on one of them is open, whatever Server reports about
	// it.
	Also []QuietServer `json:"also,omitempty"`
}

// QuietServer is one more server of a Quiet: its name for people, and the command that lists the clients with open files there.
type QuietServer struct {
	Server string   `json:"server"`
	Open   []string `json:"open"`
}

// Command is one command of a Configure. A failure ends all, unless MayFail is set.
type Command struct {
	Argv    []string `json:"argv"`
	MayFail bool     `json:"mayFail,omitempty"`
	// Proof is a regular expression. If it is set, the command has succeeded if and only if it ended by itself and its last output matches,
	// whatever its exit code is.
	Proof string `json:"proof,omitempty"`
	// TimeoutSeconds limits the command; 0 means 60 seconds, -1 means no limit.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
}

// Manage is the spec of `node manage`, which runs programs of the filesystem's own tools, one after the other.
type Manage struct {
	Calls []ManageCall `json:"calls"`
	// TimeoutSeconds limits all calls except those with Always; the exit code is then 124.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	// Host makes the calls on the node (OnNode).
	Host bool `json:"host,omitempty"`
}

// ManageCall is a call of one program. A failed call ends all, unless MayFail is set.
type ManageCall struct {
	// Name names the work that the call completes. The output of its last try is shown before the line "parallelfs: <name> has ended". Without
	// a name, the output is shown only if the call fails.
	Name string `json:"name,omitempty"`
	// Argv is run without a shell.
	Argv []string `json:"argv"`
	// While repeats the call every two seconds as long as a line of its output matches (RE2).
	While string `json:"while,omitempty"`
	// Fails makes the call a failure if a line of its output matches (RE2), whatever its exit code is.
	Fails string `json:"fails,omitempty"`
	// Always makes the call even after a failure, a timeout or a stop, for cleanups.
	Always bool `json:"always,omitempty"`
	// MayFail continues after a failure.
	MayFail bool `json:"mayFail,omitempty"`
}

// Check is the spec of `node check`: the filesystem's own tools to run, one after the other. None of them changes anything.
type Check struct {
	// Backend is the filesystem type, whose backend parses the output of the tools of its Version.
	Backend  string     `json:"backend"`
	Version  string     `json:"version"`
	Commands [][]string `json:"commands"`
	// Host runs Commands on the node (OnNode).
	Host bool `json:"host,omitempty"`
}

// CheckAnswer is the result of `node check`, printed as one line of JSON.
type CheckAnswer struct {
	// Done is true if the tools have completed.
	Done bool `json:"done"`
	// Findings counts the faults by kind.
	Findings []CheckFinding `json:"findings,omitempty"`
	// Message describes what was checked and what to do about the findings, or why the check did not complete. It has no period at the end.
	Message string `json:"message,omitempty"`
}

// CheckFinding is a kind of damage, with the number of occurrences.
type CheckFinding struct {
	What  string `json:"what"`
	Count int64  `json:"count"`
}

// AwaitEmpty is the spec of `node await-empty`, which waits until a drained target holds no data, and then ends with exit code 0.
type AwaitEmpty struct {
	Owner Owner `json:"owner"`
	// Target is proven first, as for a daemon.
	Target Target `json:"target"`
	// Directories lists absolute paths of directories that must contain no file at any depth; empty directories don't count. A missing one is
	// an error.
	Directories []string `json:"directories"`
}

// Probe is the spec of `node probe`: what to query, and where to serve the answer.
type Probe struct {
	// Backend is the filesystem's spec.type, whose backend supplies the queries.
	Backend string `json:"backend"`
	// Version is the version of the filesystem, which determines the format of its answers.
	Version string `json:"version"`
	// Address is the host and port of the filesystem's management. If each node is queried by itself (Host), it is the source that clients
	// mount, such as "10.0.0.1@tcp:/scratch".
	Address string `json:"address"`
	// Listen is the host and port to serve /state (JSON of backend.Answer), /metrics, /healthz and /readyz on; $(NAME) is replaced as in File.
	Listen string `json:"listen"`
	// KeyFile contains the key that signs answers. It is read for each answer, because it may change.
	KeyFile string `json:"keyFile"`
	// FileSystem is in the labels of the metrics, and its uid is in each answer.
	FileSystem Owner `json:"fileSystem"`
	// IntervalSeconds is the pause between two queries of the filesystem while the probe gets no requests.
	IntervalSeconds int `json:"intervalSeconds"`
	// Host queries the node: its own programs (OnNode) report what its kernel serves. The answer is about that node only.
	Host bool `json:"host,omitempty"`
	// Store, if set, is served to clients with a secret, for backups.
	Store *Store `json:"store,omitempty"`
}

// Store is the directory with the filesystem's metadata as plain files, kept by a daemon in the probe's pod. If programs of the node copy
// it, only SecretFile is set.
type Store struct {
	// NodeFile lists the first target of Member, and OnTargets the directory on it, as in Run.
	NodeFile  string    `json:"nodeFile"`
	Member    string    `json:"member"`
	OnTargets OnTargets `json:"onTargets"`
	// SecretFile contains the secret that clients must prove.
	SecretFile string `json:"secretFile"`
	// Skip lists patterns of file names that don't belong to the store, such as temporary files.
	Skip []string `json:"skip,omitempty"`
}

// BenchmarkHome is the directory, below that of a storage pool, that contains the directories of all benchmark runs. A backend creates it
// so that a removed file frees its space at once.
const BenchmarkHome = ".parallelfs-benchmarks"

// Benchmark is the spec of `node bench`: one repetition of one point.
type Benchmark struct {
	// Mount must be mounted (FSType and Source as in Mount; Command unused) before anything is written.
	Mount Mount `json:"mount"`
	// Root is the run's own directory in the filesystem, such as /mnt/scratch/ssd/.parallelfs-benchmarks/<uid>.
	Root string `json:"root"`
	// Directory is the fresh directory of this repetition, below Root; the tool's working directory. It is removed afterwards.
	Directory string `json:"directory"`
	// KeepBefore keeps the content of Directory from an earlier step. The directory must exist.
	KeepBefore bool `json:"keepBefore,omitempty"`
	// KeepAfter keeps Directory for the next step if the tool succeeded.
	KeepAfter bool `json:"keepAfter,omitempty"`
	// Argv is the tool's command. In it, in Files and in Stdin, $(DIRECTORY), $(RANK), $(HOSTS_FILE) and $(LAUNCHER_IP) are replaced, as
	// benchmarks.Command says.
	Argv []string `json:"argv"`
	// Env is added to the tool's environment, NAME=value.
	Env []string `json:"env,omitempty"`
	// Stdin is the tool's standard input.
	Stdin string `json:"stdin,omitempty"`
	// TimeoutSeconds limits the tool. After that it is ended with exit code 124 and a line about it.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	// Ranks, if set, makes the launcher start the tool with mpirun.
	Ranks *Ranks `json:"ranks,omitempty"`
	// Placement is the number of processes on each worker, in the order of the MPI operator's host file.
	Placement []int `json:"placement,omitempty"`
	// Files are written before the tool is started.
	Files []BenchmarkFile `json:"files,omitempty"`
	// NeedBytes and NeedInodes must be free on the filesystem. Otherwise a client, worker or process does not start the tool, and its exit
	// code is bench.NoRoom (28). 0 means no check, and a step with KeepBefore checks nothing.
	NeedBytes  int64 `json:"needBytes,omitempty"`
	NeedInodes int64 `json:"needInodes,omitempty"`
	// Targets holds the names of each server's targets by its node (bench local); those of this node replace $(TARGETS). ForEachTarget starts
	// the tool once for each target, all at the same time.
	Targets       map[string][]string `json:"targets,omitempty"`
	ForEachTarget bool                `json:"forEachTarget,omitempty"`
	// Programs must be in the image (bench check), or on the node (bench local). Users must be in its /etc/passwd.
	Programs []string `json:"programs,omitempty"`
	Users    []string `json:"users,omitempty"`
	// VersionArgv prints the version of the tool (bench check).
	VersionArgv []string `json:"versionArgv,omitempty"`
}

// Ranks makes a launcher start the processes in Placement.
type Ranks struct {
	// Each wraps every process in `bench rank`: a separate directory, standard input, and a prefix before each line.
	Each bool `json:"each,omitempty"`
}

// BenchmarkFile is a file that a tool reads; see benchmarks.File.
type BenchmarkFile struct {
	Path       string `json:"path,omitempty"`
	Text       string `json:"text,omitempty"`
	PerHost    string `json:"perHost,omitempty"`
	PerProcess string `json:"perProcess,omitempty"`
	End        string `json:"end,omitempty"`
}

// Checked is the result of `node bench check`, printed as one line of JSON.
type Checked struct {
	// Version is the first line of the output of VersionArgv; empty without output.
	Version string `json:"version,omitempty"`
	// MissingPrograms and MissingUsers list what the image lacks.
	MissingPrograms []string `json:"missingPrograms,omitempty"`
	MissingUsers    []string `json:"missingUsers,omitempty"`
	// FreeBytes and FreeInodes are reported by the mounted filesystem (statfs(2)). FreeInodes is -1 if it does not count inodes.
	FreeBytes  int64 `json:"freeBytes"`
	FreeInodes int64 `json:"freeInodes"`
	// Problem explains why the filesystem could not be queried.
	Problem string `json:"problem,omitempty"`
	// Kernel and CPUs are those of the node, and Mounted is the type and the options of the mount; of a volume only.
	Kernel  string `json:"kernel,omitempty"`
	CPUs    int    `json:"cpus,omitempty"`
	Mounted string `json:"mounted,omitempty"`
}
