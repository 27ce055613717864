package lustre

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// A backup of Lustre is the directory CONFIGS of its MGT (docs/adr/0100): the list of targets with their NIDs, the pools, and the
// parameters of conf_param and set_param -P. The mounted MGT shows no files. So the node's own programs copy them, and the probe beside the
// MGS hands them out. llog_reader reads each log of the copy, and the MGS lists the records in force before and after the copy.

const (
	componentBackup = "backup"
	// storeVolume has the secret that authorizes a request for the logs, and storeKey is its name in the Secret.
	storeVolume    = "store-secret"
	storeDirectory = "/etc/parallelfs-store"
	storeKey       = "secret"
	storeFile      = storeDirectory + "/" + storeKey
)

// SecretName names the Secret that the probe of the MGS and the pods of backups share.
func (Backend) SecretName(fs *v1alpha1.FileSystem) (name, key string) {
	return backend.ChildName(fs, "store"), storeKey
}

// storeMember is the member whose probe hands out the logs.
func storeMember(fs *v1alpha1.FileSystem) string {
	if hasMGT(fs) {
		return componentMGS
	}
	return mdtDaemon(0)
}

// handOut makes a probe hand out the logs, if it is the one beside the MGS.
func (b *builder) handOut(pod *corev1.PodTemplateSpec, daemon string, probe *spec.Probe, c *corev1.Container) {
	if daemon != storeMember(b.in.FileSystem) {
		return
	}
	probe.Store = &spec.Store{SecretFile: storeFile}
	name, _ := Backend{}.SecretName(b.in.FileSystem)
	pod.Spec.Volumes = append(pod.Spec.Volumes, podspec.SecretVolume(storeVolume, name))
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: storeVolume, MountPath: storeDirectory, ReadOnly: true})
}

// BackupJob makes a backup by `node backup`, at its place.
func (Backend) BackupJob(in backend.Input, request backend.BackupRequest) (*batchv1.Job, spec.Backup, error) {
	in = in.Indexed()
	fs := in.FileSystem
	management, there := in.Node(given(fs).ManagementNode)
	if !there || management.IP == "" {
		return nil, spec.Backup{}, backend.Invalid(v1alpha1.ReasonNoNodes, "the node of the MGS is not in the cluster, or has no address that the filesystem can use; bring it back")
	}
	port := portsOf(fs).mgs()
	if !hasMGT(fs) {
		port = portsOf(fs).mdt(0)
	}
	p := pods(in)
	p.Group = podspec.Nobody // for a backup in a claim
	c := p.Container(componentBackup, in.Images.Node, "backup", podspec.BackupVolume, metadatajobs.BackupToldKey)
	name, _ := Backend{}.SecretName(fs)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: storeVolume, MountPath: storeDirectory, ReadOnly: true})
	job, told := p.BackupJob(request, c, spec.Backup{
		Version: backend.VersionOf(fs, componentMGS), Copied: backend.Address(management.IP, port), SecretFile: storeFile,
	}, podspec.SecretVolume(storeVolume, name))
	return job, told, nil
}

// The directories of a backup: the files of the MGT, the records of each log according to the MGS, and those that llog_reader has read in
// its file.
const (
	storedFiles   = cli.ConfigDirectory + "/"
	storedPrinted = "llog_print/"
	storedRead    = "llog_reader/"
)

// CopyStore implements backend.StoreCopier.
func (q questions) CopyStore(run backend.RunOnNode, work string) (map[string][]byte, error) {
	output, err := run(cli.Devices()...)
	if err != nil {
		return nil, err
	}
	device, err := q.commands.ManagementDevice(output)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the command
	}
	if _, err := run("rm", "-rf", work); err != nil {
		return nil, err
	}
	if _, err := run("mkdir", "-m", "0700", work); err != nil {
		return nil, err
	}
	out, err := copyLogs(run, device, work)
	if _, left := run("rm", "-rf", work); err == nil && left != nil {
		return nil, left
	}
	return out, err
}

// copyLogs copies all files in CONFIGS except those about the disk itself, in a consistent state.
func copyLogs(run backend.RunOnNode, device, work string) (map[string][]byte, error) {
	before, err := printLogs(run)
	if err != nil {
		return nil, err
	}
	copied := path.Join(work, cli.ConfigDirectory)
	names, err := copyConfig(run, device, copied)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[storedFiles+name], err = run("cat", path.Join(copied, name)); err != nil {
			return nil, err
		}
		_, isLog := before[name]
		switch {
		case isLog:
			if out[storedRead+name], err = run(cli.ReadLog(path.Join(copied, name))...); err != nil {
				return nil, err
			}
		case name == cli.Params:
			return nil, fmt.Errorf("the disk has the log %s, and the MGS does not say what it has", name)
		default: // no program of Lustre reads it, so two equal copies are required
			again, err := run(cli.ReadConfig(device, name)...)
			if err != nil {
				return nil, err
			}
			if !bytes.Equal(again, out[storedFiles+name]) {
				return nil, fmt.Errorf("%s/%s has changed while it was copied", cli.ConfigDirectory, name)
			}
		}
	}
	after, err := printLogs(run)
	if err != nil {
		return nil, err
	}
	if !maps.EqualFunc(before, after, bytes.Equal) {
		return nil, errors.New("the logs of the MGS have changed while they were copied")
	}
	for name := range before {
		out[storedPrinted+name] = before[name] // also for a log that the disk does not have
	}
	_, err = understood(out)
	return out, err
}

