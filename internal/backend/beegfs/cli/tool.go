package cli

import (
	"fmt"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// Tool makes the command lines of beegfs-ctl (BeeGFS 7; ctl/source/modes of 7.4.6) or beegfs (BeeGFS 8; ctl/internal/cmd of 8.3.1). Both
// run as root, and need a mount only for migrate.
type Tool struct {
	eight bool
	base  []string
}

// NewTool is the tool for a version. That of BeeGFS 8 gets the address of the management service's gRPC, after TLSPrefix if that has a
// certificate; that of BeeGFS 7 reads it from ClientConfig.
func NewTool(version, address string) Tool {
	if !Is8(version) {
		return Tool{base: []string{programCtl, "--cfgFile=" + ClientConfig}}
	}
	return Tool{eight: true, base: append([]string{programTool}, connection8(address)...)}
}

// connection8 are the options of beegfs 8 that say where the management service is and what proves that it is the right one.
//
// The host of --mgmtd-addr is the name that the certificate must have (credentials.NewTLS of grpc-go 1.73). The tool trusts the
// certificates of --tls-cert-file besides those of its system (NewClientConn in common/beegfs/beegrpc/grpc.go of 8.0.0 to 8.4.0). It sends
// the shared secret in the header of each call, and so only after the handshake has proven the server. Without --tls-cert-file, it would
// read /etc/beegfs/cert.pem.
func connection8(address string) []string {
	address, tls := strings.CutPrefix(address, TLSPrefix)
	proof := "--tls-disable"
	if tls {
		proof = "--tls-cert-file=" + TrustFile
	}
	return []string{"--mgmtd-addr=" + address, "--auth-file=" + AuthFile, proof}
}

// Bare is the tool for a version without its path and without the address of a filesystem: its command lines are the same in every
// filesystem.
func Bare(version string) Tool { return Tool{eight: Is8(version)} }

const (
	programCtl  = "/opt/beegfs/sbin/beegfs-ctl"
	programTool = "/opt/beegfs/sbin/beegfs"
	programFsck = "/opt/beegfs/sbin/beegfs-fsck"
	// TrustName is the file of the ConfigMap with the certificates that prove the management service of BeeGFS 8, in PEM.
	TrustName = "management-trust.pem"
	// TrustFile is the path of it.
	TrustFile = podspec.ToldDirectory + "/" + TrustName
	// ClientConfig is the configuration that beegfs-ctl shares with clients.
	ClientConfig = podspec.ToldDirectory + "/beegfs-client.conf"
	// AuthDirectory holds the shared secret in every pod, in the file AuthKey.
	AuthDirectory = "/etc/parallelfs-auth"
	// AuthKey holds the shared secret: all its bytes are the secret, so that nothing may follow them, not even a newline.
	AuthKey = "conn.auth"
	// AuthFile is the path of the shared secret.
	AuthFile = AuthDirectory + "/" + AuthKey
	// DefaultPoolID is BeeGFS's own number of the pool that always exists (StoragePoolStore::DEFAULT_POOL_ID of 7.4.6).
	DefaultPoolID = 1
)

// Is8 is true for a BeeGFS 8, whose management service and command line tool are not the programs of 7.
func Is8(version string) bool { return strings.HasPrefix(version, "8.") }

// Run returns a command line of the tool.
func (t Tool) Run(arguments ...string) []string {
	return append(append([]string{}, t.base...), arguments...)
}

// unmounted returns a command line for a path from the root of the filesystem, which need not be mounted.
func (t Tool) unmounted(arguments ...string) []string {
	if t.eight {
		return t.Run(append([]string{"--mount=none"}, arguments...)...)
	}
	return t.Run(append(arguments, "--unmounted")...)
}

// numbers formats a list of numbers for the tool: of metadata ("m") or storage ("s").
func (t Tool) numbers(kind string, ids ...int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = strconv.Itoa(int(id))
		if t.eight {
			out[i] = kind + ":" + out[i]
		}
	}
	return strings.Join(out, ",")
}

// AddPool makes a storage pool.
func (t Tool) AddPool(id int32, name string) []string {
	if t.eight {
		return t.Run("pool", "create", name, fmt.Sprintf("--num-id=%d", id))
	}
	return t.Run("--addstoragepool", fmt.Sprintf("--id=%d", id), "--desc="+name)
}

