package moosefs

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// `mfsmaster -a restore` recovers lost metadata of MooseFS from the files of a metalogger, or from a backup, which has the same files: the
// last saved metadata and the change logs since then (mfsmaster(8), mfsmetalogger(8)). It leaves a metadata.mfs, like a clean stop, from
// which a master starts without -a.

// MetadataPlace returns the place from spec.metadataServers.
func (Backend) MetadataPlace(fs *v1alpha1.FileSystem) backend.MetadataPlace {
	return backend.MetadataPlace{
		Role: v1alpha1.RoleMetadata, NodeSelector: fs.Spec.MetadataServers.NodeSelector, Targets: fs.Spec.MetadataServers.Targets,
		Component: componentMaster,
		Field:     "spec.metadataServers", Noun: "the metadata",
	}
}

// RecoverySources returns the metaloggers' directories, the places of backups, and the directory of the master.
func (Backend) RecoverySources(in backend.Input) []backend.RecoverySource {
	in = in.Indexed()
	fs := in.FileSystem
	if fs.Status.Metadata == nil {
		return nil
	}
	out := []backend.RecoverySource{{
		Name: componentMaster + "-" + fs.Status.Metadata.Node, Kind: v1alpha1.RecoveryServer,
		Node: fs.Status.Metadata.Node, Directory: fs.Status.Metadata.Directory, OnTarget: fs.Status.Metadata.Target != "",
	}}
	out = append(out, metaloggerSources(in)...)
	return append(out, metadatajobs.BackupSources(fs, in.Nodes)...)
}

// metaloggerSources returns the directories of the metaloggers that the spec asks for.
func metaloggerSources(in backend.Input) (out []backend.RecoverySource) {
	for _, node := range metaloggerNodes(in.FileSystem, in.Nodes) {
		out = append(out, backend.RecoverySource{
			Name: componentMetalogger + "-" + node.Name, Kind: v1alpha1.RecoveryFollower, Node: node.Name,
			Directory: stateDirectory(in.FileSystem, componentMetalogger),
		})
	}
	return out
}

// MetadataCopies returns the copies of the metaloggers. A metalogger receives the changes from the moment it joins. It joins again after a
// restart of its own or of its master.
func (Backend) MetadataCopies(in backend.Input, seen backend.Observation, now time.Time) []backend.MetadataCopy {
	in = in.Indexed()
	var master backend.Pod
	for i := range in.Pods {
		if in.Pods[i].Component == componentMaster {
			master = in.Pods[i]
		}
	}
	var out []backend.MetadataCopy
	for _, source := range metaloggerSources(in) {
		c := backend.MetadataCopy{Source: source, Away: "there is no pod of it on the node", Began: master.Started}
		c.Fetched = lastDownload(in.FileSystem, now)
		node, _ := in.Node(source.Node)
		c.Leaves = node.Cordoned
		server := slices.IndexFunc(seen.Servers, func(s backend.ServerStatus) bool { return s.Name == componentMetalogger+"."+source.Node })
		for pod := range in.PodsOn(componentMetalogger, "", source.Node) {
			c.Pod, c.Outdated, c.Away = pod.Name, pod.Outdated, ""
			if server >= 0 && seen.Servers[server].Online && pod.Ready {
				c.Follows = backend.Hash(pod.Name, pod.Started.Unix(), master.Name, master.Started.Unix())
			} else if server >= 0 {
				c.Away = seen.Servers[server].Message
			}
		}
		out = append(out, c)
	}
	return out
}

// A metalogger downloads all of the metadata at its first connection, and then every META_DOWNLOAD_FREQ hours, limited to half of
// BACK_LOGS. The download begins 630 seconds after the full hour (masterconn_init in masterconn.c of the metalogger).
const (
	downloadOption, downloadHours, downloadOffset = "META_DOWNLOAD_FREQ", 24, 630
	keptLogsOption, keptLogs, fewestKeptLogs      = "BACK_LOGS", 50, 5
)

// lastDownload returns the scheduled time of the metaloggers' last complete download.
func lastDownload(fs *v1alpha1.FileSystem, now time.Time) time.Time {
	hours := min(number(own(fs).Metaloggers.Config, downloadOption, downloadHours),
		max(number(own(fs).Metaloggers.Config, keptLogsOption, keptLogs), fewestKeptLogs)/2)
	if hours <= 0 {
		return time.Time{}
	}
	seconds := hours * 3600
	return time.Unix((now.Unix()-downloadOffset)/seconds*seconds+downloadOffset, 0)
}

// number returns the value of an option, at most 10000. If it is not set, or is no number, it returns the given default.
func number(options v1alpha1.Options, name string, otherwise int64) int64 {
	const most = 10000
	n, err := strconv.ParseInt(string(options[name]), 10, 64)
	if err != nil {
		return otherwise
	}
	return min(n, most)
}

// RecoveryJob inspects a source, or restores the metadata, by `node recover`.
func (Backend) RecoveryJob(in backend.Input, request backend.RecoveryRequest) (*batchv1.Job, spec.Recovery, error) {
	in = in.Indexed()
	// Only programs of the master's own version are guaranteed to read its files.
	version := backend.VersionOf(in.FileSystem, componentMaster)
	image, ok := in.Images.Daemons["moosefs-"+version]
	if !ok {
		return nil, spec.Recovery{}, backend.Invalid(v1alpha1.ReasonInvalidSpec, "the operator has no image for MooseFS %s", version)
	}
	p := pods(in)
	c := p.Container(podspec.RecoveryComponent, image, "recover", podspec.RecoveryVolume, podspec.RecoveryToldFile)
	job, told := p.RecoveryJob(in, request, c, spec.Recovery{Version: version}, podspec.RecoveryServers{
		Server: componentMaster, Follower: componentMetalogger, User: daemonUser, Data: dataSubdirectory,
	})
	return job, told, nil
}

// RecoveryMethod reads copies as a master does after a crash.
func (Backend) RecoveryMethod() backend.RecoveryMethod { return backupMethod{} }

// Usable returns the last saved metadata and all change logs, of a metalogger or of a master. A metalogger that has followed for less than
// an hour may have received the marker for metadata that was never saved; the change logs then begin with the first change.
func (m backupMethod) Usable(found []backend.CopiedFile) map[string]string {
	out, logs := map[string]string{}, false
	for _, f := range found {
		isLog := isChangeLog(f.Name)
		switch {
		case isLog, strings.HasPrefix(f.Name, "metadata.mfs"), strings.HasPrefix(f.Name, copiedMetadata):
			out[f.Name] = f.Name
		case f.Name == copiedPartly && f.Size == int64(len(newMetadata)) && string(f.Head) == newMetadata:
			out[f.Name] = copiedMetadata
		}
		logs = logs || isLog && f.Size > 0
	}
	if len(out) == 0 || !logs && out["metadata.mfs"] == "" {
		return nil
	}
	return out
}

// Changed reads the last complete line of a change log: "VERSION: SECONDS|CHANGE(…)", with the master's clock (changelog.c and the callers
// of changelog(); 3.0.117 and 4.57.5).
func (m backupMethod) Changed(name string, end []byte) time.Time {
	if !strings.HasPrefix(name, "changelog") {
		return time.Time{}
	}
	lines := bytes.Split(end, []byte("\n"))
	for _, line := range slices.Backward(lines[:len(lines)-1]) {
		var version, seconds int64
		if n, _ := fmt.Sscanf(string(line), "%d: %d|", &version, &seconds); n == 2 {
			return time.Unix(seconds, 0)
		}
	}
	return time.Time{}
}
