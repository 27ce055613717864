package beegfs

import (
	"fmt"
	"strconv"
	"strings"

	"parallelfs.dev/operator/internal/backend"
)

// tool makes the command lines of beegfs-ctl (BeeGFS 7; ctl/source/modes of 7.4.6) or beegfs (BeeGFS 8; ctl/internal/cmd of 8.3.1). Both
// run as root, and need no mount for anything but migrate.
type tool struct {
	eight bool
	base  []string
}

// toolOf is the tool of a filesystem, told where the management service is and what the shared secret is.
func toolOf(in backend.Input) tool {
	if !is8(in.FileSystem.Spec.Version) {
		return tool{base: []string{programCtl, "--cfgFile=" + clientConfig}}
	}
	node, _ := managementNode(in)
	t := tool{eight: true, base: []string{
		programTool, "--mgmtd-addr=" + backend.Address(node.IP, portsOf(in.FileSystem).grpc()), "--auth-file=" + authFile,
	}}
	if b := in.FileSystem.Spec.BeeGFS; b == nil || b.TLS == nil {
		t.base = append(t.base, "--tls-disable")
	} else {
		// The management service is asked by its address, which need not stand in the certificate; the shared secret proves both sides.
		t.base = append(t.base, "--tls-cert-file=", "--tls-disable-verification")
	}
	return t
}

const (
	programCtl  = "/opt/beegfs/sbin/beegfs-ctl"
	programTool = "/opt/beegfs/sbin/beegfs"
	// clientConfig is the configuration that beegfs-ctl shares with clients.
	clientConfig = backend.ToldDirectory + "/beegfs-client.conf"
)

func (t tool) run(arguments ...string) []string {
	return append(append([]string{}, t.base...), arguments...)
}

// unmounted works on a path from the root of the filesystem, which nobody needs to have mounted.
func (t tool) unmounted(arguments ...string) []string {
	if t.eight {
		return t.run(append([]string{"--mount=none"}, arguments...)...)
	}
	return t.run(append(arguments, "--unmounted")...)
}

// numbers is a list of numbers as the tool takes it, of things of a kind: "m" for metadata, "s" for storage.
func (t tool) numbers(kind string, ids ...int32) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = strconv.Itoa(int(id))
		if t.eight {
			out[i] = kind + ":" + out[i]
		}
	}
	return strings.Join(out, ",")
}

// addPool makes a storage pool.
func (t tool) addPool(id int32, name string) []string {
	if t.eight {
		return t.run("pool", "create", name, fmt.Sprintf("--num-id=%d", id))
	}
	return t.run("--addstoragepool", fmt.Sprintf("--id=%d", id), "--desc="+name)
}

// renamePool gives a pool another name: the default one has one of BeeGFS's own.
func (t tool) renamePool(id int32, name string) []string {
	if t.eight {
		return t.run("pool", "set-alias", t.numbers("s", id), name)
	}
	return t.run("--modifystoragepool", fmt.Sprintf("--id=%d", id), "--desc="+name)
}

// move brings targets from one pool to another. beegfs-ctl 7 adds only targets of the default pool, and ends with exit code 0 whether
// it has moved them or not: what the management service lists afterwards is what counts.
func (t tool) move(from, to int32, targets []int32) [][]string {
	ids := t.numbers("s", targets...)
	if t.eight {
		return [][]string{t.run("pool", "assign", t.numbers("s", to), "--targets="+ids)}
	}
	var out [][]string
	if from != defaultPoolID {
		out = append(out, t.run("--modifystoragepool", fmt.Sprintf("--id=%d", from), "--rmtargets="+ids))
	}
	if to != defaultPoolID {
		out = append(out, t.run("--modifystoragepool", fmt.Sprintf("--id=%d", to), "--addtargets="+ids))
	}
	return out
}

// addMirror makes a buddy group of two storage targets ("s"), or of two metadata servers ("m").
func (t tool) addMirror(kind string, primary, secondary int32) []string {
	nodeType := map[string]string{"m": "meta", "s": "storage"}[kind]
	if t.eight {
		return t.run("mirror", "create", fmt.Sprintf("mirror-%s-%d", nodeType, primary), "--node-type="+nodeType,
			"--primary="+t.numbers(kind, primary), "--secondary="+t.numbers(kind, secondary))
	}
	return t.run("--addmirrorgroup", "--nodetype="+nodeType, fmt.Sprintf("--primary=%d", primary), fmt.Sprintf("--secondary=%d", secondary))
}

// mirrorMetadata mirrors the root directory; what is made below it from then on is mirrored too.
func (t tool) mirrorMetadata() []string {
	if t.eight {
		return t.run("mirror", "init", "--yes")
	}
	return t.run("--mirrormd")
}

// removeTarget forgets a storage target.
func (t tool) removeTarget(id int32) []string {
	if t.eight {
		return t.run("target", "delete", t.numbers("s", id), "--yes")
	}
	return t.run("--removetarget", t.numbers("s", id))
}

// removeServer forgets a storage server.
func (t tool) removeServer(id int32) []string {
	if t.eight {
		return t.run("node", "delete", t.numbers("s", id), "--yes")
	}
	return t.run("--removenode", "--nodetype=storage", t.numbers("s", id))
}

// makeDirectory makes a directory, and fails when it is there.
func (t tool) makeDirectory(directory string) []string {
	if t.eight {
		return t.unmounted("entry", "create", "directory", directory)
	}
	return t.unmounted("--createdir", directory)
}

// stripe says how new files and directories in a directory are striped.
func (t tool) stripe(directory string, pool int32, chunk int64, targets int32, mirrored bool) []string {
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

// migrate moves the files of a mounted filesystem off a target, to the others of a pool.
func (t tool) migrate(target, pool int32, mountPoint string) []string {
	if t.eight {
		return t.run("--mount="+mountPoint, "entry", "migrate", mountPoint, "--recurse", "--yes", "--from-targets="+t.numbers("s", target),
			"--pool="+t.numbers("s", pool))
	}
	return t.run("--migrate", fmt.Sprintf("--targetid=%d", target), fmt.Sprintf("--destinationpoolid=%d", pool), mountPoint)
}
