// Package spec is the contract between the operator and the node binary: what a pod's container is told to do, as a
// JSON file that a backend renders into a ConfigMap or Secret and the node binary reads. It holds types only.
package spec

// Owner identifies the FileSystem that a directory belongs to.
type Owner struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Run tells `node run` how to start one daemon. The steps are: prove every directory, write the files, exec the command.
type Run struct {
	Owner Owner `json:"owner"`
	// Component is the daemon's role, such as "master" or "chunkserver".
	Component string `json:"component"`
	// User is the name of the operating system user, in the container's /etc/passwd, that owns the daemon's data.
	User string `json:"user"`
	// Ledger is a root-owned file on the node, such as /var/lib/parallelfs/<ns>.<name>/ledger-<component>.json, that
	// records which directories were initialized on this node. A directory in the ledger that is found without its
	// marker is refused: its disk is not mounted, or was replaced.
	Ledger string `json:"ledger"`
	// Directories are proven, and initialized where that is allowed, in this order.
	Directories []Directory `json:"directories"`
	// Daemon names this one among those of its filesystem on a node, such as "chunkserver/ssd" or "master".
	Daemon string `json:"daemon,omitempty"`
	// NodeFile is the path of the file that holds a NodeFile, in which MemberName(Daemon) is what this daemon is told; without it, nothing
	// differs from node to node. It may appear, and change, after the pod has started: the daemon waits for it.
	NodeFile string `json:"nodeFile,omitempty"`
	// OnTargets says how the daemon uses the targets of its Member.
	OnTargets *OnTargets `json:"onTargets,omitempty"`
	// Files are written before the daemon starts.
	Files []File `json:"files"`
	// Command is the daemon with its arguments; the binary is found in PATH. $(NAME) is replaced as in File.
	Command []string `json:"command"`
	// Recover adds arguments to Command when a file of the data is missing, which tells a crash from a clean stop.
	Recover *Recover `json:"recover,omitempty"`
	// Reload are absolute paths of files, such as those of a mounted Secret, that may change while the daemon runs: it then gets SIGHUP, and
	// reads its configuration anew.
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
	// Directory is the subdirectory of a target's mountpoint that takes the place of Directory.Path, such as "chunkserver".
	Directory string `json:"directory"`
	// Data and Initialize are those of a Directory.
	Data       string      `json:"data"`
	Initialize *Initialize `json:"initialize,omitempty"`
	// All is true when the daemon must not start before every target is proven; else it starts with those that are, one at least.
	All bool `json:"all,omitempty"`
}

// Directory is one directory that a daemon keeps data in. Path itself stays root's and holds the marker file
// (MarkerFile); the data lies in Path/Data, which belongs to the daemon's user.
type Directory struct {
	// Path is absolute, and the same in the container as on the node.
	Path string `json:"path"`
	// Data is the name of the subdirectory that the daemon uses, such as "data".
	Data string `json:"data"`
	// Initialize says how an empty directory becomes a usable one. Without it, an empty subdirectory is enough.
	Initialize *Initialize `json:"initialize,omitempty"`
}

// Initialize says how an empty directory is initialized, once.
type Initialize struct {
	// Granted is the operator's permission: true only until it has recorded that the directory was initialized. Target.Granted is
	// the same for one target.
	Granted bool `json:"granted"`
	// Expected is true when the filesystem remembers data here: what an earlier FileSystem of the same name has left may be taken over,
	// as with Granted, and an empty directory is lost data. Target.Expected is the same for one target.
	Expected bool `json:"expected,omitempty"`
	// DataGlobs are the patterns (path.Match, inside Path/Data) of files that mean that the directory was initialized.
	DataGlobs []string `json:"dataGlobs"`
	// Directories are made, empty, inside Path/Data, before the files.
	Directories []string `json:"directories,omitempty"`
	// Files are written inside Path/Data, in this order.
	Files []InitialFile `json:"files,omitempty"`
	// Command, if set, makes the rest, after the files, within 2 minutes and without a shell: it writes the file $(NEW), in a
	// directory that it has for itself, which then becomes Makes, inside Path/Data. $(NAME) is replaced as in File.
	Command []string `json:"command,omitempty"`
	// Makes is the name of the file that Command makes.
	Makes string `json:"makes,omitempty"`
}

