package lustre

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/lustre/cli"
	"parallelfs.dev/operator/internal/backend/shared/assign"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/nodefacts"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
	"parallelfs.dev/operator/internal/plan"
)

// A lost MGT on a disk of its own is made again on another disk of its node (docs/adr/0101), because all targets and clients look for the
// MGS at the NIDs of that node. The agent makes the disk an MGT as it makes any target. The node's own programs write the logs of a
// verified backup on it before its first mount. Afterwards, the MGS that serves it is queried for each of their records.

// managementNumber is the number of an MGT in the operator's records. A node that reports its targets has none for it.
const managementNumber = 1

// MetadataPlace is spec.lustre.management: the part of a Lustre that is recovered is its MGT.
func (Backend) MetadataPlace(fs *v1alpha1.FileSystem) backend.MetadataPlace {
	place := backend.MetadataPlace{
		Role: v1alpha1.RoleManagement, Field: "spec.lustre.management", Noun: "the MGT", Stays: true,
		Loses:   "targets, pools and parameters that came after that; what the spec says of pools and parameters is set again",
		Lacking: " It serves on, and a new mount does not find it (docs/recovery.md, A lost MGT).",
		Otherwise: ". Without a backup, a person has all targets write their configuration again (tunefs.lustre --writeconf), with the whole " +
			"filesystem unmounted: docs/backups.md says how; pools and parameters are lost then",
	}
	if m := own(fs).Management; m != nil {
		place.NodeSelector, place.Targets = m.NodeSelector, m.Targets
	}
	return place
}

// StoreRecord is the place of the MGT.
func (Backend) StoreRecord(fs *v1alpha1.FileSystem) *v1alpha1.MetadataRecord {
	record := given(fs)
	if fs.Status.Metadata == nil || record.ManagementTarget == "" {
		return nil
	}
	out := &v1alpha1.MetadataRecord{
		Node: record.ManagementNode, Target: record.ManagementTarget, Directory: assign.TargetPath(fs, record.ManagementTarget),
		Initialized: fs.Status.Metadata.Initialized,
	}
	if r := record.Recovered; r != nil {
		out.Recovered = &v1alpha1.MetadataRecovered{
			PlanHash: r.PlanHash, From: r.From, DataTime: r.DataTime, Time: r.Time, PreviousNode: record.ManagementNode,
		}
	}
	return out
}

// RecordStore records that the MGT is on another disk.
func (Backend) RecordStore(fs *v1alpha1.FileSystem, is v1alpha1.MetadataRecord) {
	record := given(fs)
	record.Recovered = &v1alpha1.ManagementRecovered{
		PlanHash: is.Recovered.PlanHash, From: is.Recovered.From, DataTime: is.Recovered.DataTime, Time: is.Recovered.Time,
		PreviousTarget: record.ManagementTarget,
	}
	record.ManagementTarget = is.Target
	fs.Status.Lustre = &record
}

// StoreStays returns why the MGT is not lost, or can't be made again.
func (Backend) StoreStays(in backend.Input) string {
	in = in.Indexed()
	fs, record := in.FileSystem, given(in.FileSystem)
	if !hasMGT(fs) {
		return fmt.Sprintf("the MGT is on the disk of MDT0000 (%s), and Lustre stores MDT0000 nowhere else. Where that disk is there, and only its logs are damaged, "+
			"docs/backups.md says how a person puts them back; where it is lost, only a copy of the whole disk brings the filesystem back", record.ManagementTarget)
	}
	selector := own(fs).Management.NodeSelector
	matching := metadatajobs.RecoveryNodes(in.Nodes, selector, record.ManagementNode)
	switch {
	case len(matching) != 1 || matching[0].Name != record.ManagementNode:
		return fmt.Sprintf("the MGT can come to no other node than %s, whose NIDs are on every disk, and spec.lustre.management.nodeSelector (%s) matches %s; "+
			"give that label to node %s alone", record.ManagementNode, nodefacts.SelectorText(selector), cmp.Or(nodefacts.NodeNames(matching), "no node"), record.ManagementNode)
	case in.State == nil:
		return "no node reports what it serves, so it is unknown whether the MGS serves: " + in.StateError
	case in.Unanswered[record.ManagementNode] != "":
		return fmt.Sprintf("node %s does not say whether its MGS serves: %s", record.ManagementNode, in.Unanswered[record.ManagementNode])
	case managementServes(in):
		return fmt.Sprintf("the MGS on node %s serves. Where its disk is dead all the same, unmount it there first (umount %s)",
			record.ManagementNode, assign.TargetPath(fs, record.ManagementTarget))
	default:
		return ""
	}
}

// RecoverySources returns the places of backups. No backup is made on the node of the MGS; the source there is for a backup that a person
// has copied to the same directory of that node.
func (Backend) RecoverySources(in backend.Input) []backend.RecoverySource {
	in = in.Indexed()
	fs := in.FileSystem
	out := metadatajobs.BackupSources(fs, in.Nodes)
	if b, node := fs.Spec.Backups, given(fs).ManagementNode; b != nil && b.Nodes != nil && node != "" {
		out = append(out, backend.RecoverySource{
			Name: "backup-at-" + node, Kind: v1alpha1.RecoveryBackup, Node: node,
			Directory: path.Join(string(b.Nodes.Directory), backend.BackupDirectory(fs)),
		})
	}
	return out
}

