package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"parallelfs.dev/operator/api/v1alpha1"
	"parallelfs.dev/operator/internal/node/host"
	"parallelfs.dev/operator/internal/node/provision"
)

const (
	// inodesLimit is the time for the filesystems of all directories together.
	inodesLimit = 5 * time.Second
	// mostDirectories is the limit of NodeAgentStatus.directories.
	mostDirectories = 64
)

// directoryInodes reads how many inodes are used on the filesystems of servers' directories.
type directoryInodes struct {
	// read replaces usedInodesOn in tests.
	read func(path string) int32

	mutex sync.Mutex
	// hanging holds the directories whose query has not returned. They are not queried again, because each query would block one more thread.
	hanging map[string]bool
}

// of returns the used inodes of the directories of a FileSystemNode, sorted by name. The operator lists these directories in the status.
func (d *directoryInodes) of(n *v1alpha1.FileSystemNode) []v1alpha1.DirectoryInodes {
	var names []string
	for i := range n.Status.Members {
		for j := range n.Status.Members[i].Directories {
			names = append(names, n.Status.Members[i].Directories[j].Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	names = names[:min(len(names), mostDirectories)]
	answers := make([]<-chan int32, len(names))
	for i, name := range names {
		answers[i] = d.start(name)
	}
	var out []v1alpha1.DirectoryInodes
	limit, cancel := context.WithTimeout(context.Background(), inodesLimit)
	defer cancel()
	for i, name := range names {
		var used int32
		select {
		case used = <-answers[i]:
		case <-limit.Done():
			select { // an answer that has come counts after the limit too
			case used = <-answers[i]:
			default:
			}
		}
		if used > 0 {
			out = append(out, v1alpha1.DirectoryInodes{Name: name, UsedInodesPerMille: used})
		}
	}
	return out
}

// start queries the filesystem of a directory in the background. It answers 0 at once while the last query of the directory hangs.
func (d *directoryInodes) start(name string) <-chan int32 {
	answer := make(chan int32, 1)
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.hanging[name] {
		answer <- 0
		return answer
	}
	if d.hanging == nil {
		d.hanging = map[string]bool{}
	}
	d.hanging[name] = true
	read := d.read
	if read == nil {
		read = usedInodesOn
	}
	go func() {
		used := read(name)
		d.mutex.Lock()
		delete(d.hanging, name)
		d.mutex.Unlock()
		answer <- used
	}()
	return answer
}

// usedInodesOn returns the used part of the inodes of the filesystem that a path of the node is on, in thousandths; 0 if it is unknown or
// has no limit. Symbolic links are resolved in the node's root directory.
func usedInodesOn(path string) int32 {
	root, err := unix.Open(host.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(root)
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT}
	directory, err := unix.Openat2(root, path, how)
	if err != nil {
		return 0
	}
	defer unix.Close(directory)
	var s unix.Statfs_t
	if err := unix.Fstatfs(directory, &s); err != nil {
		return 0
	}
	return provision.UsedInodes(s)
}