// InitialFile is a file of an empty filesystem. $(NAME) in Content is replaced as in File, on a target by Target.Variables first.
type InitialFile struct {
	Name    string `json:"name"`
	Content string `json:"content"`
	// Identity is true for a file that says who the directory is. An initialized directory in which it is missing, or says something
	// else, but for white space at its ends, belongs to another daemon, and is refused.
	Identity bool `json:"identity,omitempty"`
}

// Recover adds Arguments to a command, behind the program's name, when File is not there.
type Recover struct {
	// File is an absolute path, such as $(TARGET)/metadata.mfs. $(NAME) is replaced as in a File.
	File string `json:"file"`
	// Arguments are added; $(NAME) is replaced as in a File.
	Arguments []string `json:"arguments"`
}

// File is written with $(NAME) replaced by the value of NAME: of Member.Variables, or of the environment, such as $(NODE_IP).
// A variable that is not set is an error. $(TARGET) is the data directory of the only target of a daemon that has one, $(TARGETS)
// those of all proven targets, in order, joined by commas. $(NODE_INTERFACE) is the name of the interface that has the address $(NODE_IP).
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	// Line, if set, is added once for each proven target, in order, with $(TARGET) replaced by its data directory;
	// RemoveLine takes its place for a target with Remove.
	Line       string `json:"line,omitempty"`
	RemoveLine string `json:"removeLine,omitempty"`
	// Mode is the permission bits, such as 0o640. The file belongs to root and the group of the daemon's user.
	Mode uint32 `json:"mode"`
}

// MarkerFile is the name of the marker in a Directory's Path: root-owned, mode 0600, written before and after initialization.
const MarkerFile = ".parallelfs.json"

// MarkerVersion is the version of the form of a Marker that this program writes; it reads all up to this one.
const MarkerVersion = 1

// Marker is the content of MarkerFile.
type Marker struct {
	// Version is that of the form: MarkerVersion.
	Version   int    `json:"version"`
	Owner     Owner  `json:"owner"`
	Component string `json:"component"`
	// State is Preparing from before the first write until the directory is initialized, then Initialized for ever.
	State MarkerState `json:"state"`
	// Made is, while State is Preparing, the SHA-256 of the file that Initialize.Command made, in hexadecimal: by it alone the
	// file is known to be no other one.
	Made string `json:"made,omitempty"`
	// Restored is the hash of the plan by which lost metadata is made in this directory, or was.
	Restored string `json:"restored,omitempty"`
	// Time is when the state was reached (RFC 3339).
	Time string `json:"time"`
}

// MarkerState is how far the initialization of a directory is.
type MarkerState string

// The states of a marker.
const (
	MarkerPreparing   MarkerState = "Preparing"
	MarkerInitialized MarkerState = "Initialized"
)