// RenamePool gives a pool another name: the default one has a name of BeeGFS's own.
func (t Tool) RenamePool(id int32, name string) []string {
	if t.eight {
		return t.Run("pool", "set-alias", t.numbers("s", id), name)
	}
	return t.Run("--modifystoragepool", fmt.Sprintf("--id=%d", id), "--desc="+name)
}

// Move moves targets from one pool to another. beegfs-ctl 7 adds only targets of the default pool, and ends with exit code 0 whether it has
// moved them or not. Only the later list of the management service is proof.
func (t Tool) Move(from, to int32, targets []int32) [][]string {
	ids := t.numbers("s", targets...)
	if t.eight {
		return [][]string{t.Run("pool", "assign", t.numbers("s", to), "--targets="+ids)}
	}
	var out [][]string
	if from != DefaultPoolID {
		out = append(out, t.Run("--modifystoragepool", fmt.Sprintf("--id=%d", from), "--rmtargets="+ids))
	}
	if to != DefaultPoolID {
		out = append(out, t.Run("--modifystoragepool", fmt.Sprintf("--id=%d", to), "--addtargets="+ids))
	}
	return out
}

// AddMirror makes a buddy group of two storage targets ("s"), or of two metadata servers ("m").
func (t Tool) AddMirror(kind string, primary, secondary int32) []string {
	nodeType := nodeTypes[kind]
	if t.eight {
		return t.Run("mirror", "create", fmt.Sprintf("mirror-%s-%d", nodeType, primary), "--node-type="+nodeType,
			"--primary="+t.numbers(kind, primary), "--secondary="+t.numbers(kind, secondary))
	}
	return t.Run("--addmirrorgroup", "--nodetype="+nodeType, fmt.Sprintf("--primary=%d", primary), fmt.Sprintf("--secondary=%d", secondary))
}

// MirrorMetadata mirrors the root directory; directories and files that are made below it later are mirrored too.
func (t Tool) MirrorMetadata() []string {
	if t.eight {
		return t.Run("mirror", "init", "--yes")
	}
	return t.Run("--mirrormd")
}

// RemoveTarget removes a storage target from BeeGFS.
func (t Tool) RemoveTarget(id int32) []string {
	if t.eight {
		return t.Run("target", "delete", t.numbers("s", id), "--yes")
	}
	return t.Run("--removetarget", t.numbers("s", id))
}

// RemoveServer removes a storage server from BeeGFS.
func (t Tool) RemoveServer(id int32) []string {
	if t.eight {
		return t.Run("node", "delete", t.numbers("s", id), "--yes")
	}
	return t.Run("--removenode", "--nodetype=storage", t.numbers("s", id))
}

// FullResync orders a copy of everything to the secondary target of a buddy group, also while its server does not serve it. The proof is
// the text that the tool prints once the primary has accepted the order. beegfs-ctl 7 then also asks the server of the secondary. That
// server refuses a target that it does not serve, and the tool fails (ModeStartResync of 7.4.6).
//
// The timestamp is 1, because both versions keep 0 as no order at all. Without an order, they copy only changes since both sides were last
// in touch (getLastBuddyComm in StorageTargets.h of 7.4.6 and 8.3.1).
func (t Tool) FullResync(target, group int32) (argv []string, proof string) {
	if t.eight {
		return t.Run("mirror", "resync", "start", t.numbers("s", group), "--timestamp=1"), `(?m)^Successfully sent resync request\.`
	}
	return t.Run("--startresync", "--nodetype=storage", fmt.Sprintf("--targetid=%d", target), "--timestamp=1"),
		fmt.Sprintf(`(?m)^Resync request (sent\.|not successful; secondary target ID: %d;)`, target)
}

// MakeDirectory makes a directory, and fails when it exists.
func (t Tool) MakeDirectory(directory string) []string {
	if t.eight {
		return t.unmounted("entry", "create", "directory", directory)
	}
	return t.unmounted("--createdir", directory)
}

// Stripe sets how new files and directories in a directory are striped.
func (t Tool) Stripe(directory string, pool int32, chunk int64, targets int32, mirrored bool) []string {
	pattern := "raid0"
	if t.eight {
		if mirrored {
			pattern = "mirrored"
		}
		return t.unmounted("entry", "set", directory, "--pool="+t.numbers("s", pool), fmt.Sprintf("--chunk-size=%d", chunk),
			fmt.Sprintf("--num-targets=%d", targets), "--pattern="+pattern)
	}
	if mirrored {
		pattern = "buddymirror"
	}
	return t.unmounted("--setpattern", fmt.Sprintf("--storagepoolid=%d", pool), fmt.Sprintf("--chunksize=%d", chunk),
		fmt.Sprintf("--numtargets=%d", targets), "--pattern="+pattern, directory)
}

