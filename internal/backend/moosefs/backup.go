package moosefs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/moosefs/cli"
	"parallelfs.dev/operator/internal/node/spec"
)

// A backup of MooseFS is what a metalogger gets: the last saved metadata and the change logs since, which the master opens at the same
// moment and hands out while it runs (mfsmetalogger(8)). So the pod of a backup needs neither the master's disk nor any right on a node,
// and runs where the backup is to lie. `mfsmaster restore` reads all of that back as a master would after a crash, without serving anybody.

const componentBackup = "backup"

// BackupJob makes a backup by `node backup`, at its place.
func (Backend) BackupJob(in backend.Input, request backend.BackupRequest) (*batchv1.Job, spec.Backup, error) {
	in = in.Indexed()
	fs := in.FileSystem
	// What the master writes, only programs of its version surely read.
	version := backend.VersionOf(fs, componentMaster)
	image, ok := in.Images.Daemons["moosefs-"+version]
	if !ok {
		return nil, spec.Backup{}, backend.Invalid(v1alpha1.ReasonInvalidSpec, "the operator has no image for MooseFS %s", version)
	}
	master, ok := masterNode(in)
	if !ok {
		return nil, spec.Backup{}, backend.Invalid(v1alpha1.ReasonNoNodes, "the node of the master is not in the cluster, or has no address that the filesystem can use; bring it back")
	}
	told := spec.Backup{
		Version: version,
		Asked:   backend.Address(master.IP, portsOf(fs).clients()),
		Copied:  backend.Address(master.IP, portsOf(fs).metaloggers()),
	}
	b := builder{in: in, images: map[string]string{componentBackup: image}, master: master}
	c := b.daemon(componentBackup, componentBackup, "backup", backend.BackupVolume, backend.BackupToldKey)
	job, told := pods(in).BackupJob(request, c, told)
	return job, told, nil
}

// BackupMethod copies as a metalogger, and reads back as a master.
func (Backend) BackupMethod(told spec.Backup) backend.BackupMethod { return backupMethod{told} }

type backupMethod struct{ told spec.Backup }

// Ask asks the master for the version of its metadata.
func (m backupMethod) Ask() []string { return cli.AskVersion(m.told.Version, m.told.Asked) }

// Answer reads it.
func (m backupMethod) Answer(output []byte) (backend.BackupVersion, error) {
	return cli.ReadVersion(m.told.Version, output)
}

// Copy is a metalogger, which gets all at its first connection and the changes after that.
func (m backupMethod) Copy(to, work string) backend.BackupProgram {
	config := path.Join(work, "mfsmetalogger.cfg")
	host, port, err := net.SplitHostPort(m.told.Copied)
	if err != nil {
		host, port = m.told.Copied, "" // BackupJob has made it; the program says that it can't connect
	}
	return backend.BackupProgram{
		Files: map[string]string{config: "DATA_PATH = " + to + "\n" + ownUser + "DISABLE_OOM_KILLER = 0\nNICE_LEVEL = 10\n" +
			"MASTER_HOST = " + host + "\nMASTER_PORT = " + port + "\nMASTER_RECONNECTION_DELAY = 1\n"},
		Argv: []string{"mfsmetalogger", "-f", "-c", config, "start"},
	}
}

// ownUser keeps a program, which otherwise becomes the user mfs, what it is when it is started by root; nobody else can change the user.
const ownUser = "WORKING_USER = root\nWORKING_GROUP = root\n"

// The files of a metalogger (mfsmetalogger(8)). It asks for the metadata first, then for the two newest change logs, and renames each when
// it is whole: the older change log is the last. A change log that the master does not have is empty.
const (
	copiedMetadata = "metadata_ml.mfs.back"
	copiedPartly   = "metadata_ml.tmp"
	copiedLog0     = "changelog_ml_back.0.mfs"
	copiedLog1     = "changelog_ml_back.1.mfs"
	copiedChanges  = "changelog_ml.0.mfs"
	copiedRotated  = "changelog_ml.1.mfs"
)

// newMetadata is all that the metadata of a filesystem says that was never saved: its change logs say the rest. A metalogger gets it, and
// does not give it its name.
const newMetadata = "MFSM NEW"