// RecoveryJob inspects a source, writes the logs on a disk, or compares them, by `node recover`.
func (Backend) RecoveryJob(in backend.Input, request backend.RecoveryRequest) (*batchv1.Job, spec.Recovery, error) {
	in = in.Indexed()
	fs, p := in.FileSystem, pods(in)
	p.Group = podspec.Nobody // for a backup in a claim
	c := p.Container(podspec.RecoveryComponent, in.Images.Node, "recover", podspec.RecoveryVolume, podspec.RecoveryToldFile)
	told := spec.Recovery{Version: backend.VersionOf(fs, componentMGS), Known: known(in)}
	job, told := p.RecoveryJob(in, request, c, told, podspec.RecoveryServers{Server: componentMGS, User: "root"})
	if r := request.Restore; r != nil {
		t := in.TargetNamed(r.Target)
		if t == nil || !assign.Finished(t) || t.Spec.Lustre == nil {
			return nil, told, backend.Invalid(v1alpha1.ReasonRecordsDisagree, "the disk %s for the MGT is none that was made a target; ask for a plan again", r.Target)
		}
		given, err := json.Marshal(t.Spec.Lustre)
		if err != nil {
			return nil, told, fmt.Errorf("encode what %s was given: %w", t.Name, err)
		}
		told.Restore.Target.Served = &spec.ServedTarget{
			DeviceID: string(plan.DeviceOf(t).ID), FSType: string(t.Spec.Format.FSType),
			Mark: plan.NewOf(t, plan.Look{}, told.Restore.Target.UUID).Mark, Given: given,
		}
	}
	if request.Restore != nil || request.Compare != nil { // the programs are the node's own
		pod := &job.Spec.Template.Spec
		pod.HostPID = true
		pod.Containers[0].SecurityContext = podspec.Privileged()
	}
	return job, told, nil
}

// known lists the targets that have registered with the MGS and were not removed from it.
func known(in backend.Input) *spec.Known {
	targets := map[v1alpha1.Role][]int32{v1alpha1.RoleManagement: {managementNumber}}
	for _, g := range in.Given() {
		for i := range g.Targets {
			if t := &g.Targets[i]; t.Initialized != nil && t.TakenOut == nil {
				targets[g.Role] = append(targets[g.Role], t.ID)
			}
		}
	}
	return exchange.Known(nil, targets)
}

// Comparison is the Job that queries the MGS on its node for the restored records.
func (b Backend) Comparison(in backend.Input) (request *backend.RecoveryRequest, impossible string) {
	in = in.Indexed()
	fs, record := in.FileSystem, given(in.FileSystem)
	r := record.Recovered
	if r == nil || r.Compared != nil || !managementServes(in) {
		return nil, ""
	}
	source, backup, there := metadatajobs.BackupSource(b.RecoverySources(in), r.From)
	if !there {
		return nil, fmt.Sprintf("they can't be compared: the place of %s is none of this FileSystem any more", r.From)
	}
	return &backend.RecoveryRequest{
		Job: backend.ChildName(fs, "recover-"+backend.Hash("compare", r.PlanHash, r.Time.Unix())), Source: source,
		Compare: &backend.CompareRequest{Backup: backup, Node: record.ManagementNode},
	}, ""
}

// RecordComparison records the result of the comparison.
func (Backend) RecordComparison(fs *v1alpha1.FileSystem, differs string, now metav1.Time) {
	record := given(fs)
	record.Recovered = record.Recovered.DeepCopy()
	record.Recovered.Compared, record.Recovered.Differs = &now, v1alpha1.Cut(differs, mostDiffers)
	fs.Status.Lustre = &record
}

// mostDiffers limits the text about differences in a status, in bytes.
const mostDiffers = 512

// ComparisonSays describes the result in a sentence.
func (Backend) ComparisonSays(fs *v1alpha1.FileSystem) string {
	switch r := given(fs).Recovered; {
	case r == nil:
		return ""
	case r.Compared == nil:
		return "its MGS is asked for each record when it serves"
	case r.Differs != "":
		return fmt.Sprintf("its MGS does not say what the backup says: %s. Look at lctl --device MGS llog_print on node %s", r.Differs,
			given(fs).ManagementNode)
	default:
		return "its MGS says of each record of its logs what the backup says"
	}
}

// StoreStrangers returns the logs on the disk of an MGT.
func (Backend) StoreStrangers(run backend.RunOnNode, device string) ([]string, error) {
	files, err := listConfig(run, device)
	return namesOf(files), err
}

// logsOf returns the files of the MGT in a backup, by their names in CONFIGS.
func logsOf(files map[string][]byte) (map[string][]byte, error) {
	out := map[string][]byte{}
	for name, content := range files {
		log, is := strings.CutPrefix(name, storedFiles)
		if !is {
			continue
		}
		if log == cli.MountData || !cli.IsLogName(log) {
			return nil, fmt.Errorf("the backup has a file %q, which is no log", name)
		}
		out[log] = content
	}
	return out, nil
}