// Mount tells `node mount` how to keep a filesystem mounted, and `node configure` how to mount it for a moment.
type Mount struct {
	// Path is the mount point: absolute, and the same in the container as on the node.
	Path string `json:"path"`
	// View is a second place where the filesystem is mounted, by a bind mount: absolute, and the same in the container as on the node. Its
	// directory holds nothing else, so that a pod that has this directory sees this filesystem only. Empty when nobody needs it.
	View string `json:"view,omitempty"`
	// FSType is what /proc/self/mountinfo shows for it, such as "fuse.mfs" or "fuse"; a prefix match on the part before the first dot.
	FSType string `json:"fsType"`
	// Source is a prefix of the mount source that proves that it is this filesystem, such as "mfs#10.0.0.1:9421"; empty
	// when the type has none.
	Source string `json:"source,omitempty"`
	// Command mounts in the foreground and ends when the filesystem is unmounted. $(NAME) is replaced as in File.
	Command []string `json:"command"`
	// Volume is true for a volume that Kubernetes has mounted, of any type and source.
	Volume bool `json:"volume,omitempty"`
	// Kernel is true when the filesystem is the kernel's own: Command then ends with exit code 0 as soon as it is mounted.
	Kernel bool `json:"kernel,omitempty"`
	// Files are written before Command runs, each time. $(FREE_PORT), in them, is FreePort, or the first UDP port above it that is
	// free on the node: each mount of a filesystem whose clients are called back has one of its own.
	Files []File `json:"files,omitempty"`
	// FreePort is where the search for $(FREE_PORT) begins; it ends after 4 ports.
	FreePort int32 `json:"freePort,omitempty"`
	// Host runs Command on the node (OnNode), whose own program mounts: Path must be a directory of the node that mounts propagate from.
	Host bool `json:"host,omitempty"`
	// Network, where set, is brought up before Command runs. It needs Host.
	Network *KernelNetwork `json:"network,omitempty"`
	// Evictions, where set, is how it is asked how often servers have given this client up. It needs Host.
	Evictions *Evictions `json:"evictions,omitempty"`
	// Modules are what the program itself knows of modules of the kernel, to say which is missing. They are in no file.
	Modules []KernelModule `json:"-"`
}

// Evictions is how a filesystem of the kernel is asked how often its servers have given this client up, with what it had not sent them yet.
type Evictions struct {
	// Argv is run on the node. Each match of Pattern (RE2) in what it prints is one; its text says when it was, so that none counts twice.
	Argv    []string `json:"argv"`
	Pattern string   `json:"pattern"`
}

// Configure tells `node configure` to mount a filesystem at a private path, run commands in it and unmount it.
type Configure struct {
	// Mount is nil for commands that need no mount.
	Mount *Mount `json:"mount,omitempty"`
	// Quiet is nil when it does not matter what clients do meanwhile.
	Quiet *Quiet `json:"quiet,omitempty"`
	// Commands are run in this order, without a shell.
	Commands []Command `json:"commands"`
	// Host runs Commands on the node (OnNode).
	Host bool `json:"host,omitempty"`
}

// Quiet tells `node configure` to run commands only while no other client has files open on a server, and how that is seen. The client that
// was mounted for the commands is not meant.
type Quiet struct {
	// Server is the server that is asked, for people, such as "storage server 3".
	Server string `json:"server"`
	// Clients is the command that lists all clients. Each match of Client in what it prints is one, with the groups id and name.
	Clients []string `json:"clients"`
	Client  string   `json:"client"`
	// Open is the command that lists who has files open on the server. Each match of Session in what it prints is a client, with the groups
	// id and files, which is their number. What has no match of Answered is no answer.
	Open     []string `json:"open"`
	Session  string   `json:"session"`
	Answered string   `json:"answered"`
	// Also are more servers that are asked the same, with answers of the same form: a client that has opened a file on one of them has it
	// open, whatever Server knows of it.
	Also []QuietServer `json:"also,omitempty"`
}

// QuietServer is one more server of a Quiet: its name for people, and the command that lists who has files open there.
type QuietServer struct {
	Server string   `json:"server"`
	Open   []string `json:"open"`
}

// Command is one command of a Configure. A failure ends the whole, unless MayFail.
type Command struct {
	Argv    []string `json:"argv"`
	MayFail bool     `json:"mayFail,omitempty"`
	// TimeoutSeconds ends the command; 0 is 60 seconds, -1 is never.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
}

// Manage tells `node manage` which programs of the filesystem's own tools to run, one after the other.
type Manage struct {
	Calls []ManageCall `json:"calls"`
	// TimeoutSeconds ends them, but for those that are made always, with exit code 124.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	// Host makes the calls on the node (OnNode).
	Host bool `json:"host,omitempty"`
}

