package beegfs

import (
	"slices"

	batchv1 "k8s.io/api/batch/v1"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
	"parallelfs.dev/operator/internal/backend/shared/exchange"
	"parallelfs.dev/operator/internal/backend/shared/metadatajobs"
	"parallelfs.dev/operator/internal/backend/shared/podspec"
	"parallelfs.dev/operator/internal/node/spec"
)

// A lost store of the management service is restored from a backup. The metadata servers and the storage servers keep their numbers on
// their own disks. Servers that are not in the restored store register again when they start.

// MetadataPlace is spec.beegfs.management.
func (Backend) MetadataPlace(fs *v1alpha1.FileSystem) backend.MetadataPlace {
	out := backend.MetadataPlace{
		Role: v1alpha1.RoleManagement, NodeSelector: own(fs).Management.NodeSelector, Targets: own(fs).Management.Targets,
		Component: componentManagement, Field: "spec.beegfs.management", Noun: "the store of the management service",
	}
	twice := func(p v1alpha1.StoragePoolSpec) bool { return backend.Copies(p) > 1 }
	if own(fs).MirrorMetadata || slices.ContainsFunc(fs.Spec.StoragePools, twice) {
		out.Beware = "Buddy groups are as they were then, too: a side that has got out of step since would be taken for whole. " +
			"Stop all that writes, and compare before it goes on (docs/recovery.md)."
	}
	return out
}

// RecoverySources returns the places of backups.
func (Backend) RecoverySources(in backend.Input) []backend.RecoverySource {
	in = in.Indexed()
	return metadatajobs.BackupSources(in.FileSystem, in.Nodes)
}

// RecoveryJob inspects a source, or restores the store, by `node recover`. It runs no program of BeeGFS.
func (Backend) RecoveryJob(in backend.Input, request backend.RecoveryRequest) (*batchv1.Job, spec.Recovery, error) {
	in = in.Indexed()
	p := pods(in)
	p.Group = podspec.Nobody // for a backup in a claim
	c := p.Container(podspec.RecoveryComponent, in.Images.Node, "recover", podspec.RecoveryVolume, podspec.RecoveryToldFile)
	told := spec.Recovery{Version: backend.VersionOf(in.FileSystem, componentManagement), Known: known(in)}
	job, told := p.RecoveryJob(in, request, c, told, podspec.RecoveryServers{
		Server: componentManagement, User: rootUser, Data: dataSubdirectory,
	})
	return job, told, nil
}

// known lists the servers and targets that have held data and stay: a store without one of them is from before it joined.
func known(in backend.Input) *spec.Known {
	servers, targets := map[v1alpha1.Role][]int32{}, map[v1alpha1.Role][]int32{}
	for _, g := range in.Given() {
		has := false
		for i := range g.Targets {
			t := &g.Targets[i]
			if g.Retired || t.Initialized == nil || t.Drained != nil {
				continue
			}
			has = true
			if g.Role == v1alpha1.RoleStorage {
				targets[g.Role] = append(targets[g.Role], t.ID)
			}
		}
		if has {
			servers[g.Role] = append(servers[g.Role], g.ID)
		}
	}
	return exchange.Known(servers, targets)
}
