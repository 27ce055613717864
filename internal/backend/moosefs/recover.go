package moosefs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/node/spec"
)

// Lost metadata of MooseFS is made again by `mfsmaster -a restore` from what a metalogger has, or from a backup, which is the same: the
// last saved metadata and the change logs since (mfsmaster(8), mfsmetalogger(8)). It leaves a metadata.mfs, as a clean stop does, with
// which a master starts without -a.

// MetadataPlace is spec.metadata.
func (Backend) MetadataPlace(fs *v1alpha1.FileSystem) backend.MetadataPlace {
	return backend.MetadataPlace{
		Role: v1alpha1.RoleMetadata, NodeSelector: fs.Spec.Metadata.NodeSelector, Targets: fs.Spec.Metadata.Targets, Component: componentMaster,
		Field: "spec.metadata", Noun: "the metadata",
	}
}

// RecoverySources are the metaloggers' directories, the places of backups, and that of the master.
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
	if metaloggers := own(fs).Metaloggers; metaloggers != nil {
		for _, node := range backend.Matching(in.Nodes, metaloggers.NodeSelector) {
			out = append(out, backend.RecoverySource{
				Name: componentMetalogger + "-" + node.Name, Kind: v1alpha1.RecoveryFollower, Node: node.Name,
				Directory: stateDirectory(fs, componentMetalogger),
			})
		}
	}
	return append(out, backend.BackupSources(fs, in.Nodes)...)
}

// RecoveryJob looks at a source, or makes the metadata again, by `node recover`.
func (Backend) RecoveryJob(in backend.Input, request backend.RecoveryRequest) (*batchv1.Job, spec.Recovery, error) {
	in = in.Indexed()
	// What a master has written, only programs of its version surely read.
	version := backend.VersionOf(in.FileSystem, componentMaster)
	image, ok := in.Images.Daemons["moosefs-"+version]
	if !ok {
		return nil, spec.Recovery{}, backend.Invalid(v1alpha1.ReasonInvalidSpec, "the operator has no image for MooseFS %s", version)
	}
	p := pods(in)
	c := p.Container(backend.RecoveryComponent, image, "recover", backend.RecoveryVolume, backend.RecoveryToldFile)
	job, told := p.RecoveryJob(in, request, c, spec.Recovery{Version: version}, backend.RecoveryServers{
		Server: componentMaster, Follower: componentMetalogger, User: daemonUser, Data: dataSubdirectory,
	})
	return job, told, nil
}

// RecoveryMethod reads copies as a master does after a crash.
func (Backend) RecoveryMethod() backend.RecoveryMethod { return backupMethod{} }

// Usable are the last saved metadata and all change logs, of a metalogger or of a master. A metalogger that has followed for less than an
// hour has got the word that there is no saved metadata yet: the change logs begin with the first change.
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

// Changed reads the last whole line of a change log: "VERSION: SECONDS|CHANGE(…)", with the master's clock (changelog.c and the callers of
// changelog(); 3.0.117 and 4.57.5).
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