// ManageCall is one program. A call that fails ends the whole, unless MayFail.
type ManageCall struct {
	// Name of what it ends; what it prints, in its last try, is then shown, before the line "parallelfs: <name> has ended". Without a name,
	// what it prints is shown only when it fails.
	Name string `json:"name,omitempty"`
	// Argv is run without a shell.
	Argv []string `json:"argv"`
	// While repeats it every two seconds as long as a line of what it prints matches (RE2).
	While string `json:"while,omitempty"`
	// Fails makes it a failure when a line of what it prints matches (RE2), whatever its exit code.
	Fails string `json:"fails,omitempty"`
	// Always makes the call although one before has failed, the time is over, or the process is told to end: for what tidies up.
	Always bool `json:"always,omitempty"`
	// MayFail goes on after a failure.
	MayFail bool `json:"mayFail,omitempty"`
}

// Check tells `node check` which of the filesystem's own tools to run, one after the other. None of them changes anything.
type Check struct {
	// Backend names the filesystem type, which reads what the tools of its Version print.
	Backend  string     `json:"backend"`
	Version  string     `json:"version"`
	Commands [][]string `json:"commands"`
	// Host runs Commands on the node (OnNode).
	Host bool `json:"host,omitempty"`
}

// CheckAnswer is what `node check` prints, as one line of JSON.
type CheckAnswer struct {
	// Done is true when the tools have looked at all that they look at.
	Done bool `json:"done"`
	// Findings count what is wrong, by kind.
	Findings []CheckFinding `json:"findings,omitempty"`
	// Message says what was looked at and what to do about the findings, or why the tools have not looked at all. No period is at its end.
	Message string `json:"message,omitempty"`
}

// CheckFinding is a kind of damage, and how often it was found.
type CheckFinding struct {
	What  string `json:"what"`
	Count int64  `json:"count"`
}

// AwaitEmpty tells `node await-empty` to wait until a drained target holds no data, and to end with exit code 0 then.
type AwaitEmpty struct {
	Owner Owner `json:"owner"`
	// Target is proven, as for a daemon, before anything is believed of it.
	Target Target `json:"target"`
	// Directories, absolute, must hold no file, at any depth; empty directories are no data. One that is not there is an error.
	Directories []string `json:"directories"`
}

// Probe tells `node probe` what to ask and where to serve the answer.
type Probe struct {
	// Backend names the filesystem type, which is its spec.type; the questions of that backend are asked.
	Backend string `json:"backend"`
	// Version is the version of the filesystem, which decides the form of its answers.
	Version string `json:"version"`
	// Address is the host and port that the filesystem's management answers on; or, for one that each node is asked for itself (Host), what
	// its clients mount, such as "10.0.0.1@tcp:/scratch".
	Address string `json:"address"`
	// Listen is the host and port, in which $(NAME) is replaced as in File, to serve /state (JSON of backend.Answer), /metrics, /healthz and
	// /readyz on.
	Listen string `json:"listen"`
	// KeyFile holds the key that answers are signed with. It is read for each answer, because it may change.
	KeyFile string `json:"keyFile"`
	// FileSystem labels the metrics, and its uid stands in each answer.
	FileSystem Owner `json:"fileSystem"`
	// IntervalSeconds is the pause between two questions to the filesystem while nobody asks the probe.
	IntervalSeconds int `json:"intervalSeconds"`
	// Host asks the node: its own programs, on the node (OnNode), say what its kernel serves. The answer is about that node only.
	Host bool `json:"host,omitempty"`
	// Store, where set, is handed out to who knows a secret, for backups.
	Store *Store `json:"store,omitempty"`
}

// Store is the directory in which a daemon beside the probe keeps the filesystem's metadata as plain files. Where programs of the node copy
// it, only SecretFile is set.
type Store struct {
	// NodeFile names the first target of Member, and OnTargets the directory there, as in Run.
	NodeFile  string    `json:"nodeFile"`
	Member    string    `json:"member"`
	OnTargets OnTargets `json:"onTargets"`
	// SecretFile holds the secret that who asks has to know.
	SecretFile string `json:"secretFile"`
	// Skip are patterns of names of files that are no part of it, such as temporary ones.
	Skip []string `json:"skip,omitempty"`
}