// PutBackStore writes the logs on the disk of an MGT that is not mounted, and reads them back with debugfs and llog_reader. The file system
// is checked before, because an earlier attempt may have been interrupted, and after, because debugfs does not update the counters of the
// file system.
func (b Backend) PutBackStore(
	run backend.RunOnNode, place func(path string, content []byte) error, device, work string, files map[string][]byte,
) (err error) {
	logs, err := logsOf(files)
	if err != nil {
		return err
	}
	read := path.Join(work, "read")
	defer func() {
		if _, left := run("rm", "-rf", work); err == nil {
			err = left
		}
	}()
	for _, argv := range [][]string{{"rm", "-rf", work}, {"mkdir", "-m", "0700", work}, {"mkdir", "-m", "0700", read}, cli.Mend(device)} {
		if _, err := run(argv...); err != nil {
			return err
		}
	}
	remove, err := b.StoreStrangers(run, device)
	if err != nil {
		return err
	}
	for _, name := range backend.SortedKeys(logs) {
		if err := place(path.Join(work, name), logs[name]); err != nil {
			return err
		}
	}
	requests := path.Join(work, ".requests")
	if err := place(requests, cli.WriteRequests(work, remove, backend.SortedKeys(logs))); err != nil {
		return err
	}
	for _, argv := range [][]string{cli.WriteConfig(device, requests), cli.Mend(device)} {
		if _, err := run(argv...); err != nil {
			return err
		}
	}
	copied := path.Join(read, cli.ConfigDirectory)
	names, err := copyConfig(run, device, copied)
	if err != nil {
		return err
	}
	return readBack(run, copied, names, logs, files)
}

// readBack compares what was copied from a disk with the logs that were written on it, and has llog_reader read each log.
func readBack(run backend.RunOnNode, copied string, names []string, logs, files map[string][]byte) error {
	on := map[string][]byte{}
	for _, name := range names {
		content, err := run("cat", path.Join(copied, name))
		if err != nil {
			return err
		}
		if wrote, there := logs[name]; !there || !bytes.Equal(wrote, content) {
			return fmt.Errorf("%s/%s does not read from the disk as it was written", cli.ConfigDirectory, name)
		}
		on[storedFiles+name] = content
	}
	if len(on) != len(logs) {
		return fmt.Errorf("the disk has %d of the %d logs that were written on it", len(on), len(logs))
	}
	for name, content := range files {
		log, is := strings.CutPrefix(name, storedPrinted)
		if !is {
			continue
		}
		on[name] = content
		read, err := run(cli.ReadLog(path.Join(copied, log))...)
		if err != nil {
			return err
		}
		on[storedRead+log] = read
	}
	_, err := understood(on)
	return err
}

// CompareStore queries the MGS of the node for each record that is in force according to the backup. It may have more: a target that has
// started since may have added some.
func (Backend) CompareStore(run backend.RunOnNode, files map[string][]byte) error {
	compared := false
	for _, name := range backend.SortedKeys(files) {
		log, is := strings.CutPrefix(name, storedPrinted)
		if !is {
			continue
		}
		wanted, err := cli.PrintedLines(files[name])
		if err != nil {
			return err //nolint:wrapcheck // it names the command
		}
		output, err := run(cli.PrintLog(log)...)
		if err != nil {
			return err
		}
		said, err := cli.PrintedLines(output)
		if err != nil {
			return err //nolint:wrapcheck // it names the command
		}
		for _, index := range slices.Sorted(maps.Keys(wanted)) {
			if said[index] != wanted[index] {
				return fmt.Errorf("record %d of the log %s is %q in the backup, and the MGS says %q", index, log, wanted[index], said[index])
			}
		}
		compared = true
	}
	if !compared {
		return errors.New("the backup has no log that could be compared")
	}
	return nil
}

// lostMGT is the StorageTarget of the MGT during a recovery on another disk of its node, from the request until it ends or is refused; else
// it is empty.
func (b Backend) lostMGT(fs *v1alpha1.FileSystem, nodes []backend.Node) string {
	if !hasMGT(fs) {
		return ""
	}
	return metadatajobs.LostMetadataTarget(metadatajobs.AsMetadata(fs, b.StoreRecord(fs)), nodes, own(fs).Management.NodeSelector)
}

// isMGT is true for the disk of the MGT, and for one on which a lost MGT is made again: that disk is not mounted before the new place is on
// record.
func isMGT(fs *v1alpha1.FileSystem, t *v1alpha1.StorageTarget) bool {
	record := given(fs)
	if t.Name == record.ManagementTarget {
		return true
	}
	_, asked := fs.Annotations[v1alpha1.AnnotationRecoverMetadata]
	return asked && hasMGT(fs) && record.ManagementTarget != "" && t.Spec.Role == v1alpha1.RoleManagement &&
		t.Spec.Node == record.ManagementNode
}
