// Package drain decides how storage targets of a BeeGFS are emptied: which targets may leave their pool, which Jobs are needed, and when a
// target is empty. A target that leaves is moved to a pool of its own, which gets no new files; a client then moves the files to the other
// targets of the old pool. It is pure, and its only facts of a target are those in Target.
package drain

import (
	"fmt"
	"strings"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/backend"
)

const (
	// Pool is the number of the pool of the targets that are drained: no new file is placed on them. The numbers of other pools are smaller.
	Pool = 100
	// PoolName is the name of that pool.
	PoolName = "draining"
)

// Target is a storage target with the facts that a drain needs. Numbers are 0 while none is assigned.
type Target struct {
	ID, Server int32
	Node       string
	// StoragePool is the pool in the spec, and Home its number in BeeGFS.
	StoragePool *v1alpha1.StoragePoolSpec
	Home        int32
	// Now is the pool in which BeeGFS has the target, 0 while it does not list the target, and Online is true when BeeGFS reaches it.
	Now    int32
	Online bool
	// Mirror is the number of its buddy group, 0 for none.
	Mirror int32
	// Disk is nil for a directory, which can't be taken out.
	Disk *v1alpha1.StorageTarget
	// FilesIn lists the directories of its chunks, relative to its mountpoint.
	FilesIn []string
}

// Asked is true for a target that a person wants to take out.
func (t *Target) Asked() bool { return t.Disk != nil && t.Disk.Spec.Remove }

// takes is true for a target that can get the files of its pool.
func (t *Target) takes() bool { return t.Online && t.Now == t.Home }

// Facts holds the facts that a drain depends on besides its target.
type Facts struct {
	FileSystem *v1alpha1.FileSystem
	// Lacks is the licensed feature without which BeeGFS has no pools, empty when it may have them.
	Lacks string
	// Mounted returns the clients that have the filesystem mounted, and Movers the client nodes that can mount it to move files.
	Mounted, Movers func() []string
	// Job finds a Job by its name, nil when it does not exist.
	Job func(name string) *backend.Job
}

// Waits returns, for each target that a person wants to take out, the reason why it stays, by its place in the list; empty when it leaves.
// A target that has left its pool goes on, whatever happens to the others. Of the others, at least one target of each pool has to stay, and
// be online to get the files.
func Waits(targets []Target, f Facts) map[int]string {
	// takers counts the targets of each pool that stay, among those decided so far.
	takers, out := map[string]int{}, map[int]string{}
	for i := range targets {
		if t := &targets[i]; t.takes() {
			takers[t.StoragePool.Name]++
		}
	}
	for i := range targets {
		t := &targets[i]
		if !t.Asked() {
			continue
		}
		out[i] = ""
		if t.Now == Pool {
			continue
		}
		others := takers[t.StoragePool.Name]
		if t.takes() {
			others--
		}
		if out[i] = t.staysFor(f, others); out[i] == "" {
			takers[t.StoragePool.Name] = others
		}
	}
	return out
}

// staysFor returns the reason why a target is not drained now, if so many others of its pool stay; empty when it may be.
func (t *Target) staysFor(f Facts, others int) string {
	switch {
	case t.Mirror != 0:
		return fmt.Sprintf("refused: target %d is one side of buddy group %d, and BeeGFS can't take a target out of a buddy group that holds data", t.ID, t.Mirror)
	case backend.Copies(*t.StoragePool) > 1:
		return fmt.Sprintf("refused: pool %s is mirrored", t.StoragePool.Name)
	case f.Lacks != "":
		return "refused: BeeGFS 8 can keep new files off a target only by a storage pool of its own, which needs a license (" + f.Lacks + ")"
	case !t.Online:
		return "what is on it can be moved when it is online"
	case !t.Disk.Spec.WritersStopped && len(f.Mounted()) > 0:
		return fmt.Sprintf("refused: the filesystem is mounted by %s, and BeeGFS moves files without locking them: what is written to a file meanwhile may be lost; "+
			"stop what writes, then set spec.writersStopped of the StorageTarget", strings.Join(f.Mounted(), ", "))
	case others == 0:
		return fmt.Sprintf("refused: pool %s has no other target that is online, stays, and could take the files; add one first", t.StoragePool.Name)
	default:
		return ""
	}
}