// BenchmarkHome is the directory, in that of a storage pool, that holds the directories of all benchmark runs. A backend
// makes it such that a removed file gives its space back at once.
const BenchmarkHome = ".parallelfs-benchmarks"

// Benchmark tells `node bench` how to run one repetition of one point.
type Benchmark struct {
	// Mount must be mounted (FSType and Source as in Mount; Command unused) before anything is written.
	Mount Mount `json:"mount"`
	// Root is the run's own directory in the filesystem, such as /mnt/scratch/ssd/.parallelfs-benchmarks/<uid>.
	Root string `json:"root"`
	// Directory is the fresh directory of this repetition, below Root; the tool's working directory. It is removed afterwards.
	Directory string `json:"directory"`
	// KeepBefore leaves what is in Directory, and it must be there: an earlier step made it.
	KeepBefore bool `json:"keepBefore,omitempty"`
	// KeepAfter leaves it there for the next step, when the tool has ended well.
	KeepAfter bool `json:"keepAfter,omitempty"`
	// Argv is the tool's command. In it, in Files and in Stdin, $(DIRECTORY), $(RANK), $(HOSTS_FILE) and $(LAUNCHER_IP) are replaced, as
	// benchmarks.Command says.
	Argv []string `json:"argv"`
	// Env is added to the tool's environment, NAME=value.
	Env []string `json:"env,omitempty"`
	// Stdin is given to the tool.
	Stdin string `json:"stdin,omitempty"`
	// TimeoutSeconds ends the tool, with exit code 124 and a line that says so.
	TimeoutSeconds int64 `json:"timeoutSeconds"`
	// Ranks, if set, tells the launcher to start the tool with mpirun.
	Ranks *Ranks `json:"ranks,omitempty"`
	// Placement is the number of processes on each worker, in the order of the MPI operator's host file.
	Placement []int `json:"placement,omitempty"`
	// Files are written before the tool is started.
	Files []BenchmarkFile `json:"files,omitempty"`
	// NeedBytes and NeedInodes must be free on the filesystem, or the tool is not started, and the exit code is bench.NoRoom (28), of a
	// client, a worker or a process; 0 asks for nothing, and so does a step with KeepBefore.
	NeedBytes  int64 `json:"needBytes,omitempty"`
	NeedInodes int64 `json:"needInodes,omitempty"`
	// Targets are the names of the targets of each server, by its node (bench local); those of this node take the place of $(TARGETS).
	// ForEachTarget starts the tool once for each of them, all at once.
	Targets       map[string][]string `json:"targets,omitempty"`
	ForEachTarget bool                `json:"forEachTarget,omitempty"`
	// Programs must be in the image (bench check), or on the node (bench local). Users must be in its /etc/passwd.
	Programs []string `json:"programs,omitempty"`
	Users    []string `json:"users,omitempty"`
	// VersionArgv prints the version of the tool (bench check).
	VersionArgv []string `json:"versionArgv,omitempty"`
}

// Ranks tells a launcher to start one process for each of Placement.
type Ranks struct {
	// Each wraps every process in `bench rank`: a directory of its own, standard input, and a prefix before each line.
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

// Checked is what `node bench check` prints, as one line of JSON.
type Checked struct {
	// Version is the first line that VersionArgv printed, empty when it printed nothing.
	Version string `json:"version,omitempty"`
	// MissingPrograms and MissingUsers are those that the image lacks.
	MissingPrograms []string `json:"missingPrograms,omitempty"`
	MissingUsers    []string `json:"missingUsers,omitempty"`
	// FreeBytes and FreeInodes are what the mounted filesystem says of itself (statfs(2)); FreeInodes is -1 when it counts none.
	FreeBytes  int64 `json:"freeBytes"`
	FreeInodes int64 `json:"freeInodes"`
	// Problem says why the filesystem could not be asked.
	Problem string `json:"problem,omitempty"`
	// Kernel and CPUs are those of the node, and Mounted is the type and the options of the mount; of a volume only.
	Kernel  string `json:"kernel,omitempty"`
	CPUs    int    `json:"cpus,omitempty"`
	Mounted string `json:"mounted,omitempty"`
}
