package beegfs

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/beegfs/cli"
	"parallelfs.dev/operator/internal/backend/beegfs/store"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// A backup of BeeGFS is the store of its management service: the list of servers, targets, pools and buddy groups, and the owner of the
// root directory. No server of BeeGFS hands out this store, so the probe does: it runs beside the management service and mounts its
// directory read-only. Therefore the pod of a backup needs neither that disk nor any right on a node, and can run at the place of the
// backup.

// storeOf describes the files that the probe hands out: complete files of the management service, and no files that it is about to write.
func storeOf(fs *v1alpha1.FileSystem) *spec.Store {
	out := &spec.Store{
		NodeFile: podspec.NodeFile(fs), Member: spec.MemberName(componentManagement),
		OnTargets:  spec.OnTargets{Directory: componentManagement, Data: dataSubdirectory},
		SecretFile: cli.AuthFile,
	}
	if !cli.Is8(backend.Version(fs)) {
		out.Skip = []string{"*.tmp-*"}
	}
	return out
}

// showStore gives the probe read-only access to the store of the management service in the same pod.
func showStore(pod *corev1.PodTemplateSpec, probe *corev1.Container) {
	for _, m := range pod.Spec.Containers[0].VolumeMounts {
		onNode := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name && v.HostPath != nil })
		if onNode && m.Name != stateVolume {
			m.ReadOnly = true
			probe.VolumeMounts = append(probe.VolumeMounts, m)
		}
	}
}

// BackupJob makes a backup by `node backup`, at its place.
func (Backend) BackupJob(in backend.Input, request backend.BackupRequest) (*batchv1.Job, spec.Backup, error) {
	in = in.Indexed()
	fs := in.FileSystem
	version := backend.VersionOf(fs, componentManagement)
	management, ok := managementNode(in)
	if !ok {
		return nil, spec.Backup{}, backend.Invalid(v1alpha1.ReasonNoNodes, "the node of the management service is not in the cluster, or has no address that the filesystem can use; bring it back")
	}
	p := pods(in)
	p.Group = podspec.Nobody // for a backup in a claim
	// The container runs no program of BeeGFS.
	c := p.Container(componentBackup, in.Images.Node, "backup", podspec.BackupVolume, metadatajobs.BackupToldKey)
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: authVolume, MountPath: cli.AuthDirectory, ReadOnly: true})
	job, told := p.BackupJob(request, c, spec.Backup{
		Version: version, Copied: backend.Address(management.IP, portsOf(fs).probe()), SecretFile: cli.AuthFile,
	}, podspec.SecretVolume(authVolume, secretName(fs)))
	return job, told, nil
}

// StoreDatabase describes the database of BeeGFS 8; BeeGFS 7 writes files.
func (Backend) StoreDatabase(version string) *backend.StoreDatabase {
	if !cli.Is8(version) {
		return nil
	}
	return &backend.StoreDatabase{File: databaseName, Queries: store.Queries}
}

// ReadStore reads the store of a management service as the service does when it starts, and compares it with the answers of the running
// one. BeeGFS 7 writes its state every 15 minutes and when it ends (InternodeSyncer and HeartbeatManager of 7.4.6), BeeGFS 8 immediately.
func (Backend) ReadStore(version string, content backend.StoreContent, said backend.State) (backend.StoreRead, error) {
	var has store.Content
	var err error
	if cli.Is8(version) {
		has, err = store.ReadDatabase(content.Rows)
	} else {
		has, err = store.Read(content.Files)
	}
	if err != nil {
		return backend.StoreRead{}, fmt.Errorf("the store of the management service can't be used: %w", err)
	}
	return backend.StoreRead{ID: has.ID, Lacks: unwritten(has, said)}, nil
}

// unwritten lists the parts of a management service's answer that are not in its store.
func unwritten(content store.Content, said backend.State) []string {
	var out []string
	lacks := func(known bool, format string, arguments ...any) {
		if !known {
			out = append(out, fmt.Sprintf(format, arguments...))
		}
	}
	for i := range said.Servers {
		s := &said.Servers[i]
		switch s.Role {
		case v1alpha1.RoleMetadata:
			lacks(slices.Contains(content.Metadata, s.ID), "metadata server %d", s.ID)
		case v1alpha1.RoleStorage:
			lacks(slices.Contains(content.Storage, s.ID), "storage server %d", s.ID)
		}
	}
	for i := range said.Targets {
		if t := &said.Targets[i]; t.Role != v1alpha1.RoleMetadata {
			server, known := content.Targets[t.ID]
			if t.ServerID == 0 { // the server of the target is unknown
				lacks(known, "storage target %d", t.ID)
			} else {
				lacks(known && server == t.ServerID, "storage target %d of server %d", t.ID, t.ServerID)
			}
		}
	}
	for _, p := range said.Pools {
		members, known := content.Pools[p.ID]
		for _, t := range p.Targets {
			known = known && slices.Contains(members, t)
		}
		lacks(known, "storage pool %d (%s) with its targets", p.ID, p.Name)
	}
	for _, m := range said.Mirrors {
		groups := content.StorageMirrors
		if m.Role == v1alpha1.RoleMetadata {
			groups = content.MetadataMirrors
		}
		pair := store.Pair{Primary: m.Primary, Secondary: m.Secondary}
		lacks(groups[m.ID] == pair, "buddy group %d (%s) with the primary %d", m.ID, m.Role, m.Primary)
	}
	if said.RootID != 0 {
		lacks(content.Root == said.RootID && content.RootMirrored == said.MetadataMirrored, "that %d owns the root directory", said.RootID)
	}
	return out
}
