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
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// A backup of MooseFS is the data that a metalogger gets: the last saved metadata and the change logs since then. A running master opens
// all of it at the same moment and hands it out (mfsmetalogger(8)). So the pod of a backup needs neither the master's disk nor any
// privilege on a node, and runs where the backup is stored. `mfsmaster restore` reads all of that back as a master would after a crash, and
// serves no clients.

const componentBackup = "backup"

// BackupJob makes a backup by `node backup`, at its place.
func (Backend) BackupJob(in backend.Input, request backend.BackupRequest) (*batchv1.Job, spec.Backup, error) {
	in = in.Indexed()
	fs := in.FileSystem
	// Only programs of the master's own version are guaranteed to read its files.
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
	c := b.daemon(componentBackup, componentBackup, "backup", podspec.BackupVolume, metadatajobs.BackupToldKey)
	job, told := pods(in).BackupJob(request, c, told)
	return job, told, nil
}

// BackupMethod copies like a metalogger, and reads back like a master.
func (Backend) BackupMethod(told spec.Backup) backend.BackupMethod { return backupMethod{told} }

type backupMethod struct{ told spec.Backup }

// Ask queries the master for the version of its metadata.
func (m backupMethod) Ask() []string { return cli.AskVersion(m.told.Version, m.told.Asked) }

// Answer reads it.
func (m backupMethod) Answer(output []byte) (backend.BackupVersion, error) {
	return cli.ReadVersion(m.told.Version, output)
}

// Copy is a metalogger, which gets all metadata at its first connection and the changes after that.
func (m backupMethod) Copy(to, work string) backend.BackupProgram {
	config := path.Join(work, "mfsmetalogger.cfg")
	host, port, err := net.SplitHostPort(m.told.Copied)
	if err != nil {
		host, port = m.told.Copied, "" // BackupJob builds a valid address; with any other, the program reports that it can't connect
	}
	return backend.BackupProgram{
		Files: map[string]string{config: "DATA_PATH = " + to + "\n" + ownUser + "DISABLE_OOM_KILLER = 0\nNICE_LEVEL = 10\n" +
			"MASTER_HOST = " + host + "\nMASTER_PORT = " + port + "\nMASTER_RECONNECTION_DELAY = 1\n"},
		Argv: []string{"mfsmetalogger", "-f", "-c", config, "start"},
	}
}

// ownUser keeps the user of a program that would otherwise switch to the user mfs when root starts it. Without root, a program can't switch
// anyway.
const ownUser = "WORKING_USER = root\nWORKING_GROUP = root\n"

// The files of a metalogger (mfsmetalogger(8)). It first requests the metadata, then the two newest change logs, and renames each file when
// it is complete, so the older change log is the last. A change log that the master does not have is empty.
const (
	copiedMetadata = "metadata_ml.mfs.back"
	copiedPartly   = "metadata_ml.tmp"
	copiedLog0     = "changelog_ml_back.0.mfs"
	copiedLog1     = "changelog_ml_back.1.mfs"
	copiedChanges  = "changelog_ml.0.mfs"
	copiedRotated  = "changelog_ml.1.mfs"
)

// newMetadata is the content of the metadata of a filesystem that was never saved; the change logs hold the rest. A metalogger receives it,
// and does not store it under its usual name.
const newMetadata = "MFSM NEW"

// Copied is complete when the last file has arrived.
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

// Complete metadata ends with endOfMetadata.
const endOfMetadata = "[MFS EOF MARKER]"

// Changes returns the change logs. A change is needed if the newest complete metadata does not have it; the version of the metadata is that
// of the next change. A master that stops saves its metadata, and may lack its last changes in its change logs (bgsaver.c). A master of
// 3.0.117 continues the same file when it starts again, and so does a metalogger that was away. `mfsmaster restore` skips changes that the
// metadata has. It refuses all files if the change right before the first one that it would apply is missing (restore_file in restore.c of
// 3.0.117 to 4.59.2), and treats more than 10000 missing changes as the end of the file (merger.c).
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
		return backend.ChangeLogs{Names: logs} // nothing was ever saved, so all changes are needed
	}
	return backend.ChangeLogs{Names: logs, Needed: func(line []byte) bool {
		number, _, ok := bytes.Cut(line, []byte(": "))
		version, err := strconv.ParseInt(string(number), 10, 64)
		return !ok || err != nil || version >= next
	}}
}

// isChangeLog reports whether a file is a change log of a master or of a metalogger.
func isChangeLog(name string) bool {
	return strings.HasPrefix(name, "changelog") && strings.HasSuffix(name, ".mfs")
}

// restored is the file that `mfsmaster restore` writes.
const restored = "metadata.mfs"

// Check reads metadata and change logs as a master does after a crash, writes the resulting metadata, and ends. It listens on no port.
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

// The metadata of a million files without data takes 75 MB on disk. A master needs 270 MB of memory for it, in addition to 170 MB that it
// needs without any files (measured with 4.57.5).
const (
	memoryFactor = 4
	baseMemory   = 256 << 20
)

// Memory returns the memory that a master needs for metadata of this size.
func (m backupMethod) Memory(size int64) int64 { return baseMemory + memoryFactor*size }
