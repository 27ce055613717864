package format

import "io"

// Guarded is a Format whose disks may show where they are mounted. Only that lets one node see a mount on another node that reaches the
// same disk.
type Guarded interface {
	Format
	// MountedBy returns which machine has the filesystem mounted for writing, or had it mounted when it crashed, and what to do then. It is
	// empty if no machine has, and for a filesystem without this protection. The data must be read from the disk, and not from the memory of
	// this node.
	MountedBy(disk io.ReaderAt) (who string, err error)
	// NotUnmounted returns why a disk that two nodes reach does not show that it was unmounted, empty if it does. A disk that can't show this
	// can't be shared by two nodes.
	NotUnmounted(disk io.ReaderAt) (why string, err error)
}