// Migrate moves the files of a mounted filesystem off a target, to the others of a pool.
func (t Tool) Migrate(target, pool int32, mountPoint string) []string {
	if t.eight {
		return t.Run("--mount="+mountPoint, "entry", "migrate", mountPoint, "--recurse", "--yes", "--from-targets="+t.numbers("s", target),
			"--pool="+t.numbers("s", pool))
	}
	return t.Run("--migrate", fmt.Sprintf("--targetid=%d", target), fmt.Sprintf("--destinationpoolid=%d", pool), mountPoint)
}

// Quiet lists the clients with open files on a storage server, and on all metadata servers. Both tools pass on a server's answer to a
// question for its maintainers (GenericDebugMsgEx of 7.4.6 and 8.3.1). A storage server counts a file from the first byte that a client
// reads or writes there, a metadata server from the moment when it is opened; both count it until that client has closed it. So a storage
// server alone does not count a file that is open and is written later.
func (t Tool) Quiet(server int32, metadata []int32) spec.Quiet {
	q := spec.Quiet{
		Server:  fmt.Sprintf("storage server %d", server),
		Session: `(?m)^(?P<id>[0-9]+): (?P<files>[0-9]+)\s*$`, Answered: `(?m)^Final results: [0-9]+ open files in [0-9]+ checked sessions\s*$`,
	}
	if t.eight {
		q.Clients = t.Run("--mount=none", "node", "list", "--node-type=client", "--output=ndjson", "--columns=id,alias", "--raw")
		q.Client = `"alias":"(?P<name>[^"]*)","id":\{"num_id":(?P<id>[0-9]+),`
	} else {
		q.Clients = t.Run("--listnodes", "--nodetype=client")
		q.Client = `(?m)^(?P<name>\S.*) \[ID: (?P<id>[0-9]+)\]\s*$`
	}
	q.Open = t.openFiles("s", server)
	for _, id := range metadata {
		q.Also = append(q.Also, spec.QuietServer{Server: fmt.Sprintf("metadata server %d", id), Open: t.openFiles("m", id)})
	}
	return q
}

// openFiles lists the clients with open files on a server of metadata ("m") or storage ("s").
func (t Tool) openFiles(kind string, id int32) []string {
	if t.eight {
		return t.Run("--mount=none", "debug", t.numbers(kind, id), "listopenfiles")
	}
	return t.Run("--genericdebug", "--nodetype="+nodeTypes[kind], fmt.Sprintf("--nodeid=%d", id), "listopenfiles")
}

// nodeTypes are the words for metadata ("m") and storage ("s").
var nodeTypes = map[string]string{"m": "meta", "s": "storage"}

// The arguments of benchmarks.Call that storagebench sets.
const (
	BenchBlock   = "blockSize"
	BenchSize    = "fileSize"
	BenchThreads = "threads"
	BenchDirect  = "directIO"
)

// Bench is a command of the benchmark of storage servers, on some targets.
func (t Tool) Bench(verb string, targets []int32, arguments map[string]string) []string {
	ids := t.numbers("s", targets...)
	if t.eight {
		start := map[string][]string{
			"write": {"start"}, "read": {"start", "--read"}, "status": {"status", "--verbose", "--unadorned", "--raw"}, "stop": {"stop"},
			"clean": {"cleanup"},
		}
		argv := t.Run(append([]string{"benchmark"}, start[verb]...)...)
		argv = append(argv, "--targets="+ids)
		if len(arguments) > 0 {
			argv = append(argv, "--block-size="+arguments[BenchBlock], "--size="+arguments[BenchSize], "--num-tasks="+arguments[BenchThreads])
			if arguments[BenchDirect] == "true" {
				argv = append(argv, "--odirect")
			}
		}
		return argv
	}
	start := map[string][]string{
		"write": {"--write"}, "read": {"--read"}, "status": {"--status", "--verbose"}, "stop": {"--stop"}, "clean": {"--cleanup"},
	}
	argv := t.Run(append([]string{"--storagebench", "--targetids=" + ids}, start[verb]...)...)
	if len(arguments) > 0 {
		argv = append(argv, "--blocksize="+arguments[BenchBlock], "--size="+arguments[BenchSize], "--threads="+arguments[BenchThreads])
		if arguments[BenchDirect] == "true" {
			argv = append(argv, "--odirect")
		}
	}
	return argv
}