// copyConfig copies the files in CONFIGS but mountdata, the disk's own, into a new directory of the node, and returns their names.
func copyConfig(run backend.RunOnNode, device, to string) ([]string, error) {
	files, err := listConfig(run, device)
	if err != nil {
		return nil, err
	}
	if _, err := run("mkdir", "-m", "0700", to); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, nil
	}
	if _, err := run(cli.CopyConfig(device, to, files)...); err != nil {
		return nil, err
	}
	return namesOf(files), nil
}

// listConfig returns the files in CONFIGS but mountdata.
func listConfig(run backend.RunOnNode, device string) ([]cli.ConfigFile, error) {
	output, err := run(cli.ListConfig(device)...)
	if err != nil {
		return nil, err
	}
	files, err := cli.ParseConfigList(output)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the command
	}
	return slices.DeleteFunc(files, func(f cli.ConfigFile) bool { return f.Name == cli.MountData }), nil
}

func namesOf(files []cli.ConfigFile) []string {
	names := make([]string, 0, len(files))
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

// printLogs asks the MGS which logs it has, and what is in force of each.
func printLogs(run backend.RunOnNode) (map[string][]byte, error) {
	output, err := run(cli.Logs()...)
	if err != nil {
		return nil, err
	}
	names, err := cli.ParseLogs(output)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the command
	}
	out := map[string][]byte{}
	for _, name := range names {
		if out[name], err = run(cli.PrintLog(name)...); err != nil {
			return nil, err
		}
	}
	if params, err := run(cli.PrintLog(cli.Params)...); err == nil { // else none was ever set, or the disk has the log
		out[cli.Params] = params
	}
	return out, nil
}

// StoreDatabase is none.
func (Backend) StoreDatabase(string) *backend.StoreDatabase { return nil }

// ReadStore reads the logs of a backup, and compares the records that llog_reader has read in each file with those of the MGS. It reports
// targets that are missing from the backup: those on record with the operator, if the state has a record.
func (Backend) ReadStore(_ string, content backend.StoreContent, said backend.State) (backend.StoreRead, error) {
	at := slices.IndexFunc(said.Targets, func(t backend.Target) bool {
		return t.Role == v1alpha1.RoleManagement && (t.Online || t.ID == managementNumber)
	})
	if at < 0 {
		return backend.StoreRead{}, errors.New("the node does not say that its MGS serves")
	}
	found, err := understood(content.Files)
	if err != nil || said.Targets[at].ID != managementNumber {
		return backend.StoreRead{}, err
	}
	return backend.StoreRead{Has: found.has(said.Targets), Lacks: found.lacks(said.Targets)}, nil
}

// logs holds the logs of a copy.
type logs struct {
	// records is the number of records in force, by log.
	records map[string]int
	// fsName is the name of the filesystem, and targets lists those that its clients find by the log.
	fsName  string
	targets []string
}

// lacks returns the targets that are on record, and that no client would find.
func (l *logs) lacks(recorded []backend.Target) (out []string) {
	for i := range recorded {
		name := TargetOf(l.fsName, recorded[i].Role, recorded[i].ID).String()
		if recorded[i].Role != v1alpha1.RoleManagement && !slices.Contains(l.targets, name) {
			out = append(out, name)
		}
	}
	return out
}

// has describes how many records there are, and which of their targets are no longer on record.
func (l *logs) has(recorded []backend.Target) string {
	all, each := 0, make([]string, 0, len(l.records))
	for _, name := range backend.SortedKeys(l.records) {
		all += l.records[name]
		each = append(each, fmt.Sprintf("%s %d", name, l.records[name]))
	}
	out := fmt.Sprintf("%d logs with %d records (%s)", len(l.records), all, backend.List(each))
	gone := slices.DeleteFunc(slices.Clone(l.targets), func(name string) bool {
		return slices.ContainsFunc(recorded, func(t backend.Target) bool { return TargetOf(l.fsName, t.Role, t.ID).String() == name })
	})
	if len(gone) > 0 {
		out += ", of which some are of " + backend.List(gone) + ", taken out since: forget it again (lctl --device MGS del_ost --target)"
	}
	return out
}

// understood returns the content of a copy, or an error about the part that can't be used.
func understood(files map[string][]byte) (*logs, error) {
	out := &logs{records: map[string]int{}}
	for _, name := range backend.SortedKeys(files) {
		log, is := strings.CutPrefix(name, storedPrinted)
		if !is {
			continue
		}
		if _, there := files[storedFiles+log]; !there {
			return nil, fmt.Errorf("the disk does not have the log %s yet, of which the MGS speaks", log)
		}
		printed, targets, err := cli.ParsePrintedLog(files[name])
		if err != nil {
			return nil, fmt.Errorf("the log %s can't be understood: %w", log, err)
		}
		read, err := cli.ParseReadLog(files[storedRead+log])
		if err != nil {
			return nil, fmt.Errorf("the log %s can't be used: %w", log, err)
		}
		if differs := printed.Differ(read); differs != "" {
			return nil, fmt.Errorf("the log %s is not as the MGS says that it is: %s", log, differs)
		}
		out.records[log] = len(printed)
		fsName, clients := strings.CutSuffix(log, "-client")
		if clients && slices.Contains(targets, fsName+"-MDT0000") {
			out.fsName, out.targets = fsName, targets
		}
	}
	if out.fsName == "" {
		return nil, errors.New("it has no log by which clients find MDT0000")
	}
	return out, nil
}
