package experiments

import (
	"parallelfs.dev/operator/api/v1alpha1"
)

// The sizes of the disks that a reduced experiment takes: any of at least ReducedDisk, and for the external log of an XFS one of
// at most ReducedLog.
const (
	ReducedDisk v1alpha1.Size = "200Mi"
	ReducedLog  v1alpha1.Size = "150Mi"
)

// reducedMkfs are the arguments of mkfs that ask for more than a small disk has, and what takes their place: a journal of 400 MiB,
// a log of 520,000 blocks.
var reducedMkfs = map[v1alpha1.MkfsOption]v1alpha1.MkfsOption{
	"size=400":             "size=8",
	"su=128k,size=520000b": "su=128k,size=16384b",
}

// reducedDisks is the number of disks that a storage server of a reduced experiment has at most.
const reducedDisks = 2

// Reduce makes an experiment's filesystem fit on a small cluster with small disks and one network, for tests and for a first look: the
// sizes and numbers of disks shrink, the names of disks and interfaces go, and so do the clients, because a node may have no
// kernel module for them; there is one socket. All else stays, and so do the configurations of the daemons.
func Reduce(fs *v1alpha1.FileSystem) {
	spec := &fs.Spec
	spec.Network = nil
	spec.Clients = nil
	if pinning := spec.Metadata.CPUPinning; pinning != nil {
		for i := range pinning.NUMANodes {
			pinning.NUMANodes[i] = 0
		}
	}
	targets := []*v1alpha1.TargetsSpec{&spec.Metadata.Targets}
	if spec.Management != nil {
		targets = append(targets, &spec.Management.Targets)
	}
	for i := range spec.StoragePools {
		pool := &spec.StoragePools[i].Targets
		if pool.Select != nil {
			pool.Select.CountPerNode = min(pool.Select.CountPerNode, reducedDisks)
		}
		targets = append(targets, pool)
	}
	for _, t := range targets {
		reduceTargets(t)
	}
}

func reduceTargets(t *v1alpha1.TargetsSpec) {
	if t.Select != nil {
		t.Select.MinSize, t.Select.IDGlobs = ReducedDisk, nil
	}
	if t.Format == nil {
		return
	}
	for i, option := range t.Format.MkfsOptions {
		if reduced, ok := reducedMkfs[option]; ok {
			t.Format.MkfsOptions[i] = reduced
		}
	}
	if logs := t.Format.LogDevices; logs != nil {
		logs.MaxSize, logs.IDGlobs = ReducedLog, nil
		logs.CountPerNode = min(logs.CountPerNode, reducedDisks)
	}
}