// Copied is complete when the last file has come.
func (m backupMethod) Copied(found []backend.CopiedFile) map[string]string {
	out, last := map[string]string{}, false
	for _, f := range found {
		switch f.Name {
		case copiedMetadata, copiedLog0, copiedChanges, copiedRotated:
			out[f.Name] = f.Name
		case copiedLog1:
			out[f.Name], last = f.Name, true
		case copiedPartly:
			if f.Size == int64(len(newMetadata)) && string(f.Head) == newMetadata {
				out[f.Name] = copiedMetadata
			}
		}
	}
	for _, kept := range out {
		if kept == copiedMetadata && last {
			return out
		}
	}
	return nil
}

// Whole metadata ends with endOfMetadata.
const endOfMetadata = "[MFS EOF MARKER]"

// Changes are the change logs, and of use are those changes that the newest whole metadata does not have: its version is that of the next
// change. A master that stops saves its metadata, and what it changes last may lack in its change logs (bgsaver.c); one of 3.0.117 goes on
// with the same file when it starts again. A metalogger that was away goes on with its file as well. `mfsmaster restore` applies no change
// that the metadata has, but it refuses all files when the one right before the first that it would apply is missing (restore_file in
// restore.c of 3.0.117 to 4.59.2), and takes more than 10000 missing ones for the end of the file (merger.c).
func (m backupMethod) Changes(found []backend.CopiedFile) backend.ChangeLogs {
	var next int64
	var logs []string
	for _, f := range found {
		if isChangeLog(f.Name) {
			logs = append(logs, f.Name)
		}
		v, err := m.Made(f.Head)
		if err == nil && strings.HasPrefix(f.Name, "metadata") && bytes.HasSuffix(f.End, []byte(endOfMetadata)) {
			next = max(next, v.Version)
		}
	}
	if next == 0 {
		return backend.ChangeLogs{Names: logs} // nothing was ever saved: all changes are of use
	}
	return backend.ChangeLogs{Names: logs, Needed: func(line []byte) bool {
		number, _, ok := bytes.Cut(line, []byte(": "))
		version, err := strconv.ParseInt(string(number), 10, 64)
		return !ok || err != nil || version >= next
	}}
}

// isChangeLog is true for those of a master and of a metalogger.
func isChangeLog(name string) bool {
	return strings.HasPrefix(name, "changelog") && strings.HasSuffix(name, ".mfs")
}

// restored is what `mfsmaster restore` writes.
const restored = "metadata.mfs"

// Check reads metadata and change logs as a master does after a crash, writes the metadata that follow from them, and ends. It listens on
// no port.
func (m backupMethod) Check(in, work string) backend.BackupProgram {
	config := path.Join(work, "mfsmaster.cfg")
	return backend.BackupProgram{
		Files: map[string]string{config: "DATA_PATH = " + in + "\n" + ownUser + "DISABLE_OOM_KILLER = 0\nNICE_LEVEL = 10\n"},
		Argv:  []string{"mfsmaster", "-c", config, "-a", "restore"}, Makes: restored,
	}
}

// Made reads the beginning of a file of metadata: "MFSM 2.0", the version and the id, eight bytes each.
func (m backupMethod) Made(head []byte) (backend.BackupVersion, error) {
	const signature, whole = "MFSM 2.", 24
	if len(head) < whole || !bytes.HasPrefix(head, []byte(signature)) {
		return backend.BackupVersion{}, errors.New("what mfsmaster has made of it does not begin like metadata of MooseFS")
	}
	version := binary.BigEndian.Uint64(head[8:])
	if version > math.MaxInt64 {
		return backend.BackupVersion{}, fmt.Errorf("what mfsmaster has made of it has the version %d, which can't be", version)
	}
	return backend.BackupVersion{Version: int64(version), ID: cli.MetadataID(binary.BigEndian.Uint64(head[16:]))}, nil
}

// A master of a million files without data has 75 MB of metadata on the disk and takes 270 MB of memory for it, beside 170 MB that it takes
// without any (measured with 4.57.5).
const (
	memoryFactor = 4
	baseMemory   = 256 << 20
)

// Memory is what a master of that much metadata takes.
func (m backupMethod) Memory(size int64) int64 { return baseMemory + memoryFactor*size }
